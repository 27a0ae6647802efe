"""Lists of campaigns, page by page, without their long settings; the one that is meant, and deleting one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from coterie.campaign.errors import BadValue, Conflict, NotFound
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.settings import checked_field, timestamp
from coterie.campaign.views.log import settings_of
from coterie.campaign.views.status import fixed_summary, summary
from coterie.problem.checks import check_count, short
from coterie.store.journal import Campaign, Selection

PAGE = 100
"""Campaigns on a page of the list, if nothing is said."""
LARGEST_PAGE = 1000
_SWEPT = 2_000  # rows that are deleted in one transaction: others write between them
_BETWEEN = "~"


class Lists:
    """Lists of the campaigns of one store. The settings of those that an older release has begun are read once."""

    def __init__(self, campaigns: OpenCampaigns) -> None:
        self._campaigns = campaigns
        self._fixed: dict[str, dict[str, Any]] = {}  # of each campaign's summary, what its settings say

    def all(self, archived: bool) -> list[dict[str, Any]]:
        """Every campaign, oldest first."""
        return [self._summary(row) for row in self._select(Selection(2**31, archived=archived))]

    def page(
        self, after: Any, limit: Any, search: Any, archived: bool, only: str | None, newest_first: bool
    ) -> dict[str, Any]:
        """Some campaigns, and `next`, the `after` of the page that follows; None at the end."""
        count = min(checked_field("limit", check_count, limit, "limit", 1), LARGEST_PAGE)
        if not isinstance(search, str) or len(search) > 200 or not search.isprintable():
            raise BadValue(f"search is a part of a name, got {short(search)}", field="search")
        wanted = Selection(count + 1, _place(after), search.strip(), archived, only, newest_first)
        rows = self._select(wanted)
        last = rows[count - 1] if len(rows) > count else None
        following = None if last is None else f"{last['created']!r}{_BETWEEN}{last['id']}"
        return {"campaigns": [self._summary(row) for row in rows[:count]], "next": following}

    def _select(self, wanted: Selection) -> list[Campaign]:
        return self._campaigns.query(lambda reading: reading.select(wanted))

    def _summary(self, row: Campaign) -> dict[str, Any]:
        if row["about"]:
            return summary(row, json.loads(row["about"]))
        if row["id"] not in self._fixed:
            self._fixed[row["id"]] = fixed_summary(settings_of(row))
        return summary(row, self._fixed[row["id"]])


def _place(after: Any) -> tuple[float, str] | None:
    """Where a page begins: as `next` of the page before said."""
    if after is None or after == "":
        return None
    at, between, id = after.partition(_BETWEEN) if isinstance(after, str) else ("", "", "")
    try:
        if between and id.isascii() and id.isalnum():
            return float(at), id
    except ValueError:
        pass
    raise BadValue(f"after must be the next of the page before, got {short(after)}", field="after")


SHORTEST_ID = 6
"""Characters of the beginning of an id that may stand for it."""


def campaign_meant(known: Sequence[Campaign], given: str) -> str:
    """The id of the campaign that is meant: by its id, its name, or the beginning of its id."""
    meant = [row for row in known if row["id"] == given] or [row for row in known if row["name"] == given]
    if not meant and len(given) >= SHORTEST_ID:
        meant = [row for row in known if row["id"].startswith(given)]
    if len(meant) > 1:
        more = f"; and {len(meant) - 5} more" if len(meant) > 5 else ""
        listed = "; ".join(_label(row) for row in meant[:5])
        raise Conflict(f"{len(meant)} campaigns are called {given!r}, use an id: {listed}{more}", code="several_meant")
    if not meant:
        raise NotFound(f"there is no campaign {given!r}: coterie campaign list shows them all", code="unknown_campaign")
    return meant[0]["id"]


def _label(row: Campaign) -> str:
    """A campaign in a few words that tell it from others of its name: id, date, measurements."""
    count = row["measurements"]
    created = timestamp(row["created"])[:16]
    return f"{row['id'][:8]}, created {created}Z, {count} measurement{'' if count == 1 else 's'}"


def check_free_name(name: str, taken: Campaign | None) -> None:
    """Refuse a name that another campaign has."""
    if taken is not None:
        which = f"{taken['id'][:8]}, created {timestamp(taken['created'])[:16]}Z"
        what = f"there is a campaign {name!r} already ({which}): choose another name"
        raise Conflict(what, code="name_taken", field="name")


def delete_campaign(campaigns: OpenCampaigns, id: Any, name: Any) -> dict[str, Any]:
    """Delete a campaign with its log, its snapshot and its tokens; `name` has to be its name, so that it is meant."""
    row = campaigns.row(id)
    if name != row["name"]:
        raise BadValue(
            f"to delete the campaign {row['name']!r} say its name, got {short(name)}; this cannot be undone",
            field="name",
        )
    campaigns.remove(row["id"])
    while campaigns.write(lambda writing: writing.sweep(_SWEPT)):
        pass
    return {"deleted": row["id"], "name": row["name"], "measurements": row["measurements"]}
