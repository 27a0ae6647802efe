"""What can go wrong with a campaign, each with a code that programs read and a sentence that people read."""

from __future__ import annotations

from coterie.store.errors import BadValue, CampaignError, Conflict, DamagedLog, StoreUnavailable

__all__ = [
    "CampaignError",
    "NotFound",
    "Conflict",
    "DamagedLog",
    "NotDone",
    "Forbidden",
    "BadValue",
    "StoreUnavailable",
]

# They are states of the world that a client is told about; the names are read in `except` clauses of callers.
# ruff: noqa: N818


class NotFound(CampaignError):
    """There is no such campaign, or no such lease."""

    status = 404
    _code = "not_found"


class Forbidden(CampaignError):
    """The token that it came with may not do this."""

    status = 403
    _code = "forbidden"


class Outdated(CampaignError):
    """What was worked out for a decision holds no more: it is worked out again. Nobody outside is told so."""

    status = 409
    _code = "outdated"


class NotDone(CampaignError):
    """The groups are not proven yet."""

    status = 409
    _code = "not_done"
