"""What is proven about pairs of items, for people: how many are apart and alike, and a compact letter display."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from coterie.cli.campaign_report import print_table
from coterie.cli.campaign_text import first_names

_MOST_LETTERED = 60  # items that have a line each in the table of letters


def pair_lines(
    apart: Sequence[tuple[str, str]], alike: Sequence[tuple[str, str]], counts: tuple[int, int], of: int
) -> list[str]:
    """How many of all pairs are known to differ and to be alike (`counts`), and the first of them, by name."""
    lines = []
    for pairs, count, words, mark in (
        (apart, counts[0], "Known to differ", "from"),
        (alike, counts[1], "Known to be alike", "and"),
    ):
        known = [f"{one} {mark} {other}" for one, other in pairs]
        if count:
            lines.append(f"{words} ({count:,} of {of:,} pairs): {first_names(known, count)}.")
        elif mark == "from":
            lines.append(f"{words}: none yet.")
    return lines


def print_letters(
    names: Sequence[str], letters: Sequence[str], possible: Sequence[Sequence[Any]], used: Sequence[int], where: str
) -> None:
    """A line for each item: its letters, the groups it may be in, the results used. `where` they are if too many."""
    if len(names) > _MOST_LETTERED:
        text = f"Letters of the {len(names)} items (those that share one are not proven different): {where}."
        Console().print(text, highlight=False, markup=False)
        return
    rows = [
        [name, its, ", ".join(map(str, groups)), count]
        for name, its, groups, count in zip(names, letters, possible, used, strict=True)
    ]
    headings = ["item", "letters", "possible groups", "used"]
    print_table(headings, rows, "items that share a letter are not proven different")


def print_partial(found: dict[str, Any], where: str) -> None:
    """What `coterie campaign partial` prints of what `Campaigns.partial` gives."""
    console = Console()
    names = [one["name"] for one in found["items"]]
    apart, alike = found["apart"], found["alike"]
    head = (
        f"{found['name']} ({found['id']}), after {found['t']} measurements. Apart: {apart['means']}; alike: "
        f"{alike['means']}. Any of this, now or at an earlier moment, is wrong with probability at most "
        f"{found['error']:g}."
    )
    lines = [head]
    settled, total = found["settled"], len(names)
    lines.append(f"Certain so far: the groups of {settled} of {total} items.")
    far, near = ([(names[low], names[high]) for low, high in one["listed"]] for one in (apart, alike))
    lines += pair_lines(far, near, (apart["count"], alike["count"]), found["pairs"])
    for line in lines:
        console.print(line, highlight=False, markup=False)
    items = sorted(found["items"], key=lambda one: (one["group_id"] or 0, one["arm"]))
    shown, its, possible, used = ([one[key] for one in items] for key in ("name", "letters", "possible", "used"))
    print_letters(shown, its, possible, used, where)
