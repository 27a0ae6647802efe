"""Copies of a SQLite store in use, as people make them: the file, and its journal some time later. Each has all that
was acknowledged before the copy was begun, or is refused by name.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from coterie.store import StoreUnavailable, open_journal, sql, sqlite_file
from coterie.testing.journals import append_rows, begin_campaigns, sample_rows

NAMED = {"journal_missing", "journal_foreign", "journal_cut"}


class Writer:
    """A thread that adds a row in every commit; `acknowledged` of them are on disk."""

    def __init__(self, path: Path) -> None:
        self.journal = open_journal(path)
        begin_campaigns(self.journal, "a")
        self.acknowledged = 0
        self.error: BaseException | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self.journal.close()

    def _write(self) -> None:
        try:
            while not self._ends.is_set():
                append_rows(self.journal, "a", 1)
                self.acknowledged += 1
        except BaseException as error:
            self.error = error

    def more(self, rows: int) -> None:
        """Wait until so many more are on disk."""
        until = self.acknowledged + rows
        while self.acknowledged < until:
            assert self._thread.is_alive(), self.error
            time.sleep(0.001)


def rows_in(path: Path) -> int:
    """How many rows a store has; they must be the first ones that were written."""
    journal = open_journal(path, create=False)
    try:
        with journal.reading() as reading:
            campaign = reading.campaign("a")
            found = [] if campaign is None else reading.rows(campaign).rows
        assert found == sample_rows(len(found))
        return len(found)
    finally:
        journal.close()


def judged(copy: Path, acknowledged: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether a copy is whole, or the code of its refusal."""
    monkeypatch.setattr(sqlite_file, "_LOOKED_AGAIN", ())  # nobody opens or closes it meanwhile
    refused = None
    try:
        found = rows_in(copy)
    except StoreUnavailable as error:
        refused = error
    if refused is not None:
        assert refused.code in NAMED, refused.message
        assert "coterie campaign backup" in refused.message
        return refused.code
    assert found >= acknowledged, f"{copy} lacks {acknowledged - found} rows in silence"
    return "whole"


def copy_by_pieces(source: Path, target: Path, pause: float) -> None:
    """As a slow disk does it: from the beginning to the end, while the file is written."""
    with open(source, "rb") as given, open(target, "wb") as made:
        while piece := given.read(8192):
            made.write(piece)
            time.sleep(pause)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal is copied into the file after every few commits."""
    monkeypatch.setattr(sql, "_COMMITS_IN_JOURNAL", 7)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_150_copies_of_a_store_in_use(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = random.Random(20261118)
    copies = []
    with Writer(path) as writer:
        writer.more(20)
        for number in range(150):
            time.sleep(moments.uniform(0.0, 0.02))
            copy = tmp_path / f"copy{number}.db"
            before = writer.acknowledged
            if number % 3:
                shutil.copy(path, copy)
            else:
                copy_by_pieces(path, copy, 0.0002)
            if number % 5:
                time.sleep(moments.choice([0.0, 0.002, 0.01, 0.05]))
            shutil.copy(f"{path}-wal", f"{copy}-wal")
            copies.append((copy, before))
        assert writer.error is None
    outcomes = [judged(copy, before, monkeypatch) for copy, before in copies]
    assert outcomes.count("whole") >= 5
    assert outcomes.count("journal_foreign") >= 5
    assert rows_in(path) == writer.acknowledged
    print(f"{len(copies)} copies")


def test_a_file_from_before_a_renewal_and_a_journal_from_after(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal was copied into the file and begun anew in between: what it had before is in neither copy."""
    journal = open_journal(path)
    begin_campaigns(journal, "a")
    for _ in range(150):
        append_rows(journal, "a", 1)
    shutil.copy(path, tmp_path / "copy.db")
    for _ in range(120):
        append_rows(journal, "a", 1)
    shutil.copy(f"{path}-wal", tmp_path / "copy.db-wal")
    assert judged(tmp_path / "copy.db", 150, monkeypatch) == "journal_foreign"
    journal.close()
    assert rows_in(path) == 270


def steps_of_renewals(monkeypatch: pytest.MonkeyPatch, look: Any) -> None:
    """Have `look` called at every step in which a connection of a store changes its files."""
    real = sqlite3.connect

    class Watched(sqlite3.Connection):
        def execute(self, statement: str, *more: Any) -> Any:
            changes = statement in ("COMMIT",) or "wal_checkpoint" in statement
            if changes:
                look()
            found = super().execute(statement, *more)
            if changes:
                look()
            return found

    def connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
        return real(*arguments, factory=Watched, **named)

    monkeypatch.setattr("coterie.store.sqlite_file.sqlite3.connect", connect)


