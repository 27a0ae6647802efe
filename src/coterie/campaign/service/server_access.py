"""Who may use a server on a store: tokens and logins, of which hashes are kept, never the secrets."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from coterie.campaign.commands.managing import free_token
from coterie.campaign.errors import BadValue, Conflict, NotFound
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.settings import check_text, timestamp
from coterie.campaign.tokens import ROLES, WORKER, hash_of, id_of, new_token, role_of
from coterie.store.journal import Selection, Token, Writing

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
        if any(one["label"] == label and not one["revoked"] for one in self.tokens()):
            raise Conflict(f"there is a token {label!r} already: choose another name", code="name_taken", field="name")
        token = new_token()
        self.add_token(hash_of(token), role, label, campaign)
        return token

    def tokens(self) -> list[dict[str, Any]]:
        """All tokens: `id`, `role`, `label`, `campaign`, dates, and the hash. Those that were revoked too."""
        found = self._campaigns.query(lambda reading: reading.tokens())
        return [_token_view(token) for token in found]

    def revoke_token(self, name: str) -> dict[str, Any]:
        """End the token of this name or id; what it has written stays, and keeps its name. `freed` of the answer
        says how many open asks of it were given back.
        """
        found = [one for one in self.tokens() if name in (one["label"], one["id"]) and not one["revoked"]]
        if len(found) != 1:
            what = "there is no token" if not found else f"{len(found)} tokens are called"
            raise NotFound(f"{what} {name!r} that holds: `coterie token list` shows them", code="unknown_token")
        now = float(self._campaigns.clock())
        self._campaigns.write(lambda writing: writing.revoke_token(found[0]["hash"], now))
        return found[0] | {"freed": self._free_leases(found[0])}

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

    def sessions(self) -> list[dict[str, Any]]:
        """Everybody who is logged in at a server: hashes of secrets and of tokens, and ends (seconds since 1970)."""
        return [dict(one) for one in self._campaigns.query(lambda reading: reading.sessions())]

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
