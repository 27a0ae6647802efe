"""A campaign as text and as Excel files: measurements, groups, the certificate, and the log that it rests on."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coterie.campaign.errors import BadValue, Conflict
from coterie.campaign.imports import table_errors_as_bad_values
from coterie.campaign.settings import CampaignSettings, checked_field, timestamp
from coterie.campaign.state.facts import BLOCK, CORRECTION
from coterie.campaign.state.opening import CampaignReading
from coterie.campaign.views import judgements
from coterie.campaign.views import log as log_views
from coterie.campaign.views import partial as partial_answers
from coterie.campaign.views import status as status_views
from coterie.methods import method_named
from coterie.methods.table import certifying_methods
from coterie.problem.checks import check_count, short
from coterie.session.partial import MOST_ITEMS
from coterie.session.verdicts import looks_mixed
from coterie.store.rows import Ask, Note, Row, Told
from coterie.tables.reading.columns import ORIGIN_COLUMNS
from coterie.tables.reading.spreadsheets import csv_line, workbook


def exporter(
    kind: Any, before: Any = None, decimal_comma: bool = False
) -> Callable[[CampaignReading], Callable[[], str]]:
    """The function that reads what an export of this kind needs; what it returns writes the text.

    Only the reading needs the campaign's lock. `before`, for "csv": only of what stands before this seq.
    `decimal_comma`, for tables that people open in a spreadsheet ("csv", "groups"): semicolons and decimal commas.
    """
    kinds: dict[str, Callable[[CampaignReading], Callable[[], str]]] = {
        "csv": lambda seen: _written(_csv(seen, last, decimal_comma)),
        "groups": lambda seen: _groups(seen, decimal_comma),
        "json": lambda seen: _written(_json(seen)),
        "certificate": lambda seen: _written(_as_text(status_views.certificate(seen.state, seen.row))),
        "partial": lambda seen: _written(_as_text(status_views.partial_certificate(seen.state, seen.row))),
        "log": lambda seen: _written(_log(seen)),
    }
    if not isinstance(kind, str) or kind not in kinds:
        raise BadValue(f"unknown kind of export {short(kind)}: choose one of {', '.join(kinds)}", field="kind")
    if decimal_comma and kind not in ("csv", "groups"):
        raise BadValue(f"only csv and groups are written with decimal commas, got kind {kind}", field="decimal_comma")
    if before is not None and kind != "csv":
        raise BadValue(f"only an export of kind csv can end before a row, got kind {kind}", field="before")
    last = None if before is None else checked_field("before", check_count, before, "before", 1) - 1
    return kinds[kind]


def _written(text: str) -> Callable[[], str]:
    return lambda: text


def _csv(seen: CampaignReading, last: int | None, decimal_comma: bool) -> str:
    """The measurements as `measurement_rows` has them, then when each was told, and by whom.

    Reading it back gives every number exactly.
    """
    header, rows = measurement_rows(seen, last)
    called = log_views.token_names(seen, [row for row, _ in rows])
    lines = [csv_line([*header, *origin_columns(header)], decimal_comma)]
    for row, cells in rows:
        who = [name or "" for name in (row.worker, called.get(row.token or "", row.token))]
        lines.append(csv_line([*cells, timestamp(row.told_at), *who], decimal_comma))
    return "".join([_first_mark(decimal_comma), *lines])


def origin_columns(header: Sequence[str]) -> list[str]:
    """What the columns are called that say when a result was told, and by whom: not like one of the values."""
    taken = {column.casefold() for column in header}
    return [f"{name} of the record" if name in taken else name for name in ORIGIN_COLUMNS]


def measurement_rows(
    seen: CampaignReading, last: int | None = None
) -> tuple[list[str], list[tuple[Told, list[str | float]]]]:
    """id, arm (its name if it has one), block if there are blocks, the values under their names: the header, and each
    row of the log with its cells; up to row `last`, if it is given.

    Corrected values stand in their place; where there are such, columns "told …" have what was told at first.
    """
    settings = log_views.settings_now(seen)
    corrected = _corrected_by(seen, last)
    if settings.run.features is not None:
        return _feature_rows(seen, settings, corrected, last)
    told_at_first = [f"told {column}" for column in settings.columns] if corrected else []
    in_blocks = settings.run.blocks is not None
    # Up to row `last` all rows are read and checked as one chain: the rows after it may be damaged.
    kinds = (Told, Ask, Note) if in_blocks else (Told,)
    page = seen.journal.rows(seen.row, kinds=kinds) if last is None else seen.journal.rows(seen.row, 0, last)
    block_of = _blocks_by_id(page.rows) if in_blocks else {}
    header = ["id", "arm", *([_block_column(settings)] if in_blocks else []), *settings.columns, *told_at_first]
    rows: list[tuple[Told, list[str | float]]] = []
    for row in page.rows:
        if isinstance(row, Told):
            told = [float(value) for value in json.loads(row.values)]
            now = corrected.get(row.id)
            before: list[str | float] = [""] * settings.dim if now is None else [*told]
            values = told if now is None else [float(value) for value in now]
            block = [block_of.get(row.id, "")] if in_blocks else []
            rows.append((row, [row.id, settings.name_of(row.arm), *block, *values, *(before if corrected else [])]))
    return header, rows


def _block_column(settings: CampaignSettings) -> str:
    """What the column of the blocks is called, not like one of the values."""
    return "block" if "block" not in {column.casefold() for column in settings.columns} else "block of the record"


def _blocks_by_id(rows: Sequence[Row]) -> dict[str, str]:
    """The block of each result, by its id: that of the cell which was asked for, or the one that it was told of."""
    cell_of: dict[int, int] = {}
    block_of_cell: dict[int, str] = {}
    for row in rows:
        if isinstance(row, Ask):
            cell_of[row.ticket] = row.round
        elif isinstance(row, Note) and row.kind == "cell":
            block_of_cell[row.data["cell"]] = row.data["block"]
    blocks, placed = {}, None
    for row in rows:
        if isinstance(row, Note) and row.kind == BLOCK:
            placed = row.data["block"] if row.data["step"] == "place" else None
        elif isinstance(row, Told):
            block = placed if row.ticket is None else block_of_cell.get(cell_of.get(row.ticket, 0))
            if block is not None:
                blocks[row.id] = block
            placed = None
    return blocks


def _feature_rows(
    seen: CampaignReading, settings: CampaignSettings, corrected: dict[str, list[float]], last: int | None
) -> tuple[list[str], list[tuple[Told, list[str | float]]]]:
    """The long format: a row for each number, with its item and feature; numbers of one result share its id."""
    features = settings.run.features
    assert features is not None
    page = seen.journal.rows(seen.row, kinds=(Told,)) if last is None else seen.journal.rows(seen.row, 0, last)
    rows: list[tuple[Told, list[str | float]]] = []
    for row in (entry for entry in page.rows if isinstance(entry, Told)):
        item, panel = features.split(row.arm)
        told = json.loads(row.values)
        now = corrected.get(row.id, told)
        for feature, value, before in zip(features.features_of(panel), now, told, strict=True):
            cells: list[str | float] = [row.id, settings.name_of(item), features.names[feature]]
            if value is not None:
                first = "" if row.id not in corrected or before is None else float(before)
                rows.append((row, [*cells, float(value), *([first] if corrected else [])]))
    return ["id", "arm", "feature", "value", *(["told value"] if corrected else [])], rows


def _corrected_by(seen: CampaignReading, last: int | None) -> dict[str, list[float]]:
    """The values of the measurements that were corrected, by their ids; up to row `last` if it is given."""
    notes = (note for note in seen.journal.notes(seen.row, CORRECTION).rows if isinstance(note, Note))
    return {note.data["measurement"]: note.data["new"] for note in notes if last is None or note.seq <= last}


def _first_mark(decimal_comma: bool) -> str:
    """What spreadsheets need at the beginning to read a file as UTF-8; other programs do without."""
    return "\ufeff" if decimal_comma else ""


def _groups(seen: CampaignReading, decimal_comma: bool) -> Callable[[], str]:
    """A line for each item, as `group_rows` has them."""
    header, finish = group_rows(seen)

    def write() -> str:
        lines = [csv_line(["" if cell is None else cell for cell in row], decimal_comma) for row in finish()]
        return "".join([_first_mark(decimal_comma) + csv_line(header, decimal_comma), *lines])

    return write


def group_rows(seen: CampaignReading) -> tuple[list[str], Callable[[], list[list[Any]]]]:
    """item, its group (as status numbers them), whether that is proven, its measurements and their mean, its letters.

    Items that share a letter are not proven different; there are none where a campaign has no partial answers.

    Where there are costs, `cost` is what the measurements of the item have cost.

    If results told after the stop do not fit the groups, what the proof assumes is in doubt, and with it all groups:
    proven is then "does not fit" for the items that do not, and "no" for all others. It is "no" for all if there is an
    alarm that is not harmless or a group looks mixed, and "retired" for retired items. The letters take time: what is
    returned beside the header adds them.
    """
    state, settings = seen.state, seen.state.settings
    apart = {misfit["arm"] for misfit in judgements.misfits(state)}
    clean = state.session.alarm is None and not looks_mixed(state.session) and not judgements.harmful(state)
    proven = "yes" if state.done and judgements.certain(settings) and clean and not apart else "no"
    priced = settings.run.costs
    header = ["item", "group", "proven", "measurements", *([] if priced is None else ["cost"])]
    if settings.run.features is not None:
        return _groups_by_feature(seen, proven)
    header += [f"mean {name}" for name in settings.columns]
    rows: list[list[Any]] = []
    for arm in range(settings.n_arms):
        count, total = state.sums.get(arm, (0, None))
        gone = arm in state.session.retired
        group = None if state.groups is None or gone else int(state.groups[arm])
        means = [None] * settings.dim if total is None else [float(value) for value in total / count]
        spent = [] if priced is None else [float(count * priced[arm])]
        said = "retired" if gone else "does not fit" if arm in apart else proven
        rows.append([settings.name_of(arm), group, said, count, *spent, *means])
    lettered = method_named(settings.method).certifies and settings.n_arms <= MOST_ITEMS
    taken = partial_answers.take_for_partial(seen) if lettered else None

    def finish() -> list[list[Any]]:
        shown = [""] * len(rows) if taken is None else partial_answers.letters(taken)
        return [[*row, letters] for row, letters in zip(rows, shown, strict=True)]

    return [*header, "letters"], finish


def _groups_by_feature(seen: CampaignReading, proven: str) -> tuple[list[str], Callable[[], list[list[Any]]]]:
    """item, group, proven, measurements, and the means on the features by which the groups are told apart."""
    state, settings = seen.state, seen.state.settings
    session, found_names, features = state.session, state.session.found_features, settings.run.features
    assert features is not None
    cells, column = session.cells, {features.names.index(name): place for place, name in enumerate(found_names)}
    means: dict[int, list[float | None]] = {}
    for item, feature, mean in zip(cells.items.tolist(), cells.features.tolist(), cells.means.tolist(), strict=True):
        if feature in column:
            means.setdefault(item, [None] * len(found_names))[column[feature]] = mean
    rows: list[list[Any]] = []
    for item, count in enumerate(session.pulls.tolist()):
        group = None if state.groups is None else int(state.groups[item])
        rows.append([settings.name_of(item), group, proven, count, *means.get(item, [None] * len(found_names))])
    return ["item", "group", "proven", "measurements", *(f"mean {name}" for name in found_names)], lambda: rows


def _json(seen: CampaignReading) -> str:
    """The settings, where it stands, and the whole log."""
    content = {
        "format": "coterie-campaign-1",
        "status": status_views.status(seen.state, seen.row, seen.now),
        "events": log_views.events(seen, 0, None)["events"],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _as_text(certificate: dict[str, Any]) -> str:
    text = io.StringIO()  # `json.dumps` with an indent would hold millions of small pieces before it joins them
    json.dump(certificate, text, indent=1)
    text.write("\n")
    return text.getvalue()


def _log(seen: CampaignReading) -> str:
    """Results in the order in which they count, freezes and rounds: what `coterie verify` reads."""
    settings = seen.settings
    if not method_named(settings.method).certifies:
        raise Conflict(
            f"only method {certifying_methods()} has a log to verify, campaign {seen.row['name']!r} uses "
            f"{settings.method!r}: export csv or json",
            code="no_certificate",
        )
    from coterie.certificate import write_log

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.csv")
        write_log(path, _with_origin(seen), settings.dim)
        return path.read_text(encoding="utf-8")


def _with_origin(seen: CampaignReading) -> list[dict[str, Any]]:
    """The events of the log, each result with when it was told and by whom; no proof depends on that."""
    rows = [row for row in seen.journal.rows(seen.row, kinds=(Told,)).rows if isinstance(row, Told)]
    called = log_views.token_names(seen, rows)
    by_place = {seen.state.ids[row.id]: row for row in rows}
    places = iter(seen.state.session.counted.tolist())
    events = []
    for event in status_views.log_events(seen.state):
        if event["event"] == "result":
            row = by_place[next(places)]
            who = {"at": timestamp(row.told_at), "worker": row.worker, "token": called.get(row.token or "", row.token)}
            event = event | {name: value for name, value in who.items() if value is not None}
        events.append(event)
    return events


_ELSEWHERE = frozenset({"kind", "seq", "at", "arm", "name", "values", "worker", "lease", "id", "reason", "token"})
"""What an event tells that has a column of its own."""


def workbook_exporter(kind: Any) -> Callable[[CampaignReading], Callable[[], bytes]]:
    """The function that reads what the file needs; what it returns writes it. Only the reading needs the lock."""
    kinds = {"csv": _measurement_sheet, "groups": _group_sheet, "log": _log_sheet}
    if not isinstance(kind, str) or kind not in kinds:
        raise BadValue(f"as Excel there are {', '.join(kinds)}, got kind {short(kind)}", field="kind")
    return kinds[kind]


def _measurement_sheet(seen: CampaignReading) -> Callable[[], bytes]:
    """id, arm and values as in the CSV file, so that it can be imported again; and when, and by whom."""
    header, results = measurement_rows(seen)
    called = log_views.token_names(seen, [row for row, _ in results])
    rows = [
        [*cells, datetime.fromtimestamp(row.told_at, UTC), row.worker, called.get(row.token or "", row.token)]
        for row, cells in results
    ]
    return _sheet("measurements", [*header, *origin_columns(header)], rows)


def _group_sheet(seen: CampaignReading) -> Callable[[], bytes]:
    header, finish = group_rows(seen)
    return lambda: _sheet("groups", header, finish())()


def _log_sheet(seen: CampaignReading) -> Callable[[], bytes]:
    """Everything that happened, a row each. For people: `coterie verify` reads the log that is exported as CSV."""
    settings = seen.settings
    dim = settings.width
    columns = settings.columns if settings.run.features is None else [f"value {place}" for place in range(dim)]
    header = ["no.", "when (UTC)", "what", "item", *columns, "who", "id", "lease", "reason", "token", "more"]
    rows = [_log_row(event, dim) for event in log_views.events(seen, 0, None)["events"]]
    return _sheet("log", header, rows)


def _log_row(event: dict[str, Any], dim: int) -> list[Any]:
    told = list(event.get("values", ()))
    values = [*told, *[None] * (dim - len(told))]
    token = event.get("token")
    more = {key: value for key, value in event.items() if key not in _ELSEWHERE}
    return [
        event["seq"],
        datetime.fromisoformat(event["at"]),
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


def _sheet(title: str, header: list[str], rows: list[list[Any]]) -> Callable[[], bytes]:
    def write() -> bytes:
        with table_errors_as_bad_values():
            return workbook(title, header, rows)

    return write
