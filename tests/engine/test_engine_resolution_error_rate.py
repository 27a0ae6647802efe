"""Whole runs for a resolution: claims checked against the true means, distances of exactly ε and η included.

Seeds are fixed. With another seed each comparison fails with probability 1e-6 if its true rate is δ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most
from resolution_runs import Draw, on_a_line, one_by_one, standard

import coterie
from coterie.problem.checks import FloatArray
from coterie.problem.families import noise_of

DELTA, RUNS = 0.3, 200
"""A large δ, so that a rate above it shows: with δ = 0.1 hardly any run would be wrong."""


def ratings(rng: np.random.Generator, mean: FloatArray) -> FloatArray:
    """0 or 1 with this mean: as far from Gaussian as bounded results can be."""
    return (rng.random(mean.size) < mean).astype(float)


def clicks(rng: np.random.Generator, mean: FloatArray) -> FloatArray:
    return rng.binomial(10, mean / 10.0).astype(float)


def each(epsilon: float, eta: float) -> coterie.Resolution:
    return coterie.Resolution(epsilon, eta)


def far(epsilon: float, eta: float) -> coterie.Resolution:
    return coterie.Resolution(epsilon, eta, norm="distance")


SQUARE = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5], [1.5, 1.5], [0.5, 0.0]])
TRIPLE = np.array([[0.0, 0.0, 0.0], [0.9, 1.2, 0.0], [0.0, 0.3, 0.4], [4.0, 4.0, 4.0]])

CASES: dict[str, tuple[FloatArray, Any, coterie.Resolution, Draw]] = {
    "eta apart": (on_a_line(0, 1.5, 3.0, 4.5), 1.0, each(0.5, 1.5), standard),
    "epsilon apart": (on_a_line(0, 0.5, 1.0, 1.5, 6.0), 1.0, each(0.5, 1.5), standard),
    "eta apart in one number": (SQUARE, 1.0, each(0.5, 1.5), standard),
    "eta and epsilon by distance": (TRIPLE, 1.0, far(0.5, 1.5), standard),
    "the same, noise exactly known": (TRIPLE, coterie.Exactly(1.0), far(0.5, 1.5), standard),
    "equal, and eta apart": (on_a_line(0, 0, 0, 1, 1, 1), 1.0, each(0.0, 1.0), standard),
    "any two": (on_a_line(0, 0.5, 1.5, 2.0), 1.0, coterie.Resolution(0.5, 1.5, claim="any-two"), standard),
    "Gaussian": (on_a_line(0, 0.5, 1.5, 2.0, 3.5), coterie.Gaussian(), each(0.5, 1.5), standard),
    "Gaussian, scalar, by distance": (TRIPLE, coterie.Gaussian("scalar"), far(0.5, 1.5), standard),
    "bounded": (on_a_line(0.1, 0.3, 0.7, 0.9), coterie.Bounded(0, 1), each(0.2, 0.6), ratings),
    "counts": (on_a_line(1, 2, 4, 7), coterie.Counts(10), each(1.0, 3.0), clicks),
}


@pytest.mark.guarantee
@pytest.mark.parametrize("case", CASES)
def test_claims_of_whole_runs_error_rate_within_delta(case: str) -> None:
    means, noise, resolution, draw = CASES[case]
    runs = [one_by_one(means, noise, [11, run], DELTA, 20_000, draw, resolution=resolution) for run in range(RUNS)]
    wrong = sum(run.done and not run.right for run in runs)
    of = Guarantee(noise_of(noise, means.shape[1]).kind, "up to a resolution", case=case)
    assert_rate_at_most(DELTA, wrong, RUNS, of)
    assert sum(run.done for run in runs) >= 0.98 * RUNS


LINE = on_a_line(0.0, 0.5, 1.0, 2.2, 2.7, 4.2)  # the gaps that decide: 1.2 and 1.5 against 0.5
LINKED: dict[str, tuple[FloatArray, Any, int, Draw]] = {
    "known": (LINE, 1.0, 3, standard),
    "gaussian": (LINE, coterie.Gaussian(), 3, standard),
    "bounded": (on_a_line(0.1, 0.2, 0.7, 0.9), coterie.Bounded(0, 1), 2, ratings),
    "counts": (on_a_line(1.0, 1.5, 4.0, 4.5, 7.5), coterie.Counts(10), 3, clicks),
}


@pytest.mark.guarantee
@pytest.mark.parametrize("noise", LINKED)
def test_single_linkage_of_whole_runs_error_rate_within_delta(noise: str) -> None:
    means, stated, n_clusters, draw = LINKED[noise]
    asked: dict[str, Any] = {"n_clusters": n_clusters, "groups": "linkage"}
    runs = [one_by_one(means, stated, [12, run], DELTA, 60_000, draw, **asked) for run in range(RUNS)]
    wrong = sum(run.done and not run.right for run in runs)
    assert_rate_at_most(DELTA, wrong, RUNS, Guarantee(noise, question="single linkage"))
    assert all(run.done for run in runs)
