"""Keeping the estimate, the representatives and their pairs up to date (docs/CROC.md, sections 3 and 7)."""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.estimate import estimate, move_touched
from coterie.engine.croc.evidence import test_pair
from coterie.engine.croc.metric import renew_metric
from coterie.engine.croc.state import ESTIMATED, LEFT_GROUP, METRIC, MODE, NEVER, PAIRS, PLANNED, TOUCHED, Croc, T, Work
from coterie.engine.vectors import squared_distance

TIE = 1e-9
"""Squared distances this close, relatively, tie."""
PATIENCE_RESULTS, PATIENCE_WORK = 100, 200
"""Looks at everything are t/PATIENCE_RESULTS results apart, at most M·K·d/PATIENCE_WORK."""
ESTIMATE_ARMS, ESTIMATE_RESULTS = 10, 50
"""Estimates from scratch: M/ESTIMATE_ARMS results apart, or t/ESTIMATE_RESULTS and at most M·K·d/PATIENCE_WORK."""


@compiled
def patience(s: Croc) -> int:
    """Results between two looks at everything, O(M·K·d) each: 1 % of all, at most so many as pay for the look."""
    return int(min(s.ints[T] // PATIENCE_RESULTS, s.sums.size * s.totals.size // PATIENCE_WORK))


@compiled
def choose_representatives(s: Croc) -> bool:
    """Keep a representative while it stays in its group, else the one most pulled for its price, ties nearest the mean.

    Two arms with equal counts are equally far from their center: the first one wins, and not what rounding left.

    INOUT: s.representative; the pairs of a changed one are begun anew. True if one changed.
    """
    changed = False
    for k in range(s.totals.size):
        lead = s.representative[k]
        if lead >= 0 and s.labels[lead] == k:
            continue
        best, away, most = -1, 0.0, 0.0
        for m in range(s.labels.size):
            if s.labels[m] == k:
                gap = squared_distance(s.means, m, s.centers, k)
                worth = s.pulls[m] / s.price[m]
                if worth > most or (worth == most and gap < away * (1.0 - TIE)):
                    best, away, most = m, gap, worth
        s.representative[k] = best
        changed = True
        for m in range(s.labels.size):
            s.settled[m, k] = 0
            s.evidence[m, k] = -math.inf
            if s.labels[m] != k:
                test_pair(s, m, k)
    return changed


@compiled
def renew(s: Croc, w: Work) -> None:
    """Estimate anew if it is due; then the representatives and their pairs. INOUT: s.

    Between two estimates from scratch, an arm that has come closer to another center may change its group alone.
    """
    since, moved = s.ints[T] - s.ints[ESTIMATED], 0
    first = s.ints[ESTIMATED] == 0
    work = s.sums.size * s.totals.size // PATIENCE_WORK
    due = since >= max(1, s.labels.size // ESTIMATE_ARMS, min(s.ints[T] // ESTIMATE_RESULTS, work))
    measured = s.ints[METRIC] == 1 and renew_metric(s, w)
    if first or due or measured or (s.ints[LEFT_GROUP] == 1 and since >= patience(s)):
        moved = estimate(s, w)
        if moved > 0:
            s.ints[PLANNED] = NEVER
    elif s.ints[LEFT_GROUP] == 1:
        moved = move_touched(s, w)
        if moved > 0 and s.ints[MODE] == PAIRS:
            s.ints[PLANNED] = NEVER
    if choose_representatives(s):
        s.ints[PLANNED] = NEVER
    if not first:  # other pairs have been evaluated when one of the two had a result
        for i in range(moved):
            for k in range(s.totals.size):
                if k != s.labels[w.chosen[i]]:
                    test_pair(s, w.chosen[i], k)


@compiled
def forget_touched(s: Croc) -> None:
    """The plan has seen all new results. INOUT: s.touched."""
    for i in range(s.ints[TOUCHED]):
        s.is_touched[s.touched[i]] = 0
    s.ints[TOUCHED] = 0
