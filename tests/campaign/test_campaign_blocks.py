"""Campaigns with blocks: what is asked for in a plate, told of it, closed; in several processes, killed, reopened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed import kill_points, lasting, said_until_killed
from typer.testing import CliRunner, Result

import coterie
from coterie.campaign import BadValue, Campaigns, Conflict
from coterie.campaign.state import snapshots
from coterie.cli import app
from coterie.methods.blocks import filling

NAMES = list("abcdef")


def begun(store: Campaigns, **more: Any) -> str:
    settings: dict[str, Any] = {"noise": 1.0, "names": NAMES, "blocks": "offset"} | more
    return str(store.create("plates", 6, 2, 1, **settings)["id"])


def read(block: int, arm: int, k: int) -> float:
    """The k-th look at an item in a block, which is shifted by as much as the groups are apart."""
    rng = np.random.default_rng([block, arm, k])
    return float(3.0 * np.sin(block) + 3.0 * (arm % 2) + rng.normal())


def measure_block(store: Campaigns, id: str, number: int, n: int = 6, left: int = 0) -> int:
    """Measure what is asked for in a block, but for the last `left` asks; how many results were told."""
    block = f"plate {number}"
    asks = store.ask(id, "ann", n, block=block)["asks"]
    for k, ask in enumerate(asks[: len(asks) - left]):
        assert ask["block"] == block
        values = [read(number, ask["arm"], k)]
        store.tell(id, [{"id": f"{number}/{k}", "arm": ask["arm"], "values": values, "lease": ask["lease"]}])
    return len(asks) - left


@pytest.mark.parametrize("strict", [False, True])
def test_groups_are_proven_in_plates_and_the_certificate_holds(
    opened: Callable[[], Campaigns], tmp_path: Path, strict: bool
) -> None:
    """Two processes in turn, plates that are closed before their end, and the whole record read again."""
    stores = [opened(), opened()]
    id = begun(stores[0], strict_blocks=strict)
    for number in range(200):
        store = stores[number % 2]
        if store.status(id)["done"]:
            break
        unfinished = number % 4 == 3
        measure_block(store, id, number, left=2 if unfinished else 0)
        if unfinished and not store.status(id)["done"]:
            assert store.close_block(id, f"plate {number}") == {
                "closed": f"plate {number}", "given_up": 2, "done": store.status(id)["done"]
            }  # fmt: skip
        assert len(store.picture(id)["items"]) == len(store.partial(id)["items"]) == 6
    status = stores[0].status(id)
    assert status["done"], status["verdict"]
    assert status["labels"] == [0, 1, 0, 1, 0, 1]
    assert stores[1].status(id) == status == opened().status(id)
    for kind, name in (("certificate", "c.json"), ("log", "log.csv")):
        (tmp_path / name).write_text(opened().export(id, kind), encoding="utf-8")
    verdict = coterie.verify(tmp_path / "c.json", tmp_path / "log.csv")
    assert verdict, verdict.problems
    assert json.loads((tmp_path / "c.json").read_text())["blocks"] == "offset"


def test_one_at_a_time_hands_out_what_was_decided_together(store: Campaigns) -> None:
    id = begun(store)
    seen = []
    for k in range(40):
        answer = store.ask(id, "ann", block="plate 1")
        if not answer["asks"]:
            break
        (ask,) = answer["asks"]
        assert store.ask(id, "ann", block="plate 1")["asks"] == [ask]  # its answer was lost
        seen.append(ask["arm"])
        store.tell(id, [{"id": str(k), "arm": ask["arm"], "values": [read(1, ask["arm"], k)], "lease": ask["lease"]}])
    cells = [one for one in store.events(id)["events"] if one["kind"] == "cell"]
    assert seen == [arm for cell in cells for arm in cell["pulls"]][: len(seen)]


def test_workers_in_different_plates_do_not_wait_for_each_other(store: Campaigns) -> None:
    id = begun(store)
    (first,) = store.ask(id, "ann", block="plate 1")["asks"]
    (second,) = store.ask(id, "bob", block="plate 2")["asks"]
    assert (first["block"], second["block"]) == ("plate 1", "plate 2")
    open_now = {one["lease"]: one["block"] for one in store.status(id)["open_leases"]}
    assert open_now[first["lease"]] == "plate 1"
    assert open_now[second["lease"]] == "plate 2"
    assert store.status(id)["open_blocks"] == ["plate 1", "plate 2"]


def test_room_and_items_that_fit_are_kept_to(store: Campaigns) -> None:
    id = begun(store)
    asks = store.ask(id, "ann", 2, block="plate 1", room=4, among=["a", "b", "d"])["asks"]
    assert len(asks) == 2
    held = [one for one in store.status(id)["open_leases"] if one["block"] == "plate 1"]
    assert 2 <= len(held) <= 4
    assert {one["name"] for one in held} <= {"a", "b", "d"}


def test_bad_input_is_refused_by_name_and_changes_nothing(store: Campaigns) -> None:
    id = begun(store)
    with pytest.raises(BadValue, match="name the block that is measured in"):
        store.ask(id, "ann")
    (ask,) = store.ask(id, "ann", block="plate 1")["asks"]
    result = {"id": "m", "arm": ask["arm"], "values": [1.0]}
    before = store.events(id)["events"]
    with pytest.raises(BadValue, match="was asked for in block 'plate 1', the result is told of block 'plate 2'"):
        store.tell(id, [result | {"lease": ask["lease"], "block": "plate 2"}])
    with pytest.raises(BadValue, match=r"block 'plate 2' was not asked for: blocks are \['plate 1'\]"):
        store.tell(id, [result | {"block": "plate 2"}])
    with pytest.raises(BadValue, match="a block is a text"):
        store.tell(id, [result | {"block": 7}])
    with pytest.raises(BadValue, match="was not asked for"):
        store.close_block(id, "plate 9")
    asked: tuple[dict[str, Any], ...] = (
        {"room": 0}, {"room": 1}, {"among": []}, {"among": ["nobody"]}, {"among": ["a"]}, {"block": ""}
    )  # fmt: skip
    for wrong in asked:
        with pytest.raises(BadValue) as error:
            store.ask(id, "bob", 3, **({"block": "plate 3"} | wrong))
        assert error.value.field in wrong
    assert store.events(id)["events"] == before
    given_up = len(store.status(id)["open_leases"])
    assert store.close_block(id, "plate 1")["given_up"] == given_up
    again: list[Callable[[], Any]] = [
        lambda: store.close_block(id, "plate 1"),
        lambda: store.ask(id, "ann", block="plate 1"),
    ]
    for once_more in again:
        with pytest.raises(Conflict, match="block 'plate 1' is closed") as conflict:
            once_more()
        assert conflict.value.code == "block_closed"
    assert store.status(id)["failures"]["failed"] == 0


def test_an_item_that_was_asked_for_in_another_plate_is_not_told_of_this_one(store: Campaigns) -> None:
    id = begun(store)
    (first,) = store.ask(id, "ann", block="plate 1", among=["a", "b"])["asks"]
    store.ask(id, "ann", block="plate 2", among=["c", "d"])
    with pytest.raises(BadValue, match="was asked for in block 'plate 1', the result is told of block 'plate 2'"):
        store.tell(id, [{"id": "m", "arm": first["arm"], "values": [1.0], "worker": "ann", "block": "plate 2"}])
    answer = store.tell(id, [{"id": "m", "arm": first["arm"], "values": [1.0], "worker": "ann", "block": "plate 1"}])
    assert answer["accepted"] == 1
    assert first["lease"] not in {one["lease"] for one in store.status(id)["open_leases"]}


def test_campaigns_without_blocks_say_so(store: Campaigns) -> None:
    id = begun(store, blocks=None)
    (ask,) = store.ask(id, "ann")["asks"]
    calls: list[Callable[[], Any]] = [
        lambda: store.ask(id, "ann", block="plate 1"),
        lambda: store.close_block(id, "plate 1"),
        lambda: store.tell(id, [{"id": "m", "arm": ask["arm"], "values": [1.0], "block": "plate 1"}]),
    ]
    for wrong in calls:
        with pytest.raises(BadValue, match="this campaign has no blocks"):
            wrong()
    assert "blocks" not in store.settings(id)
    for settings in (
        {"blocks": "plates"},
        {"blocks": None, "strict_blocks": True},
        {"method": "boc", "blocks": "offset"},
    ):
        with pytest.raises(BadValue):
            begun(store, **settings)


def test_results_that_nobody_asked_for_and_late_ones_are_kept_with_their_plate(
    opened: Callable[[], Campaigns], clock: Any
) -> None:
    store, other = opened(), opened()
    id = begun(store, lease_seconds=60)
    (ask,) = store.ask(id, "ann", block="plate 1")["asks"]
    clock.now += 3600  # all that was asked for together is given up
    store.tell(id, [{"id": "late", "arm": ask["arm"], "values": [1.0], "lease": ask["lease"]}])
    assert store.ask(id, "ann", 4, block="plate 2")["asks"]
    store.tell(id, [{"id": "own", "arm": "f", "values": [2.0], "worker": "bob", "block": "plate 1"}])
    steps = [(one["step"], one["block"]) for one in store.events(id)["events"] if one["kind"] == "block"]
    assert steps == [("compose", "plate 1"), ("place", "plate 1"), ("compose", "plate 2"), ("place", "plate 1")]
    assert [one["kind"] for one in store.events(id)["events"]].count("lapse") == 1
    assert store.status(id) == other.status(id) == opened().status(id)


def test_a_corrected_value_is_followed(opened: Callable[[], Campaigns]) -> None:
    store, other = opened(), opened()
    id = begun(store)
    measure_block(store, id, 1)
    measure_block(other, id, 2)
    store.correct(id, "1/0", [0.25], "typed wrong", "ann")
    measure_block(other, id, 3)
    assert store.status(id) == other.status(id) == opened().status(id)


def test_a_snapshot_or_none_gives_the_same(opened: Callable[[], Campaigns], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "FEWEST_ROWS", 5)
    monkeypatch.setattr(snapshots, "BYTES_A_ROW", 10**9)
    store = opened()
    id = begun(store)
    for number in range(6):
        measure_block(store, id, number)
    store._campaigns._snapshots.close()  # what is under way is written
    assert opened().status(id) == store.status(id)
    measure_block(store, id, 7)
    assert opened().status(id) == store.status(id)


def test_a_campaign_whose_cells_another_rule_filled_goes_on(
    opened: Callable[[], Campaigns], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a record says was asked for is kept, also where today's rule would have chosen otherwise."""

    filled = []

    def least(wanted: Any, room: int, *_: Any) -> Any:
        filled.append(room)
        cell = np.zeros_like(wanted)
        cell[np.flatnonzero(wanted)[:room]] = 1
        return cell

    store, number = opened(), 0
    id = begun(store, delta=1e-9)
    with monkeypatch.context() as patched:
        patched.setattr(filling, "worthiest", least)
        for number in range(10):
            measure_block(store, id, number, n=4)
    before = store.status(id)
    again = opened()
    assert filled
    assert not before["done"]
    assert again.status(id)["t"] == before["t"]
    while not again.status(id)["done"] and number < 400:
        number += 1
        measure_block(again, id, number, n=4)
    status = again.status(id)
    assert status["labels"] == [0, 1, 0, 1, 0, 1]
    for kind, name in (("certificate", "c.json"), ("log", "log.csv")):
        (tmp_path / name).write_text(again.export(id, kind), encoding="utf-8")
    assert coterie.verify(tmp_path / "c.json", tmp_path / "log.csv")


