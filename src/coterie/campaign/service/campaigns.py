"""`Campaigns`: all campaigns of one store."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import Any

from coterie.campaign.commands import managing, measuring
from coterie.campaign.commands.blocks import InBlock, close_block
from coterie.campaign.commands.turn import decision
from coterie.campaign.imports import import_in_parts, read_import
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.service.reports import CampaignReports
from coterie.campaign.service.whole_store import ChainWalk, ServerAccess, check_free_name, delete_campaign
from coterie.campaign.settings import LEASE_SECONDS, ON_EXPIRY, CampaignSettings, check_text, new_key, timestamp
from coterie.campaign.tokens import Writer
from coterie.campaign.views import status as status_views
from coterie.problem.question import GROUPS
from coterie.problem.settings import DELTA, METHOD, THRESHOLD
from coterie.store.journal import Writing, open_journal


class Campaigns(CampaignReports, ServerAccess):
    """The campaigns of a store. One object serves any number of threads; several processes may use one store.

    Parameters
    ----------
    store : str or path
        The path of a SQLite file, sqlite:///FILE, or postgresql://user@host/database.
    clock : callable, optional
        Gives the seconds since 1970.
    create : bool
        Whether a file that does not exist is made; else it is refused.

    Raises
    ------
    StoreUnavailable
        The store cannot be opened, or is not there.
    Conflict
        Another release has written it, whose format this one does not know.

    Examples
    --------
    >>> import tempfile
    >>> from coterie.campaign import Campaigns
    >>> with tempfile.TemporaryDirectory() as folder, Campaigns(f"{folder}/lab.db") as store:
    ...     id = store.create("beans", 4, 2, 1, noise=1.0)["id"]
    ...     (ask,) = store.ask(id, "ann")["asks"]
    ...     store.tell(id, [{"id": "m1", "arm": ask["arm"], "values": [2.5], "lease": ask["lease"]}])
    {'accepted': 1, 'duplicates': 0, 'done': False}
    """

    def __init__(
        self, store: str | os.PathLike[str], clock: Callable[[], float] = time.time, create: bool = True
    ) -> None:
        self._campaigns = OpenCampaigns(open_journal(store, create), clock)

    @cached_property
    def _walk(self) -> ChainWalk:
        return ChainWalk(self._campaigns)

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
        """A complete copy of the whole store, in a new SQLite file, while others go on. PostgreSQL has pg_dump."""
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
        blocks: str | None = None,
        strict_blocks: bool = False,
        features: Any = None,
        feature_costs: Any = None,
        panels: Any = None,
        panel_costs: Any = None,
        holes: str | None = None,
        deadline: float | None = None,
        one_of_its_name: bool = False,
    ) -> dict[str, Any]:
        """Begin a campaign.

        Parameters
        ----------
        name : str
            What people call it.
        n_arms, n_clusters, dim, delta, method, threshold, noise, names, distance_ratio, resolution, groups, costs, \
