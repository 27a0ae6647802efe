"""Groupings that are worth a forecast: by hierarchical linkage for several numbers of groups, and by greedy nets."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform

from coterie.problem.checks import FloatArray, IntArray

FEW, LARGER = 12, 4
"""Up to so many groups every number is tried; beyond, every number larger by one part in so many."""
PASSES = 4
"""Of weighted k-means, for Ward's groups."""


def numbers_of_groups(n_arms: int) -> list[int]:
    """The numbers of groups that are tried."""
    found = list(range(1, min(FEW, n_arms) + 1))
    while found[-1] < n_arms:
        found.append(min(n_arms, found[-1] + max(1, found[-1] // LARGER)))
    return found


def distances(means: FloatArray, norm: str, widths: FloatArray) -> FloatArray:
    """(M, M) distances of means in the norm of the question, coordinates divided by `widths` (d)."""
    how = "chebyshev" if norm == "each" else "euclidean"
    return np.asarray(squareform(pdist(means / widths, how)))


class Groupings:
    """Groupings of the arms into k groups, for every k: by Ward's linkage, refined, and by complete linkage."""

    def __init__(self, means: FloatArray, variance: FloatArray, counts: IntArray, norm: str) -> None:
        self._white, self._counts, self.n_arms = means / np.sqrt(variance), counts, len(means)
        if self.n_arms > 1:
            self._ward = linkage(self._white, "ward")
            apart = distances(means, norm, np.ones(means.shape[1]))
            self._complete = linkage(squareform(apart, checks=False), "complete")
        self._seen: set[bytes] = set()

    def into(self, k: int) -> list[IntArray]:
        """Groupings into about k groups that were not given before, labels 0 … k−1 by first appearance."""
        if self.n_arms == 1:
            return [np.zeros(1, dtype=np.int64)]
        ward = cut(self._ward, self.n_arms, k)
        found = [ward, refined(self._white, self._counts, ward), cut(self._complete, self.n_arms, k)]
        new: list[IntArray] = []
        for labels in map(by_appearance, found):
            key = labels.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                new.append(labels)
        return new


def cut(tree: FloatArray, n_arms: int, k: int) -> IntArray:
    """The labels of a hierarchy when k groups are left: its first n − k merges are done."""
    parent = np.arange(2 * n_arms - 1)
    merges = n_arms - k
    parent[tree[:merges, 0].astype(np.int64)] = n_arms + np.arange(merges)
    parent[tree[:merges, 1].astype(np.int64)] = n_arms + np.arange(merges)
    while True:  # from every node to the root of its tree, twice as far each time
        above = parent[parent]
        if (above == parent).all():
            return parent[:n_arms].copy()
        parent = above


def refined(white: FloatArray, counts: IntArray, labels: IntArray) -> IntArray:
    """A grouping after some passes of weighted k-means; groups that become empty vanish."""
    labels, squares = labels.copy(), (white**2).sum(axis=1)
    weights = np.maximum(counts, 1).astype(np.float64)
    for _ in range(PASSES):
        n_groups = int(labels.max()) + 1
        totals = np.bincount(labels, weights, n_groups)
        centers = np.zeros((n_groups, white.shape[1]))
        np.add.at(centers, labels, weights[:, None] * white)
        used = totals > 0.0
        centers[used] /= totals[used, None]
        away = squares[:, None] + (centers**2).sum(axis=1) - 2.0 * (white @ centers.T)
        # An arm's own part of its center makes the center look closer than it is (Hartigan).
        own = totals[labels]
        alone = own <= weights
        gain = np.where(alone, 1.0, own / np.maximum(own - weights, 1e-9))
        away[np.arange(len(white)), labels] *= np.where(alone, 1.0, gain)
        away[:, ~used] = np.inf
        moved = np.argmin(away, axis=1)
        if (moved == labels).all():
            break
        labels = moved
    return labels


def net(apart: FloatArray, threshold: float) -> tuple[IntArray, IntArray]:
    """Groups about a greedy maximal set of items more than `threshold` apart, and these items.

    It always exists, and suits the question for every threshold between ε and η.
    """
    references: list[int] = []
    nearest = np.full(len(apart), np.inf)
    while True:
        arm = int(np.argmax(nearest)) if references else int(np.argmin(apart.max(axis=1)))
        if references and nearest[arm] <= threshold:
            break
        references.append(arm)
        nearest = np.minimum(nearest, apart[arm])
    return np.asarray(np.argmin(apart[:, references], axis=1), dtype=np.int64), np.array(references)


def by_appearance(labels: IntArray) -> IntArray:
    """The same groups, numbered by first appearance."""
    _, firsts, inverse = np.unique(labels, return_index=True, return_inverse=True)
    place = np.empty(firsts.size, dtype=np.int64)
    place[np.argsort(firsts)] = np.arange(firsts.size)
    return np.asarray(place[inverse.ravel()])
