"""Does the order of a table's rows go with their values? Early rows of an item against its late ones.

If an item's rows stand in an order that has nothing to do with their values, every order of its values is equally
likely. Two statistics are compared with what other orders of the same values give, for each column: the trend (do later
rows have larger values?) and the steps (are neighbours closer to each other than any two rows of the item?). Both
are computed from ranks within items, so that no noise model is needed and a slip does no harm. The test is on the
largest of all of them, and exact: p = (1 + orders at least as extreme)/(1 + orders tried) ≤ 0.01.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

ORDER_PROBABILITY = 0.01
"""Of an order that is said to go with the values, if it has nothing to do with them."""

SORTED = 0.95
"""A rank correlation of place and value within items from which on the rows are called sorted."""

_ORDERS = 199  # random orders; an alarm needs that at most one of them is as extreme
_PLAIN = 2.0  # standard deviations: below this largest statistic no random orders are needed


@dataclass(frozen=True)
class OrderAlarm:
    """The order of the rows goes with the values of a column.

    `kind`: "trend" (later rows of an item are larger, or smaller) or "steps" (neighbours are alike). `correlation` is
    the rank correlation, within items, of place and value, or of one row and the next; `p` the exact p-value.
    """

    column: int
    kind: str
    correlation: float
    p: float

    @property
    def is_sorted(self) -> bool:
        """Whether the rows of nearly every item are sorted by this column."""
        return self.kind == "trend" and abs(self.correlation) >= SORTED


def order_alarm(arms: IntArray, rows: FloatArray) -> OrderAlarm | None:
    """The strongest sign that the rows of items are not in an order like any other; None if there is none.

    A table whose statistics are all small is left without trying other orders. That can only prevent an alarm.
    """
    by_item = np.argsort(arms, kind="stable")
    arms = arms[by_item]
    keep = np.bincount(arms)[arms] > 1
    arms, values = arms[keep], rows[by_item][keep]
    if arms.size < 4:
        return None
    work = _Statistics(arms, _ranks(arms, values))
    seen = work.of(work.ranks)
    largest = np.abs(seen).max()
    if not largest > _PLAIN:
        return None
    rng = np.random.default_rng(0)
    extreme = 0
    for _ in range(_ORDERS):
        other = np.lexsort((rng.random(arms.size), arms))
        extreme += bool(np.abs(work.of(work.ranks[other])).max() >= largest * (1.0 - 1e-12))
        if (1 + extreme) / (1 + _ORDERS) > ORDER_PROBABILITY:
            return None
    kind, column = (int(k) for k in np.unravel_index(int(np.argmax(np.abs(seen))), seen.shape))
    correlation = work.correlation(work.ranks, kind)[column]
    return OrderAlarm(column, ("trend", "steps")[kind], float(correlation), (1 + extreme) / (1 + _ORDERS))


class _Statistics:
    """Trend and steps of ranks (n, d) in rows that are sorted by item, in units of their own spread over all orders."""

    def __init__(self, arms: IntArray, ranks: FloatArray) -> None:
        self.ranks = ranks
        n = np.bincount(arms)[arms]
        starts = np.flatnonzero(np.concatenate([[True], np.diff(arms) != 0]))
        inside = np.arange(arms.size) - np.repeat(starts, n[starts])
        self.places = (inside + 0.5) / n - 0.5
        self.same = (np.diff(arms) == 0).astype(float)
        weight = 1.0 / (n - 1.0)
        squares = ranks**2
        # Over all orders of an item's values: Σ place·rank has mean 0 and variance Σ place²·Σ rank²/(n − 1), and the
        # product of neighbours −Σ rank²/(n(n − 1)), since the ranks of an item add up to 0.
        item_places = np.add.reduceat(self.places**2, starts)
        item_squares = np.add.reduceat(squares, starts, axis=0)
        self.trend_deviation = np.sqrt((item_places[:, None] * item_squares * weight[starts][:, None]).sum(axis=0))
        self.step_mean = -(item_squares / n[starts][:, None]).sum(axis=0)
        pairs = (n[starts] - 1)[:, None] * (item_squares / n[starts][:, None]) ** 2  # about: neighbours as if unrelated
        self.step_deviation = np.sqrt(pairs.sum(axis=0))
        self.scale = np.sqrt((self.places**2).sum() * squares.sum(axis=0))
        self.squares = squares.sum(axis=0)

    def of(self, ranks: FloatArray) -> FloatArray:
        """(2, d): trend and steps. The same units for every order: any units keep the test exact."""
        trend = self.places @ ranks
        steps = (ranks[1:] * ranks[:-1] * self.same[:, None]).sum(axis=0) - self.step_mean
        return np.stack([_ratio(trend, self.trend_deviation), np.maximum(_ratio(steps, self.step_deviation), 0.0)])

    def correlation(self, ranks: FloatArray, kind: int) -> FloatArray:
        """Of place and value (kind 0), or of a row and the next one of its item (1), within items."""
        if kind == 0:
            return _ratio(self.places @ ranks, self.scale)
        return _ratio((ranks[1:] * ranks[:-1] * self.same[:, None]).sum(axis=0), self.squares)


def _ranks(arms: IntArray, values: FloatArray) -> FloatArray:
    """Ranks within items, shared by equal values, from −½ to ½ and with sum 0; the rows are sorted by item."""
    found = np.empty(values.shape)
    counts = np.bincount(arms)
    starts = np.cumsum(counts) - counts
    for column in range(values.shape[1]):
        order = np.lexsort((values[:, column], arms))
        v = values[order, column]
        first = np.flatnonzero(np.concatenate([[True], (np.diff(arms) != 0) | (np.diff(v) != 0)]))
        lengths = np.diff(np.append(first, v.size))
        middle = first + (lengths - 1) / 2.0
        found[order, column] = np.repeat(middle, lengths)
        found[:, column] = (found[:, column] - starts[arms] + 0.5) / counts[arms] - 0.5
    return found


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)
