"""Tables of earlier measurements, taken into a campaign: what an import would do and everything that is wrong with it,
before anything is written; and the import itself, in parts between which others write.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.campaign.commands import measuring
from coterie.campaign.commands.results import check_measurements
from coterie.campaign.commands.turn import decision
from coterie.campaign.errors import BadValue, CampaignError, StoreUnavailable
from coterie.campaign.long_tables import arm_in, index_of, long_results, streams_of
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.settings import CampaignSettings, printable
from coterie.campaign.tokens import Writer
from coterie.campaign.views.log import settings_now
from coterie.problem.checks import check_text, short
from coterie.tables.checks.row_order import Order, content_order
from coterie.tables.errors import TableError, check_time
from coterie.tables.reading.cells import numbers, numbers_and_others, refuse_unclear_marks, text_of
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
        if settings.run.features is not None:
            order = self.order.rearranged(np.array(streams_of(rows, settings), dtype=np.int64), settings.words_of)
            return [rows[place] for place in order.tolist()]
        arms = np.array([row["arm"] for row in rows], dtype=np.int64)
        return [rows[place] for place in self.order.rearranged(arms, settings.name_of).tolist()]

    def _in_table_order(self, settings: CampaignSettings) -> list[dict[str, Any]]:
        with table_errors_as_bad_values():
            return results_of(self.table, settings, self.values)

    def warnings(self, settings: CampaignSettings) -> list[dict[str, Any]]:
        """Rows that repeat others beyond chance, named; none where rows have ids, which say that each is one."""
        if _id_column(self.table) is not None or settings.run.features is not None:
            return []
        rows = self._in_table_order(settings)
        arms = np.array([row["arm"] for row in rows], dtype=np.int64)
        values = np.array([row["values"] for row in rows], dtype=np.float64).reshape(len(rows), settings.dim)
        repeats = repeated_rows(arms, values)
        if repeats is None:
            return []
        named = repeats.words(len(rows), self.table.name, self.table.place)
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
        message = f"{table.name} needs a column arm (or {others}); its columns are {listed(table.columns)}"
        raise TableError(message, field="arm")
    named = _own_names(table, settings, wanted)
    places = value_columns(table, arm_at, settings.dim, named)
    if named is None and place_of(table, "v0") is None:  # by their number only
        for place in places:
            why = no_measurement(table, place, None)
            if why is not None:
                message = f"column {table.columns[place]} of {table.name} is taken for no measurement ({why})"
                say = "say which columns hold the values with --values (in Python values=)"
                raise TableError(f"{message}: {say}", field="values")
    return arm_at, places


def results_of(table: Table, settings: CampaignSettings, wanted: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a table as results {"id", "arm", "values"}; `wanted` names the columns that hold the values.

    Without a column of ids, the ids follow from the table's content and the row's number.
    """
    if settings.run.features is not None:
        return long_results(table, settings)
    arm_at, places = columns_of(table, settings, wanted)
    rows = numbers(words_as_numbers(table, places), places)
    id_at = _id_column(table)
    index, numbered = index_of(settings)
    seen: dict[str, int] = {}
    results = []
    doubted = not _fit(settings, rows)
    for number, values in enumerate(rows):
        check_time()
        arm = arm_in(table, number, arm_at, index, numbered)
        name = f"import-{table.digest[:24]}-{number + 1}" if id_at is None else _id(table, number, id_at)
        if seen.setdefault(name, number) != number:
            column = "id" if id_at is None else table.columns[id_at]
            raise table.problem(number, column, f"{short(name)} is the id of {table.place(seen[name])} too")
        if doubted:
            try:
                settings.run.noise.check(np.array([values]))
            except ValueError as error:  # in words of the table: after the shuffle nobody would find the row
                place = table.place(number)
                raise TableError(f"{table.name}, {place}, item {settings.name_of(arm)}: {error}", field=place) from None
        results.append({"id": name, "arm": arm, "values": values})
    return results


