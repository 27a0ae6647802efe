"""Corrections that a certificate lists: they must be those of the log, and a reader is told of them.

A log has an event for each, with the value that was told at first (`coterie.certificate.beside`); logs of release 0.2
have none, and only show whether the last values are there. That the new values are what was measured, and were not chosen for their effect, nobody can check (docs/CROC.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coterie.problem.checks import short


def check_corrections(
    certificate: dict[str, Any], events: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]
) -> tuple[list[str], list[str]]:
    """Problems and warnings, by the corrections and results of the log.

    Corrections of results that did not count (`result` is null) may come after a certificate, and need not be listed.
    """
    listed = certificate.get("corrections", [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return [f"the corrections of the certificate must be a list of objects, got {short(listed)}"], []
    found = [{key: value for key, value in one.items() if key != "event"} for one in events]
    problems, now = [], dict[int, Any]()
    for place, one in enumerate(found):
        problem = _problem(one, len(results))
        if not problem and one["result"] in now and now[one["result"]] != one["old"]:
            problem = f"replaces {short(one['old'])}, but the value was {short(now[one['result']])} by then"
        if problem:
            problems.append(f"correction {place} of the log {problem}")
        elif one["result"] is not None:
            now[one["result"]] = one["new"]
    if problems:
        return problems, []
    counted = [one for one in found if one["result"] is not None]
    if [one for one in listed if one.get("result") is not None] != counted:
        problems.append(
            f"the certificate lists {len(listed)} corrections, and they are not the {len(counted)} of the log: none may "
            "be left out or changed"
        )
    for one in listed:
        if one.get("result") is None and one not in found:
            problems.append(f"the log has no correction {short(one)}")
    last = {one["result"]: one for one in counted}
    problems += _not_there(last, results)
    return problems, _warning(found)


def check_old_corrections(
    certificate: dict[str, Any], results: Sequence[dict[str, Any]]
) -> tuple[list[str], list[str]]:
    """The same for a log without a trace of corrections; certificates of releases that knew none list none."""
    listed = certificate.get("corrections", [])
    if not isinstance(listed, list):
        return [f"the corrections of the certificate must be a list, got {short(listed)}"], []
    problems: list[str] = []
    last: dict[int, Any] = {}
    for place, one in enumerate(listed):
        problem = _problem(one, len(results))
        if problem:
            problems.append(f"correction {place} of the certificate {problem}")
        elif one["result"] is not None:
            last[one["result"]] = one
    problems += _not_there(last, results)
    return problems, _warning([one for one in listed if isinstance(one, dict)])


def _not_there(last: dict[int, Any], results: Sequence[dict[str, Any]]) -> list[str]:
    """Results that do not have the value that they were corrected to."""
    problems = []
    for number, one in last.items():
        found = results[number - 1]
        if found.get("arm") != one["arm"] or found.get("values") != one["new"]:
            problems.append(
                f"result {number} was corrected to {short(one['new'])} of arm {one['arm']}, the log has "
                f"{short(found.get('values'))} of arm {found.get('arm')}"
            )
    return problems


def _warning(corrections: Sequence[dict[str, Any]]) -> list[str]:
    """What a reader is told, if there are any."""
    count = len({str(one.get("row")) for one in corrections})
    if not count:
        return []
    return [
        f"{count} result{' was' if count == 1 else 's were'} corrected after being told (the certificate lists old "
        "values and reasons): the proof holds if the new values are what was measured, and were not chosen for their "
        "effect"
    ]


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
