"""A deadline over HTTP, in the client and on the page."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

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
