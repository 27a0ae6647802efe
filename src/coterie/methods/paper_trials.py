"""Trials of the paper's methods in the compiled loop of `coterie.engine.advance`.

One trajectory serves every δ and both thresholds, because the paper's sampling rules do not look at δ.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from coterie.engine.run import Run
from coterie.methods import generic_trial
from coterie.methods.levels import KINDS, levels_for
from coterie.methods.paper import allocation_of_groups
from coterie.methods.trials import NO_END, Plan, Running, Stops

_allocation_of_groups = lru_cache(maxsize=4)(allocation_of_groups)  # every trial of a plan needs the same


def play(sampling: int, plan: Plan, seed: np.random.SeedSequence, running: Running) -> dict[str, Stops]:
    """One trial; `sampling` is the engine's number of the sampling rule."""
    if not plan.is_standard:  # the compiled loop draws standard Gaussian results only
        return generic_trial.play(plan, seed, running)
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

    def end() -> None:
        run.met[:] = run.levels.shape[1]  # the engine goes on only while a level is not met

    with running.ended_by(end):
        if not running.cancelled:
            no_arms = np.zeros(0, dtype=np.int64)
            run.play(plan.max_pulls or NO_END, inst.centers, inst.labels, np.random.default_rng(seed), no_arms)
    rows = {threshold: KINDS.index(threshold) for threshold in plan.trial_thresholds}
    return {threshold: Stops(run.stops[row], run.correct[row] == 1) for threshold, row in rows.items()}
