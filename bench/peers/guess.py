"""A guess of the groups, with one representative each: it decides what is measured next, and no proof rests on it."""

from __future__ import annotations

import numpy as np

from coterie.clustering import best_groups


def groups_and_representatives(
    means: np.ndarray, pulls: np.ndarray, n_clusters: int, before: tuple[np.ndarray, np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray]:
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


def unmet_tests(proven: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(M, K): arm m is not yet proven different from the representative of a group that is not its own."""
    unmet: np.ndarray = ~proven & (labels[:, None] != np.arange(proven.shape[1]))
    return unmet
