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
from collections.abc import Sequence

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.theory.near_far import one_sided
from coterie.theory.near_far.count_costs import (
    best_multipliers,
    closest_tilts,
    half_growth_variance,
    largest_log_mean,
)
from coterie.theory.near_far.family import Family, Guess, PairTests, Parameters, column, dot
from coterie.theory.near_far.known import LEAST_DRIFT
from coterie.theory.near_far.one_sided import MULTIPLE_WEIGHTS, MULTIPLES

LARGEST_TILT = 30.0
"""Of one success: e^30 times the wealth is enough for any level."""

_NEAREST_RATE = 1e-6
"""Guessed rates are taken to be at least this far from 0 and from 1."""


class TiltedTests(PairTests):
    """Sides Σ a·X + b·X' of counts, mixtures over multiples of the tilts; all have to reach the level.

    `item`, `reference`: tilts, (n, 2d) of the two sides of every coordinate of near tests, (n, d) of far tests, whose
    only side adds them up (`is_far`). `costs`: of a contrast (n, sides, multiples). `scale`: of results, which are
    counts divided by it. `ratio`: (n) results in a block. `sides` (n, sides): log E of each one now.
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
        super().__init__(len(item))
        self._item, self._reference, self._costs, self._scale, self._ratio = item, reference, costs, scale, ratio
        self._is_far = is_far
        self._sums = np.zeros(costs.shape[:2])
        self.sides = np.zeros(costs.shape[:2])
        self._best = np.full(costs.shape[:2], -np.inf)

    def add(self, which: IntArray, item: FloatArray, block: FloatArray) -> None:
        self.count[which] += 1
        successes, its = np.rint(item * self._scale), np.rint(block * self._scale * self._ratio[which][:, None])
        if self._is_far:
            added = dot(self._item[which], successes) + dot(self._reference[which], its)
            self._sums[which] += added[:, None]
        else:
            self._sums[which] += self._item[which] * np.repeat(successes, 2, axis=1)
            self._sums[which] += self._reference[which] * np.repeat(its, 2, axis=1)
        terms = np.log(MULTIPLE_WEIGHTS) + self._sums[which][..., None] * MULTIPLES
        terms -= self.count[which][:, None, None] * self._costs[which]
        largest = terms.max(axis=-1)
        self.sides[which] = largest + np.log(np.exp(terms - largest[..., None]).sum(axis=-1))
        self._best[which] = np.maximum(self._best[which], self.sides[which])
        self.evidence[which] = self._best[which].min(axis=1)


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
        found = [best_multipliers(factor * a, factor * b, blocks, k, limit) for factor in MULTIPLES.tolist()]
        multipliers = np.array(found).T.reshape(n, sides, MULTIPLES.size)
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
        return np.maximum(one_sided.needed(drifts, np.ones(2 * self.dim), level), 1.0)

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
        return np.maximum(one_sided.needed(np.sqrt(speeds)[:, None], np.ones(1), level), 1.0)

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
