"""A run that goes on after its proof, to see whether a group hides two: the setting `confirm`.

The proof, its groups and its certificate stay as they are. So many more results as `confirm` says, a share of those of
the proof, are asked for among the items of groups of two or more, always of the one with the fewest results so far: a
class that was measured little shows least. Results that were asked for before the proof, and come after it, count among
them. Where a record is applied rather than followed (after a correction, or under other rules), the proof is looked for
anew with all results, and the measurements after it begin anew. What they show is judged, with all results before, by
`coterie.theory.hidden_groups`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.methods.contract import ASK, RESULT, Decision, Departure, Followed, MethodRun, Pull, Record
from coterie.methods.reports import Evidence, Standing
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.instance import Instance
from coterie.problem.question import Resolution


class ConfirmingRun(MethodRun):
    """A run of any method, and the measurements after its proof."""

    def __init__(self, inner: MethodRun, share: float, n_arms: int) -> None:
        self._inner, self._share = inner, share
        self._extra = np.zeros(n_arms, dtype=np.int64)  # results that counted after the proof
        self._open = np.zeros(n_arms, dtype=np.int64)  # asks after the proof that are under way

    @property
    def proven(self) -> bool:
        return self._inner.proven

    @property
    def done(self) -> bool:
        return self._inner.done and self._extra.sum() >= self._wanted

    @property
    def confirmed(self) -> tuple[int, int] | None:
        return (int(self._extra.sum()), self._wanted) if self._found() else None

    def _found(self) -> bool:
        """Whether the run inside has found the groups by now."""
        return self._inner.done

    @property
    def _wanted(self) -> int:
        """How many results after the proof there are to be."""
        return math.ceil(self._share * self._inner.t - 1e-9) if self._members.size else 0

    @property
    def _members(self) -> IntArray:
        """The items of groups of two or more."""
        guess = self._inner.guess
        assert guess is not None
        labels = guess[0]
        sizes = np.bincount(labels[labels >= 0])
        return np.flatnonzero((labels >= 0) & (sizes[np.maximum(labels, 0)] > 1))

    @property
    def t(self) -> int:
        return self._inner.t + int(self._extra.sum())

    @property
    def pulls(self) -> IntArray:
        return self._inner.pulls + self._extra

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return self._inner.guess

    def ask(self) -> Pull | None:
        if not self._found():
            found = self._inner.ask()
            if found is not None:
                return found
        if self.done:
            return None
        members = self._members
        so_far = (self._inner.pulls + self._extra + self._open)[members]
        arm = int(members[np.argmin(so_far)])
        self._open[arm] += 1
        return Pull(arm, 0)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        if not self._found():
            self._inner.count(arm, x, of_round, asked)
            return
        self._extra[arm] += 1
        self._close(arm, asked)

    def give_up(self, arm: int, of_round: int) -> None:
        if self._found():
            self._close(arm, True)
        else:
            self._inner.give_up(arm, of_round)

    def _close(self, arm: int, asked: bool) -> None:
        if asked and self._open[arm] > 0:
            self._open[arm] -= 1

    def look(self) -> None:
        if not self._found():
            self._inner.look()

    def open_recorded(self, arm: int, of_round: int) -> None:
        if self._found():
            self._open[arm] += 1
        else:
            self._inner.open_recorded(arm, of_round)

    def follow(self, record: Record) -> Followed:
        made: list[tuple[int, Decision]] = []
        used = 0
        if not self._found():
            found = self._inner.follow(record)
            if not self._found():
                return found
            made, used = found.decisions, found.used
        for i in range(used, record.kinds.size):
            if self.done:
                return Followed(i, made)
            if record.kinds[i] == ASK:
                pull = self.ask()
                if pull is None:
                    return Followed(i, made, by_ask=True)
                if pull.arm != record.arms[i] and record.arms[i] >= 0:
                    raise Departure(i, f"the next arm is {pull.arm}")
                record.arms[i], record.rounds[i] = pull
            else:
                self._take(record, i)
        return Followed(record.kinds.size, made)

    def apply(self, record: Record) -> None:
        used, before = 0, self._inner.t
        if not self._found():
            self._inner.apply(record)
            if not self._found():
                return
            ends = np.flatnonzero(record.kinds == RESULT)
            counted = self._inner.t - before
            used = int(ends[counted - 1]) + 1 if counted > 0 else 0
        for i in range(used, record.kinds.size):
            if self.done:
                return
            if record.kinds[i] == ASK:
                self.open_recorded(int(record.arms[i]), 0)
            else:
                self._take(record, i)

    def new_decisions(self) -> list[Decision]:
        return self._inner.new_decisions()

    def apply_decision(self, decision: Decision) -> None:
        self._inner.apply_decision(decision)

    def memory(self) -> dict[str, Any] | None:
        return None if self._found() else self._inner.memory()

    @property
    def memory_bytes(self) -> int:
        return 0 if self._found() else self._inner.memory_bytes

    def restore(self, memory: Mapping[str, Any]) -> None:
        self._inner.restore(memory)

    # As the run inside has it.

    def evidence(self) -> Evidence:
        return self._inner.evidence()

    def standing(self) -> Standing | None:
        return self._inner.standing()

    def is_right(self, instance: Instance) -> bool:
        return self._inner.is_right(instance)

    @property
    def references(self) -> tuple[int, ...] | None:
        return self._inner.references

    @property
    def borders(self) -> Mapping[int, Sequence[int]]:
        return self._inner.borders

    def forecast(self) -> float | None:
        if self._found():
            return float(self._inner.t + max(self._wanted, int(self._extra.sum())))
        found = self._inner.forecast()
        return None if found is None else found * (1.0 + self._share)

    def cost_left(self) -> float | None:
        return None if self._found() else self._inner.cost_left()

    def resolution_for(self, budget: int) -> float | None:
        return self._inner.resolution_for(budget)

    def choose_resolution(self, resolution: Resolution) -> None:
        self._inner.choose_resolution(resolution)

    @property
    def alarm(self) -> tuple[int, ...] | None:
        return self._inner.alarm

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        return self._inner.certificate(decisions)
