"""Answers as JSON: plain values from a function of the store, encoded and sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

Answer = TypeVar("Answer")


def to_json(content: Any) -> bytes:
    """Plain values as they are sent: no NaN, no infinity."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


async def json_response(work: Callable[..., Any], *arguments: Any, status: int = 200, **named: Any) -> Response:
    """The answer of a function of the store. It runs in a thread: several at once are committed together."""

    def run() -> bytes:
        return to_json(work(*arguments, **named))

    return Response(await run_in_threadpool(run), status, media_type="application/json")


class SlowReads:
    """Reading that may take seconds: a few at once, in threads of their own. The others wait, and hold no thread."""

    def __init__(self, at_once: int = 4) -> None:
        self._limiter = CapacityLimiter(at_once)

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """What the function gives."""
        return await to_thread.run_sync(work, limiter=self._limiter)

    async def json_response(self, work: Callable[..., Any], *arguments: Any) -> Response:
        """The answer of a function of the store."""
        content = await self.run(lambda: to_json(work(*arguments)))
        return Response(content, media_type="application/json")
