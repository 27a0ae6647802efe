"""What is sent back: JSON from functions of the store, read in threads or written through its group commit; errors.

There is one shape for everything that goes wrong: {"error": {"code", "message", "field"}}.
"""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.responses import Response
from starlette.types import Scope

from coterie.campaign import CampaignError, Campaigns, StoreUnavailable
from coterie.campaign.commands.blocks import InBlock
from coterie.campaign.commands.measuring import ask_steps
from coterie.campaign.tokens import Writer
from coterie.web.rendering import render

Answer = TypeVar("Answer")

_LONGEST_NAME = 60  # of a campaign, in the name of a file

_CODES = {400: "bad_request", 401: "no_token", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}

_MESSAGES = {404: "there is nothing at this address", 405: "this address does not take that method"}


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


class Refusal(HTTPException):
    """A request that is turned down, with its code and the part of it at fault."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.code, self.message, self.field = code, message, field


def error_view(code: str, message: str, field: str | None = None) -> dict[str, Any]:
    """An error as every answer of the interface shows it."""
    return {"error": {"code": code, "message": message, "field": field}}


def wants_page(scope: Scope) -> bool:
    """Whether a person's browser asks for a page, rather than a program for data."""
    if scope["path"].startswith("/api/"):
        return False
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return b"text/html" in accepted


def refusal_response(scope: Scope, refusal: Refusal) -> Response:
    """The answer to a request that is turned down: JSON, or a page with the same content."""
    content = error_view(refusal.code, refusal.message, refusal.field)
    headers = dict(refusal.headers or {})
    if wants_page(scope):
        page = render("error.html", status=refusal.status_code, signed_in=False, **content)
        return Response(page, refusal.status_code, headers, "text/html; charset=utf-8")
    # ASCII: messages quote what was sent, and that may hold characters that UTF-8 has no bytes for.
    body = json.dumps(content, ensure_ascii=True).encode("ascii")
    return Response(body, refusal.status_code, headers, "application/json")


def refusal_for(error: Exception) -> Refusal:
    """The refusal that an error becomes: its status, code and field are those of the exception."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, CampaignError):
        headers = {"Retry-After": "1"} if isinstance(error, StoreUnavailable) else None
        return Refusal(error.status, error.code, error.message, error.field, headers)
    if isinstance(error, RequestValidationError | ValidationError):
        return _refusal_for_model(error)
    if isinstance(error, AnyHTTPException):
        status = error.status_code
        message = _MESSAGES.get(status, str(error.detail))
        return Refusal(status, _CODES.get(status, "bad_request"), message, headers=error.headers)
    return Refusal(500, "internal_error", "something went wrong here, not with the request: see the server's log")


_NO_PLACES = ("body", "query", "path", "str", "int", "float", "list[str]")  # of a request, or one of several types


def _refusal_for_model(error: RequestValidationError | ValidationError) -> Refusal:
    """The first thing that a model found wrong with a request, with its place in the body."""
    first = error.errors()[0]
    place = [part for part in first["loc"] if part not in _NO_PLACES]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".") or None
    fault = str(first["msg"])
    message = f"{field}: {fault[:1].lower()}{fault[1:]}" if field else fault
    return Refusal(422, "bad_value", message, field)


async def _respond(request: Request, error: Exception) -> Response:
    return refusal_response(request.scope, refusal_for(error))


def add_error_handlers(app: FastAPI) -> None:
    """Everything that an endpoint may raise comes out in the one shape."""
    for kind in (CampaignError, RequestValidationError, ValidationError, AnyHTTPException):
        app.add_exception_handler(kind, _respond)


class WriteQueue:
    """Decisions on a store's campaigns."""

    def __init__(self, store: Campaigns) -> None:
        self._store = store

    async def submit(self, name: str, id: str, *arguments: Any, writer: Writer | None = None) -> Response:
        """The answer of the store's function `name`, once it is on disk.

        If the client leaves meanwhile, what it sent is put on disk all the same.
        """
        answer = await asyncio.wrap_future(self._store.post(name, id, *arguments, writer=writer))
        return Response(to_json(answer), media_type="application/json")

    async def ask(self, id: str, worker: str, n: int, where: InBlock, writer: Writer | None = None) -> Response:
        """The same of an ask, of many items in parts."""
        for count in ask_steps(n, where):
            posted = self._store.post("ask", id, worker, count, n, where, writer=writer)
            answer = await asyncio.wrap_future(posted)
            if answer["done"] or "deadline_reached" in answer:
                break
        return Response(to_json(answer), media_type="application/json")


def file_header(name: str, ending: str) -> str:
    """The header that names a file after its campaign: in ASCII, and for browsers in UTF-8 as RFC 6266 has it."""
    kept = "".join(sign if sign.isalnum() else "-" for sign in name[:_LONGEST_NAME])
    called = "-".join(part for part in kept.split("-") if part) or "campaign"
    plain = unicodedata.normalize("NFKD", called).encode("ascii", "ignore").decode().strip("-") or "campaign"
    return f"attachment; filename=\"{plain}-{ending}\"; filename*=UTF-8''{quote(f'{called}-{ending}')}"
