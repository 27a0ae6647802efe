"""Algorithms 1 and 2 line by line, slow and plain: the oracle that the engine is tested against.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024), algo1 and algo2. Every pull
recomputes everything from the running sums. Names and symbols: `pulls` is N_m(t), `means` is mu-hat_m(t),
`guess` is the pair (c^t, U^t), `allocation` is lambda*(t), `statistics` are (t, Z_1(t), Z_2(t), Z(t)).

What the paper leaves open, decided here and in the engine alike:

- The first center of Algorithm 2 is arm 0. Ties go to the lowest index; squared distances within a relative
  1e-12 of the best, and tracking scores within 1e-9 t of the best, tie.
- A cluster that loses all its arms in a K-means pass keeps its center. If the guess ends with an empty
  cluster, or with two equal centers, then Z_2 = 0 (no stop) and every arm's share is 1/M.
- Z_2 and the allocation use the corrected forms of theorem_opt2 and theorem_opt3. `as_printed=True` uses the
  paper's, with which the proven threshold does not keep its error probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.evidence.allocation import project_to_floor, solve_allocation
from coterie.evidence.stopping import alternative_value, threshold_from_log
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_arm,
    check_count,
    check_distance_ratio,
    check_log_inverse_delta,
    check_measurement,
    check_real_array,
    check_shape,
    check_threshold_kind,
    check_weights,
    short,
)
from coterie.problem.instance import Instance, squared_distances

METHODS = ("boc", "boc-linear", "uniform", "oracle")
_MAX_PASSES = 10_000


@dataclass(slots=True)
class ReferenceRun:
    """One trajectory: the arms in the order of their pulls, the statistics after each pull beyond the first
    M, and for each (kind, log(1/delta)) that stopped the time tau and the partition c^out."""

    arms: list[int] = field(default_factory=list)
    statistics: list[tuple[int, float, float, float]] = field(default_factory=list)
    stops: dict[tuple[str, float], tuple[int, IntArray]] = field(default_factory=dict)


def kmeans_maximin_reference(means: Any, weights: Any, n_clusters: int, first: int = 0) -> tuple[IntArray, FloatArray]:
    """Algorithm 2 (algo2): weighted K-means with Maximin start; labels (M,) and centers (K, d)."""
    points = check_real_array(means, "means")
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"means must have shape (M, d) with d >= 1, got shape {points.shape}")
    n_arms, k_total, _ = check_shape(points.shape[0], n_clusters, points.shape[1])
    counts = check_weights(weights, n_arms)

    centers = np.empty((k_total, points.shape[1]))
    centers[0] = points[check_arm(first, n_arms)]  # algo2, line 1: an arbitrary arm
    for k in range(1, k_total):  # algo2, lines 2-4: the arm farthest from its nearest center
        nearest = _squared(points, centers[:k]).min(axis=1)
        centers[k] = points[np.argmax(nearest >= nearest.max() * (1.0 - 1e-12))]

    labels = np.full(n_arms, -1, dtype=np.int64)
    for _ in range(_MAX_PASSES):
        distances = _squared(points, centers)
        # algo2, line 6: each arm to its closest center, lowest index on ties
        closest = np.argmax(distances <= distances.min(axis=1, keepdims=True) * (1.0 + 1e-12), axis=1)
        changed = not np.array_equal(closest, labels)
        labels = closest.astype(np.int64)
        for k in range(k_total):  # algo2, line 7: weighted means
            members = labels == k
            total = counts[members].sum()
            if total > 0.0:  # departure: an emptied cluster keeps its center
                centers[k] = (counts[members, None] * points[members]).sum(axis=0) / total
        if not changed:  # algo2, line 8
            return labels, centers
    raise RuntimeError(f"K-means did not settle in {_MAX_PASSES} passes")


def _squared(points: FloatArray, centers: FloatArray) -> FloatArray:
    difference = points[:, None, :] - centers[None, :, :]
    return np.asarray((difference**2).sum(axis=2))


def guess_allocation(labels: IntArray, centers: FloatArray, *, as_printed: bool = False) -> FloatArray:
    """lambda*(t) of a guess (theorem_opt4), shape (M,), for guesses with empty clusters or equal centers
    too."""
    sizes = np.bincount(labels, minlength=centers.shape[0])
    gaps = squared_distances(centers)
    if (sizes == 0).any() or (gaps[~np.eye(sizes.size, dtype=bool)] <= 1e-100).any():
        return np.full(labels.size, 1.0 / labels.size)  # departure: such a guess has no allocation
    shares = solve_allocation(sizes, gaps, as_printed=as_printed).cluster_weights / sizes
    return np.asarray(shares[labels])


def _tracked_allocation(
    method: str, n_arms: int, instance: Instance | None, distance_ratio: float | None, as_printed: bool
) -> Callable[[IntArray, FloatArray], FloatArray]:
    """What a method tracks, from the labels and centers of a guess; "uniform" does not use it."""
    if method == "oracle":
        if instance is None:
            raise ValueError("method 'oracle' needs the true instance")
        true_allocation = guess_allocation(instance.labels, instance.centers, as_printed=as_printed)
        return lambda labels, centers: true_allocation
    if method == "boc-linear":  # equation_newsamplingrule
        floor = check_distance_ratio(distance_ratio) ** 2 / (2 * n_arms)
        return lambda labels, centers: project_to_floor(guess_allocation(labels, centers, as_printed=as_printed), floor)
    return lambda labels, centers: guess_allocation(labels, centers, as_printed=as_printed)  # algo1, line 7


def run(
    measure: Callable[[int], Any],
    n_arms: int,
    n_clusters: int,
    dim: int,
    method: str,
    *,
    log_inverse_deltas: Iterable[float],
    kinds: Iterable[str] = ("proven", "heuristic"),
    max_pulls: int,
    instance: Instance | None = None,
    distance_ratio: float | None = None,
    as_printed: bool = False,
) -> ReferenceRun:
    """Algorithm 1 (algo1), or one of its variants, until every threshold is reached or `max_pulls` pulls are
    made.

    `measure(arm)` returns one measurement. "boc" is algo1, "boc-linear" its linear exploration
    (equation_newsamplingrule, needs `distance_ratio`), "uniform" a round robin, "oracle" tracks lambda* of
    the true `instance`; the last two as in section_exp.
    """
    n_arms, n_clusters, dim = check_shape(n_arms, n_clusters, dim)
    if method not in METHODS:
        raise ValueError(f"unknown method {short(method)}: choose one of {', '.join(METHODS)}")
    allocation_of = _tracked_allocation(method, n_arms, instance, distance_ratio, as_printed)
    levels = [check_log_inverse_delta(x) for x in log_inverse_deltas]
    waiting = [(check_threshold_kind(kind), level) for kind in kinds for level in levels]
    max_pulls = check_count(max_pulls, "max_pulls", n_arms)

    result = ReferenceRun()
    sums = np.zeros((n_arms, dim))
    pulls = np.zeros(n_arms, dtype=np.int64)

    def pull(arm: int) -> None:
        sums[arm] += check_measurement(measure(arm), dim)
        pulls[arm] += 1
        result.arms.append(arm)

    for arm in range(n_arms):  # algo1, line 1: every arm once
        pull(arm)
    t = n_arms
    guess_before_pull: tuple[IntArray, FloatArray] | None = None
    while waiting and t < max_pulls:  # algo1, line 2
        explores = method in ("boc", "oracle")
        if explores and guess_before_pull is not None and pulls.min() <= max(math.sqrt(t) - n_arms / 2, 0.0):
            # algo1, lines 3-4: forced exploration, and the guess stays as it was. It cannot happen at t = M,
            # as sqrt(M) - M/2 < 1, so that there is a guess by then.
            arm = int(np.argmin(pulls))
        else:
            # algo1, line 6
            guess_before_pull = kmeans_maximin_reference(sums / pulls[:, None], pulls, n_clusters)
            if method == "uniform":
                arm = t % n_arms
            else:
                scores = t * allocation_of(*guess_before_pull) - pulls  # algo1, lines 7-8: D-tracking
                arm = int(np.argmax(scores >= scores.max() - 1e-9 * t))
        pull(arm)
        t += 1  # algo1, line 10

        # algo1, lines 11-12: the guess of t-1 with the means and pulls of t
        labels, centers = guess_before_pull
        z1 = float((pulls * ((sums / pulls[:, None] - centers[labels]) ** 2).sum(axis=1)).sum())
        z2 = alternative_value(labels, centers, pulls.astype(np.float64), as_printed=as_printed)
        z = 0.5 * max(math.sqrt(z2) - math.sqrt(z1), 0.0) ** 2
        result.statistics.append((t, z1, z2, z))
        for key in list(waiting):  # algo1, line 13
            if z >= threshold_from_log(key[1], pulls, dim, key[0]):
                result.stops[key] = (t, labels.copy())
                waiting.remove(key)
    return result
