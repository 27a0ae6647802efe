"""What the pages show: functions from what the API sends to a dictionary for a template."""

from __future__ import annotations

from statistics import median
from typing import Any

from coterie.web.drawing import colour, evidence_chart, pulls_chart

LISTED_ITEMS = 48
"""Up to so many items are listed with a bar each; more are drawn as one picture."""
SHOWN_MEMBERS = 40
MOST_MEMBERS = 2000
SHOWN_LEASES = 20
LOG_PAGE = 50
RECENT = 8
_QUIET = "evidence"  # every few measurements: the picture shows these


def list_page(campaigns: list[dict[str, Any]]) -> dict[str, Any]:
    """The list, newest first."""
    return {"campaigns": campaigns[::-1]}


def campaign_page(status: dict[str, Any], history: dict[str, Any], events: dict[str, Any]) -> dict[str, Any]:
    """A campaign: `status`, `history` and `events` as the API gives them, and what follows from them."""
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
        "recent": log_page(events, RECENT)["rows"],
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


def log_page(events: dict[str, Any], most: int | None = None) -> dict[str, Any]:
    """A page of the log, newest first."""
    rows = [_row(one) for one in reversed(events["events"]) if one["kind"] != _QUIET]
    return {"rows": rows[:most]}


_SAID = {"asked": "asked for", "expired": "lease expired", "failed": "not measured", "groups": "groups"}


def _row(event: dict[str, Any]) -> dict[str, Any]:
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
        "said": _SAID.get(kind, kind),
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
