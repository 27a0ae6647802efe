"""A server, as programs on other machines see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import quote

from coterie.client.answers import Summary
from coterie.client.campaign import RemoteCampaign
from coterie.client.connection import Connection, query_of
from coterie.problem.families import noise_of
from coterie.problem.features import Features
from coterie.problem.question import Resolution
from coterie.problem.settings import DELTA, METHOD, checked


class Client(Connection):
    """A server, and the token with which it is spoken to. Use it in a `with` block, or `close` it.

    Parameters
    ----------
    url : str
        The address of `coterie serve`.
    token : str, optional
        The environment's `COTERIE_TOKEN` if none is given.
    timeout : float
        Seconds for one answer.
    retries : int
        After no answer a request that can safely be sent twice is sent again so many times, with growing pauses; so is
        every request that the server puts off (503, 429).

    Examples
    --------
    >>> import coterie
    >>> with coterie.client.Client("http://127.0.0.1:8000", token="secret") as client:
    ...     campaign = client.campaign("5f0c7c0a1c9d4b7f8e21a3d4")  # nothing is sent yet
    """

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def campaigns(self, search: str = "", archived: bool = False, after: str = "", limit: int = 1000) -> list[Summary]:
        """All campaigns, oldest first.

        Parameters
        ----------
        search : str
            Only those with this in their name.
        archived : bool
            Those that were put away too.
        after : str
            Only those that follow a page whose `next` this was.
        limit : int
            They are fetched in pages of so many.

        Returns
        -------
        list of Summary
            Dictionaries.
        """
        summaries: list[Summary] = []
        while True:
            asked = f"limit={limit}&search={quote(search, safe='')}&archived={str(archived).lower()}"
            page = self.request("GET", f"/api/campaigns?{asked}&after={quote(after, safe='')}")
            summaries += page["campaigns"]
            if page["next"] is None:
                return summaries
            after = page["next"]

    def read_items(
        self, content: bytes | str, name: str = "items.csv", sheet: str | None = None, kind: str = "file"
    ) -> dict[str, Any]:
        """The items in a table, as the server understands them.

        Parameters
        ----------
        content : bytes or str
            A CSV or Excel file, or a text.
        name, sheet : str
            What the file is called, and the sheet of an Excel file.
        kind : {"file", "pasted"}
            A file, or a text that was pasted.

        Returns
        -------
        dict
            `count`, `names`, `costs` and `remarks`.
        """
        query = query_of(name=name, sheet=sheet, kind=kind)
        return cast(dict[str, Any], self.send("POST", f"/api/items?{query}", content=content).json())

    def campaign(self, id: str) -> RemoteCampaign:
        """A campaign by its id; whether there is one is seen at the first request."""
        return RemoteCampaign(self, id)

    def create(
        self,
        name: str,
        items: int | Sequence[str],
        n_clusters: int | None = None,
        *,
        dim: int | None = None,
        resolution: Any = None,
        groups: str | None = None,
        noise: Any = None,
        delta: float = DELTA,
        method: str = METHOD,
        value_names: Sequence[str] | None = None,
        lease_seconds: float | None = None,
        on_expiry: str | None = None,
        pass_on: float | None = None,
        threshold: str | None = None,
        distance_ratio: float | None = None,
        costs: Sequence[float] | None = None,
        cost_unit: str | None = None,
        confirm: float | None = None,
        blocks: str | None = None,
        strict_blocks: bool | None = None,
        features: int | Sequence[str] | None = None,
        feature_costs: Any = None,
        panels: Any = None,
        panel_costs: Any = None,
        holes: str | None = None,
        deadline: float | None = None,
    ) -> RemoteCampaign:
        """Create a campaign. It is not sent twice after no answer: look at `campaigns`.

        Parameters
        ----------
        name : str
            What people call it.
        items : int or sequence of str
            Their names, or how many there are.
        n_clusters, dim, resolution, groups, noise, delta, method, threshold, distance_ratio, costs, cost_unit, \
confirm, blocks, strict_blocks, features, feature_costs, panels, panel_costs, holes, deadline
            As in `coterie.Session`.
        value_names : sequence of str, optional
            What the numbers of a measurement are called.
        lease_seconds, on_expiry, pass_on : optional
            How long a worker may take, what happens to asks that expire, and when an ask that everybody waits for is
            asked of somebody else (docs/SERVER.md). What is left out, the server decides.

        Returns
        -------
        RemoteCampaign
            The campaign.
        """
        named = not isinstance(items, int)
        measured = Features.of(features, feature_costs, panels, panel_costs, holes) if features is not None else None
        if measured is None and dim is None:
            dim = 1
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
            body["noise"] = checked("noise", noise_of, noise, dim if measured is None else measured.dim).to_json()
        if resolution is not None:
            body |= checked("resolution", Resolution.of, resolution).to_json()
        further = {
            "groups": groups,
            "value_names": None if value_names is None else list(value_names),
            "lease_seconds": lease_seconds,
            "on_expiry": on_expiry,
            "pass_on": pass_on,
            "threshold": threshold,
            "distance_ratio": distance_ratio,
            "costs": None if costs is None else [float(cost) for cost in costs],
            "cost_unit": cost_unit,
            "confirm": confirm,
            "blocks": blocks,
            "strict_blocks": strict_blocks,
            "deadline": deadline,
            "features": None if measured is None else measured.to_json(),
        }
        body |= {key: value for key, value in further.items() if value is not None}
        return RemoteCampaign(self, str(self.request("POST", "/api/campaigns", body, repeatable=False)["id"]))
