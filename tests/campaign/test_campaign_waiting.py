"""A worker takes an item and leaves: everybody is told for whom they wait, the ask is passed on, owners free it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.campaign import BadValue, Campaigns, Conflict
from coterie.campaign.settings import timestamp
from coterie.campaign.state.snapshots import state_bytes, state_from
from coterie.cli import app

NOISES: dict[str, Any] = {
    "any": None,
    "known": 0.7,
    "gaussian": "gaussian",
    "symmetric": coterie.Symmetric(),
    "counts": coterie.Counts(20),
}


class Bench:
    """Nine items in three groups; a worker answers ten seconds after asking."""

    def __init__(self, store: Campaigns, clock: Any, noise: Any = 0.7, seed: int = 0, **more: Any) -> None:
        self.store, self.clock, self.noise = store, clock, noise
        self.rng = np.random.default_rng(seed)
        self.id = str(store.create("bench", 9, 3, 1, noise=noise, **more)["id"])
        self.told = 0

    def result(self, ask: dict[str, Any], **more: Any) -> dict[str, Any]:
        arm = ask["arm"]
        counts = isinstance(self.noise, coterie.Counts)
        value = self.rng.binomial(20, (0.1, 0.5, 0.9)[arm % 3]) if counts else 3.0 * (arm % 3) + self.rng.normal(0, 0.7)
        return {"id": ask["lease"], "arm": arm, "values": [float(value)], "lease": ask["lease"], **more}

    def tell(self, ask: dict[str, Any], **more: Any) -> dict[str, Any]:
        self.told += 1
        return self.store.tell(self.id, [self.result(ask, **more)])

    def work(self, worker: str, most: int = 600) -> dict[str, Any]:
        """Ask and tell until there is nothing to measure, done or not; the last answer."""
        for _ in range(most):
            answer = self.store.ask(self.id, worker)
            if not answer["asks"]:
                return answer
            self.clock.now += 10.0
            self.tell(answer["asks"][0])
        raise AssertionError(f"still measuring after {most} results")

    def until_forgotten(self, after: int) -> dict[str, Any]:
        """Bob measures so often, then Ann takes an item and leaves."""
        for _ in range(after):
            (ask,) = self.store.ask(self.id, "bob")["asks"]
            self.clock.now += 10.0
            self.tell(ask)
        (forgotten,) = self.store.ask(self.id, "ann")["asks"]
        return dict(forgotten)


@pytest.fixture
def one_store(tmp_path: Path, clock: Any) -> Any:
    with Campaigns(tmp_path / "store.db", clock=clock) as store:
        yield store


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_one_worker_leaves_and_the_rest_finish(one_store: Campaigns, clock: Any, noise: str) -> None:
    """33 campaigns over all noises and moments: at most a small multiple of what is enough is measured. Before this
    nothing was proven in 600 further results."""
    counts = {"any": 7, "known": 7, "gaussian": 7, "symmetric": 6, "counts": 6}
    for seed in range(counts[noise]):
        plain = Bench(one_store, clock, NOISES[noise], seed)
        assert plain.work("bob")["done"]
        bench = Bench(one_store, clock, NOISES[noise], seed)
        bench.until_forgotten(3 * seed)
        answer = bench.work("bob")  # an hour never passes: the lease of Ann does not end by itself
        assert answer["done"], answer
        assert bench.told <= 2 * plain.told + 30, (bench.told, plain.told)
        status = one_store.status(bench.id)
        assert status["waiting_for"] == []


def test_an_answer_says_for_whom_it_waits_and_until_when(opened: Callable[[], Campaigns], clock: Any) -> None:
    """… and so do the status and other processes; asking in vain writes nothing."""
    bench = Bench(opened(), clock, pass_on=0, delta=1e-12)
    forgotten = bench.until_forgotten(12)
    begun = clock.now
    answer = bench.work("bob")
    assert not answer["done"]
    (one,) = answer["waiting_for"]
    assert (one["arm"], one["name"], one["lease"]) == (forgotten["arm"], forgotten["name"], forgotten["lease"])
    assert (one["worker"], one["until"]) == ("ann", forgotten["expires"])
    assert clock.now < begun + 3600.0
    newest = bench.store.latest(bench.id)
    for store in (bench.store, opened()):
        assert store.ask(bench.id, "bob", 5) == answer
        assert store.ask(bench.id, "carl") == answer
        status = store.status(bench.id)
        assert status["waiting_for"] == [one]
        assert [(it["lease"], it["results"]) for it in status["holding"]] == [(one["lease"], status["waiting"])]
        assert store.latest(bench.id) == newest
    (again,) = bench.store.ask(bench.id, "ann")["asks"]
    assert again["lease"] == forgotten["lease"], "Ann gets it back"
    clock.now = begun + 3600.0
    assert opened().status(bench.id)["waiting_for"] == [], "whoever asks now gets something"
    (fresh,) = bench.store.ask(bench.id, "bob")["asks"]
    assert fresh["lease"] != forgotten["lease"]
    bench.tell(fresh)
    assert bench.work("bob")["done"]


def test_it_is_passed_on_and_the_first_result_counts(opened: Callable[[], Campaigns], clock: Any) -> None:
    """Twice the median of ten seconds, and not before; by another process too; the later result is kept."""
    bench = Bench(opened(), clock, delta=1e-12)
    forgotten = bench.until_forgotten(12)
    asked = clock.now
    while (answer := bench.store.ask(bench.id, "bob"))["asks"]:
        clock.now += 0.0625
        bench.tell(answer["asks"][0])
    (one,) = answer["waiting_for"]
    usual = median([10.0] * 12 + [0.0625] * (bench.told - 12))
    due = asked + max(10.0, 2.0 * usual)
    assert one["until"] == timestamp(due) < forgotten["expires"]
    clock.now = due - 0.001
    assert bench.store.ask(bench.id, "bob")["asks"] == []
    clock.now = due
    other = opened()
    assert other.status(bench.id)["waiting_for"] == []
    (passed,) = other.ask(bench.id, "bob")["asks"]
    assert (passed["arm"], passed["lease"] == forgotten["lease"]) == (forgotten["arm"], False)
    assert bench.store.ask(bench.id, "bob")["asks"] == [passed]
    assert other.lease(bench.id, forgotten["lease"])["state"] == "passed on"
    assert other.ask(bench.id, "carl")["waiting_for"][0]["worker"] == "bob"
    t = bench.store.status(bench.id)["t"]
    bench.tell(passed)
    assert bench.store.status(bench.id)["t"] > t
    before = opened().status(bench.id)
    late = bench.result(forgotten)
    answer = bench.store.tell(bench.id, [late])
    assert (answer["accepted"], [its["id"] for its in answer["not_counted"]]) == (1, [late["id"]])
    assert "kept, and does not count" in answer["not_counted"][0]["message"]
    assert opened().tell(bench.id, [late]) == {"accepted": 0, "duplicates": 1, "done": False}
    with pytest.raises(Conflict, match="another content"):
        opened().tell(bench.id, [{**late, "values": [99.0]}])
    with pytest.raises(Conflict, match="does not count"):
        bench.store.correct(bench.id, late["id"], [1.0], "typed wrong")
    for store in (bench.store, opened()):
        after = store.status(bench.id)
        assert [after[key] for key in ("t", "pulls", "measurements", "waiting")] == [
            before[key] for key in ("t", "pulls", "measurements", "waiting")
        ]
        assert store.lease(bench.id, forgotten["lease"])["state"] == "taken"
        assert (after["failures"]["expired"], after["failures"]["late"], after["failures"]["passed_on"]) == (1, 1, 1)
        assert "asked of somebody else too, and the first result counts" in after["failures"]["text"]
        assert "nothing to do with values" in after["failures"]["text"]
    kept = [event for event in bench.store.events(bench.id, 0, 10_000)["events"] if event["kind"] == "surplus"]
    assert [(one["id"], one["values"], one["worker"]) for one in kept] == [(late["id"], late["values"], "ann")]
    assert late["id"] not in bench.store.export(bench.id)
    assert bench.work("bob")["done"]
    certificate = bench.store.certificate(bench.id)
    assert (certificate["failures"]["expired"], certificate["failures"]["late"]) == (1, 1)


@pytest.mark.parametrize("named", [True, False])
def test_the_first_holder_may_still_be_the_first_to_answer(
    opened: Callable[[], Campaigns], clock: Any, named: bool
) -> None:
    """Ann's result counts if it comes before Bob's; then Bob's is the one that does not. With leases or without."""
    bench = Bench(opened(), clock, delta=1e-12)
    forgotten = bench.until_forgotten(12)
    while (answer := bench.store.ask(bench.id, "bob"))["asks"]:
        bench.tell(answer["asks"][0])
    clock.now += 30.0
    (passed,) = bench.store.ask(bench.id, "bob")["asks"]
    assert passed["arm"] == forgotten["arm"]

    def answered(ask: dict[str, Any], worker: str) -> dict[str, Any]:
        one = bench.result(ask, worker=worker)
        return opened().tell(bench.id, [one if named else {k: v for k, v in one.items() if k != "lease"}])

    t = bench.store.status(bench.id)["t"]
    assert "not_counted" not in answered(forgotten, "ann")
    assert bench.store.status(bench.id)["t"] > t
    assert bench.store.lease(bench.id, forgotten["lease"])["state"] == "answered"
    assert bench.store.lease(bench.id, passed["lease"])["state"] == "taken"
    assert bench.store.status(bench.id)["open_leases"] == []
    t = bench.store.status(bench.id)["t"]
    assert [one["id"] for one in answered(passed, "bob")["not_counted"]] == [passed["lease"]]
    assert bench.store.status(bench.id)["t"] == t
    assert bench.work("bob")["done"]
    assert bench.store.status(bench.id)["failures"]["late"] == 2


