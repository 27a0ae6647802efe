"""Wrong tokens: counted for each address and in all, logged, and slowed down; whoever has a right one is not concerned.

An address has 20 tries, then one a second; beyond that it is not told whether a token is right, unless that token was
used from there before. Where wrong ones come from many addresses at once, each is answered after a pause: that holds up
nobody else, and only so many wait at a time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import quote

from coterie.web.access import Caller
from coterie.web.errors import Refusal
from coterie.web.limits import Rate

PAUSE = 2.0
"""Seconds before the answer to a wrong token, once there are many."""
_MOST_PAUSING = 100
_PROVEN_KEPT = 10_000

log = logging.getLogger("coterie.web")


class FailedLogins:
    """The tries of all addresses."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_address = Rate(1.0, burst=20.0, clock=clock)
        self._overall = Rate(10.0, burst=100.0, clock=clock)
        self._said = Rate(1.0, burst=10.0, clock=clock)  # lines of the log
        self._not_said = 0
        self._proven: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._pausing = 0

    def check(self, address: str, caller: Caller | None, where: str) -> None:
        """Refuse whoever has been guessing; `caller` has the token that was given, None if it is wrong."""
        if caller is not None and (address, caller.token) in self._proven:
            self._proven.move_to_end((address, caller.token))
            return
        if caller is None:
            self._log(address, where)
        self._of_address.check(address, 0.0 if caller is not None else 1.0)
        if caller is None:
            return
        self._proven[address, caller.token] = None
        while len(self._proven) > _PROVEN_KEPT:
            self._proven.popitem(last=False)

    async def pause(self) -> None:
        """Before a wrong token is answered: nothing, unless there are many of them just now."""
        if self._overall.seconds_to_wait("") == 0.0:
            return
        if self._pausing >= _MOST_PAUSING:
            raise Refusal(429, "too_many_requests", "too many wrong tokens just now: try again later", None,
                          {"Retry-After": "10"})  # fmt: skip
        self._pausing += 1
        try:
            await asyncio.sleep(PAUSE)
        finally:
            self._pausing -= 1

    def _log(self, address: str, where: str) -> None:
        if self._said.seconds_to_wait("") > 0.0:
            self._not_said += 1
            return
        more = f" ({self._not_said} others were not logged)" if self._not_said else ""
        self._not_said = 0
        log.warning("wrong token from %s at %s%s", address, quote(where)[:100], more)
