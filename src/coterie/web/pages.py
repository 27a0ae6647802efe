"""The pages: what the API sends, through templates; logging in and out. A script keeps pages up to date.

Everything on a page is read at one moment: one read of the store a page.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from coterie.campaign import CampaignError, Campaigns
from coterie.campaign.errors import Conflict, NotFound
from coterie.campaign.service.invitations import is_invitation
from coterie.campaign.tokens import OWNER
from coterie.campaign.views.status import MOST_LISTED
from coterie.web import page_content
from coterie.web.access import INVITED_SECONDS, SESSION_SECONDS, Access, FailedLogins
from coterie.web.answers import SlowReads
from coterie.web.log_content import LOG_PAGE, log_page
from coterie.web.middleware import LONGEST_FORM, cookie_name, session_secret
from coterie.web.page_content import proven_part
from coterie.web.rendering import render

_READ_LATER = 5000
"""The page of a campaign with more measurements than this opens at once, and shows them when they have been read."""
_HISTORY_POINTS = 400
_LISTED = 20  # campaigns on a page of the list

PRINTED_ITEMS = 1000
"""Up to so many items the page that is printed lists all of them; of more, some of each group."""

_HOST = re.compile(r"[\w.\-]+(?::\d{1,5})?|\[[0-9a-fA-F:.]+\](?::\d{1,5})?", re.ASCII)

_MOST_FIELDS = 10


def page_response(template: str, request: Request, code: int = 200, **content: Any) -> Response:
    """A page for whoever asks for it: what they may do is in the template's `may_write` and `signed_in`."""
    caller, may_manage = request.state.caller, getattr(request.state, "may_manage", False)
    writer = None if caller is None else caller.writer
    only_token = writer.token if writer is not None and writer.only_own else None  # whose results may be corrected
    who = {"may_write": request.state.may_write, "may_manage": may_manage, "signed_in": caller is not None}
    called = "" if only_token is None or caller is None else caller.label  # who was invited does not type a name
    shown = render(template, only_token=only_token, called=called, **who, **content)
    return Response(shown, code, media_type="text/html; charset=utf-8")


def takes_long(summary: dict[str, Any]) -> bool:
    """Whether a campaign's measurements have to be read first, and are many."""
    return not summary["in_memory"] and summary["measurements"] > _READ_LATER


def owns(request: Request) -> bool:
    """Whether the caller may change what is asked for."""
    return request.state.caller is not None and request.state.caller.role == OWNER


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
        listed = store.list_page(after, _LISTED, search, archived, only, newest_first=True)
        content = page_content.list_page(listed, search, archived, bool(after))
        return page_response("list.html", request, may_create=request.state.may_create, **content)

    @router.get("/new")
    def new(request: Request) -> Response:
        return page_response("new.html", request, may_create=request.state.may_create, **page_content.new_page())

    @router.get("/campaigns/{id}")
    def campaign(id: str, request: Request) -> Response:
        summary = store.overview(id)  # of the campaign's row only: it says whether reading the rest takes long
        if takes_long(summary):
            shown = summary | {"blocks": store.settings(id).get("blocks")}
            return page_response("campaign.html", request, reading=True, may_own=False, status=shown)
        content = page_content.live_page(store, id, _HISTORY_POINTS)
        return page_response("campaign.html", request, reading=False, may_own=owns(request), **content)

    @router.get("/campaigns/{id}/live")
    def live(id: str, request: Request) -> Response:
        return page_response("campaign_live.html", request, **page_content.live_page(store, id, _HISTORY_POINTS))

    @router.get("/campaigns/{id}/entry")
    async def entry(id: str, request: Request) -> Response:
        if takes_long(await run_in_threadpool(store.overview, id)):
            return Response(b"", 200, media_type="text/html; charset=utf-8")  # a list does not wait for that
        content = await slow.run(lambda: page_content.list_entry(store, id))
        return page_response("list_entry.html", request, **content)

    @router.get("/campaigns/{id}/proven")
    async def proven(id: str, request: Request) -> Response:
        content = await slow.run(lambda: proven_part(store, id))
        return page_response("campaign_proven.html", request, **content)

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return RedirectResponse("/static/icon.svg", 308)

    return router


def sharing_router(store: Campaigns, slow: SlowReads) -> APIRouter:
    """The addresses at which a campaign is handed on: its log, a sheet of paper, a table taken in, a QR code."""
    router = APIRouter(include_in_schema=False)

    @router.get("/campaigns/{id}/log")
    def log(id: str, request: Request, before: Annotated[int | None, Query(ge=1, le=2**62)] = None) -> Response:
        events = store.newest_events(id, before, LOG_PAGE)
        return page_response("log.html", request, **log_page(**events))

    @router.get("/campaigns/{id}/print")
    async def printed(id: str, request: Request) -> Response:
        content = await slow.run(lambda: print_page(store, id))
        return page_response("print.html", request, **content)

    @router.get("/campaigns/{id}/import")
    def import_page(id: str, request: Request) -> Response:
        settings, summary = store.settings(id), store.overview(id)
        may_import = request.state.caller.role == OWNER
        return page_response("import.html", request, campaign=summary, settings=settings, may_import=may_import)

    @router.get("/campaigns/{id}/qr")
    def qr(id: str, request: Request) -> Response:
        store.overview(id)  # that there is one
        address = address_of(request, id)
        svg = None if address is None else qr_svg(address)
        only_here = address is not None and is_local(address)
        return page_response("qr.html", request, address=address, svg=svg, only_here=only_here)

    return router


