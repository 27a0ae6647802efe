"""A run that knows the items present only, behind the numbers that all items have: what follows a revision.

Epochs and rounds are numbered on from those of the runs before, so that one number means one thing in a log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie.methods.contract import ASK, Decision, Departure, Followed, HeldUp, MethodRun, Pull, Record
from coterie.methods.reports import Evidence, Standing
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.question import Resolution


class Past(NamedTuple):
    """What was before a revision. `present`: the items that go on; `gone`: (all items) results of retired ones.

    `n_first`: items at the beginning; `epochs`, `rounds`: frozen and composed so far; `revisions`: this one included.
    """

    present: tuple[int, ...]
    gone: tuple[int, ...]
    n_first: int
    epochs: int
    rounds: int
    revisions: int

    @property
    def n_ever(self) -> int:
        """All items there ever were."""
        return len(self.gone)

    @property
    def log_spent(self) -> float:
        """log of 1 over the share of frozen epochs that is left: π_J + π_{J+1} + … = 0.2^J."""
        return self.epochs * math.log(5.0)


class PresentArms(MethodRun):
    """The run of the present items, by the numbers of all."""

    def __init__(self, inner: MethodRun, past: Past) -> None:
        self.inner, self._past = inner, past
        self._present = np.array(past.present, dtype=np.int64)
        self._place = np.full(past.n_ever, -1, dtype=np.int64)
        self._place[self._present] = np.arange(self._present.size)
        self._gone = np.array(past.gone, dtype=np.int64)

    @property
    def done(self) -> bool:
        return self.inner.done

    @property
    def t(self) -> int:
        return self.inner.t + int(self._gone.sum())

    @property
    def pulls(self) -> IntArray:
        found = self._gone.copy()
        found[self._present] = self.inner.pulls
        return found

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        """Labels are -1 for retired items."""
        found = self.inner.guess
        return None if found is None else (self._everybody(found[0]), found[1])

    def _everybody(self, labels: Any) -> IntArray:
        found = np.full(self._place.size, -1, dtype=np.int64)
        found[self._present] = labels
        return found

    @property
    def alarm(self) -> tuple[int, ...] | None:
        return None if self.inner.alarm is None else tuple(self._named(self.inner.alarm))

    @property
    def references(self) -> tuple[int, ...] | None:
        return None if self.inner.references is None else tuple(self._named(self.inner.references))

    @property
    def borders(self) -> Mapping[int, Sequence[int]]:
        return {int(self._present[arm]): groups for arm, groups in self.inner.borders.items()}

    def forecast(self) -> float | None:
        found = self.inner.forecast()
        return None if found is None else found + int(self._gone.sum())

    def standing(self) -> Standing | None:
        return self.inner.standing()

    def cost_left(self) -> float | None:
        return self.inner.cost_left()

    def resolution_for(self, budget: int) -> float | None:
        return self.inner.resolution_for(budget - int(self._gone.sum()))

    def choose_resolution(self, resolution: Resolution) -> None:
        self.inner.choose_resolution(resolution)

    def evidence(self) -> Evidence:
        found = self.inner.evidence()
        if found.weakest is None:
            return found
        arm, against = int(self._present[found.weakest.arm]), found.weakest.against
        other = None if against is None else int(self._present[against])
        return replace(found, weakest=replace(found.weakest, arm=arm, against=other))

    def ask(self) -> Pull | None:
        found = self.inner.ask()
        return None if found is None else Pull(int(self._present[found.arm]), self._later(found.round))

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self.inner.count(int(self._place[arm]), x, self._own(of_round), asked)

    def give_up(self, arm: int, of_round: int) -> None:
        self.inner.give_up(int(self._place[arm]), self._own(of_round))

    def look(self) -> None:
        self.inner.look()

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        return self.inner.held_up([Pull(int(self._place[arm]), self._own(of_round)) for arm, of_round in asks])

    def open_recorded(self, arm: int, of_round: int) -> None:
        self.inner.open_recorded(int(self._place[arm]), self._own(of_round))

    # Numbers of items and rounds, there and back.

    def _later(self, of_round: int) -> int:
        return of_round + self._past.rounds if of_round > 0 else of_round

    def _own(self, of_round: int) -> int:
        return of_round - self._past.rounds if of_round > 0 else of_round

    def _named(self, arms: Sequence[int]) -> list[int]:
        return [int(self._present[arm]) for arm in arms]

    def new_decisions(self) -> list[Decision]:
        return [self._decided(one, self._named, self._everybody, 1) for one in self.inner.new_decisions()]

    def apply_decision(self, decision: Decision) -> None:
        self.inner.apply_decision(self._inside(decision))

    def _inside(self, decision: Decision) -> Decision:
        """A decision of this run, as the run itself numbers items, epochs and rounds."""
        return self._decided(
            decision,
            lambda arms: [int(self._place[arm]) for arm in arms],
            lambda labels: np.asarray(labels, dtype=np.int64)[self._present],
            -1,
        )

    def _decided(
        self, one: Decision, name: Callable[[Sequence[int]], list[int]], label: Callable[[Any], IntArray], sign: int
    ) -> Decision:
        found = dict(one)
        if "epoch" in one:
            found["epoch"] = one["epoch"] + sign * self._past.epochs
        if "round" in one:
            found["round"] = one["round"] + sign * self._past.rounds
        if "labels" in one:
            found["labels"] = label(one["labels"]).tolist()
        for key in ("references", "arms"):
            if key in one:
                found[key] = name(one[key])
        if "cores" in one:
            found["cores"] = [name(core) for core in one["cores"]]
        if "pulls" in one:
            found["pulls"] = [[*name([arm]), count] for arm, count in one["pulls"]]
        for key in ("near", "far"):
            if key in one:
                found[key] = [[*name(test[:2]), *test[2:]] for test in one[key]]
        if one.get("balls") is not None:
            found["balls"] = [[*name([lead]), radius, name(items)] for lead, radius, items in one["balls"]]
        return found

    # Records.

    def _record(self, record: Record) -> Record:
        arms = np.where(record.arms >= 0, self._place[np.maximum(record.arms, 0)], record.arms)
        rounds = np.where(record.rounds > 0, record.rounds - self._past.rounds, record.rounds)
        decisions = [(before, self._inside(one)) for before, one in record.decisions]
        return record._replace(arms=arms, rounds=rounds, decisions=decisions)

    def follow(self, record: Record) -> Followed:
        inside = self._record(record)
        try:
            found = self.inner.follow(inside)
        except Departure as error:
            if record.kinds[error.entry] == ASK:
                arm = int(error.why.rpartition(" ")[2])
                raise Departure(error.entry, f"the next arm is {int(self._present[arm])}") from None
            raise
        record.arms[:] = np.where(inside.arms >= 0, self._present[np.maximum(inside.arms, 0)], inside.arms)
        record.rounds[:] = np.where(inside.rounds > 0, inside.rounds + self._past.rounds, inside.rounds)
        made = [(at, self._decided(one, self._named, self._everybody, 1)) for at, one in found.decisions]
        return found._replace(decisions=made)

    def apply(self, record: Record) -> None:
        self.inner.apply(self._record(record))

    def memory(self) -> dict[str, Any] | None:
        return self.inner.memory()

    @property
    def memory_bytes(self) -> int:
        return self.inner.memory_bytes

    def restore(self, memory: Mapping[str, Any]) -> None:
        self.inner.restore(memory)

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        """The proof about the present items, numbered among themselves; `present` has their numbers."""
        own = [self._inside(one) for one in decisions[self._before(decisions) :]]
        found = self.inner.certificate(own)
        return None if found is None else found | {"present": list(self._past.present)}

    def _before(self, decisions: list[Decision]) -> int:
        """How many of all decisions are of earlier runs: those up to the last revision."""
        return max((i + 1 for i, one in enumerate(decisions) if one["event"] == "revision"), default=0)
