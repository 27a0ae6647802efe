"""Snapshots of campaigns' states: a cache beside the log, so that a long one need not be read from its beginning.

What a snapshot is worth is checked when it is used: the log must have as many rows as it should, its row at the
snapshot's place must be the one that the snapshot was made after, and the rows since then are checked one by one. In
any doubt the whole log is read, which names the row that is damaged. Losing a snapshot costs time only.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from coterie.campaign.settings import CampaignSettings
from coterie.campaign.state import State
from coterie.campaign.state_bytes import state_bytes, state_from
from coterie.methods import method_named
from coterie.store.journal import Campaign, Journal, Reading, Snapshot

if TYPE_CHECKING:
    from coterie.campaign.catching_up import OpenCampaign

FEWEST_ROWS = 2_000
"""Rows since the last snapshot that make a new one worth its while, at the least …"""
FRACTION = 50
"""… and one row in so many of the whole log: the work for snapshots of a log that grows stays in proportion to it."""

BYTES_A_ROW = 2_048
"""Bytes of the method's memory that take about as long to keep as a row of the log takes to be read again: where there
are many items, snapshots of a campaign that goes on are rare."""
LARGEST_MEMORY = 2 * 2**30
"""Bytes of the method's memory beyond which a campaign that goes on has no snapshots: the log is read instead."""

log = logging.getLogger("coterie.campaign")


def rules_of(settings: CampaignSettings) -> int:
    """The number of the decision rules that this release has for a campaign."""
    return method_named(settings.method).rules


def restored(settings: CampaignSettings, row: Campaign, journal: Reading) -> tuple[State, str] | None:
    """The state of a campaign's snapshot and the hash of its last row; None if there is none that can be used."""
    kept = journal.snapshot(row["id"])
    if kept is None or kept.rules != rules_of(settings) or kept.seq > row["last_seq"]:
        return None
    if journal.count(row["id"]) != row["last_seq"] or journal.hash_of(row["id"], kept.seq) != kept.hash:
        return None
    try:
        state = state_from(settings, kept.content)
    except Exception as error:  # whatever is wrong with a cache, the log is there
        log.warning("the snapshot of campaign %s cannot be used, its log is read instead: %s", row["id"], error)
        return None
    return (state, kept.hash) if state.seq == kept.seq else None


class SnapshotKeeper:
    """Writes snapshots in a thread of its own, when enough rows have come since the last one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._gate = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._closed = False

    def consider(self, id: str, opened: OpenCampaign) -> None:
        """Have a snapshot written if it is worth its while. Never waits, never raises."""
        state = opened.state
        if state is None:
            return
        seq = state.seq
        new = seq - opened.snapshot_seq
        if new <= max(FEWEST_ROWS, seq // FRACTION):
            return
        size = state.session.memory_bytes
        if new * BYTES_A_ROW <= size or size > LARGEST_MEMORY:
            return
        with self._gate:
            if self._closed:
                return
            opened.snapshot_seq = seq  # even if it fails: the next try is after as many rows again
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "coterie-snapshots")
            self._thread.submit(self._write, id, opened)

    def _write(self, id: str, opened: OpenCampaign) -> None:
        try:
            with opened.lock:
                state, hash = opened.state, opened.hash
                if state is None:
                    return
                seq, rules, pack = state.seq, rules_of(state.settings), state_bytes(state)
            content = None if pack is None else pack()
            if content is not None:
                with self._journal.writing() as writing:
                    writing.keep_snapshot(Snapshot(id, seq, rules, hash, content))
        except Exception as error:  # a read-only store, a full disk: everything works without
            log.info("no snapshot of campaign %s was kept: %s", id, error)

    def close(self) -> None:
        """Finish what is under way."""
        with self._gate:
            self._closed = True
        if self._thread is not None:
            self._thread.shutdown()
