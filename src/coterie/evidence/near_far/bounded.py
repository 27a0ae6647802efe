"""Near and far tests for results between stated bounds, by betting: nothing else is assumed about them.

A side of a test has contrasts y_s whose mean is at most 0 if its null is true, and which are never below −`reach`. The
wealth Π_s (1 + λ·y_s) of a bettor who stakes λ < 1/`reach` is then a non-negative supermartingale, and so is the mean
of a few bettors with weights that add up to 1. The stakes are fixed at the freeze (docs/RESOLUTION.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from coterie.evidence.near_far.family import Family, Guess, PairTests, Parameters, both_sides, column, dot
from coterie.evidence.near_far.known import LEAST_DRIFT, MULTIPLE_WEIGHTS, MULTIPLES, clearest, gains, side_lag
from coterie.evidence.pairs import log_sum
from coterie.problem.checks import FloatArray, IntArray

LARGEST_SHARE = 0.999
"""Of its wealth that a bettor can lose with one contrast."""

LEAST_REACH = 0.05
"""Of the width of the bounds: a contrast of a near test is taken to reach at least so far below 0. It limits the stakes
where a bound is about as wide as the range, and makes no test invalid."""

_ABOVE_SKEWED = 1.7
"""Times the best stake for the most skewed contrasts: measured on ratings and on clicks."""

_LAG_OF_ONE = 0.25
"""Standard deviations by which a test of one side lags, measured with a right guess."""

LEAST_DEVIATION = 0.01
"""Of the width: the smallest standard deviation of a result that stakes are made for, whatever the guess."""


class BettingTests(PairTests):
    """Sides Π (1 + λ·y_s), y as in `gains`, each a mixture over stakes λ; all have to reach the level.

    `offsets`, `rates`, `reaches`: (n, sides).
    """

    def __init__(
        self, directions: FloatArray | None, offsets: FloatArray, rates: FloatArray, reaches: FloatArray
    ) -> None:
        super().__init__(*offsets.shape)
        self._directions, self._offsets = directions, offsets
        self._stakes = stakes_of(rates, reaches)
        self._logs = np.tile(np.log(MULTIPLE_WEIGHTS), (*offsets.shape, 1))

    def add(self, which: IntArray, item: FloatArray, block: FloatArray) -> None:
        gain = gains(self._directions, self._offsets, which, item - block)
        logs = self._logs[which] + np.log1p(self._stakes[which] * gain[..., None])
        self._logs[which] = logs
        self.count[which] += 1
        self._take(which, log_sum(logs))


def stakes_of(rates: FloatArray, reaches: FloatArray) -> FloatArray:
    """(…, bettors): λ, multiples of each side's rate, but never so much that a contrast could cost everything."""
    return np.asarray(np.minimum(rates[..., None] * MULTIPLES, LARGEST_SHARE / reaches[..., None]))


class BoundedFamily(Family):
    """Results whose coordinates lie in intervals of these widths (d), in scaled units."""

    def __init__(self, norm: str, widths: FloatArray) -> None:
        self.norm, self.dim = norm, widths.size
        self._widths = widths

    def near_parameters(self, bound: FloatArray, ratio: IntArray, guess: Guess, level: float) -> list[Parameters]:
        each = self.coordinate_bounds(bound)
        bounds, reaches = np.repeat(each, 2, axis=1), np.repeat(self._near_reaches(each), 2, axis=1)
        drifts = np.maximum(bounds - both_sides(guess.gap), LEAST_DRIFT * bounds)
        variances = (1.0 + 1.0 / ratio)[:, None] * np.repeat(self._variance(guess), 2)
        return [{"rates": rates} for rates in best_rates(drifts, variances, reaches).tolist()]

    def far_parameters(self, bound: FloatArray, ratio: IntArray, guess: Guess, level: float) -> list[Parameters]:
        variance = self._variance(guess)
        directions = self._far_directions(bound, guess.gap, variance)
        spreads = (1.0 + 1.0 / ratio) * (directions**2 @ variance)
        drifts = dot(directions, guess.gap) - self.far_offsets(bound, directions)
        drifts = np.maximum(drifts, LEAST_DRIFT * np.sqrt(spreads) / 3.0)
        rates = best_rates(drifts, spreads, self._far_reaches(bound, directions))
        return [{"direction": u, "rate": r} for u, r in zip(directions.tolist(), rates.tolist(), strict=True)]

    def near_tests(self, bound: FloatArray, ratio: IntArray, parameters: Sequence[Parameters]) -> PairTests:
        bounds = self.coordinate_bounds(bound)
        reaches = np.repeat(self._near_reaches(bounds), 2, axis=1)
        rates = column(parameters, "rates").reshape(len(parameters), 2 * self.dim)
        return BettingTests(None, np.repeat(bounds, 2, axis=1), rates, reaches)

    def far_tests(self, bound: FloatArray, ratio: IntArray, parameters: Sequence[Parameters]) -> PairTests:
        directions = column(parameters, "direction").reshape(len(parameters), self.dim)
        offsets, reaches = self.far_offsets(bound, directions), self._far_reaches(bound, directions)
        return BettingTests(directions, offsets[:, None], column(parameters, "rate")[:, None], reaches[:, None])

    def near_needed(
        self, bound: FloatArray, ratio: int | IntArray, gap: FloatArray, guess: Guess, level: float
    ) -> FloatArray:
        bounds = self.coordinate_bounds(bound)
        drifts = np.repeat(bounds, 2, axis=-1) - both_sides(gap)
        variances = (1.0 + 1.0 / np.asarray(ratio))[..., None] * np.repeat(self._variance(guess), 2)
        return betting_needed(drifts, variances, np.repeat(self._near_reaches(bounds), 2, axis=-1), level)

    def far_needed(
        self, bound: FloatArray, ratio: int | IntArray, gap: FloatArray, guess: Guess, level: float
    ) -> FloatArray:
        variance = self._variance(guess)
        if self.norm == "each":
            over = np.maximum(np.abs(gap) - bound, 0.0) / variance
        else:
            over = np.abs(gap)
        over = np.where(over.max(axis=1, keepdims=True) > 0.0, over, 1.0)  # no direction is far: any will do
        directions = over / np.linalg.norm(over, axis=1)[:, None]
        offsets = self.far_offsets(np.broadcast_to(bound, gap.shape), directions)
        drifts = dot(directions, np.abs(gap)) - offsets
        variances = (1.0 + 1.0 / np.asarray(ratio)) * (directions**2 @ variance)
        reaches = directions @ self._widths + offsets
        return betting_needed(drifts[:, None], variances[:, None], reaches[:, None], level)

    def _far_reaches(self, bound: FloatArray, directions: FloatArray) -> FloatArray:
        return np.asarray(np.abs(directions) @ self._widths + self.far_offsets(bound, directions))

    def _near_reaches(self, bounds: FloatArray) -> FloatArray:
        return np.maximum(self._widths - bounds, LEAST_REACH * self._widths)

    def _variance(self, guess: Guess) -> FloatArray:
        return np.maximum(guess.variance, (LEAST_DEVIATION * self._widths) ** 2)

    def _far_directions(self, bound: FloatArray, gap: FloatArray, variance: FloatArray) -> FloatArray:
        """(n, d): the unit directions in which gaps are best shown to be far."""
        directions = gap
        if self.norm == "each":
            directions = np.where(gap < 0.0, -1.0, 1.0) * np.maximum(np.abs(gap) - bound, 0.0) / variance
        lengths = np.linalg.norm(directions, axis=1)[:, None]
        alone = clearest(gap, (np.abs(gap) - bound) / np.sqrt(variance))
        return np.where(lengths > 0.0, directions / np.where(lengths > 0.0, lengths, 1.0), alone)


