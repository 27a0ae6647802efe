"""Equal means only: results within bounds, of a bounded covariance, or symmetric (docs/EVIDENCE.md, 4 to 6).

All three bet on the contrast C of a round, whose mean is 0 if the means are equal:

- `bounded`: e = 1 + λ·C, with λ so small that e stays positive whatever the results are;
- `at_most`: e = (1 + x + x²/2)/(1 + w/2), x = θ·C/v, w = ‖θ‖²/v, in units of the covariance stated;
- `symmetric`: e = 2/(1 + e^(−2x)), x = θ·Σ̂⁻¹·C divided by the variance of C as the arms showed it before the round,
  clipped: an outlier must not lose more than a few rounds gain.

bet: G or U (K, d), f (K, K), and for `bounded` Δ² (K, K). parameters: K, d, then hi − lo of every number (`bounded`).
"""

from __future__ import annotations

import math
from typing import Any

from coterie.engine.compiled import Kernel
from coterie.engine.croc.family import BET_SIGNATURE, FACTOR_SIGNATURE, PULLS_NEEDED_SIGNATURE, Family

Array = Any

LEAST_TRUST = 0.3
"""The least factor by which the distance of two centers is shortened for its error."""
LARGEST_SIGN = 1.5
"""Bets on the sign of a contrast count for no more than this: they win at most log 2 in any case."""
LARGEST_LOSS = 0.95
"""The largest share that a bet on bounded results may lose in a round."""


def _bet(centers: Array, totals: Array, metric: Array, learned: Array, parameters: Array, bet: Array) -> None:
    """G = Σ̂⁻¹·Û, f, and Δ² if there is room for it."""
    n_groups, d = centers.shape
    f, apart = n_groups * d, n_groups * d + n_groups * n_groups
    for k in range(n_groups):
        for q in range(d):
            bet[k * d + q] = 0.0
        for i in range(d):
            along = 0.0
            for q in range(i + 1):
                along += metric[i, q] * centers[k, q]
            for q in range(i + 1):
                bet[k * d + q] += metric[i, q] * along
    for k in range(n_groups):
        for j in range(n_groups):
            square = 0.0
            for q in range(d):
                square += (bet[k * d + q] - bet[j * d + q]) * (centers[k, q] - centers[j, q])
            square = max(square, 1e-18)
            trust = 1.0 - d * (1.0 / totals[k] + 1.0 / totals[j]) / square
            bet[f + k * n_groups + j] = max(LEAST_TRUST, trust)
            if bet.size > apart:
                bet[apart + k * n_groups + j] = square


def _bet_in_units(centers: Array, totals: Array, metric: Array, learned: Array, parameters: Array, bet: Array) -> None:
    """U = Û and f, in units of the covariance stated."""
    n_groups, d = centers.shape
    for k in range(n_groups):
        for j in range(n_groups):
            square = 0.0
            for q in range(d):
                square += (centers[k, q] - centers[j, q]) ** 2
            trust = 1.0 - d * (1.0 / totals[k] + 1.0 / totals[j]) / max(square, 1e-18)
            bet[n_groups * d + k * n_groups + j] = max(LEAST_TRUST, trust)
        for q in range(d):
            bet[k * d + q] = centers[k, q]


def _bounded_factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    n_groups, d = int(parameters[0]), int(parameters[1])
    trust = bet[n_groups * d + home * n_groups + k]
    square = bet[n_groups * d + n_groups * n_groups + home * n_groups + k]
    size = trust / (1.0 / arm_pulls + 1.0 / pool_pulls + trust * trust * square)
    gain, worst = 0.0, 0.0
    for q in range(d):
        stake = size * (bet[home * d + q] - bet[k * d + q])
        gain += stake * contrast[q]
        worst += abs(stake) * parameters[2 + q]
    kept[0] += math.log1p(gain * min(1.0, LARGEST_LOSS / max(worst, 1e-300)))
    return float(kept[0])


