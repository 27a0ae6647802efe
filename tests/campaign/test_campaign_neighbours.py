"""One campaign does not hold up another: long work is done outside of transactions, in parts, or refused."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from waiting import wait_until

from coterie.campaign import Campaigns, Conflict, imports
from coterie.campaign.commands import measuring
from coterie.campaign.service import open_campaigns
from coterie.campaign.state.state import State
from coterie.session import corrections, replaying


@pytest.fixture
def two(store: Campaigns) -> tuple[Campaigns, str, str]:
    """A store with two campaigns that are in memory."""
    shape: dict[str, Any] = {"n_arms": 6, "n_clusters": 3, "dim": 1, "noise": 1.0, "method": "uniform"}
    ids = [store.create(name, **shape)["id"] for name in ("large", "small")]
    for id in ids:
        store.tell(id, [{"id": str(k), "arm": k % 6, "values": [float(k)]} for k in range(20)])
    return store, ids[0], ids[1]


def ask_and_tell(store: Campaigns, id: str, k: int) -> None:
    (one,) = store.ask(id, f"w{k}")["asks"]
    store.tell(id, [{"id": f"n{k}", "arm": one["arm"], "values": [0.0], "lease": one["lease"]}])


def test_small_campaigns_stay_in_memory_and_the_oldest_goes_when_they_are_too_large(
    two: tuple[Campaigns, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, large, small = two
    opened = store._campaigns._opened
    shape: dict[str, Any] = {"n_arms": 3, "n_clusters": 2, "dim": 1, "noise": 1.0}
    ids = [store.create(f"c{k}", **shape)["id"] for k in range(40)]
    for id in ids:
        ask_and_tell(store, id, 0)
    assert list(opened) == [large, small, *ids]
    assert all(one.size > 0 for one in opened.values())
    monkeypatch.setattr(open_campaigns, "_BYTES_KEPT", sum(one.size for one in opened.values()) - 1)
    ask_and_tell(store, store.create("one more", **shape)["id"], 0)
    assert list(opened)[:-1] == [small, *ids]
    monkeypatch.setattr(open_campaigns, "_BYTES_KEPT", 0)
    ask_and_tell(store, store.create("and another", **shape)["id"], 0)
    assert len(opened) == open_campaigns._STATES_KEPT, "so many stay, however large they are"
    ask_and_tell(store, ids[0], 1)
    assert store.status(ids[0])["measurements"] == 2


@pytest.mark.parametrize("how", ["posted", "called"])
def test_a_campaign_that_has_to_be_read_again_holds_up_nobody_else(
    two: tuple[Campaigns, str, str], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    store, large, small = two
    reading, go_on = threading.Event(), threading.Event()
    state_of = State.of

    def slowly(settings: Any, rows: Any) -> State:
        reading.set()
        go_on.wait(60)
        return state_of(settings, rows)

    monkeypatch.setattr(State, "of", slowly)
    store._campaigns._opened.pop(large)  # as when others were opened since
    told = [{"id": "again", "arm": 0, "values": [1.0]}]
    with ThreadPoolExecutor(1) as pool:
        waiting = store.post("tell", large, told) if how == "posted" else pool.submit(store.tell, large, told)
        assert reading.wait(60)
        for k in range(3):
            ask_and_tell(store, small, k)
        assert not waiting.done(), "they had to wait until the large one was read"
        go_on.set()
        assert waiting.result(60)["accepted"] == 1
    assert store.status(large)["measurements"] == 21


def test_rows_of_another_process_are_read_outside_of_the_turn(
    two: tuple[Campaigns, str, str], opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if they never end: after some tries it is read there and then."""
    store, large, _ = two
    other = opened()
    monkeypatch.setattr(open_campaigns, "_FEW_ROWS", 0)
    for k in range(3):
        other.tell(large, [{"id": f"o{k}", "arm": 0, "values": [1.0]}])
        assert store.tell(large, [{"id": f"s{k}", "arm": 0, "values": [1.0]}])["accepted"] == 1
    monkeypatch.setattr(open_campaigns, "_is_far_behind", lambda *_: True)
    assert store.tell(large, [{"id": "last", "arm": 0, "values": [1.0]}])["accepted"] == 1
    assert store.post("tell", large, [{"id": "posted", "arm": 0, "values": [1.0]}]).result(60)["accepted"] == 1
    assert store.status(large)["measurements"] == other.status(large)["measurements"] == 28


