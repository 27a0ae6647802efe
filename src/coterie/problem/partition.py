"""When two descriptions mean the same: the two equivalences of section_setup of the paper.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024). A partition is a label vector c;
c ~ c' when a permutation of the labels turns one into the other (`same_partition`). An instance is a pair
(c, U) of labels and centers; (c, U) ~ (c', U') when every arm has the same mean in both (`same_means`). The
second does not imply the first: with equal centers the labels are not determined (example_instance).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.problem.checks import IntArray, check_real_array, short


def canonical(labels: Any) -> IntArray:
    """The same partition with labels 0, 1, 2, … in the order in which the clusters first appear.

    Parameters
    ----------
    labels : array-like of shape (M,)
        Any labels that can be sorted: integers, strings.

    Returns
    -------
    array of int of shape (M,)
        The labels of the same partition.

    Examples
    --------
    >>> from coterie.problem import canonical
    >>> canonical(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    try:
        array = np.asarray(labels)
    except ValueError:
        raise ValueError(f"labels must be a vector, got {short(labels)}") from None
    if array.ndim != 1:
        raise ValueError(f"labels must be a vector with one entry per arm, got shape {array.shape}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"labels must not be NaN, got one for arm {int(np.argmax(np.isnan(array)))}")
    try:
        _, first_seen, inverse = np.unique(array, return_index=True, return_inverse=True)
    except TypeError:
        raise TypeError(f"labels must be of one kind that can be sorted, got {short(labels)}") from None
    rank = np.empty(first_seen.size, dtype=np.int64)
    rank[np.argsort(first_seen, kind="stable")] = np.arange(first_seen.size)
    return rank[inverse]


def same_partition(a: Any, b: Any) -> bool:
    """Whether two label vectors describe the same partition, c ~ c' (equal up to relabelling).

    Parameters
    ----------
    a, b : array-like of shape (M,)
        Labels of one kind that can be sorted each: integers, strings.

    Returns
    -------
    bool
        Whether the same items are together in both.

    Examples
    --------
    >>> import coterie
    >>> coterie.same_partition([0, 0, 1], ["b", "b", "a"])
    True
    """
    first, second = canonical(a), canonical(b)
    if first.size != second.size:
        raise ValueError(f"partitions of different sets: {first.size} labels against {second.size}")
    return bool(np.array_equal(first, second))


def same_groups(a: IntArray, b: IntArray, n_groups: int) -> bool:
    """As `same_partition`, of labels 0 … n_groups − 1 that were checked: what a loop over short trials can afford."""
    together = np.bincount(a * n_groups + b, minlength=n_groups**2).reshape(n_groups, n_groups) > 0
    return bool(together.sum(axis=0).max() <= 1 and together.sum(axis=1).max() <= 1)


def same_means(labels_a: Any, centers_a: Any, labels_b: Any, centers_b: Any) -> bool:
    """Whether every arm has the same mean in both, (c, U) ~ (c', U'); the centers may repeat.

    Parameters
    ----------
    labels_a, labels_b : array-like of shape (M,)
        The cluster of each arm, as numbers of rows of the centers.
    centers_a, centers_b : array-like of shape (K, d)
        The centers; their numbers may differ.

    Returns
    -------
    bool
        Whether all means agree.

    Examples
    --------
    >>> from coterie.problem import same_means
    >>> same_means([0, 1], [[1.0], [2.0]], [1, 0], [[2.0], [1.0]])
    True
    """
    means = []
    for labels, centers, which in ((labels_a, centers_a, "first"), (labels_b, centers_b, "second")):
        points = check_real_array(centers, f"the {which} centers")
        index = np.asarray(labels)
        if points.ndim != 2:
            raise ValueError(f"the {which} centers must have shape (K, d), got shape {points.shape}")
        if index.ndim != 1:
            raise ValueError(f"the {which} labels must be a vector, got shape {index.shape}")
        if index.size and index.dtype.kind not in "iu":
            raise TypeError(f"the {which} labels must be integers, got {short(labels)}")
        outside = (index < 0) | (index >= points.shape[0])
        if outside.any():
            arm = int(np.argmax(outside))
            raise ValueError(f"the {which} labels must lie in 0..{points.shape[0] - 1}, got {index[arm]} for arm {arm}")
        means.append(points[index.astype(np.int64)])
    return bool(np.array_equal(means[0], means[1]))
