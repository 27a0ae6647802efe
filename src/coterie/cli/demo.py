"""`coterie demo`: a run to watch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.methods import Register, SimulatedMethod
from coterie.cli.options import Threshold
from coterie.problem.settings import DELTA, METHOD


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the picture.")] = Path("demo.png"),
    seed: Annotated[int, typer.Option("--seed", help="The seed of the noise.")] = 0,
    delta: Annotated[float, typer.Option("--delta", help="The error probability that is allowed.")] = DELTA,
    method: SimulatedMethod = METHOD,
    register: Register = None,
    threshold: Annotated[
        Threshold,
        typer.Option(
            "--threshold",
            help="When to stop. heuristic: as in the paper's experiments; proven: later, with a guarantee.",
        ),
    ] = Threshold.heuristic,
    seconds: Annotated[
        float,
        typer.Option("--seconds", help="How long the live view takes in a terminal; 0: as fast as it can."),
    ] = 4.0,
) -> None:
    """Group Iris's 150 flowers live, one noisy measurement at a time, and write a picture of the run."""
    from coterie.demo import run_demo

    run_demo(out, seed=seed, delta=delta, method=method, threshold=threshold.value, seconds=seconds)
