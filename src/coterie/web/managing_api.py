"""Endpoints that manage a campaign (undo, archive, delete, revise, invite), and take tables and files of measurements.

What somebody sent is handed on as a file to be saved: no browser runs it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from coterie.campaign import Campaigns
from coterie.campaign.imports import table_errors_as_bad_values
from coterie.campaign.service.attachments import LONGEST_NAME
from coterie.campaign.service.invitations import HOURS, MOST_HOURS
from coterie.campaign.tokens import OWNER, WORKER
from coterie.tables.errors import time_limit
from coterie.tables.reading.files import table_of_bytes
from coterie.tables.reading.item_lists import read_items, read_pasted_items
from coterie.web.answers import Refusal, SlowReads, WriteQueue, file_header, json_response, to_json
from coterie.web.pages import is_local, origin_of, qr_svg
from coterie.web.request_models import (
    XLSX,
    ArchiveBody,
    Body,
    CloseBlockBody,
    ClustersBody,
    DeadlineBody,
    DeltaBody,
    Id,
    ItemsBody,
    LeaseTimeBody,
    RetireBody,
    UndoBody,
    read_body,
    request_body,
)
from coterie.web.response_models import (
    READING,
    WRITING,
    Answer,
    Archived,
    Attachment,
    AttachmentList,
    ClosedBlock,
    Deleted,
    Freed,
    Imported,
    ItemsRead,
    LeaseTime,
    RevisedCampaign,
    errors_of,
)


class InviteBody(Body):
    """Whom an invitation is for, and how long it can be used."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ann", "role": "worker", "hours": 24}]})
    name: str = Field(description="What the token that is made of it will be called.")
    role: Literal["worker", "reader"] = WORKER  # type: ignore[assignment]
    hours: float = Field(HOURS, gt=0, le=MOST_HOURS, description="How long the link can be used.")


class Invitation(Answer):
    """An invitation. `state`: open, used, expired or revoked; `token`: the id of the token that was made of it."""

    id: str
    name: str
    role: str
    campaign: str | None
    created: str
    expires: str | None
    state: str
    token: str | None


class NewInvitation(Invitation):
    """An invitation with its secret, shown this once; `link` and `qr` (SVG) open the login page with it, `only_here`
    if they can be reached from this machine alone.
    """

    secret: str
    link: str | None
    qr: str | None
    only_here: bool


class InvitationList(Answer):
    """All invitations of a campaign."""

    invitations: list[Invitation]


def inviting_router(store: Campaigns) -> APIRouter:
    """The addresses of a campaign's invitations."""
    router = APIRouter(prefix="/api/campaigns", tags=["invitations"])
    address = "/{id}/invitations"

    @router.post(address, status_code=201, response_model=NewInvitation, responses=WRITING,
                 openapi_extra=request_body(InviteBody))  # fmt: skip
    async def invite(id: Id, request: Request) -> Response:
        """Invite somebody to a campaign: the link logs one browser in, once, with a token of its own."""
        body = await read_body(request, InviteBody)
        origin = origin_of(request)

        def make() -> dict[str, Any]:
            made = store.invitations.make(body.name, body.role, id, body.hours)
            link = None if origin is None else f"{origin}/login?next=/campaigns/{made['campaign']}#{made['secret']}"
            only_here = origin is not None and is_local(origin)
            return made | {"link": link, "only_here": only_here, "qr": None if link is None else qr_svg(link)}

        return await json_response(make, status=201)

    @router.get(address, response_model=InvitationList, responses=READING)
    async def invitations(id: Id, request: Request) -> Response:
        """The invitations to a campaign, without their secrets. Owners only."""
        if request.state.caller.role != OWNER:
            raise Refusal(403, "not_for_this_token", "this needs a token of an owner")

        def listed() -> dict[str, Any]:
            return {"invitations": store.invitations.listed(store.overview(id)["id"])}

        return await json_response(listed)

    @router.delete(address, response_model=Invitation, responses=WRITING)
    async def revoke_invitation(
        id: Id, invitation: Annotated[str, Query(max_length=200, description="The invitation's id.")]
    ) -> Response:
        """Take an invitation back; whoever has used it is logged out, and their open asks are given back."""

        def revoke() -> dict[str, Any]:
            ended = store.invitations.revoke(invitation, store.overview(id)["id"])
            if ended["token"] is not None and any(
                row["id"] == ended["token"] and not row["revoked"] for row in store.tokens()
            ):
                store.revoke_token(ended["token"])
            return ended

        return await json_response(revoke)

    return router


_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_FILE: dict[str, Any] = {"content": {"application/octet-stream": {}}}
_NOTHING_RUNS = {"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff"}

Measurement = Annotated[str, Query(max_length=200, description="The id of a measurement.")]


