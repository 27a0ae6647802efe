"""Costs per item over HTTP and on the page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie.campaign import Campaigns
from coterie.web import create_app
from coterie.web.access import Access, hash_of
from coterie.web.page_content import spent

C = "/api/campaigns"
SHAPE = {"name": "x", "n_arms": 3, "n_clusters": 2, "dim": 1, "noise": 1.0}


def requested(store: Campaigns, *requests: tuple[str, str, Any]) -> list[httpx.Response]:
    """The answers to (method, path, body), as somebody who may write."""

    async def run() -> list[httpx.Response]:
        transport = httpx.ASGITransport(create_app(store, Access({hash_of("secret"): "write"})))
        headers = {"Authorization": "Bearer secret", "Accept": "text/html"}
        async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers) as client:
            return [await client.request(method, path, json=body) for method, path, body in requests]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"costs": [1, 2]}, "costs"),
        ({"costs": [1, 0, 1]}, "costs"),
        ({"costs": [1, -3, 1]}, "costs"),
        ({"costs": "dear"}, "costs"),
        ({"costs": [1, "x", 1]}, "costs"),
        ({"costs": 7}, "costs"),
        ({"costs": [1, 2, 3], "method": "boc"}, "costs"),
        ({"cost_unit": "EUR"}, "cost_unit"),
    ],
)
def test_bad_costs_are_refused(tmp_path: Path, wrong: dict[str, Any], field: str) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        (answer,) = requested(store, ("POST", C, SHAPE | wrong))
        assert answer.status_code in (400, 422), answer.text
        assert answer.json()["error"]["field"] == field, answer.text
        assert store.list() == []


def test_costs_are_taken_and_shown(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        (made,) = requested(store, ("POST", C, SHAPE | {"costs": [1, 1, 20.5], "cost_unit": "EUR"}))
        assert made.status_code == 201, made.text
        id = made.json()["id"]
        for ask in store.ask(id, "ann", 3)["asks"]:
            store.tell(id, [{"id": ask["lease"], "arm": ask["arm"], "values": [0.0], "lease": ask["lease"]}])
        status, page = requested(store, ("GET", f"{C}/{id}", None), ("GET", f"/campaigns/{id}", None))
        assert (status.json()["cost"], status.json()["costs"]) == (22.5, [1.0, 1.0, 20.5])
        assert "Spent so far: 22.5 EUR" in page.text


def test_what_is_expected_to_be_spent_is_as_rough_as_the_forecast() -> None:
    status: dict[str, Any] = {"cost": 28.0, "cost_unit": "EUR", "cost_left": 445.69, "done": False, "t": 100}
    known = status | {"forecast": 30.0, "forecast_low": 25.0, "forecast_high": 40.0}
    assert spent(known) == "Spent so far: 28 EUR, about 450 EUR more expected."
    assert spent(status | {"forecast": 200.0, "forecast_low": 30.0, "forecast_high": 400.0}) == "Spent so far: 28 EUR."
