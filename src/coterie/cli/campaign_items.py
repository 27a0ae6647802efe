"""The items of a new campaign on the command line: named, or in a file, with what measuring each costs."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.campaign_input import split_commas
from coterie.tables.item_lists import COST_COLUMNS, read_items

NamesFile = Annotated[
    Path | None,
    typer.Option(
        "--names-file", help="The same: a text file with one on each line, or a CSV or Excel file with a column name."
    ),
]
Sheet = Annotated[str | None, typer.Option("--sheet", help="The sheet of an Excel file.", show_default="the first one")]


def read_item_list(
    given: str | None, file: Path | None, sheet: str | None = None
) -> tuple[list[str] | None, list[float] | None]:
    """The items' names, from --names or from a file, and what each costs if the file says so; None if nothing is given.

    What there is to know about the file is said on the error stream.
    """
    if given is not None and file is not None:
        raise ValueError("give --names or --names-file, not both")
    if sheet is not None and file is None:
        raise ValueError("--sheet is of an Excel file: name it with --names-file")
    if given is not None and "," not in given and re.search(r"[;\t]", given):
        raise ValueError(f"--names are separated by commas, as a,b,c, got {given!r}")
    if file is None:
        return split_commas(given), None
    found = read_items(file.name, file.read_bytes(), sheet)
    for remark in found.remarks:
        typer.echo(f"remark: {remark}", err=True)
    return found.names, found.costs


def read_costs(given: str, names: Sequence[str] | None) -> list[float]:
    """What a measurement of each item costs: numbers as 1,1,20, or a file of them."""
    parts = _costs_in(Path(given), names) if Path(given).is_file() else split_commas(given) or []
    return [_read_cost(part, f"item {i}") for i, part in enumerate(parts)]


def _costs_in(file: Path, names: Sequence[str] | None) -> list[str]:
    """The costs of a file: one on each line, or `item,cost` in any order of the items."""
    rows = [row for row in csv.reader(file.read_text(encoding="utf-8-sig").splitlines()) if any(row)]
    if all(len(row) == 1 for row in rows):
        return [row[0].strip() for row in rows if row[0].strip().casefold() not in COST_COLUMNS]
    if names is None:
        raise ValueError(f"{file} has costs by name, and the items have no names: name them, or give one cost a line")
    by_name: dict[str, str] = {}
    for row in rows:
        name, cost = row[0].strip(), row[-1].strip()
        if cost.casefold() in COST_COLUMNS:
            continue
        if name not in names or name in by_name:
            raise ValueError(f"{file}: {'two costs for' if name in by_name else 'no item is called'} {name!r}")
        by_name[name] = cost
    missing = [name for name in names if name not in by_name]
    if missing:
        raise ValueError(
            f"{file} has no cost for {', '.join(missing[:5])}: give one for each of the {len(names)} items"
        )
    return [by_name[name] for name in names]


def _read_cost(given: str, whose: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"a cost is a positive number, got {given!r} for {whose}") from None
