"""The plan of a simulation from what a caller gave, and one trial of it.

Trial i draws its noise from the i-th child of the seed, so that any trial can be run alone, anywhere, with the same
numbers. What a plan is, and how a method plays a trial, is in `coterie.methods.trials`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.methods.contract import Method
from coterie.methods.table import check_noise, check_question, check_weighs_costs, is_packaged, method_named
from coterie.methods.trials import Plan, Running, Stops, play_trial
from coterie.problem.checks import (
    FloatArray,
    check_count,
    check_delta,
    check_distance_ratio,
    check_far,
    check_threshold_kind,
    short,
)
from coterie.problem.costs import check_costs
from coterie.problem.families import noise_of
from coterie.problem.instance import Instance
from coterie.problem.question import GROUPS, ExactGroups, Resolution, SingleLinkage
from coterie.problem.settings import SettingError, checked, question_of
from coterie.simulate.worlds import check_world, world_of


def plan_for(
    instance: Instance,
    method: str | Method,
    deltas: Sequence[float] | FloatArray | float,
    thresholds: Sequence[str] | str,
    max_pulls: int | None = None,
    distance_ratio: float | None = None,
    noise: Any = 1.0,
    world: Any = None,
    resolution: Any = None,
    groups: str = GROUPS[0],
    n_clusters: int | None = None,
    costs: Any = None,
) -> Plan:
    """The plan of these trials, validated. `deltas` in any order and `thresholds` may repeat: each is simulated once.

    `method` is the name of one, or an entry that need not be in the table. `noise`, `world`, `resolution`, `groups`,
    `n_clusters` and `costs` as in `simulate`.
    """
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
    distinct = {-math.log(delta): delta for delta in given}
    return Plan(
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
    )


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


def run_trial(plan: Plan, seed: int, trial: int, running: Running) -> Outcome:
    """One trial, whichever the method. Raises `TrialCancelledError` if it was ended from outside."""
    start = time.perf_counter()
    stops = play_trial(plan, child_seed(seed, trial), running)
    if running.cancelled:
        raise TrialCancelledError(f"trial {trial} was cancelled")
    return Outcome(trial, stops, time.perf_counter() - start)
