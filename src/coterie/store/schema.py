"""The tables of a database, as release 0.2 made them (schema version 5).

asks, measurements, endings and notes hold the facts (`coterie.store.rows`) and are only ever added to. The columns of
`campaigns` after `created` sum these rows up, and are renewed in the transaction that adds them. Times are seconds
since 1970 (UTC). Values are JSON lists whose numbers read back exactly. `hash` is that of `coterie.store.rows`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.schema import SchemaItem

from coterie.store.journal import VERSION, check_version
from coterie.store.rows import Ask, Ending, Kind, Note, Told

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
    Index("campaigns_by_time", "created", "id"),
)
SHOWN = [column for column in campaigns.c if column.name != "removed"]


def _log(name: str, *columns: Column[object], constraints: tuple[SchemaItem, ...] = ()) -> Table:
    return Table(
        name,
        metadata,
        Column("campaign", Text, ForeignKey("campaigns.id"), primary_key=True),
        Column("seq", BigInteger, primary_key=True),
        *columns,
        Column("hash", Text, nullable=False),
        Column("token", Text),  # the id of the token that wrote it
        *constraints,
        sqlite_with_rowid=False,  # keeps the rows of a campaign together on disk
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
    constraints=(UniqueConstraint("campaign", "id"),),
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
attachments = Table(  # files; which measurement each belongs to is in the notes. In older stores it is made when needed
    "attachments",
    metadata,
    Column("campaign", Text, primary_key=True),
    Column("sha256", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
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
store_mark = Table(  # one row, which only SQLite files use: see `coterie.store.sqlite_mark`
    "store_mark",
    metadata,
    Column("commits", BigInteger, primary_key=True, autoincrement=False),
    Column("marked", BigInteger),
)
schema_version = Table("schema_version", metadata, Column("version", BigInteger, primary_key=True, autoincrement=False))

TABLES: dict[Kind, Table] = {Ask: asks, Told: measurements, Ending: endings, Note: notes}
_LOCK = 7_311_505_237  # of PostgreSQL's advisory locks: one process makes the tables


def version_of(connection: Connection) -> int:
    """The version that a database is at; 0 if there is nothing of ours in it yet."""
    if not connection.dialect.has_table(connection, "schema_version"):
        return 0
    return int(connection.execute(text("SELECT MAX(version) FROM schema_version")).scalar() or 0)


def make_tables(connection: Connection) -> None:
    """Make the tables in a database where there are none yet, inside the caller's write transaction."""
    if connection.dialect.name != "sqlite":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    version = version_of(connection)
    check_version(version)
    if version == VERSION:  # another process was faster
        return
    metadata.create_all(connection)
    connection.execute(schema_version.insert(), [{"version": VERSION}])
    connection.execute(store_mark.insert(), [{"commits": 0, "marked": None}])
