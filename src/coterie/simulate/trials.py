"""Many independent trials of a method on a known instance.

One trajectory serves every δ and both thresholds, because the paper's sampling rules do not look at δ. Trial
i draws its noise from the i-th child of the seed, so the numbers do not depend on the number of workers.
Workers are threads: the engine lets go of the interpreter lock, nothing has to be sent between processes, and
nothing is left over after Ctrl-C.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from coterie.engine.croc.run import CrocRun
from coterie.engine.croc.run import load as load_croc
from coterie.engine.run import Run, load
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_count,
    check_delta,
    check_distance_ratio,
    check_threshold_kind,
    short,
)
from coterie.problem.instance import Instance
from coterie.problem.partition import same_partition
from coterie.rules.methods import Method, method_named
from coterie.rules.stopping import KINDS, levels_for
from coterie.theory.hardness import allocation

NO_END = 2**62
"""Measurements, when there is no limit."""

CROC_CHUNK = 500
"""Pulls of CROC between two looks at whether the user wants to stop."""


@dataclass(frozen=True)
class Trials:
    """Stopping times of many trials. -1 marks a trial that did not stop within max_pulls."""

    method: str
    threshold: str
    deltas: tuple[float, ...]
    seed: int
    stopping_times: IntArray  # (trials, deltas)
    correct: NDArray[np.bool_]  # (trials, deltas), False where not stopped

    def mean(self) -> FloatArray:
        """Mean stopping time for each δ; NaN if a trial did not stop."""
        return self._over_stopped(np.mean)

    def std(self) -> FloatArray:
        """Standard deviation of the stopping time for each δ (n − 1 below the line); NaN as for `mean`."""
        return self._over_stopped(lambda times: np.std(times, ddof=1) if len(times) > 1 else 0.0)

    def median(self) -> FloatArray:
        """Median stopping time for each δ; NaN as for `mean`."""
        return self._over_stopped(np.median)

    def errors(self) -> IntArray:
        """Trials that stopped with a wrong partition, for each δ."""
        return np.asarray(((self.stopping_times >= 0) & ~self.correct).sum(axis=0), dtype=np.int64)

    def _over_stopped(self, figure: Callable[[FloatArray], Any]) -> FloatArray:
        return np.array(
            [figure(column.astype(float)) if (column >= 0).all() else np.nan for column in self.stopping_times.T]
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each trial and δ."""
        try:
            import pandas
        except ImportError:
            raise ImportError('to_frame needs pandas: pip install "coterie[paper]"') from None
        n_trials, n_deltas = self.stopping_times.shape
        return pandas.DataFrame(
            {
                "trial": np.repeat(np.arange(n_trials), n_deltas),
                "method": self.method,
                "threshold": self.threshold,
                "delta": np.tile(self.deltas, n_trials),
                "stopping_time": self.stopping_times.ravel(),
                "correct": self.correct.ravel(),
            }
        )


@dataclass(frozen=True)
class Plan:
    """What every trial of a simulation shares."""

    instance: Instance
    method: Method
    levels: FloatArray
    log_inverse_deltas: tuple[float, ...]
    max_pulls: int | None
    distance_ratio: float | None
    oracle: tuple[IntArray, FloatArray] | None


