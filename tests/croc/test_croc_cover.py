"""Before CROC stops it reads off anew whether what is met says all that is claimed, or goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines import croc_run

import coterie
from coterie.engine.croc import cover, planning
from coterie.engine.croc.state import BY_EPOCH, BY_PAIRS, DONE

# As Python runs them: compiled, they can only be called by compiled code.
covered_by_epoch = getattr(cover.covered_by_epoch, "py_func", cover.covered_by_epoch)
covered_by_pairs = getattr(cover.covered_by_pairs, "py_func", cover.covered_by_pairs)
certify = getattr(planning.certify, "py_func", planning.certify)

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


def bent(run: Any, name: str, place: Any, value: Any) -> Any:
    array = getattr(run.state, name).copy()
    array[place] = value
    return run.state._replace(**{name: array})


def test_a_proof_by_an_epoch_needs_every_test() -> None:
    run = proven(coterie.Gaussian(), 0.05)
    s, e = run.state, int(run.epoch)
    assert not run.by_pairs
    assert covered_by_epoch(s, e)
    for arm in range(10):
        for group in range(3):
            needed = group != s.frozen[e, arm]
            assert covered_by_epoch(bent(run, "met_core", (e, arm, group), 0), e) == (not needed)
            inside = s.in_core[e, arm] == 1
            assert covered_by_epoch(bent(run, "met_group", (e, arm, group), 0), e) == (not needed or inside)
    assert not covered_by_epoch(bent(run, "core", (e, 0), -1), e)
    assert not covered_by_epoch(bent(run, "frozen", (e, int(s.core[e, 0])), 2), e)
    assert not covered_by_epoch(bent(run, "met_pair", e, 0), e)


@pytest.mark.parametrize("by", [BY_PAIRS, BY_EPOCH])
def test_a_run_whose_tests_leave_something_open_does_not_stop(by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "covered_by_epoch", covered_by_epoch)
    monkeypatch.setattr(planning, "covered_by_pairs", covered_by_pairs)
    run = proven(1.0, 0.05)
    s = run.state
    assert (run.by_pairs, covered_by_pairs(s)) == (True, True)
    s.ints[DONE] = 0
    open_pairs = bent(run, "settled", (0, int((s.labels[0] + 1) % 3)), 0)
    open_tests = bent(run, "core", 0, -1)
    assert not certify(open_pairs if by == BY_PAIRS else open_tests, by, 0)
    assert s.ints[DONE] == 0
    assert certify(s, BY_PAIRS, -1)
    assert s.ints[DONE] == BY_PAIRS


def test_a_proof_by_pairs_needs_evidence_at_counts_that_are_there() -> None:
    run = proven(1.0, 0.05)
    s = run.state
    group = int((s.labels[4] + 1) % 3)
    assert covered_by_pairs(s)
    assert not covered_by_pairs(bent(run, "evidence", (4, group), 0.0))
    assert not covered_by_pairs(bent(run, "settled_pulls", (4, group, 0), s.pulls[4] + 1))
    assert not covered_by_pairs(bent(run, "representative", group, 4))
