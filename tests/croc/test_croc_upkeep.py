"""What CROC keeps up to date between full plans is what a look at everything would give."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.engine.croc.run import CrocRun
from coterie.engine.croc.state import EXPLORE, HEAPED, MODE, OPEN_ROUNDS, PLANNED, TOUCHED

CENTERS = np.random.default_rng(5).normal(size=(4, 5))
TRUTH = np.arange(300) % 4


@pytest.fixture(scope="module", params=[0.6, 1.2, 4.0])
def looks(request: pytest.FixtureRequest) -> list[CrocRun]:
    """Runs that have come to different places: the larger the gaps, the earlier groups are frozen or proven."""
    found = []
    for seed, steps in enumerate((301, 450, 900, 1700, 3100)):
        run = CrocRun(300, 4, 5, 30.0)
        run.play(steps, request.param * CENTERS, TRUTH, np.random.default_rng(seed))
        found.append(run)
    return found


def test_plans_between_full_ones_happen(looks: list[CrocRun]) -> None:
    """Or the tests below say nothing: some runs are past their last full plan."""
    open_runs = [run for run in looks if not run.done and run.state.ints[OPEN_ROUNDS] == 0]
    assert open_runs, "all of these runs are in rounds or at their end"
    assert any(run.t > run.state.ints[PLANNED] for run in open_runs)


def test_least_pulled_arms_match_oracle(looks: list[CrocRun]) -> None:
    for run in looks:
        s = run.state
        if s.ints[HEAPED] == 0:
            continue
        for k in range(4):
            arms = np.flatnonzero(s.labels == k)
            assert sorted(s.heap[s.first_slot[k] : s.first_slot[k + 1]]) == arms.tolist()
            assert s.heap[s.first_slot[k]] == arms[np.argmin(s.committed[arms])]
            np.testing.assert_array_equal(s.heap[s.slot[arms]], arms)


def test_pairs_are_evaluated_at_present_counts(looks: list[CrocRun]) -> None:
    """Evidence is that of the counts that go with it, and no pair has more at the present ones."""
    for run in looks:
        s = run.state
        arm, k = np.nonzero(np.arange(4) != s.labels[:, None])
        lead = s.representative[k]
        then = run.pair_evidences(np.stack([arm, lead, *s.settled_pulls[arm, k].T], axis=1))
        np.testing.assert_allclose(s.evidence[arm, k], then, rtol=1e-12, atol=1e-12)
        now = run.pair_evidences(np.stack([arm, lead, s.pulls[arm], s.pulls[lead]], axis=1))
        unmet = s.settled[arm, k] == 0
        assert (now[unmet] <= s.evidence[arm, k][unmet] + 1e-12).all()


def test_estimate_and_margins_match_oracle(looks: list[CrocRun]) -> None:
    """Totals and centers are those of the labels; margins of single arms lag behind moving centers only a little."""
    for run in looks:
        s = run.state
        totals = np.bincount(s.labels, weights=s.pulls, minlength=4)
        np.testing.assert_allclose(s.totals, totals)
        sums = np.stack([s.sums[s.labels == k].sum(axis=0) for k in range(4)])
        np.testing.assert_allclose(s.centers, sums / totals[:, None], rtol=1e-9, atol=1e-9)
        if s.ints[MODE] != EXPLORE or s.ints[TOUCHED] > 0:
            continue
        gaps = ((s.sums / s.pulls[:, None])[:, None] - s.centers[None]) ** 2
        cost = gaps.sum(axis=2) * s.pulls[:, None]
        rows = np.arange(300)
        own = cost[rows, s.labels] * totals[s.labels] / (totals[s.labels] - s.pulls)
        away = cost * totals / (s.pulls[:, None] + totals)
        away[rows, s.labels] = np.inf
        near = 0.5 * (away.min(axis=1) - own)
        assert np.abs(s.margin - near).max() < 0.5
        assert np.median(np.abs(s.margin - near)) < 0.05
