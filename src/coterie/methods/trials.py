"""Bulk trials of a method on a known instance: what a loop of trials is given, and what it gives back.

A method may bring a loop of its own (`Method.trial`), which is mostly compiled; for any other its runs are asked and
told (`play_by_contract`). Who runs trials beside each other, in threads or elsewhere, is `coterie.simulate`.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from coterie.methods.contract import ASK, RESULT, Method, MethodError, MethodRun
from coterie.methods.croc.run import DECIDED, OTHER_ARM, CrocEntries, CrocRun
from coterie.methods.family import family_for
from coterie.methods.paper.method import KINDS, allocation_of_groups, levels_for
from coterie.methods.paper.run import Run
from coterie.methods.start import start
from coterie.methods.table import is_packaged, method_named
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.costs import cost_of, unit_costs
from coterie.problem.families import Model
from coterie.problem.features import Features
from coterie.problem.instance import Instance
from coterie.problem.noise import Noise
from coterie.problem.partition import same_groups
from coterie.problem.question import GROUPS, Resolution
from coterie.problem.settings import Settings

NO_END = 2**62
"""Measurements, when there is no limit."""

PROVEN = "proven"
"""The threshold under which a method without thresholds reports its stops."""


class World(Protocol):
    """Where simulated results come from (`coterie.simulate.worlds`)."""

    def draw(self, rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
        """Results (n, d) of these arms (n), whose means in the instance are the rows of `means` (n, d)."""
        ...


@dataclass(frozen=True, eq=False)
class Plan:
    """What every trial of a simulation shares: arrays, numbers and names, so that it can be sent to another process.

    `thresholds` are those asked for. `deltas` are distinct, the largest first. `noise` is what the method may assume,
    `world` is where results come from: None is the instance's means plus standard Gaussian noise. `brought` is the
    method's entry if it is none of the package: another process has no such entry in its table. The question is for
    the instance's number of groups, unless `resolution` or `groups` say otherwise; `n_linked`: K of single linkage.
    `costs`: of a measurement of each arm. `blocks`, `room`: those of `coterie.simulate`; `offsets`: what a block does
    to the means of the arms in it, a standard deviation or a function of (rng, arms of its first cell). `features`:
    they are measured one by one (`coterie.simulate.features`).
    """

    instance: Instance
    method: str
    thresholds: tuple[str, ...]
    deltas: tuple[float, ...]
    max_pulls: int | None
    distance_ratio: float | None
    noise: Model
    world: World | None = None
    brought: Method | None = None
    resolution: Resolution | None = None
    groups: str = GROUPS[0]
    n_linked: int | None = None
    costs: tuple[float, ...] | None = None
    blocks: str | None = None
    room: int = 0
    offsets: float | Callable[[np.random.Generator, IntArray], Any] = 0.0
    features: Features | None = None

    @property
    def entry(self) -> Method:
        """The method's entry of the table."""
        return method_named(self.method) if self.brought is None else self.brought

    @property
    def asks_for_equal_groups(self) -> bool:
        """Whether the question is for the instance's number of groups of equal items: what loops of trials play."""
        return self.resolution is None and self.groups == GROUPS[0] and self.blocks is None

    @property
    def log_inverse_deltas(self) -> tuple[float, ...]:
        """log(1/δ) of each δ: they increase."""
        return tuple(-math.log(delta) for delta in self.deltas)

    @property
    def trial_thresholds(self) -> tuple[str, ...]:
        """The thresholds that a trial tells apart: one, if they mean nothing to the method."""
        return tuple(dict.fromkeys(self.reported_at(threshold) for threshold in self.thresholds))

    def reported_at(self, threshold: str) -> str:
        """The threshold under which a trial reports what was asked for at this one."""
        return threshold if self.entry.has_thresholds else PROVEN

    def columns(self, deltas: Iterable[float]) -> list[int]:
        """The places of these δ among those of the plan."""
        known = self.log_inverse_deltas
        return [known.index(-math.log(delta)) for delta in deltas]

    @property
    def is_standard(self) -> bool:
        """Whether results are standard Gaussian about their means, and the method knows: compiled loops draw these."""
        return self.world is None and isinstance(self.noise, Noise) and self.noise.is_identity

    def offset(self, rng: np.random.Generator, arms: IntArray) -> FloatArray:
        """(d) what the next block adds to all means; `arms` are those of its first cell."""
        if callable(self.offsets):
            return np.broadcast_to(np.asarray(self.offsets(rng, arms), dtype=np.float64), self.instance.dim)
        return np.asarray(self.offsets * rng.standard_normal(self.instance.dim))

    def results(self, rng: np.random.Generator, arms: IntArray, offset: FloatArray | float = 0.0) -> FloatArray:
        """Results of these arms, in the user's units; ValueError for one that contradicts the noise assumed."""
        means = self.instance.means[arms] + offset
        x = means + rng.standard_normal(means.shape) if self.world is None else self.world.draw(rng, arms, means)
        if not isinstance(self.noise, Noise):
            try:
                self.noise.check(x)
            except ValueError as error:
                raise ValueError(
                    f"the simulated results contradict the noise that is assumed ({self.noise.kind}): {error}"
                ) from None
        return x

    def settings(self, threshold: str, delta: float) -> Settings:
        """What one run of the method is told."""
        inst = self.instance
        return Settings.of(
            inst.n_arms,
            None if self.resolution is not None else self.n_linked or inst.n_clusters,
            inst.dim if self.features is None else None,
            delta,
            self.method,
            threshold,
            self.noise,
            self.distance_ratio,
            inst if "instance" in self.entry.needs else None,
            resolution=self.resolution,
            groups=self.groups,
            costs=self.costs,
            blocks=self.blocks,
            features=self.features,
        )


