"""Commands on a campaign that measure nothing: correct a value, undo an ask, archive, another lease time, another
resolution, other items; and all commands, by the names of their calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coterie.campaign.commands import measuring
from coterie.campaign.commands.blocks import close_block
from coterie.campaign.commands.measuring import free
from coterie.campaign.commands.results import check_values
from coterie.campaign.commands.turn import ArchivedCommand, Turn, expire, give_up, note_findings
from coterie.campaign.errors import BadValue, Conflict, Forbidden, NotFound, Outdated
from coterie.campaign.settings import (
    MOST_ITEMS,
    check_text,
    checked_field,
    checked_lease_seconds,
    plain,
    printable,
    timestamp,
)
from coterie.campaign.state.facts import ARCHIVED, CORRECTION, DEADLINE, LEASE_TIME, REVISION, UNARCHIVED, as_told
from coterie.campaign.state.leases import UNDONE
from coterie.campaign.state.state import State
from coterie.campaign.tokens import Writer
from coterie.problem.checks import FloatArray
from coterie.problem.settings import SettingError
from coterie.session import Session, corrections
from coterie.session.corrections import LONGEST_REASON, CorrectedConversation
from coterie.session.forecast import WILD
from coterie.session.replaying import checked_revision, revise_by
from coterie.store.rows import Note


@dataclass(frozen=True)
class _WantedCorrection:
    """A correction that was checked; `earlier` if it is on record."""

    place: int
    new: FloatArray
    why: str
    who: str
    name: str | None
    earlier: dict[str, Any] | None


@dataclass(frozen=True)
class PreparedCorrection:
    """What a correction makes of the session of a state that had its last row at `seq`; None: nothing."""

    state: State
    seq: int
    correction: CorrectedConversation | None


def prepare_correction(
    state: State, writer: Writer | None, measurement: Any, values: Any, reason: Any, by: Any = "", id: Any = None
) -> PreparedCorrection:
    """Work out what a correction makes of the session: that takes as long as the log is, so nobody's turn is spent."""
    wanted = _checked_correction(state, writer, measurement, values, reason, by, id)
    correction = None
    if wanted.earlier is None:
        correction = checked_field(
            "values", corrections.prepare, state.session, wanted.place, wanted.new, wanted.why, wanted.who
        )
    return PreparedCorrection(state, state.seq, correction)


def correct(
    turn: Turn,
    measurement: Any,
    values: Any,
    reason: Any,
    by: Any = "",
    id: Any = None,
    prepared: PreparedCorrection | None = None,
) -> dict[str, Any]:
    """Replace the values of a measurement; its place in the order stays. The present values change nothing.

    `id`: of the correction itself. Sent twice, it is made once, even if the measurement was corrected again since.
    `prepared`: what was worked out for it; `Outdated` if rows were added since.
    """
    state, session = turn.state, turn.state.session
    wanted = _checked_correction(state, turn.writer, measurement, values, reason, by, id)
    place, name = wanted.place, wanted.name
    if wanted.earlier is not None:
        return _correction_answer(state, place, wanted.earlier, False)
    if prepared is None:
        prepared = prepare_correction(state, turn.writer, measurement, values, reason, by, id)
    elif prepared.state is not state or prepared.seq != state.seq:
        raise Outdated("rows were added meanwhile")
    if prepared.correction is None:
        return _correction_answer(state, place, None, False)
    correction = prepared.correction.install(session, timestamp(turn.now))
    content = {
        "id": name,
        "measurement": str(measurement),
        "row": place,
        **state.settings.named(state.results[place][0]),
        "old": correction.to_json()["old"],
        "new": correction.to_json()["new"],
        "reason": correction.reason,
        "by": correction.by,
        "reopened": correction.reopened,
    }
    if correction.reopened:
        content["message"] = (
            f"The correction of measurement {measurement} takes the proof back: measuring goes on."
        )  # fmt: skip
    turn.note(CORRECTION, content)
    turn.note_rules()
    turn.note_decisions()
    note_findings(turn, by="correction")
    return _correction_answer(state, place, content, True)


def _checked_correction(
    state: State, writer: Writer | None, measurement: Any, values: Any, reason: Any, by: Any, id: Any
) -> _WantedCorrection:
    place = _place_of(state, writer, measurement)
    new = check_values(state, values, "values", state.results[place][0])
    why, who = _reason(reason), "" if by in ("", None) else check_text(by, "by")
    name = None if id is None else check_text(id, "id")
    earlier = next((record for record in state.corrections if name is not None and record["id"] == name), None)
    if earlier is not None and (earlier["measurement"] != measurement or earlier["new"] != as_told(new, new.size)):
        raise Conflict(
            f"correction {name!r} is on record with another content: measurement {earlier['measurement']!r}, "
            f"values {earlier['new']}",
            code="id_taken",
            field="id",
        )
    return _WantedCorrection(place, new, why, who, name, earlier)


