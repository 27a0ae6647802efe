"""The facts of a campaign: rows of four kinds, numbered by one `seq` 1, 2, 3, … without gaps. In that order they are
the campaign. Times are seconds since 1970 (UTC). `token`: the id of the token that a row was written with, over a
server; None for the command line, for Python, and for releases that did not record it.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeAlias

NO_ROUND = 0
UNRECORDED_ROUND = -1


class Ask(NamedTuple):
    """An arm leased to a worker. The same lease and ticket again: it was handed on, with a new expiry.
    Another lease of an open ticket: somebody else was asked too.

    `ticket` is the place in the order of asks. `round` is the round of the method that the ask belongs to: NO_ROUND
    for none, UNRECORDED_ROUND in rows that were written before rounds were recorded.
    """

    seq: int
    lease: str
    ticket: int
    arm: int
    worker: str
    asked_at: float
    expires_at: float
    round: int = UNRECORDED_ROUND
    token: str | None = None


class Told(NamedTuple):
    """A result. `values`: a JSON list; `lease` as it was told; `ticket`: the ask whose place it takes, if any."""

    seq: int
    id: str
    arm: int
    values: str
    lease: str | None
    ticket: int | None
    worker: str | None
    told_at: float
    token: str | None = None


class Ending(NamedTuple):
    """A lease whose result will not come; `kind` is expired, failed or undone."""

    seq: int
    lease: str
    ticket: int
    kind: str
    reason: str
    at: float
    token: str | None = None


class Note(NamedTuple):
    """Something found out or decided (`kind`: groups, evidence, freeze, round, stopped) or said about the rows that
    follow (imported). `content` is JSON.
    """

    seq: int
    kind: str
    content: str
    at: float
    token: str | None = None

    @property
    def data(self) -> Any:
        """The content, read."""
        return json.loads(self.content)


Row: TypeAlias = Ask | Told | Ending | Note
Kind: TypeAlias = type[Ask] | type[Told] | type[Ending] | type[Note]

TABLES: dict[Kind, str] = {Ask: "asks", Told: "measurements", Ending: "endings", Note: "notes"}
"""The name of each kind's table, in every journal and in messages."""
ALL_KINDS: tuple[Kind, ...] = tuple(TABLES)


class Page(NamedTuple):
    """Rows in order, checked; `hash` is that of the last row of the log that was checked."""

    rows: list[Row]
    hash: str
