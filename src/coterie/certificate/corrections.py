"""Corrections that a certificate lists: the log must have the corrected values, and a reader is told of them.

That the new values are what was measured, and were not chosen for their effect, nobody can check (docs/CROC.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coterie.problem.checks import short


def check_corrections(certificate: dict[str, Any], events: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Problems and warnings; certificates of releases that knew no corrections list none."""
    listed = certificate.get("corrections", [])
    if not isinstance(listed, list):
        return [f"the corrections of the certificate must be a list, got {short(listed)}"], []
    if not listed:
        return [], []
    results = [one for one in events if isinstance(one, dict) and one.get("event") == "result"]
    problems: list[str] = []
    last: dict[int, Any] = {}
    for place, one in enumerate(listed):
        problem = _problem(one, len(results))
        if problem:
            problems.append(f"correction {place} of the certificate {problem}")
        elif one["result"] is not None:
            last[one["result"]] = one
    for number, one in last.items():
        found = results[number - 1]
        if found.get("arm") != one["arm"] or found.get("values") != one["new"]:
            problems.append(
                f"result {number} was corrected to {short(one['new'])} of arm {one['arm']}, the log has "
                f"{short(found.get('values'))} of arm {found.get('arm')}"
            )
    count = len({one.get("row") for one in listed if isinstance(one, dict)})
    warning = (
        f"{count} result{' was' if count == 1 else 's were'} corrected after being told (the certificate lists old "
        "values and reasons): the proof holds if the new values are what was measured, and were not chosen for their "
        "effect"
    )
    return problems, [warning]


def _problem(one: Any, n_results: int) -> str:
    keys = ("result", "row", "arm", "old", "new", "reason", "by", "at")
    if not isinstance(one, dict) or any(key not in one for key in keys):
        return f"must have {', '.join(keys)}, got {short(one)}"
    number = one["result"]
    if number is not None and (type(number) is not int or not 1 <= number <= n_results):
        return f"is about result {short(number)}, the log has {n_results}"
    if not isinstance(one["reason"], str) or not one["reason"].strip():
        return "gives no reason"
    return ""
