"""A campaign as Excel files: its measurements, its groups, and the log of what happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from coterie.campaign.errors import BadValue
from coterie.campaign.exports.text import group_rows, measurement_rows, origin_columns
from coterie.campaign.imports.tables import table_errors_as_bad_values
from coterie.campaign.state.opening import CampaignReading
from coterie.campaign.views import log as log_views
from coterie.problem.checks import short
from coterie.tables.reading.spreadsheets import workbook

KINDS = ("csv", "groups", "log")
"""The exports that exist as Excel files too."""

_ELSEWHERE = frozenset({"kind", "seq", "at", "arm", "name", "values", "worker", "lease", "id", "reason", "token"})
"""What an event tells that has a column of its own."""


def workbook_exporter(kind: Any) -> Callable[[CampaignReading], Callable[[], bytes]]:
    """The function that reads what the file needs; what it returns writes it. Only the reading needs the lock."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadValue(f"as Excel there are {', '.join(KINDS)}, got kind {short(kind)}", field="kind")
    return {"csv": _measurements, "groups": _groups, "log": _log}[kind]


def _measurements(seen: CampaignReading) -> Callable[[], bytes]:
    """id, arm and values as in the CSV file, so that it can be imported again; and when, and by whom."""
    header, found = measurement_rows(seen)
    called = log_views.token_names(seen, [row for row, _ in found])
    rows = [
        [*cells, datetime.fromtimestamp(row.told_at, UTC), row.worker, called.get(row.token or "", row.token)]
        for row, cells in found
    ]
    return _written("measurements", [*header, *origin_columns(header)], rows)


def _groups(seen: CampaignReading) -> Callable[[], bytes]:
    header, finish = group_rows(seen)
    return lambda: _written("groups", header, finish())()


def _log(seen: CampaignReading) -> Callable[[], bytes]:
    """Everything that happened, a row each. For people: `coterie verify` reads the log that is exported as CSV."""
    settings = log_views.settings_of(seen.row)
    header = ["no.", "when (UTC)", "what", "item", *settings.columns, "who", "id", "lease", "reason", "token", "more"]
    rows = [_log_row(one, settings.dim) for one in log_views.events(seen, 0, None)["events"]]
    return _written("log", header, rows)


def _log_row(event: dict[str, Any], dim: int) -> list[Any]:
    values = [float(value) for value in event["values"]] if "values" in event else [None] * dim
    token = event.get("token")
    more = {key: value for key, value in event.items() if key not in _ELSEWHERE}
    return [
        event["seq"],
        _date(event["at"]),
        event["kind"],
        event.get("name"),
        *values,
        event.get("worker"),
        event.get("id"),
        event.get("lease"),
        event.get("reason"),
        None if token is None else token["name"] or token["id"],
        json.dumps(more, ensure_ascii=False) if more else None,
    ]


def _date(at: str) -> datetime:
    return datetime.fromisoformat(at)


def _written(title: str, header: list[str], rows: list[list[Any]]) -> Callable[[], bytes]:
    def write() -> bytes:
        with table_errors_as_bad_values():
            return workbook(title, header, rows)

    return write
