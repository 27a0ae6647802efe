"""Which partitions of the items fit the p-values of pairs: a confidence set, from which every answer is read.

A partition says which pairs are alike, and is tested at level δ by the smallest p-value of these pairs: by Bonferroni's
bound over them, or exactly by ranges (`ranges`) where the noise is Gaussian and a result one number. Only one partition
is true, so no further correction is needed: it is among those that fit with probability at least 1 − δ. A pair that is
alike in none of those that fit is *proven to differ*; this is closed testing (Marcus, Peritz and Gabriel, 1976) with
Shaffer's logic (pairs that cannot be alike together, 1986) in its sharpest form (Bergmann and Hommel, 1988). If all
with exactly K groups that fit are one, then the groups are proven, given that there are K.

Of up to nine items all partitions are listed. Of more, pairs are struck off one round after the other: those in a
partition that fits keep apart what was struck off before, so that few of them can be alike together (an upper bound of
how many is enough), and a pair below δ over that number is in none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.theory.exact.partitions import (
    MOST_LISTED,
    all_partitions,
    component_sizes,
    groupings,
    most_equal_pairs,
)
from coterie.theory.exact.ranges import Ranges, critical
from coterie.theory.packing import far_items


@dataclass(frozen=True)
class PairTests:
    """A p-value for each pair of items, and whether pairs are tested together by ranges.

    `p`: (M, M), symmetric, 1 on the diagonal. `t` (M, M) and `freedom`: of pooled t tests, whose joint law is known;
    None for other tests. `order`: the items sorted so that close ones stand together. `test`: its name; `seed` and
    `draws`: of a test by random rearrangements; `draws` is None if all of them were tried.
    """

    p: FloatArray
    test: str
    order: IntArray
    t: FloatArray | None = None
    freedom: float = 0.0
    seed: int | None = None
    draws: int | None = None


@dataclass(frozen=True)
class Fits:
    """What all partitions that fit have in common.

    `apart`: (M, M) which pairs are proven to differ; `adjusted`: (M, M) the least δ at which each would be, or an upper
    bound of it. `listed`: the labels of all partitions that fit, if the items are few enough to list them.
    """

    apart: np.ndarray
    adjusted: FloatArray
    listed: IntArray | None
    tests: PairTests
    delta: float

    @property
    def at_least(self) -> list[int]:
        """Items that pairwise differ: there are at least as many groups."""
        return sorted(far_items(self.apart))

    @property
    def fewest(self) -> int:
        """The least number of groups of a partition that fits, as far as it is known; 0 if none fits."""
        if self.listed is None:
            return len(self.at_least)
        return int(self.listed.max(axis=1).min()) + 1 if len(self.listed) else 0

    def with_groups(self, n_groups: int) -> list[list[int]] | None:
        """Up to two partitions into exactly K groups that fit; none: K is refuted. None if there are too many to look
        through.
        """
        if self.listed is not None:
            its = self.listed[self.listed.max(axis=1) + 1 == n_groups]
            return [labels.tolist() for labels in its[:2]]
        return groupings(_struck_off(self.tests, self.delta, n_groups)[0], n_groups)


def fitting(tests: PairTests, delta: float) -> Fits:
    """The partitions that fit the tests of pairs at level δ."""
    n = len(tests.p)
    if n > MOST_LISTED:
        apart, adjusted = _struck_off(tests, delta)
        return Fits(apart, adjusted, None, tests, delta)
    table = all_partitions(n)
    low, high = np.triu_indices(n, 1)
    together = table[:, low] == table[:, high]
    of_partitions = _partition_p(tests, table, together)
    fits = of_partitions > delta
    adjusted = np.ones((n, n))
    for k, (i, j) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        adjusted[i, j] = adjusted[j, i] = of_partitions[together[:, k]].max()
    apart = adjusted <= delta
    np.fill_diagonal(apart, False)
    return Fits(apart, adjusted, table[fits], tests, delta)


def _partition_p(tests: PairTests, table: IntArray, together: np.ndarray) -> FloatArray:
    """The p-value of every partition; 1 of the one in which no pair is alike."""
    n = table.shape[1]
    low, high = np.triu_indices(n, 1)
    p = tests.p[low, high]
    smallest = np.where(together, p, 2.0).argmin(axis=1)
    found = np.minimum(1.0, together.sum(axis=1) * p[smallest])
    if tests.t is not None:
        ranges = Ranges(tests.t[low, high], tests.freedom)
        sizes = np.sort((table[:, :, None] == np.arange(n)).sum(axis=1), axis=1)[:, ::-1]
        kinds, which = np.unique(sizes, axis=0, return_inverse=True)
        at = np.stack([ranges.p_values([int(one) for one in kind if one > 1]) for kind in kinds])
        found = at[which.reshape(-1), smallest]
    return np.asarray(np.where(together.any(axis=1), found, 1.0))


def _struck_off(tests: PairTests, delta: float, n_groups: int | None = None) -> tuple[np.ndarray, FloatArray]:
    """Pairs that are alike in no partition that fits (with exactly K groups), round after round; and their p-values
    times the number of pairs that can be alike together then.
    """
    n = len(tests.p)
    apart = np.zeros((n, n), dtype=bool)
    adjusted = np.ones((n, n))
    while True:
        level = np.minimum(1.0, tests.p * most_equal_pairs(apart, tests.order, n_groups))
        if tests.t is not None:  # every group lies in a component, and ranges of larger groups are larger
            sizes = [size for size in component_sizes(apart) if size > 1]
            level = np.where(tests.t >= critical(sizes, tests.freedom, delta), np.minimum(level, delta), level)
        adjusted = np.where(apart, adjusted, level)
        new = ~apart & (level <= delta)
        np.fill_diagonal(new, False)
        if not new.any():
            np.fill_diagonal(adjusted, 1.0)
            return apart, adjusted
        apart |= new