def _fit(settings: CampaignSettings, rows: Sequence[Sequence[float]]) -> bool:
    """Whether no row contradicts what is stated of the noise."""
    with suppress(ValueError):
        settings.run.noise.check(np.array(rows, dtype=np.float64).reshape(len(rows), settings.dim))
        return True
    return False


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
    message = (
        f"the campaign's values are {listed(own)}, {table.name} has the columns {listed(table.columns)}: rename them, "
        "or say which ones hold the values, in this order, with --values (in Python values=)"
    )
    raise TableError(message, field="values")


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


def replay_pool(*arguments: Any, **options: Any) -> dict[str, Any]:
    """`coterie.tables.replay_pool`, whose errors are `BadValue` here."""
    from coterie.tables.replay import replay_pool as replay

    with table_errors_as_bad_values():
        return replay(*arguments, **options)


PART_SECONDS = 0.06
"""How long a part may hold others up, about; its length follows from that of the parts before."""
PAUSE_SECONDS = 0.03  # between parts: SQLite looks that often, at first, whether a lock is free
TAKING_IN_SECONDS = 600.0
"""How long the parts of a table may take in all, where the time to read it is limited (`coterie.tables.time_limit`)."""
_FIRST, _SHORTEST, _LONGEST = 500, 50, 5_000  # rows


def import_in_parts(
    campaigns: OpenCampaigns, id: str, content: TableImport, writer: Writer | None = None
) -> dict[str, Any]:
    """Check the whole table first, so that what is wrong with it changes nothing; then take it in.

    `writer`: the token that it came with, which the rows keep.
    """
    results = campaigns.look(id, lambda seen: content.results(settings_now(seen)))
    given = campaigns.read(id, lambda seen: check_measurements(seen.state, results))
    note = content.note | {"measurements": sum(not result.old for result in given)}
    del given
    answer_so_far: dict[str, Any] = {"accepted": 0, "duplicates": 0, "done": False}
    copies = campaigns.look(id, lambda seen: content.warnings(settings_now(seen))) if note["measurements"] else []
    if copies:
        answer_so_far["warnings"] = copies
    start, size = 0, _FIRST
    while start < len(results) or start == 0:
        begun = time.monotonic()
        part = results[start : start + size]
        try:
            check_time(TAKING_IN_SECONDS)
            imported = note if answer_so_far["accepted"] == 0 else None
            answer = campaigns.submit(id, decision(measuring.tell, (part, imported, True), writer))
        except (StoreUnavailable, TableError) as error:
            if start:
                error.message += (
                    f". {start} of {len(results)} measurements are on record: import the same table again for the rest"
                )
                error.args = (error.message,)
            raise
        answer_so_far |= {key: answer_so_far[key] + answer[key] for key in ("accepted", "duplicates")} | {
            "done": answer["done"]
        }
        if "warnings" in answer:
            answer_so_far["warnings"] = [*answer_so_far.get("warnings", []), *answer["warnings"]][
                : measuring.MOST_WARNINGS
            ]
        start += max(1, len(part))
        if start < len(results):
            took = time.monotonic() - begun
            size = int(min(_LONGEST, max(_SHORTEST, len(part) * min(2.0, PART_SECONDS / max(took, 1e-6)))))
            time.sleep(PAUSE_SECONDS)
    return answer_so_far | {"order": content.order.as_dict()}


LISTED = 50  # problems, and unknown items, of which a preview counts all
SHOWN_ROWS = 5


