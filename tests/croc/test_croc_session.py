"""CROC sessions: the order of results, saving and loading, batches, results nobody asked for, and the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engines import croc_run, edit, inside

import coterie

TRUTH = np.array([0, 1, 0, 1, 2, 2, 0, 2])
CENTERS = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
N = len(TRUTH)


def new_session(delta: float = 0.05) -> Any:
    return coterie.Session(N, 3, 2, delta, method="croc", noise=1.0)


def draw(arm: int, rng: np.random.Generator) -> np.ndarray:
    x: np.ndarray = CENTERS[TRUTH[arm]] + rng.standard_normal(2)
    return x


def moves(session: Any, rng: np.random.Generator, count: int) -> None:
    """Random moves of any kind: asks in bursts, late and disordered answers, unasked results, asks given up."""
    for _ in range(count):
        if session.done:
            return
        kind = rng.choice(["ask", "answer", "oldest", "unasked", "forget"], p=[0.25, 0.4, 0.2, 0.1, 0.05])
        if kind == "ask" or not session.pending:
            session.open(int(rng.integers(1, 7)))
        elif kind == "answer":
            ticket, arm = session.pending[rng.integers(len(session.pending))]
            session.tell(arm, draw(arm, rng), ticket)
        elif kind == "oldest":
            arm = session.pending[0][1]
            session.tell(arm, draw(arm, rng))
        elif kind == "unasked":
            arm = int(rng.integers(N))
            session.tell(arm, draw(arm, rng))
        else:
            session.forget(session.pending[rng.integers(len(session.pending))][0])


def finish(session: Any, rng: np.random.Generator) -> None:
    """Answer all open asks, oldest first, then go on one by one."""
    while not session.done:
        assert session.t < 20_000
        ticket, arm = session.pending[0] if session.pending else (None, session.ask())
        session.tell(arm, draw(arm, rng), ticket)


def snapshot(session: Any) -> dict[str, Any]:
    """All that can be seen of a session, and its engine's state: one that is done and was loaded has no engine."""
    return {
        "saved": session.to_dict(),
        "events": session.events,
        "done": session.done,
        "t": session.t,
        "waiting": session.waiting,
        "labels": None if session.labels is None else session.labels.tolist(),
        "centers": None if session.centers is None else session.centers.tolist(),
        "alarm": session.alarm,
        "certificate": session.certificate,
        "state": None
        if session.done
        else {name: np.asarray(one).tolist() for name, one in croc_run(session).memory().items()},
    }


# Saving and loading.


@pytest.mark.parametrize("seed", range(12))
def test_loaded_session_equals_never_stopped(seed: int) -> None:
    """Saved at a random moment, with asks under way, late results and asks given up, as a JSON text."""
    rng = np.random.default_rng(seed)
    session = new_session([0.2, 1e-4][seed % 2])
    moves(session, rng, int(rng.integers(0, 1200)))
    loaded = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    np.testing.assert_equal(snapshot(loaded), snapshot(session))
    for one in (session, loaded):
        again = np.random.default_rng(seed + 100)
        moves(one, again, 200)
        finish(one, again)
    np.testing.assert_equal(snapshot(loaded), snapshot(session))
    assert coterie.verify(loaded.certificate, loaded.events).valid


def test_loaded_session_equals_never_stopped_after_the_end() -> None:
    """Results told after the end, and asks given up then, are part of what is saved."""
    rng = np.random.default_rng(1)
    session = new_session()
    while not session.done:
        session.open(6)
        for ticket, arm in session.pending[:4]:
            session.tell(arm, draw(arm, rng), ticket)
    before = session.t, session.labels.tolist(), session.certificate, session.events
    assert len(session.pending) > 2
    session.forget(session.pending[1][0])
    ticket, arm = session.pending[0]
    session.tell(arm, draw(arm, rng), ticket)
    session.tell([0, 1], [draw(0, rng), draw(1, rng)])
    loaded: Any = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    np.testing.assert_equal(snapshot(loaded), snapshot(session))
    assert loaded.log[-1][0] == 1
    assert (loaded.t, loaded.labels.tolist(), loaded.certificate, loaded.events) == before


