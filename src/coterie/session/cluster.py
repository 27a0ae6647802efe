"""`cluster`: a session run to its end with a function that measures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, check_count, check_real_array, short
from coterie.problem.families import dimension_of
from coterie.problem.instance import Instance
from coterie.problem.question import GROUPS, Resolution
from coterie.problem.settings import DELTA, FIELDS, METHOD, THRESHOLD, FurtherOptions, Settings, blaming
from coterie.session import verdicts
from coterie.session.progress_line import ProgressLine
from coterie.session.result import Result
from coterie.session.session import Session

ON_ALARM = ("stop", "continue")


def cluster(
    measure: Callable[[Any], Any],
    n_arms: int | Iterable[Any],
    n_clusters: int | None = None,
    delta: float = DELTA,
    method: str = METHOD,
    budget: int | None = None,
    progress: bool = True,
    *,
    session: Session | None = None,
    on_alarm: str = "stop",
    threshold: str = THRESHOLD,
    noise: Any = None,
    resolution: Any = None,
    groups: str = GROUPS[0],
    distance_ratio: float | None = None,
    instance: Instance | None = None,
    names: Iterable[str] | None = None,
    costs: Any = None,
    cost_unit: str | None = None,
) -> Result:
    """Call `measure(arm)` until the groups are proven (error probability at most delta), an alarm, or the budget's end.

    `measure` gets an arm, 0 … n_arms − 1, and returns one measurement of it: a number, a sequence of numbers, or a
    pandas Series, whose labels must be the same every time. The dimension is that of the first, unless the noise has
    one. With `names` it gets the name of an item. In place of n_arms give the items themselves, such as a list of names
    or the index of a frame: `measure` then gets an item, and its text is its name.

    `budget`: so many measurements at most, those of `session` included; a warning says when it ends first. `progress`:
    a line on the terminal, or below the cell of a notebook, says how far it is. The other settings (`threshold`,
    `noise`, `resolution`, `groups`, `distance_ratio`, `instance`, `names`, `costs`, `cost_unit`) are those of
    `Session`.

    With `resolution` in place of n_clusters the number of groups is found. As soon as every item was measured there is
    a forecast of the measurements needed: if it exceeds the budget, a warning says so, and which resolution the budget
    is expected to allow.

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
    items, names = _items(n_arms, names)
    options: FurtherOptions = {
        "threshold": threshold, "noise": noise, "resolution": resolution, "groups": groups,
        "distance_ratio": distance_ratio, "instance": instance, "names": names, "costs": costs,
        "cost_unit": cost_unit,
    }  # fmt: skip

    def started(dim: int) -> Session:
        return Session.of(
            Settings.of(n_arms if items is None else len(items), n_clusters, dim, delta, method, **options)
        )

    # A measurement costs: all settings are checked before the first one.
    if session is None:
        with blaming("noise"):
            known = dimension_of(noise)
        known = known or _resolved_dimension(resolution)
        fresh = started(known or (instance.dim if isinstance(instance, Instance) else 1))
        session = fresh if known else None
    else:
        fresh = _agreeing(session, started)
    readings = _Readings(measure, items, None if names is None else fresh.names)
    run = _Run(readings, started, session, fresh.names)
    with ProgressLine(progress) as show:
        try:
            found = run.step() if session is None else session
            foreseen = limit is None
            while not found.done and not (stops and found.alarm) and (limit is None or run.count < limit):
                found = run.step()
                show(found)
                if not foreseen and found.forecast is not None:
                    foreseen = True
                    _warn_of_forecast(found, limit)
            result = Result(
                found.labels, found.centers, found.pulls, found.t, found.done, found, found.alarm, found.homogeneity,
                readings.columns,
            )  # fmt: skip
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


def _resolved_dimension(resolution: Any) -> int | None:
    """How many numbers a measurement has under a resolution with one bound for each; None if it has one for all."""
    if resolution is None:
        return None
    with blaming("resolution"):
        asked = Resolution.of(resolution)
    return len(asked.apart) if len(asked.apart) > 1 else None


