"""Which partitions fit the pairs that are known to differ, if they are few; and the evidence of all pairs of arms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.evidence.pairs import BLOCK_RATIOS, RATIO_WEIGHTS, mixture_log
from coterie.methods.croc.run import PREFIX_ROOM, grid_counts
from coterie.problem.checks import FloatArray, IntArray

MOST = 200
"""Partitions on a list."""

STEPS = 20_000
"""Arms placed in the search for them after which there are taken to be too many."""


KEPT: IntArray = np.unique(np.concatenate([np.arange(1, PREFIX_ROOM + 1), grid_counts(PREFIX_ROOM)]))
"""The counts at which the sum of an arm's first results is kept: the grid that CROC's pairs are read on."""

SIDES = [
    (swapped, ratio, weight)
    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True)
    for swapped in ((False, True) if ratio > 1 else (False,))
]
"""Which of the two arms is averaged in blocks, over how many, and the weight of that; together they weigh 1."""


def partitions_without(
    settled: NDArray[np.bool_], n_clusters: int, most: int = MOST, steps: int = STEPS
) -> IntArray | None:
    """(n, M) labels of all partitions into exactly K groups that have no settled pair in a group.

    None if there are more than `most`, or if it takes more than `steps` placed arms to see. Groups are numbered by
    first appearance, and the partitions are in ascending order of their labels.
    """
    n_arms = len(settled)
    order = np.argsort(-settled.sum(axis=1), kind="stable").tolist()  # arms with few possible places go first
    against = [{int(other) for other in np.flatnonzero(settled[arm])} for arm in order]
    partitions: list[list[int]] = []
    groups: list[list[int]] = []
    labels = [0] * n_arms
    placed = 0

    def place(i: int) -> bool:
        """Go on with the i-th arm; False: too many."""
        nonlocal placed
        placed += 1
        if placed > steps:
            return False
        if i == n_arms:
            partitions.append(_by_appearance(labels))
            return len(partitions) <= most
        arm = order[i]
        if len(groups) + n_arms - i > n_clusters:  # otherwise it has to begin a group
            for k, group in enumerate(groups):
                if against[i].isdisjoint(group):
                    group.append(arm)
                    labels[arm] = k
                    if not place(i + 1):
                        return False
                    group.pop()
        if len(groups) < n_clusters:
            groups.append([arm])
            labels[arm] = len(groups) - 1
            if not place(i + 1):
                return False
            groups.pop()
        return True

    return np.array(sorted(partitions), dtype=np.int64).reshape(-1, n_arms) if place(0) else None


def _by_appearance(labels: list[int]) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]


def blocks_of(listed: IntArray) -> IntArray:
    """(M) blocks of arms, numbered: two arms are in one if a chain of arms joins them, each two of which some listed
    partition has in one group."""
    n_arms = listed.shape[1]
    together = (listed[:, :, None] == listed[:, None, :]).any(axis=0)
    blocks = np.full(n_arms, -1, dtype=np.int64)
    for start in range(n_arms):
        if blocks[start] < 0:
            number, new = blocks.max() + 1, [start]
            while new:
                arm = new.pop()
                if blocks[arm] < 0:
                    blocks[arm] = number
                    new += np.flatnonzero(together[arm] & (blocks < 0)).tolist()
    return blocks


def clique_of(settled: NDArray[np.bool_], size: int) -> tuple[int, ...] | None:
    """So many arms that are pairwise settled, if a search that takes the arms with most settled pairs first finds them.

    It gives up after `STEPS` arms.
    """
    order = np.argsort(-settled.sum(axis=1), kind="stable").tolist()
    looked = 0

    def grow(chosen: list[int], left: list[int]) -> list[int] | None:
        nonlocal looked
        if len(chosen) == size:
            return chosen
        for i, arm in enumerate(left):
            looked += 1
            if len(chosen) + len(left) - i < size or looked > STEPS:
                return None
            clique = grow([*chosen, arm], [other for other in left[i + 1 :] if settled[arm, other]])
            if clique is not None:
                return clique
        return None

    clique = grow([], order)
    return None if clique is None else tuple(sorted(clique))


def _places(counts: IntArray) -> IntArray:
    """How many kept counts are at most `counts`."""
    return np.asarray(np.searchsorted(KEPT, counts, side="right"))


class PairStacks:
    """The pairs from the start of *all* arms (docs/CROC.md, sections 2 and 3), as results come in one by one.

    `counts[m]`: results of arm m. Sums of its first n results are kept for every n of `KEPT`."""

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
        best = np.full(first.size, -np.inf)
        for swapped, ratio, weight in SIDES:
            arm, other = (second, first) if swapped else (first, second)
            n_one, n_other = (n_second, n_first) if swapped else (n_first, n_second)
            place = _places(np.minimum(n_one, n_other // ratio) * ratio)
            n = np.where(place > 0, KEPT[np.maximum(place, 1) - 1] // ratio, 0)
            some = np.flatnonzero(n > 0)
            if some.size:
                m = n[some]
                gap = self._sums[arm[some], _places(m)] - self._sums[other[some], _places(m * ratio)] / ratio
                energy = (gap * gap).sum(axis=1) / (m * (1.0 + 1.0 / ratio))
                best[some] = np.maximum(best[some], np.log(weight) + mixture_log(m, energy, gap.shape[1]))
        return best