# The order of results.


def test_results_wait_for_earlier_asks_of_their_arm() -> None:
    session = new_session()
    session.ask(2 * N)  # every arm twice
    rng = np.random.default_rng(2)
    first, second = ([ticket for ticket, arm in session.pending if arm == 3][i] for i in range(2))
    late, early = draw(3, rng), draw(3, rng)
    session.tell(3, late, second)
    assert (session.t, session.waiting, session.pulls[3]) == (0, 1, 0)
    session.tell(3, early, first)
    assert (session.t, session.waiting, session.pulls[3]) == (2, 0, 2)
    counted = [event["values"] for event in session.events if event["event"] == "result"]
    assert counted == [early.tolist(), late.tolist()]


def test_giving_up_an_ask_lets_later_results_count() -> None:
    session = new_session()
    session.ask(2 * N)
    rng = np.random.default_rng(3)
    first, second = ([ticket for ticket, arm in session.pending if arm == 5][i] for i in range(2))
    session.tell(5, draw(5, rng), second)
    assert (session.t, session.waiting) == (0, 1)
    session.forget(first)
    assert (session.t, session.waiting) == (1, 0)


ORDERS: dict[str, Callable[[list[Any], np.random.Generator], list[Any]]] = {
    "as asked": lambda asks, rng: asks,
    "backwards": lambda asks, rng: asks[::-1],
    "shuffled": lambda asks, rng: [asks[i] for i in rng.permutation(len(asks))],
    "by value": lambda asks, rng: sorted(asks, key=lambda ask: ask[2].sum()),
}


def delivered(order: str, before: int, size: int) -> Any:
    """A session that asked for a batch and was told all of it in this order."""
    rng = np.random.default_rng(before)
    session = new_session(1e-12)
    for _ in range(before):
        arm = session.ask()
        session.tell(arm, draw(arm, rng))
    session.ask(size)
    asks = [(ticket, arm, draw(arm, rng)) for ticket, arm in session.pending]
    for ticket, arm, x in ORDERS[order](asks, np.random.default_rng(9)):
        session.tell(arm, x, ticket)
    assert session.waiting == 0
    return session


@pytest.mark.parametrize("before", [0, 8, 60, 300])
@pytest.mark.parametrize("order", ["backwards", "shuffled", "by value"])
def test_order_of_delivery_keeps_what_counts(before: int, order: str) -> None:
    """Whatever order the results of a batch come in, every arm's results count in ask order, and in their rounds."""
    here, there = delivered("as asked", before, 40), delivered(order, before, 40)
    assert here.t == there.t == before + 40
    mine, its = inside(croc_run(here)).arms, inside(croc_run(there)).arms
    np.testing.assert_array_equal(mine.pulls, its.pulls)
    # Positions are relative to the result that came first, so the sums agree up to rounding once that is put back.
    places = np.arange(mine.prefixes.shape[0])[:, None]
    heights = np.where(places <= mine.pulls, places, 0)[:, :, None]
    for name, counts in (("sums", mine.pulls[:, None]), ("prefixes", heights)):
        a, b = (getattr(state, name) + counts * state.origin for state in (mine, its))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)
    for arm in range(N):
        stacks = [
            [(e["values"], e["round"]) for e in s.events if e["event"] == "result" and e["arm"] == arm]
            for s in (here, there)
        ]
        assert stacks[0] == stacks[1]


