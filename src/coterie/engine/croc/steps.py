"""The steps of CROC on its state: `observe` a result, and `plan_if_due` what to pull next."""

from __future__ import annotations

import math

from coterie.engine.compiled import spliced
from coterie.engine.croc.evidence import test_pair
from coterie.engine.croc.planning import certify, plan
from coterie.engine.croc.renewal import forget_touched, pairs_done, raise_alarm, renew
from coterie.engine.croc.rounds import close_round
from coterie.engine.croc.state import (
    BY_PAIRS,
    DONE,
    ESTIMATED,
    FIRST_PASS,
    LEFT_GROUP,
    MODE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROUND,
    ROUND_EPOCH,
    ROUND_LEFT,
    TOUCHED,
    UNSEEN,
    Croc,
    T,
    Work,
)
from coterie.engine.state import Floats


@spliced
def observe(s: Croc, w: Work, arm: int, x: Floats, of_round: int) -> None:
    """One result, in the arm's ask order; of_round is the round it was asked for in, 0 for none. INOUT: s, x."""
    for q in range(x.size):
        if s.ints[T] == 0:
            s.origin[q] = x[q]
        x[q] -= s.origin[q]
    if s.pulls[arm] == 0:
        s.ints[UNSEEN] -= 1
    s.pulls[arm] += 1
    if s.is_touched[arm] == 0:
        s.is_touched[arm] = 1
        s.touched[s.ints[TOUCHED]] = arm
        s.ints[TOUCHED] += 1
    s.ints[T] += 1
    n = s.pulls[arm]
    inverse = 1.0 / n
    for q in range(x.size):
        s.sums[arm, q] += x[q]
        s.means[arm, q] = s.sums[arm, q] * inverse
    if n < s.prefixes.shape[1]:
        for q in range(x.size):
            s.prefixes[arm, n, q] = s.sums[arm, q]
    if of_round > 0 and of_round == s.ints[ROUND] and s.ints[ROUND_EPOCH] > 0:
        for q in range(x.size):
            s.round_sums[arm, q] += x[q]
        s.ints[ROUND_LEFT] -= 1
    if s.ints[ESTIMATED] > 0:
        home = s.labels[arm]
        s.totals[home] += 1.0
        nearest, best = home, math.inf
        for q in range(x.size):
            s.centers[home, q] += (x[q] - s.centers[home, q]) / s.totals[home]
        for k in range(s.totals.size):
            gap = 0.0
            for q in range(x.size):
                gap += (s.means[arm, q] - s.centers[k, q]) ** 2
            if gap < best:
                nearest, best = k, gap
        if nearest != home:
            s.ints[LEFT_GROUP] = 1
        if n < s.prefixes.shape[1]:
            for k in range(s.totals.size):
                if k != home:
                    test_pair(s, arm, k)
            if s.representative[home] == arm:
                for m in range(s.labels.size):
                    if s.labels[m] != home:
                        test_pair(s, m, home)
    if s.ints[ROUND_EPOCH] > 0 and s.ints[ROUND_LEFT] == 0:
        close_round(s, w)


@spliced
def plan_if_due(s: Croc, w: Work, outside: bool) -> None:
    """Plan if every arm was measured, the queue is used up and no round is open. INOUT: s.

    After a result from outside an open round, renew the estimate and see whether the pairs from the start are all
    settled: the results of the round may never come. The round itself goes by its frozen candidate.
    """
    if s.ints[DONE] > 0 or s.ints[UNSEEN] > 0:
        return
    if s.ints[ROUND_EPOCH] == 0:
        if s.ints[MODE] == FIRST_PASS or s.ints[QUEUE_HEAD] >= s.ints[QUEUE_TAIL]:
            plan(s, w)
    elif outside:
        renew(s, w)
        forget_touched(s)
        if pairs_done(s) and not raise_alarm(s):
            certify(s, BY_PAIRS, -1)
