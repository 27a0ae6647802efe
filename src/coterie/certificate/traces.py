"""Traces beside a proof: asks that were missed, and corrections. A certificate must say of them what its log has.

The proof does not use them. Of failed, expired, late and undone asks it assumes that whether a result comes, and when,
has nothing to do with its value; how many did not come is what a reader can judge that by. A log has an event for each
correction, with the value that was told at first; logs of release 0.2 have none, and only show whether the last values
are there. That the new values are what was measured, and were not chosen for their effect, nobody can check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.problem.checks import IntArray, check_arm, check_count, check_real, check_real_array, short

KINDS = ("failed", "expired", "late", "undone")
MOST_LISTED = 1000
"""Items and workers that a certificate lists; the counts are of them all."""
_MOST_SAID = 12


def counted_failures(missed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many asks were missed: in all, by item and by worker, those with the most first."""
    counts = Counter(miss["kind"] for miss in missed)
    return {
        **{kind: counts[kind] for kind in KINDS},
        "items": _by([(miss["arm"], miss["kind"]) for miss in missed], "arm"),
        "workers": _by([(miss["worker"], miss["kind"]) for miss in missed if "worker" in miss], "worker"),
    }


def _by(pairs: list[tuple[Any, str]], name: str) -> list[dict[str, Any]]:
    counts: dict[Any, Counter[str]] = {}
    for who, kind in pairs:
        counts.setdefault(who, Counter())[kind] += 1
    order = sorted(counts, key=lambda who: (-counts[who].total(), str(who)))[:MOST_LISTED]
    return [{name: who, **{kind: counts[who][kind] for kind in KINDS}} for who in order]


def failures_in_words(missed: Sequence[dict[str, Any]], arms: IntArray, names: Any = None, strict: bool = False) -> str:
    """How many asks of which items gave no result: beside every verdict. `arms`: of the results that counted.

    `strict`: unfinished cells of blocks count for nothing, so that nothing is assumed about why.
    """
    answered = np.bincount(arms, minlength=1)
    gone = Counter(miss["arm"] for miss in missed if miss.get("kind") in ("failed", "expired"))
    order = sorted(gone, key=lambda arm: (-gone[arm], arm))
    called = names if isinstance(names, list) else []
    each = []
    for arm in order[:_MOST_SAID]:
        asked = gone[arm] + (int(answered[arm]) if arm < answered.size else 0)
        each.append(f"item {called[arm] if arm < len(called) else arm}: {gone[arm]} of {asked}")
    others = len(order) - len(each)
    listed = ", ".join(each) + (f" and {others} more items" if others > 0 else "")
    rest = Counter(miss["kind"] for miss in missed if miss["kind"] in ("late", "undone"))
    more = [f"{rest[kind]} {word}" for kind, word in (("late", "answered late"), ("undone", "undone")) if rest[kind]]
    parts = ([f"failed asks: {listed}"] if listed else []) + ([f"asks {' and '.join(more)}"] if more else [])
    said = "; ".join(parts)
    return said if strict else f"{said}: a proof assumes that this has nothing to do with values"


def check_failures(certificate: dict[str, Any], missed: Sequence[dict[str, Any]], exactly: bool = False) -> list[str]:
    """What does not agree between the failures that a certificate counts and its log; nothing if neither has any.

    `exactly`: the certificate says what `counted_failures` says, and nothing else.
    """
    stated = certificate.get("failures")
    for miss in missed:
        if miss.get("kind") not in KINDS:
            return [f"a missed ask is {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {short(miss.get('kind'))}"]
        if type(miss.get("arm")) is not int or not 0 <= miss["arm"] < 2**53:
            return [f"a missed ask must be of an item, got {short(miss.get('arm'))}"]
        if not isinstance(miss.get("worker", ""), str):
            return [f"the worker of a missed ask must be a text, got {short(miss['worker'])}"]
    if stated is None:
        return [f"the log has {len(missed)} missed asks, the certificate says nothing of any"] if missed else []
    if not isinstance(stated, dict):
        return [f"failures must be an object with counts, got {short(stated)}"]
    if exactly:
        wanted = counted_failures(missed)
        wrong = [name for name in {**wanted, **stated} if name not in wanted or stated.get(name) != wanted[name]]
        return [f"the failures of the certificate are not those of the log: {name}" for name in wrong]
    return _of_old_release(stated, missed)


def _of_old_release(stated: dict[str, Any], missed: Sequence[dict[str, Any]]) -> list[str]:
    """Certificates of release 0.2 also say how many asks there were, which no log has."""
    problems = []
    counts = Counter(miss["kind"] for miss in missed)
    for kind in KINDS:
        if stated.get(kind) != counts[kind]:
            count = short(stated.get(kind))
            problems.append(f"the certificate counts {count} {kind} asks, its log has {counts[kind]}")
    for name, key in (("items", "arm"), ("workers", "worker")):
        listed = stated.get(name)
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            problems.append(f"failures must list {name}, got {short(listed)}")
            continue
        of_each = Counter((miss.get(key), miss["kind"]) for miss in missed if isinstance(miss.get(key), int | str))
        for entry in listed:
            who = entry.get(key)
            if isinstance(who, int | str) and all(entry.get(kind) == of_each[who, kind] for kind in KINDS):
                continue
            problems.append(f"the failures of {key} {short(who)} are not those of the log")
            break
    return problems


