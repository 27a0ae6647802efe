"""Freeze, then certify: epochs, their tests, and the rounds that feed them (docs/CROC.md, sections 4 to 6).

A round's composition is fixed before any of its results is seen, and contrasts are formed only within a round: that is
what makes every frozen test a martingale.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.evidence import directed, pair_evidence_at
from coterie.engine.croc.forecast import next_level
from coterie.engine.croc.state import (
    CORE,
    CORE_ROOM,
    EPOCHS,
    FREEZES,
    PAIR_LEVEL,
    ROUND,
    ROUND_EPOCH,
    ROUND_LEFT,
    Croc,
    T,
    Work,
)
from coterie.engine.state import Floats, Ints

TOP_UP = 0.5
"""A round pulls a pool about this many times the square root of the tests against it."""


@compiled
def freeze(s: Croc) -> int:
    """A new epoch for the present labels. OUT: one slot of the epochs. Returns it."""
    n_groups = s.totals.size
    e = s.ints[FREEZES] % EPOCHS
    s.frozen_at[e] = s.ints[T]
    s.frozen_number[e] = s.ints[FREEZES]
    s.level[e] = next_level(s)
    s.ints[FREEZES] += 1
    for m in range(s.labels.size):
        s.frozen[e, m] = s.labels[m]
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
        s.frozen_totals[e, k] = s.totals[k]
        for q in range(s.centers.shape[1]):
            s.frozen_centers[e, k, q] = s.centers[k, q]
        size = 0
        for m in range(s.labels.size):
            size += s.labels[m] == k
        wanted = size if size <= CORE_ROOM else CORE
        s.core[e, k * CORE_ROOM] = s.representative[k]
        s.in_core[e, s.representative[k]] = 1
        for i in range(1, wanted):  # then the clearest arms
            best, clearest = -1, -math.inf
            for m in range(s.labels.size):
                if s.labels[m] == k and s.in_core[e, m] == 0 and (best < 0 or s.near[m] > clearest):
                    best, clearest = m, s.near[m]
            s.core[e, k * CORE_ROOM + i] = best
            s.in_core[e, best] = 1
    return int(e)


@compiled
def find_epoch(s: Croc, name: Ints) -> int:
    """The newest remembered epoch whose candidate is the present partition, -1 if there is none. Work space: name."""
    n_groups = s.totals.size
    for back in range(min(EPOCHS, s.ints[FREEZES])):
        e = (s.ints[FREEZES] - 1 - back) % EPOCHS
        for k in range(n_groups):
            name[k] = -1
        same = True
        for m in range(s.labels.size):
            k = s.labels[m]
            if name[k] < 0:
                name[k] = s.frozen[e, m]
            elif name[k] != s.frozen[e, m]:
                same = False
                break
        for k in range(n_groups):
            for j in range(k):
                same = same and name[k] != name[j]
        if same:
            return int(e)
    return -1


@compiled
def _settled_from_start(s: Croc, e: int, m: int, k: int) -> bool:
    """Whether arm m is known, by a pair from the start, to differ from the first core arm of the epoch's group k."""
    lead = s.core[e, k * CORE_ROOM]
    home = s.labels[lead]
    return bool(s.representative[home] == lead and s.settled[m, home] == 1)


