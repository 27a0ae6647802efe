"""`Campaigns`: all campaigns of one store."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeAlias

from coterie.campaign import (
    choosing,
    commands,
    correcting,
    exports,
    item_views,
    log_views,
    partial_answers,
    revising,
    views,
)
from coterie.campaign.chain_walk import ChainWalk
from coterie.campaign.decisions import decision
from coterie.campaign.import_parts import import_in_parts
from coterie.campaign.import_preview import preview_import
from coterie.campaign.importing import read_import
from coterie.campaign.listing import PAGE, Lists, check_free_name, delete_campaign
from coterie.campaign.open_campaigns import OpenCampaigns
from coterie.campaign.picture import picture, take_for_picture
from coterie.campaign.server_access import ServerAccess
from coterie.campaign.settings import LEASE_SECONDS, ON_EXPIRY, CampaignSettings, check_text, new_key
from coterie.campaign.timestamps import timestamp
from coterie.campaign.tokens import Writer
from coterie.campaign.workbook_exports import workbook_exporter
from coterie.problem.question import GROUPS
from coterie.problem.settings import DELTA, METHOD, THRESHOLD
from coterie.store.journal import Writing, open_journal

_Dicts: TypeAlias = list[dict[str, Any]]  # `list` is a method below


class Campaigns(ServerAccess):
    """The campaigns of a store: the path of a SQLite file, sqlite:///FILE, postgresql://user@host/database, or a folder
    of JSON lines, FOLDER/ or jsonl:///FOLDER.

    `clock` gives the seconds since 1970. `create=False` refuses a file or folder that does not exist. One object serves
    any number of threads; several objects, in several processes, may use one store.
    """

    def __init__(
        self, store: str | os.PathLike[str], clock: Callable[[], float] = time.time, create: bool = True
    ) -> None:
        self._campaigns = OpenCampaigns(open_journal(store, create), clock)
        self._lists = Lists(self._campaigns)
        self._walk = ChainWalk(self._campaigns)

    def close(self) -> None:
        """Finish what is under way, and give all files and connections back."""
        self._campaigns.close()

    def check_writable(self) -> None:
        """`StoreUnavailable` if no result could be put on disk now; it is tried, without a trace in any campaign."""
        self._campaigns.journal.retried(self._campaigns.journal.check_writable)

    def check_logs(self) -> dict[str, int]:
        """Read some rows of the logs again, from where the last call ended, and check them against their hash chain.
        The campaigns that are known to be damaged by now, each with its first damaged row.
        """
        self._walk.step()
        return {id: error.seq for id, error in self._campaigns.damaged.items()}

    def backup(self, target: str | os.PathLike[str]) -> None:
        """A complete copy of the whole store, in a new file (SQLite) or folder (JSON lines), while others go on."""
        self._campaigns.journal.backup(Path(target))

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
        n_clusters: int | None = None,
        dim: int | None = None,
        delta: float = DELTA,
        method: str = METHOD,
        threshold: str = THRESHOLD,
        noise: Any = None,
        names: Sequence[str] | None = None,
        distance_ratio: float | None = None,
        lease_seconds: float = LEASE_SECONDS,
        on_expiry: str = ON_EXPIRY[0],
        value_names: Sequence[str] | None = None,
        pass_on: float | None = None,
        resolution: Any = None,
        groups: str = GROUPS[0],
        costs: Sequence[float] | None = None,
        cost_unit: str | None = None,
        confirm: float = 0.0,
        one_of_its_name: bool = False,
    ) -> dict[str, Any]:
        """A new campaign: its id, its settings, when it was created. `value_names`: of the numbers of a measurement.

        `one_of_its_name`: refuse a name that another campaign has, as the command line and the server do.

        `pass_on`: an ask that everybody waits for is asked of somebody else too after so many times the median of the
        times that answers took (None: 2, and never where `on_expiry` is "wait"; 0: never).

        `noise` as in `Session`: None is any noise. `resolution` in place of n_clusters, `groups`, `costs`,
        `cost_unit` and `confirm` as in `Session`.
        """
        title = check_text(name, "name")
        settings = CampaignSettings.of(
            n_arms, n_clusters, dim, delta=delta, method=method, threshold=threshold, noise=noise, names=names,
            distance_ratio=distance_ratio, lease_seconds=lease_seconds, on_expiry=on_expiry, value_names=value_names,
            pass_on=pass_on, resolution=resolution, groups=groups, costs=costs, cost_unit=cost_unit,
            confirm=confirm,
        )  # fmt: skip
        id, now = new_key(), float(self._campaigns.clock())

        def begin(writing: Writing) -> None:
            if one_of_its_name:
                writing.lock_names()
                check_free_name(title, writing.named(title))
            writing.add_campaign(id, title, settings.to_json(), now, json.dumps(views.fixed_summary(settings)))

        self._campaigns.write(begin)
        return {"id": id, "name": title, "created": timestamp(now), **settings.as_dict()}

    def list(self, archived: bool = False) -> _Dicts:
        """A summary of every campaign, oldest first; without those that are archived, unless they are asked for."""
        return self._lists.all(archived)

    def list_page(
        self,
        after: str | None = None,
        limit: int = PAGE,
        search: str = "",
        archived: bool = False,
        only: str | None = None,
        newest_first: bool = False,
    ) -> dict[str, Any]:
        """`campaigns`, some of them as in `list`, and `next`, the `after` of the page that follows (None: no more).

        `search`: a part of the name. `only`: the id of the only one that may be seen.
        """
        return self._lists.page(after, limit, search, archived, only, newest_first)

    def archive(self, id: str, writer: Writer | None = None) -> dict[str, Any]:
        """Put a campaign away: it can be read, and nothing is written to it (code "archived")."""
        return self._campaigns.submit(id, decision("archive", (), writer))

    def unarchive(self, id: str, writer: Writer | None = None) -> dict[str, Any]:
        """Take an archived campaign up again, as it was."""
        return self._campaigns.submit(id, decision("unarchive", (), writer))

    def delete(self, id: str, name: str) -> dict[str, Any]:
        """Delete a campaign with all that belongs to it. `name` has to be its name: this cannot be undone."""
        return delete_campaign(self._campaigns, id, name)

    def change_lease_time(self, id: str, seconds: float, writer: Writer | None = None) -> dict[str, Any]:
        """How long a worker may take, from the next ask on."""
        return self._campaigns.submit(id, decision("change_lease_time", (seconds,), writer))

    # Measuring.

    def ask(self, id: str, worker: str, n: int = 1, writer: Writer | None = None) -> dict[str, Any]:
        """Lease up to n arms to a worker; its own open ones first. Empty once the groups are proven.

        Fewer, or none, while further results could not be used before somebody answers an earlier ask: `waiting_for` of
        the answer names these asks, each with its item (`arm`, `name`), its `worker`, and `until` when.

        `writer`, here and below: the token that it came with, which the rows keep.
        """
        answer: dict[str, Any] = {}
        for count in commands.ask_steps(n):
            answer = self._campaigns.submit(id, decision("ask", (worker, count, n), writer))
            if answer["done"] or answer["waiting_for"]:
                break
        return answer

    def tell(self, id: str, measurements: Any, writer: Writer | None = None, ask_back: bool = False) -> dict[str, Any]:
        """Results [{"id", "arm", "values", "lease"?, "worker"?}, …], all or nothing; on disk when this returns.

        The result of an ask that was passed on to somebody else, who has answered it, is kept and does not count:
        `not_counted` of the answer names it. The same id with the same content is a duplicate and counts once. Without
        a lease a result answers the oldest open ask for its arm (only the worker's own, if `worker` is given); if there
        is none, it takes its place on arrival. The answer has `warnings` if a value lies far from what the item gave
        before: it is on record all the same. With `ask_back` it is refused instead (`Conflict`, code "far_off"), for
        whoever can ask a person and tell it again without: a program that drops what is refused would drop results
        because of their values.
        """
        return self._campaigns.submit(id, decision("tell", (measurements, None, False, ask_back), writer))

    def fail(self, id: str, lease: str, reason: str = "", writer: Writer | None = None) -> dict[str, Any]:
        """A measurement that will not come: its lease is freed, and the arm can be asked for again."""
        return self._campaigns.submit(id, decision("fail", (lease, reason), writer))

    def undo(self, id: str, lease: str, reason: str = "", writer: Writer | None = None) -> dict[str, Any]:
        """Give back an ask that was not answered and not measured: it is freed, and is no failure."""
        return self._campaigns.submit(id, decision("undo", (lease, reason), writer))

    def correct(
        self,
        id: str,
        measurement: str,
        values: Any,
        reason: str,
        by: str = "",
        correction: str | None = None,
        writer: Writer | None = None,
    ) -> dict[str, Any]:
        """Replace the values of a measurement that were told wrong, by its id; `reason` says why, `by` who says so.

        A new fact: the old values stay on record, the place in the order stays, and what follows from values is worked
        out anew. If the groups were proven and are not any more, measuring goes on, and `reopened` of the answer says
        so. The present values change nothing. `correction`: its own id; sent twice, it is made once.
        """
        given = (measurement, values, reason, by, correction)
        return self._campaigns.submit_prepared(
            id,
            lambda seen: correcting.prepare(seen.state, writer, *given),
            lambda prepared: decision("correct", (*given, prepared), writer),
        )

    def choose_resolution(self, id: str, resolution: Any) -> dict[str, Any]:
        """Ask for other `alike` and `apart` from here on, after looking at the results; as in `Session`.

        `resolution`: (alike, apart), or with the campaign's norm and claim. The answer says what is asked for now,
        whether that was a change, how many epochs are spent, and what is expected to be needed still.
        """
        return self._campaigns.submit(id, lambda turn: choosing.choose_resolution(turn, resolution))

    def revise(self, id: str, **changes: Any) -> dict[str, Any]:
        """Change what is asked for on the way: `add` items, `retire` items, raise `n_clusters`, lower `delta`.

        `costs`: of the items that join, where items have costs.
        Nothing is measured again, and the guarantee stays (docs/CROC.md, section 17); also once the groups are proven.
        `by` and `reason` are kept with it.
        """
        unknown = sorted(set(changes) - {"add", "costs", "retire", "n_clusters", "delta", "by", "reason"})
        if unknown:
            raise TypeError(
                f"revise takes add, costs, retire, n_clusters, delta, by and reason, got {', '.join(unknown)}"
            )
        return self._campaigns.submit(id, lambda turn: revising.revise(turn, changes))

    def batch(self, calls: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
        """Several calls, each like ("ask", id, worker, n), ("tell", id, measurements), ("fail", id, lease, reason),
        ("choose_resolution", id, resolution) or ("correct", id, measurement, values, reason, by).

        They are decided in order and put on disk in one transaction, as calls of several threads at once are. In place
        of an answer there is the error where a call met with one; the others are not concerned.
        """
        return self._campaigns.submit_batch([(id, decision(name, arguments)) for name, id, *arguments in calls])

    def post(self, name: str, id: str, *arguments: Any, writer: Writer | None = None) -> Future[dict[str, Any]]:
        """A call like those of `batch`, for event loops: this does not wait, the future has the answer or the error.

        Calls that are posted while others are put on disk share the next transaction. A campaign that is not in memory
        holds the others up while it is read: call `status` in a thread before.
        """
        return self._campaigns.post(id, decision(name, arguments, writer))

    def import_table(
        self,
        id: str,
        table: Any,
        values: Sequence[str] | None = None,
        in_order: bool = False,
        sheet: str | None = None,
        writer: Writer | None = None,
    ) -> dict[str, Any]:
        """Earlier measurements, from a CSV, Excel or Parquet file or from rows (dictionaries), all or nothing.

        A long table is put on disk in parts, so that others can write meanwhile. If the store fails between two of
        them, the error says how many are on record; the same table again adds the rest.

        Columns, in any case: `arm` (number or name), the values (those that `values` names; or the campaign's
        `value_names`; or v0, v1, …; or, if the campaign has no value_names, all the others), and `id`; without ids they
        follow from the content, so that the same file twice counts once. Nobody asked for these measurements: they take
        their place in the order of the table, where each item's are shuffled among themselves by a seed from the
        table's content and the item's name (the log and the answer's `order` say so). How many there are of an
        item must not depend on their values. `in_order=True` does not shuffle: for a campaign's own export, and for any
        table in which the order of an item's measurements has nothing to do with their values. `sheet`: of an Excel
        file, unless it is the first one.
        """
        content = read_import(table, values, in_order, sheet)
        return import_in_parts(self._campaigns, id, content, writer)

    def preview_import(
        self,
        id: str,
        table: Any,
        values: Sequence[str] | None = None,
        in_order: bool = False,
        sheet: str | None = None,
    ) -> dict[str, Any]:
        """What `import_table` would do with this table, and all that is wrong with it; nothing is written.

        `rows`, `items`, `unknown_items`, `problems` (each with its `place` in the table, `column` and `message`; the
        first 50 are listed, `problem_count` has their number), and how many measurements are `new` or `duplicates`.
        """
        return preview_import(self._campaigns, id, read_import(table, values, in_order, sheet))

    # Reading.

    def status(self, id: str, most_items: int | None = None) -> dict[str, Any]:
        """How far it is: groups, evidence, leases, workers.

        With more items than `most_items`, `cut` is true: `pulls`, `labels` and `names` are None, there are no `costs`,
        and groups have the first 1000 of their items. `items` has them all, page by page.
        """
        return self._campaigns.read(id, lambda seen: views.status(seen.state, seen.row, seen.now, most_items))

    def items(self, id: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        """Items from number `after` on, each with its name, group and measurements; `next` is where to go on."""
        start, count = log_views.page(after, limit)
        return self._campaigns.read(id, lambda seen: item_views.items(seen.state, start, count))

    def budget(self, id: str, more: Any) -> dict[str, Any]:
        """What so many more measurements are expected to bring: the `chance` to be done by then, and what if not."""
        return self._campaigns.read(id, lambda seen: views.budget(seen.state, seen.row, more))

    def overview(self, id: str) -> dict[str, Any]:
        """The summary that `list` gives and the seq, without working the state out; and whether that is in memory."""
        row = self._campaigns.row(id)
        return views.summary(row) | {"seq": int(row["last_seq"]), "in_memory": self._campaigns.in_memory(id)}

    def settings(self, id: str) -> dict[str, Any]:
        """What the campaign was created with."""
        return self._campaigns.look(id, lambda seen: log_views.settings_of(seen.row).as_dict())

    def lease(self, id: str, lease: str) -> dict[str, Any]:
        """One lease: its arm, its worker, and whether it is open, answered, expired, failed or undone."""
        return self._campaigns.read(id, lambda seen: views.lease(seen.state, lease, seen.now))

    def measured(self, id: str, arm: Any) -> dict[str, Any]:
        """How often an item was measured: `arm`, `name`, `measurements`."""
        return self._campaigns.read(id, lambda seen: views.measured(seen.state, arm))

    def measurements(self, id: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        """Results told, in order, after the seq `after`; `next` is where to go on, None at the end."""
        start, count = log_views.page(after, limit)
        return self._campaigns.read(id, lambda seen: log_views.measurements(seen, start, count))

    def events(self, id: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        """Everything in the log, in order, after the seq `after`."""
        start, count = log_views.page(after, limit)
        return self._campaigns.look(id, lambda seen: log_views.events(seen, start, count))

    def history(self, id: str, points: int = 300) -> dict[str, Any]:
        """The evidence over time, thinned out to about so many points."""
        return self._campaigns.look(id, lambda seen: log_views.history(seen, points))

    def page(self, id: str, points: int = 300, recent: int = 100) -> dict[str, Any]:
        """`status`, `history` and the last `recent` `events` of one moment, for a page that shows all three."""
        return self._campaigns.read(id, lambda seen: views.page_content(seen, points, recent))

    def partial(self, id: str, pairs: int = partial_answers.LISTED_PAIRS) -> dict[str, Any]:
        """What is proven now: pairs `apart` and `alike`, and of each item its letters and the groups it may be in.

        At most `pairs` pairs of each kind are listed, and never more than 10 000. All pairs are looked at, outside the
        campaign's lock: others can read and write meanwhile.
        """
        listed, _ = partial_answers.checked_counts(pairs=pairs)
        return partial_answers.partial(self._campaigns.read(id, partial_answers.take_for_partial), listed)

    def picture(self, id: str, proven: bool = True) -> dict[str, Any]:
        """Where each item is (`mean`, `low`, `high`, and its place on two axes), its group, and what is proven of it.

        Of more than 2000 items only the groups; without what is `proven` no pairs are looked at. Computed outside the
        campaign's lock.
        """
        return picture(self._campaigns.read(id, take_for_picture), proven)

    def resolution_curve(self, id: str, points: int = partial_answers.CURVE_POINTS) -> dict[str, Any]:
        """For each `radius`, how many groups there are at `least`, and how many are `enough`, both proven.

        As `coterie.resolution_curve`; computed outside the campaign's lock.
        """
        _, count = partial_answers.checked_counts(points=points)
        return partial_answers.curve(self._campaigns.read(id, partial_answers.take_for_curve), count)

    def newest_events(self, id: str, before: int | None = None, limit: int = 50) -> dict[str, Any]:
        """The last events with a seq below `before` (None: of all), oldest first, with the campaign's id, name and dim.

        `first` and `last` are the seqs that the page covers, `newest` is that of the last row there is.
        """
        _, count = log_views.page(0, limit)
        return self._campaigns.look(id, lambda seen: log_views.newest_events(seen, before, count))

    def latest(self, id: str) -> int:
        """The seq of the last row: whether anything is new, for next to nothing."""
        return int(self._campaigns.row(id)["last_seq"])

    def certificate(self, id: str) -> dict[str, Any]:
        """CROC's proof; `coterie.verify` checks it against the log of `export(id, "log")`. NotDone before the end."""
        return self._campaigns.read(id, lambda seen: views.certificate(seen.state, seen.row))

    def export(self, id: str, kind: str = "csv", before: int | None = None, decimal_comma: bool = False) -> str:
        """As text: "csv" (which import_table reads), "groups", "json", "certificate", or the "log" of verify.

        `before`, for "csv": only what stands before this seq. A log with a damaged row still has that. `decimal_comma`,
        for "csv" and "groups": semicolons between the cells and decimal commas, as spreadsheets of many languages want.
        """
        return self._campaigns.read(id, exports.exporter(kind, before, decimal_comma))()

    def export_workbook(self, id: str, kind: str = "csv") -> bytes:
        """An Excel file: "csv" (the measurements, which import_table reads), "groups", or "log" (what happened)."""
        return self._campaigns.read(id, workbook_exporter(kind))()
