"""Undo of an ask, archive, delete, another lease time, and lists page by page, on every store."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from coterie.campaign import Campaigns, Conflict, NotFound
from coterie.campaign.errors import BadValue, Forbidden
from coterie.campaign.service import whole_store
from coterie.campaign.tokens import Writer, hash_of
from coterie.store.journal import open_journal

SHAPE: dict[str, Any] = {"n_arms": 4, "n_clusters": 2, "dim": 1, "noise": 1.0, "method": "uniform"}


def begin(store: Campaigns, name: str = "fruit", **more: Any) -> str:
    return str(store.create(name, **(SHAPE | more))["id"])


def kinds(store: Campaigns, id: str) -> list[str]:
    return [one["kind"] for one in store.events(id)["events"]]


# Undo.


def test_an_undone_ask_is_free_again_and_is_no_failure(store: Campaigns, opened: Callable[[], Campaigns]) -> None:
    id = begin(store)
    first, second = store.ask(id, "ann", 2)["asks"]
    answer = store.undo(id, first["lease"], "the wrong button")
    assert answer == {"freed": True, "lease": first["lease"], "arm": first["arm"], "name": "0", "ended": "undone"}
    assert store.undo(id, first["lease"]) == answer  # saying so twice changes nothing
    assert kinds(store, id).count("undone") == 1
    assert store.lease(id, first["lease"])["state"] == "undone"
    for one in (store, opened()):
        found = one.status(id)["failures"]
        assert (found["asked"], found["undone"], found["failed"], found["expired"], found["late"]) == (2, 1, 0, 0, 0)
        assert [(item["arm"], item["undone"]) for item in found["items"]] == [(first["arm"], 1)]
        assert [(who["worker"], who["asked"], who["undone"]) for who in found["workers"]] == [("ann", 2, 1)]
        assert [lease["lease"] for lease in one.status(id)["open_leases"]] == [second["lease"]]
    store.tell(id, [{"id": "a", "arm": second["arm"], "values": [1.0], "lease": second["lease"]}])
    with pytest.raises(Conflict, match="cannot be undone any more") as caught:
        store.undo(id, second["lease"])
    assert caught.value.code == "lease_answered"


def test_a_worker_undoes_its_own_asks_only(store: Campaigns) -> None:
    id = begin(store)
    ann, bob, owner = Writer("a", only_own=True), Writer("b", only_own=True), Writer("o")
    mine, other = store.ask(id, "ann", 2, writer=ann)["asks"]
    before = store.latest(id)
    with pytest.raises(Forbidden, match="another token"):
        store.undo(id, mine["lease"], writer=bob)
    assert store.latest(id) == before
    assert store.undo(id, mine["lease"], writer=ann)["ended"] == "undone"
    assert store.undo(id, other["lease"], writer=owner)["ended"] == "undone"


# Lease time.


def test_another_lease_time_holds_for_new_asks(store: Campaigns, opened: Callable[[], Campaigns], clock: Any) -> None:
    id = begin(store, lease_seconds=60.0)
    (old,) = store.ask(id, "ann")["asks"]
    assert store.change_lease_time(id, 600) == {"changed": True, "lease_seconds": 600.0, "before": 60.0}
    seq = store.latest(id)
    assert store.change_lease_time(id, 600.0)["changed"] is False
    assert store.latest(id) == seq
    for one in (store, opened()):
        assert one.status(id)["lease_seconds"] == 600.0
    (new,) = opened().ask(id, "bob")["asks"]
    clock.now += 61.0
    open_now = {lease["lease"]: lease["expired"] for lease in store.status(id)["open_leases"]}
    assert open_now == {old["lease"]: True, new["lease"]: False}
    for wrong in (0, -1.0, float("nan"), "soon", None):
        with pytest.raises(BadValue) as caught:
            store.change_lease_time(id, wrong)  # type: ignore[arg-type]
        assert caught.value.field == "lease_seconds"


# Archive.


def test_an_archived_campaign_is_read_only_and_hidden(store: Campaigns, opened: Callable[[], Campaigns]) -> None:
    id, other = begin(store), begin(store, "other")
    (one,) = store.ask(id, "ann")["asks"]
    assert store.archive(id)["archived"] is not None
    assert kinds(store, id)[-1] == "archived"
    seq = store.latest(id)
    assert store.archive(id)["archived"] is not None
    told = [{"id": "a", "arm": one["arm"], "values": [1.0], "lease": one["lease"]}]
    for at in (store, opened()):
        refused: list[tuple[str, tuple[Any, ...]]] = [
            ("ask", ("ann",)),
            ("tell", (told,)),
            ("fail", (one["lease"],)),
            ("undo", (one["lease"],)),
            ("change_lease_time", (5.0,)),
            ("choose_resolution", ((0.1, 1.0),)),
            ("import_table", ([{"id": "i", "arm": 0, "v0": 1.0}],)),
        ]
        for name, arguments in refused:
            with pytest.raises(Conflict, match="archived") as caught:
                getattr(at, name)(id, *arguments)
            assert caught.value.code == "archived"
        assert at.latest(id) == seq
        assert at.status(id)["archived"] is not None
        assert [row["id"] for row in at.list()] == [other]
        assert {row["id"] for row in at.list(archived=True)} == {id, other}
        assert at.export(id)
    assert opened().unarchive(id) == {"archived": None}
    assert store.tell(id, told)["accepted"] == 1
    assert {row["id"] for row in store.list()} == {id, other}


# Delete.


def leftovers(url: str, id: str) -> list[str]:
    """Whatever a store still keeps of a campaign."""
    from sqlalchemy import create_engine, text

    from coterie.store.sql import url_of

    engine = create_engine(url_of(url))
    with engine.connect() as connection:
        found = [
            table
            for table in ("asks", "measurements", "endings", "notes", "snapshots", "tokens")
            if connection.execute(text(f"SELECT COUNT(*) FROM {table} WHERE campaign = :id"), {"id": id}).scalar()
        ]
        if connection.execute(text("SELECT COUNT(*) FROM campaigns WHERE id = :id"), {"id": id}).scalar():
            found.append("campaigns")
    engine.dispose()
    return found


def test_a_deleted_campaign_leaves_nothing(
    store: Campaigns, url: str, opened: Callable[[], Campaigns], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_store, "_SWEPT", 7)  # as of a long log: in parts
    id, other = begin(store), begin(store, "other")
    secret = store.new_token("bench", campaign=id)
    kept = store.new_token("all")
    store.add_session({"hash": "s", "token": hash_of(secret), "until": 2e9})
    store.add_session({"hash": "t", "token": hash_of(kept), "until": 2e9})
    store.tell(id, [{"id": str(k), "arm": k % 4, "values": [float(k)]} for k in range(30)])
    store.ask(id, "ann", 3)
    elsewhere = opened()
    assert elsewhere.status(id)["measurements"] == 30
    with pytest.raises(BadValue, match="say its name") as caught:
        store.delete(id, "fruits")
    assert caught.value.field == "name"
    assert store.status(id)["measurements"] == 30
    assert store.delete(id, "fruit") == {"deleted": id, "name": "fruit", "measurements": 30}
    for at in (store, elsewhere, opened()):
        for call, arguments in (("status", ()), ("ask", ("ann",)), ("delete", ("fruit",))):
            with pytest.raises(NotFound):
                getattr(at, call)(id, *arguments)
        assert [row["id"] for row in at.list(archived=True)] == [other]
        assert [token["label"] for token in at.tokens()] == ["all"]
        assert [one["hash"] for one in at.sessions()] == ["t"]
    assert leftovers(url, id) == []
    again = store.create("fruit", one_of_its_name=True, **SHAPE)["id"]
    assert store.ask(again, "ann")["asks"]
    assert store.ask(other, "ann")["asks"]


@pytest.mark.slow
def test_a_kill_while_a_campaign_is_deleted_leaves_it_deleted(url: str) -> None:
    with Campaigns(url) as store:
        id, other = begin(store), begin(store, "other")
        store.tell(id, [{"id": str(k), "arm": k % 4, "values": [float(k)]} for k in range(30)])
    journal = open_journal(url)
    with journal.writing([id]) as writing:  # and there it is killed
        writing.remove_campaign(id)
    journal.close()
    with Campaigns(url) as store:
        assert [row["id"] for row in store.list()] == [other]
        with pytest.raises(NotFound):
            store.tell(id, [{"id": "x", "arm": 0, "values": [1.0]}])
        begin(store, "fruit", one_of_its_name=True)
        store.delete(other, "other")  # which frees what the killed one has left
    assert leftovers(url, id) == leftovers(url, other) == []


# Lists.


def test_pages_have_every_campaign_once(store: Campaigns, clock: Any) -> None:
    ids = []
    for k in range(11):
        clock.now += k % 3  # some of the same second
        ids.append(begin(store, f"Beans {k}" if k % 2 else f"peas {k} 100%_x"))
    for newest in (False, True):
        seen: list[str] = []
        after: str | None = None
        pages = 0
        while pages == 0 or after is not None:
            page = store.list_page(after, 3, newest_first=newest)
            seen += [one["id"] for one in page["campaigns"]]
            after, pages = page["next"], pages + 1
        wanted = [one["id"] for one in store.list()]
        assert sorted(wanted) == sorted(ids)
        assert seen == (wanted[::-1] if newest else wanted)
        assert pages == 4
    assert len(store.list_page(search="bEAn")["campaigns"]) == 5
    assert len(store.list_page(search="0%_")["campaigns"]) == 6
    assert store.list_page(search="0_%")["campaigns"] == []
    store.archive(ids[0])
    assert len(store.list_page()["campaigns"]) == 10
    assert len(store.list_page(archived=True)["campaigns"]) == 11
    assert [one["id"] for one in store.list_page(only=ids[3])["campaigns"]] == [ids[3]]
    page = store.list_page(limit=3)
    store.delete(page["campaigns"][-1]["id"], page["campaigns"][-1]["name"])
    assert len(store.list_page(page["next"])["campaigns"]) == 7  # its place is still known
    for wrong in ({"limit": 0}, {"limit": "x"}, {"after": "x"}, {"after": "x~y"}, {"search": "a\nb"}, {"search": 7}):
        with pytest.raises(BadValue) as caught:
            store.list_page(**wrong)
        assert caught.value.field == next(iter(wrong))


def test_a_list_reads_no_settings(
    store: Campaigns, opened: Callable[[], Campaigns], monkeypatch: pytest.MonkeyPatch
) -> None:
    id = begin(store, names=["a", "b", "c", "d"], value_names=["ph"])
    first = store.list()

    def never(text: str) -> Any:
        raise AssertionError("read")

    monkeypatch.setattr("coterie.campaign.settings._parsed", never)
    assert opened().list() == opened().list_page()["campaigns"] == first
    assert (first[0]["id"], first[0]["n_arms"], first[0]["value_names"]) == (id, 4, ["ph"])
    json.dumps(first)
