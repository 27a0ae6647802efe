"""The column that names the blocks of a table: days, plates, raters, questions. Items are compared within blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.problem.checks import IntArray
from coterie.tables.errors import TableError
from coterie.tables.pool import Blocks, Pool
from coterie.tables.reading.cells import ABOUT_HOLES, is_hole, numbered, text_of
from coterie.tables.reading.columns import column_named, listed, place_of
from coterie.tables.reading.files import Table

BLOCK_WORDS = frozenset(
    ("plate", "plates", "day", "date", "week", "rater", "reader", "judge", "reviewer", "annotator", "assessor",
     "panelist", "panellist", "taster", "operator", "user", "subject", "participant", "respondent", "patient", "person",
     "batch", "lot", "run", "session", "block", "blocks", "field", "site", "lab", "location", "litter", "fold",
     "question", "prompt", "task", "problem", "dataset")
)  # fmt: skip
"""Words in the name of a column that may name blocks."""

_NAMED = 12  # blocks and items that a message names


@dataclass(frozen=True)
class BlockCells:
    """A table without its column of blocks, and of every row the entry of that column."""

    column: str
    names: list[str]
    rest: Table
    left_out: tuple[str, ...]  # places of rows without an entry


def split_blocks(
    table: Table, column: str, items: str | None, values: Sequence[str] | None, wide: bool | str, leave_out: bool
) -> BlockCells:
    """Take the column of blocks off a table; `TableError` says what is wrong with it."""
    if wide in (True, "rows"):
        message = (
            "with --wide (in Python wide=True) a row is an item, so that no column can name the blocks of its cells: "
            'make a row of each measurement, or of each block, --items-in-columns (in Python wide="columns")'
        )
        raise TableError(message, field="blocks")
    try:
        place = column_named(table, column)
    except TableError as error:
        raise TableError(f"{error.message}: --block (in Python blocks=) names one of them", field="blocks") from None
    if items is not None and place_of(table, items) == place:
        raise TableError(f"{column} cannot name the items and the blocks: name two columns", field="blocks")
    if values is not None and place in [place_of(table, name) for name in values]:
        raise TableError(f"{column} names the blocks, so it is no value: leave it out of --values", field="values")
    cells = table.column(place)
    there = np.array([not is_hole(cell) and bool(str(cell).strip()) for cell in cells])
    if not there.all() and not leave_out:
        row = int(np.argmin(there))
        raise table.problem(row, table.columns[place], f"it is empty: every measurement needs its block{ABOUT_HOLES}")
    kept = np.flatnonzero(there).tolist()
    if not kept:
        raise TableError(f"{table.name}: the column {column} is empty, so it names no blocks", field="blocks")
    columns = tuple(name for i, name in enumerate(table.columns) if i != place)
    rows = [[cell for i, cell in enumerate(table.rows[row]) if i != place] for row in kept]
    lines = None if table.lines is None else [table.lines[row] for row in kept]
    index = tuple(name for name in table.index if name != table.columns[place])
    rest = replace(table, columns=columns, rows=rows, lines=lines, index=index)
    holes = tuple(map(table.place, np.flatnonzero(~there).tolist()))
    return BlockCells(table.columns[place], [text_of(cells[row]) for row in kept], rest, holes)


def with_blocks(pool: Pool, split: BlockCells, of_rows: IntArray) -> Pool:
    """The pool in blocks, without those that have a single item; `of_rows`: where the rows of the pool stood."""
    names, blocks = numbered([split.names[row] for row in of_rows])
    column, where = split.column, f"{pool.source}, blocks by {split.column}"
    without = "leave --block out (in Python blocks=)"
    if len(names) == 1:
        raise TableError(f"{where}: all rows have {names[0]}, and one block is no block: {without}", field="blocks")
    present = np.zeros((len(pool.names), len(names)), dtype=bool)
    present[pool.arms, blocks] = True
    alone = present.sum(axis=0) == 1
    if alone.all():
        message = f"{where}: every block has a single item, so nothing can be compared within blocks"
        raise TableError(f"{message}; if blocks do not change results, {without}", field="blocks")
    remarks = list(pool.remarks)
    if split.left_out:
        remarks.append(f"Left out, rows without a {column}: {_first(split.left_out)}.")
    read = replace(pool, blocks=Blocks(column, names, blocks))
    if alone.any():
        lost = np.flatnonzero(~present[:, ~alone].any(axis=1)).tolist()
        if lost:
            message = f"{where}: {_first([pool.names[arm] for arm in lost])} shares no block with another item"
            raise TableError(f"{message}, so that it cannot be compared: leave it out, or {without}", field="blocks")
        named = _first([names[block] for block in np.flatnonzero(alone)])
        remarks.append(f"Left out, blocks of {column} with a single item, in which nothing is compared: {named}.")
        read = read.only(~alone[blocks])
    joined = present.astype(np.int64) @ present.T.astype(np.int64)
    apart = int((joined[np.triu_indices(len(joined), 1)] == 0).sum())
    if apart:
        of = len(joined) * (len(joined) - 1) // 2
        remarks.append(
            f"note: {apart} of {of} pairs of items share no {column}: they cannot be compared, unless noise is stated "
            "to be Gaussian and other items join them."
        )
    return replace(read, remarks=tuple(remarks))


def likely_block(table: Table, item: int, arms: IntArray) -> str | None:
    """A column that looks as if it named blocks: by its name, and as items appear in most of them."""
    n_arms = int(arms.max()) + 1
    for place, column in enumerate(table.columns):
        words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).casefold())
        if place == item or not BLOCK_WORDS.intersection(words):
            continue
        cells = table.column(place)
        if any(is_hole(cell) or not str(cell).strip() for cell in cells):
            continue
        names, blocks = numbered([text_of(cell) for cell in cells])
        present = np.zeros((n_arms, len(names)), dtype=bool)
        present[arms, blocks] = True
        if len(names) > 1 and (present.sum(axis=0) > 1).all() and (2 * present.sum(axis=1) > len(names)).all():
            return column
    return None


def _first(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return listed(list(names[:_NAMED])) + (f" and {more} more" if more > 0 else "")
