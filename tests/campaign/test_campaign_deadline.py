"""Campaigns with a deadline: asking ends there, what is proven and the guess are handed over, and it can be moved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed import assert_reads_the_same, kill_points, lasting, said_until_killed
from typer.testing import CliRunner, Result

import coterie
from coterie.campaign import BadValue, Campaigns, Conflict
from coterie.campaign.state import snapshots
from coterie.cli import app

LEVELS = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0])
NAMES = list("abcdefghi")


def begun(store: Campaigns, **more: Any) -> str:
    settings: dict[str, Any] = {"delta": 0.01, "noise": 0.5, "names": NAMES, "deadline": 40} | more
    return str(store.create("sites", 9, 3, 1, **settings)["id"])


def measure(store: Campaigns, id: str, means: np.ndarray, sd: float = 0.5, n: int = 1, most: int = 1000) -> int:
    """Measure what is asked for, up to the deadline; how many results were told."""
    told = 0
    while told < most:
        answer = store.ask(id, "ann", n)
        if not answer["asks"]:
            assert answer["done"] or answer["deadline_reached"]
            return told
        for ask in answer["asks"]:
            rng = np.random.default_rng([ask["arm"], store.measured(id, ask["arm"])["measurements"]])
            values = (means[ask["arm"]] + sd * rng.standard_normal(means[ask["arm"]].shape)).reshape(-1).tolist()
            store.tell(id, [{"id": ask["lease"], "arm": ask["arm"], "values": values, "lease": ask["lease"]}])
            told += 1
    return told


def test_asking_ends_and_is_handed_over(opened: Callable[[], Campaigns], tmp_path: Path) -> None:
    store = opened()
    id = begun(store)
    assert measure(store, id, LEVELS, most=10) == 10
    status = store.status(id)
    assert (status["deadline"], status["deadline_used"], status["deadline_left"]) == (40, 10, 30)
    assert not status["deadline_reached"]
    measure(store, id, LEVELS, n=7)
    again = opened()
    for process in (store, again):
        answer = process.ask(id, "bob", 3)
        assert answer == {"done": False, "asks": [], "waiting_for": [], "deadline_reached": True}
        status = process.status(id)
        assert (status["t"], status["deadline_used"], status["deadline_left"]) == (40, 40, 0)
        assert status["deadline_reached"]
    handed = store.partial(id)
    assert handed["handover"] == again.partial(id)["handover"]
    assert handed["handover"]["misplaced_at_least"] > 0
    assert handed["settled"] < 9, "not all of it is proven"
    assert handed["apart"]["count"] > 0
    assert "40 of 40 used" in handed["handover"]["words"]
    for process in (store, again):
        Path(tmp_path, "partial.json").write_text(process.export(id, "partial"), encoding="utf-8")
        Path(tmp_path, "log.csv").write_text(process.export(id, "log"), encoding="utf-8")
        checked = CliRunner().invoke(app, ["verify", str(tmp_path / "partial.json"), str(tmp_path / "log.csv")])
        assert checked.exit_code == 0, checked.output
    changed = json.loads(store.export(id, "partial"))
    changed["placed"] = list(range(9))
    Path(tmp_path, "partial.json").write_text(json.dumps(changed), encoding="utf-8")
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "partial.json"), str(tmp_path / "log.csv")])
    assert checked.exit_code == 1, checked.output


def test_open_asks_count_until_they_are_given_up(store: Campaigns, clock: Any) -> None:
    id = begun(store, deadline=9)
    answer = store.ask(id, "ann", 9)
    assert len(answer["asks"]) == 9
    assert "deadline_reached" not in answer
    answer = store.ask(id, "bob", 2)
    assert answer["deadline_reached"]
    clock.now += 4000.0
    assert len(store.ask(id, "bob", 2)["asks"]) == 2, "what has expired was not measured"


def test_it_is_moved_on_record(opened: Callable[[], Campaigns]) -> None:
    store = opened()
    id = begun(store, deadline=12)
    measure(store, id, LEVELS)
    with pytest.raises(BadValue, match="12 were spent") as refused:
        store.revise(id, deadline=11)
    assert refused.value.field == "deadline"
    with pytest.raises(BadValue, match="call of its own"):
        store.revise(id, deadline=14, delta=0.001)
    other = opened()
    assert other.status(id)["deadline"] == 12
    assert store.revise(id, deadline=15, reason="a day more", by="ann")["deadline"] == 15
    assert store.revise(id, deadline=15)["deadline"] == 15
    for process in (store, other, opened()):
        assert process.status(id)["deadline"] == 15
    kept = [event for event in other.events(id)["events"] if event["kind"] == "deadline"]
    assert [(event["deadline"], event["reason"], event["by"]) for event in kept] == [(15, "a day more", "ann")]
    assert measure(other, id, LEVELS) == 3
    assert measure(store, id, LEVELS) == 0
    with pytest.raises(BadValue, match="no deadline to change"):
        store.revise(begun(store, deadline=None), deadline=50)


def test_proven_before_it(opened: Callable[[], Campaigns], monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof ends it as ever; a snapshot of the end has the deadline of then."""
    monkeypatch.setattr(snapshots, "FEWEST_ROWS", 50)
    store, far = opened(), 10.0 * LEVELS
    id = begun(store, deadline=500)
    store.revise(id, deadline=400)
    measure(store, id, far)
    status = store.status(id)
    assert status["done"]
    assert not status["deadline_reached"]
    with pytest.raises(Conflict, match="proven"):
        store.revise(id, deadline=600)
    with pytest.raises(Conflict, match="is proven"):
        store.export(id, "partial")
    store.close()
    assert opened().status(id) == status


