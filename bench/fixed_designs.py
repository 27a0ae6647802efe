"""What people do with a table today: n measurements of every item, an analysis of variance, and groups from its means.

Tukey's HSD: two items differ if their means are further apart than q·√(MSE/n), q the studentized range of M means with
M·(n−1) degrees of freedom; its letters (`coterie.evidence.pair_graphs`) show which are not told apart.
scipy.stats.tukey_hsd is the same test.
Scott–Knott (Biometrics 30, 1974, pp. 507-512): the sorted means are cut in two where the sum of squares between the
parts is largest, if it is large enough for chance, and each part again. Both are given items as normal with one
variance; one measurement is one number.

Only means and the pooled variance enter, so a simulated table is drawn as these: normal means and a χ² sum of squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, studentized_range

from coterie.problem.checks import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

NODES = 5
"""The studentized range is computed at so many degrees of freedom, and interpolated in their inverse: it is slow."""


@cache
def _range_nodes(n_means: int, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Inverse degrees of freedom from 0 to 1/n_means (two measurements of each item), and the quantiles there."""
    inverse = (1.0 - np.cos(np.pi * np.arange(NODES) / (NODES - 1))) / 2.0 / n_means
    found = [float(studentized_range.ppf(1.0 - alpha, n_means, 1.0 / x if x > 0.0 else np.inf)) for x in inverse]
    return inverse, np.array(found)


def range_quantile(n_means: int, free: int, alpha: float) -> float:
    """The 1−α quantile of the studentized range of so many means, at least `n_means` degrees of freedom."""
    if free < n_means:
        raise ValueError(f"the table of quantiles begins at {n_means} degrees of freedom, got {free}")
    at, values = _range_nodes(n_means, alpha)
    x, total = 1.0 / free, 0.0
    for i in range(NODES):  # Lagrange's polynomial
        others = np.delete(at, i)
        total += float(values[i] * np.prod((x - others) / (at[i] - others)))
    return total


def tukey_differ(means: FloatArray, mse: FloatArray, n: int, alpha: float) -> BoolArray:
    """(runs, M, M): the pairs that Tukey's HSD tells apart, from means (runs, M) of n and pooled variances (runs)."""
    n_means = means.shape[1]
    least = range_quantile(n_means, n_means * (n - 1), alpha) * np.sqrt(mse / n)
    return np.asarray(np.abs(means[:, :, None] - means[:, None, :]) > least[:, None, None])


@cache
def _cut_limit(n_means: int, alpha: float) -> float:
    return float(chi2.isf(alpha, n_means / (math.pi - 2.0)))


def scott_knott(means: FloatArray, mse: float, n: int, alpha: float) -> IntArray:
    """(M) the group of each item, 0 for the lowest: one table's means of n measurements and its pooled variance."""
    free = means.size * (n - 1)
    order = np.argsort(means, kind="stable")
    y = means[order] - means.mean()
    cuts, open_parts = [0], [(0, means.size)]
    while open_parts:
        start, end = open_parts.pop()
        k = end - start
        if k < 2:
            continue
        part = y[start:end] - y[start:end].mean()
        below, size = np.cumsum(part)[:-1], np.arange(1, k)
        between = below**2 * (1.0 / size + 1.0 / (k - size))  # B: the sums of the two parts are ±below
        at = int(between.argmax())
        variance = (float(part @ part) + free * mse / n) / (k + free)
        if math.pi / (2.0 * (math.pi - 2.0)) * between[at] / variance > _cut_limit(k, alpha):
            middle = start + at + 1
            cuts.append(middle)
            open_parts += [(start, middle), (middle, end)]
    labels = np.empty(means.size, dtype=np.int64)
    labels[order] = np.searchsorted(np.sort(cuts), np.arange(means.size), side="right") - 1
    return labels


def scott_knott_differ(means: FloatArray, mse: FloatArray, n: int, alpha: float) -> BoolArray:
    """(runs, M, M): the pairs in different groups."""
    labels = np.stack([scott_knott(row, float(variance), n, alpha) for row, variance in zip(means, mse, strict=True)])
    return np.asarray(labels[:, :, None] != labels[:, None, :])


@dataclass(frozen=True)
class FixedDesign:
    """A test for tables of n measurements of every item, at a level."""

    name: str
    differ: Callable[[FloatArray, FloatArray, int, float], BoolArray]
    level: Callable[[float, int], float]  # (δ, M) → α


TUKEY = FixedDesign("Tukey's letters, α = δ", tukey_differ, lambda delta, n_arms: delta)
SCOTT_KNOTT = FixedDesign("Scott–Knott, α = δ", scott_knott_differ, lambda delta, n_arms: delta)
CAREFUL_SCOTT_KNOTT = FixedDesign("Scott–Knott, α = δ/M", scott_knott_differ, lambda delta, n_arms: delta / n_arms)
DESIGNS = (TUKEY, SCOTT_KNOTT, CAREFUL_SCOTT_KNOTT)


@dataclass(frozen=True)
class Outcome:
    """Of many tables: how many were not right, and in how many of these two equal items were said to differ."""

    runs: int
    not_right: int
    false_difference: int


class Tables:
    """Simulated tables of items with standard normal noise; the same random numbers for every n, so n can be compared.

    `apart` (M, M): the pairs that have to be told apart; pairs of equal items must not be; others may be either.
    """

    def __init__(self, means: FloatArray, apart: BoolArray, runs: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._means, self._apart, self.runs = means, apart, runs
        self._equal = means[:, None] == means[None, :]
        self._noise = rng.standard_normal((runs, means.size))
        self._seed = seed

    def outcome(self, design: FixedDesign, n: int, delta: float) -> Outcome:
        """What n measurements of every item give."""
        n_arms = self._means.size
        free = n_arms * (n - 1)
        mse = np.random.default_rng([self._seed, n]).chisquare(free, self.runs) / free
        means = self._means + self._noise / math.sqrt(n)
        differ = design.differ(means, mse, n, design.level(delta, n_arms))
        false = (differ & self._equal).any(axis=(1, 2))
        missed = (~differ & self._apart).any(axis=(1, 2))
        return Outcome(self.runs, int((false | missed).sum()), int(false.sum()))

    def needed(self, design: FixedDesign, delta: float, most: int) -> tuple[int, Outcome]:
        """The fewest measurements of an item, by bisection, for which a share 1−δ of the tables is right; or `most`.

        The outcome says whether they are: at `most` measurements perhaps not.
        """
        allowed = delta * self.runs

        def good(n: int) -> bool:
            found[n] = self.outcome(design, n, delta)
            return found[n].not_right <= allowed

        found: dict[int, Outcome] = {}
        if not good(most):
            return most, found[most]
        low, high = 1, 2  # n = 1 has no variance within
        while not good(high):
            low, high = high, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if good(middle) else (middle, high)
        return high, found[high]
