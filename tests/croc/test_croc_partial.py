"""A budget that ends before the proof: what is known by then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie

TRUTH = np.array([0, 0, 1, 1, 2, 2, 2, 1, 0, 0])
CENTERS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 1.2]])  # group 1 is clear, groups 0 and 2 are close


def with_budget(budget: int | None, seed: int, delta: float = 0.01) -> Any:
    rng = np.random.default_rng(seed)

    def measure(arm: int) -> np.ndarray:
        x: np.ndarray = CENTERS[TRUTH[arm]] + rng.standard_normal(2)
        return x

    return coterie.cluster(measure, 10, 3, delta=delta, budget=budget, progress=False, noise=1.0)


@pytest.mark.parametrize("seed", range(10))
def test_budget_ends_with_what_is_certified(seed: int) -> None:
    """Pairs that are said to differ do, and arms that are said to be settled are.

    Wrong with probability at most α·δ = 0.002 a run; these 10 runs are fixed.
    """
    found = with_budget(90, seed)
    assert not found.done
    assert found.t == found.pulls.sum() == 90
    assert found.session.certificate is None
    partial = found.session.partial()
    assert len(partial.differ) > 0
    for a, b in partial.differ:
        assert TRUTH[a] != TRUTH[b]
        assert b in partial.representatives
    assert sorted(partial.settled + partial.undecided) == list(range(10))
    leads = partial.representatives
    for arm in partial.settled:  # known to share the group of its representative, if there are K groups
        lead = next(lead for lead in leads if found.labels[lead] == found.labels[arm])
        assert TRUTH[arm] == TRUTH[lead]
    np.testing.assert_array_equal(partial.labels, found.labels)


def test_partial_before_all_arms_were_measured_says_nothing() -> None:
    found = with_budget(4, 0)
    partial = found.session.partial()
    assert not found.done
    assert found.labels is None
    assert partial.representatives == partial.differ == partial.settled == ()
    assert partial.undecided == tuple(range(10))


def test_partial_grows_with_the_budget_and_ends_with_the_proof() -> None:
    """The same measurements, stopped later: never fewer pairs, while the representatives stay."""
    counts = []
    for budget in (10, 60, 120, 240):
        counts.append(len(with_budget(budget, 3).session.partial().differ))
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    whole = with_budget(None, 3)
    assert whole.done
    assert coterie.same_partition(whole.labels, TRUTH)
    assert coterie.verify(whole.session.certificate, whole.session.events).valid


def test_budget_that_is_larger_than_needed_changes_nothing() -> None:
    whole, ample = with_budget(None, 4), with_budget(10**6, 4)
    assert whole.t == ample.t
    assert ample.done
    np.testing.assert_array_equal(whole.pulls, ample.pulls)


@pytest.mark.parametrize("method", ["boc", "uniform"])
def test_only_croc_has_partial_results(method: str) -> None:
    session = coterie.Session(4, 2, 1, method=method, noise=1.0)
    with pytest.raises(ValueError, match="only method 'croc' or 'shortlist'"):
        session.partial()
