"""The content of pages: functions from what the store tells to a dictionary for a template.

Lists and a campaign's page; and what is proven so far: letters, pairs, how many groups there are at every radius.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from coterie.campaign import CampaignError, Campaigns
from coterie.methods import METHODS
from coterie.problem.costs import cost_text
from coterie.problem.settings import DELTA, METHOD
from coterie.session.forecast import Forecast
from coterie.session.partial import MOST_ITEMS
from coterie.web.log_content import RECENT_EVENTS, SHOWN_EVENTS, log_rows
from coterie.web.rendering import colour, decimals_for, evidence_chart, number, plateau_chart, pulls_chart, thumbnail

LISTED_ITEMS = 48
"""Up to so many items are listed with a bar each; more are drawn as one picture."""
SHOWN_MEMBERS = 40
LEAST_MEMBERS = 6
"""Of each group at least so many are shown at first; of more than `LISTED_ITEMS` items not many more."""
MOST_COLUMNS = 5  # groups beside one another
SHOWN_NUMBERS = 2
"""Of a result's numbers, so many have an interval beside an item; the picture has all."""
MOST_MEMBERS = 2000
SHOWN_LEASES = 20
SEARCHED_FROM = 8
"""From so many campaigns on, the list can be searched."""
SHOWN_ITEMS = 20
"""Of more than `LISTED_ITEMS` items, so many are listed with their letters, those first whose group is open."""

SHOWN_LETTERS = 6

_POINTS, _POINTS_OF_MANY, _MANY = 160, 60, 300

_WHY_NOT = {
    "no_certificate": "Only methods with certificates prove anything about single items before the end, and this "
    "campaign uses another one.",
    "too_many_items": f"Partial answers look at all pairs of items, and are limited to {number(MOST_ITEMS)} items: "
    "this campaign has more.",
    "too_few_results": "A picture appears when there are measurements.",
    "no_distances": "There is no picture of how many groups there are at every distance: under the noise of this "
    "campaign no distance can be proven, since a rare large value could hide a difference of any size. Bounds of the "
    "results, counts, Gaussian noise or a standard deviation would give one.",
}


def counts(status: dict[str, Any], partial: dict[str, Any] | None = None) -> dict[str, Any]:
    """All that pages count of a campaign: from one place, so that no two of its numbers contradict each other.

    Parameters
    ----------
    status : dict
        What `Campaigns.status` or, for a list, `Campaigns.list` says.
    partial : dict, optional
        What is proven of pairs and items (`Campaigns.partial`). Nothing else that is counted is called proven: the
        claims that a method tests (`progress`) begin anew with every guess of the groups.

    Returns
    -------
    dict
        `measurements` on record: those that are `counted`, those that are `waiting` for an earlier one of their item,
        and those `beside` the answer, told after the stop or not counted. `items` and `retired` ones, `groups` (None
        before there are any). `left`, and as likely as not between `low` and `high`: measurements still expected.
        `percent`: how far it is. With `partial`: `pairs`, of which `apart` and `alike` are proven; `certain` and
        `open` items.
    """
    done, retired = status["done"], len(status.get("retired", ()))
    waiting = 0 if done or status.get("proven") else status.get("waiting", 0)
    early = too_early(status)
    known = not done and early is None and status.get("forecast") is not None
    low, high = (round(status[key]) if known and status.get(key) else None for key in ("forecast_low", "forecast_high"))
    share = status["progress"]["share"] if "progress" in status else 1.0 if done else 0.0
    numbers = {
        "measurements": status["measurements"],
        "counted": status["t"],
        "waiting": waiting,
        "beside": status["measurements"] - status["t"] - waiting,
        "items": status["n_arms"] - retired,
        "retired": retired,
        "groups": len(status.get("groups", ())) or None,
        "left": max(1, round(status["forecast"])) if known else None,
        "low": low,
        "high": high,
        "percent": 100 if done else min(99, round(100 * share)),
    }
    if partial is not None:
        numbers |= {
            "counted": partial["t"],
            "pairs": partial["pairs"],
            "apart": partial["apart"]["count"],
            "alike": partial["alike"]["count"],
            "certain": partial["settled"],
            "open": len(partial["items"]) - partial["settled"],
        }
    return numbers


