"""`cluster` with several workers, and `acluster`: nothing measured is lost, and results are told for their asks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import coterie

TRUTH = [0, 1, 1, 2, 0, 2, 2]
CENTERS = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 9.0]])
SETTINGS: dict[str, Any] = {"delta": 1e-9, "progress": False}
LONGEST = 300.0


class World:
    """The k-th measurement of an item is always the same. `most`: how many were under way at once."""

    def __init__(self, bad: dict[tuple[int, int], Any] | None = None) -> None:
        self.bad = dict(bad or {})  # what comes of the k-th try of an item: once
        self.lock, self.counts = threading.Lock(), [0] * len(TRUTH)
        self.now = self.most = 0
        self.calls: list[int] = []

    def begin(self, arm: int) -> int:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.counts[arm] += 1
            self.calls.append(arm)
            return self.counts[arm]

    def end(self, arm: int, k: int) -> Any:
        with self.lock:
            self.now -= 1
            bad = self.bad.pop((arm, k), None)
        if isinstance(bad, BaseException):
            raise bad
        if bad is not None:
            return bad
        return CENTERS[TRUTH[arm]] + np.random.default_rng([arm, k]).normal(size=2)

    def __call__(self, arm: int) -> Any:
        return self.end(arm, self.begin(arm))


class Slow(World):
    """Waits until as many are measured at once as there are workers: a run with fewer would hang."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.all_here = threading.Barrier(workers)

    def __call__(self, arm: int) -> Any:
        k = self.begin(arm)
        if len(self.calls) > 1:  # the first is alone: it says how many numbers a measurement has
            with contextlib.suppress(threading.BrokenBarrierError):
                self.all_here.wait(LONGEST if len(self.calls) <= 9 else 0.0)
        return self.end(arm, k)


def checked(result: Any, measured: int) -> None:
    assert result.done
    assert result.labels.tolist() == TRUTH
    session = result.session
    assert session.n_measurements == measured
    assert session.pending == []
    verdict = coterie.verify(session.certificate, session.events)
    assert verdict.valid, verdict.problems


def test_eight_are_measured_at_once() -> None:
    world = Slow(8)
    result = coterie.cluster(world, 7, 3, workers=8, **SETTINGS)
    assert world.most == 8
    checked(result, len(world.calls))
    for thread in threading.enumerate():
        if thread.name == "coterie-measure":
            thread.join(LONGEST)
            assert not thread.is_alive()


@pytest.mark.parametrize("noise", [None, 1.0, "gaussian", coterie.AtMost(1.0), coterie.Symmetric()])
def test_any_number_of_workers_finds_the_groups(noise: Any) -> None:
    for workers in (2, 5, 8):
        world = World()
        checked(coterie.cluster(world, 7, 3, workers=workers, noise=noise, **SETTINGS), len(world.calls))


def test_one_worker_is_the_run_of_before() -> None:
    """In the calling thread, one after the other: the conversation is that of asking and telling by hand."""
    world, threads = World(), set()

    def measure(arm: int) -> Any:
        threads.add(threading.get_ident())
        return world(arm)

    result = coterie.cluster(measure, 7, 3, workers=1, **SETTINGS)
    assert threads == {threading.get_ident()}
    session, again = coterie.Session(7, 3, 2, 1e-9), World()
    while not session.done:
        arm = session.ask()
        session.tell(arm, again(arm))
    assert session.to_dict() == result.session.to_dict()

    async def measure_later(arm: int) -> Any:
        return third(arm)

    third = World()
    found = asyncio.run(coterie.acluster(measure_later, 7, 3, **SETTINGS))
    assert found.session.to_dict() == session.to_dict()


def test_results_are_told_as_they_come_each_for_its_ask() -> None:
    """Two workers; the first ask of the two is held back until the second was told."""
    world, told = World(), threading.Event()
    session = coterie.Session(7, 3, 2, 1e-9)
    held: list[int] = []

    def measure(arm: int) -> Any:
        k = world.begin(arm)
        with world.lock:
            first = not held
            held.append(arm)
        if first:
            assert told.wait(LONGEST)
        elif session.n_measurements > 0:
            told.set()
        return world.end(arm, k)

    result = coterie.cluster(measure, 7, 3, workers=2, session=session, **SETTINGS)
    assert result.session is session
    checked(result, len(world.calls))
    assert session.log[0][0] == 1  # item 0 was asked for first, and told later


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("budget", [1, 6, 9])
def test_the_budget_is_kept(workers: int, budget: int) -> None:
    world = World()
    with pytest.warns(UserWarning, match=f"the budget of {budget} measurements ended"):
        result = coterie.cluster(world, 7, 3, budget=budget, workers=workers, **SETTINGS)
    assert len(world.calls) == result.session.n_measurements == budget