MEASURING = """
import json, sys
from coterie.campaign import Campaigns

with Campaigns(sys.argv[1]) as store:
    id = sys.argv[2]
    store.status(id)
    print("ready", flush=True)
    for k in range(10**6):
        block = f"plate {k}"
        for i, ask in enumerate(store.ask(id, "w", 6, block=block)["asks"]):
            told = {"id": f"{k}/{i}", "arm": ask["arm"], "values": [float(i % 3)], "lease": ask["lease"]}
            store.tell(id, [told])
            print(json.dumps(["tell", told["id"]]), flush=True)
        if k % 2:
            store.close_block(id, block)
            print(json.dumps(["close", block]), flush=True)
"""


@pytest.mark.parametrize("lines", kill_points(9, 16))
def test_killed_in_a_plate_nothing_acknowledged_is_lost(url: str, lines: int) -> None:
    with Campaigns(url) as store:
        id = begun(store, delta=1e-60)
        said = said_until_killed(MEASURING, url, id, lines=lines)
        with_it = store.status(id)  # of a process that had the campaign open all the time
    lines_said = [json.loads(line) for line in said]
    with Campaigns(url) as store, Campaigns(url) as other:
        told = {one["id"] for one in store.measurements(id)["measurements"]}
        assert {name for kind, name in lines_said if kind == "tell"} <= told
        steps = [one for one in store.events(id)["events"] if one["kind"] == "block"]
        closed = {one["block"] for one in steps if one["step"] == "close"}
        assert {name for kind, name in lines_said if kind == "close"} <= closed
        assert lasting(with_it) == lasting(store.status(id))
        measure_block(store, id, 10**7)
        assert other.status(id) == store.status(id)