def preview_import(campaigns: OpenCampaigns, id: str, content: TableImport) -> dict[str, Any]:
    """What `import_in_parts` would do with this table now; nothing is written."""
    settings = campaigns.look(id, lambda seen: seen.settings)
    table = content.table
    preview: dict[str, Any] = {
        "source": table.name,
        "rows": len(table.rows),
        "columns": list(table.columns),
        "sheets": list(table.sheets),
        "item_column": None,
        "value_columns": [],
        "shown": [],
        "items": 0,
        "unknown_items": [],
        "problems": [],
        "problem_count": 0,
        "new": 0,
        "duplicates": 0,
        "order": content.order.as_dict(),
        "warnings": [],
    }
    if settings.run.features is not None:
        problems = _checked_by_the_campaign(campaigns, id, content, settings, preview)
        return preview | {"item_column": "arm", "value_columns": ["value"]} | _problems(problems)
    try:
        arm_at, places = columns_of(table, settings, content.values)
    except TableError as error:
        return preview | _problems([_problem(error.message, error.field)])
    preview |= {"item_column": table.columns[arm_at], "value_columns": [table.columns[place] for place in places]}
    problems, unknown, arms = _look_at_rows(table, settings, arm_at, places)
    preview |= {"items": len(arms), "unknown_items": unknown[:LISTED], "shown": _shown(table, arm_at, places)}
    if not problems:
        problems = _checked_by_the_campaign(campaigns, id, content, settings, preview)
    return preview | _problems(problems)


def _look_at_rows(
    table: Table, settings: CampaignSettings, arm_at: int, places: list[int]
) -> tuple[list[dict[str, Any]], list[str], set[int]]:
    """All problems of single cells, the names that no item has, and the items that there are."""
    readings, bad = numbers_and_others(words_as_numbers(table, places), places)
    at: dict[int, list[dict[str, Any]]] = {}
    for row, place, message in bad:
        at.setdefault(row, []).append(_at(table, row, place, message))
    index, numbered = index_of(settings)
    unknown: dict[str, None] = {}
    arms: set[int] = set()
    doubted = bool(bad) or not _fit(settings, readings)
    for row, values in enumerate(readings):
        check_time()
        try:
            arms.add(arm_in(table, row, arm_at, index, numbered))
        except TableError:
            unknown.setdefault(text_of(table.rows[row][arm_at]) or "(no name)")
            at.setdefault(row, []).append(_at(table, row, arm_at, f"unknown item {short(table.rows[row][arm_at])}"))
        if doubted and row not in at:
            try:
                settings.run.noise.check(np.array([values]))
            except ValueError as error:
                at[row] = [_at(table, row, places[0], str(error))]
    problems = [problem for row in sorted(at) for problem in at[row]]
    if not bad:
        try:
            refuse_unclear_marks(table, places)
        except TableError as error:
            problems.insert(0, _problem(error.message, error.field))
    return problems, list(unknown), arms


def _checked_by_the_campaign(
    campaigns: OpenCampaigns, id: str, content: TableImport, settings: CampaignSettings, preview: dict[str, Any]
) -> list[dict[str, Any]]:
    """What the record says against these results: ids that are taken, say. Counts those that are new."""
    try:
        results = content.results(settings)
        given = campaigns.read(id, lambda seen: check_measurements(seen.state, results))
    except CampaignError as error:
        return [_problem(error.message, error.field)]
    preview["warnings"] = content.warnings(settings)
    preview["new"] = sum(not result.old for result in given)
    preview["duplicates"] = len(given) - preview["new"]
    return []


def _shown(table: Table, arm_at: int, places: list[int]) -> list[dict[str, Any]]:
    """The first rows, as they are understood: the number, if a cell holds one."""
    first = Table(**(vars(table) | {"rows": table.rows[:SHOWN_ROWS]}))
    numbers, bad = numbers_and_others(words_as_numbers(first, places), places)
    if bad:
        return []
    return [
        {"place": table.place(row), "item": text_of(table.rows[row][arm_at]), "values": values}
        for row, values in enumerate(numbers)
    ]


def _at(table: Table, row: int, place: int, message: str) -> dict[str, Any]:
    where = table.place(row)
    return {
        "place": where,
        "column": table.columns[place],
        "message": f"{where}, column {table.columns[place]}: {message}",
    }


def _problem(message: str, field: str | None) -> dict[str, Any]:
    return {"place": field, "column": None, "message": message}


def _problems(problems: list[dict[str, Any]]) -> dict[str, Any]:
    return {"problems": problems[:LISTED], "problem_count": len(problems)}