def origin_of(request: Request) -> str | None:
    """The address of this server, as this browser calls it; None if it says nothing that is one."""
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}" if _HOST.fullmatch(host) else None


def address_of(request: Request, id: str) -> str | None:
    """The address of a campaign's page, as this browser calls the server; None if it says nothing that is one.

    Nothing else is in it: no token, and nothing of what was asked.
    """
    origin = origin_of(request)
    return None if origin is None else f"{origin}/campaigns/{id}"


def is_local(address: str) -> bool:
    """Whether an address is one that only this machine reaches."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def qr_svg(address: str) -> Markup | None:
    """A QR code as SVG to be put into a page, dark on light in the dark too; None if segno is not installed."""
    try:
        import segno
    except ImportError:
        return None
    made = segno.make(address, error="m", micro=False)
    return Markup(made.svg_inline(scale=1, border=4, dark="#000", light="#fff", omitsize=True))  # numbers only


def print_page(store: Campaigns, id: str) -> dict[str, Any]:
    """The sheet: title, groups with intervals, the sentence of the certificate, date, and how to verify it."""
    page = store.page(id, 2, 1)
    status = page["status"]
    most = PRINTED_ITEMS if status["n_arms"] <= PRINTED_ITEMS else page_content.SHOWN_MEMBERS
    proven = status["done"] and status["certifies"] and status["n_arms"] <= MOST_LISTED
    return {
        "status": status,
        "counts": page_content.counts(status),
        **page_content.group_columns(status["groups"], page["picture"], most),
        "pulls": {} if status["cut"] else dict(enumerate(status["pulls"])),
        "digests": _digests(store, id) if proven else None,
    }


def _digests(store: Campaigns, id: str) -> dict[str, str] | None:
    """SHA-256 of the files that the proof consists of, so that a sheet of paper says which ones it is about."""
    try:
        texts = {kind: store.export(id, kind) for kind in ("certificate", "log")}
    except CampaignError:  # a campaign that an older release finished may have none
        return None
    return {kind: hashlib.sha256(text.encode("utf-8")).hexdigest() for kind, text in texts.items()}


def login_router(access: Access, failed: FailedLogins) -> APIRouter:
    """The addresses at which people log in and out. `failed` slows down those who guess."""
    router = APIRouter(include_in_schema=False)

    @router.get("/login")
    def login_page(request: Request) -> Response:
        goal = _address_inside(request.query_params.get("next", "/"))
        return page_response("login.html", request, next=goal, problem=None, plain=_plain(request))

    @router.post("/login")
    async def login(request: Request) -> Response:
        form = _form_fields(await request.body())
        goal = _address_inside(form.get("next", ["/"])[0])
        address = request.client.host if request.client else "?"
        token = form.get("token", [""])[0].strip()
        lasting = SESSION_SECONDS
        problem = "This token is not known here. It is printed when the server starts for the first time."
        if is_invitation(token):
            failed.check_address(address)
            lasting = INVITED_SECONDS
            try:
                secret = await run_in_threadpool(access.accept, token)
            except (NotFound, Conflict) as error:
                secret, problem = None, error.message
                failed.check(address, None, "/login")
        else:
            failed.check(address, access.by_token(token), "/login")
            secret = await run_in_threadpool(access.open_session, token)
        if secret is None:
            await failed.pause()
            content = {"next": goal, "problem": problem, "plain": _plain(request)}
            return await run_in_threadpool(page_response, "login.html", request, 401, **content)
        answer = RedirectResponse(goal, 303)
        name, tls = cookie_name(request.scope), request.url.scheme == "https"
        answer.set_cookie(name, secret, path="/", secure=tls, httponly=True, samesite="strict",
                          max_age=int(lasting))  # fmt: skip
        return answer

    @router.post("/logout")
    async def logout(request: Request) -> Response:
        secret = session_secret(request.scope)
        if secret is not None:
            await run_in_threadpool(access.close_session, secret)
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(cookie_name(request.scope), path="/", secure=request.url.scheme == "https", httponly=True)
        return answer

    return router


def _plain(request: Request) -> bool:
    """Whether it came over plain HTTP: then browsers send the session's cookie to every port of the host."""
    return request.url.scheme != "https"


def _form_fields(body: bytes) -> dict[str, list[str]]:
    """The fields of a form; none of one that is longer than a login."""
    text = body[:LONGEST_FORM].decode("latin-1")
    if text.count("&") >= _MOST_FIELDS:
        return {}
    return parse_qs(text, max_num_fields=_MOST_FIELDS, errors="replace")


def _address_inside(address: str) -> str:
    """The address if it is one of this site, else that of the first page: nobody is sent elsewhere."""
    safe = address.startswith("/") and not address.startswith("//") and address.isascii() and address.isprintable()
    return address if safe and "\\" not in address else "/"
