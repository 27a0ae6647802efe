"""`GET /api/campaigns/{id}/budget`, the fields of the status, and the client."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.client import Client, ServerError


def test_progress_forecast_and_budget_over_http(api: Any) -> None:
    with Client(api.url, api.token) as client:
        campaign = client.create("what can I prove with 30 more", 4, 2, noise=1.0)
        status = campaign.status()
        assert status["progress"]["needed"] == 4
        assert (status["forecast"], status["forecast_low"], status["forecast_high"]) == (None, None, None)
        for place in range(8):
            (ask,) = campaign.ask("w")
            campaign.tell([{"arm": ask["arm"], "values": 0.4 * place + ask["arm"] % 2, "lease": ask["lease"]}])
        now: dict[str, Any] = dict(campaign.status())
        found = campaign.budget(30)
        if not now["done"]:
            assert now["forecast_low"] <= now["forecast"] <= now["forecast_high"]
        assert (found["more"], found["items"], found["t"]) == (30, 4, 8)
        assert found["words"].startswith(("With 30 more", "Nothing more"))
        with pytest.raises(ValueError, match="more must be at least 1"):
            campaign.budget(0)
        with pytest.raises(ServerError, match="more") as refused:
            campaign.budget(10**9 + 1)
        assert (refused.value.status, refused.value.field) == (422, "more")


@pytest.mark.parametrize("query", ["", "?more=0", "?more=-1", "?more=2.5", "?more=x", "?more=99999999999999999999"])
def test_a_budget_that_is_none_is_422_and_names_the_field(api: Any, query: str) -> None:
    made = api.send("POST", "/api/campaigns", {"name": "x", "n_arms": 4, "n_clusters": 2, "dim": 1, "noise": 1.0})
    answer = api.send("GET", f"/api/campaigns/{made.json['id']}/budget{query}")
    assert answer.status == 422
    assert answer.error["field"] == "more"
