"""A SQLite file beside its write-ahead journal (FILE-wal): whether the two belong together and nothing is missing, and
whether both still stand where they were opened. `coterie.store.sqlite_mark` writes the marks that are read here.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import struct
import threading
import time
from contextlib import closing, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError

from coterie.store.errors import StoreUnavailable
from coterie.store.sqlite_mark import mark_complete, number_after, read_mark

STORE_MOVED = "store_moved"
_LOOKED_AGAIN = (0.01, 0.02, 0.05, 0.1, 0.2)  # after so many seconds

WAL_HEADER, _FRAME_HEADER = 32, 24
_MAGIC = (0x377F0682, 0x377F0683)
_FIRST_PAGE = (1).to_bytes(4, "big")
_NUMBER = 60  # where the header of the first page has user_version

log = logging.getLogger("coterie.store")


class Identity(NamedTuple):
    """Which files a connection has open, as the system numbers them."""

    file: tuple[int, int] | None
    journal: tuple[int, int] | None


class _ByItself(NamedTuple):
    """What a file says without its journal: its number, how many commits it counts, whether it needs a journal, and
    whether a release wrote it that keeps a head beside a file in use.
    """

    number: int
    commits: int
    lacks_commits: bool
    keeps_head: bool = False


class WalFrames:
    """The frames of a journal as it was when this was made: `count` up to its last commit.

    As much of it is read (https://www.sqlite.org/fileformat2.html#walformat) as tells which file it belongs to. SQLite
    writes a journal anew from its beginning once all of it was copied into the file. The first salt of its header is
    one more then, and every frame repeats the salts: those with other ones are left over.
    """

    def __init__(self, path: Path, page_size: int, salts: bytes, total: int) -> None:
        self._path, self._frame = path, page_size + _FRAME_HEADER
        self.overtaken = False
        """Whether this is a copy that has its beginning from before the journal was written anew, its end from after"""
        with open(path, "rb") as file:
            low, high = 0, total  # those with the right salts come first
            while low < high:
                middle = (low + high) // 2
                if self._at(file, middle, 8, 8) == salts:
                    low = middle + 1
                else:
                    high = middle
            if low < total:
                newer = int.from_bytes(self._at(file, low, 8, 4), "big") - int.from_bytes(salts[:4], "big")
                self.overtaken = 0 < newer % 2**32 < 2**16
            while low > 0 and not any(self._at(file, low - 1, 4, 4)):  # else: the size of the file after a commit
                low -= 1
            self.count = low

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The frames of a journal; None if there is none, or it is empty."""
        try:
            with open(path, "rb") as file:
                head = file.read(WAL_HEADER)
                size = file.seek(0, 2)
            magic, _, page_size, _ = struct.unpack(">4I", head[:16])
            if magic not in _MAGIC or page_size < 512:
                return None
            return cls(path, page_size, head[16:24], (size - WAL_HEADER) // (page_size + _FRAME_HEADER))
        except (OSError, struct.error):
            return None

    def has_number(self, *wanted: int) -> bool:
        """Whether a copy of the first page has one of these numbers (user_version); True if there is no such page."""
        seen = False
        with suppress(OSError), open(self._path, "rb") as file:
            for place in range(self.count):
                if self._at(file, place, 0, 4) == _FIRST_PAGE:
                    seen = True
                    if int.from_bytes(self._at(file, place, _FRAME_HEADER + _NUMBER, 4), "big") in wanted:
                        return True
        return not seen

    def _at(self, file: BufferedReader, place: int, offset: int, length: int) -> bytes:
        file.seek(WAL_HEADER + place * self._frame + offset)
        return file.read(length)


class SqliteFile:
    """The file of a store."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.journal = Path(f"{path}-wal")
        self.head = Path(f"{path}-head")
        self._said = False  # that there is no head

    def make(self) -> None:
        """An empty file that only its owner reads and writes; SQLite gives its journal the same mode."""
        with suppress(OSError):  # it is there, or SQLite says why it cannot be
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def connect(self, timeout: float) -> sqlite3.Connection:
        """A connection to the file that is there: a new one in place of a file that is gone would be an empty store.

        A file that may not be written is opened for looking. Without a journal it is read as it is: SQLite could not
        make the files that it needs for anything else.
        """
        file_state = self.check_journal()
        if file_state is not None and self.has_journal:
            self._check_whole(file_state)
        if self.writable:
            how = "mode=rw"
        else:
            how = "mode=ro" if self.has_journal else "mode=ro&immutable=1"
        return sqlite3.connect(self._address(how), uri=True, timeout=timeout, check_same_thread=False)

    @property
    def writable(self) -> bool:
        """Whether this process may write the file, and make the journal beside it or use the one that is there."""
        if not _may_write(self.path):
            return not self.path.exists()
        return _may_write(self.path.absolute().parent) or all(
            _may_write(file) for file in (self.journal, Path(f"{self.path}-shm"))
        )

    @property
    def has_journal(self) -> bool:
        """Whether there is a journal that is not empty."""
        return _size(self.journal) > WAL_HEADER

    def _address(self, how: str) -> str:
        return f"file:{quote(os.path.abspath(self.path))}?{how}"

    # Whether file and journal belong together.

    def check_journal(self) -> _ByItself | None:
        """Refuse a file without the journal that its newest commits are in, and one beside another journal than its
        own. What the file says by itself is returned.

        Two files are read one after the other, and another process may close or open the store in between: what does
        not fit is looked at again before it is refused.
        """
        for pause in _LOOKED_AGAIN:
            try:
                return self._check_once()
            except StoreUnavailable:
                time.sleep(pause)
        return self._check_once()

    def _check_once(self) -> _ByItself | None:
        file_state = self._by_itself()
        if file_state is None:
            return None  # new, or no database: SQLite says so
        frames = WalFrames.read(self.journal)
        if frames is not None and frames.overtaken:
            raise StoreUnavailable(
                f"{self.journal} was copied while it was written anew, and lacks results: use a copy made with "
                "`coterie campaign backup`",
                code="journal_cut",
                field="store",
            )
        if frames is not None and frames.count > 0:
            self._check_not_foreign(file_state.number, frames)
        elif file_state.lacks_commits:
            raise StoreUnavailable(
                f"{self.path} was copied or left without its journal {self.journal.name}, which has the newest "
                f"results: put {self.journal.name} beside it, or use a copy made with `coterie campaign backup`",
                code="journal_missing",
                field="store",
            )
        return file_state

    def _by_itself(self) -> _ByItself | None:
        """What the file says without its journal.

        SQLite reads it, not we: when a process closes a file, the system drops all its locks on it, those of other
        connections too, unless it is SQLite that closes it.
        """
        if _size(self.path) == 0:
            return None
        try:
            with closing(sqlite3.connect(self._address("mode=ro&immutable=1"), uri=True)) as connection:
                (number,) = connection.execute("PRAGMA user_version").fetchone()
                tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
                if "store_mark" not in tables:
                    return None  # no store, or one from before 0.2: it is said when it is opened
                mark = read_mark(connection)
                return _ByItself(int(number), mark.commits, mark.lacks_commits, mark.in_use)
        except sqlite3.Error:
            return None  # what is wrong with it is said when it is opened

    def _check_not_foreign(self, number: int, frames: WalFrames) -> None:
        if number == 0 or frames.has_number(number, number_after(number)):
            return
        raise StoreUnavailable(
            f"{self.journal} is not the journal of {self.path}, but of another store or of an earlier or later state "
            "of it: together they would lack results. Put the right one in its place, use a copy made with `coterie "
            "campaign backup`, or move the journal away if the store is complete without it",
            code="journal_foreign",
            field="store",
        )

    def _check_whole(self, file_state: _ByItself) -> None:
        """Refuse a journal that ends too early: before commits that the file has, or that the head counts.

        A connection that only reads looks: when another one is closed as the last, SQLite copies what it takes for the
        whole journal into the file, and deletes it.
        """
        head = self._read_head()
        try:
            with closing(sqlite3.connect(self._address("mode=ro"), uri=True, timeout=1.0)) as connection:
                mark = read_mark(connection)
        except sqlite3.Error:
            return  # an older release, or damage: it is said later
        if mark.commits < file_state.commits or (
            head is not None and head[0] == mark.number and mark.commits < head[1]
        ):
            raise StoreUnavailable(
                f"{self.journal} was cut or is an older copy: {self.path.name} had more results than there are. Put "
                "the whole journal in its place, or use a copy made with `coterie campaign backup`",
                code="journal_cut",
                field="store",
            )
        if head is None and file_state.keeps_head and mark.in_use and not self._said:
            self._said = True
            log.warning("%s is not there: whether %s is whole cannot be told", self.head, self.journal.name)

    # The head: a small file that counts the commits of a store in use.

    def keep_head(self, number: int, commits: int) -> None:
        """Count the commits that were acknowledged, beside the file. It is written after they are on disk, and is not
        waited for: after a power cut it may count less than there is, never more.
        """
        with suppress(OSError):
            file = os.open(self.head, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, b"%010d %020d\n" % (number, commits))
            finally:
                os.close(file)

    def drop_head(self) -> None:
        """The file is complete by itself."""
        with suppress(OSError):
            self.head.unlink()

    def _read_head(self) -> tuple[int, int] | None:
        try:
            number, commits = self.head.read_bytes().split()
            return int(number), int(commits)
        except (OSError, ValueError):
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
        path, present = (self.path, now.file) if now.file != opened.file else (self.journal, now.journal)
        raise gone(path, present is not None)


def gone(path: Path, replaced: bool = False) -> StoreUnavailable:
    """What is said of a file that does not stand where it was opened."""
    fate = "was replaced by another file" if replaced else "was deleted"
    return StoreUnavailable(f"the store cannot be used now: {path} {fate} while it was open", STORE_MOVED)


def copy_into(connection: sqlite3.Connection, target: Path) -> None:
    """A complete copy of one state of the store, by SQLite's own interface, while others go on writing."""
    new = target.with_name(f"{target.name}.new")
    SqliteFile(str(new)).make()
    try:
        with closing(sqlite3.connect(new)) as copy:
            connection.backup(copy)
            mark_complete(copy)  # with another number: no journal of the original fits it
            copy.commit()
            wrong = copy.execute("PRAGMA quick_check").fetchone()[0]
        if wrong != "ok":
            raise StoreUnavailable(f"the copy is not sound: {wrong}. The store itself may be damaged", "bad_copy")
        with open(new, "rb") as file:
            os.fsync(file.fileno())
        os.link(new, target)  # unlike a renaming this never replaces a file
    finally:
        new.unlink(missing_ok=True)


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


# A file that was read-only and may be written now.
#
# SQLite gives all connections of a process one memory beside the journal (FILE-shm), as the first of them could open
# it: https://www.sqlite.org/wal.html#read_only_databases. As long as one is open from when that was read-only, the new
# ones cannot write either. So those are closed, and waited for, before the next one is opened.


WAIT_SECONDS = 2.0
"""How long a new connection waits for what is being read by older ones; after that it fails, and is tried again."""


class OpenConnections:
    """The connections of an engine to a file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._changed = threading.Condition(threading.RLock())
        self._in_use: dict[Any, bool] = {}  # of every connection that is open
        self._read_only: set[Any] = set()  # of these, those that can only read, whatever the file allows by now

    def follow(self, engine: Engine) -> None:
        """Know of the engine's connections from now on."""
        event.listen(engine, "connect", self._opened)
        event.listen(engine, "checkout", self._taken)
        event.listen(engine, "checkin", self._given_back)
        event.listen(engine, "close", self._closed)

    def connect(self, timeout: float) -> sqlite3.Connection:
        """A new connection to the file, which can write if the file may be written."""
        if self._file.writable:
            with self._changed:
                for raw in [raw for raw in self._read_only if not self._in_use[raw]]:
                    raw.close()
                    self._closed(raw, None)
                self._changed.wait_for(lambda: not self._read_only, WAIT_SECONDS)
        return self._file.connect(timeout)

    def distrust(self) -> None:
        """A connection could not write though the file may be written: nor can the others."""
        with self._changed:
            self._read_only.update(self._in_use)

    def _opened(self, raw: Any, _: Any) -> None:
        with self._changed:
            self._in_use[raw] = True
            if not self._file.writable:
                self._read_only.add(raw)

    def _taken(self, raw: Any, *_: Any) -> None:
        with self._changed:
            if raw not in self._in_use or (raw in self._read_only and self._file.writable):
                raise DisconnectionError("opened when the file was read-only")
            self._in_use[raw] = True

    def _given_back(self, raw: Any, record: Any) -> None:
        with self._changed:
            if raw in self._in_use:
                self._in_use[raw] = False
            if raw in self._read_only and self._file.writable:
                record.invalidate()  # its pool may be one that was left, and would keep it

    def _closed(self, raw: Any, _: Any) -> None:
        with self._changed:
            self._in_use.pop(raw, None)
            self._read_only.discard(raw)
            self._changed.notify_all()
