"""Near and far tests for counts of successes, by exponentials of the counts themselves.

A contrast has X successes of the item in t trials and X' of the reference in R·t. A side of a test has tilts a and b,
fixed at the freeze, and adds a·X + b·X' for every contrast; MULTIPLES of them cost what `count_costs` says for the
side's null, in which p is an item's rate and p' the reference's:

- near, side (c, g): g·(p_c − p'_c) ≥ h_c. Multiplier m ≥ 0: ν_c = −g·m, and support(ν) = −m·h_c.
- far, "each": |p_c − p'_c| ≤ h_c for all c, and support(ν) = Σ_c |ν_c|·h_c.
- far, "distance": ‖(p − p')·t/s‖ ≤ bound, and support(ν) = bound·‖ν·s‖/t.

h_c = bound_c·s_c/t, s the scale; a near distance is shared out equally, bound/√d for each coordinate. The evidence is
log Σ_k w_k·exp(k·(Σ a·X + b·X') − n·cost_k), and for a far test the tilts of all coordinates are added up.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray
from coterie.theory.near_far import one_sided
from coterie.theory.near_far.count_costs import (
    best_multipliers,
    closest_tilts,
    half_growth_variance,
    largest_log_mean,
)
from coterie.theory.near_far.family import Family, Guess, PairTest, Parameters
from coterie.theory.near_far.known import LEAST_DRIFT
from coterie.theory.near_far.one_sided import MULTIPLE_WEIGHTS, MULTIPLES

LARGEST_TILT = 30.0
"""Of one success: e^30 times the wealth is enough for any level."""

_NEAREST_RATE = 1e-6
"""Guessed rates are taken to be at least this far from 0 and from 1."""


class TiltedTest(PairTest):
    """Sides Σ a·X + b·X' of counts, mixtures over multiples of the tilts; all have to reach the level.

    `item`, `reference`: tilts (sides, d). `costs`: of a contrast (sides, multiples). `scale`: of results, which are
    counts divided by it. `sides`: log E of each one now.
    """

    sides: FloatArray

    def __init__(self, item: FloatArray, reference: FloatArray, costs: FloatArray, scale: FloatArray) -> None:
        self._item, self._reference, self._costs, self._scale = item, reference, costs, scale
        self._sums = np.zeros(len(item))
        self.sides = np.zeros(len(item))
        self._best = np.full(len(item), -np.inf)
        self.count, self.evidence = 0, -math.inf

    def add(self, item: FloatArray, block: FloatArray) -> None:
        self.count += 1
        self._sums += self._item @ np.rint(item * self._scale)
        self._sums += self._reference @ np.rint(block * self._scale).sum(axis=0)
        terms = np.log(MULTIPLE_WEIGHTS) + self._sums[:, None] * MULTIPLES - self.count * self._costs
        largest = terms.max(axis=1)
        self.sides = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
        np.maximum(self._best, self.sides, out=self._best)
        self.evidence = float(self._best.min())


class CountsFamily(Family):
    """Successes out of `trials` in each coordinate; results are counts divided by `scale` (d)."""

    def __init__(self, norm: str, trials: int, scale: FloatArray) -> None:
        self.norm, self.dim = norm, scale.size
        self._trials, self._scale = trials, scale

    def near_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        signs, limits = np.tile([1.0, -1.0], self.dim), np.repeat(self._near_limits(bound), 2)
        item, reference = (np.repeat(rates, 2) for rates in self._guessed_rates(guess))
        # However hopeless the guess, a test is made for some drift: the item's rate is moved, then the reference's.
        most = (1.0 - LEAST_DRIFT) * limits
        item = _inner(signs * np.minimum(signs * item, signs * reference + most))
        reference = _inner(signs * np.maximum(signs * reference, signs * item - most))
        k = -signs[:, None]
        a, b = closest_tilts(item[:, None], reference[:, None], ratio, k, -limits)
        a, b = (np.clip(tilt, -LARGEST_TILT, LARGEST_TILT) for tilt in (a, b))
        found = [best_multipliers(factor * a, factor * b, ratio, k, -limits) for factor in MULTIPLES.tolist()]
        return {"item": a[:, 0].tolist(), "reference": b[:, 0].tolist(), "multipliers": np.array(found).T.tolist()}

    def far_parameters(self, bound: FloatArray, ratio: int, guess: Guess, level: float) -> Parameters:
        item, reference = self._far_rates(bound, guess)
        gap, d = item - reference, self.dim
        if self.norm == "each":
            signs, limits = np.where(gap < 0.0, -1.0, 1.0)[:, None], self._far_limits(bound)
            a, b = closest_tilts(item[:, None], reference[:, None], ratio, signs, limits)
            used = (np.abs(gap) > limits)[:, None]
            a, b = (np.where(used, np.clip(tilt, -LARGEST_TILT, LARGEST_TILT), 0.0) for tilt in (a, b))
            each = [best_multipliers(factor * a, factor * b, ratio, signs, limits) for factor in MULTIPLES.tolist()]
            multipliers = np.where(used[:, 0], np.array(each) * signs[:, 0], 0.0)
            return {"item": a[:, 0].tolist(), "reference": b[:, 0].tolist(), "multipliers": multipliers.tolist()}
        scaled = gap * self._trials / self._scale
        length = float(np.linalg.norm(scaled))
        if length <= bound[0]:  # nothing can be told apart here: a test that never says anything
            return {"item": [0.0] * d, "reference": [0.0] * d, "multipliers": np.zeros((MULTIPLES.size, d)).tolist()}
        k, limit = (scaled / length * self._trials / self._scale)[None], bound[:1]
        a, b = closest_tilts(item[None], reference[None], ratio, k, limit)
        a, b = (np.clip(tilt, -LARGEST_TILT, LARGEST_TILT) for tilt in (a, b))
        all_ = [best_multipliers(factor * a, factor * b, ratio, k, limit)[0] * k[0] for factor in MULTIPLES.tolist()]
        return {"item": a[0].tolist(), "reference": b[0].tolist(), "multipliers": np.array(all_).tolist()}

    def near_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> PairTest:
        a, b = (np.array(parameters[name], dtype=float)[:, None] for name in ("item", "reference"))
        m = np.array(parameters["multipliers"], dtype=float)
        nu = -np.tile([1.0, -1.0], self.dim)[:, None] * m
        costs = largest_log_mean(a * MULTIPLES, nu) + ratio * largest_log_mean(b * MULTIPLES, -nu / ratio)
        costs = self._trials * (costs - m * np.repeat(self._near_limits(bound), 2)[:, None])
        places = np.repeat(np.eye(self.dim), 2, axis=0)
        return TiltedTest(a * places, b * places, costs, self._scale)

    def far_test(self, bound: FloatArray, ratio: int, parameters: Parameters) -> PairTest:
        a, b = (np.array(parameters[name], dtype=float) for name in ("item", "reference"))
        nu = np.array(parameters["multipliers"], dtype=float)
        factors = MULTIPLES[:, None]
        costs = largest_log_mean(a * factors, nu) + ratio * largest_log_mean(b * factors, -nu / ratio)
        if self.norm == "each":
            support = np.abs(nu) @ self._far_limits(bound)
        else:
            support = bound[0] * np.linalg.norm(nu * self._scale, axis=1) / self._trials
        return TiltedTest(a[None], b[None], self._trials * (costs.sum(axis=1) + support)[None], self._scale)

    def near_needed(self, bound: FloatArray, ratio: int, gap: FloatArray, guess: Guess, level: float) -> FloatArray:
        reference = self._typical_rates(guess)
        rates = gap * self._scale / self._trials
        limits, sides = self._near_limits(bound), []
        for sign in (1.0, -1.0):
            room = limits - sign * rates
            speed = self._speeds(rates, reference, sign * np.maximum(room, 0.0), ratio)
            sides.append(np.where(room > 0.0, speed, 0.0))
        drifts = np.sqrt(np.stack(sides, axis=2).reshape(len(gap), -1))
        return np.maximum(one_sided.needed(drifts, np.ones(2 * self.dim), level), 1.0)

    def far_needed(self, bound: FloatArray, ratio: int, gap: FloatArray, guess: Guess, level: float) -> FloatArray:
        reference = self._typical_rates(guess)
        rates = gap * self._scale / self._trials
        if self.norm == "each":
            over = np.maximum(np.abs(rates) - self._far_limits(bound), 0.0)
        else:
            lengths = np.maximum(np.linalg.norm(gap, axis=1), 1e-300)[:, None]
            over = np.abs(rates) * np.maximum(1.0 - bound[0] / lengths, 0.0)
        speeds = self._speeds(rates, reference, -np.sign(rates) * over, ratio).sum(axis=1)
        return np.maximum(one_sided.needed(np.sqrt(speeds)[:, None], np.ones(1), level), 1.0)

    def _speeds(self, gap: FloatArray, reference: FloatArray, drift: FloatArray, ratio: int) -> FloatArray:
        """(n, d): twice the growth of the evidence by a contrast, for gaps of rates that `drift` takes to the null."""
        p, q = _inner(reference + gap), np.broadcast_to(reference, gap.shape)
        share = np.full(gap.shape, ratio / (ratio + 1.0))  # of the drift, which the item's rate takes on
        for _ in range(3):
            item = half_growth_variance(p, _inner(p + share * drift))
            other = half_growth_variance(q, _inner(q - (1.0 - share) * drift)) / ratio
            share = item / (item + other)
        return np.asarray(self._trials * drift**2 / (item + other))

    def _near_limits(self, bound: FloatArray) -> FloatArray:
        """(d): the rates of a near pair differ by less than these; a distance is shared out equally."""
        each = bound if self.norm == "each" else bound / math.sqrt(self.dim)
        return np.asarray(each * self._scale / self._trials)

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
        distance = float(np.linalg.norm(gap * self._trials / self._scale))
        if (np.abs(gap) > limits).any() or (self.norm == "distance" and distance > bound[0]):
            return item, reference
        deviation = np.sqrt(reference * (1.0 - reference) / self._trials)
        best = int(np.argmax((np.abs(gap) - limits) / deviation))
        sign = -1.0 if gap[best] < 0.0 else 1.0
        moved = item.copy()
        moved[best] = _inner(reference[best] + sign * (limits[best] + LEAST_DRIFT * deviation[best] / 3.0))
        return moved, reference


def _inner(rates: FloatArray) -> FloatArray:
    return np.clip(rates, _NEAREST_RATE, 1.0 - _NEAREST_RATE)
