"""Before CROC stops it reads off anew whether what is met says all that is claimed, or goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines import croc_run, edit, inside

import coterie
from coterie._native.parts import certify, is_covered_by_epoch, is_covered_by_pairs
from coterie.methods.croc.run import CrocRun

BY_PAIRS = -1

MEANS = np.array([[0.0], [0.3], [0.0], [5.0], [5.2], [5.0], [5.1], [10.0], [10.3], [10.0]]).round()


def proven(noise: Any, delta: float) -> Any:
    """The engine's run of a session that is done."""
    session = coterie.Session(10, 3, 1, delta, noise=noise)
    rng = np.random.default_rng(8)
    while not session.done:
        arm = session.ask()
        assert arm is not None
        session.tell(arm, MEANS[arm] + rng.normal(size=1))
    assert coterie.verify(session.certificate, session.events)
    return croc_run(session)


def bent(run: CrocRun, name: str, place: Any, value: Any) -> CrocRun:
    """A run that knows the same but for one thing."""
    other = CrocRun(run.n_arms, run.n_groups, run.dim, run.log_inverse_delta, run.family)
    other.restore(run.memory())
    edit(other, {(name, place): value})
    return other


def test_a_proof_by_an_epoch_needs_every_test() -> None:
    run = proven(coterie.Gaussian(), 0.05)
    e = run.epoch
    frozen = run.frozen(e)
    assert not run.by_pairs
    assert is_covered_by_epoch(run, e)
    for arm in range(10):
        for group in range(3):
            needed = group != frozen.labels[arm]
            assert is_covered_by_epoch(bent(run, f"epochs.{e}.against_core.met", (arm, group), 0), e) == (not needed)
            within = frozen.in_core[arm] == 1
            without = bent(run, f"epochs.{e}.against_group.met", (arm, group), 0)
            assert is_covered_by_epoch(without, e) == (not needed or within)
    assert not is_covered_by_epoch(bent(run, f"epochs.{e}.core", 0, -1), e)
    assert not is_covered_by_epoch(bent(run, f"epochs.{e}.labels", int(frozen.core[0]), 2), e)
    assert not is_covered_by_epoch(bent(run, f"epochs.{e}.core_pairs.met", ..., 0), e)


@pytest.mark.parametrize("by", [BY_PAIRS, 0])
def test_a_run_whose_tests_leave_something_open_does_not_stop(by: int) -> None:
    run = proven(1.0, 0.05)
    assert (run.by_pairs, is_covered_by_pairs(run)) == (True, True)
    edit(run, {"proof": 0})
    open_pairs = bent(run, "pairs.settled", (0, int((run.labels[0] + 1) % 3)), 0)
    open_tests = bent(run, "epochs.0.core", ..., -1)
    left = open_pairs if by == BY_PAIRS else open_tests
    assert not certify(left, by)
    assert inside(left).proof == 0
    assert certify(run)
    assert run.done
    assert run.by_pairs


def test_a_proof_by_pairs_needs_evidence_at_counts_that_are_there() -> None:
    run = proven(1.0, 0.05)
    group = int((run.labels[4] + 1) % 3)
    assert is_covered_by_pairs(run)
    assert not is_covered_by_pairs(bent(run, "pairs.evidence", (4, group), 0.0))
    assert not is_covered_by_pairs(bent(run, "pairs.counts.arm", (4, group), run.pulls[4] + 1))
    assert not is_covered_by_pairs(bent(run, "estimate.representative", group, 4))
