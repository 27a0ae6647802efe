"""A journal in SQLite or PostgreSQL, by SQLAlchemy: opening it, transactions, and what the database's errors mean.

The queries are in `coterie.store.sql_reading` and `sql_writing`, the tables in `coterie.store.schema`.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, RootTransaction, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from coterie.store.errors import BadValue, StoreUnavailable
from coterie.store.journal import VERSION, check_version
from coterie.store.schema import make_tables, version_of
from coterie.store.sql_reading import SqlReading
from coterie.store.sql_writing import SqlWriting
from coterie.store.sqlite_file import STORE_MOVED, Identity, OpenConnections, SqliteFile, copy_into, gone
from coterie.store.sqlite_mark import begin_opening, count_commit, end_opening, read_mark, version_in_file

_Answer = TypeVar("_Answer")

BUSY_SECONDS = 30.0
"""How long a transaction waits for another process that writes to the same SQLite file."""
_PAUSES = (0.05, 0.2, 0.5, 1.0)  # seconds before a transaction that surely did nothing is tried again
_SQLITE_PAUSES = (0.0, 0.1, 0.3, 1.0)  # others may have a connection from when the file was read-only
_OPENING_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.0)  # for those who read while a file is marked as open
_COMMITS_IN_JOURNAL = 200  # after so many commits of ours, what is in SQLite's journal is copied into the file
log = logging.getLogger("coterie.store")

_SOCKET = re.compile(r' (?:on|at) socket "[^"]*"')  # where a server stands on its machine is nobody else's business
_KNOWN = "sqlite:///FILE or postgresql://…"


def url_of(store: str | os.PathLike[str]) -> URL:
    """The database's address: a URL, or the path of a SQLite file."""
    given = str(store)
    try:
        url = make_url(given) if "://" in given else URL.create("sqlite", database=given)
    except (ArgumentError, ValueError):
        raise BadValue(f"the store's URL cannot be read: use {_KNOWN}", field="store") from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "postgresql+psycopg"):
        raise BadValue(f"a store is {_KNOWN}, got {url.drivername}://…", field="store")
    if url.drivername == "sqlite" and url.database in (None, "", ":memory:"):
        raise BadValue("a store in memory would keep nothing: name a file, sqlite:///FILE", field="store")
    return url


