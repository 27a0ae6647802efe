"""Freeze, then certify: a new epoch with its claims, and the composition of rounds (docs/CROC.md, sections 4 to 6).

A round's composition is fixed before any of its results is seen, and contrasts are formed only within a round: that is
what makes every frozen test a martingale.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.claims import freeze_claims
from coterie.engine.croc.epochs import open_epoch
from coterie.engine.croc.factors import fix_bet, fix_shared, pulls_needed
from coterie.engine.croc.family import BET, POOL
from coterie.engine.croc.flight import start_round
from coterie.engine.croc.state import (
    CORE_ROOM,
    MISGROUPING_RISK,
    OPEN_ROUNDS,
    POOLS_BY_GROWTH,
    ROUND,
    SCALE_UP,
    Croc,
    Work,
)

LEAST_GAP = 0.25
"""The share of a squared gap of centers that counts in any case, after what noise adds to it was taken off."""
AT_BOUND = 0.8
"""A round is enlarged if the growth of the tests is expected to be at least this share of its bound …"""
ENLARGE_RISK = 0.01
"""… and the misgrouping risk is at most this."""
BOUND_MARGIN = 1.01
MOST_REPEATS = 16
TOP_UP = 0.5
"""A round pulls a pool about this many times the square root of what the tests against it are worth."""


@compiled
def freeze(s: Croc, w: Work) -> int:
    """A new epoch for the present labels, with its claims. OUT: one slot of the epochs. Returns it."""
    e = open_epoch(s)
    freeze_claims(s, e)
    fix_shared(s, w, e)
    return e


@compiled
def _pools_wanted(s: Croc, e: int, w: Work, k: int, pulled: int) -> tuple[int, int]:
    """Pulls of the core and of the group k that bring its unmet tests furthest for the pulls that they cost.

    A test grows faster with a larger pool, and some families hardly at all with a small one. `pulled`: pulls of the
    group that the round has anyway. Tests against the core need half the level, so half the growth is enough for them.
    """
    n_groups, dim = s.centers.shape
    in_cores, in_groups = w.against[k], w.against[n_groups + k]
    if in_cores + in_groups == 0.0:
        return 0, 0
    here, square = s.labels[s.core[e, k * CORE_ROOM]], math.inf
    for j in range(n_groups):
        if j != here:
            gap = 0.0
            for q in range(dim):
                gap += (s.centers[here, q] - s.centers[j, q]) ** 2
            sure = gap - dim * (1.0 / s.totals[here] + 1.0 / s.totals[j])
            square = min(square, max(sure, LEAST_GAP * gap, 1e-300))
    tests = max(in_groups, in_cores)
    best, wanted, size = math.inf, 1, 1
    while size <= max(tests, 1.0):
        cost = (tests + max(size - pulled, 0)) * pulls_needed(w, 1.0, square, float(max(size, pulled)), dim)
        if cost < best * (1.0 - 1e-9):
            best, wanted = cost, size
        size += max(1, size // 4)
    slowest = 2.0 * pulls_needed(w, 1.0, square, float(max(wanted, pulled)), dim)
    core = 1
    while core < max(wanted, pulled) and pulls_needed(w, 1.0, square, float(core), dim) > slowest:
        core += 1
    if in_groups == 0.0:  # only tests of core arms are left: these need the whole level
        core = max(wanted, 1)
    return core, wanted if in_groups > 0.0 else 0


@compiled
def _log_ways(chosen: float, others: float) -> float:
    """log binom(a+A, a): what the evidence of a round cannot exceed, if it rests on how results are assigned."""
    return math.lgamma(chosen + others + 1.0) - math.lgamma(chosen + 1.0) - math.lgamma(others + 1.0)


@compiled
def _enlarge(s: Croc, e: int, w: Work) -> None:
    """Larger rounds where the evidence of a small one is at its bound, and several would be needed anyway.

    With a pulls of an arm against A of a pool that bound is log binom(a+A, a), more than a times that of one pull. So:
    as many pulls as no unmet test can do without. INOUT: w.composition. Work space: w.counts.
    """
    n_groups, pulls, in_round = s.totals.size, w.composition, w.counts
    last = s.sum_group.shape[3] - 1
    arms = 0
    for k in range(n_groups):
        in_round[k] = 0
    for m in range(s.labels.size):
        if pulls[m] > 0:
            arms += 1
            in_round[s.frozen[e, m]] += pulls[m]
    lacking, pool, square = math.inf, math.inf, math.inf
    for m in range(s.labels.size):
        home = s.frozen[e, m]
        for k in range(n_groups):
            if k == home or s.in_core[e, m] == 1 or s.met_group[e, m, k] == 1 or pulls[m] == 0:
                continue
            found = s.sum_group[e, m, k, last] if s.weight_group[e, m, k] > 0.0 else 0.0
            lacking = min(lacking, s.level[e] - max(found, 0.0))
            pool = min(pool, float(in_round[k]))
    for k in range(n_groups):
        for j in range(k):
            gap = 0.0
            for q in range(s.centers.shape[1]):
                gap += (s.centers[k, q] - s.centers[j, q]) ** 2
            square = min(square, gap)
    if not math.isfinite(lacking):
        return
    bound = math.log(1.0 + pool)
    if lacking <= bound or 1.0 / pulls_needed(w, 1.0, square, pool, s.centers.shape[1]) < AT_BOUND * bound:
        return
    best, repeats, more = math.inf, 1, 0
    for a in range(1, MOST_REPEATS + 1):
        extra = 0
        while _log_ways(float(a), a * pool + extra) < lacking * BOUND_MARGIN and extra < arms:
            extra += 1
        cost = a * arms + n_groups * extra
        if extra < arms and cost < best:
            best, repeats, more = float(cost), a, extra
    if not math.isfinite(best):
        return
    for m in range(s.labels.size):
        pulls[m] *= repeats
    for k in range(n_groups):
        size = 0
        while size < CORE_ROOM and s.core[e, k * CORE_ROOM + size] >= 0:
            size += 1
        for i in range(size):
            q = s.core[e, k * CORE_ROOM + i]
            if pulls[q] > 0:
                pulls[q] += (more + size - 1 - i) // size
                while size > 1 and _log_ways(float(pulls[q]), float(pulls[q])) < 0.5 * lacking * BOUND_MARGIN:
                    pulls[q] += 1


@compiled
def compose_round(s: Croc, e: int, w: Work, floor: float) -> bool:
    """Every arm of an unmet test once, and those with fewer than `floor` pulls; pools topped up by their core, cheaply.

    What the unmet tests need is in w.mark and w.against. With many rounds under way, several times that: there are many
    workers. Pulls under way count as made. OUT: the round, fixed from then on, and the family's bet. False if too many
    rounds are under way.
    """
    pulls = w.composition
    for m in range(s.labels.size):
        pulls[m] = 1 if w.mark[m] == 1 or s.committed[m] < floor else 0
    for k in range(s.totals.size):
        in_group, in_core = 0, 0
        for m in range(s.labels.size):
            if s.frozen[e, m] == k and pulls[m] == 1:
                in_group += 1
                in_core += s.in_core[e, m]
        want_core = math.ceil(TOP_UP * math.sqrt(w.against[k]))
        want_group = math.ceil(TOP_UP * math.sqrt(w.against[s.totals.size + k]))
        if s.ints[POOLS_BY_GROWTH] == 1:
            want_core, want_group = _pools_wanted(s, e, w, k, in_group)
        while in_core < want_core or in_group < want_group:
            least, fewest = -1, 0.0
            for i in range(CORE_ROOM):
                q = s.core[e, k * CORE_ROOM + i]
                if q >= 0:
                    its = (s.committed[q] + pulls[q]) * s.price[q]
                    if least < 0 or its < fewest:
                        least, fewest = q, its
            pulls[least] += 1
            in_group += 1
            in_core += 1
    if w.kernels[POOL] != 0 and s.numbers[MISGROUPING_RISK] <= ENLARGE_RISK:
        _enlarge(s, e, w)
    for m in range(s.labels.size):
        pulls[m] *= 2 ** (s.ints[OPEN_ROUNDS] // SCALE_UP)
    if not start_round(s, pulls, s.frozen_number[e]):
        return False
    if w.kernels[BET] != 0:
        fix_bet(s, w, s.ints[ROUND], e)
    return True
