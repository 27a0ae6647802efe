"""Group commit: requests that arrive together are decided one after the other and put on disk in one transaction.

The first to come serves everybody who has come meanwhile, then hands the lead on. A request is answered after the
commit, never before; one that is refused changes nothing and does not spoil the others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LARGEST_GROUP = 64
LONGEST_PAUSE = 0.002
"""Seconds that a group waits for others to join, at most; a quarter of what the last commit took, if that is less."""


@dataclass(eq=False)
class Request:
    """A decision to be made on a campaign: `decide(turn)` gives the answer, or raises and has changed nothing."""

    campaign: str
    decide: Callable[[Any], Any]
    answered: bool = False
    answer: Any = None
    error: BaseException | None = None
    leads: bool = False
    wake: threading.Event = field(default_factory=threading.Event)

    def settle(self, answer: Any = None, error: BaseException | None = None) -> None:
        """The answer is final."""
        self.answered, self.answer, self.error = True, answer, error
        self.wake.set()


@dataclass
class Commits:
    """Takes requests from any thread; `serve(requests)` settles all that it is given."""

    serve: Callable[[list[Request]], None]
    _waiting: list[Request] = field(default_factory=list)
    _gate: threading.Lock = field(default_factory=threading.Lock)
    _led: bool = False  # somebody serves, or has been told to
    _crowded: bool = False  # those who were served together are likely to come back together: wait for them a moment
    _pause: float = 0.0

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

    def _hand_on(self) -> None:
        self._led = bool(self._waiting)
        if self._led:
            self._waiting[0].leads = True
            self._waiting[0].wake.set()

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
