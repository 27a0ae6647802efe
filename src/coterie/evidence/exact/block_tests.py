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
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, logsumexp, ndtri

from coterie.evidence.exact.block_rearranging import BlockTable, rearranged_tests, signed_ranks
from coterie.evidence.exact.differences import bounds_of_differences
from coterie.evidence.exact.fits import PairTests
from coterie.evidence.exact.pair_tests import (
    BETS,
    bounded_interval,
    in_a_row,
    log_choose,
    moment_p,
    sorted_stacks,
    test_pairs,
)
from coterie.evidence.exact.rearranging import too_many
from coterie.evidence.exact.two_way import two_way, two_way_bounds, two_way_tests
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import LIKE_ANY, Bounded, Counts, Gaussian, Model, number_of
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


# P-values for "these two items are alike" where rows lack some of their numbers, and bounds of differences.
#
# Which numbers are missing has nothing to do with any value, so that given the pattern of holes the numbers that are
# there have the laws that they had. Two tests follow, each exact given the pattern:
#
# *By numbers.* For each number, the test of one number of all rows that have it (`pair_tests`, in blocks
# `block_tests`). Of n numbers that both items have, the smallest p-value counts n times (Bonferroni); as that of n
# independent ones where numbers vary independently, as stated (counts, Gaussian but for the full covariance); under a
# known noise whose numbers are uncorrelated the squares of all z are added up.
#
# *Within patterns* (any noise, symmetric). Rows that have the same numbers are rearranged among themselves, as within
# blocks, all numbers together. That keeps what numbers say together, but a row counts only where the other item has
# results of its pattern.
#
# Under these two noises a pair is tested within patterns if that uses at least half of the information, else by
# numbers: a·A/(a + A) for a results of one item and A of the other, summed over the numbers, within patterns relative
# to all. Patterns alone decide it, so nothing is corrected for the choice.


ENOUGH = 0.5
"""The share of the information from which on a pair is tested within patterns."""


class OfNumber(NamedTuple):
    """The rows that have one of the numbers: the items that have any, of each row which of these, its block, the
    number."""

    items: IntArray
    arms: IntArray
    blocks: IntArray | None
    values: FloatArray


def by_numbers(arms: IntArray, rows: FloatArray, blocks: IntArray | None = None) -> Iterator[OfNumber]:
    """For each number, the rows (n, 1) that have it; items and blocks are numbered anew."""
    for column in rows.T:
        there = ~np.isnan(column)
        items, own = np.unique(arms[there], return_inverse=True)
        left = None if blocks is None else np.unique(blocks[there], return_inverse=True)[1].reshape(-1)
        yield OfNumber(items, own.reshape(-1), left, column[there][:, None])


def item_means(arms: IntArray, rows: FloatArray, n_arms: int) -> FloatArray:
    """(M, d): the mean of each number of each item; NaN where it has none."""
    means = np.full((n_arms, rows.shape[1]), np.nan)
    for number, (items, own, _, values) in enumerate(by_numbers(arms, rows)):
        shift = values.mean() if len(values) else 0.0  # sums of small numbers keep their digits
        means[items, number] = np.bincount(own, values[:, 0] - shift) / np.bincount(own) + shift
    return means


def filled(arms: IntArray, rows: FloatArray, n_arms: int) -> tuple[FloatArray, FloatArray]:
    """The means of items and the rows, with the mean of the item, or else of all rows, where there is a hole."""
    means = item_means(arms, rows, n_arms)
    of_all = np.array([column[~np.isnan(column)].mean() if not np.isnan(column).all() else 0.0 for column in rows.T])
    means = np.where(np.isnan(means), of_all, means)
    return means, np.where(np.isnan(rows), means[arms], rows)


