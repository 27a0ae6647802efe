"""Ask and tell in any order: batches, pending asks, tickets, names, results nobody asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from known import known

import coterie
from coterie.evidence.allocation import project_to_floor
from coterie.evidence.stopping import alternative_value
from tests.oracles.paper import guess_allocation, kmeans_maximin_reference

METHODS = ("boc", "boc-linear", "uniform", "oracle")
RATIO = 0.3
INST = coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [1.5, 0.0], [0.0, 2.0]])


def new_session(method: str, **more: Any) -> coterie.Session:
    if method == "boc-linear":
        more["distance_ratio"] = RATIO
    if method == "oracle":
        more["instance"] = INST
    return coterie.Session(INST.n_arms, INST.n_clusters, INST.dim, method=method, **{"noise": 1.0, **more})


class Plain:
    """Alg. 1 (algo1) for measurements of any arm in any order, from scratch each time: the oracle of a session."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.sums = np.zeros((INST.n_arms, INST.dim))
        self.pulls = np.zeros(INST.n_arms, dtype=np.int64)
        self.guess: Any = None
        self.statistic = 0.0

    def forced(self, counts: np.ndarray) -> bool:
        floor = max(math.sqrt(counts.sum()) - INST.n_arms / 2, 0.0)
        return self.method in ("boc", "oracle") and bool(counts.min() <= floor)  # line 3

    def observe(self, arm: int, x: np.ndarray) -> None:
        self.sums[arm] += x
        self.pulls[arm] += 1
        if self.guess is not None:
            labels, centers = self.guess
            means = self.sums / self.pulls[:, None]
            z1 = (self.pulls * ((means - centers[labels]) ** 2).sum(axis=1)).sum()
            z2 = alternative_value(labels, centers, self.pulls.astype(float))
            self.statistic = 0.5 * max(math.sqrt(z2) - math.sqrt(z1), 0.0) ** 2
        if self.pulls.min() > 0 and (self.guess is None or not self.forced(self.pulls)):
            self.guess = kmeans_maximin_reference(self.sums / self.pulls[:, None], self.pulls, INST.n_clusters)

    def next_arm(self, pending: list[tuple[int, int]]) -> int:
        committed = self.pulls + np.bincount([arm for _, arm in pending], minlength=INST.n_arms)
        if self.guess is None or self.method == "uniform" or self.forced(committed):
            return int(np.argmin(committed))
        if self.method == "oracle":
            shares = guess_allocation(INST.labels, INST.centers)
        else:
            shares = guess_allocation(*self.guess)
        if self.method == "boc-linear":
            shares = project_to_floor(shares, RATIO**2 / (2 * INST.n_arms))
        t = committed.sum()
        scores = t * shares - committed
        return int(np.argmax(scores >= scores.max() - 1e-9 * t))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_asks_and_tells_matches_oracle(method: str, seed: int) -> None:
    """Asks left open, results late and unasked for, asks given up: always the arm that Alg. 1 would choose."""
    rng = np.random.default_rng([3, seed])
    session, plain = new_session(method, delta=1e-9), Plain(method)
    for _ in range(160):
        deed = rng.random()
        if deed < 0.4 or (deed < 0.9 and not session.pending):
            assert plain.next_arm(session.pending) == session.ask()
        elif deed < 0.8:
            ticket, arm = session.pending[rng.integers(len(session.pending))]
            x = INST.means[arm] + rng.normal(size=2)
            session.tell(arm, x, ticket=ticket)
            plain.observe(arm, x)
        elif deed < 0.9:
            session.forget(session.pending[rng.integers(len(session.pending))][0])
        else:
            arm = int(rng.integers(INST.n_arms))
            x = INST.means[arm] + rng.normal(size=2)
            session.tell(arm, x)
            plain.observe(arm, x)
        assert session.pulls.tolist() == plain.pulls.tolist()
        assert session.evidence.statistic == pytest.approx(plain.statistic, rel=1e-8, abs=1e-9)
        if plain.guess is None:
            assert session.labels is None
        else:
            assert coterie.same_partition(session.labels, plain.guess[0])
    assert session.t > 60
    assert not session.done


@pytest.mark.parametrize("method", METHODS)
def test_never_measured_arms_come_first_in_index_order(method: str) -> None:
    session = new_session(method)
    assert session.ask(4) == [0, 1, 2, 3]
    assert session.ask() == 4
    assert session.ask(2) == [5, 0]  # all are under way: the second round begins
    assert [arm for _, arm in session.pending] == [0, 1, 2, 3, 4, 5, 0]
    assert [ticket for ticket, _ in session.pending] == list(range(7))
    session = new_session(method)
    session.tell(1, [0.0, 0.0])  # nobody asked
    assert session.ask(3) == [0, 2, 3]
    session.forget(1)  # the ask for arm 2 is given up
    assert session.ask(2) == [2, 4]


