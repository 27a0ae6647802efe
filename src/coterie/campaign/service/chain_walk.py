"""Reading all logs again while they are in use, a few rows at a time: a row that was changed on disk is noticed also
where nobody reads it.

Whatever is read is checked against the hash chain, but the state of a campaign in memory was read before; and a
snapshot stands for the rows that it sums up.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from coterie.campaign.errors import CampaignError, DamagedLog
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.store.journal import Reading, Selection

ROWS = 500
"""Rows that a step reads, at most."""
_CAMPAIGNS = 20  # that a step looks at, at most

log = logging.getLogger("coterie.campaign")


class _Place(NamedTuple):
    """How far the log of a campaign was read: up to row `seq`, with its hash."""

    id: str
    seq: int = 0
    hash: str | None = None


class ChainWalk:
    """Goes through all campaigns, round after round. What it finds is in `OpenCampaigns.damaged`."""

    def __init__(self, campaigns: OpenCampaigns) -> None:
        self._campaigns = campaigns
        self._waiting: list[_Place] = []

    def step(self) -> None:
        """Read on a little. Never raises: a store that is away is tried again by the next step."""
        try:
            if not self._waiting:
                every = self._campaigns.query(lambda reading: reading.select(Selection(2**31 - 1, archived=True)))
                self._waiting = [_Place(row["id"]) for row in reversed(every)]
            left = ROWS
            for _ in range(min(_CAMPAIGNS, len(self._waiting))):
                left -= self._read_on(left)
                if left <= 0:
                    break
        except CampaignError as error:
            log.info("the logs could not be checked just now: %s", error.message)

    def _read_on(self, most: int) -> int:
        """Read on in the log of the campaign whose turn it is; how many rows."""
        place = self._waiting[-1]

        def read(reading: Reading) -> _Place | None:
            row = reading.campaign(place.id)
            if row is None:
                return None
            page = reading.rows(row, place.seq, most, previous=place.hash)
            if len(page.rows) == most:
                return _Place(place.id, page.rows[-1].seq, page.hash)
            last = place.seq + len(page.rows)
            reading.rows(row, last, previous=page.hash if page.rows else place.hash)  # that it ends where it should
            return None

        try:
            following = self._campaigns.query(read)
        except DamagedLog as error:
            if place.seq > 0 and not self._is_damaged(place.id):  # it was put back to another state meanwhile
                self._waiting[-1] = _Place(place.id)
                return most
            if place.id not in self._campaigns.damaged:
                log.error("%s", error.message)
            self._campaigns.damaged[place.id] = error
            self._waiting.pop()
            return most
        if following is None:
            self._campaigns.damaged.pop(place.id, None)
            self._waiting.pop()
            return 1
        self._waiting[-1] = following
        return most

    def _is_damaged(self, id: str) -> bool:
        """Whether a log is, from its beginning on."""

        def read(reading: Reading) -> None:
            row = reading.campaign(id)
            if row is not None:
                reading.rows(row)

        try:
            self._campaigns.query(read)
        except DamagedLog:
            return True
        return False
