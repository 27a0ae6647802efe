"""An instance (c, U) of the clustering problem: which arm is in which cluster, and the clusters' centers.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024), section_setup. Names and symbols:
`labels` is c (0-based), `centers` is U with one row per cluster, `means` is mu(c_m) per arm, `sizes` is n(k),
`n_arms` is M, `n_clusters` is K, `dim` is d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_labels,
    check_positive,
    check_real_array,
    check_shape,
    short,
)
from coterie.problem.partition import same_means


def squared_distances(centers: FloatArray) -> FloatArray:
    """Delta^2: squared Euclidean distances between all pairs of rows, by differences (no cancellation)."""
    difference = centers[:, None, :] - centers[None, :, :]
    return np.asarray(np.einsum("kjd,kjd->kj", difference, difference))


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Instance:
    """An immutable, validated instance with distinct centers and no empty cluster.

    The arrays are read-only copies: nothing the caller does later changes an instance.

    Parameters
    ----------
    labels : array-like of int, shape (M,)
        The cluster of each arm, 0 … K−1.
    centers : array-like of shape (K, d)
        One row a cluster.

    Attributes
    ----------
    means : ndarray of shape (M, d)
        The mean of each arm.
    sizes : ndarray of int, shape (K,)
        How many arms each cluster has.

    Examples
    --------
    >>> import coterie
    >>> instance = coterie.Instance([0, 0, 1], [[0.0, 0.0], [3.0, 1.0]])
    >>> instance.n_arms, instance.n_clusters, instance.dim
    (3, 2, 2)
    >>> round(coterie.hardness(instance.with_hardness(2.0)), 6)
    2.0
    """

    labels: IntArray
    centers: FloatArray
    means: FloatArray
    sizes: IntArray

    def __init__(self, labels: Any, centers: Any) -> None:
        points = check_real_array(centers, "centers")
        if points.ndim != 2:
            raise ValueError(f"centers must have shape (K, d), got shape {points.shape}")
        _check_dim(points.shape[1], "centers")
        n_arms = np.size(labels) if np.ndim(labels) == 1 else 0
        if n_arms == 0:
            raise ValueError(f"labels must be a vector with one integer per arm, got {short(labels)}")
        check_shape(n_arms, points.shape[0], points.shape[1])
        index = check_labels(labels, points.shape[0])
        _check_distinct(points)
        self._set(index, points)

    def _set(self, index: IntArray, points: FloatArray) -> None:
        """Fill in checked arrays that are nobody else's."""
        points += 0.0  # -0.0 becomes 0.0, so that equal instances have equal bytes and hashes
        sizes = np.bincount(index, minlength=points.shape[0]).astype(np.int64)
        for name, array in (
            ("labels", index),
            ("centers", points),
            ("means", points[index]),
            ("sizes", sizes),
        ):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def of_means(cls, means: Any) -> Instance:
        """The instance whose arms have these means, for questions that ask for no exact partition.

        Arms of equal means are a cluster; there may be one for all, or one for each. So groups up to a resolution, and
        groups by single linkage, can be simulated on any means.

        Parameters
        ----------
        means : array-like of shape (M, d)
            One row for each arm.

        Returns
        -------
        Instance
            Its clusters are numbered by first appearance.
        """
        rows = np.array(check_real_array(means, "means"))
        if rows.ndim != 2 or rows.shape[0] < 2:
            raise ValueError(f"means must have shape (M, d), one row for each of at least 2 arms, got {rows.shape}")
        _check_dim(rows.shape[1], "means")
        _, firsts, inverse = np.unique(rows + 0.0, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        points = rows[firsts[order]]
        _check_distinct(points)
        made = cls.__new__(cls)
        made._set(np.argsort(order)[inverse.ravel()].astype(np.int64), points)
        return made

    @classmethod
    def from_data(cls, X: Any, y: Any) -> Instance:  # noqa: N803 (the usual names for data and classes)
        """The instance whose arms are the rows of X and whose centers are the class means.

        Parameters
        ----------
        X : array-like of shape (M, d)
            One row for each arm.
        y : array-like of shape (M,)
            One class per row, of any kind that can be sorted (strings too).

        Returns
        -------
        Instance
            Clusters are numbered in sorted order of their classes, arms stay in row order.
        """
        data = check_real_array(X, "X")
        if data.ndim != 2:
            raise ValueError(f"X must have shape (M, d), one row per arm, got shape {data.shape}")
        _check_dim(data.shape[1], "X")
        classes = np.asarray(y)
        if classes.shape != (data.shape[0],):
            raise ValueError(f"y must have one class per row of X, shape ({data.shape[0]},), got {classes.shape}")
        if classes.dtype.kind == "f" and np.isnan(classes).any():
            raise ValueError(f"y must not be NaN, got one in row {int(np.argmax(np.isnan(classes)))}")
        try:
            names, labels = np.unique(classes, return_inverse=True)
        except TypeError:
            raise TypeError(f"y must be of one kind that can be sorted, got {short(y)}") from None
        if not 2 <= names.size < data.shape[0]:
            raise ValueError(
                f"y must name at least 2 classes, but fewer than the {data.shape[0]} rows, got {names.size}"
            )
        return cls(labels.astype(np.int64), np.stack([data[labels == k].mean(axis=0) for k in range(names.size)]))

    def with_hardness(self, hardness: float) -> Instance:
        """A copy rescaled about the origin so that D*(c, U) equals `hardness`.

        Parameters
        ----------
        hardness : float
            The D* of the copy, positive.

        Returns
        -------
        Instance
            With the same labels.
        """
        # The one upward import of this package (listed in the import contract): the method belongs to the public
        # interface of Instance, while computing D* belongs to the evidence.
        from coterie.evidence.allocation import hardness as hardness_of

        wanted = check_positive(hardness, "hardness")
        # theorem_opt3: scaling the centers by s divides D* by s^2.
        return Instance(self.labels, self.centers * np.sqrt(hardness_of(self) / wanted))

    def equivalent(self, other: Instance) -> bool:
        """(c, U) ~ (c', U'): every arm has the same mean in both."""
        if not isinstance(other, Instance):
            raise TypeError(f"an Instance can only be compared with an Instance, got {short(other)}")
        return same_means(self.labels, self.centers, other.labels, other.centers)

    @property
    def n_arms(self) -> int:
        """M, how many arms there are."""
        return int(self.labels.size)

    @property
    def n_clusters(self) -> int:
        """K, how many clusters there are."""
        return int(self.centers.shape[0])

    @property
    def dim(self) -> int:
        """d, how many numbers a measurement has."""
        return int(self.centers.shape[1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Instance):
            return NotImplemented
        return np.array_equal(self.labels, other.labels) and np.array_equal(self.centers, other.centers)

    def __hash__(self) -> int:
        return hash((self.centers.shape, self.labels.tobytes(), self.centers.tobytes()))

    def __reduce__(self) -> tuple[Callable[..., Instance], tuple[Any, ...]]:
        # Through a constructor, because an unpickled array would come back writable.
        if 2 <= self.n_clusters < self.n_arms:
            return Instance, (self.labels, self.centers)
        return Instance.of_means, (self.means,)

    def __repr__(self) -> str:
        sizes = ", ".join(str(n) for n in self.sizes[:8]) + (", ..." if self.n_clusters > 8 else "")
        return f"Instance(n_arms={self.n_arms}, n_clusters={self.n_clusters}, dim={self.dim}, sizes=[{sizes}])"


def _check_dim(dim: int, name: str) -> None:
    if dim == 0:
        raise ValueError(f"{name} must have at least one column (d >= 1), got d = 0")


def _check_distinct(centers: FloatArray) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = squared_distances(centers)
    if not np.isfinite(gaps).all():
        raise ValueError("centers are too far apart: a squared distance between two of them overflows; rescale them")
    equal = np.argwhere(np.triu(gaps == 0.0, k=1))
    if equal.size:
        k, j = (int(i) for i in equal[0])
        raise ValueError(f"centers must be distinct, but those of clusters {k} and {j} are equal: {short(centers[k])}")
