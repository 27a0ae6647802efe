"""Campaigns with many items: snapshots are as rare as they are dear, and groups are compared only when they change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.campaign import BadValue, Campaigns
from coterie.campaign.commands import managing, turn
from coterie.campaign.state import facts, snapshots
from coterie.campaign.state.facts import without_long_claims
from coterie.store.rows import Note


def kept(store: Campaigns, id: str) -> Any:
    """The snapshot of a campaign, once those under way are written."""
    thread = store._campaigns._snapshots._thread
    if thread is not None:
        thread.submit(lambda: None).result(60)
    return store._campaigns.query(lambda reading: reading.snapshot(id))


@pytest.mark.parametrize(("n_arms", "is_kept"), [(12, True), (3000, False)])
def test_snapshots_of_a_campaign_with_many_items_wait_for_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_arms: int, is_kept: bool
) -> None:
    """The memory of the method grows with the items, and takes longer to keep than few rows to be read again."""
    monkeypatch.setattr(snapshots, "FEWEST_ROWS", 50)
    monkeypatch.setattr(snapshots, "BYTES_A_ROW", 40_000)
    with Campaigns(tmp_path / "x.db") as store:
        id = store.create("many", n_arms, 3, 2, noise=1.0, delta=1e-9)["id"]
        told = [{"id": str(k), "arm": k % n_arms, "values": [float(k % 3), 0.0]} for k in range(300)]
        store.tell(id, told)
        assert (kept(store, id) is not None) == is_kept
        if is_kept:
            return
        store.tell(id, [{**one, "id": f"more {k}"} for k, one in enumerate(told * 4)])
        assert kept(store, id) is not None
        monkeypatch.setattr(snapshots, "LARGEST_MEMORY", 1000)
        before = kept(store, id).seq
        store.tell(id, [{**one, "id": f"again {k}"} for k, one in enumerate(told * 6)])
        assert kept(store, id).seq == before


def test_groups_are_compared_when_they_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [0]

    def counted(*arguments: Any) -> Any:
        calls[0] += 1
        return facts.change_of(*arguments)

    monkeypatch.setattr(turn, "change_of", counted)
    rng = np.random.default_rng(0)
    with Campaigns(tmp_path / "x.db") as store, Campaigns(tmp_path / "x.db") as other:
        id = store.create("many", 30, 3, 2, noise=1.0, delta=1e-3)["id"]
        for k in range(400):
            answer = store.ask(id, "w")
            if answer["done"]:
                break
            (one,) = answer["asks"]
            values = [3.0 * (one["arm"] % 3) + float(rng.normal()), float(rng.normal())]
            store.tell(id, [{"id": str(k), "arm": one["arm"], "values": values, "lease": one["lease"]}])
        assert k > 60
        changes = sum(one["kind"] == "groups" for one in store.events(id, limit=10_000)["events"])
        assert 0 < calls[0] < k / 2, (calls, changes, k)
        assert other.status(id) == store.status(id)
        assert sorted(one["size"] for one in store.status(id)["groups"]) == [10, 10, 10]


def test_a_cut_status_and_pages_of_items(tmp_path: Path) -> None:
    names = [f"item {k}" for k in range(40)]
    with Campaigns(tmp_path / "x.db") as store:
        id = store.create("many", 40, 2, 1, noise=1.0, names=names, costs=[1.0 + k for k in range(40)])["id"]
        store.tell(id, [{"id": str(k), "arm": k, "values": [10.0 * (k % 2)]} for k in range(40)])
        whole, cut = store.status(id), store.status(id, most_items=39)
        assert store.status(id, most_items=40) == whole
        assert whole.keys() - cut.keys() == {"costs"}
        assert {key for key in cut if whole[key] != cut[key]} == {"cut", "pulls", "labels", "names"}
        assert [cut[key] for key in ("pulls", "labels", "names")] == [None] * 3
        pages: list[Any] = []
        following: Any = 0
        while following is not None:
            page = store.items(id, following, 15)
            pages.append(page["items"])
            following = page["next"]
        assert [len(page) for page in pages] == [15, 15, 10]
        every = [one for page in pages for one in page]
        assert [one["name"] for one in every] == names
        group_of = {arm: group["id"] for group in whole["groups"] for arm in group["arms"]}
        assert [(one["group_id"], one["measurements"], one["cost"]) for one in every] == [
            (group_of[arm], whole["pulls"][arm], 1.0 + arm) for arm in range(40)
        ]


def test_the_claims_of_a_stop_are_left_out_of_events_if_they_are_long() -> None:
    said = {"t": 7, "by": "tell", "verdict": 'odd ", "outcome": words', "outcome": {"labels": [0, 1]}}
    short = Note(1, "stopped", json.dumps(said), 0.0)
    assert without_long_claims(short) is short
    long = short._replace(content=json.dumps(said | {"outcome": {"labels": list(range(300_000))}}))
    shown = without_long_claims(long)
    assert isinstance(shown, Note)
    assert shown.data == {key: said[key] for key in ("t", "by", "verdict")}


def test_items_that_join_count_towards_the_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managing, "MOST_ITEMS", 10)
    with Campaigns(tmp_path / "x.db") as store:
        id = store.create("few", 6, 2, 1, noise=1.0)["id"]
        with pytest.raises(BadValue, match="at most 10 items"):
            store.revise(id, add=5)
        assert store.revise(id, add=4)["items"] == 10
