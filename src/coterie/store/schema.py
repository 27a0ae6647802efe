"""The tables of a database, and the migrations that make them, in order.

asks, measurements, endings and notes hold the facts (`coterie.store.rows`) and are only ever added to. The columns of
`campaigns` after `created` sum these rows up, and are renewed in the transaction that adds them. Times are seconds
since 1970 (UTC). Values are JSON lists whose numbers read back exactly. `hash` is that of `coterie.store.chain`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Float, ForeignKey, LargeBinary, MetaData, Table, Text, text

from coterie.store.chain import hashes_after, origin
from coterie.store.journal import VERSION, check_version
from coterie.store.rows import TABLES as TABLE_NAMES
from coterie.store.rows import Ask, Ending, Kind, Note, Row, Told

metadata = MetaData()
_DOUBLE = Float(53)

campaigns = Table(
    "campaigns",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("settings", Text, nullable=False),  # JSON
    Column("created", _DOUBLE, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("last_at", _DOUBLE, nullable=False),
    Column("t", BigInteger, nullable=False),
    Column("measurements", BigInteger, nullable=False),
    Column("open_leases", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("chain", Text, nullable=False),  # the hash of the last row
    Column("about", Text, nullable=False),  # JSON, for lists; empty: none
    Column("archived", _DOUBLE),  # since when it is
    Column("removed", BigInteger, nullable=False),  # 1: nobody sees it any more
)
SHOWN = [column for column in campaigns.c if column.name != "removed"]


def _log(name: str, *columns: Column[object]) -> Table:
    return Table(
        name,
        metadata,
        Column("campaign", Text, ForeignKey("campaigns.id"), primary_key=True),
        Column("seq", BigInteger, primary_key=True),
        *columns,
        Column("hash", Text, nullable=False),
        Column("token", Text),  # the id of the token that wrote it
    )


asks = _log(
    "asks",
    Column("lease", Text, nullable=False),
    Column("ticket", BigInteger, nullable=False),  # the place in the order of asks; the same when a lease is renewed
    Column("arm", BigInteger, nullable=False),
    Column("worker", Text, nullable=False),
    Column("asked_at", _DOUBLE, nullable=False),
    Column("expires_at", _DOUBLE, nullable=False),
    Column("round", BigInteger, nullable=False),  # of the method; 0: none; -1: not recorded
)
measurements = _log(
    "measurements",
    Column("id", Text, nullable=False),  # unique in its campaign
    Column("arm", BigInteger, nullable=False),
    Column("values", Text, nullable=False),  # JSON
    Column("lease", Text),  # as the teller gave it
    Column("ticket", BigInteger),  # the ask whose place it takes; none: its place is that of its arrival
    Column("worker", Text),
    Column("told_at", _DOUBLE, nullable=False),
)
endings = _log(
    "endings",
    Column("lease", Text, nullable=False),
    Column("ticket", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),  # expired, failed or undone
    Column("reason", Text, nullable=False),
    Column("at", _DOUBLE, nullable=False),
)
notes = _log(
    "notes",
    Column("kind", Text, nullable=False),  # groups, evidence, freeze, round, stopped or imported
    Column("content", Text, nullable=False),  # JSON
    Column("at", _DOUBLE, nullable=False),
)
snapshots = Table(  # a cache: rows may be deleted at any time
    "snapshots",
    metadata,
    Column("campaign", Text, ForeignKey("campaigns.id"), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("rules", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),  # behind its checksum
)
tokens = Table(
    "tokens",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("created", _DOUBLE, nullable=False),
    Column("campaign", Text),  # the only one that it is for
    Column("revoked", _DOUBLE),
)
sessions = Table(  # of people who logged in
    "sessions",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("token", Text, nullable=False),
    Column("until", _DOUBLE, nullable=False),
)
store_mark = Table(  # one row, of a SQLite file only: see `coterie.store.sqlite_file`
    "store_mark",
    metadata,
    Column("commits", BigInteger, primary_key=True),
    Column("marked", BigInteger),
)

TABLES: dict[Kind, Table] = {Ask: asks, Told: measurements, Ending: endings, Note: notes}

# Migrations are text, not the tables above: those describe the present, these what each release made of the last one.
# {log} is the key of a log table; {clustered} keeps the rows of a campaign together on disk; {bytes} is a type.
_LOG = "campaign TEXT NOT NULL REFERENCES campaigns (id), seq BIGINT NOT NULL"
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE campaigns (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, settings TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL, last_seq BIGINT NOT NULL, last_at DOUBLE PRECISION NOT NULL,
            t BIGINT NOT NULL, measurements BIGINT NOT NULL, open_leases BIGINT NOT NULL, done BIGINT NOT NULL)""",
        """CREATE TABLE asks ({log}, lease TEXT NOT NULL, ticket BIGINT NOT NULL, arm BIGINT NOT NULL,
            worker TEXT NOT NULL, asked_at DOUBLE PRECISION NOT NULL, expires_at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (campaign, seq)){clustered}""",
        """CREATE TABLE measurements ({log}, id TEXT NOT NULL, arm BIGINT NOT NULL, "values" TEXT NOT NULL, lease TEXT,
            ticket BIGINT, worker TEXT, told_at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (campaign, seq), UNIQUE (campaign, id)){clustered}""",
        """CREATE TABLE endings ({log}, lease TEXT NOT NULL, ticket BIGINT NOT NULL, kind TEXT NOT NULL,
            reason TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, PRIMARY KEY (campaign, seq)){clustered}""",
        """CREATE TABLE notes ({log}, kind TEXT NOT NULL, content TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (campaign, seq)){clustered}""",
    ),
    (
        """CREATE TABLE tokens (hash TEXT NOT NULL PRIMARY KEY, scope TEXT NOT NULL, label TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL)""",
    ),
    (
        "ALTER TABLE asks ADD COLUMN round BIGINT NOT NULL DEFAULT -1",
        "ALTER TABLE asks ADD COLUMN hash TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE measurements ADD COLUMN hash TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE endings ADD COLUMN hash TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE notes ADD COLUMN hash TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE campaigns ADD COLUMN chain TEXT NOT NULL DEFAULT ''",
        """CREATE TABLE snapshots (campaign TEXT NOT NULL PRIMARY KEY REFERENCES campaigns (id), seq BIGINT NOT NULL,
            rules BIGINT NOT NULL, hash TEXT NOT NULL, content {bytes} NOT NULL)""",
    ),
    (
        "CREATE TABLE store_mark (commits BIGINT NOT NULL PRIMARY KEY, marked BIGINT)",
        "INSERT INTO store_mark (commits, marked) VALUES (0, NULL)",
        "ALTER TABLE asks ADD COLUMN token TEXT",
        "ALTER TABLE measurements ADD COLUMN token TEXT",
        "ALTER TABLE endings ADD COLUMN token TEXT",
        "ALTER TABLE notes ADD COLUMN token TEXT",
        "ALTER TABLE tokens ADD COLUMN campaign TEXT",
        "ALTER TABLE tokens ADD COLUMN revoked DOUBLE PRECISION",
        "CREATE TABLE sessions (hash TEXT NOT NULL PRIMARY KEY, token TEXT NOT NULL, until DOUBLE PRECISION NOT NULL)",
    ),
    (
        "ALTER TABLE campaigns ADD COLUMN about TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE campaigns ADD COLUMN archived DOUBLE PRECISION",
        "ALTER TABLE campaigns ADD COLUMN removed BIGINT NOT NULL DEFAULT 0",
        "CREATE INDEX campaigns_by_time ON campaigns (created, id)",
    ),
)
_CHAINED = 3  # the version from which rows have hashes, of these columns
_COLUMNS_OF_3: dict[Kind, str] = {
    Ask: "seq, lease, ticket, arm, worker, asked_at, expires_at, round",
    Told: 'seq, id, arm, "values", lease, ticket, worker, told_at',
    Ending: "seq, lease, ticket, kind, reason, at",
    Note: "seq, kind, content, at",
}
LATEST = len(_MIGRATIONS)
assert LATEST == VERSION
_CHUNK = 20_000  # rows that a migration has in memory at once
_LOCK = 7_311_505_237  # of PostgreSQL's advisory locks: one process migrates at a time


