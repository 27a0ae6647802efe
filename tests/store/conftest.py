"""Journals to test, and somebody who can damage them: SQLite, a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from coterie.store import Journal, open_journal
from coterie.store.rows import TABLES, Kind
from coterie.store.sql import url_of

KINDS = ("sqlite", "postgresql")


class Tampering:
    """Changes what is stored, behind the journal's back. Columns are called as in the rows."""

    def __init__(self, address: str) -> None:
        self.address = address

    def _run(self, statement: str, **values: Any) -> None:
        engine = create_engine(url_of(self.address))
        with engine.begin() as connection:
            connection.execute(text(statement), values)
        engine.dispose()

    def change(self, id: str, kind: Kind, seq: int, columns: dict[str, Any]) -> None:
        sets = ", ".join(f'"{name}" = :new_{name}' for name in columns)
        new = {f"new_{name}": value for name, value in columns.items()}
        self._run(f"UPDATE {TABLES[kind]} SET {sets} WHERE campaign = :id AND seq = :seq", id=id, seq=seq, **new)

    def renumber(self, id: str, kind: Kind, seq: int, new: int) -> None:
        self._run(f"UPDATE {TABLES[kind]} SET seq = :new WHERE campaign = :id AND seq = :seq", id=id, seq=seq, new=new)

    def delete(self, id: str, kind: Kind, seq: int) -> None:
        self._run(f"DELETE FROM {TABLES[kind]} WHERE campaign = :id AND seq = :seq", id=id, seq=seq)

    def double(self, id: str, seq: int) -> None:
        """Put a note with the number of another row."""
        self._run("INSERT INTO notes (campaign, seq, kind, content, at, hash) VALUES (:id, :seq, 'x', '{}', 1.0, 'y')",
                  id=id, seq=seq)  # fmt: skip

    def settings(self, id: str, settings: str) -> None:
        self._run("UPDATE campaigns SET settings = :settings WHERE id = :id", id=id, settings=settings)

    def version(self, number: int) -> None:
        self._run("INSERT INTO schema_version (version) VALUES (:number)", number=number)

    def snapshot(self, id: str, spoil: Callable[[bytes], bytes] | None) -> None:
        """Change the stored bytes of a snapshot; None: delete it."""
        if spoil is None:
            self._run("DELETE FROM snapshots")
            return
        engine = create_engine(url_of(self.address))
        with engine.begin() as connection:
            content: Any = connection.execute(
                text("SELECT content FROM snapshots WHERE campaign = :id"), {"id": id}
            ).scalar()
            connection.execute(
                text("UPDATE snapshots SET content = :new WHERE campaign = :id"),
                {"id": id, "new": spoil(bytes(content))},
            )
        engine.dispose()


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty journal can be."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres").new_database())


@pytest.fixture
def journal(address: str) -> Iterator[Journal]:
    opened = open_journal(address)
    yield opened
    opened.close()


@pytest.fixture
def tampering(address: str) -> Tampering:
    return Tampering(address)
