"""Taking in a long table in parts: each is a short transaction, and others write between them."""

from __future__ import annotations

import time
from typing import Any

from coterie.campaign import commands
from coterie.campaign.errors import StoreUnavailable
from coterie.campaign.given_results import check_measurements
from coterie.campaign.importing import TableImport
from coterie.campaign.log_views import settings_now
from coterie.campaign.open_campaigns import OpenCampaigns
from coterie.campaign.tokens import Writer
from coterie.tables.errors import TableError
from coterie.tables.time_limit import check_time

PART_SECONDS = 0.06
"""How long a part may hold others up, about; its length follows from that of the parts before."""
PAUSE_SECONDS = 0.03
"""Between parts. SQLite looks that often, at first, whether a lock is free."""
TAKING_IN_SECONDS = 600.0
"""How long the parts of a table may take in all, where the time to read it is limited (`coterie.tables.time_limit`)."""
_FIRST, _SHORTEST, _LONGEST = 500, 50, 5_000  # rows


def import_in_parts(
    campaigns: OpenCampaigns, id: str, content: TableImport, writer: Writer | None = None
) -> dict[str, Any]:
    """Check the whole table first, so that what is wrong with it changes nothing; then take it in.

    `writer`: the token that it came with, which the rows keep.
    """
    results = campaigns.look(id, lambda seen: content.results(settings_now(seen)))
    given = campaigns.read(id, lambda seen: check_measurements(seen.state, results))
    note = content.note | {"measurements": sum(not one.old for one in given)}
    del given
    found: dict[str, Any] = {"accepted": 0, "duplicates": 0, "done": False}
    copies = campaigns.look(id, lambda seen: content.warnings(settings_now(seen))) if note["measurements"] else []
    if copies:
        found["warnings"] = copies
    start, size = 0, _FIRST
    while start < len(results) or start == 0:
        begun = time.monotonic()
        part = results[start : start + size]
        try:
            check_time(TAKING_IN_SECONDS)
            answer = campaigns.submit(id, _decision(part, note if found["accepted"] == 0 else None, writer))
        except (StoreUnavailable, TableError) as error:
            if start:
                error.message += (
                    f". {start} of {len(results)} measurements are on record: import the same table again for the rest"
                )
                error.args = (error.message,)
            raise
        found |= {key: found[key] + answer[key] for key in ("accepted", "duplicates")} | {"done": answer["done"]}
        if "warnings" in answer:
            found["warnings"] = [*found.get("warnings", []), *answer["warnings"]][: commands.MOST_WARNINGS]
        start += max(1, len(part))
        if start < len(results):
            took = time.monotonic() - begun
            size = int(min(_LONGEST, max(_SHORTEST, len(part) * min(2.0, PART_SECONDS / max(took, 1e-6)))))
            time.sleep(PAUSE_SECONDS)
    return found | {"order": content.order.as_dict()}


def _decision(part: list[dict[str, Any]], note: dict[str, Any] | None, writer: Writer | None) -> Any:
    def decide(turn: commands.Turn) -> dict[str, Any]:
        turn.writer = writer  # a turn is shared by requests that are committed together
        return commands.tell(turn, part, imported=note, unasked=True)

    return decide
