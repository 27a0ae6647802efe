"""The tables of a database: what migrations make is what the code uses; old stores are brought up and go on."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import create_engine, inspect, text

from coterie import verify
from coterie.campaign import Campaigns, Conflict, DamagedLog
from coterie.certificate import read_log
from coterie.store import open_journal, schema
from coterie.store.rows import TABLES, Ask, Note, Told
from coterie.store.sql import Database, url_of

ASSETS = Path(__file__).parent / "assets"


def dump(asset: str, path: Path) -> None:
    """Make the store of a dump: version 1; 2 by decision rules 2 (release 0.1) and 3; 3; 4; 5."""
    with sqlite3.connect(path) as connection:
        connection.executescript((ASSETS / f"store-{asset}.sql").read_text())


def but_for_last_digits(value: Any) -> Any:
    """Equal to the same JSON with numbers that differ by rounding: another LLVM and another NumPy round otherwise.

    Between numba 0.59 and 0.68 evidence in these certificates differs by up to 3.2e-16 of itself.
    """
    if isinstance(value, dict):
        return {key: but_for_last_digits(one) for key, one in value.items()}
    if isinstance(value, list):
        return [but_for_last_digits(one) for one in value]
    return pytest.approx(value, rel=1e-14, abs=0.0) if isinstance(value, float) else value


def test_every_version_has_its_asset() -> None:
    for version in range(1, schema.LATEST + 1):
        assert list(ASSETS.glob(f"store-v{version}*.sql")), version


def on_postgres(path: Path, address: str) -> None:
    """Copy a SQLite store of schema version 2 to a PostgreSQL database, table by table."""
    engine = create_engine(url_of(address))
    with engine.begin() as target, sqlite3.connect(path) as source:
        schema.migrate(target, to=2)
        for table in ("campaigns", "asks", "measurements", "endings", "notes", "tokens"):
            rows = source.execute(f"SELECT * FROM {table}")
            names = [f'"{column[0]}"' for column in rows.description]
            marks = ", ".join(f":{i}" for i in range(len(names)))
            statement = text(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})")
            for row in rows:
                target.execute(statement, {str(i): value for i, value in enumerate(row)})
    engine.dispose()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("asset", ["v2-rules-2", "v2-rules-3"])
def test_rows_of_version_2_are_chained_when_they_are_brought_up(
    asset: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row is kept as it was, protected from then on; rounds were not recorded."""
    monkeypatch.setattr(schema, "_CHUNK", 7)  # as a long log is: in parts
    path = tmp_path / "old.db"
    dump(asset, path)
    with sqlite3.connect(path) as connection:
        old = {
            table: sorted(connection.execute(f"SELECT * FROM {table}"))
            for table in ("asks", "measurements", "endings", "notes")
        }
    address = str(path)
    if kind == "postgresql":
        address = str(request.getfixturevalue("postgres").new_database())
        on_postgres(path, address)
    journal = open_journal(address)
    with journal.reading() as reading:
        found: dict[str, list[Any]] = {table: [] for table in old}
        for campaign in reading.campaigns():
            page = reading.rows(campaign)
            assert page.hash == campaign["chain"]
            assert reading.count(campaign["id"]) == campaign["last_seq"] == len(page.rows)
            assert reading.rows(campaign, kinds=(Told, Note)).rows
            for row in page.rows:
                assert row.token is None
                values = tuple(row)[:-1]
                if isinstance(row, Ask):
                    assert row.round == -1
                    values = values[:-1]
                found[TABLES[type(row)]].append((campaign["id"], *values))
        assert {table: sorted(rows) for table, rows in found.items()} == old
        first = reading.campaigns()[0]
    journal.close()
    engine = create_engine(url_of(address))
    with engine.begin() as connection:
        connection.execute(text("UPDATE measurements SET arm = 1 - arm WHERE seq = 3"))
    engine.dispose()
    journal = open_journal(address)
    with journal.reading() as reading, pytest.raises(DamagedLog, match=r"row 3 \(table measurements\)"):
        reading.rows(first)
    journal.close()