def test_the_proof_of_a_campaign_with_an_ask_passed_on_verifies(
    one_store: Campaigns, clock: Any, tmp_path: Path
) -> None:
    bench = Bench(one_store, clock, None, 3)
    forgotten = bench.until_forgotten(14)
    assert bench.work("bob")["done"]
    one_store.tell(bench.id, [bench.result(forgotten)])
    (tmp_path / "log.csv").write_text(one_store.export(bench.id, "log"), encoding="utf-8")
    assert coterie.verify(one_store.certificate(bench.id), tmp_path / "log.csv").problems == []


def test_killed_and_opened_again_in_the_middle(tmp_path: Path, clock: Any) -> None:
    """Every step in a store that is opened for it: nothing is kept in memory only."""
    with Campaigns(tmp_path / "store.db", clock=clock) as store:
        bench = Bench(store, clock)
        forgotten = bench.until_forgotten(12)
    passed: dict[str, Any] | None = None
    for _ in range(300):
        bench.store = Campaigns(tmp_path / "store.db", clock=clock)
        answer = bench.store.ask(bench.id, "bob")
        if answer["done"]:
            break
        if not answer["asks"]:
            clock.now += 5.0
        elif bench.store.lease(bench.id, forgotten["lease"])["state"] == "passed on" and passed is None:
            passed = answer["asks"][0]  # told after the next opening
        else:
            bench.tell(answer["asks"][0])
        clock.now += 10.0
        bench.store.close()
    assert answer["done"]
    assert passed is not None
    assert bench.store.lease(bench.id, passed["lease"])["state"] == "answered"
    bench.store.close()


