"""What a round does to a test: bets, scores and factors, those of a known covariance or of a handed-in family.

The kernels of a known covariance are compiled into the planner; those of another family are called by their address
(`coterie.engine.croc.family`).
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled, inlined
from coterie.engine.croc.family import (
    BET,
    FACTOR,
    PULLS_NEEDED,
    SCORE,
    bet_at,
    factor_at,
    pulls_needed_at,
    score_at,
)
from coterie.engine.croc.state import EPOCHS, FLIGHT, Croc, Work
from coterie.engine.state import Floats

PRIOR_COST = 0.3
"""Log-evidence that a test with a known covariance is expected to lose to its prior, for each dimension."""


@compiled
def directed(total: Floats, guess: Floats, spread: float, weight: float) -> float:
    """log E of a test, known covariance: S = total, θ0 = guess, τ² = spread, n = weight (docs/CROC.md, section 4)."""
    square, along, length = 0.0, 0.0, 0.0
    for q in range(total.size):
        theta = guess[q]
        square += theta * theta
        along += theta * total[q]
        length += total[q] * total[q]
    growth = 1.0 + weight * spread
    # [‖θ0+τ²S‖²/(1+nτ²) − ‖θ0‖²]/(2τ²), multiplied out: no digits are lost when τ² is small or θ0 large.
    return (2.0 * along + spread * length - weight * square) / (2.0 * growth) - 0.5 * total.size * math.log(growth)


@compiled
def _handed_factor(
    address: int, contrast: Floats, guess: Floats, arm_scores: Floats, pool_scores: Floats, bet: Floats, kept: Floats,
    parameters: Floats, pulls: float, pool: float, spread: float, weight: float, home: int, k: int,
) -> float:  # fmt: skip
    """The factor of a handed-in family: a call of its own, so that the known covariance does not pay for it."""
    handed = (
        contrast, guess, arm_scores, pool_scores, bet, kept, parameters, pulls, pool, spread, weight, home, k,
    )  # fmt: skip
    return float(factor_at(address, handed))


@inlined
def use_contrast(
    s: Croc, w: Work, kept: Floats, arm_scores: Floats, pool_scores: Floats, f: int,
    pulls: float, pool: float, spread: float, before: float, home: int, k: int,
) -> float:  # fmt: skip
    """A round's factor for one test, with the contrast in w.contrast and θ0 in w.guess. INOUT: kept. Returns log E.

    `f`: the place of the round; `before`: the weight n of the test before the round.
    """
    v = 1.0 / pulls + 1.0 / pool
    if before == 0.0:  # numbers of an earlier epoch in this slot are not cleared: a weight of 0 says they do not count
        for i in range(kept.size):
            kept[i] = 0.0
    if w.kernels[FACTOR] == 0:
        for q in range(kept.size):
            kept[q] += w.contrast[q] / v
        value = directed(kept, w.guess, spread, before + 1.0 / v)
    else:
        value = _handed_factor(
            w.kernels[FACTOR], w.contrast, w.guess, arm_scores, pool_scores, s.round_bet[f], kept, w.parameters,
            pulls, pool, spread, before + 1.0 / v, home, k,
        )  # fmt: skip
    return value


@inlined
def pulls_needed(w: Work, level: float, square: float, pool: float, dim: int) -> float:
    """Pulls of an arm that a test at this level is expected to need, ‖θ‖² = square, against a pool of so many arms."""
    if w.kernels[PULLS_NEEDED] == 0:
        pulls = 2.0 * (level + PRIOR_COST * dim) / square
    else:
        pulls = pulls_needed_at(w.kernels[PULLS_NEEDED], (w.parameters, level, square, pool, dim))
    return pulls


@compiled
def fix_bet(s: Croc, w: Work, number: int, e: int) -> None:
    """Fix what the tests of a round will be judged by, from all results so far. OUT: s.round_bet. Work space: w."""
    for k in range(s.totals.size):
        name = s.frozen[e, s.representative[k]]  # the group's number in the candidate
        w.totals[name] = s.totals[k]
        for q in range(s.centers.shape[1]):
            w.centers[name, q] = s.centers[k, q]
    bet_at(w.kernels[BET], (w.centers, w.totals, w.parameters, s.round_bet[number % FLIGHT]))


@inlined
def score_result(s: Croc, w: Work, number: int, entry: int, arm: int, x: Floats) -> None:
    """A result of a round, x from the arm's origin, goes to the scores of its entry. INOUT: s.entry_scores."""
    if w.kernels[SCORE] != 0:
        _score(s, w, number, entry, arm, x)


@compiled
def _score(s: Croc, w: Work, number: int, entry: int, arm: int, x: Floats) -> None:
    """Hand a result to the family's kernel, in the coordinates of the centers. INOUT: s.entry_scores."""
    f = number % FLIGHT
    e = s.round_epoch[f] % EPOCHS
    if s.frozen_number[e] != s.round_epoch[f]:
        return  # the epoch is forgotten: nobody will use the round
    for q in range(w.contrast.size):
        w.contrast[q] = s.offset[arm, q] + x[q]
    handed = (w.contrast, s.round_bet[f], w.parameters, s.entry_scores[entry], s.frozen[e, arm])
    score_at(w.kernels[SCORE], handed)