def version_of(connection: Connection) -> int:
    """The version that a database is at; 0 if there is nothing of ours in it yet."""
    if not connection.dialect.has_table(connection, "schema_version"):
        return 0
    return int(connection.execute(text("SELECT MAX(version) FROM schema_version")).scalar() or 0)


def migrate(connection: Connection, to: int = LATEST) -> None:
    """Bring a database to a version, inside the caller's write transaction."""
    sqlite = connection.dialect.name == "sqlite"
    if not sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    found = version_of(connection)
    check_version(found)
    if found == 0 and not connection.dialect.has_table(connection, "schema_version"):
        connection.execute(text("CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY)"))
    types = {"clustered": " WITHOUT ROWID" if sqlite else "", "bytes": "BLOB" if sqlite else "BYTEA"}
    for version in range(found + 1, to + 1):
        for statement in _MIGRATIONS[version - 1]:
            connection.execute(text(statement.format(log=_LOG, **types)))
        if version == _CHAINED:
            chain_rows(connection)
        connection.execute(text("INSERT INTO schema_version (version) VALUES (:version)"), {"version": version})


def chain_rows(connection: Connection) -> None:
    """Give every row of a store of schema version 2 its hash: from then on it is protected.

    The rows are taken as they are found. If one had been lost before, it is named when its campaign is opened.
    """
    for id, settings in connection.execute(text("SELECT id, settings FROM campaigns")).all():
        after, chain = -1, origin(id, settings)
        while rows := _read_unchained(connection, id, after):
            hashes = hashes_after(chain, rows)
            after, chain = rows[-1].seq, hashes[-1]
            for kind, name in TABLE_NAMES.items():
                added = [
                    {"id": id, "seq": row.seq, "hash": hash}
                    for row, hash in zip(rows, hashes, strict=True)
                    if type(row) is kind
                ]
                if added:
                    _set_hashes(connection, name, added)
        statement = text("UPDATE campaigns SET chain = :chain WHERE id = :id")
        connection.execute(statement, {"chain": chain, "id": id})


