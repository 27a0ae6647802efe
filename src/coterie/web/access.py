"""Who may do what: tokens of programs, and the sessions of people who typed one.

The store has both, as hashes (`coterie.campaign.tokens`). They are read again now and then, so that a token that was
made or revoked by a command holds, or holds no longer, without a restart; and sessions survive one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from coterie.campaign import CampaignError, StoreUnavailable
from coterie.campaign.tokens import OWNER, READER, WORKER, Writer, hash_of, id_of, new_token, role_of

if TYPE_CHECKING:
    from coterie.campaign import Campaigns

SHORTEST_GOOD_TOKEN = 16
SESSION_SECONDS = 7 * 86400.0
_SESSIONS_PER_TOKEN = 100
"""The oldest of the same token goes first: whoever logs in often ends nobody else's session."""
_FRESH_SECONDS = 1.0
_SERVE = "serve"  # what the tokens are called that `coterie serve` was given or has made

log = logging.getLogger("coterie.web")


@dataclass(frozen=True)
class Caller:
    """Whoever has a token: its hash (never the token), its role, and the only campaign that it is for (None: all)."""

    token: str
    role: str
    campaign: str | None = None

    @property
    def may_write(self) -> bool:
        """Whether it may hand in results."""
        return self.role in (WORKER, OWNER)

    @property
    def may_create(self) -> bool:
        """Whether it may begin campaigns."""
        return self.role == OWNER and self.campaign is None

    @property
    def writer(self) -> Writer:
        """Who it is in the record."""
        return Writer(id_of(self.token), only_own=self.role == WORKER)

    def sees(self, campaign: str) -> bool:
        """Whether a campaign is one that it is for."""
        return self.campaign in (None, campaign)


class Access:
    """Tokens, by their hashes, with their roles; or (`of_store`) the tokens and sessions that a store knows, as they
    were a second ago at most.
    """

    def __init__(self, roles: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self._store: Campaigns | None = None
        self._clock = clock
        self._own = {hash: Caller(hash, role_of(role)) for hash, role in roles.items()}
        self._callers = dict(self._own)
        self._sessions: dict[str, dict[str, Any]] = {}  # by hash, oldest first
        self._not_kept: dict[str, dict[str, Any]] = {}  # of these, those that a read-only store could not keep
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    @classmethod
    def of_store(
        cls, store: Campaigns, clock: Callable[[], float] = time.time, roles: Mapping[str, str] | None = None
    ) -> Access:
        """The tokens and sessions that a store knows, and the tokens with these roles beside."""
        made = cls(roles or {}, clock)
        made._store = store
        made.read()
        return made

    def read(self) -> None:
        """Read what the store has now."""
        if self._store is None:
            return
        tokens, sessions = self._store.tokens(), self._store.sessions()
        self._callers = {
            one["hash"]: Caller(one["hash"], one["role"], one["campaign"]) for one in tokens if not one["revoked"]
        } | self._own
        sessions += self._not_kept.values()
        self._sessions = {one["hash"]: one for one in sorted(sessions, key=lambda one: one["until"])}
        self._read_at = time.monotonic()

    async def refresh(self) -> None:
        """Read again, if that was some time ago. One does so at a time, and nobody waits for it; a store that is away
        changes nothing.
        """
        if self._store is None or time.monotonic() < self._read_at + _FRESH_SECONDS or self._reading.locked():
            return
        async with self._reading:
            try:
                await run_in_threadpool(self.read)
            except CampaignError as error:
                self._read_at = time.monotonic()
                log.info("the tokens could not be read again: %s", error.message)

    def by_token(self, token: str) -> Caller | None:
        """Whoever has this token."""
        # A dictionary of hashes: how long the look-up takes says nothing about the token.
        return self._callers.get(hash_of(token))

    def open_session(self, token: str) -> str | None:
        """The secret of a new session, or None if the token is not known."""
        caller = self.by_token(token)
        if caller is None:
            return None
        secret = new_token()
        session: dict[str, Any] = {
            "hash": hash_of(secret),
            "token": caller.token,
            "until": self._clock() + SESSION_SECONDS,
        }
        own = [one["hash"] for one in self._sessions.values() if one["token"] == caller.token]
        over = [one["hash"] for one in self._sessions.values() if one["until"] < self._clock()]
        ended = [*over, *own[: max(0, len(own) + 1 - _SESSIONS_PER_TOKEN)]]
        if self._store is not None:
            try:
                self._store.add_session(session, ended)
            except StoreUnavailable as error:
                if error.code != "read_only":
                    raise
                self._not_kept = {hash: one for hash, one in self._not_kept.items() if hash not in ended}
                self._not_kept[session["hash"]] = session
        self._sessions = {hash: one for hash, one in self._sessions.items() if hash not in ended}
        self._sessions[session["hash"]] = session
        return secret

    def by_session(self, secret: str) -> Caller | None:
        """Whoever has logged in with this session; nobody, once its token was revoked."""
        session = self._sessions.get(hash_of(secret))
        if session is None or session["until"] < self._clock():
            return None
        return self._callers.get(session["token"])

    def close_session(self, secret: str) -> None:
        """Forget a session."""
        hash = hash_of(secret)
        if self._store is not None and self._not_kept.pop(hash, None) is None:
            self._store.remove_sessions([hash])
        self._sessions.pop(hash, None)


def prepare_tokens(
    store: Campaigns, token: str | None = None, read_token: str | None = None, renew: bool = False
) -> str | None:
    """See to it that the store knows an owner's token; one that was made here is returned, to be shown once.

    A token that is given replaces the one of its role that an earlier start was given or made. Without one, those of
    earlier starts hold, unless `renew` asks for a new one; it ends all earlier ones, those made by command too.
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
    if token is None and not any(row["role"] == OWNER and not row["campaign"] for row in _valid(store)):
        token = made = new_token()
    for given, role in ((token, OWNER), (read_token, READER)):
        if given is not None:
            _replace(store, given, role)
    return made


def access_to(
    store: Campaigns, token: str | None = None, read_token: str | None = None, renew: bool = False
) -> tuple[Access, str | None]:
    """Who may use a server of this store, and the token that was made (`prepare_tokens`). Those that a read-only store
    cannot keep hold as long as the server runs.
    """
    try:
        made = prepare_tokens(store, token, read_token, renew)
    except StoreUnavailable as error:
        if error.code != "read_only" or renew:
            raise
        made = new_token() if token is None else None
        given = ((token or made, OWNER), (read_token, READER))
        return Access.of_store(store, roles={hash_of(one): role for one, role in given if one is not None}), made
    return Access.of_store(store), made


def _valid(store: Campaigns) -> Iterable[dict[str, Any]]:
    return [row for row in store.tokens() if not row["revoked"]]


def _replace(store: Campaigns, token: str, role: str) -> None:
    digest = hash_of(token)
    known = store.tokens()
    if (digest, role, None) not in [(row["hash"], row["role"], row["revoked"]) for row in known]:
        if digest in [row["hash"] for row in known]:
            store.remove_token(digest)
        store.add_token(digest, role, _SERVE)  # nothing happens if another server with the same token was faster
    for row in known:
        if row["role"] == role and row["hash"] != digest and row["label"] == _SERVE:
            store.remove_token(row["hash"])


__all__ = [
    "SESSION_SECONDS",
    "SHORTEST_GOOD_TOKEN",
    "Access",
    "Caller",
    "access_to",
    "hash_of",
    "new_token",
    "prepare_tokens",
]
