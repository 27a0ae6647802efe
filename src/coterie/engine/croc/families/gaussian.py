"""Gaussian noise whose covariance is unknown and common to all arms (docs/EVIDENCE.md, 2).

At the freeze each two groups l, k get a direction η = Σ̂⁻¹(Û_l − Û_k)/Δ̂. All results of the epoch's rounds tell how
large the variance ω along η is: R = Σu², u = η·(x − the center of its group before the round). A test bets t = η·θ on
its contrasts, G = Σ (2t·(η·C) − t²)/v, and pays for not knowing ω:
log e = min over y > 0 of κ·log Σ_λ w_λ·(1+λ)^(ν/2)·e^(−λRy) + G·y.

bet: U (K, d), f (K, K). shared: G (K, d), Δ (K, K), then R (K, K) and ν. round scores: Σu² (K, K), and K numbers of
work space. parameters: K, d, 1 if the noise is the same in all directions.
"""

from __future__ import annotations

import math
from typing import Any

from coterie.engine.compiled import Kernel
from coterie.engine.croc.family import (
    BET_SIGNATURE,
    DIAGONAL,
    FACTOR_SIGNATURE,
    FREEZE_SIGNATURE,
    FULL,
    GATHER_SIGNATURE,
    PULLS_NEEDED_SIGNATURE,
    QUALITY_SIGNATURE,
    SCALAR,
    SCORE_SIGNATURE,
    Family,
)
from coterie.engine.croc.state import ALPHA, VARIANCE_SHARE

Array = Any

LEAST_TRUST = 0.3
"""The least factor by which the distance of two centers is shortened for its error."""
HALVINGS = 13
"""λ = 8, 4, …, 2⁻⁹, each with the weight ½/HALVINGS, beside λ = 0 with the weight ½."""
LARGEST = 8.0
NEWTON_STEPS = 60
PRECISION = 1e-11


def _freeze(centers: Array, totals: Array, metric: Array, parameters: Array, shared: Array) -> None:
    n_groups, d = centers.shape
    apart = n_groups * d
    for i in range(shared.size):
        shared[i] = 0.0
    for k in range(n_groups):
        for i in range(d):
            along = 0.0
            for q in range(i + 1):
                along += metric[i, q] * centers[k, q]
            for q in range(i + 1):
                shared[k * d + q] += metric[i, q] * along
    for k in range(n_groups):
        for j in range(n_groups):
            square = 0.0
            for q in range(d):
                square += (shared[k * d + q] - shared[j * d + q]) * (centers[k, q] - centers[j, q])
            shared[apart + k * n_groups + j] = math.sqrt(max(square, 1e-18))


def _bet(centers: Array, totals: Array, metric: Array, learned: Array, parameters: Array, bet: Array) -> None:
    n_groups, d = centers.shape
    f = n_groups * d
    for k in range(n_groups):
        for q in range(d):
            bet[k * d + q] = centers[k, q]
        for j in range(n_groups):
            square = 0.0
            for i in range(d):
                along = 0.0
                for q in range(i + 1):
                    along += metric[i, q] * (centers[k, q] - centers[j, q])
                square += along * along
            trust = 1.0 - d * (1.0 / totals[k] + 1.0 / totals[j]) / max(square, 1e-18)
            bet[f + k * n_groups + j] = max(LEAST_TRUST, trust)


def _score(
    position: Array, bet: Array, shared: Array, parameters: Array, scores: Array, round_scores: Array, home: int
) -> None:
    n_groups, d = int(parameters[0]), int(parameters[1])
    apart, work = n_groups * d, n_groups * n_groups
    if parameters[2] == 1.0:
        square = 0.0
        for q in range(d):
            square += (position[q] - bet[home * d + q]) ** 2
        for k in range(n_groups):
            for j in range(k):
                length = 0.0
                for q in range(d):
                    length += (shared[k * d + q] - shared[j * d + q]) ** 2
                round_scores[k * n_groups + j] += square * length / shared[apart + k * n_groups + j] ** 2
        return
    for k in range(n_groups):
        along = 0.0
        for q in range(d):
            along += shared[k * d + q] * (position[q] - bet[home * d + q])
        round_scores[work + k] = along
    for k in range(n_groups):
        for j in range(k):
            u = (round_scores[work + k] - round_scores[work + j]) / shared[apart + k * n_groups + j]
            round_scores[k * n_groups + j] += u * u


def _gather(round_scores: Array, results: float, parameters: Array, shared: Array) -> None:
    n_groups, d = int(parameters[0]), int(parameters[1])
    first = n_groups * d + n_groups * n_groups
    for i in range(n_groups * n_groups):
        shared[first + i] += round_scores[i]
    shared[first + n_groups * n_groups] += results * (d if parameters[2] == 1.0 else 1.0)


