"""Server-sent events of what happens in campaigns. The store is polled, once for each campaign that anybody follows.

Polling, rather than being told, also sees what other processes write to the same store.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from coterie.campaign import CampaignError, Campaigns, StoreUnavailable
from coterie.web.answers import Refusal, to_json
from coterie.web.limits import MOST_CONNECTIONS, MOST_PER_ADDRESS

HEARTBEAT_SECONDS = 15.0
_LOOK_SECONDS = 1.0  # how often it is looked whether whoever follows may still do so
_PAGE = 200
_READERS = 2  # streams that read the log at once
_SHARE = 0.75
"""Of the connections, in all and of one address, that may be streams. They never end: the others are for requests."""


@dataclass
class _FollowedCampaign:
    """A campaign that is followed: its newest seq, and who waits for a newer one."""

    seq: int
    followers: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    gone: bool = False
    task: asyncio.Task[None] | None = None


class EventStreams:
    """The streams of events of a store's campaigns. `close` ends them all."""

    def __init__(self, store: Campaigns, poll_seconds: float = 0.25) -> None:
        self._store, self._poll_seconds = store, poll_seconds
        self._followed: dict[str, _FollowedCampaign] = {}
        self._closing = asyncio.Event()
        self._turn = asyncio.Semaphore(_READERS)
        self._by_address: Counter[str] = Counter()
        self.limit(MOST_CONNECTIONS, MOST_PER_ADDRESS)

    def limit(self, connections: int, per_address: int) -> None:
        """How many connections the server takes, in all and from one address."""
        self._most, self._most_per_address = (max(1, int(_SHARE * number)) for number in (connections, per_address))

    def check_room(self, address: str) -> None:
        """Refuse a further stream if those under way hold all the connections that streams may hold."""
        if self._by_address[address] >= self._most_per_address:
            many = f"{self._most_per_address} streams of events go to this address"
        elif self._by_address.total() >= self._most:
            many = f"there are {self._most} streams of events"
        else:
            return
        message = f"{many}, and the other connections are for requests that end: close a stream, or try again later"
        raise Refusal(503, "too_many_streams", message, None, {"Retry-After": "5"})

    def close(self) -> None:
        """End every stream, so that the server can stop."""
        self._closing.set()
        for followed in self._followed.values():
            followed.changed.set()

    async def check_campaign(self, id: str) -> None:
        """Raise the error of a campaign that cannot be followed, while there is still a way to answer with it."""
        await run_in_threadpool(self._store.latest, id)

    async def stream(
        self,
        id: str,
        after: int,
        brief: bool = False,
        allowed: Callable[[], Awaitable[bool]] | None = None,
        address: str = "",
    ) -> AsyncIterator[bytes]:
        """Server-sent events of everything after the seq `after`, as long as they are `allowed`, to an address."""
        self._by_address[address] += 1
        try:
            async with aclosing(self._sent(id, after, brief, allowed)) as every:
                async for sent in every:
                    yield sent
        finally:
            self._by_address[address] -= 1
            if self._by_address[address] <= 0:
                del self._by_address[address]

    async def _sent(
        self, id: str, after: int, brief: bool, allowed: Callable[[], Awaitable[bool]] | None
    ) -> AsyncGenerator[bytes]:
        yield b"retry: 2000\n: coterie\n\n"
        followed = await self._follow(id)
        beat = time.monotonic()
        try:
            while not self._closing.is_set() and not followed.gone and (allowed is None or await allowed()):
                if followed.seq > after:
                    if brief:
                        after = followed.seq
                        yield _event(after, "changed", {"seq": after})
                        continue
                    try:
                        async with self._turn:  # whoever reads a long log does so a page at a time, and others write
                            last, sent = await run_in_threadpool(self._page, id, after)
                    except StoreUnavailable:
                        await self._pause(1.0)
                        continue
                    if last > after:
                        after = last
                        yield sent
                        continue
                if not await self._wait_for_change(followed) and time.monotonic() > beat + HEARTBEAT_SECONDS:
                    beat = time.monotonic()
                    yield b": still here\n\n"
        finally:
            self._leave(id, followed)

    def _page(self, id: str, after: int) -> tuple[int, bytes]:
        """The next events as they are sent, and the seq of the last of them."""
        events = self._store.events(id, after, _PAGE)["events"]
        return (events[-1]["seq"] if events else after), b"".join(
            _event(event["seq"], event["kind"], event) for event in events
        )

    async def _wait_for_change(self, followed: _FollowedCampaign) -> bool:
        try:
            await asyncio.wait_for(followed.changed.wait(), _LOOK_SECONDS)
        except TimeoutError:
            return False
        return True

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _follow(self, id: str) -> _FollowedCampaign:
        followed = self._followed.get(id)
        if followed is None:
            followed = self._followed[id] = _FollowedCampaign(0)
            followed.task = asyncio.create_task(self._poll(id, followed))
        followed.followers += 1
        return followed

    def _leave(self, id: str, followed: _FollowedCampaign) -> None:
        followed.followers -= 1
        if followed.followers == 0:
            self._followed.pop(id, None)
            if followed.task is not None:
                followed.task.cancel()

    async def _poll(self, id: str, followed: _FollowedCampaign) -> None:
        while not self._closing.is_set():
            try:
                seq = await run_in_threadpool(self._store.latest, id)
            except StoreUnavailable:
                seq = followed.seq
            except CampaignError:
                followed.gone = True
                seq = followed.seq
            if seq != followed.seq or followed.gone:
                followed.seq = seq
                changed, followed.changed = followed.changed, asyncio.Event()
                changed.set()
            if followed.gone:
                return
            await self._pause(self._poll_seconds)


def _event(seq: int, kind: str, content: object) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), to_json(content))
