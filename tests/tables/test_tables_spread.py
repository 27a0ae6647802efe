"""Columns that vary together: the bounds on Wishart matrices, the verdict on the noise, and what is proposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2

from coterie.problem.noise import Noise
from coterie.tables import TableError, replay_pool
from coterie.tables.checks.spread import (
    NOISE_PROBABILITY,
    Spread,
    largest_exceeds,
    smallest_above,
    smallest_falls_below,
    spread_of,
)

pytestmark = pytest.mark.guarantee

ARMS = np.repeat(np.arange(6), 10)  # 54 degrees of freedom


def correlated(dim: int, correlation: float) -> Any:
    return np.full((dim, dim), correlation) + (1.0 - correlation) * np.eye(dim)


def pool(covariance: Any, seed: int, repeats: int = 10) -> dict[str, Any]:
    """Six items in two groups, 0 and 3 in every column."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(covariance)
    return {f"i{k}": 3.0 * (k % 2) + rng.normal(size=(repeats, len(root))) @ root.T for k in range(6)}


# The bounds.


@pytest.mark.parametrize(("freedom", "dim"), [(1, 1), (5, 2), (20, 2), (54, 6), (4, 6), (40, 10), (200, 20)])
def test_bounds_on_wishart_eigenvalues_hold(freedom: int, dim: int) -> None:
    """8000 matrices (800 large ones), levels from 0.3 to 0.001: each comparison fails by chance below 1e-6."""
    rng = np.random.default_rng(freedom * 100 + dim)
    rows = rng.standard_normal((8000 if freedom * dim < 1000 else 800, freedom, dim))
    values = np.maximum(np.linalg.eigvalsh(rows.transpose(0, 2, 1) @ rows), 0.0)  # 0 is a little less when rounded
    count = len(values)
    bounds = np.array([largest_exceeds(x, freedom, dim) for x in values[:, -1]])
    for level in (0.3, 0.05, 0.01, 0.001):
        assert int((bounds < level).sum()) <= binom.ppf(1 - 1e-6, count, level)
        below = int((values[:, 0] < smallest_above(level, freedom, dim)).sum())
        assert below <= binom.ppf(1 - 1e-6, count, level)


def test_bounds_are_exact_for_one_column_and_sharp_for_more() -> None:
    for freedom in (1, 3, 20, 500):
        for x in (0.2, 1.0, 2.5):
            assert largest_exceeds(x * freedom, freedom, 1) <= chi2.sf(x * freedom, freedom) * (1 + 1e-9)
            assert smallest_falls_below(x * freedom, freedom, 1) <= chi2.cdf(x * freedom, freedom) * (1 + 1e-9)
        assert smallest_above(0.01, freedom, 1) == pytest.approx(chi2.ppf(0.01, freedom), rel=1e-5)
    # The 1 % points by simulation (4000 matrices): 0.681 and 1.359 for 140 and 2; 0.354 and 2.025 for 54 and 6.
    assert 0.64 < smallest_above(0.01, 140, 2) / 140 < 0.69
    assert 0.29 < smallest_above(0.01, 54, 6) / 54 < 0.36
    assert largest_exceeds(140 * 1.45, 140, 2) < 0.01
    assert largest_exceeds(54 * 2.3, 54, 6) < 0.01
    assert smallest_above(0.01, 5, 6) == 0.0  # singular
    assert smallest_falls_below(1e-9, 5, 6) == 1.0
    assert largest_exceeds(1e9, 0, 3) == 1.0
    assert (largest_exceeds(1e6, 1000, 300), largest_exceeds(10.0, 1000, 300)) == (0.0, 1.0)  # nothing overflows


# The verdict on what was stated.


@pytest.mark.parametrize("seed", range(20))
def test_columns_that_vary_together_are_seen(seed: int) -> None:
    """Unit variances and correlation 0.95: one direction has variance 5.75. The critical value of its estimate is 2.6,
    so each run fails with probability P(χ²(54) < 54·2.6/5.75), below 1e-5.
    """
    together = correlated(6, 0.95)
    noise = replay_pool(pool(together, seed), 2, noise=1.0)["noise"]
    assert noise["direction"] == "too small"
    assert noise["together"]["correlation"] > 0.8
    right = replay_pool(pool(together, seed), 2, noise=together.tolist())["noise"]
    assert right["direction"] is None
    assert right["verdicts"] == [None] * 6


def test_a_right_noise_is_rarely_called_too_small_in_any_direction() -> None:
    """20 000 pools, right noise: the verdict has probability at most 0.00005 each; false alarm below 1e-7."""
    rng = np.random.default_rng(6)
    covariance = correlated(3, 0.7) * np.outer([1.0, 10.0, 0.1], [1.0, 10.0, 0.1])
    root = np.linalg.cholesky(covariance)
    noise = Noise.of(covariance, 3)
    arms = np.repeat(np.arange(6), [1, 2, 3, 4, 5, 6])
    called = 0
    for _ in range(20_000):
        spread = spread_of(arms, rng.standard_normal((21, 3)) @ root.T, 6)
        called += spread.direction_verdict(noise) is not None or spread.column_verdicts(noise) != [None] * 3
    assert called <= binom.ppf(1 - 1e-7, 20_000, NOISE_PROBABILITY)