def _factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    n_groups, d = int(parameters[0]), int(parameters[1])
    apart = n_groups * d
    gap = shared[apart + home * n_groups + k]
    along, step = 0.0, 0.0
    for q in range(d):
        direction = (shared[home * d + q] - shared[k * d + q]) / gap
        along += direction * contrast[q]
        step += direction * (bet[home * d + q] - bet[k * d + q])
    step *= bet[apart + home * n_groups + k]
    kept[0] += (2.0 * step * along - step * step) / (1.0 / arm_pulls + 1.0 / pool_pulls)
    gain = kept[0]
    high, low = max(home, k), min(home, k)
    squares = shared[apart + n_groups * n_groups + high * n_groups + low]
    degrees = shared[apart + 2 * n_groups * n_groups]
    if gain <= 0.0 or squares <= 0.0:
        return -1e9
    # κ·log Σ w·(1+λ)^(ν/2)·e^(−λRy) + G·y is convex: Newton in log y, kept within a bracket.
    y, below, above = 0.5 * degrees / squares, 0.0, math.inf
    value = 0.0
    for attempt in range(NEWTON_STEPS):
        largest = -math.inf
        for i in range(HALVINGS):
            rate = LARGEST / 2.0**i
            largest = max(largest, 0.5 * degrees * math.log1p(rate) - rate * squares * y - math.log(HALVINGS))
        largest = max(largest, 0.0)
        total, first, second = math.exp(-largest), 0.0, 0.0
        for i in range(HALVINGS):
            rate = LARGEST / 2.0**i
            exponent = 0.5 * degrees * math.log1p(rate) - rate * squares * y - math.log(HALVINGS) - largest
            if exponent > -45.0:
                term = math.exp(exponent)
                total += term
                first += rate * term
                second += rate * rate * term
        value = share * (math.log(0.5 * total) + largest) + gain * y
        if attempt == 0 and value < level:
            return float(value)  # the minimum is not above it
        mean = first / total
        slope = gain - share * squares * mean
        if slope > 0.0:
            above = y
        else:
            below = y
        curve = share * squares * squares * (second / total - mean * mean)
        moved = y - slope / curve if curve > 0.0 else 2.0 * y
        if not (moved > below and moved < above):
            moved = 2.0 * y if above == math.inf else 0.5 * (below + above)
        if abs(moved - y) <= PRECISION * y:
            return float(value)
        y = moved
    return float(value)


def _quality(
    centers: Array, metric: Array, scatter: Array, degrees: float, parameters: Array, shared: Array, home: int, k: int
) -> float:
    """The squared correlation of the frozen direction with the one that the results so far point to."""
    n_groups, d = centers.shape
    gap = shared[n_groups * d + home * n_groups + k]
    along, spread, square = 0.0, 0.0, 0.0
    for i in range(d):
        direction = (shared[home * d + i] - shared[k * d + i]) / gap
        along += direction * (centers[home, i] - centers[k, i])
        step = 0.0
        for q in range(i + 1):
            other = (shared[home * d + q] - shared[k * d + q]) / gap
            spread += direction * other * scatter[i, q] * (1.0 if q == i else 2.0) / degrees
            step += metric[i, q] * (centers[home, q] - centers[k, q])
        square += step * step
    return along * along / max(spread * square, 1e-300) if along > 0.0 else 0.0


def _pulls_needed(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    """The growth by a pull is about ½·Δ²/v."""
    return 2.0 * (level + 0.7) * (1.0 + 1.0 / max(pool, 1e-9)) / square


_KERNELS: dict[str, Any] = {
    "bet": Kernel(_bet, BET_SIGNATURE),
    "score": Kernel(_score, SCORE_SIGNATURE),
    "factor": Kernel(_factor, FACTOR_SIGNATURE),
    "freeze": Kernel(_freeze, FREEZE_SIGNATURE),
    "gather": Kernel(_gather, GATHER_SIGNATURE),
    "pulls_needed": Kernel(_pulls_needed, PULLS_NEEDED_SIGNATURE),
    "quality": Kernel(_quality, QUALITY_SIGNATURE),
}


def gaussian(n_clusters: int, dim: int, shape: str) -> Family:
    """Evidence for Gaussian noise of this shape."""
    pairs = n_clusters**2
    return Family(
        f"Gaussian noise, covariance unknown ({shape})", pair_share=0.0 if shape == "full" else ALPHA, kept=1,
        variance_share=0.0 if shape == "full" else VARIANCE_SHARE,
        bet_size=n_clusters * dim + pairs, round_scores=pairs + n_clusters, shared=n_clusters * dim + 2 * pairs + 1,
        parameters=(float(n_clusters), float(dim), float(shape == "scalar")), estimated=True, shuffled=True,
        pools_by_growth=True,
        metric_shape={"full": FULL, "diagonal": DIAGONAL, "scalar": SCALAR}[shape], **_KERNELS,
    )  # fmt: skip
