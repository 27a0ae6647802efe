"""Sessions that survive the process: kept in a store, with leases and exactly-once results."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coterie.campaign.errors import (
    BadValue,
    CampaignError,
    Conflict,
    DamagedLog,
    Forbidden,
    NotDone,
    NotFound,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from coterie.campaign.imports import replay_pool
    from coterie.campaign.service.campaigns import Campaigns

__all__ = [
    "Campaigns",
    "CampaignError",
    "NotFound",
    "Conflict",
    "DamagedLog",
    "BadValue",
    "NotDone",
    "Forbidden",
    "StoreUnavailable",
    "replay_pool",
]

_LATER = {"Campaigns": "coterie.campaign.service.campaigns", "replay_pool": "coterie.campaign.imports"}
"""Where the names are that are loaded when they are first used: each takes a while, and nobody needs both."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'coterie.campaign' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value
