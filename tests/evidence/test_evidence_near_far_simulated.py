"""Near and far tests of bounded results, counts and Gaussian noise by simulation: error rates on the border, forecasts.

Seeds are fixed. The stated false-alarm probability is what a test of the error rate would have with any other seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most
from scipy.stats import binom
from single_tests import Single, SingleTest

from coterie.evidence.near_far.bounded import BoundedFamily
from coterie.evidence.near_far.counts import CountsFamily
from coterie.evidence.near_far.family import Family, Guess
from coterie.evidence.near_far.gaussian import GaussianFamily, first_results, upper_variances
from coterie.evidence.near_far.known import KnownFamily
from coterie.problem.checks import FloatArray

Draw: TypeAlias = Callable[[tuple[int, ...]], FloatArray]

FALSE_ALARM = 1e-6
"""Of each comparison of an error rate with its bound, if the bound is the true rate."""


def most_errors(runs: int, chance: float) -> int:
    """Not exceeded in so many runs but with the stated false-alarm probability."""
    return int(binom.ppf(1.0 - FALSE_ALARM, runs, chance))


def contrasts_needed(test: SingleTest, level: float, item: FloatArray, blocks: FloatArray) -> int:
    """After how many of these contrasts a test reaches its level; 0 if it does not."""
    for x, block in zip(item, blocks, strict=True):
        test.add(x, block)
        if test.evidence >= level:
            return test.count
    return 0


def counted_means(rng: np.random.Generator, trials: int, rates: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    return rng.binomial(trials, rates, (*shape, len(rates))).astype(float)


def skewed(rng: np.random.Generator, mean: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Results in [0, 1] of this mean (d) that are mostly 0 and sometimes 1 or between."""
    beta = rng.beta(mean, 1.0 - mean, (*shape, len(mean)))
    return np.where(rng.random(beta.shape) < 0.5, beta, (rng.random(beta.shape) < mean).astype(float))


BORDERS = [
    ("near", "each", np.array([0.3]), 1),
    ("near", "each", np.array([-0.3, 0.1]), 3),
    ("near", "distance", np.array([0.3, 0.3]) / math.sqrt(2.0), 2),
    ("far", "each", np.array([0.3, -0.3]), 2),
    ("far", "distance", np.array([0.18, 0.24]), 2),
]
"""Gaps that are exactly the bound 0.3, or at the worst place of it."""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "norm", "gap", "ratio"), BORDERS)
@pytest.mark.parametrize("noise", ["clicks", "counts", "skewed"])
def test_claims_on_the_border_error_rate_within_delta(
    kind: str, norm: str, gap: FloatArray, ratio: int, noise: str
) -> None:
    """Wrong with probability at most 0.2 each, however often one looks; false alarm 1e-6."""
    rng, runs, chance, looks = np.random.default_rng(11), 120, 0.2, 50
    reference = np.where(gap < 0.0, 0.5, 0.1)[: gap.size]
    item, trials = reference + gap, {"clicks": 1, "counts": 5, "skewed": 1}[noise]
    bound = np.full(gap.size, 0.3 * trials)
    family: Family
    if noise == "skewed":
        family = BoundedFamily(norm, np.ones(gap.size))
    else:
        family = CountsFamily(norm, trials, np.ones(gap.size))
    wrong = 0
    for _ in range(runs):
        # A guess that makes the claim look true, with rates from a first look at other results.
        hopeful = reference + gap * (0.3 if kind == "near" else 2.0) + rng.normal(0.0, 0.03, gap.size)
        guess = Guess(
            np.clip(hopeful, 0.0, 1.0) * trials,
            reference * trials,
            np.full(gap.size, 0.01 * trials**2),
            reference * (1.0 - reference) * trials,
        )
        test = getattr(Single(family), f"{kind}_test")(
            bound, ratio, getattr(Single(family), f"{kind}_parameters")(bound, ratio, guess, -math.log(chance))
        )
        if noise == "skewed":
            results, blocks = skewed(rng, item, (looks,)), skewed(rng, reference, (looks, ratio))
        else:
            results = counted_means(rng, trials, item, (looks,))
            blocks = counted_means(rng, trials, reference, (looks, ratio))
        wrong += contrasts_needed(test, -math.log(chance), results, blocks) > 0
    assert wrong <= most_errors(runs, chance)