@pytest.mark.usefixtures("often")
def test_copies_between_any_two_steps_of_a_renewal(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file as it is at one step, the journal as it is at that step or any later one."""
    acknowledged = 0
    files: list[tuple[int, bytes]] = []
    journals: list[bytes] = []
    wal = Path(f"{path}-wal")

    def look() -> None:
        files.append((acknowledged, path.read_bytes()))  # nobody else has it open, whose locks could be lost by this
        journals.append(wal.read_bytes() if wal.exists() else b"")

    with monkeypatch.context() as patched:
        steps_of_renewals(patched, look)
        journal = open_journal(path)
        begin_campaigns(journal, "a")
        for _ in range(17):
            append_rows(journal, "a", 1)
            acknowledged += 1
        journal.close()
    assert len(files) > 20
    numbers = random.Random(1)
    seen = set()
    for i in range(len(files)):
        for j in [*range(i, min(i + 6, len(files))), None]:
            known, content = files[i]
            if numbers.random() < 0.5 and i + 1 < len(files) and j != i:  # its pages are written while they are read
                content = torn(content, files[i + 1][1], numbers)
            copy = tmp_path / f"copy{i}-{j}.db"
            copy.write_bytes(content)
            if j is not None and journals[j]:
                Path(f"{copy}-wal").write_bytes(journals[j])
            seen.add(judged(copy, known, monkeypatch))
    assert {"whole", "journal_foreign", "journal_missing"} <= seen


def torn(before: bytes, after: bytes, numbers: random.Random) -> bytes:
    """A file that is read in the order of its pages while they are written in this order: the first ones as they were
    before, then some as they are after, and the last ones as before again, where reading was faster than writing.
    """
    first, last = sorted(4096 * numbers.randrange(len(after) // 4096 + 1) for _ in range(2))
    found = before[:first] + after[first:last] + before[last:]
    return found[: max(len(before), last)]


def test_a_journal_that_was_cut_is_named(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any place; and one that ends with frames of its next life."""
    journal = open_journal(path)
    begin_campaigns(journal, "a")
    for _ in range(20):
        append_rows(journal, "a", 1)
    names = [path.name, f"{path.name}-head", f"{path.name}-wal"]
    kept = {name: (tmp_path / name).read_bytes() for name in names}
    journal.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name]
    for share in (0.02, 0.3, 0.5, 0.9, 0.999):
        for name, content in kept.items():
            (tmp_path / name).write_bytes(content[: int(share * len(content))] if name.endswith("-wal") else content)
        before = [one.read_bytes() for one in (path, Path(f"{path}-wal"))]
        assert judged(path, 20, monkeypatch) in ("journal_cut", "journal_missing"), share
        assert [one.read_bytes() for one in (path, Path(f"{path}-wal"))] == before, "looking has changed the files"
    (tmp_path / names[1]).unlink()  # nobody counted, so this is only noticed where no commit is left
    (tmp_path / names[2]).write_bytes(kept[names[2]][:5000])
    assert judged(path, 20, monkeypatch) == "journal_missing"
    (tmp_path / names[2]).write_bytes(kept[names[2]])
    assert judged(path, 20, monkeypatch) == "whole"


def test_a_journal_that_was_written_anew_while_it_was_copied(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "_COMMITS_IN_JOURNAL", 20)
    journal = open_journal(path)
    begin_campaigns(journal, "a")
    for _ in range(15):
        append_rows(journal, "a", 1)
    shutil.copy(path, tmp_path / "copy.db")
    first = Path(f"{path}-wal").read_bytes()
    for _ in range(20):
        append_rows(journal, "a", 1)
    second = Path(f"{path}-wal").read_bytes()
    place = 32 + 5 * (4096 + 24)
    Path(tmp_path / "copy.db-wal").write_bytes(first[:place] + second[place:])
    assert judged(tmp_path / "copy.db", 15, monkeypatch) == "journal_cut"
    journal.close()


def test_a_read_only_file_can_be_looked_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = open_journal(path)
    begin_campaigns(journal, "a")
    append_rows(journal, "a", 5)
    journal.close()
    monkeypatch.setattr(sqlite_file.SqliteFile, "writable", False)
    journal = open_journal(path)
    with journal.reading() as reading:
        campaign = reading.campaign("a")
        assert campaign is not None
        assert reading.rows(campaign).rows == sample_rows(5)
    with pytest.raises(StoreUnavailable, match="the store is read-only: it can be looked at") as caught:
        append_rows(journal, "a", 1)
    assert caught.value.code == "read_only"
    journal.close()
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM schema_version WHERE version = 5")
    connection.close()
    with pytest.raises(StoreUnavailable, match="is read-only, and no store yet"):
        open_journal(path)
