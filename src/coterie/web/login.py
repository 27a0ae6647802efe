"""Logging in and out with a token, for people: the page, the session's cookie."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from coterie.web.access import SESSION_SECONDS, Access
from coterie.web.failed_logins import FailedLogins
from coterie.web.middleware import LONGEST_FORM, cookie_name, session_secret
from coterie.web.pages import page_response

_MOST_FIELDS = 10


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
        failed.check(address, access.by_token(token), "/login")
        secret = await run_in_threadpool(access.open_session, token)
        if secret is None:
            await failed.pause()
            problem = "This token is not known here. It is printed when the server starts for the first time."
            content = {"next": goal, "problem": problem, "plain": _plain(request)}
            return await run_in_threadpool(page_response, "login.html", request, 401, **content)
        answer = RedirectResponse(goal, 303)
        name, tls = cookie_name(request.scope), request.url.scheme == "https"
        answer.set_cookie(name, secret, path="/", secure=tls, httponly=True, samesite="strict",
                          max_age=int(SESSION_SECONDS))  # fmt: skip
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
