"""The optimal allocation on a guessed set of active constraints, in O(K) a Newton step.

With y_k = 1/(w_k·v), v the value of the minimax, theorem_opt3 becomes separable:

    min Σ_k 1/y_k   subject to   n_k·y_k + y_j ≤ Δ²_kj  for all k ≠ j.

Each constraint joins two clusters, so a set of active ones is a graph on the K clusters. At a nondegenerate optimum
every connected part of it is a tree (one degree of freedom: all y are affine in the root's, and a scalar Newton
iteration finds it) or has exactly one cycle (y is determined). Multipliers follow leaf by leaf. No linear algebra is
needed; a part with two cycles is refused, and the caller falls back to `coterie.engine.barrier`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.engine.compiled import INT, compiled
from coterie.engine.state import Floats, Ints


class Forest(NamedTuple):
    """Work space: how the active constraints hang together, and each y as offset + slope·(its root's y)."""

    order: Ints  # (K) clusters, part by part, parents before children
    parent: Ints  # (K) the constraint that leads to the cluster's parent, -1 at a root
    part: Ints  # (K) the part that a cluster belongs to
    first: Ints  # (K+1) where each part begins in `order`
    cycle: Ints  # (K) the constraint that closes the part's cycle, -1 for a tree
    leaving: Ints  # (K) where an outgoing constraint leads, -1 if there is none
    used: Ints  # (E) 1 once a constraint has been walked
    weight: Floats  # (K) 1/y, proportional to w*(k)
    offset: Floats  # (K)
    slope: Floats  # (K)
    rest: Floats  # (K)
    rest_slope: Floats  # (K)
    share: Floats  # (E)
    share_slope: Floats  # (E)
    solution: Floats  # (E)
    matrix: Floats  # (K, K) …
    step: Floats  # (K) … and the rest for the barrier
    kept: Floats  # (K)
    room: Floats  # (K, K)
    dual: Floats  # (K, K)


def new_forest(n_clusters: int) -> Forest:
    """Work space for K clusters."""
    k, e = n_clusters, 2 * n_clusters + 2

    def ints(n: int) -> Ints:
        return np.zeros(n, dtype=np.int64)

    def floats(n: int) -> Floats:
        return np.zeros(n)

    return Forest(
        ints(k), ints(k), ints(k), ints(k + 1), ints(k), ints(k), ints(e),
        floats(k), floats(k), floats(k), floats(k), floats(k), floats(e), floats(e), floats(e),
        np.zeros((k, k)), floats(k), floats(k), np.zeros((k, k)), np.zeros((k, k)),
    )  # fmt: skip


@compiled
def _root_of(start: int, f: Forest) -> int:
    """Follow outgoing constraints to a cluster without one, or onto the part's cycle."""
    k = start
    for _ in range(f.order.shape[0]):
        if f.leaving[k] < 0:
            break
        k = f.leaving[k]
    return k


@compiled
def _attach(j: int, e: int, part: int, end: int, f: Forest) -> int:
    f.part[j] = part
    f.parent[j] = e
    f.order[end] = j
    f.used[e] = 1
    return end + 1


@compiled
def _grow(root: int, part: int, end: int, tail: Ints, head: Ints, n_edges: int, f: Forest) -> int:
    """Walk the part of `root`. Returns where it ends in f.order, or -1 if it has two cycles.

    Against the arrows first: y_k = (Δ² − y_j)/n_k damps rounding errors, y_j = Δ² − n_k·y_k amplifies them.
    """
    f.cycle[part] = -1
    place = end
    f.order[end] = root
    f.parent[root] = -1
    f.part[root] = part
    end += 1
    while True:
        while place < end:
            i = f.order[place]
            place += 1
            for e in range(n_edges):
                if f.used[e] == 0 and head[e] == i and f.part[tail[e]] < 0:
                    end = _attach(tail[e], e, part, end, f)
        for e in range(n_edges):
            if f.used[e] == 0 and f.part[tail[e]] == part and f.part[head[e]] < 0:
                end = _attach(head[e], e, part, end, f)
                break
        if place == end:
            break
    for e in range(n_edges):
        if f.used[e] == 0 and f.part[tail[e]] == part:
            f.used[e] = 1
            if f.cycle[part] >= 0:
                return -1
            f.cycle[part] = e
    return end


@compiled
def forest_shape(n: int, tail: Ints, head: Ints, n_edges: int, f: Forest) -> int:
    """How the active constraints hang together. OUT: f's integers. Returns the parts, -1 if y is not determined."""
    for k in range(n):
        f.part[k] = -1
        f.leaving[k] = -1
    for e in range(n_edges):
        f.used[e] = 0
        f.leaving[tail[e]] = head[e]
    end, parts = INT(0), INT(0)
    for k in range(n):
        if f.part[k] < 0:
            f.first[parts] = end
            grown = _grow(_root_of(k, f), parts, end, tail, head, n_edges, f)
            if grown < 0 or grown == end + 1:  # two cycles, or a cluster that nothing bounds
                return -1
            end = grown
            parts += 1
    f.first[parts] = end
    return parts


@compiled
def _tree_root_value(low_place: int, high_place: int, start: float, f: Forest) -> float:
    """argmin over the root's y of Σ 1/(offset + slope·y), by a bracketed Newton iteration; -1 if there is none."""
    low, high = 0.0, np.inf
    for place in range(low_place, high_place):
        k = f.order[place]
        edge = -f.offset[k] / f.slope[k]
        if f.slope[k] > 0.0:
            low = max(low, edge)
        else:
            high = min(high, edge)
    if not (low < high) or not np.isfinite(high):
        return -1.0
    # Too close to an end, a Newton step is lost in rounding: such a start tells nothing.
    edge = 1e-6 * (high - low)
    value = start if low + edge < start < high - edge else 0.5 * (low + high)
    for _ in range(100):
        gradient, curvature, steepest = 0.0, 0.0, 0.0
        for place in range(low_place, high_place):
            k = f.order[place]
            inverse = 1.0 / (f.offset[k] + f.slope[k] * value)
            ratio = f.slope[k] * inverse
            gradient -= ratio * inverse
            curvature += 2.0 * ratio * ratio * inverse
            steepest = max(steepest, abs(ratio))
        if gradient < 0.0:
            low = value
        else:
            high = value
        step = -gradient / curvature
        if not (low <= value + step <= high):
            step = 0.5 * (low + high) - value
        value = value + step
        if steepest * abs(step) <= 1e-8:  # no y changes by more; Newton squares the error: what is left is below 1e-15
            return value
    return -1.0


@compiled
def forest_solve(
    sizes: Ints,
    inverse: Floats,
    gaps: Floats,
    tail: Ints,
    head: Ints,
    n_edges: int,
    parts: int,
    f: Forest,
    slack: Floats,
) -> bool:
    """y with the given constraints active, on the shape in f; `inverse` is 1/sizes.

    INOUT: slack (start and solution). False on failure.
    """
    for part in range(parts):
        begin, end = f.first[part], f.first[part + 1]
        root = f.order[begin]
        f.offset[root] = 0.0
        f.slope[root] = 1.0
        for place in range(begin + 1, end):
            k = f.order[place]
            e = f.parent[k]
            if tail[e] == k:  # n_k·y_k + y_j = Δ²
                f.offset[k] = (gaps[k, head[e]] - f.offset[head[e]]) * inverse[k]
                f.slope[k] = -f.slope[head[e]] * inverse[k]
            else:  # n_j·y_j + y_k = Δ²
                f.offset[k] = gaps[k, tail[e]] - sizes[tail[e]] * f.offset[tail[e]]
                f.slope[k] = -sizes[tail[e]] * f.slope[tail[e]]
        e = f.cycle[part]
        if e >= 0:
            i, j = tail[e], head[e]
            slope = sizes[i] * f.slope[i] + f.slope[j]
            if abs(slope) <= 1e-9 * (abs(sizes[i] * f.slope[i]) + abs(f.slope[j])):
                return False
            value = (gaps[i, j] - sizes[i] * f.offset[i] - f.offset[j]) / slope
        else:
            value = _tree_root_value(begin, end, slack[root], f)
        for place in range(begin, end):
            k = f.order[place]
            slack[k] = f.offset[k] + f.slope[k] * value
            if not (slack[k] > 0.0):
                return False
    for e in range(n_edges):
        i, j = tail[e], head[e]
        if abs(sizes[i] * slack[i] + slack[j] - gaps[i, j]) > 1e-12 * gaps[i, j]:
            return False  # the chain amplified rounding errors: leave it to the barrier
    return True


@compiled
def forest_multipliers(
    sizes: Ints, inverse: Floats, tail: Ints, head: Ints, parts: int, f: Forest, out: Floats
) -> None:
    """Solve Aᵀν = rest on the solved forest, leaf by leaf. IN: f.rest, the right side (overwritten). OUT: out."""
    for part in range(parts):
        begin, end = f.first[part], f.first[part + 1]
        for place in range(begin, end):
            f.rest_slope[f.order[place]] = 0.0
        closing = f.cycle[part]
        if closing >= 0:
            f.rest_slope[tail[closing]] -= sizes[tail[closing]]
            f.rest_slope[head[closing]] -= 1.0
        for place in range(end - 1, begin, -1):
            k = f.order[place]
            e = f.parent[k]
            if tail[e] == k:
                other, own, theirs = head[e], inverse[k], 1.0
            else:
                other, own, theirs = tail[e], 1.0, float(sizes[tail[e]])
            f.share[e] = f.rest[k] * own
            f.share_slope[e] = f.rest_slope[k] * own
            f.rest[other] -= theirs * f.share[e]
            f.rest_slope[other] -= theirs * f.share_slope[e]
        root = f.order[begin]
        around = -f.rest[root] / f.rest_slope[root] if closing >= 0 else 0.0
        if closing >= 0:
            out[closing] = around
        for place in range(begin + 1, end):
            e = f.parent[f.order[place]]
            out[e] = f.share[e] + f.share_slope[e] * around
