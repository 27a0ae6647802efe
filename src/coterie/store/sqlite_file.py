"""A SQLite file beside its write-ahead journal (FILE-wal): whether the two belong together, and whether both still
stand where they were opened.

SQLite keeps the newest commits in FILE-wal until a checkpoint copies them into FILE. A copy of FILE alone is an older
state that looks like a store, and a journal of another store beside FILE is applied to it without a question. So the
row of `store_mark` says of FILE by itself whether commits must be in the journal: every commit counts `commits` up, and
before the first one `marked` is set to `commits` and copied into FILE. While a store is open, FILE alone has marked =
commits, and FILE with its journal has marked < commits. `marked` is NULL after an ordinary end, when FILE is complete.

The number of the opening, `user_version` in the header of FILE, also stands in the first page that the journal holds.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import sqlite3
import struct
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from coterie.store.errors import StoreUnavailable

_NUMBER = slice(60, 64)  # user_version in the header of the first page
_WAL_HEADER, _FRAME_HEADER = 32, 24
_WAL_MAGIC = (0x377F0682, 0x377F0683)
STORE_MOVED = "store_moved"
_LOOKED_AGAIN = (0.01, 0.02, 0.05, 0.1, 0.2)  # after so many seconds
_FRAMES_READ = 64  # the first page stands at the beginning of a journal

log = logging.getLogger("coterie.store")


class Identity(NamedTuple):
    """Which files a connection has open, as the system numbers them."""

    file: tuple[int, int] | None
    journal: tuple[int, int] | None


class _ByItself(NamedTuple):
    """What a file says without its journal: the number of its opening, and whether commits must be in a journal."""

    number: int
    lacks_commits: bool


class SqliteFile:
    """The file of a store."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.journal = Path(f"{path}-wal")

    def make(self) -> None:
        """An empty file that only its owner reads and writes; SQLite gives its journal the same mode."""
        with suppress(OSError):  # it is there, or SQLite says why it cannot be
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def connect(self, timeout: float) -> sqlite3.Connection:
        """A connection to the file that is there: a new one in place of a file that is gone would be an empty store."""
        self.check_journal()
        address = f"file:{quote(os.path.abspath(self.path))}?mode=rw"
        return sqlite3.connect(address, uri=True, timeout=timeout, check_same_thread=False)

    # Whether file and journal belong together.

    def check_journal(self) -> None:
        """Refuse a file without the journal that its newest commits are in, and one beside the journal of another.

        Two files are read one after the other, and another process may close or open the store in between: what does
        not fit is looked at again before it is refused.
        """
        for pause in _LOOKED_AGAIN:
            try:
                self._check_once()
                return
            except StoreUnavailable:
                time.sleep(pause)
        self._check_once()

    def _check_once(self) -> None:
        found = self._by_itself()
        if found is None:
            return  # new, or no database: SQLite says so
        if _size(self.journal) > _WAL_HEADER:
            self._check_not_foreign(found.number)
        elif found.lacks_commits and _size(self.journal) <= _WAL_HEADER:
            raise StoreUnavailable(
                f"{self.path} was copied or left without its journal {self.journal.name}, which has the newest "
                f"results: put {self.journal.name} beside it, or use a copy made with `coterie campaign backup`",
                code="journal_missing",
                field="store",
            )

    def _by_itself(self) -> _ByItself | None:
        """What the file says without its journal.

        SQLite reads it, not we: when a process closes a file, the system drops all its locks on it, those of other
        connections too, unless it is SQLite that closes it.
        """
        if _size(self.path) == 0:
            return None
        address = f"file:{quote(os.path.abspath(self.path))}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                (number,) = connection.execute("PRAGMA user_version").fetchone()
                tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
                if "store_mark" in tables:
                    marked = connection.execute("SELECT commits = marked FROM store_mark").fetchone()
                    return _ByItself(int(number), marked is not None and marked[0] == 1)
                # A release without marks kept even the tables in the journal at first.
                (changes,) = connection.execute("PRAGMA schema_version").fetchone()
                return _ByItself(int(number), not tables and changes == 0)
        except sqlite3.Error:
            return None  # what is wrong with it is said when it is opened

    def _check_not_foreign(self, number: int) -> None:
        found = self._number_in_journal()
        if number == 0 or found is None or found in (number, next_number(number)):
            return
        raise StoreUnavailable(
            f"{self.journal} is not the journal of {self.path}, but of another store or of an earlier state of it, and "
            "would spoil it: put the right one in its place, or move it away if the store is complete without it",
            code="journal_foreign",
            field="store",
        )

    def _number_in_journal(self) -> int | None:
        """The number of the opening that the journal was written in; None if it holds no first page near its start."""
        try:
            with open(self.journal, "rb") as file:
                head = file.read(_WAL_HEADER)
                magic, _, page_size, _ = struct.unpack(">4I", head[:16])
                if magic not in _WAL_MAGIC:
                    return None
                salts = head[16:24]
                for _ in range(_FRAMES_READ):
                    frame = file.read(_FRAME_HEADER + page_size)
                    if len(frame) < _FRAME_HEADER + page_size or frame[8:16] != salts:
                        return None
                    if frame[:4] == b"\x00\x00\x00\x01":
                        return int.from_bytes(frame[_FRAME_HEADER:][_NUMBER], "big")
        except (OSError, struct.error):
            pass
        return None

    # Whether both still stand where they were opened.

    def identity(self) -> Identity:
        """The files that stand at these paths now."""
        return Identity(_inode(self.path), _inode(self.journal))

    def check_identity(self, opened: Identity) -> None:
        """Refuse to go on with files that were deleted or replaced: what is written to them is lost."""
        now = self.identity()
        if now == opened:
            return
        path, found = (self.path, now.file) if now.file != opened.file else (self.journal, now.journal)
        raise gone(path, found is not None)


