"""The peers are methods like any other: in a session, with one worker or several, in `simulate`, in a campaign.

They are registered from outside the package: nothing in engine, session, simulate or campaign knows of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from bench.crew import Crew, new_session
from bench.peers import PEERS, elimination, lucb, register_all, representatives
from bench.peers.batched import BatchedRun, play_course
from bench.peers.course import Course, Task
from coterie import methods
from coterie.campaign import Campaigns, Conflict
from coterie.cli import app
from coterie.methods.trials import RunningTrials, play_by_contract, play_run, play_trial
from coterie.simulate.bulk import child_seed, plan_for
from coterie.testing.methods import check_method

pytestmark = pytest.mark.slow  # what the benchmarks compare with

EASY = coterie.Instance([0, 0, 1, 1, 2, 2], [[0.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
each_peer = pytest.mark.parametrize("peer", PEERS)
COURSES: dict[str, Callable[[Task], Course]] = {
    "elimination": elimination.course,
    "lucb": lucb.course,
    "representatives": representatives.course,
}


def test_importing_the_peers_registers_them() -> None:
    register_all()  # again: it replaces what is there
    for name, peer in PEERS.items():
        assert methods.method_named(name) is peer
        assert "arXiv" in peer.sentence
        assert peer.in_ask_order
        assert peer.proves("heuristic")


@pytest.mark.parametrize("peer", ["elimination", "lucb"])
def test_asking_one_by_one_equals_the_loop_in_blocks(peer: str) -> None:
    """Up to 64 results of an arm a block is one result, and both draw the same noise."""
    plan = plan_for(EASY, peer, (0.2, 1e-3), "proven")
    for trial in range(4):
        blocks, asked = (
            play(plan, child_seed(3, trial), RunningTrials())["proven"] for play in (play_trial, play_by_contract)
        )
        assert (blocks.times > 0).all()
        assert asked.times.tolist() == blocks.times.tolist()
        assert asked.correct.tolist() == blocks.correct.tolist()


@each_peer
def test_a_run_of_asks_equals_the_course_in_the_same_order_of_arms(peer: str) -> None:
    order = np.array([3, 0, 5, 1, 4, 2])
    plan = plan_for(EASY, peer, 0.05, "proven")
    for seed in range(4):

        def course(task: Task) -> Course:
            return COURSES[peer](replace(task, random_order=lambda: order))

        end = play_course(course, plan, 0.05, np.random.default_rng(seed), RunningTrials())
        assert end is not None
        run = BatchedRun(COURSES[peer], Task(6, 3, 2, 0.05, lambda: order))
        play_run(run, plan, np.random.default_rng(seed), RunningTrials())
        assert run.done
        assert run.t == end[0]
        assert run.guess is not None
        assert run.guess[0].tolist() == end[1].tolist()


@each_peer
def test_a_session_asks_and_tells_one_by_one(peer: str) -> None:
    session = new_session(EASY, 0.05, peer)
    rng = np.random.default_rng(5)
    while not session.done:
        arm = session.ask()
        before = session.evidence
        session.tell(arm, EASY.means[arm] + rng.standard_normal(2))
        assert session.done or before.statistic < before.threshold
    assert coterie.same_partition(session.labels, EASY.labels)
    assert session.pulls.min() >= 1
    assert session.t == session.pulls.sum() < 500
    assert session.evidence.statistic >= session.evidence.threshold
    assert session.centers is not None
    means = [np.array(EASY.means)[session.labels == k].mean(axis=0) for k in range(3)]
    assert np.abs(session.centers - means).max() < 2.0
    with pytest.raises(coterie.SessionDone):
        session.ask()


@each_peer
@pytest.mark.parametrize("workers", [3, 10])
def test_several_workers_find_the_groups_whatever_the_order_of_results(peer: str, workers: int) -> None:
    """Results come in any order, some never, some were not asked for. With 10 workers for 6 arms asks run ahead."""
    for seed in range(3):
        session = new_session(EASY, 0.05, peer)
        Crew(session, EASY, [seed, workers]).always_busy(workers, 5_000, forgotten=0.1, unasked=0.1)
        assert session.done
        assert coterie.same_partition(session.labels, EASY.labels)


@each_peer
def test_a_batch_is_asked_for_at_once_and_results_told_unasked_count(peer: str) -> None:
    in_batches = new_session(EASY, 0.05, peer)
    Crew(in_batches, EASY, [1]).in_batches(8, 5_000)
    unasked = new_session(EASY, 0.05, peer)
    Crew(unasked, EASY, [2]).in_turn(5_000)
    for session in (in_batches, unasked):
        assert session.done
        assert coterie.same_partition(session.labels, EASY.labels)


@each_peer
def test_a_saved_session_goes_on_as_if_it_had_not_stopped(peer: str) -> None:
    rng = np.random.default_rng(9)
    whole, saved = new_session(EASY, 0.01, peer), new_session(EASY, 0.01, peer)
    while not whole.done:
        arms = whole.ask(2)
        assert saved.ask(2) == arms
        saved = coterie.Session.from_dict(json.loads(json.dumps(saved.to_dict())))
        for arm in arms[::-1]:
            if not whole.done:
                x = EASY.means[arm] + rng.standard_normal(2)
                whole.tell(arm, x)
                saved.tell(arm, x)
    assert saved.done
    assert saved.t == whole.t
    assert np.array_equal(np.asarray(saved.labels), np.asarray(whole.labels))
    assert np.array_equal(saved.pulls, whole.pulls)


def test_results_of_an_earlier_step_are_not_used_in_the_next() -> None:
    """The second step of the representatives must not read what was asked for in the first."""
    order = np.arange(6)
    run = BatchedRun(representatives.course, Task(6, 3, 2, 0.05, lambda: order))
    late = run.ask()
    assert late.round == 0
    rng = np.random.default_rng(1)
    pull = run.ask()
    while pull.round == 0:
        run.count(pull.arm, EASY.means[pull.arm] + rng.standard_normal(2), pull.round, True)
        pull = run.ask()
    stacks = run._batch.stacks
    before, t = stacks.counts.copy(), run.t
    run.count(late.arm, np.array([1e6, 1e6]), late.round, True)
    assert run.t == t + 1
    assert stacks.counts.tolist() == before.tolist()


@each_peer
def test_the_command_line_simulates_a_peer(peer: str) -> None:
    words = ["simulate", "easy", "--method", peer, "--trials", "4", "--delta", "0.1", "--seed", "2", "--json"]
    answer = CliRunner().invoke(app, [*words, "--register", "bench.peers"])
    assert answer.exit_code == 0, answer.output
    here = coterie.simulate(
        coterie.datasets.synthetic("easy"), peer, trials=4, seed=2, progress=False, threshold="heuristic", deltas=(0.1,)
    )
    assert f"{float(here.mean()[0])}" in answer.stdout


@each_peer
def test_a_campaign_runs_to_its_end_and_opens_again(peer: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    plain = new_session(EASY, 0.05, peer)
    counts = np.zeros(6, dtype=int)

    def value(arm: int) -> list[float]:
        counts[arm] += 1
        found: list[float] = (EASY.means[arm] + np.random.default_rng([arm, counts[arm]]).standard_normal(2)).tolist()
        return found

    with Campaigns(url) as store:
        id = store.create("peer", 6, 3, 2, method=peer, noise=1.0)["id"]
    number = 0
    while not plain.done:
        with Campaigns(url) as store:  # each time like another process
            until = number + 15
            while number < until and not plain.done:
                (ask,) = store.ask(id, "w")["asks"]
                assert ask["arm"] == plain.ask()
                x = value(ask["arm"])
                number += 1
                store.tell(id, [{"id": str(number), "arm": ask["arm"], "values": x, "lease": ask["lease"]}])
                plain.tell(ask["arm"], x)
    with Campaigns(url) as store:
        found = store.status(id)
        assert found["done"]
        assert found["method"] == peer
        assert found["t"] == plain.t == number
        assert found["pulls"] == plain.pulls.tolist()
        assert coterie.same_partition(found["labels"], EASY.labels)
        assert store.ask(id, "w")["asks"] == []


def measured(store: Campaigns, id: str, number: int) -> None:
    """One ask, and its result."""
    (ask,) = store.ask(id, "w")["asks"]
    values = EASY.means[ask["arm"]].tolist()
    store.tell(id, [{"id": str(number), "arm": ask["arm"], "values": values, "lease": ask["lease"]}])


def test_a_campaign_loses_nothing_when_its_method_asks_for_an_arm_that_there_is_not(tmp_path: Path) -> None:
    """The error names the method; what was told stays, and a corrected method goes on."""

    def wanders_off(tally: methods.Tally) -> Any:
        return 99 if tally.t >= 8 else 0

    url = f"sqlite:///{tmp_path / 'store.db'}"
    methods.register(methods.compose("wanders-off", sampling=wanders_off, stopping="pairs"))
    try:
        with Campaigns(url) as store:
            id = store.create("odd", 6, 3, 2, method="wanders-off", noise=1.0)["id"]
            for number in range(8):
                measured(store, id, number)
            with pytest.raises(Conflict, match="method 'wanders-off' asked for arm 99: the arms are 0 to 5"):
                store.ask(id, "w")
            assert store.status(id)["t"] == 8
        methods.register(methods.compose("wanders-off", stopping="pairs"), replace_existing=True)
        with Campaigns(url) as store:
            assert store.status(id)["t"] == 8
            assert store.ask(id, "w")["asks"][0]["arm"] == 1
    finally:
        methods.unregister("wanders-off")


def test_a_campaign_loses_nothing_when_its_method_fails_on_a_result(tmp_path: Path) -> None:
    """The result is not on record, and its sender knows; a corrected method takes it."""

    def fails(tally: methods.Tally) -> methods.Reading:
        return methods.Reading(0.0, 1.0 / (tally.t - 8) ** 2)

    url = f"sqlite:///{tmp_path / 'store.db'}"
    methods.register(methods.compose("fails", stopping=fails))
    try:
        with Campaigns(url) as store:
            id = store.create("odd", 6, 3, 2, method="fails", noise=1.0)["id"]
            for number in range(7):
                measured(store, id, number)
            for _ in range(2):  # the lease stays open, and nothing is half done
                with pytest.raises(Conflict, match="method 'fails' failed in count: ZeroDivisionError"):
                    measured(store, id, 7)
                assert store.status(id)["t"] == 7
        methods.register(methods.compose("fails"), replace_existing=True)
        with Campaigns(url) as store:
            measured(store, id, 7)
            assert store.status(id)["t"] == 8
    finally:
        methods.unregister("fails")


@each_peer
def test_a_peer_keeps_the_contract(peer: str) -> None:
    check_method(PEERS[peer])
