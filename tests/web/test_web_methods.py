"""Methods and settings at the HTTP interface and on the page; how often a page reads the store."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from coterie.campaign import Campaigns
from coterie.methods import METHODS, Method, register, unregister
from coterie.web import create_app
from coterie.web.access import Access, hash_of


class RecordedStore:
    """A store that keeps the names of the functions that were called."""

    def __init__(self, store: Campaigns) -> None:
        self.store = store
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self.store, name)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Campaigns]:
    with Campaigns(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def own() -> Iterator[Method]:
    yield register(Method("own-rule", "takes <every> item in turn", METHODS["uniform"].start))
    unregister("own-rule")


def requested(store: Any, *requests: tuple[str, str, Any]) -> list[httpx.Response]:
    """The answers to (method, path, body), as somebody who may write."""

    async def run() -> list[httpx.Response]:
        transport = httpx.ASGITransport(create_app(store, Access({hash_of("secret"): "write"})))
        headers = {"Authorization": "Bearer secret", "Accept": "text/html"}
        async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers) as client:
            return [await client.request(method, path, json=body) for method, path, body in requests]

    return asyncio.run(run())


def test_a_page_reads_the_store_once(store: Campaigns) -> None:
    ids = [store.create(name, 3, 2, 1, method="uniform", noise=1.0)["id"] for name in ("first", "second")]
    store.tell(ids[0], [{"id": str(i), "arm": i % 3, "values": [float(i % 3)]} for i in range(9)])
    recorded = RecordedStore(store)
    for path, calls, shown in (
        (f"/campaigns/{ids[0]}", ["overview", "page"], "first"),  # the former reads one row, not the campaign
        (f"/campaigns/{ids[0]}/live", ["page"], "groups so far: a guess"),
        (f"/campaigns/{ids[1]}/log", ["newest_events"], "second"),
        ("/", ["list_page"], "second"),
    ):
        recorded.calls.clear()
        (answer,) = requested(recorded, ("GET", path, None))
        assert answer.status_code == 200, answer.text
        assert shown in answer.text
        assert [name for name in recorded.calls if name != "tokens"] == calls, path


def test_what_a_page_shows_is_of_one_moment(store: Campaigns) -> None:
    id = store.create("x", 3, 2, 1, method="uniform", noise=1.0)["id"]
    store.tell(id, [{"id": str(i), "arm": i % 3, "values": [float(i % 3)]} for i in range(40)])
    seen = store.page(id, 300, 10)
    assert seen["status"] == store.status(id)
    assert seen["history"] == store.history(id, 300)
    assert seen["events"] == store.events(id, store.latest(id) - 10, 10)["events"]
    assert [event["seq"] for event in seen["events"]][-1] == seen["status"]["seq"] == store.latest(id)


def test_pages_of_the_log_cover_it(store: Campaigns) -> None:
    id = store.create("x", 3, 2, 1, method="uniform", noise=1.0)["id"]
    nothing = {"id": id, "name": "x", "dim": 1, "events": [], "first": 1, "last": 0, "newest": 0}
    assert store.newest_events(id) == nothing
    store.tell(id, [{"id": str(i), "arm": i % 3, "values": [float(i % 3)]} for i in range(20)])
    found: list[Any] = []
    before = None
    while before is None or before > 1:
        page = store.newest_events(id, before, 7)
        assert page["newest"] == store.latest(id)
        found = page["events"] + found
        before = page["first"]
    assert found == store.events(id)["events"]


def test_a_page_of_an_unknown_campaign_is_not_found(store: Campaigns) -> None:
    for path in ("/campaigns/nothing", "/campaigns/nothing/live", "/campaigns/nothing/log"):
        assert requested(store, ("GET", path, None))[0].status_code == 404


def test_the_form_offers_the_methods_of_the_table(store: Campaigns, own: Method) -> None:
    (answer,) = requested(store, ("GET", "/new", None))
    select = answer.text.partition('<select id="method"')[2].partition("</select>")[0]
    offered = [one for one in METHODS.values() if not one.needs and not one.simulates_only]
    assert own in offered
    assert re.findall(r'<option value="([^"]+)"', select) == [one.name for one in offered]
    assert re.findall(r'<option value="([^"]+)" selected', select) == ["croc"]
    assert "own-rule: takes &lt;every&gt; item in turn" in answer.text
    assert "not for croc, shortlist)" in answer.text


def test_the_description_lists_methods_registered_since(store: Campaigns) -> None:
    app = create_app(store, Access({}))

    def described() -> str:
        found = app.openapi()["components"]["schemas"]["NewCampaign"]["properties"]["method"]
        assert found["default"] == "croc"
        return str(found["description"])

    assert "own-rule" not in described()
    register(Method("own-rule", "somebody's", METHODS["uniform"].start))
    try:
        assert "own-rule: somebody's" in described()
    finally:
        unregister("own-rule")
    assert "own-rule" not in described()


def test_the_field_of_an_error_is_that_of_the_exception(store: Campaigns) -> None:
    body = {"name": "x", "n_arms": 2, "n_clusters": 2, "dim": 1}
    for change, field in (
        ({"n_arms": 3, "names": ["method", "method", "delta"]}, "names"),
        ({"n_arms": 3, "method": "delta"}, "method"),
        ({"n_arms": 3, "threshold": "noise"}, "threshold"),
        ({"n_arms": 3, "method": "oracle"}, "method"),
        ({}, "n_clusters"),
    ):
        (answer,) = requested(store, ("POST", "/api/campaigns", body | change))
        assert (answer.status_code, answer.json()["error"]["field"]) == (422, field), answer.text


@pytest.mark.parametrize(("method", "certifies"), [("croc", True), ("uniform", False)])
def test_the_status_says_whether_the_method_certifies(store: Campaigns, method: str, certifies: bool) -> None:
    id = store.create("x", 3, 2, 1, method=method, noise=1.0)["id"]
    (answer,) = requested(store, ("GET", f"/api/campaigns/{id}", None))
    assert answer.json()["certifies"] is certifies
