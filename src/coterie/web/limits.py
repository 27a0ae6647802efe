"""How much one may send and how often: the size of a body, and a token bucket for each caller."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Message, Receive, Scope

from coterie.web.errors import Refusal

_CALLERS_KEPT = 10_000


class Rate:
    """`per_second` requests a second for each caller, twice as many at once after a pause. 0: no limit."""

    def __init__(self, per_second: float, burst: float | None = None, clock: Callable[[], float] = time.monotonic):
        if not (math.isfinite(per_second) and per_second >= 0):
            raise ValueError(f"a rate is a number of requests a second, 0 for no limit; got {per_second!r}")
        self.per_second = per_second
        self.burst = max(1.0, 2 * per_second if burst is None else burst)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, caller: str, cost: float = 1.0) -> float:
        """Take one request out of the caller's bucket: 0.0, or the seconds after which there is one again."""
        if self.per_second == 0:
            return 0.0
        now = self._clock()
        left, then = self._left.get(caller, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.per_second)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self.per_second
        self._left[caller] = (left if wait else left - cost, now)
        self._left.move_to_end(caller)
        while len(self._left) > _CALLERS_KEPT:
            self._left.popitem(last=False)
        return wait

    def check(self, caller: str, cost: float = 1.0) -> None:
        """Refuse a caller whose bucket is empty. `cost` 0: take nothing out."""
        wait = self.seconds_to_wait(caller, cost)
        if wait > 0.0:
            after = str(max(1, math.ceil(wait)))
            raise Refusal(429, "too_many_requests", f"too many requests: try again in {after} s", None,
                          {"Retry-After": after})  # fmt: skip


def declares_body(scope: Scope) -> bool:
    """Whether a request says that it carries a body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")
        for name, value in scope["headers"]
    )


async def read_limited_body(scope: Scope, receive: Receive, most: int) -> Receive:
    """Read a body of at most so many bytes, 0 for none at all; the `receive` that gives it once more."""
    if most == 0 and not declares_body(scope):
        return receive
    if most == 0:
        raise Refusal(413, "no_body", "nothing is sent to this address: leave the body out")
    too_large = Refusal(413, "body_too_large", f"a body may have at most {most} bytes: send it in parts")
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or int(value[:20]) > most):
            raise too_large
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "incomplete_body", "the body ended before its end")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise too_large
        parts.append(part)
        more = message.get("more_body", False)
    content: Message = {"type": "http.request", "body": b"".join(parts), "more_body": False}
    given = False

    async def again() -> Message:
        nonlocal given
        if not given:
            given = True
            return content
        return await receive()

    return again
