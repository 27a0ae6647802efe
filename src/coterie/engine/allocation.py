"""λ*(t), the allocation that Alg. 1 tracks (equation_lambda_star_t), warm from one pull to the next.

The active constraints rarely change between two pulls, so the last ones are tried first (`coterie.engine.forest`) and
mended one constraint at a time; what that does not settle is solved from scratch (`coterie.engine.barrier`). Either
way the result meets the optimality conditions of the corrected theorem_opt3 to about 1e-12.
"""

from __future__ import annotations

import numpy as np

from coterie.engine.barrier import barrier_solve, twin
from coterie.engine.compiled import INT, compiled
from coterie.engine.forest import Forest, forest_multipliers, forest_shape, forest_solve
from coterie.engine.state import (
    COLD_SOLVES,
    DEGENERATE,
    EDGES,
    FLOOR,
    LINEAR,
    METHOD,
    PARTS,
    Floats,
    Ints,
    State,
)

FEASIBLE = 1e-12
"""Relative violation of a constraint that counts as rounding."""


@compiled
def _drop(tail: Ints, head: Ints, multiplier: Floats, n_edges: int, e: int) -> int:
    tail[e], head[e] = tail[n_edges - 1], head[n_edges - 1]
    multiplier[e] = multiplier[n_edges - 1]
    return n_edges - 1


@compiled
def _blocking(
    sizes: Ints,
    inverse: Floats,
    tail: Ints,
    head: Ints,
    nu: Floats,
    n_edges: int,
    k: int,
    j: int,
    parts: int,
    f: Forest,
) -> int:
    """Which active constraint leaves when (k, j) enters a part that is full: the dual ratio test; -1 if none can."""
    f.rest[:] = 0.0
    f.rest[k] += sizes[k]
    f.rest[j] += 1.0
    for e in range(n_edges):
        f.solution[e] = 0.0
    forest_multipliers(sizes, inverse, tail, head, parts, f, f.solution)
    leaving = -1
    least = np.inf
    for e in range(n_edges):
        if f.solution[e] > 1e-10 and nu[e] / f.solution[e] < least:
            least = nu[e] / f.solution[e]
            leaving = e
    return leaving


@compiled
def mend_active(s: State, f: Forest) -> bool:
    """Solve on the remembered active constraints, swapping one at a time. INOUT: s.slack, s.edge_*. False: give up."""
    sizes, gaps, tail, head, nu = s.sizes, s.gaps, s.edge_from, s.edge_to, s.multiplier
    n = sizes.shape[0]
    n_edges = s.counters[EDGES]
    parts = s.counters[PARTS]
    for _ in range(4 * n + 8):
        if parts <= 0:
            parts = forest_shape(n, tail, head, n_edges, f)
        if parts < 0 or not forest_solve(sizes, s.inverse_sizes, gaps, tail, head, n_edges, parts, f, s.slack):
            return False
        for k in range(n):
            weight = 1.0 / s.slack[k]
            f.weight[k] = weight
            f.rest[k] = weight * weight
        forest_multipliers(sizes, s.inverse_sizes, tail, head, parts, f, nu)
        lowest, total, worst = INT(-1), 0.0, 0.0
        for e in range(n_edges):
            weight = nu[e] * gaps[tail[e], head[e]]
            total += abs(weight)
            if weight < worst:
                worst, lowest = weight, e
        if lowest >= 0 and worst < -FEASIBLE * total:
            n_edges = _drop(tail, head, nu, n_edges, lowest)
            parts = 0
            continue
        k_add, j_add, worst = INT(-1), INT(-1), FEASIBLE
        for k in range(n):
            own = sizes[k] * s.slack[k]
            for j in range(n):
                if j != k:
                    excess = own + s.slack[j] - gaps[k, j]
                    if excess > worst * gaps[k, j] and not twin(sizes, k, j):
                        worst = excess / gaps[k, j]
                        k_add, j_add = k, j
        if k_add < 0:
            s.counters[EDGES] = n_edges
            s.counters[PARTS] = parts
            return True
        full_k = f.cycle[f.part[k_add]] >= 0
        full_j = f.cycle[f.part[j_add]] >= 0
        if full_k and full_j:
            leaving = _blocking(sizes, s.inverse_sizes, tail, head, nu, n_edges, k_add, j_add, parts, f)
            if leaving < 0:
                return False
            n_edges = _drop(tail, head, nu, n_edges, leaving)
        elif n_edges + 1 >= tail.shape[0]:
            return False
        tail[n_edges], head[n_edges], nu[n_edges] = k_add, j_add, 0.0
        n_edges += 1
        parts = 0
    return False


