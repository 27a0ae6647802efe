"""`Session.replay`: a recorded conversation at once is the same as its asks, tells and forgets one by one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import coterie

METHODS = ["boc", "boc-linear", "uniform", "oracle", "croc"]
INST = coterie.Instance([0, 1, 0, 1, 2, 2, 0, 2], [[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
COVARIANCE = [[1.0, 0.3], [0.3, 0.8]]


def new_session(method: str, delta: float = 0.05, noise: Any = 1.0) -> Any:
    ratio = 0.3 if method == "boc-linear" else None
    known = INST if method == "oracle" else None
    return coterie.Session(8, 3, 2, delta, method, "heuristic", noise, ratio, known)


class Recorded:
    """A session, and what was done with it as `replay` takes it."""

    def __init__(self, session: Any, seed: int, spread: float = 1.0) -> None:
        self.session, self.spread = session, spread
        self.rng = np.random.default_rng(seed)
        self.entries: list[tuple[int, int, int, Any]] = []

    def draw(self, arm: int) -> np.ndarray:
        x: np.ndarray = self.spread * INST.means[arm] + self.rng.standard_normal(2)
        return x

    def ask(self) -> None:
        try:
            arm = self.session.ask()
        except coterie.SessionDone:  # what came since the last plan was enough
            self.entries.append((0, -1, -1, [np.nan, np.nan]))
        else:
            self.entries.append((0, arm, self.session.pending[-1][0], [np.nan, np.nan]))

    def tell(self, arm: int, ticket: int | None) -> None:
        x = self.draw(arm)
        self.session.tell(arm, x, ticket)
        self.entries.append((1, arm, -1 if ticket is None else ticket, x))

    def forget(self, ticket: int, arm: int) -> None:
        self.session.forget(ticket)
        self.entries.append((2, arm, ticket, [0.0, 0.0]))

    def move(self) -> None:
        """Asks in bursts, late and disordered answers, results nobody asked for, asks given up."""
        session, rng = self.session, self.rng
        kind = rng.choice(["ask", "answer", "oldest", "unasked", "forget"], p=[0.25, 0.4, 0.2, 0.1, 0.05])
        open_asks = session.pending
        if not session.done and (kind == "ask" or not open_asks):
            for _ in range(rng.integers(1, 7)):
                if not session.done:
                    self.ask()
        elif kind == "unasked" or not open_asks:
            self.tell(int(rng.integers(8)), None)
        elif kind == "answer":
            ticket, arm = open_asks[rng.integers(len(open_asks))]
            self.tell(arm, ticket)
        elif kind == "oldest":
            self.tell(open_asks[0][1], None)
        else:
            self.forget(*open_asks[rng.integers(len(open_asks))])

    def arrays(self, start: int = 0, end: int | None = None) -> tuple[Any, ...]:
        kinds, arms, tickets, values = zip(*self.entries[start:end], strict=True)
        return np.array(kinds, dtype=np.int8), np.array(arms), np.array(tickets), np.array(values)


def seen(session: Any) -> dict[str, Any]:
    """All that can be seen of a session."""
    found = {
        "saved": session.to_dict(),
        "pending": session.pending,
        "pulls": session.pulls.tolist(),
        "t": session.t,
        "done": session.done,
        "waiting": session.waiting,
        "alarm": session.alarm,
        "evidence": session.evidence,
        "labels": None if session.labels is None else session.labels.tolist(),
        "centers": None if session.centers is None else session.centers.tolist(),
    }
    if session.method == "croc":
        found |= {"events": session.events, "certificate": session.certificate}
    return found


def assert_same(one: Any, other: Any) -> None:
    mine, its = seen(one), seen(other)
    for key, value in mine.items():
        assert its[key] == value, key


def go_on(session: Any, seed: int) -> list[int]:
    """The next asks, some of them answered."""
    rng = np.random.default_rng(seed)
    arms: list[int] = []
    for _ in range(60):
        if session.done:
            break
        try:
            arms += session.ask(2)
        except coterie.SessionDone:
            break
        ticket, arm = session.pending[rng.integers(len(session.pending))]
        session.tell(arm, INST.means[arm] + rng.standard_normal(2), ticket)
    return arms


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", METHODS)
def test_replay_equals_one_by_one(method: str, seed: int) -> None:
    """At once and in pieces, before the stop, at it and after it, and what comes next."""
    noise = [1.0, 0.5, [1.0, 2.0], COVARIANCE][seed % 4]
    recorded = Recorded(new_session(method, [0.2, 1e-6][seed % 2], noise), seed, [1.0, 3.0][seed // 3])
    for _ in range([40, 300, 900][seed % 3]):
        recorded.move()
    at_once = new_session(method, [0.2, 1e-6][seed % 2], noise)
    at_once.replay(*recorded.arrays())
    assert_same(recorded.session, at_once)
    pieces = new_session(method, [0.2, 1e-6][seed % 2], noise)
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(recorded.entries), size=5)).tolist()
    for start, end in zip([0, *cuts], [*cuts, None], strict=True):
        if end is None or end > start:
            pieces.replay(*recorded.arrays(start, end))
    assert_same(recorded.session, pieces)
    expected = go_on(recorded.session, seed)
    assert go_on(at_once, seed) == expected
    assert go_on(pieces, seed) == expected
    assert_same(recorded.session, at_once)
    assert_same(recorded.session, pieces)
    loaded = coterie.Session.from_dict(json.loads(json.dumps(recorded.session.to_dict())))
    assert loaded.evidence == recorded.session.evidence


@pytest.mark.parametrize("method", METHODS)
def test_records_stop_and_go_on_after_it(method: str) -> None:
    """Some records have to reach the stop inside, or the test above says little."""
    recorded = Recorded(new_session(method, 0.2), 3, 3.0)
    for _ in range(900):
        recorded.move()
    assert recorded.session.done
    assert recorded.session.t < sum(kind == 1 for kind, *_ in recorded.entries) - 20
    again = new_session(method, 0.2)
    again.replay(*recorded.arrays())
    assert_same(recorded.session, again)


def test_an_ask_that_finds_the_proof_is_recorded_without_a_ticket() -> None:
    found = 0
    for seed in range(60):
        recorded = Recorded(new_session("croc", 0.3), seed, 2.5)
        while not recorded.session.done:
            recorded.move()
        again = new_session("croc", 0.3)
        again.replay(*recorded.arrays())
        assert_same(recorded.session, again)
        found += recorded.entries[-1][:3] == (0, -1, -1)
    assert found > 0


@pytest.mark.parametrize("method", METHODS)
def test_asks_that_were_not_recorded_are_not_checked(method: str) -> None:
    recorded = Recorded(new_session(method), 5)
    for _ in range(200):
        recorded.move()
        if recorded.session.done:
            break
    kinds, arms, tickets, values = recorded.arrays()
    answered = [row["ticket"] for row in recorded.session.to_dict()["log"]]
    tickets[kinds == 1] = [-1 if ticket is None else ticket for ticket in answered]
    again = new_session(method)
    if method != "croc":  # their engine has to be told which arm is given up
        kept = np.isin(tickets, tickets[kinds == 2]) & (tickets >= 0)
    else:
        kept = np.zeros(kinds.size, dtype=bool)
    hidden = (kinds == 0) & ~kept
    again.replay(kinds, np.where(hidden, -1, arms), np.where(hidden, -1, tickets), values)
    assert_same(recorded.session, again)


@pytest.mark.parametrize("method", METHODS)
def test_a_record_that_does_not_fit_changes_nothing(method: str) -> None:
    recorded = Recorded(new_session(method, 1e-9), 7)
    for _ in range(150):
        recorded.move()
    half = len(recorded.entries) // 2
    session, twin = new_session(method, 1e-9), new_session(method, 1e-9)
    session.replay(*recorded.arrays(0, half))
    twin.replay(*recorded.arrays(0, half))
    kinds, arms, tickets, values = recorded.arrays(half)
    ask = int(np.flatnonzero(kinds == 0)[-1])
    answer = int(np.flatnonzero((kinds == 1) & (tickets >= 0))[-1])
    cases = [
        (np.where(np.arange(kinds.size) == ask, (arms + 1) % 8, arms), tickets, f"entry {ask}: "),
        (arms, np.where(np.arange(kinds.size) == ask, tickets + 1, tickets), f"entry {ask}: this ask opens ticket"),
        (
            arms,
            np.where(np.arange(kinds.size) == answer, 10**6, tickets),
            f"entry {answer}: ticket 1000000 is not open",
        ),
    ]
    for changed, numbers, message in cases:
        with pytest.raises(ValueError, match=message):
            session.replay(kinds, changed, numbers, values)
        assert_same(session, twin)
    session.replay(kinds, arms, tickets, values)
    assert_same(session, recorded.session)


def test_an_ask_after_the_stop_is_refused() -> None:
    recorded = Recorded(new_session("croc", 0.3), 1, 5.0)
    while not recorded.session.done:
        recorded.move()
    recorded.entries.append((0, 3, -1, [0.0, 0.0]))
    session = new_session("croc", 0.3)
    with pytest.raises(ValueError, match=f"entry {len(recorded.entries) - 1}: this ask"):
        session.replay(*recorded.arrays())
    assert_same(session, new_session("croc", 0.3))


def test_bad_records_are_refused_by_entry() -> None:
    session = new_session("croc")
    x = np.zeros((2, 2))
    for kinds, arms, tickets, values, error, message in [
        ([0, 3], [0, 0], [0, 0], x, ValueError, "entry 1: a kind is 0 .*, got 3"),
        ([0, 1], [0, 8], [0, 0], x, ValueError, r"entry 1: unknown arm 8: arms are 0\.\.7"),
        ([0, 1], [0, -1], [0, 0], x, ValueError, "entry 1: unknown arm -1"),
        ([0, 1], [0, 0], [0, 0], np.zeros((2, 3)), ValueError, r"shape \(2, 2\), got shape \(2, 3\)"),
        ([0, 1], [0, 0], [0, 0], [[0, 0], [0, np.nan]], ValueError, "finite"),
        ([0, 1], [0, 0], [0, 0], [[0, 0], [0, 1e60]], ValueError, "standard deviations"),
        ([0, 1], [0], [0, 0], x, ValueError, "as many arms and tickets as kinds, got 2, 1 and 2"),
        ([0.0, 1.0], [0, 0], [0, 0], x, TypeError, "kinds must be a vector of integers"),
        ([0, 2], [0, 0], [0, -1], x, ValueError, "entry 1: ticket -1 is not open"),
        ([0, 1], [0, 1], [0, 0], x, ValueError, "entry 1: ticket 0 is for arm 0, not for arm 1"),
    ]:
        with pytest.raises(error, match=message):
            session.replay(kinds, arms, tickets, values)
    assert_same(session, new_session("croc"))
    session.replay([], [], [], np.zeros((0, 2)))
    assert_same(session, new_session("croc"))


@pytest.mark.parametrize("dim", [1, 2, 8, 33])
def test_whitening_of_rows_keeps_every_bit(dim: int) -> None:
    """Many at once are what they are one at a time."""
    rng = np.random.default_rng(dim)
    root = rng.normal(size=(dim, dim)) + 3 * np.eye(dim)
    for noise in (None, 1.0, 0.3, rng.uniform(0.5, 2.0, size=dim), root @ root.T):
        whiten = coterie.Session(4, 2, dim, noise=noise).noise.whiten
        for n in (1, 2, 7, 400):
            points = rng.normal(size=(n, dim)) * 10.0 ** rng.integers(-6, 7, size=(n, 1))
            single = np.array([whiten(point) for point in points])
            np.testing.assert_array_equal(whiten(points), single)
            np.testing.assert_array_equal(whiten(np.asfortranarray(points)), single)
    exact = np.linalg.solve(np.linalg.cholesky(root @ root.T), points.T).T
    np.testing.assert_allclose(whiten(points), exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())