def test_with_holes(
    arms: IntArray, rows: FloatArray, n_arms: int, noise: Model, delta: float, blocks: IntArray | None
) -> PairTests:
    """The tests of all pairs of items, from rows (n, d) with NaN for holes; every row has a number."""
    dim = rows.shape[1]
    each = np.ones((dim, n_arms, n_arms))
    both = np.zeros((n_arms, n_arms))
    for number, (items, own, of_blocks, values) in enumerate(by_numbers(arms, rows, blocks)):
        if len(items) < 2:
            continue
        places, model = np.ix_(items, items), number_of(noise, number)
        if of_blocks is None:
            tests = test_pairs(own, values, len(items), model, delta / dim)
        else:
            tests = test_within_blocks(own, of_blocks, values, model, delta / dim)
        each[number][places] = tests.p
        both[places] += 1.0
    p = _together(each, both, noise)
    order = in_a_row(*filled(arms, rows, n_arms))
    if noise.kind in ("any", "symmetric"):
        patterns = _patterns(rows, blocks)
        measured = ~np.isnan(rows[np.unique(patterns, return_index=True)[1]])
        table = BlockTable(arms, patterns, np.nan_to_num(rows), measured)
        within = rearranged_tests(table, noise.kind, order, delta)
        share = _information(arms, rows, n_arms, patterns) / np.maximum(_information(arms, rows, n_arms, blocks), 1e-9)
        p = np.where(share >= ENOUGH, within.p, p)
    np.fill_diagonal(p, 1.0)
    return PairTests(np.minimum(p, 1.0), "holes", order)


def _together(each: FloatArray, both: FloatArray, noise: Model) -> FloatArray:
    """Of the p-values (d, M, M) of numbers, `both` (M, M) of which a pair has."""
    if isinstance(noise, Noise):
        covariance = noise.covariance
        if (covariance == np.diag(np.diag(covariance))).all():
            squares = (ndtri(each / 2.0) ** 2).sum(axis=0)  # p = 1 adds nothing
            return np.asarray(chdtrc(np.maximum(both, 1.0), squares))
    smallest = each.min(axis=0)
    stated = None if isinstance(noise, Noise) else noise.statement
    if noise.kind == "counts" or (isinstance(stated, Gaussian) and stated.shape != "full"):
        return np.asarray(-np.expm1(both * np.log1p(-np.minimum(smallest, 1.0 - 1e-16))) + (both == 0.0))
    return np.asarray(np.maximum(both, 1.0) * smallest)


def _patterns(rows: FloatArray, blocks: IntArray | None) -> IntArray:
    """Which numbers a row has, and in which block: numbered in the order of both."""
    keys = [] if blocks is None else [blocks[:, None]]
    content = np.concatenate([*keys, ~np.isnan(rows)], axis=1).astype(np.int64)
    return np.asarray(np.unique(content, axis=0, return_inverse=True)[1].reshape(-1))


def _information(arms: IntArray, rows: FloatArray, n_arms: int, strata: IntArray | None) -> FloatArray:
    """(M, M): Σ a·A/(a + A) over numbers and strata."""
    total = np.zeros((n_arms, n_arms))
    strata = np.zeros(len(arms), dtype=np.int64) if strata is None else strata
    there = (~np.isnan(rows)).astype(np.float64)
    for stratum in range(int(strata.max()) + 1):
        inside = strata == stratum
        counts = np.zeros((n_arms, rows.shape[1]))
        np.add.at(counts, arms[inside], there[inside])
        sums = counts[:, None] + counts
        total += (counts[:, None] * counts / np.where(sums > 0.0, sums, 1.0)).sum(axis=2)
    return total


def bounds_with_holes(
    arms: IntArray, rows: FloatArray, n_arms: int, noise: Model, delta: float, blocks: IntArray | None
) -> tuple[FloatArray, FloatArray] | None:
    """(M, M, d) bounds of |μ_i − μ_j| in each number; any is wrong with probability δ. None if the noise allows none.

    Each number has δ/d; nothing is known of an item in a number that it lacks.
    """
    dim = rows.shape[1]
    lower, upper = np.zeros((n_arms, n_arms, dim)), np.full((n_arms, n_arms, dim), np.inf)
    upper[np.arange(n_arms), np.arange(n_arms)] = 0.0
    for number, (items, own, of_blocks, values) in enumerate(by_numbers(arms, rows, blocks)):
        if len(items) < 2:
            continue
        model = number_of(noise, number)
        if of_blocks is None:
            bounds = bounds_of_differences(sorted_stacks(own, values, len(items)), model, delta / dim)
        else:
            bounds = bounds_within_blocks(own, of_blocks, values, model, delta / dim)
        if bounds is None:
            return None
        places = (items[:, None], items, number)
        lower[places], upper[places] = (end[:, :, 0] for end in bounds)
    return lower, upper
