"""Runs for a resolution end whatever the means are, and claim what is true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from resolution_runs import on_a_line, one_by_one, standard, with_workers

import coterie
from coterie.problem.checks import FloatArray

DELTA = 1e-3
"""Each run may be wrong with this probability: the false alarm of one case."""

EPSILON, ETA = 0.5, 1.5
ASKED = coterie.Resolution(EPSILON, ETA)
ANY_TWO = coterie.Resolution(EPSILON, ETA, claim="any-two")
DISTANCE = coterie.Resolution(EPSILON, ETA, norm="distance")


def drawn(n_arms: int, dim: int, width: float) -> FloatArray:
    return np.random.default_rng([n_arms, dim]).uniform(0.0, width, (n_arms, dim))


CASES: dict[str, tuple[FloatArray, coterie.Resolution]] = {
    "continuum": (on_a_line(*np.linspace(0.0, 5.0, 40)), ASKED),
    "continuum, any two": (on_a_line(*np.linspace(0.0, 3.0, 12)), ANY_TWO),
    "continuum in two numbers": (drawn(40, 2, 4.0), ASKED),
    "continuum by distance": (drawn(30, 3, 3.0), DISTANCE),
    "chain of steps of epsilon": (on_a_line(*EPSILON * np.arange(14)), ASKED),
    "chain of steps of eta": (on_a_line(*ETA * np.arange(8)), ASKED),
    "chain of steps halfway": (on_a_line(*0.5 * (EPSILON + ETA) * np.arange(10)), ASKED),
    "all equal": (np.zeros((40, 2)), ASKED),
    "all equal, any two": (np.zeros((10, 1)), ANY_TWO),
    "all different": (10.0 * np.arange(30)[:, None] * np.ones(2), ASKED),
    "all different by distance": (10.0 * np.arange(20)[:, None] * np.ones(3), DISTANCE),
    "an item exactly halfway": (on_a_line(0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0), ASKED),
    "two items": (on_a_line(0.0, ETA), ASKED),
    "two items at epsilon": (on_a_line(0.0, EPSILON), ASKED),
    "300 items": (drawn(300, 2, 1.5), ASKED),
}


LARGE = "300 items"


@pytest.mark.parametrize(
    "case", [*(case for case in CASES if case != LARGE), pytest.param(LARGE, marks=pytest.mark.slow)]
)
def test_a_run_ends_with_a_true_claim(case: str) -> None:
    means, resolution = CASES[case]
    ended = one_by_one(means, 1.0, 7, DELTA, resolution=resolution)
    assert ended.done, f"{case}: not done after {ended.t} results"
    assert ended.right, case


@pytest.mark.parametrize(
    ("noise", "low", "high"),
    [(coterie.Gaussian(), 0.0, 4.0), (coterie.Gaussian("scalar"), 0.0, 0.0), (coterie.Bounded(-6, 10), 0.0, 4.0)],
)
def test_a_run_ends_where_the_noise_is_not_known(noise: Any, low: float, high: float) -> None:
    def clipped(rng: np.random.Generator, mean: FloatArray) -> FloatArray:
        return np.asarray(mean + np.clip(standard(rng, np.zeros(mean.size)), -5.0, 5.0))

    means = on_a_line(*np.linspace(low, high, 12))
    ended = one_by_one(means, noise, 3, DELTA, 200_000, clipped, resolution=(0.5, 2.5))
    assert ended.done, ended
    assert ended.right, ended


def test_a_run_ends_for_counts() -> None:
    def clicks(rng: np.random.Generator, mean: FloatArray) -> FloatArray:
        return rng.binomial(20, mean / 20.0).astype(float)

    means = on_a_line(*np.linspace(2.0, 14.0, 12))
    ended = one_by_one(means, coterie.Counts(20), 3, DELTA, 60_000, clicks, resolution=(1.0, 4.0))
    assert ended.done, ended
    assert ended.right, ended


@pytest.mark.slow
@pytest.mark.parametrize("workers", [8, 64])
@pytest.mark.parametrize("case", ["continuum", "all equal", "chain of steps halfway"])
def test_a_run_with_several_workers_ends_with_a_true_claim(case: str, workers: int) -> None:
    means, resolution = CASES[case]
    ended = with_workers(means, 1.0, 7, workers, DELTA, resolution=resolution)
    assert ended.done, f"{case}: not done after {ended.t} results"
    assert ended.right, case


def test_single_linkage_ends_on_groups_that_are_no_balls() -> None:
    ring = [(5.0 * np.cos(a), 5.0 * np.sin(a)) for a in np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)]
    means = np.array([*ring, (0.0, 0.0), (0.5, 0.0), (20.0, 0.0), (20.0, 1.5)])
    ended = one_by_one(means, 0.5, 5, DELTA, 60_000, n_clusters=3, groups="linkage")
    assert ended.done, ended
    assert ended.right, ended
