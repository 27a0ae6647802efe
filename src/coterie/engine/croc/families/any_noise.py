"""Any noise: the exchangeable bet (docs/EVIDENCE.md, 1).

If the arms of a test have the same law, their results in a round are exchangeable: every assignment of the a + A
results to the two sides is equally likely. So any score that is larger for the results of the arm than for an average
assignment is evidence, whatever the law is. The score is the elementary symmetric polynomial of order min(a, J) of
g(x) = e^u, with u the log-likelihood ratio of the two groups as they look before the round: the linear one, and a
robust one for which a result far from both groups says nothing.

bet: w, the weight of the robust score; J; G (K, d); h (K); f (K, K); Δ (K, K). parameters: K, d, J.
learned: the share of far results, and the growth of the two scores so far.
"""

from __future__ import annotations

import math
from typing import Any

from coterie.engine.compiled import Kernel
from coterie.engine.croc.family import (
    BET_SIGNATURE,
    FACTOR_SIGNATURE,
    POOL_SIGNATURE,
    PULLS_NEEDED_SIGNATURE,
    SCORE_SIGNATURE,
    Family,
)
from coterie.engine.croc.state import entry_room

Array = Any

CLIP = 6.0
"""Log-likelihood ratios count for no more than this."""
FAR = math.exp(-6.125)
"""Density, relative to a group's center, of results that belong to no group: that of 3.5 standard deviations."""
LEAST_TRUST = 0.3
"""The least factor by which the distance of two centers is shortened for its error."""
ORDER = 16
"""J, the largest order of the polynomials …"""
ORDER_NUMBERS = 2**22
"""… halved as long as they would be more than so many numbers."""
LEAST_WEIGHT = 0.02
"""Of either score."""
FAR_EXPECTED, FAR_STEP, FAR_TRUST = 0.012, 0.008, 4.0
"""The robust score is trusted more if the share of far results exceeds the first, by up to FAR_TRUST in its logit."""
GROWTH_SHARE = 0.25
"""Of the growth of the robust score over the linear one that goes into the logit of its weight."""


def _bet(centers: Array, totals: Array, metric: Array, learned: Array, parameters: Array, bet: Array) -> None:
    n_groups, d = centers.shape
    g, h = 2, 2 + n_groups * d
    f, apart = h + n_groups, h + n_groups + n_groups * n_groups
    logit = FAR_TRUST * min(max((learned[0] - FAR_EXPECTED) / FAR_STEP, -1.0), 1.0)
    logit += GROWTH_SHARE * (learned[2] - learned[1])
    bet[0] = min(max(1.0 / (1.0 + math.exp(-min(max(logit, -40.0), 40.0))), LEAST_WEIGHT), 1.0 - LEAST_WEIGHT)
    bet[1] = parameters[2]
    for k in range(n_groups):
        bet[h + k] = 0.0
        for q in range(d):
            bet[g + k * d + q] = 0.0
        for i in range(d):
            along = 0.0  # coordinate i of T·Û
            for q in range(i + 1):
                along += metric[i, q] * centers[k, q]
            bet[h + k] += 0.5 * along * along
            for q in range(i + 1):
                bet[g + k * d + q] += metric[i, q] * along
    for k in range(n_groups):
        for j in range(n_groups):
            square = 0.0
            for q in range(d):
                square += (bet[g + k * d + q] - bet[g + j * d + q]) * (centers[k, q] - centers[j, q])
            square = max(square, 1e-18)
            trust = 1.0 - d * (1.0 / totals[k] + 1.0 / totals[j]) / square
            bet[f + k * n_groups + j] = max(LEAST_TRUST, trust)
            bet[apart + k * n_groups + j] = math.sqrt(square)