BAD: list[Any] = [ConnectionError("stuck"), "n.d.", [], [np.nan, 1.0]]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("first", [False, True])
def test_an_error_keeps_what_was_measured(workers: int, bad: Any, first: bool) -> None:
    """Measurements under way are waited for; the item that failed is asked for again."""
    where = (0, 1) if first else (3, 2)
    world = World({where: bad})
    with pytest.raises(type(bad) if isinstance(bad, BaseException) else (ValueError, TypeError)) as raised:
        coterie.cluster(world, 7, 3, workers=workers, **SETTINGS)
    session = raised.value.session  # type: ignore[attr-defined]
    notes = " ".join(raised.value.__notes__)
    assert f"at item {where[0]}; " in notes
    assert world.now == 0
    if first:
        assert session is None
        assert len(world.calls) == 1
    else:
        assert session.n_measurements == len(world.calls) - 1
        assert session.pending[0][1] == 3
        assert f"{len(world.calls) - 1} measurements are kept" in notes
    result = coterie.cluster(world, 7, 3, workers=workers, session=session, **SETTINGS)
    checked(result, len(world.calls) - 1)


def test_several_that_fail_together_are_counted() -> None:
    session = coterie.Session(7, 3, 2, 1e-9)
    all_here = threading.Barrier(3)

    def fails(arm: int) -> Any:
        all_here.wait(LONGEST)
        raise ConnectionError(f"stuck at {arm}")

    with pytest.raises(ConnectionError, match="stuck") as raised:
        coterie.cluster(fails, 7, 3, workers=3, session=session, **SETTINGS)
    assert "2 more measurements failed meanwhile" in " ".join(raised.value.__notes__)
    assert len(session.pending) == 3
    checked(coterie.cluster(World(), 7, 3, workers=3, session=session, **SETTINGS), session.n_measurements)


