"""One campaign on a server."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast, overload
from urllib.parse import quote

from coterie.client.answers import Asks, Item, Measurement, Recorded, Status, Told
from coterie.client.connection import LONGEST_PAUSE, Connection, query_of
from coterie.problem.checks import check_count, check_real_array, short
from coterie.problem.question import Resolution
from coterie.problem.settings import checked

log = logging.getLogger("coterie.client")


class RemoteCampaign:
    """One campaign on a server, by `Client.campaign` or `Client.create`.

    Parameters
    ----------
    connection : coterie.client.connection.Connection
        To the server, with a token.
    id : str
        The campaign's id.
    """

    def __init__(self, connection: Connection, id: str) -> None:
        if not isinstance(id, str) or not id:
            raise ValueError(f"id must be the id of a campaign, got {short(id)}")
        self.connection, self.id = connection, id
        self._path = f"/api/campaigns/{quote(id, safe='')}"

    def __repr__(self) -> str:
        return f"RemoteCampaign({self.connection.url!r}, {self.id!r})"

    def status(self) -> Status:
        """How far it is: groups, evidence, alarms."""
        return cast(Status, self._get(""))

    def ask(
        self, worker: str, n: int = 1, block: str | None = None, room: int | None = None,
        among: Iterable[str | int] | None = None,
    ) -> Asks:  # fmt: skip
        """Items for a worker to measure, its own open ones first.

        Parameters
        ----------
        worker : str
            Who measures.
        n : int
            How many items.
        block, room, among : optional
            In a campaign with blocks: the one that is measured in, how many results still fit into it, and the items
            that can be measured there.

        Returns
        -------
        Asks
            Empty once the campaign is `done`, and while nothing that is measured could be used before somebody else
            answers: `waiting_for` then says which items, asked of whom, and until when. `full`: nothing more of use
            fits into the block.
        """
        where = {"block": block, "room": room, "among": None if among is None else list(among)}
        body = {"worker": worker, "n": n} | {key: value for key, value in where.items() if value is not None}
        return Asks(self._post("ask", body))

    def tell(self, measurements: Iterable[Measurement], confirm: bool | None = None) -> Told:
        """Hand in results, all or nothing; they are on the server's disk when this returns.

        Parameters
        ----------
        measurements : iterable of Measurement
            Dictionaries with `arm` and `values`, and `lease`, `id`, `worker` and `block` if known; with features also
            `feature`, or values by feature such as {"iron": 3.1}. None is a hole.
        confirm : bool, optional
            False: a value far from what its item gave before is refused (`ServerError`, code "far_off"), for programs
            that ask a person and tell it again with True. Left out, it is taken in with a warning.

        Returns
        -------
        Told
            What became of them.
        """
        sent = [{"id": uuid.uuid4().hex} | result | {"values": _plain(result["values"])} for result in measurements]
        body = {"measurements": sent} | ({} if confirm is None else {"confirm": confirm})
        return cast(Told, self._post("tell", body))

    def correct(self, measurement: str, values: Any, reason: str, by: str = "") -> dict[str, Any]:
        """Replace the values of a measurement that were told wrong; the old ones stay on record.

        Parameters
        ----------
        measurement : str
            Its id.
        values : float or array-like
            The right ones.
        reason, by : str
            Why they were wrong, and who says so.

        Returns
        -------
        dict
            `reopened`: the groups were proven, and with the right value they are not.
        """
        sent = {"id": uuid.uuid4().hex, "measurement": measurement, "values": _plain(values), "reason": reason}
        return self._post("corrections", sent | {"by": by})

    def fail(self, lease: str, reason: str = "") -> None:
        """A measurement that will not come; its item is free to be asked for again. Owners free anybody's.

        The proof assumes that failures have nothing to do with the values.
        """
        self._post("fail", {"lease": lease, "reason": reason}, repeatable=False)

    def undo(self, lease: str, reason: str = "") -> None:
        """Give back an item that was not measured: it is free again, and that is no failure."""
        self._post("undo", {"lease": lease, "reason": reason})

    def close_block(self, block: str) -> None:
        """Nothing more is measured in a block: its open items are given back. Closing it twice is an error."""
        self._post("close-block", {"block": block}, repeatable=False)

    def attach(self, measurement: str, content: bytes | str, name: str) -> dict[str, Any]:
        """Keep a file with a measurement: `content` is what it holds, bytes or a text, `name` what it is called."""
        query = query_of(measurement=measurement, name=name)
        sent = content.encode() if isinstance(content, str) else content
        return cast(
            dict[str, Any], self.connection.send("POST", f"{self._path}/attachments?{query}", content=sent).json()
        )

    def attachments(self, measurement: str | None = None) -> list[dict[str, Any]]:
        """Its files, or those of one measurement, oldest first."""
        return list(self._get(f"/attachments?{query_of(measurement=measurement)}")["attachments"])

    def attachment(self, sha256: str | None = None) -> bytes:
        """A file by the hash of its content; without one, a ZIP of all files."""
        last = "attachments.zip" if sha256 is None else f"attachment?{query_of(sha256=sha256)}"
        return self.connection.send("GET", f"{self._path}/{last}").content

    def archive(self) -> None:
        """Put it away: it can be read, and nothing is written to it."""
        self._post("archive", {"archived": True})

    def unarchive(self) -> None:
        """Take it up again, as it was."""
        self._post("archive", {"archived": False})

    def change_lease_time(self, seconds: float) -> None:
        """How long a worker may take, from the next ask on."""
        self._post("lease-time", {"lease_seconds": seconds})

    def delete(self, name: str) -> None:
        """Delete it with all its measurements; `name` has to be its name. This cannot be undone."""
        self.connection.request("DELETE", f"{self._path}?name={quote(name, safe='')}", repeatable=False)

    def invite(self, name: str, role: str = "worker", hours: float = 24.0) -> dict[str, Any]:
        """Invite somebody as worker or reader: `link` of the answer logs one browser in, once."""
        return self._post("invitations", {"name": name, "role": role, "hours": hours}, repeatable=False)

    def invitations(self) -> list[dict[str, Any]]:
        """Its invitations, without their secrets."""
        return list(self._get("/invitations")["invitations"])

    def revoke_invitation(self, invitation: str) -> None:
        """Take an invitation back, by its id; whoever has used it is logged out."""
        self.connection.request("DELETE", f"{self._path}/invitations?invitation={quote(invitation, safe='')}")

    def choose_resolution(self, resolution: Any) -> dict[str, Any]:
        """Other `alike` and `apart` from here on: (alike, apart), or a `coterie.Resolution`."""
        body = checked("resolution", Resolution.of, resolution).to_json()
        return self._post("resolution", body)

    def add_items(self, items: Any, reason: str | None = None, costs: Iterable[float] | None = None) -> dict[str, Any]:
        """Items join: their names, or how many where items have no names; `costs` of each, where items have costs."""
        body: dict[str, Any] = {"add": items if isinstance(items, int) else list(items)}
        return self._revised("items", body if costs is None else body | {"costs": list(costs)}, reason)

    def retire(self, items: Iterable[str | int], reason: str | None = None) -> dict[str, Any]:
        """Items are retired, by name or number: their results are kept, and nothing is claimed about them."""
        return self._revised("retire", {"retire": list(items)}, reason)

    def raise_clusters(self, n_clusters: int, reason: str | None = None) -> dict[str, Any]:
        """There are more groups than was said."""
        return self._revised("clusters", {"n_clusters": n_clusters}, reason)

    def lower_delta(self, delta: float, reason: str | None = None) -> dict[str, Any]:
        """A smaller error probability; a campaign that is done goes on."""
        return self._revised("delta", {"delta": delta}, reason)

    def change_deadline(self, deadline: float, reason: str | None = None) -> dict[str, Any]:
        """Another deadline, where there is one: not below what is spent."""
        return self._revised("deadline", {"deadline": deadline}, reason)

    def _revised(self, address: str, body: dict[str, Any], reason: str | None) -> dict[str, Any]:
        sent = body if reason is None else body | {"reason": reason}
        return self._post(address, sent, repeatable=False)

    def run(
        self, measure: Callable[[str], Any], worker: str, n: int = 1, block: str | None = None, room: int | None = None
    ) -> Status:
        """Ask, measure and tell until the campaign is done, or its deadline is reached; in a block, until it is full.

        If others still measure what is left, this waits; the log of `coterie.client` (level INFO) says for whom.

        Parameters
        ----------
        measure : callable
            It gets the name of an item, or its number as text. If it raises, the open items stay leased to this worker,
            who gets them again.
        worker : str
            Who measures.
        n : int
            How many items at a time.
        block, room : optional
            In a campaign with blocks: the one that is measured in, which stays open, and how many results still fit.

        Returns
        -------
        Status
            Of the finished campaign; at a deadline, see `partial`; of a full block, go on with the next.
        """
        said: list[str] = []
        while room != 0:
            asks = self.ask(worker, n, block, room)
            if not asks:
                now = self.status()
                if now["done"] or asks.full or (now.get("deadline_reached") and not now["open_leases"]):
                    return now
                waits = [f"{ask['name']}, asked of {ask['worker']}, until {ask['until']}" for ask in asks.waiting_for]
                if waits != said:
                    log.info("waiting for %s", "; ".join(waits) or "results of others")
                said = waits
                time.sleep(1.0)
            for ask in asks:
                self.tell([{"arm": ask["arm"], "values": measure(ask["name"]), "lease": ask["lease"]}])
                room = None if room is None else room - 1
        return self.status()

    def picture(self, proven: bool = True) -> dict[str, Any]:
        """Where each item is, its group, and what is `proven` of it; of more than 2000 items only the groups."""
        return self._get(f"/picture?proven={str(proven).lower()}")

    def cells(self, features: int = 60) -> dict[str, Any]:
        """With features: what was measured, as [item, column, results, mean]; found features are the first columns."""
        return self._get(f"/cells?features={check_count(features, 'features', 1)}")

    def items(self, after: int = 0, limit: int = 1000) -> Iterator[Item]:
        """All items in order, from the number `after` on, fetched in pages of `limit`; an iterator of `Item`."""
        return cast(Iterator[Item], self._pages("items", after, limit))

    def measurements(self, after: int = 0, limit: int = 1000) -> Iterator[Recorded]:
        """All results in order, those after the seq `after`, in pages of `limit`; an iterator of `Recorded`."""
        return cast(Iterator[Recorded], self._pages("measurements", after, limit))

    def events(self, after: int = 0, brief: bool = False) -> Iterator[dict[str, Any]]:
        """The log, and then everything that happens: it waits for more until the loop is left.

        A connection that was lost is taken up again where it was.

        Parameters
        ----------
        after : int
            Only what comes after this seq.
        brief : bool
            Only that something has changed, and the newest seq.

        Yields
        ------
        dict
            An event with `kind` (asked, told, …), `seq` and `at`.
        """
        place = after
        for attempt in range(self.connection.retries + 1):
            try:
                for event in self.connection.follow(
                    f"{self._path}/events?after={place}&brief={'true' if brief else 'false'}"
                ):
                    place = int(event.get("seq", place))
                    yield event
                return  # the server has ended the stream
            except self.connection.lost as error:
                if attempt == self.connection.retries:
                    error.add_note(f"coterie: the events of {self.id} ended after seq {place}")
                    raise
            time.sleep(min(0.1 * 2**attempt, LONGEST_PAUSE))

    def history(self, points: int = 300) -> dict[str, list[Any]]:
        """The evidence over time: `t`, `statistic`, `threshold`."""
        return self._get(f"/history?points={points}")

    def partial(self, pairs: int = 100) -> dict[str, Any]:
        """What is proven now, with the first so many pairs of each kind."""
        return self._get(f"/partial?pairs={pairs}")

    def resolution_curve(self, points: int = 200) -> dict[str, Any]:
        """For every radius, how many groups there are at least, and how many are enough, both proven."""
        return self._get(f"/resolution-curve?points={points}")

    def budget(self, more: int) -> dict[str, Any]:
        """What so many more measurements are expected to bring: `chance` to be done by then, `words`, and more."""
        return self._get(f"/budget?more={check_count(more, 'more', 1)}")

    def certificate(self) -> dict[str, Any]:
        """The proof, once the campaign is done, for `coterie.verify` with the file `export("log")`."""
        return self._get("/certificate")

    @overload
    def export(
        self, kind: str = ..., format: Literal["text"] = ..., decimal_comma: bool = ..., bom: bool = ...
    ) -> str: ...
    @overload
    def export(self, kind: str = ..., *, format: Literal["xlsx"]) -> bytes: ...
    def export(
        self, kind: str = "csv", format: str = "text", decimal_comma: bool = False, bom: bool = False
    ) -> str | bytes:
        """A file of the campaign.

        Parameters
        ----------
        kind : {"csv", "groups", "json", "certificate", "partial", "log"}
            Measurements, each item's group, everything, the proof, that of what is proven so far, or the log.
        format : {"text", "xlsx"}
            csv, groups and log also as Excel.
        decimal_comma : bool
            csv and groups for spreadsheets that write 6,8 for 6.8.
        bom : bool
            csv and groups begin as spreadsheets need it to read them as UTF-8.

        Returns
        -------
        str or bytes
            The content; bytes of an Excel file.
        """
        query = query_of(kind=kind, format=format, decimal_comma=str(decimal_comma).lower(), bom=str(bom).lower())
        answer = self.connection.send("GET", f"{self._path}/export?{query}")
        return answer.content if format == "xlsx" else answer.text

    def import_table(
        self,
        content: bytes | str,
        name: str = "table.csv",
        sheet: str | None = None,
        values: Sequence[str] | None = None,
        in_order: bool = False,
        check: bool = False,
    ) -> dict[str, Any]:
        """Take in a table of results that were measured before, all or nothing.

        Parameters
        ----------
        content : bytes or str
            A CSV or Excel file.
        name, sheet : str
            What the file is called, and the sheet of an Excel file.
        values : sequence of str, optional
            The columns that hold the values, in this order.
        in_order : bool
            Do not shuffle: for a campaign's own export.
        check : bool
            Only look what it would do.

        Returns
        -------
        dict
            What became of it, or what would.
        """
        flags = {"in_order": str(in_order).lower(), "check": str(check).lower()}
        query = query_of(name=name, sheet=sheet, values=values, **flags)
        answer = self.connection.send("POST", f"{self._path}/import?{query}", content=content)
        return cast(dict[str, Any], answer.json())

    def _get(self, address: str) -> dict[str, Any]:
        return cast(dict[str, Any], self.connection.request("GET", f"{self._path}{address}"))

    def _post(self, address: str, body: dict[str, Any], repeatable: bool = True) -> dict[str, Any]:
        answer = self.connection.request("POST", f"{self._path}/{address}", body, repeatable=repeatable)
        return cast(dict[str, Any], answer)

    def _pages(self, name: str, after: int, limit: int) -> Iterator[dict[str, Any]]:
        """What all pages at an address list, from this number on."""
        place: int | None = after
        while place is not None:
            page = self._get(f"/{name}?after={place}&limit={limit}")
            yield from page[name]
            place = page["next"]


def _plain(values: Any) -> Any:
    """Numbers as JSON has them, from a number, a sequence, an array or a Series; also by feature, and with holes."""
    if isinstance(values, Mapping):
        return {str(name): None if value is None else _plain(value) for name, value in values.items()}
    if isinstance(values, list | tuple) and None in values:
        return [None if value is None else _plain(value) for value in values]
    return check_real_array(values, "values", booleans=True).tolist()
