"""How a run begins, and how it goes on after its proof to see whether a group hides two: the setting `confirm`.

A run of a method that is none of the package is guarded.

The proof, its groups and its certificate stay as they are. So many more results as `confirm` says, a share of those of
the proof, are asked for among the items of groups of two or more, always of the one with the fewest results so far: a
class that was measured little shows least. Results that were asked for before the proof, and come after it, count among
them. Where a record is applied rather than followed (after a correction, or under other rules), the proof is looked for
anew with all results, and the measurements after it begin anew. What they show is judged, with all results before, by
`coterie.evidence.hidden_groups`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.methods.contract import RESULT, Followed, HeldUp, Method, MethodRun, Pull, Record
from coterie.methods.guard import Guarded
from coterie.methods.records import apply_entry, follow_steps
from coterie.methods.reports import Evidence
from coterie.methods.table import is_packaged, method_named
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.settings import Settings


def start(settings: Settings, method: Method | None = None) -> MethodRun:
    """A run at its beginning. `settings` come from `coterie.methods.prepared`; `method` is theirs unless given.

    A run of a method that somebody registered is guarded: what breaks the contract is a `MethodError` that names it.
    """
    entry = method_named(settings.method) if method is None else method
    return confirming(entry.start(settings) if is_packaged(entry) else Guarded(entry, settings), settings)


def confirming(run: MethodRun, settings: Settings) -> MethodRun:
    """The run, going on after its proof if the settings say so."""
    return ConfirmingRun(run, settings.confirm, run.pulls.size) if settings.confirm > 0.0 else run


class ConfirmingRun(MethodRun):
    """A run of any method, and the measurements after its proof."""

    inner: MethodRun

    def __init__(self, inner: MethodRun, share: float, n_arms: int) -> None:
        self.inner, self._share = inner, share
        self._extra = np.zeros(n_arms, dtype=np.int64)  # results that counted after the proof
        self._open = np.zeros(n_arms, dtype=np.int64)  # asks after the proof that are under way

    @property
    def proven(self) -> bool:
        return self.inner.proven

    @property
    def done(self) -> bool:
        return self._has_proof() and self._extra.sum() >= self._wanted

    @property
    def confirmed(self) -> tuple[int, int] | None:
        return (int(self._extra.sum()), self._wanted) if self._has_proof() else None

    def _has_proof(self) -> bool:
        """Whether the run inside has found the groups by now."""
        return self.inner.done

    @property
    def _wanted(self) -> int:
        """How many results after the proof there are to be."""
        return math.ceil(self._share * self.inner.t - 1e-9) if self._members.size else 0

    @property
    def _members(self) -> IntArray:
        """The items of groups of two or more."""
        guess = self.inner.guess
        assert guess is not None
        labels = guess[0]
        sizes = np.bincount(labels[labels >= 0])
        return np.flatnonzero((labels >= 0) & (sizes[np.maximum(labels, 0)] > 1))

    @property
    def t(self) -> int:
        return self.inner.t + int(self._extra.sum())

    @property
    def pulls(self) -> IntArray:
        return self.inner.pulls + self._extra

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return self.inner.guess

    def evidence(self) -> Evidence:
        return self.inner.evidence()

    def ask(self) -> Pull | None:
        if not self._has_proof():
            pull = self.inner.ask()
            if pull is not None:
                return pull
        if self.done:
            return None
        members = self._members
        so_far = (self.inner.pulls + self._extra + self._open)[members]
        arm = int(members[np.argmin(so_far)])
        self._open[arm] += 1
        return Pull(arm, 0)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        if not self._has_proof():
            self.inner.count(arm, x, of_round, asked)
            return
        self._extra[arm] += 1
        self._close(arm, asked)

    def give_up(self, arm: int, of_round: int) -> None:
        if self._has_proof():
            self._close(arm, True)
        else:
            self.inner.give_up(arm, of_round)

    def _close(self, arm: int, asked: bool) -> None:
        if asked and self._open[arm] > 0:
            self._open[arm] -= 1

    def look(self) -> None:
        if not self._has_proof():
            self.inner.look()

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        return HeldUp()  # a result serves to confirm the groups, whatever becomes of the open asks

    def open_recorded(self, arm: int, of_round: int) -> None:
        if self._has_proof():
            self._open[arm] += 1
        else:
            self.inner.open_recorded(arm, of_round)

    def follow(self, record: Record) -> Followed:
        before = Followed(0, [])
        if not self._has_proof():
            before = self.inner.follow(record)
            if not self._has_proof():
                return before
        after = follow_steps(self, record, before.used)
        return after._replace(decisions=before.decisions + after.decisions)

    def apply(self, record: Record) -> None:
        used, before = 0, self.inner.t
        if not self._has_proof():
            self.inner.apply(record)
            if not self._has_proof():
                return
            ends = np.flatnonzero(record.kinds == RESULT)
            counted = self.inner.t - before
            used = int(ends[counted - 1]) + 1 if counted > 0 else 0
        for i in range(used, record.kinds.size):
            if self.done:
                return
            apply_entry(self, record, i)

    def memory(self) -> dict[str, Any] | None:
        return None if self._has_proof() else self.inner.memory()

    @property
    def memory_bytes(self) -> int:
        return 0 if self._has_proof() else self.inner.memory_bytes

    def forecast(self) -> float | None:
        if self._has_proof():
            return float(self.inner.t + max(self._wanted, int(self._extra.sum())))
        whole = self.inner.forecast()
        return None if whole is None else whole * (1.0 + self._share)

    def cost_left(self) -> float | None:
        return None if self._has_proof() else self.inner.cost_left()
