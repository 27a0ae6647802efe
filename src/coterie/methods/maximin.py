"""Weighted K-means with Maximin initialization (Alg. 2, algo2), for one-off use on any means.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024). Names: `means` is the empirical
means μ̂_m, `weights` is N_m. Ties, within a relative 1e-12 of the squared distance, go to the lowest index.
Departure: a cluster that loses all its arms keeps its center. The engine keeps the same run up to date pull
by pull (`native/paper/maximin.hpp`); `tests/oracles/paper.py` has it line by line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_arm,
    check_count,
    check_real_array,
    check_weights,
)

TIE = 1e-12

STARTS = 20
"""Of `likeliest_groups`, beside the labels that are there."""


def kmeans_maximin(means: Any, weights: Any, n_clusters: int, first: int = 0) -> tuple[IntArray, FloatArray]:
    """Weighted K-means with Maximin initialization: Alg. 2 of the paper.

    Proposition theorem_maximum says when the labels are certainly right: all means within a quarter of the smallest
    distance between true centers.

    Parameters
    ----------
    means
        (M, d) the means of the items.
    weights
        (M) positive: how often each was measured.
    n_clusters
        K.
    first
        The item at which the first center starts.

    Returns
    -------
    labels, centers
        (M) the group of each item, and (K, d) the centers of the groups.

    Examples
    --------
    >>> import coterie
    >>> labels, centers = coterie.kmeans_maximin([[0.0], [0.2], [5.0]], [1, 1, 2], 2)
    >>> labels.tolist(), centers.tolist()
    ([0, 0, 1], [[0.1], [5.0]])
    """
    points, pulls, k = check_points(means, weights, n_clusters)
    return lloyd(points, pulls, points[farthest_first(points, k, check_arm(first, len(points)))])


def check_points(means: Any, weights: Any, n_clusters: Any) -> tuple[FloatArray, FloatArray, int]:
    """Clean means (M, d), positive weights (M) and a number of clusters that is at most M."""
    points = check_real_array(means, "means")
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"means must have shape (M, d) with d at least 1, got shape {points.shape}")
    pulls = check_weights(weights, len(points))
    if not (pulls > 0).all():
        arm = int(np.argmin(pulls))
        raise ValueError(f"every arm needs a positive weight, got {float(pulls[arm])!r} for arm {arm}")
    k = check_count(n_clusters, "n_clusters", 1)
    if k > len(points):
        raise ValueError(f"n_clusters must be at most the number of arms, got {k} for {len(points)} arms")
    return points, pulls, k


def squared_distances_to(points: FloatArray, center: FloatArray) -> FloatArray:
    """Squared distance of every row to one center."""
    gap = points - center
    return np.asarray(np.einsum("md,md->m", gap, gap))


def farthest_first(points: FloatArray, n_clusters: int, first: int) -> list[int]:
    """Alg. 2, lines 1 to 4: farthest-first starts."""
    starts = [first]
    near = squared_distances_to(points, points[first])
    while len(starts) < n_clusters:
        # The first index within TIE of the largest distance to the nearest start.
        arm = int(np.argmax(near >= near.max() * (1.0 - TIE)))
        starts.append(arm)
        near = np.minimum(near, squared_distances_to(points, points[arm]))
    return starts


def assign(points: FloatArray, centers: FloatArray) -> IntArray:
    """Alg. 2, line 6: the nearest center of every row, the lowest index among ties."""
    distances = np.stack([squared_distances_to(points, center) for center in centers], axis=1)
    best = distances.min(axis=1, keepdims=True)
    return np.asarray(np.argmax(distances <= best * (1.0 + TIE), axis=1), dtype=np.int64)


def weighted_centers(points: FloatArray, weights: FloatArray, labels: IntArray, before: FloatArray) -> FloatArray:
    """Alg. 2, line 7: weighted means of the clusters; an emptied cluster keeps its center (departure)."""
    totals = np.bincount(labels, weights, minlength=len(before))
    sums = np.zeros_like(before)
    np.add.at(sums, labels, weights[:, None] * points)
    return np.where(totals[:, None] > 0, sums / np.maximum(totals, 1e-300)[:, None], before)


def lloyd(points: FloatArray, weights: FloatArray, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """Alg. 2, lines 5 to 8, until the labels no longer change."""
    labels = np.full(len(points), -1, dtype=np.int64)
    for _ in range(10_000):  # Lloyd's cost falls strictly, so this ends; the bound guards against rounding
        after = assign(points, centers)
        if np.array_equal(after, labels):
            break
        labels = after
        centers = weighted_centers(points, weights, labels, centers)
    return labels, centers


def likeliest_groups(means: FloatArray, weights: FloatArray, labels: IntArray, n_clusters: int) -> IntArray:
    """The groups that fit best, of weighted K-means from these labels and from farthest-first starts, none empty."""
    firsts = np.unique(np.linspace(0, len(means) - 1, STARTS).round().astype(np.int64)).tolist()
    starts = [weighted_centers(means, weights, labels, np.zeros((n_clusters, means.shape[1])))]
    starts += [means[farthest_first(means, n_clusters, first)] for first in firsts]
    best, least = labels, np.inf
    for start in starts:
        regrouped, centers = lloyd(means, weights, start)
        cost = float(weights @ ((means - centers[regrouped]) ** 2).sum(axis=1))
        if cost < least * (1.0 - TIE) and np.unique(regrouped).size == n_clusters:
            best, least = regrouped, cost
    return best
