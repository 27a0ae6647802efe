"""Which column of a table names the items, which ones hold the values, and which measure nothing.

A column is found by its name, in any case if only one column has it; nothing is taken by the order of the columns
unless no name says otherwise.

Columns of numbers that measure nothing count rows, name things, say when, or repeat a plan of the experiment. Such a
column is known by its content, in some cases together with its name, and left out with the reason; naming it with
`values` takes it back. A rule applies only where a measurement on a scale as short as possible would fulfil it by
chance with a probability of at most 1 % (`_CHANCE`), so that very short tables are left as they are. A measurement that
counts all the same, such as ranks, is left out too: that is why it is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import FloatArray, IntArray, short
from coterie.tables.errors import TableError
from coterie.tables.reading.cells import DATES, has_numbers, is_no_value, numbers_of
from coterie.tables.reading.files import Table

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

ROW_NUMBERS = frozenset(
    ("rownames", "rowname", "row names", "row name", "row", "rows", "rownum", "row number", "rowid", "row id", "index",
     "idx", "obs", "observation", "unnamed 0", "level 0", "nr", "#", "line", "zeile")
)  # fmt: skip
"""Names, in small letters, under which programs write the numbers of rows; only if all of a column's differ."""

ID_WORDS = frozenset(("id", "ids", "uuid", "guid", "zip", "zipcode", "postcode", "plz", "barcode"))
"""The last word of the name of a column that names things by whole numbers."""

TIME_WORDS = frozenset(
    ("time", "times", "timestamp", "datetime", "date", "day", "days", "week", "weeks", "month", "months", "year",
     "years", "hour", "hours", "minute", "minutes", "seconds", "epoch", "datum", "zeit", "tag", "jahr", "monat")
)  # fmt: skip
"""Words in the name of a column that says when, if its numbers never fall."""

_CHANCE = math.log(100.0)
_FEWEST = 5  # rows in which equal steps, or numbers that never fall, are no chance
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}|(?=[0-9a-f]*[0-9])[0-9a-f]{8,64}", re.IGNORECASE)
_YEARS = (1900, 2100)
_EPOCH = (1e9, 2.2e9)  # seconds since 1970: of the years 2001 to 2039


def column_named(table: Table, wanted: str) -> int:
    """The place of a column that must be there; the error lists the columns that are."""
    return columns_named(table, [wanted])[0]


def columns_named(table: Table, wanted: Sequence[str]) -> list[int]:
    """The places of columns that must be there; the error lists the columns that are."""
    places = [place for place in places_of(table, wanted) if place is not None]
    if len(places) < len(wanted):
        missing = next(name for name, place in zip(wanted, places_of(table, wanted), strict=True) if place is None)
        message = f"{table.name} has no column {short(missing)}; its columns are {listed(table.columns)}"
        raise TableError(message, field=str(missing))
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
    places: list[int | None] = []
    for name in wanted:
        others = alike.get(name.strip().casefold(), [])
        places.append(exact[name] if name in exact else others[0] if len(others) == 1 else None)
    return places


def listed(columns: Sequence[str], mark: str = ", ") -> str:
    """Names of columns for a message, with a mark between them, cut to 200 characters."""
    text = mark.join(column or "(no name)" for column in columns)
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
        places = columns_named(table, wanted)
        if item in places or len(set(places)) < len(places):
            message = "the columns of values must differ, and from that of the items"
            raise TableError(f"{message}, got {short(list(wanted))}")
    elif place_of(table, "v0") is not None:
        numbered = places_of(table, [f"v{i}" for i in range(len(columns))])
        places = [place for place in numbered if place is not None]
    else:
        rest = [
            i
            for i, column in enumerate(columns)
            if i != item and column and column not in table.index and not is_record(column)
        ]
        places = [i for i in rest if not numeric or has_numbers(table, i)]
    if not places or (dim is not None and len(places) != dim):
        named = [columns[i] for i in places]
        expected = "at least one column" if dim is None else f"{dim} column{'s' if dim > 1 else ''}"
        raise TableError(f"{table.name} needs {expected} of values, it has {short(named)}", field="values")
    return places


def is_record(column: str) -> bool:
    """Whether a column is part of a campaign's record, and no value: an id, or who told a result and when."""
    return column.casefold() in ("id", *ORIGIN_COLUMNS)


