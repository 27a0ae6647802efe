"""Checks that every request passes before it reaches an endpoint: its caller, its role, its rate, its size.

Everything is closed by default: an address is open to everybody only if it is listed here, reading (GET, HEAD) needs a
token, asking, telling, failing and undoing one of a worker, and everything else one of an owner. The cookie of a page
counts for writing only in requests that this very site's pages made. Answers of other origins' scripts are never
allowed for: there are no CORS headers.
"""

from __future__ import annotations

import hmac
import logging
import re
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coterie.campaign.tokens import OWNER
from coterie.web.access import Access, Caller, FailedLogins, hash_of
from coterie.web.answers import Refusal, refusal_for, refusal_response, wants_page
from coterie.web.limits import Rate, declares_body, read_limited_body
from coterie.web.metrics import METRICS, PATH, Requests

LONGEST_FORM = 4096
"""Bytes of what the login page sends."""
_LONGEST_ADDRESS = 8192
_CAMPAIGN = re.compile(r"(?:/api)?/campaigns/(?P<id>[^/]+)(?:/(?P<what>[^/]+))?/?$")
_MEASURES = re.compile(r"/api/campaigns/(?P<id>[^/]+)/(?P<what>ask|tell)")
_WORK = (
    "ask",
    "tell",
    "fail",
    "undo",
    "corrections",
    "close-block",
    "attachments",
)  # what a worker may do in a campaign, beside looking
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
    """The outermost layer of the application: it refuses what may not pass, and adds headers to all answers.

    `measuring` answers asks and tells at once. They are nearly all requests, and the framework spends more on finding
    the way to an endpoint and on solving its parameters than the endpoint takes. `metrics_token` is the hash of the
    token that opens `/metrics` and nothing else.
    """

    app: ASGIApp
    access: Access
    rate: Rate
    failed: FailedLogins
    max_body: int
    measuring: Mapping[str, Callable[[str, Request], Awaitable[Response]]]
    requests: Requests
    metrics_token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = self.requests.observed(scope, send)
        started = False
        unread = declares_body(scope)

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = [*message.get("headers", ()), *_HEADERS]
                if unread:  # nobody waits for the rest of it
                    headers.append((b"connection", b"close"))
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            await send(message)

        try:
            await self.access.refresh()
            answer = self._redirection(scope)
            if answer is None:
                receive = await read_limited_body(scope, receive, self._longest_body(scope))
                unread = False
                await self._let_through(scope, receive, send_with_headers)
                return
        except Exception as error:
            if started:
                raise
            refusal = refusal_for(error)
            if refusal.code == "wrong_token":
                refusal = await self._after_pause(refusal)
            if refusal.status_code >= 500 and refusal.code == "internal_error":
                # Where, not what: messages of databases quote the values that they were given.
                where = "".join(traceback.format_tb(error.__traceback__))
                log.error("%s in %s %s\n%s", type(error).__name__, scope["method"], scope["path"], where)
            answer = refusal_response(scope, refusal)
        await answer(scope, receive, send_with_headers)

    async def _let_through(self, scope: Scope, receive: Receive, send: Send) -> None:
        measures = _MEASURES.fullmatch(scope["path"]) if scope["method"] == "POST" else None
        if measures is None:
            await self.app(scope, receive, send)
        else:
            scope["counted_as"] = f"/api/campaigns/{{id}}/{measures['what']}"
            answer = await self.measuring[measures["what"]](measures["id"], Request(scope, receive))
            await answer(scope, receive, send)

    async def _after_pause(self, refusal: Refusal) -> Refusal:
        try:
            await self.failed.pause()
        except Refusal as busy:
            return busy
        return refusal

    async def _still_allowed(self, scope: Scope, caller: Caller | None) -> bool:
        """Whether whoever was let in would be let in now, for answers that take long: nobody has logged out or revoked
        the token meanwhile.
        """
        await self.access.refresh()
        given = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        if given is not None:
            return self.access.by_token(given.decode("latin-1").partition(" ")[2].strip()) == caller
        secret = session_secret(scope)
        return secret is not None and self.access.by_session(secret) == caller

    def _longest_body(self, scope: Scope) -> int:
        """Bytes of a body that this address takes."""
        if scope["method"] in _READING or scope["path"] == "/logout":
            return 0
        return LONGEST_FORM if scope["path"] == "/login" else self.max_body

    def _redirection(self, scope: Scope) -> Response | None:
        """A redirection to the login page, None if the request may pass; `Refusal` is raised if it may not."""
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _LONGEST_ADDRESS:
            raise Refusal(414, "address_too_long", f"an address has at most {_LONGEST_ADDRESS} bytes")
        headers = dict(scope["headers"])
        address = (scope.get("client") or ("?",))[0]
        caller, by_cookie = self._caller(scope, headers, address)
        self.rate.check(address if caller is None else caller.token)
        writes = scope["method"] not in _READING
        state = scope.setdefault("state", {})
        state["may_write"] = caller is not None and caller.may_write
        state["may_create"] = caller is not None and caller.may_create
        state["may_manage"] = caller is not None and caller.role == OWNER
        state["caller"] = caller
        state["still_allowed"] = partial(self._still_allowed, scope, caller)
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
        _check_role(scope["path"], writes and scope["path"] != "/logout", caller)
        return None

    def _caller(self, scope: Scope, headers: dict[bytes, bytes], address: str) -> tuple[Caller | None, bool]:
        """Who it is or None, and whether a cookie said so."""
        given = headers.get(b"authorization")
        if given is not None:
            kind, _, token = given.decode("latin-1").partition(" ")
            caller = self._by_token(scope["path"], token.strip()) if kind.lower() == "bearer" else None
            self.failed.check(address, caller, scope["path"])
            if caller is None:
                raise Refusal(401, "wrong_token", "this token is not known here", None, _AUTHENTICATE)
            return caller, False
        secret = session_secret(scope)
        caller = None if secret is None else self.access.by_session(secret)
        return caller, caller is not None

    def _by_token(self, path: str, token: str) -> Caller | None:
        if path == PATH and self.metrics_token is not None and hmac.compare_digest(hash_of(token), self.metrics_token):
            return Caller(self.metrics_token, METRICS)
        return self.access.by_token(token)


def _check_role(path: str, writes: bool, caller: Caller) -> None:
    """Refuse what a caller's role, or the campaign that its token is for, does not allow."""
    named = _CAMPAIGN.match(path)
    if named is not None and not caller.sees(named["id"]):
        raise Refusal(403, "other_campaign", "this token is for another campaign")
    if not writes or (caller.role == OWNER and (caller.campaign is None or named is not None)):
        return
    if not caller.may_write:
        raise Refusal(403, "read_only_token", "this token may read, not write")
    if named is None or named["what"] not in _WORK:
        raise Refusal(403, "not_for_this_token", "this needs a token of an owner of all campaigns")


def cookie_name(scope: Scope) -> str:
    """The name of the session's cookie. Browsers tell servers on one host apart by nothing else: it has the port, and
    over TLS the prefix with which no other server of the host, nor a page without TLS, can set it.
    """
    port = (scope.get("server") or ("", None))[1]
    return f"{'__Host-' if scope.get('scheme') == 'https' else ''}coterie_session_{port}"


def session_secret(scope: Scope) -> str | None:
    """The session's secret in a request's cookie."""
    cookies = next((value for name, value in scope["headers"] if name == b"cookie"), b"").decode("latin-1")
    try:
        cookie = SimpleCookie(cookies).get(cookie_name(scope))
    except CookieError:
        return None
    return None if cookie is None else cookie.value


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