@pytest.mark.parametrize("order", ["backwards", "shuffled", "by value"])
def test_order_of_delivery_keeps_the_tests_of_a_round(order: str) -> None:
    """A batch that ends with a round: the frozen tests get the same contrasts, bit by bit."""
    session = new_session(1e-12)
    rng = np.random.default_rng(4)
    while croc_run(session).round < 5:
        arm = session.ask()
        session.tell(arm, draw(arm, rng))
    saved, found = session.to_dict(), []
    for how in ("as asked", order):
        one: Any = coterie.Session.from_dict(saved)
        run = croc_run(one)
        one.ask(sum(count for _, count in run.composition(5)[1]))
        values = np.random.default_rng(5)
        asks = [(ticket, arm, draw(arm, values)) for ticket, arm in one.pending]
        for ticket, arm, x in ORDERS[how](asks, np.random.default_rng(6)):
            assert run.round == 5
            one.tell(arm, x, ticket)
        assert run.round >= 5
        tests = [getattr(epoch, name) for epoch in inside(run).epochs
                 for name in ("against_core", "against_group", "core_pairs")]  # fmt: skip
        found.append([array for one in tests for array in (one.weight, one.kept)])
    assert any(array.any() for array in found[0])
    for mine, its in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, its)


# Batches.


@pytest.mark.parametrize("size", [2, 7, 50, 300])
def test_batches_prove_the_groups(size: int) -> None:
    """Asks beyond what a round needs are outside it; the proof is as good."""
    rng = np.random.default_rng(size)
    session = new_session(1e-9)
    while not session.done:
        assert session.t < 20_000
        for _, arm, _ in session.open(size):
            session.tell(arm, draw(arm, rng))
    rounds = [event["round"] > 0 for event in session.events if event["event"] == "result"]
    assert 0 < sum(rounds) <= len(rounds) - N
    assert coterie.same_partition(session.labels, TRUTH)
    assert coterie.verify(session.certificate, session.events).valid


