"""The same algorithm (BOC, Alg. 1) the ways people write it: scikit-learn with SciPy, and compiled from scratch."""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np

from coterie.engine.barrier import barrier_solve

njit = numba.njit(error_model="numpy")


def _usual_allocation(
    minimize: Any, sizes: np.ndarray, gaps: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
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


def usual_libraries(instance: Any, pulls: int, seed: int) -> float:
    """Seconds a pull with scikit-learn's KMeans from a Maximin start and SciPy's SLSQP for the allocation."""
    from scipy.optimize import minimize
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(seed)
    means, k = instance.means, instance.n_clusters
    m, d = means.shape
    sums = means + rng.standard_normal((m, d))
    counts = np.ones(m)
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
        w = _usual_allocation(minimize, sizes, gaps, left, right)
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


@njit
def _gap(a: np.ndarray, i: int, b: np.ndarray, j: int) -> float:
    total = 0.0
    for q in range(a.shape[1]):
        total += (a[i, q] - b[j, q]) ** 2
    return total


@njit
def _scratch_loop(means: np.ndarray, k: int, rng: np.random.Generator, pulls: int) -> float:
    m, d = means.shape
    sums = np.empty((m, d))
    for i in range(m):
        for q in range(d):
            sums[i, q] = means[i, q] + rng.standard_normal()
    counts = np.ones(m)
    points = np.empty((m, d))
    centers = np.empty((k, d))
    labels = np.zeros(m, dtype=np.int64)
    near = np.empty(m)
    sizes = np.zeros(k, dtype=np.int64)
    totals, least = np.zeros(k), np.zeros(k)
    gaps = np.zeros((k, k))
    slack, step = np.empty(k), np.empty(k)
    matrix, room, dual = np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    z = 0.0
    for t in range(m, m + pulls):
        for i in range(m):
            for q in range(d):
                points[i, q] = sums[i, q] / counts[i]
        centers[0] = points[0]
        near[:] = np.inf
        for c in range(1, k):
            for i in range(m):
                near[i] = min(near[i], _gap(points, i, centers, c - 1))
            centers[c] = points[np.argmax(near)]
        labels[:] = -1
        while True:
            changed = False
            for i in range(m):
                best, at = np.inf, 0
                for c in range(k):
                    gap = _gap(points, i, centers, c)
                    if gap < best:
                        best, at = gap, c
                if labels[i] != at:
                    labels[i], changed = at, True
            if not changed:
                break
            centers[:] = 0.0
            totals[:] = 0.0
            for i in range(m):
                totals[labels[i]] += counts[i]
                for q in range(d):
                    centers[labels[i], q] += sums[i, q]
            for c in range(k):
                for q in range(d):
                    centers[c, q] /= totals[c]
        sizes[:] = 0
        least[:] = np.inf
        for i in range(m):
            sizes[labels[i]] += 1
        for a in range(k):
            for b in range(k):
                gaps[a, b] = _gap(centers, a, centers, b)
        barrier_solve(sizes, gaps, matrix, step, slack, room, dual)
        inverse = (1 / slack).sum()
        arm, best = 0, -np.inf
        for i in range(m):
            c = labels[i]
            score = t / (slack[c] * inverse * sizes[c]) - counts[i]
            if score > best:
                arm, best = i, score
        for q in range(d):
            sums[arm, q] += means[arm, q] + rng.standard_normal()
        counts[arm] += 1
        totals[labels[arm]] += 1
        z1 = 0.0
        for i in range(m):
            least[labels[i]] = min(least[labels[i]], counts[i])
            for q in range(d):
                z1 += counts[i] * (sums[i, q] / counts[i] - centers[labels[i], q]) ** 2
        z2 = np.inf
        for a in range(k):
            for b in range(k):
                if a != b:
                    z2 = min(z2, least[a] * totals[b] / (least[a] + totals[b]) * gaps[a, b])
        z += max(0.0, np.sqrt(z2) - np.sqrt(z1)) ** 2
    return z


def compiled_from_scratch(instance: Any, pulls: int, seed: int) -> float:
    """Seconds a pull when everything is recomputed each time and the whole loop is compiled with numba."""
    _scratch_loop(instance.means, instance.n_clusters, np.random.default_rng(seed), 1)
    start = time.perf_counter()
    _scratch_loop(instance.means, instance.n_clusters, np.random.default_rng(seed), pulls)
    return (time.perf_counter() - start) / pulls


@njit
def _draw(rng: np.random.Generator, pulls: int, out: np.ndarray) -> None:
    for _ in range(pulls):
        for q in range(out.shape[0]):
            out[q] = rng.standard_normal()


def random_numbers_alone(dim: int, pulls: int, seed: int) -> float:
    """Seconds for the d Gaussians of one measurement: the floor."""
    out = np.zeros(dim)
    rng = np.random.default_rng(seed)
    _draw(rng, 1, out)
    start = time.perf_counter()
    _draw(rng, pulls, out)
    return (time.perf_counter() - start) / pulls
