"""Tables of `coterie campaign` for people: the status of a campaign, and any rows under headings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coterie.cli.campaign_text import first_names, waiting_lines
from coterie.problem.costs import cost_text
from coterie.problem.question import Resolution

_MOST_NUMBERS = 12


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> None:
    """Print rows under headings; ids are never folded, so that they can be copied."""
    table = Table(title=title)
    for i, heading in enumerate(headings):
        number = bool(rows) and all(isinstance(row[i], int | float) for row in rows)
        key = heading in ("id", "lease")
        table.add_column(heading, justify="right" if number else "left", overflow="fold", no_wrap=key)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    Console().print(table)


def print_status(found: dict[str, Any]) -> None:
    """Print the status of a campaign: verdict, warnings, evidence, groups, leases, workers."""
    console = Console()
    console.print(escape(f"{found['name']} ({found['id']})"), style="bold", highlight=False)
    _print_verdict(console, found)
    evidence = found["evidence"]
    if not found["done"] and evidence["threshold"] is not None:
        console.print(f"progress: {found['progress']['words']}", highlight=False, markup=False)
        console.print(f"measurements: {measurements_left(found)}", highlight=False, markup=False)
        text = f"evidence {evidence['statistic']:.2f} of {evidence['threshold']:.2f}"
        console.print(text, highlight=False, markup=False)
        weakest = evidence["weakest"]
        if weakest is not None:
            against = "" if weakest["against_name"] is None else f" (item {weakest['against_name']})"
            text = f"weakest: is {weakest['name']} apart from group {weakest['group_id']}{against}?"
            console.print(text, highlight=False, markup=False)
    for line in [*_spent(found), *_waiting(found), *waiting_lines(found["waiting_for"])]:
        console.print(line, highlight=False, markup=False)
    if found["groups"]:
        shown = ", ".join if found["done"] else first_names  # a result is never cut short
        named = ["reference"] if "reference" in found["groups"][0] else []
        rows = [
            [group["id"], group["size"], *([group["reference"]["name"]] if named else []), _center(group["center"]),
             shown(group["names"])]
            for group in found["groups"]
        ]  # fmt: skip
        called = found["value_names"]
        center = "center" if called is None else f"center: {first_names(called)}"
        title = "groups" if found["done"] else "groups, so far"
        print_table(["group", "items", *named, center, "members"], rows, title)
    if found["borders"]:
        near = [f"{one['name']} (also {_groups_called(one['could_be'])})" for one in found["borders"]]
        text = f"Near a border, and could belong elsewhere: {first_names(near)}."
        console.print(text, highlight=False, markup=False)
    if found["open_leases"]:
        rows = [
            [one["name"], one["worker"], one["expires"] + (" (over)" if one["expired"] else ""), one["lease"]]
            for one in found["open_leases"]
        ]
        print_table(["item", "worker", "until", "lease"], rows, "under way")
    _print_failures(found["failures"])
    if found["workers"]:
        missed = _MISSED if found["failures"]["text"] is not None else ()
        rows = [
            [one["worker"], one["measurements"], *(one[kind] for kind in missed), one["open"], one["last"]]
            for one in found["workers"]
        ]
        print_table(["worker", "measured", *missed, "open", "last seen"], rows, "workers")
    console.print(found["assumed"], highlight=False, markup=False)


def _spent(found: dict[str, Any]) -> list[str]:
    """What was spent, and is expected to be; nothing if there are no costs."""
    if found["cost"] is None:
        return []
    unit, left = found.get("cost_unit"), found["cost_left"]
    more = "" if left is None or found["done"] else f"; about {cost_text(left, unit)} more"
    return [f"spent: {cost_text(found['cost'], unit)}{more}"]


def _waiting(found: dict[str, Any]) -> list[str]:
    """How many results wait, if any do, and for whom."""
    count = found["waiting"]
    if not count or found["done"]:
        return []
    asks = first_names([f"{one['name']}, asked of {one['worker']}" for one in found["holding"]])
    waits = "1 result waits" if count == 1 else f"{count} results wait"
    return [f"{waits} for an earlier ask of the item to be answered or given up ({asks})"]


def _print_verdict(console: Console, found: dict[str, Any]) -> None:
    """What has come out, and all that speaks against it."""
    alarm, looks = found["alarm"], found["homogeneity"]
    console.print(escape(" ".join([found["verdict"], *_choice(found["resolutions"])])), highlight=False)
    if alarm is not None:
        console.print(f"Alarm: {alarm['text']}", highlight=False, markup=False, style="yellow")
    for one in found["alarms"]:
        text = f"{'Remark' if one['harmless'] else 'Alarm'}: {one['text']}"
        console.print(text, highlight=False, markup=False, style=None if one["harmless"] else "yellow")
    if looks is not None:
        console.print(looks["text"], highlight=False, markup=False, style="yellow" if looks["mixed"] else None)
    if found["archived"] is not None:
        console.print(f"Archived since {found['archived']}: it is read-only.", highlight=False, markup=False)
    if found["failures"]["text"] is not None:
        console.print(found["failures"]["text"], highlight=False, markup=False)
    if found["doubt"] is not None:
        console.print(found["doubt"], highlight=False, markup=False, style="yellow")


_MISSED = ("failed", "expired", "late", "undone")
_MOST_ITEMS = 12


def _print_failures(failures: dict[str, Any]) -> None:
    """The items with the most asks that were missed."""
    if failures["items"]:
        rows = [
            [one["name"], one["asked"], *(one[kind] for kind in _MISSED)] for one in failures["items"][:_MOST_ITEMS]
        ]
        left = len(failures["items"]) - _MOST_ITEMS
        print_table(
            ["item", "asked", *_MISSED], rows, "asks that were missed" + (f" ({left} more items)" if left > 0 else "")
        )


def measurements_left(found: dict[str, Any]) -> str:
    """How many more are expected, in words."""
    from coterie.session.forecast import Forecast  # here: most commands do without sessions

    middle, low, high = (found[key] for key in ("forecast", "forecast_low", "forecast_high"))
    if middle is None:
        return f"{found['t']} so far; how many more are needed cannot be said yet"
    return f"{found['t']} so far, {Forecast(middle, low, high, found['t']).words}"


def _choice(resolutions: Sequence[dict[str, Any]]) -> list[str]:
    """That the resolution was chosen on the way, and what it was before; nothing if it was not."""
    if len(resolutions) < 2:
        return []
    earlier = [Resolution(one["alike"], one["apart"]).bounds for one in resolutions[:-1]]
    at = resolutions[-1]["chosen_at"]
    return [f"The resolution was chosen after {at} measurements; before it was {', then '.join(earlier)}."]


def _groups_called(ids: Sequence[int | None]) -> str:
    """group 2, or groups 2, 3."""
    return f"group{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"


def _center(center: Sequence[float]) -> str:
    shown = ", ".join(f"{value:.4g}" for value in center[:_MOST_NUMBERS])
    return shown + (", …" if len(center) > _MOST_NUMBERS else "")
