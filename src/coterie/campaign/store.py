"""`Campaigns`: all campaigns of one store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from sqlalchemy import delete, select

from coterie.campaign import decisions, exports, schema, views
from coterie.campaign.database import Database
from coterie.campaign.importing import read_import
from coterie.campaign.ledger import Ledger
from coterie.campaign.settings import check_settings, check_text, new_key
from coterie.campaign.timestamps import timestamp

_Dicts: TypeAlias = list[dict[str, Any]]  # `list` is a method below


class Campaigns:
    """The campaigns of a store: a path of a SQLite file, sqlite:///FILE or postgresql://user@host/database.

    `clock` gives the seconds since 1970. `create=False` refuses a SQLite file that does not exist. One object serves
    any number of threads; several objects, in several processes, may use one store.
    """

    def __init__(
        self, store: str | os.PathLike[str], clock: Callable[[], float] = time.time, create: bool = True
    ) -> None:
        self._ledger = Ledger(Database(store, create), clock)

    def close(self) -> None:
        """Give all connections back."""
        self._ledger.database.close()

    def __enter__(self) -> Campaigns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Campaigns.

    def create(
        self,
        name: str,
        n_arms: int,
        n_clusters: int,
        dim: int,
        delta: float = 0.05,
        method: str = "croc",
        threshold: str = "proven",
        noise: Any = None,
        names: Sequence[str] | None = None,
        distance_ratio: float | None = None,
        lease_seconds: float = 3600.0,
        on_expiry: str = "skip",
        value_names: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """A new campaign: its id, its settings, when it was created. `value_names`: of the numbers of a measurement."""
        title = check_text(name, "name")
        settings = check_settings(
            n_arms, n_clusters, dim, delta, method, threshold, noise, names, distance_ratio, lease_seconds, on_expiry,
            value_names,
        )  # fmt: skip
        id, now = new_key(), float(self._ledger.clock())
        nothing_yet = {"last_seq": 0, "last_at": now, "t": 0, "measurements": 0, "open_leases": 0, "done": 0}
        row = {"id": id, "name": title, "settings": settings.to_json(), "created": now, **nothing_yet}
        self._ledger.insert(schema.campaigns, row)
        return {"id": id, "name": title, "created": timestamp(now), **settings.as_dict()}

    def list(self) -> _Dicts:
        """A summary of every campaign, oldest first."""
        table = schema.campaigns
        return [views.summary(row) for row in self._ledger.select(select(table).order_by(table.c.created, table.c.id))]

    # Measuring.

    def ask(self, id: str, worker: str, n: int = 1) -> dict[str, Any]:
        """Lease up to n arms to a worker; its own open ones first. Empty once the groups are proven."""
        return self._ledger.submit(id, lambda turn: decisions.ask(turn, worker, n))

    def tell(self, id: str, measurements: Any) -> dict[str, Any]:
        """Results [{"id", "arm", "values", "lease"?, "worker"?}, …], all or nothing; on disk when this returns.

        The same id with the same content is a duplicate and counts once. Without a lease a result answers the oldest
        open ask for its arm (only the worker's own, if `worker` is given); if there is none, it takes its place on
        arrival. The answer has `warnings` if a value lies far from what the item gave before: it is on record all the
        same.
        """
        return self._ledger.submit(id, lambda turn: decisions.tell(turn, measurements))

    def fail(self, id: str, lease: str, reason: str = "") -> dict[str, Any]:
        """A measurement that will not come: its lease is freed, and the arm can be asked for again."""
        return self._ledger.submit(id, lambda turn: decisions.fail(turn, lease, reason))

    def together(self, calls: Sequence[tuple[Any, ...]]) -> _Dicts:
        """Several calls, each like ("ask", id, worker, n), ("tell", id, measurements) or ("fail", id, lease, reason).

        They are decided in order and put on disk in one transaction, as calls of several threads at once are. In place
        of an answer there is the error where a call met with one; the others are not concerned.
        """
        known: dict[str, Callable[..., dict[str, Any]]] = {
            "ask": decisions.ask,
            "tell": decisions.tell,
            "fail": decisions.fail,
        }

        def decision(name: str, arguments: _Dicts) -> Callable[[decisions.Turn], dict[str, Any]]:
            return lambda turn: known[name](turn, *arguments)

        return self._ledger.submit_all([(id, decision(name, arguments)) for name, id, *arguments in calls])

    def import_table(
        self, id: str, table: Any, values: Sequence[str] | None = None, seed: int = 0, in_order: bool = False
    ) -> dict[str, Any]:
        """Earlier measurements, from a CSV or Parquet file or from rows (dictionaries), all or nothing.

        Columns, in any case: `arm` (number or name), the values (those that `values` names; or the campaign's
        `value_names`; or v0, v1, …; or, if the campaign has no value_names, all the others), and `id`; without ids they
        follow from the content, so that the same file twice counts once. Nobody asked for these measurements: they take
        their place in the order of the table, where each item's are shuffled among themselves by `seed` and the item's
        name (the log and the answer's `order` say so). How many there are of an item must not depend on their values.
        `in_order=True` does not shuffle: for a campaign's own export, and for any table in which the order of an item's
        measurements has nothing to do with their values.
        """
        content = read_import(table, values, seed, in_order)

        def decide(turn: decisions.Turn) -> dict[str, Any]:
            answer = decisions.tell(turn, content.results(turn.state.settings), imported=content.note)
            return answer | {"order": content.order.as_dict()}

        return self._ledger.submit(id, decide)

    # Reading.

    def status(self, id: str) -> dict[str, Any]:
        """How far it is: groups, evidence, leases, workers."""
        return self._ledger.read(id, lambda seen: views.status(seen.state, seen.row, seen.now))

    def glance(self, id: str) -> dict[str, Any]:
        """The summary that `list` gives, the seq and d, without working the state out; and whether it is in memory."""
        row = self._ledger.row(id)
        return views.summary(row) | {"seq": int(row["last_seq"]), "in_memory": self._ledger.in_memory(id)}

    def settings(self, id: str) -> dict[str, Any]:
        """What the campaign was created with."""
        return self._ledger.read(id, lambda seen: views.settings_of(seen.row).as_dict())

    def lease(self, id: str, lease: str) -> dict[str, Any]:
        """One lease: its arm, its worker, and whether it is open, answered, expired or failed."""
        return self._ledger.read(id, lambda seen: views.lease(seen.state, lease, seen.now))

    def measured(self, id: str, arm: Any) -> dict[str, Any]:
        """How often an item was measured: `arm`, `name`, `measurements`."""
        return self._ledger.read(id, lambda seen: views.measured(seen.state, arm))

    def measurements(self, id: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        """Results told, in order, after the seq `after`; `next` is where to go on, None at the end."""
        start, count = views.page(after, limit)
        return self._ledger.read(id, lambda seen: views.measurements(seen.connection, id, seen.state, start, count))

    def events(self, id: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        """Everything in the log, in order, after the seq `after`."""
        start, count = views.page(after, limit)
        return self._ledger.read(id, lambda seen: views.events(seen.connection, seen.row, start, count))

    def history(self, id: str, points: int = 300) -> dict[str, Any]:
        """The evidence over time, thinned out to about so many points."""
        return self._ledger.read(id, lambda seen: views.history(seen.connection, id, points))

    def latest(self, id: str) -> int:
        """The seq of the last row: whether anything is new, for next to nothing."""
        return self._ledger.read(id, lambda seen: int(seen.row["last_seq"]))

    def certificate(self, id: str) -> dict[str, Any]:
        """CROC's proof; `coterie.verify` checks it against the log of `export(id, "log")`. NotDone before the end."""
        return self._ledger.read(id, lambda seen: views.certificate(seen.state, seen.row))

    def export(self, id: str, kind: str = "csv") -> str:
        """As text: "csv" (which import_table reads), "groups", "json", "certificate", or the "log" of verify."""
        return self._ledger.read(id, exports.exporter(kind))

    # Who may use a server on this store: hashes of secrets, never the secrets.

    def add_token(self, hash: str, scope: str, label: str = "") -> None:
        """Keep the hash of a token."""
        row = {"hash": hash, "scope": scope, "label": label, "created": float(self._ledger.clock())}
        self._ledger.insert(schema.tokens, row)

    def tokens(self) -> _Dicts:
        """All tokens' hashes, scopes, labels and dates."""
        table = schema.tokens
        rows = self._ledger.select(select(table).order_by(table.c.created, table.c.hash))
        return [dict(row) | {"created": timestamp(row["created"])} for row in rows]

    def remove_token(self, hash: str) -> None:
        """Forget a token."""
        with self._ledger.database.writing() as connection:
            connection.execute(delete(schema.tokens).where(schema.tokens.c.hash == hash))
