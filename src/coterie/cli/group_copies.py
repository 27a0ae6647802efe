"""Rows that are copies of others: `--copies`, and the question on a terminal where it is left out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from coterie.tables.pool import Pool

Copies = Annotated[
    str | None,
    typer.Option(
        "--copies",
        metavar="drop|keep",
        help="If more rows are equal than chance explains: drop counts each measurement once, keep takes every row for "
        "a measurement of its own.",
        show_default="asks",
    ),
]


def read_or_ask(
    file: Path,
    values: list[str] | None,
    items: str | None,
    wide: bool | str,
    leave_out_holes: bool,
    sheet: str | None,
    copies: str | None,
) -> Pool:
    """`coterie.tables.pool.read_pool`; on a terminal, copies that nothing was said about are asked about."""
    from coterie.tables.errors import TableError
    from coterie.tables.pool import read_pool
    from coterie.tables.repeated_rows import COPIES

    try:
        return read_pool(file, values, items, wide, leave_out_holes, sheet, copies)
    except TableError as error:
        if error.field != "copies" or copies is not None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        typer.echo(f"{error.message}.", err=True)
    said = ""
    while said not in COPIES:
        said = typer.prompt("drop or keep", err=True)
    return read_pool(file, values, items, wide, leave_out_holes, sheet, said)
