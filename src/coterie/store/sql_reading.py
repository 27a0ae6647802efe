"""What is read in one transaction of a database: the contract of `coterie.store.journal.Reading`, as SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, cast

from sqlalchemy import Connection, Select, and_, case, func, or_, select

from coterie.store import schema
from coterie.store.errors import DamagedLog
from coterie.store.journal import (
    Campaign,
    KnownRows,
    LoginSession,
    Selection,
    Snapshot,
    Token,
)
from coterie.store.rows import (
    ALL_KINDS,
    TABLES,
    Kind,
    Note,
    Page,
    Row,
    check_end,
    check_row,
    check_rows,
    origin,
    unsealed,
)


class SqlReading:
    """Queries of one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def campaigns(self, known: Collection[str] = ()) -> list[Campaign]:
        """All campaigns, oldest first; without the settings of those that are known."""
        table = schema.campaigns
        short = [column for column in schema.SHOWN if column.name != "settings"]
        query = select(*short).where(SEEN).order_by(table.c.created, table.c.id)
        rows = [dict(row) for row in self._connection.execute(query).mappings()]
        new = [row["id"] for row in rows if row["id"] not in known]
        settings: dict[str, str] = {}
        for start in range(0, len(new), MOST_IDS):
            some = select(table.c.id, table.c.settings).where(table.c.id.in_(new[start : start + MOST_IDS]))
            settings.update((row.id, row.settings) for row in self._connection.execute(some))
        return [cast(Campaign, {**row, "settings": settings.get(row["id"], "")}) for row in rows]

    def select(self, wanted: Selection) -> list[Campaign]:
        """Some campaigns; the settings of those that have an `about` are left out."""
        table = schema.campaigns
        short = [column for column in schema.SHOWN if column.name != "settings"]
        settings = case((table.c.about == "", table.c.settings), else_="").label("settings")
        query = select(*short, settings).where(SEEN).limit(wanted.limit)
        if wanted.after is not None:
            at, id = wanted.after
            created, key = (table.c.created, table.c.id)
            later = created < at if wanted.newest_first else created > at
            beside = key < id if wanted.newest_first else key > id
            query = query.where(or_(later, and_(created == at, beside)))
        if wanted.name:
            query = query.where(func.lower(table.c.name).contains(wanted.name.lower(), autoescape=True))
        if not wanted.archived:
            query = query.where(table.c.archived.is_(None))
        if wanted.only is not None:
            query = query.where(table.c.id == wanted.only)
        order = (table.c.created, table.c.id)
        query = query.order_by(*(column.desc() if wanted.newest_first else column for column in order))
        return [cast(Campaign, dict(row)) for row in self._connection.execute(query).mappings()]

    def campaign(self, id: str) -> Campaign | None:
        """A campaign's row, None if there is no such campaign."""
        query = select(*schema.SHOWN).where(schema.campaigns.c.id == id, SEEN)
        row = self._connection.execute(query).mappings().first()
        return None if row is None else cast(Campaign, dict(row))

    def named(self, name: str) -> Campaign | None:
        """The oldest campaign that is called so, None if there is none."""
        table = schema.campaigns
        query = select(*schema.SHOWN).where(table.c.name == name, SEEN)
        query = query.order_by(table.c.created, table.c.id).limit(1)
        row = self._connection.execute(query).mappings().first()
        return None if row is None else cast(Campaign, dict(row))

    def rows(
        self,
        campaign: Campaign,
        after: int = 0,
        limit: int | None = None,
        kinds: Sequence[Kind] = ALL_KINDS,
        previous: str | None = None,
    ) -> Page:
        """The first `limit` rows after number `after`, of these kinds, in order and checked (see `Reading.rows`)."""
        id = campaign["id"]
        if set(kinds) != set(ALL_KINDS):
            return self._some_kinds(campaign, [(kind, _with_previous(kind, id, after, limit)) for kind in kinds], limit)
        if after > campaign["last_seq"]:
            return Page([], campaign["chain"])
        if previous is None:
            previous = self._hash_before(campaign, after)
        hashed: list[tuple[Row, str]] = []
        for kind in kinds:
            given = self._fetched(_of_kind(kind, id, after, limit))
            hashed += zip(map(kind._make, map(_WITHOUT_LAST, given)), map(_LAST, given), strict=True)
        return _checked(campaign, after, previous, hashed, limit)

    def rows_since(self, known: Sequence[KnownRows]) -> dict[str, Page]:
        """Of several campaigns all rows after those that are known; without those that are damaged.

        PostgreSQL is asked once for all of them and all kinds: a query costs as much as dozens of rows.
        """
        pages: dict[str, Page] = {}
        if self._connection.dialect.name != "postgresql":
            for campaign, seq, hash in known:
                with suppress(DamagedLog):
                    pages[campaign["id"]] = self.rows(campaign, seq, previous=hash)
            return pages
        rows: dict[str, list[tuple[Row, str]]] = {campaign["id"]: [] for campaign, _, _ in known}
        wanted = {"ids": list(rows), "after": [seq for _, seq, _ in known]}
        for id, place, hash, *fields in self._connection.exec_driver_sql(_SINCE, wanted).scalar() or ():
            rows[id].append((ALL_KINDS[place]._make(fields), hash))
        for campaign, seq, hash in known:
            with suppress(DamagedLog):
                pages[campaign["id"]] = _checked(campaign, seq, hash, rows[campaign["id"]])
        return pages

    def notes(self, campaign: Campaign, kind: str) -> Page:
        """The notes of one kind, in order, each checked against the stored hash of the row before it."""
        query = _with_previous(Note, campaign["id"], 0, None).where(schema.notes.c.kind == kind)
        return self._some_kinds(campaign, [(Note, query)], None)

    def _some_kinds(self, campaign: Campaign, queries: list[tuple[Kind, Select[Any]]], limit: int | None) -> Page:
        id = campaign["id"]
        chained: list[tuple[Row, str, str | None]] = []
        for kind, query in queries:
            given = self._fetched(query)
            chained += ((kind._make(fields[:-2]), fields[-2], fields[-1]) for fields in given)
        _sort(id, chained)
        chained = chained[:limit]
        hash = origin(id, campaign["settings"])
        for row, stored, previous in chained:
            if row.seq == 1:
                previous = origin(id, campaign["settings"])
            if previous is None:
                raise DamagedLog(id, row.seq - 1, None, f"is missing: row {row.seq} follows nothing")
            hash = check_row(id, previous, row, stored)
        return Page([row for row, _, _ in chained], hash)

    def _fetched(self, query: Select[Any]) -> Sequence[tuple[Any, ...]]:
        # The driver's own tuples: SQLAlchemy's rows would cost as much as all that is done with them.
        cursor = self._connection.execute(query).cursor
        assert cursor is not None
        return cast("Sequence[tuple[Any, ...]]", cursor.fetchall())

    def _hash_before(self, campaign: Campaign, after: int) -> str:
        if after == 0:
            return origin(campaign["id"], campaign["settings"])
        if after == campaign["last_seq"]:
            return campaign["chain"]
        hash = self.hash_of(campaign["id"], after)
        if hash is None:
            raise DamagedLog(campaign["id"], after, None, "is missing")
        return hash

    def count(self, id: str) -> int:
        """How many rows the log has, of all kinds."""
        counts = [
            select(func.count()).where(table.c.campaign == id).scalar_subquery() for table in schema.TABLES.values()
        ]
        return sum(self._connection.execute(select(*counts)).one())

    def hash_of(self, id: str, seq: int) -> str | None:
        """The hash that is stored with a row, None if there is no such row."""
        for table in schema.TABLES.values():
            query = select(table.c.hash).where(table.c.campaign == id, table.c.seq == seq)
            hash = self._connection.execute(query).scalar()
            if hash is not None:
                return str(hash)
        return None

    def snapshot(self, id: str) -> Snapshot | None:
        """The newest snapshot of a campaign, if there is an undamaged one."""
        query = select(schema.snapshots).where(schema.snapshots.c.campaign == id)
        row = self._connection.execute(query).first()
        if row is None:
            return None
        about = (row.campaign, row.seq, row.rules, row.hash)
        content = unsealed(bytes(row.content), *about)
        return None if content is None else Snapshot(*about, content)

    @property
    def has_attachments(self) -> bool:
        """Whether there is a table of files: stores of older releases have none."""
        return self._connection.dialect.has_table(self._connection, schema.attachments.name)

    def attachment(self, id: str, hash: str) -> bytes | None:
        """The content of a file that was kept with a campaign."""
        table = schema.attachments
        if not self.has_attachments:
            return None
        query = select(table.c.content).where(table.c.campaign == id, table.c.sha256 == hash)
        content = self._connection.execute(query).scalar()
        return None if content is None else bytes(content)

    def tokens(self) -> list[Token]:
        """All tokens, oldest first."""
        table = schema.tokens
        query = select(table).order_by(table.c.created, table.c.hash)
        return [cast(Token, dict(row)) for row in self._connection.execute(query).mappings()]

    def sessions(self) -> list[LoginSession]:
        """Everybody who is logged in."""
        rows = self._connection.execute(select(schema.sessions)).mappings()
        return [cast(LoginSession, dict(row)) for row in rows]


