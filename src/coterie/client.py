"""A client for the HTTP interface of `coterie serve`, for programs and notebooks on other machines (extra `client`).

A request whose answer was lost is sent again where that changes nothing: results carry ids, and a worker who asks again
gets its own open items back. What the server refuses is a `ServerError` with the server's sentence.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, cast, overload
from urllib.parse import quote, urlencode

from coterie.problem.checks import check_count, check_real_array, short
from coterie.problem.families import noise_of
from coterie.problem.question import Resolution
from coterie.problem.settings import DELTA, METHOD, checked

if TYPE_CHECKING:
    import httpx

ADDRESS = "http://127.0.0.1:8000"
"""Where `coterie serve` is, if nothing is said."""

_EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_LONGEST_PAUSE = 10.0
_TOO_MANY, _UNAVAILABLE = 429, 503


class ServerError(Exception):
    """What the server refused: its HTTP `status`, a `code` for programs, and the `field` of the request at fault."""

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.field = status, code, field


class Summary(TypedDict):
    """A campaign in the list."""

    id: str
    name: str
    method: str
    delta: float
    n_arms: int
    n_clusters: int | None
    question: str
    dim: int
    t: int
    done: bool
    created: str
    open_leases: int
    archived: str | None


class Status(TypedDict):
    """How far a campaign is; the server may send more than these fields (docs/SERVER.md)."""

    id: str
    name: str
    done: bool
    t: int
    measurements: int
    cut: bool
    pulls: list[int] | None
    labels: list[int] | None
    centers: list[list[float]] | None
    groups: list[dict[str, Any]]
    evidence: dict[str, Any]
    progress: dict[str, Any]
    forecast: float | None
    forecast_low: float | None
    forecast_high: float | None
    waiting: int
    failures: dict[str, Any]
    archived: str | None
    lease_seconds: float
    alarm: dict[str, Any] | None
    alarms: list[dict[str, Any]]
    homogeneity: dict[str, Any] | None
    verdict: str
    assumed: str


class Ask(TypedDict):
    """An item to measure, leased until `expires`."""

    arm: int
    name: str
    lease: str
    expires: str


class Measurement(TypedDict):
    """A result: the item by number or name, its numbers, and the lease that it answers.

    `id`: the same id twice counts once; one is made up if it is left out.
    """

    arm: int | str
    values: Any
    lease: NotRequired[str | None]
    id: NotRequired[str]
    worker: NotRequired[str | None]


class Recorded(TypedDict):
    """A result on record: what, by whom, when (`at`, ISO 8601 in UTC), and whether it counted.

    `token`: the id and the name of the token that it was told with, if one was recorded.
    """

    seq: int
    id: str
    arm: int
    name: str
    values: list[float]
    lease: str | None
    worker: str | None
    asked_for: bool
    at: str
    counted: bool
    token: NotRequired[dict[str, str | None]]


class Told(TypedDict):
    """What became of results; `warnings` if a value lies far from what its item gave before."""

    accepted: int
    duplicates: int
    done: bool
    warnings: NotRequired[list[dict[str, Any]]]


class Client:
    """A server, and the token with which it is spoken to (`COTERIE_TOKEN` if none is given).

    `timeout` is in seconds, for one answer. After no answer a request that can safely be sent twice is sent again, up
    to `retries` times with growing pauses; so is every request that the server puts off (503, 429). Use it in a `with`
    block, or `close` it.
    """

    def __init__(
        self, url: str = ADDRESS, token: str | None = None, *, timeout: float = 60.0, retries: int = 5
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise ImportError('coterie.client needs httpx: pip install "coterie[client]"') from None
        given = os.environ.get("COTERIE_TOKEN") if token is None else token
        if not given:
            raise ValueError("token must be the server's token, got none: give token=, or set COTERIE_TOKEN")
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise ValueError(f"url must be an address as {ADDRESS}, got {short(url)}")
        self.retries = check_count(retries, "retries", 0)
        self.url = url.rstrip("/")
        self.lost: type[httpx.TransportError] = httpx.TransportError
        self._unsent: tuple[type[httpx.TransportError], ...] = (httpx.ConnectError, httpx.ConnectTimeout)
        self._http = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {given}"}, timeout=timeout, trust_env=False
        )

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def healthy(self) -> bool:
        """Whether the server answers and can use its store; one try."""
        try:
            return bool(self._http.get("/healthz").status_code == 200)
        except self.lost:
            return False

    def campaigns(self, search: str = "", archived: bool = False, after: str = "", limit: int = 1000) -> list[Summary]:
        """All campaigns, oldest first, fetched in pages of `limit`; `search`: those with this in their name.

        `archived`: those that were put away too. `after`: only those that follow a page whose `next` this was.
        """
        found: list[Summary] = []
        while True:
            asked = f"limit={limit}&search={quote(search, safe='')}&archived={str(archived).lower()}"
            page = self.request("GET", f"/api/campaigns?{asked}&after={quote(after, safe='')}")
            found += page["campaigns"]
            if page["next"] is None:
                return found
            after = page["next"]

    def compiling(self) -> dict[str, Any]:
        """Whether the server is compiling its first answer, and about how long that still takes."""
        return cast(dict[str, Any], self.request("GET", "/api/compiling"))

    def read_items(
        self, content: bytes | str, name: str = "items.csv", sheet: str | None = None, kind: str = "file"
    ) -> dict[str, Any]:
        """The items in a CSV or Excel file, or in a text that was pasted (`kind="pasted"`): names and costs."""
        query = _query(name=name, sheet=sheet, kind=kind)
        return cast(dict[str, Any], self._send("POST", f"/api/items?{query}", content=content).json())

    def campaign(self, id: str) -> RemoteCampaign:
        """A campaign by its id; whether there is one is seen at the first request."""
        return RemoteCampaign(self, id)

    def create(
        self,
        name: str,
        items: int | Sequence[str],
        n_clusters: int | None = None,
        *,
        dim: int = 1,
        resolution: Any = None,
        groups: str | None = None,
        noise: Any = None,
        delta: float = DELTA,
        method: str = METHOD,
        value_names: Sequence[str] | None = None,
        lease_seconds: float | None = None,
        on_expiry: str | None = None,
        threshold: str | None = None,
        distance_ratio: float | None = None,
        costs: Sequence[float] | None = None,
        cost_unit: str | None = None,
    ) -> RemoteCampaign:
        """A new campaign. `items`: their names, or how many there are. What is left out, the server decides.

        `resolution`, `noise` and `costs` as in `coterie.Session`. It is not sent twice after no answer: look at
        `campaigns`.
        """
        named = not isinstance(items, int)
        body: dict[str, Any] = {
            "name": name,
            "n_arms": len(list(cast(Sequence[str], items))) if named else items,
            "names": [str(item) for item in cast(Sequence[str], items)] if named else None,
            "n_clusters": n_clusters,
            "dim": dim,
            "delta": delta,
            "method": method,
        }
        if noise is not None:
            body["noise"] = checked("noise", noise_of, noise, dim).to_json()
        if resolution is not None:
            body |= checked("resolution", Resolution.of, resolution).to_json()
        further = {
            "groups": groups,
            "value_names": None if value_names is None else list(value_names),
            "lease_seconds": lease_seconds,
            "on_expiry": on_expiry,
            "threshold": threshold,
            "distance_ratio": distance_ratio,
            "costs": None if costs is None else [float(cost) for cost in costs],
            "cost_unit": cost_unit,
        }
        body |= {key: value for key, value in further.items() if value is not None}
        return RemoteCampaign(self, str(self.request("POST", "/api/campaigns", body, repeatable=False)["id"]))

    def request(self, method: str, path: str, body: Any = None, *, repeatable: bool = True) -> Any:
        """The JSON that the server answers; for addresses that have no method of their own yet."""
        return self._send(method, path, body, repeatable=repeatable).json()

    def follow(self, path: str) -> Iterator[dict[str, Any]]:
        """The events of a stream as they come; it ends when the server or the connection does."""
        with self._http.stream("GET", path) as answer:
            if not answer.is_success:
                answer.read()
                raise _refusal(answer)
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    yield cast(dict[str, Any], json.loads(line.removeprefix("data:")))

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        repeatable: bool = True,
        content: bytes | str | None = None,
    ) -> httpx.Response:
        """An answer of the server, after further tries where none came; `ServerError` if it refuses."""
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            pause = min(0.1 * 2**attempt, _LONGEST_PAUSE)
            try:
                answer = self._http.request(method, path, json=body, content=content, headers=_headers(content))
            except self.lost as error:
                if last or not (repeatable or isinstance(error, self._unsent)):
                    error.add_note(f"coterie: no answer from {self.url} after {attempt + 1} tries")
                    raise
            else:
                if answer.is_success:
                    return answer
                if last or answer.status_code not in (_TOO_MANY, _UNAVAILABLE):
                    raise _refusal(answer)
                pause = _pause(answer, pause)
            time.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")


class RemoteCampaign:
    """One campaign on a server."""

    def __init__(self, client: Client, id: str) -> None:
        if not isinstance(id, str) or not id:
            raise ValueError(f"id must be the id of a campaign, got {short(id)}")
        self.client, self.id = client, id
        self._path = f"/api/campaigns/{quote(id, safe='')}"

    def __repr__(self) -> str:
        return f"RemoteCampaign({self.client.url!r}, {self.id!r})"

    def status(self) -> Status:
        """How far it is: groups, evidence, alarms."""
        return cast(Status, self.client.request("GET", self._path))

    def ask(self, worker: str, n: int = 1) -> list[Ask]:
        """Items for this worker to measure, its own open ones first; none once the campaign is done."""
        return cast(list[Ask], self.client.request("POST", f"{self._path}/ask", {"worker": worker, "n": n})["asks"])

    def tell(self, measurements: Iterable[Measurement], confirm: bool | None = None) -> Told:
        """Hand in results, all or nothing; they are on the server's disk when this returns.

        `confirm=False`: a value far from what its item gave before is refused (`ServerError`, code "far_off"), for
        programs that ask a person and tell it again with `confirm=True`. Left out, it is taken in with a warning.
        """
        sent = [{"id": uuid.uuid4().hex} | one | {"values": _plain(one["values"])} for one in measurements]
        body = {"measurements": sent} | ({} if confirm is None else {"confirm": confirm})
        return cast(Told, self.client.request("POST", f"{self._path}/tell", body))

    def correct(self, measurement: str, values: Any, reason: str, by: str = "") -> dict[str, Any]:
        """Replace the values of a measurement that were told wrong, by its id; the old ones stay on record.

        `reopened` of the answer: the groups were proven, and with the right value they are not.
        """
        sent = {"id": uuid.uuid4().hex, "measurement": measurement, "values": _plain(values), "reason": reason}
        answer = self.client.request("POST", f"{self._path}/corrections", sent | {"by": by})
        return cast(dict[str, Any], answer)

    def fail(self, lease: str, reason: str = "") -> None:
        """A measurement that will not come; its item is free to be asked for again.

        The proof assumes that failures have nothing to do with the values.
        """
        self.client.request("POST", f"{self._path}/fail", {"lease": lease, "reason": reason}, repeatable=False)

    def undo(self, lease: str, reason: str = "") -> None:
        """Give back an item that was not measured: it is free again, and that is no failure."""
        self.client.request("POST", f"{self._path}/undo", {"lease": lease, "reason": reason})

    def archive(self) -> None:
        """Put it away: it can be read, and nothing is written to it."""
        self.client.request("POST", f"{self._path}/archive", {"archived": True})

    def unarchive(self) -> None:
        """Take it up again, as it was."""
        self.client.request("POST", f"{self._path}/archive", {"archived": False})

    def change_lease_time(self, seconds: float) -> None:
        """How long a worker may take, from the next ask on."""
        self.client.request("POST", f"{self._path}/lease-time", {"lease_seconds": seconds})

    def delete(self, name: str) -> None:
        """Delete it with all its measurements; `name` has to be its name. This cannot be undone."""
        self.client.request("DELETE", f"{self._path}?name={quote(name, safe='')}", repeatable=False)

    def choose_resolution(self, resolution: Any) -> dict[str, Any]:
        """Other `alike` and `apart` from here on: (alike, apart), or a `coterie.Resolution`."""
        body = checked("resolution", Resolution.of, resolution).to_json()
        return cast(dict[str, Any], self.client.request("POST", f"{self._path}/resolution", body))

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

    def _revised(self, what: str, body: dict[str, Any], reason: str | None) -> dict[str, Any]:
        sent = body if reason is None else body | {"reason": reason}
        return cast(dict[str, Any], self.client.request("POST", f"{self._path}/{what}", sent, repeatable=False))

    def run(self, measure: Callable[[str], Any], worker: str, n: int = 1) -> Status:
        """Ask, measure and tell until the campaign is done; then its status.

        `measure` gets the name of an item, or its number as text. If it raises, the open items stay leased to this
        worker, who gets them again. If others still measure what is left, this waits for them.
        """
        while True:
            asks = self.ask(worker, n)
            if not asks:
                now = self.status()
                if now["done"]:
                    return now
                time.sleep(1.0)
            for one in asks:
                self.tell([{"arm": one["arm"], "values": measure(one["name"]), "lease": one["lease"]}])

    def picture(self, proven: bool = True) -> dict[str, Any]:
        """Where each item is, its group, and what is `proven` of it; of more than 2000 items only the groups."""
        return cast(dict[str, Any], self.client.request("GET", f"{self._path}/picture?proven={str(proven).lower()}"))

    def measurements(self, after: int = 0, limit: int = 1000) -> Iterator[Recorded]:
        """All results in order, those after this seq, fetched in pages of `limit`."""
        place: int | None = after
        while place is not None:
            page = self.client.request("GET", f"{self._path}/measurements?after={place}&limit={limit}")
            yield from cast(list[Recorded], page["measurements"])
            place = page["next"]

    def events(self, after: int = 0, brief: bool = False) -> Iterator[dict[str, Any]]:
        """The log after this seq, and then everything that happens: it waits for more until the loop is left.

        Each event has `kind` (asked, told, …), `seq` and `at`. `brief`: only that something has changed, and the newest
        seq. A connection that was lost is taken up again where it was.
        """
        place = after
        for attempt in range(self.client.retries + 1):
            try:
                for one in self.client.follow(
                    f"{self._path}/events?after={place}&brief={'true' if brief else 'false'}"
                ):
                    place = int(one.get("seq", place))
                    yield one
                return  # the server has ended the stream
            except self.client.lost as error:
                if attempt == self.client.retries:
                    error.add_note(f"coterie: the events of {self.id} ended after seq {place}")
                    raise
            time.sleep(min(0.1 * 2**attempt, _LONGEST_PAUSE))

    def history(self, points: int = 300) -> dict[str, list[Any]]:
        """The evidence over time: `t`, `statistic`, `threshold`."""
        return cast(dict[str, list[Any]], self.client.request("GET", f"{self._path}/history?points={points}"))

    def partial(self, pairs: int = 100) -> dict[str, Any]:
        """What is proven now, with the first so many pairs of each kind."""
        return cast(dict[str, Any], self.client.request("GET", f"{self._path}/partial?pairs={pairs}"))

    def resolution_curve(self, points: int = 200) -> dict[str, Any]:
        """For every radius, how many groups there are at least, and how many are enough, both proven."""
        answer = self.client.request("GET", f"{self._path}/resolution-curve?points={points}")
        return cast(dict[str, Any], answer)

    def budget(self, more: int) -> dict[str, Any]:
        """What so many more measurements are expected to bring: `chance` to be done by then, `words`, and more."""
        count = check_count(more, "more", 1)
        return cast(dict[str, Any], self.client.request("GET", f"{self._path}/budget?more={count}"))

    def certificate(self) -> dict[str, Any]:
        """The proof, once the campaign is done, for `coterie.verify` with the file `export("log")`."""
        return cast(dict[str, Any], self.client.request("GET", f"{self._path}/certificate"))

    @overload
    def export(self, kind: str = ..., format: Literal["text"] = ..., decimal_comma: bool = ...) -> str: ...
    @overload
    def export(self, kind: str = ..., *, format: Literal["xlsx"]) -> bytes: ...
    def export(self, kind: str = "csv", format: str = "text", decimal_comma: bool = False) -> str | bytes:
        """A file as text: csv, groups, json, certificate or log; csv, groups and log also as Excel, `format="xlsx"`.

        `decimal_comma`: csv and groups for spreadsheets that write 6,8 for 6.8.
        """
        query = _query(kind=kind, format=format, decimal_comma=str(decimal_comma).lower())
        answer = self.client._send("GET", f"{self._path}/export?{query}")
        return answer.content if format == "xlsx" else answer.text

    def import_table(
        self,
        content: bytes | str,
        name: str = "table.csv",
        sheet: str | None = None,
        values: Sequence[str] | None = None,
        seed: int = 0,
        in_order: bool = False,
        check: bool = False,
    ) -> dict[str, Any]:
        """Take in a table of results, a CSV or Excel file, all or nothing; `check`: only look what it would do."""
        flags = {"in_order": str(in_order).lower(), "check": str(check).lower()}
        query = _query(name=name, sheet=sheet, values=values, seed=seed, **flags)
        answer = self.client._send("POST", f"{self._path}/import?{query}", content=content)
        return cast(dict[str, Any], answer.json())


def _query(**given: Any) -> str:
    """The part of an address behind the question mark; what is None is left out."""
    return urlencode({name: value for name, value in given.items() if value is not None}, doseq=True)


def _headers(content: bytes | str | None) -> dict[str, str] | None:
    """What a table is sent as: an Excel file is a zip archive, everything else is text."""
    if content is None:
        return None
    excel = isinstance(content, bytes) and content.startswith(b"PK")
    return {"content-type": _EXCEL if excel else "text/csv"}


def _plain(values: Any) -> Any:
    """Numbers as JSON has them, from a number, a sequence, an array or a Series."""
    return check_real_array(values, "values").tolist()


def _refusal(answer: httpx.Response) -> ServerError:
    try:
        error = answer.json()["error"]
        return ServerError(answer.status_code, error["code"], error["message"], error["field"])
    except (ValueError, KeyError, TypeError):
        what = f"the server answered {answer.status_code} without saying why; is it coterie serve?"
        return ServerError(answer.status_code, "unknown", what)


def _pause(answer: httpx.Response, otherwise: float) -> float:
    """How long to wait: as long as the server says, if it does."""
    said = answer.headers.get("retry-after", "")
    return min(float(said), _LONGEST_PAUSE) if said.isdecimal() else otherwise
