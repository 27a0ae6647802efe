"""The log on pages: a row of a table for each event, in the words of people."""

from __future__ import annotations

from typing import Any

from coterie.problem.question import Resolution
from coterie.web.rendering import feature_name

LOG_PAGE = 50
SHOWN_EVENTS = 8
RECENT_EVENTS = 4 * SHOWN_EVENTS
"""So many are read, since some of them are not shown."""
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
    "deadline": "another deadline",
    "delivered": "webhook told",
    "attachment": "attached",
    "statements": "frozen",
}

_BLOCK_WORDS = {"compose": "asked for", "close": "closed", "place": "a result that nobody asked for"}


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
    text = f"{feature_name(event['feature'])} of {text}" if "feature" in event else text
    numbers = [value for value in event["values"] if value is not None] if kind in ("told", "surplus") else []
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
    elif kind in ("deadline", "statements", "block", "cell", "lapse"):
        text, detail = _sampling(event)
    elif kind in ("attachment", "delivered", "stopped"):
        text, detail = _in_short(event, text)
    return {
        "seq": event["seq"],
        "at": event["at"],
        "kind": kind,
        "said": _KIND_WORDS.get(kind, kind),
        "text": text,
        "detail": detail,
        "numbers": numbers[:_LOG_NUMBERS],
        "more_numbers": len(numbers) > _LOG_NUMBERS,
        "worker": "" if kind == "stopped" else _who(event),
        "measurement": event["id"] if kind == "told" else None,
        "told": _values(numbers),
        "typed": " ".join(repr(value) for value in numbers) if kind == "told" else "",
        "token": event.get("token", {}).get("id"),
        "file": (event["file"], event["sha256"]) if kind == "attachment" else None,
    }


def _who(event: dict[str, Any]) -> str:
    """Who it was, as they call themselves; and the name of their token or invitation, if that is another."""
    worker, token = event.get("worker") or event.get("by") or "", event.get("token", {}).get("name")
    if token in (None, "", "serve", worker):  # "serve" is the server's own token
        return worker
    return f"{worker} ({token})" if worker else token


def _in_short(event: dict[str, Any], item: str) -> tuple[str, str]:
    """What is said of a file, of a webhook that was told, and of the stop."""
    if event["kind"] == "attachment":
        return item, f"{event['type']}, {event['size']:,} bytes"
    return event["event"] if event["kind"] == "delivered" else f"after {event['t']} measurements", ""


def _sampling(event: dict[str, Any]) -> tuple[str, str]:
    """What is said of a deadline, of statements frozen for it, of a block and of a cell of one."""
    kind = event["kind"]
    if kind == "deadline":
        return f"{event['deadline']:g}", event.get("reason", "")
    if kind == "statements":
        return f"{sum(map(len, event['listed']))} statements, for the deadline", ""
    if kind == "block":
        return event["block"], _BLOCK_WORDS[event["step"]]
    cell = f"cell {event['cell']}"
    return event.get("block", ""), f"{cell}: {len(event['pulls'])} asks" if kind == "cell" else cell


def _values(values: list[float]) -> str:
    shown = "; ".join("–" if value is None else f"{value:.6g}" for value in values[:_LOG_NUMBERS])
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
