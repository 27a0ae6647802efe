"""CROC beside what people do with a table today: equally many measurements of every item, then Tukey or Scott–Knott.

First table: the measurements that it takes until the groups are all right with the same certainty. CROC stops by itself
when they are proven; of a fixed design it is the smallest for which a share 1−δ of simulated tables is right
(`bench.fixed_designs`), which nobody knows before measuring: it depends on the differences that are looked for. Second
table: the same number of measurements that CROC takes on average, spent on equally many for every item.

A table is right if items share a letter, or a group, exactly if they are equal. On a continuum no two items are equal,
there is no K, and right is: no two items of a group, or with the same letter, differ by more than η.

Cells that are measured are kept in build/bench until the part is done, so that a run that was broken off goes on.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import coterie
from bench.cells import Ending, Endings, cell, together
from bench.fixed_designs import DESIGNS, Tables
from bench.noise import Kept
from bench.part import ROOT, Column, Headline, Part, Progress, Row, Table, number, times
from coterie.methods.trials import RunningTrials
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import same_partition
from coterie.simulate.bulk import plan_for, run_trial

DELTA = 0.1
TRIALS, RUNS = 200, 2000
"""Runs of CROC, and simulated tables of a fixed design."""

QUICK_TRIALS, QUICK_RUNS = 8, 60
RESOLUTION_TRIALS = 10
MOST = 20_000
"""Measurements of a run; one that is not done by then is unfinished."""

MOST_OF_AN_ITEM = 1000
"""The largest fixed design: so many measurements of every item."""

SEED = 1400


@dataclass(frozen=True)
class Family:
    """Items by their means, in units of the noise. `resolution`: (ε, η) and what is claimed, where no K is given."""

    means: tuple[float, ...]
    resolution: coterie.Resolution
    has_groups: bool = True

    @property
    def array(self) -> FloatArray:
        return np.array(self.means)

    @property
    def groups(self) -> IntArray:
        return np.asarray(np.unique(self.array, return_inverse=True)[1])

    @property
    def instance(self) -> coterie.Instance:
        return coterie.Instance(self.groups, np.unique(self.array)[:, None])

    @property
    def apart(self) -> NDArray[np.bool_]:
        """(M, M): the pairs that have to be told apart."""
        gaps = np.abs(self.array[:, None] - self.array[None, :])
        return gaps > 0.0 if self.has_groups else gaps > self.resolution.apart[0]

    def right(self, labels: IntArray) -> bool:
        """Whether found groups are right."""
        if self.has_groups:
            return bool(same_partition(labels, self.groups))
        return not bool((self.apart & (labels[:, None] == labels[None, :])).any())


def _groups(sizes: tuple[int, ...], gap: float) -> Family:
    """Groups `gap` apart on a line."""
    means = tuple(gap * k for k, size in enumerate(sizes) for _ in range(size))
    return Family(means, coterie.Resolution(0.0, gap))


FAMILIES: dict[str, Family] = {
    "two groups, M = 10, gap 2": _groups((5, 5), 2.0),
    "three groups, M = 12, gap 1.5": _groups((4, 4, 4), 1.5),
    "one dominant group, M = 20, gap 1": _groups((16, 2, 2), 1.0),
    "chain of five, M = 20, gap 1": _groups((4,) * 5, 1.0),
    "four groups, M = 40, gap 1": _groups((10,) * 4, 1.0),
    "continuum, M = 20, η = 1.5": Family(
        tuple(np.linspace(0.0, 3.0, 20).tolist()), coterie.Resolution(0.5, 1.5, claim="any-two"), has_groups=False
    ),
}

WAYS: dict[str, tuple[Any, bool]] = {
    "CROC, K and noise known": (1.0, False),
    "CROC, K known, Gaussian": (coterie.Gaussian("full"), False),
    "CROC, K known, any noise": (None, False),
    "CROC, resolution, noise known": (1.0, True),
    "CROC, resolution, Gaussian": (coterie.Gaussian("full"), True),
}
"""What CROC is told about the noise, and whether it is given a resolution instead of K. Tukey assumes "Gaussian"."""

SAME_ASSUMPTION, ANY = "CROC, K known, Gaussian", "CROC, K known, any noise"


def ways_of(family: Family) -> list[str]:
    """The ways of CROC that can be tried here."""
    there = find_spec("coterie.methods.resolution") is not None
    return [way for way, (_, resolution) in WAYS.items() if (there if resolution else family.has_groups)]


def croc_row(name: str, way: str, trials: int) -> Row:
    """The measurements that CROC takes."""
    family, (noise, resolution) = FAMILIES[name], WAYS[way]
    running = RunningTrials()
    if resolution:
        some = min(trials, RESOLUTION_TRIALS)
        ended = Endings({DELTA: [_resolution_trial(family, noise, place) for place in range(some)]})
    else:
        plan = plan_for(family.instance, "croc", (DELTA,), "proven", MOST, noise=noise)

        def one(trial: int) -> Endings:
            stops = run_trial(plan, SEED, trial, running).stops["proven"]
            stop = int(stops.times[0])  # 0: did not stop
            return Endings({DELTA: [Ending(stop or MOST, bool(stops.correct[0]), stop > 0)]})

        ended = together(one, range(trials), running)
    row = {"table": "needed", "case": name, "n_arms": len(family.means), **cell(way, ended, DELTA)}
    del row["each"], row["pilots"]
    return row


def _resolution_trial(family: Family, noise: Any, place: int) -> Ending:
    """One run without K, asked and told."""
    means, rng = family.array, np.random.default_rng([SEED, place])
    session = coterie.Session(means.size, None, 1, DELTA, noise=noise, resolution=family.resolution)
    while not session.done and session.t < MOST:
        for arm in session.ask(1):
            session.tell(arm, means[arm] + rng.standard_normal())
    return Ending(session.t, session.done and family.right(np.asarray(session.labels)), session.done)


def fixed_rows(name: str, runs: int) -> list[Row]:
    """The fixed designs that it takes."""
    family = FAMILIES[name]
    tables, n_arms, found = Tables(family.array, family.apart, runs, SEED), len(family.means), []
    for design in DESIGNS:
        n, outcome = tables.needed(design, DELTA, MOST_OF_AN_ITEM)
        enough = outcome.not_right <= DELTA * runs
        total = float(n * n_arms) if enough else None
        row: Row = {"table": "needed", "case": name, "n_arms": n_arms, "method": design.name, "trials": runs}
        row |= dict.fromkeys(("mean", "median", "quantile95"), total)
        row |= {"of_an_item": n if enough else None, "standard_error": None, "unfinished": 0}
        row |= {"wrong": outcome.not_right, "never": not enough}
        found.append(row)
    return found


def budget_rows(name: str, croc: list[Row], runs: int) -> list[Row]:
    """What fixed designs give for the mean number of measurements of CROC."""
    family, found = FAMILIES[name], []
    tables, n_arms = Tables(family.array, family.apart, runs, SEED + 1), len(family.means)
    for row in croc:
        if row["mean"] is None:
            continue
        n = max(2, round(row["mean"] / n_arms))
        line: Row = {"table": "budget", "case": name, "budget_of": row["method"], "mean": row["mean"], "of_an_item": n}
        line |= {"runs": runs, "croc": [row["wrong"], row["unfinished"], row["trials"]]}
        for design in DESIGNS:
            outcome = tables.outcome(design, n, DELTA)
            line[design.name] = [outcome.not_right, outcome.false_difference]
        found.append(line)
    return found


def fingerprint() -> str:
    """Of everything that decides the numbers: cells of another engine are measured again."""
    folders = [ROOT / "src" / "coterie" / room for room in ("engine", "methods", "simulate", "problem", "evidence")]
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    content = hashlib.sha256()
    for path in [*files, Path(__file__), ROOT / "bench" / "fixed_designs.py"]:
        content.update(path.read_bytes())
    return content.hexdigest()


def with_trials(trials: int, quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """Rows of every family; the tables of fixed designs are five times as many as the runs of CROC."""
    names = list(FAMILIES)[:2] if quick else list(FAMILIES)
    runs = QUICK_RUNS if quick else max(RUNS, 5 * trials)
    path = ROOT / "build" / "bench" / f"classic-{'quick-' if quick else ''}{trials}-cells.part"
    kept = Kept(path, fingerprint())
    cells = [(name, way) for name in names for way in (*ways_of(FAMILIES[name]), "fixed designs", "budget")]
    keys = [f"{name} | {way}" for name, way in cells]
    old = sum(key in kept.rows for key in keys)
    if old:
        progress.done(f"{old} of {len(keys)} cells were measured before")
    for place, ((name, way), key) in enumerate(zip(cells, keys, strict=True)):
        if key in kept.rows:
            continue
        if way == "fixed designs":
            found = fixed_rows(name, runs)
        elif way == "budget":
            croc = [kept.rows[f"{name} | {one}"]["rows"][0] for one in ways_of(FAMILIES[name]) if one != ANY]
            found = budget_rows(name, croc, runs)
        else:
            found = [croc_row(name, way, trials)]
        kept.add(key, {"rows": found})
        said = f", {number(found[0]['mean'])}" if way in WAYS and found[0]["mean"] is not None else ""
        progress.done(f"{name}: {way}{said}", (place + 1) / len(cells))
    kept.done()
    return [row for key in keys for row in kept.rows[key]["rows"]]


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """With the usual number of runs."""
    return with_trials(QUICK_TRIALS if quick else TRIALS, quick, progress, folder)


def headlines(found: list[Row]) -> list[Headline]:
    """Tukey's measurements over those of CROC under the same assumption; how often CROC was wrong."""
    lines = []
    needed = [row for row in found if row["table"] == "needed"]
    for case in dict.fromkeys(row["case"] for row in needed):
        here = {row["method"]: row["mean"] for row in needed if row["case"] == case}
        croc, tukey = here.get(SAME_ASSUMPTION), here.get(DESIGNS[0].name)
        if croc and tukey:
            lines.append(Headline(f"{case}: fixed design for Tukey's letters over CROC", times(tukey / croc)))
    croc_rows = [row for row in needed if row["method"] in WAYS]
    wrong, runs = (sum(row[key] or 0 for row in croc_rows) for key in ("wrong", "trials"))
    lines.append(Headline(f"CROC on tables of one number, δ = {DELTA:g}: wrong", f"{wrong} of {runs}", "≤ δ",
                          wrong <= DELTA * runs))  # fmt: skip
    return lines


