"""The endpoints that revise a campaign under way: items join or are retired, more groups, a smaller δ. For owners."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from coterie.web.request_models import ClustersBody, DeltaBody, ItemsBody, RetireBody, read_body, request_body
from coterie.web.response_models import RevisedCampaign
from coterie.web.write_queue import WriteQueue

_Id = Annotated[str, Path(description="The campaign's id.")]


def add_revisions(router: APIRouter, writes: WriteQueue, responses: dict[int | str, dict[str, Any]]) -> None:
    """Put the endpoints into a router of campaigns."""

    async def revise(id: str, request: Request, changes: dict[str, Any]) -> Response:
        return await writes.submit("revise", id, changes, writer=request.state.caller.writer)

    @router.post("/{id}/items", response_model=RevisedCampaign, responses=responses,
                 openapi_extra=request_body(ItemsBody))  # fmt: skip
    async def add_items(id: _Id, request: Request) -> Response:
        """Items join. They get the next numbers; nothing that was measured is measured again."""
        return await revise(id, request, dict(await read_body(request, ItemsBody)))

    @router.post("/{id}/retire", response_model=RevisedCampaign, responses=responses,
                 openapi_extra=request_body(RetireBody))  # fmt: skip
    async def retire_items(id: _Id, request: Request) -> Response:
        """Items are retired: their results are kept, and nothing is claimed about them."""
        return await revise(id, request, dict(await read_body(request, RetireBody)))

    @router.post("/{id}/clusters", response_model=RevisedCampaign, responses=responses,
                 openapi_extra=request_body(ClustersBody))  # fmt: skip
    async def raise_clusters(id: _Id, request: Request) -> Response:
        """There are more groups than was said; after an alarm, say."""
        return await revise(id, request, dict(await read_body(request, ClustersBody)))

    @router.post("/{id}/delta", response_model=RevisedCampaign, responses=responses,
                 openapi_extra=request_body(DeltaBody))  # fmt: skip
    async def lower_delta(id: _Id, request: Request) -> Response:
        """A smaller error probability; once it is done, the campaign goes on."""
        return await revise(id, request, dict(await read_body(request, DeltaBody)))
