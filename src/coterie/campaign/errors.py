"""What can go wrong with a campaign, each with a code that programs read and a sentence that people read."""

from __future__ import annotations

# They are states of the world that a client is told about; the names are read in `except` clauses of callers.
# ruff: noqa: N818


class CampaignError(ValueError):
    """`code` is snake_case, `field` names the part of the request at fault, if there is one."""

    status = 400

    def __init__(self, message: str, code: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self._code
        self.field = field

    _code = "bad_request"


class NotFound(CampaignError):
    """There is no such campaign, or no such lease."""

    status = 404
    _code = "not_found"


class Conflict(CampaignError):
    """What is asked for contradicts what is already on record."""

    status = 409
    _code = "conflict"


class NotDone(CampaignError):
    """The groups are not proven yet."""

    status = 409
    _code = "not_done"


class BadValue(CampaignError):
    """A value out of range, of the wrong type or shape."""

    status = 422
    _code = "bad_value"


class StoreUnavailable(CampaignError):
    """The database cannot be written or read just now: full, read-only, locked, or away. Nothing was changed.

    Unless `uncertain`: the connection broke during the commit. Ids make it safe to send the request again either way.
    """

    status = 503
    _code = "store_unavailable"
    uncertain = False
    away = False  # the connection was no good, and nothing had been committed: worth another try
