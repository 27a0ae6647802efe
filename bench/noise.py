"""Measurements that CROC needs, by what it is told about the noise, and how often it is wrong if that is not so.

A cell is one statement about the noise on one instance in one world. The first table has worlds that the statement
covers, so that at most a share δ of the runs may end wrong; the second has worlds that it does not cover, where nothing
is promised: it shows what happens. Cells that are measured are kept in build/bench until the part is done, so that a
run that was broken off goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.cells import cell, together, trials_of
from bench.instances import DRAWN, RATED, named
from bench.part import ROOT, Column, Headline, Part, Progress, Row, Table, number, sign
from coterie import worlds
from coterie.methods.trials import RunningTrials
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AtMost, Bounded, Counts, Gaussian, Symmetric

TRIALS = 64
QUICK_TRIALS = 4
DELTAS = (0.1, 1e-10)
MOST = 40_000
"""Measurements of a trial; one that is not done by then is unfinished."""

BATCH = 100
"""Clicks are counted in batches of so many."""

OUTLIERS = worlds.Contaminated(0.05, 10.0)
OUTLIERS_SD = math.sqrt(0.95 + 0.05 * 100.0)

STATEMENTS: dict[str, Any] = {
    "known": 1.0,
    "any noise": None,
    "Gaussian, full": Gaussian("full"),
    "Gaussian, diagonal": Gaussian("diagonal"),
    "Gaussian, scalar": Gaussian("scalar"),
    "at most": AtMost(1.0),
    "symmetric": Symmetric(),
}
"""What may be said of results that vary with standard deviation 1."""

HOME, FORTY = "challenging", "M=40 K=4 d=5 gap 1"
PLAIN = ("Iris", HOME, "M=100 K=5 d=10 gap 3", FORTY)

ASKED: dict[tuple[str, str], tuple[float, ...]] = {
    ("Iris", "any noise"): (330, 1000),
    ("Iris", "Gaussian, full"): (310, 310),
    (HOME, "any noise"): (760, 2100),
    (HOME, "Gaussian, full"): (930, 2300),
    ("M=100 K=5 d=10 gap 3", "any noise"): (390, 1300),
    ("M=100 K=5 d=10 gap 3", "Gaussian, full"): (375, 870),
    (FORTY, "any noise"): (1060, 3000),
    (FORTY, "Gaussian, full"): (1040, 2870),
    (f"{HOME}, 5 % outliers of sd 10", "any noise"): (1320,),
    (f"{FORTY}, 5 % outliers of sd 10", "any noise"): (1930,),
    ("ratings 1 to 5", "any noise"): (1600, 5400),
    ("clicks of 100", "counts"): (385, 930),
}
"""Measurements that are asked for at most, by the mean, at each of DELTAS."""


@dataclass(frozen=True)
class Cell:
    """One statement about the noise in one world. `promised`: the world is as stated, so the guarantee holds."""

    case: str
    instance: str
    world: Any
    label: str
    noise: Any
    delta: float
    promised: bool = True

    @property
    def key(self) -> str:
        return f"{self.case} | {self.label} | {self.delta:g} | {self.promised}"


def bursts(rng: np.random.Generator, arms: IntArray, means: FloatArray) -> FloatArray:
    """Clicks whose rate differs from batch to batch: it is drawn from a beta distribution about the item's rate."""
    return rng.binomial(BATCH, rng.beta(20.0 * means, 20.0 * (1.0 - means))).astype(float)


def uneven(instance: str) -> worlds.Scaled:
    """Noise that differs from arm to arm: standard deviations from 0.9 to 1.4, within every group."""
    n_arms = named(instance).n_arms
    return worlds.Scaled(np.linspace(0.9, 1.4, n_arms)[np.random.default_rng(3).permutation(n_arms)])