@pytest.mark.guarantee
@pytest.mark.parametrize("shape", ["scalar", "diagonal", "full"])
@pytest.mark.parametrize(
    ("kind", "norm"), [("near", "each"), ("near", "distance"), ("far", "each"), ("far", "distance")]
)
def test_gaussian_with_its_estimated_bound_error_rate_within_delta(shape: str, kind: str, norm: str) -> None:
    """A first design, its bounds, then a test at 0.9·δ on the border, δ = 0.3: wrong at most δ; false alarm 1e-6."""
    rng, runs, delta, arms, dim = np.random.default_rng(12), 120, 0.3, 20, 3
    level = -math.log(0.9 * delta)
    deviations = np.full(dim, 1.0) if shape == "scalar" else np.array([0.5, 1.0, 2.0])
    mixing = np.diag(deviations)
    if shape == "full":
        mixing = deviations[:, None] * np.linalg.cholesky(0.1 * np.eye(dim) + 0.9)
    gap = np.array([0.0, 1.0, 0.0]) if norm == "each" else np.array([0.48, 0.6, 0.64])
    bound, n = np.ones(dim), first_results(arms, dim, shape)
    wrong = 0
    for _ in range(runs):
        first = rng.normal(size=(arms, n, dim)) @ mixing.T + rng.normal(size=(arms, 1, dim))
        family = GaussianFamily(norm, shape, upper_variances(first, shape, delta, np.ones(dim)))
        guess = Guess(gap * (0.4 if kind == "near" else 1.5), np.zeros(dim), np.full(dim, 0.05), deviations**2)
        made = getattr(Single(family), f"{kind}_parameters")(bound, 2, guess, level)
        test = getattr(Single(family), f"{kind}_test")(bound, 2, made)
        item, blocks = rng.normal(size=(80, dim)) @ mixing.T + gap, rng.normal(size=(80, 2, dim)) @ mixing.T
        wrong += contrasts_needed(test, level, item, blocks) > 0
    of = Guarantee("gaussian", "up to a resolution", case=f"one test on the border, {kind}")
    assert_rate_at_most(delta, wrong, runs, of)


def test_gaussian_bounds_error_rate_within_their_share() -> None:
    """All bounds of a design hold but with probability 0.1·δ, correlated coordinates included; false alarm 1e-6."""
    rng, delta, dim = np.random.default_rng(13), 0.9, 4
    mixing, scale = np.linalg.cholesky(0.2 * np.eye(dim) + 0.8), np.array([0.1, 1.0, 1.0, 10.0])
    for shape, factor in (("scalar", np.eye(dim)), ("diagonal", np.eye(dim)), ("full", mixing)):
        designs = rng.normal(size=(1500, 6, 4, dim)) @ factor.T
        wrong = sum(bool((upper_variances(one / scale, shape, delta, scale) < scale**-2.0).any()) for one in designs)
        assert wrong <= most_errors(1500, 0.1 * delta)
        assert wrong >= 20  # and they are no wider than they have to be


def ratings(rng: np.random.Generator, mean: float, shape: tuple[int, ...]) -> FloatArray:
    """Stars from 1 to 5 of this mean, standard deviation about 1.1."""
    weights, low, high = np.array([0.06, 0.11, 0.27, 0.34, 0.22]), -6.0, 6.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        tilted = weights * np.exp(middle * np.arange(5))
        low, high = (middle, high) if tilted @ np.arange(1, 6) / tilted.sum() < mean else (low, middle)
    return rng.choice(np.arange(1.0, 6.0), p=tilted / tilted.sum(), size=(*shape, 1))


