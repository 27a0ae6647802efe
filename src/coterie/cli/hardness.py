"""`coterie hardness`: how hard an instance is, before anything is run."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from coterie.cli.instances import (
    CentersFile,
    Dataset,
    Dim,
    InstanceFile,
    LabelsFile,
    Rescale,
    chosen_instance,
    shape_of,
)
from coterie.cli.options import Json
from coterie.problem.settings import DELTA


def hardness(
    dataset: Dataset = None,
    instance: InstanceFile = None,
    labels: LabelsFile = None,
    centers: CentersFile = None,
    dim: Dim = 50,
    rescale: Rescale = None,
    delta: Annotated[
        float, typer.Option("--delta", "-d", help="The error probability, for the lower bound on the measurements.")
    ] = DELTA,
    as_json: Json = False,
) -> None:
    """Show how hard an instance is (D*), how measurements are best shared, and how many any method needs on average.

    The centers are taken as they are, unless --rescale is given.
    """
    known = chosen_instance(dataset, instance, labels, centers, dim, rescale)

    from coterie.theory.hardness import allocation, lower_bound
    from coterie.theory.hardness import hardness as hardness_of

    weights = allocation(known)
    shares = [float(weights[known.labels == k].sum()) for k in range(known.n_clusters)]
    bound, value = lower_bound(known, delta), hardness_of(known)
    if as_json:
        answer = {
            "dataset": dataset,
            **shape_of(known),
            "hardness": value,
            "delta": delta,
            "lower_bound": bound,
            "cluster_shares": shares,
        }
        typer.echo(json.dumps(answer, indent=2))
        return
    table = Table(
        title=f"D* = {value:.6g}",
        caption=f"No method with error probability {delta:g} needs fewer than {bound:.1f} pulls on average.",
    )
    for heading in ("cluster", "arms", "share of the pulls", "share of each arm (λ*)"):
        table.add_column(heading, justify="right")
    for k, share in enumerate(shares):
        size = int(known.sizes[k])
        table.add_row(str(k), str(size), f"{share:.5f}", f"{share / size:.6f}")
    Console().print(table)