@dataclass(frozen=True, eq=False)
class Stops:
    """How one trial ended at one threshold, for each δ of the plan."""

    times: IntArray  # (L) measurements taken when it stopped, 0 where it did not
    correct: NDArray[np.bool_]  # (L) whether the groups were right then
    cost: FloatArray | None = None  # (L) what they cost; None without costs

    @classmethod
    def none(cls, plan: Plan) -> Stops:
        """Of a trial that has not stopped yet; a loop fills it in."""
        count = len(plan.deltas)
        cost = None if plan.costs is None else np.zeros(count)
        return cls(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool), cost)

    def note_cost(self, column: int, plan: Plan, pulls: IntArray) -> None:
        """What a trial that has stopped has cost, if there are costs."""
        if self.cost is not None:
            self.cost[column] = cost_of(plan.costs, pulls)


class RunningTrials:
    """The trials under way, so that they can be ended: a pull may take a microsecond or many milliseconds."""

    def __init__(self) -> None:
        self._enders: list[Callable[[], None]] = []
        self._cancelled = False

    @contextmanager
    def ended_by(self, end: Callable[[], None]) -> Iterator[None]:
        """While this is open, `cancel` calls `end`, again and again: it makes a compiled loop come back soon."""
        self._enders.append(end)
        try:
            yield
        finally:
            self._enders.remove(end)

    @property
    def cancelled(self) -> bool:
        """Whether the user wants to stop."""
        return self._cancelled

    def cancel(self) -> None:
        """End all trials at their next measurement and wait until the compiled loops have come back."""
        self._cancelled = True
        while self._enders:
            for end in list(self._enders):
                end()
            time.sleep(0.01)


def play_trial(plan: Plan, seed: np.random.SeedSequence, running: RunningTrials) -> dict[str, Stops]:
    """One trial, whichever the method: by the loop that it brings, else by asking and telling its runs.

    A loop from outside the package is there for standard Gaussian results, which it draws itself.
    """
    entry = plan.entry
    looped = plan.asks_for_equal_groups and (plan.is_standard or is_packaged(entry))
    if entry.trial is None or not looped:
        return play_by_contract(plan, seed, running)
    if is_packaged(entry):
        return entry.trial(plan, seed, running)
    try:
        stops = entry.trial(plan, seed, running)
    except MethodError:
        raise
    except Exception as error:
        raise MethodError(entry.name, f"failed in its loop of trials: {type(error).__name__}: {error}") from error
    return stops if running.cancelled else _checked_stops(plan, stops)


