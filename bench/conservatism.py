"""How often is CROC wrong, beside δ? Errors at large δ on hard small instances, and where the slack is.

δ bounds the probability of a wrong answer. What is seen is far less. Where that comes from is counted too: how often a
wrong partition was frozen at all, and how often one that was frozen was certified, beside what the levels allow for
(docs/CROC.md, section 6). By the pairs from the start, which have α of δ, there should be next to no error.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

import coterie
from bench.families import grouped, on_a_line
from bench.part import Column, Headline, Part, Progress, Row
from coterie.methods.croc.run import ALPHA, CrocRun, share_of_epoch
from coterie.problem.partition import same_partition

DELTAS = (0.5, 0.1)
RUNS = 1000
MOST = 20_000
"""Measurements of a run."""

SEED = 12_000


def cases() -> dict[str, coterie.Instance]:
    """Small and hard: gaps of half a standard deviation, or a little more, and groups of unequal sizes."""
    return {
        "2,2, gap 0.5, d=1": grouped((2, 2), on_a_line((0.0, 0.5), 1)),
        "1,3, gap 0.7, d=2": grouped((1, 3), on_a_line((0.0, 0.7), 2)),
        "2,2,2, gap 0.7, d=1": grouped((2, 2, 2), on_a_line((0.0, 0.7, 1.4), 1)),
        "4,1,1, gap 0.8, d=1": grouped((4, 1, 1), on_a_line((0.0, 3.0, 3.8), 1)),
        "5,3,2, gap 0.8, d=3": grouped((5, 3, 2), on_a_line((0.0, 0.8, 1.6), 3)),
    }


def one_run(instance: coterie.Instance, delta: float, seed: list[int]) -> dict[str, int]:
    """Counts of one run: 1 or 0 each, but for `wrong_frozen`, the wrong candidates that were seen."""
    run = CrocRun(instance.n_arms, instance.n_clusters, instance.dim, -math.log(delta))
    run.play(MOST, instance.centers, instance.labels, np.random.default_rng(seed))
    remembered = range(max(0, run.freezes - run.n_epochs), run.freezes)
    bad = [j for j in remembered if not same_partition(run.frozen(j % run.n_epochs).labels, instance.labels)]
    wrong = run.done and not same_partition(run.labels, instance.labels)
    return {
        "runs": 1,
        "done": int(run.done),
        "wrong": int(wrong),
        "wrong_by_pairs": int(wrong and run.by_pairs),
        "first_seen": int(run.freezes > 0 and 0 in remembered),
        "first_wrong": int(0 in bad),
        "first_certified": int(0 in bad and wrong and not run.by_pairs and run.epoch == 0),
        "frozen_wrong_ever": int(bool(bad)),
    }


def on(case: str, instance: coterie.Instance, delta: float, runs: int) -> Row:
    """Sums over runs, and what is allowed."""
    total = dict.fromkeys(one_run(instance, delta, [SEED, 0]), 0)
    for run in range(runs):
        for key, value in one_run(instance, delta, [SEED, run]).items():
            total[key] += value
    return {"case": case, "delta": delta, "allowed_first": (1.0 - ALPHA) * share_of_epoch(0) * delta, **total}


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each instance and δ, and one for all at each δ."""
    found: list[Row] = []
    for delta in DELTAS[:1] if quick else DELTAS:
        chosen = dict(list(cases().items())[:2]) if quick else cases()
        own = [on(case, instance, delta, 20 if quick else RUNS) for case, instance in chosen.items()]
        summed = {key: sum(row[key] for row in own) for key in own[0] if isinstance(own[0][key], int)}
        found += [*own, {"case": "all", "delta": delta, "allowed_first": own[0]["allowed_first"], **summed}]
        progress.done(f"δ = {delta:g}: {_errors(found[-1])} wrong", len(found) / len(DELTAS) / (len(chosen) + 1))
    return found


def _errors(row: Row) -> str:
    return f"{row['wrong']:,} of {row['runs']:,} ({row['wrong'] / row['runs']:.1%})"


def _certified(row: Row) -> str | None:
    if not row["first_wrong"]:
        return None
    return f"{row['first_certified'] / row['first_wrong']:.0%}, allowed {row['allowed_first']:.0%}"


def headlines(found: list[Row]) -> list[Headline]:
    """Errors over δ, of all instances together."""
    lines = []
    for row in found:
        if row["case"] == "all":
            met = row["wrong"] <= row["delta"] * row["runs"]
            lines.append(Headline(f"hard small instances, δ = {row['delta']:g}: CROC wrong", _errors(row), "≤ δ", met))
    return lines


PART = Part(
    f"CROC's errors at large δ on hard small instances, {RUNS:,} runs each of at most {MOST:,} measurements: wrong "
    "answers; by pairs\nalone; runs whose first frozen candidate was wrong (of those where it is remembered); and how "
    "many of these were certified.",
    (
        Column("instance", "case", left=True),
        Column("δ", "delta"),
        Column("wrong", _errors),
        Column("by pairs", "wrong_by_pairs"),
        Column("first candidate wrong", lambda row: f"{row['first_wrong'] / max(1, row['first_seen']):.0%}"),
        Column("certified, if so", _certified),
        Column("unfinished", lambda row: row["runs"] - row["done"]),
    ),
    rows,
    headlines,
    section="delta",
    seconds=60,
)
