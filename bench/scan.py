"""Random instances: measurements of CROC over D*·(log 1/δ + d/2) + M, by the kind of the groups' sizes.

An instance is fixed by its seed alone; a run is given up at so many times what may be expected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.cells import summed_up
from bench.families import DELTA, SIZES, random_instance, yardstick
from bench.part import Column, Headline, Part, Progress, Row, Table, number, times

INSTANCES, RUNS = 500, 5
FIRST_SEED = 700_000
GIVE_UP = 100
LONGEST = 8
"""Of the instances with the longest runs, so many are shown."""

QUANTILE_AT_MOST, LARGEST_AT_MOST = 7.0, 15.0


@dataclass(frozen=True)
class Scanned:
    """The runs on one instance. `ratios`: measurements over what may be expected, infinite where unfinished."""

    seed: int
    shape: str
    sizes: str
    ratios: tuple[float, ...]
    wrong: int


def scanned(seed: int, runs: int, workers: int | None = None) -> Scanned:
    """The instance of this seed, and so many runs on it."""
    drawn = random_instance(np.random.default_rng(seed))
    expected = yardstick(drawn.instance)
    trials = coterie.simulate(
        drawn.instance, "croc", deltas=(DELTA,), trials=runs, seed=seed, workers=workers,
        max_pulls=math.ceil(GIVE_UP * expected), progress=False,
    )  # fmt: skip
    stops = trials.stopping_times[:, 0]
    ratios = np.where(stops >= 0, stops / expected, np.inf)
    return Scanned(seed, str(drawn), drawn.sizes, tuple(ratios.tolist()), int(trials.errors()[0]))


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each kind of sizes, one for all, and the instances with the longest runs."""
    count, runs = (6, 2) if quick else (INSTANCES, RUNS)
    found: list[Scanned] = []
    for i in range(count):
        found.append(scanned(FIRST_SEED + i, runs))
        if (i + 1) % max(1, count // 10) == 0:
            so_far = row_of("all", found)
            progress.done(f"{i + 1} instances: 99 % {_text(so_far, 'quantile99')}", (i + 1) / count)
    by_kind = [row_of(kind, [each for each in found if each.sizes == kind]) for kind in SIZES]
    found.sort(key=lambda each: max(each.ratios), reverse=True)
    return (
        [row for row in by_kind if row["runs"]] + [row_of("all", found)] + [_longest(each) for each in found[:LONGEST]]
    )


def row_of(sizes: str, found: list[Scanned]) -> Row:
    """The runs on all these instances together."""
    ratios = [ratio for each in found for ratio in each.ratios]
    row: Row = {"sizes": sizes, "instances": len(found), "runs": len(ratios)}
    if not ratios:
        return row
    wrong = sum(each.wrong for each in found)
    return row | summed_up(ratios) | {"unfinished": sum(map(math.isinf, ratios)), "wrong": wrong}


def _longest(each: Scanned) -> Row:
    finite = [ratio for ratio in each.ratios if math.isfinite(ratio)]
    unfinished = len(each.ratios) - len(finite)
    return {"seed": each.seed, "shape": each.shape, "ratios": sorted(finite), "unfinished": unfinished}


def _text(row: Row, key: str) -> str:
    return f"> {GIVE_UP}×" if row[key] is None else times(row[key])


def _column(heading: str, key: str) -> Column:
    return Column(heading, lambda row: _text(row, key))


def _ratios(row: Row) -> str:
    return ", ".join([*(f"{ratio:.3g}" for ratio in row["ratios"]), *(f"> {GIVE_UP}",) * row["unfinished"]])


def headlines(found: list[Row]) -> list[Headline]:
    every: dict[str, Any] = next(row for row in found if row.get("sizes") == "all")
    what = f"{every['instances']} random instances × {every['runs'] // every['instances']}: T/(D*(log 1/δ + d/2) + M)"
    return [
        Headline(f"{what}, {name}", _text(every, key), f"≤ {limit:g}×" if limit else "", _kept(every[key], limit))
        for name, key, limit in (
            ("median", "median", None),
            ("99 % quantile", "quantile99", QUANTILE_AT_MOST),
            ("largest", "largest", LARGEST_AT_MOST),
        )
    ]


def _kept(value: float | None, limit: float | None) -> bool | None:
    return None if limit is None else value is not None and value <= limit


PART = Part(
    "Random instances (M 3 … 60, K 2 … M−1, d 1 … 20, smallest gap 0.5 … 10), "
    f"δ = {DELTA:g}: CROC's measurements over\nD*·(log 1/δ + d/2) + M; given up at {GIVE_UP} times that.",
    (
        Column("sizes", "sizes", left=True),
        Column("instances", "instances"),
        Column("runs", "runs", number),
        _column("median", "median"),
        _column("95 %", "quantile95"),
        _column("99 %", "quantile99"),
        _column("largest", "largest"),
        Column("unfinished", "unfinished"),
        Column("wrong", "wrong"),
    ),
    rows,
    headlines,
    seconds=300,
    has=lambda row: "sizes" in row,
    more=(
        Table(
            "The instances with the longest runs.",
            (
                Column("seed", "seed"),
                Column("instance", "shape", left=True),
                Column("its runs, over what may be expected", _ratios, left=True),
            ),
            lambda row: "seed" in row,
        ),
    ),
)
