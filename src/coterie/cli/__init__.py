"""The commands. Each one reads its arguments, calls one function of the library and prints the answer.

What goes wrong because of the input is one line on standard error and exit code 2; a certificate that does not hold is
exit code 1; Ctrl-C is exit code 130.
"""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from coterie import __version__
from coterie.cli.bench import bench
from coterie.cli.campaign import campaign_app
from coterie.cli.group import group
from coterie.cli.instances import instance_file, instance_tables
from coterie.cli.reproduce import reproduce
from coterie.cli.serve import serve

if TYPE_CHECKING:
    from coterie.problem.instance import Instance

# The paper rescales these to D* = 2 (section_exp); the synthetic instances are used as they are.
RESCALED = ("iris", "yeast", "mnist")
SYNTHETIC = ("easy", "moderate", "challenging")


class Threshold(StrEnum):
    """The stopping thresholds: β, with the guarantee, and β̃, without."""

    proven = "proven"
    heuristic = "heuristic"


class _OneLineErrors(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ValueError, TypeError, ImportError, OSError) as error:
            message = " ".join(_said(error).split()) or type(error).__name__
            typer.echo(f"coterie: {message}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("coterie: stopped", err=True)
            raise typer.Exit(130) from None


def _said(error: Exception) -> str:
    """What an error says; the system's own ones say what was looked for, without their numbers."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)


app = typer.Typer(
    cls=_OneLineErrors,
    name="coterie",
    help="Which of these items are alike, when every look at an item costs something and is noisy?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(group)
app.command()(reproduce)
app.command()(bench)
app.add_typer(campaign_app, name="campaign")
app.command()(serve)

_DATASET_HELP = "iris, yeast, mnist, easy, moderate or challenging."
Dataset = Annotated[str | None, typer.Argument(metavar="DATASET", help=_DATASET_HELP, show_default=False)]
InstanceFile = Annotated[
    Path | None,
    typer.Option("--instance", help='A JSON file: {"labels": [0, 0, 1], "centers": [[0.0], [3.0]]}.'),
]
LabelsFile = Annotated[Path | None, typer.Option("--labels", help="The cluster of each arm, from 0 (csv or npy).")]
CentersFile = Annotated[Path | None, typer.Option("--centers", help="One center a row (csv or npy).")]
Dim = Annotated[int, typer.Option("--dim", help="Principal components kept, for mnist.")]
Rescale = Annotated[
    float | None,
    typer.Option("--rescale", help="Rescale the centers so that D* is this number.", show_default=False),
]
Method = Annotated[str, typer.Option("--method", "-m", help="croc, boc, boc-linear, uniform or oracle.")]
Ratio = Annotated[
    float | None,
    typer.Option("--distance-ratio", help="r of boc-linear, in (0, 1]; default: that of the instance."),
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
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coterie {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Clustering with bandit feedback."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the picture.")] = Path("demo.png"),
    seed: Annotated[int, typer.Option("--seed", help="The seed of the noise.")] = 0,
    delta: Annotated[float, typer.Option("--delta", help="The error probability that is allowed.")] = 0.05,
    method: Method = "croc",
    threshold: Annotated[
        Threshold,
        typer.Option("--threshold", help="heuristic: the paper's experiments; proven: with the guarantee."),
    ] = Threshold.heuristic,
    seconds: Annotated[
        float,
        typer.Option("--seconds", help="How long the live view takes in a terminal; 0: as fast as it can."),
    ] = 4.0,
) -> None:
    """Group Iris's 150 flowers live, one noisy measurement at a time, and write a picture of the run."""
    from coterie.demo import run_demo

    run_demo(out, seed=seed, delta=delta, method=method, threshold=threshold.value, seconds=seconds)


@app.command()
def simulate(
    dataset: Dataset = None,
    instance: InstanceFile = None,
    labels: LabelsFile = None,
    centers: CentersFile = None,
    dim: Dim = 50,
    rescale: Rescale = None,
    method: Method = "boc",
    delta: Annotated[
        list[float] | None,
        typer.Option("--delta", "-d", help="Error probability; may be given several times.", show_default="0.1 0.01"),
    ] = None,
    threshold: Annotated[
        Threshold,
        typer.Option("--threshold", help="proven: with the guarantee; heuristic: the paper's, without."),
    ] = Threshold.heuristic,
    trials: Annotated[int, typer.Option("--trials", "-n", help="Independent runs.")] = 256,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option("--workers", "-w", help="Threads; the numbers do not depend on it.", show_default="all"),
    ] = None,
    scheduler: Scheduler = None,
    max_pulls: Annotated[
        int | None,
        typer.Option("--max-pulls", help="Give a run up after so many measurements.", show_default="never"),
    ] = None,
    distance_ratio: Ratio = None,
    as_json: Json = False,
) -> None:
    """Run a method many times on an instance whose groups are known, and count its pulls and its errors.

    iris, yeast and mnist are rescaled to D* = 2 as in the paper, unless --rescale says otherwise.
    """
    deltas = tuple(delta) if delta else (0.1, 0.01)
    if rescale is None and dataset in RESCALED:
        rescale = 2.0
    known = _load(dataset, instance, labels, centers, dim, rescale)
    if method == "boc-linear" and distance_ratio is None:
        from coterie.paper.datasets import distance_ratio as exact_ratio

        distance_ratio = exact_ratio(known)

    from coterie.simulate.trials import simulate as run_trials
    from coterie.theory.hardness import hardness as hardness_of
    from coterie.theory.hardness import lower_bound

    try:
        runs = run_trials(
            known,
            method,
            deltas=deltas,
            threshold=threshold.value,
            trials=trials,
            seed=seed,
            workers=workers,
            scheduler=scheduler,
            max_pulls=max_pulls,
            distance_ratio=distance_ratio,
        )
    except KeyboardInterrupt:
        typer.echo(
            "coterie: stopped; trials that were finished are not kept. Fewer are done sooner: --trials, --max-pulls",
            err=True,
        )
        raise typer.Exit(130) from None
    means, deviations, wrong = runs.mean(), runs.std(), runs.errors()
    given_up = (runs.stopping_times < 0).sum(axis=0)
    rows = [
        {
            "delta": value,
            "mean_pulls": None if given_up[i] else float(means[i]),
            "std_pulls": None if given_up[i] else float(deviations[i]),
            "wrong": int(wrong[i]),
            "given_up": int(given_up[i]),
            "lower_bound": lower_bound(known, value),
        }
        for i, value in enumerate(deltas)
    ]
    if as_json:
        summary = {
            "dataset": dataset,
            **_shape(known),
            "hardness": hardness_of(known),
            "method": method,
            "threshold": runs.threshold,
            "trials": trials,
            "seed": seed,
            "results": rows,
        }
        typer.echo(json.dumps(summary, indent=2))
        return
    table = Table(
        title=f"{method}, {runs.threshold} threshold, {trials} trials, seed {seed}",
        caption=f"M = {known.n_arms}, K = {known.n_clusters}, d = {known.dim}, D* = {hardness_of(known):.6g}",
    )
    for heading in ("δ", "pulls: mean", "std", "wrong", "given up", "lower bound"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row['delta']:g}",
            "–" if row["mean_pulls"] is None else f"{row['mean_pulls']:.1f}",
            "–" if row["std_pulls"] is None else f"{row['std_pulls']:.1f}",
            f"{row['wrong']} of {trials}",
            f"{row['given_up']} of {trials}",
            f"{row['lower_bound']:.1f}",
        )
    Console().print(table)


