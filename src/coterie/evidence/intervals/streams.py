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
from typing import Any, NamedTuple

import numpy as np

from coterie.evidence.intervals.gaussian_means import (
    Ends,
    bounds_of_squares,
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


# Intervals in blocks: from contrasts within cells, where an offset of a block cancels (docs/INTERVALS.md).
#
# | noise | of a cell, for groups k and l | formula |
# | --- | --- | --- |
# | known; Gaussian | the difference C of the means of both, w = A_k·A_l/(A_k + A_l) | `known`, of n = Σw and ΣwC/n |
# | counts of t trials | the same; they vary no more than Gaussian results with σ = √t/2 | `known` |
# | at most a covariance | √w·C, whose variance is at most that of a result | `catoni` |
# | bounded | min(A_k, A_l) differences, each of results of its own | `betting` |
# | symmetric | the same | `quantile`, p = ½ |
# | any | min(A_k, A_l) differences of two results | `quantile` |
#
# In drawn blocks a cell gives one number: the difference of both means, or under any noise of the first result of both
# (counts by `betting`); there items and groups have intervals too, by one number of each cell. Which results are put
# together is fixed by the composition of the cell: arms ascending, those of an arm in ask order.


_FORMULAS = {
    "known": "known", "gaussian": "known", "counts": "known", "at-most": "catoni", "bounded": "betting",
    "any": "quantile", "symmetric": "quantile",
}  # fmt: skip


def formula_of(noise: Model, drawn: bool) -> str:
    """The formula, as docs/INTERVALS.md calls it."""
    return "betting" if drawn and noise.kind == "counts" else _FORMULAS[noise.kind]


class CellResults(NamedTuple):
    """What came of a cell: arms (n) ascending, those of one arm in ask order, and their values (n, d)."""

    arms: IntArray
    values: FloatArray


class Row(NamedTuple):
    """Of one statement: what cells gave (N, d), the weight of each (N), and how many results it was made of."""

    numbers: FloatArray
    weights: FloatArray
    length: Any

    def middle(self, p: float | None) -> FloatArray:
        """(d) the weighted mean, or the p-quantile; NaN without any."""
        if not self.weights.size:
            return np.full(self.numbers.shape[1], np.nan)
        if p is None:
            return np.asarray(self.weights @ self.numbers / self.weights.sum())
        return np.asarray(np.quantile(self.numbers, p, axis=0, method="inverted_cdf"))


class CellIntervals:
    """Intervals under one noise, `count` of them, that hold together but for a probability of `error`.

    Parameters
    ----------
    noise : Model
        What was stated.
    count, error : int and float
        J and δ_I: each interval is ever wrong with probability at most δ_I/J, less what σ₊ is paid for.
    cells : list of CellResults
        All cells in order, up to the first that has not ended.
    drawn : bool
        Whether every block is drawn afresh; else blocks have offsets.
    p : float, optional
        Which quantile, under a noise of which quantiles are told.
    """

    def __init__(
        self, noise: Model, count: int, error: float, cells: Sequence[CellResults], drawn: bool, p: float | None
    ) -> None:
        self._noise, self._cells, self._drawn, self._p = noise, cells, drawn, p
        self.formula = formula_of(noise, drawn)
        self.level = math.log(count) - math.log(error)
        self._units = stated_deviations(noise)
        if isinstance(noise, Noise):
            return
        if isinstance(noise.statement, Counts):
            self._units *= 0.5 * math.sqrt(noise.statement.trials)  # of a trial: Hoeffding's lemma
        elif isinstance(noise.statement, Gaussian):
            self._units = cell_deviations(cells, noise.dim, noise.statement.shape, VARIANCE_SHARE * error)
            self.level -= math.log1p(-VARIANCE_SHARE)

    def differences(self, labels: IntArray, k: int, other: int) -> Row:
        """What cells say of the mean of group k minus that of another."""
        numbers: list[FloatArray] = []
        weights: list[float] = []
        lengths = [0, 0]
        for cell in self._cells:
            own = labels[cell.arms]
            x, y = cell.values[own == k], cell.values[own == other]
            if not (len(x) and len(y)):
                continue
            lengths[0], lengths[1] = lengths[0] + len(x), lengths[1] + len(y)
            origin = cell.values[0]
            parts = 1 if self._drawn or self.formula in ("known", "catoni") else min(len(x), len(y))
            if self._noise.kind == "any":
                x, y = x[:parts], y[:parts]
            for a, b in zip(np.array_split(x, parts), np.array_split(y, parts), strict=True):
                numbers.append((a - origin).mean(axis=0) - (b - origin).mean(axis=0))
                weights.append(len(a) * len(b) / (len(a) + len(b)))
        return Row(np.array(numbers).reshape(-1, self._noise.dim), np.array(weights), tuple(lengths))

    def of_groups(self, labels: IntArray, k: int) -> Row:
        """What cells of drawn blocks say of the mean of a group, or an item: one number each."""
        numbers: list[FloatArray] = []
        length = 0
        for cell in self._cells:
            x = cell.values[labels[cell.arms] == k]
            if len(x):
                numbers.append(x[0] if self._noise.kind == "any" else x.mean(axis=0))
                length += len(x)
        return Row(np.array(numbers).reshape(-1, self._noise.dim), np.ones(len(numbers)), length)

    def ends(self, rows: Sequence[Row], apart: bool) -> tuple[FloatArray, FloatArray]:
        """(rows, d) lower and upper ends. `apart`: rows are of differences."""
        dim = self._noise.dim
        both = np.array([[self._ends(row, q, apart) for q in range(dim)] for row in rows], dtype=np.float64)
        low, high = both.reshape(len(rows), dim, 2).transpose(2, 0, 1)
        return low, high

    def _ends(self, row: Row, q: int, apart: bool) -> Ends:
        stated = None if isinstance(self._noise, Noise) else self._noise.statement
        x, unit = row.numbers[:, q], float(self._units[q])
        if self.formula == "betting":
            assert isinstance(stated, Bounded | Counts)
            lo, width = range_of(stated, q)
            if apart:  # numbers from −width to width
                lo, width = -width, 2.0 * width
            low, high = betting_interval(np.clip((x - lo) / width, 0.0, 1.0), self.level + math.log(2.0))
            return lo + width * low, lo + width * high
        if self.formula == "catoni":
            low, high = catoni_evidence(x / unit, np.sqrt(row.weights)).interval(self.level)
            return unit * low, unit * high
        if self._p is not None:
            return quantile_interval(x, self._p, self.level)
        n = float(row.weights.sum())
        middle = float(row.weights @ x) / n if n else 0.0
        reach = unit * float(known_reach(np.array(n), self.level))
        return (middle - reach, middle + reach) if math.isfinite(reach) else (-math.inf, math.inf)


def cell_deviations(cells: Sequence[CellResults], dim: int, shape: str, error: float) -> FloatArray:
    """(d) σ₊: standard deviations that are at least the true ones, at all numbers of cells, but for `error`.

    Lemma D of docs/EVIDENCE.md with results less what their arms were predicted to be, centred in the cell: whatever
    the predictions, ν = n − 1. A prediction is the mean of an arm's results so far, each less the offset of its cell;
    arms that no cell has joined yet are centred by themselves.
    """
    place: dict[int, list[Any]] = {}  # of an arm: which part it belongs to, its prediction, how many results it is of
    squares, largest, freedom = np.zeros(dim), np.zeros(dim), 0
    for number, cell in enumerate(cells):
        if not len(cell.arms):
            continue
        x = cell.values - cell.values[0]
        largest = np.maximum(largest, np.abs(x).max(axis=0))
        left: dict[int, list[FloatArray]] = {}  # of a part: its results less the predictions
        for arm, value in zip(cell.arms.tolist(), x, strict=True):
            if arm in place:
                left.setdefault(place[arm][0], []).append(value - place[arm][1])
        offsets = {part: np.mean(rest, axis=0) for part, rest in left.items()}
        for part, rest in left.items():
            squares = squares + ((np.array(rest) - offsets[part]) ** 2).sum(axis=0)
            freedom += len(rest) - 1
        into = max(left, key=lambda part: (len(left[part]), -part), default=number)
        offset = offsets.get(into, x.mean(axis=0))
        for known in place.values():
            if known[0] in offsets:
                known[1] = known[1] + offsets[known[0]] - offset
                known[0] = into
        for arm, value in zip(cell.arms.tolist(), x, strict=True):
            known = place.setdefault(arm, [into, np.zeros(dim), 0])
            known[2] += 1
            known[1] = known[1] + (value - offset - known[1]) / known[2]
    return bounds_of_squares(squares, largest, freedom, shape, error)
