"""Files of measurements over HTTP. What somebody sent is handed on as a file to be saved: no browser runs it here."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from coterie.campaign import Campaigns
from coterie.campaign.service.attachments import LONGEST_NAME
from coterie.web.answers import SlowReads, file_header, json_response
from coterie.web.request_models import Id
from coterie.web.response_models import READING, WRITING, Attachment, AttachmentList, errors_of

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
