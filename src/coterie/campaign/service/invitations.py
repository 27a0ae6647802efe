"""Invitations: secrets that become a token of their own, once, before they expire.

An invitation is a row among the store's tokens. Its `scope` says what it is: `invitation:ROLE:UNTIL` as long as nobody
has used it, `invited:ROLE:ID` afterwards, with the id of the token that was made. Its hash is none that a token can
have, so that no release, not even one that knows nothing of invitations, takes one for a token.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from coterie.campaign.errors import BadValue, Conflict, NotFound
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.settings import check_text, checked_field, timestamp
from coterie.campaign.tokens import READER, WORKER, hash_of, id_of, new_token
from coterie.problem.checks import check_positive
from coterie.store.journal import LoginSession, Token, Writing

INVITED = (WORKER, READER)
"""Roles that somebody can be invited for."""
HOURS, MOST_HOURS = 24.0, 720.0
_PREFIX = "invite-"
_OPEN, _USED = "invitation:", "invited:"


def is_invitation(secret: str) -> bool:
    """Whether this is the secret of an invitation, rather than a token."""
    return secret.startswith(_PREFIX)


def is_token(row: Token) -> bool:
    """Whether a row among the tokens is one, and no invitation."""
    return not row["scope"].startswith((_OPEN, _USED))


def check_free_label(rows: list[Token], label: str, now: float) -> None:
    """Refuse a name that a token has, or an invitation that can still be used."""
    for row in rows:
        holds = not row.get("revoked") and (is_token(row) or now < float(_parts(row)[1]))
        if holds and row["label"] == label:
            kind = "a token" if is_token(row) else "an invitation"
            raise Conflict(f"there is {kind} {label!r} already: choose another name", code="name_taken", field="name")


class Invitations:
    """The invitations of a store."""

    def __init__(self, campaigns: OpenCampaigns) -> None:
        self._campaigns = campaigns

    def make(self, name: str, role: str = WORKER, campaign: str | None = None, hours: float = HOURS) -> dict[str, Any]:
        """Invite somebody.

        Parameters
        ----------
        name : str
            What the token that is made of it will be called.
        role : {"worker", "reader"}
            What that token allows.
        campaign : str, optional
            The id of the only campaign that it is for; None: all.
        hours : float
            How long the invitation can be used.

        Returns
        -------
        dict
            What it is, and its `secret`, which nobody can look up later.
        """
        label = check_text(name, "name")
        if role not in INVITED:
            raise BadValue(f"one is invited as {' or '.join(INVITED)}, got {role!r}", field="role")
        lasting = checked_field("hours", check_positive, hours, "hours")
        if lasting > MOST_HOURS:
            raise BadValue(f"hours must be at most {MOST_HOURS:g}, got {lasting:g}", field="hours")
        if campaign is not None:
            campaign = self._campaigns.row(campaign)["id"]
        secret = _PREFIX + secrets.token_urlsafe(24)
        now = float(self._campaigns.clock())
        row: Token = {
            "hash": _hash_of(secret), "scope": f"{_OPEN}{role}:{now + 3600.0 * lasting!r}", "label": label,
            "created": now, "campaign": campaign, "revoked": None,
        }  # fmt: skip

        def work(writing: Writing) -> None:
            writing.lock_names()
            check_free_label(writing.tokens(), label, now)
            writing.add_token(row)

        self._campaigns.write(work)
        return _view(row, now) | {"secret": secret}

    def listed(self, campaign: str | None = None) -> list[dict[str, Any]]:
        """All invitations, or those for one campaign, without their secrets: open, used, expired and revoked ones."""
        now = float(self._campaigns.clock())
        rows = self._campaigns.query(lambda reading: reading.tokens())
        ended = {id_of(row["hash"]) for row in rows if is_token(row) and row.get("revoked")}
        views = [_view(row, now) for row in rows if not is_token(row) and campaign in (None, row.get("campaign"))]
        return [view | {"state": "revoked"} if view["token"] in ended else view for view in views]

    def revoke(self, id: str, campaign: str | None = None) -> dict[str, Any]:
        """End an invitation; `token` of the answer is the id of the token that was made of it, if it has been used."""
        now = float(self._campaigns.clock())

        def work(writing: Writing) -> dict[str, Any]:
            writing.lock_names()
            for row in writing.tokens():
                if not is_token(row) and id_of(row["hash"]) == id and campaign in (None, row.get("campaign")):
                    if not row.get("revoked"):
                        writing.revoke_token(row["hash"], now)
                    return _view(row | {"revoked": row.get("revoked") or now}, now)
            raise NotFound(f"there is no invitation {id!r} here", code="unknown_invitation", field="invitation")

        return self._campaigns.write(work)

    def accept(self, secret: str, session: str, until: float) -> Token:
        """Make a token of an invitation, which ends by that, and log somebody in with it: all of it or nothing.

        Parameters
        ----------
        secret : str
            Of the invitation.
        session : str
            The hash of the new session's secret.
        until : float
            When that session ends.

        Returns
        -------
        Token
            The new token. Its own secret was thrown away: the session is all that opens it.
        """
        now, hash = float(self._campaigns.clock()), _hash_of(secret)

        def work(writing: Writing) -> Token:
            writing.lock_names()  # two who use it at once come one after the other, in PostgreSQL too
            row = next((row for row in writing.tokens() if row["hash"] == hash), None)
            _check_open(row, now)
            assert row is not None
            role = _parts(row)[0]
            token: Token = {
                "hash": hash_of(new_token()), "scope": role, "label": row["label"], "created": now,
                "campaign": row.get("campaign"), "revoked": None,
            }  # fmt: skip
            writing.remove_token(hash)
            writing.add_token({**row, "scope": f"{_USED}{role}:{id_of(token['hash'])}", "revoked": now})
            writing.add_token(token)
            login: LoginSession = {"hash": session, "token": token["hash"], "until": until}
            writing.add_session(login)
            return token

        return self._campaigns.write(work)


def _hash_of(secret: str) -> str:
    # Not SHA-256: whoever has the secret must not be able to make a token with this hash.
    return hashlib.sha3_256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _parts(row: Token) -> tuple[str, str]:
    """The role, and what follows it in the scope."""
    _, role, more = row["scope"].split(":", 2)
    return role, more


def _state(row: Token | None, now: float) -> str:
    if row is None or is_token(row):
        return "unknown"
    if row["scope"].startswith(_USED):
        return "used"
    if row.get("revoked"):
        return "revoked"
    return "open" if now < float(_parts(row)[1]) else "expired"


_FAULTS = {
    "unknown": "This invitation is not known here: look whether the link is complete, or ask for another one.",
    "used": "This invitation has been used, and is for one browser only: ask for another one.",
    "revoked": "This invitation was taken back: ask for another one.",
    "expired": "This invitation has expired: ask for another one.",
}


def _check_open(row: Token | None, now: float) -> None:
    state = _state(row, now)
    if state == "unknown":
        raise NotFound(_FAULTS[state], code="unknown_invitation")
    if state != "open":
        raise Conflict(_FAULTS[state], code=f"invitation_{state}")


def _view(row: Token, now: float) -> dict[str, Any]:
    state, (role, more) = _state(row, now), _parts(row)
    return {
        "id": id_of(row["hash"]),
        "name": row["label"],
        "role": role,
        "campaign": row.get("campaign"),
        "created": timestamp(row["created"]),
        "expires": None if state == "used" else timestamp(float(more)),
        "state": state,
        "token": more if state == "used" else None,
    }