def _read_unchained(connection: Connection, campaign: str, after: int) -> list[Row]:
    """The next rows of a store of schema version 2, whose tables have been given the columns of version 3."""
    found: list[Row] = []
    for kind, name in TABLE_NAMES.items():
        columns = _COLUMNS_OF_3[kind]
        query = f"SELECT {columns} FROM {name} WHERE campaign = :id AND seq > :after ORDER BY seq LIMIT :most"
        rows = connection.execute(text(query), {"id": campaign, "after": after, "most": _CHUNK})
        found += (kind(*row) for row in rows)
    found.sort(key=lambda row: row.seq)
    return found[:_CHUNK]


def _set_hashes(connection: Connection, table: str, added: list[dict[str, Any]]) -> None:
    if connection.dialect.name == "sqlite":
        connection.execute(text(f"UPDATE {table} SET hash = :hash WHERE campaign = :id AND seq = :seq"), added)
        return
    # One statement for all of them: a round trip for each row would take minutes.
    lists = {"seqs": [one["seq"] for one in added], "hashes": [one["hash"] for one in added], "id": added[0]["id"]}
    connection.execute(
        text(
            f"UPDATE {table} SET hash = given.hash FROM unnest(CAST(:seqs AS BIGINT[]), CAST(:hashes AS TEXT[])) "
            f"AS given(seq, hash) WHERE campaign = :id AND {table}.seq = given.seq"
        ),
        lists,
    )