SEEN = schema.campaigns.c.removed == 0
# The rows of all kinds as one text of JSON: PostgreSQL writes doubles in JSON so that they read back exactly.
_SINCE = (
    "WITH known AS (SELECT * FROM unnest(CAST(%(ids)s AS text[]), CAST(%(after)s AS bigint[])) AS known (id, after)) "
) + "SELECT json_agg(news.row) FROM ({}) AS news".format(
    " UNION ALL ".join(
        f"SELECT json_build_array(t.campaign, {place}, t.hash, {', '.join(f't.{field}' for field in kind._fields)}) "
        f"AS row FROM known JOIN {TABLES[kind]} AS t ON t.campaign = known.id AND t.seq > known.after"
        for place, kind in enumerate(ALL_KINDS)
    )
)
MOST_IDS = 500  # in one query: databases have limits
_WITHOUT_LAST, _LAST = itemgetter(slice(0, -1)), itemgetter(-1)


def _checked(
    campaign: Campaign, after: int, previous: str, hashed: list[tuple[Row, str]], limit: int | None = None
) -> Page:
    """Rows after number `after`, in any order, as a chain that begins with `previous`; all of them end as they should.

    With a limit only so many, of those that were found.
    """
    id = campaign["id"]
    _sort(id, hashed)
    reaches_end = limit is None or len(hashed) <= limit
    hashed = hashed[:limit]
    rows = [row for row, _ in hashed]
    hash = check_rows(id, after, previous, rows, [hash for _, hash in hashed])
    if reaches_end:
        check_end(id, campaign["last_seq"], campaign["chain"], rows[-1].seq if rows else after, hash)
    return Page(rows, hash)


