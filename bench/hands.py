"""Several workers always busy, and batches: measurements of CROC over those with one worker.

Every step one of the open asks, any of them, is answered and another one is asked for; or so many are asked for at
once and all are answered. Counted are the results that CROC had used when it stopped, and all asks made until then,
those included whose results were still out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import coterie
from bench.cells import summed_up
from bench.crew import Crew, new_session
from bench.families import DELTA
from bench.instances import named
from bench.part import Column, Headline, Part, Progress, Row, number, sign, times

TRIALS = 128
MOST = 50_000
"""Asks of a trial."""

SEED = 4000


@dataclass(frozen=True)
class Way:
    """So many workers, or a batch of that size; `at_most`: so many times the measurements of one are asked for."""

    size: int
    batch: bool = False
    at_most: float | None = None

    def __str__(self) -> str:
        if self.batch:
            return f"batches of {self.size}"
        return f"{self.size} workers" if self.size > 1 else "1 worker"


SMALL = "M=4 K=2 d=1 gap 0.5"
ONE = Way(1)
CASES: dict[str, tuple[Way, ...]] = {
    SMALL: (ONE, Way(8, at_most=1.3), Way(16, at_most=1.6), Way(64, at_most=2.5),
            Way(8, True, 1.3), Way(64, True, 2.5)),
    "challenging": (ONE, Way(8, at_most=1.15), Way(8, True, 1.15)),
    "M=40 K=4 d=5 gap 1": (ONE, Way(8, at_most=1.15), Way(8, True, 1.15)),
}  # fmt: skip
"""One worker comes first."""


def instance_of(case: str, trial: int) -> coterie.Instance:
    """Another instance in every trial where it is drawn."""
    return coterie.Instance([0, 0, 1, 1], [[0.0], [0.5]]) if case == SMALL else named(case, trial)


def played(case: str, way: Way, trial: int, most: int) -> tuple[float, float, bool]:
    """Results that counted and asks made at the stop, both infinite without one; and whether the groups were wrong."""
    instance = instance_of(case, trial)
    session = new_session(instance, DELTA)
    crew = Crew(session, instance, [SEED, trial])
    (crew.in_batches if way.batch else crew.always_busy)(way.size, most)
    if not session.done:
        return np.inf, np.inf, False
    return session.t, crew.asked, not coterie.same_partition(session.labels, instance.labels)


def row_of(case: str, way: Way, ends: list[tuple[float, float, bool]], one: Row | None) -> Row:
    """Means and medians, and their ratios to those of one worker (None: this is one worker)."""
    t, asks = (np.array([end[place] for end in ends], dtype=float) for place in (0, 1))
    row: Row = {"case": case, "way": str(way), "trials": len(ends), "at_most": way.at_most}
    for name, values in (("counted", t), ("asked", asks)):
        known = np.isfinite(values).all()
        row[f"{name}_mean"] = float(values.mean()) if known else None
        row[f"{name}_error"] = float(values.std(ddof=1) / np.sqrt(len(ends))) if known and len(ends) > 1 else None
        row[f"{name}_median"] = summed_up(values)["median"]
    row["unfinished"] = int(np.isinf(t).sum())
    row["wrong"] = sum(end[2] for end in ends)
    base = row if one is None else one
    for key in ("counted_mean", "counted_median", "asked_mean", "asked_median"):
        row[f"{key}_ratio"] = row[key] / base[key] if row[key] and base[key] else None
    ratio = row["counted_mean_ratio"]
    row["met"] = None if way.at_most is None else ratio is not None and ratio <= way.at_most
    return row


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each instance and way."""
    trials, most = (4, 3_000) if quick else (TRIALS, MOST)
    cases = {SMALL: (ONE, Way(8, at_most=1.3), Way(8, True, 1.3))} if quick else CASES
    played(SMALL, ONE, 0, 100)  # loads
    found: list[Row] = []
    total = sum(map(len, cases.values()))
    for case, ways in cases.items():
        one: Row | None = None
        for way in ways:
            ends = [played(case, way, trial, most) for trial in range(trials)]
            found.append(row_of(case, way, ends, one))
            one = one or found[-1]
            text = f"{case}, {way}: {_mean(found[-1], 'counted') or 'unfinished'}"
            progress.done(text, len(found) / total)
    return found


def _mean(row: Row, what: str) -> str | None:
    if row[f"{what}_mean"] is None:
        return None
    error = row[f"{what}_error"]
    return number(row[f"{what}_mean"]) + ("" if error is None else f" ± {number(error)}")


def _asked_for(row: Row) -> str:
    return "" if row["at_most"] is None else f"≤ {row['at_most']:g}× {sign(row['met'])}"


def headlines(found: list[Row]) -> list[Headline]:
    """Every ratio that something was asked of."""
    return [
        Headline(
            f"{row['case']}, {row['way']}: measurements over one worker's",
            "–" if row["counted_mean_ratio"] is None else times(row["counted_mean_ratio"]),
            f"≤ {row['at_most']:g}×",
            row["met"],
        )
        for row in found
        if row["at_most"] is not None
    ]


PART = Part(
    f"CROC with workers that are always busy, and in batches, δ = {DELTA:g}: results that counted at the stop, and all "
    f"asks made\nuntil then; /: over one worker's. {TRIALS} trials of at most {MOST:,} asks; ± standard error.",
    (
        Column("instance", "case", left=True),
        Column("", "way", left=True),
        Column("counted, mean", lambda row: _mean(row, "counted")),
        Column("/", "counted_mean_ratio", times),
        Column("median", "counted_median", number),
        Column("/", "counted_median_ratio", times),
        Column("asked, mean", lambda row: _mean(row, "asked")),
        Column("/", "asked_mean_ratio", times),
        Column("open", "unfinished"),
        Column("wrong", "wrong"),
        Column("goal", _asked_for),
    ),
    rows,
    headlines,
    section="case",
    seconds=500,
)
