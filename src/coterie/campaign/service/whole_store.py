"""What concerns a store as a whole: lists of its campaigns, deleting one, tokens and logins,
and reading all logs again while they are in use.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from coterie.campaign.commands.managing import free_token
from coterie.campaign.errors import BadValue, CampaignError, Conflict, DamagedLog, NotFound
from coterie.campaign.service.attachments import Attachments
from coterie.campaign.service.invitations import Invitations, check_free_label, is_token
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.service.signals import BLOCKED_SECONDS, Signals
from coterie.campaign.settings import CampaignSettings, check_text, checked_field, timestamp
from coterie.campaign.tokens import ROLES, WORKER, hash_of, id_of, new_token, role_of
from coterie.campaign.views.status import fixed_summary, summary
from coterie.problem.checks import check_count, short
from coterie.store.journal import Campaign, Reading, Selection, Token, Writing

PAGE = 100
"""Campaigns on a page of the list, if nothing is said."""
LARGEST_PAGE = 1000
_SWEPT = 2_000  # rows that are deleted in one transaction: others write between them
_BETWEEN = "~"


class Lists:
    """Lists of the campaigns of one store. The settings of those that an older release has begun are read once."""

    def __init__(self, campaigns: OpenCampaigns) -> None:
        self._campaigns = campaigns
        self._fixed: dict[str, dict[str, Any]] = {}  # of each campaign's summary, what its settings say

    def all(self, archived: bool) -> list[dict[str, Any]]:
        """Every campaign, oldest first."""
        return [self._summary(row) for row in self._select(Selection(2**31, archived=archived))]

    def page(
        self, after: Any, limit: Any, search: Any, archived: bool, only: str | None, newest_first: bool
    ) -> dict[str, Any]:
        """Some campaigns, and `next`, the `after` of the page that follows; None at the end."""
        count = min(checked_field("limit", check_count, limit, "limit", 1), LARGEST_PAGE)
        if not isinstance(search, str) or len(search) > 200 or not search.isprintable():
            raise BadValue(f"search is a part of a name, got {short(search)}", field="search")
        wanted = Selection(count + 1, _place(after), search.strip(), archived, only, newest_first)
        rows = self._select(wanted)
        last = rows[count - 1] if len(rows) > count else None
        following = None if last is None else f"{last['created']!r}{_BETWEEN}{last['id']}"
        return {"campaigns": [self._summary(row) for row in rows[:count]], "next": following}

    def _select(self, wanted: Selection) -> list[Campaign]:
        return self._campaigns.query(lambda reading: reading.select(wanted))

    def _summary(self, row: Campaign) -> dict[str, Any]:
        if row["about"]:
            return summary(row, json.loads(row["about"]))
        if row["id"] not in self._fixed:
            self._fixed[row["id"]] = fixed_summary(CampaignSettings.from_json(row["settings"]))
        return summary(row, self._fixed[row["id"]])


def _place(after: Any) -> tuple[float, str] | None:
    """Where a page begins: as `next` of the page before said."""
    if after is None or after == "":
        return None
    at, between, id = after.partition(_BETWEEN) if isinstance(after, str) else ("", "", "")
    try:
        if between and id.isascii() and id.isalnum():
            return float(at), id
    except ValueError:
        pass
    raise BadValue(f"after must be the next of the page before, got {short(after)}", field="after")


def check_free_name(name: str, taken: Campaign | None) -> None:
    """Refuse a name that another campaign has."""
    if taken is not None:
        which = f"{taken['id'][:8]}, created {timestamp(taken['created'])[:16]}Z"
        message = f"there is a campaign {name!r} already ({which}): choose another name"
        raise Conflict(message, code="name_taken", field="name")


def delete_campaign(campaigns: OpenCampaigns, id: Any, name: Any) -> dict[str, Any]:
    """Delete a campaign with its log, its snapshot and its tokens; `name` has to be its name, so that it is meant."""
    row = campaigns.row(id)
    if name != row["name"]:
        raise BadValue(
            f"to delete the campaign {row['name']!r} say its name, got {short(name)}; this cannot be undone",
            field="name",
        )
    campaigns.remove(row["id"])
    while campaigns.write(lambda writing: writing.sweep(_SWEPT)):
        pass
    return {"deleted": row["id"], "name": row["name"], "measurements": row["measurements"]}


log = logging.getLogger("coterie.campaign")


class ServerAccess:
    """The tokens and logins of a store: the part of `Campaigns` that a server asks who somebody is."""

    _campaigns: OpenCampaigns

    def add_token(self, hash: str, scope: str, label: str = "", campaign: str | None = None) -> None:
        """Keep the hash of a token, unless it is there. `scope`: its role; `campaign`: the only one that it is for."""
        now = float(self._campaigns.clock())
        token: Token = {
            "hash": hash, "scope": scope, "label": label, "created": now, "campaign": campaign, "revoked": None,
        }  # fmt: skip
        self._campaigns.write(lambda writing: writing.add_token(token))

    def new_token(self, name: str, role: str = WORKER, campaign: str | None = None) -> str:
        """Make a token, of which only the hash is kept.

        Parameters
        ----------
        name : str
            What it is called; no other token that holds may be called so.
        role : {"worker", "reader", "owner"}
            What it allows.
        campaign : str, optional
            The id of the only campaign that it is for; None: all.

        Returns
        -------
        str
            The token itself, which nobody can look up later.
        """
        label = check_text(name, "name")
        if role not in ROLES:
            raise BadValue(f"a role is {', '.join(ROLES[:-1])} or {ROLES[-1]}, got {role!r}", field="role")
        if campaign is not None:
            self._campaigns.row(campaign)
        rows = self._campaigns.query(lambda reading: reading.tokens())
        check_free_label(rows, label, float(self._campaigns.clock()))
        token = new_token()
        self.add_token(hash_of(token), role, label, campaign)
        return token

    def tokens(self) -> list[dict[str, Any]]:
        """All tokens: `id`, `role`, `label`, `campaign`, dates, and the hash. Those that were revoked too."""
        rows = self._campaigns.query(lambda reading: reading.tokens())
        return [_token_view(row) for row in rows if is_token(row)]

    @property
    def invitations(self) -> Invitations:
        """Those who may have a token of their own, once."""
        return Invitations(self._campaigns)

    @property
    def attachments(self) -> Attachments:
        """Files that belong to measurements."""
        return Attachments(self._campaigns)

    def signals(self, blocked_after: float = BLOCKED_SECONDS) -> Signals:
        """What happens to campaigns, for somebody who wants to be told: stops, alarms, and what blocks them."""
        return Signals(self._campaigns, blocked_after)

    def revoke_token(self, name: str) -> dict[str, Any]:
        """End the token of this name or id; what it has written stays, and keeps its name. `freed` of the answer
        says how many open asks of it were given back.
        """
        meant = [token for token in self.tokens() if name in (token["label"], token["id"]) and not token["revoked"]]
        if len(meant) != 1:
            count = "there is no token" if not meant else f"{len(meant)} tokens are called"
            raise NotFound(f"{count} {name!r} that holds: `coterie token list` shows them", code="unknown_token")
        now = float(self._campaigns.clock())
        self._campaigns.write(lambda writing: writing.revoke_token(meant[0]["hash"], now))
        return meant[0] | {"freed": self._free_leases(meant[0])}

    def _free_leases(self, token: dict[str, Any]) -> int:
        """Give back the asks that a token has open, in all campaigns that it was for; how many there were."""
        wanted = Selection(limit=2**31 - 1, only=token["campaign"])
        freed = 0
        for row in self._campaigns.query(lambda reading: reading.select(wanted)):
            if row["open_leases"] > 0:
                why = f"the token {token['label'] or token['id']} was revoked"
                decide = partial(free_token, token=token["id"], reason=why)
                try:
                    freed += self._campaigns.submit(row["id"], decide)["freed"]
                except (Conflict, NotFound) as error:  # damaged, archived, or deleted meanwhile
                    log.warning("asks of a revoked token stay open: %s", error.message)
        return freed

    def remove_token(self, hash: str) -> None:
        """Forget a token."""
        self._campaigns.write(lambda writing: writing.remove_token(hash))

    def remove_all_tokens(self) -> None:
        """Forget all tokens and all invitations."""

        def work(writing: Writing) -> None:
            for row in writing.tokens():
                writing.remove_token(row["hash"])

        self._campaigns.write(work)

    def sessions(self) -> list[dict[str, Any]]:
        """Everybody who is logged in at a server: hashes of secrets and of tokens, and ends (seconds since 1970)."""
        return [dict(session) for session in self._campaigns.query(lambda reading: reading.sessions())]

    def add_session(self, session: Any, without: Sequence[str] = ()) -> None:
        """Somebody has logged in; the sessions with the hashes `without` end."""

        def work(writing: Writing) -> None:
            writing.remove_sessions(without)
            writing.add_session(session)

        self._campaigns.write(work)

    def remove_sessions(self, hashes: Sequence[str]) -> None:
        """Somebody has logged out."""
        self._campaigns.write(lambda writing: writing.remove_sessions(hashes))


def _token_view(token: Token) -> dict[str, Any]:
    revoked = token.get("revoked")
    return {
        "id": id_of(token["hash"]),
        "scope": token["scope"],
        "role": role_of(token["scope"]),
        "label": token["label"],
        "campaign": token.get("campaign"),
        "created": timestamp(token["created"]),
        "revoked": None if revoked is None else timestamp(revoked),
        "hash": token["hash"],
    }


ROWS = 500
"""Rows that a step reads, at most."""
_CAMPAIGNS = 20  # that a step looks at, at most


class _Place(NamedTuple):
    """How far the log of a campaign was read: up to row `seq`, with its hash."""

    id: str
    seq: int = 0
    hash: str | None = None


class ChainWalk:
    """Reads all logs again while they are in use, a few rows at a time, round after round; what it finds is in
    `OpenCampaigns.damaged`: a row that was changed on disk is noticed also where nobody reads it.

    Whatever is read is checked against the hash chain, but the state of a campaign in memory was read before; and a
    snapshot stands for the rows that it sums up.
    """

    def __init__(self, campaigns: OpenCampaigns) -> None:
        self._campaigns = campaigns
        self._waiting: list[_Place] = []

    def step(self) -> None:
        """Read on a little. Never raises: a store that is away is tried again by the next step."""
        try:
            if not self._waiting:
                every = self._campaigns.query(lambda reading: reading.select(Selection(2**31 - 1, archived=True)))
                self._waiting = [_Place(row["id"]) for row in reversed(every)]
            left = ROWS
            for _ in range(min(_CAMPAIGNS, len(self._waiting))):
                left -= self._read_on(left)
                if left <= 0:
                    break
        except CampaignError as error:
            log.info("the logs could not be checked just now: %s", error.message)

    def _read_on(self, most: int) -> int:
        """Read on in the log of the campaign whose turn it is; how many rows."""
        place = self._waiting[-1]

        def read(reading: Reading) -> _Place | None:
            row = reading.campaign(place.id)
            if row is None:
                return None
            page = reading.rows(row, place.seq, most, previous=place.hash)
            if len(page.rows) == most:
                return _Place(place.id, page.rows[-1].seq, page.hash)
            last = place.seq + len(page.rows)
            reading.rows(row, last, previous=page.hash if page.rows else place.hash)  # that it ends where it should
            return None

        try:
            following = self._campaigns.query(read)
        except DamagedLog as error:
            if place.seq > 0 and not self._is_damaged(place.id):  # it was put back to another state meanwhile
                self._waiting[-1] = _Place(place.id)
                return most
            if place.id not in self._campaigns.damaged:
                log.error("%s", error.message)
            self._campaigns.damaged[place.id] = error
            self._waiting.pop()
            return most
        if following is None:
            self._campaigns.damaged.pop(place.id, None)
            self._waiting.pop()
            return 1
        self._waiting[-1] = following
        return most

    def _is_damaged(self, id: str) -> bool:
        """Whether a log is, from its beginning on."""

        def read(reading: Reading) -> None:
            row = reading.campaign(id)
            if row is not None:
                reading.rows(row)

        try:
            self._campaigns.query(read)
        except DamagedLog:
            return True
        return False
