"""Intervals for means of Gaussian streams, and for their differences, at all lengths at once (docs/INTERVALS.md).

A *stream* is a sequence of results of which each was asked for after all before it: given what was known then, it has
the mean μ, whatever chose its item. Everything is for one number of a result; `level` is log(1/a): an interval is ever
wrong with probability at most a.

- *known*: the mixture Σ_ρ p(ρ)·(1+ρn)^(−1/2)·exp(½·ρn²(x̄−μ)²/(σ²(1+ρn))) stays below 1/a.
- *gaussian*: σ is unknown. 0.9 of the same mixture with an upper bound σ₊ in its place, and 0.1 of universal inference,
  Π q_i(x_i) over the largest Gaussian likelihood at μ, q_i a Student density made from the stream before x_i.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from coterie.evidence.pairs import SCALE_WEIGHTS, SCALES
from coterie.problem.checks import FloatArray, IntArray

Ends = tuple[float, float]
Curve = Callable[[FloatArray], FloatArray]

VOID: Ends = (math.nan, math.nan)
"""No mean fits: the error has happened, or what was stated about the noise is false."""

BOUND_WEIGHT = 0.9
"""Of the mixture by σ₊; universal inference has the rest."""

_RATES: FloatArray = np.concatenate([[0.0], 2.0 ** np.arange(3, -10, -1)])
_RATE_WEIGHTS: FloatArray = np.concatenate([[0.5], np.full(13, 0.5 / 13.0)])
_ROUNDING = 1e-9  # σ₊ is never below this share of the largest distance of a result from the first
_HALVINGS = 100


def known_reach(n: IntArray, level: float) -> FloatArray:
    """How far the mean of n results may be from μ, in standard deviations; infinite for n = 0."""
    counts = np.asarray(n, dtype=np.float64)[..., None]
    spread = np.log(SCALE_WEIGHTS) - 0.5 * np.log1p(SCALES * counts)
    return _reach(spread, SCALES * counts**2 / (1.0 + SCALES * counts), level)


def difference_reach(n: IntArray, other: IntArray, level: float) -> FloatArray:
    """The same for the difference of two means: the product of both mixtures, at the worst common shift."""
    first, second = (np.asarray(counts, dtype=np.float64)[..., None] for counts in (n, other))
    spread = np.log(SCALE_WEIGHTS) - 0.5 * (np.log1p(SCALES * first) + np.log1p(SCALES * second))
    gain, other_gain = (SCALES * counts**2 / (1.0 + SCALES * counts) for counts in (first, second))
    with np.errstate(invalid="ignore"):
        return _reach(spread, np.nan_to_num(gain * other_gain / (gain + other_gain)), level)


def _reach(spread: FloatArray, gain: FloatArray, level: float) -> FloatArray:
    """The r at which log Σ exp(spread + ½·gain·r²) is the level; from above."""
    with np.errstate(divide="ignore"):
        high = np.sqrt(2.0 * (level - spread) / gain).min(axis=-1)  # one summand reaches it there, so the sum does
    low = np.zeros_like(high)
    known = np.isfinite(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        square = np.where(known, middle, 0.0)[..., None] ** 2
        terms = spread + 0.5 * gain * square
        top = terms.max(axis=-1)
        below = top + np.log(np.exp(terms - top[..., None]).sum(axis=-1)) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(high)


def deviation_bounds(arms: IntArray, values: FloatArray, shape: str, error: float) -> FloatArray:
    """(d) σ₊: standard deviations that are at least the true ones, at all lengths, but for a probability of `error`.

    `arms`, `values` (n), (n, d): the stream of all items. As Lemma E of docs/EVIDENCE.md has it, with the order of asks
    in the place of asks made alone: given what was known when x was asked for, x minus the mean of its item's results
    before it in the stream is Gaussian about a constant. Infinite where there is no bound.
    """
    dim = values.shape[1]
    if not len(values):
        return np.full(dim, np.inf)
    moved = values - values[0]
    squares, count = np.zeros(dim), 0
    order = np.argsort(arms, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(arms[order])) + 1):
        before = np.cumsum(moved[rows], axis=0)[:-1] / np.arange(1, rows.size)[:, None]
        squares += ((moved[rows[1:]] - before) ** 2).sum(axis=0)
        count += rows.size - 1
    return bounds_of_squares(squares, np.abs(moved).max(axis=0), count, shape, error)


def bounds_of_squares(squares: FloatArray, largest: FloatArray, count: int, shape: str, error: float) -> FloatArray:
    """(d) σ₊ by residuals with so many degrees of freedom; `largest`: how far results are apart at most."""
    dim = squares.size
    nothing = np.full(dim, np.inf)
    if shape == "scalar":
        squares, largest, count = np.full(dim, squares.sum()), np.full(dim, largest.max()), count * dim
    root = _variance_root(count, -math.log(error) + (0.0 if shape == "scalar" else math.log(dim)))
    if root <= 0.0:
        return nothing
    bounds = np.maximum(np.sqrt(squares / (2.0 * root)), _ROUNDING * largest)
    return np.where((squares > 0.0) & (bounds > 1e-140), bounds, np.inf)


@lru_cache(maxsize=4096)
def _variance_root(count: int, level: float) -> float:
    """The z > 0 where log Σ_λ w_λ·(1+λ)^(ν/2)·e^(−λz) falls to the level; 0 if it never reaches it."""
    from scipy.optimize import brentq  # here: it takes a while to load

    price = np.log(_RATE_WEIGHTS) + 0.5 * count * np.log1p(_RATES)

    def above(z: float) -> float:
        return float(np.logaddexp.reduce(price - _RATES * z)) - level

    if above(0.0) <= 0.0:
        return 0.0
    high = 1.0
    while above(high) > 0.0:
        high *= 2.0
    return float(brentq(above, 0.0, high, xtol=1e-13, rtol=1e-14))


def universal_evidence(stream: FloatArray) -> tuple[float, int, float, float]:
    """A = Σ log q_i(x_i), n', and the mean and the variance of these n' results: all after the first two that differ.

    q_i: Student's density with k degrees of freedom after k results, about their mean.
    """
    from scipy.special import gammaln  # here: it takes a while to load

    x = stream - stream[0] if len(stream) else stream
    apart = np.flatnonzero(x != 0.0)
    start = max(2, int(apart[0]) + 1) if apart.size else len(x)
    rest = x[start:]
    if not len(rest):
        return 0.0, 0, 0.0, 0.0
    k = np.arange(start, len(x), dtype=np.float64)
    total, square = np.cumsum(x)[start - 1 : -1], np.cumsum(x**2)[start - 1 : -1]
    mean = total / k
    inside = np.maximum(square - k * mean**2, np.finfo(np.float64).eps * square)
    scale2 = inside * (1.0 + 0.5 / (k - 1.0)) / k * (1.0 + 1.0 / k)
    log_q = (
        gammaln(0.5 * (k + 1.0)) - gammaln(0.5 * k) - 0.5 * np.log(k * math.pi * scale2)
        - 0.5 * (k + 1.0) * np.log1p((rest - mean) ** 2 / (k * scale2))
    )  # fmt: skip
    return float(log_q.sum()), len(rest), float(stream[0] + rest.mean()), float(rest.var())


def gaussian_intervals(
    streams: Sequence[FloatArray], deviations: FloatArray, level: float, bound_weight: float = BOUND_WEIGHT
) -> tuple[FloatArray, FloatArray]:
    """For the means of Gaussian streams, with σ₊ of each (it may be infinite); `bound_weight`: of the mixture by σ₊.

    The evidence is convex in μ, so what is below the level is an interval about the place where it is least.
    """
    n = np.array([len(stream) for stream in streams], dtype=np.float64)
    mean = np.array([stream[0] + (stream - stream[0]).mean() if len(stream) else 0.0 for stream in streams])
    inferred = [universal_evidence(stream) for stream in streams]
    log_q, rest, center, variance = np.array(inferred, dtype=np.float64).reshape(-1, 4).T
    center = np.where(rest > 0, center, mean)
    spread = np.log(SCALE_WEIGHTS) - 0.5 * np.log1p(SCALES * n[:, None])
    gain = 0.5 * SCALES * n[:, None] ** 2 / (1.0 + SCALES * n[:, None]) / np.asarray(deviations)[:, None] ** 2
    with np.errstate(divide="ignore"):
        shares = np.log(bound_weight), np.log1p(-bound_weight)

    def evidence(mu: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            bound = np.logaddexp.reduce(spread + gain * (mean - mu)[:, None] ** 2, axis=1)
            square = np.maximum(variance + (center - mu) ** 2, np.finfo(np.float64).tiny)
        by_likelihood = log_q + 0.5 * rest * np.log(2.0 * math.pi * math.e * square)
        return np.asarray(np.logaddexp(shares[0] + bound, shares[1] + by_likelihood))

    lowest = _least(evidence, np.minimum(mean, center), np.maximum(mean, center))
    unit = np.maximum.reduce([np.sqrt(variance), np.abs(mean - center), 1e-12 * np.abs(mean), np.full(len(n), 1e-300)])
    low, high = (_crossing(evidence, lowest, sign * unit, level) for sign in (-1.0, 1.0))
    void = evidence(lowest) >= level
    unknown = ~void & (rest == 0) & (~np.isfinite(deviations) | (bound_weight == 0.0))
    low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
    return np.where(void, np.nan, low), np.where(void, np.nan, high)


def _least(evidence: Curve, low: FloatArray, high: FloatArray) -> FloatArray:
    """Where convex functions are least."""
    for _ in range(_HALVINGS):
        third = (high - low) / 3.0
        below = evidence(low + third) < evidence(high - third)
        low, high = np.where(below, low, low + third), np.where(below, high - third, high)
    return np.asarray(0.5 * (low + high))


def _crossing(evidence: Curve, inside: FloatArray, step: FloatArray, level: float) -> FloatArray:
    """Where the evidence reaches the level, going by steps from a place inside: the outer of two that bracket it."""
    outside = inside + step
    beyond = np.zeros(len(inside), dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        while (more := (evidence(outside) < level) & ~beyond).any():
            beyond |= more & (np.abs(step) > 1e300)
            inside, step = np.where(more, outside, inside), np.where(more, 2.0 * step, step)
            outside = np.where(more & ~beyond, inside + step, outside)
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            below = evidence(middle) < level
            inside, outside = np.where(below, middle, inside), np.where(below, outside, middle)
    return np.where(beyond, np.copysign(np.inf, step), outside)
