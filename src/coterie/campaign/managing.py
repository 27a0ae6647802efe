"""Commands on a campaign that measure nothing: undo an ask, archive, change the time that a lease lasts."""

from __future__ import annotations

from typing import Any

from coterie.campaign.commands import Turn, expire, free, give_up, note_findings
from coterie.campaign.errors import Conflict
from coterie.campaign.facts import ARCHIVED, LEASE_TIME, UNARCHIVED
from coterie.campaign.missed_asks import UNDONE
from coterie.campaign.settings import checked_lease_seconds
from coterie.campaign.timestamps import timestamp

OF_ARCHIVED = ("archive", "unarchive")
"""Decisions that may be made on an archived campaign."""


def check_not_archived(turn: Turn) -> None:
    """Refuse to write to a campaign that was put away."""
    if turn.state.archived is not None:
        raise Conflict(
            f"the campaign is archived since {timestamp(turn.state.archived)}, and only read: unarchive it first",
            code="archived",
        )


def undo(turn: Turn, lease: Any, reason: Any = "") -> dict[str, Any]:
    """Give back an ask that nobody has measured: it is no failure, and its item can be asked for again."""
    return free(turn, lease, reason, UNDONE)


def free_token(turn: Turn, token: str, reason: str) -> dict[str, Any]:
    """Give back all asks that were asked for with a token, by its id."""
    expire(turn)
    held = [lease for lease in turn.state.open.values() if lease.token == token]
    for lease in held:
        give_up(turn, lease, UNDONE, reason)
    if held:
        note_findings(turn, by="undone")
    return {"freed": len(held)}


def archive(turn: Turn) -> dict[str, Any]:
    """Put the campaign away: it is read-only, and lists leave it out. Doing so twice changes nothing."""
    if turn.state.archived is None:
        turn.note(ARCHIVED, {})
    return _archived(turn)


def unarchive(turn: Turn) -> dict[str, Any]:
    """Take the campaign up again, as it was."""
    if turn.state.archived is not None:
        turn.note(UNARCHIVED, {})
    return _archived(turn)


def _archived(turn: Turn) -> dict[str, Any]:
    since = turn.state.archived
    return {"archived": None if since is None else timestamp(since)}


def change_lease_time(turn: Turn, seconds: Any) -> dict[str, Any]:
    """How long a worker may take, from the next ask on; leases that are open keep their time."""
    new, before = checked_lease_seconds(seconds), turn.state.lease_seconds
    if new != before:
        turn.note(LEASE_TIME, {"seconds": new, "before": before})
    return {"changed": new != before, "lease_seconds": new, "before": before}
