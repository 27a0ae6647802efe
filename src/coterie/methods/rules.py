"""Rules from which methods are composed: a sampling rule names the next arm, a stopping rule reads the evidence.

Both are functions of a `Tally`. One that has to remember something is a class: each run has an instance of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from coterie.methods.reports import Weakest
from coterie.methods.tally import Tally
from coterie.problem.checks import FloatArray, IntArray
from coterie.theory.alternative import alternative_value
from coterie.theory.evidence import pair_evidence
from coterie.theory.thresholds import threshold_from_log


class Reading(NamedTuple):
    """What a stopping rule says: it stops when `statistic` reaches `threshold`.

    It stops with the groups `labels` (M), those of the tally's guess if none are given. `weakest`: what holds it up.
    """

    statistic: float
    threshold: float
    labels: IntArray | None = None
    weakest: Weakest | None = None


SamplingRule: TypeAlias = Callable[[Tally], int]
"""The next arm. Consulted once every arm has a result."""

StoppingRule: TypeAlias = Callable[[Tally], Reading]
"""Consulted after every result, once every arm has one."""


def least_measured(tally: Tally) -> int:
    """The arm with the fewest results and asks under way, the lowest index among ties."""
    return int(np.argmin(tally.committed))


class PaperStop:
    """Z(t) ≥ β(δ, t), or β̃(δ, t) with the heuristic threshold: line 13 of Alg. 1, with the corrected Z2.

    Z(t) compares the guess of t−1 with the means of t.
    """

    has_thresholds = True

    def __init__(self) -> None:
        self._guess_before: tuple[IntArray, FloatArray] | None = None

    def __call__(self, tally: Tally) -> Reading:
        before, self._guess_before = self._guess_before, (tally.labels, tally.centers)
        kind = tally.settings.threshold
        limit = threshold_from_log(-math.log(tally.delta), tally.pulls, tally.dim, kind)
        if before is None:
            return Reading(0.0, limit)
        labels, centers = before
        off = ((tally.means - centers[labels]) ** 2).sum(axis=1)
        z1 = float((tally.pulls * off).sum())
        z2 = alternative_value(labels, centers, tally.pulls.astype(np.float64))
        statistic = 0.5 * max(math.sqrt(z2) - math.sqrt(z1), 0.0) ** 2
        return Reading(statistic, limit, labels)


class PairsStop:
    """Every arm is proven different from the representative of each group but its own, by pairs of arms.

    At most H = (M−K+1)(M−K)/2 pairs of arms are equal. For each of them `coterie.pair_evidence` ever reaches log(H/δ)
    with probability at most δ/H, whatever is measured; so with probability at least 1−δ no equal pair is ever taken for
    different. If then K arms are proven different from each other, there is one in each group, and an arm that differs
    from all of them but one is in the group of that one. The evidence pairs results by position: they have to count in
    the order in which they were asked for.
    """

    in_ask_order = True

    def __init__(self) -> None:
        self._best: FloatArray | None = None  # (M, M) the largest evidence so far
        self._read: IntArray | None = None  # (M, M) results of both arms when it was last read

    def __call__(self, tally: Tally) -> Reading:
        m, labels = tally.n_arms, tally.labels
        if self._best is None or self._read is None:
            self._best, self._read = np.full((m, m), -np.inf), np.zeros((m, m), dtype=np.int64)
        equal_pairs = (m - tally.n_clusters + 1) * (m - tally.n_clusters) // 2
        level = math.log(max(1, equal_pairs) / tally.delta)
        # The most measured arm of a group stands for it; of several the first.
        members = [np.flatnonzero(labels == k) for k in range(tally.n_clusters)]
        if any(group.size == 0 for group in members):
            return Reading(-math.inf, level)
        leads = [int(group[np.argmax(tally.pulls[group])]) for group in members]
        weakest: Weakest | None = None
        for k, lead in enumerate(leads):
            for arm in np.flatnonzero(labels != k).tolist():
                value = self._evidence(tally, min(arm, lead), max(arm, lead), level)
                if weakest is None or value < weakest.statistic:
                    weakest = Weakest(arm, k, value, level, lead)
        assert weakest is not None  # there are at least two groups
        return Reading(weakest.statistic, level, labels, weakest)

    def _evidence(self, tally: Tally, i: int, j: int, level: float) -> float:
        """The largest evidence so far that arms i and j differ; not read again once it has reached its level."""
        assert self._best is not None
        assert self._read is not None
        counts = int(tally.pulls[i] + tally.pulls[j])
        if self._best[i, j] < level and counts > self._read[i, j]:
            self._best[i, j] = max(self._best[i, j], pair_evidence(tally.results(i), tally.results(j)))
            self._read[i, j] = counts
        return float(self._best[i, j])


SAMPLING: dict[str, SamplingRule | type] = {"uniform": least_measured}
"""The sampling rules that can be named."""

STOPPING: dict[str, StoppingRule | type] = {"paper": PaperStop, "pairs": PairsStop}
"""The stopping rules that can be named."""
