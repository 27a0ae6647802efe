"""A queue of writes: what arrives while one group is put on disk makes up the next.

A thread for each request that calls the store would be committed in groups too; the queue saves waking these threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from coterie.campaign import Campaigns
from coterie.web.json_response import to_json

LARGEST_GROUP = 64
LONGEST_PAUSE = 0.001
"""Seconds that a group smaller than the last one waits for more, at most; a quarter of what that took, if it is less:
clients that were answered together are likely to come back together, and each group costs the disk a flush."""
_READY_KEPT = 32  # as many as the store keeps in memory


class WriteQueue:
    """Writes to a store, put on disk in groups in the order in which they arrive."""

    def __init__(self, store: Campaigns) -> None:
        self._store = store
        self._waiting: list[tuple[tuple[Any, ...], asyncio.Future[bytes]]] = []
        self._serving: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "coterie-write-queue")
        self._ready: dict[str, None] = {}
        self._size, self._took = 0, 0.0  # of the last group: how many, how long

    async def submit(self, name: str, id: str, *arguments: Any) -> Response:
        """The answer of the store's function `name`, once it is on disk."""
        if id not in self._ready:
            # A campaign that is not in memory is replayed first, while the others go on.
            await run_in_threadpool(self._store.status, id)
            self._ready[id] = None
            while len(self._ready) > _READY_KEPT:
                del self._ready[next(iter(self._ready))]
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        self._waiting.append(((name, id, *arguments), answer))
        if self._serving is None:
            self._serving = loop.create_task(self._serve())
        return Response(await answer, media_type="application/json")

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                if self._size > len(self._waiting):
                    await asyncio.sleep(min(LONGEST_PAUSE, self._took / 4))
                start = loop.time()
                group, self._waiting = self._waiting[:LARGEST_GROUP], self._waiting[LARGEST_GROUP:]
                calls = [call for call, _ in group]
                try:
                    found: Sequence[bytes | BaseException] = await loop.run_in_executor(
                        self._thread, _decide, self._store.together, calls
                    )
                except Exception as error:
                    found = [error] * len(group)
                self._size, self._took = len(group), loop.time() - start
                for (_, answer), content in zip(group, found, strict=True):
                    if answer.done():  # the client has gone: what it sent is on disk all the same
                        continue
                    if isinstance(content, bytes):
                        answer.set_result(content)
                    else:
                        answer.set_exception(content)
        finally:
            self._serving = None

    def close(self) -> None:
        """Finish what is under way."""
        self._thread.shutdown()


def _decide(together: Callable[[Any], list[Any]], calls: list[tuple[Any, ...]]) -> list[bytes | BaseException]:
    return [one if isinstance(one, BaseException) else to_json(one) for one in together(calls)]
