"""`coterie simulate`, `budget` and `demo`: runs on instances whose groups are known."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
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
from coterie.cli.methods import MeasuringMethod, Register, SimulatedMethod
from coterie.cli.noise import NoiseOption, noise_from_text
from coterie.cli.options import (
    DEFAULT_THRESHOLD,
    Alike,
    Apart,
    Claim,
    Delta,
    DistanceRatio,
    Groups,
    Json,
    Norm,
    Scheduler,
    Seed,
    Threshold,
    Workers,
    asked_for,
)
from coterie.cli.printing import print_json
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
            "scaled:S0,S1,… (one for each item), correlated:R; ratings (the means lie between 1 and 5), clicks:TRIALS "
            "(the means are rates).",
            show_default="normal:1",
        ),
    ] = None,
    alike: Alike = None,
    apart: Apart = None,
    norm: Norm = NORMS[0],
    claim: Claim = CLAIMS[0],
    groups: Groups = GROUPS[0],
    by_feature: Annotated[
        bool, typer.Option("--by-feature", help="Measure the numbers of an item one by one, and count those results.")
    ] = False,
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
            features=known.dim if by_feature else None,
        )
    except KeyboardInterrupt:
        typer.echo(
            "coterie: stopped; trials that were finished are not kept. Fewer are done sooner: --trials, --max-pulls",
            err=True,
        )
        raise typer.Exit(130) from None
    from coterie.evidence.allocation import hardness

    resolution = asked["resolution"]
    exact = resolution is None and groups == GROUPS[0]
    rows, value = _rows(known, runs, deltas, exact), hardness(known)
    if as_json:
        question = {} if exact else {"groups": groups} if resolution is None else resolution.to_json()
        settings = {"method": runs.method, "threshold": runs.threshold, "trials": trials, "seed": seed, "noise": noise}
        facts = {"dataset": dataset, **shape_of(known), "hardness": value, **settings, "world": world or "normal:1"}
        print_json(facts | question | {"results": rows})
        return
    title = f"{runs.method}, {runs.threshold} threshold, {trials} trials, seed {seed}"
    caption = f"M = {known.n_arms}, K = {known.n_clusters}, d = {known.dim}, D* = {value:.6g}"
    if noise != "1" or world is not None:
        caption += f"; noise assumed: {noise}; world: {world or 'normal:1'}"
    if not exact:
        caption += f"; asked for: {'single linkage' if resolution is None else resolution.words}"
    _print_table(Table(title=title, caption=caption), rows, trials)


def _rows(known: Instance, runs: Trials, deltas: tuple[float, ...], exact: bool) -> list[dict[str, Any]]:
    """What the runs needed, a row for each δ; no mean where some were given up.

    The lower bound is that of the instance's groups of equal items: there is none for other questions.
    """
    from coterie.evidence.allocation import lower_bound

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


def _print_table(table: Table, rows: list[dict[str, Any]], trials: int) -> None:
    for heading in ("δ", "pulls: mean", "std", "wrong", "given up", "lower bound"):
        table.add_column(heading, justify="right")
    for row in rows:
        mean, deviation, bound = (
            "–" if row[key] is None else f"{row[key]:.1f}" for key in ("mean_pulls", "std_pulls", "lower_bound")
        )
        counts = (f"{row[key]} of {trials}" for key in ("wrong", "given_up"))
        table.add_row(f"{row['delta']:g}", mean, deviation, *counts, bound)
    Console().print(table)


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
    from coterie.simulate.budgets import plan_budget

    try:
        plan = plan_budget(
            items, clusters, dim, gap, noise=noise_from_text(noise, dim), delta=delta, method=method,
            budget=measurements, runs=runs, seed=seed,
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo("coterie: stopped; nothing is kept. Fewer runs are done sooner: --runs", err=True)
        raise typer.Exit(130) from None
    if as_json:
        plain = asdict(plan) | {"words": plan.words}
        print_json({key: None if value == math.inf else value for key, value in plain.items()})
    else:
        typer.echo(plan.words)


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
            help="When other methods than croc stop. proven: with a guarantee; heuristic: earlier, without one.",
        ),
    ] = Threshold.proven,
    seconds: Annotated[
        float,
        typer.Option("--seconds", help="How long the live view takes in a terminal; 0: as fast as it can."),
    ] = 4.0,
    as_json: Json = False,
) -> None:
    """Group Iris's 150 flowers live, one noisy measurement at a time, and write a picture of the run."""
    from coterie.demo import run_demo

    run = run_demo(
        out, seed=seed, delta=delta, method=method, threshold=threshold.value, seconds=seconds, quiet=as_json
    )
    if as_json:
        print_json(run)
