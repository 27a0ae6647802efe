"""Items that differ in what a measurement costs: what CROC spends if it is told the costs, and if it is not.

Three kinds of costs: a third of the items of each group is dear, all items of one group are, or costs are lognormal.
`ratio` is that of dear and cheap items; 95 % of lognormal costs are within a factor of its root from their middle.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path

import numpy as np

from bench.part import Column, Headline, Part, Progress, Row, number, times
from coterie.methods.croc.run import CrocRun
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.costs import unit_costs
from coterie.problem.partition import same_partition

DELTA = 0.05
TRIALS, QUICK_TRIALS = 64, 2
MOST = 100_000
RATIOS = (10.0, 100.0)
THIRD, ONE_GROUP, LOGNORMAL = "a third of each group", "one group", "lognormal"
KINDS = (THIRD, ONE_GROUP, LOGNORMAL)
SHAPES = {"M = 9 K = 3 d = 1": (9, 3, 1), "M = 12 K = 3 d = 2": (12, 3, 2), "M = 30 K = 3 d = 2": (30, 3, 2)}
GAP = 2.0
"""Between neighbouring centers, in standard deviations."""
AIM, LOSS = 1.5, 1.05
"""What weighing is to gain with a third of each group ten times as dear, and the most that it may lose anywhere."""


def instance_of(shape: str) -> tuple[IntArray, FloatArray]:
    """Groups of equal size; centers on a line, or at a corner and along two axes."""
    n_arms, n_groups, dim = SHAPES[shape]
    centers = np.zeros((n_groups, dim))
    for k in range(1, n_groups):
        centers[k, (k - 1) % dim] = GAP * (k if dim == 1 else 1)
    return np.arange(n_arms) % n_groups, centers


def costs_of(kind: str, ratio: float, labels: IntArray, trial: int) -> FloatArray:
    """The costs of the items; lognormal ones are drawn anew in every trial."""
    if kind == ONE_GROUP:
        return np.where(labels == 1, ratio, 1.0)
    if kind == THIRD:
        costs = np.ones(labels.size)
        for k in range(int(labels.max()) + 1):
            members = np.flatnonzero(labels == k)
            costs[members[: members.size // 3]] = ratio
        return costs
    rng = np.random.default_rng([trial, int(ratio), labels.size])
    return np.asarray(np.exp(rng.standard_normal(labels.size) * math.log(ratio) / 4.0))


def run_of(shape: str, kind: str, ratio: float, weighed: bool, trial: int) -> tuple[float, bool]:
    """What one run has spent, and whether its groups are right."""
    labels, centers = instance_of(shape)
    costs = costs_of(kind, ratio, labels, trial)
    rng = np.random.default_rng([trial, zlib.crc32(f"{shape}{kind}{ratio}".encode())])
    price = unit_costs(costs, labels.size) if weighed else None
    run = CrocRun(labels.size, len(centers), centers.shape[1], -math.log(DELTA), prices=price)
    run.play(MOST, centers, labels, rng)
    return float(costs @ run.pulls), run.done and same_partition(run.labels, labels)


def cell_of(shape: str, kind: str, ratio: float, trials: int) -> Row:
    """Both ways on the same instances and costs."""
    row: Row = {"instance": shape, "dear": kind, "ratio": ratio, "trials": trials}
    for name, weighed in (("plain", False), ("weighed", True)):
        found = [run_of(shape, kind, ratio, weighed, trial) for trial in range(trials)]
        spent = np.array([cost for cost, _ in found])
        row[name] = float(np.median(spent))
        row[f"{name}_mean"] = float(spent.mean())
        row[f"{name}_high"] = float(np.quantile(spent, 0.95))
        row[f"{name}_wrong"] = sum(not right for _, right in found)
    row["gain"] = row["plain_mean"] / row["weighed_mean"]
    return row


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    return with_trials(QUICK_TRIALS if quick else TRIALS, quick, progress, folder)


def with_trials(trials: int, quick: bool, progress: Progress, folder: Path) -> list[Row]:
    cells = [(shape, kind, ratio) for shape in SHAPES for kind in KINDS for ratio in RATIOS]
    found = []
    for done, (shape, kind, ratio) in enumerate(cells, 1):
        found.append(cell_of(shape, kind, ratio, trials))
        gain = times(found[-1]["gain"])
        progress.done(f"{shape}, {kind} {ratio:g} times as dear: {gain} cheaper", done / len(cells))
    return found


def headlines(found: list[Row]) -> list[Headline]:
    mixed = [row["gain"] for row in found if row["dear"] == THIRD and row["ratio"] == RATIOS[0]]
    least = min(row["gain"] for row in found)
    what = "costs weighed: a third of each group ten times as dear, cost over that without weighing"
    worst = "costs weighed: the least gain over all kinds of costs"
    return [
        Headline(what, f"{times(min(mixed))} to {times(max(mixed))} cheaper", f"{AIM}×", min(mixed) >= AIM),
        Headline(worst, times(least), f"at least {1.0 / LOSS:.2f}×", least >= 1.0 / LOSS),
    ]


PART = Part(
    f"Cost of a proof (delta = {DELTA:g}, centers {GAP:g} apart) if costs are weighed, and if they are not",
    [
        Column("instance", "instance", left=True),
        Column("dear", "dear", left=True),
        Column("ratio", "ratio", lambda ratio: f"{ratio:g}"),
        Column("not weighed\nmedian", "plain", number),
        Column("95 %", "plain_high", number),
        Column("wrong", "plain_wrong"),
        Column("weighed\nmedian", "weighed", number),
        Column("95 %", "weighed_high", number),
        Column("wrong", "weighed_wrong"),
        Column("runs", "trials"),
        Column("cheaper\n(means)", "gain", times),
    ],
    rows,
    headlines,
    section="instance",
    seconds=60.0,
    with_trials=with_trials,
)
