"""P-values for "these two items are alike" where rows come in blocks: days, plates, raters, questions.

Only differences within blocks count, so that a block may shift all of its results. Let D be the difference of the
means of two items in a block with a results of one and A of the other (blocks without both are left out), and
C = w·D with w = a·A/(a + A).

| noise | test | alike means, in every block |
| --- | --- | --- |
| any | permutations of both items' results within blocks; signs of the D where a = A = 1 | any order is as likely |
| symmetric | signs of differences of results in one block | same mean |
| Gaussian, known | contrasts of items and blocks (`two_way`) | same mean |
| counts | given the successes of both in each block, the sum of one item's: exact, stratum by stratum | same rate |
| bounded | bets of fixed size on the D | same mean |
| at most a covariance | bets of fixed size on the C | same mean |

Results of different blocks do not depend on one another, given the blocks.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from coterie.evidence.exact.block_rearranging import BlockTable, rearranged_tests, signed_ranks
from coterie.evidence.exact.fits import PairTests
from coterie.evidence.exact.pair_tests import BETS, bounded_interval, in_a_row, log_choose, moment_p
from coterie.evidence.exact.rearranging import too_many
from coterie.evidence.exact.two_way import two_way, two_way_bounds, two_way_tests
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import LIKE_ANY, Bounded, Counts, Gaussian, Model
from coterie.problem.noise import Noise

_NEGLIGIBLE = -80.0  # logarithms of probabilities, relative to the largest, that are left out


def test_within_blocks(arms: IntArray, blocks: IntArray, rows: FloatArray, noise: Model, delta: float) -> PairTests:
    """The tests of all pairs of items; every item and every block has a row."""
    table = BlockTable(arms, blocks, rows)
    fit = two_way(table.arms, table.blocks, table.rows)
    order = in_a_row(fit.effects, fit.adjusted)
    stated = None if isinstance(noise, Noise) else noise.statement
    if isinstance(noise, Noise) or isinstance(stated, Gaussian):
        return two_way_tests(fit, noise, order)
    if isinstance(stated, Counts):
        return PairTests(_conditional(table, stated.trials), "mantel-haenszel", order)
    if isinstance(stated, Bounded):
        return PairTests(_bounded(table, stated), "bets", order)
    if noise.kind == "at-most":
        p_values = {}
        for pair in table.pairs():  # in units of the covariance w·D has variance at most w
            differences, weights = table.contrasts(*pair)
            p_values[pair] = moment_p(noise.whiten(differences * weights[:, None]), weights, delta)
        return PairTests(table.matrix(p_values), "moments", order)
    kind = "any" if noise.kind in LIKE_ANY else noise.kind
    if kind == "any" and table.dim == 1 and too_many(len(table.pairs()), delta):
        return signed_ranks(table, order)
    return rearranged_tests(table, kind, order, delta)


def bounds_within_blocks(
    arms: IntArray, blocks: IntArray, rows: FloatArray, noise: Model, delta: float
) -> tuple[FloatArray, FloatArray] | None:
    """(M, M, d) bounds of |μ_i − μ_j|, the same in every block; any is wrong with probability δ. None without any."""
    table = BlockTable(arms, blocks, rows)
    stated = None if isinstance(noise, Noise) else noise.statement
    if isinstance(noise, Noise) or isinstance(stated, Gaussian):
        return two_way_bounds(two_way(table.arms, table.blocks, table.rows), noise, delta)
    if not isinstance(stated, Bounded):
        return None
    n, dim = table.n_arms, table.dim
    lo, hi = (np.array(np.broadcast_to(end, dim)) for end in (stated.lo, stated.hi))
    lower, upper = np.zeros((n, n, dim)), np.full((n, n, dim), np.inf)
    upper[np.arange(n), np.arange(n)] = 0.0
    level = math.log(len(table.pairs()) * dim / delta)
    for i, j in table.pairs():
        differences = table.contrasts(i, j)[0] / (hi - lo)
        for k in range(dim if len(differences) else 0):
            low, high = (2.0 * end - 1.0 for end in bounded_interval((differences[:, k] + 1.0) / 2.0, level))
            lower[i, j, k] = lower[j, i, k] = max(0.0, low, -high) * (hi - lo)[k]
            upper[i, j, k] = upper[j, i, k] = max(high, -low) * (hi - lo)[k]
    return lower, upper


# Counts.


def _conditional(table: BlockTable, trials: int) -> FloatArray:
    """Given the successes of both items in each block, those of one item are hypergeometric there: p of their sum, the
    probability of all sums that are no more likely.
    """
    p_values = {}
    laws: dict[tuple[tuple[int, int, int], ...], tuple[FloatArray, int]] = {}  # of 0 and 1, many pairs share theirs
    for i, j in table.pairs():
        both = table.shared(i, j)
        a, b = (table.counts[arm, both] * trials for arm in (i, j))
        smallest = 1.0 - 1e-16
        for k in range(table.dim):
            hits, others = (np.rint(table.sums[arm, both, k]).astype(np.int64) for arm in (i, j))
            told = (hits + others > 0) & (hits + others < a + b)  # else there is nothing to be seen
            margins = (column[told].tolist() for column in (a, b, hits + others))
            key = tuple(sorted(zip(*margins, strict=True)))
            if key not in laws:
                laws[key] = _law_of_sum(key)
            logs, start = laws[key]
            place = int(hits[told].sum()) - start
            p = math.exp(_NEGLIGIBLE)  # less likely than all that was kept
            if 0 <= place < len(logs):
                p = float(np.exp(logs[logs <= logs[place] + 1e-7]).sum())
            smallest = min(smallest, p)
        p_values[i, j] = -math.expm1(table.dim * math.log1p(-smallest))
    return table.matrix(p_values)


def _law_of_sum(margins: tuple[tuple[int, int, int], ...]) -> tuple[FloatArray, int]:
    """Log probabilities of a sum over blocks, from the value that is given with them on: of the successes of the first
    item in a block, in a of its trials, if both items have so many in a + b.
    """
    logs, start = np.zeros(1), 0
    for a, b, successes in margins:
        values = np.arange(max(0, successes - b), min(successes, a) + 1)
        block = log_choose(float(a), values) + log_choose(float(b), successes - values)
        block -= logsumexp(block)
        kept = np.flatnonzero(block > block.max() + _NEGLIGIBLE)
        top = logs.max()
        summed = np.convolve(np.exp(logs - top), np.exp(block[kept]))
        with np.errstate(divide="ignore"):
            logs = np.log(summed) + top
        start += int(values[kept[0]])
        inside = np.flatnonzero(logs > logs.max() + _NEGLIGIBLE)
        logs, start = logs[inside[0] : inside[-1] + 1], start + int(inside[0])
    return logs, start


# Bets of fixed size.


def _bounded(table: BlockTable, stated: Bounded) -> FloatArray:
    """Differences lie in [−1, 1] in units of the range, with mean 0 if the items are alike: (1 + λD) has mean 1."""
    low, high = (np.array(np.broadcast_to(end, table.dim)) for end in (stated.lo, stated.hi))
    p_values = {}
    for i, j in table.pairs():
        differences, weights = table.contrasts(i, j)
        if not len(weights):
            continue
        moved = differences / (high - low) * (weights / weights.max())[:, None]
        bets = np.concatenate([BETS, -BETS])
        logs = logsumexp(np.log1p(moved[:, :, None] * bets).sum(axis=0), axis=1) - math.log(bets.size)
        p_values[i, j] = table.dim * math.exp(-max(0.0, float(logs.max())))
    return table.matrix(p_values)
