"""Near and far tests for counts of successes, by exponentials of the counts themselves.

A contrast has X successes of the item in t trials and X' of the reference in R·t. A side of a test has tilts a and b,
fixed at the freeze, and adds a·X + b·X' for every contrast; MULTIPLES of them cost what is said below for
the side's null, in which p is an item's rate and p' the reference's:

- near, side (c, g): g·(p_c − p'_c) ≥ h_c. Multiplier m ≥ 0: ν_c = −g·m, and support(ν) = −m·h_c.
- far, "each": |p_c − p'_c| ≤ h_c for all c, and support(ν) = Σ_c |ν_c|·h_c.
- far, "distance": ‖(p − p')·t/s‖ ≤ bound, and support(ν) = bound·‖ν·s‖/t.

h_c = bound_c·s_c/t, s the scale; a near distance is shared out equally, bound/√d for each coordinate. The evidence is
log Σ_k w_k·exp(k·(Σ a·X + b·X') − n·cost_k), and for a far test the tilts of all coordinates are added up.

*What an exponential of counts costs:* a bound of its mean over all pairs of rates that a null allows.

X successes in t trials at the rate p, and X' in R·t at the rate p', have, for any tilts a and b,

    log E[exp(a·X + b·X')] = t·ℓ(a, p) + R·t·ℓ(b, p'),  with  ℓ(a, p) = log(1 + p·(e^a − 1)),

concave in (p, p'). A null is a convex set of pairs of rates, in one coordinate or in d. For any multipliers ν (d), by
weak duality, no pair of rates in the null has more than

    t·( support(ν) + Σ_c [φ(a_c, ν_c) + R·φ(b_c, −ν_c/R)] ),   φ(a, ν) = max over p in [0, 1] of ℓ(a, p) − ν·p,
    support(ν) = the largest Σ_c ν_c·(p_c − p'_c) in the null.

φ has a closed form, so whoever checks a test needs no optimisation; the best multipliers are found here, once, when a
test is made. exp(a·X + b·X' − cost) then has a mean of at most 1 whatever the rates, and its products over contrasts
are test martingales. The best tilts for guessed rates (p₁, p₁') are the log-odds ratios between them and the closest
pair of rates in the null, by relative entropy (Turner, Ly and Grünwald 2024 for one trial each).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coterie.evidence.near_far.family import Family, Guess, PairTests, Parameters, column, dot
from coterie.evidence.near_far.known import LEAST_DRIFT, MULTIPLE_WEIGHTS, MULTIPLES, one_sided_needed
from coterie.evidence.pairs import log_sum
from coterie.problem.checks import FloatArray, IntArray

_HALVINGS = 60
_SMALLEST_MULTIPLIER, _LARGEST_MULTIPLIER = 1e-12, 1e6

LARGEST_TILT = 30.0
"""Of one success: e^30 times the wealth is enough for any level."""

_NEAREST_RATE = 1e-6
"""Guessed rates are taken to be at least this far from 0 and from 1."""


def largest_log_mean(tilts: FloatArray, multipliers: FloatArray) -> FloatArray:
    """φ(a, ν): the largest log(1 + p·(e^a − 1)) − ν·p over rates p in [0, 1], elementwise."""
    rates = _best_rates(tilts, multipliers)
    return np.asarray(np.log1p(rates * np.expm1(tilts)) - multipliers * rates)


def _best_rates(tilts: FloatArray, multipliers: FloatArray) -> FloatArray:
    """The rate p at which φ is reached."""
    slope = np.expm1(tilts)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = 1.0 / multipliers - 1.0 / slope
    alike = np.sign(slope) * np.sign(multipliers) > 0.0
    at_ends = np.where(np.where(slope == 0.0, -multipliers, slope) > 0.0, 1.0, 0.0)
    return np.where(alike, np.clip(np.where(alike, between, 0.0), 0.0, 1.0), at_ends)


def closest_tilts(
    item: FloatArray, reference: FloatArray, ratio: int | IntArray, coefficients: FloatArray, limit: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Tilts of items and references (n, d) that tell these rates best from the null Σ_c k_c·(p_c − p'_c) ≤ limit (n).

    Rates lie strictly between 0 and 1; coefficients k (n, d); `ratio`: R, one for all or (n, 1).
    """

    def excess(multiplier: FloatArray) -> FloatArray:
        nu = multiplier[:, None] * coefficients
        return _sum(coefficients * (_null_rate(item, nu) - _null_rate(reference, -nu / ratio))) - limit

    nu = _root(excess, limit.size)[:, None] * coefficients
    return _log_odds_ratio(item, _null_rate(item, nu)), _log_odds_ratio(reference, _null_rate(reference, -nu / ratio))


