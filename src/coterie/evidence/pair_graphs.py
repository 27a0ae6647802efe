"""What follows from relations of pairs of items, given as symmetric matrices.

Letters (items that share one are not proven different, as people know it from Tukey's test); how many groups there are
at least, by items far from each other, and how many are enough, by balls that cover all; groups of single linkage.
"""

from __future__ import annotations

import numpy as np

from coterie.problem.checks import FloatArray, IntArray


def letter_columns(apart: np.ndarray) -> list[IntArray]:
    """The items of each letter, for a symmetric matrix (M, M) of which pairs are apart.

    Every two items that are not apart share a letter, no two that are apart do, every item has one, and no letter
    can be left out. A letter is a largest set that cannot be made larger; they are made for pairs without a common
    letter, one after the other, each with as many such pairs as it can have (greedily: fewer letters may be
    possible). In the order of their first items.
    """
    n = len(apart)
    near = ~np.asarray(apart, dtype=bool)
    np.fill_diagonal(near, False)
    open_pairs = near.copy()  # not apart, and no common letter yet
    weights = near.astype(np.float32)
    columns: list[np.ndarray] = []
    alone = np.asarray(~near.any(axis=1))
    for item in np.flatnonzero(alone):
        columns.append(np.arange(n) == item)
    while open_pairs.any():
        first = int(np.argmax(open_pairs.sum(axis=1)))
        member = np.zeros(n, dtype=bool)
        member[first] = True
        candidates, gain = near[first].copy(), open_pairs[first].astype(np.int64)
        left = weights @ candidates.astype(np.float32)  # how many candidates each item would leave; whole numbers
        while candidates.any():
            if left[candidates].min() == candidates.sum() - 1:  # none is apart from another: all of them belong to it
                member |= candidates
                break
            # the item with the most open pairs within the set; ties: the one that leaves most candidates, then the
            # first
            best = int(np.argmax(np.where(candidates, gain * (n + 1) + left, -1)))
            member[best] = True
            left -= weights[candidates & ~near[best]].sum(axis=0)
            candidates &= near[best]
            gain = gain + open_pairs[best]
        columns.append(member)
        open_pairs[np.ix_(member, member)] = False
    return _without_redundant(columns, alone)


def _without_redundant(columns: list[np.ndarray], alone: np.ndarray) -> list[IntArray]:
    """Leave out letters all of whose pairs have another one, the last made first."""
    n = alone.size
    shared = np.zeros((n, n), dtype=np.int64)
    for member in columns:
        shared[np.ix_(member, member)] += 1
    kept = []
    for member in reversed(columns):
        inside = np.ix_(member, member)
        block = shared[inside]
        np.fill_diagonal(block, 2)
        if member.sum() > 1 and (block >= 2).all():
            shared[inside] -= 1
        else:
            kept.append(np.flatnonzero(member))
    return sorted(kept, key=lambda items: items.tolist())


def letter_name(number: int) -> str:
    """a, b, …, z, aa, ab, …"""
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(ord("a") + digit) + name
    return name


def letters(apart: np.ndarray) -> tuple[str, ...]:
    """The letters of each item as people write them: "ab"; with a blank between them if one has two signs."""
    columns = letter_columns(apart)
    mark = "" if len(columns) <= 26 else " "
    of: list[list[str]] = [[] for _ in range(len(apart))]
    for number, items in enumerate(columns):
        for item in items.tolist():
            of[item].append(letter_name(number))
    return tuple(mark.join(signs) for signs in of)


_STARTS = 40  # items from which a set of items far from each other is grown


def far_items(apart: np.ndarray, enough: int | None = None) -> list[int]:
    """Items that are pairwise apart, by a symmetric matrix (M, M): as many as a greedy search finds, or `enough`.

    From each of the items with most others apart, one item after the other is added, always the one that leaves most
    candidates; ties go to the lowest index.
    """
    degrees = apart.sum(axis=1)
    best: list[int] = []
    for start in np.argsort(-degrees, kind="stable")[:_STARTS].tolist():
        items, candidates = [start], apart[start].copy()
        while candidates.any() and (enough is None or len(items) < enough):
            places = np.flatnonzero(candidates)
            left = apart[np.ix_(places, places)].sum(axis=1)
            item = int(places[np.argmax(left)])
            items.append(item)
            candidates &= apart[item]
        if len(items) > len(best):
            best = items
        if enough is not None and len(best) >= enough:
            break
    return sorted(best)


