"""Trials in bulk, wherever they run: threads of this machine, or a Dask cluster.

In threads: the engine lets go of the interpreter lock, nothing has to be sent between processes, and nothing is left
over after Ctrl-C (docs/PERFORMANCE.md compares with processes).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, NamedTuple

from coterie.methods.trials import Plan, Running
from coterie.problem.checks import check_count
from coterie.simulate.plan import Outcome, run_trial

AHEAD = 1
"""Batches that wait for each thread, so that none is idle while the calling thread handles outcomes."""

BATCH_SECONDS = 0.02
"""Trials of a fraction of a millisecond are handed over together: the calling thread is not woken up for each."""


def run_trials(
    plan: Plan,
    seed: int,
    trials: Sequence[int],
    *,
    workers: int | None = None,
    scheduler: Any = None,
    finished: Callable[[Outcome], None],
) -> None:
    """Run the trials of these numbers and call `finished`, in the calling thread, as each one ends, in any order.

    A trial's numbers depend on the plan, the seed and its own number alone. `workers`: threads of this machine, as many
    as there are cores by default. `scheduler`: the address of a Dask scheduler, or a `distributed.Client`; then the
    trials run on its workers. Ctrl-C, or an exception in `finished`, ends the others before it is passed on; no
    outcome is reported twice.
    """
    root = check_count(seed, "seed", 0)
    numbers = [check_count(trial, "a trial's number", 0) for trial in trials]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"each trial can be run once, got {_repeated(numbers)} several times")
    threads = (os.cpu_count() or 1) if workers is None else check_count(workers, "workers", 1)
    if workers is not None and scheduler is not None:
        raise ValueError(
            f"workers={workers} are threads of this machine, which a scheduler does not use: give one of the two"
        )
    if not numbers:
        return
    if scheduler is None:
        run_in_threads(plan, root, numbers, min(threads, len(numbers)), finished)
    else:
        from coterie.simulate.remote import run_on_cluster

        run_on_cluster(plan, root, numbers, scheduler, finished)


def _repeated(numbers: list[int]) -> int:
    seen: set[int] = set()
    return next(number for number in numbers if number in seen or seen.add(number))  # type: ignore[func-returns-value]


def run_in_threads(
    plan: Plan, seed: int, trials: Iterable[int], threads: int, finished: Callable[[Outcome], None]
) -> None:
    """Run these trials; `finished` is called in this thread. Whatever it raises ends the others first."""
    running = Running()
    ended: SimpleQueue[Future[Batch]] = SimpleQueue()
    left = Left(trials)
    with ThreadPoolExecutor(threads) as pool:

        def submit() -> None:
            pool.submit(run_batch, plan, seed, left, running).add_done_callback(ended.put)

        try:
            waiting = threads * (1 + AHEAD)
            for _ in range(waiting):
                submit()
            while waiting:
                batch = ended.get().result()
                if batch.outcomes:  # there may be more
                    submit()
                else:
                    waiting -= 1
                for outcome in batch.outcomes:
                    finished(outcome)
                if batch.error is not None:
                    raise batch.error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            running.cancel()
            raise


class Left:
    """The numbers of trials that nobody has taken; any thread may take one."""

    def __init__(self, trials: Iterable[int]) -> None:
        self._trials, self._lock = iter(trials), threading.Lock()

    def take(self) -> int | None:
        """The next number; None if there is none."""
        with self._lock:
            return next(self._trials, None)


class Batch(NamedTuple):
    """What a thread hands over at once: trials that have ended, and the error that ended it, if one did."""

    outcomes: list[Outcome]
    error: BaseException | None = None


def run_batch(plan: Plan, seed: int, left: Left, running: Running) -> Batch:
    """Trials one after the other, for about `BATCH_SECONDS`."""
    outcomes: list[Outcome] = []
    until = time.monotonic() + BATCH_SECONDS
    try:
        while (trial := left.take()) is not None:
            outcomes.append(run_trial(plan, seed, trial, running))
            if running.cancelled or time.monotonic() >= until:
                break
    except BaseException as error:
        return Batch(outcomes, error)
    return Batch(outcomes)
