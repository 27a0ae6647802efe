"""The tables on disk: what migrations make is what the code uses; old stores are brought up; newer ones are refused."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, inspect, text

from coterie.campaign import Campaigns
from coterie.store import schema
from coterie.store.sql import url_of

ASSETS = Path(__file__).parent / "assets"


def dump(version: int, path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.executescript((ASSETS / f"store-v{version}.sql").read_text())


def test_every_old_version_has_its_asset() -> None:
    assert [(ASSETS / f"store-v{version}.sql").exists() for version in range(1, schema.LATEST)] == [True]


def test_a_store_of_version_1_is_brought_up_and_goes_on(tmp_path: Path, clock: Any) -> None:
    path = tmp_path / "old.db"
    dump(1, path)
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
        id = store.create("x", 3, 2, 1)["id"]
        assert store.ask(id, "w")["asks"]


def test_many_open_a_new_store_at_once(url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(lambda _: Campaigns(url), range(6)))
    for store in stores:
        store.create("x", 3, 2, 1)
    assert len(stores[0].list()) == 6
    for store in stores:
        store.close()


def test_every_commit_is_on_disk_before_it_is_acknowledged(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        engine = store._campaigns.journal.engine
        with engine.connect() as connection:
            pragma = {
                name: connection.execute(text(f"PRAGMA {name}")).scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            }
    assert pragma == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30000}
