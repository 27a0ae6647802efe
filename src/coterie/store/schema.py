"""The tables, and the migrations that make them, in order.

asks, measurements, endings and notes are only ever added to; together, in the order of `seq`, they are the campaign.
The columns of `campaigns` after `created` sum these rows up, and are renewed in the transaction that adds them.
Times are seconds since 1970 (UTC). Values are JSON lists whose numbers read back exactly.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Connection, Float, ForeignKey, MetaData, Table, Text, text

from coterie.campaign.errors import Conflict

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
)


def _log(name: str, *columns: Column[object]) -> Table:
    return Table(
        name,
        metadata,
        Column("campaign", Text, ForeignKey("campaigns.id"), primary_key=True),
        Column("seq", BigInteger, primary_key=True),
        *columns,
    )


asks = _log(
    "asks",
    Column("lease", Text, nullable=False),
    Column("ticket", BigInteger, nullable=False),  # the place in the order of asks; the same when a lease is renewed
    Column("arm", BigInteger, nullable=False),
    Column("worker", Text, nullable=False),
    Column("asked_at", _DOUBLE, nullable=False),
    Column("expires_at", _DOUBLE, nullable=False),
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
    Column("kind", Text, nullable=False),  # expired or failed
    Column("reason", Text, nullable=False),
    Column("at", _DOUBLE, nullable=False),
)
notes = _log(
    "notes",
    Column("kind", Text, nullable=False),  # groups, evidence, stopped or imported
    Column("content", Text, nullable=False),  # JSON
    Column("at", _DOUBLE, nullable=False),
)
tokens = Table(
    "tokens",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("created", _DOUBLE, nullable=False),
)

# Migrations are text, not the tables above: those describe the present, these what each release made of the last one.
# {log} is the key of a log table; {clustered} keeps the rows of a campaign together on disk.
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
)
LATEST = len(_MIGRATIONS)
_LOCK = 7_311_505_237  # of PostgreSQL's advisory locks: one process migrates at a time


def version_of(connection: Connection) -> int:
    """The version that a database is at; 0 if there is nothing of ours in it yet."""
    if not connection.dialect.has_table(connection, "schema_version"):
        return 0
    return int(connection.execute(text("SELECT MAX(version) FROM schema_version")).scalar() or 0)


def check_version(version: int) -> None:
    """Refuse a database that a newer release has written."""
    if version > LATEST:
        raise Conflict(
            f"the store is at schema version {version}, this release knows versions up to {LATEST}: use a newer one",
            code="newer_schema",
        )


def migrate(connection: Connection, to: int = LATEST) -> None:
    """Bring a database to a version, inside the caller's write transaction."""
    sqlite = connection.dialect.name == "sqlite"
    if not sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    found = version_of(connection)
    check_version(found)
    if found == 0 and not connection.dialect.has_table(connection, "schema_version"):
        connection.execute(text("CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY)"))
    for version in range(found, to):
        for statement in _MIGRATIONS[version]:
            connection.execute(text(statement.format(log=_LOG, clustered=" WITHOUT ROWID" if sqlite else "")))
        connection.execute(text("INSERT INTO schema_version (version) VALUES (:version)"), {"version": version + 1})
