"""Tables in the long format, a row for each number: its item, its feature, its value; for campaigns with features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coterie.campaign.settings import CampaignSettings
from coterie.problem.checks import short
from coterie.problem.features import Features
from coterie.tables.errors import TableError, check_time
from coterie.tables.reading.cells import numbers, text_of, whole
from coterie.tables.reading.columns import ITEM_NAMES, item_column, listed, place_of
from coterie.tables.reading.files import Table
from coterie.tables.reading.tidying import words_as_numbers

FEATURE, VALUE, ID = "feature", "value", "id"


def long_results(table: Table, settings: CampaignSettings) -> list[dict[str, Any]]:
    """The results of a table {"id", "arm", "feature", "values"}, those of one panel from rows that share an id.

    Without a column of ids every row is a result, of a feature that can be measured alone; the ids then follow from the
    table's content and the row's number.
    """
    features = settings.run.features
    assert features is not None
    arm_at, feature_at, value_at = (_column(table, name) for name in (None, FEATURE, VALUE))
    id_at = place_of(table, ID)
    index, numbered = index_of(settings)
    values = numbers(words_as_numbers(table, [value_at]), [value_at])
    results: dict[str, dict[str, Any]] = {}
    firsts: dict[str, int] = {}
    for row, (value,) in enumerate(values):
        check_time()
        arm = arm_in(table, row, arm_at, index, numbered)
        try:
            name = features.names[features.feature_of(text_of(table.rows[row][feature_at]))]
        except ValueError as error:
            raise table.problem(row, table.columns[feature_at], str(error)) from None
        own = f"import-{table.digest[:24]}-{row + 1}" if id_at is None else text_of(table.rows[row][id_at])
        result = results.setdefault(own, {"id": own, "arm": arm, "values": {}})
        first = firsts.setdefault(own, row)
        if result["arm"] != arm:
            raise table.problem(row, ID, f"{short(own)} is of one item, and {table.place(first)} names another")
        if name in result["values"]:
            raise table.problem(
                row, table.columns[feature_at], f"feature {name!r} is told twice in result {short(own)}"
            )
        result["values"][name] = value
    for own, result in results.items():
        result["feature"] = _panel_of(table, features, result["values"], firsts[own])
        try:
            _check(settings, features, result)
        except ValueError as error:
            place = table.place(firsts[own])
            item = settings.name_of(result["arm"])
            raise TableError(f"{table.name}, {place}, item {item}: {error}", field=place) from None
    return list(results.values())


def index_of(settings: CampaignSettings) -> tuple[dict[str, int], int]:
    """The arm of every name, and how many arms may be called by their number: none, if names are numbers."""
    index = {} if settings.names is None else {name: arm for arm, name in enumerate(settings.names)}
    by_number = all(whole(name) is None for name in index)  # else a number is a name, not a place
    return index, settings.n_arms if by_number else 0


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


def _column(table: Table, name: str | None) -> int:
    """The place of a column; None: of the one that names the items."""
    place = item_column(table) if name is None else place_of(table, name)
    if place is None:
        wanted = f"{ITEM_NAMES[0]} (or {' or '.join(ITEM_NAMES[1:])})" if name is None else name
        raise TableError(
            f"{table.name} needs a column {wanted}: a row for each number, with its item, its feature and its value; "
            f"its columns are {listed(table.columns)}",
            field=name or ITEM_NAMES[0],
        )
    return place


def _panel_of(table: Table, features: Features, values: dict[str, float], row: int) -> str:
    """The panel with these features: with all of them and no other or, with holes, the smallest that has them."""
    told = {features.feature_of(name) for name in values}
    first = min(told)
    panels = features.panels_with.get(first, ()) if features.panels else (first,)
    around = [panel for panel in panels if told <= set(features.features_of(panel))]
    whole = [panel for panel in around if len(features.features_of(panel)) == len(told)]
    if whole or (around and features.holes):
        return features.panel_name((whole or sorted(around, key=lambda p: len(features.features_of(p))))[0])
    names = ", ".join(map(repr, values))
    why = f"no panel gives {names} together"
    if around:
        panel = features.panel_name(around[0])
        why = f"{names} is not measured alone, but in panel {panel!r}: rows of one result share an id"
    raise table.problem(row, FEATURE, why)


def _check(settings: CampaignSettings, features: Features, result: dict[str, Any]) -> None:
    """That the noise allows these numbers, in words of the table: after the shuffle nobody would find the row."""
    if settings.run.noise.kind in ("counts", "bounded") and features.width == 1:
        settings.run.noise.check(np.array([list(result["values"].values())]))


def streams_of(results: list[dict[str, Any]], settings: CampaignSettings) -> list[int]:
    """The item with the panel of each result, as one number."""
    features = settings.run.features
    assert features is not None
    return [features.stream(row["arm"], features.panel_of(row["feature"])) for row in results]