def gone(path: Path, replaced: bool = False) -> StoreUnavailable:
    """What is said of a file that does not stand where it was opened."""
    what = "was replaced by another file" if replaced else "was deleted"
    return StoreUnavailable(f"the store cannot be used now: {path} {what} while it was open", STORE_MOVED)


# The mark, on a connection that is in no transaction.


def begin_opening(connection: sqlite3.Connection, renew: bool = False) -> None:
    """Have the file itself say that the next commits are in the journal. `renew`: also if it says so already, when what
    is in the journal shall be copied into the file.
    """
    with _transaction(connection):
        (marked,) = connection.execute("SELECT marked FROM store_mark").fetchone()
        if marked is not None and not renew:
            return
        number = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if marked is None:
            number = next_number(number) if number else secrets.randbits(31) or 1
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("UPDATE store_mark SET commits = commits + 1, marked = commits + 1")
    checkpoint(connection)
    with _transaction(connection):  # from here on a copy that is complete has more commits than were marked
        connection.execute(f"PRAGMA user_version = {number}")  # so that the journal begins with the first page
        count_commit(connection)


def end_opening(connection: sqlite3.Connection) -> None:
    """An ordinary end: everything is copied into the file, which says that it is complete."""
    with _transaction(connection):
        connection.execute("UPDATE store_mark SET commits = commits + 1, marked = NULL")
    checkpoint(connection)


def count_commit(connection: Any) -> bool:
    """Count the transaction that is under way; False if the file is not marked, so that it must not commit yet."""
    row = connection.execute("UPDATE store_mark SET commits = commits + 1 RETURNING marked").fetchone()
    return row is not None and row[0] is not None


def checkpoint(connection: sqlite3.Connection) -> None:
    """Copy what is in the journal into the file, as far as nobody reads older states. Waits for nobody."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def next_number(number: int) -> int:
    """The number of the opening after this one: told by nothing but it, and not likely that of any other store."""
    digest = hashlib.sha256(number.to_bytes(4, "big") + b"coterie").digest()
    return (int.from_bytes(digest[:4], "big") & 0x7FFFFFFF) or 1


def copy_into(connection: sqlite3.Connection, target: Path) -> None:
    """A complete copy of one state of the store, by SQLite's own interface, while others go on writing."""
    new = target.with_name(f"{target.name}.new")
    SqliteFile(str(new)).make()
    try:
        with closing(sqlite3.connect(new)) as copy:
            connection.backup(copy)
            copy.execute("UPDATE store_mark SET marked = NULL")
            copy.execute(f"PRAGMA user_version = {secrets.randbits(31) or 1}")  # no journal of the original fits it
            copy.commit()
            wrong = copy.execute("PRAGMA quick_check").fetchone()[0]
        if wrong != "ok":
            raise StoreUnavailable(f"the copy is not sound: {wrong}. The store itself may be damaged", "bad_copy")
        with open(new, "rb") as file:
            os.fsync(file.fileno())
        os.link(new, target)  # unlike a renaming this never replaces a file
    finally:
        new.unlink(missing_ok=True)


class _transaction:  # noqa: N801 (used like a function)
    """A write transaction on a connection that says BEGIN itself."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
