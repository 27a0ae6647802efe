"""Items join and are retired, K is raised, δ is lowered: facts on every kind of store, and what the interfaces say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.campaign import BadValue, Campaigns, Conflict
from coterie.certificate import read_log
from coterie.cli import app

MEANS = [0.0, 0.0, 0.0, 4.0, 4.0, 4.0, 8.0, 8.0, 8.0]
NAMES = list("abcdef")
Opened = Callable[[], Campaigns]


def created(store: Campaigns, **settings: Any) -> str:
    given: dict[str, Any] = {"noise": 1.0, "delta": 0.05, "names": NAMES} | settings
    return str(store.create("beans", 6, 2, 1, **given)["id"])


def measure(store: Campaigns, id: str, until: int = 10**6) -> None:
    """Two workers with a lease each; up to so many results in all."""
    while (k := store.status(id)["measurements"]) < until:
        answer = store.ask(id, f"w{k % 2}", 1)
        if answer["done"]:
            return
        ask = answer["asks"][0]
        value = MEANS[ask["arm"]] + float(np.random.default_rng(k).normal())
        store.tell(id, [{"id": f"m{k}", "arm": ask["arm"], "values": [value], "lease": ask["lease"]}])


def check_proof(store: Campaigns, id: str, folder: Path) -> dict[str, Any]:
    log = folder / "log.csv"
    log.write_text(store.export(id, "log"))
    certificate: dict[str, Any] = json.loads(store.export(id, "certificate"))
    assert coterie.verify(certificate, read_log(log)).problems == []
    return certificate


def shown(store: Campaigns, id: str) -> dict[str, Any]:
    """The status without what differs between campaigns that did the same."""
    left_out = ("id", "created", "open_leases", "workers", "seq")
    return {key: value for key, value in store.status(id).items() if key not in left_out}


@pytest.mark.slow
def test_revisions_survive_restarts_and_are_in_the_proof(opened: Opened, tmp_path: Path) -> None:
    store, steady = opened(), opened()
    ids = [created(store), created(steady)]
    steps: list[Callable[[Campaigns, str], Any]] = [
        lambda campaigns, id: measure(campaigns, id, 15),
        lambda campaigns, id: campaigns.revise(id, add=["g", "h", "i"], n_clusters=3, by="Ada", reason="a new batch"),
        lambda campaigns, id: measure(campaigns, id, 40),
        lambda campaigns, id: campaigns.revise(id, retire=["b"], reason="it broke"),
        lambda campaigns, id: measure(campaigns, id),
    ]
    for step in steps:
        step(steady, ids[1])
        step(opened(), ids[0])  # each time like another process
    last = opened()
    assert shown(last, ids[0]) == shown(steady, ids[1])
    status = last.status(ids[0])
    assert status["done"] is True
    assert status["labels"] == [0, -1, 0, 1, 1, 1, 2, 2, 2]
    assert status["retired"] == [{"arm": 1, "name": "b"}]
    assert [one["retired"] for one in status["revisions"]] == [[], [1]]
    assert sorted(len(group["names"]) for group in status["groups"]) == [2, 3, 3]
    certificate = check_proof(last, ids[0], tmp_path)
    assert certificate["present"] == [0, 2, 3, 4, 5, 6, 7, 8]
    assert "nothing is promised about the 1 retired" in certificate["revisions_in_words"]
    events = json.loads(last.export(ids[0], "json"))["events"]
    noted = [one for one in events if one["kind"] == "revision"]
    assert [(one.get("by"), one["reason"]) for one in noted] == [("Ada", "a new batch"), (None, "it broke")]
    lines = last.export(ids[0], "groups").splitlines()
    assert lines[2].startswith("b,,retired,")
    assert last.partial(ids[0])["items"][1]["group_id"] is None


def test_a_campaign_that_is_done_goes_on_to_a_sharper_proof(opened: Opened, tmp_path: Path) -> None:
    store = opened()
    id = created(store)
    measure(store, id)
    before = check_proof(store, id, tmp_path)
    assert store.revise(id, delta=1e-6)["done"] is False
    other = opened()
    assert other.status(id)["done"] is False
    measure(other, id)
    after = check_proof(other, id, tmp_path)
    assert (before["delta"], after["delta"]) == (0.05, 1e-6)
    assert after["t"] > before["t"]
    log = read_log(tmp_path / "log.csv")
    assert coterie.verify(before, log).valid  # the earlier certificate stays valid, at its delta
    assert store.status(id)["done"] is True  # a process that had it open sees it too


def test_results_of_retired_items_are_kept_and_count_for_nothing(store: Campaigns) -> None:
    id = created(store)
    measure(store, id, 8)
    ask = store.ask(id, "slow", 1)["asks"][0]
    store.revise(id, retire=[ask["name"]])
    t = store.status(id)["t"]
    answer = store.tell(id, [{"id": "late", "arm": ask["name"], "values": [1.0], "lease": ask["lease"]}])
    assert answer["accepted"] == 1
    assert store.status(id)["t"] == t
    assert store.measurements(id)["measurements"][-1]["counted"] is False


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"add": ["a"]}, "add", "is there already"),
        ({"add": ["x", "x"]}, "add", "twice"),
        ({"retire": ["z"]}, "retire", "unknown item"),
        ({"retire": ["a", "b", "c", "d"]}, "retire", "2 items would be left for 2 groups"),
        ({"n_clusters": 2}, "n_clusters", "can only be raised"),
        ({"n_clusters": 6}, "n_clusters", "6 items would be left for 6 groups"),
        ({"delta": 0.5}, "delta", "can only be lowered"),
        ({}, "add", "nothing to revise"),
    ],
)
def test_bad_revisions_are_refused_and_change_nothing(tmp_path: Path, changes: Any, field: str, says: str) -> None:
    with Campaigns(f"sqlite:///{tmp_path / 'store.db'}") as store:
        id = created(store)
        measure(store, id, 8)
        before = shown(store, id)
        with pytest.raises(BadValue, match=says) as refused:
            store.revise(id, **changes)
        assert refused.value.field == field
        assert shown(store, id) == before


def test_methods_that_cannot_be_revised_say_so(tmp_path: Path) -> None:
    with Campaigns(f"sqlite:///{tmp_path / 'store.db'}") as store:
        id = created(store, method="uniform")
        with pytest.raises(Conflict, match="method 'uniform' cannot be revised"):
            store.revise(id, delta=0.01)


def test_the_commands_revise(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    with Campaigns(f"sqlite:///{path}") as store:
        id = created(store)
        measure(store, id, 8)

    def run(*arguments: str) -> str:
        found = CliRunner().invoke(app, ["campaign", *arguments, "--store", path])
        assert found.exit_code == 0, found.output
        return found.output

    assert "8 items in 2 groups" in run("items", "beans", "--add", "g", "--add", "h", "--reason", "new")
    assert "retired, with their results kept and nothing claimed about them: b" in run(
        "items", "beans", "--retire", "b"
    )
    assert "7 items in 3 groups" in run("clusters", "beans", "3")
    assert "error probability 0.001" in run("delta", "beans", "0.001")
    refused = CliRunner().invoke(app, ["campaign", "delta", "beans", "0.5", "--store", path])
    assert refused.exit_code != 0
    assert "can only be lowered" in refused.output
    assert "Traceback" not in refused.output
