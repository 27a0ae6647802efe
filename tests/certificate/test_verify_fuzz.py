"""`coterie.verify` on changed certificates and logs of every kind: always a verdict, and nothing else may be claimed.

And on honest ones: none is refused. COTERIE_FUZZ=20000 makes so many changes, and half as many honest runs at most.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

import pytest
from honest_runs import KINDS, honest_run
from mutations import check_changes

import coterie

FEW, SOME = 400, 4000


def documents(seeds: range) -> list[tuple[str, Any, Any]]:
    """Certificates with their logs, as they are written and read."""
    runs = [(kind, honest_run(kind, seed, most=250)) for seed in seeds for kind in KINDS]
    return [(kind, *json.loads(json.dumps([one.certificate, one.events]))) for kind, one in runs if one is not None]


def fuzz(seed: int, count: int) -> None:
    check_changes(documents(range(seed, seed + 1 + count // 2000)), seed, count)
    print(f"{count} changes")


def test_no_change_is_accepted_that_claims_something_else() -> None:
    fuzz(1, FEW)


@pytest.mark.slow
def test_no_change_of_many_is_accepted_that_claims_something_else() -> None:
    fuzz(100, int(os.environ.get("COTERIE_FUZZ", SOME)))


@pytest.mark.slow
def test_honest_certificates_are_not_refused() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(1000, 1000 + int(os.environ.get("COTERIE_FUZZ", SOME)) // (20 * len(KINDS))):
        for kind in KINDS:
            session = honest_run(kind, seed)
            if session is not None:
                verdict = coterie.verify(session.certificate, session.events)
                assert verdict, (kind, seed, verdict.problems)
                kinds[kind] += 1
    assert set(kinds) == set(KINDS)
    print(f"{kinds.total()} certificates")


def test_a_revised_run_whose_first_result_was_corrected() -> None:
    """Its bets count from the first result as it was told: after a revision that was forgotten."""
    session = honest_run("gaussian", 312)
    assert session is not None
    assert session.corrections[0].row == 0
    assert session.revisions
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict, verdict.problems
