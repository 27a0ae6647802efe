"""Who told a result and when: in every export, for people; no value, and no part of a proof."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import coterie
from coterie.campaign import Campaigns
from coterie.certificate import read_log
from coterie.tables.reading.pools import read_pool

NAMES = ["ash", "elm", "oak", "yew"]


def finished(store: Campaigns, **settings: Any) -> str:
    id = str(store.create("trees", 4, dim=1, names=NAMES, **settings)["id"])
    for k in range(200):
        asks = store.ask(id, f"robot {k % 2}")["asks"]
        if not asks:
            break
        value = 20.0 * (asks[0]["arm"] > 1) + (k * 0.618) % 1.0
        store.tell(id, [{"id": f"m{k}", "arm": asks[0]["arm"], "values": [value], "lease": asks[0]["lease"]}])
    assert store.status(id)["done"]
    return id


@pytest.mark.parametrize("settings", [{"n_clusters": 2, "noise": 1.0}, {"resolution": (2.0, 9.0), "noise": 1.0}])
def test_every_export_says_who_and_when(store: Campaigns, settings: dict[str, Any], tmp_path: Path) -> None:
    id = finished(store, **settings)
    shown = store.measurements(id)["measurements"]
    rows = list(csv.DictReader(io.StringIO(store.export(id, "csv"))))
    assert [(row["told"], row["worker"]) for row in rows] == [(one["at"], one["worker"]) for one in shown]
    assert {row["worker"] for row in rows} == {"robot 0", "robot 1"}
    log = tmp_path / "log.csv"
    log.write_text(store.export(id, "log"))
    events = [one for one in read_log(log) if one["event"] == "result"]
    known = {(one["arm"], tuple(one["values"]), one["at"], one["worker"]) for one in shown}
    assert {(one["arm"], tuple(one["values"]), one["at"], one["worker"]) for one in events} <= known
    certificate = json.loads(store.export(id, "certificate"))
    assert coterie.verify(certificate, log).valid
    bare = [{key: value for key, value in one.items() if key not in ("at", "worker")} for one in read_log(log)]
    assert coterie.verify(certificate, bare) == coterie.verify(certificate, log)


def test_who_and_when_are_no_values(store: Campaigns, tmp_path: Path) -> None:
    id = str(store.create("x", 3, 2, dim=1, names=["a", "b", "c"], noise=1.0, value_names=["worker"])["id"])
    for arm in range(3):
        store.tell(id, [{"id": f"m{arm}", "arm": arm, "values": [float(arm)], "worker": "7"}])
    header, *rows = csv.reader(io.StringIO(store.export(id, "csv")))
    assert header == ["id", "arm", "worker", "told", "worker of the record", "token"]
    assert [row[2] for row in rows] == ["0.0", "1.0", "2.0"]
    plain = str(store.create("x", 3, 2, dim=1, names=["a", "b", "c"], noise=1.0, value_names=["height"])["id"])
    store.tell(plain, [{"id": f"m{arm}", "arm": arm, "values": [float(arm)], "worker": "7"} for arm in range(3)])
    file = tmp_path / "plain.csv"
    file.write_text(store.export(plain, "csv"))
    pool = read_pool(file)
    assert pool.columns == ["height"]
    assert dict(pool.left_out) == {
        "id": "an id",
        "told": "who and when",
        "worker": "who and when",
        "token": "who and when",
    }
    unnamed = str(store.create("y", 3, 2, dim=1, names=["a", "b", "c"], noise=1.0)["id"])
    assert store.import_table(unnamed, file)["accepted"] == 3
