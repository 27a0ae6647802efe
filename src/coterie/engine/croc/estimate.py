"""The estimate ĉ that survives high dimension: the best of several starts, each followed by Hartigan's moves.

Starts: the labels so far; Maximin on the means (Alg. 2's start); Maximin on the means' leading principal components,
which works where 2d exceeds the squared gap and raw Maximin picks outliers; and a Maximin that counts pulls, so that
a poorly measured arm is no outlier. Lowest cost wins. Any estimate would be valid; a bad one only wastes pulls.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.engine.compiled import planned
from coterie.engine.croc.state import CHANGED, ESTIMATED, LEFT_GROUP, Croc, T
from coterie.engine.state import Floats, Ints

PASSES = 20
ONE = 1.000001
"""A group whose weight is below this many times an arm's is that arm alone."""


@planned
def _gap(a: Floats, i: int, b: Floats, j: int) -> float:
    total = 0.0
    for q in range(a.shape[1]):
        total += (a[i, q] - b[j, q]) ** 2
    return total


@planned
def _shift(centers: Floats, totals: Floats, k: int, points: Floats, m: int, weight: float) -> None:
    """Add (or, with a negative weight, take) arm m to group k. INOUT: centers, totals."""
    after = totals[k] + weight
    for q in range(points.shape[1]):
        centers[k, q] = (centers[k, q] * totals[k] + weight * points[m, q]) / after
    totals[k] = after


@planned
def _fill_empty(points: Floats, weights: Floats, labels: Ints, centers: Floats, totals: Floats) -> None:
    """Give every empty group the arm that is costliest where it is."""
    for k in range(totals.size):
        if totals[k] > 0.0:
            continue
        worst, cost = -1, -1.0
        for m in range(labels.size):
            home = labels[m]
            if totals[home] > weights[m] * ONE:
                value = _gap(points, m, centers, home) * weights[m] * totals[home] / (totals[home] - weights[m])
                if value > cost:
                    cost, worst = value, m
        _shift(centers, totals, labels[worst], points, worst, -weights[worst])
        labels[worst] = k
        totals[k] = weights[worst]
        for q in range(points.shape[1]):
            centers[k, q] = points[worst, q]


@planned
def hartigan(points: Floats, weights: Floats, labels: Ints, centers: Floats, totals: Floats) -> float:
    """Move arms one at a time while the weighted cost falls. INOUT: labels. OUT: centers, totals. Returns the cost."""
    n_groups = totals.size
    totals[:] = 0.0
    centers[:, :] = 0.0
    for m in range(labels.size):
        totals[labels[m]] += weights[m]
        for q in range(points.shape[1]):
            centers[labels[m], q] += weights[m] * points[m, q]
    for k in range(n_groups):
        if totals[k] > 0.0:
            centers[k] /= totals[k]
    _fill_empty(points, weights, labels, centers, totals)
    for _ in range(PASSES):
        moved = False
        for m in range(labels.size):
            home = labels[m]
            if totals[home] <= weights[m] * ONE:
                continue
            # The cost of m at home falls by this much if it leaves, and grows by the other if it joins k.
            best = _gap(points, m, centers, home) * totals[home] / (totals[home] - weights[m])
            target = -1
            for k in range(n_groups):
                if k != home:
                    value = _gap(points, m, centers, k) * totals[k] / (totals[k] + weights[m])
                    if value < best - 1e-12:
                        best, target = value, k
            if target >= 0:
                moved = True
                _shift(centers, totals, home, points, m, -weights[m])
                _shift(centers, totals, target, points, m, weights[m])
                labels[m] = target
        if not moved:
            break
    cost = 0.0
    for m in range(labels.size):
        cost += weights[m] * _gap(points, m, centers, labels[m])
    return cost


@planned
def farthest_first(points: Floats, weights: Floats, n_groups: int, by_pulls: bool, labels: Ints) -> None:
    """Maximin. OUT: labels. With `by_pulls`, squared distances times N_i·N_j/(N_i+N_j), from the most pulled arm."""
    near = np.full(labels.size, np.inf)
    start = int(np.argmax(weights)) if by_pulls else 0
    for k in range(n_groups):
        for m in range(labels.size):
            value = _gap(points, m, points, start)
            if by_pulls:
                value *= weights[m] * weights[start] / (weights[m] + weights[start])
            if value < near[m]:
                near[m] = value
                labels[m] = k
        start = int(np.argmax(near))


