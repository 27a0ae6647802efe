"""Finished tables: pairs of items told apart by `coterie.group` and by what people use, and how often that is wrong.

First table: ten tables of one number (`bench.table_data`). Second table: tables in which items are alike, of every
family of noise (`bench.null_tables`): in how many something wrong is said.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
from scipy import stats

from bench.null_tables import FAMILIES, wrong_tables
from bench.part import Column, Headline, Part, Progress, Row, Table
from bench.table_data import Items, tables
from coterie.evidence.exact.fits import fitting
from coterie.evidence.exact.pair_tests import test_pairs
from coterie.problem.checks import FloatArray
from coterie.problem.families import noise_of

DELTA = 0.05
NULL_DELTA = 0.1
"""Of the tables in which items are alike: larger, so that errors are seen."""
NULL_TABLES, QUICK_TABLES = 4000, 40
SEED = 2311
_DRAWS = 39_999

WAYS = (
    "Tukey",
    "Mann–Whitney, Holm",
    "permutations of means, Holm",
    "coterie.group, any noise",
    "coterie.group, Gaussian",
)


def holm(p: FloatArray) -> int:
    """How many hypotheses Holm's procedure rejects."""
    passed = np.sort(p) <= DELTA / np.arange(len(p), 0, -1)
    return len(p) if passed.all() else int(np.argmin(passed))


def told_apart(items: Items) -> Row:
    """Pairs told apart in each way."""
    samples = list(items.values())
    pairs = list(combinations(samples, 2))
    arms = np.repeat(np.arange(len(samples)), [len(one) for one in samples])
    every = np.concatenate(samples)[:, None]

    def difference(first: FloatArray, second: FloatArray, axis: int) -> FloatArray:
        return np.asarray(first.mean(axis=axis) - second.mean(axis=axis))

    permuted = [
        stats.permutation_test(
            (x, y), difference, vectorized=True, n_resamples=_DRAWS, rng=np.random.default_rng(1)
        ).pvalue
        for x, y in pairs
    ]
    ranked = [stats.mannwhitneyu(x, y).pvalue for x, y in pairs]
    ours = []
    for noise in (None, "gaussian"):
        tests = test_pairs(arms, every, len(samples), noise_of(noise, 1), DELTA)
        ours.append(int(np.triu(fitting(tests, DELTA).apart).sum()))
    tukey = int(np.triu(stats.tukey_hsd(*samples).pvalue <= DELTA, 1).sum())
    counts = (tukey, holm(np.array(ranked)), holm(np.array(permuted)), *ours)
    return {"items": len(samples), "rows": len(every), "pairs": len(pairs)} | dict(zip(WAYS, counts, strict=True))


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """A row for each table, and one for each family."""
    found: list[Row] = []
    named, count = tables(), QUICK_TABLES if quick else NULL_TABLES
    steps = len(named) + len(FAMILIES)
    for name, items in named.items():
        found.append({"table": "pairs", "name": name} | told_apart(items))
        progress.done(name, len(found) / steps)
    for family in FAMILIES:
        wrong = wrong_tables(family, count, NULL_DELTA, SEED)
        found.append({"table": "wrong", "name": family, "wrong": wrong, "runs": count})
        progress.done(f"{family}: {wrong} of {count} wrong", len(found) / steps)
    return found


def headlines(found: list[Row]) -> list[Headline]:
    """The sums over all tables, and the worst family."""
    own = [row for row in found if row["table"] == "pairs"]
    tukey, _, permuted, free, gaussian = (sum(row[way] for row in own) for way in WAYS)
    worst = max((row for row in found if row["table"] == "wrong"), key=lambda row: row["wrong"] / row["runs"])
    return [
        Headline("Ten tables, any noise: pairs told apart", f"{free}", f"≥ {permuted}, permutations with Holm",
                 free >= permuted),
        Headline("Ten tables, Gaussian: pairs told apart", f"{gaussian}", f"≥ {tukey}, Tukey", gaussian >= tukey),
        Headline(f"Finished tables, the worst of {len(FAMILIES)} families ({worst['name']}): wrong",
                 f"{worst['wrong']} of {worst['runs']:,}", f"≤ δ = {NULL_DELTA:g}",
                 worst["wrong"] <= NULL_DELTA * worst["runs"]),
    ]  # fmt: skip


PART = Part(
    f"Pairs of items told apart in ten tables of one number, δ = {DELTA:g}.",
    (
        Column("table", "name", left=True),
        Column("items", "items"),
        Column("rows", "rows"),
        Column("pairs", "pairs"),
        *(Column(way, way) for way in WAYS),
    ),
    rows,
    headlines,
    seconds=300,
    has=lambda row: row["table"] == "pairs",
    more=(
        Table(
            f"Tables of 4 to 6 items, some of them alike: in how many something wrong is said, δ = {NULL_DELTA:g}.",
            (
                Column("noise", "name", left=True),
                Column("wrong", lambda row: f"{row['wrong']} of {row['runs']}"),
                Column("share", lambda row: f"{row['wrong'] / row['runs']:.1%}"),
            ),
            lambda row: row["table"] == "wrong",
        ),
    ),
)
