"""The p-values of pairs of items of a finished table whose rows lack some numbers, and bounds, recomputed.

The tests are described in `coterie.evidence.exact.holes`; this is another program for the same numbers: a table of one
number after the other, and for any and symmetric noise the rows of each pattern as a block of their own.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
from scipy import stats

from coterie.certificate.arithmetic.block_rows import BlockRows, Rearranged
from coterie.certificate.arithmetic.table_blocks import BlockTests
from coterie.certificate.arithmetic.table_proofs import difference_bounds
from coterie.certificate.arithmetic.table_tests import Pair, TableTests, of_smallest
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Gaussian, Model, number_of
from coterie.problem.noise import Noise

_LEAST_SHARE = 0.5


class HoleTests:
    """The tests of pairs of a table (n, d) in which NaN is a hole."""

    def __init__(
        self, arms: IntArray, values: FloatArray, n_arms: int, noise: Model, delta: float, blocks: IntArray | None
    ) -> None:
        self._arms, self._values, self._blocks = arms, values, blocks
        self._noise, self._delta = noise, delta
        self.n_arms, self.dim = n_arms, values.shape[1]
        self.pairs = list(itertools.combinations(range(n_arms), 2))
        self.name, self.seed, self.draws, self.t, self.freedom = "holes", None, None, None, 0.0
        self.p: dict[Pair, float] = dict.fromkeys(self.pairs, 1.0)
        self.stacks = self._filled()

    def run(self) -> HoleTests:
        """Compute the p-values."""
        of_pairs: dict[Pair, list[float]] = {pair: [] for pair in self.pairs}
        for number, items, arms, values, blocks in self._numbers():
            model, delta = number_of(self._noise, number), self._delta / self.dim
            tests: TableTests | BlockTests
            if blocks is None:
                tests = TableTests([values[arms == arm] for arm in range(len(items))], model, delta)
            else:
                tests = BlockTests(arms, blocks, values, model, delta).run()
            for (i, j), p in tests.p.items():
                of_pairs[items[i], items[j]].append(p)
        for pair, each in of_pairs.items():
            if each:
                self.p[pair] = min(1.0, self._together(each))
        if self._noise.kind in ("any", "symmetric"):
            self._within_patterns()
        return self

    def _filled(self) -> list[FloatArray]:
        """The rows of each item, with means in place of holes: for an order of the items only."""
        of_all = np.nanmean(self._values, axis=0)
        stacks = []
        for arm in range(self.n_arms):
            rows = self._values[self._arms == arm]
            own = [np.nanmean(column) if not np.isnan(column).all() else np.nan for column in rows.T]
            means = np.where(np.isnan(own), of_all, own)
            stacks.append(np.where(np.isnan(rows), means, rows))
        return stacks

    def _numbers(self) -> Iterator[tuple[int, list[int], IntArray, FloatArray, IntArray | None]]:
        """Each number, the items that have it, and of the rows that have it the item's place, the value, the block."""
        for number in range(self.dim):
            rows = np.flatnonzero(np.isfinite(self._values[:, number]))
            items = sorted(set(self._arms[rows].tolist()))
            if len(items) < 2:
                continue
            place = {item: k for k, item in enumerate(items)}
            arms = np.array([place[arm] for arm in self._arms[rows].tolist()])
            blocks = None
            if self._blocks is not None:
                names = sorted(set(self._blocks[rows].tolist()))
                blocks = np.array([names.index(block) for block in self._blocks[rows].tolist()])
            yield number, items, arms, self._values[rows, number].reshape(-1, 1), blocks

    def _together(self, each: list[float]) -> float:
        """Of the p-values of the numbers that both items have."""
        noise, stated = self._noise, getattr(self._noise, "statement", None)
        if isinstance(noise, Noise) and not np.any(noise.covariance - np.diag(np.diag(noise.covariance))):
            return float(stats.chi2.sf(sum(stats.norm.isf(p / 2.0) ** 2 for p in each), len(each)))
        if noise.kind == "counts" or (isinstance(stated, Gaussian) and stated.shape in ("diagonal", "scalar")):
            return of_smallest(each)
        return len(each) * min(each)

    # Rows of one pattern as a block.

    def _within_patterns(self) -> None:
        there = np.isfinite(self._values)
        keys = [
            (0 if self._blocks is None else int(self._blocks[row]), *there[row].tolist()) for row in range(len(there))
        ]
        order = {key: number for number, key in enumerate(sorted(set(keys)))}
        patterns = np.array([order[key] for key in keys])
        measured = [[bool(number) for number in key[1:]] for key in sorted(set(keys))]
        tests = Rearranged(BlockRows(self._arms, patterns, np.where(there, self._values, 0.0), measured))
        tests.by_pairs(self._noise.kind == "symmetric", self._delta)
        whole = np.zeros(len(there), dtype=np.int64) if self._blocks is None else self._blocks
        used, of = self._information(there, patterns), self._information(there, whole)
        for pair in self.pairs:
            if of[pair] > 0.0 and used[pair] >= _LEAST_SHARE * of[pair]:
                self.p[pair] = tests.p[pair]

    def _information(self, there: np.ndarray, strata: IntArray) -> dict[Pair, float]:
        """Σ a·A/(a + A) over numbers and strata."""
        counts: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
        for row, number in zip(*(places.tolist() for places in np.nonzero(there)), strict=True):
            counts[int(strata[row]), number][int(self._arms[row])] += 1
        total = dict.fromkeys(self.pairs, 0.0)
        for of_items in counts.values():
            for i, j in itertools.combinations(sorted(of_items), 2):
                total[i, j] += of_items[i] * of_items[j] / (of_items[i] + of_items[j])
        return total

    # Bounds of differences.

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """(M, M, d) lower and upper bounds of |μ_i − μ_j|, δ/d for each number; ValueError if the noise allows none."""
        lower = np.zeros((self.n_arms, self.n_arms, self.dim))
        upper = np.where(np.eye(self.n_arms, dtype=bool)[:, :, None], 0.0, np.full_like(lower, np.inf))
        for number, items, arms, values, blocks in self._numbers():
            model, delta = number_of(self._noise, number), self._delta / self.dim
            if blocks is None:
                own = difference_bounds([values[arms == arm] for arm in range(len(items))], model, delta)
            else:
                own = BlockTests(arms, blocks, values, model, delta).bounds()
            for (a, i), (b, j) in itertools.product(enumerate(items), repeat=2):
                lower[i, j, number], upper[i, j, number] = own[0][a, b, 0], own[1][a, b, 0]
        return lower, upper
