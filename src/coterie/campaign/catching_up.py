"""Bringing a campaign's state in memory up to date with its record."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from coterie.campaign.settings import CampaignSettings, check_rules
from coterie.campaign.snapshots import restored
from coterie.campaign.state import OtherRules, State
from coterie.store.chain import origin
from coterie.store.journal import Campaign, Known, Reading, Writing
from coterie.store.rows import Page, Row


class NotInMemory(Exception):  # noqa: N818 (it is found out, not done wrong)
    """The state of a campaign has to be read first. Nobody's turn is spent on that: it can take long."""


@dataclass
class OpenCampaign:
    """A campaign's state in memory. Held by one thread at a time; None until it is read, and after a failed commit."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    state: State | None = None
    hash: str = ""  # of the last row that the state has
    snapshot_seq: int = 0  # up to where there is a snapshot, or where one was last tried
    clock_seen: float = 0.0  # what the clock said when `now` was last worked out
    now: float = 0.0


def caught_up(
    opened: OpenCampaign, row: Campaign, journal: Reading, briefly: bool = False, news: Page | None = None
) -> State:
    """The state with everything that is on record. `briefly`: `NotInMemory` if the whole log has to be read.

    `news`: the rows that the state in memory lacks, if somebody has read them.
    """
    state, hash = opened.state, opened.hash
    behind = state is not None and state.seq < row["last_seq"]
    if state is None or not (behind or (state.seq == row["last_seq"] and hash == row["chain"])):
        # Not in memory yet; or the store was put back to an older copy, and perhaps has gone on from there.
        state, hash = _begin(opened, row, journal)
        news = None
    if state.seq < row["last_seq"]:
        opened.state = None  # so that a log that cannot be applied leaves nothing half-done
        with _no_collecting():
            page = journal.rows(row, state.seq, previous=hash) if news is None else news
            state = _with_rows(state, page.rows, row, journal, briefly)
        hash = page.hash
    opened.state, opened.hash = state, hash
    return state


def news_of(writing: Writing, every: Mapping[str, OpenCampaign]) -> dict[str, Page]:
    """What other processes have added to campaigns in memory, read for all of them at once."""
    known = [
        Known(row, opened.state.seq, opened.hash)
        for id, opened in every.items()
        if opened.state is not None and opened.state.seq < (row := writing.locked[id])["last_seq"]
    ]
    return writing.rows_since(known) if known else {}


def _with_rows(state: State, rows: Sequence[Row], row: Campaign, journal: Reading, briefly: bool) -> State:
    """The state with these rows too; anew from the first row if they correct a value, or other rules decided."""
    if state.seq > 0:
        try:
            state.catch_up(rows)
            return state
        except OtherRules:
            if briefly:
                raise NotInMemory(row["id"]) from None
            first = origin(row["id"], row["settings"])
            rows = journal.rows(row, 0, previous=first).rows
    state = State.new(state.settings)
    state.begin(rows)
    return state


def _begin(opened: OpenCampaign, row: Campaign, journal: Reading) -> tuple[State, str]:
    """The newest state that is kept, and the hash of its last row: that of a snapshot, or the one before row 1."""
    settings = CampaignSettings.from_json(row["settings"])
    check_rules(settings)
    with _no_collecting():
        found = restored(settings, row, journal)
    if found is None:
        opened.snapshot_seq = 0
        return State.new(settings), origin(row["id"], row["settings"])
    opened.snapshot_seq = found[0].seq
    return found


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
