"""A run of a method that is started only when something new is asked, told or given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coterie.methods.contract import Decision, Followed, HeldUp, MethodRun, Pull, Record
from coterie.methods.reports import Evidence, Standing, Weakest
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.instance import Instance
from coterie.problem.question import Resolution


class SleepingRun(MethodRun):
    """A run that is brought back when it is needed; until then it shows what it knew when its memory was taken."""

    def __init__(self, wake: Callable[[], MethodRun], report: Mapping[str, Any]) -> None:
        self._wake, self._report = wake, report
        self._awake: MethodRun | None = None

    @property
    def awake(self) -> MethodRun:
        """The run itself."""
        if self._awake is None:
            self._awake = self._wake()
        return self._awake

    @property
    def done(self) -> bool:
        return False if self._awake is None else self._awake.done

    @property
    def t(self) -> int:
        return int(self._report["t"]) if self._awake is None else self._awake.t

    @property
    def pulls(self) -> IntArray:
        if self._awake is not None:
            return self._awake.pulls
        return np.array(self._report["pulls"], dtype=np.int64)

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        if self._awake is not None:
            return self._awake.guess
        if self._report["labels"] is None:
            return None
        return np.array(self._report["labels"], dtype=np.int64), np.array(self._report["centers"])

    @property
    def alarm(self) -> tuple[int, ...] | None:
        if self._awake is not None:
            return self._awake.alarm
        return None if self._report["alarm"] is None else tuple(self._report["alarm"])

    @property
    def references(self) -> tuple[int, ...] | None:
        arms = self._report.get("references")
        if self._awake is not None:
            return self._awake.references
        return None if arms is None else tuple(arms)

    @property
    def borders(self) -> Mapping[int, Sequence[int]]:
        if self._awake is not None:
            return self._awake.borders
        return {int(arm): groups for arm, groups in self._report.get("borders", {}).items()}

    def standing(self) -> Standing | None:
        if self._awake is not None or "standing" not in self._report:  # a memory of an earlier release has none
            return self.awake.standing()
        found = self._report["standing"]
        return None if found is None else Standing(**found)

    def forecast(self) -> float | None:
        return self._report.get("forecast") if self._awake is None else self._awake.forecast()

    def cost_left(self) -> float | None:
        return None if self._awake is None else self._awake.cost_left()

    def resolution_for(self, budget: int) -> float | None:
        return self.awake.resolution_for(budget)

    def choose_resolution(self, resolution: Resolution) -> None:
        self.awake.choose_resolution(resolution)

    def is_right(self, instance: Instance) -> bool:
        return self.awake.is_right(instance)

    def evidence(self) -> Evidence:
        found = self._report["evidence"]
        if self._awake is not None or found is None:
            return self.awake.evidence()
        weakest = found["weakest"]
        return Evidence(found["statistic"], found["threshold"], None if weakest is None else Weakest(**weakest))

    def ask(self) -> Pull | None:
        return self.awake.ask()

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self.awake.count(arm, x, of_round, asked)

    def give_up(self, arm: int, of_round: int) -> None:
        self.awake.give_up(arm, of_round)

    def look(self) -> None:
        self.awake.look()

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        return self.awake.held_up(asks)

    def new_decisions(self) -> list[Decision]:
        return [] if self._awake is None else self._awake.new_decisions()

    def open_recorded(self, arm: int, of_round: int) -> None:
        self.awake.open_recorded(arm, of_round)

    def apply_decision(self, decision: Decision) -> None:
        self.awake.apply_decision(decision)

    def follow(self, record: Record) -> Followed:
        return self.awake.follow(record)

    def apply(self, record: Record) -> None:
        self.awake.apply(record)

    def memory(self) -> dict[str, Any] | None:
        return self.awake.memory()

    @property
    def memory_bytes(self) -> int:
        return 0 if self._awake is None else self._awake.memory_bytes

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        return self.awake.certificate(decisions)


def nothing_yet(n_arms: int) -> dict[str, Any]:
    """The report of a run that has measured nothing."""
    return {"t": 0, "pulls": [0] * n_arms, "labels": None, "centers": None, "alarm": None, "evidence": None}
