"""The log of a campaign as people and programs see it: results, events, evidence on its way, measured features."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.campaign.errors import Conflict
from coterie.campaign.settings import CampaignSettings as Settings
from coterie.campaign.settings import checked_field, timestamp
from coterie.campaign.state.facts import REVISION, as_told, without_long_claims
from coterie.campaign.state.opening import CampaignReading
from coterie.campaign.state.state import State
from coterie.campaign.tokens import id_of
from coterie.problem.checks import check_count
from coterie.problem.revision import Revision, settings_after
from coterie.store.rows import Ask, Ending, Note, Row, Told

if TYPE_CHECKING:
    from coterie.campaign.state.opening import CampaignReading


LARGEST_PAGE = 10_000


def page(after: Any, limit: Any) -> tuple[int, int]:
    """Where a page of the log begins and how long it is."""
    start = checked_field("after", check_count, after, "after", 0)
    return min(start, 2**62), min(checked_field("limit", check_count, limit, "limit", 1), LARGEST_PAGE)


def settings_now(seen: CampaignReading) -> Settings:
    """The settings of a campaign as it was revised since, without reading all of its log."""
    settings = seen.settings
    for note in seen.journal.notes(seen.row, REVISION).rows:
        if isinstance(note, Note):
            settings = settings.as_revised(settings_after(settings.run, Revision.from_json(note.data)))
    return settings


def measurements(seen: CampaignReading, after: int, limit: int) -> dict[str, Any]:
    """A page of results."""
    state = seen.state
    rows = seen.journal.rows(seen.row, after, limit + 1, (Told,)).rows
    counted = state.counted_places()
    called = token_names(seen, rows)
    shown = []
    for row in rows[:limit]:
        assert isinstance(row, Told)
        place = state.ids[row.id]
        by = _writer(row, called)
        now = present_values(state, row)
        shown.append(_told(row, state.settings) | now | {"counted": bool(counted[place]), **by})
    return {"measurements": shown, "next": rows[limit - 1].seq if len(rows) > limit else None}


def token_names(seen: CampaignReading, rows: Sequence[Row]) -> dict[str, str]:
    """What the tokens are called that wrote these rows, by their ids."""
    if all(row.token is None for row in rows):
        return {}
    return {id_of(token["hash"]): token["label"] for token in seen.journal.tokens()}


def _writer(row: Row, called: Mapping[str, str]) -> dict[str, Any]:
    """The token that wrote a row, if one did: its id, and its name if it has one still."""
    return {} if row.token is None else {"token": {"id": row.token, "name": called.get(row.token)}}


def _told(row: Told, settings: Settings) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "id": row.id,
        **settings.named(row.arm),
        "values": json.loads(row.values),
        "lease": row.lease,
        "worker": row.worker,
        "asked_for": row.ticket is not None,
        "at": timestamp(row.told_at),
    }


def events(seen: CampaignReading, after: int, limit: int | None) -> dict[str, Any]:
    """A page of the log; without a limit, all the rest."""
    settings = settings_now(seen)
    # What was asked for and not a row more: the next one may be damaged, and this page is not.
    rows = seen.journal.rows(seen.row, after, limit).rows
    more = bool(rows) and rows[-1].seq < seen.row["last_seq"]
    return {"events": events_of(seen, rows, settings), "next": rows[-1].seq if more else None}


def events_of(seen: CampaignReading, rows: Sequence[Row], settings: Settings) -> list[dict[str, Any]]:
    """Rows of the log as events, each with the token that wrote it, if one did."""
    called = token_names(seen, rows)
    return [event(row, settings) | _writer(row, called) for row in rows]


def newest_events(seen: CampaignReading, before: int | None, count: int) -> dict[str, Any]:
    """The last events with a seq below `before`, oldest first, and where they stand in the log."""
    newest = int(seen.row["last_seq"])
    last = newest if before is None else min(before - 1, newest)
    first = max(0, last - count)
    shown = events(seen, first, last - first)["events"] if last > first else []
    named = {"id": seen.row["id"], "name": seen.row["name"], "dim": seen.settings.dim}
    return {**named, "events": shown, "first": first + 1, "last": last, "newest": newest}


def event(row: Row, settings: Settings) -> dict[str, Any]:
    """A row of the log; `kind` is asked, told, expired, failed, undone, correction, archived, groups and so on."""
    if isinstance(row, Told):
        return {"kind": "told", **_told(row, settings)}
    if isinstance(row, Ask):
        return {
            "kind": "asked",
            "seq": row.seq,
            **settings.named(row.arm),
            "lease": row.lease,
            "worker": row.worker,
            "at": timestamp(row.asked_at),
            "expires": timestamp(row.expires_at),
        }
    if isinstance(row, Ending):
        return {"kind": row.kind, "seq": row.seq, "lease": row.lease, "reason": row.reason, "at": timestamp(row.at)}
    assert isinstance(row, Note)
    shown = without_long_claims(row)  # `Campaigns.certificate` has them
    assert isinstance(shown, Note)
    return {"kind": row.kind, "seq": row.seq, "at": timestamp(row.at), **shown.data}


def history(seen: CampaignReading, points: Any) -> dict[str, list[Any]]:
    """The evidence over time, from the points kept."""
    kept = [note.data for note in seen.journal.notes(seen.row, "evidence").rows if isinstance(note, Note)]
    return course(kept, points)


def course(kept: Sequence[Mapping[str, Any]], points: Any) -> dict[str, list[Any]]:
    """Points of the evidence, thinned out to about so many."""
    most = checked_field("points", check_count, points, "points", 2)
    if len(kept) > most:
        kept = [kept[i] for i in np.unique(np.linspace(0, len(kept) - 1, most).round().astype(int))]
    return {key: [point[key] for point in kept] for key in ("t", "statistic", "threshold")}


_SHOWN = ("seq", "id", "measurement", "arm", "name", "feature", "old", "new", "reason", "by", "reopened")


def corrections(state: State) -> list[dict[str, Any]]:
    """All corrections, oldest first."""
    return [
        {key: correction[key] for key in _SHOWN if key in correction} | {"at": timestamp(correction["at"])}
        for correction in state.corrections
    ]


def present_values(state: State, row: Told) -> dict[str, Any]:
    """The values of a measurement as they count; `told` has what was told at first, if it was corrected."""
    values = as_told(state.results[state.ids[row.id]][1], state.settings.size_of(row.arm))
    told = json.loads(row.values)
    was_corrected = any(correction["measurement"] == row.id for correction in state.corrections)
    return {"values": values, "told": told} if was_corrected else {"values": values}


MOST_COLUMNS, MOST_ITEMS, ON_A_PAGE = 60, 2000, 12
"""Features, and items, that are listed, and features on a page; of more those found, then those measured most."""


def cells(seen: CampaignReading, features: Any = MOST_COLUMNS) -> dict[str, Any]:
    """The cells measured: `features` (the columns), `cells` as [item, column, results, mean], the means of `groups`.

    `measured` counts all cells with results, `touched` all features with some. Items stand in the order of groups.
    """
    state, session = seen.state, seen.state.session
    known = session.features
    if known is None:
        raise Conflict(f"campaign {seen.row['name']!r} measures whole items: it has no cells", code="no_features")
    most = checked_field("features", check_count, features, "features", 1)
    touched, found_names = session.cells, session.found_features
    totals = np.bincount(touched.features, weights=touched.counts, minlength=known.dim)
    first = [known.feature_of(name) for name in found_names]
    others = [f for f in np.argsort(-totals, kind="stable").tolist() if totals[f] > 0 and f not in set(first)]
    shown = (first + others)[:most]
    column = {feature: place for place, feature in enumerate(shown)}
    ids = np.zeros(session.n_arms, dtype=np.int64) if state.groups is None else state.groups
    here = np.isin(touched.features, shown)
    of_column = np.array([column[f] for f in touched.features[here].tolist()], dtype=np.int64)
    items, counts, means = touched.items[here], touched.counts[here], touched.means[here]
    drawn = session.n_arms <= MOST_ITEMS
    rows = zip(items.tolist(), of_column.tolist(), counts.tolist(), means.tolist(), strict=True)
    order = np.lexsort((np.arange(ids.size), ids)).tolist() if drawn else []
    return {
        "id": seen.row["id"],
        "name": seen.row["name"],
        "t": session.t,
        "done": session.done,
        "measured": int(touched.items.size),
        "touched": int(np.count_nonzero(totals)),
        "of": known.dim,
        "features": [{"name": known.names[f], "found": f in set(first), "measurements": int(totals[f])} for f in shown],
        "items": [
            {"arm": arm, "name": state.settings.name_of(arm), "group_id": int(ids[arm]) or None} for arm in order
        ],
        "cells": [list(row) for row in rows] if drawn else [],
        "groups": _groups(ids, items, of_column, counts, means, len(shown)),
        "cut": None if drawn else f"{session.n_arms} items are too many to list: the groups are listed instead.",
    }


def _groups(ids: Any, items: Any, columns: Any, counts: Any, means: Any, width: int) -> list[dict[str, Any]]:
    """Of each group its size, and the mean of its results of each feature; None where it has none."""
    listed = []
    for group in np.unique(ids[ids > 0]).tolist():
        own = ids[items] == group
        weights = np.bincount(columns[own], weights=counts[own], minlength=width)
        sums = np.bincount(columns[own], weights=counts[own] * means[own], minlength=width)
        values = [float(f"{total / n:.8g}") if n > 0 else None for total, n in zip(sums, weights, strict=True)]
        listed.append({"id": group, "size": int((ids == group).sum()), "means": values})
    return listed


def center_of(seen_cells: Any, names: tuple[str, ...], found_names: list[str], members: Any) -> dict[str, float]:
    """The means of a group on the features that were found, by name."""
    inside = np.isin(seen_cells.items, members)
    center: dict[str, float] = {}
    for name in found_names:
        own = inside & (seen_cells.features == names.index(name))
        if own.any():
            center[name] = float(np.average(seen_cells.means[own], weights=seen_cells.counts[own]))
    return center
