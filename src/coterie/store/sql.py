"""A journal in SQLite or PostgreSQL, by SQLAlchemy: opening it, transactions, and what the database's errors mean.

The queries are in `coterie.store.queries`, the tables and migrations in `coterie.store.schema`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from coterie.store.errors import BadValue, StoreUnavailable
from coterie.store.journal import check_version
from coterie.store.queries import SqlReading, SqlWriting
from coterie.store.schema import LATEST, migrate, version_of

_Answer = TypeVar("_Answer")

BUSY_SECONDS = 30.0
"""How long a transaction waits for another process that writes to the same SQLite file."""
_PAUSES = (0.05, 0.2, 0.5, 1.0)  # seconds before a transaction that surely did nothing is tried again
_SQLITE_PAUSES = (0.0, 0.1, 0.3)
_KNOWN = "sqlite:///FILE, postgresql://… or jsonl:///FOLDER"


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
        self.engine = self._open()
        try:
            self.retried(self._migrate)
        except BaseException:
            self.engine.dispose()
            raise

    def _open(self) -> Engine:
        if not self.is_sqlite:
            try:
                return create_engine(self.url, pool_pre_ping=True, pool_size=4, max_overflow=8)
            except ImportError:
                raise ImportError(
                    "PostgreSQL needs psycopg: pip install 'coterie[serve]' (in the clone: pip install '.[serve]')"
                ) from None
        engine = create_engine(self.url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _migrate(self) -> None:
        with self._read_transaction() as connection:
            version = version_of(connection)
        check_version(version)
        if version == LATEST:
            return
        if self.is_sqlite:
            # Wait for another process that makes the same store: the next step would not.
            with self._write_transaction():
                pass
            with self._translated(), self.engine.connect() as connection:
                raw = connection.connection.dbapi_connection
                assert raw is not None
                raw.execute("PRAGMA journal_mode = WAL")  # kept in the file
        with self._write_transaction() as connection:
            migrate(connection)

    @contextmanager
    def reading(self) -> Iterator[SqlReading]:
        """One state of the database, the same for every query in the block."""
        with self._read_transaction() as connection:
            yield SqlReading(connection)

    @contextmanager
    def writing(self, ids: Sequence[str] = ()) -> Iterator[SqlWriting]:
        """A transaction that holds these campaigns' locks; SQLite locks the whole file."""
        with self._write_transaction() as connection:
            yield SqlWriting(connection, ids)

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
            with self._translated(), self._connected(coterie_writes=True) as connection, connection.begin():
                yield connection
                committing = True
        except StoreUnavailable as error:
            if committing and not self.is_sqlite:  # SQLite says that a commit failed only if it did
                error.uncertain, error.away = True, False
            raise

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
        except IntegrityError:
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
            found = StoreUnavailable(f"the store cannot be used now: {reason}")
            if self.is_sqlite:
                # A connection that was opened when the file was read-only stays so: the next one is a new one.
                self.engine.dispose()
                found.away = "readonly" in reason or "locked" in reason
            elif isinstance(error, DBAPIError):
                found.away = error.connection_invalidated or isinstance(error, OperationalError)
            raise found from error

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves: see below
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = FULL")  # every commit is on disk before it is acknowledged
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the lock at once: one that reads first and locks later can find that it has read too early.
    writes = connection.get_execution_options().get("coterie_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