# On the command line.


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["campaign", *map(str, arguments)], env={"COTERIE_WORKER": "ann"})


def test_the_command_line_measures_in_plates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("new", "beans", "--clusters", 2, "--names", "a,b,c,d", "--noise", 1, "--blocks", "offset")
    assert made.exit_code == 0, made.output
    assert "--block 'plate 1'" in made.stdout
    assert "within each block" in made.stdout
    assert run("ask", "beans").stderr.startswith("coterie: block: name the block that is measured in")
    asks = json.loads(run("ask", "beans", "-n", 4, "--block", "plate 1", "--json").stdout)["asks"]
    assert 2 <= len(asks) <= 4
    told = run("tell", "beans", "--lease", asks[0]["lease"], "--block", "plate 2", 1.5)
    assert told.exit_code == 2
    assert "in block 'plate 1', the result is told of block 'plate 2'" in told.stderr
    assert "on record" in run("tell", "beans", "--lease", asks[0]["lease"], "--block", "plate 1", 1.5).stdout
    assert "closed: plate 1" in run("close-block", "beans", "plate 1").stdout
    again = run("close-block", "beans", "plate 1")
    assert (again.exit_code, again.stderr) == (2, "coterie: block 'plate 1' is closed already\n")
    assert run("new", "x", "--clusters", 2, "--arms", 4, "--blocks", "plates").exit_code == 2
