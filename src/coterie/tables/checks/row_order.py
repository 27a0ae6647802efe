"""In which order an item's recorded measurements are used, and whether the order of a table goes with their values.

*The shuffle.* Measurements are shuffled by a seed, or used as they stand in the table. The seed follows from the
content of the table, whatever the order of its rows: nobody can choose it, or try several until one proves something.
"The s-th measurement of an item" must not depend on values (docs/CROC.md, "The order of results"), and a table may be
sorted by them. If the number of an item's measurements does not depend on their values, then shuffled ones are
distributed as if they came straight from the instrument, however the table was sorted. Its own order is as good only
if it has nothing to do with the values; it is better where the number depends on them, as in a record of asks.

*The test.* If an item's rows stand in an order that has nothing to do with their values, every order of its values is
equally likely. Two statistics are compared with what other orders of the same values give, for each column: the trend
(do later rows have larger values?) and the steps (are neighbours closer to each other than any two rows of the item?).
Both are computed from ranks within items, so that no noise model is needed and a slip does no harm. The test is on the
largest of all of them, and exact: p = (1 + orders at least as extreme)/(1 + orders tried) ≤ 0.01.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, short
from coterie.tables.errors import TableError

if TYPE_CHECKING:
    from coterie.tables.pool import Pool

ORDER_PROBABILITY = 0.01
"""Of an order that is said to go with the values, if it has nothing to do with them."""

SORTED = 0.95
"""A rank correlation of place and value within items from which on the rows are called sorted."""

_ORDERS = 199  # random orders; an alarm needs that at most one of them is as extreme
_PLAIN = 2.0  # standard deviations: below this largest statistic no random orders are needed


@dataclass(frozen=True)
class Order:
    """The seed that an item's measurements are shuffled by; None: they stay in the order of the table."""

    seed: int | None = 0

    def places(self, name: str, count: int) -> IntArray:
        """The places 0, …, count − 1 of an item's measurements, in the order in which they are used.

        They are sorted by keys: 64 bits each of SHAKE-256 of "seed:name". So the order depends on the seed, on the
        item's name and on the number of its measurements only: not on values, not on other items, and not on the
        release of any random generator. An equal key (probability 2⁻⁶⁴) leaves two as they stand.
        """
        if self.seed is None:
            return np.arange(count)
        stream = hashlib.shake_256(f"{self.seed}:{name}".encode("utf-8", "surrogatepass")).digest(8 * count)
        return np.argsort(np.frombuffer(stream, dtype="<u8"), kind="stable")

    def rearranged(self, arms: IntArray, name_of: Callable[[int], str]) -> IntArray:
        """Of rows of these arms: the row that comes at each place. An arm's rows change places among themselves."""
        places = np.arange(arms.size)
        by_arm = np.argsort(arms, kind="stable")
        starts = np.flatnonzero(np.diff(arms[by_arm])) + 1
        for rows in np.split(by_arm, starts) if arms.size else []:
            places[rows] = rows[self.places(name_of(int(arms[rows[0]])), rows.size)]
        return places

    def as_dict(self) -> dict[str, Any]:
        """As it is recorded: plain JSON."""
        return {"shuffled": False} if self.seed is None else {"shuffled": True, "seed": self.seed}


def content_order(rows: Iterable[Sequence[str]], in_order: Any) -> Order:
    """The order for a table of these rows of text: shuffled by a seed from its content, or as it stands.

    The seed is the first 53 bits of the SHA-256 of all rows, sorted; so it is the same for every order of them.
    """
    if not isinstance(in_order, bool | np.bool_):
        raise TableError(f"in_order must be True or False, got {short(in_order)}", field="in_order")
    if in_order:
        return Order(None)
    content = json.dumps(sorted(list(row) for row in rows)).encode()
    return Order(int.from_bytes(hashlib.sha256(content).digest()[:7]) >> 3)


@dataclass(frozen=True)
class OrderReport:
    """What speaks against rows in no particular order within items, in a sentence. The fields are keys of the JSON."""

    column: str
    kind: str
    correlation: float
    p: float
    probability: float
    text: str


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


def order_report(pool: Pool, shuffled: bool) -> OrderReport | None:
    """What speaks against rows in no particular order within items, with a sentence; None if nothing does."""
    alarm = order_alarm(pool.arms, pool.rows)
    if alarm is None:
        return None
    column = pool.columns[alarm.column]
    larger = "larger" if alarm.correlation > 0 else "smaller"
    if alarm.is_sorted:
        seen = f"the rows of an item are sorted by {column}"
    elif alarm.kind == "trend":
        seen = f"later rows of an item tend to have a {larger} {column} than its earlier ones"
    else:
        seen = f"neighbouring rows of an item are more alike in {column} than any two of its rows"
    cause = "the file was sorted" if alarm.is_sorted else "the file was sorted, or the instrument or the items drift"
    if not shuffled:
        advice = (
            "The rows were taken as they stand, which assumes that their order has nothing to do with the values, so "
            "nothing is proven. If the file was sorted, say --shuffled (in Python in_order=False)"
        )
    else:
        advice = "A sorted file does no harm, since the rows were shuffled"
    if not alarm.is_sorted:
        advice += (
            "; if it is a drift, items that were measured at different times are not comparable: calibrate, and "
            "measure the items in turn"
        )
    level = f"rank correlation {alarm.correlation:.2f}; by chance in at most {100 * ORDER_PROBABILITY:g} % of tables"
    return OrderReport(
        column=column,
        kind="sorted" if alarm.is_sorted else alarm.kind,
        correlation=alarm.correlation,
        p=alarm.p,
        probability=ORDER_PROBABILITY,
        text=f"{seen} ({level}): {cause}. {advice}.",
    )


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
    ranks = np.empty(values.shape)
    counts = np.bincount(arms)
    starts = np.cumsum(counts) - counts
    for column in range(values.shape[1]):
        order = np.lexsort((values[:, column], arms))
        v = values[order, column]
        first = np.flatnonzero(np.concatenate([[True], (np.diff(arms) != 0) | (np.diff(v) != 0)]))
        lengths = np.diff(np.append(first, v.size))
        middle = first + (lengths - 1) / 2.0
        ranks[order, column] = np.repeat(middle, lengths)
        ranks[:, column] = (ranks[:, column] - starts[arms] + 0.5) / counts[arms] - 0.5
    return ranks


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)
