"""Which partitions fit the pairs that are known to differ, if they are few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import IntArray

MOST = 200
"""Partitions on a list."""

STEPS = 20_000
"""Arms placed in the search for them after which there are taken to be too many."""


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
    found: list[list[int]] = []
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
            found.append(_by_appearance(labels))
            return len(found) <= most
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

    return np.array(sorted(found), dtype=np.int64).reshape(-1, n_arms) if place(0) else None


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
            found = grow([*chosen, arm], [other for other in left[i + 1 :] if settled[arm, other]])
            if found is not None:
                return found
        return None

    found = grow([], order)
    return None if found is None else tuple(sorted(found))
