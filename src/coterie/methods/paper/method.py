"""The paper's methods at work: BOC (Alg. 1), BOC with linear exploration, Uniform and Oracle.

Results count as they arrive. What decides is `native/paper`; this is its side of the contract.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from coterie.evidence.allocation import allocation
from coterie.evidence.stopping import closest_alternative, psi, threshold_from_log
from coterie.methods.contract import ASK, LOOK, RESULT, Departure, Followed, Pull, Record
from coterie.methods.croc.run import NativeRun
from coterie.methods.paper import ASK as ASKED_FOR
from coterie.methods.paper import ASKED, UNASKED
from coterie.methods.paper import FORGET as GIVEN_UP
from coterie.methods.paper.run import Run
from coterie.methods.reports import STATISTIC, Evidence, Standing, Weakest
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.instance import Instance
from coterie.problem.settings import Settings

KINDS = ("proven", "heuristic")
"""In the order of the rows that the engine takes."""


def levels_for(kinds: Sequence[str], log_inverse_deltas: Sequence[float], n_arms: int, dim: int) -> FloatArray:
    """(2, L) levels for increasing log(1/δ); the row of a threshold that is not asked for is NaN.

    The part of the threshold that depends on δ is constant over a run, M·d·Ψ(log(1/δ)/(M·d)) for β (equation_beta) and
    log(1/δ) for β̃; the engine adds the part that grows with the counts. So one trajectory serves every δ.
    """
    levels = np.full((2, len(log_inverse_deltas)), np.nan)
    if "proven" in kinds:
        md = n_arms * dim
        levels[0] = [md * psi(value / md) for value in log_inverse_deltas]
    if "heuristic" in kinds:
        levels[1] = log_inverse_deltas
    return levels


def allocation_of_groups(instance: Instance) -> FloatArray:
    """λ* of an arm of each group (K): the arms of a group share it."""
    firsts = [int(np.argmax(instance.labels == k)) for k in range(instance.n_clusters)]
    return allocation(instance)[firsts]


class PaperMethodRun(NativeRun[Run]):
    """One of the paper's methods at work; `sampling` is the engine's number of its sampling rule."""

    def __init__(self, sampling: int, settings: Settings) -> None:
        oracle = None
        if settings.instance is not None:  # the oracle knows the allocation in the units that the engine works in
            white = Instance(settings.instance.labels, settings.noise.whiten(settings.instance.centers))
            oracle = (white.labels, allocation_of_groups(white))
        self._level, self._kind = -math.log(settings.delta), settings.threshold
        levels = levels_for((self._kind,), (self._level,), settings.n_arms, settings.dim)
        ratio = settings.distance_ratio
        self._run = Run(*settings.shape, sampling, levels, distance_ratio=ratio, oracle=oracle)

    def ask(self) -> Pull:
        arm = self._run.next
        self._run.commit(arm, +1)
        return Pull(arm)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        answers = np.array([ASKED if asked else UNASKED], dtype=np.int64)
        self._run.absorb(np.array([arm], dtype=np.int64), x[None], answers)

    def give_up(self, arm: int, of_round: int) -> None:
        self._run.commit(arm, -1)

    def open_recorded(self, arm: int, of_round: int) -> None:
        self._run.commit(arm, +1)

    def follow(self, record: Record) -> Followed:
        """The engine follows the whole record at once."""
        if (record.kinds == LOOK).any():  # results were looked at when they came
            return super().follow(record)
        arms, kinds = record.arms.copy(), _script_kinds(record)
        before = self.t
        following = self._run.follow(arms, record.white, kinds)
        if following < 0:
            entry = -1 - following
            raise Departure(entry, int(arms[entry]))
        self._run.next = following
        record.arms[:], record.rounds[record.kinds == ASK] = arms, 0
        return Followed(self._used(record, before), [])

    def apply(self, record: Record) -> None:
        """As the record says, whatever the sampling rule would have asked for."""
        if (record.kinds == LOOK).any():
            super().apply(record)
            return
        kinds, start = _script_kinds(record), 0
        while start < record.kinds.size and not self.done:
            arms = record.arms[start:].copy()
            following = self._run.follow(arms, record.white[start:], kinds[start:])
            if following >= 0:
                self._run.next = following
                return
            start += -1 - following
            self._run.commit(int(record.arms[start]), +1)
            start += 1

    def _used(self, record: Record, before: int) -> int:
        """How many entries of a record were used, by the results that counted."""
        if not self.done:
            return int(record.kinds.size)
        return int(np.flatnonzero(record.kinds == RESULT)[self.t - before - 1]) + 1

    @property
    def _limit(self) -> float:
        pulls = self._run.pulls
        if not (pulls > 0).all():
            return math.inf
        return threshold_from_log(self._level, pulls, self._run.relative_centers.shape[1], self._kind)

    def standing(self) -> Standing:
        """All differences are proven at once, at the end; the statistic grows about as the number of results."""
        n_arms, n_groups = self._run.labels.size, len(self._run.relative_centers)
        needed, value, limit = n_arms * (n_groups - 1), float(self._run.statistic[2]), self._limit
        if not math.isfinite(limit) or not 0.0 < value < math.inf:
            return Standing(0, needed, 0, course=STATISTIC)
        left = max(self.t * (limit / value - 1.0), 1.0)
        return Standing(0, needed, 0, left, min(value / limit, 1.0), course=STATISTIC)

    def evidence(self) -> Evidence:
        run, weakest = self._run, None
        if run.ready and not run.degenerate:
            closest = closest_alternative(Instance(run.labels, run.relative_centers), run.pulls)
            weakest = Weakest(closest.arm, closest.cluster, 0.5 * closest.value)
        return Evidence(run.statistic[2], self._limit, weakest)


def _script_kinds(record: Record) -> IntArray:
    """The kinds of a record as the engine numbers them."""
    answers = np.where(record.asked == 1, ASKED, UNASKED)
    return np.where(record.kinds == RESULT, answers, np.where(record.kinds == ASK, ASKED_FOR, GIVEN_UP))
