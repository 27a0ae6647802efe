"""Groups up to a resolution: measurements that CROC needs, beside the same tests with every item measured in turn.

Claims are checked against the true means in every run. A cell is a kind of instance with a resolution and a noise;
another instance in every trial where it is drawn. Cells that are measured are kept in build/bench until the part is
done, so that a run that was broken off goes on where it was.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.cells import Ending, Endings, cell
from bench.in_turn import measured_in_turn
from bench.instances import drawn, named
from bench.noise import Kept
from bench.part import ROOT, Column, Headline, Part, Progress, Row, mean_with_error, number, times
from coterie.methods.contract import MethodRun
from coterie.methods.start import start
from coterie.methods.table import prepared
from coterie.problem.checks import FloatArray
from coterie.problem.noise import Exactly
from coterie.problem.settings import Settings

DELTA = 0.1
TRIALS, QUICK_TRIALS = 50, 2
TRIALS_IN_TURN = 16
"""Of the same tests with every item in turn, which take longer."""

MOST = 200_000
"""Measurements of a trial; one that is not done by then is unfinished."""

LEAST_RATIO = 1.4
"""So many times the measurements are asked of items in turn, at least."""

SEED = 1500
CROC, IN_TURN = "CROC", "items in turn"

Draw = Callable[[np.random.Generator, int], FloatArray]
"""One result of an arm."""


@dataclass(frozen=True)
class World:
    """Means (M, d), and results about them."""

    means: FloatArray
    draw: Draw

    @classmethod
    def standard(cls, means: FloatArray) -> World:
        """Results with standard Gaussian noise."""
        return cls(means, lambda rng, arm: means[arm] + rng.standard_normal(means.shape[1]))


def exact(trial: int) -> World:
    """100 items in 5 groups, 10 numbers a result, the smallest gap 3."""
    return World.standard(drawn(100, 5, 10, 3.0, trial).means)


def spread_out(trial: int) -> World:
    """The same, each item within 0.15 of the gap of its group's center: groups are 0.3 of the gap wide."""
    rng = np.random.default_rng([SEED, trial])
    away = rng.standard_normal((100, 10))
    reach = 0.45 * rng.random(100) ** 0.1  # uniform in the ball
    return World.standard(drawn(100, 5, 10, 3.0, trial).means + reach[:, None] * away / _lengths(away))


def challenging(trial: int) -> World:
    """The paper's synthetic instance."""
    return World.standard(named("challenging").means)


def segment(trial: int) -> World:
    """50 items, means uniform between 0 and 5: there are no groups."""
    return World.standard(np.random.default_rng([SEED, trial]).uniform(0.0, 5.0, (50, 1)))


def many(trial: int) -> World:
    """300 items in 8 groups, 5 numbers a result, the smallest gap 2."""
    return World.standard(drawn(300, 8, 5, 2.0, trial).means)


@cache
def films(trial: int = 0) -> World:
    """MovieLens: 69 films with at least 250 ratings, ratings drawn from a film's own with replacement."""
    pool = coterie.datasets.movielens(250)
    ratings = [pool.rows[pool.arms == film] for film in range(len(pool.names))]

    def draw(rng: np.random.Generator, arm: int) -> FloatArray:
        return np.asarray(ratings[arm][rng.integers(len(ratings[arm]))])

    return World(np.array([one.mean(axis=0) for one in ratings]), draw)


def films_sd() -> float:
    """The pooled standard deviation of a rating about its film's mean."""
    pool = coterie.datasets.movielens(250)
    means = films().means[pool.arms]
    return math.sqrt(float(((pool.rows - means) ** 2).sum()) / (len(pool.rows) - len(pool.names)))


def _lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(rows, axis=1))[:, None]


def _gap() -> float:
    return float(min(np.linalg.norm(one - other) for one, other in _pairs(named("challenging").centers)))


