"""The content of pages: functions from what the store tells to a dictionary for a template.

A campaign's page, lists, logs; and what is proven so far: letters, pairs, how many groups there are at every radius.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coterie.campaign import CampaignError, Campaigns
from coterie.methods import METHODS
from coterie.problem.costs import cost_text
from coterie.problem.question import Resolution
from coterie.problem.settings import DELTA, METHOD
from coterie.session.forecast import Forecast
from coterie.session.partial import MOST_ITEMS
from coterie.web.rendering import colour, evidence_chart, number, plateau_chart, pulls_chart

LISTED_ITEMS = 48
"""Up to so many items are listed with a bar each; more are drawn as one picture."""
SHOWN_MEMBERS = 40
MOST_MEMBERS = 2000
SHOWN_LEASES = 20
LOG_PAGE = 50
SHOWN_EVENTS = 8
RECENT_EVENTS = 4 * SHOWN_EVENTS
"""So many are read, since some of them are not shown."""
SEARCHED_FROM = 8
"""From so many campaigns on, the list can be searched."""
_NOT_LISTED = "evidence"  # every few measurements: the picture shows these

_LOG_NUMBERS = 8

_KIND_WORDS = {
    "asked": "asked for",
    "expired": "lease expired",
    "failed": "not measured",
    "groups": "groups",
    "correction": "corrected",
    "unarchived": "taken up again",
    "lease_time": "time for a measurement",
    "surplus": "kept, not counted",
}

_BLOCK_WORDS = {"compose": "asked for", "close": "closed", "place": "a result that nobody asked for"}

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


def list_page(page: dict[str, Any], search: str, archived: bool, begun: bool) -> dict[str, Any]:
    """A page of campaigns, newest first, and what the form for a new one offers; `begun`: other pages are before it."""
    offered = [method for method in METHODS.values() if not method.needs and not method.simulates_only]
    return {
        "campaigns": page["campaigns"],
        "next": page["next"],
        "search": search,
        "archived": archived,
        "searched": bool(search or archived or begun or page["next"] or len(page["campaigns"]) >= SEARCHED_FROM),
        "methods": offered,
        "default_method": METHOD,
        "for_resolutions": [method.name for method in offered if Resolution.kind in method.questions],
        "default_delta": DELTA,
        "without_thresholds": [method.name for method in offered if not method.has_thresholds],
    }


def campaign_page(status: dict[str, Any], history: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    """A campaign: `status`, `history` and `events` of one moment (`Campaigns.overview`), and what follows from them."""
    group_of: list[int | None] = [] if status["cut"] else [None] * status["n_arms"]
    for group in () if status["cut"] else status["groups"]:
        for arm in group["arms"]:
            group_of[arm] = group["id"]
    early = too_early(status)
    forecast = None if early else status["forecast"]
    leases = status["open_leases"]
    return {
        "status": status,
        "groups": [_group(group) for group in status["groups"]],
        "progress": progress(status),
        "spent": spent(status),
        "too_early": early,
        "left": None if forecast is None or status["done"] else max(1, round(forecast)),
        "chart": evidence_chart(history, None if status["done"] else forecast),
        "weakest": status["evidence"]["weakest"],
        "items": _items(status, group_of),
        "pulls": _pulls(status, group_of),
        "leases": leases[:SHOWN_LEASES],
        "more_leases": max(0, len(leases) - SHOWN_LEASES),
        "recent": log_rows(events)[:SHOWN_EVENTS],
    }


def too_early(status: dict[str, Any]) -> str | None:
    """What is said in the place of a forecast that is no number to go by."""
    middle, low, high = (status.get(key) for key in ("forecast", "forecast_low", "forecast_high"))
    if middle is None or low is None or high is None or status["done"]:
        return None
    forecast = Forecast(middle, low, high, status["t"])
    return forecast.words if forecast.wild or forecast.vague else None


def progress(status: dict[str, Any]) -> int:
    """How far the evidence is, in percent of what is needed; full only when done."""
    if status["done"]:
        return 100
    evidence = status["evidence"]
    statistic, threshold = evidence["statistic"], evidence["threshold"]
    if statistic is None or not threshold:
        return 0
    return int(max(0.0, min(99.0, 100 * statistic / threshold)))


def _group(group: dict[str, Any]) -> dict[str, Any]:
    names = group["names"]
    return {
        "id": group["id"],
        "colour": colour(group["id"]),
        "size": group["size"],
        "center": group["center"],
        "reference": group.get("reference"),
        "first": names[:SHOWN_MEMBERS],
        "rest": names[SHOWN_MEMBERS:MOST_MEMBERS],
        "left_out": group["size"] - len(names[:MOST_MEMBERS]),
    }


def spent(status: dict[str, Any]) -> str | None:
    """What was spent, and is expected to be, in a sentence; None if there are no costs."""
    if status["cost"] is None:
        return None
    unit, left = status.get("cost_unit"), status["cost_left"]
    more = "" if left is None or status["done"] else f", about {cost_text(left, unit)} more expected"
    return f"Spent so far: {cost_text(status['cost'], unit)}{more}."


def _items(status: dict[str, Any], group_of: list[int | None]) -> list[dict[str, Any]] | None:
    """Every item with its pulls, if they can be listed."""
    if status["n_arms"] > LISTED_ITEMS:
        return None
    most = max([*status["pulls"], 1])
    names = status["names"] or [str(arm) for arm in range(status["n_arms"])]
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


def _pulls(status: dict[str, Any], group_of: list[int | None]) -> dict[str, Any]:
    listed = not status["cut"] and status["n_arms"] > LISTED_ITEMS
    return {**status["pulls_summary"], "chart": pulls_chart(status["pulls"], group_of) if listed else None}


def log_page(
    id: str, name: str, dim: int, events: list[dict[str, Any]], first: int, last: int, newest: int
) -> dict[str, Any]:
    """A page of the log, newest first, with the `before` of the pages beside it (`Campaigns.newest_events`)."""
    return {
        "id": id,
        "name": name,
        "dim": dim,
        "first": first,
        "last": last,
        "newest": newest,
        "older": first if first > 1 else None,
        "newer": min(last + LOG_PAGE, newest) + 1 if last < newest else None,
        "rows": log_rows(events),
    }


def log_rows(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events as rows of a table, newest first; points of the evidence are left out."""
    return [_log_row(event) for event in reversed(events) if event["kind"] != _NOT_LISTED]


