"""The picture of a campaign: places, intervals, groups and the matrix of evidence, against its session and its log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.campaign import Campaigns
from coterie.campaign.views import picture
from coterie.campaign.views.partial import TakenResults
from coterie.campaign.views.picture import MOST_DOTS, TakenPicture
from coterie.evidence.item_means import ItemMeans, item_means
from coterie.problem.settings import Settings
from coterie.session.partial import Moment

NAMES = [f"site{i}" for i in range(1, 10)]
LEVELS = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0]
RESOLUTION = (0.3, 1.2)


def measure(store: Campaigns, id: str, count: int, session: coterie.Session, numbers: int = 1) -> None:
    """Ask and tell so often, or until it is done; the same to a session of one's own."""
    for k in range(count):
        answer = store.ask(id, "w")
        if answer["done"]:
            return
        (ask,) = answer["asks"]
        rng = np.random.default_rng([ask["arm"], k])
        x = [float((i + 1) * LEVELS[ask["arm"]] + 0.5 * rng.standard_normal()) for i in range(numbers)]
        store.tell(id, [{"id": ask["lease"], "arm": ask["arm"], "values": x, "lease": ask["lease"]}])
        assert session.ask() == ask["arm"]
        session.tell(ask["arm"], x)


def expected_row(session: coterie.Session, arm: int, ids: dict[int, int]) -> str:
    """What is proven of an item and the representative of each group, by the lists of `partial`; by ids of groups."""
    found = session.partial()
    kinds = ""
    for label in sorted(ids, key=lambda label: ids[label]):
        lead = found.representatives[label]
        pair = (min(arm, lead), max(arm, lead))
        both = (pair in found.alike, pair in found.apart)
        kinds += "r" if arm == lead else {(True, False): "+", (False, True): "-", (True, True): "b"}.get(both, "?")
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize("question", [{"n_clusters": 3}, {"resolution": RESOLUTION}], ids=["groups", "resolution"])
def test_it_says_what_the_session_says(opened: Callable[[], Campaigns], question: dict[str, Any]) -> None:
    store = opened()
    id = str(store.create("sites", 9, dim=1, noise=0.5, names=NAMES, **question)["id"])
    session = coterie.Session(9, question.get("n_clusters"), 1, noise=0.5, resolution=question.get("resolution"))
    empty = store.picture(id)
    assert (empty["t"], empty["measured"], empty["groups"], empty["axes"]) == (0, 0, [], None)
    assert [(one["name"], one["mean"], one["group_id"]) for one in empty["items"]] == [(n, None, None) for n in NAMES]
    for count in (40, 400):
        measure(store, id, count, session)
        told = store.measurements(id)["measurements"]
        for reader in (store, opened()):
            found, status, partial = reader.picture(id), reader.status(id), reader.partial(id)
            by_label = {group["label"]: group["id"] for group in status["groups"]}
            assert [column["group_id"] for column in found["matrix"]["columns"]] == sorted(by_label.values())
            proven = session.intervals("items")
            assert found["interval"]["proven"]
            assert found["interval"]["words"].startswith("proven intervals for the means")
            for arm, one in enumerate(found["items"]):
                values = [row["values"][0] for row in told if row["arm"] == arm and row["counted"]]
                assert one["measurements"] == len(values)
                assert (one["mean"][0], one["low"][0], one["high"][0]) == pytest.approx(
                    (np.mean(values), proven.low[arm, 0], proven.high[arm, 0]), rel=1e-6
                )
                assert one["group_id"] == by_label[status["labels"][arm]]
                assert (one["settled"], one["possible"]) == (
                    partial["items"][arm]["settled"],
                    partial["items"][arm]["possible"],
                )
                assert one["evidence"] == expected_row(session, arm, by_label), arm
                assert one["retired"] is False
            assert found["matrix"]["error"] == partial["error"]
            assert sum(group["size"] for group in found["groups"]) == 9
            assert "matrix" not in partial  # the list of pairs stays as it was
            quick = reader.picture(id, proven=False)
            assert quick["matrix"] is None
            assert [one["mean"] for one in quick["items"]] == [one["mean"] for one in found["items"]]
            assert {one["evidence"] for one in quick["items"]} == {None}
    assert found["done"]
    said = found["matrix"]["means"]["+"]
    assert said == ("proven to be in the group" if "n_clusters" in question else "proven within 1.2 of the reference")


def test_axes_have_names(store: Campaigns) -> None:
    id = str(
        store.create("sites", 9, n_clusters=3, dim=3, noise=0.5, names=NAMES, value_names=["ph", "iron", "lead"])["id"]
    )
    session = coterie.Session(9, 3, 3, noise=0.5)
    measure(store, id, 30, session, 3)
    found = store.picture(id)
    means = np.array([one["mean"] for one in found["items"]]) / 0.5
    direction = np.linalg.svd(means - means.mean(axis=0))[2][0]
    direction *= np.sign(direction[np.argmax(np.abs(direction))])
    assert list(found["axes"]["loadings"][0]) == ["ph", "iron", "lead"]
    assert list(found["axes"]["loadings"][0].values()) == pytest.approx(direction, abs=1e-3)
    heaviest = sorted(zip(np.abs(direction), ("ph", "iron", "lead"), strict=True), reverse=True)
    start = f"axis 1: {heaviest[0][0]:.2g} {heaviest[0][1]} + {heaviest[1][0]:.2g} {heaviest[1][1]}"
    assert found["axes"]["words"][0].startswith(start)
    assert [one["at"][0] for one in found["items"]] == pytest.approx((means - means.mean(axis=0)) @ direction, abs=1e-4)
    assert [one["name"] for one in found["numbers"]] == ["ph", "iron", "lead"]