@compiled
def unmet(s: Croc, e: int, w: Work) -> int:
    """Tests of epoch e still unmet. OUT: w.mark, arms in one; how many against each pool. Returns how many in all."""
    n_groups = s.totals.size
    mark, against_group, against_core = w.mark, w.against_group, w.against_core
    for m in range(s.labels.size):
        mark[m] = 0
    for k in range(n_groups):
        against_group[k], against_core[k] = 0, 0
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
                continue
            if s.met_core[e, m, k] == 0:
                total += 1
                against_core[k] += 1
            if not core and s.met_group[e, m, k] == 0:
                total += 1
                against_group[k] += 1
            mark[m] = 1
    for i in range(n_groups * CORE_ROOM):
        p = s.core[e, i]
        if p < 0 or s.core[e, (i // CORE_ROOM) * CORE_ROOM + 1] < 0:  # a core of one arm is never split
            continue
        for j in range((i // CORE_ROOM) * CORE_ROOM):
            q = s.core[e, j]
            if q < 0 or s.core[e, (j // CORE_ROOM) * CORE_ROOM + 1] < 0 or s.met_pair[e, i, j] == 1:
                continue
            if pair_evidence_at(s, p, q, s.pulls[p], s.pulls[q]) >= s.numbers[PAIR_LEVEL]:
                s.met_pair[e, i, j] = 1
                s.last_pair[e, i, j], s.last_pair[e, j, i] = -s.pulls[p], -s.pulls[q]
                continue
            total += 1
            mark[p] = 1
            mark[q] = 1
    return total


@compiled
def compose_round(s: Croc, e: int, w: Work) -> None:
    """Every arm of an unmet test once, pools topped up by their core. OUT: s.round_pulls; the round is then fixed."""
    for m in range(s.labels.size):
        s.round_pulls[m] = w.mark[m]
        for q in range(s.round_sums.shape[1]):
            s.round_sums[m, q] = 0.0
    for k in range(s.totals.size):
        in_group, in_core = 0, 0
        for m in range(s.labels.size):
            if s.frozen[e, m] == k and w.mark[m] == 1:
                in_group += 1
                in_core += s.in_core[e, m]
        want_core = math.ceil(TOP_UP * math.sqrt(w.against_core[k]))
        want_group = math.ceil(TOP_UP * math.sqrt(w.against_group[k]))
        while in_core < want_core or in_group < want_group:
            least = -1
            for i in range(CORE_ROOM):
                q = s.core[e, k * CORE_ROOM + i]
                if q >= 0 and (least < 0 or s.pulls[q] + s.round_pulls[q] < s.pulls[least] + s.round_pulls[least]):
                    least = q
            s.round_pulls[least] += 1
            in_group += 1
            in_core += 1
    s.ints[ROUND_EPOCH] = e + 1
    s.ints[ROUND] += 1
    s.ints[ROUND_LEFT] = 0
    for m in range(s.labels.size):
        s.ints[ROUND_LEFT] += s.round_pulls[m]


@compiled
def _pool(s: Croc, e: int, w: Work) -> None:
    """Pulls and means of the round in every group and every core. OUT: w.group_*, w.core_*."""
    n_groups, d = s.centers.shape
    for k in range(n_groups):
        w.group_pulls[k], w.core_pulls[k] = 0.0, 0.0
        for q in range(d):
            w.group_mean[k, q], w.core_mean[k, q] = 0.0, 0.0
    for m in range(s.labels.size):
        if s.round_pulls[m] > 0:
            k = s.frozen[e, m]
            w.group_pulls[k] += s.round_pulls[m]
            for q in range(d):
                w.group_mean[k, q] += s.round_sums[m, q]
            if s.in_core[e, m] == 1:
                w.core_pulls[k] += s.round_pulls[m]
                for q in range(d):
                    w.core_mean[k, q] += s.round_sums[m, q]
    for k in range(n_groups):
        for q in range(d):
            w.group_mean[k, q] /= max(w.group_pulls[k], 1.0)
            w.core_mean[k, q] /= max(w.core_pulls[k], 1.0)


@compiled
def _add_contrast(weight: float, v: float, contrast: Floats, total: Floats) -> float:
    """Add a contrast of variance v to a test. INOUT: total. Returns its new weight."""
    for q in range(contrast.size):
        # Sums of an earlier epoch in this slot are not cleared: a weight of 0 says that they do not count.
        total[q] = (total[q] if weight > 0.0 else 0.0) + contrast[q] / v
    return weight + 1.0 / v


@compiled
def close_round(s: Croc, w: Work) -> None:
    """All results of the round are in: add its contrasts to every unmet test with pulls on both sides. INOUT: tests."""
    e = s.ints[ROUND_EPOCH] - 1
    s.ints[ROUND_EPOCH] = 0
    n_groups, d = s.centers.shape
    _pool(s, e, w)
    b = s.level[e]
    for m in range(s.labels.size):
        if s.round_pulls[m] == 0:
            continue
        home, core = s.frozen[e, m], s.in_core[e, m] == 1
        for k in range(n_groups):
            if k == home:
                continue
            spread = 1.0 / s.frozen_totals[e, k] + 1.0 / s.frozen_totals[e, home]
            for against in range(2):
                if against == 0:
                    met, pool, mean, level = s.met_core, w.core_pulls[k], w.core_mean, b if core else 0.5 * b
                    weight, total, last = s.weight_core, s.sum_core, s.last_core
                else:
                    met, pool, mean, level = s.met_group, w.group_pulls[k], w.group_mean, b
                    weight, total, last = s.weight_group, s.sum_group, s.last_group
                if met[e, m, k] == 1 or pool == 0.0 or (against == 1 and core):
                    continue
                for q in range(d):
                    w.contrast[q] = s.round_sums[m, q] / s.round_pulls[m] - mean[k, q]
                v = 1.0 / s.round_pulls[m] + 1.0 / pool
                weight[e, m, k] = _add_contrast(weight[e, m, k], v, w.contrast, total[e, m, k])
                found = directed(weight[e, m, k], total[e, m, k], s.frozen_centers[e], home, k, spread)
                if found >= level:
                    met[e, m, k], last[e, m, k] = 1, s.ints[ROUND]
    _close_core_pairs(s, e, w.contrast)


@compiled
def _close_core_pairs(s: Croc, e: int, contrast: Floats) -> None:
    """The same for pairs of core arms, at half the level. INOUT: tests."""
    for i in range(s.core.shape[1]):
        p = s.core[e, i]
        if p < 0 or s.round_pulls[p] == 0:
            continue
        home = i // CORE_ROOM
        for j in range(home * CORE_ROOM):
            q, k = s.core[e, j], j // CORE_ROOM
            if q < 0 or s.round_pulls[q] == 0 or s.met_pair[e, i, j] == 1:
                continue
            for x in range(contrast.size):
                contrast[x] = s.round_sums[p, x] / s.round_pulls[p] - s.round_sums[q, x] / s.round_pulls[q]
            v = 1.0 / s.round_pulls[p] + 1.0 / s.round_pulls[q]
            total = s.sum_pair[e, i, j]
            s.weight_pair[e, i, j] = _add_contrast(s.weight_pair[e, i, j], v, contrast, total)
            spread = 1.0 / s.frozen_totals[e, k] + 1.0 / s.frozen_totals[e, home]
            if directed(s.weight_pair[e, i, j], total, s.frozen_centers[e], home, k, spread) >= 0.5 * s.level[e]:
                s.met_pair[e, i, j], s.last_pair[e, i, j] = 1, s.ints[ROUND]
