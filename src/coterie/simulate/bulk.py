"""Trials in bulk: the plan of a simulation from what a caller gave, one trial of it, and many at once.

Trial i draws its noise from the i-th child of the seed, so that any trial can be run alone, anywhere, with the same
numbers. What a plan is, and how a method plays a trial, is in `coterie.methods.trials`.

Many are run in threads of this machine, or on a Dask cluster (`coterie.simulate.remote`). In threads: the engine lets
go of the interpreter lock, nothing has to be sent between processes, and nothing is left over after Ctrl-C
(docs/PERFORMANCE.md compares with processes).
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from coterie.methods.contract import Method
from coterie.methods.table import (
    check_noise,
    check_question,
    check_weighs_costs,
    is_packaged,
    method_named,
    prepared,
)
from coterie.methods.trials import Plan, RunningTrials, Stops, play_trial
from coterie.problem.checks import (
    FloatArray,
    check_count,
    check_delta,
    check_distance_ratio,
    check_far,
    check_real,
    check_threshold_kind,
    short,
)
from coterie.problem.costs import check_costs
from coterie.problem.families import noise_of
from coterie.problem.features import Features
from coterie.problem.instance import Instance
from coterie.problem.question import GROUPS, ExactGroups, Resolution, SingleLinkage
from coterie.problem.settings import SettingError, checked, question_of
from coterie.simulate.features import play_trial_by_feature
from coterie.simulate.worlds import check_world, world_of

AHEAD = 1
"""Batches that wait for each thread, so that none is idle while the calling thread handles outcomes."""

BATCH_SECONDS = 0.02
"""Trials of a fraction of a millisecond are handed over together: the calling thread is not woken up for each."""


class PlanOptions(TypedDict, total=False):
    """What may be asked for beside groups of equal items that are measured at once, and what it costs."""

    resolution: Any
    groups: str
    n_clusters: int | None
    costs: Any
    blocks: str | None
    room: int | None
    offsets: Any
    features: Any


def plan_for(
    instance: Instance,
    method: str | Method,
    deltas: Sequence[float] | FloatArray | float,
    thresholds: Sequence[str] | str,
    max_pulls: int | None = None,
    distance_ratio: float | None = None,
    noise: Any = 1.0,
    world: Any = None,
    **options: Unpack[PlanOptions],
) -> Plan:
    """The plan of these trials, validated. `deltas` in any order and `thresholds` may repeat: each is simulated once.

    `method` is the name of one, or an entry that need not be in the table. The others as in `simulate`.
    """
    n_clusters, resolution = options.get("n_clusters"), options.get("resolution")
    groups, costs = options.get("groups", GROUPS[0]), options.get("costs")
    blocks, features = options.get("blocks"), options.get("features")
    if not isinstance(instance, Instance):
        raise TypeError(f"simulate needs a coterie.Instance, got {short(instance)}")
    chosen = method if isinstance(method, Method) else method_named(method)
    given_thresholds = thresholds if isinstance(thresholds, list | tuple) else [thresholds]
    wanted = tuple(check_threshold_kind(threshold) for threshold in given_thresholds)
    given = check_deltas(deltas)
    if not given or not wanted:
        raise ValueError("simulate needs at least one delta and one threshold")
    check_far(instance.centers, instance.centers)
    assumed = noise_of(noise, instance.dim)
    check_noise(chosen, assumed)
    place = world_of(world)
    check_world(place, instance)
    if n_clusters is None and resolution is None:
        n_clusters = instance.n_clusters
    question = question_of(instance.n_arms, n_clusters, instance.dim, resolution, groups)
    if isinstance(question, ExactGroups) and n_clusters != instance.n_clusters:
        raise SettingError(
            f"the instance has {instance.n_clusters} groups, got n_clusters={n_clusters}: another number is for "
            'groups="linkage"',
            "n_clusters",
        )
    check_question(chosen, question, assumed)
    priced = None if costs is None else tuple(checked("costs", check_costs, costs, instance.n_arms).tolist())
    check_weighs_costs(chosen, priced)
    places, shifts = _checked_room(blocks, options.get("room"), options.get("offsets", 0.0), instance.n_arms)
    distinct = {-math.log(delta): delta for delta in given}
    plan = Plan(
        instance,
        chosen.name,
        wanted,
        tuple(distinct[level] for level in sorted(distinct)),
        None if max_pulls is None else check_count(max_pulls, "max_pulls", 1),
        check_distance_ratio(distance_ratio) if "distance_ratio" in chosen.needs else None,
        assumed,
        place,
        None if is_packaged(chosen) else chosen,
        question if isinstance(question, Resolution) else None,
        groups,
        question.n_clusters if isinstance(question, SingleLinkage) else None,
        priced,
        blocks,
        places,
        shifts,
        None if features is None else _checked_features(features, instance),
    )
    if blocks is not None or features is not None:
        prepared(plan.settings(wanted[0], given[0]))  # says what they do not go with
    return plan


def _checked_room(blocks: Any, room: Any, offsets: Any, n_arms: int) -> tuple[int, Any]:
    """How many results a block has room for, and what it adds; `SettingError` says what is missing."""
    if blocks is None:
        if room is not None or callable(offsets) or offsets != 0.0:
            raise SettingError('room and offsets are for blocks: give blocks="offset" or blocks="drawn"', "blocks")
        return 0, 0.0
    if room is None and blocks != "drawn":
        raise SettingError("room must say how many measurements a block has room for, got None", "room")
    places = n_arms if room is None else checked("room", check_count, room, "room", 2)
    return places, offsets if callable(offsets) else checked("offsets", check_real, offsets, "offsets")


def _checked_features(features: Any, instance: Instance) -> Features:
    given = checked("features", Features.of, features)
    if given.dim != instance.dim:
        raise SettingError(f"the instance has {instance.dim} features, got {given.dim}", "features")
    return given


def check_deltas(deltas: Any) -> list[float]:
    """One or several error probabilities, each in (0, 1), in the order given."""
    return [check_delta(delta) for delta in np.atleast_1d(np.asarray(deltas, dtype=object))]


@dataclass(frozen=True, eq=False)
class Outcome:
    """How one trial ended, at each of `Plan.trial_thresholds`."""

    trial: int
    stops: dict[str, Stops]
    seconds: float  # the time this trial took where it ran


def child_seed(seed: int, trial: int) -> np.random.SeedSequence:
    """What `SeedSequence(seed).spawn(n)[trial]` is, without the others."""
    return np.random.SeedSequence(seed, spawn_key=(trial,))


class TrialCancelledError(Exception):
    """A trial was ended before its time: it has no outcome."""


def run_trial(plan: Plan, seed: int, trial: int, running: RunningTrials) -> Outcome:
    """One trial, whichever the method. Raises `TrialCancelledError` if it was ended from outside."""
    start = time.perf_counter()
    play = play_trial if plan.features is None else play_trial_by_feature
    stops = play(plan, child_seed(seed, trial), running)
    if running.cancelled:
        raise TrialCancelledError(f"trial {trial} was cancelled")
    return Outcome(trial, stops, time.perf_counter() - start)


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
    running = RunningTrials()
    ended: SimpleQueue[Future[Batch]] = SimpleQueue()
    left = TrialNumbers(trials)
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


class TrialNumbers:
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


def run_batch(plan: Plan, seed: int, left: TrialNumbers, running: RunningTrials) -> Batch:
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
