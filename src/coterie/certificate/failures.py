"""Failed, expired, late and undone asks: what a certificate says about them beside its proof, compared with its log.

The proof does not use them. It assumes that whether a result comes, and when, has nothing to do with its value; how
many did not come is what a reader can judge that by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.problem.checks import IntArray, short

KINDS = ("failed", "expired", "late", "undone")
MOST_LISTED = 1000
"""Items and workers that a certificate lists; the counts are of them all."""
_MOST_SAID = 12


def counted_failures(missed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many asks were missed: in all, by item and by worker, those with the most first."""
    counts = Counter(one["kind"] for one in missed)
    return {
        **{kind: counts[kind] for kind in KINDS},
        "items": _by([(one["arm"], one["kind"]) for one in missed], "arm"),
        "workers": _by([(one["worker"], one["kind"]) for one in missed if "worker" in one], "worker"),
    }


def _by(pairs: list[tuple[Any, str]], name: str) -> list[dict[str, Any]]:
    found: dict[Any, Counter[str]] = {}
    for who, kind in pairs:
        found.setdefault(who, Counter())[kind] += 1
    order = sorted(found, key=lambda who: (-found[who].total(), str(who)))[:MOST_LISTED]
    return [{name: who, **{kind: found[who][kind] for kind in KINDS}} for who in order]


def failures_in_words(missed: Sequence[dict[str, Any]], arms: IntArray) -> str:
    """How many asks of which items gave no result: beside every verdict. `arms`: of the results that counted."""
    answered = np.bincount(arms, minlength=1)
    gone = Counter(one["arm"] for one in missed if one.get("kind") in ("failed", "expired"))
    order = sorted(gone, key=lambda arm: (-gone[arm], arm))
    each = [f"item {arm}: {n} of {n + int(answered[arm] if arm < answered.size else 0)}"
            for arm, n in ((arm, gone[arm]) for arm in order[:_MOST_SAID])]  # fmt: skip
    others = len(order) - len(each)
    said = ", ".join(each) + (f" and {others} more items" if others > 0 else "")
    rest = Counter(one["kind"] for one in missed if one["kind"] in ("late", "undone"))
    more = [f"{rest[kind]} {word}" for kind, word in (("late", "answered late"), ("undone", "undone")) if rest[kind]]
    parts = ([f"failed asks: {said}"] if said else []) + ([f"asks {' and '.join(more)}"] if more else [])
    return f"{'; '.join(parts)}: a proof assumes that this has nothing to do with values"


def check_failures(certificate: dict[str, Any], missed: Sequence[dict[str, Any]], exactly: bool = False) -> list[str]:
    """What does not agree between the failures that a certificate counts and its log; nothing if neither has any.

    `exactly`: the certificate says what `counted_failures` says, and nothing else.
    """
    stated = certificate.get("failures")
    for one in missed:
        if one.get("kind") not in KINDS:
            return [f"a missed ask is {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {short(one.get('kind'))}"]
        if type(one.get("arm")) is not int or not 0 <= one["arm"] < 2**53:
            return [f"a missed ask must be of an item, got {short(one.get('arm'))}"]
        if not isinstance(one.get("worker", ""), str):
            return [f"the worker of a missed ask must be a text, got {short(one['worker'])}"]
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
    counts = Counter(one["kind"] for one in missed)
    for kind in KINDS:
        if stated.get(kind) != counts[kind]:
            said = short(stated.get(kind))
            problems.append(f"the certificate counts {said} {kind} asks, its log has {counts[kind]}")
    for name, key in (("items", "arm"), ("workers", "worker")):
        listed = stated.get(name)
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            problems.append(f"failures must list {name}, got {short(listed)}")
            continue
        of_each = Counter((one.get(key), one["kind"]) for one in missed if isinstance(one.get(key), int | str))
        for one in listed:
            who = one.get(key)
            if isinstance(who, int | str) and all(one.get(kind) == of_each[who, kind] for kind in KINDS):
                continue
            problems.append(f"the failures of {key} {short(who)} are not those of the log")
            break
    return problems
