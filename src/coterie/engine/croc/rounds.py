"""Freeze, then certify: epochs, their tests, and the composition of rounds (docs/CROC.md, sections 4 to 6).

A round's composition is fixed before any of its results is seen, and contrasts are formed only within a round: that is
what makes every frozen test a martingale.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.evidence import pair_evidence_at
from coterie.engine.croc.flight import start_round
from coterie.engine.croc.forecast import next_level
from coterie.engine.croc.state import (
    ALARM,
    CORE,
    CORE_ROOM,
    EPOCHS,
    FREEZES,
    OPEN_ROUNDS,
    PAIR_LEVEL,
    SCALE_UP,
    Croc,
    T,
    Work,
)
from coterie.engine.state import Ints

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
        s.frozen_totals[e, k] = 0.0
        for q in range(s.centers.shape[1]):
            s.frozen_centers[e, k, q] = 0.0
    for m in range(s.labels.size):  # Û anew, from the origin of the group's representative
        k = s.labels[m]
        lead = s.representative[k]
        s.frozen_totals[e, k] += s.pulls[m]
        for q in range(s.centers.shape[1]):
            away = s.offset[m, q] - s.offset[lead, q] + (s.offset_rest[m, q] - s.offset_rest[lead, q])
            s.frozen_centers[e, k, q] += s.sums[m, q] + s.pulls[m] * away
    for k in range(n_groups):
        for q in range(s.centers.shape[1]):
            s.frozen_centers[e, k, q] /= s.frozen_totals[e, k]
        size = 0
        for m in range(s.labels.size):
            size += s.labels[m] == k
        wanted = size if size <= CORE_ROOM else CORE
        s.core[e, k * CORE_ROOM] = s.representative[k]
        s.in_core[e, s.representative[k]] = 1
        for i in range(1, wanted):  # then the clearest arms
            best, clearest = -1, -math.inf
            for m in range(s.labels.size):
                if s.labels[m] == k and s.in_core[e, m] == 0 and (best < 0 or s.margin[m] > clearest):
                    best, clearest = m, s.margin[m]
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
    return bool(s.ints[ALARM] == 0 and s.representative[home] == lead and s.settled[m, home] == 1)


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
            if s.ints[ALARM] == 0 and pair_evidence_at(s, p, q, s.pulls[p], s.pulls[q]) >= s.numbers[PAIR_LEVEL]:
                s.met_pair[e, i, j] = 1
                s.last_pair[e, i, j], s.last_pair[e, j, i] = -s.pulls[p], -s.pulls[q]
                continue
            total += 1
            mark[p] = 1
            mark[q] = 1
    return total


@compiled
def compose_round(s: Croc, e: int, w: Work, floor: float) -> bool:
    """Every arm of an unmet test once, and those with fewer than `floor` pulls; pools topped up by their core.

    With many rounds under way, several times that: there are many workers. Pulls under way count as made. OUT: the
    round, fixed from then on. False if too many are under way.
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
        want_core = math.ceil(TOP_UP * math.sqrt(w.against_core[k]))
        want_group = math.ceil(TOP_UP * math.sqrt(w.against_group[k]))
        while in_core < want_core or in_group < want_group:
            least = -1
            for i in range(CORE_ROOM):
                q = s.core[e, k * CORE_ROOM + i]
                if q >= 0 and (least < 0 or s.committed[q] + pulls[q] < s.committed[least] + pulls[least]):
                    least = q
            pulls[least] += 1
            in_group += 1
            in_core += 1
    for m in range(s.labels.size):
        pulls[m] *= 2 ** (s.ints[OPEN_ROUNDS] // SCALE_UP)
    return start_round(s, pulls, s.frozen_number[e])
