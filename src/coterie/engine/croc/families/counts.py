"""Counts of successes: conditional odds (docs/EVIDENCE.md, 3).

Given how many of the trials of both sides succeed, equal rates make the arm's successes s hypergeometric, whatever the
rate is. So ψ^s divided by its hypergeometric mean has mean 1; ψ is the ratio of the odds of the two groups before the
round. Numbers of one result are independent: their factors are multiplied.

bet: L (K, d), logits of the rates; f (K, K). scores: successes, d numbers. parameters: K, d, trials of a result.
"""

from __future__ import annotations

import math
from typing import Any

from coterie.engine.compiled import Kernel, compiled
from coterie.engine.croc.family import (
    BET_SIGNATURE,
    FACTOR_SIGNATURE,
    PULLS_NEEDED_SIGNATURE,
    SCORE_SIGNATURE,
    Family,
)

Array = Any

LEAST_TRUST = 0.3
"""The least factor by which the distance of two centers is shortened for its error."""
NEGLIGIBLE = 1e-18


@compiled
def _stabilised(successes: float, trials: float) -> float:
    """The scale of the metric: the variance of a count on it is about 1, whatever the rate (Anscombe)."""
    return 2.0 * math.sqrt(trials + 0.5) * math.asin(math.sqrt((successes + 0.375) / (trials + 0.75)))


def _bet(centers: Array, totals: Array, metric: Array, learned: Array, parameters: Array, bet: Array) -> None:
    n_groups, d = centers.shape
    trials, f = parameters[2], n_groups * d
    for k in range(n_groups):
        for q in range(d):
            rate = (centers[k, q] * totals[k] + 0.5) / (trials * totals[k] + 1.0)
            bet[k * d + q] = math.log(rate / (1.0 - rate))
        for j in range(n_groups):
            square = 0.0
            for i in range(d):
                along = 0.0
                for q in range(i + 1):
                    along += metric[i, q] * (_stabilised(centers[k, q], trials) - _stabilised(centers[j, q], trials))
                square += along * along
            trust = 1.0 - d * (1.0 / totals[k] + 1.0 / totals[j]) / max(square, 1e-18)
            bet[f + k * n_groups + j] = max(LEAST_TRUST, trust)


def _score(
    position: Array, bet: Array, shared: Array, parameters: Array, scores: Array, round_scores: Array, home: int
) -> None:
    for q in range(position.size):
        scores[q] += position[q]


@compiled
def _log_mean(mine: float, its: float, successes: float, log_odds: float) -> float:
    """log E ψ^s for s successes among `mine` of the mine + its trials, of which `successes` succeed."""
    least, most = max(0.0, successes - its), min(mine, successes)
    if least == most:
        return least * log_odds
    mode = min(max(float(math.floor((successes + 1.0) * (mine + 1.0) / (mine + its + 2.0))), least), most)
    tilted, log_term = mode, 0.0  # of ψ^s·p(s), relative to p(mode): climb to its largest term
    plain_total, tilted_total = 1.0, 1.0
    for side in range(2):
        term, s = 1.0, mode
        while True:
            if side == 0:
                if s >= most:
                    break
                term *= (mine - s) * (successes - s) / ((s + 1.0) * (its - successes + s + 1.0))
                s += 1.0
            else:
                if s <= least:
                    break
                term *= s * (its - successes + s) / ((mine - s + 1.0) * (successes - s + 1.0))
                s -= 1.0
            plain_total += term
            if term < NEGLIGIBLE * plain_total:
                break
    # The tilted sum, from the largest term of it outwards.
    while True:
        moved = False
        if tilted < most:
            up = math.log((mine - tilted) * (successes - tilted) / ((tilted + 1.0) * (its - successes + tilted + 1.0)))
            if up + log_odds > 0.0:
                log_term += up
                tilted += 1.0
                moved = True
        if not moved and tilted > least:
            down = math.log(tilted * (its - successes + tilted) / ((mine - tilted + 1.0) * (successes - tilted + 1.0)))
            if down - log_odds > 0.0:
                log_term += down
                tilted -= 1.0
                moved = True
        if not moved:
            break
    top = log_term + tilted * log_odds
    odds = math.exp(log_odds)
    for side in range(2):
        term, s = 1.0, tilted
        while True:
            if side == 0:
                if s >= most:
                    break
                term *= odds * (mine - s) * (successes - s) / ((s + 1.0) * (its - successes + s + 1.0))
                s += 1.0
            else:
                if s <= least:
                    break
                term *= s * (its - successes + s) / ((mine - s + 1.0) * (successes - s + 1.0)) / odds
                s -= 1.0
            tilted_total += term
            if term < NEGLIGIBLE * tilted_total:
                break
    return top + math.log(tilted_total) - math.log(plain_total)


def _factor(
    contrast: Array, guess: Array, arm_scores: Array, pool_scores: Array, bet: Array, shared: Array, learned: Array,
    kept: Array, parameters: Array, arm_pulls: float, pool_pulls: float, spread: float, weight: float, level: float,
    share: float, home: int, k: int,
) -> float:  # fmt: skip
    n_groups, d, trials = int(parameters[0]), int(parameters[1]), parameters[2]
    trust = bet[n_groups * d + home * n_groups + k]
    for q in range(d):
        log_odds = trust * (bet[home * d + q] - bet[k * d + q])
        successes = arm_scores[q] + pool_scores[q]
        kept[0] += arm_scores[q] * log_odds
        kept[0] -= _log_mean(arm_pulls * trials, pool_pulls * trials, successes, log_odds)
    return float(kept[0])


def _pulls_needed(parameters: Array, level: float, square: float, pool: float, dim: int) -> float:
    """The growth by a pull is about ½·Δ²/v."""
    return 2.0 * level * (1.0 + 1.0 / max(pool, 1e-9)) / square


_KERNELS: dict[str, Any] = {
    "bet": Kernel(_bet, BET_SIGNATURE),
    "score": Kernel(_score, SCORE_SIGNATURE),
    "factor": Kernel(_factor, FACTOR_SIGNATURE),
    "pulls_needed": Kernel(_pulls_needed, PULLS_NEEDED_SIGNATURE),
}


def counts(n_clusters: int, dim: int, trials: int) -> Family:
    """Evidence for counts of successes out of so many trials."""
    return Family(
        f"counts out of {trials}", pair_share=0.0, kept=1, bet_size=n_clusters * dim + n_clusters**2, scores=dim,
        parameters=(float(n_clusters), float(dim), float(trials)), estimated=True, shuffled=True, from_zero=True,
        pools_by_growth=True, **_KERNELS,
    )  # fmt: skip
