"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from coterie.problem.settings import THRESHOLD


class Threshold(StrEnum):
    """The stopping thresholds: β, with the guarantee, and β̃, without."""

    proven = "proven"
    heuristic = "heuristic"


DEFAULT_THRESHOLD = Threshold(THRESHOLD)


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Delta = Annotated[float, typer.Option("--delta", "-d", help="The error probability that is allowed.")]
StoppingThreshold = Annotated[
    Threshold,
    typer.Option(
        "--threshold",
        help="When to stop, for methods with a choice. proven: with a guarantee; heuristic: earlier, without a proof.",
    ),
]
DistanceRatio = Annotated[
    float | None,
    typer.Option(
        "--distance-ratio",
        help="At least how large the smallest distance of two groups is, as a share of the largest; for some methods.",
        show_default=False,
    ),
]
Store = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="COTERIE_STORE",
        help="The database: a SQLite file, a FOLDER/, or postgresql://user@host/database.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-w", help="Threads; the numbers do not depend on it.", show_default="all"),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the workers of this Dask scheduler, such as tcp://10.0.0.5:8786, instead of on this machine.",
        show_default=False,
    ),
]
