"""K-means–Maximin (Alg. 2, algo2) as a cached run that is replayed when few arms have moved.

The farthest-first order stands unless a start moved or a moved arm now reaches a stage's maximum, and the labels of a
Lloyd pass stand while no center has drifted by the pass's smallest half-margin since it was last computed exactly.
What no bound decides is computed again, so the outcome is always that of a run from scratch. Ties (within 1e-12 of the
squared distance) go to the lowest index. Departure: a cluster that loses all its arms keeps its center; such a run is
not cached.
"""

from __future__ import annotations

import numpy as np

from coterie.engine.compiled import INT, compiled
from coterie.engine.state import CACHED, DIRTY, FULL_RUNS, MAX_PASSES, PASSES, REPLAYED_PASSES, State
from coterie.engine.vectors import TIE, copy_row, distance_to_mean, nearest_two, squared_distance

FIRST_ARM = 0
"""Alg. 2, line 1 leaves the first center open; the paper's printed numbers are those of arm 0."""

UNCHANGED, GIVE_UP = -1, -2

SURE = 1.0 - 1e-9
"""A bound decides only if it does so with this much to spare, so that rounding cannot."""


@compiled
def _measure_start(s: State, k: int) -> None:
    """OUT: center k of pass 0, the mean of start k, and every arm's distance to it."""
    arm = s.starts[k]
    inverse = 1.0 / s.pulls[arm]
    for q in range(s.sums.shape[1]):
        s.pass_centers[k, q] = s.sums[arm, q] * inverse
    for m in range(s.labels.shape[0]):
        s.to_starts[m, k] = distance_to_mean(s.sums, m, 1.0 / s.pulls[m], s.pass_centers, k)


@compiled
def _choose_starts(s: State, stage: int) -> None:
    """Alg. 2, lines 2–4 from start number `stage` on. INOUT: s.starts, s.to_starts. Uses s.scratch."""
    n_arms = s.labels.shape[0]
    near = s.scratch
    for m in range(n_arms):
        near[m] = s.to_starts[m, 0]
        for k in range(1, stage):
            near[m] = min(near[m], s.to_starts[m, k])
    for k in range(stage, s.starts.shape[0]):
        farthest = 0.0
        for m in range(n_arms):
            farthest = max(farthest, near[m])
        arm = 0
        while near[arm] < farthest * (1.0 - TIE):
            arm += 1
        if s.starts[k] != arm:
            s.starts[k] = arm
            _measure_start(s, k)
        for m in range(n_arms):
            near[m] = min(near[m], s.to_starts[m, k])


@compiled
def _set_centers(s: State, p: int) -> bool:
    """The centers of pass p > 0 from its sums. OUT: s.pass_centers. True if a cluster is empty."""
    n, d = s.centers.shape
    empty = False
    if p == 0:
        return empty  # the starts' means are in place
    for k in range(n):
        row = p * n + k
        if s.pass_totals[p, k] > 0.0:
            inverse = 1.0 / s.pass_totals[p, k]
            for q in range(d):
                s.pass_centers[row, q] = s.pass_sums[row, q] * inverse
        else:
            empty = True
            copy_row(s.pass_centers, row - n, s.pass_centers, row)
    return empty


@compiled
def _sum_pass(s: State, p: int) -> None:
    """The weighted sums behind the centers of pass p, from the labels of the pass before. OUT: s.pass_sums, totals."""
    n, d = s.centers.shape
    for k in range(n):
        s.pass_totals[p, k] = 0.0
        for q in range(d):
            s.pass_sums[p * n + k, q] = 0.0
    for m in range(s.labels.shape[0]):
        k = s.pass_labels[p - 1, m]
        s.pass_totals[p, k] += s.pulls[m]
        row = p * n + k
        for q in range(d):
            s.pass_sums[row, q] += s.sums[m, q]


@compiled
def _assign(s: State, p: int) -> bool:
    """Alg. 2, line 6 for every arm at pass p's centers. OUT: labels, reference, margin. True if a label changed."""
    n = s.centers.shape[0]
    for k in range(n):
        copy_row(s.pass_centers, p * n + k, s.pass_reference, p * n + k)
    changed = False
    margin = np.inf
    for m in range(s.labels.shape[0]):
        label, best, second = nearest_two(s.sums, m, 1.0 / s.pulls[m], s.pass_reference, p * n, n)
        margin = min(margin, second - best)
        if s.pass_labels[p, m] != label:
            s.pass_labels[p, m] = label
            changed = True
    s.pass_margin[p] = 0.5 * margin
    return changed


@compiled
def _note_same(s: State, p: int) -> None:
    s.pass_same[p] = 1
    for m in range(s.labels.shape[0]):
        if s.pass_labels[p, m] != s.pass_labels[p - 1, m]:
            s.pass_same[p] = 0
            break


