"""Snapshots of states: used if they can be trusted, and never missed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.campaign import Campaigns, DamagedLog
from coterie.campaign.settings import CampaignSettings
from coterie.campaign.state import snapshots
from coterie.campaign.state.snapshots import state_from
from coterie.campaign.state.state import State
from coterie.store.journal import Reading, Snapshot


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Snapshots of short logs too; the list has the number of the last row of each state that was restored."""
    monkeypatch.setattr(snapshots, "FEWEST_ROWS", 20)
    restored: list[int] = []

    def counted(settings: CampaignSettings, content: bytes) -> State:
        state = state_from(settings, content)
        restored.append(state.seq)
        return state

    monkeypatch.setattr(snapshots, "state_from", counted)
    return restored


def stored(store: Campaigns, id: str) -> Snapshot | None:
    return store._campaigns.query(lambda reading: reading.snapshot(id))


def test_a_campaign_is_opened_from_its_snapshot(
    opened: Callable[[], Campaigns], world: Any, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    id = world.create(store, delta=1e-12)
    arms = world.run(store, id, stop_after=15)
    store.close()  # which waits for what is being written
    again = opened()
    found = stored(again, id)
    assert found is not None
    assert 20 < found.seq <= again.latest(id)
    read: list[int] = []
    kind = type(again._campaigns.journal.reading().__enter__())
    rows = kind.rows

    def counted(self: Reading, campaign: Any, after: int = 0, *more: Any, **named: Any) -> Any:
        read.append(after)
        return rows(self, campaign, after, *more, **named)

    monkeypatch.setattr(kind, "rows", counted)
    status = again.status(id)
    assert kept == [found.seq]
    assert set(read) <= {found.seq}
    arms += world.run(again, id, stop_after=10)
    whole = world.create(again, delta=1e-12)
    assert world.run(again, whole, stop_after=25) == arms
    assert status["t"] == 15


@pytest.mark.parametrize("loss", ["deleted", "spoiled", "other rules", "other log", "cut off", "ahead"])
def test_a_snapshot_that_is_of_no_use_costs_time_only(
    loss: str, opened: Callable[[], Campaigns], world: Any, kept: list[int]
) -> None:
    store = opened()
    id = world.create(store)
    world.run(store, id, stop_after=15)
    before = store.status(id)
    store.close()
    again = opened()
    found = stored(again, id)
    assert found is not None
    changed = {
        "deleted": found._replace(seq=0, hash="", content=b""),
        "spoiled": found._replace(content=b"nothing that can be read"),
        "other rules": found._replace(rules=found.rules + 1),
        "other log": found._replace(hash="0" * 64),
        "cut off": found._replace(content=found.content[: len(found.content) // 2]),
        "ahead": found._replace(seq=10**6),
    }[loss]
    again._campaigns.write(lambda writing: writing.keep_snapshot(changed))
    assert again.status(id) == before
    assert kept == []


def test_a_snapshot_of_another_build_is_not_used(
    opened: Callable[[], Campaigns], world: Any, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    id = world.create(store, delta=1e-12)
    world.run(store, id, stop_after=15)
    before = store.status(id)
    store.close()
    monkeypatch.setattr("coterie.campaign.state.snapshots.code_digest", lambda: "other")
    again = opened()
    assert stored(again, id) is not None
    assert again.status(id) == before
    assert kept == []
    assert again.ask(id, "w")["asks"]


def test_with_a_snapshot_missing_rows_are_noticed_too(tmp_path: Path, world: Any, kept: list[int]) -> None:
    """Rows before the snapshot are not read; but they are counted."""
    import sqlite3

    path = tmp_path / "store.db"
    with Campaigns(path) as store:
        id = world.create(store)
        world.run(store, id, stop_after=15)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT seq FROM snapshots").fetchone()[0] > 20
        connection.execute("DELETE FROM asks WHERE seq = 4")
    with Campaigns(path) as store, pytest.raises(DamagedLog, match="row 4 is missing"):
        store.status(id)
    assert kept == []


def test_a_store_that_cannot_be_written_is_read_all_the_same(
    opened: Callable[[], Campaigns], world: Any, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    id = world.create(store)
    world.run(store, id, stop_after=15)
    store.close()
    again = opened()
    again._campaigns.write(lambda writing: writing.keep_snapshot(Snapshot(id, 0, 0, "", b"")))

    def refused(*_: Any) -> Any:
        raise OSError("read-only")

    monkeypatch.setattr(type(again._campaigns.journal), "writing", refused)
    assert again.status(id)["t"] == 15
    again.close()
    assert kept == []


def test_a_page_shows_what_the_log_says(
    opened: Callable[[], Campaigns], world: Any, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest events and the course of the evidence come from the state: its own rows, those of others, or those
    that a snapshot kept."""

    def check(store: Campaigns) -> None:
        page = store.page(campaign, points=50, recent=30)
        assert page["history"] == store.history(campaign, 50)
        assert page["events"] == store.newest_events(campaign, limit=30)["events"]

    store, other = opened(), opened()
    campaign = world.create(store, delta=1e-12)
    check(store)
    for _ in range(3):
        world.run(store, campaign, stop_after=7)
        check(store)
        check(other)
    first = store.measurements(campaign)["measurements"][0]
    store.correct(campaign, first["id"], [value + 0.5 for value in first["values"]], "typed wrong")
    check(store)
    check(other)
    store.archive(campaign)
    store.unarchive(campaign)
    world.run(store, campaign)
    assert store.overview(campaign)["done"]
    check(store)
    check(other)
    store.close()
    other.close()
    again = opened()
    check(again)
    assert kept, "no snapshot was used"
    again.tell(campaign, [{"id": "late", "arm": 0, "values": first["values"]}])
    check(again)


def test_a_state_that_is_too_large_is_not_packed(
    opened: Callable[[], Campaigns], world: Any, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note of the stop says how long its claims are: nothing is worked out for a snapshot that is thrown away."""
    packed: list[int] = []
    whole = snapshots._packed

    def counted(plain: dict[str, Any], *more: Any) -> bytes | None:
        packed.append(plain["seq"])
        return whole(plain, *more)

    store = opened()
    id = world.create(store)
    world.run(store, id)
    stopped = store.latest(id)
    store.close()
    monkeypatch.setattr(snapshots, "LARGEST", 1000)
    monkeypatch.setattr(snapshots, "_packed", counted)
    monkeypatch.setattr("coterie.campaign.state.opening.restored", lambda *_: None)
    again = opened()
    assert again.status(id)["done"]
    again.close()
    assert stopped not in packed
