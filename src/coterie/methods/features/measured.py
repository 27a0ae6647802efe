"""What was measured: of each feature the number and sum of results of each item, in memory of what was touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from coterie.methods.capabilities import Cells
from coterie.problem.checks import FloatArray, IntArray

_ENOUGH, _CHANCE = 4.0, 0.645
"""Degrees of freedom of a variance that others may learn from; by how much the logarithm of such a one varies."""
DENSE = 16
"""A column of a feature is kept as an array once this share of one of its items was measured."""


class Scale(Protocol):
    """The size of the noise of each feature, in which gaps are meant."""

    learns: bool
    """Whether it is learned from results: repeats are worth something then."""

    def sd(self, column: Column) -> float:
        """Of the feature of a column, by all that is known of it."""


class Column:
    """The results of one feature: number, sum and sum of squares of each item."""

    __slots__ = ("_cells", "_counts", "_sums", "degrees", "feature", "n_items", "results", "spread", "total")

    def __init__(self, feature: int, n_items: int) -> None:
        self.feature, self.n_items = feature, n_items
        self._cells: dict[int, list[float]] = {}
        self._counts: FloatArray | None = None
        self._sums: FloatArray | None = None
        self.spread = 0.0  # sum of squares within items
        self.degrees = 0.0  # and its degrees of freedom
        self.results = 0.0
        self.total = 0.0

    def add(self, item: int, x: FloatArray) -> None:
        """Results of an item."""
        count, total = float(x.size), float(x.sum())
        self.results += count
        self.total += total
        if self._counts is not None and self._sums is not None:
            before, old = float(self._counts[item]), float(self._sums[item])
            self._counts[item] += count
            self._sums[item] += total
        else:
            cell = self._cells.setdefault(item, [0.0, 0.0])
            before, old = cell
            cell[0] += count
            cell[1] += total
            if len(self._cells) * DENSE > self.n_items:
                self._counts, self._sums = self.arrays()
                self._cells = {}
        within = float(((x - total / count) ** 2).sum()) if count > 1 else 0.0
        if before:
            within += before * count / (before + count) * (old / before - total / count) ** 2
        self.spread += within
        self.degrees += count - (before == 0.0)

    def cell(self, item: int) -> tuple[float, float]:
        """How many results of an item there are, and their sum."""
        if self._counts is not None and self._sums is not None:
            return float(self._counts[item]), float(self._sums[item])
        cell = self._cells.get(item)
        return (0.0, 0.0) if cell is None else (cell[0], cell[1])

    def arrays(self) -> tuple[FloatArray, FloatArray]:
        """(M) numbers and sums; those of a full column are its own."""
        if self._counts is not None and self._sums is not None:
            return self._counts, self._sums
        counts, sums = np.zeros(self.n_items), np.zeros(self.n_items)
        for item, (count, total) in self._cells.items():
            counts[item], sums[item] = count, total
        return counts, sums


class StatedScale:
    """A noise whose size is stated, for each feature."""

    learns = False

    def __init__(self, sds: FloatArray) -> None:
        self._sds = sds

    def sd(self, column: Column) -> float:
        return float(self._sds[column.feature % self._sds.size])


class RateScale:
    """Counts of so many trials: their size follows from the rate of all results of the feature."""

    learns = False

    def __init__(self, trials: int) -> None:
        self._trials = float(trials)

    def sd(self, column: Column) -> float:
        rate = (column.total + 1.0) / (column.results * self._trials + 2.0)
        return math.sqrt(self._trials * rate * (1.0 - rate))


class LearnedScale:
    """A size that is learned: of each feature from repeats, and from other features as far as these vary alike."""

    learns = True

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}  # log variances of features with enough repeats, as they were first known
        self._mean = self._squares = 0.0

    def sd(self, column: Column) -> float:
        if column.degrees >= _ENOUGH and column.spread > 0.0 and column.feature not in self._seen:
            self._see(column.feature, math.log(column.spread / column.degrees))
        prior = math.exp(self._mean) if self._seen else 1.0
        count = len(self._seen)
        excess = self._squares / (count - 1) - _CHANCE if count > 4 else 1.0
        weight = 0.0 if not self._seen and column.degrees else min(max(2.0 / max(excess, 0.04), 0.5), 50.0)
        return math.sqrt(max((weight * prior + column.spread) / (weight + column.degrees), 1e-300))

    def _see(self, feature: int, logarithm: float) -> None:
        self._seen[feature] = logarithm
        step = logarithm - self._mean
        self._mean += step / len(self._seen)
        self._squares += step * (logarithm - self._mean)


class FeatureResults:
    """All results of a run, by feature. Means and sums that it gives are in units of the noise."""

    def __init__(self, n_items: int, scale: Scale) -> None:
        self.n_items, self.scale = n_items, scale
        self._columns: dict[int, Column] = {}

    def add(self, item: int, features: Sequence[int], x: FloatArray) -> None:
        """(n, features) results of an item, NaN for holes."""
        for place, feature in enumerate(features):
            numbers = x[:, place]
            numbers = numbers[~np.isnan(numbers)]
            if numbers.size:
                column = self._columns.get(feature)
                if column is None:
                    column = self._columns[feature] = Column(feature, self.n_items)
                column.add(item, numbers)

    def sd(self, feature: int) -> float:
        """The size of the noise of a feature, by what is known."""
        column = self._columns.get(feature)
        return self.scale.sd(Column(feature, self.n_items) if column is None else column)

    def cell(self, item: int, feature: int) -> tuple[float, float]:
        """How many results there are of an item and feature, and their mean; (0, 0) if there are none."""
        column = self._columns.get(feature)
        if column is None:
            return 0.0, 0.0
        count, total = column.cell(item)
        return (count, total / (count * self.scale.sd(column))) if count else (0.0, 0.0)

    def raw(self, item: int, feature: int) -> tuple[float, float]:
        """How many results there are of an item and feature, and their sum in the user's units."""
        column = self._columns.get(feature)
        return (0.0, 0.0) if column is None else column.cell(item)

    def column(self, feature: int) -> tuple[FloatArray, FloatArray]:
        """(M) numbers and sums of a feature, not to be changed."""
        column = self._columns.get(feature)
        if column is None:
            return np.zeros(self.n_items), np.zeros(self.n_items)
        counts, sums = column.arrays()
        return counts, sums / self.scale.sd(column)

    def columns(self, features: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """(M, features) numbers and sums."""
        counts, sums = np.zeros((self.n_items, len(features))), np.zeros((self.n_items, len(features)))
        for place, feature in enumerate(features):
            counts[:, place], sums[:, place] = self.column(feature)
        return counts, sums

    def cells(self) -> Cells:
        """All that was measured, in the user's units."""
        items: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        features, counts, means = list(items), [np.zeros(0)], [np.zeros(0)]
        for feature in sorted(self._columns):
            number, total = self._columns[feature].arrays()
            there = np.flatnonzero(number)
            items.append(there)
            features.append(np.full(there.size, feature))
            counts.append(number[there])
            means.append(total[there] / number[there])
        return Cells(
            np.concatenate(items),
            np.concatenate(features).astype(np.int64),
            np.concatenate(counts).astype(np.int64),
            np.concatenate(means),
        )