def _sort(campaign: str, entries: list[Any]) -> None:
    """Put entries, each a row and more, in the order of `seq`."""
    try:
        entries.sort(key=lambda entry: entry[0][0])
    except TypeError:  # SQLite keeps any text that somebody puts in a column of numbers
        wrong = next(row for row, *_ in entries if not isinstance(row.seq, int))
        raise DamagedLog(campaign, wrong.seq, TABLES[type(wrong)], "has a number that is none") from None


def _of_kind(kind: Kind, campaign: str, after: int, limit: int | None) -> Select[Any]:
    """The rows of one kind after `after`, each with its hash; one more than `limit`, to see whether there are more."""
    table = schema.TABLES[kind]
    columns = [table.c[name] for name in (*kind._fields, "hash")]
    query = select(*columns).where(table.c.campaign == campaign, table.c.seq > after).order_by(table.c.seq)
    return query if limit is None else query.limit(limit + 1)


def _with_previous(kind: Kind, campaign: str, after: int, limit: int | None) -> Select[Any]:
    """The rows of one kind after `after`, each with its hash and the hash of the row before it, of whatever kind."""
    table = schema.TABLES[kind]
    befores = [other.alias(f"before_{TABLES[name]}") for name, other in schema.TABLES.items()]
    joined: Any = table
    for before in befores:
        joined = joined.outerjoin(before, and_(before.c.campaign == table.c.campaign, before.c.seq == table.c.seq - 1))
    columns = [table.c[name] for name in (*kind._fields, "hash")]
    previous = func.coalesce(*(before.c.hash for before in befores))
    query = select(*columns, previous).select_from(joined)
    query = query.where(table.c.campaign == campaign, table.c.seq > after).order_by(table.c.seq)
    return query if limit is None else query.limit(limit)