@pytest.mark.parametrize("method", METHODS)
def test_open_asks_are_counted_as_done(method: str) -> None:
    """Asking 8 and 8 again is asking 16, and no arm gets far more than its share of them."""
    twice, once = new_session(method), new_session(method)
    rng = np.random.default_rng(6)
    for _ in range(5):
        x = INST.means + rng.normal(size=INST.means.shape)
        for session in (twice, once):
            session.tell(list(range(6)), x)
    assert twice.ask(8) + twice.ask(8) == once.ask(16)
    assert twice.pending == once.pending
    committed = once.pulls + np.bincount([arm for _, arm in once.pending], minlength=6)
    assert committed.sum() == 46
    assert once.t == 30  # nothing was measured
    if method == "uniform":
        assert committed.max() - committed.min() <= 1
    if method in ("boc", "oracle"):  # tracking: an arm is asked for only while it is below its share
        guess = INST if method == "oracle" else coterie.Instance(once.labels, once.centers)
        asked = committed > once.pulls
        assert asked.sum() > 1
        assert (committed < 46 * coterie.allocation(guess) + 1)[asked].all()


def test_forced_exploration_counts_open_asks_and_stays_even() -> None:
    """So many open asks that √t − M/2 passes the fewest pulls: they go to the least committed arms in turn."""
    session = new_session("boc")
    rng = np.random.default_rng(7)
    session.tell(list(range(6)), INST.means + 0.1 * rng.normal(size=INST.means.shape))
    session.ask(600)
    committed = session.pulls + np.bincount([arm for _, arm in session.pending], minlength=6)
    assert committed.min() > math.sqrt(606 - 1) - 3 - 1  # line 3 of Alg. 1 at the last ask
    assert committed.sum() == 606


@pytest.mark.parametrize("method", METHODS)
def test_batch_tell_equals_single_tells(method: str) -> None:
    rng = np.random.default_rng(9)
    arms = rng.permutation(np.concatenate([np.arange(6), rng.integers(0, 6, size=90)]))
    values = INST.means[arms] + rng.normal(size=(96, 2))
    single, batch = new_session(method), new_session(method)
    for arm, x in zip(arms, values, strict=True):
        single.tell(int(arm), x)
    batch.tell(arms[:20], values[:20])
    batch.tell(arms[20:].tolist(), values[20:].tolist())
    assert batch.to_dict() == single.to_dict()
    assert batch.evidence == single.evidence
    assert np.array_equal(known(batch.labels), known(single.labels))
    assert np.array_equal(known(batch.centers), known(single.centers))
    assert np.array_equal(batch.pulls, single.pulls)
    assert batch.ask(10) == single.ask(10)


def test_a_stop_inside_a_batch_is_the_stop_of_single_tells() -> None:
    far = 3.0 * INST.means
    rng = np.random.default_rng(10)
    arms = np.tile(np.arange(6), 60)
    values = far[arms] + rng.normal(size=(360, 2))
    single, batch = new_session("uniform"), new_session("uniform")
    for arm, x in zip(arms, values, strict=True):
        single.tell(int(arm), x)
    batch.tell(arms, values)
    assert single.done
    assert batch.done
    assert batch.t == single.t
    assert 12 < batch.t < 360
    assert batch.to_dict() == single.to_dict()
    assert np.array_equal(known(batch.centers), known(single.centers))
    assert len(batch.log) == 360


def test_results_in_any_order_are_the_same_counts() -> None:
    """Out of order, the means and pulls are those of the order in which they were asked for."""
    rng = np.random.default_rng(11)
    straight, mixed = new_session("uniform"), new_session("uniform")
    asked = straight.ask(60)
    assert mixed.ask(60) == asked
    values = INST.means[asked] + rng.normal(size=(60, 2))
    for i in range(60):
        straight.tell(asked[i], values[i], ticket=i)
    for i in rng.permutation(60):
        mixed.tell(asked[i], values[i], ticket=i)
    assert mixed.pending == []
    assert mixed.pulls.tolist() == straight.pulls.tolist()
    assert coterie.same_partition(mixed.labels, straight.labels)
    np.testing.assert_allclose(known(mixed.centers), known(straight.centers), rtol=1e-9)
    assert mixed.ask() == straight.ask()


