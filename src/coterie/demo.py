"""The demonstration: group Iris's 150 flowers from noisy measurements, watched live, beside Uniform.

The true groups are known here, so that the answer can be checked; the session never sees them (but for
methods that need the true instance). As in the paper, the centers are rescaled to D* = 2 (section_exp).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from coterie.evidence.stopping import threshold as threshold_of
from coterie.methods import Method, method_named
from coterie.paper import datasets
from coterie.plot import evidence as plot_evidence
from coterie.plot import means as plot_means
from coterie.plot.canvas import check_matplotlib, colour_of
from coterie.problem.checks import IntArray, check_delta
from coterie.problem.instance import Instance
from coterie.problem.partition import same_partition
from coterie.problem.settings import DELTA, METHOD
from coterie.session import Session

FRAMES = 80
BASELINE = "uniform"
"""Measuring the flowers in turn: what the others are compared with."""
RIVALS = ("boc", BASELINE)
"""The methods that run on the same seed, beside the one that is watched: the paper's rule, and the baseline."""


@dataclass
class Run:
    """A session on an instance whose groups are known, with a forecast of the measurements that it takes."""

    instance: Instance
    session: Session
    method: Method
    threshold: str
    forecast: float

    @property
    def proven(self) -> bool:
        """Whether its stop is a proof."""
        return self.method.proves(self.threshold)

    @property
    def right(self) -> bool:
        """Whether the groups found are the true ones."""
        return bool(same_partition(_labels(self), self.instance.labels))


def run_demo(
    out: Path,
    *,
    seed: int = 0,
    delta: float = DELTA,
    method: str = METHOD,
    threshold: str = "heuristic",
    seconds: float = 4.0,
) -> None:
    """Group Iris with `method`, BOC and Uniform on the same seed, show them, and write a picture to `out`."""
    entry = method_named(method)
    check_delta(delta)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"seconds must be 0 or more, got {seconds!r}")
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed!r}")
    _check_picture(out)
    console = Console()
    instance = datasets.iris().with_hardness(2.0)
    console.print(
        f"[bold]{instance.n_arms} flowers[/bold], {instance.n_clusters} species, "
        f"{instance.dim} noisy numbers a measurement. Which flowers are alike? "
        f"Error probability allowed: {delta:g}."
    )
    run = _new_run(instance, entry, delta, threshold)
    pause = seconds / FRAMES if console.is_terminal else 0.0
    with Live(_view(run), console=console, refresh_per_second=20, transient=not console.is_terminal) as live:

        def show() -> None:
            live.update(_view(run))
            time.sleep(pause)

        _finish(run, np.random.default_rng(seed), show)
        live.update(_view(run), refresh=True)
    console.print(_groups_table(run))
    for remark in (run.session.alarm, *run.session.alarms, run.session.homogeneity):
        if remark is not None:
            text = str(remark)
            console.print(text[0].upper() + text[1:], highlight=False, markup=False)

    runs = {method: run}
    for rival in RIVALS:
        if rival not in runs:
            runs[rival] = _new_run(instance, method_named(rival), delta, threshold)
            with console.status(f"The same with {rival} …"):
                _finish(runs[rival], np.random.default_rng(seed), lambda: None)
    console.print(_comparison_table(runs))
    _draw(out, run, list(runs.values()))
    console.print(f"The picture is in [bold]{out}[/bold].")


def _new_run(instance: Instance, method: Method, delta: float, threshold: str) -> Run:
    session = Session(
        instance.n_arms,
        instance.n_clusters,
        instance.dim,
        delta=delta,
        method=method.name,
        threshold=threshold,
        distance_ratio=datasets.distance_ratio(instance) if "distance_ratio" in method.needs else None,
        instance=instance if "instance" in method.needs else None,
        noise=1.0,
    )
    if method.has_thresholds:
        # Z1 is about M·d and Z2 at most about t at D* = 2, so Z reaches β at about t = (√(M·d) + √(2β))².
        needed = threshold_of(delta, np.full(instance.n_arms, 6), instance.dim, kind=threshold)
        forecast = (math.sqrt(instance.n_arms * instance.dim) + math.sqrt(2 * needed)) ** 2
    else:  # CROC: one measurement a flower, and a few more
        forecast, threshold = 1.03 * instance.n_arms, "proven"
    return Run(instance, session, method, threshold, forecast)


def _finish(run: Run, rng: np.random.Generator, show: Callable[[], None]) -> None:
    """Ask, measure and tell until the session is done."""
    frame = max(1, int(run.forecast / FRAMES))
    session, means = run.session, run.instance.means
    while not session.done:
        arm = session.ask()
        session.tell(arm, means[arm] + rng.standard_normal(run.instance.dim))
        if session.t % frame == 0:
            show()


# --- what is shown -------------------------------------------------------------------------------


