"""Whether something is being compiled, for how long already and for about how long still: for those who wait.

The compiler itself says when it begins and ends a function (numba's events), and how long it took to write one down.
How long all of them took once is on record here; how fast this processor is, and how much of it the compiler gets, is
seen while it works.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

SECONDS = {"CROC": 6.0, "the engine": 3.0}
"""Seconds of a processor that the first use takes, on a slow one; how fast this one is shows while it works."""
INSTRUCTION_SECONDS = 5e-6
"""Seconds of that processor for each instruction that `coterie.engine.direct` writes; LLVM then takes the most time."""
ENOUGH_INSTRUCTIONS = 5_000
"""So many have to be written before they tell how fast a processor is."""
_OTHER_SECONDS = 5.0  # of what is compiled later, such as a kind of noise
_PAUSE = 1.5  # seconds without a function after which nothing is being compiled
_SAME = 15.0  # seconds between two functions that may belong to one compilation
_FIRST_LOOK = 0.02  # seconds of a processor after which its share of the time is believed
_FASTEST, _SLOWEST = 0.2, 5.0  # processors, beside the one above


@dataclass(frozen=True)
class Compilation:
    """A compilation under way: what is compiled, the seconds since it began, and about how many it takes in all."""

    what: str
    seconds: float
    expected: float


class CompileWatch:
    """Listens to the compiler of this process. `began` and `ended` are called in the thread that compiles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._announced: list[str] = []
        self._what, self._expected = "", 0.0
        self._begun = self._last = 0.0
        self._cpu_begun = self._cpu = 0.0
        self._depth, self._speed = 0, 1.0
        self._elsewhere: list[tuple[str, float]] = []

    def announce(self, what: str) -> None:
        """Say what the next compilation is."""
        with self._lock:
            self._announced.append(what)

    def began(self, now: float, cpu: float) -> None:
        """A function is being compiled from `now` on; functions that it calls, within."""
        with self._lock:
            if self._depth == 0 and (self._begun == 0.0 or now - self._last > _SAME):
                self._what = self._announced.pop(0) if self._announced else "the rest"
                self._expected = SECONDS.get(self._what, _OTHER_SECONDS)
                self._begun, self._cpu_begun, self._cpu, self._speed = now, cpu, 0.0, 1.0
            self._depth += 1
            self._seen(now, cpu)

    def ended(self, now: float, cpu: float) -> None:
        """A function is compiled."""
        with self._lock:
            self._depth = max(0, self._depth - 1)
            self._seen(now, cpu)

    def wrote(self, instructions: int, seconds: float) -> None:
        """So many instructions were written down, in so many seconds of the processor."""
        with self._lock:
            if instructions >= ENOUGH_INSTRUCTIONS:
                self._speed = min(_SLOWEST, max(_FASTEST, seconds / (instructions * INSTRUCTION_SECONDS)))

    def _seen(self, now: float, cpu: float) -> None:
        self._last, self._cpu = now, max(self._cpu, cpu - self._cpu_begun)

    def state(self, now: float) -> Compilation | None:
        """What is being compiled at this time, if anything is."""
        with self._lock:
            if self._elsewhere:
                what, begun = self._elsewhere[-1]
                seconds = now - begun
                return Compilation(what, seconds, max(SECONDS.get(what, _OTHER_SECONDS), seconds + 1.0))
            if self._begun == 0.0 or (self._depth == 0 and now - self._last > _PAUSE):
                return None
            return Compilation(self._what, now - self._begun, self._total())

    def await_elsewhere(self, what: str, begun: float) -> None:
        """Somebody begins to wait for another process, which has been compiling since `begun`."""
        with self._lock:
            self._elsewhere.append((what, begun))

    def got_from_elsewhere(self, what: str, begun: float) -> None:
        """The wait is over."""
        with self._lock:
            self._elsewhere.remove((what, begun))

    def _total(self) -> float:
        """About how many seconds it takes in all, by what is done so far."""
        busy = 1.0 if self._cpu < _FIRST_LOOK else max(1.0, (self._last - self._begun) / self._cpu)
        return self._expected * self._speed * busy


_watch = CompileWatch()
_listening = False


def watch_compilation(what: str) -> None:
    """`what` is about to be compiled in this process: listen to the compiler from now on."""
    global _listening
    _watch.announce(what)
    if not _listening:
        from numba.core import event as untyped

        event: Any = untyped

        class _Listener(event.Listener):  # type: ignore[misc]
            def on_start(self, found: Any) -> None:
                _watch.began(time.monotonic(), time.thread_time())

            def on_end(self, found: Any) -> None:
                _watch.ended(time.monotonic(), time.thread_time())

        event.register("numba:compile", _Listener())
        _listening = True


def note_writing(instructions: int, seconds: float) -> None:
    """A function was written down in this process, as so many instructions, in so many seconds of the processor."""
    _watch.wrote(instructions, seconds)


@contextmanager
def waiting_for(what: str, begun: float) -> Iterator[None]:
    """Within, somebody waits for another process that compiles."""
    _watch.await_elsewhere(what, begun)
    try:
        yield
    finally:
        _watch.got_from_elsewhere(what, begun)


def compilation() -> Compilation | None:
    """What is being compiled in this process now, or waited for; None if nothing is."""
    return _watch.state(time.monotonic())