def _log_row(event: dict[str, Any]) -> dict[str, Any]:
    kind = event["kind"]
    text, detail = event.get("name", ""), ""
    numbers = event["values"] if kind in ("told", "surplus") else []
    if kind == "correction":
        detail = f"{_values(event['new'])}, told was {_values(event['old'])}: {event['reason']}"
        detail += f" ({event['message']})" if "message" in event else ""
    elif kind in ("failed", "undone"):
        detail = event["reason"]
    elif kind == "surplus":
        detail = "somebody else was asked too, and answered first"
    elif kind == "lease_time":
        text = f"{event['seconds']:g} seconds, before {event['before']:g}"
    elif kind == "groups":
        text = _change(event)
    elif kind == "imported":
        text, detail = event["source"], _imported(event)
    elif kind == "resolution":
        text = f"{Resolution.of(event['resolution']).words}, after {event['chosen_at']} measurements"
    elif kind == "revision":
        text, detail = _revision(event), event.get("reason", "")
    elif kind == "block":
        text, detail = event["block"], _BLOCK_WORDS[event["step"]]
    elif kind in ("cell", "lapse"):
        text = event.get("block", "")
        detail = f"cell {event['cell']}: {len(event['pulls'])} asks" if kind == "cell" else f"cell {event['cell']}"
    elif kind == "stopped":
        text = f"after {event['t']} measurements"
    return {
        "seq": event["seq"],
        "at": event["at"],
        "kind": kind,
        "said": _KIND_WORDS.get(kind, kind),
        "text": text,
        "detail": detail,
        "numbers": numbers[:_LOG_NUMBERS],
        "more_numbers": len(numbers) > _LOG_NUMBERS,
        "worker": event.get("worker") or event.get("by") or "",
        "measurement": event["id"] if kind == "told" else None,
        "told": _values(numbers),
        "typed": " ".join(repr(value) for value in event["values"]) if kind == "told" else "",
        "token": event.get("token", {}).get("id"),
    }


def _values(values: list[float]) -> str:
    shown = "; ".join(f"{value:.6g}" for value in values[:_LOG_NUMBERS])
    return f"{shown}; …" if len(values) > _LOG_NUMBERS else shown


def _revision(event: dict[str, Any]) -> str:
    parts = []
    if event["added"]:
        parts.append("joined: " + (", ".join(event["names"]) or f"{event['added']} items"))
    if event["retired"]:
        parts.append(f"retired: {', '.join(event.get('retired_names') or map(str, event['retired']))}")
    if event["n_clusters"] is not None:
        parts.append(f"{event['n_clusters']} groups")
    if event["delta"] is not None:
        parts.append(f"error probability {event['delta']:g}")
    return "; ".join(parts)


def _imported(event: dict[str, Any]) -> str:
    count, order = event["measurements"], event["order"]
    how = f"shuffled within each item, seed {order['seed']}" if order["shuffled"] else "in the order of the table"
    return f"{count} measurement{'' if count == 1 else 's'}, {how}"


def _change(event: dict[str, Any]) -> str:
    if "first" in event:
        return f"a first guess: {len(set(event['first']))} groups"
    parts = [
        f"group {change['group']} split off group {change['from']}"
        if change["from"]
        else f"group {change['group']} is new"
        for change in event["split"]
    ]
    parts += [f"group {change['group']} merged into group {change['into']}" for change in event["merged"]]
    moved = len(event["moved"])
    parts.append(f"{moved} item{'' if moved == 1 else 's'} moved")
    return "; ".join(parts)


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
        "open_items": None if partial is None else len(partial["items"]) - partial["settled"],
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
