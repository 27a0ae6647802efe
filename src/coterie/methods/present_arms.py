"""A run that knows the items present only, behind the numbers that all items have: what follows a revision.

Epochs and rounds are numbered on from those of the runs before, so that one number means one thing in a log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie.methods.contract import Decision, Departure, Followed, HeldUp, MethodRun, Pull, Record
from coterie.methods.reports import Evidence
from coterie.problem.checks import FloatArray, IntArray


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

    inner: MethodRun

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
        counts = self._gone.copy()
        counts[self._present] = self.inner.pulls
        return counts

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        """Labels are -1 for retired items."""
        inside = self.inner.guess
        return None if inside is None else (self._everybody(inside[0]), inside[1])

    def _everybody(self, labels: Any) -> IntArray:
        all_labels = np.full(self._place.size, -1, dtype=np.int64)
        all_labels[self._present] = labels
        return all_labels

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
        inside = self.inner.forecast()
        return None if inside is None else inside + int(self._gone.sum())

    def resolution_for(self, budget: int) -> float | None:
        return self.inner.resolution_for(budget - int(self._gone.sum()))

    def evidence(self) -> Evidence:
        inside = self.inner.evidence()
        if inside.weakest is None:
            return inside
        arm, against = int(self._present[inside.weakest.arm]), inside.weakest.against
        other = None if against is None else int(self._present[against])
        return replace(inside, weakest=replace(inside.weakest, arm=arm, against=other))

    def ask(self) -> Pull | None:
        pull = self.inner.ask()
        return None if pull is None else Pull(int(self._present[pull.arm]), self._later(pull.round))

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        self.inner.count(int(self._place[arm]), x, self._own(of_round), asked)

    def give_up(self, arm: int, of_round: int) -> None:
        self.inner.give_up(int(self._place[arm]), self._own(of_round))

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
        return [self._decided(decision, self._named, self._everybody, 1) for decision in self.inner.new_decisions()]

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
        self,
        decision: Decision,
        name: Callable[[Sequence[int]], list[int]],
        label: Callable[[Any], IntArray],
        sign: int,
    ) -> Decision:
        renumbered = dict(decision)
        if "epoch" in decision:
            renumbered["epoch"] = decision["epoch"] + sign * self._past.epochs
        if "round" in decision:
            renumbered["round"] = decision["round"] + sign * self._past.rounds
        if "labels" in decision:
            renumbered["labels"] = label(decision["labels"]).tolist()
        for key in ("references", "arms"):
            if key in decision:
                renumbered[key] = name(decision[key])
        if "cores" in decision:
            renumbered["cores"] = [name(core) for core in decision["cores"]]
        if "pulls" in decision:
            renumbered["pulls"] = [[*name([arm]), count] for arm, count in decision["pulls"]]
        for key in ("near", "far"):
            if key in decision:
                renumbered[key] = [[*name(test[:2]), *test[2:]] for test in decision[key]]
        if decision.get("balls") is not None:
            renumbered["balls"] = [[*name([lead]), radius, name(items)] for lead, radius, items in decision["balls"]]
        return renumbered

    # Records.

    def _record(self, record: Record) -> Record:
        arms = np.where(record.arms >= 0, self._place[np.maximum(record.arms, 0)], record.arms)
        rounds = np.where(record.rounds > 0, record.rounds - self._past.rounds, record.rounds)
        decisions = [(before, self._inside(decision)) for before, decision in record.decisions]
        return record._replace(arms=arms, rounds=rounds, decisions=decisions)

    def follow(self, record: Record) -> Followed:
        inside = self._record(record)
        try:
            followed = self.inner.follow(inside)
        except Departure as error:
            raise Departure(error.entry, int(self._present[error.arm])) from None
        record.arms[:] = np.where(inside.arms >= 0, self._present[np.maximum(inside.arms, 0)], inside.arms)
        record.rounds[:] = np.where(inside.rounds > 0, inside.rounds + self._past.rounds, inside.rounds)
        made = [(at, self._decided(decision, self._named, self._everybody, 1)) for at, decision in followed.decisions]
        return followed._replace(decisions=made)

    def apply(self, record: Record) -> None:
        self.inner.apply(self._record(record))

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        """The proof about the present items, numbered among themselves; `present` has their numbers."""
        own = [self._inside(decision) for decision in decisions[self._before(decisions) :]]
        proof = self.inner.certificate(own)
        return None if proof is None else proof | {"present": list(self._past.present)}

    def _before(self, decisions: list[Decision]) -> int:
        """How many of all decisions are of earlier runs: those up to the last revision."""
        return max((i + 1 for i, decision in enumerate(decisions) if decision["event"] == "revision"), default=0)
