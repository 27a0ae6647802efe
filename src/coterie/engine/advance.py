"""The one entry into the compiled steps, for live sessions and simulations alike.

Having a single entry is what keeps the first compilation short: numba optimises a function together with all that
it calls, so every further entry would compile the whole engine once more.
"""

from __future__ import annotations

import numpy as np

from coterie.engine.compiled import compiled, entry
from coterie.engine.forest import Forest
from coterie.engine.heaps import heap_down, heap_up
from coterie.engine.held import held
from coterie.engine.state import ASK, ASKED, FORGET, FRESH, LOG_SUM, PENDING, READY, Floats, Ints, State, T, Z
from coterie.engine.steps import next_arm, observe, settle

PROVEN, HEURISTIC = 0, 1


@compiled
def same_groups(a: Ints, b: Ints, there: Ints, back: Ints) -> bool:
    """Whether two labellings with numbers in 0..K−1 are equal up to relabelling. Work space: there, back (K)."""
    there[:] = -1
    back[:] = -1
    for m in range(a.shape[0]):
        if there[a[m]] < 0 and back[b[m]] < 0:
            there[a[m]] = b[m]
            back[b[m]] = a[m]
        elif there[a[m]] != b[m] or back[b[m]] != a[m]:
            return False
    return True


@compiled
def threshold_now(kind: int, dim: int, t: int, log_sum: float, level: float) -> float:
    """β or β̃ at the present counts; `level` is M·d·Ψ(log(1/δ)/(M·d)) for β and log(1/δ) for β̃."""
    if kind == PROVEN:
        return 2.0 * dim * log_sum + level  # equation_beta
    return float(dim * np.log(1.0 + np.log(t)) + level)  # Section 6: log((1 + log t)^d / δ)


@compiled
def _draw(rng: np.random.Generator, x: Floats) -> None:
    """OUT: x, standard Gaussian noise. On its own, so that the loop keeps its registers."""
    for q in range(x.shape[0]):
        x[q] = rng.standard_normal()


@compiled
def _place(a: Floats, i: int, origin: Floats, first: bool, x: Floats) -> None:
    """Add row i of a to x, relative to the origin, which the first measurement sets. INOUT: x, origin."""
    if first:
        for q in range(x.shape[0]):
            origin[q] = x[q] + a[i, q]
            x[q] = 0.0
    else:
        for q in range(x.shape[0]):
            x[q] += a[i, q] - origin[q]


@compiled
def _commit(
    counters: Ints,
    committed: Ints,
    group: Ints,
    heap: Ints,
    slot: Ints,
    first_slot: Ints,
    arm: int,
    change: int,
) -> None:
    """Count a pull of the arm as under way (+1) or as given up (−1). INOUT: counters, committed, heap, slot."""
    committed[arm] += change
    counters[PENDING] += change
    if change < 0:
        counters[FRESH] = min(counters[FRESH], arm)
    if counters[READY] == 1:
        low, high = first_slot[group[arm]], first_slot[group[arm] + 1]
        if change > 0:
            heap_down(heap, slot, committed, low, high, slot[arm])
        else:
            heap_up(heap, slot, committed, low, slot[arm])


@entry
def advance(
    s: State,
    f: Forest,
    steps: int,
    scripted: bool,
    arms: Ints,
    asked: Ints,
    values: Floats,
    centers: Floats,
    truth: Ints,
    rng: np.random.Generator,
    levels: Floats,
    met: Ints,
    stops: Ints,
    correct: Ints,
    x: Floats,
) -> int:
    """Take up to `steps` measurements, stopping early once all levels are met; then say which arm comes next.

    Scripted: the measurements are (arms[i], values[i]), and asked[i] = ASKED if it was counted as under way. A script
    may also hold asks (ASK; arms[i], if not negative, is checked and otherwise noted) and pulls given up (FORGET).
    Otherwise the rule picks the arm, X = centers[truth[arm]] + standard Gaussian noise is drawn from rng, and the first
    arms.shape[0] arms are noted in `arms`. IN: levels (2, L), thresholds of each kind in increasing order (see
    `threshold_now`). INOUT: met (2), how many levels of each kind are met. OUT: stops (2, L), the t at which; correct
    (2, L), whether the guess was `truth` then. Work space: x (d). Returns the next arm (0 after the end), or −1−i if
    entry i asks for another arm than the rule does.
    """
    return _advance(
        held(s), held(f), steps, scripted, arms, asked, values, centers, truth, rng, levels, met, stops, correct, x
    )


@compiled
def _advance(
    s: State,
    f: Forest,
    steps: int,
    scripted: bool,
    arms: Ints,
    asked: Ints,
    values: Floats,
    centers: Floats,
    truth: Ints,
    rng: np.random.Generator,
    levels: Floats,
    met: Ints,
    stops: Ints,
    correct: Ints,
    x: Floats,
) -> int:
    """See `advance`, which Python calls."""
    dim = x.shape[0]
    arm = 0
    for i in range(steps + 1):
        if met[0] == levels.shape[1] and met[1] == levels.shape[1]:
            break  # before the guess moves on: c^out is the guess of t−1
        settle(s, f)
        arm = next_arm(s)
        if i == steps:
            break
        if scripted:
            if asked[i] == ASK:
                if arms[i] >= 0 and arms[i] != arm:
                    arms[i] = arm
                    return -1 - i
                arms[i] = arm
            if asked[i] == ASK or asked[i] == FORGET:
                change = 1 if asked[i] == ASK else -1
                _commit(s.counters, s.committed, s.group, s.heap, s.slot, s.first_slot, arms[i], change)
                continue
            arm = arms[i]
            for q in range(dim):
                x[q] = 0.0
            _place(values, i, s.origin, s.counters[T] == 0, x)
        else:
            if s.counters[T] < arms.shape[0]:
                arms[s.counters[T]] = arm
            _draw(rng, x)
            _place(centers, truth[arm], s.origin, s.counters[T] == 0, x)
        observe(s, arm, x, scripted and asked[i] == ASKED)
        if s.gauges[Z] <= 0.0:
            continue
        for kind in range(2):
            while met[kind] < levels.shape[1]:
                at = met[kind]
                if s.gauges[Z] < threshold_now(kind, dim, s.counters[T], s.gauges[LOG_SUM], levels[kind, at]):
                    break
                stops[kind, at] = s.counters[T]
                correct[kind, at] = same_groups(s.labels, truth, s.names, s.taken)
                met[kind] += 1
    return int(arm)


@entry
def commit(
    counters: Ints,
    committed: Ints,
    group: Ints,
    heap: Ints,
    slot: Ints,
    first_slot: Ints,
    arm: int,
    change: int,
) -> None:
    """`_commit` for Python."""
    _commit(counters, committed, group, heap, slot, first_slot, arm, change)
