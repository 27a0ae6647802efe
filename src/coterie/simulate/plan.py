"""What the trials of a simulation share, and one trial of it.

One trajectory serves every δ and both thresholds, because the paper's sampling rules do not look at δ. Trial i draws
its noise from the i-th child of the seed, so that any trial can be run alone, anywhere, with the same numbers.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.engine.croc.run import CrocRun
from coterie.engine.croc.run import load as load_croc
from coterie.engine.run import Run
from coterie.engine.run import load as load_paper
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_count,
    check_delta,
    check_distance_ratio,
    check_far,
    check_threshold_kind,
    short,
)
from coterie.problem.instance import Instance
from coterie.problem.partition import same_partition
from coterie.rules.methods import method_named
from coterie.rules.stopping import levels_for
from coterie.theory.hardness import allocation

NO_END = 2**62
"""Measurements, when there is no limit."""

CROC_CHUNK = 500
"""Pulls of CROC between two looks at whether the user wants to stop."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What every trial of a simulation shares: arrays, numbers and names, so that it can be sent to another process.

    `levels` is (2, L): a row for each threshold in the order of `coterie.rules.stopping.KINDS`, NaN if it is not asked
    for; a column for each distinct δ in the order of `log_inverse_deltas`, which increases: the largest δ comes first.
    """

    instance: Instance
    method: str
    kinds: tuple[str, ...]
    levels: FloatArray
    log_inverse_deltas: tuple[float, ...]
    max_pulls: int | None
    distance_ratio: float | None
    shares: FloatArray | None  # λ* of an arm of each cluster, for the oracle

    def columns(self, deltas: Iterable[float]) -> list[int]:
        """The columns of these δ."""
        return [self.log_inverse_deltas.index(-math.log(delta)) for delta in deltas]

    def load(self) -> None:
        """Load the compiled steps that the trials need, so that none of them has to; says so if this takes long."""
        certifies = method_named(self.method).certifies
        with _loading:
            if certifies in _loaded:
                return
            (load_croc if certifies else load_paper)()
            # Types are what is compiled for, and they are the same for every size: one pull of a tiny run.
            small = plan_for(Instance([0, 0, 1], [[0.0], [9.0]]), "croc" if certifies else "uniform", 0.5, "proven", 1)
            (_certified if certifies else _of_the_paper)(small, np.random.SeedSequence(0), Running())
            _loaded.add(certifies)


_loading = threading.Lock()
_loaded: set[bool] = set()
"""Whether CROC's steps are loaded, and whether the paper's are."""


def plan_for(
    instance: Instance,
    method: str,
    deltas: Sequence[float] | FloatArray | float,
    kinds: Sequence[str] | str,
    max_pulls: int | None = None,
    distance_ratio: float | None = None,
) -> Plan:
    """The plan of these trials, validated. `deltas` in any order and `kinds` may repeat: each is simulated once."""
    if not isinstance(instance, Instance):
        raise TypeError(f"simulate needs a coterie.Instance, got {short(instance)}")
    chosen = method_named(method)
    wanted = tuple(check_threshold_kind(kind) for kind in (kinds if isinstance(kinds, list | tuple) else [kinds]))
    given = check_deltas(deltas)
    if not given or not wanted:
        raise ValueError("simulate needs at least one delta and one threshold")
    check_far(instance.centers, instance.centers)
    logs = tuple(sorted({-math.log(delta) for delta in given}))
    levels = levels_for(wanted, logs, instance.n_arms, instance.dim)
    levels.setflags(write=False)
    return Plan(
        instance,
        chosen.name,
        wanted,
        levels,
        logs,
        None if max_pulls is None else check_count(max_pulls, "max_pulls", 1),
        check_distance_ratio(distance_ratio) if chosen.needs_ratio else None,
        _shares(instance) if chosen.needs_instance else None,
    )


def check_deltas(deltas: Any) -> list[float]:
    """One or several error probabilities, each in (0, 1), in the order given."""
    return [check_delta(delta) for delta in np.atleast_1d(np.asarray(deltas, dtype=object))]


def _shares(instance: Instance) -> FloatArray:
    firsts = [int(np.argmax(instance.labels == k)) for k in range(instance.n_clusters)]
    return allocation(instance)[firsts]


@dataclass(frozen=True, eq=False)
class Outcome:
    """How one trial ended. Rows and columns of the arrays are those of `Plan.levels`."""

    trial: int
    stops: IntArray  # (2, L): the measurements taken when it stopped; 0 where it did not, or was not asked
    correct: IntArray  # (2, L): 1 where the partition was right then, otherwise 0
    seconds: float  # the time this trial took where it ran


def child_seed(seed: int, trial: int) -> np.random.SeedSequence:
    """What `SeedSequence(seed).spawn(n)[trial]` is, without the others."""
    return np.random.SeedSequence(seed, spawn_key=(trial,))


class TrialCancelledError(Exception):
    """A trial was ended before its time: it has no outcome."""


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


def run_trial(plan: Plan, seed: int, trial: int, running: Running) -> Outcome:
    """One trial, whichever the method. Raises `TrialCancelledError` if it was ended from outside."""
    certifies = method_named(plan.method).certifies
    start = time.perf_counter()
    stops, correct = (_certified if certifies else _of_the_paper)(plan, child_seed(seed, trial), running)
    if running.cancelled:
        raise TrialCancelledError(f"trial {trial} was cancelled")
    return Outcome(trial, stops, correct, time.perf_counter() - start)


def _of_the_paper(plan: Plan, seed: np.random.SeedSequence, running: Running) -> tuple[IntArray, IntArray]:
    """Stopping times and correctness, each (2, L), 0 where not stopped."""
    inst = plan.instance
    run = Run(
        inst.n_arms,
        inst.n_clusters,
        inst.dim,
        method_named(plan.method).sampling,
        np.array(plan.levels),  # fresh: numba compiles anew for an array that is read-only or came by wire unaligned
        distance_ratio=plan.distance_ratio,
        oracle=None if plan.shares is None else (inst.labels, plan.shares),
    )
    running.play(run, plan, np.random.default_rng(seed))
    return run.stops, run.correct


def _certified(plan: Plan, seed: np.random.SeedSequence, running: Running) -> tuple[IntArray, IntArray]:
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
