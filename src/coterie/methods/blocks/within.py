"""What partitions of the arms are worth, by differences within blocks. Nothing here enters a proof.

With the offsets of the blocks fitted, L = diag(N_m) − N_mb·diag(1/N_b)·N_mb' and r = S_m − Σ_b N_mb·S_b/N_b of the arms
say all there is to know: groups with indicators Z have the matrix A = Z·L·Z' and the centers U = A⁺·Z·r, and the cost
falls by r'Z'A⁺Zr. The difference of two centers has the variance τ² = (e_k − e_j)'A⁺(e_k − e_j), in units of the noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

RIDGE = 1e-9
"""Of the mean of L's diagonal: what no block joins has a large variance, and no infinite one."""
CUT_PASSES = 6


class Groups(NamedTuple):
    """Centers of groups, up to a common shift, A⁺ on differences, and log of the posterior up to a constant."""

    centers: FloatArray  # (K, d)
    inverse: FloatArray  # (K, K)
    score: float

    def squares(self) -> tuple[FloatArray, FloatArray]:
        """(K, K) ‖U_k − U_j‖²/τ², by which the cost grows if two groups are merged, and 1/τ²."""
        gaps = self.centers[:, None] - self.centers
        own = np.diag(self.inverse)
        weights = 1.0 / np.maximum(own[:, None] + own - 2.0 * self.inverse, 1e-300)
        np.fill_diagonal(weights, 0.0)
        return np.einsum("kjq,kjq->kj", gaps, gaps) * weights, weights


class Alone(NamedTuple):
    """Each arm taken out of its group: what it costs anywhere, and where it lies."""

    costs: FloatArray  # (M, K) how much more than alone
    away: FloatArray  # (M, K, d) from the centers of the groups without it
    weights: FloatArray  # (M, K) 1/τ² of that


class Within:
    """Counts (M, B) and sums (M, B, d) of results by arm and block, in units of the noise."""

    def __init__(self, table: tuple[FloatArray, FloatArray], n_groups: int) -> None:
        counts, sums = table
        self.counts, self._share = counts, counts / np.maximum(counts.sum(axis=0), 1.0)
        self.n_groups, self.dim = n_groups, sums.shape[2]
        self.right: FloatArray = sums.sum(axis=1) - np.einsum("mb,bq->mq", self._share, sums.sum(axis=0))
        self.own: FloatArray = counts.sum(axis=1) - (counts * self._share).sum(axis=1)  # L's diagonal
        self.scale = max(float(self.own.mean()), 1e-12)

    def _joined(self, labels: IntArray, size: int) -> tuple[FloatArray, FloatArray]:
        """L·Z' (M, size) and A."""
        places = np.arange(labels.size)
        indicators = np.zeros((size, labels.size))
        indicators[labels, places] = 1.0
        joined = -self._share @ (indicators @ self.counts).T
        joined[places, labels] += self.counts.sum(axis=1)
        return joined, indicators @ joined

    def groups(self, labels: IntArray, size: int | None = None) -> Groups:
        """The fit of a partition."""
        size = self.n_groups if size is None else size
        _, matrix = self._joined(labels, size)
        right = np.zeros((size, self.dim))
        np.add.at(right, labels, self.right)
        matrix = matrix + self.scale * (1.0 + RIDGE * np.eye(size))  # centers with sum 0; A on differences
        inverse = np.linalg.inv(matrix)
        centers = inverse @ right
        explained = float((right * centers).sum())
        orders = sum(math.lgamma(count + 1.0) for count in np.bincount(labels, minlength=size).tolist())
        weight = float(np.linalg.slogdet(matrix)[1])
        return Groups(centers, np.asarray(inverse), 0.5 * explained + orders - 0.5 * self.dim * weight)

    def alone(self, labels: IntArray) -> Alone:
        """Each arm out of its group. An arm that is alone in it costs nothing there."""
        n_arms, size, places = labels.size, self.n_groups, np.arange(labels.size)
        joined, matrix = self._joined(labels, size)
        right = np.zeros((size, self.dim))
        np.add.at(right, labels, self.right)
        free = np.empty((n_arms, size + 1, size + 1))
        free[:, :size, :size] = matrix
        free[places, labels, :size] -= joined
        free[places, :size, labels] -= joined
        free[places, labels, labels] += self.own
        joined[places, labels] -= self.own
        free[:, size, :size] = free[:, :size, size] = joined
        free[:, size, size] = self.own
        free += self.scale * (1.0 + RIDGE * np.eye(size + 1))
        single = np.bincount(labels, minlength=size)[labels] == 1
        free[places[single], labels[single], labels[single]] += self.scale
        rights = np.empty((n_arms, size + 1, self.dim))
        rights[:, :size] = right
        rights[places, labels] -= self.right
        rights[:, size] = self.right
        inverse = np.linalg.inv(free)
        centers = inverse @ rights
        away = centers[:, size:] - centers[:, :size]
        diagonal = np.einsum("mkk->mk", inverse)
        weights = 1.0 / np.maximum(diagonal[:, :size] + diagonal[:, size:] - 2.0 * inverse[:, size, :size], 1e-300)
        costs = np.einsum("mkq,mkq->mk", away, away) * weights
        costs[places[single], labels[single]] = 0.0
        return Alone(costs, away, weights)

    def cut(self, labels: IntArray, k: int, alone: Alone) -> tuple[FloatArray, float, float]:
        """Group k in two: (M) its part, by how much the cost falls, and 1/τ² of the difference of the parts.

        The costliest arm alone, or 2-means that begin with it, whichever gains more.
        """
        members = np.flatnonzero(labels == k)
        points, weights = alone.away[members, k], alone.weights[members, k]
        first = int(np.argmax(alone.costs[members, k]))
        inside = np.arange(members.size) == first
        single, total = inside, weights @ points
        for _ in range(CUT_PASSES):
            weight = float(weights[inside].sum())
            part = weights[inside] @ points[inside]
            gaps = points - part / weight, points - (total - part) / (float(weights.sum()) - weight)
            nearer = (gaps[0] ** 2).sum(axis=1) < (gaps[1] ** 2).sum(axis=1)
            if (nearer == inside).all() or nearer.all() or not nearer.any():
                break
            inside = nearer
        best, gain, weight = np.zeros(labels.size, dtype=bool), -math.inf, 1.0
        for side in (single,) if inside is single else (single, inside):
            chosen = np.zeros(labels.size, dtype=bool)
            chosen[members[side]] = True
            squares, seen = self.groups(np.where(chosen, self.n_groups, labels), self.n_groups + 1).squares()
            if squares[k, -1] > gain:
                best, gain, weight = chosen, float(squares[k, -1]), float(seen[k, -1])
        return best, gain, weight


def cut_worth(gain: float, first: int, second: int, weight: float, dim: int) -> float:
    """By how much log posterior grows if a group is cut in two of so many arms (docs/CROC.md, section 7)."""
    ways = math.lgamma(first + second + 1.0) - math.lgamma(first + 1.0) - math.lgamma(second + 1.0)
    return 0.5 * gain - ways - 0.5 * dim * math.log(max(weight, 1e-300))
