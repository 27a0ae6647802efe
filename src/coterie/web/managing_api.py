"""Endpoints that measure nothing: undo an ask, archive and delete a campaign, change how long a lease lasts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import ConfigDict, Field, StrictBool, StrictStr, WithJsonSchema
from starlette.responses import Response

from coterie.campaign import Campaigns
from coterie.web.json_response import json_response
from coterie.web.request_models import Body, read_body, request_body
from coterie.web.response_models import Answer, Freed
from coterie.web.write_queue import WriteQueue

_Id = Annotated[str, Path(description="The campaign's id.", examples=["5f0c7c0a1c9d4b7f8e21a3d4"])]

_Seconds = Annotated[Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]  # the store says what is wrong


class UndoBody(Body):
    """An ask that is given back unmeasured."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease": "9f2c…", "reason": "asked by mistake"}]})
    lease: StrictStr
    reason: StrictStr = ""


class ArchiveBody(Body):
    """Whether the campaign is put away."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"archived": True}]})
    archived: StrictBool


class LeaseTimeBody(Body):
    """How long a worker may take."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease_seconds": 7200}]})
    lease_seconds: _Seconds = Field(description="Seconds, from the next ask on.")


MANAGING_BODIES: tuple[type[Body], ...] = (UndoBody, ArchiveBody, LeaseTimeBody)


class Archived(Answer):
    """Since when the campaign is archived; null if it is not."""

    archived: str | None


class LeaseTime(Answer):
    """How long a worker may take now, and how long before."""

    changed: bool
    lease_seconds: float
    before: float


class Deleted(Answer):
    """The id of a campaign that is gone, what it was called, and how many measurements it had."""

    deleted: str
    name: str
    measurements: int


def add_managing(
    router: APIRouter, store: Campaigns, writes: WriteQueue, writing: dict[int | str, dict[str, Any]]
) -> None:
    """Add the endpoints; `writing` describes the errors of those that write."""

    @router.post("/{id}/undo", response_model=Freed, responses=writing, openapi_extra=request_body(UndoBody))
    async def undo(id: _Id, request: Request) -> Response:
        """Give back an ask that nobody has measured: its lease is freed, and that is no failure."""
        body = await read_body(request, UndoBody)
        return await writes.submit("undo", id, body.lease, body.reason, writer=request.state.caller.writer)

    @router.post("/{id}/archive", response_model=Archived, responses=writing, openapi_extra=request_body(ArchiveBody))
    async def archive(id: _Id, request: Request) -> Response:
        """Put a campaign away, or take it up again: meanwhile it is read-only, and lists leave it out."""
        body = await read_body(request, ArchiveBody)
        name = "archive" if body.archived else "unarchive"
        return await writes.submit(name, id, writer=request.state.caller.writer)

    @router.post("/{id}/lease-time", response_model=LeaseTime, responses=writing,
                 openapi_extra=request_body(LeaseTimeBody))  # fmt: skip
    async def lease_time(id: _Id, request: Request) -> Response:
        """Change how long a worker may take, from the next ask on."""
        body = await read_body(request, LeaseTimeBody)
        return await writes.submit(
            "change_lease_time", id, body.lease_seconds, writer=request.state.caller.writer
        )  # fmt: skip

    @router.delete("/{id}", response_model=Deleted, responses=writing)
    async def delete(id: _Id, name: Annotated[str, Query(description="The campaign's name, to confirm.")]) -> Response:
        """Delete a campaign with its log and its tokens. This cannot be undone."""
        return await json_response(store.delete, id, name)
