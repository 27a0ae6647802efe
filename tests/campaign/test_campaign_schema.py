"""The tables of a database: new ones are those of release 0.2, whose stores are opened as they are."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, text

from coterie.campaign import Campaigns, Conflict
from coterie.certificate import read_log
from coterie.store import schema
from coterie.store.sql import Database, url_of

ASSETS = Path(__file__).parent / "assets"


def but_for_last_digits(value: Any) -> Any:
    """Equal to the same JSON with numbers that differ by rounding: another LLVM and another NumPy round otherwise.

    Between numba 0.59 and 0.68 evidence in these certificates differs by up to 3.2e-16 of itself.
    """
    if isinstance(value, dict):
        return {key: but_for_last_digits(one) for key, one in value.items()}
    if isinstance(value, list):
        return [but_for_last_digits(one) for one in value]
    return pytest.approx(value, rel=1e-14, abs=0.0) if isinstance(value, float) else value


def dump(path: Path) -> None:
    """Make the store of a dump, of decision rules number 3: those of release 0.2."""
    with sqlite3.connect(path) as connection:
        connection.executescript((ASSETS / "store-v5.sql").read_text())


def test_campaigns_of_release_0_2_stand_where_they_stood(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    dump(path)
    expected = json.loads((ASSETS / "store-v5.json").read_text())
    with Campaigns(path, clock=lambda: 1_800_000_200.0) as store:
        for summary in store.list():
            wanted = expected[summary["name"]]
            found = store.status(summary["id"])
            for key in ("t", "done", "labels", "pulls", "measurements", "seq", "centers"):
                assert found[key] == wanted[key], (summary["name"], key)
            assert [lease["lease"] for lease in found["open_leases"]] == wanted["open"]
            if "certificate" in wanted:
                certificate = store.certificate(summary["id"])
                assert certificate is not None
                since = ("assumes", "remarks", "corrections", "log_format", "confirm", "homogeneity")
                added = {key: certificate.pop(key) for key in since}
                assert [one["of"] for one in certificate.pop("intervals")] == ["groups", "differences"]  # since then
                assert added["remarks"] == added["corrections"] == []
                then = wanted["certificate"].pop("homogeneity")  # by another rule, and neither saw anything
                assert max(added["homogeneity"]["evidence"]) < 0.0 > max(then["evidence"])
                assert certificate == but_for_last_digits(wanted["certificate"])
                (tmp_path / "now.csv").write_text(store.export(summary["id"], "log"))
                (tmp_path / "then.csv").write_text(wanted["log"])
                now = read_log(tmp_path / "now.csv")
                assert all(one.pop("at") and one.pop("worker") for one in now if one["event"] == "result")  # since then
                assert now.pop(0) == {"event": "log", "format": 2, "names": certificate["names"]}  # since then
                assert now == read_log(tmp_path / "then.csv")
        half = next(one["id"] for one in store.list() if one["name"] == "half")
        assert store.ask(half, "eve")["asks"]  # it goes on
        assert [token["label"] for token in store.tokens()] == ["bench"]


def test_a_store_from_before_0_2_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    dump(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM schema_version WHERE version = 5")
    with pytest.raises(Conflict, match=r"schema version 4, from before Coterie 0\.2.*open it once with") as caught:
        Campaigns(path)
    assert caught.value.code == "older_schema"


def test_new_tables_are_those_of_release_0_2(database: str, tmp_path: Path) -> None:
    Campaigns(database).close()
    dump(tmp_path / "old.db")
    engine, of_0_2 = create_engine(url_of(database)), create_engine(url_of(tmp_path / "old.db"))
    found, wanted = inspect(engine), inspect(of_0_2)
    assert set(found.get_table_names()) == {*wanted.get_table_names(), "attachments"}  # new in 0.3
    for name in wanted.get_table_names():
        for new, old in zip(found.get_columns(name), wanted.get_columns(name), strict=True):
            assert (new["name"], new["nullable"]) == (old["name"], old["nullable"]), name
        assert (
            found.get_pk_constraint(name)["constrained_columns"]
            == wanted.get_pk_constraint(name)["constrained_columns"]
        )
        assert [one["name"] for one in found.get_indexes(name) if not one["unique"]] == [
            one["name"] for one in wanted.get_indexes(name)
        ]
    of_0_2.dispose()
    assert set(found.get_table_names()) == set(schema.metadata.tables)
    for name, table in schema.metadata.tables.items():
        columns = {column["name"]: column for column in found.get_columns(name)}
        assert list(columns) == [column.name for column in table.columns], name
        for column in table.columns:
            assert columns[column.name]["nullable"] == column.nullable, (name, column.name)
        assert found.get_pk_constraint(name)["constrained_columns"] == [c.name for c in table.primary_key], name
    assert [u["column_names"] for u in found.get_unique_constraints("measurements")] == [["campaign", "id"]]
    engine.dispose()


def test_many_open_a_new_store_at_once(url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(lambda _: Campaigns(url), range(6)))
    for store in stores:
        store.create("x", 3, 2, 1, noise=1.0)
    assert len(stores[0].list()) == 6
    for store in stores:
        store.close()


def test_every_commit_is_on_disk_before_it_is_acknowledged(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        journal = store._campaigns.journal
        assert isinstance(journal, Database)
        engine = journal.engine
        with engine.connect() as connection:
            pragma = {
                name: connection.execute(text(f"PRAGMA {name}")).scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            }
    assert pragma == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30000}
