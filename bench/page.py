"""Tables of kept results on pages of the documentation: `python -m bench.page` writes them between marks.

A place on the page is `<!-- bench: scan -->`, the tables, `<!-- end of bench: scan -->`; where nothing is kept, it is
empty. A test compares the page with the kept files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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
            "toofew", "shape", "linkage", "costs", "tables", "speed", "growth", "engine", "numerics", "pace", "replay",
            "server", "million", "workers", "draws", "network",
        )
    },
}  # fmt: skip
"""For each place its part, and which of that part's tables are shown."""

PAGES_OF_ONE: dict[str, Path] = {
    "classic": ROOT / "docs" / "howto" / "from-tukey.md",
    "resolution": ROOT / "docs" / "howto" / "resolution.md",
    "features": ROOT / "docs" / "FEATURES.md",
    "deadline": ROOT / "docs" / "DEADLINE.md",
}
"""Parts whose tables are on a page about the matter itself."""

_PLACE = re.compile(r"(<!-- bench: (\w+) -->\n)(.*?)(<!-- end of bench: \2 -->\n)", re.DOTALL)


def markdown(table: Table, rows: list[Row]) -> str:
    """A table as Markdown, with spaces in large numbers, as everywhere on the page."""
    lines = [
        [column.heading.replace("\n", " ") for column in table.columns],
        ["---" if column.left else "---:" for column in table.columns],
    ]
    for row in rows:
        cells = [column.cell(row) for column in table.columns]
        lines.append(
            [cell if column.left else _spaced(cell) for column, cell in zip(table.columns, cells, strict=True)]
        )
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _spaced(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", " ", text)


def tables(place: str, folder: Path = RESULTS) -> str:
    """The tables of a place on the page of what was measured."""
    return _tables(*PLACES[place], folder)


def own_tables(place: str, folder: Path = RESULTS) -> str:
    """All tables of a part, for the page about its matter."""
    return _tables(place, ALL, folder)


def _tables(name: str, which: str, folder: Path) -> str:
    """The tables of a part, each with its title; nothing if they were not kept."""
    content = kept(name, folder)
    if content is None:
        return ""
    part = part_named(name)
    found = part.tables(content["rows"])
    shown = [(table, rows) for table, rows in found if which == ALL or (which == FIRST) == (table.title == part.title)]
    return "".join(f"{_escaped(table.title)}\n\n{markdown(table, rows)}\n" for table, rows in shown)


def _escaped(title: str) -> str:
    return title.replace("\n", " ").replace("*", "\\*")


def filled(page: str, folder: Path = RESULTS, of: Callable[[str, Path], str] = tables) -> str:
    """The page with every place filled from the kept results: `of` gives the tables of a place."""
    return _PLACE.sub(lambda found: found[1] + of(found[2], folder) + found[4], page)


def places(page: str) -> list[str]:
    """The places that a page has, in order."""
    return [found[2] for found in _PLACE.finditer(page)]


FILLED: tuple[tuple[Path, Callable[[str, Path], str]], ...] = (
    (PAGE, tables),
    (noise_page.PAGE, noise_page.tables),
    *((path, own_tables) for path in PAGES_OF_ONE.values()),
)
"""Every page with tables of kept results, and who writes them."""


if __name__ == "__main__":
    for path, of in FILLED:
        text = path.read_text(encoding="utf-8")
        path.write_text(filled(text, of=of), encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {', '.join(places(text))}")
