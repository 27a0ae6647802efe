"""Near and far tests for results between stated bounds, by betting: nothing else is assumed about them.

A side of a test has contrasts y_s whose mean is at most 0 if its null is true, and which are never below −`reach`. The
wealth Π_s (1 + λ·y_s) of a bettor who stakes λ < 1/`reach` is then a non-negative supermartingale, and so is the mean
of a few bettors with weights that add up to 1. The stakes are fixed at the freeze (docs/RESOLUTION.md).
"""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray
from coterie.theory.near_far.family import Family, Guess, PairTest, Parameters
from coterie.theory.near_far.known import LEAST_DRIFT
from coterie.theory.near_far.one_sided import MULTIPLE_WEIGHTS, MULTIPLES, side_lag

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


class BettingTest(PairTest):
    """Sides Π (1 + λ·y_s), y = offsets − directions·Y, each a mixture over stakes λ; all have to reach the level.

    `sides`: log E of each one now.
    """

    sides: FloatArray

    def __init__(self, directions: FloatArray, offsets: FloatArray, rates: FloatArray, reaches: FloatArray) -> None:
        self._directions, self._offsets = directions, offsets
        self._stakes = stakes_of(rates, reaches)
        self._logs = np.tile(np.log(MULTIPLE_WEIGHTS), (offsets.size, 1))
        self.sides = np.zeros(offsets.size)
        self._best = np.full(offsets.size, -np.inf)
        self.count, self.evidence = 0, -math.inf

    def add(self, item: FloatArray, block: FloatArray) -> None:
        gain = self._offsets - self._directions @ (item - block.mean(axis=0))
        self._logs += np.log1p(self._stakes * gain[:, None])
        largest = self._logs.max(axis=1)
        self.sides = largest + np.log(np.exp(self._logs - largest[:, None]).sum(axis=1))
        np.maximum(self._best, self.sides, out=self._best)
        self.count += 1
        self.evidence = float(self._best.min())


def stakes_of(rates: FloatArray, reaches: FloatArray) -> FloatArray:
    """(sides, bettors): λ, multiples of each side's rate, but never so much that a contrast could cost everything."""
    return np.asarray(np.minimum(rates[:, None] * MULTIPLES, LARGEST_SHARE / reaches[:, None]))