def best_rates(drifts: FloatArray, variances: FloatArray, reaches: FloatArray) -> FloatArray:
    """Stakes that suit contrasts of these positive means and variances, which are never below −`reaches`.

    drift/(variance + drift²) is best for contrasts that are about symmetric. Rare and large losses (clicks at a small
    rate) call for less: at worst all of the variance is from contrasts of −reach, and somewhat more than the best stake
    for that case loses nothing there that could be measured.
    """
    symmetric = drifts / (variances + drifts**2)
    return np.asarray(np.minimum(symmetric, _ABOVE_SKEWED * _skewed_stakes(drifts, variances, reaches)))


def _skewed_stakes(drifts: FloatArray, variances: FloatArray, reaches: FloatArray) -> FloatArray:
    """The best stakes if a contrast has one of two values, of which the lower is −reach."""
    upper = drifts + variances / (drifts + reaches)
    return np.asarray(drifts / (reaches * upper))


def betting_needed(drifts: FloatArray, variances: FloatArray, reaches: FloatArray, level: float) -> FloatArray:
    """(n) forecasts of contrasts until all sides reach the level, from drifts, variances, reaches (n, sides).

    Infinite where a drift is not positive.
    """
    drift = np.where(drifts > 0.0, drifts, 1.0)
    stake = np.minimum(drift / (variances + drift**2), LARGEST_SHARE / reaches)
    noise = stake**2 * variances / (1.0 + stake * drift) ** 2
    symmetric = np.log1p(stake * drift) - 0.5 * noise  # of log(1 + λ·y), to the second order about the mean of y
    skewed = np.maximum(_skewed_growth(drift, variances, reaches), 0.1 * symmetric)
    growth = np.sqrt(symmetric * skewed)  # between the two: nobody knows how skewed the results are
    slowest = growth.min(axis=-1, keepdims=True)
    peers = np.maximum((growth <= 2.25 * slowest).sum(axis=-1), 1)
    # A capped stake fluctuates less than the best one, whose logarithm has a variance of twice its growth.
    restless = np.sqrt(np.minimum(noise / (2.0 * growth), 1.0)).max(axis=-1)
    lag = np.where(peers == 1, _LAG_OF_ONE, side_lag(peers)) * restless
    price = -math.log(MULTIPLE_WEIGHTS[-1])
    needed = np.maximum((math.sqrt(2.0 * level) + lag) ** 2, 2.0 * (level + price)) / (2.0 * slowest[..., 0])
    return np.where((drifts > 0.0).all(axis=-1), np.maximum(needed, 1.0), np.inf)


def _skewed_growth(drifts: FloatArray, variances: FloatArray, reaches: FloatArray) -> FloatArray:
    """The least growth that results of these means, variances and reaches can have at the best stake for them."""
    upper = drifts + variances / (drifts + reaches)
    stake = np.minimum(drifts / (reaches * upper), LARGEST_SHARE / reaches)
    share = (upper - drifts) / (upper + reaches)  # of contrasts that are −reach
    return np.asarray(share * np.log1p(-stake * reaches) + (1.0 - share) * np.log1p(stake * upper))
