"""Evidence that the results of all items shift together from day to day, or from one stretch of results to the next.

Take the results of a group of equal items in their order, and let R be the rank of the s-th among the first s, from 0.
If they are exchangeable, ranks are independent and uniform, whatever the noise. So w = √3·(2R − s + 1)/s has mean 0 and
E e^{θw} ≤ e^{θ²/2} for every θ: with g(y) = log(sinh y/y) = Σ_k log(1 + y²/(k²π²)), log E e^{θw} is g(sx) − g(x) at
x = √3·θ/s, and that is at most Σ_k (s² − 1)x²/(k²π²) = (s² − 1)x²/6. With B the sum of the w of a day so far, of all
groups, and n their number,

    E = Π_days (1 + ρn)^{−1/2}·exp(½·ρB²/(1 + ρn))

bets on shifts of variance ρ, a new one every day, and is a supermartingale that starts at 1; so is a mean over ρ, over
the numbers of a result, and, where nobody knows the days, over stretches of several lengths.

*Which item is measured next depends on results*, and the rank among the results of one item would go with that: one
that began high by chance, and is measured again for it, goes down. Within a group that does no harm, since the choice
among its items is not by what the group's results are. What is left (which group is measured next; groups that are a
guess on the way) is why log 1000 is asked for where log 100 would do. In 2,000 runs of CROC without any shift, looked
at throughout, no alarm was raised; `pytest -s -m guarantee tests/evidence/test_evidence_shifts.py` prints it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coterie.evidence.order import columns_looked_at, places, ranks_among_earlier, stretches
from coterie.problem.checks import FloatArray, IntArray

SHIFT_LEVEL = 0.01
"""How often, at most, it is said for nothing, as counted."""

SHIFT_THRESHOLD = math.log(1000.0)
VARIANCES = (0.02, 0.1, 0.5)
"""ρ, in units of the variance of w."""
LENGTHS = (10, 20, 40, 80)
"""Of stretches, where no days are known."""

_LEAST, _MOST = 40, 2**17
_LEAST_OF_A_DAY = 3


@dataclass(frozen=True)
class ShiftEvidence:
    """A log, and where results shift most: the last result of the earlier stretch or day, and the first of the later.

    `before`, `after`: slices of results, as counted; `size`: how much higher `after` lies, in standard deviations.
    """

    value: float
    column: int
    before: slice
    after: slice
    size: float

    @property
    def reached(self) -> bool:
        """Whether it is enough for an alarm."""
        return self.value >= SHIFT_THRESHOLD


def shift_evidence(groups: IntArray, values: FloatArray, days: IntArray | None = None) -> ShiftEvidence | None:
    """The evidence of results (n, d) of items of these groups (n; -1: left aside), in their order.

    `days` (n), numbers that never fall, say which results are of one day; None: stretches are compared. None if there
    are too few results, or all are of one day.
    """
    known = np.flatnonzero(groups >= 0)[:_MOST]
    if known.size < _LEAST or (days is not None and days[known[0]] == days[known[-1]]):
        return None
    groups, values = groups[known], values[known]
    parts = [np.arange(known.size) // length for length in LENGTHS] if days is None else [days[known]]
    place, columns = places(groups), columns_looked_at(values.shape[1])
    courses, about = [], []
    for column in columns.tolist():
        ranks = ranks_among_earlier(groups, values[:, column])
        scores = math.sqrt(3.0) * (2.0 * ranks - place) / (place + 1.0)
        for i, part in enumerate(parts):
            courses += [_course(scores, part, variance) for variance in VARIANCES]
            about += [(column, i)] * len(VARIANCES)
    total = np.logaddexp.reduce(courses, axis=0) - math.log(len(courses))
    at = int(np.argmax(total))
    there = [
        course[at] if parts[i][-1] > parts[i][0] else -np.inf for course, (_, i) in zip(courses, about, strict=True)
    ]
    column, i = about[int(np.argmax(there))]  # of those with two stretches to compare
    before, after, size = _largest_step(groups, values[:, column], parts[i])
    whole = [slice(int(known[part.start]), int(known[part.stop - 1]) + 1) for part in (before, after)]
    return ShiftEvidence(float(total[at]), column, whole[0], whole[1], size)


def _course(scores: FloatArray, part: IntArray, variance: float) -> FloatArray:
    """log E after each result."""
    starts, lengths = stretches(part)
    total = np.cumsum(scores)
    within = total - np.repeat(total[starts] - scores[starts], lengths)  # B
    count = np.arange(part.size) - np.repeat(starts, lengths) + 1.0
    now = 0.5 * variance * within**2 / (1.0 + variance * count) - 0.5 * np.log1p(variance * count)
    ends = now[starts + lengths - 1]
    return np.asarray(now + np.repeat(np.cumsum(ends) - ends, lengths))


def _largest_step(groups: IntArray, x: FloatArray, part: IntArray) -> tuple[slice, slice, float]:
    """The two neighbouring days that differ most beyond chance, by means of groups and days, in standard deviations."""
    starts, lengths = stretches(part)
    day = np.repeat(np.arange(starts.size), lengths)
    of_group, of_day = np.bincount(groups), lengths.astype(np.float64)
    shift, center = np.zeros(starts.size), np.zeros(of_group.size)
    for _ in range(20):
        center = np.bincount(groups, x - shift[day], of_group.size) / np.maximum(of_group, 1)
        shift = np.bincount(day, x - center[groups], starts.size) / of_day
    spread = math.sqrt(max(float(np.var(x - center[groups] - shift[day])), 1e-300))
    enough = np.minimum(lengths[:-1], lengths[1:]) >= min(_LEAST_OF_A_DAY, int(lengths.max()))
    clear = np.abs(np.diff(shift)) * np.sqrt(of_day[:-1] * of_day[1:] / (of_day[:-1] + of_day[1:]))
    i = int(np.argmax(np.where(enough, clear, -1.0)))
    first, second = (slice(int(starts[j]), int(starts[j] + lengths[j])) for j in (i, i + 1))
    return first, second, float(shift[i + 1] - shift[i]) / spread
