"""How hard an instance is: D*, the allocation lambda* that attains it, and the lower bound on the pulls.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024): theorem_lowerbound,
theorem_opt3 and theorem_opt4, the latter two corrected for singletons (see `coterie.theory.allocation`).
"""

from __future__ import annotations

import math

from coterie.problem.checks import FloatArray, check_delta, short
from coterie.problem.instance import Instance, squared_distances
from coterie.theory.allocation import Allocation, solve_allocation


def _solve(instance: Instance, asker: str) -> Allocation:
    if not isinstance(instance, Instance):
        raise TypeError(f"{asker} needs a coterie.Instance, got {short(instance)}")
    return solve_allocation(instance.sizes, squared_distances(instance.centers))


def hardness(instance: Instance) -> float:
    """D*(c, U): pulls needed for each unit of log(1/δ), as δ → 0 (equation_D)."""
    return _solve(instance, "hardness").hardness


def allocation(instance: Instance) -> FloatArray:
    """λ*, the best share of the pulls for each arm, shape (M,)."""
    weights = _solve(instance, "allocation").cluster_weights
    return (weights / instance.sizes)[instance.labels]  # theorem_opt4: lambda_m = w(c_m) / n(c_m)


def lower_bound(instance: Instance, delta: float) -> float:
    """d_KL(δ, 1−δ)·D*(c, U): no method with error probability δ needs fewer pulls on average (theorem_lowerbound)."""
    d = check_delta(delta)
    # d_KL(delta, 1-delta) = (1 - 2 delta) log((1-delta)/delta), which keeps its digits when 1 - delta rounds
    # to 1.
    return (1.0 - 2.0 * d) * (math.log1p(-d) - math.log(d)) * _solve(instance, "lower_bound").hardness


def binary_relative_entropy(a: float, b: float) -> float:
    """d_KL(a, b) = a log(a/b) + (1-a) log((1-a)/(1-b)) for a, b in (0, 1) (section_setup)."""
    for name, value in (("a", a), ("b", b)):
        if isinstance(value, bool | str) or not isinstance(value, int | float):
            raise TypeError(f"{name} must be a number in (0, 1), got {short(value)}")
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} must lie in (0, 1), got {value!r}")
    return a * math.log(a / b) + (1.0 - a) * (math.log1p(-a) - math.log1p(-b))
