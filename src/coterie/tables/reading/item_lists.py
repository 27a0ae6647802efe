"""Lists of items for a new campaign: one name on a line, or a CSV or Excel file with a column of names and, if there is
one, a column `cost`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from coterie.problem.checks import check_text, short
from coterie.tables.errors import TableError, check_time
from coterie.tables.reading.cells import is_date, numbers_and_others, refuse_unclear_marks, text_of
from coterie.tables.reading.columns import ITEM_NAMES, item_column, listed
from coterie.tables.reading.files import Table, is_empty, is_workbook, table_of_bytes, text_of_bytes

NAME_COLUMNS = (*ITEM_NAMES, "items", "names", "samples", "arms", "id")
"""What the column of the names may be called, in any case; the first of these that there is."""
COST_COLUMNS = ("cost", "costs")
MOST_ITEMS = 100_000
"""Items that a campaign may have."""
_TABLES = (".csv", ".tsv")
_MOST_PROBLEMS = 5  # that a message lists
_ERRORS = frozenset({"#N/A", "#DIV/0!", "#REF!", "#NAME?", "#VALUE!", "#NUM!", "#NULL!", "#SPILL!", "#CALC!"})


@dataclass(frozen=True)
class ItemList:
    """The items' names in the order of the list, what measuring each costs (None: not said), and what to know of it."""

    names: list[str]
    costs: list[float] | None
    remarks: list[str]


def read_items(name: str, content: bytes, sheet: str | None = None) -> ItemList:
    """The items in a file of this name and content: an Excel file, a CSV file, or text with one name on each line.

    Everything that is wrong with it is named with its row or line, in one `TableError`.
    """
    if is_workbook(content):
        return _of_table(_with_header(name, content, sheet))
    if PurePath(name).suffix.lower() in _TABLES or sheet is not None:
        table = None if sheet is None and _is_plain(name, content) else _with_header(name, content, sheet)
        if table is not None:
            return _of_table(table)
    return _of_lines(name, text_of_bytes(name, content))


def read_pasted_items(text: str) -> ItemList:
    """The items in a text that somebody pasted: lines, or cells of a spreadsheet, which come with tabs."""
    if "\t" not in text.strip():
        return _of_lines("the list", text)
    return _of_table(_with_header("the list", text.encode("utf-8", "replace"), None))


def _with_header(name: str, content: bytes, sheet: str | None) -> Table:
    """The table, whose first row must name its columns; of a single column without a heading, the first row is an item.

    A first row that might be an item among several columns is refused: whether it is one is not guessed.
    """
    table = table_of_bytes(name, content, sheet)
    known = {column.casefold() for column in table.columns} & {*NAME_COLUMNS, *COST_COLUMNS}
    if known:
        return table
    if len(table.columns) > 1:
        message = f"the first row must name the columns, name and cost if there is one; it is {listed(table.columns)}"
        raise TableError(f"{table.name}: {message}", field="file")
    rows = [[table.columns[0]], *table.rows]
    first = min(table.lines or [2]) - 1
    lines = [max(1, first), *(table.lines or [])]
    return Table(table.name, ("name",), rows, table.digest, lines, False, table.line_word, table.sheets)


def _is_plain(name: str, content: bytes) -> bool:
    """Whether a CSV file has a single column: then each line is a name."""
    lines = [line for line in text_of_bytes(name, content).splitlines() if line.strip()]
    return not any(re.search(r'[,;\t"]', line) for line in lines)


def _of_lines(name: str, text: str) -> ItemList:
    lines = text.splitlines()
    kept = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    headed = bool(kept) and PurePath(name).suffix.lower() in _TABLES and kept[0][1].casefold() in NAME_COLUMNS
    rows = [[line] for _, line in kept[headed:]]
    table = Table(name, ("name",), rows, "", [number for number, _ in kept[headed:]])
    return _of_table(table)


def _of_table(table: Table) -> ItemList:
    place = _name_column(table)
    if len(table.rows) > MOST_ITEMS:
        message = f"{table.name} has {len(table.rows):,} items, a campaign has at most {MOST_ITEMS:,}"
        raise TableError(message, field="names")
    problems: list[str] = []
    names: list[str] = []
    first: dict[str, int] = {}
    for row, cells in enumerate(table.rows):
        check_time()
        try:
            name = _name(cells[place])
        except (ValueError, TypeError) as error:
            problems.append(f"{table.place(row)}: {error}")
            continue
        if name in first:
            problems.append(f"{table.place(row)}: {short(name)} is the name of {table.place(first[name])} too")
        first.setdefault(name, row)
        names.append(name)
    costs = _costs(table, problems)
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        said = "; ".join(problems[:_MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
        raise TableError(f"{table.name}: {said}", field="names")
    if not names:
        raise TableError(f"{table.name} names no item", field="names")
    return ItemList(names, costs, _remarks(table, place))


def _name(cell: Any) -> str:
    if is_empty(cell):
        raise ValueError("there is no name")
    if is_date(cell):
        message = "is a date: if the spreadsheet made it of a name, format the column as text and type it again"
        raise ValueError(f"{cell} {message}")
    if isinstance(cell, bool) or (isinstance(cell, str) and cell in _ERRORS):
        raise ValueError(f"{short(cell)} is no name")
    return check_text(text_of(cell), "a name")


def _name_column(table: Table) -> int:
    place = item_column(table, NAME_COLUMNS)
    if place is not None:
        return place
    others = [i for i, column in enumerate(table.columns) if column.casefold() not in COST_COLUMNS]
    if len(others) == 1:
        return others[0]
    message = f"{table.name} needs a column name (or {', '.join(NAME_COLUMNS[:3])}); its columns are"
    raise TableError(f"{message} {listed(table.columns)}", field="names")


def cost_column(table: Table) -> int | None:
    """The place of the column that says what measuring an item costs, if there is one."""
    return item_column(table, COST_COLUMNS)


def _costs(table: Table, problems: list[str]) -> list[float] | None:
    place = cost_column(table)
    if place is None:
        return None
    rows, bad = numbers_and_others(table, [place])
    problems += [f"{table.place(row)}, column {table.columns[place]}: {message}" for row, _, message in bad]
    costs = [row[0] for row in rows if row]
    if not bad:
        refuse_unclear_marks(table, [place])
        for row, cost in enumerate(costs):
            if cost <= 0.0:
                problems.append(f"{table.place(row)}, column {table.columns[place]}: a cost is above 0, got {cost:g}")
    return costs


def _remarks(table: Table, place: int) -> list[str]:
    remarks = []
    if table.sheets[1:]:
        others = listed(table.sheets)
        remarks.append(f"{table.name} was read; the file has {len(table.sheets)} sheets: {others}.")
    kept: Sequence[int | None] = (place, cost_column(table))
    unused = [column for i, column in enumerate(table.columns) if i not in kept and column]
    if unused:
        remarks.append(f"Not used: {'column' if len(unused) == 1 else 'columns'} {listed(unused)}.")
    lines = table.lines or []
    blank = (lines[-1] - lines[0] + 1 - len(lines)) if lines else 0
    if blank > 0:
        remarks.append(f"{blank} blank {table.line_word}{'' if blank == 1 else 's'} left out.")
    return remarks
