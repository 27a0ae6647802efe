"""Results that shift from day to day, or from stretch to stretch: a warning, computed a second time from a log.

`coterie.evidence.shifts` has the proof, and what is only counted; nothing of it is used here.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

_VARIANCES, _THRESHOLD, _STRETCHES = (0.02, 0.1, 0.5), math.log(1000.0), (10, 20, 40, 80)
_LEAST, _MOST, _MOST_COLUMNS = 40, 20_000, 16


def shift_in_words(arms: IntArray, values: FloatArray, labels: Sequence[int], days: Sequence[str] | None) -> str | None:
    """A warning that results of a group lie higher on some days, or in some stretches of results, than before.

    The ranks of results among the earlier ones of their group are uniform if nothing shifts; the proof, and what is
    only counted, is in `coterie.evidence.shifts`. `days`: of each result, None if nobody knows them.
    """
    kept = [i for i, arm in enumerate(arms.tolist()) if labels[arm] >= 0][:_MOST]
    if len(kept) < _LEAST or len(kept) < 2 * len(labels) or (days is not None and len(set(days)) < 2):
        return None
    group = [labels[arm] for arm in arms[kept].tolist()]
    if days is None:
        parts = [[place // length for place in range(len(kept))] for length in _STRETCHES]
    else:
        changes = [days[i] != days[j] for i, j in zip(kept[1:], kept, strict=False)]
        parts = [np.cumsum([0, *changes]).tolist()]
    columns = np.unique(np.linspace(0, values.shape[1] - 1, min(values.shape[1], _MOST_COLUMNS)).round().astype(int))
    logs, best = [], (-math.inf, 0, 0)
    for column in columns.tolist():
        scores = _group_scores(values[kept, column], group)
        for which, part in enumerate(parts):
            for variance in _VARIANCES:
                course = _course(scores, part, variance)
                logs.append(course)
                if part[-1] > part[0]:
                    best = max(best, (float(course.max()), column, which))
    evidence = float((np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))).max())
    if evidence < _THRESHOLD:
        return None
    _, column, which = best
    first, second, size = _step(values[kept, column], np.array(group), np.array(parts[which]))
    named = (
        f"results {{}} to {{}} lie {abs(size):.1f} sd {'higher' if size > 0 else 'lower'} than results {{}} to {{}}"
        if days is None
        else f"results of {{}} lie {abs(size):.1f} sd {'higher' if size > 0 else 'lower'} than those of {{}}"
    )
    ends = [(kept[part[0]] + 1, kept[part[-1]] + 1) for part in (second, first)]
    said = named.format(*ends[0], *ends[1]) if days is None else named.format(*(days[end[0] - 1] for end in ends))
    return f"{said}: equal items may look different because they were measured at different times; state days as blocks"


def _group_scores(x: FloatArray, group: Sequence[int]) -> FloatArray:
    """√3·(2R − s + 1)/s of each result, R the number of earlier ones of its group below it, half of the equal ones."""
    earlier: dict[int, list[float]] = {}
    scores = np.zeros(x.size)
    for i, (value, of_group) in enumerate(zip(x.tolist(), group, strict=True)):
        seen = earlier.setdefault(of_group, [])
        low, high = bisect.bisect_left(seen, value), bisect.bisect_right(seen, value)
        scores[i] = math.sqrt(3.0) * (low + high - len(seen)) / (len(seen) + 1.0)
        seen.insert(high, value)
    return scores


def _course(scores: FloatArray, part: Sequence[int], variance: float) -> FloatArray:
    """log Π (1+ρn)^{−1/2}·exp(½ρB²/(1+ρn)) after each result, B and n of each part so far."""
    course = np.zeros(scores.size)
    before = total = 0.0
    n = 0
    for i, score in enumerate(scores.tolist()):
        if i and part[i] != part[i - 1]:
            before, total, n = float(course[i - 1]), 0.0, 0
        total, n = total + score, n + 1
        course[i] = before + 0.5 * variance * total**2 / (1.0 + variance * n) - 0.5 * math.log1p(variance * n)
    return course


def _step(x: FloatArray, group: IntArray, part: IntArray) -> tuple[IntArray, IntArray, float]:
    """The two neighbouring parts that differ most beyond chance, by a fit of groups and parts, and by how many sd."""
    design = np.zeros((x.size, int(group.max()) + 1 + int(part.max()) + 1))
    design[np.arange(x.size), group] = 1.0
    design[np.arange(x.size), int(group.max()) + 1 + part] = 1.0
    fit = np.linalg.lstsq(design, x, rcond=None)[0]
    shift, spread = fit[int(group.max()) + 1 :], float(np.std(x - design @ fit)) or 1e-300
    counts = np.bincount(part).astype(np.float64)
    clear = np.abs(np.diff(shift)) * np.sqrt(counts[:-1] * counts[1:] / (counts[:-1] + counts[1:]))
    clear[np.minimum(counts[:-1], counts[1:]) < min(3.0, counts.max())] = -1.0
    i = int(np.argmax(clear))
    return np.flatnonzero(part == i), np.flatnonzero(part == i + 1), float(shift[i + 1] - shift[i]) / spread
