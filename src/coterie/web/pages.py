"""The pages: what the API sends, through templates. A script keeps them up to date.

Everything on a page is read at one moment: one read of the store a page.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from coterie.campaign import Campaigns
from coterie.campaign.tokens import OWNER
from coterie.web import page_content
from coterie.web.json_response import SlowReads
from coterie.web.proven_content import proven_part
from coterie.web.rendering import render

_READ_LATER = 5000
"""The page of a campaign with more measurements than this opens at once, and shows them when they have been read."""
_HISTORY_POINTS = 400
_LISTED = 50  # campaigns on a page of the list


def page_response(template: str, request: Request, code: int = 200, **content: Any) -> Response:
    """A page for whoever asks for it: what they may do is in the template's `may_write` and `signed_in`."""
    caller, may_manage = request.state.caller, getattr(request.state, "may_manage", False)
    writer = None if caller is None else caller.writer
    only_token = writer.token if writer is not None and writer.only_own else None  # whose results may be corrected
    who = {"may_write": request.state.may_write, "may_manage": may_manage, "signed_in": caller is not None}
    shown = render(template, only_token=only_token, **who, **content)
    return Response(shown, code, media_type="text/html; charset=utf-8")


def page_router(store: Campaigns, slow: SlowReads) -> APIRouter:
    """The addresses that people open."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    def campaigns(
        request: Request,
        after: Annotated[str, Query(max_length=200)] = "",
        search: Annotated[str, Query(max_length=200)] = "",
        archived: bool = False,
    ) -> Response:
        only = request.state.caller.campaign
        found = store.list_page(after, _LISTED, search, archived, only, newest_first=True)
        content = page_content.list_page(found, search, archived, bool(after))
        return page_response("list.html", request, may_create=request.state.may_create, **content)

    @router.get("/campaigns/{id}")
    def campaign(id: str, request: Request) -> Response:
        summary = store.overview(id)  # of the campaign's row only: it says whether reading the rest takes long
        if not summary["in_memory"] and summary["measurements"] > _READ_LATER:
            return page_response("campaign.html", request, reading=True, may_own=False, status=summary)
        return page_response("campaign.html", request, reading=False, may_own=owns(request), **progress(id))

    def owns(request: Request) -> bool:
        """Whether the caller may change what is asked for."""
        return request.state.caller is not None and request.state.caller.role == OWNER

    @router.get("/campaigns/{id}/live")
    def live(id: str, request: Request) -> Response:
        return page_response("campaign_progress.html", request, **progress(id))

    @router.get("/campaigns/{id}/proven")
    async def proven(id: str, request: Request) -> Response:
        content = await slow.run(lambda: proven_part(store, id))
        return page_response("campaign_proven.html", request, **content)

    def progress(id: str) -> dict[str, Any]:
        return page_content.campaign_page(**store.page(id, _HISTORY_POINTS, page_content.RECENT_EVENTS))

    @router.get("/campaigns/{id}/log")
    def log(id: str, request: Request, before: Annotated[int | None, Query(ge=1, le=2**62)] = None) -> Response:
        found = store.newest_events(id, before, page_content.LOG_PAGE)
        return page_response("log.html", request, **page_content.log_page(**found))

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return RedirectResponse("/static/icon.svg", 308)

    return router
