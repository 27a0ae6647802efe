"""Three groups, and CROC is told that there are two: does anything beside the proof speak up?

The groups have equal sizes and lie on a line, neighbours so many standard deviations apart. A run ends with an alarm,
or with a proof beside which a group is called mixed, or with a proof and nothing else.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

import coterie
from bench.families import DELTA
from bench.part import Column, Headline, Part, Progress, Row

RUNS = 200
MOST = 20_000
"""Measurements of a run."""

GAPS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
SHAPES = ((12, 1), (12, 2), (30, 1), (30, 2))
SEED = 6000


def ending(n_arms: int, dim: int, gap: float, run: int) -> str:
    """What one run ends with: alarm, mixed, silent, or unfinished."""
    rng = np.random.default_rng([SEED, n_arms, dim, int(10 * gap), run])
    truth = rng.permutation(np.arange(n_arms) % 3)
    centers = np.zeros((3, dim))
    centers[:, 0] = gap * np.arange(3)
    with warnings.catch_warnings(action="ignore"):  # they say what is counted here
        found = coterie.cluster(
            lambda arm: centers[truth[arm]] + rng.standard_normal(dim),
            n_arms,
            2,
            DELTA,
            budget=MOST,
            progress=False,
            noise=1.0,
        )
    if found.alarm is not None:
        return "alarm"
    if not found.done:
        return "unfinished"
    return "silent" if found.homogeneity else "mixed"


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each shape and gap: how many runs ended how."""
    runs = 4 if quick else RUNS
    cells = [(*shape, gap) for shape in SHAPES for gap in GAPS]
    found: list[Row] = []
    for place, (n_arms, dim, gap) in enumerate(cells):
        ends = [ending(n_arms, dim, gap, run) for run in range(runs)]
        row: Row = {"items": n_arms, "dim": dim, "gap": gap, "runs": runs}
        found.append(row | {how: ends.count(how) for how in ("alarm", "mixed", "silent", "unfinished")})
        progress.done(f"M={n_arms} d={dim} gap {gap:g}: {found[-1]['silent']} silent", (place + 1) / len(cells))
    return found


def headlines(found: list[Row]) -> list[Headline]:
    """How often nothing speaks up."""
    return [
        Headline(
            f"Three groups, K = 2, neighbours {what}: proven without a word",
            f"{100 * sum(row['silent'] for row in some) / sum(row['runs'] for row in some):.0f} %",
        )
        for what, some in (
            ("1.5 to 2 σ apart", [row for row in found if row["gap"] <= 2.0]),
            ("3 to 4 σ apart", [row for row in found if 2.0 < row["gap"] <= 4.0]),
            ("6 to 8 σ apart", [row for row in found if row["gap"] > 4.0]),
        )
    ]


def _share(how: str) -> Column:
    words = {"alarm": "alarm", "mixed": "proven, a group\nlooks mixed", "silent": "proven without\na word"}
    return Column(words.get(how, how), lambda row: f"{100 * row[how] / row['runs']:g} %")


PART = Part(
    f"Three groups of equal size on a line, and K = 2; δ = {DELTA:g}, {RUNS} runs each: what a run ends with.",
    (
        Column("items", "items"),
        Column("numbers a\nmeasurement", "dim"),
        Column("neighbours\napart, σ", "gap", lambda gap: f"{gap:g}"),
        _share("alarm"),
        _share("mixed"),
        _share("silent"),
        _share("unfinished"),
    ),
    rows,
    headlines,
    section="items",
    seconds=240,
)
