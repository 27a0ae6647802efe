"""The application: a store behind its endpoints, its pages and its access checks; and whether the store is well."""

from __future__ import annotations

import asyncio
import logging
import time
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
from coterie.campaign import CampaignError, Campaigns, StoreUnavailable
from coterie.methods import METHODS
from coterie.web.access import Access, FailedLogins, hash_of
from coterie.web.answers import SlowReads, WriteQueue, add_error_handlers, to_json
from coterie.web.api import api_router, measuring_endpoints
from coterie.web.event_streams import EventStreams
from coterie.web.limits import Rate
from coterie.web.managing_api import attaching_router, inviting_router, upload_router
from coterie.web.metrics import Requests, metrics_router
from coterie.web.middleware import OPEN_PATHS, AccessMiddleware
from coterie.web.pages import login_router, page_router, sharing_router
from coterie.web.request_models import body_schemas
from coterie.web.response_models import Error, Health
from coterie.web.webhooks import Webhooks

DEFAULT_RATE = 2000.0
DEFAULT_MAX_BODY = 8 * 2**20
THREADS = 12
"""Requests that are worked on at once, beside those that write: these wait in no thread (`WriteQueue`). More would not
be faster, since one of them runs at a time, and each takes its share of the time from the one that writes."""
_WARMED = 8

log = logging.getLogger("coterie.web")

_FRESH_SECONDS = 1.0

_PATIENCE = 5.0

CHECK_SECONDS, CHECK_SHARE = 0.5, 0.01
"""Between two looks at the logs, of some hundred rows each; and the share of a processor that these may take, however
many servers there are on one store."""


def create_app(
    store: Campaigns,
    access: Access | None = None,
    rate: float = DEFAULT_RATE,
    max_body: int = DEFAULT_MAX_BODY,
    metrics_token: str | None = None,
    webhooks: Webhooks | None = None,
) -> FastAPI:
    """The server of a store, as an ASGI application.

    Parameters
    ----------
    store : Campaigns
        What is served.
    access : Access, optional
        The tokens; those that the store knows by default.
    rate : float
        Requests a second for each token, 0 for no limit.
    max_body : int
        Bytes of a request's body.
    metrics_token : str, optional
        Opens `/metrics`, and nothing else; owners of all campaigns may always read it.
    webhooks : Webhooks, optional
        Who is told when a campaign stops, has an alarm or is blocked.

    Returns
    -------
    FastAPI
        For uvicorn, or for a test client (docs/reference/http.md).
    """
    if max_body < 1:
        raise ValueError(f"max_body must be at least 1 byte, got {max_body!r}")
    known = Access.of_store(store) if access is None else access
    failed = FailedLogins()
    streams = EventStreams(store)
    looked_at = StoreHealth(store)
    writes = WriteQueue(store)
    slow = SlowReads()
    requests = Requests()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        tasks = [asyncio.create_task(run_in_threadpool(warm_up, store)), asyncio.create_task(looked_at.watch())]
        if webhooks is not None:
            webhooks.start()
        yield
        streams.close()
        if webhooks is not None:
            webhooks.close()
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
    app.include_router(attaching_router(store))
    app.include_router(inviting_router(store))
    app.include_router(page_router(store, slow))
    app.include_router(sharing_router(store, slow))
    app.include_router(login_router(known, failed))
    app.include_router(metrics_router(store, requests, slow))
    app.mount("/static", _Static(directory=Path(__file__).parent / "static"))
    app.add_middleware(
        AccessMiddleware,
        access=known,
        rate=Rate(rate),
        failed=failed,
        max_body=max_body,
        measuring=measuring_endpoints(writes),
        requests=requests,
        metrics_token=None if metrics_token is None else hash_of(metrics_token),
    )
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
            described = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )  # fmt: skip
            parts = described.setdefault("components", {})
            parts.setdefault("schemas", {}).update(body_schemas())
            for name in ("HTTPValidationError", "ValidationError"):
                parts["schemas"].pop(name, None)
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for path, methods in described["paths"].items():
                for operation in methods.values():
                    operation["security"] = [] if path in OPEN_PATHS else [{"token": []}]
            made.update(described)
        return made

    app.openapi = openapi  # type: ignore[method-assign]


class StoreHealth:
    """Tries to write, once a second at most, in one thread at most; and has the logs checked in passing."""

    def __init__(self, store: Campaigns) -> None:
        self._store = store
        self._tried: asyncio.Task[CampaignError | None] | None = None
        self._at = 0.0
        self._damaged: dict[str, int] = {}

    async def state(self) -> dict[str, Any]:
        """That all is well; `StoreUnavailable` if the store cannot be written."""
        if self._tried is None or (self._tried.done() and time.monotonic() > self._at + _FRESH_SECONDS):
            self._tried = asyncio.create_task(run_in_threadpool(self._try))
        tried = self._tried
        await asyncio.wait([tried], timeout=_PATIENCE)
        if not tried.done():
            raise StoreUnavailable(f"the store cannot be written: a write has waited for {_PATIENCE:g} s")
        problem = tried.result()
        if problem is not None:
            raise StoreUnavailable(f"the store cannot be written: {problem.message}", problem.code)
        damaged = [{"campaign": id, "row": row} for id, row in self._damaged.items()]
        return {
            "status": "damaged" if damaged else "ok", "version": __version__, "writable": True, "damaged": damaged,
        }  # fmt: skip

    async def watch(self) -> None:
        """Check the logs, a few rows at a time, as long as the server runs."""
        while True:
            self._damaged, used = await run_in_threadpool(self._look)
            await asyncio.sleep(max(CHECK_SECONDS, used / CHECK_SHARE))

    def _look(self) -> tuple[dict[str, int], float]:
        begun = time.thread_time()
        return self._store.check_logs(), time.thread_time() - begun

    def _try(self) -> CampaignError | None:
        try:
            self._store.check_writable()
            return None
        except CampaignError as error:
            return error
        finally:
            self._at = time.monotonic()
