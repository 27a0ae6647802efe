"""Items join and retire, more groups, a smaller δ: over HTTP, from Python, and in the owner's form on the page."""

from __future__ import annotations

import os
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from page_steps import NAMES, new_campaign

from coterie.client import Client

PHONE = {"width": 375, "height": 700}


def problems(page: Any) -> list[str]:
    return [one["id"] for one in Axe().run(page).response["violations"]]


def test_revisions_over_http(api: Any) -> None:
    id = new_campaign(api)
    made = api.post(f"/api/campaigns/{id}/items", {"add": ["lychee"], "reason": "a new box"})
    assert made.status == 200
    assert made.json["items"] == len(NAMES) + 1
    assert api.post(f"/api/campaigns/{id}/retire", {"retire": [NAMES[0]]}).json["retired"] == [NAMES[0]]
    assert api.post(f"/api/campaigns/{id}/delta", {"delta": 1e-3}).json["delta"] == 1e-3
    status = api.get(f"/api/campaigns/{id}").json
    assert status["names"][-1] == "lychee"
    assert [one["name"] for one in status["retired"]] == [NAMES[0]]
    for path, body, field in (
        ("items", {"add": ["lychee"]}, "add"),
        ("retire", {"retire": ["melon"]}, "retire"),
        ("clusters", {"n_clusters": 1}, "n_clusters"),
        ("delta", {"delta": 0.5}, "delta"),
    ):
        refused = api.post(f"/api/campaigns/{id}/{path}", body)
        assert (refused.status, refused.error["field"]) == (422, field)
    with Client(api.url, api.token) as client:
        fruit = client.campaign(id)
        assert fruit.raise_clusters(status["n_clusters"] + 1)["n_clusters"] == status["n_clusters"] + 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_owner_revises_on_the_page(opened: Any, api: Any, scheme: str) -> None:
    id = new_campaign(api)
    page = opened(f"/campaigns/{id}#part-settings", viewport=PHONE if scheme == "dark" else None, color_scheme=scheme)
    summary = page.locator("#revise summary")
    summary.focus()
    page.keyboard.press("Enter")  # by keyboard
    page.get_by_label("Items that are retired").fill(NAMES[0])
    page.get_by_label("Items that join").fill("lychee\nmedlar")
    assert problems(page) == []
    if os.environ.get("SHOTS"):
        page.screenshot(path=f"{os.environ['SHOTS']}/revise-{scheme}.png", full_page=True)
    with page.expect_navigation():  # the form comes anew, with what is asked for now
        page.get_by_role("button", name="Change it").press("Enter")
    page.locator("#retired").filter(has_text=NAMES[0]).wait_for()
    status = api.get(f"/api/campaigns/{id}").json
    assert status["names"][-2:] == ["lychee", "medlar"]
    page.locator("#revise summary").click()
    page.get_by_label("Error probability").fill("0.9")
    page.get_by_role("button", name="Change it").click()
    page.locator("#revise-problem").filter(has_text="can only be lowered").wait_for()
