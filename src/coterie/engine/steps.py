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
from coterie.engine.heaps import heap_down, least_committed
from coterie.engine.lloyd import SURE, cache_measurement
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
    SINCE_CACHED,
    SINCE_MEASURED,
    SINCE_SUMMED,
    STALE,
    UNIFORM,
    UNSEEN,
    Z1,
    Z2,
    Floats,
    Ints,
    State,
    T,
    Z,
)

TRACKING_TIE = 1e-9
"""Candidates within this much of the best, relative to t, tie; the lowest index wins."""


@compiled
def _fewest_pulls(pending: int, pulls: Ints, committed: Ints, heap: Ints, first_slot: Ints) -> int:
    """min N_m over all arms, told measurements only."""
    if pending == 0:
        return int(pulls[least_committed(heap, first_slot, committed)])
    fewest = pulls[0]
    for m in range(pulls.shape[0]):
        fewest = min(fewest, pulls[m])
    return int(fewest)


@compiled
def _fewest_in_cluster(k: int, pulls: Ints, labels: Ints) -> int:
    fewest = np.iinfo(np.int64).max
    for m in range(pulls.shape[0]):
        if labels[m] == k:
            fewest = min(fewest, pulls[m])
    return int(fewest)


@compiled
def _exploration_floor(t: int, n_arms: int) -> float:
    return float(max(np.sqrt(t) - 0.5 * n_arms, 0.0))  # Alg. 1, line 3


@compiled
def closest_alternative_now(
    pending: int,
    pulls: Ints,
    labels: Ints,
    totals: Ints,
    gaps: Floats,
    heap: Ints,
    first_slot: Ints,
    heap_of: Ints,
) -> float:
    """Z2(t): the minimum over k ≠ k' of \\bar w(k)·w(k')/(\\bar w(k) + w(k'))·Δ² (theorem_opt2, corrected)."""
    best = np.inf
    smallest = float(totals[0])
    for k in range(totals.shape[0]):
        smallest = min(smallest, float(totals[k]))
    for k in range(totals.shape[0]):
        g = heap_of[k]
        # N of the cluster's least-pulled arm: the top of its heap, unless pulls under way upset the order.
        if pending == 0 and g >= 0:
            fewest = float(pulls[heap[first_slot[g]]])
        else:
            fewest = float(_fewest_in_cluster(k, pulls, labels))
        # The factor grows with w(k'), so most pairs are ruled out without a division of their own.
        least = fewest * smallest / (fewest + smallest) * SURE
        for j in range(totals.shape[0]):
            # Every k ≠ k', singletons too: the paper's n(k) > 1 is an error (docs/PAPER.md).
            if j != k and least * gaps[k, j] < best:
                best = min(best, fewest * totals[j] / (fewest + totals[j]) * gaps[k, j])
    return best


@compiled
def settle(s: State, f: Forest) -> None:
    """Lines 3 to 8 of Alg. 1 for the measurements so far. INOUT: the guess and its allocation. Idempotent."""
    if s.counters[STALE] == 0:
        return
    s.counters[STALE] = 0
    if s.counters[UNSEEN] > 0:
        return
    method = s.counters[METHOD]
    if s.counters[READY] == 1 and (method == BOC or method == ORACLE):
        fewest = _fewest_pulls(s.counters[PENDING], s.pulls, s.committed, s.heap, s.first_slot)
        if fewest <= _exploration_floor(s.counters[T], s.pulls.shape[0]):
            return  # line 4: (c^t, U^t) ← (c^{t−1}, U^{t−1})
    refresh(s)  # line 6
    if method == BOC or method == LINEAR:
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
    least = least_committed(s.heap, s.first_slot, s.committed)
    method = s.counters[METHOD]
    if method == UNIFORM:
        return int(least)
    if (method == BOC or method == ORACLE) and s.committed[least] <= _exploration_floor(t, n_arms):
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
    return int(chosen) if chosen < n_arms else int(least)


@compiled
def observe(s: State, arm: int, x: Floats, asked: bool) -> None:
    """One measurement (line 9) and Z(t); call `settle` first. `asked`: it was counted as under way.

    x is relative to the origin. INOUT: s.
    """
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
        for q in range(x.shape[0]):
            s.sums[arm, q] += x[q]
        return
    if not asked:
        g = s.group[arm]
        heap_down(s.heap, s.slot, s.committed, s.first_slot[g], s.first_slot[g + 1], s.slot[arm])
    k = s.labels[arm]
    n = s.pulls[arm]
    before, after = add_measurement(x, arm, k, 1.0 / n, 1.0 / (n + 1), s.centers, s.sums, s.group_sums)
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
        cache_measurement(s, arm, x)
    s.counters[SINCE_MEASURED] += 1
    s.counters[SINCE_SUMMED] += 1
    s.counters[SINCE_CACHED] += 1
    z1 = 0.0
    for i in range(s.scatter.shape[0]):
        z1 += s.scatter[i]
    z2 = 0.0  # a degenerate guess has an alternative at no distance
    if s.counters[DEGENERATE] == 0:
        z2 = closest_alternative_now(
            s.counters[PENDING], s.pulls, s.labels, s.totals, s.gaps, s.heap, s.first_slot, s.heap_of
        )
    s.gauges[Z1] = z1
    s.gauges[Z2] = z2
    margin = max(0.0, np.sqrt(z2) - np.sqrt(z1))
    s.gauges[Z] = 0.5 * margin * margin  # Alg. 1, line 11