def _place_of(state: State, writer: Writer | None, measurement: Any) -> int:
    name = check_text(measurement, "measurement")
    if name in state.surplus:
        raise Conflict(
            f"measurement {name!r} does not count, as somebody else had answered its ask: there is nothing to correct",
            code="not_counted",
            field="measurement",
        )
    if name not in state.ids:
        raise NotFound(f"there is no measurement {name!r}", code="unknown_measurement", field="measurement")
    place = state.ids[name]
    if writer is not None and writer.only_own and state.registry.tokens.get(place) != writer.token:
        raise Forbidden(
            f"measurement {name!r} was told with another token, and a worker's token corrects its own results only",
            code="not_your_measurement",
            field="measurement",
        )
    return place


def _reason(reason: Any) -> str:
    if not isinstance(reason, str) or not reason.strip() or len(reason) > LONGEST_REASON:
        raise BadValue(
            f"reason must say why the value was wrong, in 1 to {LONGEST_REASON} characters, got {reason!r:.60}",
            field="reason",
        )
    return printable(" ".join(reason.split()))


def _correction_answer(state: State, place: int, content: dict[str, Any] | None, changed: bool) -> dict[str, Any]:
    arm, values, _ = state.results[place]
    answer = {
        "corrected": changed,
        **state.settings.named(arm),
        "old": None if content is None else content["old"],
        "values": as_told(values, state.settings.size_of(arm)),
        "done": state.done,
        "reopened": changed and content is not None and content["reopened"],
    }
    return answer | ({"message": content["message"]} if content is not None and "message" in content else {})


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


@ArchivedCommand
def archive(turn: Turn) -> dict[str, Any]:
    """Put the campaign away: it is read-only, and lists leave it out. Doing so twice changes nothing."""
    if turn.state.archived is None:
        turn.note(ARCHIVED, {})
    return _archived(turn)


@ArchivedCommand
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
        "epoch": sum(decision["event"] == "freeze" for decision in session.decisions),
        "done": session.done,
        "forecast": plain(left) if left is not None and left <= WILD * session.t else None,
    }


def revise(turn: Turn, changes: dict[str, Any]) -> dict[str, Any]:
    """Revise a campaign. `changes`: any of add (with costs), retire, n_clusters, delta, and by whom and why; or the
    deadline, by itself.

    Open leases stay open: their results count as those that nobody asked for.
    """
    session = turn.state.session
    if changes.get("deadline") is not None:
        return _change_deadline(turn, changes)
    add = changes.get("add")
    if session.settings.names is not None and add is not None:
        add = [check_text(name, "add") for name in (add if isinstance(add, list | tuple) else [add])]
    if isinstance(add, int) and add > MOST_ITEMS:
        raise BadValue(f"a campaign may have at most {MOST_ITEMS} items in all, got add {add}", field="add")
    said = _said(changes)
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
    return _revised(session)


def _said(changes: dict[str, Any]) -> dict[str, str]:
    """By whom and why."""
    return {key: check_text(changes[key], key) for key in ("by", "reason") if changes.get(key) is not None}


def _change_deadline(turn: Turn, changes: dict[str, Any]) -> dict[str, Any]:
    """Another deadline; the present one once more changes nothing."""
    session, said = turn.state.session, _said(changes)
    if session.done:
        raise Conflict("the groups are proven: no deadline is needed any more", code="already_done", field="deadline")
    expire(turn)
    turn.note_rules()
    try:
        session.revise(**{key: given for key, given in changes.items() if key not in ("by", "reason")})
    except SettingError as error:
        raise BadValue(str(error), field=error.field) from None
    for step in session.steps[turn.state.steps :]:
        turn.note(DEADLINE, {"deadline": step["deadline"]} | said)
    turn.note_decisions()
    return _revised(session)


def _revised(session: Session) -> dict[str, Any]:
    """What is asked for now."""
    return {
        "items": len(session.items.present),
        "retired": [session.settings.name_of(arm) for arm in session.retired],
        "n_clusters": session.n_clusters,
        "delta": session.delta,
        "epochs": sum(decision["event"] == "freeze" for decision in session.decisions),
        "t": session.t,
        "done": session.done,
    } | ({} if session.deadline is None else {"deadline": session.deadline})


_COMMANDS: dict[str, Callable[..., dict[str, Any]]] = {
    "ask": measuring.ask,
    "tell": measuring.tell,
    "fail": measuring.fail,
    "choose_resolution": choose_resolution,
    "undo": undo,
    "close_block": close_block,
    "archive": archive,
    "unarchive": unarchive,
    "change_lease_time": change_lease_time,
    "correct": correct,
    "revise": revise,
}


def command_named(name: str) -> Callable[..., dict[str, Any]]:
    """The command behind a call."""
    if name not in _COMMANDS:
        raise ValueError(f"a call is one of {', '.join(_COMMANDS)}, got {name!r}")
    return _COMMANDS[name]
