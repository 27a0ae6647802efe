"""A SQLite file and its journal: a copy without it, one of another store, a file that is gone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from coterie.store import BadValue, StoreUnavailable, open_journal
from coterie.testing.journals import append_rows, begin_campaigns, sample_rows

KILLED = """
import os, sys
sys.path.insert(0, sys.argv[3])
from coterie.testing.journals import append_rows, begin_campaigns
from coterie.store import open_journal
journal = open_journal(sys.argv[1])
if sys.argv[2] != "0":
    begin_campaigns(journal, sys.argv[2])
for _ in range(3):
    append_rows(journal, "a", 5)
os._exit(9)
"""


def killed(path: Path, create: str = "0") -> None:
    """A process that adds 15 rows and ends without closing anything."""
    imported = str(Path(__file__).parent.parent / "imported")
    subprocess.run([sys.executable, "-c", KILLED, str(path), create, imported], check=False, timeout=120)
    assert Path(f"{path}-wal").stat().st_size > 0


def count(path: Path, id: str = "a") -> int:
    journal = open_journal(path, create=False)
    with journal.reading() as reading:
        campaign = reading.campaign(id)
        assert campaign is not None
        rows = reading.rows(campaign).rows
    assert rows == sample_rows(len(rows))
    journal.close()
    return len(rows)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_a_file_that_was_closed_is_complete_by_itself(path: Path, tmp_path: Path) -> None:
    journal = open_journal(path)
    begin_campaigns(journal, "a")
    append_rows(journal, "a", 5)
    journal.close()
    shutil.copy(path, tmp_path / "copy.db")
    assert count(tmp_path / "copy.db") == 5
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("before", [0, 4])
def test_a_copy_without_its_journal_is_named(path: Path, tmp_path: Path, before: int) -> None:
    """Also if the file was closed in order before, and so has rows of its own."""
    if before:
        journal = open_journal(path)
        begin_campaigns(journal, "a")
        append_rows(journal, "a", before)
        journal.close()
    killed(path, "0" if before else "a")
    shutil.copy(path, tmp_path / "copy.db")
    with pytest.raises(StoreUnavailable, match=r"without its journal copy\.db-wal") as caught:
        open_journal(tmp_path / "copy.db")
    assert caught.value.code == "journal_missing"
    assert not (tmp_path / "copy.db-wal").exists()
    shutil.copy(f"{path}-wal", tmp_path / "copy.db-wal")
    assert count(tmp_path / "copy.db") == before + 15
    assert count(path) == before + 15  # and it is closed in order now
    shutil.copy(path, tmp_path / "again.db")
    assert count(tmp_path / "again.db") == before + 15


def test_a_copy_of_a_file_in_use_is_named_after_checkpoints_too(path: Path, tmp_path: Path) -> None:
    journal = open_journal(path)
    begin_campaigns(journal, "a")
    for k in range(250):
        append_rows(journal, "a", 5)
        if k in (0, 99, 150, 249):
            shutil.copy(path, tmp_path / f"copy{k}.db")
            with pytest.raises(StoreUnavailable, match="without its journal"):
                open_journal(tmp_path / f"copy{k}.db")
    assert path.stat().st_size > 50_000  # something was copied into the file meanwhile
    journal.close()
    assert count(path) == 1250


def test_what_other_tools_have_copied_or_completed_opens(path: Path, tmp_path: Path) -> None:
    """sqlite3's .backup while it is in use; and sqlite3 as the last one that had it open after a kill."""
    killed(path, "a")
    with sqlite3.connect(path) as source, sqlite3.connect(tmp_path / "copy.db") as target:
        source.backup(target)
    source.close()
    target.close()
    assert not Path(f"{path}-wal").exists()
    assert count(path) == 15
    assert count(tmp_path / "copy.db") == 15


def test_a_journal_of_another_store_is_named(path: Path, tmp_path: Path) -> None:
    journal = open_journal(path)
    begin_campaigns(journal, "a")
    append_rows(journal, "a", 5)
    journal.close()
    other = tmp_path / "other.db"
    journal = open_journal(other)
    begin_campaigns(journal, "a")
    journal.close()
    journal = open_journal(path)
    journal.backup(tmp_path / "kept.db")
    journal.close()
    killed(other)
    whole = path.read_bytes()
    shutil.copy(f"{other}-wal", f"{path}-wal")
    with pytest.raises(StoreUnavailable, match="is not the journal of") as caught:
        open_journal(path)
    assert caught.value.code == "journal_foreign"
    assert path.read_bytes() == whole
    Path(f"{path}-wal").unlink()
    assert count(path) == 5
    killed(path)  # and a backup that is put in the place of a file whose journal is left lying there
    shutil.copy(tmp_path / "kept.db", path)
    with pytest.raises(StoreUnavailable, match="an earlier or later state of it"):
        open_journal(path)


@pytest.mark.slow
def test_a_kill_at_any_point_of_opening_is_no_loss(path: Path) -> None:
    for rounds in range(3):
        killed(path, "0" if rounds else "a")
    assert count(path) == 45


