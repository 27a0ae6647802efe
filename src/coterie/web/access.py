"""Who may do what: tokens of programs, the sessions of people who typed one, and wrong tokens.

The store has tokens and sessions, as hashes (`coterie.campaign.tokens`). They are read again now and then, so that a
token that was made or revoked by a command holds, or holds no longer, without a restart; and sessions survive one.

Wrong tokens are counted for each address and in all, logged, and slowed down; whoever has a right one is not concerned.
An address has 20 tries, then one a second; beyond that it is not told whether a token is right, unless that token was
used from there before. Where wrong ones come from many addresses at once, each is answered after a pause: that holds up
nobody else, and only so many wait at a time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool

from coterie.campaign import CampaignError, StoreUnavailable
from coterie.campaign.errors import NotFound
from coterie.campaign.tokens import OWNER, READER, WORKER, Writer, hash_of, id_of, new_token, role_of
from coterie.web.answers import Refusal
from coterie.web.limits import Rate

if TYPE_CHECKING:
    from coterie.campaign import Campaigns

__all__ = [
    "INVITED_SECONDS",
    "MOST_ASKS",
    "SESSION_SECONDS",
    "SHORTEST_GOOD_TOKEN",
    "Access",
    "Caller",
    "FailedLogins",
    "access_to",
    "check_token",
    "hash_of",
    "new_token",
    "prepare_tokens",
]

SHORTEST_GOOD_TOKEN = 20
MOST_ASKS = 2000
"""Asks of a campaign that a token may have open at once, unless another number is given."""
SESSION_SECONDS = 7 * 86400.0
INVITED_SECONDS = 90 * 86400.0
"""Of the session of somebody who was invited: there is no token that could be typed again."""
_SESSIONS_PER_TOKEN = 100
"""The oldest of the same token goes first: whoever logs in often ends nobody else's session."""
_FRESH_SECONDS = 1.0
_SERVE = "serve"  # what the tokens are called that `coterie serve` was given or has made

log = logging.getLogger("coterie.web")

PAUSE = 2.0
"""Seconds before the answer to a wrong token, once there are many."""

_MOST_PAUSING = 100

_PROVEN_KEPT = 10_000


@dataclass(frozen=True)
class Caller:
    """Whoever has a token.

    Attributes
    ----------
    token : str
        Its hash, never the token.
    role : {"reader", "worker", "owner"}
        What it may do.
    campaign : str or None
        The only campaign that it is for; None: all.
    most_open : int or None
        Asks of a campaign that it may have open at once.
    label : str
        What its token or invitation is called.
    """

    token: str
    role: str
    campaign: str | None = None
    most_open: int | None = MOST_ASKS
    label: str = ""

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
        return Writer(id_of(self.token), only_own=self.role == WORKER, most_open=self.most_open)

    def sees(self, campaign: str) -> bool:
        """Whether a campaign is one that it is for."""
        return self.campaign in (None, campaign)


class Access:
    """Tokens with their roles; or (`of_store`) the tokens and sessions that a store knows, as of a second ago at most.

    Parameters
    ----------
    roles : mapping of str to str
        Hash of a token to its role.
    clock : callable
        The time in seconds.
    most_asks : int
        Asks of a campaign that each token may have open.
    """

    def __init__(
        self, roles: Mapping[str, str], clock: Callable[[], float] = time.time, most_asks: int = MOST_ASKS
    ) -> None:
        self._most_asks = most_asks
        self._store: Campaigns | None = None
        self._clock = clock
        self._own = {hash: Caller(hash, role_of(role), None, most_asks) for hash, role in roles.items()}
        self._callers = dict(self._own)
        self._sessions: dict[str, dict[str, Any]] = {}  # by hash, oldest first
        self._not_kept: dict[str, dict[str, Any]] = {}  # of these, those that a read-only store could not keep
        self._read_at = 0.0
        self._reading = asyncio.Lock()
        self._changing = threading.Lock()
        self._changes = 0  # of the sessions, by this process

    @classmethod
    def of_store(
        cls,
        store: Campaigns,
        clock: Callable[[], float] = time.time,
        roles: Mapping[str, str] | None = None,
        most_asks: int = MOST_ASKS,
    ) -> Access:
        """The tokens and sessions that a store knows.

        Parameters
        ----------
        store : Campaigns
            The store.
        clock, most_asks
            As for `Access`.
        roles : mapping of str to str, optional
            Further tokens, by their hashes.

        Returns
        -------
        Access
            It reads the store again as it is used.
        """
        made = cls(roles or {}, clock, most_asks)
        made._store = store
        made.read()
        return made

    def read(self) -> None:
        """Read what the store has now; again if a session was opened or closed meanwhile, which is not in it."""
        changes = -1
        while self._store is not None and changes != self._changes:
            changes = self._changes
            tokens, sessions = self._store.tokens(), self._store.sessions()
            with self._changing:
                if changes == self._changes:
                    self._take_over(tokens, sessions)

    def _take_over(self, tokens: list[dict[str, Any]], sessions: list[dict[str, Any]]) -> None:
        self._callers = {
            row["hash"]: Caller(row["hash"], row["role"], row["campaign"], self._most_asks, row["label"])
            for row in tokens
            if not row["revoked"]
        } | self._own
        sessions = [*sessions, *self._not_kept.values()]
        self._sessions = {row["hash"]: row for row in sorted(sessions, key=lambda row: row["until"])}
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
        own = [known["hash"] for known in self._sessions.values() if known["token"] == caller.token]
        over = [known["hash"] for known in self._sessions.values() if known["until"] < self._clock()]
        ended = [*over, *own[: max(0, len(own) + 1 - _SESSIONS_PER_TOKEN)]]
        kept = self._keep(session, ended)
        with self._changing:
            self._changes += 1
            if not kept:
                self._not_kept = {hash: known for hash, known in self._not_kept.items() if hash not in ended}
                self._not_kept[session["hash"]] = session
            self._sessions = {hash: known for hash, known in self._sessions.items() if hash not in ended}
            self._sessions[session["hash"]] = session
        return secret

    def accept(self, invitation: str) -> str:
        """The secret of a session with a token of its own, which the invitation becomes.

        Raises
        ------
        NotFound, Conflict
            The invitation is not known, or was used, taken back, or has expired.
        """
        if self._store is None:
            raise NotFound("there are no invitations here", code="unknown_invitation")
        secret = new_token()
        hash, until = hash_of(secret), self._clock() + INVITED_SECONDS
        token = self._store.invitations.accept(invitation, hash, until)
        caller = Caller(token["hash"], token["scope"], token.get("campaign"), self._most_asks, token["label"])
        with self._changing:
            self._changes += 1
            self._callers = self._callers | {caller.token: caller}
            self._sessions = self._sessions | {hash: {"hash": hash, "token": caller.token, "until": until}}
        return secret

    def _keep(self, session: dict[str, Any], ended: list[str]) -> bool:
        """Whether the store keeps the session in place of those that ended: one that is only read does not."""
        try:
            if self._store is not None:
                self._store.add_session(session, ended)
        except StoreUnavailable as error:
            if error.code != "read_only":
                raise
            return False
        return True

    def by_session(self, secret: str) -> Caller | None:
        """Whoever has logged in with this session; nobody, once its token was revoked."""
        session = self._sessions.get(hash_of(secret))
        if session is None or session["until"] < self._clock():
            return None
        return self._callers.get(session["token"])

    def close_session(self, secret: str) -> None:
        """Forget a session."""
        hash = hash_of(secret)
        if self._store is not None and hash not in self._not_kept:
            self._store.remove_sessions([hash])
        with self._changing:
            self._changes += 1
            self._not_kept.pop(hash, None)
            self._sessions.pop(hash, None)


