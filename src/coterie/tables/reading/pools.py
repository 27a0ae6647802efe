"""From a table as people keep it to a pool: which column names the items, which hold values, what is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_real_array, short
from coterie.problem.sentences import checked_holes
from coterie.tables.errors import TableError, checked
from coterie.tables.pool import BY_ITEM, BY_LINE, Pool, item_places
from coterie.tables.reading.block_columns import likely_block, split_blocks, with_blocks
from coterie.tables.reading.cells import (
    check_items_left,
    counted_rows,
    has_numbers,
    is_no_value,
    numbered,
    numbers,
    text_of,
)
from coterie.tables.reading.columns import (
    ITEM_NAMES,
    TOTALS,
    column_named,
    is_record,
    item_column,
    listed,
    no_measurement,
    place_of,
    places_of,
    value_columns,
)
from coterie.tables.reading.files import Table, read_table
from coterie.tables.reading.repeated_rows import without_copies
from coterie.tables.reading.tidying import (
    item_by_item,
    item_hint,
    sheet_hint,
    unit_of,
    without_second_heading,
    without_units,
    words_as_numbers,
    zero_and_one,
)

VALUE = "value"
"""What the measurements of a wide table are called."""


def read_pool(
    pool: Any,
    values: Sequence[str] | None = None,
    items: str | None = None,
    wide: bool | str = False,
    leave_out_holes: bool = False,
    sheet: str | None = None,
    copies: str | None = None,
    blocks: str | None = None,
    holes: str | None = None,
) -> Pool:
    """A pool from a file, rows, a DataFrame or {arm: (n, d) array}; `values` and `items` name the columns.

    `wide`: a row is an item, and each of its cells one measurement of it, of one number; empty cells are none. With
    "columns" a column is an item. `sheet`: which one of an Excel file, unless it is the first.
    `leave_out_holes`: rows in which a value is empty are left out; otherwise they are refused. With `holes` "at
    random" they are kept as long as they have a number, NaN where one is missing.
    `copies`: what rows are that repeat another one exactly, more of them than chance explains
    (`repeated_rows.py`): with "drop" each counts once, with "keep" they are measurements of their own.
    Where there are such rows and nothing is said, `TableError` of the field "copies" names them.
    `blocks`: the column of blocks (`block_columns.py`).

    Without `values` they are v0, v1, … or all other columns of numbers that may be measurements
    (`columns.py`), never the index of a frame; without `items` it is the column arm, item,
    sample, name or id, or the only one without numbers. Errors name the line and the column. A `Pool` is one already.
    """
    some = _at_random(holes, leave_out_holes)
    values = [values] if isinstance(values, str) else values
    if isinstance(pool, Pool):
        if values is not None or items is not None or wide or blocks is not None or some:
            raise TableError(f"{pool.source} is a pool already: it takes no other columns", field="pool")
        return pool
    if isinstance(pool, Mapping):
        for given, name in ((wide, "wide"), (leave_out_holes, "leave_out_holes"), (blocks is not None, "blocks")):
            if given:
                raise TableError(f"{name} is for a table; a dictionary of arrays is none", field=name)
        return without_copies(_arrays(pool, some), copies)
    if wide not in (False, True, "rows", "columns"):
        raise TableError(f"wide must be True, False, 'rows' or 'columns', got {short(wide)}", field="wide")
    table = read_table(pool, sheet)
    _check_shape(table)
    by_column = wide == "columns"
    of_blocks = None if blocks is None else split_blocks(table, blocks, items, values, wide, leave_out_holes)
    table = table if of_blocks is None else of_blocks.rest
    _check_shape(table)
    counting: dict[str, str] = {}
    table_rows = np.arange(len(table.rows))
    if by_column:
        if values is None:
            counting = _no_measurements(table, range(len(table.columns)), None)
        (table, table_rows), wide = item_by_item(table, items, values, leave_out=counting), False
        values = None
    item, guessed = _item_place(table, items, sheet)
    table, headings = without_second_heading(table, item)
    table_rows = table_rows[len(table_rows) - len(table.rows) :]
    table, units = without_units(table, item, values)
    column = None if by_column else table.columns[item]
    names, arms = _items(table, item)
    table, words = _with_zeros_and_ones(table, item, values, None if wide else arms)
    places = _value_places(table, item, values)
    if values is None and not by_column and not _by_convention(table, places):
        counting = _no_measurements(table, places, None if wide else arms)
        places = _measured(table, places, counting)
    if wide:
        rows, of_rows = _repeats(table, places)
        called, without = [VALUE], np.array([], dtype=np.int64)
    else:
        rows, whole_rows = _counted_rows(table, places, leave_out_holes, some, len(names), values is not None)
        check_items_left(table, names, arms, whole_rows)
        of_rows = np.flatnonzero(whole_rows)
        called, without = [table.columns[i] for i in places], np.flatnonzero(~whole_rows)
    left_out = tuple(
        (name or f"column {i + 1}", counting.get(name) or _why(table, i, values))
        for i, name in enumerate(table.columns)
        if i not in (item, *places)
    )
    left_out += tuple(left for left in counting.items() if left not in left_out)
    lines = range(1, len(table.rows) + 1) if table.lines is None else table.lines
    row_places = np.fromiter(lines, np.int64, len(lines))
    read = Pool(
        names, arms[of_rows], rows, called, table.name, column, guessed, left_out, row_places[of_rows],
        "row" if table.lines is None else BY_LINE, values is not None, tuple(map(table.place, without.tolist())),
        unmeasured=tuple(counting), remarks=(*headings, *units, *words),
        likely_block=None if wide or by_column or blocks is not None else likely_block(table, item, arms),
    )  # fmt: skip
    if of_blocks is not None:
        read = with_blocks(read, of_blocks, table_rows[of_rows])
    del table  # its cells take ten times the numbers
    return without_copies(read, copies)


def _check_shape(table: Table) -> None:
    """Whether there can be items and values in it at all."""
    if not table.rows:
        named = f": its only line names the columns {listed(table.columns)}" if any(table.columns) else ""
        raise TableError(f"{table.name} has no measurements{named}", field="pool")
    if len(table.columns) == 1:
        wanted = "one column must name the items and others hold the values"
        message, marks = "has a single column", ""
        if table.lines is not None:
            message, marks = "has a single cell in each line", ", with commas, semicolons or tabs between them"
        raise TableError(f"{table.name} {message}, {short(table.columns[0])}: {wanted}{marks}", field="pool")


def _repeats(table: Table, places: Sequence[int]) -> tuple[FloatArray, IntArray]:
    """The measurements of a wide table, row by row and from left to right, and the row that each stands in."""
    there = np.array([[not is_no_value(row[i]) for i in places] for row in table.rows])
    none = np.flatnonzero(~there.any(axis=1))
    if none.size:
        raise table.problem(int(none[0]), table.columns[places[0]], "the item of this row has no measurement")
    cells = np.array(numbers(table, places, holes=True), dtype=np.float64)
    return cells[there][:, None], np.nonzero(there)[0]


def _arrays(pool: Mapping[Any, Any], holes: bool = False) -> Pool:
    blocks = []
    for arm, content in pool.items():
        block = _block_of(content, f"the pool of arm {short(arm)}", holes)
        blocks.append(block[:, None] if block.ndim == 1 else block)
    if len({block.shape[1:] for block in blocks}) != 1 or blocks[0].ndim != 2:
        raise TableError("a pool is a dictionary of (n, d) arrays of one d", field="pool")
    rows = np.concatenate(blocks)
    if not rows.size:
        raise TableError("the pool has no measurements", field="pool")
    arms = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    names, columns = [str(arm) for arm in pool], [f"v{i}" for i in range(rows.shape[1])]
    return Pool(names, arms, rows, columns, "the pool", places=item_places(arms), place_word=BY_ITEM)


def _at_random(holes: Any, leave_out: bool) -> bool:
    """Whether holes were said to be at random."""
    some: bool = checked("holes", checked_holes, holes)
    if some and leave_out:
        message = "holes at random count where they can, leave_out_holes leaves their rows out: say one of the two"
        raise TableError(message, field="holes")
    return some


def _block_of(content: Any, name: str, holes: bool) -> FloatArray:
    """The results of an item; with `holes`, NaN or None where a number is missing, without rows that have none."""
    if not holes:
        return check_real_array(content, name)
    given = np.asarray(content)
    if given.dtype == object:
        given = np.array([[math.nan if cell is None else cell for cell in row] for row in given.tolist()])
    missing = np.isnan(given) if given.dtype.kind == "f" else np.zeros(given.shape, dtype=bool)
    block = check_real_array(np.where(missing, 0.0, given), name)
    block[missing] = math.nan
    return block[~missing.reshape(len(block), -1).all(axis=1)]


def _counted_rows(
    table: Table, places: Sequence[int], leave_out: bool, holes: bool, items: int, picked: bool
) -> tuple[FloatArray, Any]:
    """As `counted_rows`; the error says how values are picked and, where every item has one row, how repeats in a row
    are read.
    """
    try:
        return counted_rows(table, places, leave_out, holes)
    except TableError as error:
        hint = "" if picked or len(places) < 2 else "; --values (in Python values=) picks the columns of results"
        if items == len(table.rows) and len(places) > 2:
            hint = "; if each row is an item, and each cell one measurement of it: --wide (in Python wide=True)"
        raise TableError(f"{error.message}{hint}", error.field) from None


def _item_place(table: Table, wanted: str | None, sheet: str | None) -> tuple[int, bool]:
    """The place of the item column, and whether it was only guessed: as the one column without numbers."""
    if wanted is not None:
        try:
            return column_named(table, wanted), False
        except TableError as error:
            several = "," in wanted and None not in places_of(table, wanted.split(","))
            hint = "; one column names the items: join these to one first" if several else sheet_hint(table, sheet)
            raise TableError(f"{error.message}{hint}", error.field) from None
    known = (*ITEM_NAMES, "id")
    place = item_column(table, known)
    if place is not None:
        return place, False
    texts = [
        i for i, column in enumerate(table.columns) if column and any(table.column(i)) and not has_numbers(table, i)
    ]
    texts = [i for i in texts if unit_of(table, i) is None and zero_and_one(table, i) is None] or texts
    if len(texts) == 1:
        return texts[0], True
    message = (
        f"{table.name} needs a column item, sample, name or id, or say which column names the items: "
        f"--items COLUMN (in Python items=){item_hint(table)}; its columns are {listed(table.columns)}"
        f"{sheet_hint(table, sheet)}"
    )
    raise TableError(message, field="arm")


def _value_places(table: Table, item: int, wanted: Sequence[str] | None) -> list[int]:
    try:
        return value_columns(table, item, None, wanted, numeric=True)
    except TableError as error:
        if wanted is None and table.rows and len(table.columns) > 1:
            message = f"{table.name} has no column of numbers beside the items; its columns are"
            raise TableError(f"{message} {listed(table.columns)}", field="values") from None
        raise error


def _with_zeros_and_ones(
    table: Table, item: int, wanted: Sequence[str] | None, arms: IntArray | None
) -> tuple[Table, tuple[str, ...]]:
    """The table with words such as yes and no as 1 and 0, in the columns wanted or, where there are no other values, in
    all columns of such words; and a remark on that.
    """
    if wanted is not None:
        places = [place for name in wanted if (place := place_of(table, name)) is not None]
    else:
        own = [i for i, name in enumerate(table.columns) if i != item and name and name not in table.index]
        own = [i for i in own if not is_record(table.columns[i])]
        counted = [i for i in own if has_numbers(table, i)]
        if len(_no_measurements(table, counted, arms)) < len(counted):
            return table, ()
        places = own
    read = {i: words for i in places if i != item and (words := zero_and_one(table, i)) is not None}
    named = ", ".join(f"{table.columns[i]} ({name} is 1, {zero} is 0)" for i, (zero, name) in read.items())
    remark = f"Words were read as numbers: {named}."
    return words_as_numbers(table, list(read)), (remark,) if read else ()


def _by_convention(table: Table, places: Sequence[int]) -> bool:
    """Whether the columns of values are v0, v1, …, which says that they are."""
    return table.columns[places[0]].casefold() == "v0"


def _no_measurements(table: Table, places: Sequence[int], arms: IntArray | None) -> dict[str, str]:
    """The columns at these places that hold numbers and measure nothing, each with the reason."""
    totals = {name for first, seconds in TOTALS.items() for name in (first, *seconds)}
    asked = [i for i in places if table.columns[i] and table.columns[i].strip().casefold() not in totals]
    reasons = {table.columns[i]: no_measurement(table, i, arms) for i in asked if has_numbers(table, i)}
    return {column: why for column, why in reasons.items() if why is not None}


def _measured(table: Table, places: Sequence[int], counting: Mapping[str, str]) -> list[int]:
    """The places without the columns that measure nothing; `TableError` if none is left."""
    left = [i for i in places if table.columns[i] not in counting]
    if not left:
        column, why = next(iter(counting.items()))
        message = f"{table.name} has no column of measurements beside the items: {column} was left out ({why})"
        raise TableError(f"{message}; if it is a measurement: --values {column} (in Python values=)", field="values")
    return left


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
    cells = table.column(item)
    empty = next((i for i, cell in enumerate(cells) if cell is None or not str(cell).strip()), None)
    if empty is not None:
        raise table.problem(empty, table.columns[item], "it is empty: every measurement needs its item")
    return numbered([text_of(cell) for cell in cells])
