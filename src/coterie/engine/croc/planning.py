"""What to pull next: `plan` runs when nothing is left to be asked for (docs/CROC.md, section 7).

Pulls under way count as made: with one worker there are none when a plan is made.

A full plan looks at every arm, O(M·K·d). Until the next one is due, plans of the same kind look at its candidates only,
with the margins and gains of arms with new results brought up to date: O(K·d) for each of these.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.claims import pairs_done, raise_alarm, unmet
from coterie.engine.croc.cover import covered_by_epoch, covered_by_pairs
from coterie.engine.croc.epochs import find_epoch
from coterie.engine.croc.factors import is_stale
from coterie.engine.croc.forecast import best_gains, greedy_gains, pulls_for_freeze, pulls_for_pairs
from coterie.engine.croc.least_pulled import least_committed, least_pulled, spent
from coterie.engine.croc.misgrouping import misgrouping_risk, update_misgrouping_risk
from coterie.engine.croc.renewal import forget_touched, patience, renew
from coterie.engine.croc.rounds import compose_round, freeze
from coterie.engine.croc.state import (
    ALARM,
    BY_EPOCH,
    BY_PAIRS,
    CANDIDATES,
    CERTIFIED,
    CERTIFIED_EPOCH,
    CHANCE,
    CHANCE_A,
    CHANCE_B,
    CHANGED,
    CLOSED,
    DEGREES,
    DONE,
    EXPLORE,
    FREEZE_RISK,
    GREEDY_LIMIT,
    GREEDY_SPENT,
    MERGE_MARGIN,
    MERGED_A,
    MERGED_B,
    METRIC,
    MISGROUPING_RISK,
    MODE,
    PAIRS,
    PLANNED,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROUNDS,
    SPLIT,
    STEADY,
    VARIANCE_BOUND,
    Croc,
    T,
    Work,
)
from coterie.engine.croc.variance_bound import forecast_trust, renew_bound

MARGIN_CAP, MARGIN_WINDOW = 5.0, 2.0
"""Explored are arms with a margin below the cap and within the window of the smallest one."""
DRIFT = 1.0
"""Arms with a margin this much above the cap stay in view: it may fall as centers move."""
MERGE_CAP = 2.0
"""A merge and split with a smaller margin than this is explored."""
LEAST_SHARE, LEAST_SHARE_IN_ROUNDS = 0.1, 0.02
"""No arm should have fewer pulls than this share of the mean, while exploring and in rounds."""
ROOT_FLOOR = 0.5
"""… nor, while exploring, than this many times the square root of the mean."""
LARGEST_RISK = 1.0
"""Nothing but exploration makes sense while P_w is at least this."""
FREEZE_LOOKS = 8
"""Between full plans, so many looks at whether to freeze: a full plan for each."""
RIVAL_PULLS = 3
"""An uncertain arm's rival group is pulled too if it has fewer than this many times the arm's pulls."""
BALANCE = 2
"""Of groups that may have to be cut or merged, one is left out if it has this many times the pulls of the other."""
CHANCE_SHARE = 0.25
"""Groups are explored if their chance to be one is above this share of the risk at which one may freeze."""
PAIRS_PER_PULL = 64
"""A greedy plan pulls one arm for so many unmet pairs."""
FREEZE_RISK_UNKNOWN = 0.08
"""With an estimated metric, freeze when P_w is below: rounds are larger, and a wrong candidate costs more …"""
SURE_RISK = 0.01
"""… and at once if P_w is below this."""
REPEATS = 6
"""So many results that are not the first of their arm before an estimated metric is used; more in many dimensions."""
GREEDY_FACTOR, GREEDY_EXTRA = 2.0, 20.0
"""The cost of greedy pulls is limited to this many times its first forecast, and so much more."""


@compiled
def _push(s: Croc, arm: int) -> None:
    """Put the arm at the end of the queue."""
    s.queue[s.ints[QUEUE_TAIL]] = arm
    s.ints[QUEUE_TAIL] += 1


@compiled
def _push_once(s: Croc, arm: int) -> None:
    """Push the arm unless it is in the queue."""
    if s.queued[arm] == 0:
        s.queued[arm] = 1
        _push(s, arm)


@compiled
def _floor(s: Croc) -> float:
    """Forced exploration: no arm should have fewer pulls than this."""
    each = s.ints[T] / s.labels.size
    return float(max(ROOT_FLOOR * math.sqrt(each), LEAST_SHARE * each))


@compiled
def _freeze_risk(s: Croc) -> float:
    """The misgrouping risk at which one may freeze."""
    return FREEZE_RISK if s.ints[METRIC] == 0 else FREEZE_RISK_UNKNOWN


@compiled
def _greedy(s: Croc, w: Work) -> bool:
    """Pull for the pairs from the start: one arm, or with many unmet pairs the best few at once. OUT: the queue.

    False if the candidates have no unmet pair.
    """
    arm = least_committed(s)
    if s.committed[arm] < _floor(s):
        _push(s, arm)
        return True
    pairs = greedy_gains(s, w)
    if pairs == 0:
        return False
    count = best_gains(s, w, min(max(1, pairs // PAIRS_PER_PULL), s.labels.size))
    for i in range(count):
        _push(s, w.chosen[i])
    if count == 0:
        _push(s, arm)
    cost = 0.0
    for i in range(s.ints[QUEUE_TAIL]):
        cost += s.price[s.queue[i]]
    s.numbers[GREEDY_SPENT] += cost
    return True


@compiled
def _margin_ahead(s: Croc, m: int) -> float:
    """The margin of an arm when what is under way is in: it is taken to grow with the arm's pulls."""
    if s.margin[m] <= 0.0 or s.committed[m] == s.pulls[m]:
        return float(s.margin[m])
    return float(s.margin[m] * s.committed[m] / s.pulls[m])


