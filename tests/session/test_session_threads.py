"""Eight threads on one session: every call is atomic, nothing is lost, and the proof verifies."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.session import SessionDone

THREADS = 8
LONGEST = 300.0
"""Seconds after which threads are taken to hang: a run takes a fraction of one."""

CASES: dict[str, dict[str, Any]] = {
    "any": {"n_clusters": 2},
    "known": {"n_clusters": 2, "noise": 1.0},
    "gaussian": {"n_clusters": 2, "noise": "gaussian"},
    "gaussian, scalar": {"n_clusters": 2, "noise": coterie.Gaussian("scalar")},
    "symmetric": {"n_clusters": 2, "noise": coterie.Symmetric()},
    "at most": {"n_clusters": 2, "noise": coterie.AtMost(1.0)},
    "bounded": {"n_clusters": 2, "noise": coterie.Bounded(0.0, 10.0)},
    "counts": {"n_clusters": 2, "noise": coterie.Counts(40)},
    "resolution": {"resolution": (1.0, 6.0), "noise": 1.0},
    "boc": {"n_clusters": 2, "noise": 1.0, "method": "boc"},
}
RUNS = 10
"""Of each case: a hundred in all."""


@pytest.fixture(autouse=True)
def hasty_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], None]) -> None:
    """Eight threads do this at once; whatever one of them raises is raised here."""
    raised: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST)
        assert not thread.is_alive(), "it hangs"
    if raised:
        raise raised[0]


def value_of(case: str, arm: int, seed: list[int]) -> float:
    rng = np.random.default_rng(seed)
    if case == "counts":
        return float(rng.binomial(40, 0.05 if arm % 2 == 0 else 0.95))
    if case == "bounded":
        return float(np.clip(0.5 + 9.0 * (arm % 2) + 0.3 * rng.standard_normal(), 0.0, 10.0))
    return float(9.0 * (arm % 2) + rng.standard_normal())


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_eight_threads_measure_for_one_session(case: str) -> None:
    """delta is 1e-9: a wrong group in any of the hundred runs is as good as impossible."""
    for run in range(RUNS):
        session = coterie.Session(6, dim=1, delta=1e-9, **CASES[case])
        told = [0] * THREADS

        def work(number: int, run: int = run, session: coterie.Session = session, told: list[int] = told) -> None:
            rng = np.random.default_rng([run, number])
            while not session.done:
                for ticket in session.open(1):
                    if rng.random() < 0.05:
                        session.forget(ticket.number)
                        continue
                    session.tell(ticket.arm, value_of(case, ticket.arm, [run, ticket.number]), ticket.number)
                    told[number] += 1
                if rng.random() < 0.1:
                    read_everything(session)

        together(work)
        assert session.n_measurements == sum(told)
        assert session.labels is not None
        assert session.labels.tolist() == [0, 1, 0, 1, 0, 1]
        if session.certifies:
            verdict = coterie.verify(session.certificate, session.events)
            assert verdict.valid, verdict.problems
            again = coterie.Session.from_dict(session.to_dict())
            assert again.events == session.events


def read_everything(session: coterie.Session) -> None:
    """What is read at one moment fits together."""
    assert session.waiting <= len(session.log)
    assert session.pulls.shape == (6,)
    labels, centers = session.labels, session.centers
    assert labels is None or (labels.max() < 6 and centers is not None)
    assert repr(session).startswith("<Session 6 arms")
    assert session.progress is not None
    assert session.evidence is not None
    if session.certifies:
        assert len([event for event in session.events if event["event"] == "result"]) <= len(session.log)
        assert session.partial() is not None
        assert session.alarms is not None


def test_asks_by_arm_and_corrections_and_revisions_from_threads() -> None:
    """`ask` and `tell` without tickets, while others correct, revise, save and look."""
    session = coterie.Session(4, 2, 1, 1e-9, names=list("abcd"))
    joined = threading.Barrier(THREADS)

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        for turn in range(12):
            try:
                arm = session.ask()
                session.tell(arm, 9.0 * (arm % 2) + rng.standard_normal())
            except SessionDone:
                break
            if number == 0 and turn == 4:
                session.revise(add=["e"])
            if number < 3 and session.n_measurements > 4:
                session.correct(number, session.log[number][1] + 1e-3, "misread")
            coterie.Session.from_dict(session.to_dict())
        joined.wait(LONGEST)

    together(work)
    while not session.done:
        arm = session.ask()
        session.tell(arm, 9.0 * (arm % 2) + np.random.default_rng([session.t]).standard_normal())
    assert session.names == tuple("abcde")
    assert coterie.same_partition(session.labels, [0, 1, 0, 1, 0])
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict.valid, verdict.problems


def test_what_a_session_hands_out_is_not_its_own() -> None:
    """Writing into an array that was read changes nothing of the session."""
    for method in ("croc", "boc", "uniform"):
        session = coterie.Session(4, 2, 1, method=method, noise=1.0)
        rng = np.random.default_rng(0)
        for _ in range(8):
            arm = session.ask()
            session.tell(arm, 5.0 * (arm % 2) + rng.standard_normal())
        before = repr(session.to_dict()), session.pulls.tolist(), repr(session.centers), repr(session.labels)
        for array in (session.pulls, session.labels, session.centers, session.counted, *(x for _, x in session.log)):
            assert array is not None
            array[...] = 7
        session.pending.clear()
        session.decisions.clear()
        assert session.groups_now is None or not session.groups_now.flags.writeable
        assert (repr(session.to_dict()), session.pulls.tolist(), repr(session.centers), repr(session.labels)) == before


def test_every_public_method_and_property_holds_the_lock() -> None:
    """Also those of the classes that `Session` is made of: somebody who holds the lock keeps all others out."""
    session = coterie.Session(4, 2, 1)
    held = ("ask", "tell", "forget", "correct", "revise", "to_dict", "partial", "within", "replay", "choose_resolution")
    assert all(hasattr(getattr(coterie.Session, name), "__wrapped__") for name in held)
    for kind in coterie.Session.__mro__:
        for name, member in vars(kind).items():
            if isinstance(member, property) and not name.startswith("_") and kind.__module__.startswith("coterie"):
                assert hasattr(member.fget, "__wrapped__"), name
    seen = threading.Event()
    with session._lock:

        def read() -> None:
            assert session.t == 0
            seen.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        assert not seen.wait(0.05)
    assert seen.wait(LONGEST)
