"""Tables that people send: lists of items for a new campaign, and results to be imported; CSV or Excel, as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from coterie.campaign import Campaigns
from coterie.campaign.importing import table_errors_as_bad_values
from coterie.tables.files import table_of_bytes
from coterie.tables.item_lists import read_items, read_pasted_items
from coterie.tables.time_limit import time_limit
from coterie.web.api import XLSX, Id, errors_of
from coterie.web.errors import Refusal
from coterie.web.json_response import SlowReads, to_json
from coterie.web.response_models import Imported, ItemsRead

_MEDIA = frozenset(
    {"text/csv", "text/plain", "text/tab-separated-values", XLSX, "application/vnd.ms-excel",
     "application/octet-stream"}
)  # fmt: skip
READING_SECONDS = 60.0
"""How long a table may be read and checked; taking it in, part by part, has its own limit."""
_STATUSES = (400, 404, 409, 413, 415, 422, 503)

FileName = Annotated[str, Query(max_length=200, description="What the file is called, for messages and for the log.")]
Sheet = Annotated[str | None, Query(max_length=200, description="The sheet of an Excel file; the first if left out.")]


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

    @router.post("/items", response_model=ItemsRead, responses=errors_of(*_STATUSES),
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
                found = read_pasted_items(_text(content))
            else:
                found = read_items(name, content, sheet)
            remarks = list(found.remarks)
            return to_json({"count": len(found.names), "names": found.names, "costs": found.costs, "remarks": remarks})

        return await _answer(readers, read)

    @router.post("/campaigns/{id}/import", response_model=Imported, responses=errors_of(*_STATUSES),
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
        what = f"got {media[:80]!r}" if media else "got none"
        raise Refusal(415, "not_a_table", f"send a table with the header Content-Type: text/csv, or {XLSX}; {what}")
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
