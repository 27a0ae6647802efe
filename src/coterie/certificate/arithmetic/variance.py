"""Gaussian noise of unknown covariance: the evidence of frozen tests, and upper bounds on the variance from a log.

In the direction η of a test the variance ω = η'Ση is unknown (docs/EVIDENCE.md, section 4). A bet against every ω at
once: large evidence must hold for the true one, so the smallest over y = 1/(2ω) is taken. Which results bound the
variance is in the same section for pairs from the start, and in docs/RESOLUTION.md, section 7, for tests of nearness.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.arithmetic.bets import Bet, BetRecord, BetRound, sides_of
from coterie.certificate.arithmetic.known import Record, Stacks, Sums, Units, paired
from coterie.certificate.freezes import Freeze
from coterie.certificate.reading import Log
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Gaussian

_RATES = np.concatenate([[0.0], 2.0 ** np.arange(3, -10, -1)])  # λ = 0, 8, 4, …, 2^−9
_LOG_WEIGHTS = np.log(np.concatenate([[0.5], np.full(13, 0.5 / 13.0)]))
_CHUNK = 2**20

_RESOLUTION = 1e-9
"""The bound is at least this share of the largest distance of a result from the first, in standard deviations."""
_SMALLEST = 1e-280
_HALVINGS = 200

DEGREES = 120
"""Of freedom that the first results of every arm are to have at least."""
ROUNDING = 1e-9
"""Of the largest distance of a result from the first of the log: a standard deviation is never taken to be smaller.
For a resolution at least of η; for linkage, which has no unit of its own, of 1 only if all those results are equal."""


def evidence(
    rounds: Sequence[BetRound],
    freeze: Freeze,
    frozen: Bet,
    shape: str,
    pools: str,
    arms: IntArray,
    others: IntArray,
    last: IntArray,
    half: FloatArray,
) -> FloatArray:
    """log e of tests after their rounds `last`; `half` is κ: 1 for a test at level b, ½ for one at b/2."""
    n_groups = len(freeze.cores)
    centers, distance = frozen.parts["G"], frozen.parts["Δ"]
    eta = (centers[:, None] - centers[None]) / np.where(np.eye(n_groups) > 0, 1.0, distance)[:, :, None]
    own = freeze.labels[arms]
    other = freeze.labels[others] if pools == "arm" else others
    scatter, count = np.zeros((n_groups, n_groups)), 0
    gain, its_scatter, its_count = np.zeros(arms.size), np.zeros(arms.size), np.zeros(arms.size)
    for bet_round in rounds:
        where, fraction = bet_round.bet.parts["U"], bet_round.bet.parts["f"]
        residuals = bet_round.positions - where[freeze.labels[bet_round.arms]]
        numbers = _numbers(residuals, shape)
        if bet_round.in_block and len(residuals):  # the offset of the cell is not known: one degree of freedom less
            residuals = residuals - residuals.mean(axis=0)
            numbers -= residuals.shape[1] if shape == "scalar" else 1
        scatter, count = scatter + _scatter(residuals, eta, shape), count + numbers
        wanted = np.flatnonzero(last >= bet_round.number)
        its_scatter[wanted], its_count[wanted] = scatter[own[wanted], other[wanted]], count
        sides = sides_of(bet_round, freeze, pools, arms, others, wanted)
        direction = eta[sides.own, sides.other]
        shift = fraction[sides.own, sides.other] * _dot(direction, where[sides.own] - where[sides.other])  # t
        seen = _dot(direction, sides.contrast(bet_round.positions))
        gain[sides.tests] += (2.0 * shift * seen - shift**2) / sides.spread
    return smallest(gain, its_scatter, its_count, half)


def _scatter(residuals: FloatArray, eta: FloatArray, shape: str) -> FloatArray:
    """(K, K): what the results of a round add to R."""
    if shape == "scalar":
        return np.asarray(np.einsum("lkd,lkd->lk", eta, eta) * float((residuals**2).sum()))
    return np.stack([((residuals @ row.T) ** 2).sum(axis=0) for row in eta])


def _numbers(residuals: FloatArray, shape: str) -> int:
    """What they add to ν."""
    return int(residuals.size if shape == "scalar" else residuals.shape[0])


def _dot(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("id,id->i", first, second))


def smallest(gain: FloatArray, scatter: FloatArray, count: FloatArray, half: FloatArray) -> FloatArray:
    """min over y > 0 of κ·log Σ_λ w_λ·(1+λ)^{ν/2}·e^{−λRy} + G·y, to about 1e-12, by bisection on the slope.

    The bracket is convex in s = R·y. If G ≤ 0 it falls for ever, and so it does if R is 0 and G is not positive: then
    the results have no noise at all in this direction, and do not differ.
    """
    least = np.where(gain < 0.0, -np.inf, half * _LOG_WEIGHTS[0])
    rising = np.flatnonzero(gain > 0.0)
    for low in range(0, rising.size, _CHUNK // _RATES.size):
        some = rising[low : low + _CHUNK // _RATES.size]
        least[some] = _interior(gain[some] / scatter[some], count[some], half[some])
    least[~np.isfinite(gain) | ~np.isfinite(scatter)] = np.nan
    return least


def _interior(slope: FloatArray, count: FloatArray, half: FloatArray) -> FloatArray:
    """The minimum over s ≥ 0 of κ·log Σ_λ w_λ(1+λ)^{ν/2}e^{−λs} + slope·s, slope > 0; at s = 0 if it is infinite."""
    price = _LOG_WEIGHTS + 0.5 * count[:, None] * np.log1p(_RATES)

    def terms(s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log Σ and the mean of λ, at s."""
        exponents = price - _RATES * s[:, None]
        largest = exponents.max(axis=1)
        shares = np.exp(exponents - largest[:, None])
        total = shares.sum(axis=1)
        return largest + np.log(total), (shares @ _RATES) / total

    def falls(s: FloatArray) -> FloatArray:
        return np.asarray(half * terms(s)[1] > slope)

    low, high = np.zeros(slope.size), np.ones(slope.size)
    for _ in range(1100):
        more = falls(high)
        if not more.any():
            break
        low, high = np.where(more, high, low), np.where(more, 2.0 * high, high)
    for _ in range(90):  # the value is flat where the slope is 0: half of these digits would do
        middle = 0.5 * (low + high)
        below = falls(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    at = np.where(falls(np.zeros(slope.size)), 0.5 * (low + high), 0.0)
    return np.asarray(half * terms(at)[0] + np.where(at > 0.0, slope * at, 0.0))


class _ScaledUnits(Units):
    """Differences of means, each coordinate times a factor."""

    def __init__(self, factors: FloatArray) -> None:
        self._factors = factors

    def gap(self, first: Sums, second: Sums) -> FloatArray:
        """The mean of each row of `first` minus that of `second`, in the new units."""
        mean, other = first.rest / first.counts[:, None], second.rest / second.counts[:, None]
        return np.asarray((mean - other) * self._factors)


class BoundedStacks:
    """The results of every arm in their order, in units of the bounds that any number of first results give.

    `level`: log(1/(w·δ)).
    """

    def __init__(self, record: BetRecord, n_arms: int, room: int, level: float) -> None:
        stated = record.noise.statement
        assert isinstance(stated, Gaussian)
        values, arms = record.log.values, record.log.arms
        self._one = stated.shape == "scalar"
        self._level = level if self._one else level + math.log(values.shape[1])
        positions = values - values[0]
        squares, counted = _residuals(positions, arms, record.log.alone)
        self._squares: FloatArray = np.cumsum(squares, axis=0)
        self._counts: IntArray = np.cumsum(counted)
        self._reach: FloatArray = np.maximum.accumulate(np.abs(positions), axis=0)
        if self._one:
            self._squares = np.repeat(self._squares.sum(axis=1)[:, None], values.shape[1], axis=1)
            self._reach = np.repeat(self._reach.max(axis=1)[:, None], values.shape[1], axis=1)
            self._counts = self._counts * values.shape[1]
        results = Sums(np.ones(arms.size, dtype=np.int64), np.zeros(values.shape, dtype=np.int64), positions)
        plain = Record(_ScaledUnits(np.ones(values.shape[1])), arms, results)
        self._stacks = Stacks(plain, n_arms, room)

    def variance(self, t: int) -> FloatArray:
        """(d): σ₊² from the first t ≥ 1 results; infinite where they give no bound."""
        squares, root = self._squares[t - 1], root_of(float(self._counts[t - 1]), self._level)
        if root <= 0.0:
            return np.full(squares.size, np.inf)
        bounds = np.maximum(squares / (2.0 * root), (_RESOLUTION * self._reach[t - 1]) ** 2)
        return np.where((squares > 0.0) & (bounds > _SMALLEST), bounds, np.inf)

    def at(self, t: int) -> Stacks:
        """The stacks in units of the bound from the first t results."""
        stacks = copy.copy(self._stacks)
        stacks.units = _ScaledUnits(1.0 / np.sqrt(self.variance(t)))
        return stacks

    def paired(self, a: IntArray, b: IntArray, n_a: IntArray, n_b: IntArray, bound_at: IntArray) -> FloatArray:
        """The evidence of pairs at these counts, each in units of the bound from so many results."""
        evidence = np.full(a.size, -np.inf)
        for t in np.unique(bound_at).tolist():
            some = np.flatnonzero(bound_at == t)
            if np.isfinite(self.variance(t)).any():
                evidence[some] = paired(self.at(t), a[some], b[some], n_a[some], n_b[some])
        return evidence


def _residuals(positions: FloatArray, arms: IntArray, alone: NDArray[np.bool_]) -> tuple[FloatArray, IntArray]:
    """Squared distances (t, d) of results from the mean of their arm's earlier ones; 0 where they do not count.

    And which count: those that were asked for alone, and are not the first of their arm.
    """
    squares, counted = np.zeros(positions.shape), np.zeros(arms.size, dtype=np.int64)
    order = np.argsort(arms, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(arms[order])) + 1):
        before = np.cumsum(positions[rows], axis=0)[:-1] / np.arange(1, rows.size)[:, None]
        use = alone[rows[1:]]
        squares[rows[1:][use]] = (positions[rows[1:][use]] - before[use]) ** 2
        counted[rows[1:][use]] = 1
    return squares, counted


