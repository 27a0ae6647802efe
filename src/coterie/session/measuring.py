"""One call of `cluster` at work: ask, measure, tell, and what was measured can be had back at any moment."""

from __future__ import annotations

import inspect
import queue
import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, check_real_array, short
from coterie.session.conversation import Ticket
from coterie.session.session import Session

if TYPE_CHECKING:
    import asyncio


class Readings:
    """The function that measures, called with the items that people know, and what it calls the numbers."""

    def __init__(self, measure: Callable[..., Any], items: Sequence[Any] | None, names: Sequence[str] | None) -> None:
        self._measure, self._items = measure, names if items is None else items
        self.by_name = items is None and names is not None
        self.by_block = _takes_block(measure)
        self._labels: list[Any] | None = None  # of the first Series

    def __call__(self, arm: int, block: str | None = None) -> Any:
        item = arm if self._items is None else self._items[arm]
        return self._measure(item, block=block) if self.by_block and block is not None else self._measure(item)

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


def _takes_block(measure: Any) -> bool:
    """Whether a function wants to know the block that it measures in: it has a parameter of that name."""
    try:
        return "block" in inspect.signature(measure).parameters
    except (TypeError, ValueError):
        return False


class Run:
    """Asks and results of one call. `session` is None until the first result has shown how many numbers one has.

    `room`: of a block, where there are blocks. They are called "block 1", "block 2", and so on.
    """

    def __init__(
        self,
        measure: Readings,
        started: Callable[[int], Session],
        session: Session | None,
        names: Sequence[str] | None,
        called: str = "cluster",
        room: int | None = None,
    ) -> None:
        self._room = room
        self.measure, self._started, self._names, self._called = measure, started, names, called
        self.session = session
        self._before = None if session is None else session.to_dict()  # as it was when this call began
        # What was done since then: None for an ask, or a result with its arm and its ticket.
        self._done: list[tuple[int, FloatArray, int | None] | None] = []
        self._arm: int | None = None  # being measured, or the one at which something went wrong
        self._changing = False  # an interrupt now may leave the session half changed

    @property
    def count(self) -> int:
        """Measurements on record."""
        return 0 if self.session is None else self.session.n_measurements

    def step(self) -> Session:
        """Ask, measure, tell. Asks that are still open come first, the oldest of them first."""
        ticket, arm = self.next_ask() or (None, None)
        if arm is None:  # looking for the next arm has proven the groups
            assert self.session is not None
            return self.session
        self._arm = arm
        return self.take(arm, self.measured(arm, ticket), ticket)

    def measured(self, arm: int, ticket: int | None) -> Any:
        """What `measure` returns for an ask."""
        if self.session is None or ticket is None:
            return self.measure(arm, None if self._room is None else _block(1))
        return self.measure(arm, self.session.block_of(ticket))

    def _open(self, session: Session) -> list[Ticket]:
        """The next ask: in blocks, of the block at hand, or of the next one if nothing of use fits into it."""
        if self._room is None:
            return session.open(1)
        number = max(1, len(session.open_blocks))
        while True:
            taken = session.asked_in(_block(number))
            if taken <= self._room - 2 or session.planned:
                opened = session.open_in_block(None, _block(number), room=max(2, self._room - taken))
                if opened or session.done:
                    return opened
            number += 1

    def next_ask(self, under_way: Collection[int | None] = ()) -> tuple[int | None, int] | None:
        """The ticket and the arm to measure next: the oldest open ask that is not under way, or a new one.

        None if there is none, because the groups are proven.
        """
        session = self.session
        if session is None:
            return None, 0
        free = next((ask for ask in session.pending if ask[0] not in under_way), None)
        if free is None:
            self._changing = True
            self._done.append(None)
            opened = self._open(session)
            if not opened:
                self._done.pop()
            self._changing = False
            free = next(((ticket.number, ticket.arm) for ticket in opened), None)
        return free

    def take(self, arm: int, given: Any, ticket: int | None) -> Session:
        """What `measure` returned for an arm; an error names the item if it is no measurement."""
        self._arm, session, known = arm, self.session, len(self._done)
        ticket = 0 if session is None else ticket
        try:
            x = checked(self.measure.aligned(given), None if session is None else session.dim)
            self._changing = True
            self._done.append((arm, x, ticket))
            if session is None:
                session = self._started(x.size)
                self._open(session)
            session.check_results([arm], x[None])
        except (ValueError, TypeError) as error:
            del self._done[known:]
            self._changing = False
            raise type(error)(f"{self._item}: {error}") from None
        self.session, self._arm = session, None
        session.tell(arm, x, ticket)
        self._changing = False
        return session

    def failed_at(self, arm: int) -> None:
        """Measuring this arm went wrong."""
        self._arm = arm

    @property
    def _item(self) -> str:
        assert self._arm is not None
        return f"item {self._arm}" if self._names is None else f"item {self._arm} ({self._names[self._arm]})"

    def mend(self) -> None:
        """After an interrupt: the session is whole, whatever it was at."""
        if self._changing:
            self._restore()
            self._changing = False

    def keep(self, error: BaseException) -> None:
        """Attach what was measured to an error, and say so."""
        self.mend()
        error.session = self.session  # type: ignore[attr-defined]
        here = "" if self._arm is None else f"at {self._item}; "
        if self.count == 0:
            error.add_note(f"coterie: {here}nothing had been measured before")
            if self.measure.by_name and self._arm is not None:
                called = f"measure was called with a name, {short(self._names and self._names[self._arm])}"
                error.add_note(f"coterie: {called}, because names were given; without names it gets the item's number")
            return
        kept = "1 measurement is" if self.count == 1 else f"{self.count} measurements are"
        error.add_note(
            f"coterie: {here}{kept} kept in the attribute session of this exception: go on with the same call of "
            f"{self._called} and session=error.session (after an error that nobody caught, in a notebook say: import "
            "sys, and session=sys.last_value.session)"
        )

    def _restore(self) -> None:
        """The session again, from what was done: the interrupt may have come half-way through a change."""
        results = [step for step in self._done if step is not None]
        if self._before is not None:
            session = Session.from_dict(self._before)
        elif results:
            session = self._started(results[0][1].size)
            self._open(session)
        else:
            return
        for step in self._done:
            if step is None:
                self._open(session)
            else:
                session.tell(*step)
        self.session = session


