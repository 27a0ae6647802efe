"""Hard families with several workers, and with results that nobody asked for.

`bench.hands` has one small instance and two of the first table. Here are families of `bench.families`: 1, 8 and 64
workers who are always busy, and somebody else who measures one arm after the other and only tells CROC.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

import coterie
from bench.cells import Ending, Endings, cell
from bench.crew import Crew, new_session
from bench.families import DELTA, FAMILIES
from bench.part import Column, Headline, Part, Progress, Row, number, times

TRIALS = 32
MOST = 5_000
"""Asks, or results told, of a trial."""

SEED = 9000
CASES = (
    "80,1,1, gap 2, 50 away, d=1",
    "40,40 and two close pairs, d=3",
    "sizes 32 … 1, d=10",
    "a chain of 8, d=1",
    "M=12, K=11, d=3",
    "four of 10, d=3",
    "20,20 and 20 far away, d=3",
)
QUICK = ("M=12, K=11, d=3",)
TOLD = 0
WAYS = {1: "1 worker", 8: "8 workers", 64: "64 workers", TOLD: "told in turn, nothing asked for"}


def played(case: str, workers: int, trial: int, most: int) -> tuple[Ending, int]:
    """How a trial ended, by the results that counted, and all asks made until then."""
    instance = FAMILIES[case].instance
    session = new_session(instance, DELTA)
    crew = Crew(session, instance, [SEED, trial])
    if workers == TOLD:
        crew.in_turn(most)
    else:
        crew.always_busy(workers, most)
    right = session.done and coterie.same_partition(session.labels, instance.labels)
    return Ending(session.t, bool(right), session.done), crew.asked


def row_of(case: str, workers: int, ends: list[tuple[Ending, int]], one: Row | None) -> Row:
    """The cell of a way; ratios are of medians, to one worker's (None: this is one worker)."""
    row = cell(WAYS[workers], Endings({DELTA: [ending for ending, _ in ends]}), DELTA)
    row.pop("each", None)
    asks = [asked if ending.done else math.inf for ending, asked in ends]
    asked = float(np.median(asks))
    row |= {"case": case, "workers": workers, "asked": asked if workers != TOLD and math.isfinite(asked) else None}
    base = row if one is None else one
    row["over_one"] = row["median"] / base["median"] if row["median"] and base["median"] else None
    row["asked_over_one"] = row["asked"] / base["asked"] if row["asked"] and base["asked"] else None
    return row


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each family and way."""
    cases, trials, most = (QUICK, 2, 2_000) if quick else (CASES, TRIALS, MOST)
    found: list[Row] = []
    for case in cases:
        one: Row | None = None
        for workers in WAYS:
            ends = [played(case, workers, trial, most) for trial in range(trials)]
            found.append(row_of(case, workers, ends, one))
            one = one or found[-1]
            progress.done(f"{case}, {WAYS[workers]}: {_mean(found[-1])}", len(found) / len(cases) / len(WAYS))
    return found


def _mean(row: Row) -> str:
    if row["mean"] is None:
        return f"{row['unfinished']} unfinished"
    error = row["standard_error"]
    return number(row["mean"]) + ("" if error is None else f" ± {number(error)}")


def headlines(found: list[Row]) -> list[Headline]:
    """The worst family for each number of workers, and for results told in turn."""
    lines = []
    for workers, way in WAYS.items():
        known = [row for row in found if row["workers"] == workers and row["over_one"]]
        if workers != 1 and known:
            worst = max(known, key=lambda row: float(row["over_one"]))
            what = f"{len(known)} families, {way}: medians over one worker's, largest ({worst['case']})"
            lines.append(Headline(what, times(worst["over_one"])))
    runs, unfinished = (sum(row[key] for row in found) for key in ("trials", "unfinished"))
    if found:
        lines.append(Headline("families with workers, and told in turn: unfinished", f"{unfinished} of {runs:,}"))
    return lines


PART = Part(
    f"CROC on families with workers who are always busy, and with results that nobody asked for, δ = {DELTA:g}: "
    f"results that\ncounted, {TRIALS} trials of at most {MOST:,}; /: over one worker's, of medians; asked: with those "
    "still out.",
    (
        Column("family", "case", left=True),
        Column("", "method", left=True),
        Column("counted, mean", _mean),
        Column("median", "median", number),
        Column("/", "over_one", times),
        Column("95 %", "quantile95", number),
        Column("asked, median", lambda row: "" if row["workers"] == TOLD else row["asked"] and number(row["asked"])),
        Column(
            "/", lambda row: "" if row["workers"] == TOLD else row["asked_over_one"] and times(row["asked_over_one"])
        ),
        Column("open", "unfinished"),
        Column("wrong", "wrong"),
    ),
    rows,
    headlines,
    section="case",
    seconds=400,
)
