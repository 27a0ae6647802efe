"""Answers as JSON: plain values from a function of the store, encoded and sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response


def to_json(content: Any) -> bytes:
    """Plain values as they are sent: no NaN, no infinity."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


async def json_response(work: Callable[..., Any], *arguments: Any, status: int = 200, **named: Any) -> Response:
    """The answer of a function of the store. It runs in a thread: several at once are committed together."""

    def run() -> bytes:
        return to_json(work(*arguments, **named))

    return Response(await run_in_threadpool(run), status, media_type="application/json")
