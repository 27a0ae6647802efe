"""How much anybody may send, and how often: rates, the size of a body, connections and the time that they take.

uvicorn with httptools limits no connections, heads or times. What it knows of a connection is in its protocol, so these
limits are there: `LimitedProtocol` is uvicorn's protocol with a clock. Requests that are being answered are not its
business.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, cast

from starlette.types import Message, Receive, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coterie.web.answers import Refusal, error_view, to_json

_CALLERS_KEPT = 10_000

LONGEST_HEAD = 32 * 1024
"""Bytes of a request's first line and headers."""

HEAD_SECONDS = 15.0

BODY_SECONDS = 20.0
"""For a body to begin; from then on it must come at the rate below, on average."""

SLOWEST_BODY = 16 * 1024
"""Bytes a second."""

MOST_CONNECTIONS = 1000

MOST_PER_ADDRESS = 200

_REASONS = {408: "Request Timeout", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}


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


@dataclass
class Connections:
    """All connections of a server. `proxies` bring everybody's requests: only the number in all limits them."""

    most: int = MOST_CONNECTIONS
    most_per_address: int = MOST_PER_ADDRESS
    proxies: Collection[str] = ()
    open: dict[LimitedProtocol, str] = field(default_factory=dict)  # with its address, oldest first
    by_address: Counter[str] = field(default_factory=Counter)

    def enter(self, connection: LimitedProtocol, address: str) -> bool:
        """Whether there is room. If there is none, whoever has said nothing for longest has to leave."""
        fits = address in self.proxies or self.by_address[address] < self.most_per_address
        if not (fits or self._make_room(address)):
            return False
        if len(self.open) >= self.most and not self._make_room(None):
            return False
        self.open[connection] = address
        self.by_address[address] += 1
        return True

    def leave(self, connection: LimitedProtocol) -> None:
        """It is closed."""
        address = self.open.pop(connection, None)
        if address is not None:
            self.by_address[address] -= 1
            if self.by_address[address] <= 0:
                del self.by_address[address]

    def _make_room(self, address: str | None) -> bool:
        waiting = [connection for connection, at in self.open.items() if address in (None, at) and connection.waits]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda connection: connection.since)
        self.leave(oldest)
        oldest.transport.abort()
        return True


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits. `limits` is set in a subclass for each server (`limited`)."""

    limits: Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or turn it away."""
        super().connection_made(transport)
        self.since = time.monotonic()
        self._head = 0  # bytes of a head that is not complete
        self._body = 0  # bytes since the last head was complete
        self._timer: asyncio.TimerHandle | None = None
        if not self.limits.enter(self, self.client[0] if self.client else "?"):
            self._turn_away(503, "too_many_connections", "too many connections: try again later")
            return
        self._set_timer(HEAD_SECONDS)

    @property
    def waits(self) -> bool:
        """Whether nobody works for it: there is no complete request that has not been answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def _in_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Some bytes: at most so many of a head that is not complete."""
        left = memoryview(data)
        while left and not self.transport.is_closing():
            before = self.cycle
            if self._in_body:
                self._body += len(left)
                super().data_received(bytes(left))
                break
            if self._head == 0:
                self.since = time.monotonic()
                self._set_timer(HEAD_SECONDS)
            part, left = left[: LONGEST_HEAD - self._head], left[LONGEST_HEAD - self._head :]
            self._head += len(part)
            super().data_received(bytes(part))
            if self.cycle is not before:
                self._head, self._body, self.since = 0, 0, time.monotonic()
            elif self._head >= LONGEST_HEAD:
                message = f"the address and the headers of a request have at most {LONGEST_HEAD} bytes"
                self._turn_away(431, "head_too_large", message)
        if self._in_body:
            self._set_timer(BODY_SECONDS + self._body / SLOWEST_BODY - (time.monotonic() - self.since))
        elif self._head == 0:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self._stop_timer()
        self.limits.leave(self)
        super().connection_lost(exc)

    def _set_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(max(0.0, seconds), self._too_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        self._timer = None
        if self._in_body or self._head:
            self._turn_away(408, "too_slow", "the request took too long to arrive")
        else:
            self.transport.close()

    def _turn_away(self, status: int, code: str, message: str) -> None:
        """Answer, if no answer has begun, and close."""
        if self.transport.is_closing():
            return
        if self.waits or not self.cycle.response_started:
            body = to_json(error_view(code, message))
            head = (
                f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()


def limited(limits: Connections) -> type[LimitedProtocol]:
    """The protocol of a server with these limits."""
    protocol: Any = type("LimitedProtocol", (LimitedProtocol,), {"limits": limits})
    return cast(type[LimitedProtocol], protocol)
