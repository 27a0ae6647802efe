"""Somebody else decides what is measured: one result of each arm after the other, none of them asked for.

CROC and Uniform with the proven threshold are told the same results. What they need until they stop is compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.cells import summed_up
from bench.crew import Crew, new_session
from bench.families import DELTA, Drawn, random_instance
from bench.part import Column, Headline, Part, Progress, Row, number, sign, times

INSTANCES, RUNS = 18, 5
MOST = 20_000
"""Results of a run."""

AT_MOST = 1.5
SEED = 5000
METHODS = ("croc", "uniform")


def small_instance(place: int) -> Drawn:
    """M 4 … 12, K 2 … 3, d 1 … 3, smallest gap 0.5 … 3: below 1, a pair needs more than 64 results of an arm."""
    rng = np.random.default_rng([SEED, place])
    return random_instance(rng, arms=(4, 12), dims=(1, 3), gaps=(0.5, 3.0), most_clusters=3)


def stop(instance: coterie.Instance, method: str, seed: list[int], most: int) -> tuple[float, bool]:
    """Results until it stopped, infinite if it did not, and whether the groups were wrong."""
    session = new_session(instance, DELTA, method)
    Crew(session, instance, seed).in_turn(most)
    wrong = session.done and not coterie.same_partition(session.labels, instance.labels)
    return session.t if session.done else np.inf, wrong


def on(place: int, runs: int, most: int) -> Row:
    """One instance: medians of both, and their ratio."""
    drawn = small_instance(place)
    row: Row = {"instance": str(drawn), "runs": runs}
    medians: dict[str, Any] = {}
    for method in METHODS:
        ends = [stop(drawn.instance, method, [SEED, place, run], most) for run in range(runs)]
        medians[method] = row[method] = summed_up([t for t, _ in ends])["median"]
        row[f"{method}_unfinished"] = sum(bool(np.isinf(t)) for t, _ in ends)
        row[f"{method}_wrong"] = sum(wrong for _, wrong in ends)
    row["uniform_at_least"] = medians["uniform"] is None  # then it lies beyond the limit, and the ratio is a bound
    row["ratio"] = None if medians["croc"] is None else medians["croc"] / (medians["uniform"] or most)
    row["met"] = row["ratio"] is not None and row["ratio"] <= AT_MOST
    return row


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each instance."""
    count, runs, most = (2, 1, 1_500) if quick else (INSTANCES, RUNS, MOST)
    found: list[Row] = []
    for place in range(count):
        found.append(on(place, runs, most))
        row = found[-1]
        progress.done(f"{row['instance']}: {_text('croc')(row)} beside {_text('uniform')(row)}", (place + 1) / count)
    return found


def _text(method: str) -> Any:
    def text(row: Row) -> str:
        return "unfinished" if row[method] is None else number(row[method])

    return text


def _ratio(row: Row) -> str | None:
    return None if row["ratio"] is None else f"{'< ' if row['uniform_at_least'] else ''}{times(row['ratio'])}"


def headlines(found: list[Row]) -> list[Headline]:
    told = f"{len(found)} instances, told in turn, nothing asked for"
    ratios = [row["ratio"] if row["ratio"] is not None else np.inf for row in found]
    figures = summed_up(ratios)
    lines = [
        Headline(
            f"{told}: CROC over Uniform with β, {name}",
            "unfinished" if figures[name] is None else times(figures[name]),
            asked,
            met,
        )
        for name, asked, met in (
            ("median", "", None),
            ("largest", f"≤ {AT_MOST:g}×", all(row["met"] for row in found)),
        )
    ]
    unfinished, runs = sum(row["croc_unfinished"] for row in found), sum(row["runs"] for row in found)
    return [*lines, Headline(f"{told}: CROC, unfinished", f"{unfinished} of {runs}", "0", unfinished == 0)]


PART = Part(
    f"Results told in turn, none of them asked for, δ = {DELTA:g}: results until CROC and Uniform with β stop, on the "
    f"same ones;\nmedians of {RUNS} runs of at most {MOST:,}.",
    (
        Column("instance", "instance", left=True),
        Column("CROC", _text("croc")),
        Column("Uniform, β", _text("uniform")),
        Column("CROC / Uniform", _ratio),
        Column("CROC unfinished", "croc_unfinished"),
        Column("wrong", lambda row: row["croc_wrong"] + row["uniform_wrong"]),
        Column("goal", lambda row: f"≤ {AT_MOST:g}× {sign(row['met'])}"),
    ),
    rows,
    headlines,
    seconds=200,
)
