"""The newest rows of a campaign and the course of its evidence, kept by its state: a page shows them at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from coterie.store.rows import ALL_KINDS, TABLES, Note, Row

KEPT = 100
"""Rows that are kept: so many a page may show."""
LONGEST_NOTE = 1_000_000
"""Characters of the note of a stop: of a campaign with many items its claims are hundreds of megabytes."""
_CLAIMS = ', "outcome": '


def has_outcome(row: Note) -> bool:
    """Whether the note of a stop says what it claims; a long one is not read for that."""
    return _CLAIMS in row.content or "outcome" in row.data  # quotes in a JSON text are escaped: this is the key


def without_long_claims(row: Row) -> Row:
    """A row as logs show it: the note of a stop without what it claims, if that is long."""
    if not isinstance(row, Note) or row.kind != "stopped" or len(row.content) <= LONGEST_NOTE:
        return row
    head, mark, _ = row.content.partition(_CLAIMS)
    return row._replace(content=f"{head}}}") if mark else row


class NewestRows:
    """The last rows of a log and all points of its evidence, as far as they were seen."""

    def __init__(self, rows: Sequence[Row] = (), points: Sequence[dict[str, Any]] = ()) -> None:
        self._rows: deque[Row] = deque(rows, KEPT)
        self.points = list(points)

    def add(self, row: Row) -> None:
        """A row that follows."""
        if type(row) is Note:
            if row.kind == "evidence":
                self.points.append(row.data)
            row = without_long_claims(row)
        self._rows.append(row)

    def last(self, count: int) -> list[Row]:
        """The last rows, oldest first: all of them, if there are no more than that or `KEPT`."""
        return list(self._rows)[-count:] if count > 0 else []

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"rows": [[TABLES[type(row)], *row] for row in self._rows], "points": self.points}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> NewestRows:
        """What `to_json` gave."""
        kinds = {TABLES[kind]: kind for kind in ALL_KINDS}
        return cls([kinds[name]._make(fields) for name, *fields in content["rows"]], content["points"])
