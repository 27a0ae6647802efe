"""The limit of small δ, computed and measured; errors beside δ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import coterie
from bench import asymptotic, conservatism
from bench.families import grouped, on_a_line
from coterie.methods.croc.run import CrocRun


@pytest.mark.parametrize(
    ("sizes", "pulls"),
    [
        ((1, 4), 20.0),  # every arm once a round, until the four have met v = 2 at 4b/Δ²
        ((1, 2), 12.0),  # the same with three arms
        ((2, 2), 12.0),  # core tests with v = 1.5: 3b/Δ² rounds of 4; pairs of cores need 2b/Δ²
        ((4, 4), 20.0),  # v = 1.25: 2.5b/Δ² rounds of 8
    ],
)
def test_limit_is_that_of_rounds_by_hand(sizes: tuple[int, ...], pulls: float) -> None:
    for gap in (1.0, 3.0):
        instance = grouped(sizes, on_a_line((0.0, gap), 1))
        assert asymptotic.limit(instance) == pytest.approx(pulls / gap**2, rel=2e-3)


def test_limit_is_never_below_the_lower_bound() -> None:
    rng = np.random.default_rng(1)
    for _ in range(8):
        sizes = rng.integers(1, 7, size=3)
        sizes[0] += 1
        instance = grouped(sizes.tolist(), rng.normal(size=(3, 2)) * 2.0)
        over = asymptotic.limit(instance, 100.0) / coterie.hardness(instance)
        assert 0.995 <= over <= 2.0


def test_measured_slope_is_near_the_limit() -> None:
    """From log(1/δ) = 2000 to 6000; a slope of 8 runs is then within some 2 %."""
    instance = coterie.Instance([0, 1, 1, 1, 1], [[0.0], [1.0]])
    low, high = (asymptotic.stops(instance, log, 8).mean() for log in (2000.0, 6000.0))
    assert (high - low) / 4000.0 == pytest.approx(asymptotic.limit(instance), rel=0.03)
    rows = asymptotic.on("c", instance, {"1e-30": 30.0, "1e-100": 100.0}, 2)
    assert rows[0]["slope"] is None
    assert rows[1]["slope"] == pytest.approx(
        (rows[1]["mean"] - rows[0]["mean"]) / (70.0 * math.log(10.0)) / coterie.hardness(instance)
    )


def test_errors_are_counted_by_how_they_came_about() -> None:
    """At most δ of the runs are wrong, but for a false alarm of 1e-4; a wrong run by an epoch was frozen wrong."""
    instance = conservatism.cases()["2,2, gap 0.5, d=1"]
    row = conservatism.on("c", instance, 0.5, 150)
    assert row["runs"] == row["done"] == 150
    assert 0 < row["wrong"] <= binom.isf(1e-4, 150, 0.5)
    assert row["first_certified"] <= min(row["first_wrong"], row["wrong"])
    assert row["first_wrong"] <= row["frozen_wrong_ever"]
    assert row["allowed_first"] == pytest.approx(0.8 * 0.8 * 0.5)
    total = dict(row, case="all")
    (line,) = conservatism.headlines([row, total])
    assert line.met


def test_a_run_of_the_count_is_the_engines() -> None:
    instance = conservatism.cases()["1,3, gap 0.7, d=2"]
    found = conservatism.one_run(instance, 0.5, [1, 2])
    run = CrocRun(4, 2, 2, math.log(2.0))
    run.play(conservatism.MOST, instance.centers, instance.labels, np.random.default_rng([1, 2]))
    assert found["done"] == int(run.done)
