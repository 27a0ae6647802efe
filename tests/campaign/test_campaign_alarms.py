"""Alarms of a campaign: in its status, on the command line, after it was opened again, and in its certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.campaign import Campaigns
from coterie.cli.campaign_report import print_status
from coterie.web.view_models import Status


def spoiled_campaign(store: Campaigns, results: int) -> str:
    """Six items in two groups whose results vary four times as much as was said."""
    rng = np.random.default_rng(0)
    id: str = store.create(name="spoiled", n_arms=6, n_clusters=2, dim=1, noise=1.0, delta=0.05)["id"]
    for number in range(results):
        asks = store.ask(id, "Ada", 1)["asks"]
        if not asks:
            break
        value = 2.0 * (asks[0]["arm"] % 2) + 4.0 * rng.standard_normal()
        store.tell(id, [{"id": str(number), "arm": asks[0]["arm"], "values": [value], "lease": asks[0]["lease"]}])
    return id


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def test_status_has_the_alarms_and_keeps_them(url: str, capsys: Any) -> None:
    with Campaigns(url) as store:
        id = spoiled_campaign(store, 200)
        found = store.status(id)
        (alarm,) = (one for one in found["alarms"] if one["kind"] == "noise")
        assert alarm["text"] == f"{alarm['seen']} {alarm['advice']}"
        assert not alarm["harmless"]
        json.dumps(found["alarms"], allow_nan=False)
        assert Status.model_validate(found).alarms[0].text == found["alarms"][0]["text"]
    with Campaigns(url) as store:
        assert store.status(id)["alarms"] == found["alarms"]
    print_status(found)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Alarm: The stated noise is contradicted" in printed


def test_certificate_has_remarks(url: str) -> None:
    with Campaigns(url) as store:
        id = spoiled_campaign(store, 2000)
        assert store.status(id)["done"]
        certificate = json.loads(store.export(id, "certificate"))
        assert [one["kind"] for one in certificate["remarks"]] == [one["kind"] for one in store.status(id)["alarms"]]
        assert "noise" in [one["kind"] for one in certificate["remarks"]]


def test_days_that_lie_apart_are_named(url: str) -> None:
    """A campaign knows when results were told: those of a day lie a standard deviation higher."""
    rng, clock = np.random.default_rng(3), [1_794_906_000.0]  # a Tuesday in November 2026, 09:00
    shifts = (0.0, 1.5, 0.0, 1.5)
    with Campaigns(url, clock=lambda: clock[0]) as store:
        id: str = store.create(name="days", n_arms=6, n_clusters=2, dim=1, noise=1.0, delta=1e-4)["id"]
        for day, shift in enumerate(shifts):
            clock[0] = 1_794_906_000.0 + 86400.0 * day
            for number in range(30):
                (ask,) = store.ask(id, "Ada", 1)["asks"]
                value = 0.5 * (ask["arm"] % 2) + shift + rng.standard_normal()
                told = {"id": f"{day}.{number}", "arm": ask["arm"], "values": [value], "lease": ask["lease"]}
                store.tell(id, [told])
        alarms = store.status(id)["alarms"]
        (alarm,) = (one for one in alarms if one["kind"] == "drift")
    assert alarm["seen"].startswith("Results drift: results of ")
    assert "day, 2026-11-1" in alarm["seen"]
    assert " sd higher than results of " in alarm["seen"] or " sd lower than results of " in alarm["seen"]
    assert "state days as blocks" in alarm["advice"]
    with Campaigns(url) as store:
        assert store.status(id)["alarms"] == alarms
