"""The results of every item in the order in which they count, and means of their beginnings at fixed counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

ROOM = 64
"""Up to so many results of an item every count is read; then those of CROC's grid (`coterie.evidence.pairs`)."""

_COARSE = 8  # the same for the coarser counts, with four in each doubling


def fine_counts(most: int) -> IntArray:
    """All counts up to 64, then eight in each doubling: the counts at which CROC reads pairs from the start."""
    return _counts(most, ROOM, 8)


def coarse_counts(most: int) -> IntArray:
    """All counts up to 8, then four in each doubling."""
    return _counts(most, _COARSE, 4)


def _counts(most: int, room: int, steps: int) -> IntArray:
    counts = list(range(1, min(most, room) + 1))
    base = room
    while base <= most:
        counts += [count for count in range(base + base // steps, 2 * base + 1, base // steps) if count <= most]
        base *= 2
    return np.array(counts, dtype=np.int64)


@dataclass(frozen=True)
class Stacks:
    """Results of M items: `values` (t, d) item by item, each in the order in which its results count; `counts` (M)."""

    values: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, arms: IntArray, values: FloatArray, n_arms: int) -> Stacks:
        """From the arms (t) and the values (t, d) of results in the order in which they count."""
        order = np.argsort(arms, kind="stable")
        return cls(np.asarray(values, dtype=np.float64)[order], np.bincount(arms, minlength=n_arms))

    @property
    def n_arms(self) -> int:
        """M."""
        return len(self.counts)

    @property
    def dim(self) -> int:
        """How many numbers a result has."""
        return int(self.values.shape[1])

    @cached_property
    def starts(self) -> IntArray:
        """(M) where the results of each item begin."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(np.int64)

    @cached_property
    def firsts(self) -> FloatArray:
        """(M, d) the first result of each item; 0 where there is none."""
        firsts = np.zeros((self.n_arms, self.dim))
        seen = self.counts > 0
        firsts[seen] = self.values[self.starts[seen]]
        return firsts

    def scaled(self, unit: FloatArray | float) -> Stacks:
        """The same results in other units: divided by `unit`, one for all numbers or one for each."""
        return Stacks(self.values / unit, self.counts)

    def of_arm(self, arm: int) -> FloatArray:
        """(N, d) the results of an item."""
        start = self.starts[arm]
        return self.values[start : start + self.counts[arm]]

    def sums(self, counts: IntArray) -> FloatArray:
        """(M, G, d) sums of the first `counts` results less the item's first; NaN where there are not so many.

        Positions count from the first result of the item: so no digits are lost where results are far from zero.
        """
        sums = np.full((self.n_arms, counts.size, self.dim), np.nan)
        for arm in range(self.n_arms):
            there = counts[counts <= self.counts[arm]]
            if there.size:
                sums[arm, : there.size] = np.cumsum(self.of_arm(arm) - self.firsts[arm], axis=0)[there - 1]
        return sums

    @cached_property
    def _totals(self) -> FloatArray:
        """(t, d) sums of the results of an item so far less its first one."""
        if not self.values.size:
            return self.values
        return np.concatenate([np.cumsum(self.of_arm(arm) - self.firsts[arm], axis=0) for arm in range(self.n_arms)])

    def sums_of(self, arms: IntArray, counts: IntArray) -> FloatArray:
        """(n, d) sums of the first so many results of each of these arms, less the item's first; they must be there."""
        return np.asarray(self._totals[self.starts[arms] + counts - 1])

    def squares(self, counts: IntArray) -> FloatArray:
        """(M, G, d) sums of squares of the first `counts` results about their mean; NaN where there are fewer."""
        squares = np.full((self.n_arms, counts.size, self.dim), np.nan)
        for arm in range(self.n_arms):
            there = counts[counts <= self.counts[arm]]
            if there.size:
                moved = self.of_arm(arm) - self.firsts[arm]
                total, square = (np.cumsum(part, axis=0)[there - 1] for part in (moved, moved**2))
                squares[arm, : there.size] = np.maximum(square - total**2 / there[:, None], 0.0)
        return squares