def _warn_of_forecast(session: Session, limit: int | None) -> None:
    """Say before the budget is spent that it is not expected to be enough, and what it would be enough for."""
    forecast = session.forecast
    if limit is None or forecast is None or forecast <= limit or session.done:
        return
    coarser = session.resolution_for(limit)
    instead = "a coarser resolution needs fewer" if coarser is None else f"it is expected to allow {coarser!r}"
    warnings.warn(
        f"about {forecast:.0f} measurements are expected to be needed, more than the budget of {limit}: {instead}",
        stacklevel=3,
    )


def _warning(result: Result, limit: int | None, stops: bool) -> str | None:
    """What must not be missed: that there is no proof, or that the data contradict what it is for."""
    alarm, k = result.alarm, result.session.n_clusters
    if result.done:
        if alarm is not None:
            return f"{result.session.verdict}: {alarm}"
        if verdicts.looks_mixed(result.session):
            return f"{result.session.verdict}: {result.homogeneity}"
        grave = [str(one) for one in result.session.alarms if not one.harmless]
        return f"{result.session.verdict}, but there are alarms. {' '.join(grave)}" if grave else None
    guess = "there are no groups yet" if result.labels is None else "the groups are a guess"
    if alarm is None:
        return f"the budget of {limit} measurements ended before the proof: {guess}; go on with session=result.session"
    if stops:
        return (
            f"an alarm ended the run after {result.t} measurements, without a proof: {guess}. {alarm} "
            f"(on_alarm='continue' with session=result.session would measure on for the K = {k} that is refuted.)"
        )
    return f"the budget of {limit} measurements ended before the proof, after an alarm: {guess}. {alarm}"


def _items(given: Any, names: Iterable[str] | None) -> tuple[list[Any] | None, Iterable[str] | None]:
    """The items that were given in place of their number, if they were, and the names."""
    if isinstance(given, str) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
        # As a list: they are read more than once.
        return None, list(names) if isinstance(names, Iterable) and not isinstance(names, str) else names
    if names is not None:
        raise ValueError(f"n_arms has the items already, {short(given)}: leave names out")
    items = list(given)
    return items, [str(item) for item in items]


class _Readings:
    """The function that measures, called with the items that people know, and what it calls the numbers."""

    def __init__(self, measure: Callable[[Any], Any], items: Sequence[Any] | None, names: Sequence[str] | None) -> None:
        self._measure, self._items = measure, names if items is None else items
        self.by_name = items is None and names is not None
        self._labels: list[Any] | None = None  # of the first Series

    def __call__(self, arm: int) -> Any:
        return self._measure(arm if self._items is None else self._items[arm])

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the numbers are called, if they came with labels."""
        return None if self._labels is None else tuple(str(label) for label in self._labels)

    def aligned(self, given: Any) -> Any:
        """What was measured; the numbers of a Series in the order of the first one."""
        if not (hasattr(given, "index") and hasattr(given, "to_numpy") and getattr(given, "ndim", 0) == 1):
            return given
        labels = list(given.index)
        if self._labels is None:
            self._labels = labels
        if labels == self._labels:
            return given.to_numpy()
        if len(labels) != len(self._labels) or set(labels) != set(self._labels):
            raise ValueError(
                f"a measurement must have the labels of the first, {short(self._labels)}, got {short(labels)}"
            )
        return given.reindex(self._labels).to_numpy()


class _Run:
    """One measurement after the other. What was measured can be had back at any moment."""

    def __init__(
        self,
        measure: _Readings,
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
            x = _checked(self._measure.aligned(given), None if session is None else session.dim)
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
            if self._measure.by_name and self._arm is not None:
                called = f"measure was called with a name, {short(self._names and self._names[self._arm])}"
                error.add_note(f"coterie: {called}, because names were given; without names it gets the item's number")
            return
        kept = "1 measurement is" if self.count == 1 else f"{self.count} measurements are"
        error.add_note(
            f"coterie: {here}{kept} kept in the attribute session of this exception: go on with the same call of "
            "cluster and session=error.session (after an error that nobody caught, in a notebook say: import sys, "
            "and session=sys.last_value.session)"
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
