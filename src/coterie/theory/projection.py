"""The projection of the linear-exploration rule: the nearest allocation that gives every arm a floor.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024), appendix_forced: Proj onto
{lambda >= r^2/(2M), sum lambda = 1} in equation_newsamplingrule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, check_real, check_real_array


def project_to_floor(weights: Any, floor: float) -> FloatArray:
    """The exact Euclidean projection of a vector on {x : x_m >= floor, sum x = 1}, in O(M log M).

    The projection has the form max(x - tau, floor); sorting finds the tau that makes the sum one.
    """
    x = check_real_array(weights, "weights")
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"weights must be a vector with at least one entry, got shape {x.shape}")
    low = check_real(floor, "floor")
    budget = 1.0 - x.size * low  # what is left to share above the floor
    if low < 0.0 or budget < -1e-12:
        raise ValueError(f"floor must lie in [0, 1/M] with M = {x.size}, got {low!r}")
    above = np.sort(x - low)[::-1]
    taus = (np.cumsum(above) - max(budget, 0.0)) / np.arange(1, x.size + 1)
    # above[i] > taus[i] holds on a prefix; equality only adds entries that end on the floor. The first entry
    # always belongs to it (up to rounding when the budget is 0).
    last = max(int(np.count_nonzero(above > taus)) - 1, 0)
    return np.asarray(np.maximum(x - taus[last], low))