def list_page(page: dict[str, Any], search: str, archived: bool, begun: bool) -> dict[str, Any]:
    """A page of campaigns, newest first; `begun`: other pages are before it."""
    return {
        "campaigns": [campaign | {"counts": counts(campaign)} for campaign in page["campaigns"]],
        "next": page["next"],
        "search": search,
        "archived": archived,
        "searched": bool(search or archived or begun or page["next"] or len(page["campaigns"]) >= SEARCHED_FROM),
    }


def new_page() -> dict[str, Any]:
    """What the form for a new campaign offers."""
    offered = [method for method in METHODS.values() if not method.needs and not method.simulates_only]
    return {
        "methods": offered,
        "default_method": METHOD,
        "default_delta": DELTA,
        "without_thresholds": [method.name for method in offered if not method.has_thresholds],
    }


def list_entry(store: Campaigns, id: str) -> dict[str, Any]:
    """What a list shows of a campaign beside its name: how far it is, when something happened last, a small picture."""
    page = store.page(id, 2, 1)
    return {
        "counts": counts(page["status"]),
        "status": page["status"],
        "last": page["events"][-1]["at"] if page["events"] else None,
        "picture": None if page["picture"] is None else thumbnail(page["picture"]),
    }


def live_page(store: Campaigns, id: str, points: int) -> dict[str, Any]:
    """What is shown of a campaign, and shown anew whenever something has happened."""
    return campaign_page(**store.page(id, points, RECENT_EVENTS))


