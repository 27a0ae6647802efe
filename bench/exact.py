"""What a long run should know, from all its measurements: sums without rounding, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

FAR = 1e6


@dataclass(frozen=True)
class World:
    """Groups whose centers are given relative to the point (FAR, …, FAR). `gap`: the distance errors are set beside."""

    name: str
    labels: Any
    centers: Any
    gap: float


class ExactSums:
    """Σ of doubles, for each arm and coordinate, without rounding: each is split into three whole numbers."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.sums = [[Fraction(0)] * dim for _ in range(n_arms)]
        self.pulls = np.zeros(n_arms, dtype=np.int64)

    def add(self, arms: Any, values: Any) -> None:
        """Values below 2⁹ in size, at most 2²⁰ of them at once: then no 64-bit sum overflows."""
        self.pulls += np.bincount(arms, minlength=self.pulls.size)
        rest = values.copy()
        for bits in (28, 60, 92):
            part = np.rint(np.ldexp(rest, bits))
            rest -= np.ldexp(part, -bits)  # exact: what is left has fewer digits than what was there
            totals = np.zeros((self.pulls.size, values.shape[1]), dtype=np.int64)
            np.add.at(totals, arms, part.astype(np.int64))
            for m, q in np.argwhere(totals):
                self.sums[m][q] += Fraction(int(totals[m, q]), 2**bits)
        for i, q in np.argwhere(rest):  # digits below 2⁻⁹²: only of numbers that are almost 0
            self.sums[arms[i]][q] += Fraction(float(rest[i, q]))


def relative(found: Any, exact: Any, scale: Any = None) -> float:
    """Largest |found − exact| over |exact|, or over a scale."""
    worst = Fraction(0)
    for a, b, c in zip(flat(found), flat(exact), flat(exact if scale is None else scale), strict=True):
        if a != b:
            worst = max(worst, abs(Fraction(a) - b) / abs(c)) if c else Fraction(10**9)
    return float(worst)


def flat(given: Any) -> list[Any]:
    if isinstance(given, np.ndarray):
        return [Fraction(value) for value in given.ravel().tolist()]
    if isinstance(given, list):
        return [value for one in given for value in flat(one)]
    return [given]


def _root(value: Fraction) -> Decimal:
    return (Decimal(value.numerator) / Decimal(value.denominator)).sqrt()


class Truth:
    """What a run of the paper's methods should know, from the exact sums; positions relative to its origin."""

    def __init__(self, world: World, noise: ExactSums, origin: Any, labels: Any, n_clusters: int) -> None:
        self.pulls, self.labels, self.n_clusters = noise.pulls.tolist(), labels.tolist(), n_clusters
        dims = range(origin.size)
        start = [Fraction(value) for value in origin.tolist()]
        center = [[Fraction(x) for x in row] for row in (world.centers + FAR).tolist()]
        true = world.labels.tolist()
        self.values = [
            [noise.sums[m][q] + n * center[true[m]][q] for q in dims] for m, n in enumerate(self.pulls)
        ]  # as they were drawn
        self.sums = [[value - n * start[q] for q, value in enumerate(row)]
                     for row, n in zip(self.values, self.pulls, strict=True)]  # fmt: skip
        self.totals = [
            sum(n for n, k in zip(self.pulls, self.labels, strict=True) if k == g) for g in range(n_clusters)
        ]
        self.group_sums = [self._group(self.sums, g) for g in range(n_clusters)]
        self.group_values = [self._group(self.values, g) for g in range(n_clusters)]
        self.centers = [[x / n for x in row] for row, n in zip(self.group_sums, self.totals, strict=True)]

    def _group(self, rows: Any, g: int) -> list[Fraction]:
        mine = [row for row, k in zip(rows, self.labels, strict=True) if k == g]
        return [sum(column, Fraction(0)) for column in zip(*mine, strict=True)]

    def scatter(self, centers: Any) -> list[Fraction]:
        """Σ N·‖mean − center‖² over each group: Z1 is their sum."""
        found = [Fraction(0)] * self.n_clusters
        for row, n, k in zip(self.sums, self.pulls, self.labels, strict=True):
            found[k] += n * sum((x / n - c) ** 2 for x, c in zip(row, centers[k], strict=True))
        return found

    def gaps(self, centers: Any) -> list[list[Fraction]]:
        return [[sum(((x - y) ** 2 for x, y in zip(a, b, strict=True)), Fraction(0)) for b in centers] for a in centers]

    def closest(self, centers: Any) -> Fraction:
        """Z2 (theorem_opt2, corrected: all k ≠ k')."""
        gaps = self.gaps(centers)
        least = [min(n for n, k in zip(self.pulls, self.labels, strict=True) if k == g) for g in range(self.n_clusters)]
        return min(
            Fraction(least[k] * self.totals[j], least[k] + self.totals[j]) * gaps[k][j]
            for k in range(self.n_clusters)
            for j in range(self.n_clusters)
            if j != k
        )

    def log_sum(self) -> Fraction:
        with localcontext() as context:
            context.prec = 50
            return Fraction(sum((Decimal(4) + Decimal(n).ln()).ln() for n in self.pulls))


