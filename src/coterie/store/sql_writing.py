"""What is written in one transaction of a database: the contract of `coterie.store.journal.Writing`, as SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import Connection, delete, select, text, update
from sqlalchemy.exc import IntegrityError

from coterie.store import schema
from coterie.store.journal import (
    Campaign,
    LoginSession,
    Snapshot,
    Summary,
    Token,
    check_next,
    empty_campaign,
)
from coterie.store.rows import TABLES, Kind, Note, Row, Told, hashes_after, sealed
from coterie.store.sql_reading import MOST_IDS, SqlReading


class SqlWriting(SqlReading):
    """Queries and changes of one transaction, which holds the locks of these campaigns."""

    def __init__(self, connection: Connection, ids: Sequence[str]) -> None:
        super().__init__(connection)
        self._appended: dict[Kind, list[tuple[Any, ...]]] = {}
        self._renewed: list[dict[str, Any]] = []
        self._texts = 0  # characters of values and notes that were appended
        self._is_sqlite = connection.dialect.name == "sqlite"
        self.locked: dict[str, Campaign] = {}
        if ids:
            # In one order, so that two transactions never wait for each other; SQLite has locked the whole file before.
            mark, lock = ("?", "") if self._is_sqlite else ("%s", " FOR UPDATE")
            marks = ", ".join([mark] * len(ids))
            rows = self._driven(f"{_CAMPAIGNS} ({marks}) AND removed = 0 ORDER BY id{lock}", tuple(ids)).fetchall()
            campaigns = (cast(Campaign, dict(zip(_SHOWN, row, strict=True))) for row in rows)
            self.locked = {campaign["id"]: campaign for campaign in campaigns}

    def _driven(self, statement: str, given: Any, many: bool = False) -> Any:
        """The cursor of a statement in the driver's own words, for what every transaction does.

        SQLAlchemy takes longer to put a statement and its result together than SQLite takes to carry it out.
        """
        if not self._is_sqlite:
            return self._connection.exec_driver_sql(statement, given).cursor
        raw: Any = self._connection.connection.dbapi_connection
        return raw.executemany(statement, given) if many else raw.execute(statement, given)

    def lock_names(self) -> None:
        """Nobody else begins a campaign until this transaction ends; SQLite has locked the whole file already."""
        if not self._is_sqlite:
            self._connection.execute(text("LOCK TABLE campaigns IN SHARE ROW EXCLUSIVE MODE"))

    def add_campaign(self, id: str, name: str, settings: str, created: float, about: str = "") -> None:
        """Begin a campaign, without rows."""
        row = {**empty_campaign(id, name, settings, created, about), "removed": 0}
        try:
            self._connection.execute(schema.campaigns.insert(), [row])
        except IntegrityError:
            raise ValueError(f"the id {id!r} is taken") from None

    def remove_campaign(self, id: str) -> None:
        """Nobody sees a locked campaign any more, nor its tokens."""
        table, tokens, sessions = schema.campaigns, schema.tokens, schema.sessions
        self._connection.execute(update(table).where(table.c.id == id).values(removed=1))
        own = select(tokens.c.hash).where(tokens.c.campaign == id)
        self._connection.execute(delete(sessions).where(sessions.c.token.in_(own)))
        self._connection.execute(delete(tokens).where(tokens.c.campaign == id))

    def sweep(self, most: int) -> bool:
        """Free up to so many rows of campaigns that were removed; whether there is more."""
        campaigns, left = schema.campaigns, most
        removed = select(campaigns.c.id).where(campaigns.c.removed != 0).order_by(campaigns.c.id).limit(1)
        while (id := self._connection.execute(removed).scalar()) is not None:
            for table in schema.TABLES.values():
                rows = select(table.c.seq).where(table.c.campaign == id).order_by(table.c.seq).limit(left)
                numbers = [row.seq for row in self._connection.execute(rows)]
                for start in range(0, len(numbers), MOST_IDS):
                    some = numbers[start : start + MOST_IDS]
                    self._connection.execute(delete(table).where(table.c.campaign == id, table.c.seq.in_(some)))
                left -= len(numbers)
                if left <= 0:
                    return True
            self._connection.execute(delete(schema.snapshots).where(schema.snapshots.c.campaign == id))
            if self.has_attachments:
                self._connection.execute(delete(schema.attachments).where(schema.attachments.c.campaign == id))
            self._connection.execute(delete(campaigns).where(campaigns.c.id == id))
        return False

    def append(self, id: str, rows: Sequence[Row], summary: Summary) -> str:
        """Add rows to the log of a locked campaign, and renew its summary; the last row's hash."""
        campaign = self.locked[id]
        check_next(campaign, rows)
        hashes = hashes_after(campaign["chain"], rows)
        for row, hash in zip(rows, hashes, strict=True):
            self._appended.setdefault(type(row), []).append((id, *row, hash))
            self._texts += len(row.content) if type(row) is Note else len(row.values) if type(row) is Told else 0
        chain = hashes[-1] if hashes else campaign["chain"]
        new = {
            "archived": None,
            "about": None,
            **summary,
            "id": id,
            "last_seq": campaign["last_seq"] + len(rows),
            "chain": chain,
        }
        self._renewed.append(new)
        return chain

    def flush(self) -> None:
        """Send what was appended to all campaigns; the transaction then commits it.

        PostgreSQL takes all of it in one statement, as each costs a round trip; SQLite takes each table at once.
        """
        if not self._is_sqlite and self._renewed and self._texts < _LONGEST_AT_ONCE:
            given = {
                TABLES[kind]: json.dumps([dict(zip(_COLUMNS[kind], row, strict=True)) for row in rows])
                for kind, rows in self._appended.items()
            }
            given["campaigns"] = json.dumps(self._renewed)
            self._connection.exec_driver_sql(_append_at_once(tuple(self._appended)), given)
            return
        insert, renew = _statements(self._is_sqlite)
        for kind, rows in self._appended.items():
            self._driven(insert[kind], rows, many=True)
        for summary in self._renewed:
            self._driven(renew, summary)

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of the campaign's last one."""
        id, seq, rules, hash, content = snapshot
        kept = {"id": id, "seq": seq, "rules": rules, "hash": hash}
        content = sealed(content, id, seq, rules, hash)
        if not self._is_sqlite:
            self._connection.execute(text(_KEEP_SNAPSHOT.format(":content")), {**kept, "content": content})
            return
        # Part by part: a connection keeps a copy of the last value that a statement was given, and copies it twice.
        self._driven(_KEEP_SNAPSHOT.format("zeroblob(:length)"), {**kept, "length": len(content)})
        ((number,),) = self._driven("SELECT rowid FROM snapshots WHERE campaign = ?", (id,))
        raw: Any = self._connection.connection.dbapi_connection
        with raw.blobopen(schema.snapshots.name, "content", number) as blob:
            for start in range(0, len(content), _BLOB_PART):
                blob.write(content[start : start + _BLOB_PART])

    def keep_attachment(self, id: str, hash: str, content: bytes) -> None:
        """Keep a file with a locked campaign, once."""
        schema.make_attachments(self._connection)
        self._connection.execute(_KEEP_ATTACHMENT, {"id": id, "hash": hash, "content": content})

    def add_token(self, token: Token) -> bool:
        """Keep a token; False if its hash was there before."""
        return self._connection.execute(_ADD_TOKEN, {"campaign": None, "revoked": None, **token}).rowcount == 1

    def revoke_token(self, hash: str, at: float) -> None:
        """End a token, and keep what it was called."""
        table = schema.tokens
        self._connection.execute(update(table).where(table.c.hash == hash).values(revoked=at))

    def remove_token(self, hash: str) -> None:
        """Forget a token, if it is there."""
        self._connection.execute(delete(schema.tokens).where(schema.tokens.c.hash == hash))

    def add_session(self, session: LoginSession) -> None:
        """Somebody has logged in."""
        self._connection.execute(schema.sessions.insert(), [dict(session)])

    def remove_sessions(self, hashes: Sequence[str]) -> None:
        """Forget sessions, if they are there."""
        self._connection.execute(delete(schema.sessions).where(schema.sessions.c.hash.in_(hashes)))


