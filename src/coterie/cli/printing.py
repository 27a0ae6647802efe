"""What commands print for people and for programs: lines, tables, lists of names, letters, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_MOST_NAMES = 12
_MOST_LETTERED = 60  # items that have a line each in the table of letters
_LARGE_FILE = 4_000_000  # bytes from which on people wait for it
LETTERS_TITLE = "items that share a letter are not proven different"


def print_json(content: Any) -> None:
    """Print plain values as JSON."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def print_lines(lines: Sequence[str]) -> None:
    """Print sentences, folded at the width of the terminal; commands, which are indented, are never folded."""
    console = Console()
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=line.startswith("  "))


@contextmanager
def reading_bar(path: Path) -> Iterator[None]:
    """On a terminal, how far the reading of a large file is, on standard error."""
    if not (sys.stderr.isatty() and path.is_file() and path.stat().st_size >= _LARGE_FILE):
        yield
        return
    from rich.progress import Progress

    from coterie.tables.reading.files import reading_told

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"reading {escape(path.name)}", total=1.0)
        with reading_told(lambda share: bar.update(task, completed=share)):
            yield


@contextmanager
def waiting_sign(text: str, wanted: bool) -> Iterator[None]:
    """On a terminal, what is being worked on, on standard error."""
    if not (wanted and sys.stderr.isatty()):
        yield
        return
    with Console(stderr=True).status(escape(text)):
        yield


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


def first_names(names: Sequence[str], count: int | None = None) -> str:
    """The first dozen of a list of names, and how many more there are; `count`: of them all, if some are not listed."""
    more = (len(names) if count is None else count) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def number_or_dash(value: float | None) -> str:
    """A number to four digits; a dash for what is missing."""
    return "–" if value is None or value != value else f"{value:.4g}"


def plural(count: int, noun: str) -> str:
    """1 group, 2 groups."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def order_sentence(seed: int | None) -> str:
    """In which order the measurements of a table were used, and what that assumes."""
    if seed is not None:
        return (
            f"Each item's measurements were shuffled (seed {seed}): their order plays no role. How many there are must "
            "not depend on their values."
        )
    return (
        "Each item's measurements were taken in the order of the file. This assumes that their order has nothing to do "
        "with their values, as when it is the order in which they were measured."
    )


def pair_lines(
    apart: Sequence[Sequence[str]], alike: Sequence[Sequence[str]], counts: tuple[int, int], of: int
) -> list[str]:
    """How many of all pairs are known to differ and to be alike (`counts`), and the first of them, by name."""
    lines = []
    for pairs, count, words, mark in (
        (apart, counts[0], "Known to differ", "from"),
        (alike, counts[1], "Known to be alike", "and"),
    ):
        known = [f"{first} {mark} {second}" for first, second in pairs]
        if count:
            lines.append(f"{words} ({count:,} of {of:,} pairs): {first_names(known, count)}.")
        elif mark == "from":
            lines.append(f"{words}: none yet.")
    return lines


def print_letters(headings: Sequence[str], rows: Sequence[Sequence[Any]], where: str) -> None:
    """Print a line for each item, with its letters; `where` they are if the items are too many."""
    if len(rows) > _MOST_LETTERED:
        print_lines([f"Letters of the {len(rows)} items (those that share one are not proven different): {where}."])
    else:
        print_table(headings, rows, LETTERS_TITLE)
