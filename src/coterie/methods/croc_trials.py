"""Trials of CROC. Its sampling looks at δ: one run for each, on the same stream of noise.

Standard Gaussian results, known to be so, are drawn inside the compiled loop. Others come from the plan's world: all
arms that CROC asks for before its next plan are drawn at once, and the compiled loop follows asks and results as it
follows a record.
"""

from __future__ import annotations

import numpy as np

from coterie.engine.croc.entries import ASK, DECIDED, OTHER_ARM, RESULT, Entries, new_entries
from coterie.engine.croc.run import CrocRun
from coterie.engine.state import Floats, Ints
from coterie.methods.croc_families import family_for
from coterie.methods.trials import NO_END, PROVEN, Plan, Running, Stops
from coterie.problem.costs import unit_costs
from coterie.problem.partition import same_partition

CHUNK = 500
"""Pulls between two looks at whether the user wants to stop."""


def play(plan: Plan, seed: np.random.SeedSequence, running: Running) -> dict[str, Stops]:
    """One trial."""
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
            stops.correct[column] = same_partition(run.state.labels, inst.labels)
            stops.note_cost(column, plan, run.state.pulls)
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


def _in_turn(n_arms: int, arms: Ints, values: Floats) -> Entries:
    """Each of these arms asked for, and its result, before the next is asked for."""
    kinds = np.tile(np.array([ASK, RESULT], dtype=np.int64), len(arms))
    entries = new_entries(n_arms, kinds, np.repeat(arms, 2), np.repeat(values, 2, axis=0))
    entries.ask[1::2] = np.arange(0, 2 * len(arms), 2)
    entries.asked[1::2] = 1
    return entries
