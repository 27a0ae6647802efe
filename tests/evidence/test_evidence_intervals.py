"""What results say about pairs at any moment: formulas against plain ones, and the guarantee by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import binom

import coterie
from coterie.evidence.intervals.by_noise import deviation_bound, distances, moment_factors, sign_factors, unequal
from coterie.evidence.intervals.hedged_means import (
    bounded_boxes,
    differing_boxes,
    differing_rates,
    rate_boxes,
)
from coterie.evidence.intervals.paired import coordinate_bounds, critical_energy, differing, distance_bounds
from coterie.evidence.intervals.stacks import Stacks, coarse_counts, fine_counts
from coterie.evidence.pairs import mixture_log
from coterie.problem.families import noise_of

FALSE_ALARM = 1e-6  # of each test by simulation, if what it tests is true


def stacks(values: np.ndarray) -> Stacks:
    """M items with n results each: values (M, n, d)."""
    n_arms, n, dim = values.shape
    return Stacks.of(np.repeat(np.arange(n_arms), n), values.reshape(-1, dim), n_arms)


def most_errors(runs: int, rate: float) -> int:
    return int(binom.ppf(1.0 - FALSE_ALARM, runs, rate))


# Formulas.


def test_counts_read_are_those_of_the_grid() -> None:
    fine = fine_counts(300)
    assert fine[:64].tolist() == list(range(1, 65))
    assert fine[64:].tolist() == [*range(72, 129, 8), *range(144, 257, 16), 288]
    assert coarse_counts(30).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28]
    assert fine_counts(0).size == 0


def test_stacks_keep_the_order_of_results() -> None:
    found = Stacks.of(np.array([1, 0, 1, 3]), np.array([[1.0], [2.0], [3.0], [4.0]]), 4)
    assert found.of_arm(1).tolist() == [[1.0], [3.0]]
    assert found.counts.tolist() == [1, 2, 0, 1]
    assert found.firsts.ravel().tolist() == [2.0, 1.0, 0.0, 4.0]
    np.testing.assert_allclose(found.sums(np.array([1, 2]))[1].ravel(), [0.0, 2.0])
    np.testing.assert_allclose(found.squares(np.array([1, 2]))[1].ravel(), [0.0, 2.0])


@pytest.mark.parametrize(("dim", "level"), [(1, 2.0), (3, 12.0), (20, 40.0)])
def test_critical_energy_matches_mixture(dim: int, level: float) -> None:
    n = np.array([1, 2, 7, 64, 5000])
    np.testing.assert_allclose(mixture_log(n, critical_energy(n, dim, level), dim), level, rtol=1e-9)


def test_differing_equals_pair_evidence_at_any_counts() -> None:
    """The largest pair evidence over all pairs of counts, by the public function."""
    rng = np.random.default_rng(4)
    values = rng.standard_normal((5, 30, 2)) + np.array([0.0, 0.0, 0.6, 1.2, 1.3])[:, None, None]
    counts = np.array([30, 11, 30, 17, 5])
    arms = np.repeat(np.arange(5), counts)
    given = Stacks.of(arms, np.concatenate([one[:n] for one, n in zip(values, counts, strict=True)]), 5)
    level = 3.0
    for i in range(5):
        for j in range(i + 1, 5):
            most = max(
                coterie.pair_evidence(values[i, :a], values[j, :b])
                for a in range(1, counts[i] + 1)
                for b in range(1, counts[j] + 1)
            )
            assert differing(given, level)[i, j] == (most >= level), (i, j, most)


def test_bounds_match_balls_of_every_step() -> None:
    """A θ on the edge of the interval is refuted by shifting one stack by it, and no θ inside is."""
    rng = np.random.default_rng(5)
    values = rng.standard_normal((2, 64, 1))
    level = 5.0
    lower, upper = coordinate_bounds(stacks(values), np.ones(1), level)
    same = distance_bounds(stacks(values), np.eye(1), level)
    assert lower[0, 1, 0] == pytest.approx(same[0][0, 1])
    assert upper[0, 1, 0] == pytest.approx(same[1][0, 1])

    def refuted(theta: float) -> bool:
        moved = values - np.array([theta, 0.0])[:, None, None]
        return bool(differing(stacks(moved), level)[0, 1])

    edge = upper[0, 1, 0]
    assert refuted(1.001 * edge) or refuted(-1.001 * edge)
    assert not any(refuted(theta) for theta in np.linspace(-0.9, 0.9, 7) * (edge - 0.15))


def test_distances_keep_units() -> None:
    """Results in other units, noise and scale with them: the same bounds."""
    rng = np.random.default_rng(6)
    values = rng.standard_normal((4, 40, 2))
    covariance = np.array([[1.0, 0.5], [0.5, 2.0]])
    unit = np.array([10.0, 0.1])
    for norm in ("each", "distance"):
        one = distances(stacks(values), noise_of(covariance, 2), norm, np.ones(2), 3.0)
        other = distances(stacks(values * unit), noise_of(covariance * np.outer(unit, unit), 2), norm, unit, 3.0)
        assert one is not None
        assert other is not None
        np.testing.assert_allclose(one.lower, other.lower, atol=1e-9)
        np.testing.assert_allclose(one.upper, other.upper, rtol=1e-9)


def test_rates_match_plain_likelihoods() -> None:
    """One coordinate, R = 1, all prefixes: the evidence written out."""
    rng = np.random.default_rng(7)
    values = np.stack([rng.binomial(5, 0.2, size=(20, 1)), rng.binomial(5, 0.5, size=(20, 1))]).astype(float)

    def plain(n: int) -> float:
        a, b, of = values[0, :n].sum(), values[1, :n].sum(), 5 * n
        mixed = sum(betaln(s + 0.5, of - s + 0.5) - betaln(0.5, 0.5) for s in (a, b))
        p = (a + b) / (2 * of)
        common = sum(s * math.log(p) + (of - s) * math.log1p(-p) for s in (a, b)) if 0 < p < 1 else 0.0
        return float(mixed - common)

    best = max(plain(n) for n in range(1, 21)) + math.log(0.4)
    assert differing_rates(stacks(values), 5, best - 1e-9)[0, 1]
    found = [differing_rates(stacks(values), 5, best + extra)[0, 1] for extra in (0.0, 3.0)]
    assert not found[1]


def test_bets_are_fair() -> None:
    """The mean over the two signs of a contrast is 1; for second moments at most 1 over two points of mean 0."""
    rng = np.random.default_rng(8)
    bet, contrast, spread = rng.normal(size=(3, 50, 2)) * 3.0
    spread = np.abs(spread)
    plus, minus = (np.exp(sign_factors(bet, sign * contrast, spread)) for sign in (1.0, -1.0))
    np.testing.assert_allclose((plus + minus) / 2.0, 1.0, rtol=1e-12)
    for p in (0.01, 0.3, 0.5, 0.9):  # a two-point law in one coordinate with mean 0 and variance 0.5
        up, down = math.sqrt(0.5 * (1 - p) / p), -math.sqrt(0.5 * p / (1 - p))
        for size in (0.01, 1.0, 20.0):
            first, second = (
                float(np.exp(moment_factors(np.array([[size]]), np.array([[x]]), 0.5)[0])) for x in (up, down)
            )
            assert p * first + (1 - p) * second <= 1.0 + 1e-12


# The guarantee: of all counts at once, so looking after every result is included.


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["known", "gaussian", "counts", "bounded", "any", "symmetric", "at-most"])
def test_equal_pairs_error_rate_within_budget(noise: str) -> None:
    """120 disjoint pairs of equal items with 150 results each, at an error probability of 0.3 for each pair.

    More errors than the binomial quantile have probability 1e-6 if the guarantee holds (bounded, any and Gaussian share
    a budget between items or with the variance, so for them it is smaller still).
    """
    rng = np.random.default_rng(11)
    shape = (240, 150, 2)
    centers = np.repeat(rng.normal(size=(120, 2)), 2, axis=0)[:, None]
    level = -math.log(0.3)
    normal = centers + rng.standard_normal(shape)
    if noise == "known":
        found = differing(stacks(normal), level)
    elif noise == "gaussian":
        found = unequal(stacks(normal * [3.0, 0.2]), noise_of("gaussian", 2), 1, level)
    elif noise == "counts":
        rates = np.repeat(rng.uniform(0.01, 0.99, size=(120, 2)), 2, axis=0)[:, None]
        found = differing_rates(stacks(rng.binomial(3, np.broadcast_to(rates, shape)).astype(float)), 3, level)
    elif noise == "bounded":
        rates = np.repeat(rng.uniform(0.01, 0.99, size=(120, 2)), 2, axis=0)[:, None]
        values = (rng.random(shape) < rates).astype(float)
        # two items, two numbers, two sides
        boxes = bounded_boxes(stacks(values), np.zeros(2), np.ones(2), level + math.log(8.0))
        found = differing_boxes(*boxes)
    else:
        skewed = centers + rng.exponential(size=shape) - 1.0  # equal laws; of variance 1
        spread = np.exp(rng.normal(size=(240, 1, 1)))  # symmetric, and another for each item
        values = {"any": skewed, "symmetric": centers + spread * rng.standard_t(1, size=shape), "at-most": skewed}[
            noise
        ]
        model = noise_of({"any": None, "symmetric": coterie.Symmetric(), "at-most": coterie.AtMost(1.0)}[noise], 2)
        found = unequal(stacks(values), model, 1, level)
    errors = sum(bool(found[2 * i, 2 * i + 1]) for i in range(120))
    assert errors <= most_errors(120, 0.3), errors


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["known", "scalar", "bounded", "counts"])
def test_distances_error_rate_within_budget(noise: str) -> None:
    """60 runs of four items, 100 results each, error probability 0.3 a run: bounds of all pairs, both norms."""
    rng = np.random.default_rng(12)
    wrong = {"each": 0, "distance": 0}
    for _ in range(60):
        means = rng.uniform(0.05, 0.95, size=(4, 2))
        wide = np.broadcast_to(means[:, None], (4, 100, 2))
        values, model = {
            "known": (wide + 0.5 * rng.standard_normal(wide.shape), 0.5),
            "scalar": (wide + 0.5 * rng.standard_normal(wide.shape), coterie.Gaussian("scalar")),
            "bounded": (rng.binomial(1, wide).astype(float), coterie.Bounded(0, 1)),
            "counts": (rng.binomial(1, wide).astype(float), coterie.Counts()),
        }[noise]
        gap = np.abs(means[:, None] - means)
        for norm in wrong:
            found = distances(stacks(values), noise_of(model, 2), norm, np.ones(2), -math.log(0.3))
            assert found is not None
            truth = gap if norm == "each" else np.sqrt((gap**2).sum(axis=-1))
            wrong[norm] += bool((found.lower > truth).any() or (found.upper < truth).any())
            assert (found.lower <= found.upper).all()
    assert max(wrong.values()) <= most_errors(60, 0.3), wrong


def test_boxes_error_rate_within_budget() -> None:
    """300 items, 200 results each, each box wrong with probability at most 0.2 (bounded: 0.1 a side)."""
    rng = np.random.default_rng(13)
    means = rng.uniform(0.01, 0.99, size=(300, 1))
    ones = stacks(rng.binomial(1, np.broadcast_to(means[:, None], (300, 200, 1))).astype(float))
    for low, high in (
        rate_boxes(ones, 1, -math.log(0.2)),
        bounded_boxes(ones, np.zeros(1), np.ones(1), -math.log(0.1)),
    ):
        assert ((low > means) | (high < means)).sum() <= most_errors(300, 0.2)
        assert (high - low).mean() < 0.3  # and they say something


@pytest.mark.slow
def test_deviation_bound_error_rate_within_budget() -> None:
    """200 runs of six items, at every time up to 40 results: at most 0.2 of them are ever below the truth."""
    rng = np.random.default_rng(14)
    wrong = 0
    for _ in range(200):
        values = rng.standard_normal((6, 40, 2)) * [2.0, 0.5] + 100.0
        bounds = [deviation_bound(stacks(values[:, :n]), "diagonal", 0.2) for n in (2, 3, 5, 12, 40)]
        wrong += any(bound is None or bool((bound < np.array([2.0, 0.5])).any()) for bound in bounds)
    assert wrong <= most_errors(200, 0.2)
    assert deviation_bound(stacks(values[:, :1]), "diagonal", 0.2) is None
