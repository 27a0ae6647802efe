"""Before anything is measured: how many measurements groups so far apart will take, and what a budget is enough for.

It is a plan, not a promise: simulated groups lie on a line, each `gap` from the next, and have equal sizes. Real groups
are not so regular, and nobody knows the smallest gap beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.problem.checks import check_count, check_positive, short
from coterie.problem.families import noise_of
from coterie.problem.instance import Instance
from coterie.problem.noise import Noise
from coterie.problem.settings import DELTA, METHOD, THRESHOLD, blaming
from coterie.simulate.trials import simulate
from coterie.simulate.worlds import Normal

RUNS = 40
MOST = 20_000
"""Measurements of a simulated run for each item: one that is not done by then counts as longer than all others."""
LARGEST = 10**9
SURE = 0.9
"""The share of runs that a budget has to be enough for."""
_WIDEST, _SEARCHES = 100.0, 8


@dataclass(frozen=True)
class BudgetPlan:
    """What simulated runs took, by `coterie.plan_budget`.

    Attributes
    ----------
    items, groups, dim : int
        M, K and d.
    gap : float
        The distance of neighbouring groups in standard deviations of the noise.
    delta : float
        The error probability of the runs, at most.
    method : str
        Of the runs.
    runs : int
        Simulated for each gap.
    median, ninety : float
        Half of the runs took at most `median` measurements, 9 of 10 at most `ninety`; infinite if too many runs were
        given up.
    budget : int or None
        What was asked about.
    smallest_gap : float or None
        About the smallest gap for which 9 of 10 runs are done within `budget`; None if none is.
    """

    items: int
    groups: int
    dim: int
    gap: float
    delta: float
    method: str
    runs: int
    median: float
    ninety: float
    budget: int | None = None
    smallest_gap: float | None = None

    @property
    def words(self) -> str:
        """In a few sentences."""
        shape = f"{self.items} items in {self.groups} groups, neighbours {self.gap:g} standard deviations apart"
        if math.isfinite(self.ninety):
            needs = f"half of {self.runs} simulated runs took at most {self.median:.0f} measurements, 9 of 10 at most "
            said = f"{shape}: {needs}{self.ninety:.0f}."
        else:
            said = f"{shape}: more than 1 of 10 simulated runs was given up, after very many measurements."
        if self.budget is not None and self.smallest_gap is None:
            said += f" {self.budget} measurements are not enough, however far apart the groups are."
        elif self.budget is not None:
            said += (
                f" {self.budget} measurements are enough in 9 of 10 runs if neighbouring groups are about "
                f"{self.smallest_gap:.2g} standard deviations apart, or more."
            )
        return f"{said} This is a plan, not a promise: real groups are not so regular."


def plan_budget(
    n_arms: int,
    n_clusters: int,
    dim: int = 1,
    gap: float = 1.0,
    *,
    noise: Any = None,
    delta: float = DELTA,
    method: str = METHOD,
    threshold: str = THRESHOLD,
    budget: int | None = None,
    runs: int = RUNS,
    seed: int = 0,
    progress: bool | None = None,
) -> BudgetPlan:
    """How many measurements will be needed if neighbouring groups are `gap` apart, by simulated runs.

    Parameters
    ----------
    n_arms, n_clusters, dim : int
        How many items, groups, and numbers a measurement.
    gap : float
        The distance of neighbouring groups, which lie on a line and have equal sizes.
    noise : optional
        What will be stated, as in `Session`: a standard deviation, and then `gap` is in its units, those of the
        measurements; or None, "gaussian" or `Symmetric()`, and then `gap` is in standard deviations.
    delta : float
        The error probability.
    method, threshold : str
        As in `Session`.
    budget : int, optional
        Also look for the smallest gap that so many measurements are enough for.
    runs : int
        For each gap that is tried.
    seed : int
        Of the runs.
    progress : bool, optional
        A bar on the terminal; by default if there is one.

    Returns
    -------
    BudgetPlan
        `words` has it in a few sentences.

    Examples
    --------
    >>> import coterie
    >>> plan = coterie.plan_budget(6, 2, gap=3.0, noise=1.0, runs=10)
    >>> plan.median <= plan.ninety
    True
    """
    items, groups = check_count(n_arms, "n_arms", 2), check_count(n_clusters, "n_clusters", 2)
    apart, count = check_positive(gap, "gap"), check_count(runs, "runs", 2)
    limit = None if budget is None else check_count(budget, "budget", 1)
    if limit is not None and limit > LARGEST:
        raise ValueError(f"budget must be at most {LARGEST}, got {short(limit)}")
    if groups >= items:
        raise ValueError(f"n_clusters must be smaller than the number of items, got {groups} groups of {items} items")
    with blaming("noise"):
        stated = noise_of(noise, check_count(dim, "dim", 1))
    known = isinstance(stated, Noise)
    if not known and stated.kind not in ("any", "gaussian", "symmetric"):
        raise ValueError(
            f"noise must be a standard deviation, None, 'gaussian' or Symmetric() for a plan, got {short(noise)}: "
            "try simulate for others"
        )
    sd = 1.0
    if known:
        if np.ndim(noise) != 0:
            raise ValueError(f"noise must be one standard deviation for a plan, got {short(noise)}")
        sd = float(noise)

    def took(units: float, most: int) -> Any:
        """The stopping times of runs with groups so many standard deviations apart, infinite if given up."""
        centers = np.zeros((groups, dim))
        centers[:, 0] = units * sd * np.arange(groups)
        trials = simulate(
            Instance(np.arange(items) % groups, centers),
            method, deltas=(delta,), threshold=threshold, trials=count, seed=seed, max_pulls=most,
            noise=noise, world=Normal(sd), progress=progress,
        )  # fmt: skip
        times = trials.stopping_times[:, 0].astype(np.float64)
        return np.where(times < 0, math.inf, times)

    times = took(apart / sd, MOST * items)
    median, ninety = (float(np.quantile(times, share, method="higher")) for share in (0.5, SURE))
    smallest = None if limit is None else _smallest_gap(took, apart / sd, ninety, limit)
    return BudgetPlan(items, groups, dim, apart / sd, delta, method, count, median, ninety, limit, smallest)


def _smallest_gap(took: Any, gap: float, ninety: float, budget: int) -> float | None:
    """About the smallest gap for which the budget is enough in 9 of 10 runs; by halving, of logarithms."""

    def enough(units: float) -> bool:
        return bool(np.quantile(took(units, budget), SURE, method="higher") <= budget)

    low, high = (None, gap) if ninety <= budget else (gap, None)
    while high is None or low is None:
        tried = 2.0 * (low or gap) if high is None else 0.5 * high
        if high is None and tried > _WIDEST:
            return None
        if low is None and tried < 1.0 / _WIDEST:
            return high
        if enough(tried):
            high = tried
        else:
            low = tried
    for _ in range(_SEARCHES):
        if high / low < 1.06:
            break
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