@planned
def components(points: Floats, weights: Floats, rank: int) -> Floats:
    """Coordinates of the points on about their `rank` leading weighted principal components (subspace iteration)."""
    n, d = points.shape
    mean = np.zeros(d)
    for m in range(n):
        mean += weights[m] * points[m]
    mean /= weights.sum()
    scaled = np.empty((n, d))
    for m in range(n):
        scaled[m] = math.sqrt(weights[m]) * (points[m] - mean)
    wide = min(n, 2 * rank + 2, d)
    energy = np.empty(n)
    for m in range(n):
        energy[m] = (scaled[m] * scaled[m]).sum()
    order = np.argsort(-energy)
    basis = np.empty((d, wide))
    for i in range(wide):
        basis[:, i] = scaled[order[i]]
    for _ in range(12):
        _orthonormalise(basis)
        basis = np.dot(scaled.T, np.dot(scaled, basis))
    # The iteration orders columns by how much they carry: keep the longest ones.
    length = np.empty(wide)
    _orthonormalise(basis)
    onto = np.dot(scaled, basis)
    for i in range(wide):
        length[i] = (onto[:, i] * onto[:, i]).sum()
    keep = np.argsort(-length)[:rank]
    found = np.empty((n, rank))
    for i in range(rank):
        found[:, i] = np.dot(points, np.ascontiguousarray(basis[:, keep[i]]))
    return found


@planned
def _orthonormalise(basis: Floats) -> None:
    """Gram–Schmidt, twice for accuracy. INOUT: the columns."""
    for _ in range(2):
        for i in range(basis.shape[1]):
            for j in range(i):
                along = (basis[:, i] * basis[:, j]).sum()
                basis[:, i] -= along * basis[:, j]
            length = math.sqrt((basis[:, i] * basis[:, i]).sum())
            if length > 0.0:
                basis[:, i] /= length


@planned
def _keep_names(before: Ints, labels: Ints, centers: Floats, totals: Floats) -> None:
    """Number the groups so that they overlap most with those before, largest overlap first. INOUT: all but before."""
    n = totals.size
    overlap = np.zeros((n, n))
    for m in range(labels.size):
        overlap[labels[m], before[m]] += 1.0
    name = np.full(n, -1)
    for _ in range(n):
        best, new, old = -1.0, 0, 0
        for i in range(n):
            for j in range(n):
                if name[i] < 0 and overlap[i, j] > best:
                    best, new, old = overlap[i, j], i, j
        name[new] = old
        overlap[:, old] = -2.0
    old_centers, old_totals = centers.copy(), totals.copy()
    for i in range(n):
        centers[name[i]] = old_centers[i]
        totals[name[i]] = old_totals[i]
    for m in range(labels.size):
        labels[m] = name[labels[m]]


@planned
def estimate(s: Croc) -> bool:
    """Estimate anew. OUT: s.labels, s.centers, s.totals. True if the partition changed."""
    n_arms, d = s.sums.shape
    n_groups = s.totals.size
    weights = np.empty(n_arms)
    for m in range(n_arms):
        weights[m] = s.pulls[m]
        for q in range(d):
            s.means[m, q] = s.sums[m, q] / s.pulls[m]
    first = s.ints[ESTIMATED] == 0
    rank = min(n_groups - 1, d)
    reduced = s.means
    if rank < d:
        reduced = components(s.means, weights, rank)
    best = math.inf
    labels = np.empty(n_arms, dtype=np.int64)
    winner = s.labels.copy()
    centers, totals = np.empty((n_groups, d)), np.empty(n_groups)
    won_centers, won_totals = centers.copy(), totals.copy()
    for start in range(4):
        if start == 0:
            if first:
                continue
            labels[:] = s.labels
        elif start == 2 and rank == d:
            continue
        else:
            farthest_first(s.means if start == 1 else reduced, weights, n_groups, start == 3, labels)
        cost = hartigan(s.means, weights, labels, centers, totals)
        if cost < best - 1e-9:
            best = cost
            winner[:] = labels
            won_centers[:, :] = centers
            won_totals[:] = totals
    if not first:
        _keep_names(s.labels, winner, won_centers, won_totals)
    changed = first
    for m in range(n_arms):
        if s.labels[m] != winner[m]:
            changed = True
            s.labels[m] = winner[m]
    s.centers[:, :] = won_centers
    s.totals[:] = won_totals
    s.ints[ESTIMATED] = s.ints[T]
    s.ints[LEFT_GROUP] = 0
    if changed:
        s.ints[CHANGED] = s.ints[T]
    return bool(changed)
