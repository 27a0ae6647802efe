"""The items of a campaign page by page: a status has no room for the lists of a million of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.campaign.state import State


def items(state: State, after: int, limit: int) -> dict[str, Any]:
    """Items from number `after` on: `arm`, `name`, `measurements` that counted, `group_id` (None before there are
    groups, and of retired items), `retired`, and `cost`, if items have costs. `next`: the first one left, None at the
    end.
    """
    settings, session = state.settings, state.session
    end = min(settings.n_arms, after + limit)
    arms = np.arange(min(after, end), end)
    groups = np.zeros(arms.size, dtype=np.int64) if state.groups is None else state.groups[arms]
    retired, costs = set(session.retired), settings.run.costs
    found = [
        {
            "arm": arm,
            "name": settings.name_of(arm),
            "measurements": pulls,
            "group_id": group or None,
            "retired": arm in retired,
        }
        | ({} if costs is None else {"cost": float(costs[arm])})
        for arm, pulls, group in zip(arms.tolist(), session.pulls[arms].tolist(), groups.tolist(), strict=True)
    ]
    return {"items": found, "next": end if end < settings.n_arms else None}