def test_a_snapshot_keeps_what_was_passed_on(one_store: Campaigns, clock: Any) -> None:
    bench = Bench(one_store, clock)
    forgotten = bench.until_forgotten(12)
    while (answer := one_store.ask(bench.id, "bob"))["asks"]:
        bench.tell(answer["asks"][0])
    clock.now += 30.0
    (passed,) = one_store.ask(bench.id, "bob")["asks"]

    def look(again: bool) -> list[Any]:
        def view(seen: Any) -> list[Any]:
            state = seen.state
            if again:
                pack = state_bytes(state)
                assert pack is not None
                content = pack()
                assert content is not None
                state = state_from(state.settings, content)
            holders = [(one.key, one.ended) for one in state.open.of_arm(forgotten["arm"])]
            left = state.open.taken("ann", forgotten["arm"])
            times, kept = list(state.answer_times), state.surplus
            return [holders, None if left is None else left.key, times, state.passed_on, kept, state.session.awaited]

        return list(one_store._campaigns.read(bench.id, view))

    assert look(True) == look(False)
    assert look(True)[0] == [(passed["lease"], None), (forgotten["lease"], "passed on")]
    bench.tell(passed)
    assert look(True) == look(False)
    assert look(True)[1] == forgotten["lease"]
    bench.tell(forgotten)
    assert look(True) == look(False)
    assert list(look(True)[4]) == [forgotten["lease"]]


