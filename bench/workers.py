"""Trials side by side on one machine: threads, which share everything, against processes, which share nothing."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import coterie
from coterie.simulate.bulk import run_trials
from coterie.simulate.plan import Plan, Running, plan_for, run_trial

REPEATS = 7
CELLS: dict[str, tuple[str, str, int]] = {
    "easy, BOC": ("easy", "boc", 4096),
    "moderate, BOC": ("moderate", "boc", 1024),
    "Iris, BOC": ("iris", "boc", 512),
    "Iris, CROC": ("iris", "croc", 256),
    "Yeast, BOC": ("yeast", "boc", 64),
    "MNIST d=50, BOC": ("mnist", "boc", 16),
}
"""Instance, method, trials: from many short trials, most of whose time is Python's, to few long ones."""

_held: Plan


def hold(plan: Plan) -> None:
    """Once in every process: the plan, and the compiled code."""
    global _held
    _held = plan
    plan.load()


def stops_of(trial: int) -> int:
    """One trial in a process."""
    return int(run_trial(_held, 0, trial, Running()).stops[1, 0])


def plan_named(name: str, method: str) -> Plan:
    data = coterie.datasets
    if name in ("iris", "yeast", "mnist"):
        known = (data.mnist(50) if name == "mnist" else getattr(data, name)()).with_hardness(2.0)
    else:
        known = data.synthetic(name)
    return plan_for(known, method, (0.1, 1e-10), "heuristic")


def clock(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rows() -> list[dict[str, Any]]:
    """One row a cell: seconds on one thread, on threads, on warm processes, and to start the processes."""
    found: list[dict[str, Any]] = []
    workers = os.cpu_count() or 1
    for what, (name, method, trials) in CELLS.items():
        plan = plan_named(name, method)

        def threads(count: int, plan: Plan = plan, trials: int = trials) -> list[int]:
            stops = [0] * trials
            run_trials(
                plan, 0, range(trials), workers=count,
                finished=lambda outcome: stops.__setitem__(outcome.trial, int(outcome.stops[1, 0])),
            )  # fmt: skip
            return stops

        threads(1)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=spawn, initializer=hold, initargs=(plan,)) as pool:
            share = max(1, trials // (8 * workers))

            def processes(pool: Any = pool, share: int = share, trials: int = trials) -> list[int]:
                return list(pool.map(stops_of, range(trials), chunksize=share))

            starting = clock(lambda: list(pool.map(stops_of, range(4 * workers))))
            assert processes() == threads(workers)
            times: dict[str, float] = {"alone": 1e9, "threads": 1e9, "processes": 1e9}
            for _ in range(REPEATS):  # in turn, so that whatever else the machine does hits all three
                times["alone"] = min(times["alone"], clock(lambda: threads(1)))
                times["threads"] = min(times["threads"], clock(lambda: threads(workers)))
                times["processes"] = min(times["processes"], clock(processes))
        row = {"what": what, "trials": trials, "workers": workers, **times, "starting": starting}
        row["ratio"] = times["processes"] / times["threads"]
        row["ratio_with_start"] = (times["processes"] + starting) / times["threads"]
        row["speedup"] = times["alone"] / times["threads"]
        found.append(row)
        print(
            f"  {what}: threads {times['threads']:.3f} s, processes {times['processes']:.3f} s "
            f"and {starting:.2f} s to start, one thread {times['alone']:.3f} s",
            flush=True,
        )
    return found