def check_token(given: str, name: str) -> None:
    """Refuse a token that cannot be sent in a header."""
    if not given or not given.isascii() or not given.isprintable() or " " in given:
        raise ValueError(f"a {name} consists of visible ASCII characters without blanks")


def prepare_tokens(
    store: Campaigns, token: str | None = None, read_token: str | None = None, renew: bool = False
) -> str | None:
    """See to it that the store knows an owner's token; one that was made here is returned, to be shown once.

    A token that is given replaces the one of its role that an earlier start was given or made. Without one, those of
    earlier starts hold, unless `renew` asks for a new one; it ends all earlier ones, those made by command too.
    """
    for given, name in ((token, "token"), (read_token, "read token")):
        if given is not None:
            check_token(given, name)
    if token is not None and token == read_token:
        raise ValueError("the token and the read token must differ")
    made = None
    if renew:
        store.remove_all_tokens()
    if token is None and not any(row["role"] == OWNER and not row["campaign"] for row in _valid(store)):
        token = made = new_token()
    for given, role in ((token, OWNER), (read_token, READER)):
        if given is not None:
            _replace(store, given, role)
    return made


def access_to(
    store: Campaigns,
    token: str | None = None,
    read_token: str | None = None,
    renew: bool = False,
    most_asks: int = MOST_ASKS,
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
        roles = {hash_of(secret): role for secret, role in given if secret is not None}
        return Access.of_store(store, roles=roles, most_asks=most_asks), made
    return Access.of_store(store, most_asks=most_asks), made


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


class FailedLogins:
    """The tries of all addresses."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_address = Rate(1.0, burst=20.0, clock=clock)
        self._overall = Rate(10.0, burst=100.0, clock=clock)
        self._said = Rate(1.0, burst=10.0, clock=clock)  # lines of the log
        self._not_said = 0
        self._proven: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._pausing = 0

    def check(self, address: str, caller: Caller | None, where: str) -> None:
        """Refuse whoever has been guessing; `caller` has the token that was given, None if it is wrong."""
        if caller is not None and (address, caller.token) in self._proven:
            self._proven.move_to_end((address, caller.token))
            return
        if caller is None:
            self._log(address, where)
        self._of_address.check(address, 0.0 if caller is not None else 1.0)
        if caller is None:
            return
        self._proven[address, caller.token] = None
        while len(self._proven) > _PROVEN_KEPT:
            self._proven.popitem(last=False)

    def check_address(self, address: str) -> None:
        """Refuse whoever has been guessing, before it is looked whether this one is right."""
        self._of_address.check(address, 0.0)

    async def pause(self) -> None:
        """Before a wrong token is answered: nothing, unless there are many of them just now."""
        if self._overall.seconds_to_wait("") == 0.0:
            return
        if self._pausing >= _MOST_PAUSING:
            raise Refusal(429, "too_many_requests", "too many wrong tokens just now: try again later", None,
                          {"Retry-After": "10"})  # fmt: skip
        self._pausing += 1
        try:
            await asyncio.sleep(PAUSE)
        finally:
            self._pausing -= 1

    def _log(self, address: str, where: str) -> None:
        if self._said.seconds_to_wait("") > 0.0:
            self._not_said += 1
            return
        more = f" ({self._not_said} others were not logged)" if self._not_said else ""
        self._not_said = 0
        log.warning("wrong token from %s at %s%s", address, quote(where)[:100], more)