def test_a_ticket_says_which_ask_is_answered() -> None:
    session = new_session("uniform")
    session.ask(13)  # arms 0 to 5, 0 to 5, 0
    session.tell(0, [1.0, 1.0], ticket=6)
    assert [pair for pair in session.pending if pair[1] == 0] == [(0, 0), (12, 0)]
    session.tell(0, [1.0, 1.0])  # without a ticket: the oldest open ask
    assert [pair for pair in session.pending if pair[1] == 0] == [(12, 0)]
    session.tell([1, 2, 1], np.zeros((3, 2)), ticket=[7, 2, 1])
    assert [pair for pair in session.pending if pair[1] in (1, 2)] == [(8, 2)]
    saved = session.to_dict()
    assert [row["ticket"] for row in saved["log"]] == [6, 0, 7, 2, 1]


def test_bad_tickets_change_nothing() -> None:
    session = new_session("uniform")
    session.ask(4)
    session.tell(1, [0.0, 0.0], ticket=1)
    before = session.to_dict()
    x = [0.0, 0.0]
    for arm, ticket, error, message in [
        (0, 9, ValueError, r"ticket 9 is not open: open tickets are \[0, 2, 3\]"),
        (1, 1, ValueError, "ticket 1 is not open"),  # answered before
        (2, 3, ValueError, "ticket 3 is for arm 3, not for arm 2"),
        (0, -1, ValueError, "ticket must be at least 0, got -1"),
        (0, 0.0, TypeError, r"ticket must be an integer, got 0\.0"),
        (0, "0", TypeError, "ticket must be an integer, got '0'"),
        (0, True, TypeError, "ticket must be an integer, got True"),
    ]:
        with pytest.raises(error, match=message):
            session.tell(arm, x, ticket=ticket)
    for arms, tickets, message in [
        ([0, 2], [0, 0], "ticket 0 is not open"),  # the same ticket twice in a batch
        ([0, 2], [0, 3], "ticket 3 is for arm 3, not for arm 2"),
        ([0, 2], [0], r"2 arms need as many tickets, got \[0\]"),
        ([0, 2], 0, "2 arms need as many tickets, got 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            session.tell(arms, [x, x], ticket=tickets)
    for ticket, error in [(1, ValueError), (9, ValueError), ("a", TypeError)]:
        with pytest.raises(error, match=f"ticket .*{ticket}"):
            session.forget(ticket)
    assert session.to_dict() == before
    assert session.ask() == 4


def test_forget_frees_the_arm() -> None:
    session = new_session("uniform")
    session.ask(6)
    session.tell(list(range(6)), INST.means)
    assert session.ask(3) == [0, 1, 2]
    session.forget(session.pending[1][0])
    assert [arm for _, arm in session.pending] == [0, 2]
    assert session.ask() == 1
    assert session.ask() == 3
    with pytest.raises(ValueError, match="ticket 7 is not open"):
        session.forget(7)


def test_arms_can_be_told_by_name() -> None:
    names = ["ant", "bee", "cat", "dog", "eel", "fox"]
    named, plain = new_session("boc", names=names), new_session("boc")
    for arm, name in enumerate(names):
        named.tell(name, INST.means[arm])
        plain.tell(arm, INST.means[arm])
    named.tell(["fox", 0, "bee"], np.ones((3, 2)))
    named.tell(np.array(["cat", "cat"]), np.ones((2, 2)))
    plain.tell([5, 0, 1, 2, 2], np.ones((5, 2)))
    assert named.names == tuple(names)
    assert named.ask(5) == plain.ask(5)  # arms are asked for by index: names[arm] says which
    assert {**named.to_dict(), "names": None} == plain.to_dict()


def test_numbers_of_any_kind_are_taken() -> None:
    four: Any = np.int64(4)
    one: Any = np.int32(1)
    session = coterie.Session(four, 2, one, noise=1.0)
    session.tell(np.int64(0), 1)
    session.tell(np.array(1), np.float32(2.0))
    session.tell(2, [3])
    session.tell([3, 0], [1.5, 2.5])  # one dimension: a vector of n results
    session.tell((1, 2), [[1.5], [2.5]])
    session.tell([], np.zeros((0, 1)))
    assert [value.tolist() for _, value in session.log] == [[1.0], [2.0], [3.0], [1.5], [2.5], [1.5], [2.5]]
    assert session.pulls.tolist() == [2, 2, 2, 1]
