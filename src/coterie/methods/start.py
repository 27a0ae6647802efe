"""How a run begins, and how it goes on after its proof to see whether a group hides two: the setting `confirm`.

A run of a method that is none of the package is guarded, held to the contract of `coterie.methods.contract`: whatever
breaks it is a `MethodError` that names the method and what it did. The method never gets hold of the caller's data:
results are copies that cannot be written to, and what it gives back is copied and checked.

The proof, its groups and its certificate stay as they are. So many more results as `confirm` says, a share of those of
the proof, are asked for among the items of groups of two or more, always of the one with the fewest results so far: a
class that was measured little shows least. Results that were asked for before the proof, and come after it, count among
them. Where a record is applied rather than followed (after a correction, or under other rules), the proof is looked for
anew with all results, and the measurements after it begin anew. What they show is judged, with all results before, by
`coterie.evidence.hidden_groups`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from coterie.methods.capabilities import Counts, has
from coterie.methods.contract import (
    RESULT,
    Decision,
    Departure,
    Followed,
    HeldUp,
    Method,
    MethodError,
    MethodRun,
    PanelPull,
    Pull,
    Record,
)
from coterie.methods.records import apply_entry, follow_steps
from coterie.methods.reports import Evidence
from coterie.methods.table import is_packaged, method_named
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.instance import Instance
from coterie.problem.settings import SettingError, Settings

_Answer = TypeVar("_Answer")


class CheckedSteps:
    """The members of a method's run; an exception that one of them raises is a `MethodError`."""

    def __init__(self, run: Any, method: str) -> None:
        self._run, self._method = run, method

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of Python, not of the contract
            raise AttributeError(name)
        value = checked_step(self._method, name, lambda: getattr(self._run, name))
        if not callable(value):
            return value
        return lambda *given: checked_step(self._method, name, lambda: value(*given))


def checked_step(method: str, name: str, step: Callable[[], _Answer]) -> _Answer:
    """What a step of a method gives; an exception of it is the method's fault."""
    try:
        return step()
    except (MethodError, Departure, SettingError):
        raise
    except Exception as error:
        if isinstance(error, ValueError) and "read-only" in str(error):
            raise MethodError(method, f"tried to change data that is not its own in {name}: {error}") from error
        raise MethodError(method, f"failed in {name}: {type(error).__name__}: {error}") from error


