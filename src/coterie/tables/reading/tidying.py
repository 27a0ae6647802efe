"""Tables as people keep them: a second line of headings, units beside the numbers, a column for each item.

Each is turned into a plain table, with a remark that says what was done, or refused with what to do about it. Nothing
is guessed that changes a number: a unit is left out only if it is a known one and the same in the whole column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.problem.checks import IntArray, short
from coterie.tables.errors import TableError
from coterie.tables.reading.cells import has_numbers, is_no_value, whole
from coterie.tables.reading.columns import column_named, listed
from coterie.tables.reading.files import Table, is_empty

ITEM, VALUE = "item", "value"
"""What the two columns are called that a table with a column for each item becomes."""

_PREFIXED = ("g", "m", "l", "L", "s", "V", "A", "W", "Hz", "Pa", "mol", "M", "N", "J", "B", "bar", "eV", "cal")
_UNITS = {f"{prefix}{unit}" for unit in _PREFIXED for prefix in ("", "n", "µ", "μ", "u", "m", "c", "d", "k", "h", "M")}
_UNITS |= {"%", "‰", "°", "°C", "°F", "K", "C", "F", "min", "h", "d", "ppm", "ppb", "pH", "dB", "rpm", "€", "$", "£"}
_UNITS |= {"EUR", "USD", "AU", "U", "IU", "NTU", "pts", "points", "px", "in", "ft", "lb", "oz", "mmHg", "psi", "sec"}
_POWER = re.compile(r"(?:\^?[23]|[²³])$")
_QUANTITY = re.compile(r"([+-]?(?:\d+(?:[.,]\d+)*|[.,]\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s+\-.,].*)")
_ZERO_AND_ONE = (
    ("false", "true"), ("no", "yes"), ("n", "y"), ("fail", "pass"), ("failed", "passed"), ("failure", "success"),
    ("incorrect", "correct"), ("wrong", "right"), ("not ok", "ok"), ("off", "on"), ("nein", "ja"),
)  # fmt: skip
_CODES = 20  # different numbers of a column that may name the items
_CANDIDATES = 3  # columns that may name the items, listed where none says that it does


def quantity(cell: Any) -> tuple[str, str] | None:
    """The number and the unit of a cell such as "520 mg/l", both as they are written; None if it is no such cell."""
    match = _QUANTITY.fullmatch(cell.strip()) if isinstance(cell, str) else None
    if match is None or not _is_unit(match[2].strip()):
        return None
    return match[1], match[2].strip()


def _is_unit(text: str) -> bool:
    parts = [_POWER.sub("", re.sub(r"^\d+\s*", "", part.strip())) for part in re.split(r"[/·*]", text)]
    return all(part in _UNITS for part in parts)


def unit_of(table: Table, place: int) -> str | None:
    """The unit of a column in which most cells are a number with one unit, and none is a number alone."""
    if has_numbers(table, place):
        return None
    cells = table.column(place)
    units = Counter(entry[1] for entry in map(quantity, cells) if entry is not None)
    filled = sum(not is_no_value(cell) for cell in cells)
    if len(units) != 1 or 2 * units.total() < filled:
        return None
    return next(iter(units))


def without_units(table: Table, item: int, wanted: Sequence[str] | None) -> tuple[Table, tuple[str, ...]]:
    """The table with the units of its columns left out, and a remark on that. Cells without the unit stay."""
    units = {
        i: unit
        for i, column in enumerate(table.columns)
        if i != item and column and (wanted is None or column in wanted) and (unit := unit_of(table, i)) is not None
    }
    if not units:
        return table, ()
    rows = [
        [entry[0] if i in units and (entry := quantity(cell)) is not None else cell for i, cell in enumerate(row)]
        for row in table.rows
    ]
    named = ", ".join(f"{table.columns[i]} in {unit}" for i, unit in units.items())
    return replace(table, rows=rows), (f"Units were left out: {named}.",)


def zero_and_one(table: Table, place: int) -> tuple[str, str] | None:
    """The two words that a column consists of, if they stand for 0 and 1, such as no and yes; else None."""
    cells: set[str] = set()
    for cell in table.column(place):
        if not is_no_value(cell):
            cells.add(("true" if cell else "false") if isinstance(cell, bool) else str(cell).strip().casefold())
            if len(cells) > 2:
                return None
    return next((words for words in _ZERO_AND_ONE if cells and cells <= set(words)), None)


def words_as_numbers(table: Table, places: Sequence[int]) -> Table:
    """The table with 0 and 1 in those of these columns that consist of two words for them."""
    words = {i: pair for i in places if (pair := zero_and_one(table, i)) is not None}
    if not words:
        return table
    rows = [
        [
            int(str(cell).strip().casefold() == words[i][1]) if i in words and not is_no_value(cell) else cell
            for i, cell in enumerate(row)
        ]
        for row in table.rows
    ]
    # Numbers are written as the other cells are: as text, where the file has text.
    if table.lines is not None and table.line_word == "line":
        rows = [[str(cell) if i in words else cell for i, cell in enumerate(row)] for row in rows]
    return replace(table, rows=rows)


def without_second_heading(table: Table, item: int) -> tuple[Table, tuple[str, ...]]:
    """The table without a first row that names no item and has no number, such as one of units; and a remark on it."""
    if len(table.rows) < 2:
        return table, ()
    first = table.rows[0]
    if not is_empty(first[item]) or any(has_numbers(replace(table, rows=[first]), i) for i in range(len(first))):
        return table, ()
    shown = ", ".join(str(cell) for cell in first if not is_empty(cell))
    lines = None if table.lines is None else table.lines[1:]
    place = table.place(0)
    remark = (
        f"{place[0].upper()}{place[1:]} names no item and has no number: it was taken for a second heading ({shown})."
    )
    return replace(table, rows=table.rows[1:], lines=lines), (remark,)


def item_by_item(
    table: Table, items: str | None, wanted: Sequence[str] | None, leave_out: Collection[str] = ()
) -> tuple[Table, IntArray]:
    """A table with a column for each item, and in it a measurement in each cell, as one with a row for each; and the
    row that each of them stood in.
    """
    if items is not None:
        raise TableError(f"items in columns have no column of names: leave out --items {items}", field="items")
    if wanted is not None:
        places = [column_named(table, column) for column in wanted]
    else:
        kept = [i for i, column in enumerate(table.columns) if column and column not in (*leave_out, *table.index)]
        places = [i for i in kept if has_numbers(table, i)]
    if not places:
        message = f"{table.name} has no column of numbers; its columns are {listed(table.columns)}"
        raise TableError(message, field="values")
    cells = [
        (number, [table.columns[i], row[i]])
        for i in places
        for number, row in enumerate(table.rows)
        if not is_no_value(row[i])
    ]
    lines = None if table.lines is None else [table.lines[number] for number, _ in cells]
    long = replace(table, columns=(ITEM, VALUE), rows=[row for _, row in cells], lines=lines)
    return long, np.array([number for number, _ in cells], dtype=np.int64)


def item_hint(table: Table) -> str:
    """What may help whoever has a table of which no column says that it names the items."""
    counts = {
        column: len({str(row[i]) for row in table.rows})
        for i, column in enumerate(table.columns)
        if column and unit_of(table, i) is None
    }
    texts = {
        column: count
        for column, count in counts.items()
        if 1 < count < len(table.rows) and not has_numbers(table, table.columns.index(column))
    }
    numbers = all(has_numbers(table, i) for i in range(len(table.columns)))
    if numbers:  # codes: whole numbers that come again and again
        codes = {column: count for column, count in counts.items() if 1 < count <= min(_CODES, len(table.rows) // 3)}
        places = {column: table.columns.index(column) for column in codes}
        texts = {
            name: codes[name] for name, i in places.items() if all(whole(row[i]) is not None for row in table.rows)
        }
    likely = dict(sorted(texts.items(), key=lambda entry: entry[1])[:_CANDIDATES])
    of_rows = f"{len(table.rows)} rows"
    seen = ", ".join(f"{column} ({count} different entries in {of_rows})" for column, count in likely.items())
    hint = f", perhaps {seen}" if seen else ""
    if numbers:
        return f"{hint}; if each column is an item, and each cell one measurement of it: --items-in-columns"
    return hint


def sheet_hint(table: Table, sheet: str | None) -> str:
    """The other sheets of an Excel file of which the first one was read without being named."""
    others = [sheet_name for sheet_name in table.sheets if f"sheet {short(sheet_name)}" not in table.name]
    if sheet is not None or not others:
        return ""
    return f"; only one sheet is read, the others are {', '.join(map(short, others[:8]))}: --sheet picks one"