def _score(
    position: Array, bet: Array, shared: Array, parameters: Array, scores: Array, round_scores: Array, home: int
) -> None:
    n_groups, d, order = int(parameters[0]), int(parameters[1]), int(parameters[2])
    h = 2 + n_groups * d
    f, apart = h + n_groups, h + n_groups + n_groups * n_groups
    mine = -bet[h + home]
    for q in range(d):
        mine += bet[2 + home * d + q] * position[q]
    for k in range(n_groups):
        if k == home:
            continue
        its = -bet[h + k]
        for q in range(d):
            its += bet[2 + k * d + q] * position[q]
        trust, gap = bet[f + home * n_groups + k], bet[apart + home * n_groups + k]
        along = (mine - its) / gap
        near, other = math.exp(-0.5 * (along - 0.5 * gap) ** 2), math.exp(-0.5 * (along + 0.5 * gap) ** 2)
        linear = min(max(trust * gap * along, -CLIP), CLIP)
        robust = min(max(trust * math.log((near + FAR) / (other + FAR)), -CLIP), CLIP)
        for which in range(4):
            u = linear if which < 2 else robust
            value = math.exp(u if which % 2 == 0 else -u)
            first = (which * n_groups + k) * order
            for j in range(order - 1, 0, -1):
                if scores[first + j - 1] > 0.0:
                    scores[first + j] += value * scores[first + j - 1]
            scores[first] += value


def _pool(scores: Array, parameters: Array, pooled: Array) -> None:
    order = int(parameters[2])
    for first in range(0, scores.size, order):
        degree = 0  # of the arm: its results in the round, at most J
        while degree < order and scores[first + degree] > 0.0:
            degree += 1
        for j in range(order - 1, -1, -1):
            total = pooled[first + j] + scores[first + j]
            for i in range(max(j - degree, 0), j):
                total += pooled[first + i] * scores[first + j - 1 - i]
            pooled[first + j] = total


def _factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    n_groups, order = int(parameters[0]), int(parameters[2])
    used = int(min(arm_pulls, order))
    growth = 0.0
    for which in range(2):
        mine, its = ((2 * which) * n_groups + k) * order, ((2 * which + 1) * n_groups + home) * order
        everything = arm_scores[mine + used - 1] + pool_scores[its + used - 1]
        for i in range(used - 1):
            everything += arm_scores[mine + i] * pool_scores[its + used - 2 - i]
        value = math.log(arm_scores[mine + used - 1] / everything)
        for i in range(used):  # binom(a+A, j)/binom(a, j)
            value += math.log((arm_pulls + pool_pulls - i) / (arm_pulls - i))
        learned[1 + which] += value
        growth += (bet[0] if which == 1 else 1.0 - bet[0]) * math.exp(value)
    kept[0] += math.log(growth)
    return float(kept[0])


def _pulls_needed(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    """The growth by a pull is about −log(q + (1−q)·e^(−Δ²/2)), with q = 1/(1+A)."""
    q = 1.0 / (1.0 + max(pool, 1e-9))
    return level / max(-math.log(q + (1.0 - q) * math.exp(-0.5 * min(square, 4.0 * CLIP))), 1e-300)


_KERNELS: dict[str, Any] = {
    "bet": Kernel(_bet, BET_SIGNATURE),
    "score": Kernel(_score, SCORE_SIGNATURE),
    "pool": Kernel(_pool, POOL_SIGNATURE),
    "factor": Kernel(_factor, FACTOR_SIGNATURE),
    "pulls_needed": Kernel(_pulls_needed, PULLS_NEEDED_SIGNATURE),
}


def any_noise(n_arms: int, n_clusters: int, dim: int) -> Family:
    """Evidence that needs no model of the noise."""
    order = ORDER
    while order > 1 and 4 * n_clusters * order * entry_room(n_arms) > ORDER_NUMBERS:
        order //= 2
    return Family(
        "any noise", pair_share=0.0, kept=1, bet_size=2 + n_clusters * (dim + 1) + 2 * n_clusters**2,
        scores=4 * n_clusters * order, learned=3, parameters=(float(n_clusters), float(dim), float(order)),
        estimated=True, winsorised=True, shuffled=True, pools_by_growth=True, **_KERNELS,
    )  # fmt: skip
