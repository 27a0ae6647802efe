"""The estimate ĉ that survives high dimension: the best of several starts, each followed by Hartigan's moves.

Starts: the labels so far; Maximin on the means (Alg. 2's start); Maximin on the means' leading principal components,
which works where 2d exceeds the squared gap and raw Maximin picks outliers; and a Maximin that counts pulls, so that
a poorly measured arm is no outlier. The largest posterior wins (`coterie.engine.croc.splitting`), and is improved by
regroupings: cut one group in two and merge two others. Any estimate would be valid; a bad one only wastes pulls.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.moves import ONE, better_group, copy_centers, hartigan, shift
from coterie.engine.croc.regrouping import posterior_of, regroup
from coterie.engine.croc.splitting import POSTERIOR_TIE
from coterie.engine.croc.state import CHANGED, ESTIMATED, HEAPED, LEFT_GROUP, STARTED, TOUCHED, Croc, T, Work
from coterie.engine.state import Floats, Ints
from coterie.engine.vectors import dot, dots_with_four, squared_distance

STARTS_RESULTS, STARTS_WORK = 10, 1000
"""Starts other than the labels so far wait for t/STARTS_RESULTS results, at most M²/STARTS_WORK."""
SUBSPACE_PASSES = 12


@compiled
def farthest_first(points: Floats, weights: Floats, n_groups: int, by_pulls: bool, near: Floats, labels: Ints) -> None:
    """Maximin. OUT: labels. With `by_pulls`, squared distances times N_i·N_j/(N_i+N_j), from the most pulled arm.

    Work space: near.
    """
    start = 0
    for m in range(labels.size):
        near[m] = math.inf
        if by_pulls and weights[m] > weights[start]:
            start = m
    for k in range(n_groups):
        for m in range(labels.size):
            value = squared_distance(points, m, points, start)
            if by_pulls:
                value *= weights[m] * weights[start] / (weights[m] + weights[start])
            if value < near[m]:
                near[m] = value
                labels[m] = k
        start = 0
        for m in range(labels.size):
            if near[m] > near[start]:
                start = m


@compiled
def components(points: Floats, weights: Floats, rank: int, w: Work) -> None:
    """Coordinates of the points along about their `rank` leading weighted principal components. OUT: w.reduced.

    Subspace iteration, started at evenly spread arms: it only has to find the directions in which groups lie apart.
    """
    n, d = points.shape
    mean, away, basis, image = w.mean, w.pool_means, w.basis, w.image
    wide = basis.shape[0]
    for q in range(d):
        mean[q] = 0.0
    for m in range(n):
        for q in range(d):
            mean[q] += points[m, q] / n
    for i in range(wide):
        for q in range(d):
            basis[i, q] = points[i * n // wide, q] - mean[q]
    for _ in range(SUBSPACE_PASSES):
        _orthonormalise(basis)
        for i in range(wide):
            for q in range(d):
                image[i, q] = 0.0
        for first in range(0, n, 4):  # four arms at a time: a row of the basis and of the image is read once for them
            for i in range(4):
                for q in range(d):
                    away[i, q] = points[first + i, q] - mean[q] if first + i < n else 0.0
            for i in range(wide):
                a, b, c, e = dots_with_four(basis, i, away)
                a *= weights[first]
                b *= weights[min(first + 1, n - 1)]
                c *= weights[min(first + 2, n - 1)]
                e *= weights[min(first + 3, n - 1)]
                for q in range(d):
                    image[i, q] = image[i, q] + a * away[0, q] + b * away[1, q] + c * away[2, q] + e * away[3, q]
        for i in range(wide):
            for q in range(d):
                basis[i, q] = image[i, q]
    # The iteration brings the rows into the order of what they carry.
    _orthonormalise(basis)
    for m in range(n):
        for i in range(rank):
            w.reduced[m, i] = dot(points, m, basis, i)


@compiled
def _orthonormalise(basis: Floats) -> None:
    """Gram–Schmidt, twice for accuracy. INOUT: the rows."""
    n, d = basis.shape
    for _ in range(2):
        for i in range(n):
            for j in range(i):
                along = dot(basis, i, basis, j)
                for q in range(d):
                    basis[i, q] -= along * basis[j, q]
            length = dot(basis, i, basis, i)
            if length > 0.0:
                length = 1.0 / math.sqrt(length)
                for q in range(d):
                    basis[i, q] *= length


@compiled
def _keep_names(before: Ints, w: Work) -> None:
    """Number the groups so that they overlap most with those before, largest overlap first. INOUT: w.winner, won_*."""
    n, d = w.won_centers.shape
    overlap, name = w.square, w.names
    for i in range(n):
        name[i] = -1
        for j in range(n):
            overlap[i, j] = 0.0
    for m in range(before.size):
        overlap[w.winner[m], before[m]] += 1.0
    for _ in range(n):
        best, new, old = -1.0, 0, 0
        for i in range(n):
            for j in range(n):
                if name[i] < 0 and overlap[i, j] > best:
                    best, new, old = overlap[i, j], i, j
        name[new] = old
        for i in range(n):
            overlap[i, old] = -2.0
    for i in range(n):
        w.totals[name[i]] = w.won_totals[i]
        for q in range(d):
            w.centers[name[i], q] = w.won_centers[i, q]
    copy_centers(w.centers, w.totals, w.won_centers, w.won_totals)
    for m in range(before.size):
        w.winner[m] = name[w.winner[m]]


@compiled
def estimate(s: Croc, w: Work) -> int:
    """Estimate anew. OUT: s.labels, s.centers, s.totals, w.chosen: arms that changed their group. Returns how many.

    From the labels so far only, where the other starts were tried a short while ago: they cost most.
    """
    n_arms, d = s.sums.shape
    n_groups = s.totals.size
    for m in range(n_arms):
        w.weights[m] = s.pulls[m]
    first = s.ints[ESTIMATED] == 0
    rank = w.reduced.shape[1]
    starts = 4
    wait = min(s.ints[T] // STARTS_RESULTS, n_arms * n_arms // STARTS_WORK)
    if not first and s.ints[T] - s.ints[STARTED] < wait:
        starts = 1
    else:
        s.ints[STARTED] = s.ints[T]
    if starts > 1 and rank < d:
        components(s.means, w.weights, rank, w)
    best = -math.inf
    for start in range(starts):
        if (start == 0 and first) or (start == 2 and rank == d):
            continue
        if start == 0:
            for m in range(n_arms):
                w.labels[m] = s.labels[m]
        else:
            reduced = start >= 2 and rank < d
            farthest_first(w.reduced if reduced else s.means, w.weights, n_groups, start == 3, w.near, w.labels)
        cost = hartigan(s.means, w.weights, w.labels, w.centers, w.totals)
        value = posterior_of(s, w.labels, w.totals, cost, w)
        if value > best + POSTERIOR_TIE:
            best = value
            for m in range(n_arms):
                w.winner[m] = w.labels[m]
            copy_centers(w.centers, w.totals, w.won_centers, w.won_totals)
    if starts > 1:
        regroup(s, w, best)
    if not first:
        _keep_names(s.labels, w)
    moved = 0
    for m in range(n_arms):
        if first or s.labels[m] != w.winner[m]:
            s.labels[m] = w.winner[m]
            w.chosen[moved] = m
            moved += 1
    copy_centers(w.won_centers, w.won_totals, s.centers, s.totals)
    s.ints[ESTIMATED] = s.ints[T]
    s.ints[LEFT_GROUP] = 0
    if moved > 0:
        s.ints[CHANGED] = s.ints[T]
        s.ints[HEAPED] = 0
    return moved


@compiled
def move_touched(s: Croc, w: Work) -> int:
    """Hartigan's move for the arms with new results. INOUT: the estimate. OUT: w.chosen. Returns how many moved."""
    moved = 0
    for i in range(s.ints[TOUCHED]):
        m = s.touched[i]
        home, weight = s.labels[m], float(s.pulls[m])
        if s.totals[home] <= weight * ONE or s.sizes[home] == 1:
            continue
        target = better_group(s.means, m, weight, home, s.centers, s.totals)
        if target >= 0:
            shift(s.centers, s.totals, home, s.means, m, -weight)
            shift(s.centers, s.totals, target, s.means, m, weight)
            s.labels[m] = target
            s.sizes[home] -= 1
            s.sizes[target] += 1
            w.chosen[moved] = m
            moved += 1
    s.ints[LEFT_GROUP] = 0
    if moved > 0:
        s.ints[CHANGED] = s.ints[T]
        s.ints[HEAPED] = 0
    return moved
