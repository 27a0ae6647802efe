"""What all results so far say about the means, in scaled units. Nothing here enters a proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

SURE = 1.0
"""Standard errors by which the means of a group must vary more than those of all groups for that to be believed."""


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
class Believed:
    """Means as they are believed under a grouping: drawn towards the center of their group.

    `centers` (K, d) of the groups, `weights` (K) results of each.
    """

    means: FloatArray
    doubt: FloatArray  # (M, d) variance of each of them
    centers: FloatArray
    weights: FloatArray


def believed(tally: Tally, labels: IntArray) -> Believed:
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
    return Believed(means, doubt, centers, weights)
