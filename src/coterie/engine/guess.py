"""The guess (c^t, U^t): its clusters' sums, centers, scatter and distances, kept up in O(K·d) a measurement."""

from __future__ import annotations

import numpy as np

from coterie.engine.compiled import compiled, compiled_sum
from coterie.engine.heaps import heaps_build
from coterie.engine.lloyd import SURE
from coterie.engine.maximin import GIVE_UP, UNCHANGED, replay, run_whole
from coterie.engine.state import (
    CACHED,
    CERTIFIED,
    DEGENERATE,
    DIRTY,
    LOG_SUM,
    METHOD,
    ORACLE,
    READY,
    SINCE_CACHED,
    SINCE_MEASURED,
    SINCE_SUMMED,
    Floats,
    Ints,
    State,
)
from coterie.engine.vectors import copy_row, distance_to_mean, squared_distance

COINCIDENT = 1e-100
"""Centers whose squared distance is below this are in one place: the allocation between them would overflow."""

RESUM_EVERY = 4096
"""Running sums are recomputed after max(M, this) measurements, so that rounding cannot drift."""


@compiled_sum
def _move_center(group_sums: Floats, k: int, inverse: float, centers: Floats) -> float:
    """Put center k at its arms' weighted mean, sum times 1/total (Alg. 2, line 7). Returns the squared shift."""
    shift = 0.0
    for q in range(centers.shape[1]):
        at = group_sums[k, q] * inverse
        move = at - centers[k, q]
        shift += move * move
        centers[k, q] = at
    return shift


@compiled
def _measure_gaps(centers: Floats, k: int, gaps: Floats) -> bool:
    """OUT: row and column k of gaps. True if another center is in the same place."""
    equal = False
    for j in range(centers.shape[0]):
        if j != k:
            gap = squared_distance(centers, k, centers, j)
            gaps[k, j] = gap
            gaps[j, k] = gap
            equal = equal or not (gap > COINCIDENT)
    return equal


@compiled
def _note_degenerate(s: State) -> None:
    s.counters[DEGENERATE] = 0
    for k in range(s.centers.shape[0]):
        if s.sizes[k] == 0:
            s.counters[DEGENERATE] = 1
        for j in range(k):
            if not (s.gaps[k, j] > COINCIDENT):
                s.counters[DEGENERATE] = 1


@compiled
def move_centers(s: State) -> None:
    """Same labels, new measurements: move the centers of the clusters that got some. INOUT: the guess."""
    for k in range(s.centers.shape[0]):
        if s.moved[k] == 1:
            s.moved[k] = 0
            shift = _move_center(s.group_sums, k, 1.0 / s.totals[k], s.centers)
            # About the weighted mean the scatter is smallest: parallel-axis theorem.
            s.scatter[k] = max(0.0, s.scatter[k] - s.totals[k] * shift)
            s.radius[k] += np.sqrt(shift)
            if _measure_gaps(s.centers, k, s.gaps) or s.counters[DEGENERATE] == 1:
                _note_degenerate(s)


@compiled
def measure_radii(s: State) -> None:
    """Exact radii and scatters about the present centers. OUT: s.radius, s.scatter."""
    s.counters[SINCE_MEASURED] = 0
    s.radius[:] = 0.0
    s.scatter[:] = 0.0
    for m in range(s.labels.shape[0]):
        k = s.labels[m]
        away = distance_to_mean(s.sums, m, 1.0 / s.pulls[m], s.centers, k)
        s.scatter[k] += s.pulls[m] * away
        s.radius[k] = max(s.radius[k], away)
    for k in range(s.centers.shape[0]):
        s.radius[k] = np.sqrt(s.radius[k])


@compiled
def sum_up(s: State) -> None:
    """Sizes, totals, sums, centers, distances from the labels and the arms' sums. OUT: the guess."""
    s.counters[SINCE_SUMMED] = 0
    s.sizes[:] = 0
    s.totals[:] = 0
    s.group_sums[:, :] = 0.0
    log_sum = 0.0
    for m in range(s.labels.shape[0]):
        k = s.labels[m]
        s.sizes[k] += 1
        s.totals[k] += s.pulls[m]
        log_sum += np.log(4.0 + np.log(s.pulls[m]))
        for q in range(s.centers.shape[1]):
            s.group_sums[k, q] += s.sums[m, q]
    s.gauges[LOG_SUM] = log_sum
    for k in range(s.centers.shape[0]):
        s.moved[k] = 0
        s.inverse_sizes[k] = 1.0 / max(s.sizes[k], 1)
        if s.sizes[k] > 0:
            _move_center(s.group_sums, k, 1.0 / s.totals[k], s.centers)
    for k in range(s.centers.shape[0]):
        _measure_gaps(s.centers, k, s.gaps)
    _note_degenerate(s)
    measure_radii(s)


@compiled
def _map_heaps(s: State) -> None:
    """Which heap holds exactly the arms of a cluster. With ORACLE heaps are the true groups. OUT: s.heap_of."""
    n = s.centers.shape[0]
    if s.counters[METHOD] != ORACLE:
        for k in range(n):
            s.heap_of[k] = k
        return
    s.heap_of[:] = -2
    for m in range(s.labels.shape[0]):
        k = s.labels[m]
        if s.heap_of[k] == -2:
            s.heap_of[k] = s.group[m]
        elif s.heap_of[k] != s.group[m]:
            s.heap_of[k] = -1
    for k in range(n):
        g = s.heap_of[k]
        if g < 0 or s.first_slot[g + 1] - s.first_slot[g] != s.sizes[k]:
            s.heap_of[k] = -1


