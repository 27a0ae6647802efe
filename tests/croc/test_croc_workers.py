"""Several workers: rounds follow one another before their results are in, and the log shows that they may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines import croc_run

import coterie
from coterie._native import croc_constants

FOUR = coterie.Instance([0, 0, 1, 1], [[0.0], [0.5]])


def work(instance: Any, workers: int, seed: int, delta: float = 0.05, lost: float = 0.0, cap: int = 20_000) -> Any:
    """Always so many asks open; they are answered in a random order, or given up with probability `lost`."""
    session = coterie.Session(instance.n_arms, instance.n_clusters, instance.dim, delta, noise=1.0)
    rng, order = np.random.default_rng(seed), np.random.default_rng(10**6 + seed)
    while not session.done:
        assert session.t < cap, "unfinished"
        session.open(workers - len(session.pending))
        if session.pending:
            ticket, arm = session.pending[order.integers(len(session.pending))]
            if order.random() < lost:
                session.forget(ticket)
            else:
                session.tell(arm, instance.means[arm] + rng.standard_normal(instance.dim), ticket)
    return session


@pytest.mark.parametrize("workers", [2, 8, 64, 200])
def test_certificates_of_several_workers_verify(workers: int) -> None:
    for seed in range(3):
        session = work(FOUR, workers, seed, lost=0.1)
        assert coterie.verify(session.certificate, session.events).problems == []


def test_rounds_are_under_way_together() -> None:
    """Or the other tests say nothing: a round is composed while results of the one before are missing."""
    session = work(FOUR, 8, 0)
    left: dict[int, int] = {}
    together = 0
    for event in session.events:
        if event["event"] == "round":
            together += any(left.values())
            left[event["round"]] = sum(count for _, count in event["pulls"])
        elif event["event"] == "result" and event["round"] > 0:
            left[event["round"]] -= 1
            assert left[event["round"]] >= 0
    assert together > 5


@pytest.mark.parametrize("workers", [1, 5, 30])
def test_a_round_is_composed_when_all_asks_before_are_out(workers: int) -> None:
    """That is what makes a round's composition independent of its own results (docs/CROC.md, section 4)."""
    rng, order = np.random.default_rng(workers), np.random.default_rng(3)
    session: Any = coterie.Session(4, 2, 1, 1e-6, noise=1.0)
    asked: dict[int, int] = {}
    seen = 0
    while not session.done and session.t < 3000:
        for _ in range(workers - len(session.pending)):
            before = croc_run(session).round
            opened = session.open(1)
            after = croc_run(session).round
            if after > before:  # composed by this ask: nothing of earlier rounds may be left to ask for
                seen += 1
                sizes = {e["round"]: sum(n for _, n in e["pulls"]) for e in session.events if e["event"] == "round"}
                assert all(asked.get(number, 0) == sizes[number] for number in range(1, after))
            if opened:
                number = opened[0].round
                asked[number] = asked.get(number, 0) + 1
        if session.pending:
            ticket, arm = session.pending[order.integers(len(session.pending))]
            session.tell(arm, FOUR.means[arm] + rng.standard_normal(1), ticket)
    assert seen > 20 or workers == 1


def test_many_workers_pull_in_rounds_only_once_groups_are_clear() -> None:
    """With the candidate frozen and no risk of misgrouping, no ask goes to an arm that no test needs."""
    instance = coterie.Instance([0, 0, 0, 1, 1, 1], [[0.0], [1.5]])
    session: Any = coterie.Session(6, 2, 1, 1e-40, noise=1.0)
    rng = np.random.default_rng(0)
    while croc_run(session).round < 3:
        arm = session.ask()
        session.tell(arm, instance.means[arm] + rng.standard_normal(1))
    rounds = [ticket.round for ticket in session.open(48)]
    assert all(number > 0 for number in rounds)
    assert len(set(rounds)) > 3


@pytest.mark.slow
def test_more_asks_than_rounds_have_room_for() -> None:
    """Asks without end and without answers: rounds grow, then arms are explored; nothing breaks, and all ends well."""
    session: Any = coterie.Session(4, 2, 1, 1e-6, noise=1.0)
    rng = np.random.default_rng(2)
    while croc_run(session).round < 2:
        arm = session.ask()
        session.tell(arm, 2.0 * FOUR.means[arm] + rng.standard_normal(1))
    session.ask(12_000)
    assert croc_run(session).round - 2 < croc_constants()["flight"]
    assert croc_run(session).committed.sum() == session.t + 12_000
    for ticket, arm in session.pending:
        if not session.done:
            session.tell(arm, 2.0 * FOUR.means[arm] + rng.standard_normal(1), ticket)
    assert session.done
    assert coterie.verify(session.certificate, session.events).problems == []


@pytest.mark.parametrize("workers", [3, 20])
def test_resuming_keeps_rounds_under_way(workers: int) -> None:
    """Saved and loaded in the middle of several rounds, a session goes on as if it had not been."""
    instance = coterie.Instance([0, 0, 1, 1, 2, 2, 2], np.array([[0.0], [1.0], [2.5]]))
    session: Any = coterie.Session(7, 3, 1, 1e-4, noise=1.0)
    other: Any = None
    rng, order = np.random.default_rng(7), np.random.default_rng(8)
    while not session.done:
        session.open(workers - len(session.pending))
        if other is not None:
            other.open(workers - len(other.pending))
            assert other.pending == session.pending
        elif croc_run(session).round > 6:
            other = coterie.Session.from_dict(session.to_dict())
        if session.pending:
            ticket, arm = session.pending[order.integers(len(session.pending))]
            x = instance.means[arm] + rng.standard_normal(1)
            for one in (session, other):
                if one is not None:
                    one.tell(arm, x, ticket)
    assert other is not None
    assert other.done
    assert other.certificate == session.certificate
    assert other.events == session.events


@pytest.mark.slow
def test_several_workers_need_little_more() -> None:
    """A coarse bound, wide enough for chance; `coterie bench hands` measures."""
    one, eight, many = (np.mean([work(FOUR, w, seed).t for seed in range(12)]) for w in (1, 8, 64))
    assert eight < 1.6 * one
    assert many < 3.2 * one
