"""Logging in and out with a token, for people: the page, the session's cookie."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from coterie.web.access import Access
from coterie.web.limits import Rate
from coterie.web.middleware import COOKIE, session_secret
from coterie.web.pages import page_response

_LONGEST_FORM = 4096
_MOST_FIELDS = 10
_COOKIE_SECONDS = 7 * 86400


def login_router(access: Access, wrong_tokens: Rate) -> APIRouter:
    """The addresses at which people log in and out. `wrong_tokens` slows down those who guess."""
    router = APIRouter(include_in_schema=False)

    @router.get("/login")
    def login_page(request: Request) -> Response:
        goal = _address_inside(request.query_params.get("next", "/"))
        return page_response("login.html", request, next=goal, problem=None)

    @router.post("/login")
    async def login(request: Request) -> Response:
        form = _form_fields(await request.body())
        goal = _address_inside(form.get("next", ["/"])[0])
        address = request.client.host if request.client else "?"
        wrong_tokens.check(address, 0.0)  # whoever has been guessing is not told whether this one is right
        secret = access.open_session(form.get("token", [""])[0].strip())
        if secret is None:
            wrong_tokens.check(address)
            problem = "This token is not known here. It is printed when the server starts for the first time."
            return await run_in_threadpool(page_response, "login.html", request, 401, next=goal, problem=problem)
        answer = RedirectResponse(goal, 303)
        answer.set_cookie(COOKIE, secret, path="/", secure=request.url.scheme == "https", httponly=True,
                          samesite="strict", max_age=_COOKIE_SECONDS)  # fmt: skip
        return answer

    @router.post("/logout")
    async def logout(request: Request) -> Response:
        secret = session_secret(request.headers.get("cookie", ""))
        if secret is not None:
            access.close_session(secret)
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, path="/")
        return answer

    return router


def _form_fields(body: bytes) -> dict[str, list[str]]:
    """The fields of a form; none of one that is longer than a login."""
    text = body[:_LONGEST_FORM].decode("latin-1")
    if text.count("&") >= _MOST_FIELDS:
        return {}
    return parse_qs(text, max_num_fields=_MOST_FIELDS, errors="replace")


def _address_inside(address: str) -> str:
    """The address if it is one of this site, else that of the first page: nobody is sent elsewhere."""
    safe = address.startswith("/") and not address.startswith("//") and address.isascii() and address.isprintable()
    return address if safe and "\\" not in address else "/"