_SHOWN = tuple(column.name for column in schema.SHOWN)
_CAMPAIGNS = f"SELECT {', '.join(_SHOWN)} FROM campaigns WHERE id IN"
_COLUMNS: dict[Kind, tuple[str, ...]] = {kind: ("campaign", *kind._fields, "hash") for kind in TABLES}
_SUMMARY = ("last_seq", "last_at", "t", "measurements", "open_leases", "done", "chain", "archived")


@lru_cache
def _statements(is_sqlite: bool) -> tuple[dict[Kind, str], str]:
    """The statements that add a row of each kind, by the columns of `_COLUMNS`, and the one that renews a summary."""
    mark, named = ("?", ":{}") if is_sqlite else ("%s", "%({})s")
    insert = {
        kind: 'INSERT INTO {} ("{}") VALUES ({})'.format(
            TABLES[kind], '", "'.join(names), ", ".join([mark] * len(names))
        )
        for kind, names in _COLUMNS.items()
    }
    sets = ", ".join(f"{name} = {named.format(name)}" for name in _SUMMARY)
    about, id = named.format("about"), named.format("id")
    return insert, f"UPDATE campaigns SET {sets}, about = COALESCE({about}, about) WHERE id = {id}"


_KEEP_SNAPSHOT = (
    "INSERT INTO snapshots (campaign, seq, rules, hash, content) VALUES (:id, :seq, :rules, :hash, {}) "
    "ON CONFLICT (campaign) DO UPDATE SET seq = excluded.seq, rules = excluded.rules, hash = excluded.hash, "
    "content = excluded.content"
)
_BLOB_PART = 2**18  # bytes
_KEEP_ATTACHMENT = text(
    "INSERT INTO attachments (campaign, sha256, content) VALUES (:id, :hash, :content) ON CONFLICT DO NOTHING"
)
_ADD_TOKEN = text(
    "INSERT INTO tokens (hash, scope, label, created, campaign, revoked) "
    "VALUES (:hash, :scope, :label, :created, :campaign, :revoked) ON CONFLICT DO NOTHING"
)
_LONGEST_AT_ONCE = 1_000_000  # characters: longer ones are sent without another layer of JSON around them


@lru_cache
def _append_at_once(kinds: tuple[Kind, ...]) -> str:
    """One statement of PostgreSQL that adds rows of these kinds and renews summaries, all of them given as JSON."""
    added = ", ".join(
        f"new_{name} AS (INSERT INTO {name} SELECT * FROM json_populate_recordset(NULL::{name}, %({name})s))"
        for name in (TABLES[kind] for kind in kinds)
    )
    sets = ", ".join(f"{name} = new.{name}" for name in _SUMMARY)
    return (
        f"{f'WITH {added} ' if added else ''}UPDATE campaigns SET {sets}, "
        "about = COALESCE(new.about, campaigns.about) "
        "FROM json_populate_recordset(NULL::campaigns, %(campaigns)s) AS new WHERE campaigns.id = new.id"
    )