def covered() -> list[Cell]:
    """Worlds that the statements cover, at every δ; with outliers, where some take very long, at the larger one."""
    kinds: list[tuple[str, str, Any, dict[str, Any]]] = [(name, name, None, STATEMENTS) for name in PLAIN]
    wide = {"any noise": None, "at most": AtMost(OUTLIERS_SD), "symmetric": Symmetric()}
    kinds += [(f"{name}, 5 % outliers of sd 10", name, OUTLIERS, wide) for name in (HOME, FORTY)]
    rated = {"any noise": None, "bounded": Bounded(1, 5)}
    counted = {"any noise": None, "counts": Counts(BATCH), "bounded": Bounded(0, BATCH)}
    kinds.append(("ratings 1 to 5", "ratings", worlds.Ratings(), rated))
    kinds.append((f"clicks of {BATCH}", "clicks", worlds.Clicks(BATCH), counted))
    return [
        Cell(case, name, world, label, noise, delta)
        for case, name, world, stated in kinds
        for delta in (DELTAS[:1] if world is OUTLIERS else DELTAS)
        for label, noise in stated.items()
    ]


def not_covered() -> list[Cell]:
    """Worlds that the statements do not cover, at the larger δ."""
    normal, full, symmetric, at_most = "known", "Gaussian, full", "symmetric", "at most"
    kinds: list[tuple[str, Any, tuple[str, ...]]] = [
        ("t with 3 df", worlds.Student(3), (normal, full)),
        ("5 % outliers of sd 10", OUTLIERS, (normal, full, at_most)),
        ("lognormal", worlds.Skewed(), (normal, full, symmetric)),
        ("sd 1.2", worlds.Normal(1.2), (normal, at_most)),
        ("sd 0.9 to 1.4", uneven, (normal, full, "any noise")),
    ]
    found = [
        Cell(f"{name}, {what}", name, world(name) if world is uneven else world, label, STATEMENTS[label], 0.1, False)
        for name in (HOME, FORTY)
        for what, world, labels in kinds
        for label in labels
    ]
    # Gaussian with the standard deviation that the results have on average, and Gaussian with an unknown one.
    for case, name, world, sd in (
        ("ratings 1 to 5", "ratings", worlds.Ratings(), 0.93),
        (f"clicks of {BATCH}", "clicks", worlds.Clicks(BATCH), 2.8),
    ):
        found.append(Cell(case, name, world, f"known, {sd}", sd, 0.1, False))
        found.append(Cell(case, name, world, full, Gaussian(), 0.1, False))
    found.append(
        Cell(f"clicks of {BATCH}, in bursts", "clicks", worlds.Own(bursts), "counts", Counts(BATCH), 0.1, False)
    )
    return found


def measured(one: Cell, trials: int) -> Row:
    """The row of a cell."""
    running = RunningTrials()
    played = trials_of(one.instance, "croc", "proven", (one.delta,), running, MOST, noise=one.noise, world=one.world)
    ended = together(played, range(trials), running)
    row = {"case": one.case, "delta": one.delta, "promised": one.promised, **cell(one.label, ended, one.delta)}
    row.pop("each", None)
    asked = ASKED.get((one.case, one.label), ()) if one.promised else ()
    place = DELTAS.index(one.delta)
    if place < len(asked):
        row |= {"limit": asked[place], "met": row["mean"] is not None and row["mean"] <= asked[place]}
    return row


def fingerprint() -> str:
    """Of everything that decides the numbers: cells of another engine are measured again."""
    folders = [ROOT / "src" / "coterie" / room for room in ("engine", "methods", "simulate", "problem")]
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    content = hashlib.sha256()
    for path in [*files, Path(__file__), ROOT / "bench" / "instances.py"]:
        content.update(path.read_bytes())
    return content.hexdigest()


class Kept:
    """The cells that are measured already, in a file that is written after each."""

    def __init__(self, path: Path, stamp: str) -> None:
        self._path, self._stamp = path, stamp
        self.rows: dict[str, Row] = {}
        if path.exists():
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["stamp"] == stamp:
                self.rows = content["rows"]

    def add(self, key: str, row: Row) -> None:
        self.rows[key] = row
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({"stamp": self._stamp, "rows": self.rows}), encoding="utf-8")
        fresh.replace(self._path)

    def done(self) -> None:
        self._path.unlink(missing_ok=True)


