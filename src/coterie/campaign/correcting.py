"""The command that corrects a told value: a new fact with the old value, the new one, the reason, who and when."""

from __future__ import annotations

from typing import Any

from coterie.campaign.commands import Turn, check_values, note_findings
from coterie.campaign.errors import BadValue, Conflict, Forbidden, NotFound
from coterie.campaign.facts import CORRECTION
from coterie.campaign.settings import check_text, checked_field, printable
from coterie.campaign.state import State
from coterie.campaign.timestamps import timestamp
from coterie.session.corrections import LONGEST_REASON


def correct(
    turn: Turn, measurement: Any, values: Any, reason: Any, by: Any = "", id: Any = None
) -> dict[str, Any]:  # fmt: skip
    """Replace the values of a measurement; its place in the order stays. The present values change nothing.

    `id`: of the correction itself. Sent twice, it is made once, even if the measurement was corrected again since.
    """
    state, session = turn.state, turn.state.session
    place = _place(turn, measurement)
    new = check_values(state, values, "values")
    why, who = _reason(reason), "" if by in ("", None) else check_text(by, "by")
    name = None if id is None else check_text(id, "id")
    earlier = next((one for one in state.corrections if name is not None and one["id"] == name), None)
    if earlier is not None:
        if earlier["measurement"] != measurement or earlier["new"] != new.tolist():
            raise Conflict(
                f"correction {name!r} is on record with another content: measurement {earlier['measurement']!r}, "
                f"values {earlier['new']}",
                code="id_taken",
                field="id",
            )
        return _answer(state, place, earlier, False)
    found = checked_field("values", session.correct, place, new, why, who, timestamp(turn.now))
    if found is None:
        return _answer(state, place, None, False)
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


def _place(turn: Turn, measurement: Any) -> int:
    name, state = check_text(measurement, "measurement"), turn.state
    if name not in state.ids:
        raise NotFound(f"there is no measurement {name!r}", code="unknown_measurement", field="measurement")
    place = state.ids[name]
    writer = turn.writer
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