@compiled
def solve_cold(s: State, f: Forest) -> None:
    """Solve from scratch; what comes out active is left for `mend_active` to polish. OUT: s.slack, f.kept, s.edge_*."""
    n = s.sizes.shape[0]
    s.counters[COLD_SOLVES] += 1
    room, dual = f.room, f.dual
    barrier_solve(s.sizes, s.gaps, f.matrix, f.step, s.slack, room, dual)
    value = 0.0
    for k in range(n):
        value += 1.0 / s.slack[k]
    n_edges = 0
    for k in range(n):
        for j in range(n):
            if dual[k, j] > 0.0 and dual[k, j] * s.gaps[k, j] / value > room[k, j] / s.gaps[k, j]:
                if n_edges + 1 >= s.edge_from.shape[0]:
                    n_edges = 0
                    break
                s.edge_from[n_edges], s.edge_to[n_edges] = k, j
                n_edges += 1
    s.counters[EDGES] = n_edges
    s.counters[PARTS] = 0
    for k in range(n):
        f.kept[k] = s.slack[k]


@compiled
def _raise_to_floor(sizes: Ints, floor: float, fixed: Ints, shares: Floats) -> None:
    """Euclidean projection of λ on {λ ≥ floor, Σλ = 1} (equation_newsamplingrule). INOUT: shares, one a cluster."""
    n = sizes.shape[0]
    fixed[:] = 0
    while True:
        above, mass, low = 0, 0.0, 0
        for k in range(n):
            if fixed[k] == 1:
                low += sizes[k]
            else:
                above += sizes[k]
                mass += sizes[k] * shares[k]
        shift = (mass + floor * low - 1.0) / above if above > 0 else 0.0
        settled = True
        for k in range(n):
            if fixed[k] == 0 and shares[k] - shift < floor:
                fixed[k] = 1
                settled = False
        if settled:
            for k in range(n):
                shares[k] = floor if fixed[k] == 1 else shares[k] - shift
            return


@compiled
def allocate(s: State, f: Forest) -> None:
    """λ* of the current guess, one share a cluster. INOUT: s.shares, s.slack, s.edge_*."""
    n = s.sizes.shape[0]
    n_arms = s.labels.shape[0]
    if s.counters[DEGENERATE] == 1:  # no instance has an empty cluster or equal centers: explore evenly
        s.shares[:] = 1.0 / n_arms
        s.counters[EDGES] = 0
        return
    for cold in range(2):
        if cold == 1:
            solve_cold(s, f)
        if s.counters[EDGES] > 0 and mend_active(s, f):
            break
        if cold == 1:  # dependent constraints: the interior-point solution stands
            s.counters[EDGES] = 0
            for k in range(n):
                s.slack[k] = f.kept[k]
                f.weight[k] = 1.0 / f.kept[k]
    total = 0.0
    for k in range(n):
        total += f.weight[k]
    total = 1.0 / total
    for k in range(n):
        s.shares[k] = f.weight[k] * total * s.inverse_sizes[k]  # theorem_opt4: λ*_m = w*(c_m)/n(c_m)
    if s.counters[METHOD] == LINEAR:
        _raise_to_floor(s.sizes, s.gauges[FLOOR], s.taken, s.shares)
