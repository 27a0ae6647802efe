"""An upper bound on the variance of Gaussian noise from a log, and pairs from the start in units of it.

Written a second time, in plain NumPy. Which results count, and why the bound holds: docs/EVIDENCE.md, section 4.
"""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.bets import BetRecord
from coterie.certificate.exact import Sums, Units
from coterie.certificate.log import Record
from coterie.certificate.recompute import Stacks, paired
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Gaussian

_RATES = np.concatenate([[0.0], 2.0 ** np.arange(3, -10, -1)])  # λ = 0, 8, 4, …, 2^−9
_LOG_WEIGHTS = np.log(np.concatenate([[0.5], np.full(13, 0.5 / 13.0)]))
_RESOLUTION = 1e-9
"""The bound is at least this share of the largest distance of a result from the first, in standard deviations."""
_SMALLEST = 1e-280
_HALVINGS = 200


class _Scaled(Units):
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
        values, arms = record.values, record.arms
        self._one = stated.shape == "scalar"
        self._level = level if self._one else level + math.log(values.shape[1])
        positions = values - values[0]
        squares, counted = _residuals(positions, arms, record.alone)
        self._squares: FloatArray = np.cumsum(squares, axis=0)
        self._counts: IntArray = np.cumsum(counted)
        self._reach: FloatArray = np.maximum.accumulate(np.abs(positions), axis=0)
        if self._one:
            self._squares = np.repeat(self._squares.sum(axis=1)[:, None], values.shape[1], axis=1)
            self._reach = np.repeat(self._reach.max(axis=1)[:, None], values.shape[1], axis=1)
            self._counts = self._counts * values.shape[1]
        results = Sums(np.ones(arms.size, dtype=np.int64), np.zeros(values.shape, dtype=np.int64), positions)
        plain = Record(_Scaled(np.ones(values.shape[1])), arms, results, (), ())
        self._stacks = Stacks(plain, n_arms, room, True)

    def variance(self, t: int) -> FloatArray:
        """(d): σ₊² from the first t ≥ 1 results; infinite where they give no bound."""
        squares, root = self._squares[t - 1], root_of(float(self._counts[t - 1]), self._level)
        if root <= 0.0:
            return np.full(squares.size, np.inf)
        found = np.maximum(squares / (2.0 * root), (_RESOLUTION * self._reach[t - 1]) ** 2)
        return np.where((squares > 0.0) & (found > _SMALLEST), found, np.inf)

    def at(self, t: int) -> Stacks:
        """The stacks in units of the bound from the first t results."""
        found = copy.copy(self._stacks)
        found.units = _Scaled(1.0 / np.sqrt(self.variance(t)))
        return found

    def paired(self, a: IntArray, b: IntArray, n_a: IntArray, n_b: IntArray, bound_at: IntArray) -> FloatArray:
        """The evidence of pairs at these counts, each in units of the bound from so many results."""
        found = np.full(a.size, -np.inf)
        for t in np.unique(bound_at).tolist():
            some = np.flatnonzero(bound_at == t)
            if np.isfinite(self.variance(t)).any():
                found[some] = paired(self.at(t), a[some], b[some], n_a[some], n_b[some])
        return found


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
