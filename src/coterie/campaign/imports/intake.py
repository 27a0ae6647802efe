"""Taking a table in: what an import would do and everything that is wrong with it, before anything is written; and the
import itself, of a long table in parts, each a short transaction between which others write.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from coterie.campaign.commands import measuring
from coterie.campaign.commands.results import check_measurements
from coterie.campaign.commands.turn import Turn
from coterie.campaign.errors import CampaignError, StoreUnavailable
from coterie.campaign.imports.tables import TableImport, arm_in, columns_of, index_of
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.settings import CampaignSettings
from coterie.campaign.tokens import Writer
from coterie.campaign.views.log import settings_now, settings_of
from coterie.problem.checks import short
from coterie.tables.errors import TableError, check_time
from coterie.tables.reading.cells import numbers_and_others, refuse_unclear_marks, text_of
from coterie.tables.reading.files import Table
from coterie.tables.reading.tidying import words_as_numbers

PART_SECONDS = 0.06
"""How long a part may hold others up, about; its length follows from that of the parts before."""
PAUSE_SECONDS = 0.03
"""Between parts. SQLite looks that often, at first, whether a lock is free."""
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
    note = content.note | {"measurements": sum(not one.old for one in given)}
    del given
    found: dict[str, Any] = {"accepted": 0, "duplicates": 0, "done": False}
    copies = campaigns.look(id, lambda seen: content.warnings(settings_now(seen))) if note["measurements"] else []
    if copies:
        found["warnings"] = copies
    start, size = 0, _FIRST
    while start < len(results) or start == 0:
        begun = time.monotonic()
        part = results[start : start + size]
        try:
            check_time(TAKING_IN_SECONDS)
            answer = campaigns.submit(id, _decision(part, note if found["accepted"] == 0 else None, writer))
        except (StoreUnavailable, TableError) as error:
            if start:
                error.message += (
                    f". {start} of {len(results)} measurements are on record: import the same table again for the rest"
                )
                error.args = (error.message,)
            raise
        found |= {key: found[key] + answer[key] for key in ("accepted", "duplicates")} | {"done": answer["done"]}
        if "warnings" in answer:
            found["warnings"] = [*found.get("warnings", []), *answer["warnings"]][: measuring.MOST_WARNINGS]
        start += max(1, len(part))
        if start < len(results):
            took = time.monotonic() - begun
            size = int(min(_LONGEST, max(_SHORTEST, len(part) * min(2.0, PART_SECONDS / max(took, 1e-6)))))
            time.sleep(PAUSE_SECONDS)
    return found | {"order": content.order.as_dict()}


def _decision(part: list[dict[str, Any]], note: dict[str, Any] | None, writer: Writer | None) -> Any:
    def decide(turn: Turn) -> dict[str, Any]:
        turn.writer = writer  # a turn is shared by requests that are committed together
        return measuring.tell(turn, part, imported=note, unasked=True)

    return decide


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
