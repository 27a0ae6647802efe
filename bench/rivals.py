"""BOC (Alg. 1) compiled, every pull computed from scratch; with scikit-learn and SciPy it is bench.scipy_boc."""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np

from bench.rival_barrier import barrier_solve

njit = numba.njit(error_model="numpy")


@njit
def _gap(a: np.ndarray, i: int, b: np.ndarray, j: int) -> float:
    total = 0.0
    for q in range(a.shape[1]):
        total += (a[i, q] - b[j, q]) ** 2
    return total


@njit
def _scratch_loop(means: np.ndarray, k: int, rng: np.random.Generator, pulls: int, before: int) -> float:  # noqa: C901
    m, d = means.shape
    sums = np.empty((m, d))
    for i in range(m):
        for q in range(d):
            sums[i, q] = before * means[i, q] + np.sqrt(before) * rng.standard_normal()
    counts = np.full(m, float(before))
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
    for t in range(before * m, before * m + pulls):
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


def compiled_from_scratch(instance: Any, pulls: int, seed: int, before: int = 1) -> float:
    """Seconds a pull when everything is recomputed each time and the whole loop is compiled with numba.

    `before`: results of every arm at the start.
    """
    _scratch_loop(instance.means, instance.n_clusters, np.random.default_rng(seed), 1, before)
    start = time.perf_counter()
    _scratch_loop(instance.means, instance.n_clusters, np.random.default_rng(seed), pulls, before)
    return (time.perf_counter() - start) / pulls


@numba.njit(error_model="numpy", cache=True)  # calls nothing of the engine's, whose changes the cache would not notice
def draw(rng: np.random.Generator, pulls: int, out: np.ndarray) -> None:
    """OUT: out, d Gaussians, again and again."""
    for _ in range(pulls):
        for q in range(out.shape[0]):
            out[q] = rng.standard_normal()


def random_numbers_alone(dim: int, pulls: int, seed: int) -> float:
    """Seconds for the d Gaussians of one measurement: the floor."""
    out = np.zeros(dim)
    rng = np.random.default_rng(seed)
    draw(rng, 1, out)
    start = time.perf_counter()
    draw(rng, pulls, out)
    return (time.perf_counter() - start) / pulls
