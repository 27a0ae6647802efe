"""The pages: the same views as the API's, through templates. A script keeps them up to date."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from coterie.campaign import Campaigns
from coterie.web import views
from coterie.web.access import Access
from coterie.web.guard import COOKIE, session_secret
from coterie.web.limits import Rate
from coterie.web.rendering import render

_LONGEST_FORM = 4096
_READ_LATER = 5000
"""The page of a campaign with more measurements than this opens at once, and shows them when they have been read."""


def _page(template: str, request: Request, code: int = 200, **content: Any) -> Response:
    shown = render(template, may_write=request.state.may_write, signed_in=request.state.caller is not None, **content)
    return Response(shown, code, media_type="text/html; charset=utf-8")


def page_router(store: Campaigns, access: Access, wrong_tokens: Rate) -> APIRouter:
    """The addresses that people open."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    def campaigns(request: Request) -> Response:
        return _page("list.html", request, **views.list_page(store.list()))

    @router.get("/campaigns/{id}")
    def campaign(id: str, request: Request) -> Response:
        overview = store.overview(id)
        if not overview["in_memory"] and overview["measurements"] > _READ_LATER:
            return _page("campaign.html", request, reading=True, status=overview)
        return _page("campaign.html", request, reading=False, **_shown(id))

    @router.get("/campaigns/{id}/live")
    def live(id: str, request: Request) -> Response:
        return _page("live.html", request, **_shown(id))

    def _shown(id: str) -> dict[str, Any]:
        found = store.page(id, points=400, recent=4 * views.RECENT)
        return views.campaign_page(found["status"], found["history"], found["events"])

    @router.get("/campaigns/{id}/log")
    def log(id: str, request: Request, before: Annotated[int | None, Query(ge=1, le=2**62)] = None) -> Response:
        overview = store.overview(id)
        newest = overview["seq"]
        last = newest if before is None else min(before - 1, newest)
        first = max(0, last - views.LOG_PAGE)
        events = store.events(id, first, max(1, last - first))
        older = first + 1 if first > 0 else None
        newer = min(last + views.LOG_PAGE, newest) + 1 if last < newest else None
        return _page(
            "log.html", request, id=id, name=overview["name"], older=older, newer=newer, first=first + 1, last=last,
            newest=newest, **views.log_page(events),
        )  # fmt: skip

    @router.get("/login")
    def login_page(request: Request) -> Response:
        return _page("login.html", request, next=_inside(request.query_params.get("next", "/")), problem=None)

    @router.post("/login")
    async def login(request: Request) -> Response:
        body = (await request.body())[:_LONGEST_FORM].decode("latin-1")
        form = parse_qs(body, max_num_fields=10, errors="replace") if body.count("&") < 10 else {}
        goal = _inside(form.get("next", ["/"])[0])
        address = request.client.host if request.client else "?"
        wrong_tokens.check(address, 0.0)  # whoever has been guessing is not told whether this one is right
        secret = access.open_session(form.get("token", [""])[0].strip())
        if secret is None:
            wrong_tokens.check(address)
            problem = "This token is not known here. It is printed when the server starts for the first time."
            return await run_in_threadpool(_page, "login.html", request, 401, next=goal, problem=problem)
        answer = RedirectResponse(goal, 303)
        answer.set_cookie(COOKIE, secret, path="/", secure=request.url.scheme == "https", httponly=True,
                          samesite="strict", max_age=7 * 86400)  # fmt: skip
        return answer

    @router.post("/logout")
    async def logout(request: Request) -> Response:
        secret = session_secret(request.headers.get("cookie", ""))
        if secret is not None:
            access.close_session(secret)
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, path="/")
        return answer

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return RedirectResponse("/static/icon.svg", 308)

    return router


def _inside(address: str) -> str:
    """An address of this site, whatever was given."""
    safe = address.startswith("/") and not address.startswith("//") and address.isascii() and address.isprintable()
    return address if safe and "\\" not in address else "/"
