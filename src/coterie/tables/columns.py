"""Which column of a table names the items, and which ones hold the values.

A column is found by its name, in any case if only one column has it; nothing is taken by the order of the columns
unless no name says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from coterie.problem.checks import short
from coterie.tables.cells import has_numbers
from coterie.tables.errors import TableError
from coterie.tables.files import Table

ITEM_NAMES = ("arm", "item", "sample", "name")
"""What the column of the items may be called, in any case; in a pool `id` too, if there is none of these."""

ORIGIN_COLUMNS = ("told", "worker", "token")
"""Who told a result and when, in what campaigns export: no values, unless they are picked."""


TOTALS = {
    "clicks": ("impressions", "views", "visitors", "visits"),
    "conversions": ("visitors", "visits", "clicks"),
    "successes": ("trials", "attempts"),
    "passed": ("total", "runs"),
}
"""Columns of successes, in any case, and what the column of the trials beside them may be called."""


def column_named(table: Table, wanted: str) -> int:
    """The place of a column that must be there; the error lists the columns that are."""
    return columns_named(table, [wanted])[0]


def columns_named(table: Table, wanted: Sequence[str]) -> list[int]:
    """The places of columns that must be there; the error lists the columns that are."""
    places = [place for place in places_of(table, wanted) if place is not None]
    if len(places) < len(wanted):
        missing = next(name for name, place in zip(wanted, places_of(table, wanted), strict=True) if place is None)
        what = f"{table.name} has no column {short(missing)}; its columns are {listed(table.columns)}"
        raise TableError(what, field=str(missing))
    return places


def place_of(table: Table, wanted: str) -> int | None:
    """The place of a column of exactly this name or, if there is one only, of this name in another case; else None."""
    return places_of(table, [wanted])[0]


def places_of(table: Table, wanted: Sequence[str]) -> list[int | None]:
    """The places of several columns, each as `place_of` has it; there may be thousands."""
    exact = {column: i for i, column in reversed(list(enumerate(table.columns)))}
    alike: dict[str, list[int]] = {}
    for i, column in enumerate(table.columns):
        alike.setdefault(column.casefold(), []).append(i)
    found: list[int | None] = []
    for name in wanted:
        others = alike.get(name.strip().casefold(), [])
        found.append(exact[name] if name in exact else others[0] if len(others) == 1 else None)
    return found


def listed(columns: Sequence[str]) -> str:
    """Names of columns for a message, cut to 200 characters."""
    text = ", ".join(column or "(no name)" for column in columns)
    return text if len(text) <= 200 else text[:197] + "..."


def item_column(table: Table, names: Sequence[str] = ITEM_NAMES) -> int | None:
    """The place of the column that says what was measured, if it has one of these names."""
    own = [column for column in table.columns if column not in table.index]
    for columns in (own, table.index):  # the index of a frame only if no column of its own has such a name
        for name in names:
            alike = [column for column in columns if column.casefold() == name]
            if alike:
                return table.columns.index(name if name in alike else alike[0])
    return None


def value_columns(
    table: Table, item: int, dim: int | None, wanted: Sequence[str] | None = None, numeric: bool = False
) -> list[int]:
    """The places of the columns that hold the values: those wanted; or v0, v1, …; or all but those of items and ids.

    `dim` is how many there must be, None for any number. With `numeric`, where no names decide, columns without a
    single number are left out.
    """
    columns = table.columns
    if wanted is not None:
        found = columns_named(table, wanted)
        if item in found or len(set(found)) < len(found):
            what = "the columns of values must differ, and from that of the items"
            raise TableError(f"{what}, got {short(list(wanted))}")
    elif place_of(table, "v0") is not None:
        numbered = places_of(table, [f"v{i}" for i in range(len(columns))])
        found = [place for place in numbered if place is not None]
    else:
        rest = [
            i
            for i, column in enumerate(columns)
            if i != item and column and column not in table.index and not is_record(column)
        ]
        found = [i for i in rest if not numeric or has_numbers(table, i)]
    if not found or (dim is not None and len(found) != dim):
        named = [columns[i] for i in found]
        expected = "at least one column" if dim is None else f"{dim} column{'s' if dim > 1 else ''}"
        raise TableError(f"{table.name} needs {expected} of values, it has {short(named)}", field="values")
    return found


def is_record(column: str) -> bool:
    """Whether a column is part of a campaign's record, and no value: an id, or who told a result and when."""
    return column.casefold() in ("id", *ORIGIN_COLUMNS)
