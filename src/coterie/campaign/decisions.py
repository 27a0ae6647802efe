"""The decisions that a campaign is asked for, by the names of their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coterie.campaign import choosing, commands, correcting, managing, revising
from coterie.campaign.commands import Turn
from coterie.campaign.open_campaigns import OfArchived
from coterie.campaign.tokens import Writer

_DECISIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "ask": commands.ask,
    "tell": commands.tell,
    "fail": commands.fail,
    "choose_resolution": choosing.choose_resolution,
    "undo": managing.undo,
    "archive": managing.archive,
    "unarchive": managing.unarchive,
    "change_lease_time": managing.change_lease_time,
    "correct": correcting.correct,
    "revise": revising.revise,
}


def decision(name: str, arguments: Sequence[Any], writer: Writer | None = None) -> Callable[[Turn], dict[str, Any]]:
    """What a call decides in a turn; `writer`: the token that it came with."""
    if name not in _DECISIONS:
        raise ValueError(f"a call is one of {', '.join(_DECISIONS)}, got {name!r}")

    def decide(turn: Turn) -> dict[str, Any]:
        turn.writer = writer  # a turn is shared by requests that are committed together
        return _DECISIONS[name](turn, *arguments)

    return OfArchived(decide) if name in managing.OF_ARCHIVED else decide