def _view(run: Run) -> RenderableType:
    session = run.session
    evidence = session.evidence
    statistic, needed = evidence.statistic, evidence.threshold
    grid = Table.grid(padding=(0, 2))
    grid.add_row("measurements", f"{session.t}", _bar(session.t, run.forecast))
    grid.add_row("evidence", f"{statistic:.1f} of {needed:.1f}", _bar(statistic, needed))
    labels = _labels(run)
    for k in range(run.instance.n_clusters):
        size = int((labels == k).sum())
        name = f"group {k + 1}"
        grid.add_row(f"[{colour_of(k)}]{name}[/]", f"{size} flowers", _bar(size, run.instance.n_arms))
    verdict = f"the evidence has reached the {run.threshold} threshold" if session.done else "measuring …"
    return Panel(grid, title=f"{run.method.name}: {verdict}", expand=False)


def _bar(value: float, total: float) -> ProgressBar:
    finite = math.isfinite(value) and math.isfinite(total) and total > 0
    share = min(1.0, value / total) if finite else 0.0
    return ProgressBar(total=1.0, completed=share, width=40, complete_style="cyan", finished_style="green")


def _labels(run: Run) -> IntArray:
    """The groups of the session; before there is a guess, -1 for every flower."""
    labels = run.session.labels
    return np.full(run.instance.n_arms, -1) if labels is None else labels


def _groups_table(run: Run) -> Table:
    table = Table(title="The groups found")
    for heading in ("group", "flowers", "measurements", "what they are"):
        table.add_column(heading, justify="left" if heading == "what they are" else "right")
    for k in range(run.instance.n_clusters):
        members = np.flatnonzero(_labels(run) == k)
        species = Counter(datasets.IRIS_CLASSES[run.instance.labels[m]] for m in members)
        inside = ", ".join(f"{count} {name}" for name, count in species.most_common())
        table.add_row(str(k + 1), str(members.size), str(int(run.session.pulls[members].sum())), inside)
    return table


def _comparison_table(runs: dict[str, Run]) -> Table:
    table = Table(title="Measurements needed, on the same seed")
    table.add_column("method")
    for heading in ("error probability", "measurements", "a flower", "groups", "against Uniform"):
        table.add_column(heading, justify="right")
    baseline = runs[BASELINE]
    for name, run in runs.items():
        table.add_row(
            name,
            "proven" if run.proven else "not proven",
            str(run.session.t),
            f"{run.session.t / run.instance.n_arms:.1f}",
            "[green]right[/]" if run.right else "[red]wrong[/]",
            "" if run is baseline else f"{100 * (run.session.t / baseline.session.t - 1):+.0f} %",
        )
    return table


# --- the picture ---------------------------------------------------------------------------------


def _check_picture(out: Path) -> None:
    """Fail before the run rather than after it."""
    check_matplotlib("the demo's picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kinds = sorted(FigureCanvasAgg.filetypes)
    if out.suffix.removeprefix(".").lower() not in kinds:
        raise ValueError(f"out must end in one of .{', .'.join(kinds)}, got {str(out)!r}")
    if not out.parent.is_dir():
        raise ValueError(f"out must be in a folder that exists, got {str(out)!r}")


def _draw(out: Path, run: Run, runs: list[Run]) -> None:
    """Left: the running means in two principal components, and the pulls per arm. Right: the evidence."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    labels = _labels(run)
    figure = Figure(figsize=(12, 6), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(3, 1))
    cloud, bars = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    proof = figure.add_subplot(grid[:, 1])

    names = [f"group {k + 1}: {(labels == k).sum()} flowers" for k in range(run.instance.n_clusters)]
    plot_means(run.session, ax=cloud, groups=names, legend=False)
    _head(cloud, "The flowers as measured (mean of each; area: measurements)")

    colours = [colour_of(k) for k in labels]
    bars.bar(np.arange(run.instance.n_arms), run.session.pulls, width=1.0, color=colours)
    bars.yaxis.set_major_locator(MaxNLocator(integer=True))
    bars.set(xlabel="flower", ylabel="measurements", xlim=(-0.5, run.instance.n_arms - 0.5))

    longest = max(shown.session.t for shown in runs)
    courses = {f"{shown.method.name}, {shown.threshold}: {shown.session.t}": shown.session for shown in runs}
    plot_evidence(courses, ax=proof, points=longest, legend=False)
    _head(proof, "Stop when the evidence reaches what is needed")
    figure.savefig(out, dpi=120)


def _head(ax: Any, title: str) -> None:
    """A title, and below it the legend in one line, where it covers nothing."""
    ax.set_title(title, pad=26)
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        borderaxespad=0.2,
        frameon=False,
        ncols=4,
        columnspacing=1.2,
        handletextpad=0.4,
        fontsize="small",
    )
