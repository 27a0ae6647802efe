"""The exchangeable bet, for any noise: docs/EVIDENCE.md, section 3.

If all arms of a test have the same distribution, every way to share out its results to the two sides is equally likely.
So with j = min(a, J), J fixed with the bet: the mean of Π g over all choices of j of the arm's results has the mean of
Π g over all choices of j of *all* results as its mean, for any g fixed before. Their ratio is a fair bet.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.certificate.bets import BetRound
from coterie.certificate.sides import Sides, padded
from coterie.problem.checks import FloatArray, IntArray

LARGEST_SCORE = 6.0  # |log g| is clipped here
FLOOR = 6.125  # −log κ, of the robust score: e^{−3.5²/2}
_CHUNK = 2**20
"""Scores that are worked on at once."""


def log_factors(one: BetRound, sides: Sides) -> FloatArray:
    """log of (1−w)·e_linear + w·e_robust for each test."""
    found = np.empty(sides.tests.size)
    most = int(min(one.bet.parts["J"], sides.counts[0].max(initial=1.0)))  # the largest order j of any test
    tables = padded(sides.arm_of, sides.arm_counts.size), padded(sides.pool_of, sides.pool_counts.size)
    states = _pool_states(one, sides, tables[1], most)
    chunk = max(1, _CHUNK // max(1, tables[0].shape[1]))
    for low in range(0, sides.tests.size, chunk):
        part = slice(low, low + chunk)
        found[part] = _some(one, sides.rows(part), tables[0], states, most)
    return found


def _some(
    one: BetRound, sides: Sides, arm_table: IntArray, states: tuple[IntArray, FloatArray], most: int
) -> FloatArray:
    a, pulls = sides.counts
    keys, sums = states
    its = sums[:, np.searchsorted(keys, sides.pool * len(one.bet.parts["h"]) + sides.own)]
    order, step = np.minimum(a, most).astype(np.int64), np.arange(most)
    # binom(a+A, j)/binom(a, j) = Π_{i<j} (a+A−i)/(a−i)
    ratios = np.where(step < order[:, None], (a + pulls)[:, None] - step, 1.0)
    ratios /= np.where(step < order[:, None], a[:, None] - step, 1.0)
    choices = np.log(ratios).sum(axis=1)
    robust, pick = float(one.bet.parts["w"]), (np.arange(order.size), order)
    found = np.full(order.size, -np.inf)
    results = _scores(one, arm_table[sides.arm], sides.own, sides.other)
    for u, before, weight in zip(results, its, (1.0 - robust, robust), strict=True):
        if weight > 0.0:
            mine, both = log_symmetric(_of_nothing(order.size, most), u), log_symmetric(before, u)
            found = np.logaddexp(found, math.log(weight) + mine[pick] - both[pick] + choices)
    return found


def _pool_states(one: BetRound, sides: Sides, pool_table: IntArray, most: int) -> tuple[IntArray, FloatArray]:
    """log E_0 … E_j of the pools' results, seen from every group that is tested: keys, and (2 scores, keys, j+1)."""
    n_groups = len(one.bet.parts["h"])
    keys, first = np.unique(sides.pool * n_groups + sides.own, return_index=True)
    sums = np.empty((2, keys.size, most + 1))
    chunk = max(1, _CHUNK // max(1, pool_table.shape[1]))
    for low in range(0, keys.size, chunk):
        part = slice(low, low + chunk)
        some = first[part]
        results = _scores(one, pool_table[sides.pool[some]], sides.own[some], sides.other[some])
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
    found = start.copy()
    before = np.repeat(start[:, :1], u.shape[1] + 1, axis=1)  # log E_{j−1} of the first i numbers, i = 0 … L
    for j in range(1, start.shape[1]):
        steps = np.concatenate([start[:, j : j + 1], u + before[:, :-1]], axis=1)
        before = np.logaddexp.accumulate(steps, axis=1)
        found[:, j] = before[:, -1]
    return found


def _scores(one: BetRound, table: IntArray, own: IntArray, other: IntArray) -> tuple[FloatArray, FloatArray]:
    """log g of the linear and of the robust score, for rows of results of tests (-1: none, −inf)."""
    parts = one.bet.parts
    height = one.positions @ parts["G"].T - parts["h"]  # y_k(x), (results, K)
    gap = height[table, own[:, None]] - height[table, other[:, None]]
    fraction, distance = parts["f"][own, other][:, None], parts["Δ"][own, other][:, None]
    linear, robust = scores(gap / distance, fraction, distance)
    return np.where(table >= 0, linear, -np.inf), np.where(table >= 0, robust, -np.inf)


def scores(p: FloatArray, fraction: FloatArray, distance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The linear score and the robust one, which goes back to 0 for results that are far from both groups."""
    linear = np.clip(fraction * distance * p, -LARGEST_SCORE, LARGEST_SCORE)
    near = np.logaddexp(-0.5 * (p - 0.5 * distance) ** 2, -FLOOR)
    far = np.logaddexp(-0.5 * (p + 0.5 * distance) ** 2, -FLOOR)
    return linear, np.clip(fraction * (near - far), -LARGEST_SCORE, LARGEST_SCORE)