def _pairs(points: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    return [(one, other) for place, one in enumerate(points) for other in points[:place]]


@dataclass(frozen=True)
class Cell:
    """What is asked on which instances. `limit`: measurements, by the mean, that are asked for at most."""

    case: str
    label: str
    make: Callable[[int], World]
    alike: float
    apart: float
    noise: Callable[[], Any]
    limit: float | None = None
    norm: str = "distance"
    claim: str = "references"

    @property
    def key(self) -> str:
        return f"{self.case} | {self.label}"

    @property
    def resolution(self) -> coterie.Resolution:
        return coterie.Resolution(self.alike, self.apart, self.norm, self.claim)


def exactly() -> Any:
    return Exactly(1.0)


def at_most_one() -> Any:
    return 1.0


def bounded() -> Any:
    return coterie.Bounded(1, 5)


def all_cells() -> list[Cell]:
    """Every cell."""
    gap = _gap()
    hundred, spread = "M=100 K=5 d=10, (0, 3)", "the same, spread 0.3 of the gap, (1, 2.6)"
    paper, line = f"challenging, (0, {gap:g})", "segment, M=50, d=1, (0.5, 1.5)"
    rated = "MovieLens, 69 films, (0.2, 0.8)"
    return [
        Cell(hundred, "noise exactly known", exact, 0, 3, exactly, 680),
        Cell(hundred, "robust", exact, 0, 3, at_most_one, 1450),
        Cell(hundred, "each number", exact, 0, 3, at_most_one, 1450, "each"),
        Cell(hundred, "Gaussian, each number", exact, 0, 3, coterie.Gaussian, None, "each"),
        Cell(spread, "noise exactly known", spread_out, 1, 2.6, exactly, 960),
        Cell(spread, "robust", spread_out, 1, 2.6, at_most_one, 2320),
        Cell(paper, "noise exactly known", challenging, 0, gap, exactly, 2130),
        Cell(paper, "robust", challenging, 0, gap, at_most_one, 3350),
        Cell(paper, "each number", challenging, 0, gap, at_most_one, 3350, "each"),
        Cell(line, "noise known", segment, 0.5, 1.5, at_most_one, 2850, "each"),
        Cell(line, "noise known, any two", segment, 0.5, 1.5, at_most_one, None, "each", "any-two"),
        Cell(line, "Gaussian", segment, 0.5, 1.5, coterie.Gaussian, None, "each"),
        Cell("M=300 K=8 d=5, (0, 2)", "noise exactly known", many, 0, 2, exactly, 3250),
        Cell(rated, "pooled variance as known", films, 0.2, 0.8, films_sd, 11_700, "each"),
        Cell(rated, "bounded", films, 0.2, 0.8, bounded, None, "each"),
    ]


def play(one: Cell, trial: int, in_turn: bool) -> tuple[Ending, float]:
    """One run, and the seconds of processor time that it took."""
    world = one.make(trial)
    n_arms, dim = world.means.shape
    settings, method = prepared(Settings.of(n_arms, None, dim, DELTA, noise=one.noise(), resolution=one.resolution))
    run: MethodRun = measured_in_turn(settings) if in_turn else start(settings, method)
    rng, white = np.random.default_rng([SEED + 1, trial]), settings.noise.whiten_fully
    began = time.process_time()
    while not run.done and run.t < MOST:
        pull = run.ask()
        if pull is None:
            break
        run.count(pull.arm, white(world.draw(rng, pull.arm)[None])[0], pull.round, True)
    taken = time.process_time() - began
    right = run.done and run.is_right(coterie.Instance.of_means(world.means))
    return Ending(run.t, right, run.done), taken


def measured(one: Cell, trials: int) -> Row:
    """The row of a cell: CROC, and items in turn."""
    played = [play(one, trial, False) for trial in range(trials)]
    found = Endings({DELTA: [ending for ending, _ in played]})
    in_turn = Endings({DELTA: [play(one, trial, True)[0] for trial in range(min(trials, TRIALS_IN_TURN))]})
    row = {"case": one.case, **cell(one.label, found, DELTA)}
    beside = cell(IN_TURN, in_turn, DELTA)
    del row["each"], row["pilots"]
    row["seconds"] = max(taken for _, taken in played)
    row["in_turn"] = {key: beside[key] for key in ("mean", "standard_error", "trials", "wrong", "unfinished")}
    both = row["mean"] is not None and beside["mean"] is not None
    row["ratio"] = beside["mean"] / row["mean"] if both else None
    if one.limit is not None:
        row |= {"limit": one.limit, "met": row["mean"] is not None and row["mean"] <= one.limit}
    return row


def fingerprint() -> str:
    """Of everything that decides the numbers: cells of another engine are measured again."""
    packages = ("methods/resolution", "evidence/near_far", "problem")
    folders = [ROOT / "src" / "coterie" / package for package in packages]
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    content = hashlib.sha256()
    for path in [*files, Path(__file__), ROOT / "bench" / "in_turn.py"]:
        content.update(path.read_bytes())
    return content.hexdigest()


def with_trials(trials: int, quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """A row for each cell; a quick run has those of the segment."""
    cells = [one for one in all_cells() if not quick or one.make is segment]
    path = ROOT / "build" / "bench" / f"resolution-{'quick-' if quick else ''}{trials}-cells.part"
    kept = Kept(path, fingerprint())
    old = sum(one.key in kept.rows for one in cells)
    if old:
        progress.done(f"{old} of {len(cells)} cells were measured before")
    for place, one in enumerate(cells):
        if one.key not in kept.rows:
            kept.add(one.key, measured(one, trials))
            row = kept.rows[one.key]
            result = f"{mean_with_error(row)}, {row['wrong']} wrong"
            progress.done(f"{one.case}, {one.label}: {result}", (place + 1) / len(cells))
    kept.done()
    return [kept.rows[one.key] for one in cells]


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """With the usual number of trials."""
    return with_trials(QUICK_TRIALS if quick else TRIALS, quick, progress, folder)


def headlines(found: list[Row]) -> list[Headline]:
    """What was asked for; the least gain over items in turn; wrong claims."""
    lines = [
        Headline(
            f"{row['case']}, {row['method']}: measurements",
            mean_with_error(row) or "–",
            f"≤ {number(row['limit'])}",
            row["met"],
        )
        for row in found
        if "limit" in row
    ]  # fmt: skip
    ratios = [row["ratio"] for row in found if row["ratio"] is not None]
    if ratios:
        least = min(ratios)
        text = "Groups up to a resolution: items in turn over CROC, least"
        lines.append(Headline(text, times(least), f"≥ {LEAST_RATIO}×", least >= LEAST_RATIO))
    wrong, runs = (sum(row[key] for row in found) for key in ("wrong", "trials"))
    lines.append(
        Headline("Groups up to a resolution: false claims", f"{wrong} of {runs}", "≤ δ", wrong <= DELTA * runs)
    )
    return lines


PART = Part(
    f"Groups up to a resolution (ε, η) by references, δ = {DELTA:g}: mean ± standard error of {TRIALS} runs. Wrong: "
    f"the claim is false for the true\nmeans. Open: no proof within {MOST:,} measurements. In turn: the same "
    f"candidates and tests, every item measured in turn ({TRIALS_IN_TURN} runs).\nSeconds: processor time of the "
    "longest run.",
    (
        Column("instance and resolution", "case", left=True),
        Column("noise", "method", left=True),
        Column("measurements", mean_with_error),
        Column("median", "median", number),
        Column("95 %", "quantile95", number),
        Column("wrong", lambda row: f"{row['wrong']} of {row['trials']}"),
        Column("open", "unfinished"),
        Column("in turn", lambda row: mean_with_error(row["in_turn"])),
        Column("ratio", "ratio", times),
        Column("seconds", "seconds", number),
        Column("goal", lambda row: f"≤ {number(row['limit'])} {'✓' if row['met'] else '✗'}" if "limit" in row else ""),
    ),
    rows,
    headlines,
    section="case",
    seconds=900,
    with_trials=with_trials,
)
