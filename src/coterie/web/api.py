"""The JSON interface. Each endpoint reads its request, calls one function of the store, and sends the answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from coterie.campaign import Campaigns
from coterie.web.event_streams import EventStreams
from coterie.web.json_response import json_response
from coterie.web.request_models import AskBody, FailBody, NewCampaign, TellBody, read_body, request_body
from coterie.web.response_models import Asks, CampaignList, Created, Error, Freed, History, Page, Status, Told
from coterie.web.write_queue import WriteQueue

Id = Annotated[str, Path(description="The campaign's id.", examples=["5f0c7c0a1c9d4b7f8e21a3d4"])]
After = Annotated[int, Query(ge=0, description="Only what comes after this seq.")]
Kind = Literal["csv", "groups", "json", "certificate", "log"]
MEDIA = {
    "csv": ("text/csv; charset=utf-8", "csv"),
    "groups": ("text/csv; charset=utf-8", "groups.csv"),
    "json": ("application/json", "json"),
    "certificate": ("application/json", "certificate.json"),
    "log": ("text/csv; charset=utf-8", "log.csv"),
}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Error, "description": _WHEN[status]} for status in (401, 403, 429, *statuses)}


_WHEN = {
    400: "The body is not JSON.",
    401: "No token, or one that is not known.",
    403: "The token may not write, or the request came from another site's page.",
    404: "There is no such campaign, or no such lease.",
    409: "It contradicts what is on record, the campaign is not done, or its log is damaged.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "A value is wrong; `field` says which.",
    429: "Too many requests; see Retry-After.",
    503: "The store cannot be used now; nothing was changed. Try again.",
}
_READING = _errors(404, 409, 422, 503)
_WRITING = _errors(400, 404, 409, 413, 415, 422, 503)


def api_router(store: Campaigns, streams: EventStreams, writes: WriteQueue) -> APIRouter:
    """The endpoints under /api."""
    router = APIRouter(prefix="/api/campaigns", tags=["campaigns"])

    @router.post("", status_code=201, response_model=Created, responses=_WRITING,
                 openapi_extra=request_body(NewCampaign))  # fmt: skip
    async def create(request: Request) -> Response:
        """Create a campaign."""
        body = await read_body(request, NewCampaign)
        return await json_response(store.create, status=201, **dict(body))

    @router.get("", response_model=CampaignList, responses=_errors(503))
    async def campaigns() -> Response:
        """All campaigns, oldest first."""
        return await json_response(lambda: {"campaigns": store.list()})

    @router.get("/{id}", response_model=Status, responses=_READING)
    async def status(id: Id) -> Response:
        """How far a campaign is: groups, evidence, leases, workers."""
        return await json_response(store.status, id)

    @router.post("/{id}/ask", response_model=Asks, responses=_WRITING, openapi_extra=request_body(AskBody))
    async def ask(id: Id, request: Request) -> Response:
        """Lease items to a worker; its own open ones first, so that an answer that was lost costs nothing."""
        body = await read_body(request, AskBody)
        return await writes.submit("ask", id, body.worker, body.n)

    @router.post("/{id}/tell", response_model=Told, responses=_WRITING, openapi_extra=request_body(TellBody))
    async def tell(id: Id, request: Request) -> Response:
        """Hand in results, all or nothing. On disk when this is answered; the same id twice counts once."""
        body = await read_body(request, TellBody)
        given = [dict(one) for one in body.measurements]
        return await writes.submit("tell", id, given)

    @router.post("/{id}/fail", response_model=Freed, responses=_WRITING, openapi_extra=request_body(FailBody))
    async def fail(id: Id, request: Request) -> Response:
        """A measurement that will not come: its lease is freed."""
        body = await read_body(request, FailBody)
        return await writes.submit("fail", id, body.lease, body.reason)

    @router.get("/{id}/measurements", response_model=Page, responses=_READING)
    async def measurements(id: Id, after: After = 0, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000) -> Response:
        """Results told, in order."""
        return await json_response(store.measurements, id, after, limit)

    @router.get("/{id}/history", response_model=History, responses=_READING)
    async def history(id: Id, points: Annotated[int, Query(ge=2, le=100_000)] = 300) -> Response:
        """The evidence over time, thinned out to so many points."""
        return await json_response(store.history, id, points)

    @router.get("/{id}/certificate", response_model=dict[str, Any], responses=_errors(404, 409, 422, 503))
    async def certificate(id: Id) -> Response:
        """The proof, once the campaign is done, if its method certifies."""
        return await json_response(store.certificate, id)

    @router.get("/{id}/export", response_class=Response, responses=_errors(404, 409, 422, 503) | {
        200: {"description": "The file.", "content": {"text/csv": {}, "application/json": {}}}})  # fmt: skip
    async def export(id: Id, kind: Kind = "csv") -> Response:
        """A file: measurements (csv), each item's group, everything (json), the certificate, or the log it rests on."""
        text = await run_in_threadpool(store.export, id, kind)
        media, ending = MEDIA[kind]
        headers = {"Content-Disposition": f'attachment; filename="campaign-{id[:8]}.{ending}"'}
        return Response(text.encode("utf-8"), 200, headers, media)

    @router.get("/{id}/events", response_class=StreamingResponse, responses=_READING | {
        200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}})  # fmt: skip
    async def events(
        id: Id,
        after: After = 0,
        brief: Annotated[bool, Query(description="Only that something has changed.")] = False,
        last_event_id: Annotated[str | None, Header(description="Go on after this event.")] = None,
    ) -> Response:
        """The log as it grows, each event with its seq as id.

        Kinds: asked, told, expired, failed, imported, groups, evidence, stopped.
        """
        start = int(last_event_id) if last_event_id and last_event_id.isdecimal() and len(last_event_id) < 19 else after
        stream = streams.stream(id, start, brief)
        await streams.check_campaign(id)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return router
