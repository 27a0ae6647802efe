"""Who may read and who may write: tokens of programs, and the sessions of people who typed one.

Tokens are kept as SHA-256 hashes. That is enough for generated ones: 256 random bits cannot be found by trying, so a
slow, salted hash would protect nothing more and would cost every request its time. A token that somebody made up is as
good as it is long; `coterie serve` warns about short ones.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coterie.campaign import Campaigns

READ, WRITE = "read", "write"
SHORTEST_GOOD_TOKEN = 16
_SESSIONS_KEPT = 1000
_SESSION_SECONDS = 7 * 86400.0


def new_token() -> str:
    """256 random bits that can be copied and typed."""
    return secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class _Session:
    token: str  # its hash
    scope: str
    until: float


class Access:
    """The tokens' hashes with their scopes, and the sessions opened with them. Sessions are lost at a restart."""

    def __init__(self, hashes: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self._hashes, self._clock = dict(hashes), clock
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    @classmethod
    def of_store(cls, store: Campaigns) -> Access:
        """The tokens that the store knows."""
        return cls({row["hash"]: row["scope"] for row in store.tokens()})

    def by_token(self, token: str) -> tuple[str, str] | None:
        """(who, scope) of a token; who is a name for the rate limit, never the token."""
        # A dictionary of hashes: how long the look-up takes says nothing about the token.
        digest = hash_of(token)
        scope = self._hashes.get(digest)
        return None if scope is None else (digest, scope)

    def open_session(self, token: str) -> str | None:
        """The secret of a new session, or None if the token is not known."""
        found = self.by_token(token)
        if found is None:
            return None
        secret = new_token()
        self._sessions[hash_of(secret)] = _Session(*found, self._clock() + _SESSION_SECONDS)
        while len(self._sessions) > _SESSIONS_KEPT:
            self._sessions.popitem(last=False)
        return secret

    def by_session(self, secret: str) -> tuple[str, str] | None:
        """(who, scope) of a session."""
        session = self._sessions.get(hash_of(secret))
        if session is None or session.until < self._clock():
            return None
        return session.token, session.scope

    def close_session(self, secret: str) -> None:
        """Forget a session."""
        self._sessions.pop(hash_of(secret), None)


def prepare_tokens(
    store: Campaigns, token: str | None = None, read_token: str | None = None, renew: bool = False
) -> str | None:
    """See to it that the store knows a token for writing; one that was made here is returned, to be shown once.

    A token that is given replaces the earlier ones of its scope. Without one, those of earlier starts hold, unless
    `renew` asks for a new one; it ends all earlier ones, those for reading too.
    """
    for given, name in ((token, "token"), (read_token, "read token")):
        if given is not None and (not given or not given.isascii() or not given.isprintable() or " " in given):
            raise ValueError(f"a {name} consists of visible ASCII characters without blanks")
    if token is not None and token == read_token:
        raise ValueError("the token and the read token must differ")
    made = None
    if renew:
        for row in store.tokens():
            store.remove_token(row["hash"])
    if token is None and (renew or not any(row["scope"] == WRITE for row in store.tokens())):
        token = made = new_token()
    for given, scope in ((token, WRITE), (read_token, READ)):
        if given is not None:
            _replace(store, given, scope)
    return made


def _replace(store: Campaigns, token: str, scope: str) -> None:
    digest = hash_of(token)
    known = store.tokens()
    if (digest, scope) not in [(row["hash"], row["scope"]) for row in known]:
        if digest in [row["hash"] for row in known]:
            store.remove_token(digest)
        store.add_token(digest, scope, "serve")  # nothing happens if another server with the same token was faster
    for row in known:
        if row["scope"] == scope and row["hash"] != digest:
            store.remove_token(row["hash"])
