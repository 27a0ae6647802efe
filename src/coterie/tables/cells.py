"""What stands in the cells of a table: names of items, and numbers.

Where the comma does not stand between the cells of a CSV file, it may be the decimal mark. Errors name the line of the
file (of Parquet and of rows in memory: the row, counted from 1) and the column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, time, timedelta
from typing import Any

from coterie.problem.checks import short
from coterie.tables.errors import TableError
from coterie.tables.files import Table
from coterie.tables.time_limit import check_time

ABOUT_CELLS = (
    "leave a whole row out only if the reason has nothing to do with its value (docs/CAMPAIGNS.md, "
    '"Cells that are not numbers")'
)

_MOST_LISTED = 3  # cells that cannot be read, besides the first, that a message lists
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_THOUSANDS = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:\{mark}\d{{3}})+") for mark in ",."}


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
    return isinstance(cell, date | time | timedelta)


# Numbers.


def has_numbers(table: Table, place: int) -> bool:
    """Whether any cell of the column at this place is a number."""
    return any(_number_in(table, row[place])[0] is not None for row in table.rows)


def number_in(table: Table, cell: Any) -> float | None:
    """The number in a cell, if there is one."""
    return _number_in(table, cell)[0]


def _number_in(table: Table, cell: Any) -> tuple[float | None, str]:
    """The number in a cell, or why there is none."""
    needed = "a number is needed"
    if is_date(cell):
        return None, "a number is needed, not a date or time"
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None, needed
    if isinstance(cell, str):
        if "_" in cell:
            return None, needed
        if table.decimal_comma and _DECIMAL_COMMA.fullmatch(cell):
            cell = cell.replace(",", ".")
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        return None, needed
    return (number, "") if math.isfinite(number) else (None, "a finite number is needed")


def numbers(table: Table, places: Sequence[int]) -> list[list[float]]:
    """The numbers of every row in the columns at these places.

    If some cells hold none, the error counts them all and names the first of them.
    """
    found, bad = numbers_and_others(table, places)
    if bad:
        raise _bad_cells(table, bad)
    refuse_unclear_marks(table, places)
    return found


def numbers_and_others(table: Table, places: Sequence[int]) -> tuple[list[list[float]], list[tuple[int, int, str]]]:
    """The numbers of every row at these places; and of each cell without one its row, its column, and why."""
    found: list[list[float]] = []
    bad: list[tuple[int, int, str]] = []
    for number, row in enumerate(table.rows):
        check_time()
        values = []
        for i in places:
            value, what = _number_in(table, row[i])
            if value is None:
                bad.append((number, i, f"{what}, got {_cut(row[i])}"))
            else:
                values.append(value)
        found.append(values)
    return found, bad


def refuse_unclear_marks(table: Table, places: Sequence[int]) -> None:
    """Refuse columns of numbers in which a comma or point may be a decimal mark or stand between thousands."""
    if table.decimal_comma:
        _refuse_two_decimal_marks(table, places)
        _refuse_thousands(table, places)


def _bad_cells(table: Table, bad: list[tuple[int, int, str]]) -> TableError:
    row, place, what = bad[0]
    more = [
        f"{table.place(row)}, column {_cut(table.columns[i])}: {_cut(table.rows[row][i])}"
        for row, i, _ in bad[1 : 1 + _MOST_LISTED]
    ]
    left = len(bad) - 1 - len(more)
    others = f"; {len(bad)} such cells, also {'; '.join(more)}{f'; and {left} more' if left else ''}" if more else ""
    what = f"{what}{others}; {ABOUT_CELLS}"
    return table.problem(row, table.columns[place], what)


def _cut(cell: Any) -> str:
    text = str(cell) if is_date(cell) else short(cell)
    return text if len(text) <= 24 else text[:21] + "..."


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
        what = (
            f"{_cut(table.rows[comma][i])} has a decimal comma, but {table.place(point)}, column "
            f"{_cut(table.columns[j])}, has a point, {_cut(table.rows[point][j])}: use one of the two everywhere"
        )
        raise table.problem(comma, table.columns[i], what)


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
            all_of_them = len(marked) == len(columns[i])
            if all_of_them and clear[mark]:
                continue
            row = columns[i].index(marked[0])
            given = marked[0]
            point = given.replace(",", ".", 1)
            what = (
                f"{_cut(given)} may be {point} or, with a mark between thousands, {given.replace(mark, '')}: save the "
                f"table without marks between thousands, and with a comma between the cells, where {point} is clear"
            )
            raise table.problem(row, table.columns[i], what)


def _decimal(cell: str, mark: str) -> bool:
    """Whether this is a number in which the mark can only be the decimal mark."""
    one = _DECIMAL_COMMA.fullmatch(cell.replace(".", ",") if mark == "." else cell)
    return one is not None and mark in cell and _THOUSANDS[mark].fullmatch(cell) is None
