"""What can be read of the campaigns of a store: the part of `Campaigns` that changes nothing."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from coterie.campaign.commands.results import lease_of
from coterie.campaign.errors import Conflict, NotFound
from coterie.campaign.exports import exporter, workbook_exporter
from coterie.campaign.imports import preview_import, read_import
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.service.whole_store import PAGE, Lists
from coterie.campaign.settings import timestamp
from coterie.campaign.state.opening import CampaignReading
from coterie.campaign.views import log as log_views
from coterie.campaign.views import partial as partial_answers
from coterie.campaign.views import status as status_views
from coterie.campaign.views.picture import MOST_DOTS, TakenPicture, picture, take_for_picture
from coterie.store.journal import Campaign, Selection

SHORTEST_ID = 6
"""Characters of the beginning of an id that may stand for it."""


def campaign_meant(known: Sequence[Campaign], given: str) -> str:
    """The id of the campaign that is meant: by its id, its name, or the beginning of its id."""
    meant = [row for row in known if row["id"] == given] or [row for row in known if row["name"] == given]
    if not meant and len(given) >= SHORTEST_ID:
        meant = [row for row in known if row["id"].startswith(given)]
    if len(meant) > 1:
        more = f"; and {len(meant) - 5} more" if len(meant) > 5 else ""
        listed = "; ".join(_label(row) for row in meant[:5])
        raise Conflict(f"{len(meant)} campaigns are called {given!r}, use an id: {listed}{more}", code="several_meant")
    if not meant:
        raise NotFound(f"there is no campaign {given!r}: coterie campaign list shows them all", code="unknown_campaign")
    return meant[0]["id"]


def _label(row: Campaign) -> str:
    """A campaign in a few words that tell it from others of its name: id, date, measurements."""
    count = row["measurements"]
    created = timestamp(row["created"])[:16]
    return f"{row['id'][:8]}, created {created}Z, {count} measurement{'' if count == 1 else 's'}"


class CampaignReports:
    """Reports on campaigns, each of one moment, as plain JSON values or text."""

    _campaigns: OpenCampaigns

    @cached_property
    def _lists(self) -> Lists:
        return Lists(self._campaigns)

    def find(self, given: str, lease: str | None = None, in_memory: bool = False) -> dict[str, Any]:
        """The campaign that is meant: by its id, its name, or the beginning of its id.

        Parameters
        ----------
        given : str
            What somebody calls it.
        lease : str, optional
            A lease of it that is looked at too.
        in_memory : bool
            Read its state too, in the same transaction: for whoever goes on with it.

        Returns
        -------
        dict
            `id`, the `settings` that it was created with and, if one was named, the `lease` (as `Campaigns.lease`).
        """

        def view(seen: CampaignReading) -> dict[str, Any]:
            shown = None
            if in_memory or lease is not None:
                state = seen.state
                shown = None if lease is None else lease_of(state, lease, seen.now)
            return {"id": seen.row["id"], "settings": seen.settings.as_dict(), "lease": shown}

        every = Selection(2**31 - 1, archived=True)
        return self._campaigns.find(
            lambda reading: campaign_meant(reading.select(every), given), view, in_memory or lease is not None
        )

    def list(self, archived: bool = False) -> builtins.list[dict[str, Any]]:
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

    def status(self, id: str, most_items: int | None = None) -> dict[str, Any]:
        """How far a campaign is: groups, evidence, leases, workers.

        Parameters
        ----------
        id : str
            The campaign.
        most_items : int, optional
            With more items than this, `cut` of the answer is true: `pulls`, `labels` and `names` are None, there are no
            `costs`, and groups have the first 1000 of their items. `items` has them all, page by page.

        Returns
        -------
        dict
            `done`, `proven`, `verdict` (a sentence), `groups`, `labels`, `evidence`, `forecast`, `open_leases`,
            `workers`, `alarms`, the settings, and more; docs/SERVER.md lists them all.
        """
        return self._campaigns.read(id, lambda seen: status_views.status(seen.state, seen.row, seen.now, most_items))

    def items(self, id: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        """Items from number `after` on, each with its name, group and measurements; `next` is where to go on."""
        start, count = log_views.page(after, limit)
        return self._campaigns.read(id, lambda seen: status_views.items(seen.state, start, count))

    def budget(self, id: str, more: Any) -> dict[str, Any]:
        """What so many more measurements are expected to bring: the `chance` to be done by then, and what if not."""
        return self._campaigns.read(id, lambda seen: status_views.budget(seen.state, seen.row, more))

    def overview(self, id: str) -> dict[str, Any]:
        """The summary that `list` gives and the seq, without working the state out; and whether that is in memory."""
        row = self._campaigns.row(id)
        return status_views.summary(row) | {"seq": int(row["last_seq"]), "in_memory": self._campaigns.in_memory(id)}

    def settings(self, id: str) -> dict[str, Any]:
        """What the campaign was created with."""
        return self._campaigns.look(id, lambda seen: seen.settings.as_dict())

    def lease(self, id: str, lease: str) -> dict[str, Any]:
        """One lease: its arm, its worker, and whether it is open, answered, expired, failed or undone."""
        return self._campaigns.read(id, lambda seen: lease_of(seen.state, lease, seen.now))

    def measured(self, id: str, arm: Any) -> dict[str, Any]:
        """How often an item was measured: `arm`, `name`, `measurements`."""
        return self._campaigns.read(id, lambda seen: status_views.measured(seen.state, arm))

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
        """`status`, `history`, the last `recent` `events` and the `picture` of one moment, for a page that shows them.

        The picture is None before there are groups, and of many items.
        """

        def view(seen: CampaignReading) -> tuple[dict[str, Any], TakenPicture | None]:
            content = status_views.page_content(seen, points, recent)
            if seen.state.session.features is not None:
                return content | {"cells": log_views.cells(seen, log_views.ON_A_PAGE)}, None
            drawn = content["status"]["groups"] and content["status"]["n_arms"] <= MOST_DOTS
            return content, take_for_picture(seen) if drawn else None

        content, taken = self._campaigns.read(id, view)
        return content | {"picture": None if taken is None else picture(taken, False)}

    def partial(self, id: str, pairs: int = partial_answers.LISTED_PAIRS) -> dict[str, Any]:
        """What is proven now: pairs `apart` and `alike`, and of each item its letters and the groups it may be in.

        At most `pairs` pairs of each kind are listed, and never more than 10 000. All pairs are looked at, outside the
        campaign's lock: others can read and write meanwhile. With a deadline `handover` says what of it is used, and
        how wrong the guess for items that are not settled may be.
        """
        listed, _ = partial_answers.checked_counts(pairs=pairs)
        return partial_answers.partial(self._campaigns.read(id, partial_answers.take_for_partial), listed)

    def picture(self, id: str, proven: bool = True) -> dict[str, Any]:
        """Where each item is (`mean`, `low`, `high`, and its place on two axes), its group, and what is proven of it.

        Of more than 2000 items only the groups; without what is `proven` no pairs are looked at. Computed outside the
        campaign's lock.
        """
        return picture(self._campaigns.read(id, take_for_picture), proven)

    def cells(self, id: str, features: int = log_views.MOST_COLUMNS) -> dict[str, Any]:
        """What was measured, where features are measured one by one: `features`, found ones first, as columns; `cells`
        as [item, column, results, mean]; the means of `groups`.

        At most so many features are listed, and at most 2000 items; of more items the groups.
        """
        return self._campaigns.read(id, lambda seen: log_views.cells(seen, features))

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
        """The proof, which `coterie.verify` checks against the log of `export(id, "log")`.

        Raises
        ------
        NotDone
            The groups are not proven yet.
        Conflict
            The campaign's method has no certificates.
        """
        return self._campaigns.read(id, lambda seen: status_views.certificate(seen.state, seen.row))

    def export(self, id: str, kind: str = "csv", before: int | None = None, decimal_comma: bool = False) -> str:
        """A campaign as text.

        Parameters
        ----------
        id : str
            The campaign.
        kind : {"csv", "groups", "json", "certificate", "partial", "log"}
            Measurements (which `import_table` reads), a table of the groups, everything, the proof, a certificate of
            what is proven so far, or the log that `coterie.verify` reads.
        before : int, optional
            For "csv": only what stands before this seq. A log with a damaged row still has that.
        decimal_comma : bool
            For "csv" and "groups": semicolons between the cells and decimal commas, as spreadsheets of many languages
            want.

        Returns
        -------
        str
        """
        return self._campaigns.read(id, exporter(kind, before, decimal_comma))()

    def export_workbook(self, id: str, kind: str = "csv") -> bytes:
        """An Excel file: "csv" (the measurements, which import_table reads), "groups", or "log" (what happened)."""
        return self._campaigns.read(id, workbook_exporter(kind))()
