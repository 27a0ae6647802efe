"""The p-values of all pairs of items of a finished table in blocks, or whose rows lack numbers, and bounds, recomputed.

The tests are described in `coterie.evidence.exact.block_tests`; this is another program for the same numbers, one pair
at a time. Variances of differences are those of currents: items are nodes, and a block with a of N results of one item
and b of another joins the two by a conductance of a·b/N; the variance of a difference is the resistance between them.

Rows that lack numbers (`coterie.evidence.exact.block_tests`): a table of one number after the other, and for
any and symmetric noise the rows of each pattern as a block of their own.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
from scipy import stats

from coterie.certificate.arithmetic.block_rows import BlockRows, RearrangedTests
from coterie.certificate.arithmetic.table_proofs import difference_bounds, gaussian_bounds, mean_bounds
from coterie.certificate.arithmetic.table_tests import (
    BETS,
    MOST,
    Pair,
    TableTests,
    gaussian_p,
    log_mean,
    moment_p,
    of_smallest,
)
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AtMost, Bounded, Counts, Gaussian, Model, number_of
from coterie.problem.noise import Noise

LEAST_DELTA, LISTED = 0.01, 9


class BlockTests:
    """The rows of a table, items and blocks fitted to them, and the tests of pairs under a noise."""

    def __init__(self, arms: IntArray, blocks: IntArray, values: FloatArray, noise: Model, delta: float) -> None:
        self._rows = BlockRows(arms, blocks, values)
        self.n_arms, self.dim, self.pairs = self._rows.n_arms, self._rows.dim, self._rows.pairs
        self._noise, self._delta = noise, delta
        self._fit()
        self.name = ""
        self.seed: int | None = None
        self.draws: int | None = None
        self.t: dict[Pair, float] | None = None
        self.freedom = 0.0
        self.p: dict[Pair, float] = dict.fromkeys(self.pairs, 1.0)
        self.groups: RearrangedTests | None = None

    def run(self) -> BlockTests:
        """Compute the p-values."""
        noise, stated = self._noise, getattr(self._noise, "statement", None)
        if isinstance(noise, Noise) or isinstance(stated, Gaussian):
            self.name = self._gaussian()
        elif isinstance(stated, Counts):
            self.name = self._counts(stated.trials)
        elif isinstance(stated, Bounded):
            self.name = self._bounded(stated)
        elif isinstance(stated, AtMost):
            self.name = self._moments()
        else:
            self.name = self._rearranged(noise.kind == "symmetric")
        return self

    def _rearranged(self, symmetric: bool) -> str:
        tests = RearrangedTests(self._rows)
        self.seed, self.p = tests.seed, tests.p
        if not symmetric and self.dim == 1 and 4.0 * len(self.pairs) / self._delta > MOST + 1:
            tests.signed_ranks()
            return "block-ranks"
        tests.by_pairs(symmetric, self._delta)
        self.draws = tests.draws
        if symmetric:
            return "block-signs"
        if self.dim == 1 and 2 < self.n_arms <= LISTED and self._delta >= LEAST_DELTA:
            self.groups = tests
        return "block-permutations"

    # Items and blocks by least squares.

    def _fit(self) -> None:
        values = self._rows.values - self._rows.values.mean(axis=0)
        numbers = np.zeros((self.n_arms, self._rows.n_blocks))
        for (arm, block), rows in self._rows.cells.items():
            numbers[arm, block] = len(rows)
        sizes = numbers.sum(axis=0)
        conductances = np.einsum("ib,jb,b->ij", numbers, numbers, 1.0 / sizes)
        np.fill_diagonal(conductances, 0.0)
        laplacian = np.diag(conductances.sum(axis=1)) - conductances
        means = np.stack([values[self._rows.blocks == block].mean(axis=0) for block in range(self._rows.n_blocks)])
        centred = values - means[self._rows.blocks]
        flows = np.stack([centred[self._rows.arms == arm].sum(axis=0) for arm in range(self.n_arms)])
        self.effects, self.resistance = np.zeros((self.n_arms, self.dim)), np.full((self.n_arms, self.n_arms), np.inf)
        parts = _parts(conductances)
        for part in parts:
            rest = part[1:]  # the first item is grounded
            potentials = np.zeros((len(part), len(part)))
            if rest:
                potentials[1:, 1:] = np.linalg.inv(laplacian[np.ix_(rest, rest)])
            self.effects[part] = potentials @ flows[part]
            own = np.diag(potentials)
            self.resistance[np.ix_(part, part)] = own[:, None] + own - 2.0 * potentials
        left = values - self.effects[self._rows.arms]
        offsets = np.stack([left[self._rows.blocks == block].mean(axis=0) for block in range(self._rows.n_blocks)])
        residuals = left - offsets[self._rows.blocks]
        self._scatter = residuals.T @ residuals
        self._freedom = len(values) - self.n_arms - self._rows.n_blocks + len(parts)
        freed = self._rows.values - offsets[self._rows.blocks]
        for part in parts:
            inside = np.isin(self._rows.arms, part)
            freed[inside] += offsets[self._rows.blocks[inside]].mean(axis=0)
        self._largest = np.abs(freed).max(axis=0)
        self.stacks = [freed[self._rows.arms == arm] for arm in range(self.n_arms)]

    def _like_one_way(self) -> bool:
        """Whether every resistance is the sum of two numbers, one of each item."""
        r, n = self.resistance, self.n_arms
        if not np.isfinite(r).all():
            return False
        if n == 2:
            return True
        own = np.array(
            [
                np.mean([(r[i, j] + r[i, k] - r[j, k]) / 2.0 for j, k in ((i - 1, i - 2), (i - n + 1, i - n + 2))])
                for i in range(n)
            ]
        )
        worst = max(abs(r[i, j] - own[i] - own[j]) for i, j in self.pairs)
        return bool(worst <= 3e-9 * r.max() and own.min() >= -3e-9 * r.max())

    def _gaussian(self) -> str:
        apart = {(i, j): self.effects[i] - self.effects[j] for i, j in self.pairs}
        ratio = {(i, j): float(self.resistance[i, j]) for i, j in self.pairs}
        name, p, t, freedom = gaussian_p(self._noise, apart, ratio, self._scatter, self._freedom, self._largest)
        self.p |= p
        if t is not None and not self._like_one_way():
            return "t"
        self.t, self.freedom = t, freedom
        return name

    # Counts.

    def _counts(self, trials: int) -> str:
        known: dict[tuple[tuple[int, int, int], ...], tuple[FloatArray, int]] = {}
        hits = {
            place: np.rint(self._rows.values[cell].sum(axis=0)).astype(int).tolist()
            for place, cell in self._rows.cells.items()
        }
        for i, j in self.pairs:
            each: list[float] = []
            for number in range(self.dim):
                strata, seen = [], 0
                for block in self._rows.shared(i, j):
                    first, second = hits[i, block][number], hits[j, block][number]
                    sizes = [len(self._rows.cells[arm, block]) * trials for arm in (i, j)]
                    if 0 < first + second < sum(sizes):
                        strata.append((sizes[0], sum(sizes), first + second))
                        seen += first
                key = tuple(sorted(strata, reverse=True))
                if key not in known:
                    known[key] = _stratified(key)
                law, lowest = known[key]
                place = seen - lowest
                likely = law[place] if 0 <= place < len(law) else 0.0
                each.append(float(law[law <= likely * (1.0 + 1e-7)].sum()))
            self.p[i, j] = of_smallest(each)
        return "mantel-haenszel"

    # Bets of fixed size.

    def _bounded(self, stated: Bounded) -> str:
        lo, hi = (np.broadcast_to(end, self.dim) for end in (stated.lo, stated.hi))
        for i, j in self.pairs:
            apart, weights = self._rows.means(i, j)
            for number in range(self.dim if len(weights) else 0):
                moved = apart[:, number] / (hi[number] - lo[number]) * weights / weights.max()
                logs = [float(np.log1p(sign * bet * moved).sum()) for sign in (1.0, -1.0) for bet in BETS]
                self.p[i, j] = min(self.p[i, j], self.dim * math.exp(-max(0.0, log_mean(logs))))
        return "bets"

    def _moments(self) -> str:
        for i, j in self.pairs:
            apart, weights = self._rows.means(i, j)
            if len(weights):
                self.p[i, j] = moment_p(self._noise.whiten(weights[:, None] * apart), weights, self._delta)
        return "moments"

    # Bounds of differences.

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """(M, M, d) lower and upper bounds of |μ_i − μ_j|; ValueError if the noise allows none."""
        noise, stated = self._noise, getattr(self._noise, "statement", None)
        if isinstance(stated, Bounded):
            return self._bounded_bounds(stated)
        if not isinstance(noise, Noise) and not isinstance(stated, Gaussian):
            raise ValueError(f"under {noise.words} no difference is bounded in blocks")
        squares, one_way = np.diag(self._scatter), self._like_one_way()
        return gaussian_bounds(noise, self.effects, self.resistance, squares, self._freedom, self._delta, one_way)

    def _bounded_bounds(self, stated: Bounded) -> tuple[FloatArray, FloatArray]:
        lo, hi = (np.broadcast_to(end, self.dim) for end in (stated.lo, stated.hi))
        lower = np.zeros((self.n_arms, self.n_arms, self.dim))
        upper = np.where(np.eye(self.n_arms, dtype=bool)[:, :, None], 0.0, np.full_like(lower, np.inf))
        level = math.log(len(self.pairs) * self.dim / self._delta)
        for i, j in self.pairs:
            apart, weights = self._rows.means(i, j)
            for number in range(self.dim if len(weights) else 0):
                scale = float(hi[number] - lo[number])
                low, high = mean_bounds(apart[:, number], -scale, scale, level)
                lower[i, j, number] = lower[j, i, number] = max(0.0, low, -high)
                upper[i, j, number] = upper[j, i, number] = max(high, -low)
        return lower, upper


def _parts(conductances: FloatArray) -> list[list[int]]:
    left, parts = set(range(len(conductances))), []
    while left:
        reached, new = set(), {min(left)}
        while new:
            reached |= new
            new = {other for item in new for other in np.flatnonzero(conductances[item]).tolist()} - reached
        parts.append(sorted(reached))
        left -= reached
    return parts


def _stratified(strata: tuple[tuple[int, int, int], ...]) -> tuple[FloatArray, int]:
    """Probabilities of the sum of hypergeometric numbers, and its least value: of trials of one item, of both, and
    successes of both in every stratum.
    """
    law, lowest = np.ones(1), 0
    for of_first, of_both, both in strata:
        low, high = max(0, both - (of_both - of_first)), min(both, of_first)
        part = stats.hypergeom.pmf(np.arange(low, high + 1), of_both, both, of_first)
        inside = np.flatnonzero(part > 1e-36 * part.max())
        law = np.convolve(law, part[inside[0] : inside[-1] + 1])
        law, lowest = law / law.sum(), lowest + low + int(inside[0])
    return law, lowest


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
        tests = RearrangedTests(BlockRows(self._arms, patterns, np.where(there, self._values, 0.0), measured))
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