def _mean(row: Row) -> str | None:
    if row["mean"] is None:
        return f"> {number(MOST_OF_AN_ITEM * row['n_arms'])}" if row.get("never") else None
    error = row["standard_error"]
    return number(row["mean"]) + (f" ± {number(error)}" if error is not None else "")


def _spent(row: Row) -> str:
    return f"{number(row['mean'])}, {row['of_an_item']} an item"


def _budget_column(name: str) -> Column:
    def share(row: Row) -> str:
        not_right, false = row[name]
        return f"{not_right / row['runs']:.1%}; {false / row['runs']:.1%}"

    return Column(name, share)


PART = Part(
    f"Measurements until the groups are all right with certainty 1−δ, δ = {DELTA:g}: mean ± standard error of CROC "
    f"({TRIALS} runs,\n{RESOLUTION_TRIALS} with a resolution), and the fixed design with which {1 - DELTA:.0%} of "
    f"{RUNS:,} simulated tables are right, if one up to\n{MOST_OF_AN_ITEM} measurements of an item does. Wrong: not "
    "right, so of fixed designs at most δ by construction.",
    (
        Column("items", "case", left=True),
        Column("way", "method", left=True),
        Column("measurements", _mean),
        Column("median", "median", number),
        Column("95 %", "quantile95", number),
        Column("of an item", lambda row: row.get("of_an_item", "") or ""),
        Column("wrong", lambda row: f"{row['wrong']} of {row['trials']}"),
        Column("open", "unfinished"),
    ),
    rows,
    headlines,
    section="case",
    seconds=240,
    has=lambda row: row["table"] == "needed",
    more=(
        Table(
            "The measurements that CROC takes on average, as many of every item: tables that are not right; among them "
            "tables\nin which equal items are told apart. CROC: wrong, unfinished, runs.",
            (
                Column("items", "case", left=True),
                Column("the measurements of", "budget_of", left=True),
                Column("spent", _spent),
                Column("CROC", lambda row: "; ".join(str(value) for value in row["croc"])),
                *(_budget_column(design.name) for design in DESIGNS),
            ),
            lambda row: row["table"] == "budget",
            section="case",
        ),
    ),
    with_trials=with_trials,
)
