"""The command that corrects a told value: a new fact with the old value, the new one, the reason, who and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coterie.campaign.commands.results import check_values
from coterie.campaign.commands.turn import Turn, note_findings
from coterie.campaign.errors import BadValue, Conflict, Forbidden, NotFound, Outdated
from coterie.campaign.settings import check_text, checked_field, printable, timestamp
from coterie.campaign.state.facts import CORRECTION
from coterie.campaign.state.state import State
from coterie.campaign.tokens import Writer
from coterie.problem.checks import FloatArray
from coterie.session import corrections
from coterie.session.corrections import LONGEST_REASON, Prepared


@dataclass(frozen=True)
class _Wanted:
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
    found: Prepared | None


def prepare(
    state: State, writer: Writer | None, measurement: Any, values: Any, reason: Any, by: Any = "", id: Any = None
) -> PreparedCorrection:
    """Work out what a correction makes of the session: that takes as long as the log is, so nobody's turn is spent."""
    wanted = _checked(state, writer, measurement, values, reason, by, id)
    found = None
    if wanted.earlier is None:
        found = checked_field(
            "values", corrections.prepare, state.session, wanted.place, wanted.new, wanted.why, wanted.who
        )
    return PreparedCorrection(state, state.seq, found)


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
    wanted = _checked(state, turn.writer, measurement, values, reason, by, id)
    place, name = wanted.place, wanted.name
    if wanted.earlier is not None:
        return _answer(state, place, wanted.earlier, False)
    if prepared is None:
        prepared = prepare(state, turn.writer, measurement, values, reason, by, id)
    elif prepared.state is not state or prepared.seq != state.seq:
        raise Outdated("rows were added meanwhile")
    if prepared.found is None:
        return _answer(state, place, None, False)
    found = prepared.found.install(session, timestamp(turn.now))
    content = {
        "id": name,
        "measurement": str(measurement),
        "row": place,
        "arm": found.arm,
        "name": state.settings.name_of(found.arm),
        "old": list(found.old),
        "new": list(found.new),
        "reason": found.reason,
        "by": found.by,
        "reopened": found.reopened,
    }
    if found.reopened:
        content["message"] = (
            f"The correction of measurement {measurement} takes the proof back: measuring goes on."
        )  # fmt: skip
    turn.note(CORRECTION, content)
    turn.note_rules()
    turn.note_decisions()
    note_findings(turn, by="correction")
    return _answer(state, place, content, True)


def _checked(
    state: State, writer: Writer | None, measurement: Any, values: Any, reason: Any, by: Any, id: Any
) -> _Wanted:
    place = _place(state, writer, measurement)
    new = check_values(state, values, "values")
    why, who = _reason(reason), "" if by in ("", None) else check_text(by, "by")
    name = None if id is None else check_text(id, "id")
    earlier = next((one for one in state.corrections if name is not None and one["id"] == name), None)
    if earlier is not None and (earlier["measurement"] != measurement or earlier["new"] != new.tolist()):
        raise Conflict(
            f"correction {name!r} is on record with another content: measurement {earlier['measurement']!r}, "
            f"values {earlier['new']}",
            code="id_taken",
            field="id",
        )
    return _Wanted(place, new, why, who, name, earlier)


def _place(state: State, writer: Writer | None, measurement: Any) -> int:
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


def _answer(state: State, place: int, content: dict[str, Any] | None, changed: bool) -> dict[str, Any]:
    arm, values, _ = state.results[place]
    found = {
        "corrected": changed,
        "arm": arm,
        "name": state.settings.name_of(arm),
        "old": None if content is None else content["old"],
        "values": values.tolist(),
        "done": state.done,
        "reopened": changed and content is not None and content["reopened"],
    }
    return found | ({"message": content["message"]} if content is not None and "message" in content else {})
