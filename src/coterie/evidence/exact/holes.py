"""P-values for "these two items are alike" where rows lack some of their numbers, and bounds of differences.

Which numbers are missing has nothing to do with any value, so that given the pattern of holes the numbers that are
there have the laws that they had. Two tests follow, each exact given the pattern:

*By numbers.* For each number, the test of one number of all rows that have it (`pair_tests`, in blocks `block_tests`).
Of n numbers that both items have, the smallest p-value counts n times (Bonferroni); as that of n independent ones where
numbers vary independently, as stated (counts, Gaussian but for the full covariance); under a known noise whose numbers
are uncorrelated the squares of all z are added up.

*Within patterns* (any noise, symmetric). Rows that have the same numbers are rearranged among themselves, as within
blocks, all numbers together. That keeps what numbers say together, but a row counts only where the other item has
results of its pattern.

Under these two noises a pair is tested within patterns if that uses at least half of the information, else by numbers:
a·A/(a + A) for a results of one item and A of the other, summed over the numbers, within patterns relative to all.
Patterns alone decide it, so nothing is corrected for the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri

from coterie.evidence.exact.block_rearranging import BlockTable, rearranged_tests
from coterie.evidence.exact.block_tests import bounds_within_blocks, test_within_blocks
from coterie.evidence.exact.differences import bounds_of_differences
from coterie.evidence.exact.fits import PairTests
from coterie.evidence.exact.pair_tests import in_a_row, sorted_stacks, test_pairs
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Gaussian, Model, number_of
from coterie.problem.noise import Noise

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
