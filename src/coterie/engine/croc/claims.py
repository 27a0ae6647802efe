"""The question of K groups: the claims of a frozen candidate, what they still need, and when it is proven.

This module is all that knows which tests there are, against which pools and at which levels (docs/CROC.md, sections 3
and 5). The planner asks it for: the claims at a freeze (`freeze_claims`), those that are unmet and the arms and pools
that they need (`unmet`), what a complete round does to them (`use_round`), and whether the pairs from the start are
enough, or refute K (`pairs_done`, `raise_alarm`). What a round's factor is, `coterie.engine.croc.factors` knows; levels
and candidates belong to `coterie.engine.croc.epochs`.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.epochs import frozen_difference
from coterie.engine.croc.evidence import pair_evidence_at, pairs_have_units, test_pair
from coterie.engine.croc.factors import add_scores, gather_round, use_contrast
from coterie.engine.croc.flight import entry_of
from coterie.engine.croc.state import (
    ALARM,
    BOUNDED_AT,
    CORE,
    CORE_PRICE,
    CORE_ROOM,
    FLIGHT,
    PAIR_LEVEL,
    VARIANCE_BOUND,
    Croc,
    Work,
)

POOL_PRICE = 1000.0
"""The most that a test counts in the size of its pool: beyond it, a larger pool gains next to nothing."""


@compiled
def freeze_claims(s: Croc, e: int) -> None:
    """Choose the cores of a new epoch; none of its tests is met. OUT: the tests and cores of slot e."""
    n_groups = s.totals.size
    for m in range(s.labels.size):
        s.in_core[e, m] = 0
        for k in range(n_groups):
            s.met_group[e, m, k] = 0
            s.met_core[e, m, k] = 0
            s.weight_group[e, m, k] = 0.0
            s.weight_core[e, m, k] = 0.0
    for i in range(s.core.shape[1]):
        s.core[e, i] = -1
        for j in range(s.core.shape[1]):
            s.met_pair[e, i, j] = 0
            s.weight_pair[e, i, j] = 0.0
    for k in range(n_groups):
        size = 0
        for m in range(s.labels.size):
            size += s.labels[m] == k
        wanted = size if size <= CORE_ROOM else CORE
        s.core[e, k * CORE_ROOM] = s.representative[k]
        s.in_core[e, s.representative[k]] = 1
        dearest = math.inf
        for m in range(s.labels.size):
            if s.labels[m] == k:
                dearest = min(dearest, CORE_PRICE * s.price[m])
        for i in range(1, wanted):  # then the clearest arms
            best, clearest = -1, -math.inf
            for m in range(s.labels.size):
                if s.labels[m] != k or s.in_core[e, m] == 1 or s.price[m] > dearest:
                    continue
                if best < 0 or s.margin[m] > clearest:
                    best, clearest = m, s.margin[m]
            if best < 0:
                break
            s.core[e, k * CORE_ROOM + i] = best
            s.in_core[e, best] = 1


@compiled
def _settled_from_start(s: Croc, e: int, m: int, k: int) -> bool:
    """Whether arm m is known, by a pair from the start, to differ from the first core arm of the epoch's group k."""
    lead = s.core[e, k * CORE_ROOM]
    home = s.labels[lead]
    return bool(s.ints[ALARM] == 0 and s.representative[home] == lead and s.settled[m, home] == 1)


