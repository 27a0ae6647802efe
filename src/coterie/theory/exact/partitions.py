"""Partitions of M items: all of them where there are few, and bounds for all that keep certain pairs apart."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from coterie.problem.checks import IntArray

MOST_LISTED = 9
"""Items of which all partitions are listed: there are 21,147 of nine."""

_MOST_STEPS = 200_000  # of the search for groupings


@lru_cache(maxsize=16)
def all_partitions(n_items: int) -> IntArray:
    """(Bell(M), M): the labels of all partitions, each group numbered by its first item; the coarsest comes first."""
    found = [[0]]
    for _ in range(n_items - 1):
        found = [[*labels, new] for labels in found for new in range(max(labels) + 2)]
    table = np.array(found, dtype=np.int64)
    table.setflags(write=False)
    return table


def most_equal_pairs(apart: np.ndarray, order: IntArray, n_groups: int | None = None) -> int:
    """An upper bound of the pairs that can be alike together, if no pair of `apart` (M, M) is.

    `order`: the items in a row in which those that are not apart stand close together; any order is valid. Let right(u)
    be the last place that is not apart from a place at or before u. Groups of a partition that keeps all pairs of
    `apart` are sets whose ends u < v have v ≤ right(u). Of partitions into such sets one with the most pairs has groups
    without gaps: where two groups cross, what lies between may go to either, and the sum of squares is largest if all
    of it goes to one. So the most pairs are found from left to right. `n_groups`: exactly so many groups, if that is
    known.
    """
    n = len(apart)
    near = ~apart[np.ix_(order, order)]
    last = n - 1 - np.argmax(near[:, ::-1], axis=1)
    right = np.maximum.accumulate(np.maximum(last, np.arange(n)))
    best = np.zeros(n + 1, dtype=np.int64)  # the most pairs of the first j places
    for j in range(1, n + 1):
        first = int(np.searchsorted(right, j - 1))  # the leftmost place whose group may reach the place j − 1
        sizes = j - np.arange(first, j)
        best[j] = (best[first:j] + sizes * (sizes - 1) // 2).max()
    found = int(best[n])
    if n_groups is not None:  # one group of M − K + 1 items, and the others alone, has the most
        found = min(found, (n - n_groups + 1) * (n - n_groups) // 2)
    return max(1, found)


def component_sizes(apart: np.ndarray) -> tuple[int, ...]:
    """The sizes of the sets of items that are joined by pairs not apart: every group lies in one of them."""
    n, left, sizes = len(apart), np.ones(len(apart), dtype=bool), []
    for start in range(n):
        if not left[start]:
            continue
        member = np.zeros(n, dtype=bool)
        member[start] = True
        while True:
            more = left & ~member & (~apart[member]).any(axis=0)
            if not more.any():
                break
            member |= more
        left &= ~member
        sizes.append(int(member.sum()))
    return tuple(sorted(sizes, reverse=True))


def groupings(apart: np.ndarray, n_groups: int, most: int = 2) -> list[list[int]] | None:
    """Up to `most` partitions into exactly K groups without a pair of `apart` in one; None if the search is too long.

    Items with the fewest groups left come first; a new group is opened only once, so that no partition comes twice.
    """
    n = len(apart)
    labels = [-1] * n
    forbidden = np.zeros((n, n_groups), dtype=np.int64)
    found: list[list[int]] = []
    steps = 0

    def go(placed: int, used: int) -> bool:
        nonlocal steps
        steps += 1
        if steps > _MOST_STEPS:
            return False
        if placed == n:
            if used == n_groups:
                found.append(_by_first_item(labels))
            return True
        if used + n - placed < n_groups:
            return True
        free = [i for i in range(n) if labels[i] < 0]
        item = max(free, key=lambda i: (int((forbidden[i, :used] > 0).sum()), int(apart[i].sum()), -i))
        for group in range(min(used + 1, n_groups)):
            if forbidden[item, group]:
                continue
            labels[item] = group
            forbidden[apart[item], group] += 1
            finished = go(placed + 1, max(used, group + 1))
            forbidden[apart[item], group] -= 1
            labels[item] = -1
            if not finished:
                return False
            if len(found) >= most:
                return True
        return True

    return found if go(0, 0) else None


def _by_first_item(labels: list[int]) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]
