"""Pairs from the start after a record was applied: what they have shown is looked up anew, for the leads of a freeze.

Evidence from the start holds at every count at once, so that any counts that the record has may be looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.engine.croc.run import CrocRun
from coterie.engine.croc.state import BOUNDED_AT, CORE_ROOM

_LOOKED_BACK = 64
"""Counts of an arm, below the present one, at which its pair is looked at."""


def settle_with(run: CrocRun, leads: Sequence[int]) -> None:
    """Let these arms, the first core arms of a freeze, represent their groups, as they did when it was made.

    Nothing is done if the present estimate has two of them in one group: its candidate is then another one.
    """
    s = run.state
    homes = s.labels[list(leads)].tolist()
    if not run.ready or not run.has_pairs or len(set(homes)) < len(homes):
        return
    for lead, home in zip(leads, homes, strict=True):
        if s.representative[home] == lead:
            continue
        s.representative[home] = lead
        s.settled[:, home], s.evidence[:, home] = 0, -np.inf
        for arm in np.flatnonzero(s.labels != home).tolist():
            _settle(run, arm, home, lead)


def _settle(run: CrocRun, arm: int, home: int, lead: int) -> None:
    """The best evidence that the arm and the lead differ, at the counts of the record; it is settled at the level."""
    s = run.state
    found, counts = _best(run, arm, lead)
    if not np.isfinite(found):
        return
    s.evidence[arm, home], s.settled_pulls[arm, home] = found, counts
    s.settled[arm, home] = int(found >= run.pair_level)
    if run.has_bound:
        s.settled_bound[arm, home] = s.ints[BOUNDED_AT]


def _best(run: CrocRun, a: int, b: int) -> tuple[float, tuple[int, int]]:
    """The largest evidence from the start that two arms differ, over counts of the record, and these counts."""
    own, its = int(run.state.pulls[a]), int(run.state.pulls[b])
    counts = [(own, its)]
    if not run.has_bound:  # else the bound on the variance is that of now
        counts += [(n, its) for n in range(max(1, own - _LOOKED_BACK), own)]
        counts += [(own, n) for n in range(max(1, its - _LOOKED_BACK), its)]
        counts += [(n, n) for n in range(max(1, min(own, its) - _LOOKED_BACK), min(own, its))]
    found = run.pair_evidences(np.array([(a, b, *pair) for pair in counts]))
    best = int(np.argmax(np.nan_to_num(found, nan=-np.inf)))
    return float(found[best]), counts[best]


def settle_core_pairs(run: CrocRun) -> None:
    """Meet the tests of two core arms that a pair from the start meets at some counts of the record."""
    s = run.state
    if not run.ready or not run.has_pairs or run.has_bound or run.alarm is not None:
        return
    for slot in range(min(run.freezes, len(s.level))):
        cores = s.core[slot].reshape(-1, CORE_ROOM)
        places = [k * CORE_ROOM + i for k, core in enumerate(cores) for i in range(CORE_ROOM)
                  if core[i] >= 0 and core[1] >= 0]  # fmt: skip
        for i in places:
            for j in places:
                if i // CORE_ROOM > j // CORE_ROOM and s.met_pair[slot, i, j] == 0:
                    found, counts = _best(run, int(s.core[slot, i]), int(s.core[slot, j]))
                    if found >= run.pair_level:
                        s.met_pair[slot, i, j] = 1
                        s.last_pair[slot, i, j], s.last_pair[slot, j, i] = -counts[0], -counts[1]
