"""Campaigns that were half-way when the engine was another one go on with the same asks, and end with the same groups.

The store was written by the last commit whose engine was compiled by numba (f9d8f45): 50 results of each campaign, and
two asks still open. What that engine asked for next, and how it ended, is beside it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.campaign import Campaigns
from coterie.certificate import read_log

ASSETS = Path(__file__).parent / "assets"
EXPECTED: dict[str, Any] = json.loads((ASSETS / "store-v5-rules-4.json").read_text())
MEANS = np.array([0.0, 0.0, 0.0, 1.5, 1.5, 1.5])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(gzip.decompress((ASSETS / "store-v5-rules-4.sql.gz").read_bytes()).decode())
    return path


def measure(store: Campaigns, id: str, most: int, seed: int, *, counts: bool) -> list[int]:
    """Ask and tell, up to so many results; the arms asked for."""
    rng = np.random.default_rng(seed)
    arms: list[int] = []
    for k in range(most):
        answer = store.ask(id, "worker", 1)
        if answer["done"] or answer["waiting_for"]:
            break
        (ask,) = answer["asks"]
        arms.append(ask["arm"])
        drawn = float(MEANS[ask["arm"]] + rng.standard_normal())
        value = float(drawn > 0.75) if counts else float(np.clip(drawn, -8, 10))
        if store.tell(id, [{"id": f"{seed}-{k}", "arm": ask["arm"], "values": [value], "lease": ask["lease"]}])["done"]:
            break
    return arms


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_campaign_goes_on_as_it_would_have(name: str, path: Path, tmp_path: Path) -> None:
    expected, counts = EXPECTED[name], name == "counts"
    with Campaigns(path, clock=lambda: 1_800_000_100.0) as store:
        (id,) = [one["id"] for one in store.list() if one["name"] == name]
        status = store.status(id)
        assert [status[part] for part in ("t", "labels", "pulls")] == [
            expected[part] for part in ("t", "labels", "pulls")
        ]
        assert [lease["lease"] for lease in status["open_leases"]] == expected["open"]
        assert measure(store, id, 30, 1, counts=counts) == expected["next"]
        for lease in store.status(id)["open_leases"]:
            store.fail(id, lease["lease"])
        rest = measure(store, id, 4000, 2, counts=counts)
        assert hashlib.sha256(json.dumps(rest).encode()).hexdigest()[:16] == expected["rest"]
        status = store.status(id)
        assert {part: status[part] for part in expected["end"]} == expected["end"]
        if name == "boc":  # its stops need no certificate
            return
        certificate = store.certificate(id)
        assert certificate is not None
        proof = {part: certificate.get(part) for part in ("labels", "t", "by", "representatives")}
        proof["frozen"] = [[one["number"], one["frozen_at"], one.get("cores")] for one in certificate["epochs"]]
        assert proof == expected["proof"]
        (tmp_path / "log.csv").write_text(store.export(id, "log"))
        assert coterie.verify(certificate, read_log(tmp_path / "log.csv")).valid
