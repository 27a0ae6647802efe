"""`coterie.simulate` with features: worlds with many features, and what is refused."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

import coterie
from bench.features import shifted
from coterie.problem.features import Features

SPARSE = shifted(12, 60, 6, 6.0, 0.5, np.random.default_rng(0))


def test_trials_count_single_results_and_their_costs() -> None:
    costs = Features.of(60, [3.0] * 60)
    trials = coterie.simulate(SPARSE, deltas=(0.1, 0.01), trials=3, seed=1, features=costs, progress=False)
    assert trials.correct.all()
    assert (trials.stopping_times < 12 * 60).all()
    assert (trials.stopping_times[:, 0] <= trials.stopping_times[:, 1]).all()
    assert trials.cost is not None
    np.testing.assert_allclose(trials.cost, 3.0 * trials.stopping_times)
    free = coterie.simulate(SPARSE, deltas=0.1, trials=1, seed=1, features=60, workers=1, progress=False)
    assert free.cost is None


def test_a_trial_that_is_cut_short_has_no_groups() -> None:
    trials = coterie.simulate(SPARSE, deltas=0.1, trials=2, features=60, max_pulls=5, progress=False)
    assert (trials.stopping_times == -1).all()


def test_features_that_do_not_fit_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="the instance has 60 features, got 2"):
        coterie.simulate(SPARSE, trials=1, features=["a", "b"])
    with pytest.raises(ValueError, match="symmetric"):
        coterie.simulate(SPARSE, trials=1, features=60, noise="symmetric")
    with pytest.raises(ValueError, match="boc"):
        coterie.simulate(SPARSE, "boc", trials=1, features=60)


def test_memory_is_that_of_touched_cells() -> None:
    """1,000 items with 10,000 features: one number for each cell would take 80 MB."""
    instance = shifted(1000, 10_000, 100, 5.0, 0.5, np.random.default_rng(1))
    labels, centers, rng = instance.labels.tolist(), instance.centers, np.random.default_rng(2)
    tracemalloc.start()
    try:
        session = coterie.Session(1000, 2, features=10_000, noise=1.0)
        for _ in range(300):
            item, feature = session.ask()
            session.tell(item, centers[labels[item], int(feature)] + rng.standard_normal(), feature=feature)
        assert session.cells.counts.sum() == 300
        assert len(json.dumps(session.to_dict())) < 200_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6
