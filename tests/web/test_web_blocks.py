"""Campaigns with blocks over HTTP, through the client, and on the page."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from page_steps import NAMES, measure, measure_once, new_campaign

import coterie
from coterie.client import Client, ServerError


def test_a_plate_over_http(api: Any) -> None:
    id = new_campaign(api, noise=1.0, blocks="offset")
    path = f"/api/campaigns/{id}"
    missing = api.post(f"{path}/ask", {"worker": "Bob", "n": 3})
    assert (missing.status, missing.error["field"]) == (422, "block")
    answer = api.post(f"{path}/ask", {"worker": "Bob", "n": 6, "block": "plate 1"}).json
    asks = answer["asks"]
    assert (answer["full"], {ask["block"] for ask in asks}) == (False, {"plate 1"})
    first = {"id": "m1", "arm": asks[0]["arm"], "values": measure(asks[0]["name"], 0), "lease": asks[0]["lease"]}
    wrong = api.post(f"{path}/tell", {"measurements": [first | {"block": "plate 2"}]})
    assert (wrong.status, wrong.error["field"]) == (422, "measurements[0].block")
    assert "in block 'plate 1', the result is told of block 'plate 2'" in wrong.error["message"]
    assert api.post(f"{path}/tell", {"measurements": [first | {"block": "plate 1"}]}).json["accepted"] == 1
    assert api.get(path).json["open_blocks"] == ["plate 1"]
    closed = api.post(f"{path}/close-block", {"block": "plate 1"})
    assert closed.json == {"closed": "plate 1", "given_up": len(asks) - 1, "done": False}
    again = api.post(f"{path}/close-block", {"block": "plate 1"})
    assert (again.status, again.error["code"]) == (409, "block_closed")
    odd = api.post("/api/campaigns", {"name": "x", "n_arms": 3, "n_clusters": 2, "dim": 1, "blocks": "plates"})
    assert (odd.status, odd.error["field"]) == (422, "blocks")


def test_the_client_measures_in_plates(api: Any) -> None:
    with Client(api.url, api.token) as client:
        campaign = client.create("plates", NAMES, 3, dim=2, noise=1.0, blocks="offset", strict_blocks=True)
        for plate in range(3):
            block = f"plate {plate}"
            asks = campaign.ask("Bob", 6, block=block)
            assert {ask["block"] for ask in asks} == {block}
            campaign.tell(
                {"arm": ask["arm"], "values": measure(ask["name"], plate), "lease": ask["lease"], "block": block}
                for ask in asks
            )
        assert campaign.status()["measurements"] == 18
        campaign.close_block("plate 0")
        with pytest.raises(ServerError, match="is closed already") as refused:
            campaign.close_block("plate 0")
        assert refused.value.code == "block_closed"


def test_the_client_runs_plate_by_plate_and_the_export_names_them(api: Any, tmp_path: Path) -> None:
    with Client(api.url, api.token) as client:
        campaign = client.create("plate by plate", NAMES, 3, dim=2, noise=1.0, blocks="offset")
        plates, told = [f"plate {plate}" for plate in range(40)], dict.fromkeys(NAMES, 0)

        def measured(name: str) -> Any:
            told[name] += 1
            return measure(name, told[name])

        for plate in plates:
            before = sum(told.values())
            status = campaign.run(measured, "Bob", n=4, block=plate, room=9)
            if status["done"]:
                break
            assert 6 <= sum(told.values()) - before <= 9
            campaign.close_block(plate)
        assert status["done"]
        exported = campaign.export("csv")
    rows = list(csv.DictReader(exported.splitlines()))
    assert list(rows[0])[:3] == ["id", "arm", "block"]
    assert [row["block"] for row in rows] == sorted((row["block"] for row in rows), key=plates.index)
    assert len(rows) == sum(told.values())
    (tmp_path / "m.csv").write_text(exported, encoding="utf-8")
    again = coterie.group(tmp_path / "m.csv", n_clusters=3, blocks="block", noise=1.0)
    assert again.labels is not None
    assert len(again.labels) == len(NAMES)


def test_the_page_names_the_plate_and_remembers_it(opened: Any, api: Any) -> None:
    id = new_campaign(api, noise=1.0, blocks="offset")
    page = opened(f"/campaigns/{id}")
    page.get_by_label("Your name or bench").fill("Ada")
    page.get_by_role("button", name="Give me something to measure").click()
    page.locator("#start-problem").filter(has_text="Say where you measure").wait_for()
    page.get_by_label("Plate, day or rater").fill("plate 7")
    page.get_by_role("button", name="Give me something to measure").click()
    page.locator("#result").wait_for()
    assert page.locator("#where").inner_text() == "plate 7"
    assert measure_once(page, 0)
    assert measure_once(page, 1)
    status = api.get(f"/api/campaigns/{id}").json
    assert (status["measurements"], status["open_blocks"]) == (2, ["plate 7"])
    page.get_by_role("button", name="It is finished").click()
    page.locator("#said").filter(has_text="plate 7 is closed.").wait_for()
    assert api.get(f"/api/campaigns/{id}").json["open_blocks"] == []
    page.reload()
    assert page.get_by_label("Plate, day or rater").input_value() == "plate 7"
    page.get_by_role("button", name="Give me something to measure").click()
    page.locator("#start-problem").filter(has_text="is closed").wait_for()


def test_a_new_campaign_on_the_page_may_have_plates(opened: Any, api: Any) -> None:
    page = opened("/new")
    assert page.locator("#blocks option").count() == 3
    without = new_campaign(api)
    page.goto(f"/campaigns/{without}")
    assert page.locator("#block").count() == 0
