"""Writing to the store from the event loop: requests are posted to its group commit, and no thread waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from coterie.campaign import Campaigns
from coterie.campaign.commands import ask_steps
from coterie.campaign.tokens import Writer
from coterie.web.json_response import to_json


class WriteQueue:
    """Decisions on a store's campaigns."""

    def __init__(self, store: Campaigns) -> None:
        self._store = store

    async def submit(self, name: str, id: str, *arguments: Any, writer: Writer | None = None) -> Response:
        """The answer of the store's function `name`, once it is on disk.

        If the client leaves meanwhile, what it sent is put on disk all the same.
        """
        if name == "ask":
            worker, n = arguments
            for count in ask_steps(n):
                answer = await asyncio.wrap_future(self._store.post(name, id, worker, count, n, writer=writer))
                if answer["done"]:
                    break
        else:
            answer = await asyncio.wrap_future(self._store.post(name, id, *arguments, writer=writer))
        return Response(to_json(answer), media_type="application/json")