def _block(number: int) -> str:
    return f"block {number}"


def checked(given: Any, dim: int | None) -> FloatArray:
    """What `measure` returned as a (d,) array."""
    if inspect.isawaitable(given):
        if inspect.iscoroutine(given):
            given.close()
        raise TypeError(f"measure is an async function: {USE_ACLUSTER}")
    x = np.atleast_1d(check_real_array(given, "a measurement", booleans=True))
    if x.size == 0:
        raise ValueError(f"a measurement must hold at least one number, got {short(given)}")
    wanted = x.size if dim is None else dim
    if x.shape != (wanted,):
        raise ValueError(f"a measurement must have shape ({wanted},), got shape {x.shape}: {short(given)}")
    return x


USE_ACLUSTER = "write `await coterie.acluster(measure, …)` with the same arguments, where cluster cannot wait for it"


# Several measurements at once: by threads for cluster, by tasks for acluster.
#
# Only the thread, or the task, that called it asks and tells; the others measure. Results are told in the order in
# which they come, each with the ticket of its ask.


LOOK = 0.1
"""Seconds between two looks at whether Ctrl-C was pressed: some systems do not wake up whoever waits longer."""


class _Ask(NamedTuple):
    ticket: int | None
    arm: int


class _Came(NamedTuple):
    """What came of an ask: what `measure` returned, or raised."""

    ask: _Ask
    given: Any
    raised: BaseException | None