def attaching_router(store: Campaigns) -> APIRouter:
    """The addresses of files."""
    router = APIRouter(prefix="/api/campaigns", tags=["campaigns"])
    archives = SlowReads(at_once=1)

    @router.post("/{id}/attachments", response_model=Attachment, responses=WRITING, openapi_extra=_BODY)
    async def attach(
        id: Id,
        request: Request,
        measurement: Measurement,
        name: Annotated[str, Query(max_length=LONGEST_NAME, description="What the file is called.")],
    ) -> Response:
        """Keep a file with a measurement: a photo, a PDF, a text, an Excel file or a ZIP, of at most 8 MiB.

        What it is follows from its content. The same file again is kept once. A worker's token: its own results only.
        """
        content = await request.body()
        writer = request.state.caller.writer
        return await json_response(store.attachments.add, id, measurement, name, content, writer)

    @router.get("/{id}/attachments", response_model=AttachmentList, responses=READING)
    async def attachments(id: Id, measurement: Measurement | None = None) -> Response:
        """The files of a campaign, or of one of its measurements, oldest first."""
        return await json_response(lambda: {"attachments": store.attachments.listed(id, measurement)})

    @router.get("/{id}/attachment", response_class=Response, responses=errors_of(404, 409, 422, 503) | {200: _FILE})
    async def attachment(id: Id, sha256: Annotated[str, Query(max_length=64)]) -> Response:
        """A file by the hash of its content."""
        about, content = await run_in_threadpool(store.attachments.content, id, sha256)
        headers = _NOTHING_RUNS | {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(about['file'], safe='')}"
        }
        return Response(content, 200, headers, about["type"])

    @router.get(
        "/{id}/attachments.zip", response_class=Response, responses=errors_of(404, 409, 422, 503) | {200: _FILE}
    )
    async def archive(id: Id) -> Response:
        """All files of a campaign in a ZIP, in a folder for each measurement."""
        content = await archives.run(lambda: store.attachments.archive(id))
        name = (await run_in_threadpool(store.overview, id))["name"]
        return Response(content, 200, {"Content-Disposition": file_header(name, "files.zip")}, "application/zip")

    return router


_RevisedId = Annotated[str, Path(description="The campaign's id.")]

_MEDIA = frozenset(
    {"text/csv", "text/plain", "text/tab-separated-values", XLSX, "application/vnd.ms-excel",
     "application/octet-stream"}
)  # fmt: skip

READING_SECONDS = 60.0
"""How long a table may be read and checked; taking it in, part by part, has its own limit."""

FileName = Annotated[str, Query(max_length=200, description="What the file is called, for messages and for the log.")]

Sheet = Annotated[str | None, Query(max_length=200, description="The sheet of an Excel file; the first if left out.")]


def add_managing(router: APIRouter, store: Campaigns, writes: WriteQueue) -> None:
    """Undo an ask, archive and delete a campaign, change how long a lease lasts."""

    @router.post("/{id}/undo", response_model=Freed, responses=WRITING, openapi_extra=request_body(UndoBody))
    async def undo(id: Id, request: Request) -> Response:
        """Give back an ask that nobody has measured: its lease is freed, and that is no failure."""
        body = await read_body(request, UndoBody)
        return await writes.submit("undo", id, body.lease, body.reason, writer=request.state.caller.writer)

    @router.post("/{id}/close-block", response_model=ClosedBlock, responses=WRITING,
                 openapi_extra=request_body(CloseBlockBody))  # fmt: skip
    async def close_block(id: Id, request: Request) -> Response:
        """Nothing more is measured in a block: its open asks are given back. A worker's token: its own asks only."""
        body = await read_body(request, CloseBlockBody)
        return await writes.submit("close_block", id, body.block, writer=request.state.caller.writer)

    @router.post("/{id}/archive", response_model=Archived, responses=WRITING, openapi_extra=request_body(ArchiveBody))
    async def archive(id: Id, request: Request) -> Response:
        """Put a campaign away, or take it up again: meanwhile it is read-only, and lists leave it out. Owners only."""
        body = await read_body(request, ArchiveBody)
        name = "archive" if body.archived else "unarchive"
        return await writes.submit(name, id, writer=request.state.caller.writer)

    @router.post("/{id}/lease-time", response_model=LeaseTime, responses=WRITING,
                 openapi_extra=request_body(LeaseTimeBody))  # fmt: skip
    async def lease_time(id: Id, request: Request) -> Response:
        """Change how long a worker may take, from the next ask on. Owners only."""
        body = await read_body(request, LeaseTimeBody)
        return await writes.submit(
            "change_lease_time", id, body.lease_seconds, writer=request.state.caller.writer
        )  # fmt: skip

    @router.delete("/{id}", response_model=Deleted, responses=WRITING)
    async def delete(id: Id, name: Annotated[str, Query(description="The campaign's name, to confirm.")]) -> Response:
        """Delete a campaign with its log and its tokens. This cannot be undone. Owners only."""
        return await json_response(store.delete, id, name)


