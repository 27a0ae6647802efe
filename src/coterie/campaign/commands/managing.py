"""Commands on a campaign that measure nothing: undo an ask, archive, another lease time, another resolution, other
items; and all decisions that a campaign is asked for, by the names of their calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from coterie.campaign.commands import correcting, managing, measuring
from coterie.campaign.commands.measuring import free
from coterie.campaign.commands.turn import OfArchived, Turn, expire, give_up, note_findings
from coterie.campaign.errors import BadValue, Conflict
from coterie.campaign.settings import MOST_ITEMS, check_text, checked_lease_seconds, plain, timestamp
from coterie.campaign.state.facts import ARCHIVED, LEASE_TIME, REVISION, UNARCHIVED
from coterie.campaign.state.leases import UNDONE
from coterie.campaign.tokens import Writer
from coterie.problem.settings import SettingError
from coterie.session.forecast import WILD
from coterie.session.replaying import checked_revision, revise_by
from coterie.store.rows import Note

OF_ARCHIVED = ("archive", "unarchive")
"""Decisions that may be made on an archived campaign."""


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


def choose_resolution(turn: Turn, resolution: Any) -> dict[str, Any]:
    """Ask for another ε and η from here on; the present ones once more change nothing."""
    session = turn.state.session
    try:
        chosen = session.first_settings.with_resolution(resolution).resolution
    except SettingError as error:
        raise BadValue(str(error), field=error.field) from None
    assert chosen is not None
    if not session.done:
        expire(turn)
    changed = chosen != session.resolution
    if changed and session.done:
        raise Conflict(
            f"the groups are proven after {session.t} measurements, and that stands: for another resolution export "
            "the measurements, and import them into a new campaign",
            code="already_done",
            field="resolution",
        )
    if changed:
        turn.note_rules()
        session.choose_resolution(chosen)
        turn.note_decisions()
        note_findings(turn, by="resolution")
    left = None if session.forecast is None else session.forecast - session.t
    return {
        "changed": changed,
        **chosen.to_json(),
        "epoch": sum(one["event"] == "freeze" for one in session.decisions),
        "done": session.done,
        "forecast": plain(left) if left is not None and left <= WILD * session.t else None,
    }


def revise(turn: Turn, changes: dict[str, Any]) -> dict[str, Any]:
    """Revise a campaign. `changes`: any of add (with costs), retire, n_clusters, delta, and by whom and why.

    Open leases stay open: their results count as those that nobody asked for.
    """
    session = turn.state.session
    add = changes.get("add")
    if session.settings.names is not None and add is not None:
        add = [check_text(name, "add") for name in (add if isinstance(add, list | tuple) else [add])]
    if isinstance(add, int) and add > MOST_ITEMS:
        raise BadValue(f"a campaign may have at most {MOST_ITEMS} items in all, got add {add}", field="add")
    said = {key: check_text(changes[key], key) for key in ("by", "reason") if changes.get(key) is not None}
    try:
        wanted = (changes.get(name) for name in ("retire", "n_clusters", "delta", "costs"))
        revision = checked_revision(session, add, *wanted)
    except SettingError as error:
        kind = Conflict if error.field == "method" else BadValue
        raise kind(str(error), field=error.field) from None
    if session.items.after(revision).n_ever > MOST_ITEMS:
        raise BadValue(f"a campaign may have at most {MOST_ITEMS} items in all, retired ones included", field="add")
    if not session.done:
        expire(turn)
        turn.note_rules()
        turn.note_decisions()
    revise_by(session, revision)
    for t, decision in session.dated_decisions[turn.state.decisions :]:
        called = {"retired_names": [session.settings.name_of(arm) for arm in revision.retired]} | said
        more = called if decision["event"] == REVISION else {}
        turn.add(Note(turn.seq, decision["event"], json.dumps(decision | more | {"t": t}), turn.now))
    note_findings(turn, by="revision")
    return {
        "items": len(session.items.present),
        "retired": [session.settings.name_of(arm) for arm in session.retired],
        "n_clusters": session.n_clusters,
        "delta": session.delta,
        "epochs": sum(one["event"] == "freeze" for one in session.decisions),
        "t": session.t,
        "done": session.done,
    }


_DECISIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "ask": measuring.ask,
    "tell": measuring.tell,
    "fail": measuring.fail,
    "choose_resolution": managing.choose_resolution,
    "undo": managing.undo,
    "archive": managing.archive,
    "unarchive": managing.unarchive,
    "change_lease_time": managing.change_lease_time,
    "correct": correcting.correct,
    "revise": managing.revise,
}


def decision(name: str, arguments: Sequence[Any], writer: Writer | None = None) -> Callable[[Turn], dict[str, Any]]:
    """What a call decides in a turn; `writer`: the token that it came with."""
    if name not in _DECISIONS:
        raise ValueError(f"a call is one of {', '.join(_DECISIONS)}, got {name!r}")

    def decide(turn: Turn) -> dict[str, Any]:
        turn.writer = writer  # a turn is shared by requests that are committed together
        return _DECISIONS[name](turn, *arguments)

    return OfArchived(decide) if name in managing.OF_ARCHIVED else decide