class Running:
    """The trials under way, so that they can be ended: a pull may take a microsecond or many milliseconds."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._cancelled = False

    def play(self, run: Run, plan: Plan, rng: np.random.Generator) -> None:
        """Play a trial to its end, unless it is cancelled."""
        self._runs.append(run)
        try:
            if not self._cancelled:
                centers, truth = plan.instance.centers, plan.instance.labels
                run.play(plan.max_pulls or NO_END, centers, truth, rng, np.zeros(0, dtype=np.int64))
        finally:
            self._runs.remove(run)

    @property
    def cancelled(self) -> bool:
        """Whether the user wants to stop."""
        return self._cancelled

    def cancel(self) -> None:
        """End all trials at their next measurement and wait until they have."""
        self._cancelled = True
        while self._runs:
            for run in list(self._runs):
                run.met[:] = run.levels.shape[1]  # the engine goes on only while a level is not met
            time.sleep(0.01)


def run_trial(plan: Plan, seed: np.random.SeedSequence, running: Running) -> tuple[IntArray, IntArray]:
    """One trial: stopping times and correctness, each (2, levels), 0 where not stopped."""
    inst = plan.instance
    run = Run(
        inst.n_arms,
        inst.n_clusters,
        inst.dim,
        plan.method.sampling,
        plan.levels,
        distance_ratio=plan.distance_ratio,
        oracle=plan.oracle,
    )
    running.play(run, plan, np.random.default_rng(seed))
    return run.stops, run.correct


def run_certified(plan: Plan, seed: np.random.SeedSequence, running: Running) -> tuple[IntArray, IntArray]:
    """The same for CROC, whose sampling looks at δ: one run for each, on the same stream of noise."""
    inst = plan.instance
    stops = np.zeros(plan.levels.shape, dtype=np.int64)
    correct = np.zeros(plan.levels.shape, dtype=np.int64)
    for column, log_inverse_delta in enumerate(plan.log_inverse_deltas):
        run = CrocRun(inst.n_arms, inst.n_clusters, inst.dim, log_inverse_delta)
        rng = np.random.default_rng(seed)
        left = plan.max_pulls or NO_END
        while not run.done and left > 0 and not running.cancelled:
            steps = min(left, CROC_CHUNK)
            run.play(steps, inst.centers, inst.labels, rng)
            left -= steps
        if run.done:
            stops[:, column] = run.t
            correct[:, column] = same_partition(run.state.labels, inst.labels)
    return stops, correct


@overload
def simulate(
    instance: Instance,
    method: str = ...,
    *,
    deltas: Sequence[float] = ...,
    threshold: str = ...,
    trials: int = ...,
    seed: int = ...,
    workers: int | None = ...,
    max_pulls: int | None = ...,
    distance_ratio: float | None = ...,
    progress: bool | None = ...,
) -> Trials: ...
@overload
def simulate(
    instance: Instance,
    method: str = ...,
    *,
    deltas: Sequence[float] = ...,
    threshold: list[str] | tuple[str, ...],
    trials: int = ...,
    seed: int = ...,
    workers: int | None = ...,
    max_pulls: int | None = ...,
    distance_ratio: float | None = ...,
    progress: bool | None = ...,
) -> dict[str, Trials]: ...
def simulate(
    instance: Instance,
    method: str = "boc",
    *,
    deltas: Sequence[float] = (0.1,),
    threshold: str | list[str] | tuple[str, ...] = "heuristic",
    trials: int = 256,
    seed: int = 0,
    workers: int | None = None,
    max_pulls: int | None = None,
    distance_ratio: float | None = None,
    progress: bool | None = None,
) -> Trials | dict[str, Trials]:
    """Stopping times of `trials` independent runs of a method on a known instance, for every δ at once.

    `threshold`: "proven", "heuristic", or a list of them, which gives a dictionary of `Trials`;
    it means nothing to CROC. `workers`:
    threads, as many as there are cores by default; the numbers are the same for any. `max_pulls`: give a
    trial up after so many measurements. `progress`: a bar on the terminal; by default if there is one.
    """
    if not isinstance(instance, Instance):
        raise TypeError(f"simulate needs a coterie.Instance, got {short(instance)}")
    chosen = method_named(method)
    several = isinstance(threshold, list | tuple)
    kinds = [check_threshold_kind(kind) for kind in (threshold if several else [threshold])]
    given = [check_delta(delta) for delta in np.atleast_1d(np.asarray(deltas, dtype=object))]
    if not given or not kinds:
        raise ValueError("simulate needs at least one delta and one threshold")
    count = check_count(trials, "trials", 1)
    threads = (os.cpu_count() or 1) if workers is None else check_count(workers, "workers", 1)
    root = np.random.SeedSequence(check_count(seed, "seed", 0))
    unique = sorted({-math.log(delta) for delta in given})
    column = [unique.index(-math.log(delta)) for delta in given]
    plan = Plan(
        instance,
        chosen,
        levels_for(kinds, unique, instance.n_arms, instance.dim),
        tuple(unique),
        None if max_pulls is None else check_count(max_pulls, "max_pulls", 1),
        check_distance_ratio(distance_ratio) if chosen.needs_ratio else None,
        _oracle(instance) if chosen.needs_instance else None,
    )
    outcomes = _run_all(plan, root.spawn(count), min(threads, count), progress, f"{method} on {instance.n_arms} arms")
    stops = np.array([stop for stop, _ in outcomes])
    right = np.array([correct for _, correct in outcomes]) == 1
    found = {
        kind: Trials(
            chosen.name,
            kind,
            tuple(given),
            seed,
            np.where(stops > 0, stops, -1)[:, KINDS.index(kind), column],
            right[:, KINDS.index(kind), column],
        )
        for kind in kinds
    }
    return found if several else found[kinds[0]]


def _oracle(instance: Instance) -> tuple[IntArray, FloatArray]:
    shares = allocation(instance)
    firsts = [int(np.argmax(instance.labels == k)) for k in range(instance.n_clusters)]
    return instance.labels, shares[firsts]


def _run_all(
    plan: Plan, seeds: list[np.random.SeedSequence], threads: int, progress: bool | None, title: str
) -> list[tuple[IntArray, IntArray]]:
    """All trials, in order. Ctrl-C ends the running ones within a moment and leaves nothing behind."""
    trial = run_certified if plan.method.certifies else run_trial
    (load_croc if plan.method.certifies else load)()  # says, before the bar starts, if it has to be compiled
    running = Running()
    outcomes: list[Any] = [None] * len(seeds)
    with _Bar(progress, title, len(seeds)) as bar, ThreadPoolExecutor(threads) as pool:
        try:
            waiting = {pool.submit(trial, plan, child, running): i for i, child in enumerate(seeds)}
            while waiting:
                finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    outcomes[waiting.pop(future)] = future.result()
                    bar.advance()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            running.cancel()
            raise
    return outcomes


class _Bar:
    """A progress bar with the time left, on the terminal if there is one."""

    def __init__(self, wanted: bool | None, title: str, total: int) -> None:
        self._wanted, self._title, self._total = wanted, title, total
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        if self._wanted is not False:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            console = Console(stderr=True)
            if self._wanted or console.is_terminal:
                self._bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeRemainingColumn(),
                    console=console,
                )
                self._task = self._bar.add_task(self._title, total=self._total)
                self._bar.start()
        return self

    def advance(self) -> None:
        if self._bar is not None:
            self._bar.advance(self._task)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