def _at_most_factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    n_groups, d = int(parameters[0]), int(parameters[1])
    trust, v = bet[n_groups * d + home * n_groups + k], 1.0 / arm_pulls + 1.0 / pool_pulls
    x, w = 0.0, 0.0
    for q in range(d):
        theta = trust * (bet[home * d + q] - bet[k * d + q])
        x += theta * contrast[q] / v
        w += theta * theta / v
    kept[0] += math.log((1.0 + x + 0.5 * x * x) / (1.0 + 0.5 * w))
    return float(kept[0])


def _symmetric_factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    n_groups, d = int(parameters[0]), int(parameters[1])
    trust = bet[n_groups * d + home * n_groups + k]
    variance = arm_scores[0] / arm_pulls**2 + pool_scores[0] / pool_pulls**2
    x = 0.0
    for q in range(d):
        x += trust * (bet[home * d + q] - bet[k * d + q]) * contrast[q] / variance
    x = min(max(x, -LARGEST_SIGN), LARGEST_SIGN)
    kept[0] += math.log(2.0) - math.log1p(math.exp(-2.0 * x))
    return float(kept[0])


def _bounded_pulls(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    v = 1.0 + 1.0 / max(pool, 1e-9)
    return level / max(0.5 * square / (v + square), 1e-300)


def _at_most_pulls(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    scaled = square / (1.0 + 1.0 / max(pool, 1e-9))
    return level / max(math.log((1.0 + scaled + 0.5 * scaled * (1.0 + scaled)) / (1.0 + 0.5 * scaled)), 1e-300)


def _symmetric_pulls(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    v = 1.0 + 1.0 / max(pool, 1e-9)
    return level / max(-math.log(0.5 + 0.5 * math.exp(-min(square / v, 700.0))), 1e-300)


_BET = Kernel(_bet, BET_SIGNATURE)
_BET_IN_UNITS = Kernel(_bet_in_units, BET_SIGNATURE)
_BOUNDED_FACTOR = Kernel(_bounded_factor, FACTOR_SIGNATURE)
_BOUNDED_PULLS = Kernel(_bounded_pulls, PULLS_NEEDED_SIGNATURE)
_AT_MOST_FACTOR = Kernel(_at_most_factor, FACTOR_SIGNATURE)
_AT_MOST_PULLS = Kernel(_at_most_pulls, PULLS_NEEDED_SIGNATURE)
_SYMMETRIC_FACTOR = Kernel(_symmetric_factor, FACTOR_SIGNATURE)
_SYMMETRIC_PULLS = Kernel(_symmetric_pulls, PULLS_NEEDED_SIGNATURE)


def bounded(n_clusters: int, dim: int, widths: tuple[float, ...]) -> Family:
    """Evidence for results within bounds, hi − lo = `widths` for each number."""
    return Family(
        "bounded", pair_share=0.0, kept=1, bet_size=n_clusters * dim + 2 * n_clusters**2,
        parameters=(float(n_clusters), float(dim), *widths), estimated=True, shuffled=True, pools_by_growth=True,
        bet=_BET, factor=_BOUNDED_FACTOR, pulls_needed=_BOUNDED_PULLS,
    )  # fmt: skip


def at_most(n_clusters: int, dim: int) -> Family:
    """Evidence for results, in units of the covariance stated, that vary by no more than that."""
    return Family(
        "covariance at most", pair_share=0.0, kept=1, bet_size=n_clusters * dim + n_clusters**2,
        parameters=(float(n_clusters), float(dim)), bet=_BET_IN_UNITS, factor=_AT_MOST_FACTOR,
        pulls_needed=_AT_MOST_PULLS, shuffled=True, pools_by_growth=True,
    )  # fmt: skip


def symmetric(n_clusters: int, dim: int) -> Family:
    """Evidence for noise that is symmetric and may differ from arm to arm."""
    return Family(
        "symmetric", pair_share=0.0, kept=1, bet_size=n_clusters * dim + n_clusters**2, scores=1, arm_scales=True,
        parameters=(float(n_clusters), float(dim)), estimated=True, winsorised=True, shuffled=True,
        pools_by_growth=True, bet=_BET, factor=_SYMMETRIC_FACTOR, pulls_needed=_SYMMETRIC_PULLS,
    )  # fmt: skip
