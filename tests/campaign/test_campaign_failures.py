"""Failures are visible: counts by item and worker in every interface, and alarms where failing goes with values."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import verify
from coterie.campaign import Campaigns
from coterie.certificate import read_log
from coterie.cli.campaign_report import print_status
from coterie.web.view_models import Status

ROUND = {"failed": 0, "expired": 0, "late": 0, "undone": 0}


def test_each_kind_is_counted_where_it_happened(
    store: Campaigns, opened: Callable[[], Campaigns], clock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["salt", "soda", "lime", "iron"]
    shape: dict[str, Any] = {"n_clusters": 2, "dim": 1, "noise": 1.0, "method": "uniform", "lease_seconds": 60.0}
    id = store.create("minerals", 4, names=names, **shape)["id"]
    ann, bob = (store.ask(id, who, 3)["asks"] for who in ("ann", "bob"))
    store.fail(id, ann[0]["lease"], "broke")
    store.undo(id, ann[1]["lease"])
    store.tell(id, [{"id": "in time", "arm": bob[0]["arm"], "values": [1.0], "lease": bob[0]["lease"]}])
    clock.now += 61.0
    store.tell(id, [{"id": "too late", "arm": bob[1]["arm"], "values": [1.0], "lease": bob[1]["lease"]}])
    for one in (store, opened()):
        status = one.status(id)
        found = status["failures"]
        assert {key: found[key] for key in ("asked", *ROUND)} == {
            "asked": 6, "failed": 1, "expired": 3, "late": 1, "undone": 1,
        }  # fmt: skip
        workers = {who["worker"]: who for who in found["workers"]}
        assert workers["ann"] == {"worker": "ann", "asked": 3, **ROUND, "failed": 1, "undone": 1, "expired": 1}
        assert workers["bob"] == {"worker": "bob", "asked": 3, **ROUND, "expired": 2, "late": 1}
        items = {item["name"]: item for item in found["items"]}
        assert items[names[ann[0]["arm"]]]["failed"] == 1
        assert sum(item["expired"] for item in found["items"]) == 3
        assert found["text"].startswith("Of 6 asks: 1 failed, 3 expired, 1 answered late and 1 undone.")
        assert {who["worker"]: who["failed"] for who in status["workers"]} == {"ann": 1, "bob": 0}
        Status.model_validate(status)
    print_status(status)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Of 6 asks: 1 failed, 3 expired" in printed
    assert "asks that were missed" in printed


def test_nothing_is_said_where_nothing_was_missed(store: Campaigns, world: Any) -> None:
    id = world.create(store, method="uniform")
    world.run(store, id, stop_after=5)
    found = store.status(id)["failures"]
    assert found == {"asked": 5, **ROUND, "items": [], "workers": [], "passed_on": 0, "text": None}


def thrown_away(
    store: Campaigns, seed: int, throws: Callable[[int, str, float], bool], most: int = 3000, **more: Any
) -> str:
    """A campaign of four items at 0, 0, 0.8 and 0.8, two workers who come as they like, and readings thrown away."""
    rng, turns = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    id: str = store.create(f"run {seed}", 4, 2, 1, noise=1.0, **more)["id"]
    for k in range(most):
        who = ("ann", "bob")[int(turns.integers(2))]
        answer = store.ask(id, who)
        if answer["done"]:
            break
        (one,) = answer["asks"]
        x = 0.8 * (one["arm"] >= 2) + float(rng.standard_normal())
        if throws(one["arm"], who, x):
            store.fail(id, one["lease"], "looked wrong")
        else:
            store.tell(id, [{"id": str(k), "arm": one["arm"], "values": [x], "lease": one["lease"]}])
    return id


@pytest.fixture
def sqlite(tmp_path: Path) -> Any:
    with Campaigns(tmp_path / "store.db") as found:
        yield found


def test_low_readings_of_an_item_thrown_away_are_seen(sqlite: Campaigns, tmp_path: Path) -> None:
    """What is left of the item looks like the other group: wrong, and proven. The counts and the alarm say so, at every
    door; of 60 runs the alarm comes in 59 (docs/CROC.md), here in two short ones.
    """
    for seed in (20, 40):
        id = thrown_away(sqlite, seed, lambda arm, who, x: arm == 0 and x < 0.0)
        status = sqlite.status(id)
        assert status["done"]
        assert status["labels"] != [0, 0, 1, 1]  # wrong, as it has to be
        failures = [one for one in status["alarms"] if one["kind"] == "failures"]
        assert len(failures) == 1
        assert not failures[0]["harmless"]
        assert failures[0]["seen"].startswith("Failures go with ")
        assert status["failures"]["failed"] == status["failures"]["items"][0]["failed"] > 10
        assert "But do not rely on it" in status["verdict"]
        assert ",yes," not in sqlite.export(id, "groups")
        certificate = json.loads(sqlite.export(id, "certificate"))
        assert "failures" in [one["kind"] for one in certificate["remarks"]]
        assert certificate["failures"]["failed"] == status["failures"]["failed"]
    log = tmp_path / "log.csv"
    log.write_text(sqlite.export(id, "log"))
    assert verify(certificate, read_log(log)).valid
    _check_that_changes_are_noticed(certificate, read_log(log))


def _check_that_changes_are_noticed(certificate: dict[str, Any], events: list[dict[str, Any]]) -> None:
    """Of the failures in a certificate, against its log."""
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda c: c["failures"].update(failed=0),
        lambda c: c["failures"].update(late=None),
        lambda c: c["failures"]["items"][0].update(failed=1),
        lambda c: c["failures"]["workers"][0].update(worker="eve"),
        lambda c: c["failures"].update(items="none"),
        lambda c: c.update(failures=[]),
        lambda c: c.pop("failures"),
    ]
    for change in changes:
        other = copy.deepcopy(certificate)
        change(other)
        assert not verify(other, events).valid
    assert not verify(certificate, [one for one in events if one["event"] != "missed"]).valid
    assert not verify(certificate, [*events, {"event": "missed", "arm": 0, "kind": "lost"}]).valid
    old = copy.deepcopy(certificate)
    for name in ("failures", "log_format", "remarks"):  # of release 0.2
        old.pop(name)
    assert verify(old, [one for one in events if one["event"] not in ("missed", "log")]).valid


def test_undone_asks_are_no_evidence_of_failing(sqlite: Campaigns) -> None:
    id = sqlite.create("undone", 4, 2, 1, noise=1.0, method="uniform", delta=1e-9)["id"]
    rng = np.random.default_rng(3)
    for k in range(200):
        (one,) = sqlite.ask(id, "ann")["asks"]
        if one["arm"] == 0 and k % 8:
            sqlite.undo(id, one["lease"])
        else:
            told = {"id": str(k), "arm": one["arm"], "values": [float(rng.standard_normal())], "lease": one["lease"]}
            sqlite.tell(id, [told])
    status = sqlite.status(id)
    assert status["failures"]["undone"] > 20
    assert status["alarms"] == []


def test_a_worker_who_throws_low_readings_away_is_named(sqlite: Campaigns) -> None:
    """Whoever measures the same items honestly gives lower results: nothing else is needed to see it."""
    id: str = sqlite.create("benches", 4, 2, 1, noise=1.0, method="uniform", delta=1e-12)["id"]
    rng = np.random.default_rng(1)
    for _ in range(60):
        who = ("ann", "bob")[int(rng.integers(2))]
        told = []
        for one in sqlite.ask(id, who, 12)["asks"]:
            x = 0.8 * (one["arm"] >= 2) + float(rng.standard_normal())
            if who == "bob" and x < 0.5:
                sqlite.fail(id, one["lease"])
            else:
                told.append({"id": one["lease"], "arm": one["arm"], "values": [x], "lease": one["lease"]})
        sqlite.tell(id, told)
    (alarm,) = (one for one in sqlite.status(id)["alarms"] if one["kind"] == "workers")
    assert "bob failed " in alarm["seen"]
    assert "are higher than what others give for the same items" in alarm["seen"]
    assert alarm["evidence"] >= alarm["threshold"]


def test_honest_workers_raise_no_alarm(sqlite: Campaigns) -> None:
    """Who fails often and at random; by Ville's inequality each alarm comes in one of 100 runs at most (the evidence
    itself is tested in bulk in tests/evidence).
    """
    rng = np.random.default_rng(9)
    rung = 0
    for seed in range(4):
        throws = lambda arm, who, x: bool(rng.random() < (0.4 if who == "bob" else 0.05))  # noqa: E731
        id = thrown_away(sqlite, seed, throws, 150, method="uniform", delta=1e-12)
        rung += any(one["kind"] in ("workers", "failures") for one in sqlite.status(id)["alarms"])
    assert rung == 0