@app.command()
def hardness(
    dataset: Dataset = None,
    instance: InstanceFile = None,
    labels: LabelsFile = None,
    centers: CentersFile = None,
    dim: Dim = 50,
    rescale: Rescale = None,
    delta: Annotated[float, typer.Option("--delta", "-d", help="For the lower bound on the pulls.")] = 0.05,
    as_json: Json = False,
) -> None:
    """How hard an instance is (D*), where the pulls should go, and how many any method needs on average.

    The centers are taken as they are, unless --rescale is given.
    """
    known = _load(dataset, instance, labels, centers, dim, rescale)

    from coterie.theory.hardness import allocation, lower_bound
    from coterie.theory.hardness import hardness as hardness_of

    weights = allocation(known)
    shares = [float(weights[known.labels == k].sum()) for k in range(known.n_clusters)]
    bound, value = lower_bound(known, delta), hardness_of(known)
    if as_json:
        answer = {
            "dataset": dataset,
            **_shape(known),
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


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="The certificate, a JSON file.")],
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The measurement log, a CSV file.")],
) -> None:
    """Recompute a certificate from the measurement log alone; exit code 1 and what is wrong if it does not hold."""
    from coterie.certificate import read_certificate
    from coterie.certificate import verify as recompute

    verdict = recompute(certificate, log)
    if not verdict:
        if _is_json(log) and not _is_json(certificate):
            raise ValueError(f"the certificate comes first, then the log: coterie verify {log} {certificate}")
        typer.echo(f"not valid: {certificate} does not follow from {log}")
        for problem in verdict.problems:
            typer.echo(f"- {problem}")
        _warn(verdict.warnings)
        raise typer.Exit(1)
    claim = read_certificate(certificate)
    typer.echo(
        f"valid: {claim['n_arms']} arms in {claim['n_clusters']} groups after {claim['t']} measurements, wrong with "
        f"probability at most {claim['delta']:g} ({verdict.tests} tests recomputed)"
    )
    _warn(verdict.warnings)


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {warning}")


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _shape(known: Instance) -> dict[str, int]:
    return {"n_arms": known.n_arms, "n_clusters": known.n_clusters, "dim": known.dim}


def _load(
    dataset: str | None,
    instance: Path | None,
    labels: Path | None,
    centers: Path | None,
    dim: int,
    rescale: float | None,
) -> Instance:
    """The one instance that the arguments name."""
    if (labels is None) != (centers is None):
        raise ValueError("--labels and --centers go together: give both")
    if sum(source is not None for source in (dataset, instance, labels)) > 1:
        raise ValueError("name one instance only: a DATASET, --instance FILE, or --labels and --centers")
    if dataset is not None:
        known = _dataset(dataset, dim)
    elif instance is not None:
        known = instance_file(instance)
    elif labels is not None and centers is not None:
        known = instance_tables(labels, centers)
    else:
        raise ValueError("name an instance: a DATASET, --instance FILE, or --labels FILE with --centers FILE")
    return known if rescale is None else known.with_hardness(rescale)


def _dataset(name: str, dim: int) -> Instance:
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


def main() -> None:
    """The `coterie` command."""
    app()
