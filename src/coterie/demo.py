"""The demonstration: group Iris's 150 flowers from noisy measurements, watched live, beside rules with the same proof.

The true groups are known here, so that the answer can be checked; the session never sees them. Every flower has the
mean of its species, and the noise of a measurement is simulated: 1 cm in each of the four numbers.
"""

from __future__ import annotations

import math
import sys
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

from coterie.methods import method_named
from coterie.paper import datasets
from coterie.plot import means as plot_means
from coterie.plot.canvas import check_matplotlib, colour_of
from coterie.problem.checks import FloatArray, IntArray, check_delta
from coterie.problem.instance import Instance
from coterie.problem.partition import same_partition
from coterie.problem.settings import DELTA, METHOD, THRESHOLD
from coterie.session import Result, Session
from coterie.simulate import simulate

SIZE = 50
"""Flowers of each species."""
MEANS = ((5.006, 3.428, 1.462, 0.246), (5.936, 2.77, 4.26, 1.326), (6.588, 2.974, 5.552, 2.026))
"""Of Iris's species, in centimetres (`coterie.datasets.iris`): the demo needs no data set to be installed."""
FRAMES = 80
NUMBERS = ("sepal length", "sepal width", "petal length", "petal width")
IN_TURN_MOST = 50
"""Measurements of each flower at most, in turn."""


@dataclass(frozen=True)
class Rival:
    """How many measurements another rule took, with a proof at the same error probability, and whether it was right."""

    name: str
    needed: float
    right: bool


def run_demo(
    out: Path,
    *,
    seed: int = 0,
    delta: float = DELTA,
    method: str = METHOD,
    threshold: str = THRESHOLD,
    seconds: float = 4.0,
    quiet: bool = False,
) -> dict[str, Any]:
    """Group Iris with `method`, live, compare it with other rules on the same flowers, and write a picture to `out`.

    Without matplotlib there is no picture, and a line says so.

    Returns the groups and what the rules needed as plain JSON values; `quiet`: nothing is printed.
    """
    entry = method_named(method)
    check_delta(delta)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"seconds must be 0 or more, got {seconds!r}")
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed!r}")
    drawn = _can_draw(out)
    console = Console(quiet=quiet)
    instance = Instance(np.repeat(np.arange(len(MEANS)), SIZE), MEANS)
    console.print(
        f"[bold]{instance.n_arms} flowers[/bold], {instance.n_clusters} species, {instance.dim} numbers a measurement. "
        f"Which flowers are alike?\nThe noise is simulated: 1 cm in each number. Error probability allowed: {delta:g}."
    )
    session = Session(
        instance.n_arms,
        instance.n_clusters,
        instance.dim,
        delta=delta,
        method=entry.name,
        threshold=threshold,
        distance_ratio=datasets.distance_ratio(instance) if "distance_ratio" in entry.needs else None,
        instance=instance if "instance" in entry.needs else None,
        noise=1.0,
    )
    pause = seconds / FRAMES if console.is_terminal and not quiet else 0.0
    with Live(_view(session), console=console, refresh_per_second=20, transient=not console.is_terminal) as live:

        def show() -> None:
            live.update(_view(session))
            time.sleep(pause)

        _finish(session, instance, np.random.default_rng(seed), show)
        live.update(_view(session), refresh=True)
    console.print(_groups_table(session, instance))
    for remark in (session.alarm, *session.alarms, session.homogeneity):
        if remark is not None:
            text = str(remark)
            console.print(text[0].upper() + text[1:], highlight=False, markup=False)
    with console.status("The same flowers with other rules …"):
        rivals = _rivals(instance, delta, seed)
    console.print(_comparison_table(session, instance, rivals))
    if drawn:
        _draw(out, session)
        console.print(f"The picture is in [bold]{out}[/bold].")
    return {
        "method": session.method,
        "delta": delta,
        "seed": seed,
        "measurements": session.t,
        "proven": session.done and session.proves,
        "right": _right(session, instance),
        "labels": _labels(session).tolist(),
        "pulls": session.pulls.tolist(),
        "others": [
            {
                "name": rival.name,
                "measurements": rival.needed if math.isfinite(rival.needed) else None,
                "right": rival.right,
            }
            for rival in rivals
        ],
        "picture": str(out) if drawn else None,
    }


def _finish(session: Session, instance: Instance, rng: np.random.Generator, show: Callable[[], None]) -> None:
    """Ask, measure and tell until the session is done; shown less and less often, as nobody knows how long it takes."""
    means, next_frame = instance.means, 0.0
    while not session.done:
        item = session.ask()
        session.tell(item, means[item] + rng.standard_normal(instance.dim))
        if session.t >= next_frame:
            next_frame = session.t + max(8.0, session.t / 20)
            show()


def _rivals(instance: Instance, delta: float, seed: int) -> list[Rival]:
    """The others, each until its own proof: every flower in turn with CROC's proof; the paper's rule with its own."""
    rng, means = np.random.default_rng(seed), instance.means
    session = Session(instance.n_arms, instance.n_clusters, instance.dim, delta=delta, noise=1.0)
    for _ in range(IN_TURN_MOST):
        for item in range(instance.n_arms):
            if not session.done:
                session.tell(item, means[item] + rng.standard_normal(instance.dim))
    in_turn = Rival(
        "every flower in turn, CROC's proof", session.t if session.done else math.inf, _right(session, instance)
    )
    paper = simulate(instance, "boc", deltas=(delta,), threshold="proven", trials=1, seed=seed)
    return [in_turn, Rival("the paper's rule (boc), its proof", float(paper.mean()[0]), bool(paper.correct.all()))]


def _right(session: Session, instance: Instance) -> bool:
    labels = session.labels
    return labels is not None and bool(same_partition(labels, instance.labels))


