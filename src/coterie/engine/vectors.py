"""Distances between rows of two arrays."""

from __future__ import annotations

import numpy as np

from coterie.engine.compiled import compiled, compiled_sum
from coterie.engine.state import Floats

TIE = 1e-12
"""Squared distances this close to the best one, relatively, tie with it; the lowest index wins."""


@compiled_sum
def squared_distance(a: Floats, i: int, b: Floats, j: int) -> float:
    """Squared Euclidean distance between row i of a and row j of b."""
    total = 0.0
    for q in range(a.shape[1]):
        gap = a[i, q] - b[j, q]
        total += gap * gap
    return total


@compiled_sum
def distance_to_mean(sums: Floats, m: int, inverse: float, b: Floats, j: int) -> float:
    """Squared distance between the mean of arm m, its sum times 1/pulls, and row j of b.

    The inverse is computed by the caller: in here the compiler would turn the products back into divisions.
    """
    total = 0.0
    for q in range(sums.shape[1]):
        gap = sums[m, q] * inverse - b[j, q]
        total += gap * gap
    return total


@compiled_sum
def dot(a: Floats, i: int, b: Floats, j: int) -> float:
    """The scalar product of row i of a and row j of b."""
    total = 0.0
    for q in range(a.shape[1]):
        total += a[i, q] * b[j, q]
    return total


@compiled_sum
def dots_with_four(a: Floats, i: int, b: Floats) -> tuple[float, float, float, float]:
    """The scalar products of row i of a and the first four rows of b."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    for q in range(a.shape[1]):
        one += a[i, q] * b[0, q]
        two += a[i, q] * b[1, q]
        three += a[i, q] * b[2, q]
        four += a[i, q] * b[3, q]
    return one, two, three, four


@compiled_sum
def distances_to_points(a: Floats, i: int, one: Floats, other: Floats) -> tuple[float, float]:
    """The squared distances between row i of a and two points."""
    first, second = 0.0, 0.0
    for q in range(a.shape[1]):
        gap, its = a[i, q] - one[q], a[i, q] - other[q]
        first += gap * gap
        second += its * its
    return first, second


@compiled
def copy_row(source: Floats, i: int, target: Floats, j: int) -> None:
    """OUT: row j of target."""
    for q in range(source.shape[1]):
        target[j, q] = source[i, q]


@compiled
def nearest_two(
    sums: Floats, m: int, inverse: float, centers: Floats, first: int, n: int, distances: Floats
) -> tuple[int, float, float]:
    """The center nearest to arm m's mean, of the n in rows first, first+1, …, and the two smallest distances.

    Ties within `TIE` go to the lowest number (Section 3's convention for argmin). The second distance is that
    of the best *other* center, so a tie shows as a margin of (almost) zero. OUT: distances (n), squared.
    """
    best = np.inf
    for k in range(n):
        distances[k] = distance_to_mean(sums, m, inverse, centers, first + k)
        if distances[k] < best:
            best = distances[k]
    label = -1
    second = np.inf
    chosen = best
    for k in range(n):
        if label < 0 and distances[k] <= best * (1.0 + TIE):
            label = k
            chosen = distances[k]
        elif distances[k] < second:
            second = distances[k]
    return label, np.sqrt(chosen), np.sqrt(second)
