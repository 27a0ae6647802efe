"""JSON that says one thing only: no key twice in an object, no NaN or Infinity, nothing after the end."""

from __future__ import annotations

import json
from typing import Any

from coterie.problem.checks import short


def read_json(text: str) -> Any:
    """The value of a JSON text; ValueError says what is wrong with it."""
    return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {short(key)} occurs twice in one object")
            seen.add(key)
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")
