"""The instance that a command is about, a data set by name or files; and `coterie hardness`: how hard it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from coterie.cli.options import Json
from coterie.cli.printing import print_json
from coterie.problem.settings import DELTA

if TYPE_CHECKING:
    from coterie.problem.instance import Instance

# The paper rescales these to D* = 2 (section_exp); the synthetic instances are used as they are.
RESCALED = ("iris", "yeast", "mnist")
SYNTHETIC = ("easy", "moderate", "challenging")
_DATASET_HELP = "iris, yeast, mnist, easy, moderate or challenging."
Dataset = Annotated[str | None, typer.Argument(metavar="DATASET", help=_DATASET_HELP, show_default=False)]
InstanceFile = Annotated[
    Path | None,
    typer.Option("--instance", help='A JSON file: {"labels": [0, 0, 1], "centers": [[0.0], [3.0]]}.'),
]
LabelsFile = Annotated[
    Path | None, typer.Option("--labels", help="The group of each item, counted from 0 (csv or npy).")
]
CentersFile = Annotated[
    Path | None, typer.Option("--centers", help="The center of each group, one on each row (csv or npy).")
]
Dim = Annotated[int, typer.Option("--dim", help="Principal components kept, for mnist.")]
Rescale = Annotated[
    float | None,
    typer.Option("--rescale", help="Rescale the centers so that D* is this number.", show_default=False),
]


def chosen_instance(
    dataset: str | None,
    instance: Path | None,
    labels: Path | None,
    centers: Path | None,
    dim: int,
    rescale: float | None,
) -> Instance:
    """The one instance that the arguments of a command name, rescaled if they say so."""
    if (labels is None) != (centers is None):
        raise ValueError("--labels and --centers go together: give both")
    if sum(source is not None for source in (dataset, instance, labels)) > 1:
        raise ValueError("name one instance only: a DATASET, --instance FILE, or --labels and --centers")
    if dataset is not None:
        known = named_dataset(dataset, dim)
    elif instance is not None:
        known = instance_from_json(instance)
    elif labels is not None and centers is not None:
        known = instance_from_tables(labels, centers)
    else:
        raise ValueError("name an instance: a DATASET, --instance FILE, or --labels FILE with --centers FILE")
    return known if rescale is None else known.with_hardness(rescale)


def named_dataset(name: str, dim: int) -> Instance:
    """A data set of the paper; `dim` principal components of mnist are kept."""
    from coterie.paper import datasets

    if name in SYNTHETIC:
        return datasets.synthetic(name)
    if name == "iris":
        return datasets.iris()
    if name == "yeast":
        return datasets.yeast()
    if name == "mnist":
        return datasets.mnist(dim)
    raise ValueError(f"unknown data set {name!r}: use {', '.join((*RESCALED, *SYNTHETIC))}")


def shape_of(known: Instance) -> dict[str, int]:
    """M, K and d, by the names that the JSON answers have."""
    return {"n_arms": known.n_arms, "n_clusters": known.n_clusters, "dim": known.dim}


def instance_from_json(path: Path) -> Instance:
    """An instance from a JSON file that holds labels and centers."""
    from coterie.problem.instance import Instance

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise ValueError(f"{path} is not a JSON file") from None
    if not isinstance(content, dict) or not {"labels", "centers"} <= content.keys():
        raise ValueError(f'{path} must hold {{"labels": [...], "centers": [[...], ...]}}')
    return Instance(content["labels"], content["centers"])


def instance_from_tables(labels: Path, centers: Path) -> Instance:
    """An instance from a file of labels and one of centers."""
    from coterie.problem.instance import Instance

    return Instance(_numbers(labels, int).ravel(), _numbers(centers, float))


def _numbers(path: Path, kind: type) -> Any:
    """A table of numbers from a .npy file, or from text with commas or blanks between the columns."""
    import numpy as np

    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    text = path.read_text(encoding="utf-8").replace(",", " ")
    if not text.strip():
        raise ValueError(f"{path} is empty")
    try:
        return np.loadtxt(text.splitlines(), dtype=kind, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path} is not a table of {kind.__name__} numbers: {error}") from None


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

    from coterie.evidence.allocation import allocation, lower_bound
    from coterie.evidence.allocation import hardness as hardness_of

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
        print_json(answer)
        return
    table = Table(
        title=f"D* = {value:.6g}",
        caption=f"No method with error probability {delta:g} needs fewer than {bound:.1f} pulls on average.",
    )
    for heading in ("group", "items", "share of the pulls", "share of each item (λ*)"):
        table.add_column(heading, justify="right")
    for k, share in enumerate(shares):
        size = int(known.sizes[k])
        table.add_row(str(k), str(size), f"{share:.5f}", f"{share / size:.6f}")
    Console().print(table)
