"""What happens in campaigns, as it happens: one look at the store a moment for each campaign that anybody follows.

Looking, rather than being told, also sees what other processes write to the same store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from coterie.campaign import CampaignError, Campaigns, StoreUnavailable
from coterie.web.answers import to_json

HEARTBEAT_SECONDS = 15.0
_PAGE = 500


@dataclass
class _Watch:
    """A campaign that is followed: its newest seq, and who waits for a newer one."""

    seq: int
    followers: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    gone: bool = False
    task: asyncio.Task[None] | None = None


class Live:
    """Streams of events. `close` ends them all."""

    def __init__(self, store: Campaigns, poll_seconds: float = 0.25) -> None:
        self._store, self._poll = store, poll_seconds
        self._watches: dict[str, _Watch] = {}
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End every stream, so that the server can stop."""
        self._closing.set()
        for watch in self._watches.values():
            watch.changed.set()

    async def ready(self, id: str) -> None:
        """Raise what a stream of this campaign would, while there is still a way to say so."""
        await run_in_threadpool(self._store.latest, id)

    async def stream(self, id: str, after: int, brief: bool = False) -> AsyncIterator[bytes]:
        """Server-sent events of everything after the seq `after`."""
        yield b"retry: 2000\n: coterie\n\n"
        watch = await self._follow(id)
        try:
            while not self._closing.is_set() and not watch.gone:
                if watch.seq > after:
                    if brief:
                        after = watch.seq
                        yield _event(after, "changed", {"seq": after})
                        continue
                    try:
                        page = await run_in_threadpool(self._store.events, id, after, _PAGE)
                    except StoreUnavailable:
                        await self._pause(1.0)
                        continue
                    for one in page["events"]:
                        after = one["seq"]
                        yield _event(after, one["kind"], one)
                    if page["events"]:
                        continue
                if not await self._changed(watch):
                    yield b": still here\n\n"
        finally:
            self._leave(id, watch)

    async def _changed(self, watch: _Watch) -> bool:
        try:
            await asyncio.wait_for(watch.changed.wait(), HEARTBEAT_SECONDS)
        except TimeoutError:
            return False
        return True

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _follow(self, id: str) -> _Watch:
        watch = self._watches.get(id)
        if watch is None:
            watch = self._watches[id] = _Watch(0)
            watch.task = asyncio.create_task(self._look(id, watch))
        watch.followers += 1
        return watch

    def _leave(self, id: str, watch: _Watch) -> None:
        watch.followers -= 1
        if watch.followers == 0:
            self._watches.pop(id, None)
            if watch.task is not None:
                watch.task.cancel()

    async def _look(self, id: str, watch: _Watch) -> None:
        while not self._closing.is_set():
            try:
                seq = await run_in_threadpool(self._store.latest, id)
            except StoreUnavailable:
                seq = watch.seq
            except CampaignError:
                watch.gone = True
                seq = watch.seq
            if seq != watch.seq or watch.gone:
                watch.seq = seq
                changed, watch.changed = watch.changed, asyncio.Event()
                changed.set()
            if watch.gone:
                return
            await self._pause(self._poll)


def _event(seq: int, kind: str, content: object) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), to_json(content))
