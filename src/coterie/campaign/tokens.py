"""Secrets by which a server knows who may do what: roles, and what is kept of a secret.

A *reader* looks. A *worker* also asks, tells and fails, and touches no lease but its own. An *owner* may do everything.
A token is for one campaign, or for all. A store keeps the SHA-256 hash of a token. That is enough for generated ones:
256 random bits cannot be found by trying, so a slow, salted hash would protect nothing more and would cost every
request its time. What a token has written keeps its `id`, which says nothing about the secret.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

READER, WORKER, OWNER = "reader", "worker", "owner"
ROLES = (READER, WORKER, OWNER)
_OLD_SCOPES = {"read": READER, "write": OWNER}
"""What releases before roles wrote down."""


def role_of(scope: str) -> str:
    """The role of a token that a store keeps."""
    return _OLD_SCOPES.get(scope, scope)


def new_token() -> str:
    """256 random bits that can be copied and typed."""
    return secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def id_of(hash: str) -> str:
    """The name by which rows of a log refer to a token."""
    return hash[:12]


@dataclass(frozen=True)
class Writer:
    """Who writes to a campaign over a server.

    Parameters
    ----------
    token : str
        The id of the token, which rows keep.
    only_own : bool
        Whether it touches no leases but its own.
    most_open : int, optional
        How many asks of a campaign it may have open; None: any number.

    Examples
    --------
    >>> from coterie.campaign.tokens import Writer
    >>> Writer("3f9a", only_own=True).may_use("77c0")
    False
    """

    token: str
    only_own: bool = False
    most_open: int | None = None

    def may_use(self, lease_token: str | None) -> bool:
        """Whether a lease that this token holds is one of the writer's."""
        return not self.only_own or lease_token == self.token
