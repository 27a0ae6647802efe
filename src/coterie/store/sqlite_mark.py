"""The marks in a SQLite file that tell a copy that lacks something from a complete one, and the order in which they are
written.

SQLite keeps the newest commits in a journal, FILE-wal, until a checkpoint copies them into FILE; then it writes the
journal anew from its beginning. Whoever copies FILE and then FILE-wal while that happens gets two files that do not
belong together: SQLite applies the one to the other without a question. So FILE has

- a number in its first page (`user_version`), which every journal of it repeats in its first commit, and which is
  another one whenever the journal is written anew: a journal without FILE's number is another one's;
- the row of `store_mark`: every commit counts `commits` up, and `marked` says of FILE by itself whether it needs its
  journal. It is commits (of the last renewal) or BEING_MARKED in a file in use, and NULL after an ordinary end.

A renewal (`begin_opening`) goes in steps, each of which leaves both files so that a copy of FILE and then of FILE-wal,
each read from its beginning to its end, is either complete or refused:

1. a commit sets `marked` to BEING_MARKED, and repeats the number: nobody else commits results while it stands there;
2. with the lock of writers held, a checkpoint copies everything into FILE, whose first page keeps its number;
3. only if all was copied, a commit gives the first page a new number. The writer holds an old state meanwhile, so
   SQLite goes on with the same journal, which has both numbers now;
4. a checkpoint copies that, by itself: whoever reads the new number in the first page reads what step 2 has copied in
   all pages after it;
5. a commit counts up: FILE with its journal has more commits than `marked`, so that another program may complete it.

The next commit begins the journal anew; `count_commit` repeats the number in it, whoever makes it.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from typing import Any, NamedTuple

BEING_MARKED = -1
_IN_USE = 0x436F7465
"""`application_id` in the first page, from step 3 on until an ordinary end: of a copy that was made during the end, the
first page is the old one."""


class Mark(NamedTuple):
    """What a file, or a file with its journal, says of itself."""

    number: int
    commits: int
    marked: int | None
    in_use: bool

    @property
    def is_open(self) -> bool:
        """Whether results may be committed: the file by itself says that it needs its journal."""
        return self.marked is not None and self.marked != BEING_MARKED

    @property
    def lacks_commits(self) -> bool:
        """Whether a file with this mark needs a journal."""
        return self.marked in (BEING_MARKED, self.commits) or (self.marked is None and self.in_use)


def version_in_file(raw: sqlite3.Connection) -> int:
    """The schema version of a file, 0 without one, by SQLite's own connection: whoever opens a store waits for nothing
    else.
    """
    known = raw.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'").fetchone()
    return 0 if known is None else int(raw.execute("SELECT MAX(version) FROM schema_version").fetchone()[0] or 0)


def read_mark(connection: Any) -> Mark:
    """The mark as a connection sees it."""
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    commits, marked = connection.execute("SELECT commits, marked FROM store_mark").fetchone()
    return Mark(int(number), int(commits), marked, kind == _IN_USE)


def begin_opening(connection: sqlite3.Connection, other: sqlite3.Connection) -> bool:
    """Have the file itself say that the next commits are in the journal, after what is in the journal was copied into
    it. `other` is a second connection to the file. False if somebody who reads an older state was in the way.
    """
    complete = _copied(connection, other, "commits + 1", _IN_USE)
    with _transaction(connection):  # from here on a copy that is complete has more commits than were marked
        count_commit(connection)
    return complete


def end_opening(connection: sqlite3.Connection, other: sqlite3.Connection) -> bool:
    """An ordinary end: everything is copied into the file, which says that it is complete. False if not all was."""
    return _copied(connection, other, "NULL", 0)


def count_commit(connection: Any) -> Mark:
    """Count the transaction that is under way, which must not commit results unless the mark `is_open`."""
    connection.execute("UPDATE store_mark SET commits = commits + 1")
    mark = read_mark(connection)
    if mark.marked == mark.commits - 1:  # perhaps the first of a journal
        connection.execute(f"PRAGMA user_version = {mark.number}")
    return mark


def mark_complete(connection: sqlite3.Connection) -> None:
    """Say of a copy that it is complete by itself."""
    connection.execute("UPDATE store_mark SET marked = NULL")
    connection.execute(f"PRAGMA user_version = {_new_number()}")
    connection.execute("PRAGMA application_id = 0")


def _copied(connection: sqlite3.Connection, other: sqlite3.Connection, marked: str, kind: int) -> bool:
    with _transaction(connection):
        number = read_mark(connection).number
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("UPDATE store_mark SET commits = commits + 1, marked = ?", [BEING_MARKED])
    with _transaction(connection):
        if read_mark(connection).marked != BEING_MARKED:
            return True  # somebody else was faster
        complete = checkpoint(other)
        connection.execute(f"PRAGMA user_version = {_new_number() if complete else number}")
        connection.execute(f"PRAGMA application_id = {kind}")
        connection.execute(f"UPDATE store_mark SET commits = commits + 1, marked = {marked}")
    return checkpoint(connection) and complete


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Copy what is in the journal into the file, as far as nobody reads older states; whether that was all."""
    busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return bool(busy == 0 and frames == copied)


def _new_number() -> int:
    return secrets.randbits(31) or 1


def number_after(number: int) -> int:
    """The number that releases before 0.3 gave a file with this one when it was opened next."""
    digest = hashlib.sha256(number.to_bytes(4, "big") + b"coterie").digest()
    return (int.from_bytes(digest[:4], "big") & 0x7FFFFFFF) or 1


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
