"""Journals to test, each with somebody who can damage it: SQLite, a real PostgreSQL, a folder of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from coterie.store import Journal, open_journal
from coterie.store.rows import TABLES, Kind
from coterie.store.sql import url_of

KINDS = ("sqlite", "postgresql", "jsonl")


class Tampering:
    """Changes what is stored, behind the journal's back. Columns are called as in the rows."""

    def __init__(self, address: str) -> None:
        self.address = address

    def change(self, id: str, kind: Kind, seq: int, columns: dict[str, Any]) -> None:
        raise NotImplementedError

    def renumber(self, id: str, kind: Kind, seq: int, new: int) -> None:
        raise NotImplementedError

    def delete(self, id: str, kind: Kind, seq: int) -> None:
        raise NotImplementedError

    def double(self, id: str, seq: int) -> None:
        """Put a note with the number of another row."""
        raise NotImplementedError

    def settings(self, id: str, settings: str) -> None:
        raise NotImplementedError

    def version(self, number: int) -> None:
        raise NotImplementedError

    def snapshot(self, id: str, spoil: Callable[[bytes], bytes] | None) -> None:
        """Change the stored bytes of a snapshot; None: delete it."""
        raise NotImplementedError


class SqlTampering(Tampering):
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
        self._run("INSERT INTO notes (campaign, seq, kind, content, at, hash) VALUES (:id, :seq, 'x', '{}', 1.0, 'y')",
                  id=id, seq=seq)  # fmt: skip

    def settings(self, id: str, settings: str) -> None:
        self._run("UPDATE campaigns SET settings = :settings WHERE id = :id", id=id, settings=settings)

    def version(self, number: int) -> None:
        self._run("INSERT INTO schema_version (version) VALUES (:number)", number=number)

    def snapshot(self, id: str, spoil: Callable[[bytes], bytes] | None) -> None:
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


class LinesTampering(Tampering):
    @property
    def folder(self) -> Path:
        return Path(self.address.removeprefix("jsonl:///"))

    def _edit(self, id: str, edit: Callable[[list[Any]], list[Any]]) -> None:
        path = self.folder / f"{id}.jsonl"
        lines = edit([json.loads(line) for line in path.read_text().splitlines()])
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def change(self, id: str, kind: Kind, seq: int, columns: dict[str, Any]) -> None:
        places = {name: i + 1 for i, name in enumerate((*kind._fields, "hash"))}

        def edit(lines: list[Any]) -> list[Any]:
            for line in lines:
                if isinstance(line, list) and line[:2] == [TABLES[kind], seq]:
                    for name, value in columns.items():
                        line[places[name]] = value
                    break
            else:
                raise AssertionError("there is no such row")
            return lines

        self._edit(id, edit)

    def renumber(self, id: str, kind: Kind, seq: int, new: int) -> None:
        def edit(lines: list[Any]) -> list[Any]:
            (found,) = (line for line in lines if isinstance(line, list) and line[1] == seq)
            found[1] = new
            return lines

        self._edit(id, edit)

    def delete(self, id: str, kind: Kind, seq: int) -> None:
        self._edit(id, lambda lines: [one for one in lines if isinstance(one, dict) or one[1] != seq])

    def double(self, id: str, seq: int) -> None:
        def edit(lines: list[Any]) -> list[Any]:
            place = next(i for i, line in enumerate(lines) if isinstance(line, list) and line[1] == seq)
            return [*lines[: place + 1], ["notes", seq, "x", "{}", 1.0, "y"], *lines[place + 1 :]]

        self._edit(id, edit)

    def settings(self, id: str, settings: str) -> None:
        path = self.folder / "campaigns.jsonl"
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        for entry in entries:
            if entry.get("campaign", {}).get("id") == id:
                entry["campaign"]["settings"] = settings
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))

    def version(self, number: int) -> None:
        (self.folder / "journal.json").write_text(json.dumps({"format": "coterie-journal", "version": number}))

    def snapshot(self, id: str, spoil: Callable[[bytes], bytes] | None) -> None:
        path = self.folder / f"{id}.snapshot"
        if spoil is None:
            path.unlink()
        else:
            path.write_bytes(spoil(path.read_bytes()))


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty journal can be."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    if request.param == "jsonl":
        return f"jsonl:///{tmp_path / 'store'}"
    return str(request.getfixturevalue("postgres").new_database())


@pytest.fixture
def journal(address: str) -> Iterator[Journal]:
    opened = open_journal(address)
    yield opened
    opened.close()


@pytest.fixture
def tampering(address: str) -> Tampering:
    return LinesTampering(address) if address.startswith("jsonl") else SqlTampering(address)
