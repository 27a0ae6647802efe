"""Half widths of intervals that hold at every moment, over those for one number of results; how often one is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom, norm
from scipy.stats import t as student

from bench.part import Column, Headline, Part, Progress, Row, Table
from coterie.evidence.intervals.gaussian_means import (
    _variance_root,
    difference_reach,
    gaussian_intervals,
    known_reach,
)
from coterie.evidence.intervals.hedged_means import (
    betting_evidence,
    betting_interval,
    catoni_evidence,
    difference_interval,
    rate_evidence,
)
from coterie.evidence.intervals.streams import quantile_interval

A, RUNS = 0.05, 40
LENGTHS = (10, 30, 100, 1000)
ASKED: dict[str, dict[int, float]] = {
    "known, a = 0.05": {10: 1.64, 30: 1.66, 100: 1.71, 1000: 1.82},
    "known, a = 0.1/12": {10: 1.43, 30: 1.44, 100: 1.47, 1000: 1.54},
    "difference, known": {10: 1.87, 30: 1.92, 100: 1.99, 1000: 2.14},
    "Gaussian, as told, ν = 300": {10: 1.95, 30: 1.98, 100: 2.03},
    "Gaussian, universal inference alone": {10: 2.75, 30: 2.19, 100: 2.19, 1000: 2.43},
    "bounded, Beta(2, 3)": {30: 1.76, 100: 1.48, 1000: 1.69},
    "at most, t with 3 df": {30: 1.74, 100: 2.02, 1000: 2.70},
    "median, normal results": {30: 1.69, 100: 1.68, 1000: 1.84},
}
"""The widths that were asked for; the rows that have none are shown beside them."""


def widths(runs: int = 40, seed: int = 0) -> dict[str, dict[int, float]]:
    """By formula and number of results: the mean half width over that of the usual interval, at the same a."""
    rng = np.random.default_rng(seed)
    level, usual = -math.log(A), float(norm.isf(A / 2))
    small = 0.1 / 12
    table: dict[str, dict[int, float]] = {}

    def add(name: str, n: int, value: Any) -> None:
        table.setdefault(name, {})[n] = float(value)

    bound = math.sqrt(300.0 / (2.0 * _variance_root(300, -math.log(0.01))))  # σ₊/σ where residuals are as they should
    for n in LENGTHS:
        count, root = np.array(n), math.sqrt(n)
        add("known, a = 0.05", n, known_reach(count, level) * root / usual)
        add("known, a = 0.1/12", n, known_reach(count, -math.log(small)) * root / float(norm.isf(small / 2)))
        add("difference, known", n, difference_reach(count, count, level) * root / usual / math.sqrt(2.0))
        x = rng.standard_normal((runs, n))
        low, high = gaussian_intervals(list(x), np.full(runs, bound), level - math.log(0.9))
        add("Gaussian, as told, ν = 300", n, np.mean(high - low) * root / 2.0 / usual)
        low, high = gaussian_intervals(list(x), np.full(runs, np.inf), level, 0.0)
        spread = x.std(axis=1, ddof=1) * student.isf(A / 2, n - 1)
        add("Gaussian, universal inference alone", n, np.mean((high - low) / 2.0 / spread) * root)
        if n >= 30:
            _add_others(add, rng, n, min(runs, 40), level, usual)
    return table


def _add_others(
    add: Callable[[str, int, float], None], rng: np.random.Generator, n: int, runs: int, level: float, usual: float
) -> None:
    parts: dict[str, list[float]] = {}

    def put(name: str, ends: tuple[float, float], over: float) -> None:
        parts.setdefault(name, []).append((ends[1] - ends[0]) / 2.0 / over)

    two, root = level + math.log(2.0), math.sqrt(n)
    low_rank = int(binom(n, 0.5).ppf(A / 2))
    for _ in range(runs):
        x, y = rng.beta(2, 3, (2, n))
        put("bounded, Beta(2, 3)", betting_interval(x, two), usual * x.std() / root)
        both = usual * math.sqrt((x.var() + y.var()) / n)
        put("difference, bounded", difference_interval(betting_evidence(x, two), betting_evidence(y, two), level), both)
        x, y = rng.standard_t(3, (2, n)) / math.sqrt(3.0)
        put("at most, t with 3 df", catoni_evidence(x).interval(level), usual / root)
        ends = difference_interval(catoni_evidence(x), catoni_evidence(y), level)
        put("difference, at most", ends, usual * math.sqrt(2.0 / n))
        successes = rng.binomial(n, 0.3, 2).astype(float)
        rates = [rate_evidence(s, float(n)) for s in successes]
        deviation = math.sqrt(0.21 / n)
        put("counts, rate 0.3", rates[0].interval(level), usual * deviation)
        put("difference, counts", difference_interval(rates[0], rates[1], level), usual * deviation * math.sqrt(2.0))
        z = rng.standard_normal(n)
        ranked = np.sort(z)
        put(
            "median, normal results",
            quantile_interval(z, 0.5, level),
            (ranked[n - low_rank] - ranked[low_rank - 1]) / 2,
        )
    for name, values in parts.items():
        add(name, n, float(np.mean(values)))


def ever_wrong(runs: int, seed: int = 1) -> dict[str, float]:
    """How often the truth was ever outside, read after every result, in percent."""
    rng = np.random.default_rng(seed)
    level = -math.log(A)
    n = np.arange(1, 501)
    means = np.cumsum(rng.standard_normal((runs, n.size)), axis=1) / n
    rare = (rng.random((runs, 300)) < 0.03).astype(float)
    ends = np.array([betting_interval(x, level + math.log(2.0)) for x in rare])
    return {
        "known, 500 results": 100.0 * float((np.abs(means) > known_reach(n, level)).any(axis=1).mean()),
        "the fixed-sample interval": 100.0 * float((np.abs(means) > 1.96 / np.sqrt(n)).any(axis=1).mean()),
        "betting, 0/1 at 0.03, 300 results": 100.0 * float(((ends[:, 0] > 0.03) | (ends[:, 1] < 0.03)).mean()),
    }


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """A row for each formula, with a width for each number of results; then the errors."""
    runs = 4 if quick else RUNS
    found: list[Row] = []
    for name, row in widths(runs).items():
        asked = ASKED.get(name, {})
        shown = {str(n): row.get(n) for n in LENGTHS} | {f"asked {n}": asked.get(n) for n in LENGTHS}
        found.append({"what": name, **shown, "met": all(row[n] <= 1.05 * width for n, width in asked.items())})
    progress.done(f"{len(found)} widths", 0.6)
    found += [{"error of": name, "share": share / 100.0} for name, share in ever_wrong(25 * runs).items()]
    return found


def _width(n: int) -> Column:
    def cell(row: Row) -> str | None:
        if row[str(n)] is None:
            return None
        asked = row[f"asked {n}"]
        return f"{row[str(n)]:.2f}" + ("" if asked is None else f" ({asked:.2f})")

    return Column(f"n = {n:,}", cell)


def headlines(found: list[Row]) -> list[Headline]:
    """Widths beyond what was asked for."""
    wide = [row["what"] for row in found if "what" in row and not row["met"]]
    said = ", ".join(wide) or "none"
    return [Headline("intervals: widths more than 1.05 times those asked for", said, "none", not wide)]


PART = Part(
    f"Half widths of intervals that hold at every moment, over those of the usual interval for one n, at a = {A}; in "
    "brackets what was asked for.",
    (Column("interval", "what", left=True), *map(_width, LENGTHS)),
    rows,
    headlines,
    has=lambda row: "what" in row,
    more=(
        Table(
            f"How often an interval was ever wrong, looked at after every result, at a = {A}.",
            (Column("interval", "error of", left=True), Column("ever wrong", "share", lambda value: f"{value:.1%}")),
            lambda row: "error of" in row,
        ),
    ),
    seconds=60,
)
