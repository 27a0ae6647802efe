"""Trials where features are measured apart, on instances whose truth is known: any number of features.

A world draws results as for whole measurements (`coterie.simulate.worlds`), for the features of one panel at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coterie.methods.features.method import FeatureRun
from coterie.methods.features.rule import Rule
from coterie.methods.features.search import CONSTANTS, Constants
from coterie.methods.trials import NO_END, Plan, RunningTrials, Stops, World
from coterie.problem.instance import Instance
from coterie.problem.partition import same_partition
from coterie.problem.settings import Settings
from coterie.simulate.worlds import Normal

LIMIT = 10**7
"""Results at which a trial is stopped without groups, if nothing is said."""


@dataclass(frozen=True)
class FeatureTrial:
    """How one trial ended.

    Parameters
    ----------
    results, cost
        How many panels were measured, and what that cost.
    right
        Whether the groups are right; None if it was stopped without any.
    epochs
        Candidates that were frozen.
    proof
        Results that were measured for the last of them.
    seconds
        Of CPU.
    """

    results: int
    cost: float
    right: bool | None
    epochs: int
    proof: int
    seconds: float


def play_features(
    settings: Settings,
    instance: Instance,
    seed: int,
    world: World | None = None,
    limit: int = LIMIT,
    constants: Constants = CONSTANTS,
    cancelled: Callable[[], bool] = lambda: False,
    rule: Callable[[FeatureRun], Rule] | None = None,
) -> FeatureTrial:
    """One trial by one worker, from a seed; `rule` measures elsewhere than CROC's.

    Without a world the noise is Gaussian, with a standard deviation of 1. It ends early once it is `cancelled`.
    """
    started = time.process_time()
    run = FeatureRun(settings, constants, seed)
    if rule is not None:
        run.rule = rule(run)
    rng = np.random.default_rng([seed, 1])
    drawn, centers, labels = world or Normal(), instance.centers, instance.labels.tolist()
    cost = 0.0
    while not run.done and run.t < limit and not cancelled():
        for item, panel, count, of_round in run.take_planned():
            cost += count * run.prices.of(item, panel)
            means = centers[labels[item], list(run.features.features_of(panel))]
            x = drawn.draw(rng, np.full(count, item), np.broadcast_to(means, (count, means.size)))
            run.count_many(item, panel, x, of_round)
    guess, epoch = run.guess, run.epoch
    right = None
    if run.done and guess is not None:
        right = same_partition(guess[0], instance.labels)
    frozen_at = run.t if epoch is None else int(epoch.frozen["frozen_at"])
    epochs = 0 if epoch is None else epoch.number + 1
    return FeatureTrial(run.t, cost, right, epochs, run.t - frozen_at, time.process_time() - started)


def play_trial_by_feature(plan: Plan, seed: np.random.SeedSequence, running: RunningTrials) -> dict[str, Stops]:
    """One trial of a plan with features: a run for each δ, with the same noise as long as they ask for the same."""
    limit = NO_END if plan.max_pulls is None else plan.max_pulls
    number = int(seed.generate_state(1)[0])
    stops = {}
    for threshold in plan.trial_thresholds:
        trials = [
            play_features(
                plan.settings(threshold, delta), plan.instance, number, plan.world, limit,
                cancelled=lambda: running.cancelled,
            )
            for delta in plan.deltas
        ]  # fmt: skip
        times = np.array([0 if trial.right is None else trial.results for trial in trials], dtype=np.int64)
        right = np.array([trial.right is True for trial in trials])
        stops[threshold] = Stops(times, right, np.array([trial.cost for trial in trials]))
    return stops
