"""The command that chooses another resolution for a campaign under way: other `alike` and `apart`, after looking."""

from __future__ import annotations

from typing import Any

from coterie.campaign.commands import Turn, expire, note_findings, plain
from coterie.campaign.errors import BadValue, Conflict
from coterie.problem.settings import SettingError
from coterie.session.forecast import WILD


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
