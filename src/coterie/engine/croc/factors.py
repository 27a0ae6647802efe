"""What a round does to a test: bets, scores and factors, those of a known covariance or of a handed-in family.

The kernels of a known covariance are compiled into the planner; those of another family are called by their address
(`coterie.engine.croc.family`).
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.family import (
    BET,
    FACTOR,
    FREEZE,
    GATHER,
    POOL,
    PULLS_NEEDED,
    QUALITY,
    SCORE,
    bet_at,
    factor_at,
    freeze_at,
    gather_at,
    pool_at,
    pulls_needed_at,
    quality_at,
    score_at,
)
from coterie.engine.croc.metric import arm_variance, raw_centers
from coterie.engine.croc.state import (
    ARM_SCALES,
    DEGREES,
    EPOCHS,
    FAR_SHARE,
    FIRST_SHARE,
    FLIGHT,
    FREEZES,
    LOOKED,
    METRIC,
    WINSORISED,
    Croc,
    T,
    Work,
)
from coterie.engine.state import Floats

STALE_GROWTH, STALE_LOSS = 1.5, 1.15
"""An epoch may be stale if there are this many times the results of its freeze, and a new one needs less by this."""
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
    address: int, contrast: Floats, guess: Floats, arm_scores: Floats, pool_scores: Floats, bet: Floats,
    shared: Floats, learned: Floats, kept: Floats, parameters: Floats, pulls: float, pool: float, spread: float,
    weight: float, level: float, share: float, home: int, k: int,
) -> float:  # fmt: skip
    """The factor of a handed-in family: a call of its own, so that the known covariance does not pay for it."""
    handed = (
        contrast, guess, arm_scores, pool_scores, bet, shared, learned, kept, parameters, pulls, pool, spread, weight,
        level, share, home, k,
    )  # fmt: skip
    return float(factor_at(address, handed))


@compiled
def use_contrast(
    s: Croc, w: Work, kept: Floats, arm_scores: Floats, pool_scores: Floats, f: int, e: int,
    pulls: float, pool: float, spread: float, before: float, level: float, home: int, k: int,
) -> float:  # fmt: skip
    """A round's factor for one test, with the contrast in w.contrast and θ0 in w.guess. INOUT: kept. Returns log E.

    `f`, `e`: the places of the round and its epoch; `before`: the weight n of the test before the round; `level`: what
    the test has to reach.
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
            w.kernels[FACTOR], w.contrast, w.guess, arm_scores, pool_scores, s.round_bet[f], s.shared[e], s.learned,
            kept, w.parameters, pulls, pool, spread, before + 1.0 / v, level, level / s.level[e], home, k,
        )  # fmt: skip
        kept[kept.size - 1] = value
    return value


@compiled
def pulls_needed(w: Work, level: float, square: float, pool: float, dim: int) -> float:
    """Pulls of an arm that a test at this level is expected to need, ‖θ‖² = square, against a pool of so many arms."""
    if w.kernels[PULLS_NEEDED] == 0:
        pulls = 2.0 * (level + PRIOR_COST * dim) / square
    else:
        pulls = pulls_needed_at(w.kernels[PULLS_NEEDED], (w.parameters, level, square, pool, dim))
    return pulls


@compiled
def _candidate_centers(s: Croc, w: Work, e: int) -> None:
    """Û and W of the groups of epoch e's candidate, which the estimate is, from all results so far. OUT: w.raw, totals.

    In the units in which results come.
    """
    if s.ints[METRIC] == 1:
        raw_centers(s, w, e)
        return
    for k in range(s.totals.size):
        name = s.frozen[e, s.representative[k]]  # the group's number in the candidate
        w.totals[name] = s.totals[k]
        for q in range(s.centers.shape[1]):
            w.raw[name, q] = s.centers[k, q]


@compiled
def fix_bet(s: Croc, w: Work, number: int, e: int) -> None:
    """Fix what the tests of a round will be judged by, from all results so far. OUT: s.round_bet. Work space: w."""
    f = number % FLIGHT
    _candidate_centers(s, w, e)
    if s.ints[WINSORISED] == 1 and s.learned.size > 0:
        s.learned[0] = s.numbers[FAR_SHARE]
    bet_at(w.kernels[BET], (w.raw, w.totals, s.metric, s.learned, w.parameters, s.round_bet[f]))
    if s.ints[ARM_SCALES] == 1:
        for i in range(s.round_first[f], s.round_first[f] + s.round_size[f]):
            s.entry_scores[i, 0] = s.entry_pulls[i] * arm_variance(s, s.entry_arm[i])


@compiled
def fix_shared(s: Croc, w: Work, e: int) -> None:
    """Fix what the tests of a new epoch share, if the family has such numbers. OUT: s.shared."""
    if w.kernels[FREEZE] != 0:
        _candidate_centers(s, w, e)
        freeze_at(w.kernels[FREEZE], (w.raw, w.totals, s.metric, w.parameters, s.shared[e]))


@compiled
def is_stale(s: Croc, w: Work, e: int) -> bool:
    """Whether what was frozen with epoch e is so poor by now that its candidate had better be frozen again.

    A new epoch begins at nothing, and its level is higher; so the unmet tests of the old one must need more than that.
    """
    if w.kernels[QUALITY] == 0 or s.ints[T] < STALE_GROWTH * max(s.frozen_at[e], s.ints[LOOKED]):
        return False
    s.ints[LOOKED] = s.ints[T]
    _candidate_centers(s, w, e)
    last, needed, fresh = s.sum_group.shape[3] - 1, 0.0, math.log(1.0 / (1.0 - FIRST_SHARE))
    for k in range(s.totals.size):
        for j in range(s.totals.size):
            w.square[k, j] = 0.0
    for m in range(s.labels.size):
        home = s.frozen[e, m]
        for k in range(s.totals.size):
            if k == home or s.met_core[e, m, k] == 1:
                continue
            if w.square[home, k] == 0.0:
                handed = (w.raw, s.metric, s.scatter, float(s.ints[DEGREES]), w.parameters, s.shared[e], home, k)
                w.square[home, k] = max(quality_at(w.kernels[QUALITY], handed), 1e-6)
            found = s.sum_core[e, m, k, last] if s.weight_core[e, m, k] > 0.0 else 0.0
            level = s.level[e] if s.in_core[e, m] == 1 else 0.5 * s.level[e]
            needed = max(needed, (1.0 - max(found, 0.0) / level) / w.square[home, k])
    level = s.level[e] + (s.ints[FREEZES] - s.frozen_number[e]) * fresh  # of a new epoch
    return bool(needed * s.level[e] > STALE_LOSS * level)


@compiled
def gather_round(s: Croc, w: Work, f: int, e: int) -> None:
    """A complete round adds to what the tests of its epoch share. INOUT: s.shared."""
    if w.kernels[GATHER] != 0:
        gather_at(w.kernels[GATHER], (s.round_scores[f], float(s.round_pulls[f]), w.parameters, s.shared[e]))


@compiled
def add_scores(w: Work, scores: Floats, pooled: Floats) -> None:
    """Take the scores of an arm into those of a pool. INOUT: pooled."""
    if w.kernels[POOL] == 0:
        for q in range(pooled.size):
            pooled[q] += scores[q]
    else:
        pool_at(w.kernels[POOL], (scores, w.parameters, pooled))


@compiled
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
    handed = (
        w.contrast, s.round_bet[f], s.shared[e], w.parameters, s.entry_scores[entry], s.round_scores[f],
        s.frozen[e, arm],
    )  # fmt: skip
    score_at(w.kernels[SCORE], handed)