def root_of(count: float, level: float) -> float:
    """The z ≥ 0 where log Σ_λ w_λ·(1+λ)^{ν/2}·e^{−λz} is the level, by bisection; 0 if it is below everywhere."""
    price = _LOG_WEIGHTS + 0.5 * count * np.log1p(_RATES)

    def above(z: float) -> bool:
        exponents = price - _RATES * z
        largest = exponents.max()
        return bool(largest + np.log(np.exp(exponents - largest).sum()) > level)

    if not above(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while above(high):
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if above(middle) else (low, middle)
        if not low < 0.5 * (low + high) < high:
            break
    return low


def first_results(n_arms: int, dim: int, shape: str) -> int:
    """n₀: how many first results of every arm bound the variance."""
    return max(2, 1 + math.ceil(DEGREES / (n_arms * (dim if shape == "scalar" else 1))))


def variance_bounds(
    log: Log, n_arms: int, shape: str, scale: FloatArray, log_inverse_share: float, has_unit: bool
) -> FloatArray:
    """(d): σ₊² in units of `scale` (d); `log_inverse_share` is log(1/(0.1·δ)). ValueError if a freeze came too early.

    With one variance for all coordinates, it is bounded before they are scaled: afterwards they may differ. `has_unit`:
    a unit is η of a resolution, and not just that of the results.
    """
    dim = log.values.shape[1]
    n_first = first_results(n_arms, dim, shape)
    before = np.arange(log.arms.size) < (log.candidates[0].at if log.candidates else log.arms.size)
    squares, reach = np.zeros(dim), 1.0 if has_unit else 0.0
    for arm, stack in enumerate(log.stacks(before & log.asked, n_arms)):
        if len(stack) < n_first:
            raise ValueError(
                f"arm {arm} has {len(stack)} results that were asked for before the first freeze: the bound on the "
                f"variance needs {n_first} of every arm"
            )
        first = stack[:n_first] - stack[0]
        squares += ((first - first.mean(axis=0)) ** 2).sum(axis=0)
        reach = max(reach, float(np.abs((stack[:n_first] - log.values[0]) / scale).max()))
    degrees = n_arms * (n_first - 1)
    if shape == "scalar":
        bounds = np.full(dim, squares.sum() / _quantile(degrees * dim, log_inverse_share))
    else:
        bounds = squares / _quantile(degrees, log_inverse_share + math.log(dim))
    return np.maximum(bounds / scale**2, (ROUNDING * (reach or 1.0)) ** 2)


def _quantile(degrees: int, log_inverse: float) -> float:
    """What a chi-square of so many degrees of freedom falls below with probability e^{−log_inverse}."""
    from scipy import special  # here: SciPy takes a while to load, and K groups need none of it

    return 2.0 * float(special.gammaincinv(degrees / 2.0, math.exp(-log_inverse)))