def test_ask_can_find_the_groups_proven() -> None:
    """The answers since the last plan may be enough, which shows when more is asked for: that is the end."""
    ended = {"nothing asked": 0, "fewer asked": 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        session = coterie.Session(5, 2, 1, 0.1, noise=1.0)
        while not session.done:
            before, size = session.pending, int(rng.integers(1, 4))
            try:
                arms = session.ask(size)
            except coterie.SessionDone:
                ended["nothing asked"] += 1
                assert session.pending == before
                break
            ended["fewer asked"] += len(arms) < size
            assert [arm for _, arm in session.pending[len(before) :]] == arms
            assert session.done == (len(arms) < size) == (session.certificate is not None)
            for _ in range(size):
                if session.pending and not session.done and rng.random() < 0.8:
                    ticket, arm = session.pending[rng.integers(len(session.pending))]
                    session.tell(arm, 2.0 * (arm % 2) + rng.standard_normal(1), ticket)
        assert session.done
        assert coterie.verify(session.certificate, session.events).valid
        np.testing.assert_equal(snapshot(coterie.Session.from_dict(session.to_dict())), snapshot(session))
    assert min(ended.values()) > 0


# Results that nobody asked for.


def test_unasked_results_alone_prove_clear_groups() -> None:
    rng = np.random.default_rng(7)
    session = coterie.Session(6, 2, 2, 0.05, noise=1.0)
    while not session.done:
        assert session.t < 60
        arm = session.t % 6
        session.tell(arm, 8.0 * (arm % 2) + rng.standard_normal(2))
    assert coterie.same_partition(session.labels, np.arange(6) % 2)
    assert coterie.verify(session.certificate, session.events).valid
    assert session.pending == []


def test_unasked_results_alone_prove_groups_that_take_longer() -> None:
    """The pairs from the start prove with any sampling rule, also if the rounds that CROC opens are never measured."""
    rng = np.random.default_rng(7)
    session = coterie.Session(6, 2, 2, 0.05, noise=1.0)
    while not session.done:
        assert session.t < 384
        arm = session.t % 6
        session.tell(arm, 0.9 * (arm % 2) + rng.standard_normal(2))
    assert coterie.verify(session.certificate, session.events).valid


def test_unasked_results_do_not_enter_rounds() -> None:
    rng = np.random.default_rng(8)
    session = new_session(1e-6)
    while croc_run(session).round < 3:
        arm = session.ask()
        session.tell(arm, draw(arm, rng))
    left = inside(croc_run(session)).flight.entry_sums
    t = session.t
    for arm in range(N):
        session.tell(arm, draw(arm, rng))
    assert session.t == t + N
    assert all(event["round"] == 0 for event in session.events[-N:])
    np.testing.assert_array_equal(inside(croc_run(session)).flight.entry_sums, left)
    finish(session, rng)
    assert coterie.verify(session.certificate, session.events).valid


# The end.


@pytest.mark.parametrize("seed", range(3))
def test_done_is_never_taken_back(seed: int) -> None:
    """Whatever is told afterwards, what was proven and its proof stay as they were."""
    rng = np.random.default_rng(seed)
    session = new_session()
    finish(session, rng)
    before = snapshot(session)
    for _ in range(200):
        arm = int(rng.integers(N))
        session.tell(arm, 50.0 * rng.standard_normal(2))
    with pytest.raises(coterie.SessionDone):
        session.ask()
    after = snapshot(session)
    assert len(after["saved"]["log"]) == len(before["saved"]["log"]) + 200
    for key in ("events", "done", "t", "labels", "centers", "certificate", "state"):
        np.testing.assert_equal(after[key], before[key])


@pytest.mark.parametrize("seed", range(6))
def test_evidence_is_what_the_rule_reads(seed: int) -> None:
    """At any moment: below the level while it is not done, of an arm against another group, and met at the end."""
    rng = np.random.default_rng(seed)
    session = new_session(1e-3)
    assert session.evidence.weakest is None
    while not session.done:
        moves(session, rng, 7)
        now = session.evidence
        if now.weakest is None:
            assert session.labels is None
            continue
        weakest = now.weakest
        assert (now.statistic, now.threshold) == (weakest.statistic, weakest.threshold)
        assert (now.statistic >= now.threshold) == session.done
        assert session.labels[weakest.arm] != weakest.group
        assert weakest.against is None or session.labels[weakest.against] == weakest.group
        assert weakest.pulls_left == 0.0 if session.done else weakest.pulls_left >= 0.0


def test_evidence_keeps_its_groups_when_the_engine_renumbers_them() -> None:
    """The estimate may come back to a frozen candidate with its groups in another order."""
    rng = np.random.default_rng(11)
    session = new_session(1e-6)
    while croc_run(session).round < 4:
        arm = session.ask()
        session.tell(arm, draw(arm, rng))
    run, before = croc_run(session), session.evidence
    memory = run.memory()
    assert croc_run(session).matching_epoch >= 0
    name = np.array([1, 2, 0])
    memory["estimate.labels"] = name[memory["estimate.labels"]]
    for row in ("estimate.totals", "estimate.centers", "estimate.representative"):
        memory[row][name] = memory[row].copy()
    for column in ("pairs.settled", "pairs.counts.arm", "pairs.counts.lead", "pairs.evidence"):
        memory[column][:, name] = memory[column].copy()
    run.restore(memory)
    assert croc_run(session).matching_epoch >= 0
    assert session.evidence == before


def test_evidence_between_the_last_pair_and_the_next_plan() -> None:
    """All pairs can be settled while arms are still in the queue: the weakest of them is shown."""
    session = new_session()
    for arm in range(N):
        session.tell(session.ask(), CENTERS[TRUTH[arm]])
    edit(croc_run(session), {("pairs.settled", ...): 1, ("pairs.evidence", ...): 100.0 + np.arange(N)[:, None]})
    now = session.evidence
    assert now.statistic == 100.0 >= now.threshold
    assert now.weakest is not None
    assert now.weakest.arm == 0


@pytest.mark.parametrize("seed", [26, 31, 43, 66])
def test_unasked_results_leave_a_wrong_candidate_whose_round_nobody_measures(seed: int) -> None:
    """A frozen candidate that is wrong must not hold a session that is never asked: the estimate goes on."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(8) % 3)
    centers = np.array([[0.0, 0.0], [1.3, 0.0], [0.0, 1.3]])
    session = coterie.Session(8, 3, 2, delta=0.05, noise=1.0)
    for i in range(64 * 8):
        if session.done:
            break
        session.tell(i % 8, centers[truth[i % 8]] + rng.standard_normal(2))
    assert session.done
    assert coterie.same_partition(session.labels, truth)
    assert coterie.verify(session.certificate, session.events)