def play_by_contract(plan: Plan, seed: np.random.SeedSequence, running: RunningTrials) -> dict[str, Stops]:
    """One trial of any method: its runs are asked for arms and told simulated results.

    Each δ and each threshold has a run of its own, all on the same stream of noise: d standard normal numbers a pull,
    as the engine's loops draw them, unless the plan has another world. So a method gives the stopping times that its
    loop gives, if it has one.
    """
    by_threshold: dict[str, Stops] = {}
    for threshold in plan.trial_thresholds:
        stops = by_threshold[threshold] = Stops.none(plan)
        for column, delta in enumerate(plan.deltas):
            run = start(plan.settings(threshold, delta), plan.entry)
            play = play_run if plan.blocks is None else play_blocks
            play(run, plan, np.random.default_rng(seed), running)
            if run.done:
                stops.times[column] = run.t
                stops.correct[column] = run.is_right(plan.instance)
                stops.note_cost(column, plan, run.pulls)
    return by_threshold


def play_run(run: MethodRun, plan: Plan, rng: np.random.Generator, running: RunningTrials) -> None:
    """Ask and tell until it is done, the limit of measurements is reached, or the user wants to stop."""
    left = plan.max_pulls or NO_END
    whiten = plan.noise.whiten_fully if plan.entry.exact else plan.noise.whiten
    while left > 0 and not run.done and not running.cancelled:
        pull = run.ask()
        if pull is None:
            return
        x = whiten(plan.results(rng, np.array([pull.arm])))[0]
        run.count(pull.arm, x, pull.round, True)
        left -= 1


def play_blocks(run: MethodRun, plan: Plan, rng: np.random.Generator, running: RunningTrials) -> None:
    """The same in blocks: each has room for so many results, and is measured cell by cell.

    Offsets have a generator of their own: the noise is the same whatever they are.
    """
    left, whiten = plan.max_pulls or NO_END, plan.noise.whiten_fully if plan.entry.exact else plan.noise.whiten
    of_blocks = np.random.default_rng(rng.integers(2**63, size=2))
    for number in itertools.count(1):
        room, offset = plan.room, None
        while left > 0 and not running.cancelled and (pulls := run.compose(f"block {number}", room, fill=False)):
            arms = np.array([pull.arm for pull in pulls])
            offset = plan.offset(of_blocks, arms) if offset is None else offset
            for pull, x in zip(pulls, whiten(plan.results(rng, arms, offset)), strict=True):
                run.ask()
                run.count(pull.arm, x, pull.round, True)
            room, left = room - arms.size, left - arms.size
            if room < 2:
                break
        if run.done or left <= 0 or running.cancelled:
            return


# Loops of trials of the packaged methods, inside the engine.
#
# One trajectory serves every δ and both thresholds of a method of the paper: its sampling does not look at δ. CROC's
# does: it has a run for each δ, on the same stream of noise. Standard Gaussian results, known to be so, are drawn
# inside the engine. Others come from the plan's world: all arms that CROC asks for before its next plan are drawn at
# once, and the engine follows asks and results as it follows a record.


CHUNK = 500
"""Pulls between two looks at whether the user wants to stop."""


def _checked_stops(plan: Plan, answer: Any) -> dict[str, Stops]:
    """What a loop of trials gave, if it is what the plan asked for; `MethodError` if not."""
    wanted = set(plan.trial_thresholds)
    if not isinstance(answer, dict) or set(answer) != wanted:
        names = ", ".join(sorted(wanted))
        raise MethodError(plan.method, f"gave no stops of a trial for {names}: {short(answer)}")
    for threshold, stops in answer.items():
        times, correct = (np.asarray(getattr(stops, part, None)) for part in ("times", "correct"))
        shape = (len(plan.deltas),)
        if times.shape != shape or correct.shape != shape or times.dtype.kind != "i" or correct.dtype.kind != "b":
            text = f"gave stops of a trial for {threshold} that are not {shape[0]} times and whether each was right"
            raise MethodError(plan.method, f"{text}: {short(stops)}")
    return answer


