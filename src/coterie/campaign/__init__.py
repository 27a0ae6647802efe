"""Sessions that survive the process: kept in a store, with leases and exactly-once results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coterie.campaign.errors import BadValue, CampaignError, Conflict, DamagedLog, NotDone, NotFound, StoreUnavailable
from coterie.campaign.importing import table_errors_as_bad_values
from coterie.tables import replay_pool as _replay_pool

if TYPE_CHECKING:
    from coterie.campaign.campaigns import Campaigns

__all__ = [
    "Campaigns",
    "CampaignError",
    "NotFound",
    "Conflict",
    "DamagedLog",
    "BadValue",
    "NotDone",
    "StoreUnavailable",
    "replay_pool",
]

replay_pool = table_errors_as_bad_values()(_replay_pool)  # its home is coterie.tables; here its errors are BadValue


def __getattr__(name: str) -> Any:
    if name != "Campaigns":
        raise AttributeError(f"module 'coterie.campaign' has no attribute {name!r}")
    from coterie.campaign.campaigns import Campaigns  # loaded when it is first used: pools and tables do without

    globals()[name] = Campaigns
    return Campaigns
