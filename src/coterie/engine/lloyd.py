"""The Lloyd passes of K-means–Maximin (Alg. 2, lines 5–8), remembered and brought up to date arm by arm.

A pass remembers where its centers were when it last looked at every arm (its reference), and the half-margins there: an
arm's is half of how much farther the second nearest center is than the nearest. While no center has gone that far from
its reference, the arm's label stands. Most arms are far from a boundary: a pass lists the few that are close, and one
number, the smallest half-margin of all others, vouches for the rest. So a measurement costs O(K·d) a pass for the
centers, and again for each listed arm whose half-margin is used up; every arm is looked at when a center has gone
farther than that one number. What a changed label does to the next pass is carried over as a difference.
"""

from __future__ import annotations

import numpy as np

from coterie.engine.compiled import compiled
from coterie.engine.state import DIRTY, MAX_PASSES, PASSES, REPLAYED_PASSES, Floats, Ints, SmallInts, State
from coterie.engine.vectors import copy_row, nearest_two, squared_distance

SURE = 1.0 - 1e-9
"""A bound decides only if it does so with this much to spare, so that rounding cannot."""

BLUR = 2e-12
"""Distances this close, relatively, are one to a margin: more than the ties of `nearest_two` and rounding together."""

STANDS, LOOK_AT_CLOSE, LOOK_AT_ALL = 0, 1, 2


@compiled
def _half_margin(best: float, second: float) -> float:
    """How far the centers may go before another one can be as near, or tie."""
    return 0.5 * (second - best) - BLUR * second


@compiled
def set_centers(s: State, p: int) -> bool:
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
def begin_pass(s: State, p: int) -> None:
    """Add pass p: the labels of the pass before, and the weighted sums that they give. OUT: pass p."""
    n, d = s.centers.shape
    s.counters[PASSES] = p + 1
    s.pass_changes[p] = 0
    s.pass_margin[p] = -1.0  # every arm has to be looked at
    if p == 0:
        s.pass_labels[0, :] = 0
        return
    for k in range(n):
        s.pass_totals[p, k] = 0.0
        for q in range(d):
            s.pass_sums[p * n + k, q] = 0.0
    for m in range(s.labels.shape[0]):
        k = s.pass_labels[p - 1, m]
        s.pass_labels[p, m] = k
        s.pass_totals[p, k] += s.pulls[m]
        row = p * n + k
        for q in range(d):
            s.pass_sums[row, q] += s.sums[m, q]


@compiled
def _relabel(s: State, p: int, arm: int, label: int) -> None:
    """Give an arm another label in pass p. INOUT: how much the passes differ, and the sums of the next one."""
    n = s.centers.shape[0]
    old = s.pass_labels[p, arm]
    s.pass_labels[p, arm] = label
    if p > 0:
        before = s.pass_labels[p - 1, arm]
        s.pass_changes[p] += int(label != before) - int(old != before)
    if p + 1 < s.counters[PASSES]:
        after = s.pass_labels[p + 1, arm]
        s.pass_changes[p + 1] += int(after != label) - int(after != old)
        s.pass_totals[p + 1, old] -= s.pulls[arm]
        s.pass_totals[p + 1, label] += s.pulls[arm]
        left, joined = (p + 1) * n + old, (p + 1) * n + label
        for q in range(s.sums.shape[1]):
            s.pass_sums[left, q] -= s.sums[arm, q]
            s.pass_sums[joined, q] += s.sums[arm, q]


@compiled
def assign(s: State, p: int) -> bool:
    """Alg. 2, line 6 for every arm at pass p's centers. OUT: labels, reference, close arms. True if a label changed."""
    n = s.centers.shape[0]
    most = s.pass_half.shape[1] // 2  # the other half is for arms that come close later
    for k in range(n):
        copy_row(s.pass_centers, p * n + k, s.pass_reference, p * n + k)
    changed = False
    rest = np.inf
    listed = 0
    for m in range(s.labels.shape[0]):
        label, best, second = nearest_two(s.sums, m, 1.0 / s.pulls[m], s.pass_reference, p * n, n, s.to_centers)
        half = _half_margin(best, second)
        if listed < most or half < s.pass_half[p, listed - 1]:
            if listed == most:
                rest = min(rest, s.pass_half[p, listed - 1])
            else:
                listed += 1
            i = listed - 1
            while i > 0 and s.pass_half[p, i - 1] > half:
                s.pass_half[p, i] = s.pass_half[p, i - 1]
                s.pass_close[p, 0, i] = s.pass_close[p, 0, i - 1]
                s.pass_close[p, 1, i] = s.pass_close[p, 1, i - 1]
                i -= 1
            s.pass_half[p, i] = half
            s.pass_close[p, 0, i] = m
            s.pass_close[p, 1, i] = label
        else:
            rest = min(rest, half)
        if s.pass_labels[p, m] != label:
            _relabel(s, p, m, label)
            changed = True
    s.pass_margin[p] = rest
    s.pass_listed[p] = listed
    s.pass_quiet[p] = s.pass_half[p, 0]
    s.pass_spent[p] = 0
    return changed


