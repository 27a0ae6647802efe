"""Families of evidence from outside the engine: tenants of the seam that `coterie.engine.croc.family` describes.

- `known_handed_in`: the known covariance once more, its kernels called by their address;
- `at_most`: equal means only, covariance at most V = I: e_r = (1 + x + x²/2)/(1 + w/2), and no pairs from the start;
- `exchangeable`: results of equal arms have the same law, whatever it is; one score for every two groups.
"""

from __future__ import annotations

import math
from typing import Any

from coterie.engine.compiled import Kernel
from coterie.engine.croc.family import (
    BET_SIGNATURE,
    FACTOR_SIGNATURE,
    PULLS_NEEDED_SIGNATURE,
    SCORE_SIGNATURE,
    Family,
)
from coterie.engine.croc.state import ALPHA

Array = Any

CLIP = 6.0


def _known_factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    """docs/CROC.md, section 4: the prior N(θ0, τ²·I), multiplied out."""
    v = 1.0 / arm_pulls + 1.0 / pool_pulls
    square, along, length = 0.0, 0.0, 0.0
    for q in range(contrast.size):
        kept[q] += contrast[q] / v
        square += guess[q] * guess[q]
        along += guess[q] * kept[q]
        length += kept[q] * kept[q]
    growth = 1.0 + weight * spread
    gain = 2.0 * along + spread * length - weight * square
    return float(gain / (2.0 * growth) - 0.5 * contrast.size * math.log(growth))


def _known_pulls(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    return 2.0 * (level + 0.3 * dim) / square


def _at_most_factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    """E x = 0 and E x² ≤ w for equal means and a covariance of at most I, whatever the law. parameters: c."""
    v = 1.0 / arm_pulls + 1.0 / pool_pulls
    x, w = 0.0, 0.0
    for q in range(contrast.size):
        x += parameters[0] * guess[q] * contrast[q] / v
        w += parameters[0] * parameters[0] * guess[q] * guess[q] / v
    kept[0] += math.log((1.0 + x + 0.5 * x * x) / (1.0 + 0.5 * w))
    return float(kept[0])


def _at_most_pulls(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    scaled = parameters[0] * square
    growth = math.log((1.0 + scaled + 0.5 * scaled * scaled) / (1.0 + 0.5 * parameters[0] * scaled))
    return level / max(growth, 1e-300)


def _exchangeable_bet(
    centers: Array, totals: Array, metric: Array, learned: Array, parameters: Array, bet: Array
) -> None:
    """Û of all groups: a score's direction and middle come from two of them."""
    for k in range(totals.size):
        for q in range(centers.shape[1]):
            bet[k * centers.shape[1] + q] = centers[k, q]


def _exchangeable_score(
    position: Array, bet: Array, shared: Array, parameters: Array, scores: Array, round_scores: Array, home: int
) -> None:
    """g of a result in every test that it can be in: as the arm's against k, and as the pool's for an arm of k."""
    dim = position.size
    n_groups = bet.size // dim
    for k in range(n_groups):
        along = 0.0
        for q in range(dim):
            mine, its = bet[home * dim + q], bet[k * dim + q]
            along += (mine - its) * (position[q] - 0.5 * (mine + its))
        along = min(max(along, -CLIP), CLIP)
        scores[k] += math.exp(along)
        scores[n_groups + k] += math.exp(-along)


def _exchangeable_factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    """The mean of g over the arm's results, by its mean over all of both sides."""
    n_groups = pool_scores.size // 2
    mine, its = arm_scores[k], pool_scores[n_groups + home]
    kept[0] += math.log(mine / arm_pulls) - math.log((mine + its) / (arm_pulls + pool_pulls))
    return float(kept[0])


def _exchangeable_pulls(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    q = 1.0 / (1.0 + max(pool, 1.0))
    return level / max(-math.log(q + (1.0 - q) * math.exp(-0.5 * square)), 1e-300)


KNOWN_FACTOR = Kernel(_known_factor, FACTOR_SIGNATURE)
KNOWN_PULLS = Kernel(_known_pulls, PULLS_NEEDED_SIGNATURE)
AT_MOST_FACTOR = Kernel(_at_most_factor, FACTOR_SIGNATURE)
AT_MOST_PULLS = Kernel(_at_most_pulls, PULLS_NEEDED_SIGNATURE)
EXCHANGEABLE_FACTOR = Kernel(_exchangeable_factor, FACTOR_SIGNATURE)
EXCHANGEABLE_PULLS = Kernel(_exchangeable_pulls, PULLS_NEEDED_SIGNATURE)
EXCHANGEABLE_BET = Kernel(_exchangeable_bet, BET_SIGNATURE)
EXCHANGEABLE_SCORE = Kernel(_exchangeable_score, SCORE_SIGNATURE)


def known_handed_in() -> Family:
    return Family("known covariance, handed in", pair_share=ALPHA, factor=KNOWN_FACTOR, pulls_needed=KNOWN_PULLS)


def at_most(c: float = 0.5) -> Family:
    return Family(
        "covariance at most I", pair_share=0.0, kept=1, parameters=(c,),
        factor=AT_MOST_FACTOR, pulls_needed=AT_MOST_PULLS,
    )  # fmt: skip


def exchangeable(n_clusters: int, dim: int) -> Family:
    return Family(
        "any noise", pair_share=0.0, kept=1, bet_size=n_clusters * dim, scores=2 * n_clusters,
        factor=EXCHANGEABLE_FACTOR, pulls_needed=EXCHANGEABLE_PULLS, bet=EXCHANGEABLE_BET, score=EXCHANGEABLE_SCORE,
    )  # fmt: skip
