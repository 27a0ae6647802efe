"""The closest alternative: the cheapest instance whose partition differs from the given one.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024), theorem_opt2 and the remark
after its proof. Names and symbols: `weights` is lambda (or the pull counts N(t)), `cluster_weights` is w(k),
the sum of the weights in a cluster, `smallest` is wbar(k), the smallest weight in a cluster, `sizes` is n(k).

Departure: the paper takes the minimum over clusters k with n(k) > 1 only. That is wrong as soon as two
clusters are singletons: merge the two and split any other cluster by an arbitrarily small amount. The minimum
therefore runs over all ordered pairs k != k'; `as_printed=True` keeps the paper's restriction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_weights, short
from coterie.problem.instance import Instance, squared_distances


@dataclass(frozen=True, slots=True)
class Alternative:
    """The closest alternative instance.

    `value` is the infimum of Σ_m λ_m ‖μ(c_m) − μ′(c′_m)‖² over the alternatives. It is reached,
    or approached, by moving `arm` into `cluster` and taking `centers` (K, d): those of the instance, except
    that the center of `cluster` becomes the weighted mean of the arm that moves and the arms it joins.

    When the arm that moves was alone, its old cluster would be left empty. It takes over any one arm of
    another cluster with two or more, at that arm's own mean plus an arbitrarily small shift; the infimum is
    then approached rather than reached, and the row of `centers` for the old cluster keeps its value and has
    no meaning.
    """

    value: float
    arm: int
    cluster: int
    centers: FloatArray


def _pair_costs(
    labels: IntArray, centers: FloatArray, weights: FloatArray, as_printed: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The cost of moving the lightest arm of k into k', for all pairs (infinite where not allowed)."""
    n_clusters = centers.shape[0]
    sizes = np.bincount(labels, minlength=n_clusters)
    cluster_weights = np.bincount(labels, weights=weights, minlength=n_clusters).astype(np.float64)
    smallest = np.full(n_clusters, np.inf)
    np.minimum.at(smallest, labels, weights)
    total = smallest[:, None] + cluster_weights[None, :]
    # wbar w' / (wbar + w') as wbar * (w' / total): wbar * w' itself could overflow or vanish.
    share = np.divide(cluster_weights[None, :], total, out=np.zeros_like(total), where=total > 0.0)
    costs = smallest[:, None] * share * squared_distances(centers)  # theorem_opt2, corrected: all k != k'
    np.fill_diagonal(costs, np.inf)
    if as_printed:
        costs[sizes == 1, :] = np.inf  # theorem_opt2 as printed: only n(k) > 1
    return costs, smallest, cluster_weights


def alternative_value(labels: IntArray, centers: FloatArray, weights: FloatArray, *, as_printed: bool = False) -> float:
    """The value of the closest alternative, for arrays that are trusted (a running guess, pull counts).

    0 when some weight is 0 and, as nothing is certain about such a guess, when a cluster is empty.
    """
    if weights.min() <= 0.0 or np.unique(labels).size < centers.shape[0]:
        return 0.0
    costs, _, _ = _pair_costs(labels, centers, np.asarray(weights, dtype=np.float64), as_printed)
    return float(costs.min())


def closest_alternative(instance: Instance, weights: Any) -> Alternative:
    """The closest alternative to an instance under nonnegative weights, one per arm (theorem_opt2,
    corrected).

    Among equally close ones the lowest (k, k') is taken, and the lowest arm among the lightest of cluster k.
    """
    if not isinstance(instance, Instance):
        raise TypeError(f"closest_alternative needs a coterie.Instance, got {short(instance)}")
    lam = check_weights(weights, instance.n_arms)
    costs, smallest, cluster_weights = _pair_costs(instance.labels, instance.centers, lam, as_printed=False)
    value = float(costs.min())
    pair = int(np.argmax(costs.ravel() <= value * (1.0 + 1e-12)))  # ties: rounding must not pick the pair
    source, target = divmod(pair, instance.n_clusters)
    members = np.flatnonzero(instance.labels == source)
    arm = int(members[np.argmin(lam[members])])
    centers = instance.centers.copy()
    total = smallest[source] + cluster_weights[target]
    if total > 0.0:  # the remark after the proof of theorem_opt2: the moved center
        pull = smallest[source] / total
        centers[target] += pull * (instance.centers[source] - instance.centers[target])
    return Alternative(value=value, arm=arm, cluster=target, centers=centers)
