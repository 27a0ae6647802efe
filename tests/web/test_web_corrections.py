"""Correcting a result over HTTP and on the page: the button, its dialog, by keyboard, on a phone, in the dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from page_steps import NAMES, measure, new_campaign

from coterie.client import Client, ServerError


def violations(page: Any) -> list[str]:
    """What axe-core finds wrong with the page for people who do not see it, or see it badly."""
    return [one["id"] for one in Axe().run(page).response["violations"]]


def started(api: Any) -> str:
    id = new_campaign(api)
    api.tell(id, *({"id": f"m{k}", "arm": k % 6, "values": measure(NAMES[k % 6], k)} for k in range(9)))
    return id


def test_over_http(api: Any) -> None:
    id = started(api)
    path = f"/api/campaigns/{id}/corrections"
    body = {"id": "c1", "measurement": "m3", "values": [0.25, 0.5], "reason": "typed wrong", "by": "ann"}
    answer = api.post(path, body)
    assert answer.status == 200, answer.content
    assert answer.json["corrected"]
    assert answer.json["old"] == measure(NAMES[3], 3)
    assert api.post(path, body).json["corrected"] is False
    for wrong, status, field in (
        ({"measurement": "nobody"}, 404, "measurement"),
        ({"values": ["x"]}, 422, "values"),
        ({"reason": ""}, 422, "reason"),
        ({"values": [0.0, 0.0]}, 409, "id"),
    ):
        refused = api.post(path, body | wrong)
        assert refused.status == status, refused.content
        assert refused.error["field"] == field
    far = {"id": "far", "arm": 0, "values": [500.0, 0.0]}
    asked = api.post(f"/api/campaigns/{id}/tell", {"measurements": [far], "confirm": False})
    assert (asked.status, asked.error["code"]) == (409, "far_off")
    assert asked.error["message"].endswith("Save it anyway?")
    assert api.post(f"/api/campaigns/{id}/tell", {"measurements": [far], "confirm": True}).json["accepted"] == 1
    with Client(api.url, api.token) as client:
        remote = client.campaign(id)
        assert remote.correct("far", [0.1, 0.2], "two zeros too many", "bob")["corrected"]
        with pytest.raises(ServerError) as found:
            remote.tell([{"arm": 0, "values": [500.0, 0.0]}], confirm=False)
        assert found.value.code == "far_off"
    assert [one["by"] for one in api.get(f"/api/campaigns/{id}").json["corrections"]] == ["ann", "bob"]


@pytest.mark.parametrize("size", [{"width": 1280, "height": 900}, {"width": 375, "height": 700}])
def test_the_button_opens_a_dialog_that_corrects(opened: Any, api: Any, tmp_path: Path, size: dict[str, int]) -> None:
    id = started(api)
    page = opened(f"/campaigns/{id}#part-log", viewport=size, color_scheme="dark" if size["width"] < 500 else "light")
    row = page.locator("tr.event-told").first
    told = row.locator(".number").inner_text().split(" Correct")[0]
    button = row.get_by_role("button", name="Correct")
    button.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Correct a result")
    dialog.wait_for()
    assert told.split(",")[0] in dialog.inner_text()
    assert dialog.get_by_label("What was measured").input_value() == " ".join(map(repr, measure(NAMES[2], 8)))
    box = dialog.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size["width"]
    page.screenshot(path=tmp_path / f"dialog-{size['width']}.png")
    assert violations(page) == []
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    button.click()
    dialog.get_by_label("What was measured").fill("0.125 oops")
    page.keyboard.press("Enter")
    dialog.get_by_text("“oops” is not a number.").wait_for()
    dialog.get_by_label("What was measured").fill("0.125 0.25")
    page.keyboard.press("Enter")
    dialog.get_by_text("Say why it was wrong.").wait_for()
    dialog.get_by_label("Why was it wrong?").fill("typed wrong")
    page.keyboard.press("Enter")
    dialog.wait_for(state="hidden")
    page.locator("tr.event-correction").first.filter(has_text="0.125; 0.25, told was").wait_for()
    page.screenshot(path=tmp_path / f"corrected-{size['width']}.png", full_page=True)
    assert api.get(f"/api/campaigns/{id}").json["corrections"][0]["new"] == [0.125, 0.25]
    log = opened(f"/campaigns/{id}/log", viewport=size)
    assert log.get_by_role("button", name="Correct").count() == 9
    assert violations(log) == []
