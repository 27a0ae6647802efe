"""What stands in the cells of a table: names of items, numbers, and holes.

Where the comma does not stand between the cells of a CSV file, it may be the decimal mark. Errors name the line of the
file (of Parquet and of rows in memory: the row, counted from 1) and the column. Rows in which a cell is empty are
refused, or left out if the caller says that the values are not the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import FloatArray, IntArray, short
from coterie.tables.errors import TableError, check_time
from coterie.tables.reading.files import Table, is_empty

ABOUT_CELLS = (
    "leave a whole row out only if the reason has nothing to do with its value (docs/CAMPAIGNS.md, "
    '"Cells that are not numbers")'
)

NO_VALUE = frozenset(("#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"))
"""What R, pandas, databases and spreadsheets write where there is no number."""

DATES = (date, time, timedelta)
"""Types of cells that hold a date or a time."""

_ROWS_AT_ONCE = 2**16
_MOST_LISTED = 3  # cells that cannot be read, besides the first, that a message lists
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_THOUSANDS = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:\{mark}\d{{3}})+") for mark in ",."}
ABOUT_HOLES = (
    "; if the reasons for empty cells, or NA, have nothing to do with the values, --leave-out-holes leaves their rows "
    "out (in Python leave_out_holes=True)"
)
ABOUT_SOME = (
    f"{ABOUT_HOLES}, and of a finished table --holes at-random counts the numbers that are there (in Python "
    'holes="at random")'
)


# Names of items.


def text_of(cell: Any) -> str:
    """The name in a cell: text as it is written (001 is not 1); a whole number without a point, as 3.0 from Parquet."""
    if isinstance(cell, str):
        return cell.strip()
    number = whole(cell)
    return str(cell) if number is None else str(number)


def whole(cell: Any) -> int | None:
    """A cell as a whole number, if it is one."""
    if isinstance(cell, bool):
        return None
    if isinstance(cell, str):
        digits = cell.removeprefix("-")
        return int(cell) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
    if isinstance(cell, float):
        return int(cell) if math.isfinite(cell) and cell == math.floor(cell) and abs(cell) < 2**53 else None
    return cell if isinstance(cell, int) else None


def is_date(cell: Any) -> bool:
    """Whether a cell holds a date or a time; spreadsheets make some of what looks like one."""
    return isinstance(cell, DATES)


# Numbers.


def has_numbers(table: Table, place: int) -> bool:
    """Whether any cell of the column at this place is a number."""
    return any(_number_in(table, cell)[0] is not None for cell in table.column(place))


def numbers_of(table: Table, place: int) -> FloatArray | None:
    """The numbers of a column, NaN for cells without a value; None if another cell holds no number."""
    cells = table.column(place)
    parts: list[FloatArray] = [np.empty(0)]
    for start in range(0, len(cells), _ROWS_AT_ONCE):
        check_time()
        part = cells[start : start + _ROWS_AT_ONCE]
        values = _plain_numbers(part)
        if values is None:
            each = [math.nan if is_no_value(cell) else _number_in(table, cell)[0] for cell in part]
            if None in each:
                return None
            values = np.array(each, dtype=np.float64)
        parts.append(values)
    return np.concatenate(parts)


def _plain_numbers(cells: Sequence[Any]) -> FloatArray | None:
    """The numbers of these cells if `float` reads each of them as `_number_in` does, which is ten times slower."""
    if not set(map(type, cells)) <= {str, int, float}:
        return None
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except (ValueError, OverflowError):
        return None
    unclear = not np.isfinite(values).all() or any("_" in cell for cell in cells if isinstance(cell, str))
    return None if unclear else values


def _number_in(table: Table, cell: Any) -> tuple[float | None, str]:
    """The number in a cell, or why there is none."""
    needed = "a number is needed"
    if isinstance(cell, str):
        if "_" in cell:
            return None, needed
        if table.decimal_comma and _DECIMAL_COMMA.fullmatch(cell):
            cell = cell.replace(",", ".")
    elif is_date(cell):
        return None, "a number is needed, not a date or time"
    elif isinstance(cell, bool) or not isinstance(cell, int | float):
        return None, needed
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        return None, needed
    return (number, "") if math.isfinite(number) else (None, "a finite number is needed")


def numbers(table: Table, places: Sequence[int], holes: bool = False) -> list[list[float]]:
    """The numbers of every row in the columns at these places; with `holes`, NaN for cells without a value.

    If other cells hold no number, the error counts them all and names the first of them.
    """
    rows: list[list[float]] = _number_array(table, places, holes).tolist()
    return rows


def _number_array(table: Table, places: Sequence[int], holes: bool) -> FloatArray:
    """As `numbers`."""
    rows = np.empty((len(table.rows), len(places)))
    for i, place in enumerate(places):
        values = numbers_of(table, place)
        if values is None or not (holes or np.isfinite(values).all()):
            raise _bad_cells(table, places, holes)
        rows[:, i] = values
    refuse_unclear_marks(table, places)
    return rows


def numbers_and_others(
    table: Table, places: Sequence[int], holes: bool = False
) -> tuple[list[list[float]], list[tuple[int, int, str]]]:
    """The numbers of every row at these places; and of each cell without one its row, its column, and why.

    With `holes`, the number of a cell without a value is NaN.
    """
    rows: list[list[float]] = []
    bad: list[tuple[int, int, str]] = []
    for number, row in enumerate(table.rows):
        check_time()
        values = []
        for i in places:
            value, reason = (math.nan, "") if holes and is_no_value(row[i]) else _number_in(table, row[i])
            if value is None:
                bad.append((number, i, f"{reason}, got {_cut(row[i])}"))
            else:
                values.append(value)
        rows.append(values)
    return rows, bad


def refuse_unclear_marks(table: Table, places: Sequence[int]) -> None:
    """Refuse columns of numbers in which a comma or point may be a decimal mark or stand between thousands."""
    if table.decimal_comma:
        _refuse_two_decimal_marks(table, places)
        _refuse_thousands(table, places)


def _bad_cells(table: Table, places: Sequence[int], holes: bool) -> TableError:
    """The error about all cells without a number; by parts of the rows, as numbers in lists take much memory."""
    bad: list[tuple[int, int, str]] = []
    for start in range(0, len(table.rows), _ROWS_AT_ONCE):
        part = replace(table, rows=table.rows[start : start + _ROWS_AT_ONCE])
        bad += [(start + row, i, reason) for row, i, reason in numbers_and_others(part, places, holes)[1]]
    row, place, message = bad[0]
    more = [
        f"{table.place(row)}, column {_cut(table.columns[i])}: {_cut(table.rows[row][i])}"
        for row, i, _ in bad[1 : 1 + _MOST_LISTED]
    ]
    left = len(bad) - 1 - len(more)
    others = f"; {len(bad)} such cells, also {'; '.join(more)}{f'; and {left} more' if left else ''}" if more else ""
    message = f"{message}{others}; {ABOUT_CELLS}"
    return table.problem(row, table.columns[place], message)


def _cut(cell: Any) -> str:
    text = str(cell) if is_date(cell) else short(cell)
    return text if len(text) <= 24 else text[:21] + "..."


def numbered(given: Sequence[str]) -> tuple[list[str], IntArray]:
    """The different names, in their order (S2 before S10, numbers by size), and the number of each name given."""
    order = sorted(set(given))
    sizes = {name: whole(name) for name in order}
    if None not in sizes.values():
        order.sort(key=lambda name: sizes[name] or 0)
    else:
        order.sort(key=_by_name)
    index = {name: number for number, name in enumerate(order)}
    return order, np.array([index[name] for name in given], dtype=np.int64)


def _by_name(name: str) -> list[tuple[int, int, str]]:
    """A key for sorting: whole numbers in a name count as numbers, and capitals as small letters."""
    parts = re.split(r"([0-9]+)", name.casefold())
    digits = [part.lstrip("0") for part in parts]  # compared by length first, then digit by digit
    return [(0, len(digits[i]), digits[i]) if i % 2 else (1, 0, part) for i, part in enumerate(parts) if part]


def _refuse_two_decimal_marks(table: Table, places: Sequence[int]) -> None:
    """Refuse a file with decimal commas and decimal points: which of them means what is not guessed."""
    seen: dict[str, tuple[int, int]] = {}
    for number, row in enumerate(table.rows):
        for i in places:
            for mark in ",.":
                if mark in row[i]:
                    seen.setdefault(mark, (number, i))
    if len(seen) == 2:
        (comma, i), (point, j) = seen[","], seen["."]
        message = (
            f"{_cut(table.rows[comma][i])} has a decimal comma, but {table.place(point)}, column "
            f"{_cut(table.columns[j])}, has a point, {_cut(table.rows[point][j])}: use one of the two everywhere"
        )
        raise table.problem(comma, table.columns[i], message)


def _refuse_thousands(table: Table, places: Sequence[int]) -> None:
    """Refuse 1,234 where the column does not show whether the mark is a decimal one or stands between thousands.

    A column shows it by a number that cannot have thousands (5,41 or 0,512). Of a column in which every number has
    three digits after its mark, that is read off the rest of the table: for a comma from other columns of values, for a
    point (the decimal mark, where nothing speaks for the comma) from decimal commas anywhere.
    """
    columns = {i: [row[i] for row in table.rows] for i in range(len(table.columns))}
    decimals = [i for i, cells in columns.items() if any(_decimal(cell, ",") for cell in cells)]
    clear = {",": bool(set(decimals) & set(places)), ".": not decimals}
    for i in places:
        check_time()
        for mark in ",.":
            marked = [cell for cell in columns[i] if mark in cell]
            if not marked or any(_decimal(cell, mark) for cell in marked):
                continue
            if clear[mark] and len(marked) == sum(not is_no_value(cell) for cell in columns[i]):
                continue
            row = columns[i].index(marked[0])
            given = marked[0]
            point = given.replace(",", ".", 1)
            message = (
                f"{_cut(given)} may be {point} or, with a mark between thousands, {given.replace(mark, '')}: save the "
                f"table without marks between thousands, and with a comma between the cells, where {point} is clear"
            )
            raise table.problem(row, table.columns[i], message)


def _decimal(cell: str, mark: str) -> bool:
    """Whether this is a number in which the mark can only be the decimal mark."""
    match = _DECIMAL_COMMA.fullmatch(cell.replace(".", ",") if mark == "." else cell)
    return match is not None and mark in cell and _THOUSANDS[mark].fullmatch(cell) is None


def is_hole(cell: Any) -> bool:
    """Whether a cell holds nothing: it is empty, or NaN. A name may be NA."""
    return is_empty(cell) or (isinstance(cell, float) and cell != cell)


def is_no_value(cell: Any) -> bool:
    """Whether a cell among numbers stands for none: a hole, or NA as programs write it."""
    if isinstance(cell, str):
        text = cell.strip()
        return not text or text in NO_VALUE
    return is_hole(cell)


def counted_rows(
    table: Table, places: Sequence[int], leave_out: bool, holes: bool = False
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The numbers of the rows without holes, or with `holes` of those that have any, NaN where one is missing; and
    which rows these are. `TableError` if holes are neither to be left out nor at random.
    """
    try:
        rows = _number_array(table, places, leave_out or holes)
    except TableError as error:
        whole = leave_out or holes or not any(is_no_value(cell) for i in places for cell in table.column(i))
        about = "" if whole else ABOUT_HOLES if len(places) == 1 else ABOUT_SOME
        raise TableError(f"{error.message}{about}", error.field) from None
    there = ~np.isnan(rows)
    kept: NDArray[np.bool_] = np.asarray(there.any(axis=1) if holes else there.all(axis=1))
    return rows[kept], kept


def check_items_left(table: Table, names: Sequence[str], arms: Any, whole: NDArray[np.bool_]) -> None:
    """`TableError` for the first item of which every row has a hole."""
    left = np.bincount(arms[whole], minlength=len(names))
    if (left == 0).any():
        name = names[int(np.argmin(left))]
        message = f"{table.name}: every row of {name} has an empty cell, so nothing is left of it"
        raise TableError(f"{message}: leave the column out (--values), or the item", field="leave_out_holes")
