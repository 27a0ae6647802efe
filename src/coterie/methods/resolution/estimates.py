"""What all results so far say about the means, in scaled units, and groupings of them that are worth a forecast.

Groupings come from hierarchical linkage, for several numbers of groups, and from greedy nets. Nothing here enters a
proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical

SURE = 1.0
"""Standard errors by which the means of a group must vary more than those of all groups for that to be believed."""
FEW, LARGER = 12, 4
"""Up to so many groups every number is tried; beyond, every number larger by one part in so many."""
PASSES = 4
"""Of weighted k-means, for Ward's groups."""


class Tally:
    """Sums of all results of every arm, of their squares, and asks that are under way."""

    def __init__(self, n_arms: int, dim: int, known_variance: FloatArray | None, least_variance: FloatArray) -> None:
        self.counts = np.zeros(n_arms, dtype=np.int64)
        self.pending = np.zeros(n_arms, dtype=np.int64)
        self.means = np.zeros((n_arms, dim))
        self._squares = np.zeros((n_arms, dim))  # about the mean of each arm
        self._known, self._least = known_variance, least_variance

    def add(self, arm: int, z: FloatArray) -> None:
        """One result."""
        self.counts[arm] += 1
        away = z - self.means[arm]
        self.means[arm] += away / self.counts[arm]
        self._squares[arm] += away * (z - self.means[arm])

    def rescale(self, factor: FloatArray, known_variance: FloatArray | None, least_variance: FloatArray) -> None:
        """Go over to other units, in which the old ones are `factor` (d)."""
        self.means *= factor
        self._squares *= factor**2
        self._known, self._least = known_variance, least_variance

    @property
    def variance(self) -> FloatArray:
        """(d) of one result in each coordinate: known, or as results of the same arm vary."""
        if self._known is not None:
            return self._known
        freedom = int(np.maximum(self.counts - 1, 0).sum())
        if freedom < 1:
            return np.maximum(self._least, 1.0)
        return np.asarray(np.maximum(self._squares.sum(axis=0) / freedom, self._least))


@dataclass(frozen=True)
class BelievedMeans:
    """Means as they are believed under a grouping: drawn towards the center of their group.

    `centers` (K, d) of the groups, `weights` (K) results of each.
    """

    means: FloatArray
    doubt: FloatArray  # (M, d) variance of each of them
    centers: FloatArray
    weights: FloatArray


def believed(tally: Tally, labels: IntArray) -> BelievedMeans:
    """Means drawn towards their groups' centers, as far as the means of a group do not vary beyond the noise."""
    counts = np.maximum(tally.counts, 1).astype(np.float64)
    variance = tally.variance
    n_groups = int(labels.max()) + 1
    weights: FloatArray = np.bincount(labels, counts, n_groups).astype(np.float64)
    sizes = np.bincount(labels, minlength=n_groups)
    centers = np.zeros((n_groups, variance.size))
    np.add.at(centers, labels, counts[:, None] * tally.means)
    centers /= weights[:, None]
    away = tally.means - centers[labels]
    own = variance / counts[:, None]
    shared = np.maximum(1.0 - counts / weights[labels], 0.0)[:, None]  # what the center owes to the arm itself
    several = sizes[labels] > 1
    excess = np.where(several[:, None], away**2 - own * shared, 0.0)
    room = np.where(several[:, None], shared, 0.0)
    spread = np.zeros((n_groups, variance.size))
    if several.any():
        by_group, rooms = np.zeros_like(spread), np.zeros((n_groups, 1))
        np.add.at(by_group, labels, excess)
        np.add.at(rooms, labels, room)
        noise = np.zeros_like(spread)
        np.add.at(noise, labels, own)
        noise /= sizes[:, None]
        few = np.sqrt(2.0 / np.maximum(sizes - 1, 1))[:, None]
        own_spread = by_group / np.maximum(rooms, 1e-9) - SURE * few * noise  # of this group alone, if it is clear
        spread = np.maximum(np.maximum(own_spread, by_group.sum(axis=0) / rooms.sum()), 0.0)
    pull = spread[labels] / (spread[labels] + own)
    means = centers[labels] + pull * away
    doubt = pull * own + variance / weights[labels][:, None]
    alone = ~several
    means[alone], doubt[alone] = tally.means[alone], own[alone]
    return BelievedMeans(means, doubt, centers, weights)


def numbers_of_groups(n_arms: int) -> list[int]:
    """The numbers of groups that are tried."""
    numbers = list(range(1, min(FEW, n_arms) + 1))
    while numbers[-1] < n_arms:
        numbers.append(min(n_arms, numbers[-1] + max(1, numbers[-1] // LARGER)))
    return numbers


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
        groupings = [ward, refined(self._white, self._counts, ward), cut(self._complete, self.n_arms, k)]
        new: list[IntArray] = []
        for labels in map(canonical, groupings):
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
