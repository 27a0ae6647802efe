"""An upper bound σ₊ on the standard deviation of Gaussian noise, in units of which the pairs from the start are.

The noise is the same in all directions, and there is one bound, or coordinates are independent and each has its own
(docs/EVIDENCE.md, section 4). A *residual* is what a result differs by from the mean of its arm's results before it. It
counts if the result was asked for while no other pull was under way: then that mean is fixed when it is asked for, and
the result independent of all that was known. With R the sum of their squares and ν their number,

    V(σ²) = Σ_λ w_λ·(1+λ)^(ν/2)·e^(−λR/(2σ²)),     λ = 0 (weight ½), 8, 4, …, 2⁻⁹ (weights ½/13),

is a supermartingale at the true σ, whatever the arms' means are. σ₊² is where V reaches 1/(w·δ), so that σ₊ < σ ever
has probability at most w·δ.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.evidence import test_pair
from coterie.engine.croc.family import SCALAR
from coterie.engine.croc.state import (
    ALONE,
    BOUND_LEVEL,
    BOUND_RESIDUALS,
    BOUND_TRUST,
    BOUNDED_AT,
    ESTIMATED,
    METRIC_SHAPE,
    RESIDUALS,
    VARIANCE_BOUND,
    Croc,
    T,
)
from coterie.engine.state import Floats

RATES = 13
"""λ = 8, 4, …, 2⁻⁹, each with the weight ½/RATES, beside λ = 0 with the weight ½."""
LARGEST_RATE = 8.0
ROOT_STEPS, ROOT_PRECISION = 200, 1e-13
"""Newton's steps on the way to σ₊, and the relative step after which it is found."""
RESOLUTION = 1e-9
"""σ₊ is at least this share of the largest distance of a result from the first: below, rounding looks like noise."""
SMALLEST = 1e-280
"""A variance below this has no inverse that could be worked with."""
MOST_AHEAD = 1e6
"""Forecasts of σ₊ look no more than so many pulls ahead."""
WORTH_A_LOOK = 1.02
"""All pairs are evaluated anew when 1/σ₊² has grown by this factor."""


@compiled
def take_residual(s: Croc, arm: int, x: Floats) -> None:
    """A result of the arm, before it is added to the arm's. INOUT: R, their number, the reach."""
    n = s.pulls[arm]
    for q in range(x.size // 2):
        s.reach[q] = max(s.reach[q], abs(x[q]))
    if s.ints[ALONE] != arm + 1 or n == 0:
        return
    s.ints[RESIDUALS] += 1
    for q in range(s.reach.size):
        s.residual_squares[q] += (x[q] - s.sums[arm, q] / n) ** 2


@compiled
def bound_root(degrees: float, level: float, start: float) -> float:
    """The z = R/(2σ²) where log V is the level, to the last digits and not above it; 0 if V is smaller everywhere.

    log V falls in z and is convex: Newton's steps from the left, where it is above the level, stay there. `start`: a z
    on the left of it, such as the root for fewer degrees; 0 will do.
    """
    z = start
    for _ in range(ROOT_STEPS):
        largest = 0.0
        for i in range(RATES):
            rate = LARGEST_RATE / 2.0**i
            largest = max(largest, 0.5 * degrees * math.log1p(rate) - rate * z - math.log(RATES))
        total, slope = math.exp(-largest), 0.0
        for i in range(RATES):
            rate = LARGEST_RATE / 2.0**i
            term = math.exp(0.5 * degrees * math.log1p(rate) - rate * z - math.log(RATES) - largest)
            total += term
            slope += rate * term
        above = math.log(0.5 * total) + largest - level
        if above <= 0.0:
            return z
        step = above * total / slope
        z += step
        if step <= ROOT_PRECISION * z:
            return z
    return z


@compiled
def _precision(squares: float, root: float, reach: float) -> float:
    """1/σ₊²; 0 where there is no bound."""
    if squares <= 0.0 or root <= 0.0:
        return 0.0
    variance = max(0.5 * squares / root, (RESOLUTION * reach) ** 2)
    return 1.0 / variance if variance > SMALLEST else 0.0


@compiled
def _bound(s: Croc) -> bool:
    """σ₊ from the residuals so far. OUT: s.root, s.precision. False if it is infinite in every coordinate."""
    level, residuals, d = s.numbers[BOUND_LEVEL], float(s.ints[RESIDUALS]), s.reach.size
    if s.ints[METRIC_SHAPE] == SCALAR:
        squares, reach = 0.0, 0.0
        for q in range(d):
            squares += s.residual_squares[q]
            reach = max(reach, s.reach[q])
        s.root[0] = bound_root(d * residuals, level, s.root[0])
        for q in range(d):
            s.precision[q] = _precision(squares, s.root[0], reach)
        return bool(s.precision[0] > 0.0)
    found = False
    s.root[0] = bound_root(residuals, level, s.root[0])
    for q in range(d):
        s.precision[q] = _precision(s.residual_squares[q], s.root[0], s.reach[q])
        found = found or s.precision[q] > 0.0
    return found


@compiled
def renew_bound(s: Croc) -> None:
    """σ₊ anew if there are new residuals; then, if it is smaller, all pairs. INOUT: the bound, settled, evidence."""
    if s.ints[VARIANCE_BOUND] == 0 or s.ints[RESIDUALS] == s.ints[BOUND_RESIDUALS]:
        return
    s.ints[BOUND_RESIDUALS] = s.ints[RESIDUALS]
    if not _bound(s):
        return
    s.ints[BOUNDED_AT] = s.ints[T]
    grown = False
    for q in range(s.precision.size):
        grown = grown or s.precision[q] > WORTH_A_LOOK * s.precision_seen[q]
    if not grown or s.ints[ESTIMATED] == 0:
        return
    for q in range(s.precision.size):
        s.precision_seen[q] = s.precision[q]
    for m in range(s.labels.size):
        for k in range(s.totals.size):
            if k != s.labels[m] and s.representative[k] >= 0:
                test_pair(s, m, k)


@compiled
def forecast_trust(s: Croc, pulls: float) -> None:
    """The share of a pair's energy that is left in units of σ₊ after so many more pulls. OUT: BOUND_TRUST."""
    degrees = s.ints[RESIDUALS] + min(pulls, MOST_AHEAD)
    if s.ints[METRIC_SHAPE] == SCALAR:
        degrees *= s.reach.size
    start = s.root[0]
    s.numbers[BOUND_TRUST] = 2.0 * bound_root(degrees, s.numbers[BOUND_LEVEL], start) / max(degrees, 1.0)
