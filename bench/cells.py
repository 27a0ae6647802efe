"""A cell of the tables of measurements needed: trials of one method on one instance, as many as fit into its time.

Time is processor time, so that a busy machine gives as many trials as an idle one, and every method in a table has the
same. Pilot trials, one for each core, say how many fit in; these are then run and counted, so that how many there are
does not depend on how they end. Where hardly any fit in, the pilots themselves are counted, and the table says so;
where they, or the trials, take too long, the cell is left out: those that ended would be the short ones. A trial may
also have a limit of measurements: where it ends without a proof there, it is unfinished, and counts as infinitely long.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.instances import DRAWN, named
from bench.part import Row
from coterie.methods import method_named
from coterie.methods.trials import Plan, RunningTrials
from coterie.paper.datasets import distance_ratio
from coterie.problem.checks import FloatArray
from coterie.simulate.bulk import TrialCancelledError, plan_for, run_trial

ROOT_SEED = 1000


@dataclass(frozen=True)
class Ending:
    """One trial at one δ. `done`: its groups were proven; otherwise it came to its limit, or its stacks to theirs."""

    t: int
    correct: bool
    done: bool = True


class Endings(dict[float, list[Ending]]):
    """For each δ. `pilots`: these are the pilot trials, because hardly any others fitted in."""

    pilots = False


One = Callable[[int], Endings]
"""Trial i of a cell, for each δ."""


def trials_of(
    name: str,
    method: str,
    threshold: str,
    deltas: tuple[float, ...],
    running: RunningTrials,
    most: int | None = None,
    root: int = ROOT_SEED,
    noise: Any = 1.0,
    world: Any = None,
) -> One:
    """Another instance in every trial where it is drawn, else another stream of noise. `most`: measurements.

    `noise`: what the method may assume, `world`: what results are like, as in `coterie.simulate`.
    """

    def plan(trial: int) -> Plan:
        instance = named(name, trial)
        ratio = distance_ratio(instance) if "distance_ratio" in method_named(method).needs else None
        return plan_for(instance, method, deltas, threshold, most, ratio, noise, world)

    shared = None if name in DRAWN else plan(0)

    def one(trial: int) -> Endings:
        own = plan(trial) if shared is None else shared
        seed, child = (root + trial, 0) if shared is None else (root, trial)
        stops, found = run_trial(own, seed, child, running).stops[own.reported_at(threshold)], Endings()
        for delta, column in zip(deltas, own.columns(deltas), strict=True):
            stop = int(stops.times[column])  # 0: did not stop
            found[delta] = [Ending(stop or most or 0, bool(stops.correct[column]), stop > 0)]
        return found

    return one


def many(one: One, trials: int, limit: float, running: RunningTrials) -> Endings | None:
    """Trials side by side, within this processor time; None if the first ones take too long."""
    workers = os.cpu_count() or 1

    def batch(indices: range, seconds: float) -> Endings | None:
        over = threading.Event()
        watch = threading.Thread(target=_watch, args=(over, time.process_time() + seconds, running), daemon=True)
        watch.start()
        try:
            return together(one, indices, running)
        except TrialCancelledError:
            return None
        finally:
            over.set()

    start = time.process_time()
    pilots = batch(range(trials, trials + workers), 2 * limit)
    count = fitting(trials, limit, time.process_time() - start, workers)
    if pilots is None or count >= 2:
        return None if pilots is None else batch(range(count), 4 * limit)
    pilots.pilots = True
    return pilots


def _watch(over: threading.Event, end: float, running: RunningTrials) -> None:
    """Cancel when the process has used so much processor time."""
    while not over.wait(0.02):
        if time.process_time() >= end:
            running.cancel()
            return


def together(one: One, indices: range, running: RunningTrials) -> Endings:
    """These trials, one for each core at a time."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            found = list(pool.map(one, indices))
        except BaseException:  # Ctrl-C, say: end the trials before the pool waits for them
            pool.shutdown(wait=False, cancel_futures=True)
            running.cancel()
            raise
    return Endings(
        {delta: [ending for each in found for ending in each[delta]] for delta in (found[0] if found else {})}
    )


def fitting(trials: int, limit: float, taken: float, together: int) -> int:
    """How many trials fit into the rest of the time, if so many together took this long."""
    return min(trials, max(0, int((limit - taken) / max(taken, 1e-9) * together)))


def cell(label: str, ended: Endings | None, delta: float) -> Row:
    """Mean, its standard error, median, 95 % quantile, largest, trials, unfinished, and wrong partitions.

    A figure that an unfinished trial would decide is None. `each`: the trials themselves, for who compares them.
    """
    row: Row = dict.fromkeys(("mean", "median", "quantile95", "largest", "standard_error", "unfinished", "wrong"))
    row |= {"method": label, "trials": 0, "pilots": False}
    endings = None if ended is None else ended.get(delta)
    if ended is not None and endings:
        t = np.array([ending.t if ending.done else np.inf for ending in endings])
        row |= summed_up(t) | {"each": t.tolist(), "pilots": ended.pilots, "trials": len(t)}
        row["mean"] = _finite(t.mean())
        if row["mean"] is not None and len(t) > 1:
            row["standard_error"] = float(t.std(ddof=1) / np.sqrt(len(t)))
        row["unfinished"] = sum(not ending.done for ending in endings)
        row["wrong"] = sum(ending.done and not ending.correct for ending in endings)
    return row


def summed_up(values: Sequence[float] | FloatArray) -> Row:
    """Median, 95 % and 99 % quantile, largest; infinite values count, and None is where one of them decides."""
    v = np.asarray(values, dtype=float)
    # "higher": a value that occurred. Interpolation between infinite values would be no number.
    high = {f"quantile{share}": np.quantile(v, share / 100, method="higher") for share in (95, 99)}
    return {name: _finite(value) for name, value in {"median": np.median(v), **high, "largest": v.max()}.items()}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
