"""Trials of CROC in its compiled loop. Its sampling looks at δ: one run for each, on the same stream of noise."""

from __future__ import annotations

import numpy as np

from coterie.engine.croc.run import CrocRun
from coterie.methods.trials import NO_END, PROVEN, Plan, Running, Stops
from coterie.problem.partition import same_partition

CHUNK = 500
"""Pulls between two looks at whether the user wants to stop."""


def play(plan: Plan, seed: np.random.SeedSequence, running: Running) -> dict[str, Stops]:
    """One trial."""
    inst, stops = plan.instance, Stops.none(plan)
    for column, log_inverse_delta in enumerate(plan.log_inverse_deltas):
        run = CrocRun(inst.n_arms, inst.n_clusters, inst.dim, log_inverse_delta)
        rng = np.random.default_rng(seed)
        left = plan.max_pulls or NO_END
        while not run.done and left > 0 and not running.cancelled:
            steps = min(left, CHUNK)
            run.play(steps, inst.centers, inst.labels, rng)
            left -= steps
        if run.done:
            stops.times[column] = run.t
            stops.correct[column] = same_partition(run.state.labels, inst.labels)
    return {PROVEN: stops}