def test_an_interrupt_in_measure_is_raised_at_once() -> None:
    """Somebody else is stuck for good: nobody waits for him, and his ask stays open."""
    session, stuck, waits = coterie.Session(7, 3, 2, 1e-9), threading.Event(), threading.Event()

    def measure(arm: int) -> Any:
        if arm == 0:
            waits.set()
            stuck.wait(LONGEST)
        waits.wait(LONGEST)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        coterie.cluster(measure, 7, 3, workers=2, session=session, **SETTINGS)
    stuck.set()
    assert raised.value.session is session  # type: ignore[attr-defined]
    assert [arm for _, arm in session.pending] == [0, 1]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_the_call_though_all_threads_are_stuck() -> None:
    code = """
import os, threading, coterie
def measure(arm):
    if session.n_measurements >= 3:  # whoever sees it stays, so that all are stuck in the end
        os.write(1, b"stuck\\n")  # at once: print would mix the lines of several threads
        threading.Event().wait()
    return 0.0
session = coterie.Session(6, 2, 1)
try:
    coterie.cluster(measure, 6, 2, workers=4, session=session, progress=False)
except KeyboardInterrupt as error:
    print("kept", error.session.n_measurements >= 3, error.__notes__[0], flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "stuck\n"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=LONGEST)
    assert process.returncode == 0
    assert "kept True coterie: " in rest
    assert "go on with the same call of cluster and session=error.session" in rest


# Async functions.


class Later(World):
    """The same, awaited: everybody lets the others go first."""

    async def __call__(self, arm: int) -> Any:
        k = self.begin(arm)
        for _ in range(arm + 1):
            await asyncio.sleep(0)
        return self.end(arm, k)


def test_an_async_function_is_awaited_by_several_at_once() -> None:
    world = Later()
    result = asyncio.run(coterie.acluster(world, 7, 3, workers=8, **SETTINGS))
    assert 5 < world.most <= 8
    checked(result, len(world.calls))


@pytest.mark.parametrize("bad", BAD)
def test_an_error_in_an_async_function_keeps_what_was_measured(bad: Any) -> None:
    world = Later({(3, 2): bad})
    with pytest.raises(type(bad) if isinstance(bad, BaseException) else (ValueError, TypeError)) as raised:
        asyncio.run(coterie.acluster(world, 7, 3, workers=4, **SETTINGS))
    assert "the same call of acluster and session=error.session" in " ".join(raised.value.__notes__)
    session = raised.value.session  # type: ignore[attr-defined]
    assert session.n_measurements == len(world.calls) - 1
    result = asyncio.run(coterie.acluster(world, 7, 3, workers=4, session=session, **SETTINGS))
    checked(result, len(world.calls) - 1)


def test_cancelling_cancels_what_is_under_way_and_keeps_the_rest() -> None:
    session = coterie.Session(7, 3, 2, 1e-9)
    ended: list[str] = []

    async def measure(arm: int) -> Any:
        if session.n_measurements < 5:
            ended.append("measured")
            return CENTERS[TRUTH[arm]]
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def cancelled() -> None:
        task = asyncio.create_task(coterie.acluster(measure, 7, 3, workers=3, session=session, **SETTINGS))
        while session.n_measurements < 5 or len(session.pending) < 3:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert ended == ["measured"] * session.n_measurements + ["cancelled"] * 3
    assert len(session.pending) == 3
    checked(coterie.cluster(World(), 7, 3, session=session, **SETTINGS), session.n_measurements)


def test_a_cancellation_that_measure_raises_itself_does_not_hang() -> None:
    async def measure(arm: int) -> Any:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(coterie.acluster(measure, 7, 3, workers=3, **SETTINGS))


@pytest.mark.parametrize("workers", [1, 3])
def test_each_kind_of_function_has_its_own_call(workers: int) -> None:
    async def later(arm: int) -> float:
        return 0.0

    class Robot:
        async def __call__(self, arm: int) -> float:
            return 0.0

    for measure in (later, Robot(), functools.partial(later)):
        with pytest.raises(TypeError, match=r"measure is an async function: write `await coterie.acluster\(measure"):
            coterie.cluster(measure, 6, 2, workers=workers)
    with pytest.raises(TypeError, match=r"item 0: measure is an async function: write `await coterie\.acluster"):
        coterie.cluster(lambda arm: later(arm), 6, 2, workers=workers, progress=False)
    with pytest.raises(TypeError, match=r"measure is no async function.*coterie.cluster\(measure, …, workers=8\)"):
        asyncio.run(coterie.acluster(lambda arm: 0.0, 6, 2, workers=workers, progress=False))  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="measure must be a function"):
        asyncio.run(coterie.acluster(5, 6, 2))  # type: ignore[arg-type]


def test_bad_workers_are_refused_before_anything_is_measured() -> None:
    world = World()
    for workers, error in ((0, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="workers must be"):
            coterie.cluster(world, 7, 3, workers=workers)  # type: ignore[arg-type]
    assert world.calls == []


def test_booleans_and_items_at_both_doors() -> None:
    rng = np.random.default_rng(0)
    result = coterie.cluster(
        lambda item: rng.random() < (0.02 if item in "ac" else 0.98), list("abcd"), 2, noise=coterie.Counts(1),
        progress=False,
    )  # fmt: skip
    assert result.done
    assert result.groups == [["a", "c"], ["b", "d"]]
    session = coterie.Session(list("abcd"), 2, 1, noise=coterie.Counts(1))
    assert (session.n_arms, session.names) == (4, tuple("abcd"))
    session.tell("b", True)
    session.tell(["a", "c"], np.array([[False], [True]]))
    session.tell(["a", "c"], [True, False])
    assert [x.tolist() for _, x in session.log] == [[1.0], [0.0], [1.0], [1.0], [0.0]]
    assert coterie.Session(np.array([3, 5, 7]), 2, 1).names == ("3", "5", "7")
    with pytest.raises(ValueError, match="n_arms has the items already"):
        coterie.Session(list("abc"), 2, 1, names=list("xyz"))
    with pytest.raises(ValueError, match="names must differ, got 'a'"):
        coterie.Session(list("aba"), 2, 1)