def test_where_leases_wait_nothing_is_passed_on(one_store: Campaigns, clock: Any) -> None:
    """Nothing is assumed about delays there: it waits until Ann answers, or somebody frees the ask."""
    bench = Bench(one_store, clock, on_expiry="wait")
    forgotten = bench.until_forgotten(12)
    answer = bench.work("bob")
    assert [(one["lease"], one["until"]) for one in answer["waiting_for"]] == [(forgotten["lease"], None)]
    clock.now += 1e6
    assert one_store.ask(bench.id, "bob") == answer
    assert one_store.status(bench.id)["waiting_for"] == answer["waiting_for"]
    one_store.fail(bench.id, forgotten["lease"], "no answer")
    assert bench.work("bob")["done"]
    with pytest.raises(BadValue, match="pass_on must be 0 where on_expiry is wait"):
        one_store.create("other", 3, 2, 1, on_expiry="wait", pass_on=3.0)
    bad: list[Any] = [-1.0, "soon", float("nan"), True, 1e9]
    for wrong in bad:
        with pytest.raises(BadValue, match="pass_on"):
            one_store.create("other", 3, 2, 1, pass_on=wrong)


def test_many_items_at_once_say_so_too(one_store: Campaigns, clock: Any) -> None:
    """A request for more items than there are to measure gets what there is, and for whom it waits."""
    bench = Bench(one_store, clock, pass_on=0)
    forgotten = bench.until_forgotten(12)
    for _ in range(50):
        answer = one_store.ask(bench.id, "bob", 120)
        if not answer["asks"]:
            break
        for ask in answer["asks"]:
            bench.tell(ask)
    assert [one["lease"] for one in answer["waiting_for"]] == [forgotten["lease"]]
    assert bench.told < 12 + 8 * 120


def coterie_campaign(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["campaign", *map(str, arguments)], env={"COTERIE_WORKER": "", "COLUMNS": "300"})


def test_the_command_says_for_whom_it_waits_and_frees(tmp_path: Path, clock: Any) -> None:
    """Exit code 75 while there is nothing to measure; the command that it prints frees the ask."""
    address = str(tmp_path / "store.db")
    made = coterie_campaign(
        "new", "tea", "--arms", 9, "--clusters", 3, "--noise", 0.7, "--pass-on", 0, "--store", address
    )
    assert made.exit_code == 0, made.output
    with Campaigns(address) as store:
        bench = Bench.__new__(Bench)
        bench.store, bench.clock, bench.noise, bench.told = store, clock, 0.7, 0
        bench.rng, bench.id = np.random.default_rng(0), str(store.list()[0]["id"])
        forgotten = bench.until_forgotten(12)
        assert bench.work("bob")["waiting_for"]
    waits = coterie_campaign("ask", "tea", "--worker", "bob", "--store", address)
    assert waits.exit_code == 75
    first, *_, last = waits.stdout.splitlines()
    assert first == f"waiting for {forgotten['name']}, asked of ann, until {forgotten['expires']}"
    assert f"fail tea {forgotten['lease']} --reason 'no answer' --store {address}" in last
    as_json = coterie_campaign("ask", "tea", "--worker", "bob", "--store", address, "--json")
    assert as_json.exit_code == 75
    assert json.loads(as_json.stdout)["waiting_for"][0]["worker"] == "ann"
    status = coterie_campaign("status", "tea", "--store", address).stdout
    assert first in status
    assert f"({forgotten['name']}, asked of ann)" in status
    freed = coterie_campaign("fail", "tea", forgotten["lease"], "--reason", "no answer", "--store", address)
    assert freed.exit_code == 0
    assert coterie_campaign("ask", "tea", "--worker", "bob", "--store", address).exit_code == 0
