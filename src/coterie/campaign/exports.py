"""A campaign as text: measurements as CSV or JSON, the certificate, and the log that it is checked against."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coterie.campaign import views
from coterie.campaign.errors import BadValue, Conflict
from coterie.campaign.open_campaigns import CampaignReading
from coterie.campaign.settings import checked_field
from coterie.certificate import write_log
from coterie.methods import method_named
from coterie.problem.checks import check_count, short
from coterie.store.rows import Told
from coterie.tables.spreadsheets import safe_in_spreadsheets


def exporter(kind: Any, before: Any = None) -> Callable[[CampaignReading], str]:
    """The function that writes an export of this kind; `before`, for "csv": only of what stands before this seq."""
    kinds = {"csv": _csv, "groups": _groups, "json": _json, "certificate": _certificate, "log": _log}
    if not isinstance(kind, str) or kind not in kinds:
        raise BadValue(f"unknown kind of export {short(kind)}: choose one of {', '.join(kinds)}", field="kind")
    if before is not None:
        if kind != "csv":
            raise BadValue(f"only an export of kind csv can end before a row, got kind {kind}", field="before")
        last = checked_field("before", check_count, before, "before", 1) - 1
        return lambda seen: _csv(seen, last)
    return kinds[kind]


def _csv(seen: CampaignReading, last: int | None = None) -> str:
    """id, arm (its name if it has one), the values under their names: reading it back gives every number exactly."""
    settings = views.settings_of(seen.row)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "arm", *settings.columns])
    # Up to row `last` all rows are read and checked as one chain: the rows after it may be damaged.
    page = seen.journal.rows(seen.row, kinds=(Told,)) if last is None else seen.journal.rows(seen.row, 0, last)
    for row in page.rows:
        if not isinstance(row, Told):
            continue
        values = (repr(float(value)) for value in json.loads(row.values))
        writer.writerow([row.id, settings.name_of(row.arm), *values])
    return text.getvalue()


def _groups(seen: CampaignReading) -> str:
    """item, its group (as status numbers them), whether that is proven, its measurements and their mean.

    If results told after the stop do not fit the groups, what the proof assumes is in doubt, and with it all groups:
    proven is then "does not fit" for the items that do not, and "no" for all others. It is "no" for all if there is an
    alarm or a group looks mixed. A name that a spreadsheet would
    take for a formula gets an apostrophe in front.
    """
    state, settings = seen.state, seen.state.settings
    apart = {one["arm"] for one in views.misfits(state)}
    clean = state.session.alarm is None and bool(state.session.homogeneity)
    proven = "yes" if state.done and views.certain(settings) and clean and not apart else "no"
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item", "group", "proven", "measurements", *(f"mean {name}" for name in settings.columns)])
    for arm in range(settings.n_arms):
        count, total = state.sums.get(arm, (0, None))
        group = "" if state.groups is None else int(state.groups[arm])
        means = [""] * settings.dim if total is None else [repr(float(value)) for value in total / count]
        name = safe_in_spreadsheets(settings.name_of(arm))
        writer.writerow([name, group, "does not fit" if arm in apart else proven, count, *means])
    return text.getvalue()


def _json(seen: CampaignReading) -> str:
    """The settings, where it stands, and the whole log."""
    settings = views.settings_of(seen.row)
    content = {
        "format": "coterie-campaign-1",
        "status": views.status(seen.state, seen.row, seen.now),
        "events": [views.event(row, settings) for row in seen.journal.rows(seen.row).rows],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _certificate(seen: CampaignReading) -> str:
    return json.dumps(views.certificate(seen.state, seen.row), indent=1) + "\n"


def _log(seen: CampaignReading) -> str:
    """Results in the order in which they count, freezes and rounds: what `coterie verify` reads."""
    settings = views.settings_of(seen.row)
    if not method_named(settings.method).certifies:
        raise Conflict(
            f"only method 'croc' has a log to verify, campaign {seen.row['name']!r} uses {settings.method!r}: "
            "export csv or json",
            code="no_certificate",
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.csv")
        write_log(path, seen.state.session.events, settings.dim)
        return path.read_text(encoding="utf-8")
