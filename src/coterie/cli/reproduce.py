"""`coterie reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

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
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option("--workers", "-w", help="Threads; the numbers do not depend on it.", show_default="all"),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="Run on this Dask cluster.", show_default=False),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the runs that an earlier call left in the folder.")
    ] = False,
) -> None:
    """Compute the paper's tables and figures again, and write them beside the printed numbers.

    Finished trials are kept as they finish: after Ctrl-C or a crash, --resume goes on and gives the same numbers.
    """
    from coterie.paper.reproduce import reproduce as run

    try:
        if scheduler is None:
            _load_engines()
        found = run(part, trials=trials, out=out, seed=seed, workers=workers, scheduler=scheduler, resume=resume)
    except KeyboardInterrupt:
        typer.echo(f"coterie: stopped; what is done is in {out}, go on with --resume", err=True)
        raise typer.Exit(130) from None
    table = Table("part", "", "what should hold", "what was found", title=f"{found.seconds / 60:.1f} minutes")
    for check in found.checks:
        table.add_row(check.part, "[green]✓" if check.holds else "[red]✗", check.claim, check.detail)
    Console().print(table)
    typer.echo(f"report: {found.report}")


def _load_engines() -> None:
    """Compile, if that was not done before, and say so: behind the bar of the first cell nobody sees it."""
    from coterie.methods.table import METHODS, PACKAGED
    from coterie.problem.instance import Instance
    from coterie.simulate.plan import plan_for

    with Console(stderr=True).status("loading the engine; the first time it is compiled …"):
        for method in (name for name in PACKAGED if not METHODS[name].needs):
            plan_for(Instance([0, 0, 1], [[0.0], [9.0]]), method, 0.5, "proven", 1).load()
