"""The application: a store behind its endpoints, its pages and its access checks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from coterie import __version__
from coterie.campaign import CampaignError, Campaigns
from coterie.methods import METHODS
from coterie.web.access import Access
from coterie.web.api import api_router
from coterie.web.compiling import compiling_router
from coterie.web.errors import add_error_handlers
from coterie.web.event_streams import EventStreams
from coterie.web.failed_logins import FailedLogins
from coterie.web.health import Health as StoreHealth
from coterie.web.json_response import SlowReads, to_json
from coterie.web.limits import Rate
from coterie.web.login import login_router
from coterie.web.managing_api import MANAGING_BODIES
from coterie.web.middleware import OPEN_PATHS, AccessMiddleware
from coterie.web.pages import page_router
from coterie.web.request_models import body_schemas
from coterie.web.response_models import Error, Health
from coterie.web.sharing_pages import sharing_router
from coterie.web.table_uploads import upload_router
from coterie.web.write_queue import WriteQueue

DEFAULT_RATE = 2000.0
DEFAULT_MAX_BODY = 8 * 2**20
THREADS = 12
"""Requests that are worked on at once, beside those that write: these wait in no thread (`write_queue`). More would not
be faster, since one of them runs at a time, and each takes its share of the time from the one that writes."""
_WARMED = 8

log = logging.getLogger("coterie.web")


def create_app(
    store: Campaigns,
    access: Access | None = None,
    rate: float = DEFAULT_RATE,
    max_body: int = DEFAULT_MAX_BODY,
) -> FastAPI:
    """The server of a store. `access` has the tokens (default: those that the store knows).

    `rate`: requests a second for each token, 0 for no limit. `max_body`: bytes of a request's body.
    """
    if max_body < 1:
        raise ValueError(f"max_body must be at least 1 byte, got {max_body!r}")
    known = Access.of_store(store) if access is None else access
    failed = FailedLogins()
    streams = EventStreams(store)
    looked_at = StoreHealth(store)
    writes = WriteQueue(store)
    slow = SlowReads()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        tasks = [asyncio.create_task(run_in_threadpool(warm_up, store)), asyncio.create_task(looked_at.watch())]
        yield
        streams.close()
        for task in tasks:
            task.cancel()

    app = FastAPI(
        title="Coterie",
        version=__version__,
        description="Which of these items are alike? Campaigns of noisy measurements: ask, tell, groups, proof.",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
    )
    app.state.event_streams = streams
    add_error_handlers(app)

    @app.get(
        "/healthz",
        tags=["server"],
        response_model=Health,
        responses={503: {"model": Error}},
    )
    async def health() -> Response:
        """Whether the store can be written, and whether rows of its logs were changed on disk."""
        return Response(to_json(await looked_at.state()), media_type="application/json")

    app.include_router(api_router(store, streams, writes, slow))
    app.include_router(upload_router(store))
    app.include_router(compiling_router())
    app.include_router(page_router(store, slow))
    app.include_router(sharing_router(store, slow))
    app.include_router(login_router(known, failed))
    app.mount("/static", _Static(directory=Path(__file__).parent / "static"))
    app.add_middleware(AccessMiddleware, access=known, rate=Rate(rate), failed=failed, max_body=max_body)
    _describe(app)
    return app


class _Static(StaticFiles):
    """Files that a browser asks for again only to hear that they are the same."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers.setdefault("Cache-Control", "no-cache")
        return answer


def warm_up(store: Campaigns) -> None:
    """Have the campaigns that are under way in memory before anybody asks for them."""
    try:
        under_way = [row for row in store.list() if not row["done"]]
        for row in under_way[-_WARMED:]:
            store.status(row["id"])
    except CampaignError as error:
        log.warning("campaigns could not be read ahead: %s", error.message)


def _describe(app: FastAPI) -> None:
    """OpenAPI with our bodies, and with the token that every address but the open ones needs.

    It is made again when methods were registered since: it lists them.
    """
    made: dict[str, Any] = {}
    listed: tuple[str, ...] = ()

    def openapi() -> dict[str, Any]:
        nonlocal listed
        if not made or listed != tuple(METHODS):
            listed = tuple(METHODS)
            found = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )  # fmt: skip
            parts = found.setdefault("components", {})
            parts.setdefault("schemas", {}).update(body_schemas(MANAGING_BODIES))
            for name in ("HTTPValidationError", "ValidationError"):
                parts["schemas"].pop(name, None)
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for path, methods in found["paths"].items():
                for operation in methods.values():
                    operation["security"] = [] if path in OPEN_PATHS else [{"token": []}]
            made.update(found)
        return made

    app.openapi = openapi  # type: ignore[method-assign]
