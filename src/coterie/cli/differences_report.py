"""What `coterie group` prints where no number of groups is given: the items proven to differ, and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from coterie.cli.campaign_report import print_table
from coterie.cli.campaign_text import first_names
from coterie.cli.group_remarks import in_bursts, out_of_order, remark_lines, too_small

_MOST_LISTED = 60  # items that have a line each in the table of letters
_WIDE = 5  # so many columns of values have a column each in it
_NEARNESS = ("known", "gaussian", "counts", "bounded")  # noises under which items are proven to be near each other
_MOST_PROPOSED = 12  # numbers of a measurement for which a resolution is proposed


def print_differences(found: dict[str, Any], command: Sequence[str], noise: str | None) -> None:
    """Print what `coterie.tables.differences.differing_items` gave: remarks, letters, what to ask for next.

    `command`: how the table was read, to which the options for groups are added; `noise`: as it was stated.
    """
    console = Console()
    refuted = too_small(found) or in_bursts(found) or out_of_order(found)
    lines = [*remark_lines(found), *([] if refuted else _difference_lines(found))]
    for line in lines:
        console.print(line, highlight=False, markup=False)
    if not refuted:
        _print_letters(found)
    for line in _next_lines(found, shlex.join(command), noise, refuted):
        console.print(line, highlight=False, markup=False, soft_wrap=line.startswith("  "))


def _difference_lines(found: dict[str, Any]) -> list[str]:
    pairs, some = found["pairs"], found["at_least"]
    if not found["enough"]:
        most = max(found["counts"])
        return [
            f"With {most} measurement{'' if most == 1 else 's'} no two of {found['n_arms']} items can be proven to "
            "differ whatever the noise and the number of groups: it takes more measurements, or something that you "
            "know about the noise (--noise gaussian, if it is), or about the groups:"
        ]
    if not pairs["apart"]:
        return [
            f"No two of the {found['n_arms']} items are proven to differ: there may be no groups at all, or too few "
            "measurements to show them."
        ]
    if len(pairs["apart"]) == pairs["of"]:
        return [
            f"All {found['n_arms']} items are proven to differ from each other (wrong with probability at most "
            f"{found['delta']:g}): each is a group of its own, unless small differences do not matter."
        ]
    wrong = f"wrong with probability at most {found['delta']:g}"
    return [
        f"{len(pairs['apart']):,} of {pairs['of']:,} pairs of items are proven to differ ({wrong}, whatever the number "
        "of groups).",
        f"So there are at least {len(some)} groups: {first_names(some)} differ pairwise. That items are alike is not "
        "proven by this.",
    ]


def _print_letters(found: dict[str, Any]) -> None:
    names, its, columns = found["names"], found["pairs"]["letters"], found["read"]["values"]
    if len(names) > _MOST_LISTED:
        text = f"Letters of the {len(names)} items (those that share one are not proven different): --json."
        Console().print(text, highlight=False, markup=False)
        return
    shown = columns if len(columns) <= _WIDE else []
    order = sorted(range(len(names)), key=lambda arm: its[arm])
    rows = [
        [names[arm], its[arm], *(f"{value:.4g}" for value in found["means"][arm][: len(shown)]), found["counts"][arm]]
        for arm in order
    ]
    title = "items that share a letter are not proven different"
    print_table(["item", "letters", *(f"mean {column}" for column in shown), "measured"], rows, title)


def _next_lines(found: dict[str, Any], command: str, noise: str | None, refuted: bool) -> list[str]:
    """How groups are asked for: by their number, or by the differences that matter."""
    stated = "" if noise is None else f" --noise {shlex.quote(noise)}"
    lines = []
    k = max(2, len(found["at_least"]))
    if k < found["n_arms"]:
        lead = "" if refuted else ", or more"
        lines += [
            f"For groups, say how many there are, with --clusters, if you know it ({k}{lead}):",
            f"  {command} --clusters {k}{stated}",
        ]
    resolution = proposed_resolution(found)
    if resolution is not None:
        seen, options = resolution
        if found["noise"]["kind"] not in _NEARNESS:
            low, high = found["read"]["whole"] or (None, None)
            stated = " --noise gaussian" if low is None else f" --noise bounded:{low},{high}"
        lines += [
            f"{'or' if lines else 'For groups, say'} which differences matter, with --alike and --apart: the number of "
            f"groups is then found. Repeats vary by {seen}, so a first try is:",
            f"  {command} {options}{stated}",
        ]
    return lines


def proposed_resolution(found: dict[str, Any]) -> tuple[str, str] | None:
    """How much repeats vary, in words, and a resolution to begin with: half of that does not matter, three times it
    does; of ratings a quarter, and all of it. None where nothing varies, or no resolution goes with the noise.
    """
    spread = found["noise"]["spread"]
    if not spread or not all(spread) or found["dim"] > _MOST_PROPOSED or found["read"]["cut"] is not None:
        return None
    factors = (0.5, 3.0) if found["read"]["whole"] is None else (0.25, 1.0)  # a scale of ratings is soon at its ends
    alike, apart = (",".join(short_number(factor * each) for each in spread) for factor in factors)
    varying = ", ".join(f"{column} {each:.3g}" for column, each in zip(found["read"]["values"], spread, strict=True))
    return varying, f"--alike {alike} --apart {apart}"


def short_number(value: float) -> str:
    """Two digits of a number, without an exponent where people would write none: 520, not 5.2e+02."""
    return f"{float(f'{value:.2g}'):g}"
