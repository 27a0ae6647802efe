"""`coterie reproduce` and `coterie bench`: the paper's tables again, and the benchmark of a clone."""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from coterie.cli.options import Json, Seed, Workers
from coterie.cli.printing import print_json

Part = Annotated[str, typer.Argument(metavar="PART", help="table1, table2, table3, figure3 or all.")]
TrialCount = Annotated[
    int | None,
    typer.Option(
        "--trials",
        "-n",
        help="Independent runs for each cell; only a few where one run takes minutes.",
        show_default="256, as in the paper; 32 for MNIST as described",
    ),
]


def reproduce(
    part: Part = "all",
    trials: TrialCount = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for tables, pictures and trials.")] = Path(
        "reproduction"
    ),
    seed: Seed = 0,
    workers: Workers = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="Run on this Dask cluster.", show_default=False),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the runs that an earlier call left in the folder.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compute the paper's tables and figures again, and write them beside the printed numbers.

    Finished trials are kept as they finish: after Ctrl-C or a crash, --resume goes on and gives the same numbers.
    """
    from coterie.paper.reproduce import reproduce as run

    try:
        reproduction = run(part, trials=trials, out=out, seed=seed, workers=workers, scheduler=scheduler, resume=resume)
    except KeyboardInterrupt:
        typer.echo(f"coterie: stopped; what is done is in {out}, go on with --resume", err=True)
        raise typer.Exit(130) from None
    if as_json:
        checks = [asdict(check) for check in reproduction.checks]
        print_json({"checks": checks, "seconds": reproduction.seconds, "report": str(reproduction.report)})
        return
    table = Table("part", "", "what should hold", "what was found", title=f"{reproduction.seconds / 60:.1f} minutes")
    for check in reproduction.checks:
        table.add_row(check.part, "[green]✓" if check.holds else "[red]✗", check.claim, check.detail)
    Console().print(table)
    typer.echo(f"report: {reproduction.report}")


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
    as_json: Annotated[bool, typer.Option("--json", help="With --show: print JSON instead of tables.")] = False,
) -> None:
    """Compare speed, memory and measurements needed with those of other methods; the tables are kept as JSON.

    Needs a clone of the repository. Each part is kept as soon as it is measured; Ctrl-C loses only the one under way.
    """
    if as_json and not show:
        raise ValueError("--json prints results that were kept: give --show too; a run keeps them as JSON")
    sys.path.insert(0, str(_clone()))
    running = importlib.import_module("bench.running")
    if as_json:
        print_json(running.shown(parts or [], quick, out))
        return
    code = running.run(parts or [], quick, out, show, trials)
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