def best_multipliers(
    item: FloatArray, reference: FloatArray, ratio: int | IntArray, coefficients: FloatArray, limit: FloatArray
) -> FloatArray:
    """(n) multipliers m ≥ 0 for which ν = m·k costs least, for tilts and coefficients k (n, d) and limits (n)."""

    def excess(multiplier: FloatArray) -> FloatArray:  # minus the derivative of the cost, which is convex in m
        nu = multiplier[:, None] * coefficients
        return _sum(coefficients * (_best_rates(item, nu) - _best_rates(reference, -nu / ratio))) - limit

    return _root(excess, limit.size)


def half_growth_variance(rate: FloatArray, null: FloatArray) -> FloatArray:
    """V with (p − q)²/(2V) = the relative entropy of a rate p to a rate q, but for terms of the fourth order."""
    middle = (rate + 2.0 * null) / 3.0
    return middle * (1.0 - middle)


def _null_rate(rate: FloatArray, nu: FloatArray) -> FloatArray:
    """The rate q with p − q = ν·q·(1 − q): where the relative entropy of p plus ν·q has its least value.

    The root of a quadratic, from the side on which no digits are lost.
    """
    upper = nu < 0.0
    p, size = np.where(upper, 1.0 - rate, rate), np.abs(nu)
    root = 2.0 * p / (1.0 + size + np.sqrt((1.0 - size) ** 2 + 4.0 * size * (1.0 - p)))
    return np.where(upper, 1.0 - root, root)


def _log_odds_ratio(rate: FloatArray, null: FloatArray) -> FloatArray:
    low = 1e-12
    q = np.clip(null, low, 1.0 - low)
    return np.log(rate / q) - np.log((1.0 - rate) / (1.0 - q))


def _sum(values: FloatArray) -> FloatArray:
    return np.asarray(values.sum(axis=1))


def _root(excess: Callable[[FloatArray], FloatArray], size: int) -> FloatArray:
    """(size) where decreasing functions change their sign, by bisection; the ends of the range if they do not."""
    low = np.full(size, np.log(_SMALLEST_MULTIPLIER))
    high = np.full(size, np.log(_LARGEST_MULTIPLIER))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = excess(np.exp(middle)) > 0.0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.exp(0.5 * (low + high)))


class TiltedTests(PairTests):
    """Sides Σ a·X + b·X' of counts, mixtures over multiples of the tilts; all have to reach the level.

    `item`, `reference`: tilts, (n, 2d) of the two sides of every coordinate of near tests, (n, d) of far tests, whose
    only side adds them up (`is_far`). `costs`: of a contrast (n, sides, multiples). `scale`: of results, which are
    counts divided by it. `ratio`: (n) results in a block.
    """

    def __init__(
        self,
        item: FloatArray,
        reference: FloatArray,
        costs: FloatArray,
        scale: FloatArray,
        ratio: IntArray,
        is_far: bool,
    ) -> None:
        super().__init__(*costs.shape[:2])
        self._item, self._reference, self._costs, self._scale, self._ratio = item, reference, costs, scale, ratio
        self._is_far = is_far
        self._sums = np.zeros(costs.shape[:2])

    def add(self, which: IntArray, item: FloatArray, block: FloatArray) -> None:
        self.count[which] += 1
        successes = np.rint(item * self._scale)
        others = np.rint(block * self._scale * self._ratio[which][:, None])
        if self._is_far:
            added = dot(self._item[which], successes) + dot(self._reference[which], others)
            self._sums[which] += added[:, None]
        else:
            self._sums[which] += self._item[which] * np.repeat(successes, 2, axis=1)
            self._sums[which] += self._reference[which] * np.repeat(others, 2, axis=1)
        terms = np.log(MULTIPLE_WEIGHTS) + self._sums[which][..., None] * MULTIPLES
        terms -= self.count[which][:, None, None] * self._costs[which]
        self._take(which, log_sum(terms))


