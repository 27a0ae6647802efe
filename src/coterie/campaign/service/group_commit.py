"""Group commit: requests that arrive together are decided one after the other and put on disk in one transaction.

The first to come serves everybody who has come meanwhile, then hands the lead on. A request is answered after the
commit, never before; one that is refused changes nothing and does not spoil the others. Threads wait for their answer
(`submit`); an event loop leaves its requests here (`post`) and is called back, and a thread of ours leads for them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

LARGEST_GROUP = 64
LONGEST_PAUSE = 0.002
"""Seconds that a group waits for others to join, at most; a quarter of what the last commit took, if that is less.
Those who were answered together are likely to come back together, and each group costs the disk a flush."""


@dataclass(eq=False)
class Request:
    """A decision to be made on a campaign: `decide(turn)` gives the answer, or raises and has changed nothing.

    `future` is where the answer of a request that was posted goes. `patient`: it may be sent back to prepare itself, if
    deciding it now would hold the others up.
    """

    campaign: str
    decide: Callable[[Any], Any]
    future: Future[Any] | None = None
    patient: bool = False
    answered: bool = False
    answer: Any = None
    error: BaseException | None = None
    leads: bool = False
    wake: threading.Event = field(default_factory=threading.Event)

    def settle(self, answer: Any = None, error: BaseException | None = None) -> None:
        """The answer is final."""
        self.answered, self.answer, self.error = True, answer, error
        self.wake.set()
        if self.future is not None:
            if error is None:
                self.future.set_result(answer)
            else:
                self.future.set_exception(error)


class GroupCommit:
    """Takes requests from any thread; `serve(requests)` settles all that it is given."""

    def __init__(self, serve: Callable[[list[Request]], None]) -> None:
        self.serve = serve
        self._waiting: list[Request] = []
        self._gate = threading.Lock()
        self._led = False  # somebody serves, or has been told to
        self._crowded = False  # the last group had several: they are likely to come back, so wait for them a moment
        self._pause = 0.0
        self._leader: ThreadPoolExecutor | None = None  # for requests that nobody waits for in a thread

    def submit(self, request: Request) -> Any:
        """The answer of a request, once it is on disk."""
        with self._gate:
            self._waiting.append(request)
            request.leads, self._led = not self._led, True
        try:
            if not request.leads:
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

    def post(self, campaign: str, decide: Callable[[Any], Any], patient: bool = False) -> Future[Any]:
        """The answer of a request, some time; it cannot be taken back, whoever waits for it may leave."""
        request = Request(campaign, decide, Future(), patient)
        assert request.future is not None
        request.future.set_running_or_notify_cancel()
        with self._gate:
            self._waiting.append(request)
            if not self._led:
                self._hand_on()
        return request.future

    def _hand_on(self) -> None:
        """Let the oldest that waits lead, if there is one. The gate is held."""
        self._led = bool(self._waiting)
        if not self._led:
            return
        if self._waiting[0].future is None:
            self._waiting[0].leads = True
            self._waiting[0].wake.set()
        else:
            if self._leader is None:
                self._leader = ThreadPoolExecutor(1, "coterie-group-commit")
            self._leader.submit(self._lead)

    def _lead(self) -> None:
        """Serve groups until nobody waits, or until a thread is there that can lead."""
        while True:
            self._serve_group()
            with self._gate:
                if not self._waiting or self._waiting[0].future is None:
                    self._hand_on()
                    return

    def _serve_group(self) -> None:
        if self._crowded:
            time.sleep(self._pause)
        with self._gate:
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
            self._crowded = len(group) > 1
            self._pause = min(LONGEST_PAUSE, (time.monotonic() - start) / 4)

    def close(self) -> None:
        """Finish what is under way."""
        if self._leader is not None:
            self._leader.shutdown()