class Database:
    """A journal (`coterie.store.journal`) in a database. Errors of the database come out as `StoreUnavailable`."""

    def __init__(self, store: str | os.PathLike[str], create: bool = True) -> None:
        self.url = url_of(store)
        self.is_sqlite = self.url.drivername == "sqlite"
        self.name = self.url.render_as_string(hide_password=True)
        if self.is_sqlite and not create and not Path(str(self.url.database)).exists():
            raise StoreUnavailable(
                f"there is no store at {self.url.database}: `coterie campaign new` makes one, --store names another",
                code="no_store",
                field="store",
            )
        self._file = SqliteFile(str(self.url.database)) if self.is_sqlite else None
        if self._file is not None:
            self._file.make()
        self._marks = False  # whether the tables are there in which a SQLite file is marked as open
        self._commits = 0  # since the journal was last copied into the file; 0: none was made here
        self._opened = False  # whether the file itself says that commits are in the journal that is there now
        self.engine = self._open()
        try:
            self.retried(self._prepare)
            self._marks = self.is_sqlite
        except BaseException:
            self.engine.dispose()
            raise

    def _open(self) -> Engine:
        if not self.is_sqlite:
            try:
                # A connection that is no good any more is noticed by its first statement, and the work is tried again
                # (`retried`): asking the server before each transaction would cost as much as the transaction.
                return create_engine(self.url, pool_size=4, max_overflow=8)
            except ImportError:
                raise ImportError(
                    "PostgreSQL needs psycopg: pip install 'coterie[serve]' (in the clone: pip install '.[serve]')"
                ) from None
        assert self._file is not None
        file, self._connections = self._file, OpenConnections(self._file)
        engine = create_engine(self.url, creator=lambda: self._connections.connect(BUSY_SECONDS))
        self._connections.follow(engine)

        def note_files(raw: Any, record: Any) -> None:
            record.info["files"] = Identity(file.identity().file, None)
            if not file.has_journal:  # whoever had it open last has copied it into the file
                self._opened = False
            if self._marks and file.writable:  # another file may have been put in the place of the one that we made
                _use_journal(raw)

        event.listen(engine, "connect", note_files)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _prepare(self) -> None:
        if self.is_sqlite:
            with self._translated(), self._raw_connection() as raw:
                version = version_in_file(raw)
        else:
            with self._read_transaction() as connection:
                version = version_of(connection)
        check_version(version)
        if self._file is not None and not self._file.writable:
            if version != VERSION:
                raise StoreUnavailable(f"{self.url.database} is read-only, and no store yet", code="read_only")
            return
        if version != VERSION:
            with self._write_transaction() as connection:
                make_tables(connection)
        if self.is_sqlite:
            with self._translated(), self._raw_connection() as raw:
                _use_journal(raw)
                if read_mark(raw).lacks_commits:  # whoever was marking it was killed
                    self._mark_as_open(raw)

    @contextmanager
    def _raw_connection(self) -> Iterator[sqlite3.Connection]:
        """SQLite's own connection, in no transaction."""
        with self.engine.connect() as connection:
            raw: Any = connection.connection.dbapi_connection
            yield raw

    @contextmanager
    def reading(self) -> Iterator[SqlReading]:
        """One state of the database, the same for every query in the block."""
        with self._read_transaction() as connection:
            yield SqlReading(connection)

    @contextmanager
    def writing(self, ids: Sequence[str] = ()) -> Iterator[SqlWriting]:
        """A transaction that holds these campaigns' locks; SQLite locks the whole file."""
        with self._write_transaction() as connection:
            transaction = SqlWriting(connection, ids)
            yield transaction
            transaction.flush()

    @contextmanager
    def _read_transaction(self) -> Iterator[Connection]:
        # PostgreSQL by itself lets each query see what was committed meanwhile: then a campaign's asks would be older
        # than its measurements.
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._translated(), self._connected(**options) as connection, connection.begin():
            yield connection

    @contextmanager
    def _write_transaction(self) -> Iterator[Connection]:
        """A transaction that is on disk when the block is left; nothing of it is if the block raises."""
        committing = False
        try:
            with self._translated(), self._connected(coterie_writes=True) as connection:
                with self._begun(connection):
                    yield connection
                    committing = True
                if self._marks:
                    self._copy_journal(connection)
        except StoreUnavailable as error:
            if error.code == STORE_MOVED:  # the next connections are to the file that is there now
                self.engine.dispose()
            if committing and not self.is_sqlite:  # SQLite says that a commit failed only if it did
                error.uncertain, error.away = True, False
            raise

    @contextmanager
    def _begun(self, connection: Connection) -> Iterator[None]:
        """A transaction of a connection; a SQLite file is marked as open before the first one commits."""
        while self._marks:
            raw: Any = connection.connection.dbapi_connection
            if not self._opened:
                self._mark_as_open(raw)
            transaction = connection.begin()
            try:
                mark = count_commit(raw)
            except BaseException:
                transaction.rollback()
                raise
            if mark.is_open and self._opened:
                files = self._check_files(connection, transaction)
                with transaction:
                    yield
                self._file_of_sqlite.check_identity(files)  # else the commit went to a file that is gone
                self._file_of_sqlite.keep_head(mark.number, mark.commits)
                return
            transaction.rollback()  # somebody else has closed it in order, or is marking it just now
            self._opened = False
        with connection.begin():
            yield

    def _mark_as_open(self, raw: sqlite3.Connection) -> None:
        """Have the file say that commits are in its journal. Whoever reads at that moment can be in the way."""
        with self._raw_connection() as other:
            for pause in _OPENING_PAUSES:
                if begin_opening(raw, other):
                    break
                time.sleep(pause)
        self._opened = True

    def _check_files(self, connection: Connection, transaction: RootTransaction) -> Identity:
        """The files that the connection has open, which must be those at their paths."""
        opened: Identity = connection.info["files"]
        if opened.journal is None:  # it is there from the connection's first write on
            opened = connection.info["files"] = Identity(opened.file, self._file_of_sqlite.identity().journal)
        try:
            if opened.journal is None:
                raise gone(self._file_of_sqlite.journal)
            self._file_of_sqlite.check_identity(opened)
        except StoreUnavailable:
            transaction.rollback()
            connection.invalidate()
            raise
        return opened

    @property
    def _file_of_sqlite(self) -> SqliteFile:
        assert self._file is not None
        return self._file

    def _copy_journal(self, connection: Connection) -> None:
        """Now and then, copy what is in SQLite's journal into the file, which is marked as before."""
        self._commits += 1
        if self._commits <= _COMMITS_IN_JOURNAL:
            return
        self._commits = 1
        raw: Any = connection.connection.dbapi_connection
        try:
            with self._raw_connection() as other:
                begin_opening(raw, other)
        except (
            SQLAlchemyError,
            sqlite3.Error,
        ) as error:  # what was to be committed is, and stays in the journal
            log.info("SQLite's journal was not copied into %s: %s", self.url.database, error)

    def check_writable(self) -> None:
        """Count a commit."""
        with self._write_transaction() as connection:
            if not self.is_sqlite:  # in a SQLite file every transaction is counted
                connection.execute(text("UPDATE store_mark SET commits = commits + 1"))

    def backup(self, target: Path) -> None:
        """A complete copy of the store's present state in a new file, while others go on writing."""
        if not self.is_sqlite:
            raise BadValue("PostgreSQL makes its own backups: use pg_dump", field="store")
        if target.exists():
            raise BadValue(f"{target} is there already: name a new file", field="file")
        try:
            with self._translated(), self._raw_connection() as raw:
                copy_into(raw, target)
        except OSError as error:
            raise BadValue(f"cannot write {target}: {error.strerror or error}", field="file") from None

    def _connected(self, **options: Any) -> Connection:
        return self.engine.connect().execution_options(**options)

    def retried(self, work: Callable[[], _Answer]) -> _Answer:
        """The answer of work(), tried again if the connection was no good and surely nothing was done.

        A SQLite file is locked for a moment while the last connection closes or after a process was killed, and then
        SQLite may say so at once instead of waiting. If it has waited, waiting longer will not help.
        """
        for pause in _SQLITE_PAUSES if self.is_sqlite else _PAUSES:
            begun = time.monotonic()
            try:
                return work()
            except StoreUnavailable as error:
                if not error.away or (self.is_sqlite and time.monotonic() - begun > BUSY_SECONDS / 2):
                    raise
            time.sleep(pause)
        return work()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (IntegrityError, sqlite3.IntegrityError):
            raise  # a mistake in our code, not a state of the database that passes
        except (SQLAlchemyError, sqlite3.Error) as error:
            reason = " ".join(str(getattr(error, "orig", None) or error).split())[:300]
            if self.is_sqlite and "file is not a database" in reason:
                name = self.url.database
                raise StoreUnavailable(
                    f"{name} is not a store, but a file of another kind: --store names another file",
                    code="no_store",
                    field="store",
                ) from error
            unavailable = StoreUnavailable(f"the store cannot be used now: {_SOCKET.sub('', reason)}")
            if self._file is not None and not self._file.writable:
                unavailable = _read_only(self._file)
                unavailable.away = True  # perhaps it may be written when it is tried again
                self.engine.dispose()
            elif self.is_sqlite:
                if "readonly" in reason:  # from when the file was
                    self._connections.distrust()
                self.engine.dispose()
                unavailable.away = "readonly" in reason or "locked" in reason
            elif isinstance(error, DBAPIError):
                unavailable.away = error.connection_invalidated or isinstance(error, OperationalError)
            raise unavailable from error

    def close(self) -> None:
        """Give all connections back; a SQLite file is complete then, unless others have it open."""
        if self._commits > 0:
            try:
                with self._translated(), self._raw_connection() as raw, self._raw_connection() as other:
                    if end_opening(raw, other):
                        self._file_of_sqlite.drop_head()
            except StoreUnavailable as error:  # nothing is lost: the commits stay in the journal
                log.warning("%s was not closed in order: %s", self.url.database, error.message)
        self.engine.dispose()


def _read_only(file: SqliteFile) -> StoreUnavailable:
    """What is said to whoever writes to a file that only may be read, or reads one whose journal cannot be."""
    message = "the store is read-only: it can be looked at, and nothing can be written to it"
    if file.has_journal:
        message += (
            f". Its newest results are in {file.journal.name}: to look at them, copy both files to a folder that you "
            "may write to"
        )
    return StoreUnavailable(message, code="read_only", field="store")


def _use_journal(raw: sqlite3.Connection) -> None:
    """Write ahead from now on: it is kept in the file. While others look at the file, SQLite refuses at once."""
    until = time.monotonic() + BUSY_SECONDS
    while raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            raw.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves: see below
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = FULL")  # every commit is on disk before it is acknowledged
    cursor.execute("PRAGMA wal_autocheckpoint = 0")  # see `sqlite_file`: the file is marked whenever this is done
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the lock at once: one that reads first and locks later can find that it has read too early.
    writes = connection.get_execution_options().get("coterie_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