def all_cells(quick: bool) -> list[Cell]:
    """Every cell; a quick run has those of one small instance and of clicks."""
    every = covered() + not_covered()
    if not quick:
        return every
    return [one for one in every if one.delta == 0.1 and one.instance in (HOME, "clicks") and one.label != "bounded"]


def with_trials(trials: int, quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """A row for each cell."""
    cells = all_cells(quick)
    path = ROOT / "build" / "bench" / f"noise-{'quick-' if quick else ''}{trials}-cells.part"
    kept = Kept(path, fingerprint())
    old = [one for one in cells if one.key in kept.rows]
    if old:
        progress.done(f"{len(old)} of {len(cells)} cells were measured before")
    fresh = [one for one in cells if one.key not in kept.rows]
    for place, one in enumerate(fresh):
        kept.add(one.key, measured(one, trials))
        row = kept.rows[one.key]
        text = f"{one.case}, δ = {one.delta:g}, {one.label}: {_mean(row) or '–'}, {_wrong(row)} wrong"
        progress.done(text, (place + 1) / len(fresh))
    kept.done()
    return [kept.rows[one.key] for one in cells]


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """With the usual number of trials."""
    return with_trials(QUICK_TRIALS if quick else TRIALS, quick, progress, folder)


def _mean(row: Row) -> str | None:
    if row["mean"] is None:
        return None
    digits = 0 if row["mean"] >= 1e3 else 1
    error = row["standard_error"]
    return f"{row['mean']:,.{digits}f}" + (f" ± {error:.{digits}f}" if error is not None else "")


def _wrong(row: Row) -> str:
    return f"{row['wrong']} of {row['trials']}"


def headlines(found: list[Row]) -> list[Headline]:
    """What was asked for; then how often the statements were wrong where they hold, and where they do not."""
    lines = [
        Headline(
            f"{row['case']}, δ = {row['delta']:g}: {row['method']}, measurements", _mean(row) or "–",
            f"≤ {number(row['limit'])}", row["met"],
        )
        for row in found
        if "limit" in row
    ]  # fmt: skip
    for promised, what in ((True, "as stated"), (False, "not as stated")):
        some = [row for row in found if row["promised"] == promised and row["delta"] == 0.1]
        if some:
            wrong, runs = (sum(row[key] for row in some) for key in ("wrong", "trials"))
            text = f"Noise {what}, δ = 0.1: wrong"
            lines.append(Headline(text, f"{wrong} of {runs}", "≤ δ" if promised else "", _within(some)))
    return lines


def _within(some: list[Row]) -> bool | None:
    """Where something is promised: whether every cell is within δ, allowing for chance (probability 1e-4 a cell)."""
    from scipy.stats import binom

    if not some[0]["promised"]:
        return None
    return all(row["wrong"] <= binom.isf(1e-4, row["trials"], row["delta"]) for row in some)


_COLUMNS = (
    Column("instance and world", "case", left=True),
    Column("δ", "delta", lambda delta: f"{delta:g}"),
    Column("told", "method", left=True),
    Column("measurements", _mean),
    Column("median", "median", number),
    Column("95 %", "quantile95", number),
    Column("wrong", _wrong),
    Column("open", "unfinished"),
)

PART = Part(
    f"Measurements by what CROC is told about the noise: mean ± standard error of {TRIALS} trials; another instance in "
    f"every\ntrial where it is drawn ({', '.join(DRAWN)}). Open: no proof within {MOST:,} measurements.\n"
    f"Ratings: means {', '.join(f'{mean:g}' for mean in RATED['ratings'])}; clicks: rates "
    f"{', '.join(f'{rate:g}' for rate in RATED['clicks'])}, counted in batches of {BATCH}; 40 arms each.",
    (*_COLUMNS, Column("goal", lambda row: f"≤ {number(row['limit'])} {sign(row['met'])}" if "limit" in row else "")),
    rows,
    headlines,
    section="case",
    seconds=5400,
    has=lambda row: bool(row["promised"]),
    more=(
        Table(
            "Noise that is not as stated: nothing is promised, and this is what happens.",
            _COLUMNS,
            lambda row: not row["promised"],
            section="case",
        ),
    ),
    with_trials=with_trials,
)