@compiled
def _explore(s: Croc) -> None:
    """Pull where the estimate may be wrong. OUT: the queue."""
    smallest, least_sure = math.inf, -1
    for c in range(s.ints[CANDIDATES]):
        margin = _margin_ahead(s, s.candidates[c]) + s.reserve[s.candidates[c]]
        if margin < smallest:
            smallest, least_sure = margin, s.candidates[c]
    limit = min(MARGIN_CAP, smallest + MARGIN_WINDOW)
    floor = _floor(s)
    for c in range(s.ints[CANDIDATES]):
        m = s.candidates[c]
        if _margin_ahead(s, m) + s.reserve[m] < limit:
            _push_once(s, m)
            other = least_pulled(s, s.rival[m])
            if s.totals[s.rival[m]] < RIVAL_PULLS * s.pulls[m] * math.sqrt(s.price[m] / s.price[other]):
                _push_once(s, other)
        elif s.committed[m] < floor:
            _push_once(s, m)
    if s.numbers[MERGE_MARGIN] < MERGE_CAP:
        split = least_pulled(s, s.ints[SPLIT])
        _push_once(s, split)
        for i in (MERGED_A, MERGED_B):
            arm = least_pulled(s, s.ints[i])
            if spent(s, arm) <= BALANCE * spent(s, split):
                _push_once(s, arm)
    if s.numbers[CHANCE] > CHANCE_SHARE * _freeze_risk(s):
        first = least_pulled(s, s.ints[CHANCE_A])
        _push_once(s, first)
        _push_once(s, least_pulled(s, s.ints[CHANCE_B]))
        if math.isfinite(s.numbers[MERGE_MARGIN]):
            arm = least_pulled(s, s.ints[SPLIT])
            if BALANCE * spent(s, arm) <= spent(s, first):
                _push_once(s, arm)
    for i in range(s.ints[QUEUE_TAIL]):  # in index order: insertion, as only the last few are out of place
        arm, place = s.queue[i], i
        s.queued[arm] = 0
        while place > 0 and s.queue[place - 1] > arm:
            s.queue[place] = s.queue[place - 1]
            place -= 1
        s.queue[place] = arm
    if s.ints[QUEUE_TAIL] == 0:
        _push(s, least_sure if least_sure >= 0 else least_committed(s))


@compiled
def _choose_candidates(s: Croc, mode: int) -> None:
    """The arms that plans of this kind have to look at. OUT: s.candidates."""
    count, floor = 0, _floor(s)
    for m in range(s.labels.size):
        take = False
        if mode == EXPLORE:
            take = s.margin[m] < MARGIN_CAP + DRIFT or s.pulls[m] < floor
        else:
            for k in range(s.totals.size):
                if k != s.labels[m] and s.settled[m, k] == 0:
                    take = True
                    break
        if take:
            s.candidates[count] = m
            count += 1
    s.ints[CANDIDATES] = count


@compiled
def _repeat(s: Croc) -> bool:
    """Pull the least-pulled arms again if too few results tell how large the noise is. OUT: the queue. False if not."""
    wanted = min(s.labels.size, max(REPEATS, s.sums.shape[1] + 2))
    if s.ints[DEGREES] >= wanted:
        return False
    under_way = 0
    for m in range(s.labels.size):
        under_way += s.committed[m] - s.pulls[m]
    missing = wanted - s.ints[DEGREES] - under_way
    for m in range(s.labels.size):
        if s.ints[QUEUE_TAIL] < missing and s.committed[m] == 1:
            _push(s, m)
    if s.ints[QUEUE_TAIL] == 0:
        _push(s, least_committed(s))
    return True


@compiled
def certify(s: Croc, by: int, e: int) -> bool:
    """Stop if the groups are proven, BY_PAIRS or BY_EPOCH, and then by the epoch in slot e: if its tests cover them."""
    if not (covered_by_pairs(s) if by == BY_PAIRS else covered_by_epoch(s, e)):
        return False
    s.ints[DONE] = by
    s.ints[CERTIFIED_EPOCH] = e
    return True


