"""What a table of measurements says: which column names the items, which hold the values, and the numbers in them.

Where the comma does not stand between the cells of a CSV file, it may be the decimal mark. Errors name the line of the
file (of Parquet and of rows in memory: the row, counted from 1) and the column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from coterie.campaign.errors import BadValue
from coterie.campaign.recorded import Recorded
from coterie.campaign.settings import CampaignSettings as Settings
from coterie.campaign.settings import check_text
from coterie.problem.checks import short

ITEM_NAMES = ("arm", "item", "sample", "name")
"""What the column of the items may be called, in any case; in a pool `id` too, if there is none of these."""

ABOUT_CELLS = (
    "leave a whole row out only if the reason has nothing to do with its value (docs/CAMPAIGNS.md, "
    '"Cells that are not numbers")'
)

_NAMED = 3  # of many cells that cannot be read, so many are named
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
_THOUSANDS = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:\{mark}\d{{3}})+") for mark in ",."}


# Which column is what.


def column_named(table: Recorded, wanted: str) -> int:
    """The place of a column: of exactly this name or, if there is one only, of this name in another case."""
    place = _place(table, wanted)
    if place is None:
        what = f"{table.name} has no column {short(wanted)}; its columns are {listed(table.columns)}"
        raise BadValue(what, field=str(wanted))
    return place


def _place(table: Recorded, wanted: str) -> int | None:
    if wanted in table.columns:
        return table.columns.index(wanted)
    alike = [i for i, column in enumerate(table.columns) if column.casefold() == wanted.strip().casefold()]
    return alike[0] if len(alike) == 1 else None


def listed(columns: Sequence[str]) -> str:
    """Names of columns in a message."""
    text = ", ".join(column or "(no name)" for column in columns)
    return text if len(text) <= 200 else text[:197] + "..."


def item_column(table: Recorded, names: Sequence[str] = ITEM_NAMES) -> int | None:
    """The place of the column that says what was measured, if it has one of these names."""
    for name in names:
        alike = [column for column in table.columns if column.casefold() == name]
        if alike:
            return table.columns.index(name if name in alike else alike[0])
    return None


def value_columns(
    table: Recorded, item: int, dim: int | None, wanted: Sequence[str] | None = None, numeric: bool = False
) -> list[int]:
    """The places of the columns that hold the values: those wanted, or v0, v1, …, or all but items and id.

    With `numeric`, columns without a single number are left out of the last.
    """
    columns = table.columns
    if wanted is not None:
        found = [column_named(table, column) for column in wanted]
        if item in found or len(set(found)) < len(found):
            raise BadValue(f"the columns of values must differ, and from that of the items, got {short(list(wanted))}")
    elif _place(table, "v0") is not None:
        numbered = [_place(table, f"v{i}") for i in range(len(columns))]
        found = [place for place in numbered if place is not None]
    else:
        rest = [i for i, column in enumerate(columns) if i != item and column and column.casefold() != "id"]
        found = [i for i in rest if not numeric or has_numbers(table, i)]
    if not found or (dim is not None and len(found) != dim):
        named = [columns[i] for i in found]
        expected = "at least one column" if dim is None else f"{dim} column{'s' if dim > 1 else ''}"
        raise BadValue(f"{table.name} needs {expected} of values, it has {short(named)}", field="values")
    return found


def has_numbers(table: Recorded, place: int) -> bool:
    """Whether any cell of a column is a number."""
    return any(_read(table, row[place])[0] is not None for row in table.rows)


def measurements(table: Recorded, settings: Settings, wanted: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The rows as results to be told. Without a column id, ids follow from the content and the row's number."""
    arm_at = item_column(table)
    if arm_at is None:
        others = " or ".join(ITEM_NAMES[1:])
        what = f"{table.name} needs a column arm (or {others}); its columns are {listed(table.columns)}"
        raise BadValue(what, field="arm")
    rows = numbers(table, value_columns(table, arm_at, settings.dim, _own_names(table, settings, wanted)))
    id_at = _id_column(table)
    index = {} if settings.names is None else {name: arm for arm, name in enumerate(settings.names)}
    by_number = all(whole(name) is None for name in index)  # else a number is a name, not a place
    seen: dict[str, int] = {}
    found = []
    for number, values in enumerate(rows):
        arm = _arm(table, number, arm_at, index, settings.n_arms if by_number else 0)
        name = f"import-{table.digest[:24]}-{number + 1}" if id_at is None else _id(table, number, id_at)
        if seen.setdefault(name, number) != number:
            column = "id" if id_at is None else table.columns[id_at]
            raise table.problem(number, column, f"{short(name)} is the id of {table.place(seen[name])} too")
        found.append({"id": name, "arm": arm, "values": values})
    return found


