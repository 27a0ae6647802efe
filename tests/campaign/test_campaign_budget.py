"""Progress, forecast and budget of a campaign: on every kind of store, and from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coterie.campaign import BadValue, Campaigns, NotFound
from coterie.cli import app

Opened = Callable[[], Campaigns]
SHOWN = ("progress", "forecast", "forecast_low", "forecast_high")


def test_status_and_budget_survive_a_restart_and_follow_the_run(opened: Opened, world: Any) -> None:
    store = opened()
    id = world.create(store)
    fresh = store.status(id)
    assert fresh["progress"] == {
        "proven": 0, "needed": 12, "settled": 0, "items": 6, "share": 0.0,
        "words": "0 of 6 items measured at least once",
    }  # fmt: skip
    assert [fresh[key] for key in SHOWN[1:]] == [None, None, None]
    assert store.budget(id, 100)["chance"] is None

    world.run(store, id, stop_after=12)
    before, budget = store.status(id), store.budget(id, 10)
    assert not before["done"]
    assert 0 < before["forecast_low"] <= before["forecast"] <= before["forecast_high"]
    assert before["progress"]["share"] == pytest.approx(12 / (12 + before["forecast"]))
    assert (budget["more"], budget["t"], budget["needed"]) == (10, 12, 12)
    assert 0.0 < budget["chance"] < 1.0
    store.close()

    store = opened()
    after = store.status(id)
    assert {key: after[key] for key in SHOWN} == {key: before[key] for key in SHOWN}
    assert store.budget(id, 10) == budget

    world.run(store, id)
    done = store.status(id)
    assert done["done"]
    assert [done[key] for key in SHOWN[1:]] == [0.0, 0.0, 0.0]
    assert (done["progress"]["proven"], done["progress"]["settled"], done["progress"]["share"]) == (12, 6, 1.0)
    assert (store.budget(id, 10)["chance"], store.budget(id, 10)["done"]) == (1.0, True)
    store.close()
    store = opened()  # from its record, without a rule
    assert store.status(id)["progress"] == done["progress"]


@pytest.mark.parametrize("more", [0, -3, 1.5, "7", None, True, 10**9 + 1, 10**400], ids=lambda more: repr(more)[:12])
def test_a_budget_that_is_none_is_refused_by_name(tmp_path: Path, more: Any) -> None:
    with Campaigns(f"sqlite:///{tmp_path / 'store.db'}") as store:
        id = store.create("x", 4, 2, 1, noise=1.0)["id"]
        with pytest.raises(BadValue, match="more must be") as refused:
            store.budget(id, more)
        assert refused.value.field == "more"
        with pytest.raises(NotFound):
            store.budget("nobody", 3)


def test_the_commands_say_it_in_words(tmp_path: Path, world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = str(tmp_path / "lab.db")
    with Campaigns(path) as store:
        world.run(store, world.create(store), stop_after=12)

    def said(*words: str) -> Any:
        return CliRunner().invoke(app, ["campaign", *words, "--store", path])

    status = said("status", "world").stdout
    assert re.search(r"progress: .+", status)
    assert re.search(r"measurements: 12 so far, too early to say how many more: between about \d+ and \d+", status)
    assert said("budget", "world", "20").stdout.startswith("With 20 more measurements this is done with probability")
    assert json.loads(said("budget", "world", "20", "--json").stdout)["more"] == 20
    for wrong in ("0", "-4", "1000000001"):
        answer = CliRunner().invoke(app, ["campaign", "budget", "--store", path, "--", "world", wrong])
        assert answer.exit_code == 2
        assert answer.stderr.startswith("coterie: more must be at ")
        assert answer.stderr.count("\n") == 1
    assert said("budget", "world", "many").exit_code == 2
