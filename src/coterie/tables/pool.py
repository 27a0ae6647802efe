"""A pool: all measurements of a table, with the item and the values of each, and a description of what was read."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.evidence.exact.block_tests import by_numbers
from coterie.evidence.exact.two_way import TwoWay, two_way
from coterie.evidence.faults import copied_columns
from coterie.problem.checks import FloatArray, IntArray
from coterie.tables.checks.row_order import Order, content_order
from coterie.tables.checks.spread import Spread, spread_of, spread_of_numbers

COUNTERS = ("day", "date", "week", "month", "year", "row", "index", "no", "no.", "nr", "nr.", "#", "tag", "datum")
"""Columns of numbers that often say when or which; they are named where their content does not show it."""

BY_LINE, BY_ITEM = "line", "result"
"""What the places of rows count, if not rows: lines of a file, results of an item."""

LONGEST_SCALE = 10
"""Whole numbers within such a range look like ratings."""

_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")  # in the place of a column's name
_LEADING_ZEROS = re.compile(r"(?<![\d.,])0+(?=\d)")  # of whole numbers in names: S05 and S5, 001 and 1


@dataclass(frozen=True)
class Cut:
    """How rows of successes and trials became counts (`coterie.tables.checks.successes`).

    The names of the two columns; the trials of a batch; how many rows there were; how many trials were left out at the
    ends; p of the test that rows vary as independent trials do (None: too little to tell); `bursts`: they do not.
    """

    successes: str
    trials: str
    batch: int
    rows: int
    left: int
    p: float | None
    bursts: bool


@dataclass(frozen=True)
class UnusedColumn:
    """A column that was not used, and why; `by_content`: its numbers measure nothing."""

    column: str
    why: str
    by_content: bool


@dataclass(frozen=True)
class BlocksRead:
    """The column that names the blocks, and how many there are."""

    column: str
    count: int


@dataclass(frozen=True)
class Reading:
    """What was read from a table. The fields are the keys of `read` in the JSON of an answer, in their order.

    `fewest`, `most`: measurements of an item; `once`: items with a single one; `spelt_alike`: names that differ in
    capitals, blanks or zeros only; `guessed`: no name says that the item column is one; `values`: the columns used;
    `numbers_for_names`: the first line may be a measurement; `constant`: columns with one value; `copies`: pairs of
    columns of which one follows from the other; `holes`: places of rows left out for an empty cell; `remarks`: what was
    done to the table before; `copied_rows`: what was said about copies; `whole`: least and largest value, if all look
    like ratings; `counters`: columns that may only say when or which; `likely_block`: a column that looks as if it
    named blocks, where none was named; `missing`: how many numbers a column lacks, if they were said to be at random.
    """

    source: str
    items: int
    measurements: int
    fewest: int
    most: int
    once: list[str]
    spelt_alike: list[list[str]]
    item_column: str | None
    guessed: bool
    values: list[str]
    numbers_for_names: bool
    left_out: list[UnusedColumn]
    constant: list[str]
    copies: list[list[str]]
    holes: list[str]
    remarks: list[str]
    copied_rows: str | None
    whole: list[int] | None
    counters: list[str]
    cut: Cut | None
    blocks: BlocksRead | None
    likely_block: str | None
    missing: list[tuple[str, int]]


@dataclass(frozen=True)
class Blocks:
    """The blocks of a table: the column that names them, their names, and the block of every row."""

    column: str
    names: list[str]
    of_rows: IntArray

    def only(self, kept: NDArray[np.bool_]) -> Blocks:
        """Those of these rows."""
        left, of_rows = np.unique(self.of_rows[kept], return_inverse=True)
        return Blocks(self.column, [self.names[block] for block in left], of_rows.reshape(-1))


@dataclass(frozen=True)
class Pool:
    """Recorded measurements: the names of the arms, and the arm and the values of every row of the table.

    `columns` are the names of the values, `source` is what the table is called, `left_out` are columns that were not
    used, each with the reason. `places`: where people find each row, counted in `place_word`s: the lines of a file, the
    rows of a table, or the results of an item, where arrays were given. `picked`: the caller named the columns.
    `holes`: places of rows that were left out because a cell is empty. `cut`: how successes and trials became counts
    (`coterie.tables.checks.successes`).
    """

    names: list[str]
    arms: IntArray
    rows: FloatArray
    columns: list[str]
    source: str
    item_column: str | None = None
    guessed: bool = False  # the item column has no name that says so
    left_out: tuple[tuple[str, str], ...] = ()
    places: IntArray | None = None  # None: 1, 2, …
    place_word: str = "row"
    picked: bool = False
    holes: tuple[str, ...] = ()
    cut: Cut | None = None
    remarks: tuple[str, ...] = ()  # what was done to the table before it was read
    copies: str | None = None  # what was said about rows that are copies, if there are any: drop or keep
    unmeasured: tuple[str, ...] = ()  # columns of numbers that were left out for what they hold
    blocks: Blocks | None = None
    likely_block: str | None = None  # a column that looks as if it named blocks, where none was named

    @property
    def dim(self) -> int:
        """How many numbers a measurement has."""
        return int(self.rows.shape[1])

    @property
    def counts(self) -> IntArray:
        """How many measurements there are of each arm."""
        return np.bincount(self.arms, minlength=len(self.names))

    @cached_property
    def has_holes(self) -> bool:
        """Whether rows lack some of their numbers, which are NaN."""
        return bool(np.isnan(self.rows).any())

    def order(self, in_order: Any = False) -> Order:
        """The order in which the rows are used: shuffled by a seed from what they hold, or as they stand."""
        rows = zip(self.arms.tolist(), self.rows.tolist(), strict=True)
        return content_order(((self.names[arm], *map(repr, values)) for arm, values in rows), in_order)

    def rearranged(self, order: Order) -> IntArray:
        """The row that comes at each place: an arm's rows change places among themselves.

        Where they are shuffled, they are sorted by value before, so that their order in the table plays no role.
        """
        rows = order.rearranged(self.arms, self.names.__getitem__)
        if order.seed is None:
            return rows
        by_value = np.empty_like(rows)
        by_value[np.argsort(self.arms, kind="stable")] = np.lexsort((*self.rows.T[::-1], self.arms))
        return by_value[rows]

    def stacks(self, order: Order) -> list[IntArray]:
        """The rows of each arm, in the order in which they are used."""
        return np.split(self.rearranged(order)[np.argsort(self.arms, kind="stable")], np.cumsum(self.counts)[:-1])

    @property
    def by_item(self) -> bool:
        """Whether a row has no number but that within its item: it is from arrays."""
        return self.place_word == BY_ITEM

    def place(self, row: int) -> str:
        """Where people find a row: its line in a CSV file, else its number, counted from 1."""
        return f"{self.place_word} {row + 1 if self.places is None else self.places[row]}"

    def only(self, kept: NDArray[np.bool_]) -> Pool:
        """The pool of these rows; they keep their places."""
        places = np.arange(1, len(self.rows) + 1) if self.places is None else self.places
        blocks = None if self.blocks is None else self.blocks.only(kept)
        return replace(self, arms=self.arms[kept], rows=self.rows[kept], places=places[kept], blocks=blocks)

    @property
    def cells(self) -> tuple[IntArray, IntArray, IntArray]:
        """The cell of each row, and the item and the block of each cell: an item, or in blocks an item in a block."""
        if self.blocks is None:
            return self.arms, np.arange(len(self.names)), np.zeros(len(self.names), dtype=np.int64)
        count = len(self.blocks.names)
        pairs, which = np.unique(self.arms * count + self.blocks.of_rows, return_inverse=True)
        return which.reshape(-1), pairs // count, pairs % count

    @cached_property
    def two_way(self) -> TwoWay | None:
        """Items and blocks fitted to the rows; None without blocks."""
        return None if self.blocks is None else two_way(self.arms, self.blocks.of_rows, self.rows)

    @property
    def freed(self) -> Pool:
        """The pool with what its blocks add taken off, so that the means of items can be compared; as it is without."""
        if self.blocks is not None and self.has_holes:
            rows = np.full_like(self.rows, np.nan)
            for number, (_, arms, blocks, values) in enumerate(by_numbers(self.arms, self.rows, self.blocks.of_rows)):
                if blocks is not None and len(values):
                    rows[~np.isnan(self.rows[:, number]), number] = two_way(arms, blocks, values).adjusted[:, 0]
            return replace(self, rows=rows, blocks=None)
        if self.two_way is None:
            return self
        return replace(self, rows=self.two_way.adjusted, blocks=None)

    @property
    def by_cell(self) -> Pool:
        """The pool with a cell for an item: what stands in one cell differs by the noise only."""
        if self.blocks is None:
            return self
        cells, arms, blocks = self.cells
        names = [
            f"{self.names[arm]} in {self.blocks.column} {self.blocks.names[block]}"
            for arm, block in zip(arms, blocks, strict=True)
        ]
        return replace(self, names=names, arms=cells, blocks=None)

    def item_of(self, row: int) -> str:
        """The name of the item that a row is of."""
        return self.names[int(self.arms[row])]

    def spread(self) -> Spread:
        """How the measurements of an item vary about its mean, over all items; in blocks, about the sum of both."""
        if self.has_holes:
            return spread_of_numbers(self.arms, self.rows, None if self.blocks is None else self.blocks.of_rows)
        fit = self.two_way
        if fit is None:
            return spread_of(self.arms, self.rows, len(self.names))
        return Spread((fit.scatter + fit.scatter.T) / 2.0, fit.freedom)

    def described(self) -> Reading:
        """What was read."""
        counts = self.counts
        whole = self.rows[~np.isnan(self.rows).any(axis=1)]
        columns = list(zip(self.columns, self.rows.T, strict=True))
        spelt = defaultdict(list)
        for name in self.names:
            spelt[_LEADING_ZEROS.sub("", "".join(name.casefold().split()))].append(name)
        return Reading(
            source=self.source,
            items=len(self.names),
            measurements=len(self.rows),
            fewest=int(counts.min()),
            most=int(counts.max()),
            once=[name for name, count in zip(self.names, counts, strict=True) if count == 1],
            spelt_alike=[names for names in spelt.values() if len(names) > 1],
            item_column=self.item_column,
            guessed=self.guessed,
            values=self.columns,
            numbers_for_names=self.place_word == BY_LINE and all(map(_is_number, self.columns)),
            left_out=[UnusedColumn(column, why, column in self.unmeasured) for column, why in self.left_out],
            constant=[column for column, values in columns if np.ptp(_known(values)) == 0.0],
            copies=[[self.columns[first], self.columns[second]] for first, second in copied_columns(whole)],
            holes=list(self.holes),
            remarks=list(self.remarks),
            copied_rows=self.copies,
            whole=self.scale(),
            counters=[column for column in self.columns if column.strip().casefold() in COUNTERS and not self.picked],
            cut=self.cut,
            blocks=None if self.blocks is None else BlocksRead(self.blocks.column, len(self.blocks.names)),
            likely_block=self.likely_block,
            missing=[(column, missing) for column, values in columns if (missing := int(np.isnan(values).sum()))],
        )

    def scale(self) -> list[int] | None:
        """The least and the largest value, if all are whole numbers of a short range, as ratings are."""
        values = _known(self.rows)
        low, high = float(values.min()), float(values.max())
        return [int(low), int(high)] if 0 < high - low <= LONGEST_SCALE and (values % 1.0 == 0.0).all() else None


def item_places(arms: IntArray) -> IntArray:
    """The number of each row within its item, from 1."""
    order = np.argsort(arms, kind="stable")
    counts = np.bincount(arms)
    places = np.empty_like(arms)
    places[order] = np.arange(arms.size) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    return places


def _known(values: FloatArray) -> FloatArray:
    """The numbers that are there."""
    known: FloatArray = values[~np.isnan(values)]
    return known


def _is_number(name: str) -> bool:
    return _NUMBER.fullmatch(name.strip()) is not None
