"""Several measurements at once: by threads or an executor for `cluster`, by tasks for `acluster`.

Only the thread, or the task, that called it asks and tells; the others measure. Results are told in the order in which
they come, each with the ticket of its ask.
"""

from __future__ import annotations

import inspect
import os
import queue
import threading
import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from coterie.session.measuring import Run
from coterie.session.session import Session

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

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
            self._give(ask)
        session = self._tell(self._wait()) if self._under_way else self._run.session
        if self._failed is not None:
            self.finish()
        assert session is not None
        return session

    def _give(self, ask: _Ask) -> None:
        if self._started < len(self._under_way):
            threading.Thread(target=self._measure, name="coterie-measure", daemon=True).start()
            self._started += 1
        self._asks.put(ask)

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


def is_executor(given: Any) -> bool:
    """Whether calls can be submitted to this, as to those of `concurrent.futures`."""
    return callable(getattr(given, "submit", None))


def places_of(executor: Any) -> int:
    """How many calls an executor makes at once, if it says so; else as many as this machine has processors."""
    count = getattr(executor, "_max_workers", None)  # those of concurrent.futures have it
    client = getattr(executor, "_client", None)  # Dask's has it
    if client is not None and hasattr(client, "nthreads"):
        count = sum(client.nthreads().values())
    return count if isinstance(count, int) and count > 0 else os.cpu_count() or 1


def _measure_apart(token: str, measure: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Measure, somewhere else. No two calls have the same token.

    For Dask calls with the same arguments are the same, and have one result: it would count twice.
    """
    return measure(*given, **named)


class Futures(Threads):
    """`measure` is submitted to an executor: threads, processes or a cluster of somebody else, who ends them."""

    def __init__(self, run: Run, executor: Any, workers: int, limit: int | None) -> None:
        super().__init__(run, workers, limit)
        self._executor = executor
        self._futures: set[Future[Any]] = set()

    def _give(self, ask: _Ask) -> None:
        try:
            token = f"coterie-{uuid.uuid4().hex}"
            future = self._executor.submit(_measure_apart, token, *self._run.call(ask.arm, ask.ticket))
        except Exception as error:  # it takes no calls any more
            self._results.put(_Came(ask, None, error))
            return
        self._futures.add(future)
        future.add_done_callback(partial(self._came, ask))

    def _came(self, ask: _Ask, future: Future[Any]) -> None:
        try:
            came = _Came(ask, future.result(), None)
        except BaseException as error:  # a cancellation too
            came = _Came(ask, None, error)
        self._futures.discard(future)
        self._results.put(came)

    def leave(self) -> None:
        """Call off what has not begun, and tell what has come by now: somebody has interrupted."""
        for future in list(self._futures):
            future.cancel()
        super().leave()


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
