"""K-means–Maximin (Alg. 2, algo2) as a cached run that is replayed when few arms have moved.

The farthest-first order stands unless a start moved or a moved arm now reaches a stage's maximum; the Lloyd passes are
brought up to date one after the other (`coterie.engine.lloyd`). What no bound decides is computed again, so the outcome
is always that of a run from scratch. Ties (within 1e-12 of the squared distance) go to the lowest index. Departure: a
cluster that loses all its arms keeps its center; such a run is not cached.
"""

from __future__ import annotations

import numpy as np

from coterie.engine.compiled import INT, compiled
from coterie.engine.lloyd import STANDS, assign, begin_pass, judge_pass, set_centers, shift_last, update_pass
from coterie.engine.state import CACHED, DIRTY, FULL_RUNS, MAX_PASSES, PASSES, SINCE_CACHED, State
from coterie.engine.vectors import TIE, distance_to_mean

FIRST_ARM = 0
"""Alg. 2, line 1 leaves the first center open; the paper's printed numbers are those of arm 0."""

UNCHANGED, GIVE_UP = -1, -2


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
def run_whole(s: State) -> int:
    """Alg. 2 from scratch. OUT: the cache. Returns the pass whose labels are final."""
    s.counters[FULL_RUNS] += 1
    s.counters[SINCE_CACHED] = 0
    zero = INT(0)
    s.starts[:] = -1
    s.starts[0] = FIRST_ARM
    _measure_start(s, zero)
    _choose_starts(s, zero + 1)
    cacheable = True
    p = zero
    begin_pass(s, p)
    assign(s, p)
    for total in range(1, 10_000):
        # A run that outgrows the cache goes on in its last two places.
        if total >= MAX_PASSES:
            cacheable = False
            shift_last(s)
            p = MAX_PASSES - 2
        p += 1
        begin_pass(s, p)
        if set_centers(s, p):
            cacheable = False
        assign(s, p)
        if s.pass_changes[p] == 0:
            break
    s.counters[CACHED] = 1 if cacheable else 0
    return p


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
def replay(s: State) -> int:
    """Bring the cached run up to date with the dirty arms.

    Returns the final pass, UNCHANGED if no label changed, or GIVE_UP if Alg. 2 has to run as a whole.
    """
    _replay_starts(s)
    passes = s.counters[PASSES]
    p = INT(0)
    while True:
        if p == s.counters[PASSES]:  # one pass more than before
            begin_pass(s, p)
        if set_centers(s, p):
            return GIVE_UP
        verdict = judge_pass(
            p, s.dirty[: s.counters[DIRTY]], s.sums, s.pulls, s.pass_labels, s.pass_centers, s.pass_reference,
            s.pass_listed, s.pass_margin, s.pass_quiet, s.pass_close, s.pass_half, s.to_centers,
        )  # fmt: skip
        changed = verdict != STANDS and update_pass(s, p, verdict)
        if p > 0 and s.pass_changes[p] == 0:
            s.counters[PASSES] = p + 1
            return p if changed or passes != p + 1 else UNCHANGED
        p += 1
        if p == MAX_PASSES:
            return GIVE_UP
