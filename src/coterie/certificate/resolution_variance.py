"""An upper bound on the variance of Gaussian noise from the first results of every arm, a design that is fixed.

Written a second time, in plain NumPy. Why the bound holds: docs/RESOLUTION.md, section 7.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from coterie.certificate.resolution_log import ResolutionRecord
from coterie.problem.checks import FloatArray

DEGREES = 120
"""Of freedom that the design is to have at least."""
ROUNDING = 1e-9
"""Of the largest distance of a result from the first of the log: a standard deviation is never taken to be smaller.
For a resolution at least of η; for linkage, which has no unit of its own, of 1 only if all those results are equal."""


def first_results(n_arms: int, dim: int, shape: str) -> int:
    """n₀: how many first results of every arm bound the variance."""
    return max(2, 1 + math.ceil(DEGREES / (n_arms * (dim if shape == "scalar" else 1))))


def variance_bounds(
    record: ResolutionRecord, n_arms: int, shape: str, scale: FloatArray, log_inverse_share: float, has_unit: bool
) -> FloatArray:
    """(d): σ₊² in units of `scale` (d); `log_inverse_share` is log(1/(0.1·δ)). ValueError if a freeze came too early.

    With one variance for all coordinates, it is bounded before they are scaled: afterwards they may differ. `has_unit`:
    a unit is η of a resolution, and not just that of the results.
    """
    dim = record.values.shape[1]
    n_first = first_results(n_arms, dim, shape)
    before = np.arange(record.arms.size) < (record.freezes[0].at if record.freezes else record.arms.size)
    squares, reach = np.zeros(dim), 1.0 if has_unit else 0.0
    for arm, stack in enumerate(record.stacks(before & record.asked, n_arms)):
        if len(stack) < n_first:
            raise ValueError(
                f"arm {arm} has {len(stack)} results that were asked for before the first freeze: the bound on the "
                f"variance needs {n_first} of every arm"
            )
        first = stack[:n_first] - stack[0]
        squares += ((first - first.mean(axis=0)) ** 2).sum(axis=0)
        reach = max(reach, float(np.abs((stack[:n_first] - record.values[0]) / scale).max()))
    degrees = n_arms * (n_first - 1)
    if shape == "scalar":
        bounds = np.full(dim, squares.sum() / _quantile(degrees * dim, log_inverse_share))
    else:
        bounds = squares / _quantile(degrees, log_inverse_share + math.log(dim))
    return np.maximum(bounds / scale**2, (ROUNDING * (reach or 1.0)) ** 2)


def _quantile(degrees: int, log_inverse: float) -> float:
    """What a chi-square of so many degrees of freedom falls below with probability e^{−log_inverse}."""
    return 2.0 * float(special.gammaincinv(degrees / 2.0, math.exp(-log_inverse)))