@pytest.mark.parametrize("given", [8, 0, 20.5, True, "soon", -3, float("nan")])
def test_deadline_that_cannot_be_is_refused_by_name(store: Campaigns, given: Any) -> None:
    with pytest.raises(BadValue, match="deadline") as refused:
        begun(store, deadline=given)
    assert refused.value.field == "deadline"


def test_deadline_goes_with_neither_blocks_nor_features(store: Campaigns) -> None:
    for more in ({"blocks": "offset"}, {"features": ["ph"], "names": NAMES}):
        with pytest.raises(BadValue, match="do not go together") as refused:
            begun(store, **more)
        assert refused.value.field == "deadline"


def test_costs_are_spent_up_to_it(store: Campaigns) -> None:
    id = begun(store, costs=[1.0, 1.0, 5.0] * 3, deadline=60.5)
    measure(store, id, LEVELS)
    status = store.status(id)
    assert status["cost"] == status["deadline_used"]
    assert 55.0 < status["cost"] <= 60.5


def test_frozen_list_is_kept_and_goes_on(opened: Callable[[], Campaigns], tmp_path: Path) -> None:
    """A deadline too short for a proof of all: two processes in turn, then the whole record read again."""
    labels = np.arange(60) % 3
    means = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[labels]
    stores = [opened(), opened()]
    id = str(stores[0].create("many", 60, 3, 2, delta=0.01, noise=1.0, deadline=150)["id"])
    for turn in range(40):
        if measure(stores[turn % 2], id, means, 1.0, n=5, most=5) < 5:
            break
    stores.append(opened())
    kinds = {event["kind"] for event in stores[0].events(id)["events"]}
    assert "statements" in kinds
    answers = [process.partial(id) for process in stores]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["settled"] >= 10
    differ = labels[:, None] != labels
    assert all(differ[low, high] for low, high in answers[0]["apart"]["listed"])
    with pytest.raises(BadValue, match="only the deadline"):
        stores[1].revise(id, delta=0.001)
    stores[0].revise(id, deadline=170)
    assert measure(stores[2], id, means, 1.0, n=4) == 20
    certificate = json.loads(stores[1].export(id, "partial"))
    assert certificate["statements"]["proven"]
    Path(tmp_path, "log.csv").write_text(opened().export(id, "log"), encoding="utf-8")
    from coterie.certificate import read_log

    checked = coterie.verify(certificate, read_log(tmp_path / "log.csv"))
    assert checked.problems == []
    assert checked.valid


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["campaign", *words])


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_STORE", str(tmp_path / "lab.db"))
    new = ["new", "sites", "--clusters", "3", "--names", ",".join(NAMES), "--noise", "0.5", "--delta", "0.01"]
    answer = run(*new, "--deadline", "5")
    assert answer.exit_code == 2
    assert "--deadline must be enough for 9 items" in answer.output
    assert run(*new, "--deadline", "30").exit_code == 0
    with Campaigns(tmp_path / "lab.db", create=False) as store:
        id = store.find("sites")["id"]
        measure(store, id, LEVELS, most=12)
        assert "deadline: 12 of 30 used, 18 left" in run("status", "sites").output
        measure(store, id, LEVELS)
    answer = run("ask", "sites")
    assert answer.exit_code == 0
    assert "the deadline is reached" in answer.output
    shown = " ".join(run("status", "sites").output.split())
    assert "30 of 30 used: it is reached" in shown
    assert "are expected to be misplaced" in shown
    assert "coterie campaign deadline sites MORE" in shown
    assert json.loads(run("status", "sites", "--json").output)["handover"]["left"] == 0
    shown = " ".join(run("partial", "sites").output.split())
    assert "(guess, unproven)" in shown
    assert "are expected to be misplaced" in shown
    assert json.loads(run("partial", "sites", "--json").output)["handover"]["deadline"] == 30
    answer = run("deadline", "sites", "20")
    assert answer.exit_code == 2
    assert "cannot be lowered" in answer.output
    assert "from here on: a deadline of 45" in run("deadline", "sites", "45", "--reason", "more plates").output
    assert run("ask", "sites").exit_code == 0


MEASURING = """
import sys
from coterie.campaign import Campaigns

with Campaigns(sys.argv[1]) as store:
    id = sys.argv[2]
    store.status(id)
    print("ready", flush=True)
    for k in range(10**6):
        for ask in store.ask(id, "w", 1 + k % 3)["asks"]:
            told = {"id": ask["lease"], "arm": ask["arm"], "values": [float(ask["arm"] // 3) + 0.1 * (k % 4)]}
            store.tell(id, [told | {"lease": ask["lease"]}])
            print(ask["lease"], flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", kill_points(11, 18))
def test_killed_before_the_deadline_nothing_acknowledged_is_lost(url: str, lines: int) -> None:
    with Campaigns(url) as store:
        id = begun(store, deadline=10_000)
        said = [line.strip() for line in said_until_killed(MEASURING, url, id, lines=lines)]
        before = store.status(id)  # of a process that had the campaign open all the time
    assert_reads_the_same(url, id, before)
    with Campaigns(url) as store, Campaigns(url) as other:
        told = [one["id"] for one in store.measurements(id)["measurements"]]
        assert told[: len(said)] == said
        assert len(told) - len(said) in (0, 1)
        status = store.status(id)
        assert status["deadline_used"] == len(told) + len(status["open_leases"])  # what is asked for is reserved
        assert measure(store, id, LEVELS, most=5) >= 5
        assert lasting(other.status(id)) == lasting(store.status(id))
        assert other.partial(id) == store.partial(id)
