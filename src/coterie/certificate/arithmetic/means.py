"""Intervals of streams once more, for `verify`: no code is shared with those who made them (docs/INTERVALS.md).

Of each number of a result by itself. `level` is log(1/a). Ends are roots of functions that fall or rise, found by
Brent's method on evidence that is added up result by result.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaln

from coterie.certificate.arithmetic.variance import root_of
from coterie.problem.checks import FloatArray, IntArray

Function = Callable[[float], float]

_SCALES = [(4.0 ** (3 - i), weight) for i, weight in enumerate((0.08, 0.19, 0.25, 0.25, 0.12))]
_SCALES += [(4.0 ** (-2 - i), 0.055 / 2**i) for i in range(6)]
_BETS = [(2.0 ** (1 - j), weight) for j, weight in enumerate((0.04, 0.1, 0.2, 0.24, 0.2))]
_BETS += [(2.0 ** (-4 - j), 0.11 / 2**j) for j in range(8)]
_CELLS = 256
_ROUNDING = 1e-9
_FAR = 1e100


def _log_sum(terms: Sequence[float]) -> float:
    top = max(terms)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(term - top) for term in terms))


def _root(f: Function, below: float, above: float) -> float:
    """Where f, which is negative at `below` and not at `above`, changes its sign."""
    return float(brentq(f, below, above, xtol=1e-300, rtol=1e-13, maxiter=500))


def known_radius(sizes: Sequence[float], level: float) -> float:
    """How far the mean of a stream, or the difference of two, is from the truth at most, in standard deviations."""
    if not all(sizes):
        return math.inf
    parts = []
    for scale, weight in _SCALES:
        gains = [scale * n * n / (1.0 + scale * n) for n in sizes]
        energy = 1.0 / sum(1.0 / gain for gain in gains)  # one stream: its gain; two: half their harmonic mean
        parts.append((math.log(weight) - 0.5 * sum(math.log1p(scale * n) for n in sizes), energy))

    def excess(r: float) -> float:
        return _log_sum([spent + 0.5 * energy * r * r for spent, energy in parts]) - level

    far = 1.0
    while excess(far) < 0.0:
        far *= 2.0
    return _root(excess, 0.0, far)


def upper_deviations(arms: IntArray, values: FloatArray, shape: str, level: float) -> FloatArray:
    """(d) σ₊ from the stream of all items; `level` is log(1/error) for all numbers together."""
    dim = values.shape[1]
    if not len(values):
        return np.full(dim, np.inf)
    sums: dict[int, tuple[int, FloatArray]] = {}
    squares, count, reach = np.zeros(dim), 0, np.zeros(dim)
    for arm, value in zip(arms.tolist(), values, strict=True):
        position = value - values[0]
        n, total = sums.get(arm, (0, np.zeros(dim)))
        if n:
            squares, count = squares + (position - total / n) ** 2, count + 1
        sums[arm] = n + 1, total + position
        reach = np.maximum(reach, np.abs(position))
    return deviations_of(squares, reach, count, shape, level)


def deviations_of(squares: FloatArray, reach: FloatArray, count: int, shape: str, level: float) -> FloatArray:
    """(d) σ₊ by squares of so many residuals of each number; `reach`: how far apart results are."""
    dim = squares.size
    if shape == "scalar":
        squares, reach, count = np.full(dim, squares.sum()), np.full(dim, reach.max()), count * dim
    else:
        level += math.log(dim)
    root = root_of(float(count), level)
    if root <= 0.0:
        return np.full(dim, np.inf)
    bounds = np.maximum(squares / (2.0 * root), (_ROUNDING * reach) ** 2)
    return np.where((squares > 0.0) & (bounds > 1e-280), np.sqrt(bounds), np.inf)


def gaussian(x: FloatArray, deviation: float, level: float) -> tuple[float, float]:
    """0.9 of the mixture in units of σ₊, and 0.1 of universal inference, stay below 1/a."""
    n = len(x)
    if not n:
        return -math.inf, math.inf
    mean, center, variance, rest, predicted = _predicted(x)
    parts = [
        (math.log(0.9 * weight) - 0.5 * math.log1p(scale * n), 0.5 * scale * n * n / (1.0 + scale * n) / deviation**2)
        for scale, weight in _SCALES
    ]

    def excess(mu: float) -> float:
        terms = [spent + gain * (mean - mu) ** 2 for spent, gain in parts]
        least = max(variance + (center - mu) ** 2, 1e-307)
        likelihood = predicted + 0.5 * rest * math.log(2.0 * math.pi * math.e * least)
        return _log_sum([*terms, math.log(0.1) + likelihood]) - level

    inside = _lowest(excess, min(mean, center), max(mean, center))
    if excess(inside) >= 0.0:
        return math.nan, math.nan
    if not rest and not math.isfinite(deviation):
        return -math.inf, math.inf
    unit = max(math.sqrt(variance), abs(mean - center), 1e-12 * abs(mean), 1e-300)
    return _outwards(excess, inside, -unit), _outwards(excess, inside, unit)


def _predicted(x: FloatArray) -> tuple[float, float, float, int, float]:
    """The mean of all results; of those after the first two that differ: mean, variance, number, and log Π q."""
    values, first = [float(v) - float(x[0]) for v in x], float(x[0])
    mean, inside, total = 0.0, 0.0, 0.0
    used: list[float] = []
    for count, value in enumerate(values):
        if count >= 2 and inside > 0.0:
            scale2 = inside * (1.0 + 0.5 / (count - 1.0)) / count * (1.0 + 1.0 / count)
            total += (
                math.lgamma(0.5 * (count + 1)) - math.lgamma(0.5 * count) - 0.5 * math.log(count * math.pi * scale2)
            )
            total -= 0.5 * (count + 1) * math.log1p((value - mean) ** 2 / (count * scale2))
            used.append(value)
        step = value - mean
        mean += step / (count + 1)
        inside += step * (value - mean)
    overall = first + math.fsum(values) / len(values)
    if not used:
        return overall, overall, 0.0, 0, 0.0
    center = math.fsum(used) / len(used)
    variance = math.fsum((value - center) ** 2 for value in used) / len(used)
    return overall, first + center, variance, len(used), total


def _lowest(f: Function, low: float, high: float) -> float:
    """Where a convex function is least: golden sections."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(120):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if f(a) < f(b) else (a, high)
    return 0.5 * (low + high)