cost_unit, confirm, blocks, strict_blocks, features, feature_costs, panels, panel_costs, holes, deadline
            As in `coterie.Session`.
        lease_seconds : float
            How long a worker may take.
        on_expiry : {"skip", "wait"}
            What happens to an ask whose time is over.
        value_names : sequence of str, optional
            What the numbers of a measurement are called.
        pass_on : float, optional
            An ask that everybody waits for is asked of somebody else too after so many times the median of the times
            that answers took (None: 2, and never where `on_expiry` is "wait"; 0: never).
        one_of_its_name : bool
            Refuse a name that another campaign has, as the command line and the server do.

        Returns
        -------
        dict
            `id`, `name`, `created`, and the settings.

        Raises
        ------
        BadValue
            A setting is out of range; `field` names it.
        """
        title = check_text(name, "name")
        settings = CampaignSettings.of(
            n_arms, n_clusters, dim, delta=delta, method=method, threshold=threshold, noise=noise, names=names,
            distance_ratio=distance_ratio, lease_seconds=lease_seconds, on_expiry=on_expiry, value_names=value_names,
            pass_on=pass_on, resolution=resolution, groups=groups, costs=costs, cost_unit=cost_unit,
            confirm=confirm, blocks=blocks, strict_blocks=strict_blocks, features=features,
            feature_costs=feature_costs, panels=panels, panel_costs=panel_costs, holes=holes, deadline=deadline,
        )  # fmt: skip
        id, now = new_key(), float(self._campaigns.clock())

        def begin(writing: Writing) -> None:
            if one_of_its_name:
                writing.lock_names()
                check_free_name(title, writing.named(title))
            writing.add_campaign(id, title, settings.to_json(), now, json.dumps(status_views.fixed_summary(settings)))

        self._campaigns.write(begin)
        return {"id": id, "name": title, "created": timestamp(now), **settings.as_dict()}

    def archive(self, id: str, writer: Writer | None = None) -> dict[str, Any]:
        """Put a campaign away: it can be read, and nothing is written to it (code "archived")."""
        return self._campaigns.submit(id, decision(managing.archive, (), writer))

    def unarchive(self, id: str, writer: Writer | None = None) -> dict[str, Any]:
        """Take an archived campaign up again, as it was."""
        return self._campaigns.submit(id, decision(managing.unarchive, (), writer))

    def delete(self, id: str, name: str) -> dict[str, Any]:
        """Delete a campaign with all that belongs to it. `name` has to be its name: this cannot be undone."""
        return delete_campaign(self._campaigns, id, name)

    def change_lease_time(self, id: str, seconds: float, writer: Writer | None = None) -> dict[str, Any]:
        """How long a worker may take, from the next ask on."""
        return self._campaigns.submit(id, decision(managing.change_lease_time, (seconds,), writer))

    # Measuring.

    def ask(
        self,
        id: str,
        worker: str,
        n: int = 1,
        writer: Writer | None = None,
        block: str | None = None,
        room: int | None = None,
        among: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Lease items to a worker, its own open asks first.

        Parameters
        ----------
        id : str
            The campaign.
        worker : str
            Who measures.
        n : int
            How many items at most.
        writer : Writer, optional
            Here and below: the token that the request came with, which the rows keep.
        block, room, among : optional
            In a campaign with blocks: the one that is measured in; how many results still fit into it, those that this
            worker has open there included (None: n, or any number where n is 1); and the items that can be measured
            there (None: all). Each ask names its `block`; `full` of the answer says that nothing more of use fits.

        Returns
        -------
        dict
            `done`; `asks`, each with `arm`, `name`, `lease` and `expires`, none once the groups are proven; and
            `waiting_for`: there are fewer asks, or none, while further results could not be used before somebody
            answers an earlier one. It names these, each with `arm`, `name`, `worker`, and `until` when.
            `deadline_reached`, only if it is: there are fewer asks, or none, as the deadline leaves no more.
        """
        answer: dict[str, Any] = {}
        where = InBlock(block, room, among)
        for count in measuring.ask_steps(n, where):
            answer = self._campaigns.submit(id, decision(measuring.ask, (worker, count, n, where), writer))
            if answer["done"] or answer["waiting_for"] or "deadline_reached" in answer:
                break
        return answer

    def tell(
        self,
        id: str,
        measurements: Any,
        writer: Writer | None = None,
        ask_back: bool = False,
        with_items: bool = False,
    ) -> dict[str, Any]:
        """Take results in, all or nothing; they are on disk when this returns.

        Parameters
        ----------
        id : str
            The campaign.
        measurements : list of dict
            Each with `id`, `arm` and `values`, and perhaps `lease`, `worker`, `block` and `feature`: the feature or
            panel, where neither a lease nor `values` by feature, {"iron": 3.1}, say so. The same id with the same
            content is a duplicate and counts once. Without a lease a result answers the oldest open ask for its arm
            (only the worker's own, if `worker` is given); if there is none, it takes its place on arrival.
        ask_back : bool
            Refuse a value far from what the item gave before (code "far_off"), for whoever can ask a person and tell it
            again without: a program that drops what is refused would drop results because of their values.
        with_items : bool
            The answer has `items` too, one for each result: `arm`, `name`, `measurements`, `retired`.

        Returns
        -------
        dict
            `accepted`, `duplicates` and `done`; `warnings` if a value lies far from what the item gave before, which is
            on record all the same; `not_counted` names results of asks that were passed on to somebody else, who has
            answered: they are kept, and do not count.

        Raises
        ------
        BadValue, NotFound, Conflict
            What is wrong with a result; `field` says which one, and nothing of the request is on record.
        """
        arguments = (measurements, None, False, ask_back, with_items)
        return self._campaigns.submit(id, decision(measuring.tell, arguments, writer))

    def fail(self, id: str, lease: str, reason: str = "", writer: Writer | None = None) -> dict[str, Any]:
        """A measurement that will not come: its lease is freed, and the arm can be asked for again."""
        return self._campaigns.submit(id, decision(measuring.fail, (lease, reason), writer))

    def undo(self, id: str, lease: str, reason: str = "", writer: Writer | None = None) -> dict[str, Any]:
        """Give back an ask that was not answered and not measured: it is freed, and is no failure."""
        return self._campaigns.submit(id, decision(managing.undo, (lease, reason), writer))

    def close_block(self, id: str, block: str, writer: Writer | None = None) -> dict[str, Any]:
        """Nothing more is measured in a block: its open asks are given back. Closing it twice is an error."""
        return self._campaigns.submit(id, decision(close_block, (block,), writer))

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
            lambda seen: managing.prepare_correction(seen.state, writer, *given),
            lambda prepared: decision(managing.correct, (*given, prepared), writer),
        )

    def choose_resolution(self, id: str, resolution: Any) -> dict[str, Any]:
        """Ask for other `alike` and `apart` from here on, after looking at the results; as in `Session`.

        `resolution`: (alike, apart), or with the campaign's norm and claim. The answer says what is asked for now,
        whether that was a change, how many epochs are spent, and what is expected to be needed still.
        """
        return self._campaigns.submit(id, lambda turn: managing.choose_resolution(turn, resolution))

    def revise(self, id: str, **changes: Any) -> dict[str, Any]:
        """Change what is asked for on the way: `add` items, `retire` items, raise `n_clusters`, lower `delta`.

        `costs`: of the items that join, where items have costs. `deadline`: another one, where there is one, in a call
        of its own; it costs nothing.
        Nothing is measured again, and the guarantee stays (docs/CROC.md, section 17); also once the groups are proven.
        `by` and `reason` are kept with it.
        """
        unknown = sorted(set(changes) - {"add", "costs", "retire", "n_clusters", "delta", "deadline", "by", "reason"})
        if unknown:
            raise TypeError(
                f"revise takes add, costs, retire, n_clusters, delta, deadline, by and reason, got {', '.join(unknown)}"
            )
        return self._campaigns.submit(id, lambda turn: managing.revise(turn, changes))

    def batch(self, calls: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
        """Several calls, each like ("ask", id, worker, n), ("tell", id, measurements), ("fail", id, lease, reason),
        ("choose_resolution", id, resolution) or ("correct", id, measurement, values, reason, by).

        They are decided in order and put on disk in one transaction, as calls of several threads at once are. In place
        of an answer there is the error where a call met with one; the others are not concerned.
        """
        commands = ((managing.command_named(name), id, arguments) for name, id, *arguments in calls)
        return self._campaigns.submit_batch([(id, decision(command, arguments)) for command, id, arguments in commands])

    def post(self, name: str, id: str, *arguments: Any, writer: Writer | None = None) -> Future[dict[str, Any]]:
        """A call like those of `batch`, for event loops: this does not wait, the future has the answer or the error.

        Calls that are posted while others are put on disk share the next transaction. A campaign that is not in memory
        holds the others up while it is read: call `status` in a thread before.
        """
        return self._campaigns.post(id, decision(managing.command_named(name), arguments, writer))

    def import_table(
        self,
        id: str,
        table: Any,
        values: Sequence[str] | None = None,
        in_order: bool = False,
        sheet: str | None = None,
        writer: Writer | None = None,
    ) -> dict[str, Any]:
        """Take earlier measurements in, all or nothing.

        A long table is put on disk in parts, so that others can write meanwhile. If the store fails between two of
        them, the error says how many are on record; the same table again adds the rest. Nobody asked for these
        measurements: they take their place in the order of the table, where each item's are shuffled among themselves
        by a seed from the table's content and the item's name. How many there are of an item must not depend on their
        values.

        Parameters
        ----------
        id : str
            The campaign.
        table : path, data frame or rows
            A CSV, Excel or Parquet file, or dictionaries. Columns, in any case: `arm` (number or name), the values, and
            `id`; without ids they follow from the content, so that the same file twice counts once.
        values : sequence of str, optional
            The columns that hold the values. None: the campaign's `value_names`; or v0, v1, …; or, if the campaign has
            no value_names, all the others.
        in_order : bool
            Do not shuffle: for a campaign's own export, and for any table in which the order of an item's measurements
            has nothing to do with their values.
        sheet : str, optional
            Of an Excel file, unless it is the first one.

        Returns
        -------
        dict
            `accepted`, `duplicates`, `done`, `order` (how it was shuffled), and perhaps `warnings`.
        """
        content = read_import(table, values, in_order, sheet)
        return import_in_parts(self._campaigns, id, content, writer)
