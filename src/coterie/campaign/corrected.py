"""What people and programs see of corrections: what was told, what it is now, why, who and when."""

from __future__ import annotations

import json
from typing import Any

from coterie.campaign.state import State
from coterie.campaign.timestamps import timestamp
from coterie.store.rows import Told

_SHOWN = ("seq", "id", "measurement", "arm", "name", "old", "new", "reason", "by", "reopened")


def corrections(state: State) -> list[dict[str, Any]]:
    """All corrections, oldest first."""
    return [{key: one[key] for key in _SHOWN} | {"at": timestamp(one["at"])} for one in state.corrections]


def present_values(state: State, row: Told) -> dict[str, Any]:
    """The values of a measurement as they count; `told` has what was told at first, if it was corrected."""
    values = state.results[state.ids[row.id]][1].tolist()
    told = json.loads(row.values)
    was_corrected = any(one["measurement"] == row.id for one in state.corrections)
    return {"values": values, "told": told} if was_corrected else {"values": values}
