"""A run of a method that somebody registered, held to the contract of `coterie.methods.contract`.

Whatever breaks it is a `MethodError` that names the method and what it did. The method never gets hold of the caller's
data: results are copies that cannot be written to, and what it gives back is copied and checked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from coterie.methods.contract import (
    Decision,
    Departure,
    Followed,
    HeldUp,
    Method,
    MethodError,
    MethodRun,
    Pull,
    Record,
)
from coterie.methods.reports import Evidence, Standing
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.instance import Instance
from coterie.problem.question import Resolution
from coterie.problem.settings import SettingError, Settings

if TYPE_CHECKING:
    from coterie.methods.trials import Plan, Stops

_Answer = TypeVar("_Answer")


class Guarded(MethodRun):
    """A run of `method`, whose every step is checked."""

    def __init__(self, method: Method, settings: Settings) -> None:
        self.method, self._settings = method, settings
        own = settings
        if settings.instance is not None:  # its own copy of the truth
            own = replace(settings, instance=Instance(settings.instance.labels, settings.instance.centers))
        run = self._step("start", lambda: method.start(own))
        if not isinstance(run, MethodRun):
            raise self._broken(f"started something that is no coterie.methods.MethodRun: {short(run)}")
        self._run = run
        self._done = False

    def _broken(self, what: str) -> MethodError:
        return MethodError(self.method.name, what)

    def _step(self, name: str, step: Callable[[], _Answer]) -> _Answer:
        """What a step of the method gives; an exception of it is the method's fault."""
        try:
            return step()
        except (MethodError, Departure, SettingError):
            raise
        except Exception as error:
            if isinstance(error, ValueError) and "read-only" in str(error):
                raise self._broken(f"tried to change data that is not its own in {name}: {error}") from error
            raise self._broken(f"failed in {name}: {type(error).__name__}: {error}") from error

    @property
    def inner(self) -> MethodRun:
        """The method's own run."""
        return self._run

    @property
    def done(self) -> bool:
        found = self._step("done", lambda: self._run.done)
        if not isinstance(found, bool | np.bool_):
            raise self._broken(f"gave done = {short(found)}: it must be True or False")
        if self._done and not found:
            raise self._broken("took back that it is done")
        if found and not self._done:
            self._done = True
            if self.guess is None:
                raise self._broken("is done, but has no groups: guess is None")
        return bool(found)

    @property
    def t(self) -> int:
        return self._index(self._step("t", lambda: self._run.t), "t")

    @property
    def pulls(self) -> IntArray:
        pulls = np.array(self._step("pulls", lambda: self._run.pulls))
        if pulls.shape != (self._settings.n_arms,) or pulls.dtype.kind not in "iu" or (pulls < 0).any():
            raise self._broken(f"gave pulls that are not {self._settings.n_arms} counts: {short(pulls)}")
        return pulls.astype(np.int64)

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        found = self._step("guess", lambda: self._run.guess)
        if found is None:
            return None
        n_arms, dim = self._settings.n_arms, self._settings.dim
        try:
            labels, centers = (np.array(part) for part in found)
        except (TypeError, ValueError):
            raise self._broken(f"gave a guess that is not labels and centers: {short(found)}") from None
        n_clusters = self._settings.n_clusters or len(np.atleast_1d(centers))
        inside = labels.dtype.kind in "iu" and bool(((labels >= 0) & (labels < n_clusters)).all())
        if labels.shape != (n_arms,) or not inside:
            raise self._broken(f"gave labels that are not {n_arms} numbers from 0 to {n_clusters - 1}: {short(labels)}")
        if centers.shape != (n_clusters, dim) or centers.dtype.kind not in "iuf":
            raise self._broken(f"gave centers that are not {n_clusters} rows of {dim} numbers: {short(centers)}")
        return labels.astype(np.int64), centers.astype(np.float64)

    def ask(self) -> Pull | None:
        found = self._step("ask", self._run.ask)
        if found is None:
            if not self.done:
                raise self._broken("asked for no arm, though it is not done")
            return None
        pull = found if isinstance(found, tuple) else Pull(found)
        if len(pull) != 2:
            raise self._broken(f"asked for {short(found)}: that is neither an arm nor a coterie.methods.Pull")
        arm, of_round = (self._index(part, f"ask, which gave {short(found)},") for part in pull)
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
        t, pulls = self.t, self._pulls_of(arm)
        self._step("count", lambda: self._run.count(arm, value, of_round, asked))
        if self.t != t + 1:
            raise self._broken(f"was told one result and says that {self.t} counted in all, after {t} before")
        now = self._pulls_of(arm)
        if now != pulls + 1:
            raise self._broken(f"was told a result of arm {arm} and counts {now} of this arm, after {pulls} before")

    def _pulls_of(self, arm: int) -> int:
        """Results of one arm: `pulls` looks at all of them, which takes long for many arms."""
        pulls = self._step("pulls", lambda: self._run.pulls)
        if np.shape(pulls) != (self._settings.n_arms,):
            raise self._broken(f"gave pulls that are not {self._settings.n_arms} counts: {short(pulls)}")
        return self._index(pulls[arm], "pulls")

    def evidence(self) -> Evidence:
        found = self._step("evidence", self._run.evidence)
        if not isinstance(found, Evidence):
            raise self._broken(f"gave evidence that is no coterie.methods.Evidence: {short(found)}")
        return found

    def give_up(self, arm: int, of_round: int) -> None:
        self._step("give_up", lambda: self._run.give_up(arm, of_round))

    def look(self) -> None:
        self._step("look", self._run.look)

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        return self._step("held_up", lambda: self._run.held_up(asks))

    def new_decisions(self) -> list[Decision]:
        found = self._step("new_decisions", self._run.new_decisions)
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self._broken(f"gave decisions that are no list of dictionaries: {short(found)}")
        return found

    def open_recorded(self, arm: int, of_round: int) -> None:
        self._step("open_recorded", lambda: self._run.open_recorded(arm, of_round))

    def apply_decision(self, decision: Decision) -> None:
        self._step("apply_decision", lambda: self._run.apply_decision(dict(decision)))

    def follow(self, record: Record) -> Followed:
        if type(self._run).follow is MethodRun.follow:
            return super().follow(record)  # by the checked steps
        return self._step("follow", lambda: self._run.follow(record))

    def apply(self, record: Record) -> None:
        if type(self._run).apply is MethodRun.apply:
            super().apply(record)
        else:
            self._step("apply", lambda: self._run.apply(record))

    def memory(self) -> dict[str, Any] | None:
        return self._step("memory", self._run.memory)

    @property
    def memory_bytes(self) -> int:
        return self._step("memory_bytes", lambda: self._run.memory_bytes)

    def restore(self, memory: Mapping[str, Any]) -> None:
        self._step("restore", lambda: self._run.restore(memory))

    @property
    def alarm(self) -> tuple[int, ...] | None:
        return self._step("alarm", lambda: self._run.alarm)

    def is_right(self, instance: Instance) -> bool:
        return bool(self._step("is_right", lambda: self._run.is_right(instance)))

    @property
    def references(self) -> tuple[int, ...] | None:
        found = self._step("references", lambda: self._run.references)
        return None if found is None else tuple(self._index(arm, "references") for arm in found)

    @property
    def borders(self) -> Mapping[int, Sequence[int]]:
        return self._step("borders", lambda: self._run.borders)

    def standing(self) -> Standing | None:
        return self._step("standing", self._run.standing)

    def forecast(self) -> float | None:
        return self._step("forecast", self._run.forecast)

    def cost_left(self) -> float | None:
        return self._step("cost_left", self._run.cost_left)

    def resolution_for(self, budget: int) -> float | None:
        return self._step("resolution_for", lambda: self._run.resolution_for(budget))

    def choose_resolution(self, resolution: Resolution) -> None:
        self._step("choose_resolution", lambda: self._run.choose_resolution(resolution))

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        return self._step("certificate", lambda: self._run.certificate(decisions))


def checked_stops(plan: Plan, found: Any) -> dict[str, Stops]:
    """What a loop of trials gave, if it is what the plan asked for; `MethodError` if not."""
    wanted = set(plan.trial_thresholds)
    if not isinstance(found, dict) or set(found) != wanted:
        names = ", ".join(sorted(wanted))
        raise MethodError(plan.method, f"gave no stops of a trial for {names}: {short(found)}")
    for threshold, stops in found.items():
        times, correct = (np.asarray(getattr(stops, part, None)) for part in ("times", "correct"))
        shape = (len(plan.deltas),)
        if times.shape != shape or correct.shape != shape or times.dtype.kind != "i" or correct.dtype.kind != "b":
            text = f"gave stops of a trial for {threshold} that are not {shape[0]} times and whether each was right"
            raise MethodError(plan.method, f"{text}: {short(stops)}")
    return found
