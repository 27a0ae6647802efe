"""How many more measurements are forecast, over the truth, on families that the forecast was not fitted to.

For parts of the way: the forecast total over the true one (the median, and the range of 8 of 10 moments), by the rule
itself and corrected; and how often the interval has the truth. `python -m bench.forecast_fit` fits the correction.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.forecast_runs import HELD_OUT, Course, run_of
from bench.part import Column, Headline, Part, Progress, Row
from coterie.session.forecast import calibrated

RUNS, QUICK_RUNS = 12, 2
SEED = 7000
BINS = ((0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.0))
FROM = 0.3
"""Of a run: from here on forecasts are asked to be good."""
LOW, HIGH = 0.7, 1.4
LEAST_COVERAGE, MOST_COVERAGE = 0.7, 0.92

Judged = tuple[float, float, float, bool, float]
"""Progress, forecast total over the true one (by the rule, corrected), whether the interval has the truth, weight."""


def judged(run: Course) -> list[Judged]:
    """What the forecasts of a run were worth."""
    found = []
    for one, part in run.parts:
        now, left = calibrated(one.standing, one.left, one.t, run.items), run.total - one.t
        by_rule, corrected = ((one.t + value) / run.total for value in (one.left, now.remaining))
        inside = now.low <= left <= now.high
        found.append((one.t / run.total, by_rule, corrected, inside, part))
    return found


def _row(family: str, part: tuple[float, float], moments: list[Judged], runs: int) -> Row | None:
    chosen = [one for one in moments if part[0] <= one[0] < part[1]]
    if not chosen:
        return None
    columns = np.array(chosen, dtype=np.float64).T
    low, median, high = np.quantile(columns[2], (0.1, 0.5, 0.9)).tolist()
    return {
        "family": family,
        "from": part[0],
        "to": part[1],
        "runs": runs,
        "moments": len(chosen),
        "rule": float(np.median(columns[1])),
        "median": median,
        "low": low,
        "high": high,
        "coverage": float(np.average(columns[3], weights=columns[4])),
    }


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """A row for each family and part of the way, and for all families together."""
    return with_trials(QUICK_RUNS if quick else RUNS, quick, progress, folder)


def with_trials(trials: int, quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """The same with so many runs of each family."""
    found: list[Row] = []
    every: list[Judged] = []
    finished = 0
    for place, (name, make) in enumerate(HELD_OUT.items()):
        moments: list[Judged] = []
        runs = 0
        for trial in range(trials):
            rng = np.random.default_rng([SEED, place, trial])
            run = run_of(*make(rng), rng)
            if run is not None:
                runs += 1
                moments += judged(run)
        parts = (*BINS, (FROM, 1.0))
        found += [row for part in parts if (row := _row(name, part, moments, runs)) is not None]
        every += moments
        finished += runs
        progress.done(name, (place + 1) / len(HELD_OUT))
    together = (_row("all", part, every, finished) for part in (*BINS, (FROM, 1.0)))
    return found + [row for row in together if row is not None]


def headlines(found: list[Row]) -> list[Headline]:
    """The worst median of a family from 30 % of a run on, and how often the interval has the truth."""
    whole = [row for row in found if row["from"] == FROM and row["to"] == 1.0]
    medians = [row["median"] for row in whole if row["family"] != "all"]
    coverage = next(row["coverage"] for row in whole if row["family"] == "all")
    return [
        Headline(
            "forecast total over the truth from 30 % of a run on: medians of families",
            f"{min(medians):.2f} … {max(medians):.2f}",
            f"{LOW} … {HIGH}",
            min(medians) >= LOW and max(medians) <= HIGH,
        ),
        Headline(
            "its interval has the truth (said: 80 %)",
            f"{coverage:.0%}",
            f"{LEAST_COVERAGE:.0%} … {MOST_COVERAGE:.0%}",
            LEAST_COVERAGE <= coverage <= MOST_COVERAGE,
        ),
    ]


PART = Part(
    "Forecasts of the measurements needed in all, over the truth, along the way",
    (
        Column("family", "family", left=True),
        Column("of the way", lambda row: f"{row['from']:.0%} … {row['to']:.0%}", left=True),
        Column("runs", "runs"),
        Column("rule itself", "rule", "{:.2f}".format),
        Column("corrected", "median", "{:.2f}".format),
        Column("8 of 10", lambda row: f"{row['low']:.2f} … {row['high']:.2f}"),
        Column("interval has it", "coverage", "{:.0%}".format),
    ),
    rows,
    headlines,
    section="family",
    seconds=240.0,
    with_trials=with_trials,
)