class GuardedRun(MethodRun):
    """A run of `method`, whose every step is checked; `method_run` is the method's own."""

    inner: MethodRun

    def __init__(self, method: Method, settings: Settings) -> None:
        self.method, self._settings = method, settings
        own = settings
        if settings.instance is not None:  # its own copy of the truth
            own = replace(settings, instance=Instance(settings.instance.labels, settings.instance.centers))
        run = checked_step(method.name, "start", lambda: method.start(own))
        if not isinstance(run, MethodRun):
            raise self._broken(f"started something that is no coterie.methods.MethodRun: {short(run)}")
        self.method_run, self.inner = run, cast(MethodRun, CheckedSteps(run, method.name))
        self._counts_itself = has(run, Counts)
        self._counted = np.zeros(settings.n_arms, dtype=np.int64)  # if the method does not
        self._done = False

    def _broken(self, fault: str) -> MethodError:
        return MethodError(self.method.name, fault)

    @property
    def done(self) -> bool:
        done = self.inner.done
        if not isinstance(done, bool | np.bool_):
            raise self._broken(f"gave done = {short(done)}: it must be True or False")
        if self._done and not done:
            raise self._broken("took back that it is done")
        if done and not self._done:
            self._done = True
            if self.guess is None:
                raise self._broken("is done, but has no groups: guess is None")
        return bool(done)

    @property
    def t(self) -> int:
        return self._index(self.inner.t, "t") if self._counts_itself else int(self._counted.sum())

    @property
    def pulls(self) -> IntArray:
        if not self._counts_itself:
            return self._counted.copy()
        pulls = np.array(self.inner.pulls)
        if pulls.shape != (self._settings.n_arms,) or pulls.dtype.kind not in "iu" or (pulls < 0).any():
            raise self._broken(f"gave pulls that are not {self._settings.n_arms} counts: {short(pulls)}")
        return pulls.astype(np.int64)

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        guess = self.inner.guess
        if guess is None:
            return None
        n_arms, dim = self._settings.n_arms, self._settings.dim
        try:
            labels, centers = (np.array(part) for part in guess)
        except (TypeError, ValueError):
            raise self._broken(f"gave a guess that is not labels and centers: {short(guess)}") from None
        n_clusters = self._settings.n_clusters or len(np.atleast_1d(centers))
        inside = labels.dtype.kind in "iu" and bool(((labels >= 0) & (labels < n_clusters)).all())
        if labels.shape != (n_arms,) or not inside:
            raise self._broken(f"gave labels that are not {n_arms} numbers from 0 to {n_clusters - 1}: {short(labels)}")
        if centers.shape != (n_clusters, dim) or centers.dtype.kind not in "iuf":
            raise self._broken(f"gave centers that are not {n_clusters} rows of {dim} numbers: {short(centers)}")
        return labels.astype(np.int64), centers.astype(np.float64)

    def ask(self) -> Pull | None:
        answer = self.inner.ask()
        if answer is None:
            if not self.done:
                raise self._broken("asked for no arm, though it is not done")
            return None
        pull = answer if isinstance(answer, tuple) else Pull(answer)
        if len(pull) != 2:
            raise self._broken(f"asked for {short(answer)}: that is neither an arm nor a coterie.methods.Pull")
        arm, of_round = (self._index(part, f"ask, which gave {short(answer)},") for part in pull)
        if not 0 <= arm < self._settings.n_arms:
            raise self._broken(f"asked for arm {arm}: the arms are 0 to {self._settings.n_arms - 1}")
        if of_round < 0:
            raise self._broken(f"asked in round {of_round}: rounds are numbered from 1, and 0 stands for none")
        return Pull(arm, of_round)

    def _index(self, value: Any, name: str) -> int:
        if isinstance(value, bool | np.bool_):
            raise self._broken(f"gave no integer in {name}: {value!r}")
        try:
            return operator.index(value)
        except TypeError:
            raise self._broken(f"gave no integer in {name}: {short(value)}") from None

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        value = np.array(x)
        value.setflags(write=False)
        if not self._counts_itself:
            self.inner.count(arm, value, of_round, asked)
            self._counted[arm] += 1
            return
        t, pulls = self.t, self._pulls_of(arm)
        self.inner.count(arm, value, of_round, asked)
        if self.t != t + 1:
            raise self._broken(f"was told one result and says that {self.t} counted in all, after {t} before")
        now = self._pulls_of(arm)
        if now != pulls + 1:
            raise self._broken(f"was told a result of arm {arm} and counts {now} of this arm, after {pulls} before")

    def _pulls_of(self, arm: int) -> int:
        """Results of one arm: `pulls` looks at all of them, which takes long for many arms."""
        pulls = self.inner.pulls
        if np.shape(pulls) != (self._settings.n_arms,):
            raise self._broken(f"gave pulls that are not {self._settings.n_arms} counts: {short(pulls)}")
        return self._index(pulls[arm], "pulls")

    def evidence(self) -> Evidence:
        evidence = self.inner.evidence()
        if not isinstance(evidence, Evidence):
            raise self._broken(f"gave evidence that is no coterie.methods.Evidence: {short(evidence)}")
        return evidence

    def new_decisions(self) -> list[Decision]:
        made = self.inner.new_decisions()
        if not isinstance(made, list) or not all(isinstance(decision, dict) for decision in made):
            raise self._broken(f"gave decisions that are no list of dictionaries: {short(made)}")
        return made

    def apply_decision(self, decision: Decision) -> None:
        self.inner.apply_decision(dict(decision))

    def follow(self, record: Record) -> Followed:
        if self._counts_itself and type(self.method_run).follow is not MethodRun.follow:
            return self.inner.follow(record)
        return super().follow(record)  # by the checked steps

    def apply(self, record: Record) -> None:
        if self._counts_itself and type(self.method_run).apply is not MethodRun.apply:
            self.inner.apply(record)
        else:
            super().apply(record)

    def memory(self) -> dict[str, Any] | None:
        return self.inner.memory() if self._counts_itself else None  # else the counts would be lost

    def is_right(self, instance: Instance) -> bool:
        return bool(self.inner.is_right(instance))

    @property
    def references(self) -> tuple[int, ...] | None:
        arms = self.inner.references
        return None if arms is None else tuple(self._index(arm, "references") for arm in arms)


def start(settings: Settings, method: Method | None = None) -> MethodRun:
    """A run at its beginning.

    A run of a method that somebody registered is guarded: what breaks the contract is a `MethodError` that names it.

    Parameters
    ----------
    settings : coterie.problem.settings.Settings
        From `coterie.methods.prepared`.
    method : Method, optional
        By default the one that the settings name.

    Returns
    -------
    MethodRun
        A run without results.
    """
    entry = method_named(settings.method) if method is None else method
    return confirming(entry.start(settings) if is_packaged(entry) else GuardedRun(entry, settings), settings)


def confirming(run: MethodRun, settings: Settings) -> MethodRun:
    """The run, going on after its proof if the settings say so, and up to a deadline if they have one."""
    if settings.confirm > 0.0:
        run = ConfirmingRun(run, settings.confirm, run.pulls.size)
    if settings.deadline is None:
        return run
    from coterie.methods.deadline.method import DeadlineRun  # here: it starts runs of CROC

    return DeadlineRun(run, settings)


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
        return self._has_proof() and int(self._extra.sum()) >= self._wanted

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

    def ask(self) -> Pull | PanelPull | None:
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
