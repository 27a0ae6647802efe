"""BOC (Alg. 1) written with scikit-learn's KMeans and SciPy's SLSQP: what the engine's speed is compared with."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.instance import Instance


def _allocation(minimize: Any, sizes: IntArray, gaps: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """theorem_opt3 as a smooth program: minimise z over (w, z), every constraint below z."""
    k = len(sizes)
    w0 = np.full(k, 1.0 / k)
    z0 = ((sizes[left] / w0[left] + 1 / w0[right]) / gaps).max()
    solved = minimize(
        lambda v: v[-1] / z0,
        np.append(w0, z0),
        jac=lambda v: np.append(np.zeros(k), 1 / z0),
        method="SLSQP",
        bounds=[(1e-9, 1)] * k + [(0, None)],
        constraints=[
            {"type": "eq", "fun": lambda v: v[:-1].sum() - 1},
            {"type": "ineq", "fun": lambda v: (v[-1] - (sizes[left] / v[left] + 1 / v[right]) / gaps) / z0},
        ],
        options={"ftol": 1e-10, "maxiter": 200},
    )
    return np.asarray(solved.x[:-1])


def time_scipy_boc(instance: Instance, pulls: int, seed: int, before: int = 1) -> dict[str, float]:
    """Seconds a pull: with the libraries' own choice of threads ("as installed") and with one ("one thread").

    `before`: results of every arm at the start, 1 at the beginning of a trial, when K-means takes longest.
    On a busy machine the threads of KMeans wait for each other and one is several times as fast, so both are told.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    _timed(instance, 2, seed, before)  # loads and warms up
    found = {"as installed": _timed(instance, pulls, seed, before)}
    with threadpool_limits(1):
        _timed(instance, 1, seed, before)
        found["one thread"] = _timed(instance, pulls, seed, before)
    return found


def _timed(instance: Instance, pulls: int, seed: int, before: int) -> float:
    """Seconds a pull with scikit-learn's KMeans from a Maximin start and SciPy's SLSQP for the allocation."""
    from scipy.optimize import minimize
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(seed)
    means, k = instance.means, instance.n_clusters
    m, d = means.shape
    sums = before * means + np.sqrt(before) * rng.standard_normal((m, d))
    counts = np.full(m, float(before))
    pairs = [(i, j) for i in range(k) for j in range(k) if i != j]
    left, right = (np.array(side) for side in zip(*pairs, strict=True))
    start = time.perf_counter()
    for _ in range(pulls):
        points = sums / counts[:, None]
        starts = [0]
        near = ((points - points[0]) ** 2).sum(axis=1)
        while len(starts) < k:
            starts.append(int(np.argmax(near)))
            near = np.minimum(near, ((points - points[starts[-1]]) ** 2).sum(axis=1))
        fit = KMeans(k, init=points[starts], n_init=1).fit(points, sample_weight=counts)
        labels, centers = fit.labels_, fit.cluster_centers_
        sizes = np.bincount(labels, minlength=k)
        gaps = ((centers[left] - centers[right]) ** 2).sum(axis=1)
        w = _allocation(minimize, sizes, gaps, left, right)
        share = w / sizes
        arm = int(np.argmax(counts.sum() * share[labels] - counts))
        sums[arm] += means[arm] + rng.standard_normal(d)
        counts[arm] += 1
        z1 = (counts * ((sums / counts[:, None] - centers[labels]) ** 2).sum(axis=1)).sum()
        totals = np.bincount(labels, counts, minlength=k)
        least = np.full(k, np.inf)
        np.minimum.at(least, labels, counts)
        z2 = (least[left] * totals[right] / (least[left] + totals[right]) * gaps).min()
        _ = 0.5 * max(0.0, np.sqrt(z2) - np.sqrt(z1)) ** 2
    return (time.perf_counter() - start) / pulls
