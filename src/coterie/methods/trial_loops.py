"""Loops of trials of the packaged methods, inside the engine.

One trajectory serves every δ and both thresholds of a method of the paper: its sampling does not look at δ. CROC's
does: it has a run for each δ, on the same stream of noise. Standard Gaussian results, known to be so, are drawn inside
the engine. Others come from the plan's world: all arms that CROC asks for before its next plan are drawn at once, and
the engine follows asks and results as it follows a record.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from coterie.methods.contract import ASK, RESULT
from coterie.methods.croc.run import DECIDED, OTHER_ARM, CrocEntries, CrocRun
from coterie.methods.family import family_for
from coterie.methods.paper.method import KINDS, allocation_of_groups, levels_for
from coterie.methods.paper.run import Run
from coterie.methods.trials import NO_END, PROVEN, Plan, Running, Stops, play_by_contract
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.costs import unit_costs
from coterie.problem.partition import same_groups

CHUNK = 500
"""Pulls between two looks at whether the user wants to stop."""


def play_croc(plan: Plan, seed: np.random.SeedSequence, running: Running) -> dict[str, Stops]:
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


def play_paper(sampling: int, plan: Plan, seed: np.random.SeedSequence, running: Running) -> dict[str, Stops]:
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
