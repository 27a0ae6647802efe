"""Who is compared with whom in a round: the results on both sides of tests, by arm and by pool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.certificate.bets import BetRound
from coterie.certificate.log import Frozen
from coterie.problem.checks import FloatArray, IntArray


@dataclass(frozen=True)
class Sides:
    """The tests that a round gives something to, one a row: an arm of group `own` against a pool of group `other`.

    Results of a round belong to rows: `arm_of` gives each its arm, `pool_of` its pool, -1 for none.
    """

    tests: IntArray  # which of the tests that were asked about
    own: IntArray
    other: IntArray
    arm: IntArray  # the row of the arm, among those of the round
    pool: IntArray  # the row of the pool
    arm_of: IntArray
    pool_of: IntArray
    arm_counts: IntArray
    pool_counts: IntArray

    @property
    def counts(self) -> tuple[FloatArray, FloatArray]:
        """a and A: how many results both sides of each test have."""
        return self.arm_counts[self.arm].astype(np.float64), self.pool_counts[self.pool].astype(np.float64)

    @property
    def spread(self) -> FloatArray:
        """v = 1/a + 1/A of each test."""
        a, pulls = self.counts
        return 1.0 / a + 1.0 / pulls

    def totals(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(tests, d) twice: sums of these values (one a result) over the arm, and over the pool, of each test."""
        of_arms = np.zeros((self.arm_counts.size, values.shape[1]))
        np.add.at(of_arms, self.arm_of, values)
        of_pools = np.zeros((self.pool_counts.size, values.shape[1]))
        pooled = self.pool_of >= 0
        np.add.at(of_pools, self.pool_of[pooled], values[pooled])
        return of_arms[self.arm], of_pools[self.pool]

    def contrast(self, positions: FloatArray) -> FloatArray:
        """(tests, d): C, the mean of the arm's results minus that of the pool's."""
        a, pulls = self.counts
        mine, its = self.totals(positions)
        return np.asarray(mine / a[:, None] - its / pulls[:, None])

    def rows(self, part: slice) -> Sides:
        """Some of the tests."""
        return Sides(
            self.tests[part], self.own[part], self.other[part], self.arm[part], self.pool[part],
            self.arm_of, self.pool_of, self.arm_counts, self.pool_counts,
        )  # fmt: skip


def sides_of(one: BetRound, freeze: Frozen, pools: str, arms: IntArray, others: IntArray, wanted: IntArray) -> Sides:
    """The sides of tests in a complete round, for those of `wanted` (their numbers) that have results on both.

    `pools` is "group", "core" or "arm" and says what `others` counts.
    """
    labels, n_groups = freeze.labels, len(freeze.cores)
    present, arm_of = np.unique(one.arms, return_inverse=True)
    row = np.full(labels.size, -1)
    row[present] = np.arange(present.size)
    if pools == "arm":
        n_pools, pool_of, pool_row = present.size, arm_of, row
    else:
        n_pools, pool_of, pool_row = n_groups, labels[one.arms], np.arange(n_groups)
        if pools == "core":
            in_core = np.zeros(labels.size, dtype=bool)
            in_core[[arm for core in freeze.cores for arm in core]] = True
            pool_of = np.where(in_core[one.arms], pool_of, -1)
    arm_counts = np.bincount(arm_of, minlength=present.size)
    pool_counts = np.bincount(pool_of[pool_of >= 0], minlength=n_pools)
    arm, pool = row[arms[wanted]], pool_row[others[wanted]]
    use = (arm >= 0) & (pool >= 0)
    use[use] = pool_counts[pool[use]] > 0
    tests = wanted[use]
    own = labels[arms[tests]]
    other = labels[others[tests]] if pools == "arm" else others[tests]
    return Sides(tests, own, other, arm[use], pool[use], arm_of, pool_of, arm_counts, pool_counts)


def padded(rows: IntArray, n_rows: int) -> IntArray:
    """(n_rows, most): the numbers of the results that belong to each row, then -1; those of row -1 are left out."""
    there = np.flatnonzero(rows >= 0)
    order = there[np.argsort(rows[there], kind="stable")]
    counts = np.bincount(rows[there], minlength=n_rows)
    place = np.arange(order.size) - (np.cumsum(counts) - counts)[rows[order]]
    table = np.full((n_rows, int(counts.max(initial=0))), -1)
    table[rows[order], place] = order
    return table