@compiled
def unmet(s: Croc, e: int, w: Work) -> int:
    """How many tests of epoch e are unmet. OUT: w.mark, arms in one; w.against, what those against each pool are worth.

    A test counts as the price of its arm in units of the cheapest core arm that it is against, at most POOL_PRICE.
    """
    n_groups = s.totals.size
    mark, against = w.mark, w.against
    for m in range(s.labels.size):
        mark[m] = 0
    for k in range(2 * n_groups):
        against[k] = 0.0
    for k in range(n_groups):
        w.cheapest[k] = math.inf
        for i in range(k * CORE_ROOM, (k + 1) * CORE_ROOM):
            if s.core[e, i] >= 0:
                w.cheapest[k] = min(w.cheapest[k], s.price[s.core[e, i]])
    total = 0
    for m in range(s.labels.size):
        core = s.in_core[e, m] == 1
        for k in range(n_groups):
            if k == s.frozen[e, m] or (s.met_core[e, m, k] == 1 and (core or s.met_group[e, m, k] == 1)):
                continue
            if _settled_from_start(s, e, m, k):
                home = s.labels[s.core[e, k * CORE_ROOM]]
                s.met_core[e, m, k], s.last_core[e, m, k] = 1, -s.settled_pulls[m, home, 0]
                s.met_group[e, m, k], s.last_group[e, m, k] = 1, -s.settled_pulls[m, home, 1]
                if s.ints[VARIANCE_BOUND] == 1:
                    s.last_bound[e, m, k] = s.settled_bound[m, home]
                    s.sum_core[e, m, k, -1] = s.evidence[m, home]
                continue
            if s.met_core[e, m, k] == 0:
                total += 1
                against[k] += min(s.price[m] / w.cheapest[k], POOL_PRICE)
            if not core and s.met_group[e, m, k] == 0:
                total += 1
                against[n_groups + k] += min(s.price[m] / w.cheapest[k], POOL_PRICE)
            mark[m] = 1
    use_pairs = s.ints[ALARM] == 0 and math.isfinite(s.numbers[PAIR_LEVEL]) and pairs_have_units(s.ints)
    for i in range(n_groups * CORE_ROOM):
        p = s.core[e, i]
        if p < 0 or s.core[e, (i // CORE_ROOM) * CORE_ROOM + 1] < 0:  # a core of one arm is never split
            continue
        for j in range((i // CORE_ROOM) * CORE_ROOM):
            q = s.core[e, j]
            if q < 0 or s.core[e, (j // CORE_ROOM) * CORE_ROOM + 1] < 0 or s.met_pair[e, i, j] == 1:
                continue
            if use_pairs:
                found = pair_evidence_at(s, p, q, s.pulls[p], s.pulls[q])
                if found >= s.numbers[PAIR_LEVEL]:
                    s.met_pair[e, i, j] = 1
                    s.last_pair[e, i, j], s.last_pair[e, j, i] = -s.pulls[p], -s.pulls[q]
                    if s.ints[VARIANCE_BOUND] == 1:
                        s.last_bound_pair[e, i, j] = s.ints[BOUNDED_AT]
                        s.sum_pair[e, i, j, -1] = found
                    continue
            total += 1
            mark[p] = 1
            mark[q] = 1
    return total


@compiled
def _pool(s: Croc, e: int, first: int, last: int, w: Work) -> None:
    """Pulls, means and scores of a round in every core and every group, means from the origin of the core's first arm.

    OUT: w.pool_pulls, w.pool_means, w.pool_scores.
    """
    n_groups, d = s.centers.shape
    for k in range(2 * n_groups):
        w.pool_pulls[k] = 0.0
        for q in range(d):
            w.pool_means[k, q] = 0.0
        for q in range(w.pool_scores.shape[1]):
            w.pool_scores[k, q] = 0.0
    for i in range(first, last):
        m, n = s.entry_arm[i], s.entry_pulls[i]
        k = s.frozen[e, m]
        lead = s.core[e, k * CORE_ROOM]
        core = s.in_core[e, m] == 1
        group = n_groups + k
        w.pool_pulls[group] += n
        if core:
            w.pool_pulls[k] += n
        for q in range(d):
            away = s.offset[m, q] - s.offset[lead, q] + (s.offset_rest[m, q] - s.offset_rest[lead, q])
            w.pool_means[group, q] += s.entry_sums[i, q] + n * away
            if core:
                w.pool_means[k, q] += s.entry_sums[i, q] + n * away
        if w.pool_scores.shape[1] > 0:
            add_scores(w, s.entry_scores[i], w.pool_scores[group])
            if core:
                add_scores(w, s.entry_scores[i], w.pool_scores[k])
    for k in range(2 * n_groups):
        for q in range(d):
            w.pool_means[k, q] /= max(w.pool_pulls[k], 1.0)


@compiled
def use_round(s: Croc, w: Work, number: int, e: int) -> None:
    """All results of the round are in: every unmet test with pulls on both sides gets its factor. INOUT: tests."""
    n_groups, d = s.centers.shape
    f = number % FLIGHT
    first = s.round_first[f]
    last = first + s.round_size[f]
    _pool(s, e, first, last, w)
    gather_round(s, w, f, e)
    b = s.level[e]
    for i in range(first, last):
        m, pulls = s.entry_arm[i], s.entry_pulls[i]
        home, core = s.frozen[e, m], s.in_core[e, m] == 1
        for k in range(n_groups):
            if k == home or (s.met_core[e, m, k] == 1 and (core or s.met_group[e, m, k] == 1)):
                continue
            lead = s.core[e, k * CORE_ROOM]
            spread = frozen_difference(s, e, home, k, s.core[e, home * CORE_ROOM], lead, w.guess)
            for row in (k, n_groups + k):  # against the core, then against the group
                if row == k:
                    met, level = s.met_core, b if core else 0.5 * b
                    weight, kept, found_at = s.weight_core, s.sum_core, s.last_core
                else:
                    met, level = s.met_group, b
                    weight, kept, found_at = s.weight_group, s.sum_group, s.last_group
                pool = w.pool_pulls[row]
                if met[e, m, k] == 1 or pool == 0.0 or (row != k and core):
                    continue
                for q in range(d):
                    away = s.offset[m, q] - s.offset[lead, q] + (s.offset_rest[m, q] - s.offset_rest[lead, q])
                    w.contrast[q] = away + (s.entry_sums[i, q] / pulls - w.pool_means[row, q])
                value = use_contrast(
                    s, w, kept[e, m, k], s.entry_scores[i], w.pool_scores[row], f, e,
                    float(pulls), pool, spread, weight[e, m, k], level, home, k,
                )  # fmt: skip
                weight[e, m, k] += 1.0 / (1.0 / pulls + 1.0 / pool)
                if value >= level:
                    met[e, m, k], found_at[e, m, k] = 1, number
    _use_round_in_core_pairs(s, w, number, e)


@compiled
def _use_round_in_core_pairs(s: Croc, w: Work, number: int, e: int) -> None:
    """Every unmet test of two core arms that are both in the round gets its factor; its level is b/2. INOUT: tests."""
    for i in range(s.core.shape[1]):
        w.core_entry[i] = -1 if s.core[e, i] < 0 else entry_of(s, number, s.core[e, i])
    for i in range(s.core.shape[1]):
        p, mine = s.core[e, i], w.core_entry[i]
        if mine < 0:
            continue
        home = i // CORE_ROOM
        for j in range(home * CORE_ROOM):
            o, its, k = s.core[e, j], w.core_entry[j], j // CORE_ROOM
            if its < 0 or s.met_pair[e, i, j] == 1:
                continue
            for q in range(w.contrast.size):
                away = s.offset[p, q] - s.offset[o, q] + (s.offset_rest[p, q] - s.offset_rest[o, q])
                here, there = s.entry_sums[mine, q] / s.entry_pulls[mine], s.entry_sums[its, q] / s.entry_pulls[its]
                w.contrast[q] = away + (here - there)
            spread = frozen_difference(s, e, home, k, s.core[e, home * CORE_ROOM], s.core[e, k * CORE_ROOM], w.guess)
            value = use_contrast(
                s, w, s.sum_pair[e, i, j], s.entry_scores[mine], s.entry_scores[its], number % FLIGHT, e,
                float(s.entry_pulls[mine]), float(s.entry_pulls[its]), spread, s.weight_pair[e, i, j],
                0.5 * s.level[e], home, k,
            )  # fmt: skip
            s.weight_pair[e, i, j] += 1.0 / (1.0 / s.entry_pulls[mine] + 1.0 / s.entry_pulls[its])
            if value >= 0.5 * s.level[e]:
                s.met_pair[e, i, j], s.last_pair[e, i, j] = 1, number


@compiled
def pairs_done(s: Croc) -> bool:
    """Whether every arm is settled against the representatives of all other groups.

    After an alarm pairs prove nothing: K is wrong, or a pair of equal arms was settled.
    """
    if s.ints[ALARM] == 1:
        return False
    for m in range(s.labels.size):
        for k in range(s.totals.size):
            if k != s.labels[m] and s.settled[m, k] == 0:
                return False
    return True


@compiled
def raise_alarm(s: Croc) -> None:
    """An arm and K representatives, all known to differ, refute K. OUT: s.ints[ALARM], s.alarmed; never taken back."""
    if s.ints[ALARM] == 1:
        return
    for k in range(s.totals.size):
        for j in range(s.totals.size):
            if j != k and s.settled[s.representative[k], j] == 0:
                return  # two representatives may share a group: then the arm would only show that
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
                s.ints[ALARM] = 1
                for k in range(s.totals.size):
                    s.alarmed[k] = s.representative[k]
                s.alarmed[s.totals.size] = m
                return