@compiled
def _adopt(s: State, p: int) -> None:
    """Take the labels of pass p of the cached run as the guess. OUT: the guess and its heaps."""
    n = s.centers.shape[0]
    for m in range(s.labels.shape[0]):
        s.labels[m] = s.pass_labels[p, m]
    for k in range(n):  # an emptied cluster keeps its center
        copy_row(s.pass_centers, p * n + k, s.centers, k)
    sum_up(s)
    if s.counters[METHOD] != ORACLE:
        for m in range(s.labels.shape[0]):
            s.group[m] = s.labels[m]
    if s.counters[METHOD] != ORACLE or s.counters[READY] == 0:
        heaps_build(s)
    _map_heaps(s)
    s.counters[READY] = 1


@compiled
def _same_as_guess(s: State, p: int) -> bool:
    """Whether pass p's labels are the guess's up to relabelling."""
    s.names[:] = -1
    s.taken[:] = 0
    for m in range(s.labels.shape[0]):
        k = s.pass_labels[p, m]
        if s.names[k] < 0:
            if s.taken[s.labels[m]] == 1:
                return False
            s.names[k] = s.labels[m]
            s.taken[s.labels[m]] = 1
        elif s.names[k] != s.labels[m]:
            return False
    # An emptied cluster's center belongs to the guess too: do not carry an old one along.
    return bool(s.counters[DEGENERATE] == 0)


@compiled
def _separated(radius: Floats, gaps: Floats) -> bool:
    """All arms within ρ of their center and all centers more than 4ρ apart: Alg. 2 then gives just these labels.

    The proof of theorem_maximum with the present centers in place of the true ones: a start's own group is within 2ρ of
    it and every other farther than 2ρ, so that Maximin takes one start in each group and no later pass changes a label.
    """
    farthest = 0.0
    nearest = np.inf
    for k in range(radius.shape[0]):
        farthest = max(farthest, radius[k])
        for j in range(k):
            nearest = min(nearest, gaps[k, j])
    return bool(16.0 * farthest * farthest < nearest * SURE)


@compiled
def _measure_after(n_arms: int) -> int:
    """Measurements after which radii are measured anew before the certificate is given up: that costs M·d, a whole run
    of Alg. 2 at least 3·K times as much."""
    return int(min(n_arms // 4, max(256, n_arms // 32)))


@compiled
def _clean(counters: Ints, dirty: Ints, is_dirty: Ints) -> None:
    for i in range(counters[DIRTY]):
        is_dirty[dirty[i]] = 0
    counters[DIRTY] = 0


@compiled
def refresh(s: State) -> None:
    """Alg. 1, line 6: the guess that K-means–Maximin gives for the present means and pulls. INOUT: the guess."""
    n_arms = s.labels.shape[0]
    if s.counters[READY] == 1:
        move_centers(s)  # right if the labels stay as they are; `_adopt` starts afresh
    if s.counters[CERTIFIED] == 1:
        if not _separated(s.radius, s.gaps) and s.counters[SINCE_MEASURED] >= _measure_after(n_arms):
            measure_radii(s)
        if _separated(s.radius, s.gaps):
            if s.counters[SINCE_SUMMED] >= max(n_arms, RESUM_EVERY):
                sum_up(s)
            _clean(s.counters, s.dirty, s.is_dirty)
            return
        s.counters[CERTIFIED] = 0
        s.counters[CACHED] = 0
    fresh = s.counters[SINCE_CACHED] < max(n_arms, RESUM_EVERY)
    if s.counters[CACHED] == 1 and fresh and s.counters[DIRTY] <= 1 + n_arms // 8:
        p = replay(s)
    else:
        p = GIVE_UP
    if p == GIVE_UP:
        p = run_whole(s)
    if p != UNCHANGED and (s.counters[READY] == 0 or not _same_as_guess(s, p)):
        _adopt(s, p)
    elif s.counters[SINCE_SUMMED] >= max(n_arms, RESUM_EVERY):
        sum_up(s)
    elif s.counters[SINCE_MEASURED] >= n_arms:
        measure_radii(s)
    _clean(s.counters, s.dirty, s.is_dirty)
    if s.counters[DEGENERATE] == 0 and _separated(s.radius, s.gaps):
        s.counters[CERTIFIED] = 1
        s.counters[CACHED] = 0


@compiled_sum
def add_measurement(
    x: Floats, arm: int, k: int, was: float, now: float, centers: Floats, sums: Floats, group_sums: Floats
) -> tuple[float, float]:
    """Add x to an arm and its cluster k; `was` and `now` are 1/pulls before and after. INOUT: sums, group_sums.

    Returns ‖mean − center‖² before and after.
    """
    before = 0.0
    after = 0.0
    for q in range(x.shape[0]):
        value = x[q]
        center = centers[k, q]
        old = sums[arm, q] * was - center
        total = sums[arm, q] + value
        new = total * now - center
        sums[arm, q] = total
        group_sums[k, q] += value
        before += old * old
        after += new * new
    return before, after
