"""The rows of a campaign's log, in Python. Each one has a `seq`; in that order they are the campaign."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Select, Table, select

from coterie.campaign import schema


class Ask(NamedTuple):
    """An arm leased to a worker. The same lease and ticket again: it was handed on, with a new expiry."""

    seq: int
    lease: str
    ticket: int
    arm: int
    worker: str
    asked_at: float
    expires_at: float


class Told(NamedTuple):
    """A result. `lease` as it was told; `ticket` is the ask whose place it takes, if it takes one."""

    seq: int
    id: str
    arm: int
    values: str
    lease: str | None
    ticket: int | None
    worker: str | None
    told_at: float


class Ending(NamedTuple):
    """A lease whose result will not come: expired or failed."""

    seq: int
    lease: str
    ticket: int
    kind: str
    reason: str
    at: float


class Note(NamedTuple):
    """Something found out, groups, evidence, stopped; or said about the rows that follow: imported."""

    seq: int
    kind: str
    content: str
    at: float

    @property
    def data(self) -> Any:
        """The content, read."""
        return json.loads(self.content)


Row: TypeAlias = Ask | Told | Ending | Note

TABLES: dict[type[Any], Table] = {
    Ask: schema.asks,
    Told: schema.measurements,
    Ending: schema.endings,
    Note: schema.notes,
}


def rows_of(kind: type[Any], campaign: str, after: int, limit: int | None = None) -> Select[Any]:
    """The query for a campaign's rows of one kind after `after`."""
    table = TABLES[kind]
    columns = [table.c[name] for name in kind._fields]
    return select(*columns).where(table.c.campaign == campaign, table.c.seq > after).order_by(table.c.seq).limit(limit)


def read_rows(
    connection: Connection,
    campaign: str,
    after: int,
    limit: int | None = None,
    kinds: Iterable[type[Any]] = (Ask, Told, Ending, Note),
) -> list[Row]:
    """Rows of these kinds after `after`, in order; the first `limit` of them."""
    found: list[Row] = []
    for kind in kinds:
        found += map(kind._make, connection.execute(rows_of(kind, campaign, after, limit)).all())
    found.sort(key=lambda row: row.seq)
    return found if limit is None else found[:limit]


def write_rows(connection: Connection, rows: Iterable[tuple[str, Row]]) -> None:
    """Add rows, given with the campaign that each belongs to."""
    by_kind: dict[type[Any], list[dict[str, Any]]] = {}
    for campaign, row in rows:
        by_kind.setdefault(type(row), []).append({"campaign": campaign, **row._asdict()})
    for kind, content in by_kind.items():
        connection.execute(TABLES[kind].insert(), content)
