"""What a token may hold, and what becomes of it when it is revoked; a row that was changed while a store is in use."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from coterie.campaign import Campaigns, Conflict, DamagedLog
from coterie.campaign.service import whole_store
from coterie.campaign.tokens import Writer, hash_of, id_of
from coterie.cli import app
from coterie.problem.checks import short


def writer_of(store: Campaigns, name: str, most: int | None = None, **more: Any) -> Writer:
    return Writer(id_of(hash_of(store.new_token(name, **more))), True, most)


def test_a_token_has_so_many_open_asks_at_most(opened: Callable[[], Campaigns]) -> None:
    store = opened()
    id = store.create("x", 8, 2, 1, noise=1.0, method="uniform")["id"]
    ann, bob = writer_of(store, "ann", 3), writer_of(store, "bob", 3)
    first = store.ask(id, "a", 2, writer=ann)["asks"]
    with pytest.raises(
        Conflict, match=r"this token has 2 asks of this campaign open, 2 more .* it may have 3"
    ) as caught:
        store.ask(id, "b", 2, writer=ann)
    assert (caught.value.code, caught.value.field, caught.value.status) == ("too_many_leases", "n", 409)
    assert store.ask(id, "a", 2, writer=ann)["asks"] == first, "its own are given again"
    assert len(store.ask(id, "b", 1, writer=ann)["asks"]) == 1
    assert len(store.ask(id, "c", 3, writer=bob)["asks"]) == 3, "others are not concerned"
    assert len(store.ask(id, "d", 5)["asks"]) == 5, "the command line has no token"
    store.close()
    store = opened()  # counted anew from the record
    with pytest.raises(Conflict, match="has 3 asks"):
        store.ask(id, "b", 2, writer=ann)
    store.tell(id, [{"id": "1", "arm": first[0]["arm"], "values": [0.0], "lease": first[0]["lease"]}], writer=ann)
    assert len(store.ask(id, "b", 2, writer=ann)["asks"]) == 2
    store.close()


def test_revoking_a_token_gives_its_asks_back(opened: Callable[[], Campaigns]) -> None:
    store = opened()
    one = store.create("one", 6, 2, 1, noise=1.0)["id"]
    other = store.create("other", 6, 2, 1, noise=1.0)["id"]
    put_away = store.create("away", 6, 2, 1, noise=1.0)["id"]
    ann, bob = writer_of(store, "ann"), writer_of(store, "bob")
    for id in (one, other, put_away):
        store.ask(id, "a", 2, writer=ann)
    kept = store.ask(one, "b", 1, writer=bob)["asks"]
    store.archive(put_away)
    assert store.revoke_token("ann")["freed"] == 4
    assert [lease["lease"] for lease in store.status(one)["open_leases"]] == [kept[0]["lease"]]
    assert store.status(other)["open_leases"] == []
    assert store.status(other)["failures"]["undone"] == 2
    events = store.events(other)["events"]
    assert [event["reason"] for event in events if event["kind"] == "undone"] == ["the token ann was revoked"] * 2
    assert store.revoke_token("bob")["freed"] == 1
    for k in range(300):  # and it goes on to its end
        answer = store.ask(one, "c")
        if answer["done"]:
            break
        (ask,) = answer["asks"]
        value = 9.0 * (ask["arm"] % 2) + 0.1 * (k % 5)
        store.tell(one, [{"id": str(k), "arm": ask["arm"], "values": [value], "lease": ask["lease"]}])
    assert store.status(one)["done"]
    store.close()


def test_the_command_says_how_many_asks_were_given_back(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("x", 4, 2, 1, noise=1.0)["id"]
        store.ask(id, "a", 2, writer=writer_of(store, "ann"))
    answer = CliRunner().invoke(app, ["token", "revoke", "ann", "--store", str(tmp_path / "store.db")])
    assert answer.stdout == "revoked: ann (worker); 2 open asks given back\n"


def test_a_row_that_is_changed_while_a_store_is_in_use_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(whole_store, "ROWS", 7)
    path = tmp_path / "store.db"
    with Campaigns(path) as store:
        ids = [store.create(name, 4, 2, 1, noise=1.0, method="uniform")["id"] for name in "abc"]
        for id in ids[:2]:
            store.tell(id, [{"id": str(k), "arm": k % 4, "values": [float(k)]} for k in range(30)])
        for _ in range(40):
            assert store.check_logs() == {}
        seq = store.measurements(ids[1])["measurements"][11]["seq"]
        with sqlite3.connect(path) as connection:
            change = 'UPDATE measurements SET "values" = ? WHERE campaign = ? AND seq = ?'
            connection.execute(change, ["[99.0]", ids[1], seq])
        connection.close()
        assert store.status(ids[1])["measurements"] == 30, "its state is in memory"
        for _ in range(60):
            if store.check_logs():
                break
        assert store.check_logs() == {ids[1]: seq}
        assert f"row {seq} (table measurements) was changed" in caplog.text
        with pytest.raises(DamagedLog, match=f"row {seq}"):
            store.status(ids[1])
        with pytest.raises(DamagedLog, match=f"row {seq}"):
            store.ask(ids[1], "w")
        assert store.export(ids[1], "csv", before=seq).count("\n") == 1 + 11, "what stands before it can be had"
        assert store.ask(ids[0], "w")["asks"]
        with sqlite3.connect(path) as connection:
            connection.execute(change, ["[11.0]", ids[1], seq])
        connection.close()
        for _ in range(60):
            if not store.check_logs():
                break
        assert store.status(ids[1])["measurements"] == 30, "it was put right"


def test_messages_have_numbers_as_people_write_them() -> None:
    assert short(np.array([1.0, 2.5])) == "[1.0, 2.5]"
    assert short(np.float64(0.5)) == "0.5"
