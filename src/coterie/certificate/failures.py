"""Failed, expired, late and undone asks: what a certificate says about them beside its proof, compared with its log.

The proof does not use them. It assumes that whether a result comes, and when, has nothing to do with its value; how
many did not come is what a reader can judge that by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from coterie.certificate.log import MISSED
from coterie.problem.checks import short

KINDS = ("failed", "expired", "late", "undone")


def without_missed(events: Sequence[Any]) -> tuple[list[Any], list[dict[str, Any]]]:
    """The events of a log that a proof can use, and those about asks that were missed."""
    missed = [one for one in events if isinstance(one, dict) and one.get("event") == MISSED]
    if not missed:
        return list(events), []
    return [one for one in events if not (isinstance(one, dict) and one.get("event") == MISSED)], missed


def check_failures(certificate: dict[str, Any], missed: Sequence[dict[str, Any]]) -> list[str]:
    """What does not agree between the failures that a certificate counts and its log; nothing if neither has any."""
    stated = certificate.get("failures")
    if stated is None:
        return [f"the log has {len(missed)} missed asks, the certificate says nothing of any"] if missed else []
    if not isinstance(stated, dict):
        return [f"failures must be an object with counts, got {short(stated)}"]
    problems = []
    for one in missed:
        if one.get("kind") not in KINDS:
            return [f"a missed ask is {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {short(one.get('kind'))}"]
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
