"""The log of a campaign as people and programs see it: results, events, the course of the evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.campaign.settings import CampaignSettings as Settings
from coterie.campaign.settings import checked_field, timestamp
from coterie.campaign.state.facts import REVISION, as_told, without_long_claims
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