def test_one_column_has_no_other_direction() -> None:
    spread = Spread(np.array([[900.0]]), 20)
    assert spread.direction_verdict(Noise.of(1.0, 1)) is None
    assert spread.column_verdicts(Noise.of(1.0, 1)) == ["too small"]
    assert spread.most_correlated() is None
    assert spread.upper() == spread.upper_independent() == [10.5]  # sqrt(900 / 8.26), the 1 % point of χ² with 20


# What is proposed.


@pytest.mark.parametrize(("dim", "correlation"), [(2, 0.0), (2, -0.9), (6, 0.0), (6, 0.3), (6, 0.95)])
def test_what_is_proposed_is_large_enough_in_every_direction(dim: int, correlation: float) -> None:
    """2000 pools: too small with probability at most 0.01 each; false alarm below 1e-6."""
    rng = np.random.default_rng(8)
    scale = np.geomspace(0.01, 300.0, dim)
    truth = correlated(dim, correlation) * np.outer(scale, scale)
    root = np.linalg.cholesky(truth)
    bad = np.zeros(2, dtype=int)
    for _ in range(2000):
        spread = spread_of(ARMS, rng.standard_normal((60, dim)) @ root.T, 6)
        upper, covariance = spread.upper(), spread.upper_covariance()
        assert upper is not None
        for k, proposed in enumerate((np.diag(np.square(upper)), np.array(covariance))):
            white = (proposed - truth) / np.outer(scale, scale)
            assert (proposed == proposed.T).all()
            bad[k] += np.linalg.eigvalsh(white)[0] < 0.0
    assert bad.max() <= binom.ppf(1 - 1e-6, 2000, 0.01)


def test_what_is_proposed_for_independent_columns_bounds_all_of_them() -> None:
    """2000 pools with 6 columns: any too small with probability at most 0.01; false alarm below 1e-6."""
    rng = np.random.default_rng(9)
    bad = 0
    for _ in range(2000):
        upper = spread_of(ARMS, rng.standard_normal((60, 6)), 6).upper_independent()
        assert upper is not None
        bad += min(upper) < 1.0
    assert bad <= binom.ppf(1 - 1e-6, 2000, 0.01)
    assert bad >= binom.ppf(1e-6, 2000, 0.005)  # nor is it larger than it need be


def test_what_is_proposed_is_not_called_too_large() -> None:
    for correlation in (0.0, 0.9):
        content = pool(correlated(6, correlation), 3, repeats=200)
        spread = replay_pool(content, 2, noise=1.0)["noise"]
        for key in ("upper", "upper_covariance"):
            noise = replay_pool(content, 2, noise=spread[key])["noise"]
            assert (noise["verdicts"], noise["direction"]) == ([None] * 6, None)
        much = replay_pool(content, 2, noise=[2.0 * x for x in spread["upper"]])["noise"]
        assert much["verdicts"] == ["too large"] * 6


def test_with_too_few_repeats_nothing_is_proposed() -> None:
    content = {name: block[:1] for name, block in pool(np.eye(3), 0).items()} | {"i0": [[0.0, 0, 0], [1.0, 2, 3]]}
    noise = replay_pool(content, 2, noise=1.0)["noise"]
    assert (noise["freedom"], noise["upper"], noise["upper_covariance"], noise["together"]) == (1, None, None, None)
    assert noise["direction"] is None
    still = replay_pool({name: block * [1.0, 1.0, 0.0] for name, block in pool(np.eye(3), 0).items()}, 2, noise=1.0)[
        "noise"
    ]
    assert still["upper"][2] == 0.0  # a column that does not vary
    assert still["upper_covariance"] is None


def test_columns_are_said_to_vary_together_as_rarely_as_stated() -> None:
    """20 000 pools of independent columns, level 0.01 over all pairs; false alarm below 1e-6 each way."""
    rng = np.random.default_rng(12)
    called = sum(spread_of(ARMS, rng.standard_normal((60, 3)), 6).most_correlated() is not None for _ in range(20_000))
    assert binom.ppf(1e-6, 20_000, 0.008) <= called <= binom.ppf(1 - 1e-6, 20_000, 0.01)


def test_values_too_large_to_be_squared_say_so() -> None:
    huge = {name: block * 1e200 for name, block in pool(np.eye(2), 0).items()}
    with pytest.raises(TableError, match="too much to be squared: use larger units"):
        replay_pool(huge, 2, noise=1e200)