@compiled
def run_whole(s: State) -> int:
    """Alg. 2 from scratch. OUT: the cache. Returns the pass whose labels are final."""
    s.counters[FULL_RUNS] += 1
    zero = INT(0)
    s.starts[:] = -1
    s.starts[0] = FIRST_ARM
    _measure_start(s, zero)
    _choose_starts(s, zero + 1)
    cacheable = True
    _assign(s, zero)
    p = zero
    for total in range(1, 10_000):
        # A run that outgrows the cache goes on in its last two places.
        if total >= MAX_PASSES:
            cacheable = False
            _shift_last(s)
            p = MAX_PASSES - 2
        _sum_pass(s, p + 1)
        p += 1
        if _set_centers(s, p):
            cacheable = False
        _assign(s, p)
        _note_same(s, p)
        if s.pass_same[p] == 1:
            break
    s.counters[PASSES] = p + 1
    s.counters[CACHED] = 1 if cacheable else 0
    return p


@compiled
def _shift_last(s: State) -> None:
    """Make room for one more pass: the last remembered pass takes the place before it."""
    n = s.centers.shape[0]
    last = MAX_PASSES - 1
    for m in range(s.labels.shape[0]):
        s.pass_labels[last - 1, m] = s.pass_labels[last, m]
    for k in range(n):
        copy_row(s.pass_centers, last * n + k, s.pass_centers, (last - 1) * n + k)


@compiled
def cache_measurement(s: State, arm: int, x: np.ndarray) -> None:
    """Carry one measurement into the sums of every remembered pass. INOUT: s.pass_sums, s.pass_totals."""
    n, d = s.centers.shape
    for p in range(1, s.counters[PASSES]):
        k = s.pass_labels[p - 1, arm]
        s.pass_totals[p, k] += 1.0
        row = p * n + k
        for q in range(d):
            s.pass_sums[row, q] += x[q]


@compiled
def _replay_starts(s: State) -> None:
    """Bring the farthest-first order up to date with the arms that moved. INOUT: s.starts, s.to_starts."""
    n = s.centers.shape[0]
    stage = n
    for i in range(s.counters[DIRTY]):
        for k in range(n):
            if s.starts[k] == s.dirty[i]:
                _measure_start(s, k)
                stage = min(stage, max(k, 1))
    for i in range(s.counters[DIRTY]):
        arm = s.dirty[i]
        for k in range(n):
            s.to_starts[arm, k] = distance_to_mean(s.sums, arm, 1.0 / s.pulls[arm], s.pass_centers, k)
    for k in range(1, n):
        if k >= stage:
            break
        chosen = np.inf
        for j in range(k):
            chosen = min(chosen, s.to_starts[s.starts[k], j])
        for i in range(s.counters[DIRTY]):
            near = np.inf
            for j in range(k):
                near = min(near, s.to_starts[s.dirty[i], j])
            if near >= chosen * (1.0 - 4.0 * TIE):
                stage = k
                break
    if stage < n:
        _choose_starts(s, stage)


@compiled
def _pass_stands(s: State, p: int) -> bool:
    """Whether the bounds prove that pass p's labels are what its present centers give. INOUT: s.pass_margin."""
    n = s.centers.shape[0]
    for i in range(s.counters[DIRTY]):
        arm = s.dirty[i]
        label, best, second = nearest_two(s.sums, arm, 1.0 / s.pulls[arm], s.pass_reference, p * n, n)
        if s.pass_labels[p, arm] != label:
            return False
        s.pass_margin[p] = min(s.pass_margin[p], 0.5 * (second - best))
    limit = s.pass_margin[p] * SURE
    if not (limit > 0.0):
        return False
    for k in range(n):
        row = p * n + k
        if squared_distance(s.pass_centers, row, s.pass_reference, row) >= limit * limit:
            return False
    return True


@compiled
def replay(s: State) -> int:
    """Bring the cached run up to date with the dirty arms.

    Returns the final pass, UNCHANGED if no label changed, or GIVE_UP if Alg. 2 has to run as a whole.
    """
    _replay_starts(s)
    any_change = False
    changed_before = False
    p = INT(0)
    while True:
        if _set_centers(s, p):
            return GIVE_UP
        changed = False
        if not _pass_stands(s, p):
            s.counters[REPLAYED_PASSES] += 1
            changed = _assign(s, p)
        any_change = any_change or changed
        if p > 0:
            if changed or changed_before:
                _note_same(s, p)
            if s.pass_same[p] == 1:
                if s.counters[PASSES] != p + 1:
                    any_change = True
                    s.counters[PASSES] = p + 1
                return p if any_change else UNCHANGED
        p += 1
        if p == MAX_PASSES:
            return GIVE_UP
        if p == s.counters[PASSES]:  # one pass more than before
            s.counters[PASSES] = p + 1
            s.pass_margin[p] = -1.0
            s.pass_labels[p, :] = -1
            _sum_pass(s, p)
            any_change = True
        elif changed:
            _sum_pass(s, p)
        changed_before = changed
