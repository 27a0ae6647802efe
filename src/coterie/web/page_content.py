"""The content of pages: functions from what the store tells to a dictionary for a template."""

from __future__ import annotations

from statistics import median
from typing import Any

from coterie.methods import METHODS
from coterie.problem.settings import DELTA, METHOD
from coterie.web.charts import colour, evidence_chart, pulls_chart

LISTED_ITEMS = 48
"""Up to so many items are listed with a bar each; more are drawn as one picture."""
SHOWN_MEMBERS = 40
MOST_MEMBERS = 2000
SHOWN_LEASES = 20
LOG_PAGE = 50
SHOWN_EVENTS = 8
RECENT_EVENTS = 4 * SHOWN_EVENTS
"""So many are read, since some of them are not shown."""
_NOT_LISTED = "evidence"  # every few measurements: the picture shows these


def list_page(campaigns: list[dict[str, Any]]) -> dict[str, Any]:
    """The campaigns, newest first, and what the form for a new one offers."""
    offered = [method for method in METHODS.values() if not method.needs and not method.simulates_only]
    return {
        "campaigns": campaigns[::-1],
        "methods": offered,
        "default_method": METHOD,
        "default_delta": DELTA,
        "without_thresholds": [method.name for method in offered if not method.has_thresholds],
    }


def campaign_page(status: dict[str, Any], history: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    """A campaign: `status`, `history` and `events` of one moment (`Campaigns.overview`), and what follows from them."""
    group_of: list[int | None] = [None] * status["n_arms"]
    for group in status["groups"]:
        for arm in group["arms"]:
            group_of[arm] = group["id"]
    forecast = status["forecast"]
    leases = status["open_leases"]
    return {
        "status": status,
        "groups": [_group(group) for group in status["groups"]],
        "progress": progress(status),
        "left": None if forecast is None or status["done"] else max(1, round(forecast)),
        "chart": evidence_chart(history, None if status["done"] else forecast),
        "weakest": status["evidence"]["weakest"],
        "items": _items(status, group_of),
        "pulls": _pulls(status, group_of),
        "leases": leases[:SHOWN_LEASES],
        "more_leases": max(0, len(leases) - SHOWN_LEASES),
        "recent": log_rows(events)[:SHOWN_EVENTS],
    }


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
        "first": names[:SHOWN_MEMBERS],
        "rest": names[SHOWN_MEMBERS:MOST_MEMBERS],
        "left_out": max(0, len(names) - MOST_MEMBERS),
    }


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
    pulls = status["pulls"]
    drawn = pulls_chart(pulls, group_of) if status["n_arms"] > LISTED_ITEMS else None
    return {"least": min(pulls), "median": median(pulls), "most": max(pulls), "chart": drawn}


def log_page(id: str, name: str, events: list[dict[str, Any]], first: int, last: int, newest: int) -> dict[str, Any]:
    """A page of the log, newest first, with the `before` of the pages beside it (`Campaigns.newest_events`)."""
    return {
        "id": id,
        "name": name,
        "first": first,
        "last": last,
        "newest": newest,
        "older": first if first > 1 else None,
        "newer": min(last + LOG_PAGE, newest) + 1 if last < newest else None,
        "rows": log_rows(events),
    }


def log_rows(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events as rows of a table, newest first; points of the evidence are left out."""
    return [_log_row(one) for one in reversed(events) if one["kind"] != _NOT_LISTED]


_KIND_WORDS = {"asked": "asked for", "expired": "lease expired", "failed": "not measured", "groups": "groups"}


def _log_row(event: dict[str, Any]) -> dict[str, Any]:
    kind = event["kind"]
    text, detail = event.get("name", ""), ""
    if kind == "told":
        shown = ", ".join(f"{value:.6g}" for value in event["values"][:8])
        detail = f"{shown}, …" if len(event["values"]) > 8 else shown
    elif kind == "failed":
        detail = event["reason"]
    elif kind == "groups":
        text = _change(event)
    elif kind == "imported":
        text, detail = event["source"], _imported(event)
    elif kind == "stopped":
        text = f"after {event['t']} measurements"
    return {
        "seq": event["seq"],
        "at": event["at"],
        "kind": kind,
        "said": _KIND_WORDS.get(kind, kind),
        "text": text,
        "detail": detail,
        "worker": event.get("worker") or "",
    }


def _imported(event: dict[str, Any]) -> str:
    count, order = event["measurements"], event["order"]
    how = f"shuffled within each item, seed {order['seed']}" if order["shuffled"] else "in the order of the table"
    return f"{count} measurement{'' if count == 1 else 's'}, {how}"


def _change(event: dict[str, Any]) -> str:
    if "first" in event:
        return f"a first guess: {len(set(event['first']))} groups"
    parts = [f"group {one['group']} split off group {one['from']}" for one in event["split"]]
    parts += [f"group {one['group']} merged into group {one['into']}" for one in event["merged"]]
    moved = len(event["moved"])
    parts.append(f"{moved} item{'' if moved == 1 else 's'} moved")
    return "; ".join(parts)
