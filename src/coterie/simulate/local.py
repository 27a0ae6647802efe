"""Trials on this machine, in threads.

The engine lets go of the interpreter lock, nothing has to be sent between processes, every thread uses the same
compiled code, and nothing is left over after Ctrl-C (docs/PERFORMANCE.md compares with processes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import SimpleQueue

from coterie.simulate.plan import Outcome, Plan, Running, run_trial

AHEAD = 4
"""Trials that wait for each thread, so that none is idle while the calling thread handles an outcome."""


def run_in_threads(
    plan: Plan, seed: int, trials: Iterable[int], threads: int, finished: Callable[[Outcome], None]
) -> None:
    """Run these trials; `finished` is called in this thread. Whatever it raises ends the others first."""
    plan.load()
    running = Running()
    ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
    left = iter(trials)
    with ThreadPoolExecutor(threads) as pool:

        def submit(count: int) -> int:
            """Hand over so many more trials; returns how many there were."""
            handed = 0
            for trial in islice(left, count):
                pool.submit(run_trial, plan, seed, trial, running).add_done_callback(ended.put)
                handed += 1
            return handed

        try:
            waiting = submit(threads * (1 + AHEAD))
            while waiting:
                outcome = ended.get().result()
                waiting += submit(1) - 1
                finished(outcome)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            running.cancel()
            raise
