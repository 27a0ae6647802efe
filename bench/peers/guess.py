"""A guess of the groups, with one representative each: it decides what is measured next, and no proof rests on it.

With one pull an arm, Maximin on the means fails once 2d exceeds the squared gap: it picks outliers. Maximin on the
means' leading principal components does not, because noise spreads over d directions and groups only over K − 1. So
the guess is the best of several starts, each with weighted Lloyd passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.methods.maximin import check_points, farthest_first, lloyd
from coterie.problem.checks import FloatArray, IntArray, check_labels


def groups_and_representatives(
    means: FloatArray, pulls: IntArray, n_clusters: int, before: tuple[IntArray, IntArray] | None
) -> tuple[IntArray, IntArray]:
    """Labels and representatives; group k is the one of representative k.

    An earlier representative stays if its group has no other; a group without one gets its most measured arm, and
    of several the one nearest to the center.
    """
    labels, centers, _ = best_groups(means, pulls, n_clusters, None if before is None else before[0])
    chosen = np.full(n_clusters, -1)
    if before is not None:
        for arm in before[1]:
            if chosen[labels[arm]] < 0:
                chosen[labels[arm]] = arm
    off = ((means - centers[labels]) ** 2).sum(axis=1)
    order = np.lexsort((off, -pulls))
    for k in np.flatnonzero(chosen < 0):
        chosen[k] = order[np.argmax(labels[order] == k)]
    return labels, chosen


def unmet_tests(proven: NDArray[np.bool_], labels: IntArray) -> NDArray[np.bool_]:
    """(M, K): arm m is not yet proven different from the representative of a group that is not its own."""
    return np.asarray(~proven & (labels[:, None] != np.arange(proven.shape[1])))


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