def play_croc(plan: Plan, seed: np.random.SeedSequence, running: RunningTrials) -> dict[str, Stops]:
    """One trial of CROC."""
    inst, stops = plan.instance, Stops.none(plan)
    family = family_for(plan.noise, inst.n_arms, inst.n_clusters, inst.dim)
    prices = unit_costs(plan.costs, inst.n_arms)
    for column, log_inverse_delta in enumerate(plan.log_inverse_deltas):
        run = CrocRun(inst.n_arms, inst.n_clusters, inst.dim, log_inverse_delta, family, prices)
        rng = np.random.default_rng(seed)
        left = plan.max_pulls or NO_END
        while not run.done and left > 0 and not running.cancelled:
            if plan.is_standard:
                steps = min(left, CHUNK)
                run.play(steps, inst.centers, inst.labels, rng)
            else:
                steps = play_to_next_plan(run, plan, rng, left)
            left -= steps
        if run.done:
            stops.times[column] = run.t
            stops.correct[column] = same_groups(run.labels, inst.labels, inst.n_clusters)
            stops.note_cost(column, plan, run.pulls)
    return {PROVEN: stops}


def play_to_next_plan(run: CrocRun, plan: Plan, rng: np.random.Generator, most: int) -> int:
    """Results of what CROC asks for before it plans again, at most so many; returns how many.

    One worker is simulated: each result counts before the next ask, as in a live session. No result changes which arms
    are asked for before the next plan, so all results up to there are drawn at once.
    """
    arms = run.planned(most)
    if arms.size == 0:  # a result that nobody asked for came last
        run.look()
        arms = run.planned(most)
    values = plan.noise.whiten_fully(plan.results(rng, arms))
    entries = _in_turn(plan.instance.n_arms, arms, values)
    while (why := run.follow(entries)) == DECIDED:
        pass
    assert why != OTHER_ARM, "a run asks for the arms that it has planned"
    return len(arms)


def _in_turn(n_arms: int, arms: IntArray, values: FloatArray) -> CrocEntries:
    """Each of these arms asked for, and its result, before the next is asked for."""
    kinds = np.tile(np.array([ASK, RESULT], dtype=np.int64), len(arms))
    asks = np.arange(2 * len(arms)) - 1
    asks[::2] = -1
    twice = np.repeat(values, 2, axis=0)
    return CrocEntries(n_arms, twice.shape[1] // 2, kinds, np.repeat(arms, 2), twice, ask=asks, asked=kinds)


_allocation_of_groups = lru_cache(maxsize=4)(allocation_of_groups)  # every trial of a plan needs the same


def play_paper(sampling: int, plan: Plan, seed: np.random.SeedSequence, running: RunningTrials) -> dict[str, Stops]:
    """One trial of a method of the paper; `sampling` is the engine's number of the sampling rule."""
    if not plan.is_standard:  # that loop draws standard Gaussian results only
        return play_by_contract(plan, seed, running)
    inst = plan.instance
    run = Run(
        inst.n_arms,
        inst.n_clusters,
        inst.dim,
        sampling,
        levels_for(plan.thresholds, plan.log_inverse_deltas, inst.n_arms, inst.dim),
        distance_ratio=plan.distance_ratio,
        oracle=(inst.labels, _allocation_of_groups(inst)) if "instance" in plan.entry.needs else None,
    )
    with running.ended_by(run.cancel):
        if not running.cancelled:
            no_arms = np.zeros(0, dtype=np.int64)
            run.play(plan.max_pulls or NO_END, inst.centers, inst.labels, np.random.default_rng(seed), no_arms)
    rows = {threshold: KINDS.index(threshold) for threshold in plan.trial_thresholds}
    return {threshold: Stops(run.stops[row], run.correct[row] == 1) for threshold, row in rows.items()}
