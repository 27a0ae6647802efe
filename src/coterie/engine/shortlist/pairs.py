"""The pairs from the start of *all* arms (docs/CROC.md, sections 2 and 3), one arm at a time, as results come in."""

from __future__ import annotations

import numpy as np

from coterie.engine.croc.state import PREFIX_ROOM, grid_counts
from coterie.problem.checks import FloatArray, IntArray
from coterie.theory.evidence import BLOCK_RATIOS, RATIO_WEIGHTS, mixture_log

KEPT: IntArray = np.unique(np.concatenate([np.arange(1, PREFIX_ROOM + 1), grid_counts(PREFIX_ROOM)]))
"""The counts at which the sum of an arm's first results is kept: the grid that CROC's pairs are read on."""

SIDES = [
    (swapped, ratio, weight)
    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True)
    for swapped in ((False, True) if ratio > 1 else (False,))
]
"""Which of the two arms is averaged in blocks, over how many, and the weight of that; together they weigh 1."""


def _places(counts: IntArray) -> IntArray:
    """How many kept counts are at most `counts`."""
    return np.asarray(np.searchsorted(KEPT, counts, side="right"))


class PairStacks:
    """`counts[m]`: results of arm m. Sums of its first n results are kept for every n of `KEPT`."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.counts = np.zeros(n_arms, dtype=np.int64)
        self._kept = np.zeros(n_arms, dtype=np.int64)  # how many of KEPT
        self._sums = np.zeros((n_arms, 8, dim))  # row l: of the first KEPT[l-1] results
        self._totals = np.zeros((n_arms, dim))

    def add(self, arm: int, x: FloatArray) -> None:
        """One result."""
        self._totals[arm] += x
        self.counts[arm] += 1
        if self.counts[arm] == KEPT[self._kept[arm]]:
            self._kept[arm] += 1
            if self._kept[arm] == self._sums.shape[1]:
                self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)], axis=1)
            self._sums[arm, self._kept[arm]] = self._totals[arm]

    def evidence(self, first: IntArray, second: IntArray, n_first: IntArray, n_second: IntArray) -> FloatArray:
        """log-evidence that arms differ by so many of their first results: the largest over R and both sides."""
        found = np.full(first.size, -np.inf)
        for swapped, ratio, weight in SIDES:
            one, other = (second, first) if swapped else (first, second)
            n_one, n_other = (n_second, n_first) if swapped else (n_first, n_second)
            place = _places(np.minimum(n_one, n_other // ratio) * ratio)
            n = np.where(place > 0, KEPT[np.maximum(place, 1) - 1] // ratio, 0)
            some = np.flatnonzero(n > 0)
            if some.size:
                m = n[some]
                gap = self._sums[one[some], _places(m)] - self._sums[other[some], _places(m * ratio)] / ratio
                energy = (gap * gap).sum(axis=1) / (m * (1.0 + 1.0 / ratio))
                found[some] = np.maximum(found[some], np.log(weight) + mixture_log(m, energy, gap.shape[1]))
        return found
