"""A run belongs to one thread at a time; bulk work lets other threads go on, and is ended from any of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from coterie.methods.paper import BOC, UNASKED
from coterie.methods.paper.run import Run

NEVER = np.array([[np.nan], [1e300]])
CENTERS = np.array([[0.0], [4.0]])
LABELS = np.arange(6) % 2
NONE = np.zeros(0, dtype=np.int64)
IN_USE = "in use by another thread"


@contextmanager
def playing(run: Run) -> Iterator[threading.Thread]:
    """While another thread plays a run that does not end by itself."""
    noted = np.full(1000, -1)
    thread = threading.Thread(target=run.play, args=(2**62, CENTERS, LABELS, np.random.default_rng(0), noted))
    thread.start()
    try:
        while noted[-1] < 0:  # until it is at work
            time.sleep(0.001)
        yield thread
    finally:
        run.cancel()
        thread.join(timeout=60)
    assert not thread.is_alive()


CALLS: dict[str, Callable[[Run], Any]] = {
    "play": lambda run: run.play(1, CENTERS, LABELS, np.random.default_rng(1), NONE),
    "follow": lambda run: run.follow(np.array([0]), np.zeros((1, 1)), np.array([UNASKED])),
    "commit": lambda run: run.commit(0, +1),
    "memory": lambda run: run.memory(),
    "t": lambda run: run.t,
    "labels": lambda run: run.labels,
    "centers": lambda run: run.centers,
    "statistic": lambda run: run.statistic,
}


def test_a_second_thread_is_told_that_the_run_is_in_use() -> None:
    run = Run(6, 2, 1, BOC, NEVER)
    with playing(run) as thread:
        for call in CALLS.values():
            with pytest.raises(RuntimeError, match=IN_USE):
                call(run)
        assert thread.is_alive()
    for call in CALLS.values():  # the first one has ended: nothing is in the way
        call(run)


def test_a_cancelled_run_has_ended_for_good() -> None:
    run = Run(6, 2, 1, BOC, NEVER)
    with playing(run):
        pass
    t = run.t
    assert t >= 1000
    run.play(10, CENTERS, LABELS, np.random.default_rng(1), NONE)
    assert run.t == t
    assert not run.done


def test_runs_side_by_side_are_what_they_are_alone() -> None:
    alone, beside = ([Run(6, 2, 1, BOC, NEVER) for _ in range(4)] for _ in range(2))
    for seed, run in enumerate(alone):
        run.play(20_000, CENTERS, LABELS, np.random.default_rng(seed), NONE)
    threads = [
        threading.Thread(target=run.play, args=(20_000, CENTERS, LABELS, np.random.default_rng(seed), NONE))
        for seed, run in enumerate(beside)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, beside, strict=True):
        assert one.t == other.t == 20_000
        assert one.statistic == other.statistic


def test_many_threads_at_one_run_are_served_or_refused() -> None:
    """No crash, and no result is lost or counted twice: each call was either whole or refused."""
    run, counted = Run(6, 2, 1, BOC, NEVER), [0] * 4
    refused: list[list[str]] = [[] for _ in range(4)]
    gate = threading.Barrier(4)

    def work(mine: int) -> None:
        rng = np.random.default_rng(mine)
        gate.wait()
        for _ in range(300):
            arms = rng.integers(0, 6, size=20)
            try:
                run.follow(arms, CENTERS[LABELS[arms]] + rng.standard_normal((20, 1)), np.full(20, UNASKED))
                counted[mine] += 20
            except RuntimeError as error:
                refused[mine].append(str(error))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run.t == run.pulls.sum() == sum(counted) > 0
    assert all(20 * len(no) + yes == 6000 for no, yes in zip(refused, counted, strict=True))
    assert all(IN_USE in sentence for each in refused for sentence in each)
