"""The steps of Alg. 1 (algo1) on a `State`: `settle`, `next_arm`, `observe`. Sessions and simulations call the same.

Time indices as in the paper: `observe` forms Z(t) from the counts and means of t and the guess of t−1; `settle` then
computes the guess of t, unless line 3 forces exploration, which leaves the guess as it was.
"""

from __future__ import annotations

import numpy as np

from coterie.engine.allocation import allocate
from coterie.engine.compiled import compiled
from coterie.engine.forest import Forest
from coterie.engine.guess import add_measurement, refresh
from coterie.engine.heaps import heap_moved, least_committed
from coterie.engine.maximin import cache_measurement
from coterie.engine.state import (
    BOC,
    CACHED,
    DEGENERATE,
    DIRTY,
    FRESH,
    LINEAR,
    LOG_SUM,
    METHOD,
    ORACLE,
    PENDING,
    READY,
    SINCE_MEASURED,
    SINCE_SUMMED,
    STALE,
    UNIFORM,
    UNSEEN,
    Z1,
    Z2,
    Floats,
    State,
    T,
    Z,
)

TRACKING_TIE = 1e-9
"""Candidates within this much of the best, relative to t, tie; the lowest index wins."""


@compiled
def _forces(s: State) -> bool:
    return bool(s.counters[METHOD] == BOC or s.counters[METHOD] == ORACLE)


@compiled
def _fewest_pulls(s: State) -> int:
    """min N_m over all arms, told measurements only."""
    if s.counters[PENDING] == 0:
        return int(s.pulls[least_committed(s)])
    fewest = s.pulls[0]
    for m in range(s.pulls.shape[0]):
        fewest = min(fewest, s.pulls[m])
    return int(fewest)


@compiled
def _fewest_in_cluster(s: State, k: int) -> int:
    """N of the least-pulled arm of cluster k, told measurements only: \\bar w(k) of theorem_opt2."""
    g = s.heap_of[k]
    if s.counters[PENDING] == 0 and g >= 0:
        return int(s.pulls[s.heap[s.first_slot[g]]])
    fewest = np.iinfo(np.int64).max
    for m in range(s.pulls.shape[0]):
        if s.labels[m] == k:
            fewest = min(fewest, s.pulls[m])
    return int(fewest)


@compiled
def _exploration_floor(t: int, n_arms: int) -> float:
    return max(np.sqrt(t) - 0.5 * n_arms, 0.0)  # Alg. 1, line 3


@compiled
def settle(s: State, f: Forest) -> None:
    """Lines 3 to 8 of Alg. 1 for the measurements so far. INOUT: the guess and its allocation. Idempotent."""
    if s.counters[STALE] == 0:
        return
    s.counters[STALE] = 0
    if s.counters[UNSEEN] > 0:
        return
    if s.counters[READY] == 1 and _forces(s):
        if _fewest_pulls(s) <= _exploration_floor(s.counters[T], s.pulls.shape[0]):
            return  # line 4: (c^t, U^t) ← (c^{t−1}, U^{t−1})
    refresh(s)  # line 6
    if s.counters[METHOD] == BOC or s.counters[METHOD] == LINEAR:
        allocate(s, f)  # line 7


@compiled
def next_arm(s: State) -> int:
    """A_{t+1}, with the pulls under way counted as done. Call `settle` first."""
    n_arms = s.pulls.shape[0]
    if s.counters[UNSEEN] > 0:  # line 1: every arm once, in index order
        while s.counters[FRESH] < n_arms and s.committed[s.counters[FRESH]] > 0:
            s.counters[FRESH] += 1
        if s.counters[FRESH] < n_arms:
            return int(s.counters[FRESH])
        least = 0
        for m in range(n_arms):
            if s.committed[m] < s.committed[least]:
                least = m
        return least
    t = s.counters[T] + s.counters[PENDING]
    least = least_committed(s)
    if s.counters[METHOD] == UNIFORM:
        return least
    if _forces(s) and s.committed[least] <= _exploration_floor(t, n_arms):
        return least  # line 4: forced exploration
    best = -np.inf
    for g in range(s.shares.shape[0]):
        if s.first_slot[g] < s.first_slot[g + 1]:
            best = max(best, t * s.shares[g] - s.committed[s.heap[s.first_slot[g]]])
    chosen = n_arms
    for g in range(s.shares.shape[0]):
        if s.first_slot[g] < s.first_slot[g + 1]:
            arm = s.heap[s.first_slot[g]]
            if arm < chosen and t * s.shares[g] - s.committed[arm] >= best - TRACKING_TIE * t:
                chosen = arm  # line 8: argmax t·λ*_m(t) − N_m(t)
    return int(chosen)


@compiled
def _statistic(s: State) -> None:
    """Z(t) of Alg. 1, lines 10 and 11, with the corrected theorem_opt2. OUT: s.gauges."""
    n = s.centers.shape[0]
    z1 = 0.0
    for k in range(n):
        z1 += s.scatter[k]
    z2 = 0.0
    if s.counters[DEGENERATE] == 0:
        z2 = np.inf
        for k in range(n):
            fewest = float(_fewest_in_cluster(s, k))
            for j in range(n):
                if j != k:  # every k ≠ k', singletons too: the paper's n(k) > 1 is an error (docs/PAPER.md)
                    z2 = min(z2, fewest * s.totals[j] / (fewest + s.totals[j]) * s.gaps[k, j])
    s.gauges[Z1] = z1
    s.gauges[Z2] = z2
    margin = max(0.0, np.sqrt(z2) - np.sqrt(z1))
    s.gauges[Z] = 0.5 * margin * margin


@compiled
def observe(s: State, arm: int, x: Floats, asked: bool) -> None:
    """One measurement (line 9) and Z(t); call `settle` first. `asked`: it was counted as under way. INOUT: s."""
    d = x.shape[0]
    if s.counters[T] == 0:
        for q in range(d):
            s.origin[q] = x[q]
    s.counters[T] += 1
    s.counters[STALE] = 1
    if asked:
        s.counters[PENDING] -= 1
    else:
        s.committed[arm] += 1
    if s.counters[READY] == 0:
        if s.pulls[arm] == 0:
            s.counters[UNSEEN] -= 1
        s.pulls[arm] += 1
        inverse = 1.0 / s.pulls[arm]
        for q in range(d):
            s.sums[arm, q] += x[q] - s.origin[q]
            s.means[arm, q] = s.sums[arm, q] * inverse
        return
    if not asked:
        heap_moved(s, arm, True)
    k = s.labels[arm]
    shifted = s.shifted
    for q in range(d):
        shifted[q] = x[q] - s.origin[q]
    before, after = add_measurement(s, arm, k, shifted)
    n = s.pulls[arm]
    s.pulls[arm] = n + 1
    s.totals[k] += 1
    s.scatter[k] = max(0.0, s.scatter[k] + ((n + 1) * after - n * before))
    s.radius[k] = max(s.radius[k], np.sqrt(after))
    s.moved[k] = 1
    s.gauges[LOG_SUM] += np.log((4.0 + np.log(n + 1.0)) / (4.0 + np.log(float(n))))
    if s.is_dirty[arm] == 0:
        s.is_dirty[arm] = 1
        s.dirty[s.counters[DIRTY]] = arm
        s.counters[DIRTY] += 1
    if s.counters[CACHED] == 1:
        cache_measurement(s, arm, shifted)
    s.counters[SINCE_MEASURED] += 1
    s.counters[SINCE_SUMMED] += 1
    _statistic(s)
