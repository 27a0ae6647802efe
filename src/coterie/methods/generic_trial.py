"""A trial of any method by its contract alone: its runs are asked for arms and told simulated results.

Each δ and each threshold has a run of its own, all on the same stream of noise: d standard normal numbers a pull, as
the compiled loops draw them, unless the plan has another world. So a method gives the stopping times that its compiled
loop gives, if it has one.
"""

from __future__ import annotations

import numpy as np

from coterie.methods.contract import MethodRun
from coterie.methods.start import start
from coterie.methods.trials import NO_END, Plan, Running, Stops


def play(plan: Plan, seed: np.random.SeedSequence, running: Running) -> dict[str, Stops]:
    """One trial."""
    found: dict[str, Stops] = {}
    for threshold in plan.trial_thresholds:
        stops = found[threshold] = Stops.none(plan)
        for column, delta in enumerate(plan.deltas):
            run = start(plan.settings(threshold, delta), plan.entry)
            play_run(run, plan, np.random.default_rng(seed), running)
            if run.done:
                stops.times[column] = run.t
                stops.correct[column] = run.is_right(plan.instance)
                stops.note_cost(column, plan, run.pulls)
    return found


def play_run(run: MethodRun, plan: Plan, rng: np.random.Generator, running: Running) -> None:
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