def _outwards(f: Function, inside: float, step: float) -> float:
    """Where f, negative inside, becomes positive, in steps that double; infinite if it does not."""
    outside = inside + step
    while f(outside) < 0.0:
        if abs(step) > 1e300 or not math.isfinite(outside):
            return math.copysign(math.inf, step)
        inside, step = outside, 2.0 * step
        outside += step
    return _root(f, inside, outside) if f(outside) > 0.0 else outside


# Evidence that falls on one side of a mean and rises on the other.


class Sides:
    """Evidence against small means and against large ones; between `lo` and `hi`, equal somewhere in `inner`."""

    def __init__(self, small: Function, large: Function, lo: float, hi: float, inner: tuple[float, float]) -> None:
        self.small, self.large, self.lo, self.hi, self.inner = small, large, lo, hi, inner
        self.center = self._balance()
        self.least = max(small(self.center), large(self.center))

    def _balance(self) -> float:
        low, high = self.inner
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.small(middle) > self.large(middle) else (low, middle)
        return 0.5 * (low + high)

    def low_end(self, level: float) -> float:
        """Below it the evidence reaches the level."""
        return self._end(self.small, self.lo, -1.0, level)

    def high_end(self, level: float) -> float:
        """Above it the evidence reaches the level."""
        return self._end(self.large, self.hi, 1.0, level)

    def _end(self, side: Function, end: float, sign: float, level: float) -> float:
        def excess(m: float) -> float:
            return min(side(m), 1e300) - level

        if math.isfinite(end):
            if excess(end) < 0.0:
                return end
            return end if excess(self.center) >= 0.0 else _bisected(excess, self.center, end)
        inside, step = self.center, sign * (self.inner[1] - self.inner[0] or 1.0)
        while excess(inside + step) < 0.0:
            if abs(step) > _FAR:
                return end
            inside, step = inside + step, 2.0 * step
        return _bisected(excess, inside, inside + step)


def _bisected(f: Function, negative: float, positive: float) -> float:
    for _ in range(64):
        middle = 0.5 * (negative + positive)
        negative, positive = (middle, positive) if f(middle) < 0.0 else (negative, middle)
    return positive


def of_mean(sides: Sides, level: float) -> tuple[float, float]:
    """The means against which the evidence is below the level."""
    if sides.least >= level:
        return math.nan, math.nan
    return sides.low_end(level), sides.high_end(level)


def of_difference(first: Sides, second: Sides, level: float) -> tuple[float, float]:
    """The differences at which the evidence of both adds up to below the level, a cell of each wider."""
    if first.least + second.least >= level:
        return math.nan, math.nan
    return -_largest(second, first, level), _largest(first, second, level)


def _largest(first: Sides, second: Sides, level: float) -> float:
    end, other_end = first.high_end(level - second.least), second.low_end(level - first.least)
    if math.isinf(end) or math.isinf(other_end):
        return math.inf
    step, other_step = (end - first.center) / _CELLS, (second.center - other_end) / _CELLS
    against: list[float] = []  # the evidence against the others, in cells from the farthest on: it falls
    for j in range(1, _CELLS + 1):
        value = second.small(other_end + j * other_step)
        against.append(min(value, against[-1]) if against else value)
    falling = [-value for value in against]
    largest = -math.inf
    for i in range(_CELLS):
        left = level - (first.least if i == 0 else max(first.large(first.center + i * step), first.least))
        refuted = bisect_right(falling, -left)  # so many cells of the others are
        largest = max(largest, first.center + (i + 1) * step - (other_end + refuted * other_step))
    return largest


