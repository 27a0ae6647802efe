"""A guess of the groups that survives high dimension: the best of several starts, each with weighted Lloyd passes.

With one pull an arm, Maximin on the means fails once 2d exceeds the squared gap: it picks outliers. Maximin on the
means' leading principal components does not, because noise spreads over d directions and groups only over K − 1.
This is the plain form for one-off use, and the oracle of `coterie.engine.croc.estimate`, which CROC runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.clustering.maximin import check_points, farthest_first, lloyd
from coterie.problem.checks import FloatArray, IntArray, check_labels


def best_groups(means: Any, weights: Any, n_clusters: int, previous: Any = None) -> tuple[IntArray, FloatArray, float]:
    """Labels, centers and weighted cost: the best of `previous` labels and of Maximin on means and on components."""
    points, pulls, k = check_points(means, weights, n_clusters)
    starts = [points[farthest_first(points, k, 0)], points[farthest_first(components(points, pulls, k - 1), k, 0)]]
    if previous is not None:
        labels = check_labels(previous, k)
        starts.append(np.stack([np.average(points[labels == j], axis=0, weights=pulls[labels == j]) for j in range(k)]))
    found = []
    for start in starts:
        labels, centers = lloyd(points, pulls, start)
        gap = points - centers[labels]
        found.append((float((pulls * (gap * gap).sum(axis=1)).sum()), labels, centers))
    cost, labels, centers = min(found, key=lambda one: one[0])
    return labels, centers, cost


def components(points: FloatArray, weights: FloatArray, rank: int) -> FloatArray:
    """Coordinates along the `rank` leading weighted principal components; the points themselves if d is no larger."""
    if rank >= points.shape[1] or rank < 1:
        return points
    centered = points - np.average(points, axis=0, weights=weights)
    _, _, axes = np.linalg.svd(np.sqrt(weights)[:, None] * centered, full_matrices=False)
    return np.asarray(centered @ axes[:rank].T)
