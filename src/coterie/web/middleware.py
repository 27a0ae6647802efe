"""Checks that every request passes before it reaches an endpoint: its caller, its scope, its rate, its size.

The door is closed by default: an address is open to everybody only if it is listed here, reading (GET, HEAD) needs a
token, and everything else needs one that may write. The cookie of a page counts for writing only in requests that this
very site's pages made. Answers of other origins' scripts are never allowed for: there are no CORS headers.
"""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coterie.web.access import WRITE, Access
from coterie.web.errors import Refusal, refusal_for, refusal_response, wants_page
from coterie.web.limits import Rate, read_limited_body

COOKIE = "coterie_session"
_PROVEN_CALLERS_KEPT = 10_000
OPEN_PATHS = frozenset({"/login", "/healthz", "/openapi.json", "/favicon.ico"})
_READING = frozenset({"GET", "HEAD"})
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        b"frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_AUTHENTICATE = {"WWW-Authenticate": 'Bearer realm="coterie"'}

log = logging.getLogger("coterie.web")


@dataclass
class AccessMiddleware:
    """The outermost layer of the application: it refuses what may not pass, and adds headers to all answers."""

    app: ASGIApp
    access: Access
    rate: Rate
    wrong_tokens: Rate
    max_body: int
    proven_callers: set[tuple[str, str]] = field(default_factory=set)
    """Addresses, with the hashes of the tokens that were right there."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = [*message.get("headers", ()), *_HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            await send(message)

        try:
            answer = self._redirection(scope)
            if answer is None:
                if scope["method"] not in _READING:
                    receive = await read_limited_body(scope, receive, self.max_body)
                await self.app(scope, receive, send_with_headers)
                return
        except Exception as error:
            if started:
                raise
            refusal = refusal_for(error)
            if refusal.status_code >= 500 and refusal.code == "internal_error":
                # Where, not what: messages of databases quote the values that they were given.
                where = "".join(traceback.format_tb(error.__traceback__))
                log.error("%s in %s %s\n%s", type(error).__name__, scope["method"], scope["path"], where)
            answer = refusal_response(scope, refusal)
        await answer(scope, receive, send_with_headers)

    def _redirection(self, scope: Scope) -> Response | None:
        """A redirection to the login page, None if the request may pass; `Refusal` is raised if it may not."""
        headers = dict(scope["headers"])
        address = (scope.get("client") or ("?",))[0]
        caller, by_cookie = self._caller(headers, address)
        self.rate.check(address if caller is None else caller[0])
        writes = scope["method"] not in _READING
        state = scope.setdefault("state", {})
        state["may_write"] = caller is not None and caller[1] == WRITE
        state["caller"] = caller
        if writes and (by_cookie or scope["path"] == "/login"):
            _check_same_origin(headers)
        if scope["path"] in OPEN_PATHS or scope["path"].startswith("/static/"):
            return None
        if caller is None:
            if wants_page(scope) and not writes:
                return RedirectResponse("/login?next=" + quote(scope["path"]), 303)
            raise Refusal(
                401, "no_token", "a token is needed: send the header Authorization: Bearer TOKEN", None, _AUTHENTICATE
            )
        if writes and scope["path"] != "/logout" and caller[1] != WRITE:
            raise Refusal(403, "read_only_token", "this token may read, not write")
        return None

    def _caller(self, headers: dict[bytes, bytes], address: str) -> tuple[tuple[str, str] | None, bool]:
        """(who, scope) or None, and whether a cookie said so."""
        given = headers.get(b"authorization")
        if given is not None:
            kind, _, token = given.decode("latin-1").partition(" ")
            caller = self.access.by_token(token.strip()) if kind.lower() == "bearer" else None
            if caller is not None and (address, caller[0]) in self.proven_callers:
                return caller, False
            # Whoever has been guessing is not told whether this one is right, unless it was used from there before.
            self.wrong_tokens.check(address, 0.0 if caller is not None else 1.0)
            if caller is None:
                raise Refusal(401, "wrong_token", "this token is not known here", None, _AUTHENTICATE)
            if len(self.proven_callers) >= _PROVEN_CALLERS_KEPT:
                self.proven_callers.clear()
            self.proven_callers.add((address, caller[0]))
            return caller, False
        secret = session_secret(headers.get(b"cookie", b"").decode("latin-1"))
        caller = None if secret is None else self.access.by_session(secret)
        return caller, caller is not None


def session_secret(cookies: str) -> str | None:
    """The session's secret in a Cookie header."""
    try:
        found = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _check_same_origin(headers: dict[bytes, bytes]) -> None:
    """Refuse what a page of another site makes a browser send."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        same = site == b"same-origin"
    else:  # an old browser, or http on another host than this one: there the origin is compared
        origin = headers.get(b"origin", b"")
        same = origin.partition(b"://")[2] == headers.get(b"host", b"-")
    if not same:
        raise Refusal(403, "cross_origin", "requests with a page's cookie must come from this site's own pages")
