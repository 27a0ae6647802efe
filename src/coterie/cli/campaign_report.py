"""Tables of `coterie campaign` for people: the status of a campaign, and any rows under headings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coterie.cli.campaign_text import first_names

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
    alarm, looks = found["alarm"], found["homogeneity"]
    console.print(escape(found["verdict"]), highlight=False)
    if alarm is not None:
        console.print(f"Alarm: {alarm['text']}", highlight=False, markup=False, style="yellow")
    if looks is not None:
        console.print(looks["text"], highlight=False, markup=False, style="yellow" if looks["mixed"] else None)
    if found["doubt"] is not None:
        console.print(found["doubt"], highlight=False, markup=False, style="yellow")
    evidence = found["evidence"]
    if not found["done"] and evidence["threshold"] is not None:
        left = found["forecast"]
        more = "" if left is None else f"; about {left:.0f} more measurements"
        console.print(
            f"evidence {evidence['statistic']:.2f} of {evidence['threshold']:.2f}{more}", highlight=False, markup=False
        )
        weakest = evidence["weakest"]
        if weakest is not None:
            against = "" if weakest["against_name"] is None else f" (item {weakest['against_name']})"
            text = f"weakest: is {weakest['name']} apart from group {weakest['group_id']}{against}?"
            console.print(text, highlight=False, markup=False)
    if found["waiting"]:
        text = f"{found['waiting']} results wait for an earlier ask of their item to be answered or given up"
        console.print(text, highlight=False, markup=False)
    if found["groups"]:
        shown = ", ".join if found["done"] else first_names  # a result is never cut short
        rows = [
            [group["id"], group["size"], _center(group["center"]), shown(group["names"])] for group in found["groups"]
        ]
        called = found["value_names"]
        center = "center" if called is None else f"center: {first_names(called)}"
        print_table(["group", "items", center, "members"], rows, "groups" if found["done"] else "groups, so far")
    if found["open_leases"]:
        rows = [
            [one["name"], one["worker"], one["expires"] + (" (over)" if one["expired"] else ""), one["lease"]]
            for one in found["open_leases"]
        ]
        print_table(["item", "worker", "until", "lease"], rows, "under way")
    if found["workers"]:
        rows = [[one["worker"], one["measurements"], one["open"], one["last"]] for one in found["workers"]]
        print_table(["worker", "measured", "open", "last seen"], rows, "workers")
    console.print(found["assumed"], highlight=False, markup=False)


def _center(center: Sequence[float]) -> str:
    shown = ", ".join(f"{value:.4g}" for value in center[:_MOST_NUMBERS])
    return shown + (", …" if len(center) > _MOST_NUMBERS else "")
