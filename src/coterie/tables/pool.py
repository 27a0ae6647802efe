"""A pool: all measurements of a table, with the arm and the values of each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_real_array, short
from coterie.tables.bookkeeping import no_measurement
from coterie.tables.cells import has_numbers, numbers, text_of, whole
from coterie.tables.columns import (
    ITEM_NAMES,
    TOTALS,
    column_named,
    is_record,
    item_column,
    listed,
    place_of,
    value_columns,
)
from coterie.tables.errors import TableError
from coterie.tables.files import Table, is_empty, read_table
from coterie.tables.fit import Spread, spread_of
from coterie.tables.holes import check_items_left, complete_rows
from coterie.tables.repeated_rows import without_copies
from coterie.tables.shuffle import Order, content_order
from coterie.tables.tidying import (
    item_by_item,
    item_hint,
    sheet_hint,
    unit_of,
    without_second_heading,
    without_units,
    words_as_numbers,
    zero_and_one,
)
from coterie.theory.copies import copied_columns

VALUE = "value"
"""What the measurements of a wide table are called."""

COUNTERS = ("day", "date", "week", "month", "year", "row", "index", "no", "no.", "nr", "nr.", "#", "tag", "datum")
"""Columns of numbers that often say when or which; they are named where their content does not show it."""

LONGEST_SCALE = 10
"""Whole numbers within such a range look like ratings."""

_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")  # in the place of a column's name
_LEADING_ZEROS = re.compile(r"(?<![\d.,])0+(?=\d)")  # of whole numbers in names: S05 and S5, 001 and 1


@dataclass(frozen=True)
class Pool:
    """Recorded measurements: the names of the arms, and the arm and the values of every row of the table.

    `columns` are the names of the values, `source` is what the table is called, `left_out` are columns that were not
    used, each with the reason. `lines`: of a CSV file, where each row begins. `picked`: the caller named the columns.
    `holes`: places of rows that were left out because a cell is empty; `numbers`: where the other rows
    stood before that. `cut`: how successes and trials became counts (`coterie.tables.successes`), as plain JSON.
    """

    names: list[str]
    arms: IntArray
    rows: FloatArray
    columns: list[str]
    source: str
    item_column: str | None = None
    guessed: bool = False  # the item column has no name that says so
    left_out: tuple[tuple[str, str], ...] = ()
    lines: tuple[int, ...] | None = None
    by_item: bool = False  # from arrays: a row has no number but that within its item
    picked: bool = False
    holes: tuple[str, ...] = ()
    numbers: tuple[int, ...] | None = None
    cut: dict[str, Any] | None = None
    remarks: tuple[str, ...] = ()  # what was done to the table before it was read
    copies: str | None = None  # what was said about rows that are copies, if there are any: drop or keep
    unmeasured: tuple[str, ...] = ()  # columns of numbers that were left out for what they hold

    @property
    def dim(self) -> int:
        """How many numbers a measurement has."""
        return int(self.rows.shape[1])

    @property
    def counts(self) -> IntArray:
        """How many measurements there are of each arm."""
        return np.bincount(self.arms, minlength=len(self.names))

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

    def place(self, row: int) -> str:
        """Where people find a row: its line in a CSV file, else its number, counted from 1."""
        if self.lines is not None:
            return f"line {self.lines[row]}"
        if self.by_item:
            return f"result {1 + int((self.arms[:row] == self.arms[row]).sum())}"
        return f"row {(row if self.numbers is None else self.numbers[row]) + 1}"

    def spread(self) -> Spread:
        """How the measurements of an item vary about its mean, over all items."""
        return spread_of(self.arms, self.rows, len(self.names))

    def described(self) -> dict[str, Any]:
        """What was read, as plain JSON."""
        counts = self.counts
        spelt = defaultdict(list)
        for name in self.names:
            spelt[_LEADING_ZEROS.sub("", "".join(name.casefold().split()))].append(name)
        return {
            "source": self.source,
            "items": len(self.names),
            "measurements": len(self.rows),
            "fewest": int(counts.min()),
            "most": int(counts.max()),
            "once": [name for name, count in zip(self.names, counts, strict=True) if count == 1],
            "spelt_alike": [names for names in spelt.values() if len(names) > 1],
            "item_column": self.item_column,
            "guessed": self.guessed,
            "values": self.columns,
            "numbers_for_names": self.lines is not None and all(map(_is_number, self.columns)),
            "left_out": [
                {"column": column, "why": why, "by_content": column in self.unmeasured} for column, why in self.left_out
            ],
            "constant": self._constant(),
            "copies": self._copies(),
            "holes": list(self.holes),
            "remarks": list(self.remarks),
            "copied_rows": self.copies,
            "whole": self._whole_numbers(),
            "counters": [
                column for column in self.columns if column.strip().casefold() in COUNTERS and not self.picked
            ],
            "cut": self.cut,
        }

    def _constant(self) -> list[str]:
        """Columns that have one value in all rows."""
        return [column for column, values in zip(self.columns, self.rows.T, strict=True) if (values == values[0]).all()]

    def _whole_numbers(self) -> list[int] | None:
        """The least and the largest value, if all are whole numbers of a short range, as ratings are."""
        low, high = float(self.rows.min()), float(self.rows.max())
        return [int(low), int(high)] if 0 < high - low <= LONGEST_SCALE and (self.rows % 1.0 == 0.0).all() else None

    def _copies(self) -> list[list[str]]:
        """Pairs of columns of which one follows from the other: equal, or in other units. Each column at most once."""
        return [[self.columns[first], self.columns[second]] for first, second in copied_columns(self.rows)]


def read_pool(
    pool: Any,
    values: Sequence[str] | None = None,
    items: str | None = None,
    wide: bool | str = False,
    leave_out_holes: bool = False,
    sheet: str | None = None,
    copies: str | None = None,
) -> Pool:
    """A pool from a file, rows, a DataFrame or {arm: (n, d) array}; `values` and `items` name the columns.

    `wide`: a row is an item, and each of its cells one measurement of it, of one number; empty cells are none. With
    "columns" a column is an item. `sheet`: which one of an Excel file, unless it is the first.
    `leave_out_holes`: rows in which a value is empty are left out; otherwise they are refused.
    `copies`: what rows are that repeat another one exactly, more of them than chance explains
    (`coterie.tables.repeated_rows`): with "drop" each counts once, with "keep" they are measurements of their own.
    Where there are such rows and nothing is said, `TableError` of the field "copies" names them.

    Without `values` they are v0, v1, … or all other columns of numbers that may be measurements
    (`coterie.tables.bookkeeping`), never the index of a frame; without `items` it is the column arm, item,
    sample, name or id, or the only one without numbers. Errors name the line and the column. A `Pool` is one already.
    """
    if isinstance(pool, Pool):
        if values is not None or items is not None or wide:
            raise TableError(f"{pool.source} is a pool already: it takes no other columns", field="pool")
        return pool
    if isinstance(pool, Mapping):
        for given, name in ((wide, "wide"), (leave_out_holes, "leave_out_holes")):
            if given:
                raise TableError(f"{name} is for a table; a dictionary of arrays is none", field=name)
        return without_copies(_arrays(pool), copies)
    if wide not in (False, True, "rows", "columns"):
        raise TableError(f"wide must be True, False, 'rows' or 'columns', got {short(wide)}", field="wide")
    table = read_table(pool, sheet)
    _check_shape(table)
    by_column = wide == "columns"
    counting: dict[str, str] = {}
    if by_column:
        if values is None:
            counting = _no_measurements(table, range(len(table.columns)), None)
        table, wide = item_by_item(table, items, values, leave_out=counting), False
        values = None
    item, guessed = _item_place(table, items, sheet)
    table, headings = without_second_heading(table, item)
    table, units = without_units(table, item, values)
    column = None if by_column else table.columns[item]
    names, arms = _items(table, item)
    table, words = _with_zeros_and_ones(table, item, values, None if wide else arms)
    places = _value_places(table, item, values)
    if values is None and not by_column and not _by_convention(table, places):
        counting = _no_measurements(table, places, None if wide else arms)
        places = _measured(table, places, counting)
    lines = None if table.lines is None else np.array(table.lines)
    holes: tuple[str, ...] = ()
    rows_left: tuple[int, ...] | None = None
    if wide:
        rows, of_rows = _repeats(table, places)
        arms, lines = arms[of_rows], None if lines is None else lines[of_rows]
        called = [VALUE]
    else:
        content, whole_rows = _complete_rows(table, places, leave_out_holes, len(names))
        check_items_left(table, names, arms, whole_rows)
        rows = np.array(content, dtype=np.float64)
        called = [table.columns[i] for i in places]
        if len(rows) < len(arms):
            holes = tuple(table.place(int(row)) for row in np.flatnonzero(~whole_rows))
            arms, lines = arms[whole_rows], None if lines is None else lines[whole_rows]
            rows_left = tuple(np.flatnonzero(whole_rows).tolist())
    left_out = tuple(
        (one or "(no name)", counting.get(one) or _why(table, i, values))
        for i, one in enumerate(table.columns)
        if i not in (item, *places)
    )
    left_out += tuple(one for one in counting.items() if one not in left_out)
    found = None if lines is None else tuple(lines.tolist())
    read = Pool(
        names, arms, rows, called, table.name, column, guessed, left_out, found,
        unmeasured=tuple(counting), picked=values is not None, holes=holes, numbers=rows_left,
        remarks=(*headings, *units, *words),
    )  # fmt: skip
    return without_copies(read, copies)


def _check_shape(table: Table) -> None:
    """Whether there can be items and values in it at all."""
    if not table.rows:
        named = f": its only line names the columns {listed(table.columns)}" if any(table.columns) else ""
        raise TableError(f"{table.name} has no measurements{named}", field="pool")
    if len(table.columns) == 1:
        wanted = "one column must name the items and others hold the values"
        what, marks = "has a single column", ""
        if table.lines is not None:
            what, marks = "has a single cell in each line", ", with commas, semicolons or tabs between them"
        raise TableError(f"{table.name} {what}, {short(table.columns[0])}: {wanted}{marks}", field="pool")


def _repeats(table: Table, places: Sequence[int]) -> tuple[FloatArray, IntArray]:
    """The measurements of a wide table, row by row and from left to right, and the row that each stands in."""
    there = np.array([[not is_empty(row[i]) for i in places] for row in table.rows])
    none = np.flatnonzero(~there.any(axis=1))
    if none.size:
        raise table.problem(int(none[0]), table.columns[places[0]], "the item of this row has no measurement")
    # An empty cell is read as another one of its row, and then left out: the rest is checked as in any table.
    firsts = [row[places[int(k)]] for row, k in zip(table.rows, there.argmax(axis=1), strict=True)]
    filled = [
        [first if is_empty(cell) else cell for cell in row] for row, first in zip(table.rows, firsts, strict=True)
    ]
    cells = np.array(numbers(replace(table, rows=filled), places), dtype=np.float64)
    return cells[there][:, None], np.nonzero(there)[0]


def _arrays(pool: Mapping[Any, Any]) -> Pool:
    blocks = []
    for arm, content in pool.items():
        block = check_real_array(content, f"the pool of arm {short(arm)}")
        blocks.append(block[:, None] if block.ndim == 1 else block)
    if len({block.shape[1:] for block in blocks}) != 1 or blocks[0].ndim != 2:
        raise TableError("a pool is a dictionary of (n, d) arrays of one d", field="pool")
    rows = np.concatenate(blocks)
    if not rows.size:
        raise TableError("the pool has no measurements", field="pool")
    arms = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    return Pool(
        [str(arm) for arm in pool], arms, rows, [f"v{i}" for i in range(rows.shape[1])], "the pool", by_item=True
    )


def _complete_rows(table: Table, places: Sequence[int], leave_out: bool, items: int) -> tuple[list[list[float]], Any]:
    """As `complete_rows`; where every item has one row, the error says how a table with repeats in a row is read."""
    try:
        return complete_rows(table, places, leave_out)
    except TableError as error:
        if items < len(table.rows) or len(places) < 3:
            raise
        hint = "if each row is an item, and each cell one measurement of it: --wide (in Python wide=True)"
        raise TableError(f"{error.message}; {hint}", error.field) from None


def _item_place(table: Table, wanted: str | None, sheet: str | None) -> tuple[int, bool]:
    """The place of the item column, and whether it was only guessed: as the one column without numbers."""
    if wanted is not None:
        try:
            return column_named(table, wanted), False
        except TableError as error:
            raise TableError(f"{error.message}{sheet_hint(table, sheet)}", error.field) from None
    known = (*ITEM_NAMES, "id")
    found = item_column(table, known)
    if found is not None:
        return found, False
    texts = [
        i
        for i, column in enumerate(table.columns)
        if column and any(row[i] for row in table.rows) and not has_numbers(table, i)
    ]
    texts = [i for i in texts if unit_of(table, i) is None and zero_and_one(table, i) is None] or texts
    if len(texts) == 1:
        return texts[0], True
    what = (
        f"{table.name} needs a column arm, item, sample, name or id, or say which column names the items: "
        f"--items COLUMN (in Python items=); its columns are {listed(table.columns)}"
        f"{item_hint(table)}{sheet_hint(table, sheet)}"
    )
    raise TableError(what, field="arm")


def _value_places(table: Table, item: int, wanted: Sequence[str] | None) -> list[int]:
    try:
        return value_columns(table, item, None, wanted, numeric=True)
    except TableError as error:
        if wanted is None and table.rows and len(table.columns) > 1:
            what = f"{table.name} has no column of numbers beside the items; its columns are"
            raise TableError(f"{what} {listed(table.columns)}", field="values") from None
        raise error


def _with_zeros_and_ones(
    table: Table, item: int, wanted: Sequence[str] | None, arms: IntArray | None
) -> tuple[Table, tuple[str, ...]]:
    """The table with words such as yes and no as 1 and 0, in the columns wanted or, where there are no other values, in
    all columns of such words; and a remark on that.
    """
    if wanted is not None:
        places = [place for one in wanted if (place := place_of(table, one)) is not None]
    else:
        own = [i for i, one in enumerate(table.columns) if i != item and one and one not in table.index]
        own = [i for i in own if not is_record(table.columns[i])]
        counted = [i for i in own if has_numbers(table, i)]
        if len(_no_measurements(table, counted, arms)) < len(counted):
            return table, ()
        places = own
    read = {i: words for i in places if i != item and (words := zero_and_one(table, i)) is not None}
    named = ", ".join(f"{table.columns[i]} ({one} is 1, {zero} is 0)" for i, (zero, one) in read.items())
    remark = f"Words were read as numbers: {named}."
    return words_as_numbers(table, list(read)), (remark,) if read else ()


def _by_convention(table: Table, places: Sequence[int]) -> bool:
    """Whether the columns of values are v0, v1, …, which says that they are."""
    return table.columns[places[0]].casefold() == "v0"


def _no_measurements(table: Table, places: Sequence[int], arms: IntArray | None) -> dict[str, str]:
    """The columns at these places that hold numbers and measure nothing, each with the reason."""
    totals = {name for first, seconds in TOTALS.items() for name in (first, *seconds)}
    asked = [i for i in places if table.columns[i] and table.columns[i].strip().casefold() not in totals]
    found = {table.columns[i]: no_measurement(table, i, arms) for i in asked if has_numbers(table, i)}
    return {column: why for column, why in found.items() if why is not None}


def _measured(table: Table, places: Sequence[int], counting: Mapping[str, str]) -> list[int]:
    """The places without the columns that measure nothing; `TableError` if none is left."""
    left = [i for i in places if table.columns[i] not in counting]
    if not left:
        column, why = next(iter(counting.items()))
        what = f"{table.name} has no column of measurements beside the items: {column} was left out ({why})"
        raise TableError(f"{what}; if it is a measurement: --values {column} (in Python values=)", field="values")
    return left


def _is_number(name: str) -> bool:
    return _NUMBER.fullmatch(name.strip()) is not None


def _why(table: Table, place: int, wanted: Sequence[str] | None) -> str:
    """Why the column at this place holds no values."""
    if wanted is not None:
        return "not picked"
    if not table.columns[place]:
        return "no name"
    if table.columns[place] in table.index:
        return "the index"
    if is_record(table.columns[place]):
        return "an id" if table.columns[place].casefold() == "id" else "who and when"
    return "not v0, v1, …" if has_numbers(table, place) else "no numbers"


def _items(table: Table, item: int) -> tuple[list[str], IntArray]:
    """The names of the arms and the arm of each row.

    Arms are in the order of their names (S2 before S10, numbers by size), not of their appearance: in a table that is
    sorted by value, that would tell which item has the smallest value before any of its values is looked at.
    """
    cells = [row[item] for row in table.rows]
    empty = next((i for i, cell in enumerate(cells) if cell is None or not str(cell).strip()), None)
    if empty is not None:
        raise table.problem(empty, table.columns[item], "it is empty: every measurement needs its item")
    given = [text_of(cell) for cell in cells]
    order = sorted(set(given))
    sizes = {name: whole(name) for name in order}
    if None not in sizes.values():
        order.sort(key=lambda name: sizes[name] or 0)
    else:
        order.sort(key=_by_name)
    index = {name: arm for arm, name in enumerate(order)}
    return order, np.array([index[name] for name in given])


def _by_name(name: str) -> list[tuple[int, int, str]]:
    """A key for sorting: whole numbers in a name count as numbers, and capitals as small letters."""
    parts = re.split(r"([0-9]+)", name.casefold())
    digits = [part.lstrip("0") for part in parts]  # compared by length first, then digit by digit
    return [(0, len(digits[i]), digits[i]) if i % 2 else (1, 0, part) for i, part in enumerate(parts) if part]