# --- what is shown -------------------------------------------------------------------------------


def _view(session: Session) -> RenderableType:
    evidence, labels = session.evidence, _labels(session)
    grid = Table.grid(padding=(0, 2))
    grid.add_row("measurements", str(session.t), "")
    grid.add_row("evidence", f"{evidence.statistic:.1f} of {evidence.threshold:.1f}",
                 _bar(evidence.statistic, evidence.threshold))  # fmt: skip
    looks = [session.pulls[labels == k].mean() if (labels == k).any() else 0.0 for k in range(_n_groups(session))]
    for k, each in enumerate(looks):
        size = int((labels == k).sum())
        grid.add_row(f"[{colour_of(k)}]group {k + 1}[/]", f"{size} flowers, {each:.1f} looks each",
                     _bar(each, max(10.0, *looks)))  # fmt: skip
    verdict = "the groups are found" if session.done else "measuring …"
    return Panel(grid, title=f"{session.method}: {verdict}", expand=False)


def _bar(value: float, total: float) -> ProgressBar:
    finite = math.isfinite(value) and math.isfinite(total) and total > 0
    share = min(1.0, value / total) if finite else 0.0
    return ProgressBar(total=1.0, completed=share, width=40, complete_style="cyan", finished_style="green")


def _labels(session: Session) -> IntArray:
    """The groups of the session; before there is a guess, -1 for every flower."""
    labels = session.labels
    return np.full(session.n_arms, -1) if labels is None else labels


def _n_groups(session: Session) -> int:
    n_clusters = session.n_clusters
    assert n_clusters is not None
    return n_clusters


def _nearest(centers: FloatArray) -> FloatArray:
    """How far the nearest other center is from each."""
    apart = np.linalg.norm(centers[:, None] - centers[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.min(axis=1))


def _groups_table(session: Session, instance: Instance) -> Table:
    labels, centers = session.labels, session.centers
    assert labels is not None
    assert centers is not None
    table = Table(title="The groups found: those that are hard to tell apart were measured most")
    for heading in ("group", "flowers", "what they are", "nearest other group", "looks at each"):
        table.add_column(heading, justify="left" if heading == "what they are" else "right")
    for k, gap in enumerate(_nearest(centers)):
        members = np.flatnonzero(labels == k)
        species = Counter(datasets.IRIS_CLASSES[instance.labels[m]] for m in members)
        inside = ", ".join(f"{count} {name}" for name, count in species.most_common())
        table.add_row(str(k + 1), str(members.size), inside, f"{gap:.1f} cm", f"{session.pulls[members].mean():.1f}")
    return table


def _comparison_table(session: Session, instance: Instance, rivals: list[Rival]) -> Table:
    table = Table(title="Measurements until the groups were found, one run of each")
    table.add_column("rule")
    for heading in ("measurements", "a flower", "groups", "times as many"):
        table.add_column(heading, justify="right")
    proof = "its proof" if session.proves else "no proof"
    mine = Rival(f"{session.method}, {proof}", session.t, _right(session, instance))
    for rival in (mine, *rivals):
        row = [f"{rival.needed:,.0f}", f"{rival.needed / instance.n_arms:,.1f}"]
        if not math.isfinite(rival.needed):
            row = [f"over {IN_TURN_MOST * instance.n_arms:,}", ""]
        right = "[green]right[/]" if rival.right else "[red]wrong[/]"
        table.add_row(rival.name, *row, right, f"{rival.needed / session.t:,.1f}" if row[1] else "")
    return table


# --- the picture ---------------------------------------------------------------------------------


def _can_draw(out: Path) -> bool:
    """Whether there will be a picture; fails before the run rather than after it."""
    try:
        check_matplotlib("the demo's picture")
    except ImportError as error:
        print(f"coterie: {error}", file=sys.stderr)
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kinds = sorted(FigureCanvasAgg.filetypes)
    if out.suffix.removeprefix(".").lower() not in kinds:
        raise ValueError(f"out must end in one of .{', .'.join(kinds)}, got {str(out)!r}")
    if not out.parent.is_dir():
        raise ValueError(f"out must be in a folder that exists, got {str(out)!r}")
    return True


def _draw(out: Path, session: Session) -> None:
    """The flowers as measured; which one was measured when; how often each was."""
    from matplotlib.figure import Figure

    labels, pulls = _labels(session), session.pulls
    figure = Figure(figsize=(12, 5), layout="constrained")
    cloud, course, counts = figure.subplots(1, 3, width_ratios=(5, 5, 2))
    names = [f"group {k + 1}: {(labels == k).sum()} flowers, {pulls[labels == k].mean():.1f} looks each"
             for k in range(_n_groups(session))]  # fmt: skip
    result = Result(session.labels, session.centers, pulls, session.t, session.done, session, columns=NUMBERS)
    plot_means(result, ax=cloud, groups=names, legend=False)
    cloud.set_title("The flowers as measured (area: how often)")
    figure.legend(*cloud.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)

    asked = np.asarray(session.arms_asked)
    place = np.empty(session.n_arms)  # of a flower in the picture: those of a group side by side
    place[np.argsort(labels, kind="stable")] = np.arange(session.n_arms)
    colours = [colour_of(k) for k in labels]
    shown = np.arange(0, asked.size, max(1, asked.size // 20_000))
    course.scatter(shown + 1, place[asked[shown]], s=5, c=[colours[item] for item in asked[shown]], linewidths=0)
    course.set(xlabel="measurement", ylabel="flower", title="Which flower was measured when")
    counts.barh(place, pulls, height=1.0, color=colours)
    counts.set(xlabel="measurements", title="How often", yticks=[])
    for ax in (course, counts):
        ax.set_ylim(-1, session.n_arms)
    figure.savefig(out, dpi=120)
