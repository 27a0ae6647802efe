"""A journal of facts that survives the process, behind one contract: SQLite or PostgreSQL."""

from __future__ import annotations

from coterie.store.errors import BadValue, CampaignError, Conflict, DamagedLog, StoreUnavailable
from coterie.store.journal import Campaign, Journal, Reading, Snapshot, Summary, Token, Writing, open_journal

__all__ = [
    "open_journal",
    "Journal",
    "Reading",
    "Writing",
    "Campaign",
    "Summary",
    "Snapshot",
    "Token",
    "CampaignError",
    "BadValue",
    "Conflict",
    "DamagedLog",
    "StoreUnavailable",
]