class BoundedFamily(Family):
    """Results whose coordinates lie in intervals of these widths (d), in scaled units."""

    def __init__(self, norm: str, widths: FloatArray) -> None:
        self.norm, self.dim = norm, widths.size
        self._widths = widths

    def near_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        each = self.coordinate_bounds(bound)
        bounds, reaches = np.repeat(each, 2), np.repeat(self._near_reaches(each), 2)
        drifts = np.maximum(bounds - _signed(guess.gap[None])[0], LEAST_DRIFT * bounds)
        variances = (1.0 + 1.0 / ratio) * np.repeat(self._variance(guess), 2)
        return {"rates": best_rates(drifts, variances, reaches).tolist()}

    def far_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        variance = self._variance(guess)
        direction = self._far_direction(bound, guess.gap, variance)
        spread = (1.0 + 1.0 / ratio) * float(direction**2 @ variance)
        drift = float(direction @ guess.gap) - self.far_offset(bound, direction)
        drift = max(drift, LEAST_DRIFT * math.sqrt(spread) / 3.0)
        reach = self._far_reach(bound, direction)
        rate = best_rates(np.array([drift]), np.array([spread]), np.array([reach]))[0]
        return {"direction": direction.tolist(), "rate": float(rate)}

    def near_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> PairTest:
        directions = np.repeat(np.eye(self.dim), 2, axis=0)
        directions[1::2] *= -1.0
        bounds = self.coordinate_bounds(bound)
        reaches = np.repeat(self._near_reaches(bounds), 2)
        return BettingTest(directions, np.repeat(bounds, 2), np.array(parameters["rates"], dtype=float), reaches)

    def far_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> PairTest:
        direction = np.array(parameters["direction"], dtype=float)
        offset, reach = self.far_offset(bound, direction), self._far_reach(bound, direction)
        rate = np.array([float(parameters["rate"])])
        return BettingTest(-direction[None], np.array([-offset]), rate, np.array([reach]))

    def near_needed(self, bound: FloatArray, ratio: int, gap: FloatArray, guess: Guess, level: float) -> FloatArray:
        bounds = self.coordinate_bounds(bound)
        drifts = np.repeat(bounds, 2) - _signed(gap)
        variances = (1.0 + 1.0 / ratio) * np.repeat(self._variance(guess), 2)
        return betting_needed(drifts, variances, np.repeat(self._near_reaches(bounds), 2), level)

    def far_needed(self, bound: FloatArray, ratio: int, gap: FloatArray, guess: Guess, level: float) -> FloatArray:
        variance = self._variance(guess)
        if self.norm == "each":
            over = np.maximum(np.abs(gap) - bound, 0.0) / variance
        else:
            over = np.abs(gap)
        over = np.where(over.max(axis=1, keepdims=True) > 0.0, over, 1.0)  # no direction is far: any will do
        directions = over / np.linalg.norm(over, axis=1)[:, None]
        offsets = directions @ bound if self.norm == "each" else np.full(len(gap), bound[0])
        drifts = (directions * np.abs(gap)).sum(axis=1) - offsets
        variances = (1.0 + 1.0 / ratio) * (directions**2 @ variance)
        reaches = directions @ self._widths + offsets
        return betting_needed(drifts[:, None], variances[:, None], reaches[:, None], level)

    def coordinate_bounds(self, bound: FloatArray) -> FloatArray:
        """(d): a gap is near if each coordinate is within these; a distance is shared out equally."""
        return bound if self.norm == "each" else bound / math.sqrt(self.dim)

    def far_offset(self, bound: FloatArray, direction: FloatArray) -> float:
        """The most that a gap that is not far can have in a direction."""
        if self.norm == "each":
            return float(np.abs(direction) @ bound)
        return float(bound[0]) * float(np.linalg.norm(direction))

    def _far_reach(self, bound: FloatArray, direction: FloatArray) -> float:
        return float(np.abs(direction) @ self._widths) + self.far_offset(bound, direction)

    def _near_reaches(self, bounds: FloatArray) -> FloatArray:
        return np.maximum(self._widths - bounds, LEAST_REACH * self._widths)

    def _variance(self, guess: Guess) -> FloatArray:
        return np.maximum(guess.variance, (LEAST_DEVIATION * self._widths) ** 2)

    def _far_direction(self, bound: FloatArray, gap: FloatArray, variance: FloatArray) -> FloatArray:
        """The unit direction in which a gap is best shown to be far."""
        signs = np.where(gap < 0.0, -1.0, 1.0)
        if self.norm == "distance":
            found = gap
        else:
            found = signs * np.maximum(np.abs(gap) - bound, 0.0) / variance
        length = float(np.linalg.norm(found))
        if length > 0.0:
            return np.asarray(found / length)
        best = int(np.argmax((np.abs(gap) - bound) / np.sqrt(variance)))
        return np.where(np.arange(self.dim) == best, signs, 0.0)


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
    found = np.maximum((math.sqrt(2.0 * level) + lag) ** 2, 2.0 * (level + price)) / (2.0 * slowest[..., 0])
    return np.where((drifts > 0.0).all(axis=-1), np.maximum(found, 1.0), np.inf)


def _skewed_growth(drifts: FloatArray, variances: FloatArray, reaches: FloatArray) -> FloatArray:
    """The least growth that results of these means, variances and reaches can have at the best stake for them."""
    upper = drifts + variances / (drifts + reaches)
    stake = np.minimum(drifts / (reaches * upper), LARGEST_SHARE / reaches)
    share = (upper - drifts) / (upper + reaches)  # of contrasts that are −reach
    return np.asarray(share * np.log1p(-stake * reaches) + (1.0 - share) * np.log1p(stake * upper))


def _signed(gap: FloatArray) -> FloatArray:
    """(n, 2d): gaps (n, d) seen from above and from below, coordinate by coordinate."""
    return np.stack([gap, -gap], axis=2).reshape(len(gap), -1)
