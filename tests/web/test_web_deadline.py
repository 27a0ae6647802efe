"""A deadline over HTTP, in the client and on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import coterie

C = "/api/campaigns"
LEVELS = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0]
SHAPE: dict[str, Any] = {"n_arms": 9, "n_clusters": 3, "dim": 1, "noise": 0.5, "delta": 0.01}


def read(arm: int, k: int) -> float:
    return LEVELS[arm] + 0.5 * float(np.random.default_rng([arm, k]).standard_normal())


def measured(api: Any, most: int, **more: Any) -> str:
    """A campaign in which so much was measured of what was asked for."""
    id = str(api.create(**SHAPE, **more))
    for k in range(most):
        (ask,) = api.ask(id)
        assert api.tell(id, {"id": f"m{k}", "arm": ask["arm"], "values": [read(ask["arm"], k)]}).status == 200
    return id


def tell(api: Any, id: str, ask: dict[str, Any], k: int) -> None:
    one = {"id": f"m{k}", "arm": ask["arm"], "values": [read(ask["arm"], k)], "lease": ask["lease"]}
    assert api.tell(id, one).status == 200


def tell_what_is_asked(api: Any, id: str, most: int) -> list[dict[str, Any]]:
    """Measure so often; what is asked for next."""
    for k in range(most):
        (ask,) = api.ask(id)
        tell(api, id, ask, k)
    return list(api.ask(id))


def test_deadline_over_http(api: Any) -> None:
    id = measured(api, 30, deadline=30)
    answer = api.post(f"{C}/{id}/ask", {"worker": "w", "n": 2}).json
    assert (answer["asks"], answer["done"], answer["deadline_reached"]) == ([], False, True)
    status = api.get(f"{C}/{id}").json
    assert (status["deadline"], status["deadline_used"], status["deadline_left"]) == (30, 30, 0)
    handed = api.get(f"{C}/{id}/partial").json["handover"]
    assert handed["left"] == 0
    assert handed["misplaced_at_least"] > 0
    kept = json.loads(api.get(f"{C}/{id}/export?kind=partial").content)
    assert kept["by"] == "partial"
    for wrong in (29, 0, -1):
        answer = api.post(f"{C}/{id}/deadline", {"deadline": wrong})
        assert (answer.status, answer.error["field"]) == (422, "deadline"), wrong
    answer = api.post(f"{C}/{id}/deadline", {"deadline": 32, "reason": "two more"})
    assert (answer.status, answer.json["deadline"]) == (200, 32)
    assert len(api.ask(id, n=5)) == 2
    refused = api.post(C, {"name": "short", **SHAPE, "deadline": 8})
    assert (refused.status, refused.error["field"]) == (422, "deadline")
    refused = api.post(f"{C}/{api.create()}/deadline", {"deadline": 100})
    assert (refused.status, refused.error["field"]) == (422, "deadline")
    assert "deadline" not in api.get(f"{C}/{api.create()}").json


def test_page_shows_what_is_left_and_the_guess(opened: Any, api: Any) -> None:
    id = measured(api, 20, deadline=30)
    page = opened(f"/campaigns/{id}")
    assert "20 of 30 used, 10 left" in page.locator("#deadline-words").inner_text()
    assert page.locator("#deadline svg").get_attribute("aria-valuenow") == "20.0"
    id = measured(api, 25, deadline=25)
    page = opened(f"/campaigns/{id}")
    assert "The deadline is reached" in page.locator("#deadline-words").inner_text()
    page.locator("nav.parts a[data-to=letters]").click()
    page.locator("#proven:not([aria-busy])").wait_for()
    assert "25 of 25 used" in page.locator("#handover").inner_text()
    assert page.locator("#letters td .quiet", has_text="guess: ").count() > 0
    assert page.locator("#deadline-words").is_visible()


def test_page_hands_over_at_the_deadline_and_goes_on_with_a_later_one(opened: Any, api: Any, tmp_path: Path) -> None:
    page = opened("/new")
    page.get_by_label("Name", exact=True).fill(f"until Friday {tmp_path.name}")
    page.get_by_label("Their names, one on each line").fill("\n".join(f"supplier {i}" for i in range(9)))
    page.get_by_label("Groups").fill("3")
    page.get_by_label("What do you know about the noise?").select_option("known")
    page.get_by_label("Standard deviation", exact=True).fill("0.5")
    page.get_by_text("More settings").click()
    page.get_by_label("Deadline").fill("soon")
    page.get_by_role("button", name="Create campaign").click()
    page.locator("#deadline-problem").filter(has_text="“soon” is not a number").wait_for()
    page.get_by_label("Deadline").fill("25")
    page.get_by_role("button", name="Create campaign").click()
    page.wait_for_url("**/campaigns/*")
    id = page.url.rpartition("/")[2]
    (last,) = tell_what_is_asked(api, id, 24)
    page.locator("#deadline-words").filter(has_text="25 of 25 used").wait_for()
    assert page.locator("#measure").is_visible(), "one result is still to come"
    tell(api, id, last, 24)
    page.get_by_role("heading", name="Handed over at the deadline").wait_for()
    page.locator("#measure").wait_for(state="hidden")
    groups, picture = (page.locator(part).bounding_box() for part in (".groups-card", ".picture-card"))
    assert groups["y"] + groups["height"] <= picture["y"], "what is handed over stands first"
    with page.expect_download() as download:
        page.locator("#partial-certificate").click()
    download.value.save_as(tmp_path / "certificate.json")
    (tmp_path / "log.csv").write_bytes(api.get(f"{C}/{id}/export?kind=log").content)
    assert coterie.verify(tmp_path / "certificate.json", tmp_path / "log.csv").valid
    page.get_by_role("link", name="Settings").last.click()
    page.locator("#revise summary").click()
    page.get_by_label("Deadline, now 25").fill("30")
    page.get_by_role("button", name="Change it").click()
    page.locator("nav.parts a[data-to=now]").click()
    page.locator("#measure").wait_for()
    assert "25 of 30 used" in page.locator("#deadline-words").inner_text()
