"""Trials in bulk, wherever they run: threads of this machine, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from coterie.problem.checks import check_count
from coterie.simulate.local import run_in_threads
from coterie.simulate.plan import Outcome, Plan


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
