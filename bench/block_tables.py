"""Tables in blocks: pairs told apart by `coterie.group(blocks=…)` and by what people use, and how often it is wrong.

A complete table has a row for each block and a column for each item. Three ways are common: Friedman's test and, if it
rejects, Nemenyi's; Wilcoxon's signed-rank test of every pair with Holm's correction; the analysis of variance of items
and blocks with Tukey's test.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from coterie.evidence.exact.block_tests import bounds_within_blocks, test_within_blocks
from coterie.evidence.exact.fits import fitting
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AtMost, Bounded, Counts, Symmetric, noise_of

Rng = np.random.Generator

WAYS = (
    "Friedman, Nemenyi",
    "Wilcoxon, Holm",
    "two-way, Tukey",
    "coterie.group, any noise",
    "coterie.group, Gaussian",
)


def nemenyi(table: FloatArray, delta: float) -> np.ndarray:
    """(M, M): pairs told apart by mean ranks, if Friedman's test rejects."""
    n_blocks, n_arms = table.shape
    if n_arms < 3 or not stats.friedmanchisquare(*table.T).pvalue <= delta:
        return np.zeros((n_arms, n_arms), dtype=bool)
    ranks = stats.rankdata(table, axis=1).mean(axis=0)
    width = np.sqrt(n_arms * (n_arms + 1) / (12.0 * n_blocks))  # q is in units of one mean
    return np.asarray(stats.studentized_range.sf(np.abs(ranks[:, None] - ranks) / width, n_arms, np.inf) <= delta)


def wilcoxon(table: FloatArray, delta: float) -> np.ndarray:
    """(M, M): pairs told apart by signed ranks, with Holm's correction."""
    pairs = list(combinations(range(table.shape[1]), 2))
    p = np.array([stats.wilcoxon(table[:, i], table[:, j]).pvalue if (table[:, i] != table[:, j]).any() else 1.0
                  for i, j in pairs])  # fmt: skip
    apart = np.zeros((table.shape[1], table.shape[1]), dtype=bool)
    for rank, k in enumerate(np.argsort(p, kind="stable").tolist()):
        if not p[k] <= delta / (len(pairs) - rank):
            break
        apart[pairs[k]] = apart[pairs[k][::-1]] = True
    return apart


def two_way_tukey(table: FloatArray, delta: float) -> np.ndarray:
    """(M, M): pairs told apart by Tukey's test with the residuals of items and blocks."""
    n_blocks, n_arms = table.shape
    means = table.mean(axis=0)
    residuals = table - means - table.mean(axis=1, keepdims=True) + table.mean()
    freedom = (n_blocks - 1) * (n_arms - 1)
    width = np.sqrt((residuals**2).sum() / freedom / n_blocks)
    return np.asarray(stats.studentized_range.sf(np.abs(means[:, None] - means) / width, n_arms, freedom) <= delta)


def grouped(table: FloatArray, delta: float, noise: Any) -> np.ndarray:
    """(M, M): pairs told apart by `coterie.group`."""
    n_blocks, n_arms = table.shape
    arms, blocks = np.tile(np.arange(n_arms), n_blocks), np.repeat(np.arange(n_blocks), n_arms)
    tests = test_within_blocks(arms, blocks, table.reshape(-1, 1), noise_of(noise, 1), delta)
    return fitting(tests, delta).apart


def told_apart(table: FloatArray, delta: float) -> dict[str, np.ndarray]:
    """Pairs told apart in each way."""
    ours = [grouped(table, delta, noise) for noise in (None, "gaussian")]
    theirs = [way(table, delta) for way in (nemenyi, wilcoxon, two_way_tukey)]
    return dict(zip(WAYS, [*theirs, *ours], strict=True))


CELLS = {
    f"{n_blocks} blocks, {words}, {law}": (n_blocks, effect, law)
    for n_blocks in (8, 12, 20)
    for effect, words in ((1.0, "shifts of 1 sd"), (0.0, "no shifts"))
    for law in ("Gaussian", "t, 3 degrees")
}
"""Six items, in pairs of equal ones whose means are 1 sd apart: how many blocks, their spread, the noise."""


def simulated(name: str, count: int, delta: float, seed: int) -> dict[str, tuple[float, int]]:
    """Of so many tables of a cell: pairs told apart of those that differ, on average, and tables with a wrong one."""
    n_blocks, effect, law = CELLS[name]
    truth = np.arange(6) // 2
    different = truth[:, None] != truth
    sums, wrong = dict.fromkeys(WAYS, 0), dict.fromkeys(WAYS, 0)
    for number in range(count):
        rng = np.random.default_rng([seed, number])  # the same noise in every cell
        noise = rng.normal(size=(n_blocks, 6)) if law == "Gaussian" else rng.standard_t(3, (n_blocks, 6)) / 3**0.5
        table = truth + effect * rng.normal(size=(n_blocks, 1)) + noise
        for way, apart in told_apart(table, delta).items():
            sums[way] += int((apart & different).sum()) // 2
            wrong[way] += bool((apart & ~different).any())
    return {way: (sums[way] / count, wrong[way]) for way in WAYS}


# Tables in which some items are alike.

Drawn = tuple[FloatArray, FloatArray, Any]  # the rows, the true means of the items, the noise to state


def _any(rng: Rng, arms: IntArray, blocks: IntArray, mu: FloatArray) -> Drawn:
    """Every block has a law of its own: another shift, another spread, another kind of noise."""
    size, kinds = blocks.max() + 1, rng.integers(0, 3, blocks.max() + 1)[blocks]
    laws = [rng.normal(size=arms.size), rng.standard_cauchy(arms.size), rng.integers(0, 2, arms.size)]
    noise = np.select([kinds == k for k in range(3)], laws)
    rows = mu[arms] + 3.0 * rng.normal(size=size)[blocks] + (10.0 ** rng.uniform(-1, 1, size))[blocks] * noise
    return rows[:, None], mu[:, None], None