def _own_names(table: Recorded, settings: Settings, wanted: Sequence[str] | None) -> Sequence[str] | None:
    """The columns wanted, or the campaign's own names; None (v0, v1, …, or all the others) only where neither is said.

    A table that calls the values otherwise is not read by the order of its columns: they might be swapped.
    """
    own = settings.value_names
    if wanted is not None or own is None:
        return wanted
    if all(_place(table, name) is not None for name in own):
        return own
    if all(_place(table, f"v{i}") is not None for i in range(settings.dim)):
        return None
    what = (
        f"the campaign's values are {listed(own)}, {table.name} has the columns {listed(table.columns)}: rename them, "
        "or say which ones hold the values, in this order, with --values (in Python values=)"
    )
    raise BadValue(what, field="values")


def _id_column(table: Recorded) -> int | None:
    place = _place(table, "id")
    alike = [column for column in table.columns if column.casefold() == "id"]
    if place is None and alike:
        raise BadValue(f"{table.name} has the columns {listed(alike)}: rename all but one of them", field="id")
    return place


def _id(table: Recorded, number: int, place: int) -> str:
    cell = table.rows[number][place]
    number_given = isinstance(cell, int) and not isinstance(cell, bool)
    try:
        return check_text(str(cell) if number_given else cell, "an id")
    except BadValue as error:
        raise table.problem(number, table.columns[place], error.message) from None


def _arm(table: Recorded, row: int, place: int, index: Mapping[str, int], numbered: int) -> int:
    """The arm of this name, or of this number among those that are called by number."""
    cell = table.rows[row][place]
    name = text_of(cell)
    if name in index:
        return index[name]
    arm = whole(cell)
    if arm is None or not 0 <= arm < numbered:
        known = [f"a name such as {short(next(iter(index)))}"] if index else []
        known += [f"a number from 0 to {numbered - 1}"] if numbered else []
        raise table.problem(row, table.columns[place], f"unknown arm {short(cell)}: use {', or '.join(known)}")
    return arm


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


# Numbers.


def _read(table: Recorded, cell: Any) -> tuple[float | None, str]:
    """The number in a cell, or why there is none."""
    needed = "a number is needed"
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


def numbers(table: Recorded, places: Sequence[int]) -> list[list[float]]:
    """The values of every row; the error counts all cells that are none, and names the first of them."""
    found: list[list[float]] = []
    bad: list[tuple[int, int, str]] = []
    for number, row in enumerate(table.rows):
        values = []
        for i in places:
            value, what = _read(table, row[i])
            if value is None:
                bad.append((number, i, what))
            else:
                values.append(value)
        found.append(values)
    if bad:
        raise _bad_cells(table, bad)
    if table.decimal_comma:
        _one_decimal_mark(table, places)
        _no_thousands(table, places)
    return found


def _bad_cells(table: Recorded, bad: list[tuple[int, int, str]]) -> BadValue:
    row, place, what = bad[0]
    more = [
        f"{table.place(row)}, column {_cut(table.columns[i])}: {_cut(table.rows[row][i])}"
        for row, i, _ in bad[1 : 1 + _NAMED]
    ]
    left = len(bad) - 1 - len(more)
    others = f"; {len(bad)} such cells, also {'; '.join(more)}{f'; and {left} more' if left else ''}" if more else ""
    what = f"{what}, got {_cut(table.rows[row][place])}{others}; {ABOUT_CELLS}"
    return table.problem(row, table.columns[place], what)


def _cut(cell: Any) -> str:
    text = short(cell)
    return text if len(text) <= 24 else text[:21] + "..."


def _one_decimal_mark(table: Recorded, places: Sequence[int]) -> None:
    """A file with both marks is not guessed at."""
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


def _no_thousands(table: Recorded, places: Sequence[int]) -> None:
    """1,234 is a little more than one to some and a thousand to others: refused where the column does not show which.

    It shows it by a number that cannot have thousands (5,41 or 0,512). Of a column in which every number has three
    digits after its mark, that is read off the rest of the table: for a comma from other columns of values, for a point
    (the usual decimal mark, where nothing speaks for the comma) from decimal commas anywhere.
    """
    columns = {i: [row[i] for row in table.rows] for i in range(len(table.columns))}
    decimals = [i for i, cells in columns.items() if any(_decimal(cell, ",") for cell in cells)]
    for i in places:
        for mark in ",.":
            marked = [cell for cell in columns[i] if mark in cell]
            if not marked or any(_decimal(cell, mark) for cell in marked):
                continue
            all_of_them = len(marked) == len(columns[i])
            clear = bool(set(decimals) & set(places)) if mark == "," else not decimals
            if all_of_them and clear:
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
    """Whether this is a number in which the mark can only be the decimal one."""
    one = _DECIMAL_COMMA.fullmatch(cell.replace(".", ",") if mark == "." else cell)
    return one is not None and mark in cell and _THOUSANDS[mark].fullmatch(cell) is None


# Names for spreadsheets.


def safe_in_spreadsheets(name: str) -> str:
    """A name that a spreadsheet would take for a formula gets an apostrophe in front; plain numbers stay."""
    risky = name.startswith(("=", "+", "-", "@", "\t", "\r")) and _NUMBER.fullmatch(name) is None
    return f"'{name}" if risky else name