def campaign_page(
    status: dict[str, Any],
    history: dict[str, Any],
    events: list[dict[str, Any]],
    picture: dict[str, Any] | None = None,
    cells: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A campaign: `status`, `history` and `events` of one moment (`Campaigns.page`), and what follows from them.

    `picture`: as `Campaigns.picture` has it, for the intervals of the items.
    """
    group_of: list[int | None] = [] if status["cut"] else [None] * status["n_arms"]
    for group in () if status["cut"] else status["groups"]:
        for arm in group["arms"]:
            group_of[arm] = group["id"]
    leases = status["open_leases"]
    counted = counts(status)
    against = [alarm for alarm in status["alarms"] if not alarm["harmless"]]
    mixed = bool(status["homogeneity"] and status["homogeneity"]["mixed"])
    return {
        "status": status,
        "counts": counted,
        "warned": bool(status["alarm"] or against or mixed or status["doubt"]),
        "mixed": mixed,
        **group_columns(status["groups"], picture),
        "spent": spent(status),
        "too_early": too_early(status),
        "chart": evidence_chart(history, counted["left"]),
        "weakest": status["evidence"]["weakest"],
        "items": _items(status, group_of),
        "pulls": _pulls(status, group_of),
        "leases": leases[:SHOWN_LEASES],
        "more_leases": max(0, len(leases) - SHOWN_LEASES),
        "recent": log_rows(events)[:SHOWN_EVENTS],
        "cells": None if cells is None else cell_table(cells),
    }


def cell_table(cells: dict[str, Any], most: int = SHOWN_MEMBERS) -> dict[str, Any]:
    """The cells as rows of a table: of each group its means, then its items, at most so many in all.

    `shade` of a cell: in found features h0 … h4, from the lowest mean of the feature to the highest; in the others n1 …
    n4, the more results the darker.
    """
    width, by_item = len(cells["features"]), dict[int, list[Any]]()
    means_of: list[list[float]] = [[] for _ in range(width)]
    for _, column, _, mean in cells["cells"]:
        means_of[column].append(mean)
    for item, column, count, mean in cells["cells"]:
        shade = f"n{min(4, 1 + int(count).bit_length() // 2)}"
        if cells["features"][column]["found"]:
            low, high = min(means_of[column]), max(means_of[column])
            shade = f"h{round(4.0 * (mean - low) / (high - low)) if high > low else 2}"
        by_item.setdefault(item, [None] * width)[column] = {"mean": mean, "count": int(count), "shade": shade}
    rows: list[dict[str, Any]] = []
    for group in [*cells["groups"], {"id": None, "size": 0, "means": []}]:
        own = [item for item in cells["items"] if item["group_id"] == group["id"] and item["arm"] in by_item]
        if group["id"] is not None:
            means = [None if mean is None else {"mean": mean, "count": 0, "shade": ""} for mean in group["means"]]
            rows.append({"name": f"group {group['id']}, {group['size']} items", "group": True, "cells": means})
        rows += [{"name": item["name"], "group": False, "cells": by_item[item["arm"]]} for item in own[:most]]
    more = len(by_item) - sum(not row["group"] for row in rows)
    decimals = decimals_for([max(means) - min(means) for means in means_of if means])
    return cells | {"decimals": decimals, "rows": rows, "more_rows": more, "more": cells["touched"] > width}


def too_early(status: dict[str, Any]) -> str | None:
    """What is said in the place of a forecast that is no number to go by."""
    middle, low, high = (status.get(key) for key in ("forecast", "forecast_low", "forecast_high"))
    if middle is None or low is None or high is None or status["done"]:
        return None
    forecast = Forecast(middle, low, high, status["t"])
    return forecast.words if forecast.wild or forecast.vague else None


def group_columns(
    groups: list[dict[str, Any]], picture: dict[str, Any] | None, most: int = MOST_MEMBERS
) -> dict[str, Any]:
    """The groups as columns of items, each with an interval for its first numbers; what the intervals are, in words.

    At most so many items of a group, the `rest` of them behind a "more". `bar` of an item: where its interval and its
    mean are on a scale that all items share, in percent.
    """
    shown = (
        [] if picture is None else [item for item in picture["items"] if item["mean"] and item["mean"][0] is not None]
    )
    ranges = {
        item["arm"]: list(zip(item["mean"], item["low"], item["high"], strict=True))[:SHOWN_NUMBERS] for item in shown
    }
    both = [
        [numbers[i] for numbers in ranges.values() if i < len(numbers) and None not in numbers[i]]
        for i in range(SHOWN_NUMBERS)
    ]
    decimals = [decimals_for([high - low for _, low, high in ends]) for ends in both]
    ends: list[float] = [end for numbers in ranges.values() for end in numbers[0] if end is not None] or [0.0]
    low, wide = min(ends), max(ends) - min(ends) or 1.0

    def place(value: float) -> float:
        return round(2 + 96 * (value - low) / wide, 2)

    def member(arm: int, name: str) -> dict[str, Any]:
        numbers = ranges.get(arm, [])
        bar = [place(numbers[0][0] if end is None else end) for end in numbers[0]] if numbers else None
        return {"arm": arm, "name": name, "ranges": numbers, "bar": bar}

    few = sum(group["size"] for group in groups) <= LISTED_ITEMS
    shown_first = SHOWN_MEMBERS if few else max(LEAST_MEMBERS, LISTED_ITEMS // len(groups))
    columns = []
    for group in groups:
        members = [member(arm, name) for arm, name in zip(group["arms"][:most], group["names"][:most], strict=True)]
        columns.append(
            {
                "id": group["id"],
                "colour": colour(group["id"]),
                "size": group["size"],
                "center": [] if isinstance(group["center"], dict) else group["center"],
                "reference": group.get("reference"),
                "first": members[:shown_first],
                "rest": members[shown_first:],
                "left_out": group["size"] - len(members),
            }
        )
    named = [] if picture is None else [number["name"] for number in picture["numbers"]][:SHOWN_NUMBERS]
    rows = max(1, math.ceil(len(columns) / MOST_COLUMNS))
    return {
        "groups": columns,
        "columns": math.ceil(len(columns) / rows),
        "numbers": named,
        "decimals": decimals,
        "interval": None if picture is None or not shown else picture["interval"],
    }


def spent(status: dict[str, Any]) -> str | None:
    """What was spent, and is expected to be, in a sentence; None if there are no costs."""
    if status["cost"] is None:
        return None
    unit, left = status.get("cost_unit"), status["cost_left"]
    known = left is not None and not status["done"] and too_early(status) is None
    more = f", about {cost_text(float(f'{left:.2g}'), unit)} more expected" if known else ""
    return f"Spent so far: {cost_text(status['cost'], unit)}{more}."


def _items(status: dict[str, Any], group_of: list[int | None]) -> list[dict[str, Any]] | None:
    """Every item with its pulls, if they can be listed."""
    if status["n_arms"] > LISTED_ITEMS:
        return None
    most = max([*status["pulls"], 1])
    names = _names(status)
    order = sorted(range(status["n_arms"]), key=lambda arm: (group_of[arm] or 0, arm))
    return [
        {
            "name": names[arm],
            "pulls": status["pulls"][arm],
            "percent": round(100 * status["pulls"][arm] / most, 1),
            "group": group_of[arm],
            "colour": colour(group_of[arm]),
        }
        for arm in order
    ]


def _names(status: dict[str, Any]) -> list[str]:
    return status["names"] or [str(arm) for arm in range(status["n_arms"])]


def _pulls(status: dict[str, Any], group_of: list[int | None]) -> dict[str, Any]:
    listed = not status["cut"] and status["n_arms"] > LISTED_ITEMS
    return {
        **status["pulls_summary"],
        "chart": pulls_chart(status["pulls"], group_of, _names(status)) if listed else None,
    }


def proven_part(store: Campaigns, id: str) -> dict[str, Any]:
    """The content of the part: what is proven of items, the picture, or why there is none."""
    settings = store.settings(id)
    partial, no_partial = _read(lambda: store.partial(id, 0))
    points = _POINTS if settings["n_arms"] <= _MANY else _POINTS_OF_MANY
    curve, no_curve = _read(lambda: store.resolution_curve(id, points))
    return {
        "id": id,
        "partial": partial,
        "no_partial": no_partial,
        "items": [] if partial is None else _proven_items(partial),
        "guessed": partial is not None and any(item["group_id"] is not None for item in partial["items"]),
        "counts": None if partial is None else counts(store.status(id, 0), partial),
        "chart": None if curve is None else plateau_chart(curve, _marks(curve)),
        "no_chart": None if no_curve == no_partial else no_curve,
        "unit": None if curve is None else _unit(settings, curve),
    }


def _read(read: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any] | None, str | None]:
    """What was read, or why it does not exist for this campaign."""
    try:
        return read(), None
    except CampaignError as error:
        if error.code not in _WHY_NOT:
            raise
        return None, _WHY_NOT[error.code]


def _proven_items(partial: dict[str, Any]) -> list[dict[str, Any]]:
    """Items with their letters, group by group."""
    items = partial["items"]
    order = sorted(items, key=lambda item: (item["group_id"] or 0, item["arm"]))
    if len(order) > LISTED_ITEMS:
        order = sorted(order, key=lambda item: item["settled"])[:SHOWN_ITEMS]
    # With more than 26 letters in all, those of an item have blanks between them.
    parted = any(" " in item["letters"] for item in items)
    return [_proven_item(item, partial["question"]["kind"], parted) for item in order]


def _proven_item(item: dict[str, Any], kind: str, parted: bool) -> dict[str, Any]:
    signs = item["letters"].split(" ") if parted else list(item["letters"])
    shown, more = (" " if parted else "").join(signs[:SHOWN_LETTERS]), len(signs) - SHOWN_LETTERS
    others = [group for group in item["possible"] if group != item["group_id"]]
    if item["settled"]:
        said = "certain, near a border" if kind == "resolution" and others else "certain"
    else:
        said = "open"
    return {
        "name": item["name"],
        "group": item["group_id"],
        "colour": colour(item["group_id"]),
        "letters": shown,
        "more_letters": max(0, more),
        "possible": item["possible"],
        "state": said,
    }


def _marks(curve: dict[str, Any]) -> list[tuple[str, float]]:
    """ε and η of a resolution, where they are one number each."""
    asked = curve["resolution"]
    if asked is None or set(curve["scale"]) != {1.0}:
        return []
    marks = []
    for name, given in (("ε", asked["alike"]), ("η", asked["apart"])):
        values = set(given) if isinstance(given, list) else {given}
        if len(values) != 1:
            return []
        marks.append((name, float(values.pop())))
    return marks


def _unit(settings: dict[str, Any], curve: dict[str, Any]) -> str:
    """What a radius is."""
    if set(curve["scale"]) != {1.0}:
        return "in units of η"
    if settings["dim"] == 1:
        return "a difference, in the units of the measurements"
    largest = "the largest difference of a number" if curve["norm"] == "each" else "the Euclidean distance"
    return f"{largest}, in the units of the measurements"