def no_measurement(table: Table, place: int, arms: IntArray | None) -> str | None:
    """Why the numbers of a column are no measurements, in words that follow its name; None if they may be.

    `arms`: the item of each row; None where a row or a column is an item of its own.
    """
    values = numbers_of(table, place)
    filled = table.column(place)
    if values is None or np.isnan(values).any():
        filled = [cell for cell in filled if not is_no_value(cell)]
    if not filled:
        return None
    text = _of_texts(filled)
    if text is not None:
        return text
    if values is None:
        return None  # what is wrong with it is said where the numbers are read
    del filled
    there = ~np.isnan(values)
    values, items = values[there], None if arms is None else arms[there]
    words = re.findall(r"[^\W\d_]+|\d+|#", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", table.columns[place]).casefold())
    return _calendar(values, words, items) or _numbering(values, words) or _in_items(values, words, items)


def _of_texts(cells: Sequence[Any]) -> str | None:
    """What the way in which numbers are written says."""
    kinds = set(map(type, cells))
    if any(issubclass(kind, DATES) for kind in kinds):
        return "a date or a time" if all(issubclass(kind, DATES) for kind in kinds) else None
    if not all(issubclass(kind, str) for kind in kinds) or len(cells) < 2:
        return None
    if all(map(_UUID.fullmatch, cells)) and any(re.search("[a-f]", text, re.IGNORECASE) for text in cells):
        return "an id" if len(set(map(len, cells))) == 1 else None
    if not all(text.isascii() and text.isdigit() for text in cells):
        return None
    one_length = len(set(map(len, cells))) == 1 and len(cells[0]) > 1
    if one_length and any(text[0] == "0" for text in cells) and len(set(cells)) > 2:
        return "a code: numbers of one length with zeros in front"
    return None


def _numbering(values: FloatArray, words: Sequence[str]) -> str | None:
    """What counts the rows of the file."""
    n, first = values.size, values.min()
    whole, apart = _whole(values), np.unique(values).size == n
    equal = n >= _FEWEST and _equal_steps(values)
    if equal and not (whole and abs(values[1] - values[0]) == 1.0):
        return f"goes by equal steps from row to row: {_begin(values)}"
    if not whole:
        return None
    if apart and (equal or " ".join(words) in ROW_NUMBERS):
        return f"counts the rows: {_begin(values)}"
    if apart and first in (0.0, 1.0) and values.max() - first == n - 1:
        if (np.diff(values) == 1.0).all() and n * math.log(n) >= _CHANCE:
            return f"counts the rows: {_begin(values)}"
        if n * math.log(n) - math.lgamma(n + 1) >= _CHANCE:
            return f"has every whole number from {first:g} to {values.max():g} once, as numbers of rows have"
    if words and words[-1] in ID_WORDS:
        return "an id"
    # It counts, and begins anew now and then: of k numbers two are possible at each row.
    with np.errstate(over="ignore"):  # results that are too large are refused later
        kinds, steps = np.unique(values).size, np.diff(values)
    again = values[0] in (0.0, 1.0) and kinds > 2 and bool(((steps == 1.0) | (values[1:] == values[0])).all())
    return (
        f"counts, again and again: {_begin(values)}" if again and (n - 1) * math.log(kinds / 2.0) >= _CHANCE else None
    )


def _calendar(values: FloatArray, words: Sequence[str], arms: IntArray | None) -> str | None:
    """What says when: dates and years written as numbers, seconds since 1970, or numbers under such a name."""
    named = any(word in TIME_WORDS for word in words)
    runs = _never_falls(values, arms)
    if _whole(values) and values.size > 1:
        if all(map(_is_day, values.tolist())):
            return "a date"
        if (named or runs) and (all(map(_is_month, values.tolist())) or _within(values, *_YEARS)):
            return "a year" if values.max() <= _YEARS[1] else "a month"
    if any(_within(values / unit, *_EPOCH) for unit in (1.0, 1e3, 1e6, 1e9)) and (named or runs):
        return "a time, counted since 1970"
    return "a time: it never falls from row to row" if named and runs else None


def _in_items(values: FloatArray, words: Sequence[str], arms: IntArray | None) -> str | None:
    """What counts, or follows one plan, within each item; or stands for the item itself."""
    if arms is None:
        return None
    parts = _parts(values, arms)
    if len(parts) < 2 or max(part.size for part in parts) < 2:
        return None
    starts = {part.min() for part in parts}
    if starts in ({0.0}, {1.0}) and all(
        np.array_equal(np.sort(part), part.min() + np.arange(part.size)) for part in parts
    ):
        in_turn = all((np.diff(part) == 1.0).all() for part in parts)
        surprise = sum(part.size * math.log(part.size) for part in parts)
        surprise -= 0.0 if in_turn else sum(math.lgamma(part.size + 1) for part in parts)
        if surprise >= _CHANCE or (surprise > 0.0 and " ".join(words) in ROW_NUMBERS):
            return f"counts the rows of each item: {_begin(max(parts, key=len))}"
    constant = all((part == part[0]).all() for part in parts)
    if constant and _whole(values):
        apart = len({part[0] for part in parts}) == len(parts)
        return (
            "a number that stands for the item" if apart and len(parts) > 2 and values.size > len(parts) + 2 else None
        )
    return _plan(parts)


def _plan(parts: Sequence[FloatArray]) -> str | None:
    """Whether every item has the same numbers: row by row, up to its own number of rows, or in another order."""
    longest = max(parts, key=len)
    others = [part for part in parts if part is not longest]
    words = "the same in every item"
    if all(np.array_equal(part, longest[: part.size]) for part in others):
        return words if sum(map(_log_orders, others)) >= _CHANCE else None
    if all(part.size == longest.size for part in parts) and all(
        np.array_equal(np.sort(part), np.sort(longest)) for part in others
    ):
        # The probability of these numbers, if each item's were drawn from those of all: a multinomial one.
        shares = np.unique(longest, return_counts=True)[1]
        drawn = -_log_orders(longest) - float(shares @ np.log(shares / longest.size))
        return words if len(others) * drawn >= _CHANCE else None
    return None


def _parts(values: FloatArray, arms: IntArray) -> list[FloatArray]:
    """The numbers of each item that has some."""
    by_item = np.argsort(arms, kind="stable")
    return [part for part in np.split(values[by_item], np.flatnonzero(np.diff(arms[by_item])) + 1) if part.size]


def _log_orders(values: FloatArray) -> float:
    """ln of the number of different orders of these numbers."""
    counts = np.unique(values, return_counts=True)[1]
    return math.lgamma(values.size + 1) - sum(math.lgamma(int(count) + 1) for count in counts)


def _never_falls(values: FloatArray, arms: IntArray | None) -> bool:
    """Whether the numbers never fall from row to row of the file, or of each item, which no chance explains."""
    if values.size >= _FEWEST and (np.diff(values) >= 0.0).all() and _log_orders(values) >= _CHANCE:
        return True
    if arms is None:
        return False
    parts = _parts(values, arms)
    return all((np.diff(part) >= 0.0).all() for part in parts) and sum(map(_log_orders, parts)) >= _CHANCE


def _equal_steps(values: FloatArray) -> bool:
    steps = np.diff(values)
    size = float(np.abs(values).max())
    return bool(steps[0] != 0.0 and (np.abs(steps - steps[0]) <= 1e-12 * size + 1e-9 * abs(steps[0])).all())


def _whole(values: FloatArray) -> bool:
    return bool((values == np.floor(values)).all())


def _within(values: FloatArray, low: float, high: float) -> bool:
    inside: NDArray[np.bool_] = (values >= low) & (values <= high)
    return bool(inside.all())


def _is_day(value: float) -> bool:
    """Whether a whole number is a day as 20240131 has it."""
    year, month, day = int(value) // 10_000, int(value) // 100 % 100, int(value) % 100
    return _YEARS[0] <= year <= _YEARS[1] and 1 <= month <= 12 and 1 <= day <= 31


def _is_month(value: float) -> bool:
    """Whether a whole number is a month as 202401 has it."""
    return _YEARS[0] <= int(value) // 100 <= _YEARS[1] and 1 <= int(value) % 100 <= 12


def _begin(values: FloatArray) -> str:
    return ", ".join(f"{value:.10g}" for value in values[:3]) + (", …" if values.size > 3 else "")
