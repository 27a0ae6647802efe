"""`cluster`: a session run to its end with a function that measures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_count, check_real_array, short
from coterie.problem.instance import Instance
from coterie.problem.noise import Noise
from coterie.problem.settings import DELTA, FIELDS, METHOD, FurtherOptions, Settings
from coterie.session import verdicts
from coterie.session.remarks import Alarm, Homogeneity
from coterie.session.session import Session

ON_ALARM = ("stop", "continue")


@dataclass(frozen=True, repr=False)
class Result:
    """What `cluster` found. If the budget or an alarm came first, `done` is False and labels and centers are a guess.

    `alarm` says that there are more groups than n_clusters, `homogeneity` (if `done`) whether each group looks like
    one: see `Session`. A proof is for exactly n_clusters groups, so read both before you believe it.
    """

    labels: IntArray | None
    centers: FloatArray | None
    pulls: IntArray
    t: int
    done: bool
    session: Session
    alarm: Alarm | None = None
    homogeneity: Homogeneity | None = None

    def __repr__(self) -> str:
        if self.labels is None:
            return f"<Result after {self.t} measurements: no groups yet>"
        how = "not proven, the groups are a guess" if self.alarm is None else "not proven, and K is refuted"
        if self.done:
            how = verdicts.proof_of(self.session)
        head = f"Result after {self.t} measurements: {how}, labels {short(self.labels.tolist())}"
        return verdicts.described(head, self.alarm, self.homogeneity)


def cluster(
    measure: Callable[[int], Any],
    n_arms: int,
    n_clusters: int,
    delta: float = DELTA,
    method: str = METHOD,
    budget: int | None = None,
    progress: bool = True,
    *,
    session: Session | None = None,
    on_alarm: str = "stop",
    **options: Unpack[FurtherOptions],
) -> Result:
    """Call `measure(arm)` until the groups are proven (error probability at most delta), an alarm, or the budget's end.

    `measure` gets an arm, 0 … n_arms − 1, and returns one measurement of it; the dimension is that of the first, unless
    the noise has one. `budget`: so many measurements at most, those of `session` included; a warning says when it ends
    first. `progress`: a line on the terminal says how far it is. The other settings (`threshold`,
    `noise`, `distance_ratio`, `instance`, `names`) are those of `Session`.

    An alarm says that there are more than n_clusters groups (`Session.alarm`): it ends the call with a warning, and
    what it saw is in `result.alarm`. With `on_alarm="continue"` the call goes on for the n_clusters given, and says so
    at its end. A warning also says if the groups are proven but one looks mixed (`result.homogeneity`).

    Nothing measured is lost. Whatever `measure` raises, Ctrl-C too, the error about a value that is no measurement, and
    the warning where warnings are errors have an attribute `session`: the same call with `session=error.session` goes
    on as if nothing had happened, with the item that failed. The proof assumes that failures have nothing to do with
    the values. `session` may also be one of your own, with the settings of the call.
    """
    if not callable(measure):
        raise TypeError(f"measure must be a function of the arm, got {short(measure)}")
    limit = None if budget is None else check_count(budget, "budget", 1)
    if on_alarm not in ON_ALARM:
        raise ValueError(f"on_alarm must be one of {', '.join(map(repr, ON_ALARM))}, got {short(on_alarm)}")
    stops = on_alarm == "stop"

    def started(dim: int) -> Session:
        return Session.of(Settings.of(n_arms, n_clusters, dim, delta, method, **options))

    # A measurement costs: all settings are checked before the first one.
    if session is None:
        known, instance = _dim_of(options.get("noise")), options.get("instance")
        fresh = started(known or (instance.dim if isinstance(instance, Instance) else 1))
        session = fresh if known else None
    else:
        fresh = _agreeing(session, started)
    run = _Run(measure, started, session, fresh.names)
    with _Progress(progress) as show:
        try:
            found = run.step() if session is None else session
            while not found.done and not (stops and found.alarm) and (limit is None or run.count < limit):
                found = run.step()
                show(found)
            result = Result(
                found.labels, found.centers, found.pulls, found.t, found.done, found, found.alarm, found.homogeneity
            )
        except BaseException as error:
            run.keep(error)
            raise
    warning = _warning(result, limit, stops)
    if warning is not None:
        try:
            warnings.warn(warning, stacklevel=2)
        except Warning as error:  # where warnings are errors there is no result
            run.keep(error)
            raise
    return result


def _warning(result: Result, limit: int | None, stops: bool) -> str | None:
    """What must not be missed: that there is no proof, or that the data contradict what it is for."""
    alarm, k = result.alarm, result.session.n_clusters
    if result.done:
        if alarm is not None:
            return f"{result.session.verdict}: {alarm}"
        if not result.homogeneity:
            return f"{result.session.verdict} if there are exactly {k} groups, but {result.homogeneity}"
        return None
    guess = "there are no groups yet" if result.labels is None else "the groups are a guess"
    if alarm is None:
        return f"the budget of {limit} measurements ended before the proof: {guess}; go on with session=result.session"
    if stops:
        return (
            f"an alarm ended the run after {result.t} measurements, without a proof: {guess}. {alarm} "
            f"(on_alarm='continue' with session=result.session would measure on for the K = {k} that is refuted.)"
        )
    return f"the budget of {limit} measurements ended before the proof, after an alarm: {guess}. {alarm}"


class _Run:
    """One measurement after the other. What was measured can be had back at any moment."""

    def __init__(
        self,
        measure: Callable[[int], Any],
        started: Callable[[int], Session],
        session: Session | None,
        names: Sequence[str] | None,
    ) -> None:
        self._measure, self._started, self._names = measure, started, names
        self.session = session
        self._before = None if session is None else session.to_dict()  # as it was when this call began
        self._first = self.count
        self._told: list[tuple[int, FloatArray]] = []  # since then
        self._arm: int | None = None  # being measured
        self._changing = False  # an interrupt now may leave the session half changed

    @property
    def count(self) -> int:
        """Measurements on record."""
        return 0 if self.session is None else self.session.n_measurements

    def step(self) -> Session:
        """Ask, measure, tell. Asks that are still open come first, the oldest of them first."""
        session = self.session
        ticket: int | None = None
        if session is None:
            self._arm = 0
        else:
            self._changing = True
            if not session.pending:
                session.open(1)
            self._changing = False
            if not session.pending:  # looking for the next arm has proven the groups
                return session
            ticket, self._arm = session.pending[0]
        given = self._measure(self._arm)
        try:
            x = _checked(given, None if session is None else session.dim)
            self._changing = True
            self._told.append((self._arm, x))
            if session is None:
                session = self._started(x.size)
                session.open(1)
            session.check_results([self._arm], x[None])
        except (ValueError, TypeError) as error:
            del self._told[self.count - self._first :]
            self._changing = False
            raise type(error)(f"{self._item}: {error}") from None
        self.session, arm, self._arm = session, self._arm, None
        session.tell(arm, x, ticket)
        self._changing = False
        return session

    @property
    def _item(self) -> str:
        assert self._arm is not None
        return f"item {self._arm}" if self._names is None else f"item {self._arm} ({self._names[self._arm]})"

    def keep(self, error: BaseException) -> None:
        """Attach what was measured to an error, and say so."""
        if self._changing:
            self._restore()
        error.session = self.session  # type: ignore[attr-defined]
        here = "" if self._arm is None else f"at {self._item}; "
        if self.count == 0:
            error.add_note(f"coterie: {here}nothing had been measured before")
            return
        kept = "1 measurement is" if self.count == 1 else f"{self.count} measurements are"
        error.add_note(
            f"coterie: {here}{kept} kept in the attribute session of this exception: go on with the same call of "
            "cluster and session=error.session"
        )

    def _restore(self) -> None:
        """The session again, from what was measured: the interrupt may have come half-way through a change."""
        if self._before is not None:
            session = Session.from_dict(self._before)
        elif self._told:
            session = self._started(self._told[0][1].size)
        else:
            return
        for arm, x in self._told:
            if all(arm != its for _, its in session.pending):
                session.open(1)
            session.tell(arm, x)
        self.session = session


def _checked(given: Any, dim: int | None) -> FloatArray:
    """What `measure` returned as a (d,) array."""
    x = np.atleast_1d(check_real_array(given, "a measurement"))
    if x.size == 0:
        raise ValueError(f"a measurement must hold at least one number, got {short(given)}")
    wanted = x.size if dim is None else dim
    if x.shape != (wanted,):
        raise ValueError(f"a measurement must have shape ({wanted},), got shape {x.shape}: {short(given)}")
    return x


def _dim_of(noise: Any) -> int | None:
    """The dimension that a noise is for, if it is for one."""
    if isinstance(noise, Noise):
        return noise.dim
    shape = () if noise is None else check_real_array(noise, "noise").shape
    return max(1, shape[0]) if shape else None


def _agreeing(session: Any, started: Callable[[int], Session]) -> Session:
    """A session at its beginning with the settings of the call, which must be those of the session that goes on."""
    if not isinstance(session, Session):
        raise TypeError(f"session must be a coterie.Session, got {short(session)}")
    fresh = started(session.dim)
    for name in FIELDS:
        wanted, its = getattr(fresh, name), getattr(session, name)
        if wanted != its and not (name == "names" and wanted is None):
            raise ValueError(
                f"session was started with {name}={short(its)}, this call says {short(wanted)}: give the same settings"
            )
    return session


class _Progress:
    """A line on the terminal that follows a session; silent where there is no terminal."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._status: Any = None
        self._next = 0

    def __enter__(self) -> _Progress:
        if self._wanted:
            from rich.console import Console

            console = Console(stderr=True)
            if console.is_terminal:
                self._status = console.status("measuring …")
                self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, session: Session) -> None:
        if self._status is None or session.t < self._next:
            return
        self._next = session.t + max(1, session.t // 100)
        now = session.evidence
        self._status.update(f"{session.t} measurements, evidence {now.statistic:.1f} of {now.threshold:.1f}")
