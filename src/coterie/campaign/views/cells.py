"""What was measured of which item, where features are measured one by one: a table of cells, found features first."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.campaign.errors import Conflict
from coterie.campaign.settings import checked_field
from coterie.campaign.state.opening import CampaignReading
from coterie.problem.checks import check_count

MOST_COLUMNS, MOST_ITEMS, ON_A_PAGE = 60, 2000, 12
"""Features, and items, that are listed, and features on a page; of more those found, then those measured most."""


def cells(seen: CampaignReading, features: Any = MOST_COLUMNS) -> dict[str, Any]:
    """The cells measured: `features` (the columns), `cells` as [item, column, results, mean], the means of `groups`.

    `measured` counts all cells with results, `touched` all features with some. Items stand in the order of groups.
    """
    state, session = seen.state, seen.state.session
    known = session.features
    if known is None:
        raise Conflict(f"campaign {seen.row['name']!r} measures whole items: it has no cells", code="no_features")
    most = checked_field("features", check_count, features, "features", 1)
    touched, found_names = session.cells, session.found_features
    totals = np.bincount(touched.features, weights=touched.counts, minlength=known.dim)
    first = [known.feature_of(name) for name in found_names]
    others = [f for f in np.argsort(-totals, kind="stable").tolist() if totals[f] > 0 and f not in set(first)]
    shown = (first + others)[:most]
    column = {feature: place for place, feature in enumerate(shown)}
    ids = np.zeros(session.n_arms, dtype=np.int64) if state.groups is None else state.groups
    here = np.isin(touched.features, shown)
    of_column = np.array([column[f] for f in touched.features[here].tolist()], dtype=np.int64)
    items, counts, means = touched.items[here], touched.counts[here], touched.means[here]
    drawn = session.n_arms <= MOST_ITEMS
    rows = zip(items.tolist(), of_column.tolist(), counts.tolist(), means.tolist(), strict=True)
    order = np.lexsort((np.arange(ids.size), ids)).tolist() if drawn else []
    return {
        "id": seen.row["id"],
        "name": seen.row["name"],
        "t": session.t,
        "done": session.done,
        "measured": int(touched.items.size),
        "touched": int(np.count_nonzero(totals)),
        "of": known.dim,
        "features": [{"name": known.names[f], "found": f in set(first), "measurements": int(totals[f])} for f in shown],
        "items": [
            {"arm": arm, "name": state.settings.name_of(arm), "group_id": int(ids[arm]) or None} for arm in order
        ],
        "cells": [list(row) for row in rows] if drawn else [],
        "groups": _groups(ids, items, of_column, counts, means, len(shown)),
        "cut": None if drawn else f"{session.n_arms} items are too many to list: the groups are listed instead.",
    }


def _groups(ids: Any, items: Any, columns: Any, counts: Any, means: Any, width: int) -> list[dict[str, Any]]:
    """Of each group its size, and the mean of its results of each feature; None where it has none."""
    listed = []
    for group in np.unique(ids[ids > 0]).tolist():
        own = ids[items] == group
        weights = np.bincount(columns[own], weights=counts[own], minlength=width)
        sums = np.bincount(columns[own], weights=counts[own] * means[own], minlength=width)
        values = [float(f"{total / n:.8g}") if n > 0 else None for total, n in zip(sums, weights, strict=True)]
        listed.append({"id": group, "size": int((ids == group).sum()), "means": values})
    return listed


def center_of(seen_cells: Any, names: tuple[str, ...], found_names: list[str], members: Any) -> dict[str, float]:
    """The means of a group on the features that were found, by name."""
    inside = np.isin(seen_cells.items, members)
    center: dict[str, float] = {}
    for name in found_names:
        own = inside & (seen_cells.features == names.index(name))
        if own.any():
            center[name] = float(np.average(seen_cells.means[own], weights=seen_cells.counts[own]))
    return center
