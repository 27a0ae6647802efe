"""`coterie bench`: the benchmark of a clone; it is not part of an installation."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer


def bench(
    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PART]...", help="What to measure, such as speed or needed.", show_default="all"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Run a little of everything, only to see that it works; the results go to build/bench."
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder for the results.", show_default="bench/results")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            "-n",
            help="Runs for each cell of a table, where the part lets you choose.",
            show_default="by part",
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Run nothing: print the results that were kept, of all parts or of these.")
    ] = False,
) -> None:
    """Compare speed, memory and measurements needed with those of other methods; the tables are kept as JSON.

    Needs a clone of the repository. Each part is kept as soon as it is measured; Ctrl-C loses only the one under way.
    """
    sys.path.insert(0, str(_clone()))
    code = importlib.import_module("bench.running").run(parts or [], quick, out, show, trials)
    if code:
        raise typer.Exit(code)


def _clone() -> Path:
    """The clone whose benchmark is run: the current folder, or the one that coterie is installed from."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (root / "bench" / "running.py").exists() and (root / "src" / "coterie").is_dir():
            return root
    raise ValueError(
        "the benchmark is not part of the installed package: clone the repository, and there run make bench, "
        'or pip install -e ".[paper,cluster,serve]" and coterie bench'
    )
