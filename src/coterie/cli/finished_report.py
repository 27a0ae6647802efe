"""What `coterie group` prints of a finished table, and without a question: what is proven, and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from coterie.cli.campaign_report import print_table
from coterie.cli.group_remarks import in_bursts, out_of_order, remark_lines, too_small
from coterie.cli.group_report import misfit_lines, print_group_table
from coterie.tables.finished_words import condition, thin_lines

_MOST_LISTED = 60  # items that have a line each in the table of letters
_WIDE = 5  # so many columns of values have a column each in it


def print_finished(found: dict[str, Any], command: Sequence[str], noise: str | None) -> None:
    """Print what `coterie.group` found: remarks, what is proven and when it holds, groups, letters, what to ask next.

    `command`: how the table was read, to which options are added; `noise`: as it was stated.
    """
    refuted = too_small(found) or in_bursts(found) or out_of_order(found)
    lines = remark_lines(found)
    if refuted:
        lines.append("Nothing is proven: the rows contradict what was stated about them (see above).")
    else:
        lines += [*found["verdict"], *thin_lines(found)]
        lines += misfit_lines(found) if found["question"] is not None and found["done"] else []
        lines += [condition(found["rows"], "--growing")] if "rows" in found else []
    _say(lines)
    if not refuted:
        if found["groups"] and found["question"] is not None:
            print_group_table(found, "groups" if found["done"] else "groups, a guess")
        if found["question"] is None or not found["done"]:
            _print_letters(found)
    stated = "" if noise is None else f" --noise {shlex.quote(noise)}"
    if found["question"] is None:
        _say(_next_lines(found, shlex.join(command), stated, refuted))
    elif found["settles"] is not None and not refuted:
        _say(
            [
                f"With {found['settles']} groups these rows settle which they are:",
                f"  {shlex.join(command)} --clusters {found['settles']}{stated}",
            ]
        )


def _say(lines: Sequence[str]) -> None:
    console = Console()
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=line.startswith("  "))


def _print_letters(found: dict[str, Any]) -> None:
    names, its, columns = found["names"], found["pairs"]["letters"], found["read"]["values"]
    if len(names) > _MOST_LISTED:
        _say([f"Letters of the {len(names)} items (those that share one are not proven different): --json."])
        return
    shown = columns if len(columns) <= _WIDE else []
    order = sorted(range(len(names)), key=lambda arm: its[arm])
    rows = [
        [names[arm], its[arm], *(f"{value:.4g}" for value in found["means"][arm][: len(shown)]), found["counts"][arm]]
        for arm in order
    ]
    title = "items that share a letter are not proven different"
    print_table(["item", "letters", *(f"mean {column}" for column in shown), "measured"], rows, title)


def _next_lines(found: dict[str, Any], command: str, noise: str, refuted: bool) -> list[str]:
    """How groups are asked for; a command is printed if these rows have an answer to it."""
    lines = ["For groups, say how many there are, with --clusters, if you know it."]
    if refuted or found["n_arms"] < 3:
        return [] if found["n_arms"] < 3 else lines
    if found["settles"] is not None:
        lines[-1] += f" With {found['settles']} these rows settle which they are:"
        lines.append(f"  {command} --clusters {found['settles']}{noise}")
    allows = found["allows"]
    if allows is not None:
        stated = noise if allows["noise"] is None else f" --noise {allows['noise']}"
        kind = (allows["noise"] or "").partition(":")[0]
        if_so = {"": "These", "gaussian": "If the noise is Gaussian, these"}
        what = if_so.get(kind, "If all values lie within these bounds, these")
        alike, apart = (",".join(f"{one:.12g}" for one in allows[key]) for key in ("alike", "apart"))
        count = f"{allows['groups']} group{'' if allows['groups'] == 1 else 's'}"
        lines += [
            f"Or say which differences matter, with --alike and --apart. {what} rows prove {count} with:",
            f"  {command} --alike {alike} --apart {apart}{stated}",
        ]
    return lines
