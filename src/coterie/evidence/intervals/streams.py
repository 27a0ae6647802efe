"""Intervals of streams, for each noise that can be stated: means of items or groups, and their differences.

| noise | formula | means | differences |
| --- | --- | --- | --- |
| known | `known` | `gaussian_means.known_reach` | `gaussian_means.difference_reach` |
| Gaussian, size unknown | `gaussian` | `gaussian_means.gaussian_intervals` | the same, in units of σ₊ |
| bounded | `betting` | `hedged_means.betting_interval` | products of `hedged_means.betting_evidence` |
| counts | `beta-binomial` | `hedged_means.rate_evidence` | products of it |
| at most a covariance | `catoni` | `hedged_means.catoni_evidence` | products of it |
| any, symmetric, Poisson, exponential | `quantile` | `quantiles.quantile_interval` | of each stream one with a/2 |

Proofs are in docs/INTERVALS.md. Every function takes the results of streams as (n, d), and works number by number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from coterie.evidence.intervals.gaussian_means import (
    Ends,
    deviation_bounds,
    difference_reach,
    gaussian_intervals,
    known_reach,
)
from coterie.evidence.intervals.hedged_means import (
    Evidence,
    betting_evidence,
    betting_interval,
    catoni_evidence,
    difference_interval,
    rate_evidence,
)
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AtMost, Bounded, Counts, Gaussian, Model, stated_deviations
from coterie.problem.noise import Noise

VARIANCE_SHARE = 0.1
"""Of the error probability, for σ₊ of Gaussian noise of unknown size."""

FORMULAS = {
    "known": "known", "gaussian": "gaussian", "bounded": "betting", "counts": "beta-binomial", "at-most": "catoni",
    "any": "quantile", "symmetric": "quantile", "poisson": "quantile", "exponential": "quantile",
}  # fmt: skip
"""By the kind of the noise."""


class StreamIntervals:
    """Intervals under one noise, `count` of them, that hold together but for a probability of `error`.

    Parameters
    ----------
    noise : Model
        What was stated.
    count, error : int and float
        J and δ_I: each interval is ever wrong with probability at most δ_I/J, less what σ₊ is paid for.
    arms, values : (n) and (n, d)
        The stream of all items, for σ₊ of Gaussian noise.
    quantile : float, optional
        Which quantile, under a noise of which quantiles are told.
    """

    def __init__(
        self, noise: Model, count: int, error: float, arms: IntArray, values: FloatArray, quantile: float | None = None
    ) -> None:
        self._noise, self._quantile = noise, quantile
        self.level = math.log(count) - math.log(error)
        self._units = stated_deviations(noise)
        if isinstance(noise, Noise):
            return
        if isinstance(noise.statement, Gaussian):
            self._units = deviation_bounds(arms, values, noise.statement.shape, VARIANCE_SHARE * error)
            self.level -= math.log1p(-VARIANCE_SHARE)

    def means(self, streams: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """(streams, d) lower and upper ends."""
        if isinstance(self._noise, Noise):
            reach = known_reach(np.array([len(stream) for stream in streams]), self.level)[:, None] * self._units
            middle = _means(streams, self._noise.dim)
            return middle - reach, middle + reach
        if isinstance(self._noise.statement, Gaussian):
            dim = self._noise.dim
            columns = [stream[:, q] for stream in streams for q in range(dim)]
            low, high = gaussian_intervals(columns, np.tile(self._units, len(streams)), self.level)
            return low.reshape(-1, dim), high.reshape(-1, dim)
        ends = [[self._mean(stream[:, q], q) for q in range(self._noise.dim)] for stream in streams]
        return _split(ends, self._noise.dim)

    def differences(self, pairs: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
        """(pairs, d) ends for the mean of the first stream minus that of the second, both up to one moment."""
        noise, dim = self._noise, self._noise.dim
        if isinstance(noise, Noise) or isinstance(noise.statement, Gaussian):
            sizes = np.array([[len(first), len(second)] for first, second in pairs]).reshape(-1, 2)
            with np.errstate(invalid="ignore"):
                reach = difference_reach(sizes[:, 0], sizes[:, 1], self.level)[:, None] * self._units
            middle = _means([first for first, _ in pairs], dim) - _means([second for _, second in pairs], dim)
            middle = np.where(np.isfinite(reach), middle, 0.0)
            return middle - reach, middle + reach
        return _split([[self._difference(a[:, q], b[:, q], q) for q in range(dim)] for a, b in pairs], dim)

    def _mean(self, x: FloatArray, q: int) -> Ends:
        stated = None if isinstance(self._noise, Noise) else self._noise.statement
        if isinstance(stated, Bounded):
            lo, width = range_of(stated, q)
            return _rescaled(betting_interval((x - lo) / width, self.level + math.log(2.0)), lo, width)
        if isinstance(stated, Counts | AtMost):
            ends = self._evidence(x, q).interval(self.level)
            return _rescaled(ends, 0.0, float(stated.trials) if isinstance(stated, Counts) else float(self._units[q]))
        return quantile_interval(x, self._p, self.level)

    def _difference(self, x: FloatArray, y: FloatArray, q: int) -> Ends:
        stated = None if isinstance(self._noise, Noise) else self._noise.statement
        if isinstance(stated, Bounded | Counts | AtMost):
            ends = difference_interval(self._evidence(x, q), self._evidence(y, q), self.level)
            unit = float(self._units[q]) if isinstance(stated, AtMost) else range_of(stated, q)[1]
            return _rescaled(ends, 0.0, unit)
        low, high = quantile_interval(x, self._p, self.level + math.log(2.0))
        other_low, other_high = quantile_interval(y, self._p, self.level + math.log(2.0))
        return low - other_high, high - other_low

    @property
    def _p(self) -> float:
        return 0.5 if self._quantile is None else self._quantile

    def _evidence(self, x: FloatArray, q: int) -> Evidence:
        stated = None if isinstance(self._noise, Noise) else self._noise.statement
        if isinstance(stated, Bounded):
            lo, width = range_of(stated, q)
            return betting_evidence((x - lo) / width, self.level + math.log(2.0))
        if isinstance(stated, Counts):
            return rate_evidence(float(x.sum()), float(len(x) * stated.trials))
        return catoni_evidence(x / self._units[q])


def range_of(stated: Bounded | Counts, q: int) -> tuple[float, float]:
    """Where results begin, and how far they reach."""
    if isinstance(stated, Counts):
        return 0.0, float(stated.trials)
    lo, hi = (ends[q] if len(ends) > 1 else ends[0] for ends in (stated.lo, stated.hi))
    return lo, hi - lo


def _rescaled(ends: Ends, lo: float, width: float) -> Ends:
    return lo + width * ends[0], lo + width * ends[1]


def _means(streams: Sequence[FloatArray], dim: int) -> FloatArray:
    """(streams, d), 0 of an empty one; positions count from the first result, so that no digits are lost."""
    means = np.zeros((len(streams), dim))
    for i, stream in enumerate(streams):
        if len(stream):
            means[i] = stream[0] + (stream - stream[0]).mean(axis=0)
    return means


def _split(ends: list[list[Ends]], dim: int) -> tuple[FloatArray, FloatArray]:
    both = np.array(ends, dtype=np.float64).reshape(len(ends), dim, 2)
    return both[:, :, 0], both[:, :, 1]


# Intervals for quantiles of a stream under any noise, at all lengths at once (docs/INTERVALS.md).
#
# For the p-quantile q, S counts results ≤ q and S' those < q. Averaged over rates t < p by Jeffreys' law, the
# likelihood of S against that of the rate p is a supermartingale, as P(X ≤ q) ≥ p; and so it is of S' over rates t > p,
# as P(X < q) ≤ p. Each ever reaches 2/a with probability at most a/2, ties or not.


def quantile_interval(x: FloatArray, p: float, level: float) -> Ends:
    """[X_(k), X_(u)] for the p-quantile, infinite where there is no such result; `level` is log(1/a)."""
    n = len(x)
    ranked = np.sort(x)
    few, many = np.arange(0, math.floor(p * n) + 1), np.arange(math.ceil(p * n), n + 1)
    too_few = few[log_evidence(few, n, p, below=True) >= level + math.log(2.0)]
    too_many = many[log_evidence(many, n, p, below=False) >= level + math.log(2.0)]
    low = float(ranked[too_few[-1]]) if too_few.size else -math.inf  # k = 1 + S, and ranked counts from 0
    high = float(ranked[too_many[0] - 1]) if too_many.size else math.inf
    return low, high


def log_evidence(successes: FloatArray | IntArray, n: int, p: float, below: bool) -> FloatArray:
    """log E of so many results on the near side of the quantile: mixed over the rates below p, or above it."""
    from scipy.special import betainc, betaln, xlog1py, xlogy  # here: it takes a while to load

    s = np.asarray(successes, dtype=np.float64)
    mass, prior = (betainc(a, b, p) for a, b in ((s + 0.5, n - s + 0.5), (0.5, 0.5)))
    share = mass / prior if below else (1.0 - mass) / (1.0 - prior)
    averaged = betaln(s + 0.5, n - s + 0.5) - betaln(0.5, 0.5) + np.log(np.maximum(share, 1e-300))
    return np.asarray(averaged - xlogy(s, p) - xlog1py(n - s, -p))
