"""The paper's methods at work: BOC (Alg. 1), BOC with linear exploration, Uniform and Oracle.

Results count as they arrive. What decides is `coterie.engine.steps`; this is its side of the contract.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from coterie.engine.run import Run
from coterie.engine.state import ASK as ASKED_FOR
from coterie.engine.state import ASKED, UNASKED
from coterie.engine.state import FORGET as GIVEN_UP
from coterie.methods.contract import ASK, LOOK, RESULT, Departure, Followed, MethodRun, Pull, Record
from coterie.methods.levels import levels_for
from coterie.methods.reports import STATISTIC, Evidence, Standing, Weakest
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.instance import Instance
from coterie.problem.settings import Settings
from coterie.theory.alternative import closest_alternative
from coterie.theory.hardness import allocation
from coterie.theory.thresholds import threshold_from_log


def allocation_of_groups(instance: Instance) -> FloatArray:
    """λ* of an arm of each group (K): the arms of a group share it."""
    firsts = [int(np.argmax(instance.labels == k)) for k in range(instance.n_clusters)]
    return allocation(instance)[firsts]


class PaperMethodRun(MethodRun):
    """One of the paper's methods at work; `sampling` is the engine's number of its sampling rule."""

    def __init__(self, settings: Settings, sampling: int) -> None:
        oracle = None
        if settings.instance is not None:  # the oracle knows the allocation in the units that the engine works in
            white = Instance(settings.instance.labels, settings.noise.whiten(settings.instance.centers))
            oracle = (white.labels, allocation_of_groups(white))
        self._level, self._kind = -math.log(settings.delta), settings.threshold
        levels = levels_for((self._kind,), (self._level,), settings.n_arms, settings.dim)
        ratio = settings.distance_ratio
        self._run = Run(*settings.shape, sampling, levels, distance_ratio=ratio, oracle=oracle, at_once=True)

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def t(self) -> int:
        return self._run.t

    @property
    def pulls(self) -> IntArray:
        pulls: IntArray = self._run.state.pulls.copy()
        return pulls

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return (self._run.state.labels, self._run.centers) if self._run.ready else None

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
        """The compiled loop follows the whole record at once."""
        if (record.kinds == LOOK).any():  # results were looked at when they came
            return super().follow(record)
        arms, what = record.arms.copy(), _what(record)
        before = self.t
        following = self._run.follow(arms, record.white, what)
        if following < 0:
            entry = -1 - following
            raise Departure(entry, f"the next arm is {int(arms[entry])}")
        self._run.next = following
        record.arms[:], record.rounds[record.kinds == ASK] = arms, 0
        return Followed(self._used(record, before), [])

    def apply(self, record: Record) -> None:
        """As the record says, whatever the sampling rule would have asked for."""
        if (record.kinds == LOOK).any():
            super().apply(record)
            return
        what, start = _what(record), 0
        while start < record.kinds.size and not self.done:
            arms = record.arms[start:].copy()
            following = self._run.follow(arms, record.white[start:], what[start:])
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
        state = self._run.state
        if not (state.pulls > 0).all():
            return math.inf
        return threshold_from_log(self._level, state.pulls, state.centers.shape[1], self._kind)

    def standing(self) -> Standing:
        """All differences are proven at once, at the end; the statistic grows about as the number of results."""
        n_arms, n_groups = self._run.state.labels.size, len(self._run.state.centers)
        needed, value, limit = n_arms * (n_groups - 1), float(self._run.statistic[2]), self._limit
        if not math.isfinite(limit) or not 0.0 < value < math.inf:
            return Standing(0, needed, 0, course=STATISTIC)
        left = max(self.t * (limit / value - 1.0), 1.0)
        return Standing(0, needed, 0, left, min(value / limit, 1.0), course=STATISTIC)

    def evidence(self) -> Evidence:
        state, limit = self._run.state, self._limit
        weakest = None
        if self._run.ready and not self._run.degenerate:
            closest = closest_alternative(Instance(state.labels, state.centers), state.pulls)
            weakest = Weakest(closest.arm, closest.cluster, 0.5 * closest.value)
        return Evidence(self._run.statistic[2], limit, weakest)

    def memory(self) -> dict[str, Any]:
        return self._run.memory()

    @property
    def memory_bytes(self) -> int:
        return sum(array.nbytes for array in self._run.state)

    def restore(self, memory: Mapping[str, Any]) -> None:
        self._run.restore(memory)


def _what(record: Record) -> IntArray:
    """The kinds of a record as the engine numbers them."""
    answers = np.where(record.asked == 1, ASKED, UNASKED)
    return np.where(record.kinds == RESULT, answers, np.where(record.kinds == ASK, ASKED_FOR, GIVEN_UP))
