"""Tables of kept results on a page of the documentation: `python -m bench.page` writes them between marks.

A place on the page is `<!-- bench: scan -->`, the tables, `<!-- end of bench: scan -->`; where nothing is kept, it is
empty. A test compares the page with the kept files.
"""

from __future__ import annotations

import re
from pathlib import Path

from bench import noise_page
from bench.part import RESULTS, ROOT, Row, Table, part_named
from bench.running import kept

PAGE = ROOT / "docs" / "MEASURED.md"
ALL, FIRST, REST = "all", "first", "rest"
PLACES: dict[str, tuple[str, str]] = {
    "needed": ("needed", FIRST),
    "families": ("needed", REST),
    **{
        name: (name, ALL)
        for name in (
            "ablation", "scan", "forecast", "hands", "foreign", "crews", "asymptotic", "shortlists", "conservatism",
            "guarantees", "toofew", "shape", "linkage", "costs", "tables", "speed", "growth", "engine", "numerics",
            "replay", "server", "service", "million", "workers", "draws", "network", "classic", "resolution",
            "blocks", "features", "evenly", "deadline", "intervals",
        )
    },
}  # fmt: skip
"""For each place its part, and which of that part's tables are shown."""

QUANTILES = ("median", "95 %", "largest", "10 %", "90 %")
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "draws": ("each of the ten means",),
    **dict.fromkeys(("needed", "families", "classic", "linkage", "shape", "shortlists"), QUANTILES),
}
"""Columns that a place leaves out; `coterie bench --show PART` prints them."""

_PLACE = re.compile(r"(<!-- bench: (\w+) -->\n)(.*?)(<!-- end of bench: \2 -->\n)", re.DOTALL)


def markdown(table: Table, rows: list[Row], left_out: tuple[str, ...] = ()) -> str:
    """A table as Markdown, with spaces in large numbers, as everywhere on the page."""
    columns = [column for column in table.columns if column.heading not in left_out]
    lines = [
        [column.heading.replace("\n", " ") for column in columns],
        ["---" if column.left else "---:" for column in columns],
    ]
    for row in rows:
        cells = [column.cell(row) for column in columns]
        lines.append([cell if column.left else _spaced(cell) for column, cell in zip(columns, cells, strict=True)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _spaced(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", " ", text)


def tables(place: str, folder: Path = RESULTS) -> str:
    """The tables of a place on the page of what was measured."""
    if place in noise_page.PLACES:
        return noise_page.tables(place, folder)
    name, which = PLACES[place]
    content = kept(name, folder)
    if content is None:
        return ""
    part = part_named(name)
    found = part.tables(content["rows"])
    shown = [(table, rows) for table, rows in found if which == ALL or (which == FIRST) == (table.title == part.title)]
    left_out = LEFT_OUT.get(place, ())
    return "".join(f"{_escaped(table.title)}\n\n{markdown(table, rows, left_out)}\n" for table, rows in shown)


def _escaped(title: str) -> str:
    return title.replace("\n", " ").replace("*", "\\*")


def filled(page: str, folder: Path = RESULTS) -> str:
    """The page with every place filled from the kept results."""
    return _PLACE.sub(lambda found: found[1] + tables(found[2], folder) + found[4], page)


def places(page: str) -> list[str]:
    """The places that a page has, in order."""
    return [found[2] for found in _PLACE.finditer(page)]


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written anew")
