"""Campaigns with features over HTTP, through the client, and on the page."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from page_steps import NAMES

from coterie.client import Client, ServerError
from coterie.web.log_content import log_rows
from coterie.web.page_content import cell_table
from coterie.web.rendering import feature_name

BLOOD: dict[str, Any] = {"features": ["ph", "iron", "zinc"], "panels": {"blood": ["iron", "zinc"]}}


def begun(api: Any, **more: Any) -> str:
    body = {"name": f"by feature {len(more)}", "n_arms": len(NAMES), "n_clusters": 3, "names": list(NAMES)}
    created = api.post("/api/campaigns", body | {"noise": 1.0, "holes": "at random"} | BLOOD | more)
    assert created.status == 201, created.json
    return str(created.json["id"])


def test_asks_and_results_by_feature(api: Any) -> None:
    id = begun(api)
    path = f"/api/campaigns/{id}"
    ask = api.post(f"{path}/ask", {"worker": "Ada", "n": 1}).json["asks"][0]
    assert ask["feature"] in ("ph", "blood")
    told = {"id": "1", "arm": ask["arm"], "values": [1.0] * len(ask["values"]), "lease": ask["lease"]}
    assert api.post(f"{path}/tell", {"measurements": [told]}).json["accepted"] == 1
    by_name = {"id": "2", "arm": 0, "values": {"iron": 3.1}}
    assert api.post(f"{path}/tell", {"measurements": [by_name]}).json["accepted"] == 1
    odd = api.post(f"{path}/tell", {"measurements": [{"id": "3", "arm": 0, "values": [1.0], "feature": "tin"}]})
    assert (odd.status, odd.error["field"]) == (422, "measurements[0].feature")
    seen = api.get(f"{path}/cells").json
    assert {column["name"] for column in seen["features"]} >= {"iron"}
    assert api.get(f"{path}/picture").status == 409
    corrected = api.post(f"{path}/corrections", {"measurement": "2", "values": {"zinc": 2.0}, "reason": "swapped"})
    assert corrected.json["values"] == [None, 2.0]
    assert api.get(f"/campaigns/{id}").status == 200


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"features": ["ph", "ph"]}, "features"),
        ({"features": {"ph": 1}}, "features"),
        ({"features": {"names": ["a", "b"], "panels": [["x", [0]]]}}, "features"),
        ({"panel_costs": {"serum": 1}}, "panel_costs"),
        ({"holes": "mine"}, "holes"),
        ({"features": None}, "dim"),
    ],
)
def test_features_that_cannot_be_are_named(api: Any, more: dict[str, Any], field: str) -> None:
    body = {"name": "odd", "n_arms": 4, "n_clusters": 2, "noise": 1.0} | BLOOD | more
    if (more.get("features") is None and "features" in more) or isinstance(more.get("features"), dict):
        body |= {"panels": None}
    odd = api.post("/api/campaigns", body)
    assert (odd.status, odd.error["field"]) == (422, field)


def test_the_client_measures_by_feature(api: Any) -> None:
    with Client(api.url, api.token) as client:
        campaign = client.create("client by feature", NAMES, 3, noise=1.0, holes="at random", **BLOOD)
        asks = campaign.ask("Bob", 2)
        campaign.tell({"arm": ask["arm"], "values": [1.0] * len(ask["values"]), "lease": ask["lease"]} for ask in asks)
        campaign.tell([{"arm": 0, "values": {"iron": 1.0, "zinc": None}}])
        assert campaign.status()["measurements"] == 3
        assert campaign.cells()["measured"] >= 2
        with pytest.raises(ServerError, match="there is no feature 'tin'"):
            campaign.tell([{"arm": 0, "values": {"tin": 1.0}}])


def test_the_page_has_a_field_for_each_number_of_the_ask(opened: Any, api: Any) -> None:
    id = begun(api, panels=None, features=["ph", "iron"])
    page = opened(f"/campaigns/{id}")
    page.get_by_label("Your name or bench").fill("Ada")
    page.get_by_role("button", name="Give me something to measure").click()
    page.locator("#result").wait_for()
    feature = page.locator("#feature").inner_text()
    assert feature in ("ph", "iron")
    page.get_by_label(feature, exact=True).fill("6.5")
    page.get_by_role("button", name="Save result").click()
    page.locator("#said").filter(has_text="Saved 6.5").wait_for()
    row = api.get(f"/api/campaigns/{id}/measurements").json["measurements"][0]
    assert (row["feature"], row["values"]) == (feature, [6.5])
    page.locator("#cells").wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    found = Axe().run(page).response["violations"]
    assert not found, [(one["id"], one["nodes"][0]["html"]) for one in found]


def test_a_campaign_by_feature_is_created_on_the_page(opened: Any, api: Any) -> None:
    page = opened("/new")
    page.get_by_label("Name", exact=True).fill("assays")
    page.locator("#names").fill("a, b, c, d")
    page.locator("#n_clusters").fill("2")
    page.locator("#dim").fill("2")
    page.locator("#value_names").fill("ph, iron")
    page.get_by_label("A measurement gives").select_option("one")
    page.locator("#noise_kind").select_option("symmetric")
    page.get_by_role("button", name="Create campaign").click()
    page.locator("#noise_kind-problem").filter(has_text="features are measured one by one").wait_for()
    page.locator("#noise_kind").select_option("any")
    page.get_by_role("button", name="Create campaign").click()
    page.locator("#measure").wait_for()
    id = page.url.rsplit("/", 1)[1]
    assert api.get(f"/api/campaigns/{id}").json["features"]["names"] == ["ph", "iron"]


def test_features_without_names_are_called_by_their_numbers() -> None:
    event = {"seq": 1, "at": "2026-01-01T00:00:00Z", "kind": "asked", "name": "a", "feature": "7", "worker": "w"}
    assert [row["text"] for row in log_rows([event | {"values": []}])] == ["feature 7 of a"]
    assert feature_name("ph") == "ph"


def test_found_features_are_coloured_by_their_means_and_others_by_results() -> None:
    cells = {
        "features": [{"name": "iron", "found": True}, {"name": "ph", "found": False}],
        "items": [{"arm": arm, "name": f"sample {arm}", "group_id": 1 + arm // 2} for arm in range(4)],
        "cells": [[0, 0, 2, 1.0], [1, 0, 1, 2.0], [2, 0, 1, 9.0], [0, 1, 1, 5.0], [3, 1, 30, 5.0]],
        "groups": [{"id": 1, "size": 2, "means": [1.3, 5.0]}, {"id": 2, "size": 2, "means": [9.0, None]}],
        "touched": 2,
    }
    rows = {row["name"]: row["cells"] for row in cell_table(cells)["rows"]}
    shades = {name: [cell["shade"] if cell else None for cell in row] for name, row in rows.items()}
    assert shades == {
        "group 1, 2 items": ["", ""], "sample 0": ["h0", "n1"], "sample 1": ["h0", None],
        "group 2, 2 items": ["", None], "sample 2": ["h4", None], "sample 3": [None, "n3"],
    }  # fmt: skip
