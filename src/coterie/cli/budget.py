"""`coterie budget`: before anything is measured, how many measurements will be needed."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated

import typer

from coterie.cli.methods import MeasuringMethod, Register
from coterie.cli.noise_option import NoiseOption, noise_from_text
from coterie.cli.options import Delta, Json, Seed
from coterie.problem.settings import DELTA, METHOD


def budget(
    items: Annotated[int, typer.Option("--items", "-a", help="How many items there are.")],
    clusters: Annotated[int, typer.Option("--clusters", "-k", help="How many groups.")],
    gap: Annotated[
        float,
        typer.Option(
            "--gap", help="How far apart neighbouring groups are; in standard deviations, unless --noise is a number."
        ),
    ],
    dim: Annotated[int, typer.Option("--dim", help="How many numbers a measurement has.")] = 1,
    noise: NoiseOption = None,
    delta: Delta = DELTA,
    method: MeasuringMethod = METHOD,
    register: Register = None,
    measurements: Annotated[
        int | None,
        typer.Option(
            "--measurements", "-n", help="Also find the smallest gap for which this many measurements are enough."
        ),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", help="Simulated runs for each gap that is tried.")] = 40,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Plan a campaign: how many measurements it will need, and how close groups may lie that a number can tell apart.

    Runs are simulated, with groups of equal sizes on a line. It is a plan, not a promise.
    """
    from coterie.cli.campaign import print_json
    from coterie.simulate.budgets import plan_budget

    try:
        found = plan_budget(
            items, clusters, dim, gap, noise=noise_from_text(noise, dim), delta=delta, method=method,
            budget=measurements, runs=runs, seed=seed,
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo("coterie: stopped; nothing is kept. Fewer runs are done sooner: --runs", err=True)
        raise typer.Exit(130) from None
    if as_json:
        plain = asdict(found) | {"words": found.words}
        print_json({key: None if value == math.inf else value for key, value in plain.items()})
    else:
        typer.echo(found.words)
