"""Hartigan's moves: one arm at a time changes its group while the weighted cost falls."""

from __future__ import annotations

from coterie.engine.compiled import compiled
from coterie.engine.state import Floats, Ints
from coterie.engine.vectors import squared_distance

PASSES = 20
ONE = 1.000001
"""A group whose weight is below this many times an arm's is that arm alone."""
MOVE_TIE = 1e-12
"""An arm moves only if it then costs less by more than this, for each of its results."""


@compiled
def shift(centers: Floats, totals: Floats, k: int, points: Floats, m: int, weight: float) -> None:
    """Add (or, with a negative weight, take) arm m to group k. INOUT: centers, totals."""
    after = totals[k] + weight
    for q in range(points.shape[1]):
        centers[k, q] = (centers[k, q] * totals[k] + weight * points[m, q]) / after
    totals[k] = after


@compiled
def _fill_empty(points: Floats, weights: Floats, labels: Ints, centers: Floats, totals: Floats) -> None:
    """Give every empty group the arm that is costliest where it is."""
    for k in range(totals.size):
        if totals[k] > 0.0:
            continue
        worst, cost = -1, -1.0
        for m in range(labels.size):
            home = labels[m]
            if totals[home] > weights[m] * ONE:
                gap = squared_distance(points, m, centers, home)
                value = gap * weights[m] * totals[home] / (totals[home] - weights[m])
                if value > cost:
                    cost, worst = value, m
        shift(centers, totals, labels[worst], points, worst, -weights[worst])
        labels[worst] = k
        totals[k] = weights[worst]
        for q in range(points.shape[1]):
            centers[k, q] = points[worst, q]


@compiled
def better_group(points: Floats, m: int, weight: float, home: int, centers: Floats, totals: Floats) -> int:
    """The group where arm m would cost least, -1 if that is where it is."""
    # The cost of m at home falls by this much if it leaves, and grows by the other if it joins k.
    best = squared_distance(points, m, centers, home) * totals[home] / (totals[home] - weight)
    target = -1
    for k in range(totals.size):
        if k != home:
            value = squared_distance(points, m, centers, k) * totals[k] / (totals[k] + weight)
            if value < best - MOVE_TIE:
                best, target = value, k
    return target


@compiled
def hartigan(points: Floats, weights: Floats, labels: Ints, centers: Floats, totals: Floats) -> float:
    """Move arms one at a time while the weighted cost falls. INOUT: labels. OUT: centers, totals. Returns the cost."""
    n_groups = totals.size
    for k in range(n_groups):
        totals[k] = 0.0
        for q in range(points.shape[1]):
            centers[k, q] = 0.0
    for m in range(labels.size):
        totals[labels[m]] += weights[m]
        for q in range(points.shape[1]):
            centers[labels[m], q] += weights[m] * points[m, q]
    for k in range(n_groups):
        if totals[k] > 0.0:
            for q in range(points.shape[1]):
                centers[k, q] /= totals[k]
    _fill_empty(points, weights, labels, centers, totals)
    for _ in range(PASSES):
        moved = False
        for m in range(labels.size):
            home = labels[m]
            if totals[home] <= weights[m] * ONE:
                continue
            target = better_group(points, m, weights[m], home, centers, totals)
            if target >= 0:
                moved = True
                shift(centers, totals, home, points, m, -weights[m])
                shift(centers, totals, target, points, m, weights[m])
                labels[m] = target
        if not moved:
            break
    cost = 0.0
    for m in range(labels.size):
        cost += weights[m] * squared_distance(points, m, centers, labels[m])
    return cost


@compiled
def copy_centers(centers: Floats, totals: Floats, to_centers: Floats, to_totals: Floats) -> None:
    """Copy the centers and weights of all groups. OUT: to_centers, to_totals."""
    for k in range(totals.size):
        to_totals[k] = totals[k]
        for q in range(centers.shape[1]):
            to_centers[k, q] = centers[k, q]