def test_a_campaign_that_somebody_reads_for_long_holds_up_nobody_else(
    two: tuple[Campaigns, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, large, small = two
    commits = store._campaigns.group_commit
    serve, groups = commits.serve, []

    def counted(requests: Any) -> None:
        groups.append(len(requests))
        serve(requests)

    monkeypatch.setattr(commits, "serve", counted)
    with store._campaigns._opened[large].lock, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.tell, large, [{"id": "again", "arm": 0, "values": [1.0]}])
        posted = store.post("tell", large, [{"id": "more", "arm": 0, "values": [1.0]}])
        wait_until(lambda: bool(groups))
        with ThreadPoolExecutor(1) as others:
            others.submit(ask_and_tell, store, small, 0).result(60)
        assert not waiting.done()
        assert not posted.done()
        store._campaigns._opened[large].lock.release()
        try:
            assert waiting.result(60)["accepted"] == 1
            assert posted.result(60)["accepted"] == 1
        finally:
            store._campaigns._opened[large].lock.acquire()


@pytest.mark.slow
def test_a_long_import_lets_others_write_between_its_parts(
    two: tuple[Campaigns, str, str], opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, large, small = two
    monkeypatch.setattr(imports, "_FIRST", 50)
    monkeypatch.setattr(imports, "_LONGEST", 50)
    rows = [{"id": f"i{k}", "arm": k % 6, "v0": float(k)} for k in range(600)]
    other, answers = opened(), []
    importing = threading.Thread(target=lambda: answers.append(store.import_table(large, rows, in_order=True)))
    importing.start()
    between = 0
    while importing.is_alive():
        ask_and_tell(other, small, between)
        between += importing.is_alive()
    assert between >= 3
    assert answers[0]["accepted"] == 600
    assert store.import_table(large, rows, in_order=True)["duplicates"] == 600
    events = store.events(large, 0, 10_000)["events"]
    assert [one["measurements"] for one in events if one["kind"] == "imported"] == [600]
    told = [one["id"] for one in store.measurements(large, 0, 10_000)["measurements"]][20:]
    assert told == [row["id"] for row in rows]


def test_a_table_with_a_wrong_row_at_its_end_changes_nothing(two: tuple[Campaigns, str, str]) -> None:
    store, large, _ = two
    rows: list[dict[str, Any]] = [{"id": f"i{k}", "arm": k % 6, "v0": float(k)} for k in range(1200)]
    before = store.latest(large)
    for wrong in ({"id": "x", "arm": 99, "v0": 1.0}, {"id": "0", "arm": 5, "v0": 1.0}):
        with pytest.raises(ValueError, match=r"."):
            store.import_table(large, [*rows, wrong])
        assert store.latest(large) == before


def test_many_asks_are_opened_in_parts_and_too_many_are_refused(
    two: tuple[Campaigns, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, large, _ = two
    monkeypatch.setattr(measuring, "MOST_OPEN", 900)
    asks = store.ask(large, "w", 700)["asks"]
    assert len({one["lease"] for one in asks}) == 700
    assert [one["lease"] for one in store.ask(large, "w", 700)["asks"]] == [one["lease"] for one in asks]
    before = store.latest(large)
    with pytest.raises(Conflict, match=r"700 asks are open, and at most 900 may be") as caught:
        store.ask(large, "v", 201)
    assert (caught.value.code, caught.value.field) == ("too_many_leases", "n")
    assert store.latest(large) == before
    assert store.ask(large, "w", 5)["asks"]  # one's own are given back all the same


def test_a_list_reads_long_settings_once(store: Campaigns, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"item {k}" for k in range(2000)]
    id = store.create("x", len(names), 2, 1, noise=1.0, method="uniform", names=names)["id"]
    first = store.list()

    def never(text: str) -> Any:
        raise AssertionError("read again")

    monkeypatch.setattr("coterie.campaign.settings._parsed", never)
    assert store.list() == first
    assert first[0]["id"] == id


def test_campaigns_too_large_to_be_shown_are_refused(store: Campaigns) -> None:
    for wrong, field in (({"n_arms": 1_000_001, "dim": 1}, "n_arms"), ({"n_arms": 50_000, "dim": 1000}, "n_arms")):
        with pytest.raises(ValueError, match="at most") as caught:
            store.create("x", n_clusters=2, noise=1.0, method="uniform", **wrong)  # type: ignore[arg-type]
        assert caught.value.field == field  # type: ignore[attr-defined]


def test_a_correction_of_a_long_log_holds_up_nobody_else(
    two: tuple[Campaigns, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, large, small = two
    working, go_on, prepare = threading.Event(), threading.Event(), corrections.prepare

    def slowly(*arguments: Any) -> Any:
        working.set()
        go_on.wait(60)
        return prepare(*arguments)

    monkeypatch.setattr(corrections, "prepare", slowly)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.correct, large, "3", [33.0], "typed wrong")
        assert working.wait(60)
        for k in range(3):
            ask_and_tell(store, small, k)
        assert not waiting.done(), "they had to wait until the correction was worked out"
        go_on.set()
        assert waiting.result(60)["corrected"]
    (made,) = store.status(large)["corrections"]
    assert (made["old"], made["new"]) == ([3.0], [33.0])


def test_a_correction_counts_what_was_told_while_it_was_worked_out(
    two: tuple[Campaigns, str, str], opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes: it is worked out again, and after some tries there and then. Nothing is lost."""
    store, large, _ = two
    other, prepare, told = opened(), corrections.prepare, [0]

    def meanwhile(*arguments: Any) -> Any:
        if told[0] < 5:
            told[0] += 1
            other.tell(large, [{"id": f"o{told[0]}", "arm": 0, "values": [1.0]}])
        return prepare(*arguments)

    monkeypatch.setattr(corrections, "prepare", meanwhile)
    assert store.correct(large, "3", [33.0], "typed wrong", correction="c1")["corrected"]
    assert told[0] == 5
    monkeypatch.undo()
    for one in (store, other, opened()):
        assert [note["id"] for note in one.status(large)["corrections"]] == ["c1"]
        assert one.status(large)["measurements"] == 25
    assert not other.correct(large, "3", [33.0], "typed wrong", correction="c1")["corrected"]
    shown = [one.status(large) for one in (store, other, opened())]
    assert shown[0] == shown[1] == shown[2]


def test_a_correction_by_another_process_is_read_outside_of_the_turn(
    two: tuple[Campaigns, str, str], opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs the whole log, though it is one row."""
    store, large, small = two
    opened().correct(large, "3", [33.0], "typed wrong")
    reading, go_on, state_of = threading.Event(), threading.Event(), State.of

    def slowly(settings: Any, rows: Any) -> State:
        reading.set()
        go_on.wait(60)
        return state_of(settings, rows)

    monkeypatch.setattr(State, "of", slowly)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.tell, large, [{"id": "again", "arm": 0, "values": [1.0]}])
        assert reading.wait(60)
        for k in range(3):
            ask_and_tell(store, small, k)
        assert not waiting.done(), "they had to wait until the large one was read"
        go_on.set()
        assert waiting.result(60)["accepted"] == 1
    assert store.status(large)["measurements"] == 21


@pytest.mark.parametrize("few", [0, replaying.FEW])
@pytest.mark.parametrize("noise", [1.0, None, "gaussian"])
def test_rows_of_another_process_leave_the_state_that_the_whole_log_leads_to(
    opened: Any, monkeypatch: pytest.MonkeyPatch, few: int, noise: Any
) -> None:
    """Whether they are followed one by one or at once; some asks fail, some results answer none, some overtake."""
    monkeypatch.setattr(replaying, "FEW", few)
    first, second = opened(), opened()
    id, rng = first.create("shared", 5, 2, 1, noise=noise, on_expiry="skip")["id"], np.random.default_rng(7)
    leases: list[tuple[Campaigns, dict[str, Any]]] = []
    for k in range(50):
        store = (first, second)[int(rng.integers(2))]
        leases += [(store, ask) for ask in store.ask(id, f"w{k}", int(rng.integers(1, 4)))["asks"]]
        _, ask = leases.pop(int(rng.integers(len(leases))))
        told = {"id": f"m{k}", "arm": ask["arm"], "values": [2.0 * (ask["arm"] % 2) + rng.standard_normal()]}
        with suppress(Conflict):  # a result without its lease has answered another ask for the item
            if k % 11 == 5:
                store.fail(id, ask["lease"], "broken")
            else:
                store.tell(id, [told if k % 7 == 3 else told | {"lease": ask["lease"]}])
        if store.status(id)["done"]:
            break
    whole = opened()
    states = [store._campaigns.read(id, lambda reading: reading.state) for store in (first, second, whole)]
    assert states[0].n_results > 20
    for state in states[:2]:
        assert state.session.to_dict() == states[2].session.to_dict()
        assert (state.seq, state.evidence_t, state.missed) == (states[2].seq, states[2].evidence_t, states[2].missed)
