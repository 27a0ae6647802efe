"""The paper's stopping rule: the closest alternative to a guess, and the threshold that its value has to reach.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024).

*The closest alternative* is the cheapest instance whose partition differs from the given one: theorem_opt2 and the
remark after its proof. Names and symbols: `weights` is lambda (or the pull counts N(t)), `cluster_weights` is w(k),
the sum of the weights in a cluster, `smallest` is wbar(k), the smallest weight in a cluster, `sizes` is n(k).

Departure: the paper takes the minimum over clusters k with n(k) > 1 only. That is wrong as soon as two
clusters are singletons: merge the two and split any other cluster by an arbitrarily small amount. The minimum
therefore runs over all ordered pairs k != k'; `as_printed=True` keeps the paper's restriction.

*The thresholds*: beta, which is proven, is equation_beta with the function Psi below it; its approximation beta-tilde,
for which there is no proof, is in section_exp. Names and symbols: `pulls` is N_m(t), `dim` is d, the
number of arms M is the length of `pulls`, `log_inverse_delta` is log(1/delta).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_count,
    check_delta,
    check_log_inverse_delta,
    check_pulls,
    check_real,
    check_threshold_kind,
    check_weights,
    short,
)
from coterie.problem.instance import Instance, squared_distances


@dataclass(frozen=True, slots=True)
class Alternative:
    """The closest alternative instance.

    Attributes
    ----------
    value : float
        The infimum of Σ_m λ_m ‖μ(c_m) − μ′(c′_m)‖² over the alternatives. It is reached, or approached, by moving
        `arm` into `cluster` and taking `centers`.
    arm, cluster : int
        The arm that moves, and the cluster that it joins.
    centers : ndarray of shape (K, d)
        Those of the instance, except that the center of `cluster` becomes the weighted mean of the arm that moves and
        the arms it joins.

    Notes
    -----
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

    Parameters
    ----------
    labels : array of shape (M,)
        The cluster of each arm, 0 to K − 1.
    centers : array of shape (K, d)
        The clusters' centers.
    weights : array of shape (M,)
        Of the arms: shares, or pull counts.
    as_printed : bool
        The printed formula of theorem_opt2 (docs/PAPER.md).

    Returns
    -------
    float
        The value; 0 when some weight is 0 and, as nothing is certain about such a guess, when a cluster is empty.
    """
    if weights.min() <= 0.0 or np.unique(labels).size < centers.shape[0]:
        return 0.0
    costs, _, _ = _pair_costs(labels, centers, np.asarray(weights, dtype=np.float64), as_printed)
    return float(costs.min())


def closest_alternative(instance: Instance, weights: Any) -> Alternative:
    """The closest alternative to an instance under weights of its arms (theorem_opt2, corrected).

    Among equally close ones the lowest (k, k') is taken, and the lowest arm among the lightest of cluster k.

    Parameters
    ----------
    instance : Instance
        The items' groups and centers.
    weights : array-like of shape (M,)
        λ, or pull counts: nonnegative, one per arm; they need not add up to 1.

    Returns
    -------
    Alternative
        Which arm moves, into which cluster, and at what cost.

    Examples
    --------
    >>> import coterie
    >>> instance = coterie.Instance([0, 0, 1], [[0.0], [2.0]])
    >>> found = coterie.closest_alternative(instance, [1, 1, 2])
    >>> found.arm, found.cluster, round(found.value, 4)
    (0, 1, 2.6667)
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


_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def psi(x: float) -> float:
    """Psi(x), the minimum over h in (1/2, 1) of the function below equation_beta, for x >= 0.

    Psi(x) >= x. The remark below equation_beta says Psi(x) = x + log x + o(log x); the printed formula gives
    x + (1/2) log x + O(1), because 1 - h is of the order of 1/(2x) and enters as -log(1-h)/(2h). The smaller
    term only helps: Psi(x) <= x + log x + O(1) is all that the paper uses.

    Parameters
    ----------
    x : float
        At least 0.

    Returns
    -------
    float
        Ψ(x).

    Examples
    --------
    >>> from coterie.evidence import psi
    >>> round(psi(10.0) - 10.0, 3) > 0.0
    True
    """
    number = check_real(x, "x")
    if number < 0.0:
        raise ValueError(f"Psi is defined for x >= 0, got {number!r}")
    return _psi(number)


@lru_cache(maxsize=4096)  # a run asks for the same few values at every pull
def _psi(x: float) -> float:
    from scipy.special import zeta  # here because importing scipy takes longer than importing coterie may

    def objective(u: float) -> float:
        # h = (1 + s)/2 with s = 1/(1 + e^-u): both ends of (1/2, 1), where zeta(2h) and log(1-h) diverge, are
        # at infinity, and 2h - 1 and 1 - h keep their digits close to them.
        s = 1.0 / (1.0 + math.exp(-u))
        log_one_minus_h = -math.log(2.0) - (u + math.log1p(math.exp(-u)) if u > 0.0 else math.log1p(math.exp(u)))
        h = (1.0 + s) / 2.0
        # Psi below equation_beta
        return 2.0 - 2.0 * math.log(4.0 * h) + (math.log(zeta(1.0 + s)) - log_one_minus_h / 2.0 + x) / h

    # Unimodal in h (the remark below equation_beta), so in u as well: golden section. The minimiser has
    # 1 - h of the order of 1/(2x), hence u close to log(1 + x).
    low, high = -20.0, 20.0 + math.log1p(x)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = objective(left), objective(right)
    while high - low > 1e-7:  # at a minimum the value is then exact to about 1e-14
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = objective(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = objective(right)
    return min(at_left, at_right)


def threshold(delta: float, pulls: Any, dim: int, kind: str = "proven") -> float:
    """The threshold that Z(t) must reach to stop with error probability delta.

    Parameters
    ----------
    delta : float
        δ, in (0, 1).
    pulls : array-like of shape (M,)
        The pull counts of all arms, each at least 1.
    dim : int
        d, how many numbers a measurement has.
    kind : {"proven", "heuristic"}
        β (equation_beta), or β̃ (section_exp), for which there is no proof.

    Returns
    -------
    float
        The threshold, on the log scale.

    Examples
    --------
    >>> import coterie
    >>> round(coterie.threshold(0.05, [10, 10, 10], dim=1), 3)
    18.562
    >>> round(coterie.threshold(0.05, [10, 10, 10], dim=1, kind="heuristic"), 3)
    4.478
    """
    return threshold_from_log(-math.log(check_delta(delta)), pulls, dim, kind)


def threshold_from_log(log_inverse_delta: float, pulls: Any, dim: int, kind: str = "proven") -> float:
    """`threshold` with log(1/delta) given: it works for a delta far below the smallest double.

    Parameters
    ----------
    log_inverse_delta : float
        log(1/δ), positive.
    pulls, dim, kind
        As `threshold` takes them.

    Returns
    -------
    float
        The threshold, on the log scale.

    Examples
    --------
    >>> from coterie.evidence import threshold_from_log
    >>> threshold_from_log(2000.0, [10, 10, 10], dim=1) > 2000.0
    True
    """
    log_term = check_log_inverse_delta(log_inverse_delta)
    counts = check_pulls(pulls)
    d = check_count(dim, "dim", 1)
    if check_threshold_kind(kind) == "heuristic":
        # section_exp: beta-tilde = log((1 + log t)^d / delta)
        return d * math.log1p(math.log(float(counts.sum()))) + log_term
    md = counts.size * d
    # equation_beta
    exploration = 2.0 * d * float(np.log(4.0 + np.log(counts)).sum())
    return exploration + md * _psi(log_term / md)
