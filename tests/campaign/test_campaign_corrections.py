"""Corrections in a store: new facts, seen by everybody, on record after kills; far values are asked back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed import kill_points, said_until_killed
from typer.testing import CliRunner

import coterie
from coterie.campaign import Campaigns, Conflict, NotFound
from coterie.campaign.errors import BadValue, CampaignError, Forbidden
from coterie.campaign.state.snapshots import state_bytes, state_from
from coterie.campaign.tokens import Writer
from coterie.cli import app

SLIP = 60.0


def measured(store: Campaigns, id: str, world: Any, results: int, slip: int | None = None) -> None:
    """So many results of the world, or until it is done; number `slip` is told wrong."""
    for _ in range(results):
        answer = store.ask(id, "w")
        if answer["done"]:
            return
        (one,) = answer["asks"]
        k = store.status(id)["measurements"]
        values = list(world.values(one["arm"], k))
        if k == slip:
            values[0] += SLIP
        store.tell(id, [{"id": f"m{k}", "arm": one["arm"], "values": values, "lease": one["lease"]}])


def right(store: Campaigns, id: str, k: int) -> list[float]:
    told = store.measurements(id)["measurements"][k]["values"]
    return [told[0] - SLIP, *told[1:]]


def test_corrections_are_facts_that_everybody_sees(opened: Callable[[], Campaigns], world: Any, tmp_path: Path) -> None:
    store, other = opened(), opened()
    id = world.create(store)
    measured(store, id, world, 10, slip=4)
    other.status(id)
    values = right(store, id, 4)
    told = store.measurements(id)["measurements"][4]["values"]
    answer = store.correct(id, "m4", values, "typed  wrong", "ann", correction="c1")
    assert answer["corrected"]
    assert (answer["old"], answer["values"]) == (told, values)
    last = store.latest(id)
    for again in (store, other):  # the same request, the same values: nothing more
        assert not again.correct(id, "m4", values, "typed wrong", "ann", correction="c1")["corrected"]
        assert not again.correct(id, "m4", values, "typed wrong")["corrected"]
    assert store.latest(id) == last
    with pytest.raises(Conflict, match="another content") as taken:
        other.correct(id, "m4", told, "x", correction="c1")
    assert taken.value.code == "id_taken"
    for reader in (store, other, opened()):
        assert reader.status(id) == store.status(id)
        row = reader.measurements(id)["measurements"][4]
        assert (row["values"], row["told"]) == (values, told)
        (noted,) = [event for event in reader.events(id)["events"] if event["kind"] == "correction"]
        assert (noted["old"], noted["new"], noted["reason"], noted["by"]) == (told, values, "typed wrong", "ann")
    measured(other, id, world, 1000)
    for reader in (store, other, opened()):
        assert reader.status(id) == other.status(id)
        certificate = reader.certificate(id)
        assert certificate == other.certificate(id)
    assert [one["new"] for one in certificate["corrections"]] == [values]
    (tmp_path / "log.csv").write_text(store.export(id, "log"), encoding="utf-8")
    verdict = coterie.verify(certificate, tmp_path / "log.csv")
    assert verdict, verdict.problems
    assert "1 result was corrected" in store.status(id)["verdict"]
    header, *lines = store.export(id, "csv").splitlines()
    assert header == "id,arm,v0,v1,told v0,told v1,told,worker,token"
    assert lines[4].split(",")[2:6] == [*map(repr, values), *map(repr, told)]
    copy = world.create(store)
    (tmp_path / "x.csv").write_text(store.export(id, "csv"), encoding="utf-8")
    assert store.import_table(copy, tmp_path / "x.csv", in_order=True)["accepted"] == len(lines)


def test_a_correction_can_take_a_proof_back_and_measuring_goes_on(opened: Callable[[], Campaigns], world: Any) -> None:
    store = opened()
    id = world.create(store)
    measured(store, id, world, 1000)
    before = store.status(id)
    assert before["done"]
    one = store.measurements(id)["measurements"][0]
    fourth = next(row for row in store.measurements(id)["measurements"] if row["arm"] == (one["arm"] + 1) % 3)
    answer = store.correct(id, one["id"], fourth["values"], "the labels were swapped")
    late = opened()
    assert late.status(id) == store.status(id)
    assert store.status(id)["done"] == answer["done"]
    assert answer["reopened"] == (not answer["done"])
    measured(late, id, world, 1000)
    assert store.status(id)["done"]
    assert opened().certificate(id) == store.certificate(id)
    # A correction that changes next to nothing leaves the proof where it was.
    now = store.measurements(id)["measurements"][3]
    t = store.status(id)["t"]
    tiny = store.correct(id, now["id"], [value + 1e-9 for value in now["values"]], "the last digit")
    assert (tiny["done"], tiny["reopened"], store.status(id)["t"]) == (True, False, t)
    assert opened().status(id) == store.status(id)
    assert opened().certificate(id) == store.certificate(id)
    assert not store.ask(id, "w")["asks"]


def test_bad_corrections_change_nothing(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    measured(store, id, world, 8)
    bad: list[tuple[type[CampaignError], str | None, tuple[Any, ...]]] = [
        (NotFound, "measurement", ("nobody", [0.0, 0.0], "x")),
        (BadValue, "values", ("m1", [0.0], "x")),
        (BadValue, "values", ("m1", [0.0, float("nan")], "x")),
        (BadValue, "values", ("m1", [0.0, 1e60], "x")),
        (BadValue, "reason", ("m1", [0.0, 0.0], " ")),
        (BadValue, "reason", ("m1", [0.0, 0.0], 7)),
    ]
    for error, field, arguments in bad:
        with pytest.raises(error) as found:
            store.correct(id, *arguments)
        assert found.value.field == field, arguments
    worker, stranger = Writer("t1", only_own=True), Writer("t2", only_own=True)
    store.tell(id, [{"id": "mine", "arm": 0, "values": [0.0, 0.0]}], worker)
    with pytest.raises(Forbidden, match="its own results only"):
        store.correct(id, "mine", [0.5, 0.0], "x", writer=stranger)
    with pytest.raises(Forbidden):
        store.correct(id, "m1", [0.5, 0.0], "x", writer=worker)
    assert not store.status(id)["corrections"]
    assert store.correct(id, "mine", [0.5, 0.0], "x", writer=worker)["corrected"]
    assert store.correct(id, "mine", [0.6, 0.0], "y", writer=Writer("t3"))["corrected"]


def test_a_far_value_is_asked_back(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    measured(store, id, world, 12)
    last = store.latest(id)
    with pytest.raises(Conflict, match=r"^500 \(v0\) is \d+ standard deviations from .* Save it anyway\?$") as far:
        store.tell(id, [{"id": "far", "arm": 0, "values": [500.0, 0.0]}], ask_back=True)
    assert (far.value.code, far.value.field) == ("far_off", "measurements[0].values")
    assert store.latest(id) == last
    assert store.tell(id, [{"id": "near", "arm": 0, "values": world.values(0, 3)}], ask_back=True)["accepted"] == 1
    assert len(store.tell(id, [{"id": "far", "arm": 0, "values": [500.0, 0.0]}])["warnings"]) == 1


def test_one_far_value_is_named_and_no_item_is_blamed(store: Campaigns, world: Any) -> None:
    id = world.create(store)
    measured(store, id, world, 1000)
    for arm in range(3):
        store.tell(id, [{"id": f"late{arm}", "arm": arm, "values": world.values(arm, 50)}])
    store.tell(id, [{"id": "typo", "arm": 1, "values": [300.0, 0.0]}])
    found = store.status(id)
    assert found["misfits"] == []
    assert "300 of" in found["doubt"]
    assert "measurement typo" in found["doubt"]
    store.correct(id, "typo", list(world.values(1, 51)), "a digit too many")
    assert store.status(id)["doubt"] is None


CORRECTING = """
import sys
from coterie.campaign import Campaigns
url, id = sys.argv[1:]
with Campaigns(url) as store:
    rows = store.measurements(id)["measurements"]
    print("ready", flush=True)
    for k in range(10**6):
        row = rows[k % len(rows)]
        values = [row["values"][0] + 0.001 * (k + 1), *row["values"][1:]]
        store.correct(id, row["id"], values, "again", correction=f"c{k}")
        print(k, *values, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", kill_points(7))
def test_killed_while_correcting_nothing_acknowledged_is_lost(url: str, world: Any, lines: int) -> None:
    with Campaigns(url) as store:
        id = world.create(store, delta=1e-60)
        measured(store, id, world, 12)
        said = said_until_killed(CORRECTING, url, id, lines=lines)
    with Campaigns(url) as store, Campaigns(url) as other:
        made = {one["id"]: one["new"] for one in store.status(id)["corrections"]}
        for line in said:
            k, *values = line.split()
            assert made[f"c{k}"] == [float(value) for value in values]
        assert len(made) - len(said) in (0, 1)
        measured(store, id, world, 5)
        assert other.status(id) == store.status(id)


def test_commands(tmp_path: Path) -> None:
    runner, file = CliRunner(), str(tmp_path / "x.db")

    def run(*arguments: str, code: int = 0) -> Any:
        found = runner.invoke(app, ["campaign", *arguments, "--store", file])
        assert found.exit_code == code, found.output
        return found

    run("new", "beans", "--names", "pinto,fava,soy", "-k", "2", "--noise", "1")
    for k, value in enumerate(("4.9", "4.8", "1.0")):
        run("tell", "beans", value, "--arm", ("pinto", "pinto", "fava")[k], "--id", f"m{k}")
    refused = run("tell", "beans", "486", "--arm", "pinto", "--id", "m9", code=2)
    assert "486 is 481 standard deviations from the 4.85 of pinto before. Save it anyway?" in refused.stderr
    assert "--yes" in refused.stderr
    run("tell", "beans", "486", "--arm", "pinto", "--id", "m9", "--yes")
    said = run("correct", "beans", "m9", "4.86", "--reason", "the point", "--by", "ann").stdout
    assert said.startswith("corrected: m9 of pinto is 4.86; told was 486")
    assert "nothing has changed" in run("correct", "beans", "m9", "4.86", "--reason", "the point").stdout
    again = run("correct", "beans", "m9", "-4.5", "--reason", "the sign", "--id", "c1", "--json")
    assert json.loads(again.stdout)["values"] == [-4.5]
    run("correct", "beans", "nobody", "1", "--reason", "x", code=2)
    run("correct", "beans", "m9", "1", code=2)


def test_a_snapshot_knows_corrections(tmp_path: Path, world: Any) -> None:
    with Campaigns(tmp_path / "x.db") as store:
        id = world.create(store)
        measured(store, id, world, 10, slip=4)
        store.correct(id, "m4", right(store, id, 4), "typed wrong", "ann")
        store.tell(id, [{"id": "mine", "arm": 0, "values": [0.0, 0.0]}], Writer("t1", only_own=True))
        measured(store, id, world, 3)
        state = store._campaigns._opened[id].state
        assert state is not None
        pack = state_bytes(state)
        assert pack is not None
        content = pack()
        assert content is not None
        again = state_from(state.settings, content)
        assert again.session.corrections == state.session.corrections
        assert again.corrections == state.corrections
        assert again.registry.tokens == state.registry.tokens
        assert (again.decisions, again.applied, again.alarms_noted) == (state.decisions, state.applied, 0)
        assert {arm: (n, total.tolist()) for arm, (n, total) in again.sums.items()} == {
            arm: (n, total.tolist()) for arm, (n, total) in state.sums.items()
        }


@pytest.mark.parametrize("noise", [None, "gaussian"])
def test_a_slip_is_named_before_anything_is_proven_and_right_values_are_not_asked_back(
    noise: Any, tmp_path: Path
) -> None:
    """Ten times too large, told when there was nothing to compare it with: later values show that it was the slip."""
    rng = np.random.default_rng(5)
    levels = [3.0, 3.0, 3.0, 7.0, 7.0, 7.0]
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("ponds", n_arms=6, n_clusters=2, dim=1, noise=noise, names=list("abcdef"))["id"]
        for k in range(36):
            value = levels[k % 6] + 0.6 * rng.standard_normal()
            slip = k == 9
            told = [{"id": f"m{k}", "arm": k % 6, "values": [10.0 * value if slip else value]}]
            store.tell(id, told, ask_back=k > 15)  # no right value is asked back
        said = store.status(id)["verdict"]
        assert "One value may be a slip: " in said
        assert "of d, told as measurement m9, lies " in said
        assert "coterie campaign correct" in said
        store.correct(id, "m9", [7.1], "a point forgotten")
        assert "slip" not in store.status(id)["verdict"]


def test_many_far_values_are_the_noise_and_no_slips(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("tails", n_arms=4, n_clusters=2, dim=1)["id"]
        for k in range(200):
            store.tell(id, [{"id": f"m{k}", "arm": k % 4, "values": [float(rng.standard_cauchy())]}])
        assert "slip" not in store.status(id)["verdict"]


@pytest.mark.parametrize("how", ["given up", "ran out"])
@pytest.mark.parametrize("noise", [None, "gaussian"], ids=["any", "gaussian"])
def test_an_ask_of_a_round_is_asked_for_again_after_a_correction(
    tmp_path: Path, clock: Any, noise: str | None, how: str
) -> None:
    """Whether it was given up or its lease ran out; half of the results come after the store was opened again."""
    rng, k, id = np.random.default_rng(2), 0, ""
    missed = [13, 15, 17]  # an ask after so many results gets none, and then a value is corrected

    def go_on(store: Campaigns, until: int) -> None:
        nonlocal k
        while k < until and (asks := store.ask(id, "w")["asks"]):
            (one,) = asks
            if k in missed:
                missed.remove(k)
                clock.now += 61.0 if how == "ran out" else 0.0
                if how == "given up":
                    store.fail(id, one["lease"])
                told = store.measurements(id)["measurements"][2]["values"]
                store.correct(id, "m2", [told[0] + 0.01], "misread")
                continue
            value = 4.0 * (one["arm"] % 2) + rng.standard_normal()
            store.tell(id, [{"id": f"m{k}", "arm": one["arm"], "values": [value], "lease": one["lease"]}])
            k += 1

    for until in (18, 150):
        with Campaigns(tmp_path / "store.db", clock=clock) as store:
            if k == 0:
                id = store.create("ends", 6, 2, 1, noise=noise, lease_seconds=60.0)["id"]
            go_on(store, until)
            assert not missed
    with Campaigns(tmp_path / "store.db", clock=clock) as store:
        assert store.status(id)["done"]
        (tmp_path / "log.csv").write_text(store.export(id, "log"), encoding="utf-8")
        assert coterie.verify(store.certificate(id), tmp_path / "log.csv").valid
