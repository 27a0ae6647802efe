"""`cluster` and `acluster`: a session run to its end with a function that measures."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack

from coterie.problem.checks import check_count, short
from coterie.problem.families import dimension_of
from coterie.problem.instance import Instance
from coterie.problem.question import GROUPS, Resolution
from coterie.problem.settings import DELTA, FIELDS, METHOD, THRESHOLD, FurtherOptions, Settings, blaming, items_of
from coterie.session import verdicts
from coterie.session.forecast import WILD
from coterie.session.measuring import USE_ACLUSTER, Readings, Run
from coterie.session.progress import ProgressLine
from coterie.session.result import Result
from coterie.session.session import Session
from coterie.session.workers import Futures, Tasks, Threads, is_executor, places_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

ON_ALARM = ("stop", "continue")


def cluster(
    measure: Callable[..., Any], n_arms: int | Iterable[Any], n_clusters: int | None = None, delta: float = DELTA,
    method: str = METHOD, budget: int | None = None, progress: bool | Callable[[Session], Any] = True, *,
    workers: int | Executor = 1,
    session: Session | None = None, on_alarm: str = "stop", threshold: str = THRESHOLD, noise: Any = None,
    resolution: Any = None, groups: str = GROUPS[0], distance_ratio: float | None = None,
    instance: Instance | None = None, names: Iterable[str] | None = None, costs: Any = None,
    cost_unit: str | None = None, confirm: float = 0.0, blocks: str | None = None, strict_blocks: bool = False,
    room: int | None = None, features: Any = None, feature_costs: Any = None, panels: Any = None,
    panel_costs: Any = None, holes: str | None = None, deadline: float | None = None,
) -> Result:  # fmt: skip
    """Call `measure(item)` until the groups are proven (wrong with probability at most delta), an alarm, or the budget.

    Parameters
    ----------
    measure : callable
        It gets an item, 0 … n_arms − 1, its name if `names` were given, or itself if items were, and returns one
        measurement of it: a number, a sequence of numbers, or a pandas Series, whose labels must be the same every
        time. The dimension is that of the first, unless the noise has one.
    n_arms : int or iterable
        How many items there are; or the items themselves, such as a list of names or the index of a frame: their text
        is their name.
    n_clusters : int, optional
        How many groups there are. With `resolution` in its place the number of groups is found. As soon as every item
        was measured there is then a forecast of the measurements needed: if it exceeds the budget, a warning says so,
        and which resolution the budget is expected to allow.
    delta, method : float and str
        The error probability allowed, and the method.
    budget : int, optional
        So many measurements at most, those of `session` included; a warning says when it ends first.
    progress : bool or callable
        Whether a line on the terminal, or below the cell of a notebook, says how far it is; or a function that is
        called with the session after every result, such as `coterie.integrations.mlflow.Tracking()`.
    workers : int or executor
        So many measurements at a time: `measure` is then called in as many threads, while this one asks and tells.
        Or an executor as those of `concurrent.futures`, such as Dask's `client.get_executor()`, to which `measure` is
        submitted, as many at a time as it has workers. Results are told as they come, each for its ask. When an error
        ends the call, measurements under way are waited for and kept, when Ctrl-C does they are not. For an async
        function use `acluster`.
    session : Session, optional
        One to go on with: `error.session` of an earlier call, or one of your own with the settings of the call.
    on_alarm : {"stop", "continue"}
        An alarm says that there are more than n_clusters groups (`Session.alarm`): it ends the call with a warning, and
        what it saw is in `result.alarm`; or the call goes on for the n_clusters given, and says so at its end.
    threshold, noise, resolution, groups, distance_ratio, instance, names, costs, cost_unit, confirm, deadline
        Those of `Session`; at the deadline `result.session.handover` has what is proven and the guess.
    blocks, strict_blocks
        Those of `Session`; `room` goes with them.
    room : int, optional
        With `blocks`: so many measurements at most are made in a block, then the next begins; by default, for "drawn",
        one of each item. If `measure` has a parameter `block`, it is told the name, "block 1", "block 2" and so on;
        without one, blocks follow one another, and several workers are refused.
    features, feature_costs, panels, panel_costs, holes
        Those of `Session`: `measure(item, feature)` is then called with the name of a feature or panel too, and returns
        the number, the numbers of the panel in its order, or a dictionary by feature.

    Returns
    -------
    Result
        A warning says if the groups are proven but one looks mixed (`result.homogeneity`).

    Raises
    ------
    Exception
        Whatever `measure` raises, Ctrl-C too, the error about a value that is no measurement, and the warning where
        warnings are errors. Nothing measured is lost: the error has an attribute `session`, and the same call with
        `session=error.session` goes on as if nothing had happened, with the item that failed. The proof assumes that
        failures have nothing to do with the values.

    Examples
    --------
    >>> import coterie, numpy
    >>> rng = numpy.random.default_rng(0)
    >>> def measure(item):
    ...     return 5.0 * (item % 2) + rng.standard_normal()
    >>> result = coterie.cluster(measure, 4, 2, noise=1.0, progress=False)
    >>> result.done, result.groups
    (True, [[0, 2], [1, 3]])
    """
    if is_async(measure):
        raise TypeError(f"measure is an async function: {USE_ACLUSTER}")
    call = _Call(
        "cluster", measure, n_arms, n_clusters, delta, method, budget, workers, session, on_alarm,
        threshold=threshold, noise=noise, resolution=resolution, groups=groups, distance_ratio=distance_ratio,
        instance=instance, names=names, costs=costs, cost_unit=cost_unit, confirm=confirm, blocks=blocks,
        strict_blocks=strict_blocks, room=room, features=features, feature_costs=feature_costs, panels=panels,
        panel_costs=panel_costs, holes=holes, deadline=deadline,
    )  # fmt: skip
    crew: Threads | None = None
    if is_executor(workers):
        crew = Futures(call.run, workers, call.workers, call.limit)
    elif call.workers > 1:
        crew = Threads(call.run, call.workers, call.limit)
    with call.watched(progress):
        try:
            while call.goes_on:
                call.note(call.run.step() if crew is None else crew.step())
            if crew is not None:
                crew.finish()
            result = call.result()
            warning = call.warning(result)
        finally:
            call.run.mend()
            if crew is not None:
                crew.leave()
    call.warn(warning)
    return result


async def acluster(
    measure: Callable[..., Awaitable[Any]], n_arms: int | Iterable[Any], n_clusters: int | None = None,
    delta: float = DELTA, method: str = METHOD, budget: int | None = None,
    progress: bool | Callable[[Session], Any] = True, *, workers: int = 1,
    session: Session | None = None, on_alarm: str = "stop", room: int | None = None,
    **settings: Unpack[FurtherOptions],
) -> Result:  # fmt: skip
    """`cluster` for an async function: `await coterie.acluster(measure, …, workers=8)`.

    Parameters
    ----------
    measure : async callable
        Awaited for `workers` items at a time; results are told as they come, each for its ask. A function that is not
        async is refused: `cluster` calls it in threads.
    n_arms, n_clusters, delta, method, budget, progress, workers, session, on_alarm, room
        Those of `cluster`.
    settings
        `threshold`, `noise` and the others of `Session`.

    Returns
    -------
    Result
        As `cluster` returns it; what an error keeps is the same, too. If the call is cancelled, so are the measurements
        under way: give a `session` of your own to have what was measured before.

    Examples
    --------
    >>> import asyncio, coterie, numpy
    >>> rng = numpy.random.default_rng(0)
    >>> async def measure(item):
    ...     return 5.0 * (item % 2) + rng.standard_normal()
    >>> asyncio.run(coterie.acluster(measure, 4, 2, noise=1.0, workers=2, progress=False)).groups
    [[0, 2], [1, 3]]
    """
    call = _Call(
        "acluster", measure, n_arms, n_clusters, delta, method, budget, workers, session, on_alarm, room=room,
        **settings,
    )  # fmt: skip
    crew = Tasks(call.run, call.workers, call.limit)
    with call.watched(progress):
        try:
            while call.goes_on:
                call.note(await crew.step())
            await crew.finish()
            result = call.result()
            warning = call.warning(result)
        finally:
            call.run.mend()
            await crew.leave()
    call.warn(warning)
    return result


def is_async(measure: Any) -> bool:
    """Whether calling it gives something to be awaited, as far as can be told beforehand."""
    is_async_function = inspect.iscoroutinefunction
    return is_async_function(measure) or (callable(measure) and is_async_function(measure.__call__))


class _Call:
    """One call of `cluster` or `acluster`: all that was given, checked, and when it is over.

    A measurement costs: everything is checked before the first one.
    """

    def __init__(
        self, called: str, measure: Any, n_arms: Any, n_clusters: Any, delta: Any, method: Any, budget: Any,
        workers: Any, session: Session | None, on_alarm: Any, *, names: Any = None,
        room: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        if not callable(measure):
            raise TypeError(f"measure must be a function of the arm, got {short(measure)}")
        self.limit = None if budget is None else check_count(budget, "budget", 1)
        submitted = called == "cluster" and is_executor(workers)
        self.workers = places_of(workers) if submitted else check_count(workers, "workers", 1)
        if on_alarm not in ON_ALARM:
            raise ValueError(f"on_alarm must be one of {', '.join(map(repr, ON_ALARM))}, got {short(on_alarm)}")
        self._stops = on_alarm == "stop"
        items, names = items_of(n_arms, names)

        def started(dim: int) -> Session:
            count = n_arms if items is None else len(items)
            given = dim if options.get("features") is None else None  # there are as many numbers as features
            return Session.of(Settings.of(count, n_clusters, given, delta, method, names=names, **options))

        if session is None:
            with blaming("noise"):
                known = dimension_of(options.get("noise"))
            known = known or _resolved_dimension(options.get("resolution")) or options.get("features") is not None
            instance = options.get("instance")
            fresh = started(known or (instance.dim if isinstance(instance, Instance) else 1))
            session = fresh if known else None
        else:
            fresh = _agreeing(session, started)
        self._readings = Readings(measure, items, None if names is None else fresh.names)
        places = _checked_room(room, fresh, self.workers > 1 and not self._readings.by_block)
        self.run = Run(self._readings, started, session, fresh.names, called, places)
        self._foreseen = self.limit is None
        self._show: ProgressLine | None = None

    @property
    def goes_on(self) -> bool:
        """Whether there is something left to measure."""
        session, limit = self.run.session, self.limit
        if session is None:
            return True
        if session.done or session.out_of_budget or (self._stops and session.alarm):
            return False
        return limit is None or self.run.count < limit

    def note(self, session: Session) -> None:
        """The session has come further."""
        if self._show is not None:
            self._show(session)
        if not self._foreseen and session.forecast is not None:
            self._foreseen = True
            _warn_of_forecast(session, self.limit)

    @contextmanager
    def watched(self, progress: bool | Callable[[Session], Any]) -> Iterator[None]:
        """A line says how far it is; whatever is raised has what was measured."""
        with ProgressLine(progress) as self._show:
            try:
                yield
            except BaseException as error:
                self.run.keep(error)
                raise

    def result(self) -> Result:
        """What was found."""
        session = self.run.session
        assert session is not None
        return Result(
            session.labels, session.centers, session.pulls, session.t, session.done, session, session.alarm,
            session.homogeneity, self._readings.columns,
        )  # fmt: skip

    def warning(self, result: Result) -> str | None:
        """What must not be missed of what was found, if there is anything."""
        return _warning(result, self.limit, self._stops)

    def warn(self, warning: str | None) -> None:
        """Say what must not be missed."""
        if warning is not None:
            try:
                warnings.warn(warning, stacklevel=3)
            except Warning as error:  # where warnings are errors there is no result
                self.run.keep(error)
                raise


def _checked_room(room: Any, session: Session, in_turn: bool) -> int | None:
    """How many measurements a block has room for; None without blocks. `in_turn`: several workers, and none knows."""
    if session.blocks is None:
        if room is not None:
            raise ValueError(f'room={short(room)} is for blocks: give blocks="offset" or blocks="drawn"')
        return None
    if in_turn:
        raise ValueError(
            "with blocks several workers have to know which block each measures in: give measure a parameter block"
        )
    if room is None and session.blocks != "drawn":
        raise ValueError("with blocks give room, how many measurements fit into a block")
    return session.n_arms if room is None else check_count(room, "room", 2)


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
    more = f"about {forecast:.0f} measurements are expected to be needed, more than the budget of {limit}"
    if forecast > WILD * limit:
        more = f"far more measurements than the budget of {limit} are expected to be needed"
    warnings.warn(f"{more}: {instead}", stacklevel=4)


def _warning(result: Result, limit: int | None, stops: bool) -> str | None:
    """What must not be missed: that there is no proof, or that the data contradict what it is for."""
    alarm, k = result.alarm, result.session.n_clusters
    if result.done:
        if alarm is not None:
            return f"{result.session.verdict}: {alarm}"
        if verdicts.looks_mixed(result.session):
            return f"{result.session.verdict}: {result.homogeneity}"
        grave = [str(other) for other in result.session.alarms if not other.harmless]
        return f"{result.session.verdict}, but there are alarms. {' '.join(grave)}" if grave else None
    guess = "there are no groups yet" if result.labels is None else "the groups are a guess"
    if result.session.out_of_budget:
        return f"the deadline ended before the proof: {guess}; result.session.handover has what is proven"
    if alarm is None:
        return f"the budget of {limit} measurements ended before the proof: {guess}; go on with session=result.session"
    if stops:
        return (
            f"an alarm ended the run after {result.t} measurements, without a proof: {guess}. {alarm} "
            f"(on_alarm='continue' with session=result.session would measure on for the K = {k} that is refuted.)"
        )
    return f"the budget of {limit} measurements ended before the proof, after an alarm: {guess}. {alarm}"


def _agreeing(session: Any, started: Callable[[int], Session]) -> Session:
    """A session at its beginning with the settings of the call, which must be those of the session that goes on."""
    if not isinstance(session, Session):
        raise TypeError(f"session must be a coterie.Session, got {short(session)}")
    fresh = started(session.dim)
    for name in FIELDS:
        wanted, present = getattr(fresh, name), getattr(session, name)
        if wanted != present and not (name == "names" and wanted is None):
            differing = f"session was started with {name}={short(present)}, this call says {short(wanted)}"
            raise ValueError(f"{differing}: give the same settings")
    return session