def add_revisions(router: APIRouter, writes: WriteQueue) -> None:
    """Items join or are retired, more groups, a smaller δ, another deadline. For owners."""

    async def revise(id: str, request: Request, changes: dict[str, Any]) -> Response:
        return await writes.submit("revise", id, changes, writer=request.state.caller.writer)

    @router.post("/{id}/items", response_model=RevisedCampaign, responses=WRITING,
                 openapi_extra=request_body(ItemsBody))  # fmt: skip
    async def add_items(id: _RevisedId, request: Request) -> Response:
        """Items join. They get the next numbers; nothing that was measured is measured again."""
        return await revise(id, request, dict(await read_body(request, ItemsBody)))

    @router.post("/{id}/retire", response_model=RevisedCampaign, responses=WRITING,
                 openapi_extra=request_body(RetireBody))  # fmt: skip
    async def retire_items(id: _RevisedId, request: Request) -> Response:
        """Items are retired: their results are kept, and nothing is claimed about them."""
        return await revise(id, request, dict(await read_body(request, RetireBody)))

    @router.post("/{id}/clusters", response_model=RevisedCampaign, responses=WRITING,
                 openapi_extra=request_body(ClustersBody))  # fmt: skip
    async def raise_clusters(id: _RevisedId, request: Request) -> Response:
        """There are more groups than was said; after an alarm, say."""
        return await revise(id, request, dict(await read_body(request, ClustersBody)))

    @router.post("/{id}/delta", response_model=RevisedCampaign, responses=WRITING,
                 openapi_extra=request_body(DeltaBody))  # fmt: skip
    async def lower_delta(id: _RevisedId, request: Request) -> Response:
        """A smaller error probability; once it is done, the campaign goes on."""
        return await revise(id, request, dict(await read_body(request, DeltaBody)))

    @router.post("/{id}/deadline", response_model=RevisedCampaign, responses=WRITING,
                 openapi_extra=request_body(DeadlineBody))  # fmt: skip
    async def change_deadline(id: _RevisedId, request: Request) -> Response:
        """Another deadline, where there is one. It costs nothing, and what is proven is as certain as before."""
        return await revise(id, request, dict(await read_body(request, DeadlineBody)))


def _table_body(example: str) -> dict[str, Any]:
    """The description of such a body for OpenAPI."""
    content = {
        "text/csv": {"schema": {"type": "string"}, "examples": {"example 1": {"value": example}}},
        XLSX: {"schema": {"type": "string", "format": "binary"}},
    }
    return {"requestBody": {"required": True, "content": content}}


def upload_router(store: Campaigns) -> APIRouter:
    """The addresses that take tables. They are read in threads of their own, two at once."""
    router = APIRouter(prefix="/api", tags=["tables"])
    readers = SlowReads(at_once=2)

    @router.post("/items", response_model=ItemsRead, responses=WRITING,
                 openapi_extra=_table_body("name,cost\napple,2\npear,3.5\n"))  # fmt: skip
    async def items(
        request: Request,
        name: FileName = "items.csv",
        sheet: Sheet = None,
        kind: Annotated[Literal["file", "pasted"], Query(description="A file, or a text that was pasted.")] = "file",
    ) -> Response:
        """Read a list of items for a new campaign: names, and costs if there are; nothing is kept."""
        content = await _content(request)

        def read() -> bytes:
            if kind == "pasted":
                listed = read_pasted_items(_text(content))
            else:
                listed = read_items(name, content, sheet)
            remarks = list(listed.remarks)
            return to_json(
                {"count": len(listed.names), "names": listed.names, "costs": listed.costs, "remarks": remarks}
            )

        return await _answer(readers, read)

    @router.post("/campaigns/{id}/import", response_model=Imported, responses=WRITING,
                 openapi_extra=_table_body("id,arm,v0,v1\nmonday/1,a,1.25,7\n"))  # fmt: skip
    async def import_table(
        id: Id,
        request: Request,
        name: FileName = "table.csv",
        sheet: Sheet = None,
        values: Annotated[
            list[str] | None, Query(max_length=10_000, description="The columns that hold the values, in this order.")
        ] = None,
        in_order: Annotated[bool, Query(description="Do not shuffle: for a campaign's own export.")] = False,
        check: Annotated[bool, Query(description="Only look: what would be taken in, and all that is wrong.")] = False,
    ) -> Response:
        """Take in measurements that were made before, all or none of them; or, with `check`, only look at them.

        Columns: arm (or item, sample, name), the values, and id if there is one; see the docs of `coterie campaign
        import`.
        """
        content = await _content(request)
        writer = request.state.caller.writer

        def read() -> bytes:
            table = table_of_bytes(name, content, sheet)
            if check:
                return to_json(store.preview_import(id, table, values, in_order))
            return to_json(store.import_table(id, table, values, in_order, writer=writer))

        return await _answer(readers, read)

    return router


async def _content(request: Request) -> bytes:
    """The bytes that were sent, if they are declared as a table."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in _MEDIA:
        received = f"got {media[:80]!r}" if media else "got none"
        raise Refusal(415, "not_a_table", f"send a table with the header Content-Type: text/csv, or {XLSX}; {received}")
    return await request.body()


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(400, "not_utf8", f"the text is not UTF-8: byte {error.start}") from None


async def _answer(readers: SlowReads, read: Callable[[], bytes]) -> Response:
    def checked() -> bytes:
        try:
            with table_errors_as_bad_values(), time_limit(READING_SECONDS):
                return read()
        except ImportError as error:
            raise Refusal(422, "not_installed", str(error)) from None

    return Response(await readers.run(checked), media_type="application/json")
