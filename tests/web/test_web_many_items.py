"""A campaign with very many items: answers and pages stay small, and the items come page by page."""

from __future__ import annotations

import time
from typing import Any

C = "/api/campaigns"
MANY = 100_001


def test_answers_about_very_many_items_are_bounded(server: Any) -> None:
    id = server.api.create(n_arms=MANY, dim=1)
    told = [{"id": str(k), "arm": 99_995 + k, "values": [float(k)]} for k in range(3)]
    assert server.api.post(f"{C}/{id}/tell", {"measurements": told}).json["accepted"] == 3
    answer = server.api.get(f"{C}/{id}")
    status = answer.json
    assert len(answer.content) < 20_000
    assert status["cut"] is True
    assert [status[key] for key in ("pulls", "labels", "names")] == [None] * 3
    assert status["n_arms"] == MANY
    assert status["pulls_summary"] == {"least": 0, "median": 0.0, "most": 1}
    page = server.api.get(f"{C}/{id}/items?after=99990&limit=8").json
    assert [one["arm"] for one in page["items"]] == list(range(99_990, 99_998))
    assert [one["measurements"] for one in page["items"]] == [0] * 5 + [1] * 3
    assert page["items"][0] == {
        "arm": 99_990, "name": "99990", "measurements": 0, "group_id": None, "retired": False,
    }  # fmt: skip
    last = server.api.get(f"{C}/{id}/items?after={page['next']}").json
    assert [one["arm"] for one in last["items"]] == [99_998, 99_999, 100_000]
    assert last["next"] is None
    assert server.api.get(f"{C}/{id}/items?after=500000").json == {"items": [], "next": None}
    begun = time.process_time()
    for path in (f"/campaigns/{id}", f"/campaigns/{id}/live", f"/campaigns/{id}/print"):
        shown = server.api.get(path, headers={"Accept": "text/html"})
        assert shown.status == 200
        assert len(shown.content) < 200_000
        assert b"100,001" in shown.content or b"100\xe2\x80\xaf001" in shown.content
    assert time.process_time() - begun < 5.0


def test_a_status_of_fewer_items_has_them_all(server: Any) -> None:
    id = server.api.create()
    status = server.api.get(f"{C}/{id}").json
    assert status["cut"] is False
    assert status["named"] is False
    assert status["pulls"] == [0] * 6
    assert [one["arm"] for one in server.api.get(f"{C}/{id}/items").json["items"]] == list(range(6))


def test_more_items_than_a_campaign_may_have_are_refused(server: Any) -> None:
    body = {"name": "too many", "n_arms": 1_000_001, "n_clusters": 3, "dim": 2, "noise": 1.0}
    refused = server.api.post(C, body)
    assert (refused.status, refused.error["field"]) == (422, "n_arms")
    assert "at most 1000000" in refused.error["message"]
