"""Writing to the store from the event loop: requests are posted to its group commit, and no thread waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from coterie.campaign import Campaigns
from coterie.web.json_response import to_json

_READY_KEPT = 32  # as many as the store keeps in memory


class WriteQueue:
    """Decisions on a store's campaigns."""

    def __init__(self, store: Campaigns) -> None:
        self._store = store
        self._ready: dict[str, None] = {}

    async def submit(self, name: str, id: str, *arguments: Any) -> Response:
        """The answer of the store's function `name`, once it is on disk.

        If the client leaves meanwhile, what it sent is put on disk all the same.
        """
        if id not in self._ready:
            # A campaign that is not in memory is read first, while the others go on.
            await run_in_threadpool(self._store.status, id)
            self._ready[id] = None
            while len(self._ready) > _READY_KEPT:
                del self._ready[next(iter(self._ready))]
        answer = await asyncio.wrap_future(self._store.post(name, id, *arguments))
        return Response(to_json(answer), media_type="application/json")