@compiled
def _list_arm(
    listed: Ints, margin: Floats, quiet: Floats, close: Ints, halves: Floats, p: int, arm: int, label: int, half: float
) -> bool:
    """List an arm as close in pass p, or take it off the list if it is not. False if the list is full."""
    n = listed[p]
    at = 0
    while at < n and close[p, 0, at] != arm:
        at += 1
    if half >= margin[p]:
        if at < n:
            halves[p, at] = halves[p, n - 1]
            close[p, 0, at] = close[p, 0, n - 1]
            close[p, 1, at] = close[p, 1, n - 1]
            listed[p] = n - 1
        return True
    if at == halves.shape[1]:
        return False
    halves[p, at] = half
    close[p, 0, at] = arm
    close[p, 1, at] = label
    listed[p] = max(n, at + 1)
    quiet[p] = min(quiet[p], half)
    return True


@compiled
def _drift(centers: Floats, reference: Floats, p: int, n: int) -> float:
    """How far the center of pass p that moved most is from its reference."""
    farthest = 0.0
    for k in range(p * n, (p + 1) * n):
        farthest = max(farthest, squared_distance(centers, k, reference, k))
    return float(np.sqrt(farthest))


@compiled
def judge_pass(
    p: int, dirty: Ints, sums: Floats, pulls: Ints, labels: SmallInts, centers: Floats, reference: Floats,
    listed: Ints, margin: Floats, quiet: Floats, close: Ints, halves: Floats, distances: Floats,
) -> int:  # fmt: skip
    """Whether pass p's labels stand for its present centers and the dirty arms. INOUT: the list of close arms.

    The usual answer is yes, so this takes the few arrays that it reads: passing on the whole state costs more.
    """
    n = distances.shape[0]
    drift = _drift(centers, reference, p, n)
    if not (drift < margin[p] * SURE):
        return LOOK_AT_ALL
    stands = drift < quiet[p] * SURE
    for i in range(dirty.shape[0]):
        arm = dirty[i]
        label, best, second = nearest_two(sums, arm, 1.0 / pulls[arm], reference, p * n, n, distances)
        half = _half_margin(best, second)
        if not _list_arm(listed, margin, quiet, close, halves, p, arm, label, half):
            return LOOK_AT_ALL
        stands = stands and drift < half * SURE and labels[p, arm] == label
    return STANDS if stands else LOOK_AT_CLOSE


@compiled
def update_pass(s: State, p: int, verdict: int) -> bool:
    """The labels of pass p where `judge_pass` could not vouch for them. INOUT: pass p. True if a label changed."""
    # Looking at close arms again and again must not cost more than a new reference would.
    if verdict == LOOK_AT_ALL or s.pass_spent[p] >= s.labels.shape[0]:
        s.counters[REPLAYED_PASSES] += 1
        return assign(s, p)
    n = s.centers.shape[0]
    drift = _drift(s.pass_centers, s.pass_reference, p, n)
    changed = False
    for i in range(s.counters[DIRTY]):  # those that are not close
        arm = s.dirty[i]
        label, best, second = nearest_two(s.sums, arm, 1.0 / s.pulls[arm], s.pass_reference, p * n, n, s.to_centers)
        if drift < _half_margin(best, second) * SURE and s.pass_labels[p, arm] != label:
            _relabel(s, p, arm, label)
            changed = True
    least = np.inf
    s.pass_spent[p] += 1 + s.pass_listed[p] // 4
    for i in range(s.pass_listed[p]):
        arm = s.pass_close[p, 0, i]
        label = s.pass_close[p, 1, i]
        least = min(least, s.pass_half[p, i])
        if not (drift < s.pass_half[p, i] * SURE):
            label, best, second = nearest_two(s.sums, arm, 1.0 / s.pulls[arm], s.pass_centers, p * n, n, s.to_centers)
            s.pass_spent[p] += 1
            if label != s.pass_close[p, 1, i]:
                least = -1.0
        if s.pass_labels[p, arm] != label:
            _relabel(s, p, arm, label)
            changed = True
    s.pass_quiet[p] = least
    return changed


@compiled
def shift_last(s: State) -> None:
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
