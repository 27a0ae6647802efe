"""The rows of a table as results for a campaign: arms by name or number, values under the campaign's names, ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.campaign.errors import BadValue
from coterie.campaign.settings import CampaignSettings, printable
from coterie.problem.checks import check_text, short
from coterie.tables.checks.row_order import Order, content_order
from coterie.tables.errors import TableError, check_time
from coterie.tables.reading.cells import numbers, text_of, whole
from coterie.tables.reading.columns import (
    ITEM_NAMES,
    item_column,
    listed,
    no_measurement,
    place_of,
    places_of,
    value_columns,
)
from coterie.tables.reading.files import Table, read_table
from coterie.tables.reading.repeated_rows import CHANCE, repeated_rows
from coterie.tables.reading.tidying import words_as_numbers


@contextmanager
def table_errors_as_bad_values() -> Iterator[None]:
    """Inside, a `TableError` becomes the `BadValue` with the same message and field."""
    try:
        yield
    except TableError as error:
        raise BadValue(error.message, field=error.field) from None


@dataclass(frozen=True)
class TableImport:
    """A table that was read, the columns that hold its values (None: found by name), and the order of its rows."""

    table: Table
    values: Sequence[str] | None
    order: Order

    @property
    def note(self) -> dict[str, Any]:
        """What the campaign's log says of the import."""
        return {"source": printable(self.table.name), "order": self.order.as_dict()}

    def results(self, settings: CampaignSettings) -> list[dict[str, Any]]:
        """The rows as results for a campaign, those of each arm in the order asked for."""
        rows = self._in_table_order(settings)
        arms = np.array([row["arm"] for row in rows], dtype=np.int64)
        return [rows[place] for place in self.order.rearranged(arms, settings.name_of).tolist()]

    def _in_table_order(self, settings: CampaignSettings) -> list[dict[str, Any]]:
        with table_errors_as_bad_values():
            return results_of(self.table, settings, self.values)

    def warnings(self, settings: CampaignSettings) -> list[dict[str, Any]]:
        """Rows that repeat others beyond chance, named; none where rows have ids, which say that each is one."""
        if _id_column(self.table) is not None:
            return []
        rows = self._in_table_order(settings)
        arms = np.array([row["arm"] for row in rows], dtype=np.int64)
        values = np.array([row["values"] for row in rows], dtype=np.float64).reshape(len(rows), settings.dim)
        found = repeated_rows(arms, values)
        if found is None:
            return []
        named = found.words(len(rows), self.table.name, self.table.place)
        message = (
            f"{named}. Chance alone makes so many equal rows in at most 1 of {1 / CHANCE:,.0f} tables: if somebody "
            "copied them, each measurement counts several times, and nothing is proven. Then import a table without "
            "the copies"
        )
        return [{"kind": "copies", "message": message}]


def read_import(table: Any, values: Sequence[str] | None, in_order: Any, sheet: str | None = None) -> TableImport:
    """Read a file or rows that are to be imported; `BadValue` names what is wrong with them or with the order."""
    with table_errors_as_bad_values():
        content = read_table(table, sheet)
        order = content_order((list(map(text_of, row)) for row in content.rows), in_order)
        return TableImport(content, values or None, order)


def columns_of(table: Table, settings: CampaignSettings, wanted: Sequence[str] | None) -> tuple[int, list[int]]:
    """The places of the column that names the items, and of those that hold the values."""
    arm_at = item_column(table)
    if arm_at is None:
        others = " or ".join(ITEM_NAMES[1:])
        what = f"{table.name} needs a column arm (or {others}); its columns are {listed(table.columns)}"
        raise TableError(what, field="arm")
    named = _own_names(table, settings, wanted)
    places = value_columns(table, arm_at, settings.dim, named)
    if named is None and place_of(table, "v0") is None:  # by their number only
        for place in places:
            why = no_measurement(table, place, None)
            if why is not None:
                what = f"column {table.columns[place]} of {table.name} is taken for no measurement ({why})"
                say = "say which columns hold the values with --values (in Python values=)"
                raise TableError(f"{what}: {say}", field="values")
    return arm_at, places


def index_of(settings: CampaignSettings) -> tuple[dict[str, int], int]:
    """The arm of every name, and how many arms may be called by their number: none, if names are numbers."""
    index = {} if settings.names is None else {name: arm for arm, name in enumerate(settings.names)}
    by_number = all(whole(name) is None for name in index)  # else a number is a name, not a place
    return index, settings.n_arms if by_number else 0


def results_of(table: Table, settings: CampaignSettings, wanted: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a table as results {"id", "arm", "values"}; `wanted` names the columns that hold the values.

    Without a column of ids, the ids follow from the table's content and the row's number.
    """
    arm_at, places = columns_of(table, settings, wanted)
    rows = numbers(words_as_numbers(table, places), places)
    id_at = _id_column(table)
    index, numbered = index_of(settings)
    seen: dict[str, int] = {}
    found = []
    noise = settings.run.noise
    for number, values in enumerate(rows):
        check_time()
        arm = arm_in(table, number, arm_at, index, numbered)
        name = f"import-{table.digest[:24]}-{number + 1}" if id_at is None else _id(table, number, id_at)
        if seen.setdefault(name, number) != number:
            column = "id" if id_at is None else table.columns[id_at]
            raise table.problem(number, column, f"{short(name)} is the id of {table.place(seen[name])} too")
        try:
            noise.check(np.array([values]))
        except ValueError as error:  # in words of the table: after the shuffle nobody would find the row
            place = table.place(number)
            raise TableError(f"{table.name}, {place}, item {settings.name_of(arm)}: {error}", field=place) from None
        found.append({"id": name, "arm": arm, "values": values})
    return found


def _own_names(table: Table, settings: CampaignSettings, wanted: Sequence[str] | None) -> Sequence[str] | None:
    """The columns wanted, else those with the campaign's own names; None, for v0, v1, … or all others, without either.

    A table that calls the values otherwise is not read by the order of its columns: they might be swapped.
    """
    own = settings.value_names
    if wanted is not None or own is None:
        return wanted
    if None not in places_of(table, own):
        return own
    if None not in places_of(table, [f"v{i}" for i in range(settings.dim)]):
        return None
    what = (
        f"the campaign's values are {listed(own)}, {table.name} has the columns {listed(table.columns)}: rename them, "
        "or say which ones hold the values, in this order, with --values (in Python values=)"
    )
    raise TableError(what, field="values")


def _id_column(table: Table) -> int | None:
    place = place_of(table, "id")
    alike = [column for column in table.columns if column.casefold() == "id"]
    if place is None and alike:
        raise TableError(f"{table.name} has the columns {listed(alike)}: rename all but one of them", field="id")
    return place


def _id(table: Table, number: int, place: int) -> str:
    cell = table.rows[number][place]
    number_given = isinstance(cell, int) and not isinstance(cell, bool)
    try:
        return check_text(str(cell) if number_given else cell, "an id")
    except (ValueError, TypeError) as error:
        raise table.problem(number, table.columns[place], str(error)) from None


def arm_in(table: Table, row: int, place: int, index: Mapping[str, int], numbered: int) -> int:
    """The arm with the name in a cell or, among the first `numbered` arms, with the number in it."""
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


def replay_pool(*arguments: Any, **options: Any) -> dict[str, Any]:
    """`coterie.tables.replay_pool`, whose errors are `BadValue` here."""
    from coterie.tables.replay import replay_pool as replay

    with table_errors_as_bad_values():
        return replay(*arguments, **options)
