"""Finished tables: pairs of items told apart by `coterie.group` and by what people use, and how often that is wrong.

First table: ten tables of one number (`bench.table_data`). Second table: tables in which items are alike, of every
family of noise (`bench.null_tables`), in blocks too: in how many something wrong is said. Third and fourth: tables in
blocks, real ones and simulated ones (`bench.block_tables`).
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
from scipy import stats

from bench import block_tables
from bench.null_tables import FAMILIES, wrong_tables
from bench.part import Column, Headline, Part, Progress, Row, Table
from bench.table_data import Items, tables, tables_in_blocks
from coterie.evidence.exact.fits import fitting
from coterie.evidence.exact.pair_tests import test_pairs
from coterie.problem.checks import FloatArray
from coterie.problem.families import noise_of

DELTA = 0.05
NULL_DELTA = 0.1
"""Of the tables in which items are alike: larger, so that errors are seen."""
NULL_TABLES, QUICK_TABLES = 4000, 40
CELL_TABLES, QUICK_CELL_TABLES = 60, 3
"""Simulated tables of each cell in blocks."""
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


def in_blocks(table: FloatArray) -> Row:
    """Pairs of a table in complete blocks told apart in each way."""
    n_blocks, items = table.shape
    counts = {way: int(apart.sum()) // 2 for way, apart in block_tables.told_apart(table, DELTA).items()}
    return {"items": items, "blocks": n_blocks, "pairs": items * (items - 1) // 2} | counts


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """A row for each table, one for each family, and one for each cell of tables in blocks."""
    found: list[Row] = []
    count, per_cell = (QUICK_TABLES, QUICK_CELL_TABLES) if quick else (NULL_TABLES, CELL_TABLES)
    named, blocked = tables(), tables_in_blocks()
    families = dict.fromkeys(FAMILIES, wrong_tables) | dict.fromkeys(block_tables.FAMILIES, block_tables.wrong_tables)
    steps = len(named) + len(blocked) + len(families) + len(block_tables.CELLS)
    for name, items in named.items():
        found.append({"table": "pairs", "name": name} | told_apart(items))
        progress.done(name, len(found) / steps)
    for family, count_wrong in families.items():
        wrong = count_wrong(family, count, NULL_DELTA, SEED)
        found.append({"table": "wrong", "name": family, "wrong": wrong, "runs": count})
        progress.done(f"{family}: {wrong} of {count} wrong", len(found) / steps)
    for name, table in blocked.items():
        found.append({"table": "blocks", "name": name} | in_blocks(table))
        progress.done(name, len(found) / steps)
    for name in block_tables.CELLS:
        cell = block_tables.simulated(name, per_cell, DELTA, SEED)
        found.append({"table": "cells", "name": name, "runs": per_cell} | {way: list(cell[way]) for way in cell})
        progress.done(name, len(found) / steps)
    return found


def headlines(found: list[Row]) -> list[Headline]:
    """The sums over all tables, and the worst family."""
    own = [row for row in found if row["table"] == "pairs"]
    tukey, _, permuted, free, gaussian = (sum(row[way] for row in own) for way in WAYS)
    every = [row for row in found if row["table"] == "wrong"]
    worst = max(every, key=lambda row: row["wrong"] / row["runs"])
    return [
        Headline("Ten tables, any noise: pairs told apart", f"{free}", f"≥ {permuted}, permutations with Holm",
                 free >= permuted),
        Headline("Ten tables, Gaussian: pairs told apart", f"{gaussian}", f"≥ {tukey}, Tukey", gaussian >= tukey),
        Headline(f"Finished tables, the worst of {len(every)} families ({worst['name']}): wrong",
                 f"{worst['wrong']} of {worst['runs']:,}", f"≤ δ = {NULL_DELTA:g}",
                 worst["wrong"] <= NULL_DELTA * worst["runs"]),
        *_block_headlines(found),
    ]  # fmt: skip


def _block_headlines(found: list[Row]) -> list[Headline]:
    """The sums over real tables in blocks, and the means over simulated ones; none where these were not measured."""
    real, drawn = ([row for row in found if row["table"] == kind] for kind in ("blocks", "cells"))
    if not real or not drawn:
        return []
    nemenyi, ranks, two_way, *ours = (sum(row[way] for row in real) for way in block_tables.WAYS)
    means = [sum(row[way][0] for row in drawn) / len(drawn) for way in block_tables.WAYS]
    return [
        Headline(f"{len(real)} tables in blocks, any noise: pairs told apart", f"{ours[0]}",
                 f"≥ {nemenyi}, Nemenyi, and {ranks}, Wilcoxon with Holm", ours[0] >= max(nemenyi, ranks)),
        Headline(f"{len(real)} tables in blocks, Gaussian: pairs told apart", f"{ours[1]}", f"≥ {two_way}, Tukey",
                 ours[1] >= two_way),
        Headline("Simulated tables in blocks, any noise: pairs told apart of 12", f"{means[3]:.2f}",
                 f"≥ {means[0]:.2f}, Nemenyi, and {means[1]:.2f}, Wilcoxon with Holm", means[3] >= max(means[:2])),
        Headline("Simulated tables in blocks, Gaussian: pairs told apart of 12", f"{means[4]:.2f}",
                 f"≥ {means[2]:.2f}, Tukey", means[4] >= means[2]),
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
    seconds=900,
    has=lambda row: row["table"] == "pairs",
    more=(
        Table(
            f"Tables of 3 to 6 items, some of them alike: in how many something wrong is said, δ = {NULL_DELTA:g}.",
            (
                Column("noise", "name", left=True),
                Column("wrong", lambda row: f"{row['wrong']} of {row['runs']}"),
                Column("share", lambda row: f"{row['wrong'] / row['runs']:.1%}"),
            ),
            lambda row: row["table"] == "wrong",
        ),
        Table(
            f"Pairs of items told apart in six tables in complete blocks, δ = {DELTA:g}.",
            (
                Column("table", "name", left=True),
                Column("items", "items"),
                Column("blocks", "blocks"),
                Column("pairs", "pairs"),
                *(Column(way, way) for way in block_tables.WAYS),
            ),
            lambda row: row["table"] == "blocks",
        ),
        Table(
            f"Six items in blocks, in pairs of equal ones 1 sd apart: pairs told apart of 12, mean of "
            f"{CELL_TABLES} tables; tables in which equal items are told apart. δ = {DELTA:g}.",
            (
                Column("cell", "name", left=True),
                *(Column(way, way, lambda cell: f"{cell[0]:.2f}; {cell[1]}") for way in block_tables.WAYS),
            ),
            lambda row: row["table"] == "cells",
        ),
    ),
)