def amounts(x: FloatArray, level: float) -> FloatArray:
    """The bets on results in [0, 1], each from those before it."""
    total, squares, variance, bets = 0.0, 0.0, 0.25, []
    for i, value in enumerate(x.tolist(), 1):
        bets.append(math.sqrt(2.0 * level / (variance * i * math.log1p(i))))
        total += value
        squares += (value - (0.5 + total) / (1.0 + i)) ** 2
        variance = (0.25 + squares) / (1.0 + i)
    return np.array(bets)


def betting(x: FloatArray, level: float) -> tuple[float, float]:
    """Means against which one side of the bets has reached 2/a at no length; `level` is log(2/a)."""
    if not len(x):
        return 0.0, 1.0
    bets = amounts(x, level)

    def end(values: FloatArray) -> float:
        def excess(m: float) -> float:
            return level - float(np.cumsum(np.log1p(np.minimum(bets, 0.5 / m) * (values - m))).max())

        # Where bets have refuted m, they have all smaller ones.
        return 0.0 if excess(1e-15) > 0.0 else _bisected(lambda m: -excess(m), 1.0, 1e-15)

    low, high = end(x), 1.0 - end(1.0 - x)
    return (low, high) if low < high else (math.nan, math.nan)


def betting_sides(x: FloatArray, level: float) -> Sides:
    """Half of the capital on each side, all results read; `level` is log(2/a)."""
    bets = amounts(x, level)

    def small(m: float) -> float:
        cap = 0.5 / m if m > 0.0 else math.inf
        return float(np.log1p(np.minimum(bets, cap) * (x - m)).sum()) - math.log(2.0)

    def large(m: float) -> float:
        cap = 0.5 / (1.0 - m) if m < 1.0 else math.inf
        return float(np.log1p(np.minimum(bets, cap) * (m - x)).sum()) - math.log(2.0)

    return Sides(small, large, 0.0, 1.0, (0.0, 1.0))


def catoni_sides(x: FloatArray, precision: FloatArray | float = 1.0) -> Sides:
    """A variance of at most 1/precision²: bets of fixed sizes, with weights, half of each on each side."""

    rates, weights = (np.array(column) for column in zip(*_BETS, strict=True))
    spent = np.log(weights / 2.0) - len(x) * np.log1p(rates**2 / 2.0)

    def side(sign: float) -> Function:
        def value(m: float) -> float:
            y = rates[:, None] * (precision * (x - m))
            size = np.abs(y)
            bent = np.sign(y) * np.log(1.0 + size + size**2 / 2.0)
            return _log_sum((spent + sign * bent.sum(axis=1)).tolist())

        return value

    inner = (float(x.min()), float(x.max())) if len(x) else (0.0, 0.0)
    return Sides(side(1.0), side(-1.0), -math.inf, math.inf, inner)


def rate_sides(successes: float, trials: float) -> Sides:
    """The likelihood averaged over rates against that of a rate."""
    failures = trials - successes
    averaged = float(betaln(successes + 0.5, failures + 0.5) - betaln(0.5, 0.5))
    seen = successes / trials if trials else 0.5

    def against(p: float) -> float:
        if (p <= 0.0 and successes) or (p >= 1.0 and failures):
            return math.inf
        hits = successes * math.log(p) if successes else 0.0
        return averaged - hits - (failures * math.log1p(-p) if failures else 0.0)

    def small(p: float) -> float:
        return against(p) if p < seen else (-math.inf if trials else 0.0)

    def large(p: float) -> float:
        return against(p) if p >= seen else (-math.inf if trials else 0.0)

    return Sides(small, large, 0.0, 1.0, (0.0, 1.0))


def quantile(x: FloatArray, p: float, level: float) -> tuple[float, float]:
    """Order statistics outside of which one-sided mixtures over rates have reached 2/a."""
    n, ranked = len(x), sorted(x.tolist())

    def reached(count: int, below: bool) -> bool:
        inside, prior = (float(betainc(a, b, p)) for a, b in ((count + 0.5, n - count + 0.5), (0.5, 0.5)))
        share = inside / prior if below else (1.0 - inside) / (1.0 - prior)
        if share <= 0.0:
            return False
        averaged = float(betaln(count + 0.5, n - count + 0.5) - betaln(0.5, 0.5)) + math.log(share)
        return averaged - count * math.log(p) - (n - count) * math.log1p(-p) >= level + math.log(2.0)

    low, high = -math.inf, math.inf
    few, many = math.floor(p * n), math.ceil(p * n)
    if reached(0, True):
        at, end = 0, few + 1  # reached at `at`, not at `end`: the evidence falls in the count
        while end - at > 1:
            at, end = ((at + end) // 2, end) if reached((at + end) // 2, True) else (at, (at + end) // 2)
        low = ranked[at]
    if reached(n, False):
        at, end = n, many - 1
        while at - end > 1:
            at, end = ((at + end) // 2, end) if reached((at + end) // 2, False) else (at, (at + end) // 2)
        high = ranked[at - 1]
    return low, high
