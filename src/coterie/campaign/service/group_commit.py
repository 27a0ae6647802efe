"""Group commit: requests that arrive together are decided one after the other and put on disk in one transaction.

The first to come serves everybody who has come meanwhile, then hands the lead on. A request is answered after the
commit, never before; one that is refused changes nothing and does not spoil the others. Threads wait for their answer
(`submit`); an event loop leaves its requests here (`post`) and is called back, and a thread of ours leads for them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

LARGEST_GROUP = 64
LONGEST_PAUSE = 0.01
"""Seconds that a group waits, at most, for those who were answered last, who are likely to come back at once; half of
what the last commit took, if that is less. Each group costs the disk a flush, and other processes a look at it."""


@dataclass(eq=False)
class Request:
    """A decision to be made on a campaign: `decide(turn)` gives the answer, or raises and has changed nothing.

    `then` is called with a request that was posted, once it is settled, in the thread that has served it. `patient`: it
    may be sent back to prepare itself, if deciding it now would hold the others up.
    """

    campaign: str
    decide: Callable[[Any], Any]
    patient: bool = False
    then: Callable[[Request], None] | None = None
    answered: bool = False
    answer: Any = None
    error: BaseException | None = None
    leads: bool = False
    wake: threading.Event | None = None  # of one whose thread waits

    def settle(self, answer: Any = None, error: BaseException | None = None) -> None:
        """The answer is final."""
        self.answered, self.answer, self.error = True, answer, error
        if self.wake is not None:
            self.wake.set()
        if self.then is not None:
            self.then(self)


class GroupCommit:
    """Takes requests from any thread; `serve(requests)` settles all that it is given."""

    def __init__(self, serve: Callable[[list[Request]], None]) -> None:
        self.serve = serve
        self._waiting: list[Request] = []
        self._gate = threading.Lock()
        self._arrived = threading.Condition(self._gate)
        self._led = False  # somebody serves, or has been told to
        self._expected = 1  # how many are likely to come: those answered last, and those who waited meanwhile
        self._pause = 0.0
        self._leader: ThreadPoolExecutor | None = None  # for requests that nobody waits for in a thread

    def submit(self, request: Request) -> Any:
        """The answer of a request, once it is on disk."""
        with self._gate:
            request.leads, self._led = not self._led, True
            if not request.leads:
                request.wake = threading.Event()
            self._add(request)
        try:
            if request.wake is not None:
                request.wake.wait()
            while not request.answered:  # it leads
                self._serve_group()
        finally:
            with self._gate:
                if request in self._waiting:  # interrupted
                    self._waiting.remove(request)
                if request.leads:
                    self._hand_on()
        if request.error is not None:
            raise request.error
        return request.answer

    def post(self, request: Request) -> None:
        """Serve a request some time, and call its `then`; it cannot be taken back, whoever waits for it may leave."""
        with self._gate:
            self._add(request)
            if not self._led:
                self._hand_on()

    def _add(self, request: Request) -> None:
        self._waiting.append(request)
        if len(self._waiting) == self._expected:
            self._arrived.notify()

    def _hand_on(self) -> None:
        """Let the oldest that waits lead, if there is one. The gate is held."""
        self._led = bool(self._waiting)
        if not self._led:
            return
        first = self._waiting[0]
        if first.then is None:
            first.leads = True
            if first.wake is not None:
                first.wake.set()
        else:
            if self._leader is None:
                self._leader = ThreadPoolExecutor(1, "coterie-group-commit")
            self._leader.submit(self._lead)

    def _lead(self) -> None:
        """Serve groups until nobody waits, or until a thread is there that can lead."""
        while True:
            self._serve_group()
            with self._gate:
                if not self._waiting or self._waiting[0].then is None:
                    self._hand_on()
                    return

    def _serve_group(self) -> None:
        with self._gate:
            if self._expected > 1:
                self._arrived.wait_for(lambda: len(self._waiting) >= self._expected, self._pause)
            group = self._waiting[:LARGEST_GROUP]
            del self._waiting[:LARGEST_GROUP]
        start = time.monotonic()
        try:
            self.serve(group)
        except BaseException as error:
            for request in group:
                if not request.answered:
                    request.settle(error=error)
            if not isinstance(error, Exception):  # Ctrl-C belongs to this thread too
                raise
        finally:
            self._expected = min(LARGEST_GROUP, len(group) + len(self._waiting))
            self._pause = min(LONGEST_PAUSE, (time.monotonic() - start) / 2)

    def close(self) -> None:
        """Finish what is under way."""
        if self._leader is not None:
            self._leader.shutdown()
