"""Near and far tests of bounded results, counts and Gaussian noise: exact means of their evidence, by enumeration.

Every outcome of a few contrasts is given to a test, and its evidence is averaged with the exact probabilities of many
distributions in the null, those on its border included: no simulation, so nothing can fail by chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pytest
from scipy.special import gammainc
from single_tests import Single, SingleTest

from coterie.evidence.near_far.bounded import BettingTests, BoundedFamily
from coterie.evidence.near_far.counts import CountsFamily, TiltedTests, largest_log_mean
from coterie.evidence.near_far.family import Family, Guess, Parameters
from coterie.evidence.near_far.gaussian import GaussianFamily, first_results, upper_variances
from coterie.evidence.near_far.known import MULTIPLE_WEIGHTS, MULTIPLES
from coterie.problem.checks import FloatArray

Outcome: TypeAlias = tuple[FloatArray, FloatArray]


def guess_of(item: float | FloatArray, reference: float | FloatArray, variance: float, doubt: float = 0.01) -> Guess:
    one, other = np.atleast_1d(item).astype(float), np.atleast_1d(reference).astype(float)
    return Guess(one, other, np.full(one.size, doubt), np.full(one.size, variance))


def evidence_of_all(test_of: Callable[[], SingleTest], outcomes: Sequence[Outcome], contrasts: int) -> FloatArray:
    """E of each side after every sequence of outcomes (item, block); they are in the order of itertools.product."""
    found = []
    for sequence in itertools.product(outcomes, repeat=contrasts):
        test = test_of()
        assert isinstance(test.tests, BettingTests | TiltedTests)
        for item, block in sequence:
            test.add(item, block)
        found.append(np.exp(test.tests.sides[0]))
    return np.array(found)


def repeated(probabilities: FloatArray, contrasts: int) -> FloatArray:
    """Probabilities (n, outcomes) of one contrast, turned into those of all sequences of so many."""
    found = probabilities
    for _ in range(contrasts - 1):
        found = (found[:, :, None] * probabilities[:, None, :]).reshape(len(found), -1)
    return found


RATINGS = np.array([0.0, 0.5, 1.0])
SIMPLEX = np.array([(i, j, 6 - i - j) for i in range(7) for j in range(7 - i)]) / 6.0


def rating_outcomes(ratio: int) -> tuple[list[Outcome], FloatArray, FloatArray]:
    """All outcomes of a contrast of ratings, with their probabilities for every pair of distributions."""
    blocks = list(itertools.product(range(3), repeat=ratio))
    outcomes = [(RATINGS[[i]], RATINGS[list(block)][:, None]) for i in range(3) for block in blocks]
    pairs = list(itertools.product(SIMPLEX, SIMPLEX))
    chances = np.array(
        [[p[i] * math.prod(q[j] for j in block) for i in range(3) for block in blocks] for p, q in pairs]
    )
    gaps = np.array([p @ RATINGS - q @ RATINGS for p, q in pairs])
    return outcomes, chances, gaps


@pytest.mark.parametrize(("ratio", "contrasts"), [(1, 2), (2, 2), (3, 1)])
@pytest.mark.parametrize("bound", [0.25, 0.5, 1.0])
def test_mean_of_near_bets_is_at_most_one_for_every_null_on_three_values(
    ratio: int, contrasts: int, bound: float
) -> None:
    family = BoundedFamily("each", np.array([1.0]))
    outcomes, chances, gaps = rating_outcomes(ratio)
    for rates in (
        Single(family).near_parameters(np.array([bound]), ratio, guess_of(0.5, 0.5, 0.05), 4.0)["rates"],
        [0.3, 1e6],
    ):
        values = evidence_of_all(
            partial(Single(family).near_test, np.array([bound]), ratio, {"rates": rates}), outcomes, contrasts
        )
        means = repeated(chances, contrasts) @ values
        assert (values >= 0.0).all()
        assert means[gaps >= bound - 1e-12, 0].max() <= 1.0 + 1e-12
        assert means[gaps <= -bound + 1e-12, 1].max() <= 1.0 + 1e-12
        if bound < 1.0:
            assert means[np.abs(gaps) < 1e-12].max() > 1.01  # and it can be more where the null is false


@pytest.mark.parametrize(("ratio", "contrasts"), [(1, 2), (2, 2), (3, 1)])
@pytest.mark.parametrize("bound", [0.0, 0.25])
def test_mean_of_far_bets_is_at_most_one_for_every_null_on_three_values(
    ratio: int, contrasts: int, bound: float
) -> None:
    family = BoundedFamily("each", np.array([1.0]))
    outcomes, chances, gaps = rating_outcomes(ratio)
    made = Single(family).far_parameters(np.array([bound]), ratio, guess_of(0.8, 0.2, 0.05), 4.0)
    for parameters in (made, {"direction": [-3.0], "rate": 1e6}):
        values = evidence_of_all(
            partial(Single(family).far_test, np.array([bound]), ratio, parameters), outcomes, contrasts
        )
        means = repeated(chances, contrasts) @ values[:, 0]
        assert means[np.abs(gaps) <= bound + 1e-12].max() <= 1.0 + 1e-12
        assert means.max() > 1.01


def count_outcomes(trials: int, ratio: int, rates: FloatArray) -> tuple[list[Outcome], FloatArray]:
    """All outcomes of a contrast of counts, item and block, with their probabilities for pairs of rates (n, 2)."""

    def chance(k: int, p: FloatArray) -> FloatArray:
        return math.comb(trials, k) * p**k * (1.0 - p) ** (trials - k)

    blocks = list(itertools.product(range(trials + 1), repeat=ratio))
    outcomes = [(np.array([i]), np.array(block)[:, None]) for i in range(trials + 1) for block in blocks]
    p, q = rates[:, 0], rates[:, 1]
    chances = [
        chance(i, p) * np.prod([chance(j, q) for j in block], axis=0) for i in range(trials + 1) for block in blocks
    ]
    return outcomes, np.array(chances).T


RATES = np.array(list(itertools.product(np.linspace(0.0, 1.0, 21), repeat=2)))


def near_count_parameters(
    family: CountsFamily, bound: FloatArray, ratio: int, most: float, rng: np.random.Generator
) -> Iterator[Parameters]:
    """What the family makes of good and of absurd guesses, and parameters that nobody made."""
    for item, reference in ((0.1, 0.1), (0.5, 0.6), (0.0, 0.0), (0.0, 1.0)):
        yield Single(family).near_parameters(bound, ratio, guess_of(item * most, reference * most, 0.01), 4.0)
    for _ in range(5):
        yield {
            "item": rng.normal(0.0, 2.0, 2).tolist(),
            "reference": rng.normal(0.0, 2.0, 2).tolist(),
            "multipliers": rng.exponential(2.0, (2, 3)).tolist(),
        }


@pytest.mark.parametrize(("trials", "ratio", "contrasts"), [(1, 1, 3), (1, 3, 2), (3, 1, 2), (4, 2, 1)])
@pytest.mark.parametrize("limit", [0.1, 0.35, 1.0])
def test_mean_of_tilted_near_counts_is_at_most_one_for_every_null(
    trials: int, ratio: int, contrasts: int, limit: float
) -> None:
    scale = 2.5  # results are counts/scale, and so is the bound
    family, bound = CountsFamily("each", trials, np.array([scale])), np.array([limit * trials / scale])
    outcomes, chances = count_outcomes(trials, ratio, RATES)
    outcomes = [(item / scale, block / scale) for item, block in outcomes]
    gaps, rng = RATES[:, 0] - RATES[:, 1], np.random.default_rng(3)
    for parameters in near_count_parameters(family, bound, ratio, trials / scale, rng):
        values = evidence_of_all(partial(Single(family).near_test, bound, ratio, parameters), outcomes, contrasts)
        means = repeated(chances, contrasts) @ values
        assert means[gaps >= limit - 1e-9, 0].max() <= 1.0 + 1e-9
        assert means[gaps <= -limit + 1e-9, 1].max() <= 1.0 + 1e-9


@pytest.mark.parametrize(("trials", "ratio", "contrasts"), [(1, 1, 3), (1, 3, 2), (3, 1, 2)])
@pytest.mark.parametrize("limit", [0.0, 0.2])
def test_mean_of_tilted_far_counts_is_at_most_one_for_every_null(
    trials: int, ratio: int, contrasts: int, limit: float
) -> None:
    family, bound = CountsFamily("each", trials, np.array([1.0])), np.array([limit * trials])
    outcomes, chances = count_outcomes(trials, ratio, RATES)
    gaps, rng = RATES[:, 0] - RATES[:, 1], np.random.default_rng(4)
    made = [
        Single(family).far_parameters(bound, ratio, guess_of(x * trials, y * trials, 0.1), 4.0) for x, y in RATES[::74]
    ]
    made += [
        {"item": [a], "reference": [b], "multipliers": rng.normal(0.0, 2.0, (3, 1)).tolist()}
        for a, b in rng.normal(0.0, 2.0, (5, 2)).tolist()
    ]
    for parameters in made:
        values = evidence_of_all(partial(Single(family).far_test, bound, ratio, parameters), outcomes, contrasts)
        means = repeated(chances, contrasts) @ values[:, 0]
        assert means[np.abs(gaps) <= limit + 1e-9].max() <= 1.0 + 1e-9


@pytest.mark.parametrize("norm", ["each", "distance"])
def test_mean_of_tilted_far_counts_of_two_coordinates_is_at_most_one(norm: str) -> None:
    scale = np.array([1.0, 0.5])
    family, bound = CountsFamily(norm, 1, scale), np.array([0.4, 0.4])
    bits = [np.array(pair) / scale for pair in itertools.product((0.0, 1.0), repeat=2)]
    outcomes = [(item, block[None]) for item in bits for block in bits]
    rng = np.random.default_rng(5)
    rates = rng.uniform(0.0, 1.0, (4000, 2, 2))
    # Each pair of rates is drawn towards its middle until it lies on the border of the null: the worst there is.
    gaps = (rates[:, 0] - rates[:, 1]) / scale
    size = np.linalg.norm(gaps, axis=1) / 0.4 if norm == "distance" else np.abs(gaps).max(axis=1) / 0.4
    middle = rates.mean(axis=1, keepdims=True)
    rates = middle + (rates - middle) / np.maximum(size, 1.0)[:, None, None]
    chances = np.array(
        [
            np.prod(np.where(np.stack([i * scale, j[0] * scale]) == 1.0, rates, 1.0 - rates), axis=(1, 2))
            for i, j in outcomes
        ]
    ).T
    guess = Guess(np.array([0.9, 0.1]) / scale, np.array([0.2, 0.6]) / scale, np.full(2, 0.01), 0.2 / scale**2)
    parameters = Single(family).far_parameters(bound, 1, guess, 4.0)
    values = evidence_of_all(lambda: Single(family).far_test(bound, 1, parameters), outcomes, 2)
    means = repeated(chances, 2) @ values[:, 0]
    assert np.allclose(chances.sum(axis=1), 1.0)
    assert 0.9 < means.max() <= 1.0 + 1e-9


def test_costs_of_tilts_match_oracle_on_a_grid_and_waste_nothing() -> None:
    rng, grid = np.random.default_rng(6), np.linspace(0.0, 1.0, 20001)
    for tilt, nu in [*rng.normal(0.0, 3.0, (60, 2)).tolist(), [0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [-2.0, 0.0]]:
        best = (np.log1p(grid * np.expm1(tilt)) - nu * grid).max()
        assert best - 1e-12 <= largest_log_mean(np.array(tilt), np.array(nu)) <= best + 1e-5
    # The multipliers of a near test: the dual bound is the largest mean on the border itself.
    for p, q, ratio, limit in ((0.02, 0.02, 1, 0.03), (0.3, 0.35, 4, 0.2), (0.9, 0.8, 3, 0.15)):
        family = CountsFamily("each", 20, np.array([1.0]))
        bound = np.array([20 * limit])
        made = Single(family).near_parameters(bound, ratio, guess_of(20 * p, 20 * q, 1.0, 1e-6), 4.0)
        test = Single(family).near_test(bound, ratio, made)
        assert isinstance(test.tests, TiltedTests)
        for side, sign in enumerate((1.0, -1.0)):
            border = grid[(grid + sign * limit >= 0.0) & (grid + sign * limit <= 1.0)]
            for k, factor in enumerate(MULTIPLES.tolist()):
                a, b = factor * made["item"][side], factor * made["reference"][side]
                means = np.log1p((border + sign * limit) * np.expm1(a)) + ratio * np.log1p(border * np.expm1(b))
                assert test.tests._costs[0, side, k] == pytest.approx(20 * means.max(), abs=1e-5)


def test_bets_match_oracle() -> None:
    rng = np.random.default_rng(7)
    dim, ratio, widths = 2, 3, np.array([4.0, 2.0])
    for norm in ("each", "distance"):
        family, bound = BoundedFamily(norm, widths), np.array([1.0, 1.0])
        near = Single(family).near_test(bound, ratio, {"rates": [0.2, 0.4, 0.1, 5.0]})
        far = Single(family).far_test(bound, ratio, {"direction": [0.6, -0.8], "rate": 0.3})
        item, blocks = rng.uniform(0, 1, (9, dim)) * widths, rng.uniform(0, 1, (9, ratio, dim)) * widths
        for x, block in zip(item, blocks, strict=True):
            near.add(x, block)
            far.add(x, block)
        contrasts = item - blocks.mean(axis=1)
        each = 1.0 if norm == "each" else 1.0 / math.sqrt(2.0)

        def best(gains: FloatArray, rate: float, most: float) -> float:
            wealth = np.zeros(9)
            for weight, factor in zip(MULTIPLE_WEIGHTS, MULTIPLES, strict=True):
                wealth += weight * np.cumprod(1.0 + min(rate * factor, 0.999 / most) * gains)
            return math.log(wealth.max())

        sides = [
            best(each - contrasts[:, 0], 0.2, 4.0 - each),
            best(each + contrasts[:, 0], 0.4, 4.0 - each),
            best(each - contrasts[:, 1], 0.1, 2.0 - each),
            best(each + contrasts[:, 1], 5.0, 2.0 - each),
        ]
        assert near.evidence == pytest.approx(min(sides), abs=1e-12)
        offset = 1.4 if norm == "each" else 1.0
        gains = contrasts @ np.array([0.6, -0.8]) - offset
        assert far.evidence == pytest.approx(best(gains, 0.3, 0.6 * 4.0 + 0.8 * 2.0 + offset), abs=1e-12)


def test_gaussian_bounds_match_the_definition() -> None:
    plain, scale = np.random.default_rng(8).normal(0.0, 2.0, (6, 5, 3)), np.array([0.5, 1.0, 4.0])
    squares = plain.var(axis=1, ddof=1).sum(axis=0) * 4.0
    for shape, total, degrees, chance in (
        ("scalar", np.full(3, squares.sum()), 72, 0.01),
        ("diagonal", squares, 24, 0.01 / 3.0),
        ("full", squares, 24, 0.01 / 3.0),
    ):
        upper = upper_variances(plain / scale, shape, 0.1, scale) * scale**2
        assert gammainc(degrees / 2.0, total / upper / 2.0) == pytest.approx(chance, rel=1e-9)
    assert (upper_variances(np.full((6, 5, 3), 0.1), "full", 0.1, scale) == 1e-18).all()
    assert [first_results(*case) for case in ((10, 4, "scalar"), (10, 4, "full"), (500, 1, "diagonal"))] == [4, 13, 2]


@pytest.mark.parametrize("norm", ["each", "distance"])
@pytest.mark.parametrize("shape", ["scalar", "diagonal", "full"])
def test_gaussian_proxies_bound_the_variance_of_every_correlation(norm: str, shape: str) -> None:
    rng, upper = np.random.default_rng(9), np.array([0.5, 0.5, 0.5]) if shape == "scalar" else np.array([0.2, 0.5, 1.0])
    family = GaussianFamily(norm, shape, upper)
    for _ in range(200):
        factor = rng.normal(size=(3, rng.integers(1, 4))) if shape == "full" else np.diag(rng.choice([-1.0, 1.0], 3))
        covariance = factor @ factor.T
        covariance *= np.sqrt(np.outer(upper / np.diag(covariance), upper / np.diag(covariance)))
        direction = rng.normal(size=3)
        assert direction @ covariance @ direction <= family.direction_proxy(direction[None])[0] * (1.0 + 1e-12)
        assert np.linalg.eigvalsh(covariance)[-1] <= family.distance_proxy * (1.0 + 1e-12)
    gap = np.array([0.1, -2.0, 0.3])
    bound = np.full(3, 0.25)
    direction = family.far_directions(bound[None], gap[None])[0]
    drift = direction @ gap - family.far_offsets(bound[None], direction[None])[0]
    guess = guess_of(gap, np.zeros(3), 1.0)
    forecast = family.far_needed(bound, 1, gap[None], guess, 4.0)[0]
    assert 2.0 * 12.0 * family.direction_proxy(direction[None])[0] / drift**2 < 1.3 * forecast
    assert np.isinf(family.far_needed(bound, 1, 0.1 * gap[None], guess, 4.0)[0])


def families_of(dim: int) -> list[Family]:
    widths, trials = np.full(dim, 4.0), 4
    return [
        *(BoundedFamily(norm, widths) for norm in ("each", "distance")),
        *(CountsFamily(norm, trials, np.ones(dim)) for norm in ("each", "distance")),
        *(GaussianFamily(norm, "full", np.full(dim, 1e-18)) for norm in ("each", "distance")),
    ]


@pytest.mark.parametrize("dim", [1, 5])
@pytest.mark.parametrize("ratio", [1, 20])
def test_results_at_the_ends_of_the_range_keep_evidence_finite_and_forecasts_ordered(dim: int, ratio: int) -> None:
    """All results equal, at the ends of the range, bounds wider than the range, guesses without any variance."""
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        for family in families_of(dim):
            for low, high in ((0.0, 0.0), (0.0, 4.0), (4.0, 4.0), (2.0, 2.0)):
                guess = guess_of(np.full(dim, low), np.full(dim, high), 0.0, 0.0)
                for size in (0.5, 3.9, 4.0, 9.0):
                    bound = np.full(dim, size)
                    for kind in ("near", "far"):
                        made = getattr(Single(family), f"{kind}_parameters")(bound, ratio, guess, 5.0)
                        test = getattr(Single(family), f"{kind}_test")(bound, ratio, made)
                        for _ in range(60):
                            test.add(np.full(dim, low), np.full((ratio, dim), high))
                        assert math.isfinite(test.evidence)
                        distance = abs(high - low) * (math.sqrt(dim) if family.norm == "distance" else 1.0)
                        if (kind == "near" and distance >= size) or (kind == "far" and distance <= size):
                            assert test.evidence <= math.log(60) + 1.0
                        needed = getattr(family, f"{kind}_needed")
                        gaps = np.zeros((3, dim))
                        gaps[:, 0] = [0.0, 0.45 * size, 1.1 * size]
                        forecast = needed(bound, ratio, gaps, guess, 5.0)
                        assert not np.isnan(forecast).any()
                        assert (forecast > 0.0).all()
                        if kind == "near":
                            assert np.isinf(forecast[2])
                        else:
                            assert np.isinf(forecast[:2]).all()


def test_all_results_equal_prove_nearness_soon() -> None:
    for family in families_of(1)[:4]:
        guess, bound = guess_of(2.0, 2.0, 0.0, 0.0), np.array([1.0])
        test = Single(family).near_test(bound, 4, Single(family).near_parameters(bound, 4, guess, 5.0))
        while test.evidence < 5.0 and test.count < 100:
            test.add(np.array([2.0]), np.full((4, 1), 2.0))
        assert test.count <= 20