@compiled
def _allow_greedy(s: Croc, needed: float) -> None:
    """Greedy pulls are limited by the first forecast: a wrong estimate must not hold the run for ever."""
    if s.numbers[GREEDY_LIMIT] == 0.0:
        s.numbers[GREEDY_LIMIT] = GREEDY_FACTOR * needed + GREEDY_EXTRA


@compiled
def _decide(s: Croc, w: Work) -> int:
    """What to do next: PAIRS, EXPLORE or ROUNDS; or CERTIFIED, when nothing is left to do."""
    if pairs_done(s) and certify(s, BY_PAIRS, -1):
        return CERTIFIED
    e = find_epoch(s, w.names)
    risk = misgrouping_risk(s, w)
    steady = s.ints[T] - s.ints[CHANGED] >= STEADY * s.ints[T]
    if s.ints[METRIC] == 1:
        steady = steady or risk <= SURE_RISK
        if e >= 0 and risk <= _freeze_risk(s) and unmet(s, e, w) > 0 and is_stale(s, w, e):
            e = -1
    may_be_greedy = s.ints[ALARM] == 0 and s.numbers[GREEDY_SPENT] <= s.numbers[GREEDY_LIMIT]
    rival = math.inf  # the cost that the pairs from the start have to beat
    if e >= 0 and unmet(s, e, w) == 0:
        if certify(s, BY_EPOCH, e):
            return CERTIFIED
        e = -1  # tests that leave something open prove nothing: another candidate is frozen
    if e >= 0:
        rival = 0.0
        for m in range(s.labels.size):
            rival += w.mark[m] * s.price[m]
    elif risk < LARGEST_RISK:
        rival = pulls_for_freeze(s, w)
    if may_be_greedy and (e >= 0 or risk < LARGEST_RISK):
        if s.ints[VARIANCE_BOUND] == 1:
            forecast_trust(s, rival)
        needed = pulls_for_pairs(s, w, rival + 1.0)
        if needed <= rival:
            _allow_greedy(s, needed)
            return PAIRS
    if e < 0 and risk <= _freeze_risk(s) and steady:
        e = freeze(s, w)
    elif e < 0 or risk >= LARGEST_RISK:
        return EXPLORE
    if unmet(s, e, w) == 0:
        return CERTIFIED if certify(s, BY_EPOCH, e) else EXPLORE
    floor = LEAST_SHARE_IN_ROUNDS * s.ints[T] / s.labels.size
    return ROUNDS if compose_round(s, e, w, floor) else EXPLORE


@compiled
def _go_on(s: Croc, w: Work) -> bool:
    """Plan as before for the candidates of the last full plan, if it is not long ago. OUT: the queue. False if not."""
    since, wait = s.ints[T] - s.ints[PLANNED], patience(s)
    if since >= wait:
        return False
    if s.ints[MODE] == PAIRS:
        return s.numbers[GREEDY_SPENT] <= s.numbers[GREEDY_LIMIT] and _greedy(s, w)
    if s.ints[MODE] != EXPLORE:
        return False
    before = s.numbers[MISGROUPING_RISK]
    risk = update_misgrouping_risk(s)
    steady = s.ints[T] - s.ints[CHANGED] >= STEADY * s.ints[T]
    may_freeze = risk <= _freeze_risk(s) and steady and FREEZE_LOOKS * since >= wait
    if (risk < LARGEST_RISK <= before) or may_freeze:
        return False
    _explore(s)
    return True


@compiled
def plan(s: Croc, w: Work) -> None:
    """Decide what to pull next, or that the groups are proven. OUT: the queue or a round, or s.ints[DONE]."""
    s.ints[QUEUE_HEAD] = 0
    s.ints[QUEUE_TAIL] = 0
    s.ints[CLOSED] = 0
    if s.ints[METRIC] == 1 and _repeat(s):
        s.ints[MODE] = EXPLORE
        return
    renew_bound(s)
    renew(s, w)
    if not _go_on(s, w):
        s.ints[PLANNED] = s.ints[T]
        raise_alarm(s)
        mode = _decide(s, w)
        s.ints[MODE] = mode
        if mode == PAIRS or mode == EXPLORE:
            _choose_candidates(s, mode)
        if mode == EXPLORE or (mode == PAIRS and not _greedy(s, w)):
            _explore(s)
    forget_touched(s)


@compiled
def see_proven(s: Croc, w: Work) -> None:
    """Whether the results so far prove the groups, while rounds are open. OUT: s.ints[DONE]."""
    s.ints[CLOSED] = 0
    renew_bound(s)
    renew(s, w)
    forget_touched(s)
    raise_alarm(s)
    if pairs_done(s) and certify(s, BY_PAIRS, -1):
        return
    e = find_epoch(s, w.names)
    if e >= 0 and unmet(s, e, w) == 0:
        certify(s, BY_EPOCH, e)
