"""A session that survives the process: SQL store, leases, exactly-once results."""

from __future__ import annotations

try:
    import sqlalchemy as sqlalchemy
except ImportError:
    raise ImportError("campaigns need SQLAlchemy: pip install 'coterie[serve]'") from None

from coterie.campaign.errors import BadValue, CampaignError, Conflict, NotDone, NotFound, StoreUnavailable
from coterie.campaign.pool import replay_pool
from coterie.campaign.store import Campaigns

__all__ = [
    "Campaigns",
    "CampaignError",
    "NotFound",
    "Conflict",
    "BadValue",
    "NotDone",
    "StoreUnavailable",
    "replay_pool",
]
