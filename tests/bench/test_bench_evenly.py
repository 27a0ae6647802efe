"""`coterie bench evenly`: features picked evenly find the same groups as the others, for more."""

from __future__ import annotations

import numpy as np

from bench.evenly import PART, WAYS, EvenRule, evenly
from bench.features import cases
from coterie.methods.features.method import FeatureRun
from coterie.problem.settings import Settings

NAME = "2: n=10 d=100, 10 differ by 5"


def test_all_three_find_the_groups() -> None:
    case = cases()[NAME]
    needed = {way: [measure(NAME, case, run) for run in range(3)] for way, measure in WAYS.items()}
    assert all(right for runs in needed.values() for _, right in runs)
    means = {way: np.mean([results for results, _ in runs]) for way, runs in needed.items()}
    assert means["one by one"] < min(means["evenly"], means["whole"])
    assert evenly(NAME, case, 0) == needed["evenly"][0], "a run depends on its number alone"
    assert PART.title


def test_features_are_picked_evenly_before_a_freeze() -> None:
    run, rng = FeatureRun(Settings.of(12, 3, None, 0.05, noise=1.0, features=6), seed=1), np.random.default_rng(3)
    run.rule = EvenRule.of(run, 1)
    while run.t < 3 * 12 * 6:
        asked = run.take_planned()
        assert run.epoch is None
        for item, panel, count, of_round in asked:
            run.count_many(item, panel, rng.normal(size=(count, 1)), of_round)
        counts = np.zeros((12, 6), dtype=np.int64)
        cells = run.cells()
        counts[cells.items, cells.features] = cells.counts
        assert np.ptp(counts) <= 1
        assert (counts == counts[0]).all(), "of all items alike"
