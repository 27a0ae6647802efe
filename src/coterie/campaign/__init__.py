"""A session that survives the process: SQL store, leases, exactly-once results.

The store needs SQLAlchemy and is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coterie.campaign.errors import BadValue, CampaignError, Conflict, NotDone, NotFound, StoreUnavailable
from coterie.campaign.importing import table_errors_as_bad_values
from coterie.tables import replay_pool as _replay_pool

if TYPE_CHECKING:
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

replay_pool = table_errors_as_bad_values()(_replay_pool)  # its home is coterie.tables; here its errors are BadValue


def __getattr__(name: str) -> Any:
    if name != "Campaigns":
        raise AttributeError(f"module 'coterie.campaign' has no attribute {name!r}")
    try:
        import sqlalchemy as sqlalchemy
    except ImportError:
        raise ImportError(
            "campaigns need SQLAlchemy: pip install 'coterie[serve]' (in the clone: pip install '.[serve]')"
        ) from None
    from coterie.campaign.store import Campaigns

    globals()[name] = Campaigns
    return Campaigns
