"""Whether what is met says all that is claimed: read off the candidate anew, before a run is called proven.

docs/CROC.md, sections 2 and 5, have the rule: every arm differs from every other group. `coterie.engine.croc.claims`
keeps count of what is unmet; here nothing is counted along the way, and the verifier has the rule once more
(`coterie.certificate.checking`). It takes one look at every arm and group, when a run is about to stop.
"""

from __future__ import annotations

from coterie.engine.compiled import compiled
from coterie.engine.croc.state import ALARM, CORE_ROOM, PAIR_LEVEL, Croc


@compiled
def covered_by_pairs(s: Croc) -> bool:
    """Whether every arm is shown, from the start, to differ from the representatives of all other groups."""
    if s.ints[ALARM] == 1:
        return False
    for k in range(s.totals.size):
        if s.labels[s.representative[k]] != k:
            return False
    for m in range(s.labels.size):
        for k in range(s.totals.size):
            if k == s.labels[m]:
                continue
            if s.settled[m, k] == 0 or not s.evidence[m, k] >= s.numbers[PAIR_LEVEL]:
                return False
            if s.settled_pulls[m, k, 0] > s.pulls[m] or s.settled_pulls[m, k, 1] > s.pulls[s.representative[k]]:
                return False
    return True


@compiled
def covered_by_epoch(s: Croc, e: int) -> bool:
    """Whether every arm differs from the cores of all other groups and, outside cores, from the groups; and core arms
    of two cores that could be split from each other."""
    for k in range(s.totals.size):
        if s.core[e, k * CORE_ROOM] < 0:
            return False
        for i in range(k * CORE_ROOM, (k + 1) * CORE_ROOM):
            p = s.core[e, i]
            if p >= 0 and (s.frozen[e, p] != k or s.in_core[e, p] == 0):
                return False
    for m in range(s.labels.size):
        for k in range(s.totals.size):
            if k == s.frozen[e, m]:
                continue
            if s.met_core[e, m, k] == 0 or (s.in_core[e, m] == 0 and s.met_group[e, m, k] == 0):
                return False
    for i in range(s.core.shape[1]):
        home = i // CORE_ROOM
        if s.core[e, i] < 0 or s.core[e, home * CORE_ROOM + 1] < 0:
            continue
        for j in range(home * CORE_ROOM):
            if s.core[e, j] >= 0 and s.core[e, (j // CORE_ROOM) * CORE_ROOM + 1] >= 0 and s.met_pair[e, i, j] == 0:
                return False
    return True