def _any_plane(rng: Rng, arms: IntArray, blocks: IntArray, mu: FloatArray) -> Drawn:
    means, size = np.stack([mu, -mu], axis=1), (blocks.max() + 1, 2)
    return means[arms] + rng.normal(size=size)[blocks] + rng.standard_t(3, (arms.size, 2)), means, None


def _gaussian(rng: Rng, arms: IntArray, blocks: IntArray, mu: FloatArray) -> Drawn:
    rows = mu[arms] + 3.0 * rng.normal(size=blocks.max() + 1)[blocks] + rng.normal(size=arms.size)
    return rows[:, None], mu[:, None], "gaussian"


def _known(rng: Rng, arms: IntArray, blocks: IntArray, mu: FloatArray) -> Drawn:
    return *_gaussian(rng, arms, blocks, mu)[:2], 1.0


def _counts(rng: Rng, arms: IntArray, blocks: IntArray, mu: FloatArray) -> Drawn:
    logits = 0.5 * mu[arms] + 1.5 * rng.normal(size=blocks.max() + 1)[blocks] - 1.0
    return rng.binomial(8, 1.0 / (1.0 + np.exp(-logits)))[:, None].astype(float), mu[:, None], Counts(8)


def _bounded(rng: Rng, arms: IntArray, blocks: IntArray, mu: FloatArray) -> Drawn:
    means = np.clip(0.2 + 0.05 * mu, 0.0, 0.6)  # beta distributions of one mean and different widths
    shifted = means[arms] + rng.uniform(0.0, 0.3, blocks.max() + 1)[blocks]
    widths = np.array([0.5, 2.0, 50.0, 1e3, 1e-2, 5.0])[arms]
    return rng.beta(shifted * widths, (1.0 - shifted) * widths)[:, None], means[:, None], Bounded(0, 1)


def _at_most(rng: Rng, arms: IntArray, blocks: IntArray, mu: FloatArray) -> Drawn:
    rare = rng.choice([-1.0, 1.0], arms.size) * (rng.random(arms.size) < 0.1) * np.sqrt(10.0)
    rows = (
        mu[arms]
        + 3.0 * rng.normal(size=blocks.max() + 1)[blocks]
        + np.array([1.0, 0.1, 0.7, 0.3, 1.0, 0.5])[arms] * rare
    )
    return rows[:, None], mu[:, None], AtMost(1.0)


def _symmetric(rng: Rng, arms: IntArray, blocks: IntArray, mu: FloatArray) -> Drawn:
    noise = np.where(arms % 2, rng.standard_cauchy(arms.size), np.round(rng.normal(size=arms.size)))
    return (mu[arms] + 3.0 * rng.normal(size=blocks.max() + 1)[blocks] + noise)[:, None], mu[:, None], Symmetric()


FAMILIES: dict[str, Callable[[Rng, IntArray, IntArray, FloatArray], Drawn]] = {
    "any noise, blocks": _any, "any noise, two numbers, blocks": _any_plane, "Gaussian, blocks": _gaussian,
    "known, blocks": _known, "counts, blocks": _counts, "bounded, blocks": _bounded,
    "at most a covariance, blocks": _at_most, "symmetric, blocks": _symmetric,
}  # fmt: skip


def _design(rng: Rng, number: int, n_arms: int) -> tuple[IntArray, IntArray]:
    """Items and blocks of rows: complete blocks, blocks with holes, or several results of an item in a block."""
    n_blocks = 6 + number % 5
    arms, blocks = np.tile(np.arange(n_arms), n_blocks), np.repeat(np.arange(n_blocks), n_arms)
    if number % 3 == 1:
        kept = rng.random(arms.size) < 0.8
        kept[:n_arms] = True
        arms, blocks = arms[kept], blocks[kept]
    if number % 3 == 2:
        times = rng.integers(1, 4, arms.size)
        few = blocks < 4
        arms, blocks = np.repeat(arms[few], times[few]), np.repeat(blocks[few], times[few])
    return arms, np.unique(blocks, return_inverse=True)[1].reshape(-1)


def wrong_tables(family: str, count: int, delta: float, seed: int) -> int:
    """As `bench.null_tables.wrong_tables`, of tables in blocks."""
    rng = np.random.default_rng(seed)
    by_tests = by_intervals = 0
    for number in range(count):
        n_arms = 3 + number % 3
        items = np.arange(n_arms)
        truth = (np.zeros(n_arms, dtype=int), items // 2, (items >= n_arms - 1).astype(int))[number // 3 % 3]
        arms, blocks = _design(rng, number, n_arms)
        mu = np.asarray(truth * (1.0 if number % 2 else 5.0), dtype=np.float64)
        rows, means, noise = FAMILIES[family](rng, arms, blocks, mu)
        model = noise_of(noise, rows.shape[1])
        fits = fitting(test_within_blocks(arms, blocks, rows, model, delta), delta)
        groupings = fits.with_groups(int(truth.max()) + 1)
        grouped = groupings is not None and len(groupings) < 2 and groupings != [truth.tolist()]
        by_tests += bool((fits.apart & (truth[:, None] == truth)).any() or grouped)
        bounds = bounds_within_blocks(arms, blocks, rows, model, delta)
        if bounds is not None:
            apart = np.abs(means[:, None] - means)
            by_intervals += bool(((bounds[0] > apart + 1e-9) | (bounds[1] < apart - 1e-9)).any())
    return max(by_tests, by_intervals)
