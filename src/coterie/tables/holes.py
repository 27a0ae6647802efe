"""Rows in which a cell is empty: refused, or left out if the caller says that the values are not the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.tables.cells import numbers
from coterie.tables.errors import TableError
from coterie.tables.files import Table, is_empty

ABOUT_HOLES = (
    "; if the reasons for empty cells have nothing to do with the values, --leave-out-holes leaves their rows out (in "
    "Python leave_out_holes=True)"
)


def is_hole(cell: Any) -> bool:
    """Whether a cell has no value: it is empty, or NaN."""
    return is_empty(cell) or (isinstance(cell, float) and cell != cell)


def complete_rows(table: Table, places: Sequence[int], leave_out: bool) -> tuple[list[list[float]], NDArray[np.bool_]]:
    """The numbers of the rows without holes, and which rows these are; `TableError` if holes are not to be left out."""
    whole = np.array([not any(is_hole(row[i]) for i in places) for row in table.rows], dtype=bool)
    if whole.all():
        return numbers(table, places), whole
    if not leave_out:
        try:
            return numbers(table, places), whole
        except TableError as error:
            raise TableError(f"{error.message}{ABOUT_HOLES}", error.field) from None
    # A hole is read as another cell of its column, and then left out: the rest is checked as in any table.
    firsts = {i: next((row[i] for row in table.rows if not is_hole(row[i])), None) for i in places}
    filled = [
        [firsts[i] if i in firsts and is_hole(cell) else cell for i, cell in enumerate(row)] for row in table.rows
    ]
    found = numbers(replace(table, rows=filled), places)
    return [row for row, kept in zip(found, whole, strict=True) if kept], whole


def check_items_left(table: Table, names: Sequence[str], arms: Any, whole: NDArray[np.bool_]) -> None:
    """`TableError` for the first item of which every row has a hole."""
    left = np.bincount(arms[whole], minlength=len(names))
    if (left == 0).any():
        name = names[int(np.argmin(left))]
        what = f"{table.name}: every row of {name} has an empty cell, so nothing is left of it"
        raise TableError(f"{what}: leave the column out (--values), or the item", field="leave_out_holes")
