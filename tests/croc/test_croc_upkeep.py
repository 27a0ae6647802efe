"""What CROC keeps up to date between full plans is what a look at everything would give."""

from __future__ import annotations

import numpy as np
import pytest
from engines import EXPLORE, inside

from coterie.methods.croc.run import CrocRun

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
    open_runs = [run for run in looks if not run.done and not run.has_open_rounds]
    assert open_runs, "all of these runs are in rounds or at their end"
    assert any(run.t > inside(run).plan.planned_at for run in open_runs)


def test_least_pulled_arms_match_oracle(looks: list[CrocRun]) -> None:
    for run in looks:
        heaps = inside(run).heaps
        if not heaps.fits:
            continue
        for k in range(4):
            arms = np.flatnonzero(run.labels == k)
            assert sorted(heaps.heap[heaps.first_slot[k] : heaps.first_slot[k + 1]]) == arms.tolist()
            assert heaps.heap[heaps.first_slot[k]] == arms[np.argmin(run.committed[arms])]
            np.testing.assert_array_equal(heaps.heap[heaps.slot[arms]], arms)


def test_pairs_are_evaluated_at_present_counts(looks: list[CrocRun]) -> None:
    """Evidence is that of the counts that go with it, and no pair has more at the present ones."""
    for run in looks:
        arm, k = np.nonzero(np.arange(4) != run.labels[:, None])
        lead = run.representative[k]
        then = run.pair_evidences(np.stack([arm, lead, *run.pair_counts[arm, k].T], axis=1))
        np.testing.assert_allclose(run.evidence[arm, k], then, rtol=1e-12, atol=1e-12)
        now = run.pair_evidences(np.stack([arm, lead, run.pulls[arm], run.pulls[lead]], axis=1))
        unmet = run.settled[arm, k] == 0
        assert (now[unmet] <= run.evidence[arm, k][unmet] + 1e-12).all()


def test_estimate_and_margins_match_oracle(looks: list[CrocRun]) -> None:
    """Totals and centers are those of the labels; margins of single arms lag behind moving centers only a little."""
    for run in looks:
        s, labels, pulls = inside(run), run.labels, run.pulls
        totals = np.bincount(labels, weights=pulls, minlength=4)
        np.testing.assert_allclose(run.totals, totals)
        sums = np.stack([run.sums[labels == k].sum(axis=0) for k in range(4)])
        np.testing.assert_allclose(run.positions, sums / totals[:, None], rtol=1e-9, atol=1e-9)
        if s.queue.mode != EXPLORE or s.arms.n_touched > 0:
            continue
        gaps = ((run.sums / pulls[:, None])[:, None] - run.positions[None]) ** 2
        cost = gaps.sum(axis=2) * pulls[:, None]
        rows = np.arange(300)
        own = cost[rows, labels] * totals[labels] / (totals[labels] - pulls)
        away = cost * totals / (pulls[:, None] + totals)
        away[rows, labels] = np.inf
        near = 0.5 * (away.min(axis=1) - own)
        assert np.abs(s.risk.margin - near).max() < 0.5
        assert np.median(np.abs(s.risk.margin - near)) < 0.05