def test_a_backup_is_complete_while_others_write(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "store.db")
    begin_campaigns(journal, "a")
    append_rows(journal, "a", 7)
    target = tmp_path / "copy.db"
    journal.backup(target)
    append_rows(journal, "a", 5)
    assert count(target) == 7
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with pytest.raises(BadValue, match="there already"):
        journal.backup(target)
    with pytest.raises((BadValue, StoreUnavailable)):
        journal.backup(tmp_path / "no" / "folder" / "x")
    again = open_journal(target)
    append_rows(again, "a", 1)
    again.close()
    journal.close()
    assert sorted(os.listdir(tmp_path)) == ["copy.db", "store.db"]


def test_postgresql_makes_its_own_backups(postgres: object, tmp_path: Path) -> None:
    journal = open_journal(postgres.new_database())  # type: ignore[attr-defined]
    with pytest.raises(BadValue, match="pg_dump"):
        journal.backup(tmp_path / "x")
    journal.close()


@pytest.mark.parametrize("what", ["file", "journal", "both", "replaced"])
def test_nothing_is_acknowledged_once_the_files_are_gone(path: Path, tmp_path: Path, what: str) -> None:
    journal = open_journal(path)
    begin_campaigns(journal, "a")
    append_rows(journal, "a", 5)
    journal.backup(tmp_path / "kept.db")
    append_rows(journal, "a", 5)
    if what in ("file", "both"):
        path.unlink()
    if what in ("journal", "both"):
        Path(f"{path}-wal").unlink()
    if what == "replaced":
        os.replace(tmp_path / "kept.db", path)
    with pytest.raises(StoreUnavailable, match=r"was deleted|was replaced") as caught:
        append_rows(journal, "a", 5)
    assert caught.value.code == "store_moved"
    if what in ("file", "both"):
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="unable to open database file"):
                append_rows(journal, "a", 5)
            with pytest.raises(StoreUnavailable, match="unable to open database file"):
                journal.check_writable()
        assert not path.exists(), "no empty store comes in the place of the one that is gone"
    if what == "replaced":
        with pytest.raises(StoreUnavailable, match="is not the journal of"):  # SQLite leaves it lying there
            append_rows(journal, "a", 5)
        Path(f"{path}-wal").unlink()
        append_rows(journal, "a", 5)  # it goes on with the one that was put there
        journal.close()
        assert count(path) == 10
    journal.close()
    if what == "journal":  # SQLite had it open still, and has copied it into the file
        assert count(path) == 10


def test_files_that_go_while_a_transaction_is_under_way(path: Path) -> None:
    journal = open_journal(path)
    begin_campaigns(journal, "a")

    def work() -> None:
        with journal.writing(["a"]) as writing:
            writing.append(
                "a", sample_rows(5), {"last_at": 1.0, "t": 0, "measurements": 0, "open_leases": 0, "done": 0}
            )
            path.unlink()

    with pytest.raises(StoreUnavailable, match="was deleted"):
        work()
    journal.close()


def test_looking_at_the_file_keeps_the_locks_of_this_process(path: Path) -> None:
    """Whoever closes a file drops all its locks on it; then another process would take the journal for its own."""
    journal = open_journal(path)
    begin_campaigns(journal, "a")
    append_rows(journal, "a", 5)
    with journal.reading() as first, journal.reading() as second:  # two connections: the file was looked at between
        assert first.count("a") == second.count("a") == 5
    script = "import sys; from coterie.store import open_journal; open_journal(sys.argv[1]).close()"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=120)
    assert Path(f"{path}-wal").exists(), "the other process has deleted a journal that is in use"
    append_rows(journal, "a", 5)
    journal.close()
    assert count(path) == 10


def test_a_file_that_was_read_only_is_written_once_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if somebody was reading just then: a connection from before would keep all later ones from writing."""
    monkeypatch.setattr("coterie.store.sqlite_file.WAIT_SECONDS", 0.0)
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)  # for the user that root becomes, whom no mode would stop
        if user == 0:
            os.seteuid(65534)
        try:
            folder = Path(name, "copy")
            journal = open_journal(Path(name, "store.db"))
            begin_campaigns(journal, "a")
            shutil.copytree(name, folder, ignore=shutil.ignore_patterns("copy"))  # as it is after a kill
            protect(folder, 0o555)
            copy = open_journal(folder / "store.db")
            with copy.reading() as reading:
                assert reading.campaign("a") is not None
                protect(folder, 0o777)
                with pytest.raises(StoreUnavailable):
                    append_rows(copy, "a", 1)
            append_rows(copy, "a", 5)
            copy.close()
            journal.close()
            assert count(folder / "store.db") == 5
        finally:
            os.seteuid(user)


def protect(folder: Path, mode: int) -> None:
    for file in folder.iterdir():
        file.chmod(mode & 0o666)
    folder.chmod(mode)
