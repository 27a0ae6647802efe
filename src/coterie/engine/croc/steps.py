"""The steps of CROC on its state: `observe` a result, and `plan_if_due` what to pull next."""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.closing import close_ready
from coterie.engine.croc.evidence import grid_count, grid_place, test_pair
from coterie.engine.croc.factors import score_result
from coterie.engine.croc.flight import entry_of
from coterie.engine.croc.metric import take_position
from coterie.engine.croc.planning import plan, see_proven
from coterie.engine.croc.state import (
    ALONE,
    CLOSED,
    DONE,
    ESTIMATED,
    FAR,
    FIRST_PASS,
    FLIGHT,
    FROM_ZERO,
    LEFT_GROUP,
    METRIC,
    MODE,
    NEAR,
    OPEN_PULLS,
    OPEN_ROUNDS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    TOUCHED,
    UNSEEN,
    VARIANCE_BOUND,
    Croc,
    T,
    Work,
)
from coterie.engine.croc.variance_bound import take_residual
from coterie.engine.state import Floats
from coterie.engine.vectors import squared_distance


@compiled
def _place(s: Croc, arm: int, x: Floats) -> None:
    """Turn a result, and behind it what floats do not hold of it, into its distance from the arm's origin. INOUT: s, x.

    Differences of near numbers are exact, and so is what rounding leaves of the others: nothing is lost but what one
    float does not hold of the distance itself.
    """
    dim = s.sums.shape[1]
    if s.ints[T] == 0 and s.ints[FROM_ZERO] == 0:
        for q in range(dim):
            s.origin[q], s.origin_rest[q] = x[q], x[dim + q]
    most = 0.0
    for q in range(dim):
        away = x[q] - s.origin[q]
        back = x[q] - away
        rest = (x[q] - (away + back)) + (back - s.origin[q])
        rest += x[dim + q] - s.origin_rest[q]
        x[q], x[dim + q] = away, rest
        most = max(most, abs(away))
    if s.pulls[arm] == 0 and most > NEAR and s.ints[METRIC] == 0:
        s.ints[FAR] = 1
        for q in range(dim):
            s.offset[arm, q], s.offset_rest[arm, q] = x[q], x[dim + q]
    for q in range(dim):
        x[q] = (x[q] - s.offset[arm, q]) + (x[dim + q] - s.offset_rest[arm, q])


@compiled
def observe(s: Croc, w: Work, arm: int, x: Floats, of_round: int) -> None:
    """One result, in the arm's ask order; of_round is the round it was asked for in, 0 for none. INOUT: s, x.

    x has 2·d numbers: the result, and what floats do not hold of it.
    """
    dim = s.sums.shape[1]
    _place(s, arm, x)
    s.ints[OPEN_PULLS] -= 1
    if s.ints[VARIANCE_BOUND] == 1:
        take_residual(s, arm, x)
    if s.ints[ALONE] == arm + 1:
        s.ints[ALONE] = 0
    if s.pulls[arm] == 0:
        s.ints[UNSEEN] -= 1
    s.pulls[arm] += 1
    if s.is_touched[arm] == 0:
        s.is_touched[arm] = 1
        s.touched[s.ints[TOUCHED]] = arm
        s.ints[TOUCHED] += 1
    s.ints[T] += 1
    n, room = s.pulls[arm], s.prefixes.shape[0] - 1
    inverse = 1.0 / n
    for q in range(dim):
        s.sums[arm, q] += x[q]
        s.means[arm, q] = s.offset[arm, q] + s.sums[arm, q] * inverse
    if s.ints[METRIC] == 1:
        take_position(s, w, arm, x)
    read = n <= room  # whether the pairs from the start read this count
    if n <= room:
        for q in range(dim):
            s.prefixes[n, arm, q] = s.sums[arm, q]
    if n >= room > 0:
        place = grid_place(n, room)
        if grid_count(place, room) == n and place < s.grid.shape[0]:
            read = True
            for q in range(dim):
                s.grid[place, arm, q] = s.sums[arm, q]
    entry = entry_of(s, of_round, arm) if of_round > 0 else -1
    if entry >= 0:
        for q in range(dim):
            s.entry_sums[entry, q] += x[q]
        score_result(s, w, of_round, entry, arm, x)
        s.round_left[of_round % FLIGHT] -= 1
    if s.ints[ESTIMATED] > 0:
        home = s.labels[arm]
        s.totals[home] += 1.0
        nearest, best = home, math.inf
        for q in range(dim):
            position = w.part[q] if s.ints[METRIC] == 1 else s.offset[arm, q] + x[q]
            s.centers[home, q] += (position - s.centers[home, q]) / s.totals[home]
        for k in range(s.totals.size):
            gap = squared_distance(s.means, arm, s.centers, k)
            if gap < best:
                nearest, best = k, gap
        if nearest != home:
            s.ints[LEFT_GROUP] = 1
        if read:
            for k in range(s.totals.size):
                if k != home:
                    test_pair(s, arm, k)
            if s.representative[home] == arm:
                for m in range(s.labels.size):
                    if s.labels[m] != home:
                        test_pair(s, m, home)
    if entry >= 0 and s.round_left[of_round % FLIGHT] == 0:
        close_ready(s, w)


@compiled
def plan_if_due(s: Croc, w: Work, outside: bool) -> None:
    """Plan if every arm was measured, the queue is used up and no round is open. INOUT: s.

    While rounds are open the next is planned when an arm is asked for. But after one has closed, or a result from
    outside has come, see whether the groups are proven: the results of the others may never come.
    """
    if s.ints[DONE] > 0 or s.ints[UNSEEN] > 0:
        return
    if s.ints[OPEN_ROUNDS] == 0:
        if s.ints[MODE] == FIRST_PASS or s.ints[QUEUE_HEAD] >= s.ints[QUEUE_TAIL]:
            plan(s, w)
    elif outside or s.ints[CLOSED] == 1:
        see_proven(s, w)