class _Crew:
    """Asks that are under way. `limit`: measurements at most, those under way included."""

    def __init__(self, run: Run, workers: int, limit: int | None) -> None:
        self._run, self._workers, self._limit = run, workers, limit
        self._under_way: dict[int | None, _Ask] = {}
        self._failed: _Came | None = None  # the first that failed
        self._failures = 0

    def _next(self) -> _Ask | None:
        """Another ask to be measured now; None if all workers have one, or there is none to be had."""
        run, busy = self._run, len(self._under_way)
        # The first result says how many numbers a measurement has: it is waited for alone.
        most = 1 if run.session is None else self._workers
        if busy >= most or (self._limit is not None and run.count + busy >= self._limit):
            return None
        opened = run.next_ask(self._under_way)
        if opened is None:
            return None
        ask = _Ask(*opened)
        self._under_way[ask.ticket] = ask
        return ask

    def _tell(self, came: _Came) -> Session | None:
        """A result has come; one that failed is remembered, and its ask stays open. Interrupts are raised at once."""
        del self._under_way[came.ask.ticket]
        try:
            if came.raised is not None:
                self._run.failed_at(came.ask.arm)
                raise came.raised
            return self._run.take(came.ask.arm, came.given, came.ask.ticket)
        except Exception as error:
            self._failures += 1
            if self._failed is None:
                self._failed = _Came(came.ask, None, error)
            return self._run.session

    def _raise(self) -> None:
        """What was raised first, if anything was; the others have been waited for. Once `done` nothing is missing."""
        if self._failed is not None and not (self._run.session and self._run.session.done):
            assert self._failed.raised is not None
            self._run.failed_at(self._failed.ask.arm)
            more = self._failures - 1
            if more:
                text = "1 more measurement" if more == 1 else f"{more} more measurements"
                self._failed.raised.add_note(f"coterie: {text} failed meanwhile, and will be asked for again too")
            raise self._failed.raised


class Threads(_Crew):
    """`measure` is called in threads of this process. They are gone when the process ends, even if one is stuck."""

    def __init__(self, run: Run, workers: int, limit: int | None) -> None:
        super().__init__(run, workers, limit)
        self._asks: queue.SimpleQueue[_Ask | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[_Came] = queue.SimpleQueue()
        self._started = 0

    def _measure(self) -> None:
        while (ask := self._asks.get()) is not None:
            given, raised = None, None
            try:
                given = self._run.measured(ask.arm, ask.ticket)
            except BaseException as error:
                raised = error
            self._results.put(_Came(ask, given, raised))

    def step(self) -> Session:
        """Give every worker something to do, then tell the next result that comes."""
        while (ask := self._next()) is not None:
            if self._started < len(self._under_way):
                threading.Thread(target=self._measure, name="coterie-measure", daemon=True).start()
                self._started += 1
            self._asks.put(ask)
        session = self._tell(self._wait()) if self._under_way else self._run.session
        if self._failed is not None:
            self.finish()
        assert session is not None
        return session

    def _wait(self) -> _Came:
        while True:
            try:
                return self._results.get(timeout=LOOK)
            except queue.Empty:
                continue

    def finish(self) -> None:
        """Wait for all that is under way and tell it; then raise what was raised first, if anything was."""
        while self._under_way:
            self._tell(self._wait())
        self._raise()

    def leave(self) -> None:
        """Let the threads end after what they are at, and tell what has come by now: somebody has interrupted."""
        for _ in range(self._started):
            self._asks.put(None)
        while not self._results.empty():
            came = self._results.get()
            if came.raised is None:
                self._tell(came)


class Tasks(_Crew):
    """`measure` is awaited in tasks of the running event loop."""

    def __init__(self, run: Run, workers: int, limit: int | None) -> None:
        import asyncio  # here: it takes a while to load

        super().__init__(run, workers, limit)
        self._results: asyncio.Queue[_Came] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def _measure(self, ask: _Ask) -> None:
        given, raised = None, None
        try:
            given = self._run.measured(ask.arm, ask.ticket)
            if not inspect.isawaitable(given):
                raise TypeError(
                    "measure is no async function, and acluster awaits what it returns: write "
                    "coterie.cluster(measure, …, workers=8), which calls it in threads"
                )
            given = await given
        except BaseException as error:  # a cancellation too: `measure` may have raised it itself
            raised = error
        self._results.put_nowait(_Came(ask, given, raised))

    async def step(self) -> Session:
        """Give every worker something to do, then tell the next result that comes."""
        import asyncio

        while (ask := self._next()) is not None:
            task = asyncio.create_task(self._measure(ask), name="coterie-measure")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        session = self._tell(await self._results.get()) if self._under_way else self._run.session
        if self._failed is not None:
            await self.finish()
        assert session is not None
        return session

    async def finish(self) -> None:
        """Wait for all that is under way and tell it; then raise what was raised first, if anything was."""
        while self._under_way:
            self._tell(await self._results.get())
        self._raise()

    async def leave(self) -> None:
        """Cancel the tasks, and tell what has come by now: somebody has interrupted, or cancelled the call."""
        import asyncio

        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while not self._results.empty():
            came = self._results.get_nowait()
            if came.raised is None:
                self._tell(came)
