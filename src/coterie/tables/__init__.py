"""Recorded measurements: reading people's files, replaying them, how well they fit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coterie.tables.errors import TableError

if TYPE_CHECKING:
    from coterie.tables.replay import replay_pool

__all__ = ["TableError", "replay_pool"]


def __getattr__(name: str) -> Any:
    if name != "replay_pool":
        raise AttributeError(f"module 'coterie.tables' has no attribute {name!r}")
    # Loaded when it is first used: it needs SciPy and the methods, and reading a file needs neither.
    replay_pool = globals()[name] = import_module("coterie.tables.replay").replay_pool
    return replay_pool
