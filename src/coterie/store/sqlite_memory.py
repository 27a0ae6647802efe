"""The connections that one process has to a SQLite file, when the file was read-only and may be written now.

SQLite gives all connections of a process one memory beside the journal (FILE-shm), as the first of them could open it:
https://www.sqlite.org/wal.html#read_only_databases. As long as one is open from when that was read-only, the new ones
cannot write either. So those are closed, and waited for, before the next one is opened.
"""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError

from coterie.store.sqlite_file import SqliteFile

WAIT_SECONDS = 2.0
"""How long a new connection waits for the end of what is being read by older ones. Whoever waits for himself, or for a
long reading, fails after that, and tries again."""


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