# Corrections.


def check_corrections(
    certificate: dict[str, Any], events: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]
) -> tuple[list[str], list[str]]:
    """Problems and warnings, by the corrections and results of the log.

    Corrections of results that did not count (`result` is null) may come after a certificate, and need not be listed.
    """
    listed = certificate.get("corrections", [])
    if not isinstance(listed, list) or not all(isinstance(correction, dict) for correction in listed):
        return [f"the corrections of the certificate must be a list of objects, got {short(listed)}"], []
    corrections = [{key: value for key, value in correction.items() if key != "event"} for correction in events]
    problems, now = [], dict[int, Any]()
    for place, correction in enumerate(corrections):
        problem = _problem(correction, len(results))
        if not problem and correction["result"] in now and now[correction["result"]] != correction["old"]:
            problem = (
                f"replaces {short(correction['old'])}, but the value was {short(now[correction['result']])} by then"
            )
        if problem:
            problems.append(f"correction {place} of the log {problem}")
        elif correction["result"] is not None:
            now[correction["result"]] = correction["new"]
    if problems:
        return problems, []
    counted = [correction for correction in corrections if correction["result"] is not None]
    if [correction for correction in listed if correction.get("result") is not None] != counted:
        problems.append(
            f"the certificate lists {len(listed)} corrections, and they are not the {len(counted)} of the log: none "
            "may be left out or changed"
        )
    for correction in listed:
        if correction.get("result") is None and correction not in corrections:
            problems.append(f"the log has no correction {short(correction)}")
    last = {correction["result"]: correction for correction in counted}
    problems += _not_there(last, results)
    return problems, _warning(corrections)


def check_old_corrections(
    certificate: dict[str, Any], results: Sequence[dict[str, Any]]
) -> tuple[list[str], list[str]]:
    """The same for a log without a trace of corrections; certificates of releases that knew none list none."""
    listed = certificate.get("corrections", [])
    if not isinstance(listed, list):
        return [f"the corrections of the certificate must be a list, got {short(listed)}"], []
    problems: list[str] = []
    last: dict[int, Any] = {}
    for place, correction in enumerate(listed):
        problem = _problem(correction, len(results))
        if problem:
            problems.append(f"correction {place} of the certificate {problem}")
        elif correction["result"] is not None:
            last[correction["result"]] = correction
    problems += _not_there(last, results)
    return problems, _warning([correction for correction in listed if isinstance(correction, dict)])


def _not_there(last: dict[int, Any], results: Sequence[dict[str, Any]]) -> list[str]:
    """Results that do not have the value that they were corrected to."""
    problems = []
    for number, correction in last.items():
        result = results[number - 1]
        if result.get("arm") != correction["arm"] or result.get("values") != correction["new"]:
            problems.append(
                f"result {number} was corrected to {short(correction['new'])} of arm {correction['arm']}, the log has "
                f"{short(result.get('values'))} of arm {result.get('arm')}"
            )
    return problems


def _warning(corrections: Sequence[dict[str, Any]]) -> list[str]:
    """What a reader is told, if there are any."""
    count = len({str(correction.get("row")) for correction in corrections})
    if not count:
        return []
    return [
        f"{count} result{' was' if count == 1 else 's were'} corrected after being told (the certificate lists old "
        "values and reasons): the proof holds if the new values are what was measured, and were not chosen for their "
        "effect"
    ]


def _problem(correction: Any, n_results: int) -> str:
    keys = ("result", "row", "arm", "old", "new", "reason", "by", "at")
    if not isinstance(correction, dict) or any(key not in correction for key in keys):
        return f"must have {', '.join(keys)}, got {short(correction)}"
    number = correction["result"]
    if number is not None and (type(number) is not int or not 1 <= number <= n_results):
        return f"is about result {short(number)}, the log has {n_results}"
    if not isinstance(correction["reason"], str) or not correction["reason"].strip():
        return "gives no reason"
    return ""


# Results after the proof.


def confirmed_results(
    results: Sequence[dict[str, Any]], t: int, n_arms: int, dim: int, stated: Any
) -> list[dict[str, Any]]:
    """The t results of the proof, and those after it that the certificate says were measured to confirm it.

    Those after it were not looked at by anybody yet.
    """
    if stated is None:
        return list(results[:t])
    if not isinstance(stated, dict):
        raise TypeError(f"confirm must be an object or null, got {short(stated)}")
    share, more = stated.get("share"), check_count(stated.get("measurements"), "confirm.measurements", 0)
    if not check_real(share, "confirm.share") > 0.0:
        raise ValueError(f"confirm.share must be above 0, got {short(share)}")
    if len(results) < t + more:
        raise ValueError(
            f"confirm: the log has {len(results) - t} results after the proof, the certificate says {more}"
        )
    for event in results[t : t + more]:
        check_arm(event.get("arm"), n_arms)
        if check_real_array(event.get("values"), "values").shape != (dim,):
            raise ValueError(f"a result must have {dim} values, got {short(event.get('values'))}")
    return list(results[: t + more])
