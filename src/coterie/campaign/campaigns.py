"""`Campaigns`: all campaigns of one store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from coterie.campaign import commands, exports, views
from coterie.campaign.importing import read_import
from coterie.campaign.open_campaigns import OpenCampaigns
from coterie.campaign.settings import CampaignSettings, check_text, new_key
from coterie.campaign.timestamps import timestamp
from coterie.store.journal import Token, open_journal

_Dicts: TypeAlias = list[dict[str, Any]]  # `list` is a method below


class Campaigns:
    """The campaigns of a store: the path of a SQLite file, sqlite:///FILE, postgresql://user@host/database, or a folder
    of JSON lines, FOLDER/ or jsonl:///FOLDER.

    `clock` gives the seconds since 1970. `create=False` refuses a file or folder that does not exist. One object serves
    any number of threads; several objects, in several processes, may use one store.
    """

    def __init__(
        self, store: str | os.PathLike[str], clock: Callable[[], float] = time.time, create: bool = True
    ) -> None:
        self._campaigns = OpenCampaigns(open_journal(store, create), clock)

    def close(self) -> None:
        """Finish what is under way, and give all files and connections back."""
        self._campaigns.close()

    @property
    def store(self) -> str:
        """The store's address, for people: without a password."""
        return self._campaigns.journal.name

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
        settings = CampaignSettings.of(
            n_arms, n_clusters, dim, delta=delta, method=method, threshold=threshold, noise=noise, names=names,
            distance_ratio=distance_ratio, lease_seconds=lease_seconds, on_expiry=on_expiry, value_names=value_names,
        )  # fmt: skip
        id, now = new_key(), float(self._campaigns.clock())
        self._campaigns.write(lambda writing: writing.add_campaign(id, title, settings.to_json(), now))
        return {"id": id, "name": title, "created": timestamp(now), **settings.as_dict()}

    def list(self) -> _Dicts:
        """A summary of every campaign, oldest first."""
        return [views.summary(row) for row in self._campaigns.query(lambda reading: reading.campaigns())]

    # Measuring.

    def ask(self, id: str, worker: str, n: int = 1) -> dict[str, Any]:
        """Lease up to n arms to a worker; its own open ones first. Empty once the groups are proven."""
        return self._campaigns.submit(id, lambda turn: commands.ask(turn, worker, n))

    def tell(self, id: str, measurements: Any) -> dict[str, Any]:
        """Results [{"id", "arm", "values", "lease"?, "worker"?}, …], all or nothing; on disk when this returns.

        The same id with the same content is a duplicate and counts once. Without a lease a result answers the oldest
        open ask for its arm (only the worker's own, if `worker` is given); if there is none, it takes its place on
        arrival. The answer has `warnings` if a value lies far from what the item gave before: it is on record all the
        same.
        """
        return self._campaigns.submit(id, lambda turn: commands.tell(turn, measurements))

    def fail(self, id: str, lease: str, reason: str = "") -> dict[str, Any]:
        """A measurement that will not come: its lease is freed, and the arm can be asked for again."""
        return self._campaigns.submit(id, lambda turn: commands.fail(turn, lease, reason))

    def batch(self, calls: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
        """Several calls, each like ("ask", id, worker, n), ("tell", id, measurements) or ("fail", id, lease, reason).

        They are decided in order and put on disk in one transaction, as calls of several threads at once are. In place
        of an answer there is the error where a call met with one; the others are not concerned.
        """
        return self._campaigns.submit_batch([(id, _decision(name, arguments)) for name, id, *arguments in calls])

    def post(self, name: str, id: str, *arguments: Any) -> Future[dict[str, Any]]:
        """A call like those of `batch`, for event loops: this does not wait, the future has the answer or the error.

        Calls that are posted while others are put on disk share the next transaction. A campaign that is not in memory
        holds the others up while it is read: call `status` in a thread before.
        """
        return self._campaigns.post(id, _decision(name, arguments))

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

        def decide(turn: commands.Turn) -> dict[str, Any]:
            answer = commands.tell(turn, content.results(turn.state.settings), imported=content.note)
            return answer | {"order": content.order.as_dict()}

        return self._campaigns.submit(id, decide)

    # Reading.

    def status(self, id: str) -> dict[str, Any]:
        """How far it is: groups, evidence, leases, workers."""
        return self._campaigns.read(id, lambda seen: views.status(seen.state, seen.row, seen.now))

    def overview(self, id: str) -> dict[str, Any]:
        """The summary that `list` gives and the seq, without working the state out; and whether that is in memory."""
        row = self._campaigns.row(id)
        return views.summary(row) | {"seq": int(row["last_seq"]), "in_memory": self._campaigns.in_memory(id)}

    def settings(self, id: str) -> dict[str, Any]:
        """What the campaign was created with."""
        return self._campaigns.read(id, lambda seen: views.settings_of(seen.row).as_dict())

    def lease(self, id: str, lease: str) -> dict[str, Any]:
        """One lease: its arm, its worker, and whether it is open, answered, expired or failed."""
        return self._campaigns.read(id, lambda seen: views.lease(seen.state, lease, seen.now))

    def measured(self, id: str, arm: Any) -> dict[str, Any]:
        """How often an item was measured: `arm`, `name`, `measurements`."""
        return self._campaigns.read(id, lambda seen: views.measured(seen.state, arm))

    def measurements(self, id: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        """Results told, in order, after the seq `after`; `next` is where to go on, None at the end."""
        start, count = views.page(after, limit)
        return self._campaigns.read(id, lambda seen: views.measurements(seen, start, count))

    def events(self, id: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        """Everything in the log, in order, after the seq `after`."""
        start, count = views.page(after, limit)
        return self._campaigns.read(id, lambda seen: views.events(seen, start, count))

    def history(self, id: str, points: int = 300) -> dict[str, Any]:
        """The evidence over time, thinned out to about so many points."""
        return self._campaigns.read(id, lambda seen: views.history(seen, points))

    def page(self, id: str, points: int = 300, recent: int = 100) -> dict[str, Any]:
        """`status`, `history` and the last `recent` `events` of one moment, for a page that shows all three."""
        return self._campaigns.read(id, lambda seen: views.page_content(seen, points, recent))

    def newest_events(self, id: str, before: int | None = None, limit: int = 50) -> dict[str, Any]:
        """The last events with a seq below `before` (None: of all), oldest first, with the campaign's id and name.

        `first` and `last` are the seqs that the page covers, `newest` is that of the last row there is.
        """
        _, count = views.page(0, limit)
        return self._campaigns.read(id, lambda seen: views.newest_events(seen, before, count))

    def latest(self, id: str) -> int:
        """The seq of the last row: whether anything is new, for next to nothing."""
        return int(self._campaigns.row(id)["last_seq"])

    def certificate(self, id: str) -> dict[str, Any]:
        """CROC's proof; `coterie.verify` checks it against the log of `export(id, "log")`. NotDone before the end."""
        return self._campaigns.read(id, lambda seen: views.certificate(seen.state, seen.row))

    def export(self, id: str, kind: str = "csv", before: int | None = None) -> str:
        """As text: "csv" (which import_table reads), "groups", "json", "certificate", or the "log" of verify.

        `before`, for "csv": only what stands before this seq. A log with a damaged row still has that.
        """
        return self._campaigns.read(id, exports.exporter(kind, before))

    # Who may use a server on this store: hashes of secrets, never the secrets.

    def add_token(self, hash: str, scope: str, label: str = "") -> None:
        """Keep the hash of a token, unless it is there."""
        token: Token = {"hash": hash, "scope": scope, "label": label, "created": float(self._campaigns.clock())}
        self._campaigns.write(lambda writing: writing.add_token(token))

    def tokens(self) -> _Dicts:
        """All tokens' hashes, scopes, labels and dates."""
        found = self._campaigns.query(lambda reading: reading.tokens())
        return [{**token, "created": timestamp(token["created"])} for token in found]

    def remove_token(self, hash: str) -> None:
        """Forget a token."""
        self._campaigns.write(lambda writing: writing.remove_token(hash))


_DECISIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "ask": commands.ask,
    "tell": commands.tell,
    "fail": commands.fail,
}


def _decision(name: str, arguments: Sequence[Any]) -> Callable[[commands.Turn], dict[str, Any]]:
    if name not in _DECISIONS:
        raise ValueError(f"a call is one of {', '.join(_DECISIONS)}, got {name!r}")
    return lambda turn: _DECISIONS[name](turn, *arguments)
