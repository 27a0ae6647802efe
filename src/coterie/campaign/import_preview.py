"""What an import of a table would do, and everything that is wrong with it, before anything is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.campaign.errors import CampaignError
from coterie.campaign.given_results import check_measurements
from coterie.campaign.importing import TableImport, arm_in, columns_of, index_of
from coterie.campaign.log_views import settings_of
from coterie.campaign.open_campaigns import OpenCampaigns
from coterie.campaign.settings import CampaignSettings
from coterie.problem.checks import short
from coterie.tables.cells import numbers_and_others, refuse_unclear_marks, text_of
from coterie.tables.errors import TableError
from coterie.tables.files import Table
from coterie.tables.tidying import words_as_numbers
from coterie.tables.time_limit import check_time

LISTED = 50
"""Problems, unknown items and items that a preview lists; it counts them all."""
SHOWN_ROWS = 5


def preview_import(campaigns: OpenCampaigns, id: str, content: TableImport) -> dict[str, Any]:
    """What `import_in_parts` would do with this table now; nothing is written."""
    settings = campaigns.look(id, lambda seen: settings_of(seen.row))
    table = content.table
    found: dict[str, Any] = {
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
    try:
        arm_at, places = columns_of(table, settings, content.values)
    except TableError as error:
        return found | _problems([_problem(error.message, error.field)])
    found |= {"item_column": table.columns[arm_at], "value_columns": [table.columns[place] for place in places]}
    problems, unknown, arms = _look_at_rows(table, settings, arm_at, places)
    found |= {"items": len(arms), "unknown_items": unknown[:LISTED], "shown": _shown(table, arm_at, places)}
    if not problems:
        problems = _checked_by_the_campaign(campaigns, id, content, settings, found)
    return found | _problems(problems)


def _look_at_rows(
    table: Table, settings: CampaignSettings, arm_at: int, places: list[int]
) -> tuple[list[dict[str, Any]], list[str], set[int]]:
    """All problems of single cells, the names that no item has, and the items that there are."""
    found, bad = numbers_and_others(words_as_numbers(table, places), places)
    at: dict[int, list[dict[str, Any]]] = {}
    for row, place, what in bad:
        at.setdefault(row, []).append(_at(table, row, place, what))
    index, numbered = index_of(settings)
    unknown: dict[str, None] = {}
    arms: set[int] = set()
    for row, values in enumerate(found):
        check_time()
        try:
            arms.add(arm_in(table, row, arm_at, index, numbered))
        except TableError:
            unknown.setdefault(text_of(table.rows[row][arm_at]) or "(no name)")
            said = f"unknown item {short(table.rows[row][arm_at])}"
            at.setdefault(row, []).append(_at(table, row, arm_at, said))
        if row not in at:
            try:
                settings.run.noise.check(np.array([values]))
            except ValueError as error:
                at[row] = [_at(table, row, places[0], str(error))]
    problems = [one for row in sorted(at) for one in at[row]]
    if not bad:
        try:
            refuse_unclear_marks(table, places)
        except TableError as error:
            problems.insert(0, _problem(error.message, error.field))
    return problems, list(unknown), arms


def _checked_by_the_campaign(
    campaigns: OpenCampaigns, id: str, content: TableImport, settings: CampaignSettings, found: dict[str, Any]
) -> list[dict[str, Any]]:
    """What the record says against these results: ids that are taken, say. Counts those that are new."""
    try:
        results = content.results(settings)
        given = campaigns.read(id, lambda seen: check_measurements(seen.state, results))
    except CampaignError as error:
        return [_problem(error.message, error.field)]
    found["warnings"] = content.warnings(settings)
    found["new"] = sum(not one.old for one in given)
    found["duplicates"] = len(given) - found["new"]
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


def _at(table: Table, row: int, place: int, what: str) -> dict[str, Any]:
    where = table.place(row)
    return {
        "place": where,
        "column": table.columns[place],
        "message": f"{where}, column {table.columns[place]}: {what}",
    }


def _problem(message: str, field: str | None) -> dict[str, Any]:
    return {"place": field, "column": None, "message": message}


def _problems(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {"problems": found[:LISTED], "problem_count": len(found)}
