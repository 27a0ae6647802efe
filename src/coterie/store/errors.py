"""What a client is told when something goes wrong: a code that programs read and a sentence that people read.

The errors of the store are here; `coterie.campaign.errors` has them all.
"""

from __future__ import annotations

# They are states of the world that a client is told about; the names are read in `except` clauses of callers.
# ruff: noqa: N818


class CampaignError(ValueError):
    """`code` is snake_case, `field` names the part of the request at fault, if there is one."""

    status = 400  # of the HTTP answer

    def __init__(self, message: str, code: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self._code
        self.field = field

    _code = "bad_request"


class Conflict(CampaignError):
    """The request contradicts what is on record."""

    status = 409
    _code = "conflict"


class DamagedLog(Conflict):
    """Row `seq` of a campaign's log is not what was written: changed, missing, doubled or out of order.

    `table` is where the row stands, or None if it is missing.
    """

    _code = "damaged_log"

    def __init__(self, campaign: str, seq: int, table: str | None, complaint: str) -> None:
        place = "" if table is None else f" (table {table})"
        super().__init__(
            f"the log of campaign {campaign} is damaged: row {seq}{place} {complaint}. Nothing that rests on it is "
            f"shown. Restore a backup of the store; the measurements before this row can be exported: "
            f"coterie campaign export {campaign} --before {seq}"
        )
        self.campaign, self.seq, self.table = campaign, seq, table


class BadValue(CampaignError):
    """A value out of range, of the wrong type or shape."""

    status = 422
    _code = "bad_value"


class StoreUnavailable(CampaignError):
    """The store cannot be written or read just now: full, read-only, locked, or away. Nothing was changed.

    Unless `uncertain`: the connection broke during the commit. Ids make it safe to send the request again either way.
    """

    status = 503
    _code = "store_unavailable"
    uncertain = False
    away = False  # the connection was no good, and nothing had been committed: worth another try
