"""The steps of CROC on its state: `observe` a result, `plan` what to pull next, `pop` the next arm; and whole trials.

`plan` runs when the queue is used up and no round is open. The order of its questions is docs/CROC.md, section 7.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled, spliced
from coterie.engine.croc.doubt import doubts
from coterie.engine.croc.estimate import estimate
from coterie.engine.croc.evidence import test_pair
from coterie.engine.croc.forecast import best_gains, greedy_gains, pulls_for_freeze, pulls_for_pairs
from coterie.engine.croc.rounds import close_round, compose_round, find_epoch, freeze, unmet
from coterie.engine.croc.state import (
    ALARM,
    BY_EPOCH,
    BY_PAIRS,
    CERTIFIED,
    CERTIFIED_EPOCH,
    CHANCE,
    CHANCE_A,
    CHANCE_B,
    CHANGED,
    DONE,
    ESTIMATED,
    EXPLORE,
    FIRST_PASS,
    FREEZE_DOUBT,
    GREEDY,
    GREEDY_LIMIT,
    LEFT_GROUP,
    MERGE_MARGIN,
    MERGED_A,
    MERGED_B,
    MODE,
    PAIRS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROUND,
    ROUND_EPOCH,
    ROUND_LEFT,
    ROUNDS,
    SMALLEST_DOUBT,
    SPLIT,
    STEADY,
    UNSEEN,
    Croc,
    T,
    Work,
)
from coterie.engine.state import Floats

DOUBT_CAP, DOUBT_WINDOW = 5.0, 2.0
MERGE_CAP = 2.0


@compiled
def _push(s: Croc, arm: int) -> None:
    s.queue[s.ints[QUEUE_TAIL]] = arm
    s.ints[QUEUE_TAIL] += 1


@compiled
def _choose_representatives(s: Croc) -> bool:
    """Keep a representative while it stays in its group, else the most pulled arm, ties nearest the center.

    INOUT: s.representative; the pairs of a changed one are forgotten. True if one changed.
    """
    changed = False
    for k in range(s.totals.size):
        lead = s.representative[k]
        if lead >= 0 and s.labels[lead] == k:
            continue
        best, away = -1, 0.0
        for m in range(s.labels.size):
            if s.labels[m] == k:
                gap = 0.0
                for q in range(s.sums.shape[1]):
                    gap += (s.sums[m, q] / s.pulls[m] - s.centers[k, q]) ** 2
                more = best < 0 or s.pulls[m] > s.pulls[best]
                if more or (s.pulls[m] == s.pulls[best] and gap < away):
                    best, away = m, gap
        s.representative[k] = best
        changed = True
        for m in range(s.labels.size):
            s.settled[m, k] = 0
            s.evidence[m, k] = -math.inf
    return changed


@compiled
def _refresh_pairs(s: Croc) -> None:
    for m in range(s.labels.size):
        for k in range(s.totals.size):
            if k != s.labels[m]:
                test_pair(s, m, k)


@compiled
def _pairs_done(s: Croc) -> bool:
    for m in range(s.labels.size):
        for k in range(s.totals.size):
            if k != s.labels[m] and s.settled[m, k] == 0:
                return False
    return True


@compiled
def _raise_alarm(s: Croc) -> bool:
    """An arm and K representatives, all known to differ, refute K. OUT: s.ints[ALARM]. True if there is such an arm."""
    s.ints[ALARM] = 0
    for k in range(s.totals.size):
        for j in range(s.totals.size):
            if j != k and s.settled[s.representative[k], j] == 0:
                return False  # two representatives may share a group: then the arm would only show that
    for m in range(s.labels.size):
        home = s.labels[m]
        if s.representative[home] == m:
            continue
        others = True
        for k in range(s.totals.size):
            if k != home and s.settled[m, k] == 0:
                others = False
                break
        if others:
            test_pair(s, m, home)
            if s.settled[m, home] == 1:
                s.ints[ALARM] = m + 1
                return True
    return False


@compiled
def _least_pulled(s: Croc, k: int) -> int:
    best = -1
    for m in range(s.labels.size):
        if s.labels[m] == k and (best < 0 or s.committed[m] < s.committed[best]):
            best = m
    return best


@compiled
def least_committed(s: Croc) -> int:
    best = 0
    for m in range(s.labels.size):
        if s.committed[m] < s.committed[best]:
            best = m
    return best


@compiled
def _starved(s: Croc) -> int:
    """An arm with fewer than ½·√(t/M) pulls, -1 if there is none: forced exploration."""
    arm = least_committed(s)
    return arm if s.committed[arm] < 0.5 * math.sqrt(s.ints[T] / s.labels.size) else -1


@spliced
def _plan_greedy(s: Croc, w: Work) -> None:
    """Pull for the pairs from the start: one arm, or with many unmet pairs the best few at once. OUT: the queue."""
    arm = _starved(s)
    if arm >= 0:
        _push(s, arm)
        return
    pairs = greedy_gains(s, w)
    for m in range(s.labels.size):
        if s.committed[m] > s.pulls[m]:
            w.gains[m] = 0.0  # its result is on the way
    count = best_gains(w, min(max(1, pairs // 64), s.labels.size))
    for i in range(count):
        _push(s, w.chosen[i])
    if count == 0:
        _push(s, least_committed(s))
    s.ints[GREEDY] += max(count, 1)


@spliced
def _plan_exploration(s: Croc, w: Work) -> None:
    """Pull where the estimate is doubtful. OUT: the queue."""
    limit = min(DOUBT_CAP, s.numbers[SMALLEST_DOUBT] + DOUBT_WINDOW)
    take = w.mark
    for m in range(s.labels.size):
        take[m] = 0
    floor = 0.5 * math.sqrt(s.ints[T] / s.labels.size)
    for m in range(s.labels.size):
        rival = 0
        for k in range(s.totals.size):
            if s.doubt[m, k] < s.doubt[m, rival]:
                rival = k
        if s.doubt[m, rival] < limit:
            take[m] = 1
            if s.totals[rival] < 3 * s.pulls[m]:
                take[_least_pulled(s, rival)] = 1
        if s.pulls[m] < floor:
            take[m] = 1
    split = -1
    if s.numbers[MERGE_MARGIN] < MERGE_CAP:
        split = _least_pulled(s, s.places[SPLIT])
        take[split] = 1
        for i in (MERGED_A, MERGED_B):
            arm = _least_pulled(s, s.places[i])
            if s.pulls[arm] <= 2 * s.pulls[split]:
                take[arm] = 1
    if s.numbers[CHANCE] > 0.25 * FREEZE_DOUBT:
        first = _least_pulled(s, s.places[CHANCE_A])
        take[first] = 1
        take[_least_pulled(s, s.places[CHANCE_B])] = 1
        if math.isfinite(s.numbers[MERGE_MARGIN]):
            arm = _least_pulled(s, s.places[SPLIT])
            if 2 * s.pulls[arm] <= s.pulls[first]:
                take[arm] = 1
    for m in range(s.labels.size):
        if take[m] == 1 and s.committed[m] == s.pulls[m]:
            _push(s, m)
    if s.ints[QUEUE_TAIL] == 0:
        _push(s, least_committed(s))


@compiled
def _certify(s: Croc, by: int, e: int) -> None:
    s.ints[DONE] = by
    s.ints[CERTIFIED_EPOCH] = e


@compiled
def _decide(s: Croc, w: Work) -> int:
    """What to do next: PAIRS, EXPLORE or ROUNDS; or CERTIFIED, when nothing is left to do."""
    if _pairs_done(s):
        _certify(s, BY_PAIRS, -1)
        return CERTIFIED
    e = find_epoch(s, w.names)
    doubt = doubts(s, w)
    may_be_greedy = s.ints[GREEDY] <= s.numbers[GREEDY_LIMIT]
    rival = math.inf  # pulls that the pairs from the start have to beat
    if e >= 0:
        if unmet(s, e, w) == 0:
            _certify(s, BY_EPOCH, e)
            return CERTIFIED
        rival = 0.0
        for m in range(s.labels.size):
            rival += w.mark[m]
    elif doubt < 1.0:
        rival = pulls_for_freeze(s, w)
    if may_be_greedy and (e >= 0 or doubt < 1.0):
        needed = pulls_for_pairs(s, w, rival + 1.0)
        if needed <= rival:
            _allow_greedy(s, needed)
            return PAIRS
    if e < 0 and doubt <= FREEZE_DOUBT and s.ints[T] - s.ints[CHANGED] >= STEADY * s.ints[T]:
        e = freeze(s)
    elif e < 0 or doubt >= 1.0:
        return EXPLORE
    if unmet(s, e, w) == 0:
        _certify(s, BY_EPOCH, e)
        return CERTIFIED
    compose_round(s, e, w)
    return ROUNDS


@compiled
def _renew(s: Croc, w: Work) -> None:
    """Estimate anew if it is due; then the representatives and their pairs. INOUT: s."""
    changed = False
    due = s.ints[T] - s.ints[ESTIMATED] >= max(1, s.labels.size // 10)
    if s.ints[ESTIMATED] == 0 or s.ints[LEFT_GROUP] == 1 or due:
        changed = estimate(s, w)
    if _choose_representatives(s) or changed:
        _refresh_pairs(s)


@spliced
def plan(s: Croc, w: Work) -> None:
    """Decide what to pull next, or that the groups are proven. OUT: the queue, or s.ints[DONE]."""
    s.ints[QUEUE_HEAD] = 0
    s.ints[QUEUE_TAIL] = 0
    _renew(s, w)
    if _raise_alarm(s):
        _push(s, least_committed(s))
        return
    mode = _decide(s, w)
    s.ints[MODE] = mode
    if mode == PAIRS:
        _plan_greedy(s, w)
    elif mode == EXPLORE:
        _plan_exploration(s, w)
    elif mode == ROUNDS:
        for m in range(s.labels.size):
            for _ in range(s.round_pulls[m]):
                _push(s, m)


@compiled
def _allow_greedy(s: Croc, needed: float) -> None:
    """Greedy pulls are limited by the first forecast: a wrong estimate must not hold the run for ever."""
    if s.numbers[GREEDY_LIMIT] == 0.0:
        s.numbers[GREEDY_LIMIT] = 2.0 * needed + 20.0


@spliced
def observe(s: Croc, w: Work, arm: int, x: Floats, of_round: int) -> None:
    """One result, in the arm's ask order; of_round is the round it was asked for in, 0 for none. INOUT: s."""
    if s.pulls[arm] == 0:
        s.ints[UNSEEN] -= 1
    s.pulls[arm] += 1
    s.ints[T] += 1
    n = s.pulls[arm]
    for q in range(x.size):
        s.sums[arm, q] += x[q]
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
                gap += (s.sums[arm, q] / n - s.centers[k, q]) ** 2
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
        _renew(s, w)
        if _pairs_done(s) and not _raise_alarm(s):
            _certify(s, BY_PAIRS, -1)
