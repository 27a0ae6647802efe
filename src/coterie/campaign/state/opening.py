"""Bringing a campaign's state in memory up to date with its record."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from coterie.campaign.settings import CampaignSettings, check_rules
from coterie.campaign.state.snapshots import restored
from coterie.campaign.state.state import OtherRules, State
from coterie.store.errors import DamagedLog
from coterie.store.journal import Campaign, KnownRows, Reading, Writing
from coterie.store.rows import Page, origin

_BYTES_EMPTY, _BYTES_A_ROW = 200_000, 700  # what a state takes beside its method's memory
_FEW_ROWS = 100  # are not worth another estimate


class NotInMemory(Exception):  # noqa: N818 (it is found out, not done wrong)
    """The state of a campaign has to be read first. Nobody's turn is spent on that: it can take long."""


@dataclass
class OpenCampaign:
    """A campaign's state in memory. Held by one thread at a time; None until it is read, and after a failed commit."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    state: State | None = None
    hash: str = ""  # of the last row that the state has
    snapshot_seq: int = 0  # up to where there is a snapshot, or where one was last tried
    snapshot_rows: int = 0  # rows since then that are too few for the next one, as far as is known
    size: int = 0  # bytes that the state takes, about …
    size_seq: int = 0  # … when it had so many rows
    clock_seen: float = 0.0  # what the clock said when `now` was last worked out
    now: float = 0.0

    def time(self, clock: Callable[[], float], last_at: float) -> float:
        """The campaign's time, which never goes back: the clock, the last time written, or what passed since a jump."""
        seen = float(clock())
        passed = max(0.0, seen - self.clock_seen) if self.now > 0.0 else 0.0
        self.now = max(seen, last_at, self.now + passed)
        self.clock_seen = seen
        return self.now

    def measure(self) -> None:
        """Estimate the bytes of the state, if it has twice the rows of the last time."""
        if self.state is not None and (self.size == 0 or self.state.seq >= 2 * self.size_seq + _FEW_ROWS):
            self.size = _BYTES_EMPTY + self.state.session.memory_bytes + _BYTES_A_ROW * self.state.seq
            self.size_seq = self.state.seq


@dataclass
class CampaignReading:
    """A campaign as one reading of the journal has it: its row, and its state, worked out only if it is needed.

    `damage`: the row of it that was changed on disk, if one is known.
    """

    opened: OpenCampaign
    row: Campaign
    journal: Reading
    clock: Callable[[], float]
    damage: DamagedLog | None = None

    @property
    def state(self) -> State:
        """The state with everything that is on record."""
        if self.damage is not None:
            raise self.damage.with_traceback(None)
        return caught_up(self.opened, self.row, self.journal)

    @property
    def settings(self) -> CampaignSettings:
        """What the campaign was created with."""
        return CampaignSettings.from_json(self.row["settings"])

    @property
    def now(self) -> float:
        """The campaign's time."""
        return self.opened.time(self.clock, self.row["last_at"])


def caught_up(
    opened: OpenCampaign, row: Campaign, journal: Reading, briefly: bool = False, news: Page | None = None
) -> State:
    """The state with everything that is on record. `briefly`: `NotInMemory` if the whole log has to be read.

    `news`: the rows that the state in memory lacks, if somebody has read them.
    """
    state, hash = opened.state, opened.hash
    opened.measure()
    if state is not None and (state.seq, hash) == (row["last_seq"], row["chain"]):
        return state
    opened.state = None  # so that a log that cannot be applied leaves nothing half-done
    with nullcontext() if news is not None else _no_collecting():
        if state is None or not 0 < state.seq < row["last_seq"]:
            # Not in memory yet; or the store was put back to an older copy, and perhaps has gone on from there.
            state, hash = _restored(opened, row, journal)
            news = None
        if state is not None and state.seq < row["last_seq"]:
            page = journal.rows(row, state.seq, previous=hash) if news is None else news
            try:
                state.catch_up(page.rows)
                hash = page.hash
            except OtherRules:  # or a value was corrected: anew, from the first row
                if briefly:
                    raise NotInMemory(row["id"]) from None
                state = None
        if state is None:
            page = journal.rows(row, 0, previous=origin(row["id"], row["settings"]))
            state, hash = State.of(CampaignSettings.from_json(row["settings"]), page.rows), page.hash
    opened.state, opened.hash = state, hash
    opened.measure()
    return state


def news_of(writing: Writing, every: Mapping[str, OpenCampaign]) -> dict[str, Page]:
    """What other processes have added to campaigns in memory, read for all of them at once."""
    known = [
        KnownRows(row, opened.state.seq, opened.hash)
        for id, opened in every.items()
        if opened.state is not None and opened.state.seq < (row := writing.locked[id])["last_seq"]
    ]
    return writing.rows_since(known) if known else {}


def _restored(opened: OpenCampaign, row: Campaign, journal: Reading) -> tuple[State | None, str]:
    """The state of the newest snapshot, and the hash of its last row; None if there is none that can be used."""
    settings = CampaignSettings.from_json(row["settings"])
    check_rules(settings)
    state, hash = restored(settings, row, journal) or (None, "")
    opened.snapshot_seq = 0 if state is None else state.seq
    return state, hash


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Many objects are made and none of them is garbage: looking for it takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
