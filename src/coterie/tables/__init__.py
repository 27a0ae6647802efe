"""Recorded measurements: reading people's files, replaying them, how well they fit. No database is needed."""

from __future__ import annotations

from coterie.tables.errors import TableError
from coterie.tables.replay import replay_pool

__all__ = ["TableError", "replay_pool"]