def forecast_ratio(
    family: Family,
    kind: str,
    limit: float,
    ratio: int,
    guess: Guess,
    level: float,
    draw_item: Draw,
    draw_block: Draw,
    runs: int = 15,
) -> float:
    """The forecast over the mean number of contrasts that simulated tests need."""
    bound = np.array([limit])
    forecast = float(getattr(family, f"{kind}_needed")(bound, ratio, guess.gap[None], guess, level)[0])
    made = getattr(Single(family), f"{kind}_parameters")(bound, ratio, guess, level)
    most, needed = int(8.0 * forecast + 50.0), []
    for _ in range(runs):
        test = getattr(Single(family), f"{kind}_test")(bound, ratio, made)
        needed.append(contrasts_needed(test, level, draw_item((most,)), draw_block((most, ratio))) or most)
    return forecast / float(np.mean(needed))


@pytest.mark.parametrize("kind", ["near", "far"])
def test_forecasts_for_ratings_are_within_a_third_of_the_truth(kind: str) -> None:
    rng, family, found = np.random.default_rng(14), BoundedFamily("each", np.array([4.0])), []
    for mean, gap, bound in ((3.6, 0.0, 0.8), (3.6, 0.3, 1.2), (4.2, 0.0, 1.5), (3.0, 1.2, 0.2), (3.6, 0.8, 0.0)):
        if (kind == "near") != (gap < bound):
            continue
        for ratio, level in ((1, 3.0), (4, 3.0), (3, 9.0)):
            guess = Guess(np.array([mean + gap]), np.array([mean]), np.array([0.01]), np.array([1.2]))
            item, reference = partial(ratings, rng, mean + gap), partial(ratings, rng, mean)
            found.append(forecast_ratio(family, kind, bound, ratio, guess, level, item, reference))
    assert 0.7 < np.median(found) < 1.4
    assert 0.5 < min(found) < max(found) < 2.0


@pytest.mark.parametrize("kind", ["near", "far"])
@pytest.mark.parametrize("trials", [1, 20])
def test_forecasts_for_counts_are_within_a_third_of_the_truth(kind: str, trials: int) -> None:
    rng, family, found = np.random.default_rng(15), CountsFamily("each", trials, np.array([1.0])), []
    for rate, gap, bound in ((0.05, 0.0, 0.15), (0.3, 0.1, 0.4), (0.8, 0.0, 0.3), (0.05, 0.25, 0.0), (0.5, 0.4, 0.1)):
        if (kind == "near") != (gap < bound):
            continue
        for ratio, level in ((1, 3.0), (4, 9.0)):
            size = math.sqrt(trials)  # differences that so many trials can still not show at once
            item, limit = rate + gap / size, bound / size
            variance = np.array([rate * (1.0 - rate) * trials])
            guess = Guess(np.array([item * trials]), np.array([rate * trials]), 0.01 * variance, variance)
            draw_item, draw_block = (partial(counted_means, rng, trials, np.array([p])) for p in (item, rate))
            found.append(forecast_ratio(family, kind, limit * trials, ratio, guess, level, draw_item, draw_block))
    assert 0.7 < np.median(found) < 1.4
    assert 0.5 < min(found) < max(found) < 2.0


def test_counts_need_fewer_results_than_bounds_or_the_largest_variance() -> None:
    """At the rate 0.1 with 20 trials: less than half of what Bounded(0, 20) or a variance of 5 needs."""
    rng, trials, rate, bound, level = np.random.default_rng(16), 20, 0.1, np.array([1.0]), 5.0
    guess = Guess(np.array([2.0]), np.array([2.0]), np.array([0.05]), np.array([1.8]))
    needed = {}
    families: dict[str, Family] = {
        "counts": CountsFamily("each", trials, np.array([1.0])),
        "bounded": BoundedFamily("each", np.array([20.0])),
        "variance": KnownFamily("each", np.array([[5.0]])),
    }
    for name, family in families.items():
        made = Single(family).near_parameters(bound, 4, guess, level)
        runs = []
        for _ in range(15):
            results, blocks = (counted_means(rng, trials, np.array([rate]), shape) for shape in ((600,), (600, 4)))
            runs.append(contrasts_needed(Single(family).near_test(bound, 4, made), level, results, blocks) or 600)
        needed[name] = float(np.mean(runs))
    assert needed["counts"] < 0.5 * needed["bounded"]
    assert needed["counts"] < 0.5 * needed["variance"]
