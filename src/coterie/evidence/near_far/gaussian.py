"""Near and far tests for Gaussian noise of unknown covariance: those of a known noise, with upper bounds of variances.

The bounds are from a fixed first design: the first n₀ results that were asked for of every arm, SS_c the sum of their
squared distances from their arm's mean in coordinate c, which is σ_c² times a χ² of ν degrees of freedom whatever the
means. So σ_c² ≤ SS_c/χ²_{ν; a} but with probability a. The number of results is fixed beforehand, so it does not matter
that later asks depend on them; the tests are wrong with probability at most 0.9·δ where the bounds hold.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincinv

from coterie.evidence.near_far.family import Guess
from coterie.evidence.near_far.known import KnownFamily, clearest, far_information
from coterie.problem.checks import FloatArray, IntArray

SHARE_OF_BOUNDS = 0.1
"""Of δ: the probability that a bound of a variance is wrong."""

_DEGREES = 120
"""Of freedom that the first design gives at least: with δ = 0.1 a bound is then about 1.4 times the variance."""

_RESOLUTION = 1e-9
"""Of the largest difference of results: a bound of a standard deviation is at least this."""


def first_results(n_arms: int, dim: int, shape: str) -> int:
    """n₀: how many results of every arm the bounds of the variances are from."""
    return max(2, 1 + math.ceil(_DEGREES / (n_arms * (dim if shape == "scalar" else 1))))


def upper_variances(
    results: FloatArray, shape: str, delta: float, scale: FloatArray, least_reach: float = 1.0
) -> FloatArray:
    """(d) upper bounds σ₊² of the variances from the first results (M, n₀, d); one is wrong with probability 0.1·δ.

    Results and bounds are in scaled units, `scale` (d) is their unit: the one variance of the shape "scalar" is that of
    the measurements themselves. Results that are all equal within each arm have no Gaussian noise: the bound is then a
    tiny number instead of 0, a share of the largest result or of `least_reach`. Where the units are the user's own,
    `least_reach` is 0: then it is a share of the largest result, and of 1 only if all results are the same.
    """
    n_arms, n, dim = results.shape
    inner = results - results[:, :1]  # exactly 0 where all results of an arm are equal
    squares = ((inner - inner.mean(axis=1, keepdims=True)) ** 2).sum(axis=(0, 1))
    degrees = n_arms * (n - 1)
    if shape == "scalar":
        bounds = float(squares @ scale**2) / _quantile(SHARE_OF_BOUNDS * delta, degrees * dim) / scale**2
    else:
        bounds = squares / _quantile(SHARE_OF_BOUNDS * delta / dim, degrees)
    reach = max(least_reach, float(np.abs(results).max())) or 1.0
    return np.asarray(np.maximum(bounds, (_RESOLUTION * reach) ** 2))


def _quantile(probability: float, degrees: int) -> float:
    """Of χ² with these degrees of freedom."""
    return float(2.0 * gammaincinv(degrees / 2, probability))


class GaussianFamily(KnownFamily):
    """Variances of at most `upper` (d), in scaled units; `shape` says what is known about correlations.

    "scalar" and "diagonal": the coordinates are independent; "full": any correlations.
    """

    def __init__(self, norm: str, shape: str, upper: FloatArray) -> None:
        super().__init__(norm, np.diag(upper))
        self._is_full = shape == "full"
        self._deviations = np.sqrt(upper)

    def direction_proxy(self, directions: FloatArray) -> FloatArray:
        """(n) the variance of one result in directions, or more: with any correlations standard deviations add up."""
        if self._is_full:
            return np.asarray((np.abs(directions) @ self._deviations) ** 2)
        return super().direction_proxy(directions)

    @property
    def distance_proxy(self) -> float:
        """The variance of one result in every direction, or more: with any correlations the trace."""
        return float(self.variance.sum()) if self._is_full else super().distance_proxy

    def far_directions(self, bound: FloatArray, gap: FloatArray) -> FloatArray:
        """(n, d): the unit directions in which gaps are best shown to be far; with any correlations a coordinate may be
        best."""
        directions = super().far_directions(bound, gap)
        if not self._is_full:
            return directions
        alone = clearest(gap, (np.abs(gap) - bound) / self._deviations)
        better = self.far_speeds(bound, gap, alone) > self.far_speeds(bound, gap, directions)
        return np.where(better[:, None], alone, directions)

    def far_needed(
        self, bound: FloatArray, ratio: int | IntArray, gap: FloatArray, guess: Guess, level: float
    ) -> FloatArray:
        """(n) forecasts of contrasts for true gaps (n, d); infinite where a gap is not far."""
        if not self._is_full:
            return super().far_needed(bound, ratio, gap, guess, level)
        speeds = ((np.abs(gap) - bound) / self._deviations).max(axis=1)
        if self.norm == "distance":
            lengths = np.linalg.norm(gap, axis=1)
            along = np.where(lengths > 0.0, np.abs(gap) @ self._deviations, 1.0)
            speeds = np.maximum(speeds, (lengths - bound[..., 0]) * lengths / along)
        with np.errstate(divide="ignore"):
            return np.asarray(
                (1.0 + 1.0 / np.asarray(ratio)) * far_information(level) / np.maximum(speeds, 0.0) ** 2
            )  # fmt: skip