def test_a_method_without_certificates_has_dots_and_no_matrix(tmp_path: Path) -> None:
    store = Campaigns(f"sqlite:///{tmp_path / 'store.db'}")
    id = str(store.create("x", 6, n_clusters=2, dim=1, noise=1.0, method="uniform")["id"])
    store.tell(id, [{"id": str(k), "arm": k % 6, "values": [float(k % 2)]} for k in range(12)])
    found = store.picture(id)
    assert found["matrix"] is None
    assert found["no_matrix"] == "method 'uniform' proves nothing about single items"
    assert all(one["settled"] is None and one["mean"] is not None for one in found["items"])
    store.close()


def test_what_was_computed_is_kept_until_something_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Campaigns(f"sqlite:///{tmp_path / 'store.db'}")
    id = str(store.create("x", 6, n_clusters=2, dim=1, noise=1.0, method="uniform")["id"])
    calls = []

    def counted(*given: Any) -> ItemMeans:
        calls.append(1)
        return item_means(*given)

    monkeypatch.setattr(picture, "item_means", counted)
    store.tell(id, [{"id": str(k), "arm": k % 6, "values": [0.0]} for k in range(6)])
    first = store.picture(id)
    assert store.picture(id) == first
    assert len(calls) == 1
    store.tell(id, [{"id": "6", "arm": 0, "values": [3.0]}])
    assert store.picture(id)["items"][0]["mean"] == [1.5]
    assert len(calls) == 2
    store.close()


def taken_of(n_arms: int, labels: np.ndarray, dim: int = 1, each: int = 1, certain: bool = False) -> TakenPicture:
    """What is taken of a campaign that has these labels."""
    arms = np.tile(np.arange(n_arms), each)
    values = np.random.default_rng(0).normal(size=(arms.size, dim)) + 5.0 * labels[arms][:, None]
    settings = Settings.of(n_arms, int(labels.max()) + 1, dim, noise=1.0)
    moment = Moment(settings, labels, False, False, None, arms, np.arange(arms.size), values)
    results = TakenResults(
        SimpleNamespace(computed={}),  # type: ignore[arg-type]
        (1,), moment, {"id": "x"}, [f"item {i}" for i in range(n_arms)], list(range(1, int(labels.max()) + 2)),
    )  # fmt: skip
    return TakenPicture(results, [f"v{i}" for i in range(dim)], certain, "not here")


def test_retired_items_are_in_no_group() -> None:
    """Their label is negative: they keep their place, and count in no group."""
    taken = taken_of(6, np.array([0, 1, 0, 1, 0, -1]), each=4)
    found = picture.picture(taken)
    last = found["items"][5]
    assert (last["retired"], last["group_id"], last["measurements"]) == (True, None, 4)
    assert last["mean"] is not None
    assert [(group["id"], group["size"]) for group in found["groups"]] == [(1, 3), (2, 2)]
    assert [one["retired"] for one in found["items"]] == [False] * 5 + [True]


@pytest.mark.parametrize(("n_arms", "dim"), [(MOST_DOTS, 8), (100_000, 3)])
def test_large_campaigns_stay_small_and_quick(n_arms: int, dim: int) -> None:
    taken = taken_of(n_arms, np.arange(n_arms) % 500, dim, each=2)
    began = time.process_time()
    found = picture.picture(taken)
    assert time.process_time() - began < 10.0  # it needs 0.3 s
    assert len(json.dumps(found)) < 1_000_000
    assert len(found["items"]) == (n_arms if n_arms <= MOST_DOTS else 0)
    assert (found["cut"] is None) == (n_arms <= MOST_DOTS)
    assert len(found["groups"]) == 200
    group = found["groups"][3]
    its = np.arange(n_arms) % 500 == group["id"] - 1
    sums = np.zeros((n_arms, dim))
    np.add.at(sums, taken.results.moment.arms, np.array(taken.results.moment.log))
    listed = [one["index"] for one in found["numbers"]]
    assert group["mean"] == pytest.approx((sums[its] / 2).mean(axis=0)[listed], rel=1e-6)
    assert (group["size"], group["measurements"]) == (its.sum(), 2 * its.sum())


def test_a_value_without_answers_is_none() -> None:
    taken = taken_of(4, np.array([0, 1, 0, 1]))
    moment = taken.results.moment
    fewer = replace(moment, arms=moment.arms[:3], rows=moment.rows[:3])
    found = picture.picture(replace(taken, results=replace(taken.results, moment=fewer)))
    assert found["items"][3]["mean"] is None
    assert found["measured"] == 3
