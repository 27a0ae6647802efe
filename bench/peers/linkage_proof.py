"""Single linkage of running means, and the proof that it is that of the true means, which all linkage peers share.

**From comparisons to groups.** Let the guess be K groups, and take a spanning tree of each. If every edge e of these
trees is truly shorter than every pair f of items of different groups, single linkage of the true means gives these
groups: it joins along the trees before it joins two groups. So a guess is proven by comparisons (e, f).

**A comparison.** |D̂_f − D̂_e − (D_f − D_e)| ≤ Σ_m c_m·‖error of mean m‖ over the three or four arms in e and f, c_m = 2
for an arm in both, else 1. With noise N(0, I), for every ρ > 0, the product over these arms of
(1 + N_m/ρ)^(−d/2)·exp(N_m²/(N_m + ρ)·‖error_m‖²/2) is a martingale from 1 whatever is measured next, so
Σ_m N_m²/(N_m + ρ)·‖error_m‖²/2 ever exceeds L + Σ_m (d/2)·log(1 + N_m/ρ) with probability at most e^(−L) (Ville). By
Cauchy and Schwarz the comparison is else within √(2·(L + Σ (d/2)·log(1 + N_m/ρ))·Σ c_m²·(N_m + ρ)/N_m²). The event
is one of the set of arms alone: a union over all sets of three or four arms and the values of ρ has
L = log(number of sets · number of ρ/δ). With probability at least 1−δ no false comparison is ever proven.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.evidence.stopping import threshold
from coterie.problem.checks import FloatArray, IntArray

SCALES = (2.0, 8.0, 32.0, 128.0, 512.0, 2048.0)
"""The values of ρ: bounds are tightest for counts some times as large."""


@dataclass(frozen=True)
class Linkage:
    """Single linkage of means: labels, the edges of the groups' trees, and all pairs of items of different groups."""

    labels: IntArray  # (M) in 0 … K−1, numbered in the order of their first arms
    edges: IntArray  # (M−K, 2)
    pairs: IntArray  # (P, 2)
    distances: FloatArray  # (M, M)


class Comparisons:
    """All comparisons of an edge with a pair: `edge` and `pair` (n) say which, `gaps` (n) how much longer the pair is.

    `coefficients` (n, M) are c_m: 2 for an arm in both, 1 for one in either, else 0.
    """

    def __init__(self, found: Linkage) -> None:
        n_edges, n_pairs = len(found.edges), len(found.pairs)
        self.edge, self.pair = np.repeat(np.arange(n_edges), n_pairs), np.tile(np.arange(n_pairs), n_edges)
        lengths = [found.distances[which[:, 0], which[:, 1]] for which in (found.edges, found.pairs)]
        self.gaps: FloatArray = np.asarray(lengths[1][self.pair] - lengths[0][self.edge])
        of_edge, of_pair = (_members(which, found.labels.size) for which in (found.edges, found.pairs))
        self.coefficients: FloatArray = np.asarray(of_edge[self.edge] + of_pair[self.pair])


def _members(which: IntArray, n_arms: int) -> FloatArray:
    """(len(which), M): 1 for the two arms of each."""
    found = np.zeros((len(which), n_arms))
    np.put_along_axis(found, which, 1.0, axis=1)
    return found


def single_linkage(means: FloatArray, n_clusters: int) -> Linkage:
    """The minimum spanning tree (Prim), without its K−1 longest edges; ties go to the lowest index."""
    n_arms = len(means)
    distances = np.sqrt(((means[:, None, :] - means[None, :, :]) ** 2).sum(axis=2))
    nearest, origin = distances[0].copy(), np.zeros(n_arms, dtype=np.int64)
    nearest[0] = np.inf
    outside: NDArray[np.bool_] = np.ones(n_arms, dtype=bool)
    outside[0] = False
    edges = np.empty((n_arms - 1, 2), dtype=np.int64)
    for i in range(n_arms - 1):
        new = int(nearest.argmin())
        edges[i] = origin[new], new
        outside[new] = False
        nearest[new] = np.inf
        closer = outside & (distances[new] < nearest)
        nearest[closer], origin[closer] = distances[new][closer], new
    lengths = distances[edges[:, 0], edges[:, 1]]
    kept = np.sort(np.argsort(lengths, kind="stable")[: n_arms - n_clusters])
    root = np.arange(n_arms)
    for a, b in edges[kept]:  # in the order of Prim's tree, so that b's root is its own
        root[b] = root[a]
    _, first, labels = np.unique(root, return_index=True, return_inverse=True)
    labels = np.argsort(np.argsort(first))[labels]
    rows, columns = np.nonzero(np.triu(labels[:, None] != labels[None, :]))
    return Linkage(labels, edges[kept], np.stack([rows, columns], axis=1), distances)


def arm_sets(n_arms: int) -> int:
    """Sets of three or four arms."""
    return math.comb(n_arms, 3) + math.comb(n_arms, 4)


def certainty(found: Linkage, all_of: Comparisons, pulls: IntArray, dim: int, delta: float) -> FloatArray:
    """(n): the gap of each comparison over what it has to exceed: proven where it is above 1."""
    level = math.log(max(1, arm_sets(pulls.size)) * len(SCALES) / delta)
    penalty, spread = _by_scale(pulls, dim)
    need = 2.0 * (level + (all_of.coefficients > 0.0) @ penalty) * (all_of.coefficients**2 @ spread)
    return np.asarray(all_of.gaps / np.sqrt(need.min(axis=1)))


def pair_radii(pulls: IntArray, dim: int, delta: float) -> FloatArray:
    """(M, M): how far the distance of two means may be from the true one: the same bound for sets of two arms."""
    level = math.log(math.comb(pulls.size, 2) * len(SCALES) / delta)
    penalty, spread = _by_scale(pulls, dim)
    need = 2.0 * (level + penalty[:, None] + penalty[None, :]) * (spread[:, None] + spread[None, :])
    return np.asarray(np.sqrt(need.min(axis=2)))


def pair_certainty(found: Linkage, all_of: Comparisons, pulls: IntArray, dim: int, delta: float) -> FloatArray:
    """The same by bounds of single distances: an upper one of the edge below a lower one of the pair."""
    radii = pair_radii(pulls, dim, delta)
    of_edge, of_pair = (radii[which[:, 0], which[:, 1]] for which in (found.edges, found.pairs))
    return np.asarray(all_of.gaps / (of_edge[all_of.edge] + of_pair[all_of.pair]))


def paper_certainty(found: Linkage, all_of: Comparisons, pulls: IntArray, dim: int, delta: float) -> FloatArray:
    """The same with β(δ, t) of Yang, Zhong and Tan (2024) for the errors of all arms together: much larger.

    A generalized likelihood ratio of a false comparison is at most Σ_m N_m·‖error_m‖²/2 over all arms, and β bounds it.
    """
    need = 2.0 * threshold(delta, pulls, dim) * (all_of.coefficients**2 @ (1.0 / pulls))
    return np.asarray(all_of.gaps / np.sqrt(need))


def _by_scale(pulls: IntArray, dim: int) -> tuple[FloatArray, FloatArray]:
    """(M, ρ): (d/2)·log(1 + N/ρ) and (N + ρ)/N² of every arm."""
    n, scale = pulls.astype(np.float64)[:, None], np.array(SCALES)
    return np.asarray(dim / 2.0 * np.log1p(n / scale)), np.asarray((n + scale) / n**2)