def covering_items(near: np.ndarray) -> list[int]:
    """Items near which all items are, by a matrix (M, M) of who is near whom; greedy, ties to the lowest index."""
    near = near | np.eye(len(near), dtype=bool)
    missing = np.ones(len(near), dtype=bool)
    counts, near_to = near.sum(axis=1), np.ascontiguousarray(near.T)
    items = []
    while missing.any():
        item = int(np.argmax(counts))  # near most of those that are missing
        items.append(item)
        counts -= near_to[missing & near[item]].sum(axis=0)
        missing &= ~near[item]
    return sorted(items)


def group_numbers(lower: FloatArray, upper: FloatArray, radii: FloatArray) -> tuple[IntArray, IntArray]:
    """For each radius r, increasing: the proven smallest number of groups, and a number that is proven sufficient.

    `lower`, `upper` (M, M): bounds of the distances of all pairs. The smallest number: items that are pairwise more
    than r apart, of which no two are in a group of diameter r. The sufficient number: balls of radius r around items
    that hold all items. What is found for one radius holds for others: more than r' > r apart is more than r apart, and
    what covers at r covers at r'.
    """
    enough = np.array([len(covering_items(upper <= radius)) for radius in radii.tolist()], dtype=np.int64)
    return _smallest_numbers(lower, radii), np.minimum.accumulate(enough)


def _smallest_numbers(lower: FloatArray, radii: FloatArray) -> IntArray:
    """For each radius, increasing, how many items were found that are pairwise more than it apart.

    The search is the costly part. Between two radii with the same number it is the same: nothing is searched there.
    """
    least = np.zeros(radii.size, dtype=np.int64)

    def search(place: int, after: int) -> None:
        far = lower > radii[place]
        np.fill_diagonal(far, False)
        least[place] = max(len(far_items(far)), after)

    last = radii.size - 1
    search(last, 0)
    search(0, int(least[last]))
    between = [(0, last)]
    while between:
        low, high = between.pop()
        if least[low] == least[high]:
            least[low:high] = least[high]
        elif high - low > 1:
            middle = (low + high) // 2
            search(middle, int(least[high]))
            between += [(low, middle), (middle, high)]
    return np.asarray(np.maximum.accumulate(least[::-1])[::-1])


def linkage_pairs(lower: FloatArray, upper: FloatArray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (M, M) that are proven to be in different groups, and in one group, of single linkage cut into K groups.

    `lower`, `upper` (M, M): bounds of the distances of all pairs. The *height* of a pair is the least over all ways
    from one to the other of the longest step. It grows with the distances, and so does the k-th largest edge of the
    spanning tree. Two items are in different groups if their height is above the K-th largest edge, and in one group if
    it is below the (K−1)-th largest.
    """
    heights_low, edges_low = _heights(lower)
    heights_high, edges_high = _heights(upper)
    apart = heights_low > edges_high[n_clusters - 1] if edges_high.size >= n_clusters else heights_low > 0.0
    alike = heights_high < edges_low[n_clusters - 2]
    np.fill_diagonal(apart, False)
    np.fill_diagonal(alike, True)
    return apart, alike


def _heights(distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Heights of all pairs (M, M), and the edges of the spanning tree, longest first (Prim's algorithm)."""
    n = len(distances)
    heights = np.zeros((n, n))
    nearest, parent = distances[0].copy(), np.zeros(n, dtype=np.int64)
    inside = np.zeros(n, dtype=bool)
    inside[0] = True
    edges = np.empty(n - 1)
    for k in range(n - 1):
        item = int(np.argmin(np.where(inside, np.inf, nearest)) if np.isfinite(nearest[~inside]).any()
                   else np.flatnonzero(~inside)[0])  # fmt: skip
        edges[k] = nearest[item]
        heights[item, inside] = heights[inside, item] = np.maximum(heights[parent[item], inside], nearest[item])
        inside[item] = True
        closer = ~inside & (distances[item] < nearest)
        nearest[closer], parent[closer] = distances[item][closer], item
    return heights, np.sort(edges)[::-1]