class CountsFamily(Family):
    """Successes out of `trials` in each coordinate; results are counts divided by `scale` (d)."""

    def __init__(self, norm: str, trials: int, scale: FloatArray) -> None:
        self.norm, self.dim = norm, scale.size
        self._trials, self._scale = trials, scale

    def near_parameters(self, bound: FloatArray, ratio: IntArray, guess: Guess, level: float) -> list[Parameters]:
        n, sides = len(bound), 2 * self.dim
        signs, limits = np.tile([1.0, -1.0], self.dim), np.repeat(self._near_limits(bound), 2, axis=1)
        item, reference = (np.repeat(rates, 2, axis=1) for rates in self._guessed_rates(guess))
        # However hopeless the guess, a test is made for some drift: the item's rate is moved, then the reference's.
        most = (1.0 - LEAST_DRIFT) * limits
        item = _inner(signs * np.minimum(signs * item, signs * reference + most))
        reference = _inner(signs * np.maximum(signs * reference, signs * item - most))
        # Every side is a row of one coordinate.
        k, limit, blocks = np.tile(-signs, n)[:, None], -limits.ravel(), np.repeat(ratio, sides)[:, None]
        a, b = closest_tilts(item.reshape(-1, 1), reference.reshape(-1, 1), blocks, k, limit)
        a, b = (np.clip(tilt, -LARGEST_TILT, LARGEST_TILT) for tilt in (a, b))
        by_factor = [best_multipliers(factor * a, factor * b, blocks, k, limit) for factor in MULTIPLES.tolist()]
        multipliers = np.array(by_factor).T.reshape(n, sides, MULTIPLES.size)
        return _written(a.reshape(n, sides), b.reshape(n, sides), multipliers)

    def far_parameters(self, bound: FloatArray, ratio: IntArray, guess: Guess, level: float) -> list[Parameters]:
        item, reference = self._far_rates(bound, guess)
        gap, n, d = item - reference, len(bound), self.dim
        if self.norm == "each":  # every coordinate is a row of its own
            signs, limits = np.where(gap < 0.0, -1.0, 1.0), self._far_limits(bound)
            k, limit, blocks = signs.reshape(-1, 1), limits.ravel(), np.repeat(ratio, d)[:, None]
            a, b = closest_tilts(item.reshape(-1, 1), reference.reshape(-1, 1), blocks, k, limit)
            used = (np.abs(gap) > limits).reshape(-1, 1)
        else:
            scaled = gap * self._trials / self._scale
            lengths = np.linalg.norm(scaled, axis=1)[:, None]
            used = lengths > bound[:, :1]  # else nothing can be told apart: a test that never says anything
            k = scaled / np.where(used, lengths, 1.0) * self._trials / self._scale
            limit, blocks = bound[:, 0], ratio[:, None]
            a, b = closest_tilts(item, reference, blocks, k, limit)
        a, b = (np.where(used, np.clip(tilt, -LARGEST_TILT, LARGEST_TILT), 0.0) for tilt in (a, b))
        each = [best_multipliers(factor * a, factor * b, blocks, k, limit) for factor in MULTIPLES.tolist()]
        nu = np.where(used, np.array(each)[:, :, None] * k, 0.0).reshape(MULTIPLES.size, n, d)
        return _written(a.reshape(n, d), b.reshape(n, d), nu.swapaxes(0, 1))

    def near_tests(self, bound: FloatArray, ratio: IntArray, parameters: Sequence[Parameters]) -> PairTests:
        n, sides = len(parameters), 2 * self.dim
        a, b = (column(parameters, name).reshape(n, sides) for name in ("item", "reference"))
        m = column(parameters, "multipliers").reshape(n, sides, MULTIPLES.size)
        nu, blocks = -np.tile([1.0, -1.0], self.dim)[:, None] * m, ratio[:, None, None]
        costs = largest_log_mean(a[..., None] * MULTIPLES, nu)
        costs += blocks * largest_log_mean(b[..., None] * MULTIPLES, -nu / blocks)
        costs = self._trials * (costs - m * np.repeat(self._near_limits(bound), 2, axis=1)[..., None])
        return TiltedTests(a, b, costs, self._scale, ratio, False)

    def far_tests(self, bound: FloatArray, ratio: IntArray, parameters: Sequence[Parameters]) -> PairTests:
        n, d = len(parameters), self.dim
        a, b = (column(parameters, name).reshape(n, d) for name in ("item", "reference"))
        nu = column(parameters, "multipliers").reshape(n, MULTIPLES.size, d)
        factors, blocks = MULTIPLES[:, None], ratio[:, None, None]
        costs = largest_log_mean(a[:, None] * factors, nu)
        costs += blocks * largest_log_mean(b[:, None] * factors, -nu / blocks)
        if self.norm == "each":
            support = (np.abs(nu) * self._far_limits(bound)[:, None]).sum(axis=2)
        else:
            support = bound[:, :1] * np.linalg.norm(nu * self._scale, axis=2) / self._trials
        costs = self._trials * (costs.sum(axis=2) + support)
        return TiltedTests(a, b, costs[:, None], self._scale, ratio, True)

    def near_needed(
        self, bound: FloatArray, ratio: int | IntArray, gap: FloatArray, guess: Guess, level: float
    ) -> FloatArray:
        reference = self._typical_rates(guess)
        rates = gap * self._scale / self._trials
        limits, sides = self._near_limits(bound), []
        for sign in (1.0, -1.0):
            room = limits - sign * rates
            speed = self._speeds(rates, reference, sign * np.maximum(room, 0.0), ratio)
            sides.append(np.where(room > 0.0, speed, 0.0))
        drifts = np.sqrt(np.stack(sides, axis=2).reshape(len(gap), -1))
        return np.maximum(one_sided_needed(drifts, np.ones(2 * self.dim), level), 1.0)

    def far_needed(
        self, bound: FloatArray, ratio: int | IntArray, gap: FloatArray, guess: Guess, level: float
    ) -> FloatArray:
        reference = self._typical_rates(guess)
        rates = gap * self._scale / self._trials
        if self.norm == "each":
            over = np.maximum(np.abs(rates) - self._far_limits(bound), 0.0)
        else:
            lengths = np.maximum(np.linalg.norm(gap, axis=1), 1e-300)[:, None]
            over = np.abs(rates) * np.maximum(1.0 - bound[..., :1] / lengths, 0.0)
        speeds = self._speeds(rates, reference, -np.sign(rates) * over, ratio).sum(axis=1)
        return np.maximum(one_sided_needed(np.sqrt(speeds)[:, None], np.ones(1), level), 1.0)

    def _speeds(
        self, gap: FloatArray, reference: FloatArray, drift: FloatArray, ratio: int | IntArray
    ) -> FloatArray:  # fmt: skip
        """(n, d): twice the growth of the evidence by a contrast, for gaps of rates that `drift` takes to the null."""
        p, q = _inner(reference + gap), np.broadcast_to(reference, gap.shape)
        blocks = np.broadcast_to(np.asarray(ratio)[..., None], gap.shape)
        share = blocks / (blocks + 1.0)  # of the drift, which the item's rate takes on
        for _ in range(3):
            item = half_growth_variance(p, _inner(p + share * drift))
            other = half_growth_variance(q, _inner(q - (1.0 - share) * drift)) / blocks
            share = item / (item + other)
        return np.asarray(self._trials * drift**2 / (item + other))

    def _near_limits(self, bound: FloatArray) -> FloatArray:
        """(d): the rates of a near pair differ by less than these."""
        return self._far_limits(self.coordinate_bounds(bound))

    def _far_limits(self, bound: FloatArray) -> FloatArray:
        return np.asarray(bound * self._scale / self._trials)

    def _guessed_rates(self, guess: Guess) -> tuple[FloatArray, FloatArray]:
        """Rates of the item and the reference, drawn towards ½ by about one trial: never 0 or 1."""
        variance = np.where(guess.variance > 0.0, guess.variance, np.inf)
        results = np.clip(np.where(guess.doubt > 0.0, variance / np.maximum(guess.doubt, 1e-300), 1e3), 1.0, 1e9)
        weight = 1.0 / (results * self._trials)
        item, reference = (
            _inner((means * self._scale / self._trials + 0.5 * weight) / (1.0 + weight))
            for means in (guess.item, guess.reference)
        )
        return item, reference

    def _typical_rates(self, guess: Guess) -> FloatArray:
        """Rates that have the variance of the guess; above ½ only where the reference's mean is."""
        variance = np.clip(guess.variance * self._scale**2 / self._trials, _NEAREST_RATE, 0.25)
        lower = 0.5 - np.sqrt(0.25 - variance)
        return _inner(np.where(guess.reference * self._scale > 0.5 * self._trials, 1.0 - lower, lower))

    def _far_rates(self, bound: FloatArray, guess: Guess) -> tuple[FloatArray, FloatArray]:
        """Guessed rates of which at least one coordinate is far, if any can be."""
        item, reference = self._guessed_rates(guess)
        gap, limits = item - reference, self._far_limits(bound)
        far = (np.abs(gap) > limits).any(axis=1)
        if self.norm == "distance":
            far |= np.linalg.norm(gap * self._trials / self._scale, axis=1) > bound[:, 0]
        deviation = np.sqrt(reference * (1.0 - reference) / self._trials)
        rows, best = np.arange(len(gap)), np.argmax((np.abs(gap) - limits) / deviation, axis=1)
        signs = np.where(gap[rows, best] < 0.0, -1.0, 1.0)
        there, out = reference[rows, best], limits[rows, best] + LEAST_DRIFT * deviation[rows, best] / 3.0
        item[rows, best] = np.where(far, item[rows, best], _inner(there + signs * out))
        return item, reference


def _written(item: FloatArray, reference: FloatArray, multipliers: FloatArray) -> list[Parameters]:
    rows = zip(item.tolist(), reference.tolist(), multipliers.tolist(), strict=True)
    return [{"item": a, "reference": b, "multipliers": m} for a, b, m in rows]


def _inner(rates: FloatArray) -> FloatArray:
    return np.clip(rates, _NEAREST_RATE, 1.0 - _NEAREST_RATE)
