"""Values that do not belong: results too far from the other results of their item, as a slip of the pen leaves them.

If the noise of a column is Gaussian and the same for all items, any value of a table is named with probability at most
`SLIP_PROBABILITY`. Take any j values of a column with ν degrees of freedom within items: without them the sum of
squares about the means of the items falls by a factor that is Beta((ν − j)/2, j/2). A column is looked at closer only
if, for some j, its most far-off j values let it fall further than chance would for any set of j out of N values: the
level 2^(−j)·`SLIP_PROBABILITY` is divided by the number of such sets and of columns. No estimate of the scale takes
part in this, so nothing has to be assumed about its error; and sets of several values are tested as such, so that
they cannot hide one another.

Then values are named one by one, by their distance from the mean of the item's other results in units of the spread of
all that belongs. If many are named, or if too many lie just short of that, it is not slips: the noise has heavy tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betainc, betaln, gammaln, ndtr, stdtrit

from coterie.problem.checks import FloatArray, IntArray

BoolArray: TypeAlias = NDArray[np.bool_]
SLIP_PROBABILITY = 0.01
"""Of any value of a table being named, if the noise is Gaussian and the same for all items."""

TAIL_PROBABILITY = 0.001
"""Of any column being said to have heavy tails, if the noise is Gaussian and the same for all items."""

_MOST_TOGETHER = 200  # far-off values of a column that are tested together at most
_OWN_SPREAD = 10  # other results of an item from which on its own spread counts too
_FEW = 3  # values named in a column that are never called heavy tails for their number alone


@dataclass(frozen=True)
class Slip:
    """A value that does not belong: its row and column, and how far it lies from the item's other results.

    `others` is their median, `deviations` the distance from their mean in standard deviations of the column, `count`
    how many there are. If there is only one, either of the two may be the slip.
    """

    row: int
    column: int
    value: float
    others: float
    deviations: float
    count: int


@dataclass(frozen=True)
class Slips:
    """The values that do not belong, farthest first, and the columns whose noise has heavy tails.

    `limits` is how many standard deviations away a value of each column is named; None if the column was not judged.
    """

    values: tuple[Slip, ...]
    heavy: tuple[int, ...]
    limits: tuple[float | None, ...]

    def belonging(self, n_rows: int) -> BoolArray:
        """Which rows hold no value that was named in a column without heavy tails."""
        kept = np.ones(n_rows, dtype=bool)
        kept[[slip.row for slip in self.values if slip.column not in self.heavy]] = False
        return kept


def slips_in(arms: IntArray, rows: FloatArray, n_arms: int) -> Slips:
    """The values of a table that do not belong. A column in which most results of an item are equal is not judged."""
    named: list[Slip] = []
    heavy: list[int] = []
    limits: list[float | None] = []
    for column in range(rows.shape[1]):
        values = rows[:, column]
        if _mostly_equal(arms, values, n_arms):
            limits.append(None)
            continue
        judged = _Column(arms, values, n_arms, rows.shape[1])
        out = judged.far_off()
        limits.append(judged.limit(out))
        named += [judged.described(row, column, out) for row in np.flatnonzero(out).tolist()]
        if judged.has_heavy_tails(out):
            heavy.append(column)
    named.sort(key=lambda slip: (-slip.deviations, slip.row, slip.column))
    return Slips(tuple(named), tuple(heavy), tuple(limits))


class _Column:
    """The values of one column, which of them are left out, and what follows for the rest."""

    def __init__(self, arms: IntArray, values: FloatArray, n_arms: int, n_columns: int) -> None:
        self.arms, self.n_arms = arms, n_arms
        medians = _medians(arms, values, n_arms)
        unit = float(np.abs(values - medians[arms]).max()) or 1.0
        self.values, self.away = values, (values - medians[arms]) / unit  # of any size: nothing overflows when squared
        self.unit = unit
        counts = np.bincount(arms, minlength=n_arms)
        self.judged = int((counts[arms] > 1).sum())  # values that have others to be compared with
        self.tests = max(self.judged, 1) * n_columns
        self.n_columns = n_columns

    def far_off(self) -> BoolArray:
        """Which values do not belong."""
        out = self._most_surprising()
        if not out.any():
            return out
        for _ in range(50):
            distance, limit = self._distances(out), self.limit(out)
            back = out & ~(distance > limit)
            if back.any():
                out = out & ~back
                continue
            more = np.where(out, -1.0, distance)
            worst = int(np.argmax(more))
            if not more[worst] > limit:
                break
            out[worst] = True
        return out

    def limit(self, out: BoolArray) -> float:
        """Student's t that a single value must exceed, over all values of all columns."""
        freedom = self._kept(out)[3]
        return float(-stdtrit(max(freedom - 1, 1), SLIP_PROBABILITY / (2.0 * self.tests)))

    def described(self, row: int, column: int, out: BoolArray) -> Slip:
        """The named value of a row."""
        means, _, squares, freedom = self._kept(out)
        own = (self.arms == self.arms[row]) & ~out
        own[row] = False
        scale = np.sqrt(squares / max(freedom, 1))
        apart = abs(float(self.away[row] - means[self.arms[row]]))
        deviations = apart / float(scale) if scale > 0.0 else np.inf
        others = float(np.median(self.values[own])) if own.any() else np.nan
        return Slip(row, column, float(self.values[row]), others, deviations, int(own.sum()))

    def has_heavy_tails(self, out: BoolArray) -> bool:
        """Whether many values were named, or too many of the rest lie beyond three robust standard deviations."""
        if int(out.sum()) > max(_FEW, self.judged // 100):
            return True
        means, counts, _, freedom = self._kept(out)
        own = counts[self.arms]
        seen = ~out & (own > 2)
        if seen.sum() < 20:
            return False
        residuals = np.abs(self.away - means[self.arms])[seen] * np.sqrt(own[seen] / (own[seen] - 1.0))
        scale = 1.4826 * float(np.median(residuals))
        if scale == 0.0:
            return False
        beyond, n = int((residuals > 3.0 * scale).sum()), int(seen.sum())
        # The median has an error of its own, of 1.17/√ν of its size: one and a half of these are allowed for.
        chance = 2.0 * float(ndtr(-3.0 * (1.0 - min(1.5 * 1.17 / np.sqrt(freedom), 0.5))))
        return beyond > 0 and float(bdtrc(beyond - 1, n, chance)) < TAIL_PROBABILITY / self.n_columns

    def _most_surprising(self) -> BoolArray:
        """The most far-off j values, with the j for which this is least likely by chance; none if all of it may be."""
        out = np.zeros(self.away.size, dtype=bool)
        means, counts, squares, freedom = self._kept(out)
        most = min(_MOST_TOGETHER, freedom - 1, max(1, self.judged // 8))
        if most < 1 or squares <= 0.0:
            return out
        # Of two results of one item either may be the slip: the one that is farther from all others is taken for it.
        far = np.abs(self.values - np.median(self.values))
        order = np.lexsort((-far, -np.round(np.abs(self.away), 12)))
        left, taken, falls = squares, [], []
        for row in order.tolist():
            arm = self.arms[row]
            n = counts[arm]
            if n < 2:
                continue
            value = self.away[row]
            left -= (value - means[arm]) ** 2 * n / (n - 1)
            means[arm] += (means[arm] - value) / (n - 1)
            counts[arm] -= 1
            taken.append(row)
            falls.append(max(left, 0.0) / squares)
            if len(taken) == most:
                break
        j = np.arange(1, len(taken) + 1)
        n = self.judged
        sets = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
        surprise = _log_beta_below((freedom - j) / 2.0, j / 2.0, np.array(falls))
        surprise += sets + j * np.log(2.0) + np.log(self.n_columns)
        best = int(np.argmin(surprise))
        if surprise[best] <= np.log(SLIP_PROBABILITY):
            out[taken[: best + 1]] = True
        return out

    def _distances(self, out: BoolArray) -> FloatArray:
        """Student's t of each value against all values that are kept but itself; 0 where nothing is left to compare."""
        means, counts, squares, freedom = self._kept(out)
        own = counts[self.arms].astype(float)
        apart = np.abs(self.away - means[self.arms])
        spreads = self._own_spreads(out)[self.arms]
        with np.errstate(divide="ignore", invalid="ignore"):
            # A value that is kept has a part in the mean and in the squares: both are freed of it.
            within = np.maximum(squares - apart**2 * own / (own - 1.0), 0.0) / max(freedom - 1, 1)
            inside = apart * np.sqrt(own / (own - 1.0)) / np.sqrt(within)
            outside = apart / np.sqrt(1.0 + 1.0 / own) / np.sqrt(np.maximum(squares / max(freedom, 1), spreads))
        distances = np.where(out, np.where(own > 0, outside, 0.0), np.where(own > 1, inside, 0.0))
        return np.where(np.isnan(distances), 0.0, distances)

    def _own_spreads(self, out: BoolArray) -> FloatArray:
        """The variance of the kept results of each item that has enough of them, else 0: items may differ in it."""
        means, counts, _, _ = self._kept(out)
        squares = np.bincount(self.arms[~out], (self.away - means[self.arms])[~out] ** 2, minlength=self.n_arms)
        return np.where(counts >= _OWN_SPREAD, squares / np.maximum(counts - 1, 1), 0.0)

    def _kept(self, out: BoolArray) -> tuple[FloatArray, IntArray, float, int]:
        """Of the values kept: the mean and number of each item, squares about the means, degrees of freedom."""
        arms, away = self.arms[~out], self.away[~out]
        counts = np.bincount(arms, minlength=self.n_arms)
        means = np.bincount(arms, away, minlength=self.n_arms) / np.maximum(counts, 1)
        return means, counts, float(((away - means[arms]) ** 2).sum()), int(np.maximum(counts - 1, 0).sum())


def _log_beta_below(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    """log P(Beta(a, b) ≤ x), to the leading order where the probability is too small for a float."""
    exact = betainc(a, b, np.clip(x, 0.0, 1.0))
    with np.errstate(divide="ignore"):
        rough = a * np.log(x) - np.log(a) - betaln(a, b)
        return np.asarray(np.where(exact > 0.0, np.log(exact), rough))


def _medians(arms: IntArray, values: FloatArray, n_arms: int) -> FloatArray:
    """The median of each item's values."""
    order = np.lexsort((values, arms))
    counts = np.bincount(arms, minlength=n_arms)
    starts = np.cumsum(counts) - counts
    sorted_values = values[order]
    low = sorted_values[np.minimum(starts + (np.maximum(counts, 1) - 1) // 2, values.size - 1)]
    high = sorted_values[np.minimum(starts + counts // 2, values.size - 1)]
    return np.where(counts > 0, low + (high - low) / 2.0, 0.0)


def _mostly_equal(arms: IntArray, values: FloatArray, n_arms: int) -> bool:
    """Whether more than half of the results equal the most frequent one of their item, in items with three or more."""
    order = np.lexsort((values, arms))
    a, v = arms[order], values[order]
    starts = np.flatnonzero(np.concatenate([[True], (a[1:] != a[:-1]) | (v[1:] != v[:-1])]))
    lengths = np.diff(np.append(starts, a.size))
    most = np.zeros(n_arms, dtype=np.int64)
    np.maximum.at(most, a[starts], lengths)
    counts = np.bincount(arms, minlength=n_arms)
    often = counts > 2
    if not often.any():
        return bool((most > 1).sum() * 2 > (counts > 1).sum())
    return bool(most[often].sum() * 2 > counts[often].sum())
