"""What somebody is told without having asked: a campaign has stopped, it has an alarm, or it is blocked.

A signal follows from the log, and that it was delivered is a note in the log: nothing is kept beside it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

from coterie.campaign.commands.turn import ArchivedCommand, Turn
from coterie.campaign.errors import DamagedLog, NotFound
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.settings import timestamp
from coterie.campaign.state.facts import DELIVERED
from coterie.campaign.state.opening import CampaignReading
from coterie.campaign.views.asks import waiting_for
from coterie.session.corrections import ALARM
from coterie.store.journal import Campaign, Selection
from coterie.store.rows import Note

STOPPED, BLOCKED = "stopped", "blocked"
BLOCKED_SECONDS = 900.0
"""How long nothing has come, while others wait for an ask, before a campaign counts as blocked."""
KEPT_SECONDS = 86400.0
"""How old a signal may be: nobody is told today what happened last week."""

log = logging.getLogger("coterie.campaign")


class Signal(NamedTuple):
    """Something that happened to a campaign. `key` names it among the campaign's; `to`: who knows it already."""

    campaign: str
    name: str
    event: str
    key: str
    at: float
    message: str
    to: frozenset[str]

    @property
    def content(self) -> dict[str, Any]:
        """As it is sent."""
        campaign = {"id": self.campaign, "name": self.name}
        return {"type": f"campaign.{self.event}", "timestamp": timestamp(self.at),
                "data": {"campaign": campaign, "event": self.event, "message": self.message}}  # fmt: skip


class Signals:
    """The signals of one store's campaigns. Each object says each of them once."""

    def __init__(self, campaigns: OpenCampaigns, blocked_after: float = BLOCKED_SECONDS) -> None:
        self._campaigns, self._blocked_after = campaigns, blocked_after
        self._seen: dict[str, tuple[int, bool]] = {}  # of each campaign: its last row when it was looked at, and how
        self._said: set[tuple[str, str]] = set()

    def news(self) -> list[Signal]:
        """What has happened since the last call; at the first, all of a day."""
        now = float(self._campaigns.clock())
        rows = self._campaigns.query(lambda reading: reading.select(Selection(2**31 - 1, archived=True)))
        signals: list[Signal] = []
        looked_at: dict[str, tuple[int, bool]] = {}
        for row in rows:
            quiet = not row["done"] and row["open_leases"] > 0 and row["last_at"] + self._blocked_after <= now
            looked = int(row["last_seq"]), quiet
            if row["last_at"] < now - KEPT_SECONDS or self._seen.get(row["id"]) == looked:
                continue
            looked_at[row["id"]] = looked
            try:
                signals += self._of(row, quiet, now)
            except (DamagedLog, NotFound) as error:  # of one campaign: the others go on
                log.info("no signals of campaign %s: %s", row["id"], error.message)
        self._seen |= looked_at  # only now: an error of the store has lost nothing
        signals = [signal for signal in signals if (signal.campaign, signal.key) not in self._said]
        self._said.update((signal.campaign, signal.key) for signal in signals)
        return signals

    def _of(self, row: Campaign, quiet: bool, now: float) -> list[Signal]:
        id = row["id"]
        noted, told = self._campaigns.look(id, _noted)
        if quiet or any(event == ALARM for event, *_ in noted):
            noted = self._campaigns.read(id, lambda seen: [*_with_words(seen, noted), *_blocked(seen, quiet)])
        return [
            Signal(id, row["name"], event, key, at, message, frozenset(to for known, to in told if known == key))
            for event, key, at, message in noted
            if at >= now - KEPT_SECONDS
        ]

    def note_delivered(self, signal: Signal, to: str) -> None:
        """Somebody knows it from now on. The log says so."""

        def decide(turn: Turn) -> dict[str, Any]:
            turn.note(DELIVERED, {"event": signal.event, "key": signal.key, "to": to})
            return {}

        self._campaigns.submit(signal.campaign, ArchivedCommand(decide))


_Noted = tuple[str, str, float, str]  # event, key, time, message


def _noted(seen: CampaignReading) -> tuple[list[_Noted], list[tuple[str, str]]]:
    """What the log says of the stop and of alarms, and who was told what."""
    signals: list[_Noted] = []
    for event in (STOPPED, ALARM):
        for note in _notes(seen, event):
            message = str(note.data.get("verdict", "there are more groups than was said"))
            signals.append((event, f"{event}-{note.seq}", note.at, message))
    return signals, [(note.data["key"], note.data["to"]) for note in _notes(seen, DELIVERED)]


def _notes(seen: CampaignReading, kind: str) -> Iterator[Note]:
    return (note for note in seen.journal.notes(seen.row, kind).rows if isinstance(note, Note))


def _with_words(seen: CampaignReading, noted: list[_Noted]) -> list[_Noted]:
    """The alarm as the session words it, if it stands still."""
    alarm = seen.state.session.alarm
    return [
        (event, key, at, str(alarm) if event == ALARM and alarm is not None else message)
        for event, key, at, message in noted
    ]


def _blocked(seen: CampaignReading, quiet: bool) -> list[_Noted]:
    """That nothing can be asked for before somebody answers, if nothing has come for long."""
    waits = waiting_for(seen.state, seen.now) if quiet else []
    if not waits:
        return []
    first = waits[0]
    message = f"nothing else can be measured before {json.dumps(first['worker'])} answers the ask of {first['name']}"
    return [(BLOCKED, f"{BLOCKED}-{first['lease']}", float(seen.row["last_at"]), message)]
