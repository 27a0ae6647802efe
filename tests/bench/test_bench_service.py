"""The bare handler that Coterie's server is measured beside: it answers the same calls, and each is on disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from bench import bare, service, service_loads


def test_the_handler_writes_a_row_for_each_call(tmp_path: Path) -> None:
    engine = bare.engine_of(f"sqlite:///{tmp_path / 'bare.db'}")
    with TestClient(bare.app_on(engine)) as client:
        for k in range(3):
            (ask,) = client.post("/api/campaigns/x/ask", json={"worker": "ann", "n": 1}).json()["asks"]
            assert ask["arm"] == k
            one = {"id": f"m{k}", "arm": k, "values": [0.5, k], "lease": ask["lease"]}
            assert client.post("/api/campaigns/x/tell", json={"measurements": [one]}).json() == {"accepted": 1}
        assert client.post("/api/campaigns/x/tell", json={"measurements": [{"id": "m9"}]}).status_code == 422
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL: an fsync at every commit
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    other = sqlite3.connect(tmp_path / "bare.db")
    rows = "SELECT r.id, r.arm, r.content FROM results r JOIN leases l ON l.id = r.lease ORDER BY r.id"
    assert other.execute(rows).fetchall() == [(f"m{k}", k, f"[0.5, {k}.0]") for k in range(3)]
    other.close()


@pytest.mark.slow
def test_both_are_measured_by_the_same_clients(tmp_path: Path) -> None:
    stores = iter(range(9))
    row = service.on("SQLite", lambda: f"sqlite:///{tmp_path / f'{next(stores)}.db'}", clients=2, seconds=0.5, turns=1)
    assert row["coterie_rate"] > 0
    assert row["bare_rate"] > 0
    assert row["ratio"] == pytest.approx(row["coterie_rate"] / row["bare_rate"])
    assert next(stores) == 2


def test_loads_are_compared_by_their_medians() -> None:
    rates = iter([(100.0, 90.0), (200.0, 60.0), (100.0, 70.0)])
    pair = [0.0, 0.0]

    def first() -> dict[str, float]:
        pair[:] = next(rates)
        return {"rate": pair[0]}

    row = service_loads.compared("many", 0.7, first, lambda: {"rate": pair[1]}, turns=3)
    assert (row["first_rate"], row["second_rate"], row["of_first"], row["met"]) == (100.0, 70.0, 0.7, True)


def test_a_campaign_that_grows_is_measured_and_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    assert service_loads.grow(path, 200) > 0
    assert service_loads.first_ask(path, without_snapshot=False) > 0
    assert service_loads.first_ask(path, without_snapshot=True) > 0
