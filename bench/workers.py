"""Trials side by side on one machine: threads, which share everything, against processes, which share nothing."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bench.instances import named
from bench.part import Column, Headline, Part, Progress, Row, times
from coterie.methods.trials import Plan, RunningTrials
from coterie.simulate.bulk import Outcome, plan_for, run_trial, run_trials

REPEATS = 7
CELLS = (
    ("easy", "boc", 4096),
    ("moderate", "boc", 1024),
    ("Iris", "boc", 512),
    ("Iris", "croc", 256),
    ("Yeast", "boc", 64),
    ("MNIST d=50", "boc", 16),
)
"""Instance, method, trials: from many short trials, most of whose time is Python's, to few long ones."""

_held: Plan


def hold(plan: Plan) -> None:
    """Once in every process: the plan."""
    global _held
    _held = plan


def stops_of(trial: int) -> int:
    """One trial in a process."""
    return _first_stop(run_trial(_held, 0, trial, RunningTrials()))


def _first_stop(outcome: Outcome) -> int:
    """Measurements at the first stop; there is one threshold."""
    (stops,) = outcome.stops.values()
    return int(stops.times[0])


def clock(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row a cell: seconds on one thread, on threads, on warm processes, and to start the processes."""
    found: list[Row] = []
    workers = os.cpu_count() or 1
    for name, method, trials in ((*CELLS[0][:2], 64),) if quick else CELLS:
        what, plan = f"{name}, {method.upper()}", plan_for(named(name), method, (0.1, 1e-10), "heuristic")

        def threads(count: int, plan: Plan = plan, trials: int = trials) -> list[int]:
            stops = [0] * trials
            run_trials(
                plan, 0, range(trials), workers=count,
                finished=lambda outcome: stops.__setitem__(outcome.trial, _first_stop(outcome)),
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
            best: dict[str, float] = {"alone": 1e9, "threads": 1e9, "processes": 1e9}
            for _ in range(1 if quick else REPEATS):  # in turn, so that whatever else the machine does hits all three
                best["alone"] = min(best["alone"], clock(lambda: threads(1)))
                best["threads"] = min(best["threads"], clock(lambda: threads(workers)))
                best["processes"] = min(best["processes"], clock(processes))
        row = {"what": what, "trials": trials, "workers": workers, **best, "starting": starting}
        row["ratio"] = best["processes"] / best["threads"]
        row["ratio_with_start"] = (best["processes"] + starting) / best["threads"]
        row["speedup"] = best["alone"] / best["threads"]
        found.append(row)
        progress.done(
            f"{what}: threads {best['threads']:.3f} s, processes {best['processes']:.3f} s "
            f"and {starting:.2f} s to start, one thread {best['alone']:.3f} s"
        )
    return found


PART = Part(
    "The same trials in threads and in processes; best of a few, in turn.",
    (
        Column("trials", lambda row: f"{row['trials']} × {row['what']}", left=True),
        Column("one thread, s", "alone", "{:.3f}".format),
        Column("threads, s", "threads", "{:.3f}".format),
        Column("gain", "speedup", times),
        Column("processes, s", "processes", "{:.3f}".format),
        Column("processes / threads", "ratio", times),
        Column("with their start", "ratio_with_start", times),
    ),
    rows,
    lambda found: [
        Headline(f"{row['trials']} × {row['what']}: processes with their start over threads",
                 times(row["ratio_with_start"]))
        for row in found
    ],
    seconds=60,
)  # fmt: skip
