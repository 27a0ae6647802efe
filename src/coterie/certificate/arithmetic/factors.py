"""The evidence of frozen tests where the noise is not known: what each round multiplies it by.

docs/EVIDENCE.md, sections 3 to 8, has the proofs: each factor has mean 1 at most if the arms of the test are equal. In
all of them C is the mean of the arm's results minus that of the pool's, of a and A results, and v = 1/a + 1/A.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.arithmetic import variance
from coterie.certificate.arithmetic.bets import SCORES, BetRecord, BetRound, Sides, padded, sides_of
from coterie.certificate.arithmetic.counts import log_mean_power
from coterie.certificate.freezes import Freeze
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import (
    AnyNoise,
    AtMost,
    Bounded,
    Counts,
    Exponential,
    Gaussian,
    Poisson,
    Statement,
    Symmetric,
)

MOST_AT_STAKE = 0.95  # of a bet on bounded results
LARGEST_SIGN = 1.5  # |x| of a bet on the sign of a contrast is clipped here
LARGEST_SCORE = 6.0  # |log g| of an exchangeable bet is clipped here
SMALL_BET = 0.1  # f of small bets on the shape
FLOOR = 6.125  # −log κ, of the robust score: e^{−3.5²/2}

_CHUNK = 2**20


def betted(
    record: BetRecord,
    freeze: Freeze,
    rounds: Sequence[BetRound],
    pools: str,
    arms: IntArray,
    others: IntArray,
    last: IntArray,
    half: NDArray[np.bool_],
) -> FloatArray:
    """log e of frozen tests, each after the round `last`: arms against whole groups, against cores, or arms.

    `pools` is "group", "core" or "arm" and says what `others` counts; `rounds` are those that may be used, all of them
    complete; `half` says which tests are at half of the level. An arm must not be tested against its own group.
    """
    stated = record.noise.statement
    if isinstance(stated, Gaussian):
        bet, share = record.freeze_bets[freeze.number], np.where(half, 0.5, 1.0)
        return variance.evidence(rounds, freeze, bet, stated.shape, pools, arms, others, last, share)
    mixed = isinstance(stated, AnyNoise) and stated.shape
    total = np.zeros((len(SCORES) if mixed else 1, arms.size))  # log e of each process that is mixed
    for bet_round in rounds:
        sides = sides_of(bet_round, freeze, pools, arms, others, np.flatnonzero(last >= bet_round.number))
        if sides.tests.size > 0:
            total[0, sides.tests] += log_factors(stated, bet_round, sides)
            if mixed:
                total[1:, sides.tests] += shaped(bet_round, sides)
    if not mixed:
        return np.asarray(total[0])
    weights = record.freeze_bets[freeze.number].parts["weights"]
    with np.errstate(divide="ignore"):  # a process may have no weight
        return np.asarray(np.logaddexp.reduce(np.log(weights)[:, None] + total, axis=0))


def log_factors(stated: Statement, bet_round: BetRound, sides: Sides) -> FloatArray:
    """What a round adds to log e of its tests, of a family whose evidence is a product over rounds."""
    if isinstance(stated, Counts):
        return counts(bet_round, sides, stated)
    if isinstance(stated, Poisson | Exponential):
        return rates(bet_round, sides, events=isinstance(stated, Poisson))
    if isinstance(stated, Bounded):
        return bounded(bet_round, sides, stated)
    if isinstance(stated, AtMost):
        return at_most(bet_round, sides)
    if isinstance(stated, Symmetric):
        return symmetric(bet_round, sides)
    return exchangeable(bet_round, sides)


def counts(bet_round: BetRound, sides: Sides, stated: Counts) -> FloatArray:
    """Conditional odds: Π_q ψ_q^s / E[ψ_q^s], s hypergeometric given all successes of both sides."""
    parts = bet_round.bet.parts
    fraction = parts["f"][sides.own, sides.other]
    log_odds = fraction[:, None] * (parts["L"][sides.own] - parts["L"][sides.other])  # log ψ
    a, pulls = sides.counts
    of_arm, of_pool = sides.totals(bet_round.values)
    total = np.zeros(sides.tests.size)
    for q in range(of_arm.shape[1]):
        expected = log_mean_power(
            log_odds[:, q], a * stated.trials, pulls * stated.trials, of_arm[:, q] + of_pool[:, q]
        )
        total += of_arm[:, q] * log_odds[:, q] - expected
    return total


def rates(bet_round: BetRound, sides: Sides, events: bool) -> FloatArray:
    """Events: Π_q ψ_q^s / E[ψ_q^s], s binomial given all events of both sides. Times: Π_q of densities of the share."""
    parts = bet_round.bet.parts
    fraction = parts["f"][sides.own, sides.other]
    log_ratio = fraction[:, None] * (parts["L"][sides.own] - parts["L"][sides.other])  # log ψ
    a, pulls = (count[:, None] for count in sides.counts)
    of_arm, of_pool = sides.totals(bet_round.values)
    if events:
        log_mean = np.logaddexp(np.log(a) + log_ratio, np.log(pulls)) - np.log(a + pulls)  # of ψ, of a single event
        logs = of_arm * log_ratio - (of_arm + of_pool) * log_mean
    else:
        tilted = np.logaddexp(np.log(of_arm) + log_ratio, np.log(of_pool)) - np.log(of_arm + of_pool)  # 1 − B + ψ·B
        logs = a * log_ratio - (a + pulls) * tilted
    return np.asarray(logs.sum(axis=1))


def bounded(bet_round: BetRound, sides: Sides, stated: Bounded) -> FloatArray:
    """Betting: 1 + λ·C, with λ so small that it is at least 0.05 whatever the results."""
    parts = bet_round.bet.parts
    fraction, square = parts["f"][sides.own, sides.other], parts["Δ²"][sides.own, sides.other]
    gap = parts["G"][sides.own] - parts["G"][sides.other]
    stake = gap * (fraction / (sides.spread + fraction**2 * square))[:, None]  # λ
    at_stake = np.abs(stake) @ np.broadcast_to(np.subtract(stated.hi, stated.lo), gap.shape[1])
    stake *= np.minimum(1.0, MOST_AT_STAKE / np.where(at_stake > 0.0, at_stake, 1.0))[:, None]
    return np.asarray(np.log1p(np.einsum("id,id->i", stake, sides.contrast(bet_round.positions))))


def jointly_bounded(
    record: BetRecord, freeze: Freeze, rounds: Sequence[BetRound], arms: IntArray, last: IntArray
) -> FloatArray:
    """log Π(1 + λ·C + λ'·C') of two contrasts of arms at a time: (n, 4) arms, each after the cell `last`.

    docs/BLOCKS.md, section 5. λ = f·(G_l−G_k)/(v + f²Δ² + f'²Δ'²), both smaller by one factor if more than 0.95 would
    be at stake; a cell without one of the arms has no contrast of these two.
    """
    stated = record.noise.statement
    assert isinstance(stated, Bounded)
    width = np.broadcast_to(np.subtract(stated.hi, stated.lo), record.noise.dim)
    total, n = np.zeros(len(arms)), len(arms)
    for cell in rounds:
        use = np.flatnonzero(last >= cell.number)
        stakes: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]] = []  # tests, f·(G_l−G_k), C, v
        squares = np.zeros(n)
        for pair in (arms[:, :2], arms[:, 2:]):
            sides = sides_of(cell, freeze, "arm", pair[:, 0], pair[:, 1], use)
            parts = cell.bet.parts
            fraction = parts["f"][sides.own, sides.other]
            squares[sides.tests] += fraction**2 * parts["Δ²"][sides.own, sides.other]
            gap = fraction[:, None] * (parts["G"][sides.own] - parts["G"][sides.other])
            stakes.append((sides.tests, gap, sides.contrast(cell.positions), sides.spread))
        gain, risk = np.zeros(n), np.zeros(n)
        for tests, gap, contrast, spread in stakes:
            stake = gap / (spread + squares[tests])[:, None]
            gain[tests] += np.einsum("id,id->i", stake, contrast)
            risk[tests] += np.abs(stake) @ width
        gain *= np.where(risk > MOST_AT_STAKE, MOST_AT_STAKE / np.maximum(risk, MOST_AT_STAKE), 1.0)
        total += np.log1p(gain)
    return total


def at_most(bet_round: BetRound, sides: Sides) -> FloatArray:
    """(1 + x + x²/2)/(1 + w/2) with x = θ·C/v and w = ‖θ‖²/v, in units of the covariance stated."""
    parts, spread = bet_round.bet.parts, sides.spread
    theta = parts["f"][sides.own, sides.other][:, None] * (parts["U"][sides.own] - parts["U"][sides.other])
    x = np.einsum("id,id->i", theta, sides.contrast(bet_round.positions)) / spread
    most = np.einsum("id,id->i", theta, theta) / spread  # w, the largest mean of x²
    return np.asarray(np.log1p(x + 0.5 * x**2) - np.log1p(0.5 * most))


def symmetric(bet_round: BetRound, sides: Sides) -> FloatArray:
    """2/(1 + e^{−2x}), x = f·(G_l−G_k)·C/(s_m²/a + Σ_q a_q·s_q²/A²) within ±1.5, the arms q of the pool."""
    parts = bet_round.bet.parts
    variance = np.full(int(bet_round.listed.max(initial=0)) + 1, np.nan)
    variance[bet_round.listed] = parts["s²"]
    a, pulls = sides.counts
    of_arm, of_pool = sides.totals(variance[bet_round.arms][:, None])  # a·s_m², and Σ_q a_q·s_q²
    direction = parts["f"][sides.own, sides.other][:, None] * (parts["G"][sides.own] - parts["G"][sides.other])
    seen = np.einsum("id,id->i", direction, sides.contrast(bet_round.positions))
    x = seen / (of_arm[:, 0] / a**2 + of_pool[:, 0] / pulls**2)
    return np.asarray(np.log(2.0) - np.logaddexp(0.0, -2.0 * np.clip(x, -LARGEST_SIGN, LARGEST_SIGN)))


# Exchangeable bets: docs/EVIDENCE.md, section 3.


def exchangeable(bet_round: BetRound, sides: Sides) -> FloatArray:
    """Any noise: log of (1−w)·e_linear + w·e_robust for each test.

    If all arms of a test have the same distribution, every way to share out its results to the two sides is equally
    likely. So with j = min(a, J), J fixed with the bet: the mean of Π g over all choices of j of the arm's results has
    the mean of Π g over all choices of j of *all* results as its mean, for any g fixed before. So their ratio is fair.
    """
    robust = float(bet_round.bet.parts["w"])
    linear_log, robust_log = _log_ratios(bet_round, sides, _location_scores)
    with np.errstate(divide="ignore"):  # either may have no weight
        return np.asarray(np.logaddexp(np.log1p(-robust) + linear_log, np.log(robust) + robust_log))


def shaped(bet_round: BetRound, sides: Sides) -> FloatArray:
    """(2, tests): log e of the score of the shape, and of small bets on it, as `exchangeable` has it for any score."""
    return _log_ratios(bet_round, sides, _shape_scores)


Scores: TypeAlias = Callable[[BetRound, IntArray, IntArray, IntArray], tuple[FloatArray, FloatArray]]
"""log g of two scores, for rows of results of tests: of the round, its results, own groups and those of the pools."""


def _log_ratios(bet_round: BetRound, sides: Sides, scored: Scores) -> FloatArray:
    """(2, tests): log e of two scores."""
    logs = np.empty((2, sides.tests.size))
    most = int(min(bet_round.bet.parts["J"], sides.counts[0].max(initial=1.0)))  # the largest order j of any test
    tables = padded(sides.arm_of, sides.arm_counts.size), padded(sides.pool_of, sides.pool_counts.size)
    states = _pool_states(bet_round, sides, tables[1], most, scored)
    chunk = max(1, _CHUNK // max(1, tables[0].shape[1]))
    for low in range(0, sides.tests.size, chunk):
        part = slice(low, low + chunk)
        logs[:, part] = _some(bet_round, sides.rows(part), tables[0], states, most, scored)
    return logs


def _some(
    bet_round: BetRound,
    sides: Sides,
    arm_table: IntArray,
    states: tuple[IntArray, FloatArray],
    most: int,
    scored: Scores,
) -> FloatArray:
    a, pulls = sides.counts
    keys, sums = states
    of_pools = sums[:, np.searchsorted(keys, sides.pool * len(bet_round.bet.parts["h"]) + sides.own)]
    order, step = np.minimum(a, most).astype(np.int64), np.arange(most)
    # binom(a+A, j)/binom(a, j) = Π_{i<j} (a+A−i)/(a−i)
    ratios = np.where(step < order[:, None], (a + pulls)[:, None] - step, 1.0)
    ratios /= np.where(step < order[:, None], a[:, None] - step, 1.0)
    choices = np.log(ratios).sum(axis=1)
    pick, logs = (np.arange(order.size), order), np.empty((2, order.size))
    results = scored(bet_round, arm_table[sides.arm], sides.own, sides.other)
    for which, (u, before) in enumerate(zip(results, of_pools, strict=True)):
        of_arm, both = log_symmetric(_of_nothing(order.size, most), u), log_symmetric(before, u)
        logs[which] = of_arm[pick] - both[pick] + choices
    return logs


def _pool_states(
    bet_round: BetRound, sides: Sides, pool_table: IntArray, most: int, scored: Scores
) -> tuple[IntArray, FloatArray]:
    """log E_0 … E_j of the pools' results, seen from every group that is tested: keys, and (2 scores, keys, j+1)."""
    n_groups = len(bet_round.bet.parts["h"])
    keys, first = np.unique(sides.pool * n_groups + sides.own, return_index=True)
    sums = np.empty((2, keys.size, most + 1))
    chunk = max(1, _CHUNK // max(1, pool_table.shape[1]))
    for low in range(0, keys.size, chunk):
        part = slice(low, low + chunk)
        some = first[part]
        results = scored(bet_round, pool_table[sides.pool[some]], sides.own[some], sides.other[some])
        for which, u in enumerate(results):
            sums[which, part] = log_symmetric(_of_nothing(some.size, most), u)
    return keys, sums


def _of_nothing(n: int, most: int) -> FloatArray:
    """(n, j+1): log E_0 … E_j of no numbers: E_0 is 1, the others are 0."""
    start = np.full((n, most + 1), -np.inf)
    start[:, 0] = 0.0
    return start


def log_symmetric(start: FloatArray, u: FloatArray) -> FloatArray:
    """(n, j+1): log E_0 … E_j of what `start` is of together with the numbers e^u, u of (n, L); −inf for none.

    One number after the other: E_j(with x) = E_j(without) + x·E_{j−1}(without). No term is negative, so nothing
    cancels; logarithms, because E_64 of thousands of numbers leaves the range of floats.
    """
    sums = start.copy()
    before = np.repeat(start[:, :1], u.shape[1] + 1, axis=1)  # log E_{j−1} of the first i numbers, i = 0 … L
    for j in range(1, start.shape[1]):
        steps = np.concatenate([start[:, j : j + 1], u + before[:, :-1]], axis=1)
        before = np.logaddexp.accumulate(steps, axis=1)
        sums[:, j] = before[:, -1]
    return sums


def _location_scores(
    bet_round: BetRound, table: IntArray, own: IntArray, other: IntArray
) -> tuple[FloatArray, FloatArray]:
    """log g of the linear and of the robust score, for rows of results of tests (-1: none, −inf)."""
    parts = bet_round.bet.parts
    height = bet_round.positions @ parts["G"].T - parts["h"]  # y_k(x), (results, K)
    gap = height[table, own[:, None]] - height[table, other[:, None]]
    fraction, distance = parts["f"][own, other][:, None], parts["Δ"][own, other][:, None]
    linear, robust = scores(gap / distance, fraction, distance)
    return np.where(table >= 0, linear, -np.inf), np.where(table >= 0, robust, -np.inf)


def _shape_scores(
    bet_round: BetRound, table: IntArray, own: IntArray, other: IntArray
) -> tuple[FloatArray, FloatArray]:
    """log g of the discriminant of the features, shortened by f, and by 0.1: small bets."""
    parts, features = bet_round.bet.parts, bet_round.features
    assert features is not None
    height = features @ parts["P"].T - parts["p"]
    gap = height[table, own[:, None]] - height[table, other[:, None]]
    full = np.clip(parts["f of shape"][own, other][:, None] * gap, -LARGEST_SCORE, LARGEST_SCORE)
    small = np.clip(SMALL_BET * gap, -LARGEST_SCORE, LARGEST_SCORE)
    return np.where(table >= 0, full, -np.inf), np.where(table >= 0, small, -np.inf)


def scores(p: FloatArray, fraction: FloatArray, distance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The linear score and the robust one, which goes back to 0 for results that are far from both groups."""
    linear = np.clip(fraction * distance * p, -LARGEST_SCORE, LARGEST_SCORE)
    near = np.logaddexp(-0.5 * (p - 0.5 * distance) ** 2, -FLOOR)
    far = np.logaddexp(-0.5 * (p + 0.5 * distance) ** 2, -FLOOR)
    return linear, np.clip(fraction * (near - far), -LARGEST_SCORE, LARGEST_SCORE)


# The mean of ψ^s for hypergeometric s, however many trials there are, by an explicit sum in the log domain.
