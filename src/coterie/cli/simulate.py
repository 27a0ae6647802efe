"""`coterie simulate`: many runs of a method on an instance whose groups are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from coterie.cli.instances import (
    RESCALED,
    CentersFile,
    Dataset,
    Dim,
    InstanceFile,
    LabelsFile,
    Rescale,
    chosen_instance,
    shape_of,
)
from coterie.cli.methods import Register, SimulatedMethod
from coterie.cli.noise_option import noise_from_text
from coterie.cli.options import DEFAULT_THRESHOLD, DistanceRatio, Json, Scheduler, Seed, Threshold, Workers
from coterie.cli.question_options import Alike, Apart, Claim, Groups, Norm, asked_for
from coterie.problem.question import CLAIMS, GROUPS, NORMS
from coterie.problem.settings import DELTA, METHOD

if TYPE_CHECKING:
    from coterie.problem.instance import Instance
    from coterie.simulate.trials import Trials

_HARDNESS = 2.0  # D* of the paper's experiments on data sets (section_exp)


def simulate(
    dataset: Dataset = None,
    instance: InstanceFile = None,
    labels: LabelsFile = None,
    centers: CentersFile = None,
    dim: Dim = 50,
    rescale: Rescale = None,
    method: SimulatedMethod = METHOD,
    register: Register = None,
    delta: Annotated[
        list[float] | None,
        typer.Option("--delta", "-d", help="Error probability; may be given several times.", show_default=f"{DELTA:g}"),
    ] = None,
    threshold: Annotated[
        Threshold,
        typer.Option(
            "--threshold",
            help="When to stop. proven: with a guarantee; heuristic: earlier, as in the paper's experiments.",
        ),
    ] = DEFAULT_THRESHOLD,
    trials: Annotated[int, typer.Option("--trials", "-n", help="How many independent runs.")] = 256,
    seed: Seed = 0,
    workers: Workers = None,
    scheduler: Scheduler = None,
    max_pulls: Annotated[
        int | None,
        typer.Option("--max-pulls", help="Give a run up after this many measurements.", show_default="never"),
    ] = None,
    distance_ratio: DistanceRatio = None,
    noise: Annotated[
        str,
        typer.Option(
            "--noise", help="What the method may assume: a known standard deviation, any, gaussian, … as in group."
        ),
    ] = "1",
    world: Annotated[
        str | None,
        typer.Option(
            "--world",
            help="What the results are really like: t3, lognormal, exponential, contaminated:SHARE,SD, normal:SD, "
            "scaled:S0,S1,… (one for each arm), correlated:R; ratings (the means lie between 1 and 5), clicks:TRIALS "
            "(the means are rates).",
            show_default="normal:1",
        ),
    ] = None,
    alike: Alike = None,
    apart: Apart = None,
    norm: Norm = NORMS[0],
    claim: Claim = CLAIMS[0],
    groups: Groups = GROUPS[0],
    as_json: Json = False,
) -> None:
    """Run a method many times on an instance whose groups are known, and count its measurements and its errors.

    iris, yeast and mnist are rescaled to D* = 2 as in the paper, unless --rescale says otherwise. A method that needs a
    distance ratio gets that of the instance, unless --distance-ratio says otherwise.
    """
    from coterie.methods import method_named
    from coterie.simulate.trials import simulate as run_trials

    needs = method_named(method).needs
    deltas = tuple(delta) if delta else (DELTA,)
    if rescale is None and dataset in RESCALED:
        rescale = _HARDNESS
    known = chosen_instance(dataset, instance, labels, centers, dim, rescale)
    if "distance_ratio" in needs and distance_ratio is None:
        from coterie.paper.datasets import distance_ratio as exact_ratio

        distance_ratio = exact_ratio(known)
    clusters = known.n_clusters if alike is None and apart is None else None
    asked = asked_for(clusters, alike, apart, norm, claim, groups, known.dim)
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
            noise=noise_from_text(noise, known.dim),
            world=world,
            resolution=asked["resolution"],
            groups=groups,
        )
    except KeyboardInterrupt:
        typer.echo(
            "coterie: stopped; trials that were finished are not kept. Fewer are done sooner: --trials, --max-pulls",
            err=True,
        )
        raise typer.Exit(130) from None
    resolution = asked["resolution"]
    exact = resolution is None and groups == GROUPS[0]
    rows = _rows(known, runs, deltas, exact)
    if as_json:
        question = {} if exact else {"groups": groups} if resolution is None else resolution.to_json()
        _print_json(dataset, known, runs, trials, seed, rows, noise, world, question)
    else:
        plain = noise == "1" and world is None
        results = "" if plain else f"; noise assumed: {noise}; world: {world or 'normal:1'}"
        if not exact:
            results += f"; asked for: {'single linkage' if resolution is None else resolution.words}"
        _print_table(known, runs, trials, seed, rows, results)


def _rows(known: Instance, runs: Trials, deltas: tuple[float, ...], exact: bool) -> list[dict[str, Any]]:
    """What the runs needed, a row for each δ; no mean where some were given up.

    The lower bound is that of the instance's groups of equal items: there is none for other questions.
    """
    from coterie.theory.hardness import lower_bound

    means, deviations, wrong = runs.mean(), runs.std(), runs.errors()
    given_up = (runs.stopping_times < 0).sum(axis=0)
    return [
        {
            "delta": value,
            "mean_pulls": None if given_up[i] else float(means[i]),
            "std_pulls": None if given_up[i] else float(deviations[i]),
            "wrong": int(wrong[i]),
            "given_up": int(given_up[i]),
            "lower_bound": lower_bound(known, value) if exact else None,
        }
        for i, value in enumerate(deltas)
    ]


def _print_json(
    dataset: str | None,
    known: Instance,
    runs: Trials,
    trials: int,
    seed: int,
    rows: list[dict[str, Any]],
    noise: str,
    world: str | None,
    question: dict[str, Any],
) -> None:
    from coterie.theory.hardness import hardness

    summary = {
        "dataset": dataset,
        **shape_of(known),
        "hardness": hardness(known),
        "method": runs.method,
        "threshold": runs.threshold,
        "trials": trials,
        "seed": seed,
        "noise": noise,
        "world": world or "normal:1",
        **question,
        "results": rows,
    }
    typer.echo(json.dumps(summary, indent=2))


def _print_table(
    known: Instance, runs: Trials, trials: int, seed: int, rows: list[dict[str, Any]], results: str
) -> None:
    from coterie.theory.hardness import hardness

    table = Table(
        title=f"{runs.method}, {runs.threshold} threshold, {trials} trials, seed {seed}",
        caption=f"M = {known.n_arms}, K = {known.n_clusters}, d = {known.dim}, D* = {hardness(known):.6g}{results}",
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
            "–" if row["lower_bound"] is None else f"{row['lower_bound']:.1f}",
        )
    Console().print(table)
