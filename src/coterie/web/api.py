"""The JSON interface. Each endpoint reads its request, calls one function of the store, and sends the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from coterie.campaign import Campaigns
from coterie.campaign.commands.blocks import InBlock
from coterie.campaign.service.whole_store import LARGEST_PAGE, PAGE
from coterie.campaign.views.log import MOST_COLUMNS
from coterie.campaign.views.partial import CURVE_POINTS, LISTED_PAIRS, MOST_PAIRS
from coterie.campaign.views.status import MOST_LISTED
from coterie.session.progress import MOST as MOST_MORE
from coterie.web.answers import SlowReads, WriteQueue, file_header, json_response
from coterie.web.event_streams import EventStreams
from coterie.web.managing_api import add_managing, add_revisions
from coterie.web.request_models import (
    XLSX,
    AskBody,
    CorrectBody,
    FailBody,
    Id,
    NewCampaign,
    ResolutionBody,
    TellBody,
    read_body,
    request_body,
)
from coterie.web.response_models import (
    READING,
    WRITING,
    Asks,
    CampaignList,
    Chosen,
    Corrected,
    Created,
    Freed,
    Told,
    errors_of,
)
from coterie.web.view_models import (
    Budget,
    Curve,
    History,
    ItemPage,
    MeasuredCells,
    Page,
    PartialAnswers,
    Picture,
    Status,
)

After = Annotated[int, Query(ge=0, description="Only what comes after this seq.")]
Kind = Literal["csv", "groups", "json", "certificate", "partial", "log"]
_SHEETS = {"csv": "measurements"}  # what an Excel file is called, if not by its kind
MEDIA = {
    "csv": ("text/csv; charset=utf-8", "measurements.csv"),
    "groups": ("text/csv; charset=utf-8", "groups.csv"),
    "json": ("application/json", "campaign.json"),
    "certificate": ("application/json", "certificate.json"),
    "partial": ("application/json", "partial.json"),
    "log": ("text/csv; charset=utf-8", "log.csv"),
}


BOM = "\ufeff"
"""What spreadsheets need at the beginning of a text to read it as UTF-8; other programs do without."""


def measuring_endpoints(writes: WriteQueue) -> dict[str, Callable[[str, Request], Awaitable[Response]]]:
    """What those who measure call all the time, by the last part of the address."""

    async def ask(id: Id, request: Request) -> Response:
        """Lease items to a worker; its own open ones first, so that an answer that was lost costs nothing.

        No `asks` once done, while somebody is waited for (`waiting_for`), where nothing more fits into the block
        (`full`), and where the deadline leaves no more (`deadline_reached`).
        """
        body = await read_body(request, AskBody)
        where = InBlock(body.block, body.room, body.among)
        return await writes.ask(id, body.worker, body.n, where, request.state.caller.writer)

    async def tell(id: Id, request: Request) -> Response:
        """Hand in results, all or nothing. On disk when this is answered; the same id twice counts once.

        `warnings`: a value lies far from what its item gave before. `not_counted`: the ask was passed on to somebody
        else, who has answered it.
        """
        body = await read_body(request, TellBody)
        given = [dict(result) for result in body.measurements]
        ask_back = body.confirm is False
        return await writes.submit("tell", id, given, None, False, ask_back, writer=request.state.caller.writer)

    return {"ask": ask, "tell": tell}


def api_router(store: Campaigns, streams: EventStreams, writes: WriteQueue, slow: SlowReads) -> APIRouter:
    """The endpoints under /api."""
    router = APIRouter(prefix="/api/campaigns", tags=["campaigns"])

    @router.post("", status_code=201, response_model=Created, responses=WRITING,
                 openapi_extra=request_body(NewCampaign))  # fmt: skip
    async def create(request: Request) -> Response:
        """Create a campaign."""
        body = await read_body(request, NewCampaign)
        return await json_response(store.create, status=201, one_of_its_name=True, **dict(body))

    @router.get("", response_model=CampaignList, responses=errors_of(422, 503))
    async def campaigns(
        request: Request,
        after: Annotated[str, Query(description="The `next` of the page before.", max_length=200)] = "",
        limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = PAGE,
        search: Annotated[str, Query(description="A part of the name.", max_length=200)] = "",
        archived: Annotated[bool, Query(description="Those that are archived too.")] = False,
    ) -> Response:
        """The campaigns that the token is for, oldest first, page by page."""
        return await json_response(store.list_page, after, limit, search, archived, request.state.caller.campaign)

    @router.get("/{id}", response_model=Status, responses=READING)
    async def status(id: Id) -> Response:
        """How far a campaign is: groups, evidence, leases, workers.

        Of 10 runs 8 end between `forecast_low` and `forecast_high`. `assumed` says on what the answer rests, `doubt`
        which later results do not fit, `resolutions` what was asked for so far.

        With more than 100 000 items `cut` is true, and the lists of all items are left out: see `items`.
        """
        return await json_response(store.status, id, MOST_LISTED)

    @router.get("/{id}/budget", response_model=Budget, responses=READING)
    async def budget(id: Id, more: Annotated[int, Query(ge=1, le=MOST_MORE)]) -> Response:
        """What so many more measurements are expected to bring: the chance to be done by then (null if nobody can say
        yet), and what if not.
        """
        return await json_response(store.budget, id, more)

    _add_decisions(router, store, writes)
    add_managing(router, store, writes)
    add_revisions(router, writes)

    @router.get("/{id}/measurements", response_model=Page, responses=READING)
    async def measurements(id: Id, after: After = 0, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000) -> Response:
        """Results told, in order."""
        return await json_response(store.measurements, id, after, limit)

    @router.get("/{id}/history", response_model=History, responses=READING)
    async def history(id: Id, points: Annotated[int, Query(ge=2, le=100_000)] = 300) -> Response:
        """The evidence over time, thinned out to so many points."""
        return await json_response(store.history, id, points)

    @router.get("/{id}/certificate", response_model=dict[str, Any], responses=errors_of(404, 409, 422, 503))
    async def certificate(id: Id) -> Response:
        """The proof, once the campaign is done, if its method certifies."""
        return await json_response(store.certificate, id)

    @router.get("/{id}/export", response_class=Response, responses=errors_of(404, 409, 422, 503) | {
        200: {"description": "The file.", "content": {"text/csv": {}, "application/json": {}, XLSX: {}}}})  # fmt: skip
    async def export(
        id: Id,
        kind: Kind = "csv",
        format: Annotated[Literal["text", "xlsx"], Query(description="xlsx: Excel, of csv, groups and log.")] = "text",
        decimal_comma: Annotated[bool, Query(description="csv and groups: 6,8 for 6.8, semicolons between.")] = False,
        bom: Annotated[bool, Query(description="csv and groups: begin as spreadsheets need it for UTF-8.")] = False,
    ) -> Response:
        """A file: measurements (csv), each item's group, everything (json), the certificate, that of what is proven so
        far (partial), or the log that these rest on.

        As Excel, the log is what happened, for people.
        """

        def write() -> bytes:
            if format == "xlsx":
                return store.export_workbook(id, kind)
            text = store.export(id, kind, decimal_comma=decimal_comma)
            marked = bom and kind in ("csv", "groups")
            return (BOM + text.removeprefix(BOM) if marked else text).encode("utf-8")

        # groups come with letters, for which all pairs are looked at, and Excel files take their time
        content = await (slow.run if kind == "groups" or format == "xlsx" else run_in_threadpool)(write)
        media, ending = MEDIA[kind] if format == "text" else (XLSX, f"{_SHEETS.get(kind, kind)}.xlsx")
        name = (await run_in_threadpool(store.overview, id))["name"]
        return Response(content, 200, {"Content-Disposition": file_header(name, ending)}, media)

    @router.get("/{id}/events", response_class=StreamingResponse, responses=READING | {
        200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}})  # fmt: skip
    async def events(
        id: Id,
        request: Request,
        after: After = 0,
        brief: Annotated[bool, Query(description="Only that something has changed.")] = False,
        last_event_id: Annotated[str | None, Header(description="Go on after this event.")] = None,
    ) -> Response:
        """The log as it grows, each event with its seq as id.

        Kinds: asked, told, expired, failed, undone, imported, resolution, revision, deadline, correction, groups,
        evidence, stopped, archived, unarchived, lease_time, surplus, attachment, delivered.
        """
        start = int(last_event_id) if last_event_id and last_event_id.isdecimal() and len(last_event_id) < 19 else after
        await streams.check_campaign(id)
        address = request.client.host if request.client else "?"
        streams.check_room(address)
        stream = streams.stream(id, start, brief, request.state.still_allowed, address)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    _add_items(router, store)
    _add_partial_answers(router, store, slow)
    return router


def _add_items(router: APIRouter, store: Campaigns) -> None:
    """The items, page by page."""

    @router.get("/{id}/items", response_model=ItemPage, responses=READING)
    async def items(
        id: Id,
        after: Annotated[
            int, Query(ge=0, description="The number of the first item; the `next` of the page before.")
        ] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    ) -> Response:
        """The items in order, each with its name, its group and its measurements, page by page."""
        return await json_response(store.items, id, after, limit)


def _add_partial_answers(router: APIRouter, store: Campaigns, slow: SlowReads) -> None:
    """What is proven before the end, and how many groups there are at every resolution."""

    @router.get("/{id}/partial", response_model=PartialAnswers, responses=READING)
    async def partial(id: Id, pairs: Annotated[int, Query(ge=0, le=MOST_PAIRS)] = LISTED_PAIRS) -> Response:
        """What is proven now: pairs apart and alike, letters, the groups that each item may still belong to.

        At most `pairs` pairs of each kind are listed. `error` is the probability that any of it is wrong. 409 if there
        is none: `too_many_items` (more than 3000), `no_certificate`, `too_few_results`.
        """
        return await slow.json_response(store.partial, id, pairs)

    @router.get("/{id}/picture", response_model=Picture, responses=READING)
    async def picture(id: Id, proven: Annotated[bool, Query(description="With the matrix.")] = True) -> Response:
        """Where each item is and how sure that is, its group, and what is proven of it, for a picture.

        Of more than 2000 items only the groups. Without what is `proven` it is quick for a thousand items too.
        """
        return await slow.json_response(store.picture, id, proven)

    @router.get("/{id}/cells", response_model=MeasuredCells, responses=READING)
    async def cells(
        id: Id, features: Annotated[int, Query(ge=1, le=1000, description="So many at most.")] = MOST_COLUMNS
    ) -> Response:
        """With features: what was measured, a cell for each item and feature with results; found features first."""
        return await json_response(store.cells, id, features)

    @router.get("/{id}/resolution-curve", response_model=Curve, responses=READING)
    async def resolution_curve(id: Id, points: Annotated[int, Query(ge=2, le=1000)] = CURVE_POINTS) -> Response:
        """For every radius, how many groups there are at least, and how many are enough, both proven.

        409 (`no_distances`) where the noise stated proves none.
        """
        return await slow.json_response(store.resolution_curve, id, points)


def _add_decisions(router: APIRouter, store: Campaigns, writes: WriteQueue) -> None:
    """The endpoints that go on with a campaign."""

    kinds: dict[str, tuple[Any, Any]] = {"ask": (AskBody, Asks), "tell": (TellBody, Told)}
    for name, endpoint in measuring_endpoints(writes).items():
        body, answer = kinds[name]
        described = request_body(body)
        router.post(f"/{{id}}/{name}", response_model=answer, responses=WRITING, openapi_extra=described)(endpoint)

    @router.post("/{id}/corrections", response_model=Corrected, responses=WRITING,
                 openapi_extra=request_body(CorrectBody))  # fmt: skip
    async def correct(id: Id, request: Request) -> Response:
        """Replace a value that was told wrong; its place in the order stays. A worker's token: its own results only.

        `reopened`: the proof is taken back by it.
        """
        body = await read_body(request, CorrectBody)
        given = (body.measurement, body.values, body.reason, body.by, body.id)
        return await json_response(store.correct, id, *given, writer=request.state.caller.writer)

    @router.post("/{id}/fail", response_model=Freed, responses=WRITING, openapi_extra=request_body(FailBody))
    async def fail(id: Id, request: Request) -> Response:
        """A measurement that will not come: its lease is freed. A worker's token: its own leases only."""
        body = await read_body(request, FailBody)
        return await writes.submit("fail", id, body.lease, body.reason, writer=request.state.caller.writer)

    @router.post("/{id}/resolution", response_model=Chosen, responses=WRITING,
                 openapi_extra=request_body(ResolutionBody))  # fmt: skip
    async def choose_resolution(id: Id, request: Request) -> Response:
        """Ask for another resolution from here on, after looking; the same one twice is one change. 409 once done."""
        body = await read_body(request, ResolutionBody)
        return await writes.submit("choose_resolution", id, body.resolution, writer=request.state.caller.writer)