def statistic(z1: Fraction, z2: Fraction) -> Fraction:
    """Z of Alg. 1, line 11."""
    with localcontext() as context:
        context.prec = 50
        return Fraction(max(_root(z2) - _root(z1), Decimal(0)) ** 2 / 2)


class Rounds:
    """The frozen tests of a CROC run (docs/CROC.md, sections 4 and 5) from the results of its rounds, in long doubles.

    Results are taken relative to FAR, which is exact, so that this recomputation rounds at 10⁻¹⁹ of a result.
    """

    def __init__(self, labels: Any, in_core: Any, n_clusters: int, dim: int) -> None:
        self.labels, self.in_core, self.n_clusters = labels, in_core, n_clusters
        shape = (labels.size, n_clusters)
        self.weights = {pool: np.zeros(shape, dtype=np.longdouble) for pool in ("core", "group")}
        self.sums = {pool: np.zeros((*shape, dim), dtype=np.longdouble) for pool in ("core", "group")}

    def add(self, rounds: Any, arms: Any, values: Any) -> None:
        """Complete rounds: the number of each result's round, its arm, and its value."""
        first, n_arms, dim = int(rounds[0]), self.labels.size, values.shape[1]
        n_rounds = int(rounds[-1]) - first + 1
        counts = np.zeros((n_rounds, n_arms), dtype=np.longdouble)
        sums = np.zeros((n_rounds, n_arms, dim), dtype=np.longdouble)
        np.add.at(counts, (rounds - first, arms), 1)
        np.add.at(sums, (rounds - first, arms), values.astype(np.longdouble))
        for pool in ("core", "group"):
            member = np.zeros((n_arms, self.n_clusters), dtype=np.longdouble)
            member[np.arange(n_arms), self.labels] = self.in_core if pool == "core" else 1
            pool_counts = counts @ member
            means = np.einsum("rmq,mk->rkq", sums, member) / np.maximum(pool_counts, 1)[:, :, None]
            for m in range(n_arms):
                there = (counts[:, m, None] > 0) & (pool_counts > 0)
                n, pooled = np.maximum(counts[:, m, None], 1), np.maximum(pool_counts, 1)
                precision = np.where(there, 1 / (1 / n + 1 / pooled), 0)
                contrast = (sums[:, m] / n)[:, None] - means
                self.weights[pool][m] += precision.sum(axis=0)
                self.sums[pool][m] += np.einsum("rk,rkq->kq", precision, contrast)

    def evidence(self, pool: str, totals: Any, centers: Any) -> Any:
        """log E of every arm against every group or core: section 4, at the freeze's totals and centers."""
        own = self.labels
        spread = 1 / totals[own][:, None] + 1 / totals[None]
        theta = centers[own][:, None] - centers[None]
        growth = 1 + self.weights[pool] * spread
        moved = ((theta + spread[:, :, None] * self.sums[pool]) ** 2).sum(axis=2)
        gain = moved / growth - (theta**2).sum(axis=2)
        return -theta.shape[2] * np.log(growth) / 2 + gain / (2 * spread)
