"""Another resolution for a campaign under way: a fact on every kind of store, and what the interfaces say about it."""

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

MEANS = [0.0, 0.2, 4.0, 4.1, 8.0]
FIRST = {"alike": 0.5, "apart": 1.0, "norm": "each", "claim": "references"}
Opened = Callable[[], Campaigns]


def created(store: Campaigns, **settings: Any) -> str:
    given: dict[str, Any] = {"resolution": (0.5, 1.0), "noise": 1.0, "delta": 0.1} | settings
    return str(store.create("beans", 5, dim=1, **given)["id"])


def measure(store: Campaigns, id: str, until: int) -> None:
    """Two workers; up to so many results in all."""
    while (k := store.status(id)["measurements"]) < until:
        answer = store.ask(id, f"w{k % 2}", 1)
        if answer["done"]:
            return
        (ask,) = answer["asks"]
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
    status = store.status(id)
    return {key: value for key, value in status.items() if key not in ("id", "created", "open_leases", "workers")}


@pytest.mark.slow
def test_a_choice_survives_a_restart_and_is_in_the_proof(opened: Opened, tmp_path: Path) -> None:
    store = opened()
    id = created(store)
    measure(store, id, 40)
    answer = store.choose_resolution(id, (0.6, 2.0))
    assert answer["changed"] is True
    assert answer["resolution"] == FIRST | {"alike": 0.6, "apart": 2.0}
    assert answer["forecast"] > 0
    before = store.status(id)
    assert store.choose_resolution(id, (0.6, 2.0)) == answer | {"changed": False}  # a request that is sent twice
    assert store.status(id)["seq"] == before["seq"]
    store.close()

    store = opened()
    status = store.status(id)
    assert status == before
    assert status["resolution"] == answer["resolution"]
    assert status["question"]["words"] == "groups up to a resolution of 0.6 and 2"
    assert "0.6 and 2" in status["assumed"]
    assert status["resolutions"] == [
        FIRST | {"chosen_at": 0, "epoch": 0},
        answer["resolution"] | {"chosen_at": 40, "epoch": answer["epoch"]},
    ]
    assert store.settings(id)["resolution"] == FIRST  # what it was created with
    measure(store, id, 2000)
    assert "within 2 of its reference" in store.status(id)["verdict"]
    certificate = check_proof(store, id, tmp_path)
    assert certificate["eta"] == [2.0]
    assert "0.6 and 2 after 40 results" in certificate["resolutions_in_words"]
    with pytest.raises(Conflict, match="import them into a new campaign") as caught:
        store.choose_resolution(id, (0.1, 3.0))
    assert (caught.value.code, caught.value.field) == ("already_done", "resolution")
    done = shown(store, id)
    store.close()
    assert shown(opened(), id) == done


@pytest.mark.slow
def test_resuming_equals_never_having_stopped(opened: Opened) -> None:
    whole = opened()
    one, other = created(whole), created(whole)
    for until, resolution in ((38, (0.6, 1.2)), (55, (0.4, 1.1)), (70, None)):
        measure(whole, one, until)
        if resolution is not None:
            whole.choose_resolution(one, resolution)
        again = opened()  # another process, each time
        measure(again, other, until)
        if resolution is not None:
            opened().choose_resolution(other, resolution)
            again.status(other)  # it catches up with the choice of a third process
        again.close()
    assert shown(whole, one) == shown(opened(), other) | {"seq": shown(whole, one)["seq"]}
    rows = [
        [{key: one for key, one in row.items() if key not in ("lease", "at", "expires")} for row in found["events"]]
        for found in (whole.events(one), whole.events(other))
    ]
    assert rows[0] == rows[1]
    assert [row["kind"] for row in rows[0]].count("resolution") == 2


def test_bad_values_are_refused_and_change_nothing(opened: Opened) -> None:
    store = opened()
    id = created(store)
    measure(store, id, 12)
    before = store.status(id)
    wrong: list[tuple[Any, str]] = [
        ((2, 1), "alike must be smaller than apart, got 2 and 1"),
        ((-1, 1), "must not be negative"),
        (((1, 2), (3, 4)), "the resolution has 2 numbers, but the measurements have 1"),
        ({"alike": 1, "apart": 2, "norm": "distance"}, "the norm cannot be changed"),
        (None, "resolution must be"),
    ]
    for given, said in wrong:
        with pytest.raises(BadValue, match=said) as caught:
            store.choose_resolution(id, given)
        assert caught.value.field == "resolution"
    assert store.status(id) == before
    groups = str(store.create("groups", 5, 2, 1)["id"])
    with pytest.raises(BadValue, match="no alike and apart to choose"):
        store.choose_resolution(groups, (1, 2))
    assert store.status(groups)["resolutions"] == []


def run(store: str, *words: str) -> Any:
    return CliRunner().invoke(app, ["campaign", *words, "--store", store])


def test_the_command(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    with Campaigns(path) as store:
        id = created(store)
        measure(store, id, 40)
    answer = run(path, "resolution", "beans", "--alike", "0.6", "--apart", "2")
    assert answer.exit_code == 0, answer.output
    assert "from here on: groups up to a resolution of 0.6 and 2" in answer.output
    assert "more measurements" in answer.output
    assert "nothing has changed" in run(path, "resolution", "beans", "--alike", "0.6", "--apart", "2").output
    found = json.loads(run(path, "status", "beans", "--json").output)
    assert found["resolution"] == FIRST | {"alike": 0.6, "apart": 2.0}
    seen = " ".join(run(path, "status", "beans").output.split())
    assert "The resolution was chosen after 40 measurements; before it was 0.5 and 1." in seen
    for words, said in (
        (("--alike", "3", "--apart", "2"), "--alike must be smaller than --apart"),
        (("--alike", "3"), "say with --apart"),
        ((), "with --alike"),
    ):
        answer = run(path, "resolution", "beans", *words)
        assert answer.exit_code != 0
        assert said in answer.output or said in str(answer.exception)