def test_a_row_that_an_old_store_had_lost_is_named(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    dump("v2-rules-3", path)
    with sqlite3.connect(path) as connection:
        (id,) = connection.execute("SELECT id FROM campaigns WHERE name = 'half'").fetchone()
        (seq,) = connection.execute("SELECT MIN(seq) FROM asks WHERE campaign = ? AND seq > 20", (id,)).fetchone()
        connection.execute("DELETE FROM asks WHERE campaign = ? AND seq = ?", (id, seq))
    with Campaigns(path) as store:
        with pytest.raises(DamagedLog, match=f"row {seq} is missing"):
            store.status(id)
        assert len(store.list()) == 3


@pytest.mark.parametrize("asset", ["v2-rules-3", "v3", "v4", "v5"])
def test_campaigns_of_an_old_store_stand_where_they_stood(asset: str, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    dump(asset, path)
    expected = json.loads((ASSETS / "store-v2-rules-3.json").read_text())
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


def test_a_store_of_version_1_is_brought_up_and_goes_on(tmp_path: Path, clock: Any) -> None:
    path = tmp_path / "old.db"
    dump("v1", path)
    with Campaigns(path, clock=clock) as store:
        (summary,) = store.list()
        id = summary["id"]
        assert (summary["name"], summary["t"], summary["measurements"]) == ("old", 4, 4)
        found = store.status(id)
        assert (found["t"], found["pulls"], found["names"]) == (4, [2, 1, 1], ["ash", "beech", "oak"])
        assert found["noise"] == 2.0
        (lease,) = found["open_leases"]
        assert lease["worker"] == "bob"
        kinds = [event["kind"] for event in store.events(id)["events"]]
        assert {"asked", "told", "expired", "failed", "groups", "evidence"} <= set(kinds)
        assert [row["id"] for row in store.measurements(id)["measurements"]] == ["m0", "m1", "m2", "m4"]
        clock.now += 40.0
        again = store.ask(id, "bob")["asks"][0]  # its own open ask, as before
        assert again["lease"] == lease["lease"]
        store.tell(id, [{"id": "m5", "arm": again["arm"], "values": [0.3], "lease": again["lease"]}])
        store.add_token("h", "read")  # the table is new in version 2
        assert store.status(id)["t"] == 5
    with Campaigns(path) as store:
        assert store.status(id)["t"] == 5
        assert [token["hash"] for token in store.tokens()] == ["h"]


def test_migrated_tables_are_the_ones_that_the_code_uses(database: str) -> None:
    Campaigns(database).close()
    engine = create_engine(url_of(database))
    found = inspect(engine)
    assert set(found.get_table_names()) == set(schema.metadata.tables) | {"schema_version"}
    for name, table in schema.metadata.tables.items():
        columns = {column["name"]: column for column in found.get_columns(name)}
        assert list(columns) == [column.name for column in table.columns], name
        for column in table.columns:
            assert columns[column.name]["nullable"] == column.nullable, (name, column.name)
        assert found.get_pk_constraint(name)["constrained_columns"] == [c.name for c in table.primary_key], name
    assert [u["column_names"] for u in found.get_unique_constraints("measurements")] == [["campaign", "id"]]
    engine.dispose()


def test_migrations_in_steps_end_where_one_does(database: str) -> None:
    engine = create_engine(url_of(database))
    for version in range(1, schema.LATEST + 1):
        with engine.begin() as connection:
            schema.migrate(connection, to=version)
            assert schema.version_of(connection) == version
    engine.dispose()
    with Campaigns(database) as store:
        id = store.create("x", 3, 2, 1, noise=1.0)["id"]
        assert store.ask(id, "w")["asks"]


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


def test_a_store_of_the_first_release_shows_its_results_and_goes_on(tmp_path: Path) -> None:
    """Its rules are not known any more, and it recorded no claims: groups and results are there, no certificate."""
    path = tmp_path / "old.db"
    dump("v2-rules-2", path)
    expected = json.loads((ASSETS / "store-v2-rules-2.json").read_text())
    with Campaigns(path, clock=lambda: 1_800_000_200.0) as store:
        ids = {summary["name"]: summary["id"] for summary in store.list()}
        found, wanted = store.status(ids["finished"]), expected["finished"]
        for key in ("t", "done", "labels", "measurements", "seq"):
            assert found[key] == wanted[key], key
        assert len(store.measurements(ids["finished"])["measurements"]) == wanted["measurements"]
        with pytest.raises(Conflict, match="older release that did not record its certificate") as caught:
            store.certificate(ids["finished"])
        assert caught.value.code == "no_certificate"
        half = ids["half"]
        before = store.status(half)
        for key in ("t", "measurements", "pulls", "seq"):
            assert before[key] == expected["half"][key], key
        rng = np.random.default_rng(0)
        centers = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.5]])
        for k in range(2000):
            answer = store.ask(half, "eve")
            if answer["done"]:
                break
            (ask,) = answer["asks"]
            value = (centers[ask["arm"] % 3] + rng.standard_normal(2)).tolist()
            store.tell(half, [{"id": f"new-{k}", "arm": ask["arm"], "values": value, "lease": ask["lease"]}])
            for lease in store.status(half)["open_leases"]:  # of workers that will not come back
                store.fail(half, lease["lease"])
        assert store.status(half)["done"]
        log = tmp_path / "log.csv"
        log.write_text(store.export(half, "log"))
        assert verify(store.certificate(half), read_log(log)).valid
