"""A list of partitions in place of a freeze: how many measurements it saves, on the paper's instances and on others.

CROC and the method with a list have the same seeds, so that they see the same results as long as both ask for the same
arms. Beside the paper's instances there are families, and instances drawn for this table; none was chosen by its
outcome. Where CROC freezes before few partitions are left, both are the same run.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import coterie
from bench.families import FAMILIES, grouped, spread
from bench.part import Column, Headline, Part, Progress, Row, number

TRIALS = 96
MOST = 20_000
"""Measurements of a run."""

SEED = 20_261
METHODS = ("croc", "shortlist")
GOALS = {("challenging", 0.1): 600, ("challenging", 1e-10): 1800, ("moderate", 0.1): 160, ("moderate", 1e-10): 460}
"""Means that are asked for."""

DRAWN = {
    "4,4,4, gap 1, d=2": ((4, 4, 4), 1.0, 2),
    "5,5,5,5, gap 1.5, d=3": ((5, 5, 5, 5), 1.5, 3),
    "8,2,1,1, gap 1.5, d=2": ((8, 2, 1, 1), 1.5, 2),
    "6,6, gap 1, d=5": ((6, 6), 1.0, 5),
    "3,3,3,3,3, gap 2, d=4": ((3, 3, 3, 3, 3), 2.0, 4),
    "7,5,3,1, gap 1.5, d=1": ((7, 5, 3, 1), 1.5, 1),
    "4,4,4,4, gap 1, d=2": ((4, 4, 4, 4), 1.0, 2),
    "2,2,2,2,2, gap 1, d=10": ((2, 2, 2, 2, 2), 1.0, 10),
}
"""Sizes, the smallest gap, dimension; centers drawn from a normal distribution."""

NAMED = ("M=12, K=11, d=1", "M=12, K=11, d=3", "M=12, K=10, d=3", "M=12, K=10, d=10", "a chain of 8, d=3")


def cells(quick: bool) -> list[tuple[str, coterie.Instance, float]]:
    """Name, instance, δ."""
    synthetic = coterie.datasets.synthetic
    found = [(name, synthetic(name), delta) for name in ("easy", "moderate", "challenging") for delta in (0.1, 1e-10)]
    found += [(name, FAMILIES[name].instance, 0.05) for name in NAMED]
    for i, (name, (sizes, gap, dim)) in enumerate(DRAWN.items()):
        centers = spread(len(sizes), gap, dim, np.random.default_rng([SEED, i]))
        found.append((name, grouped(sizes, centers), 0.05))
    return found[1:3] if quick else found


def on(name: str, instance: coterie.Instance, delta: float, trials: int) -> list[Row]:
    """A row for each method."""
    found: list[Row] = []
    base: np.ndarray | None = None
    for method in METHODS:
        made = coterie.simulate(
            instance, method, deltas=(delta,), threshold="proven", trials=trials, seed=SEED, max_pulls=MOST,
            progress=False,
        )  # fmt: skip
        times = np.asarray(made.stopping_times, dtype=float).ravel()
        ended = times > 0
        times[~ended] = MOST
        base = times if base is None else base
        less = base - times
        found.append({
            "case": name, "delta": delta, "method": method, "trials": trials, "mean": float(times.mean()),
            "error": float(times.std(ddof=1) / np.sqrt(trials)), "median": float(np.median(times)),
            "high": float(np.quantile(times, 0.95, method="higher")), "largest": float(times.max()),
            "open": int((~ended).sum()), "wrong": int(made.errors()[0]), "saved": float(less.mean() / base.mean()),
            "saved_error": float(less.std(ddof=1) / np.sqrt(trials) / base.mean()),
            "goal": GOALS.get((name, delta)) if method == "shortlist" else None,
        })  # fmt: skip
    return found


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """Every cell with both methods."""
    found: list[Row] = []
    every = cells(quick)
    for i, (name, instance, delta) in enumerate(every):
        found += on(name, instance, delta, 8 if quick else TRIALS)
        progress.done(f"{name}, δ = {delta:g}: {_saved(found[-1])} saved", (i + 1) / len(every))
    return found


def _saved(row: Row) -> str:
    return f"{100 * row['saved']:.0f} ± {100 * row['saved_error']:.0f} %"


def headlines(found: list[Row]) -> list[Headline]:
    """The goals."""
    return [
        Headline(
            f"{row['case']}, δ = {row['delta']:g}: measurements with a list of partitions",
            f"{number(row['mean'])} ± {number(row['error'])}", f"≤ {row['goal']}", row["mean"] <= row["goal"],
        )
        for row in found
        if row["goal"] is not None
    ]  # fmt: skip


PART = Part(
    f"Method shortlist beside CROC, known noise, {TRIALS} trials each of at most {MOST:,} measurements, common seeds; "
    "saved: of CROC's mean, from paired differences.",
    (
        Column("instance", "case", left=True),
        Column("δ", "delta"),
        Column("method", "method", left=True),
        Column("measurements", lambda row: f"{number(row['mean'])} ± {number(row['error'])}"),
        Column("median", "median", number),
        Column("95 %", "high", number),
        Column("largest", "largest", number),
        Column("open; wrong", lambda row: f"{row['open']}; {row['wrong']}"),
        Column("saved", lambda row: "" if row["method"] == METHODS[0] else _saved(row)),
        Column("goal", lambda row: "" if row["goal"] is None else f"≤ {row['goal']}"),
    ),
    rows,
    headlines,
    seconds=600,
)
