"""The rows of a finished table in blocks, and what follows if results of a block change places, recomputed.

The tests are described in `coterie.evidence.exact.block_rearranging`; this is another program for the same numbers.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from functools import cache

import numpy as np
from scipy import stats

from coterie.certificate.arithmetic.table_tests import FEW, FIRST, MOST, TIE, Pair, share_at_least
from coterie.problem.checks import FloatArray, IntArray

DIGITS = 10
GROUPED, FIRST_OF_GROUP, EARLY_OF_GROUP = 4_999, 999, 0.2
BLOCKS_OF_GROUP = 64
SIGNED = 300


class BlockRows:
    """The rows of a table by item and block, sorted.

    `measured`: of every block, which numbers its rows have; others are 0, and have no ranks.
    """

    def __init__(
        self, arms: IntArray, blocks: IntArray, values: FloatArray, measured: list[list[bool]] | None = None
    ) -> None:
        self.measured = measured
        rows = sorted(zip(arms.tolist(), blocks.tolist(), map(tuple, (values + 0.0).tolist()), strict=True))
        self.arms, self.blocks = (np.array([row[k] for row in rows]) for k in (0, 1))
        self.values = np.array([row[2] for row in rows])
        self.n_arms, self.n_blocks, self.dim = int(arms.max()) + 1, int(blocks.max()) + 1, values.shape[1]
        self.pairs = list(itertools.combinations(range(self.n_arms), 2))
        self.cells: dict[Pair, list[int]] = {}
        for row, place in enumerate(zip(self.arms.tolist(), self.blocks.tolist(), strict=True)):
            self.cells.setdefault(place, []).append(row)

    @property
    def seed(self) -> int:
        """Of everything drawn: the first 53 bits of SHA-256 of the rows with their blocks."""
        content = hashlib.sha256()
        for arm in range(self.n_arms):
            own = self.arms == arm
            content.update(np.array([own.sum()], dtype="<i8").tobytes() + self.blocks[own].astype("<i8").tobytes())
            content.update(self.values[own].astype("<f8").tobytes())
        return int.from_bytes(content.digest()[:8], "little") // 2**11

    def shared(self, i: int, j: int) -> list[int]:
        """The blocks that have both items."""
        return [block for block in range(self.n_blocks) if (i, block) in self.cells and (j, block) in self.cells]

    def means(self, i: int, j: int) -> tuple[FloatArray, FloatArray]:
        """Differences of means in the blocks that have both items, and their weights."""
        both = self.shared(i, j)
        apart, weights = np.zeros((len(both), self.dim)), np.zeros(len(both))
        for k, block in enumerate(both):
            first, second = (self.values[self.cells[arm, block]] for arm in (i, j))
            apart[k] = first.mean(axis=0) - second.mean(axis=0)
            weights[k] = 1.0 / (1.0 / len(first) + 1.0 / len(second))
        return apart, weights


class RearrangedTests:
    """P-values of pairs, and of groups, by rearranging results within blocks."""

    def __init__(self, rows: BlockRows) -> None:
        self._rows, self.seed = rows, rows.seed
        self.draws: int | None = None
        self.p: dict[Pair, float] = dict.fromkeys(rows.pairs, 1.0)
        self._drawn: dict[tuple[int, ...], tuple[np.ndarray, bool]] = {}
        self._group_p: dict[tuple[int, ...], float] = {}

    def _words(self, *stream: int, count: int) -> np.ndarray:
        drawn = np.random.PCG64(np.random.SeedSequence([self.seed, *stream])).random_raw(count)
        return np.atleast_1d(np.asarray(drawn))

    def signed_ranks(self) -> None:
        """Of very many items: signed ranks."""
        rows = self._rows
        picks = self._words(7, count=rows.n_arms * rows.n_blocks).tolist()
        keys = self._words(8, count=rows.n_blocks)
        in_order = np.argsort(keys, kind="stable").tolist()
        chosen = {
            (arm, block): float(rows.values[cell[picks[arm * rows.n_blocks + block] % len(cell)], 0])
            for (arm, block), cell in rows.cells.items()
        }
        for i, j in rows.pairs:
            both = [block for block in in_order if (i, block) in chosen and (j, block) in chosen]
            if not both:
                continue
            apart = _digits(np.array([[chosen[i, block] - chosen[j, block]] for block in both]))[:, 0]
            apart = apart[apart != 0.0][:SIGNED]
            by_size = sorted(range(len(apart)), key=lambda k: abs(apart[k]))
            positive = sum(rank + 1 for rank, k in enumerate(by_size) if apart[k] > 0.0)
            total = len(apart) * (len(apart) + 1) // 2
            law = _coin_law(len(apart))
            self.p[i, j] = float(min(1.0, 2.0 * sum(law[: min(positive, total - positive) + 1])))

    def by_pairs(self, symmetric: bool, delta: float) -> None:
        """Signs of differences, or permutations within blocks."""
        rows = self._rows
        wanted = 10_000 * math.ceil(20.0 * len(rows.pairs) / delta / 10_000) - 1
        draws, every = min(MOST, max(FIRST, wanted)), True
        keys = self._words(9, count=len(rows.values)) if symmetric else np.zeros(len(rows.values), dtype=np.uint64)
        for i, j in rows.pairs:
            both = rows.shared(i, j)
            if not both:
                continue
            shape = [(len(rows.cells[i, block]), len(rows.cells[j, block])) for block in both]
            if symmetric or set(shape) == {(1, 1)}:
                differences = _digits(np.concatenate([self._differences(i, j, block, keys) for block in both]))
                ranks = np.sign(differences) * stats.rankdata(np.abs(differences), axis=0)
                arranged, whole = self._signs(len(differences), draws)
                units = [_in_units(table, table, rows.dim, 0) for table in (differences, ranks)]
                self.p[i, j] = share_at_least(arranged, np.ones(len(differences)), units, whole)
            else:
                order = sorted(range(len(both)), key=lambda k: (shape[k], k))
                self.p[i, j], whole = self._permuted(i, j, [both[k] for k in order], [shape[k] for k in order], draws)
            every = every and whole
        self.draws = None if every else draws

    def _differences(self, i: int, j: int, block: int, keys: np.ndarray) -> FloatArray:
        """Of each result of the item with fewer from the mean of b results of the other, times b/(b + 1)."""
        rows = self._rows
        own, other = sorted((i, j), key=lambda arm: len(rows.cells[arm, block]))
        first, second = (
            rows.values[sorted(rows.cells[arm, block], key=lambda row: int(keys[row]))] for arm in (own, other)
        )
        size = len(second) // len(first)
        means = np.array([second[k * size : (k + 1) * size].mean(axis=0) for k in range(len(first))])
        return np.asarray((first - means) * (1.0 if own == i else -1.0) * size / (size + 1.0))

    def _signs(self, count: int, draws: int) -> tuple[FloatArray, bool]:
        key = (4, count)
        if key not in self._drawn:
            if 2**count <= FEW:
                self._drawn[key] = np.array(list(itertools.product((1, -1), repeat=count)), dtype=np.int8), True
            else:
                width = (count + 63) // 64
                words = self._words(4, count, count=draws * width).reshape(draws, width)
                bits = [words[:, k // 64] >> np.uint64(k % 64) & np.uint64(1) for k in range(count)]
                self._drawn[key] = np.where(np.array(bits).T == 1, -1, 1).astype(np.int8), False
        return self._drawn[key]

    def _permuted(self, i: int, j: int, blocks: list[int], shape: list[Pair], draws: int) -> tuple[float, bool]:
        key = (5, *itertools.chain.from_iterable(shape))
        if key not in self._drawn:
            number = math.prod(math.comb(a + b, a) for a, b in shape)
            self._drawn[key] = self._deal(shape, draws, number <= FEW), number <= FEW
        arranged, whole = self._drawn[key]
        rows = self._rows
        results = [rows.values[[*rows.cells[i, block], *rows.cells[j, block]]] for block in blocks]
        values = _digits(np.concatenate([part - part.mean(axis=0) for part in results]))
        ends = np.cumsum([len(part) for part in results])[:-1]
        factors = np.concatenate([np.full(a + b, math.sqrt(a * b / (a + b) / (a + b - 1.0))) for a, b in shape])
        units = []
        for table in (values, self._ranks(values, np.repeat(blocks, [len(part) for part in results]))):
            centred = np.concatenate([part - part.mean(axis=0) for part in np.split(table, ends)])
            units.append(_in_units(centred, factors[:, None] * centred, rows.dim, len(results)))
        own = np.concatenate([np.arange(a + b) < a for a, b in shape]).astype(float)
        return share_at_least(arranged, own, units, whole), whole

    def _ranks(self, values: FloatArray, blocks: IntArray) -> FloatArray:
        measured = self._rows.measured
        if measured is None:
            return np.asarray(stats.rankdata(values, axis=0))
        ranks = np.zeros_like(values)
        for number in range(self._rows.dim):
            own = [row for row, block in enumerate(blocks.tolist()) if measured[block][number]]
            ranks[own, number] = stats.rankdata(values[own, number])
        return ranks

    def _deal(self, shape: list[Pair], draws: int, every: bool) -> np.ndarray:
        if every:
            ways = [
                [[int(k in some) for k in range(a + b)] for some in itertools.combinations(range(a + b), a)]
                for a, b in shape
            ]
            return np.array([list(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*ways)])
        n = sum(a + b for a, b in shape)
        words = self._words(5, *itertools.chain.from_iterable(shape), count=draws * n).reshape(draws, n)
        arranged, start = np.zeros((draws, n), dtype=np.int8), 0
        for a, b in shape:
            part = words[:, start : start + a + b]
            arranged[:, start : start + a + b] = part <= np.sort(part, axis=1)[:, a - 1 : a]
            start += a + b
        return arranged

    # Groups.

    def group_p(self, group: tuple[int, ...]) -> float:
        """Of "these items are alike", by permutations of all of them within blocks, or by their pairs."""
        if group not in self._group_p:
            self._group_p[group] = self._of_group(group)
        return self._group_p[group]

    def _of_group(self, group: tuple[int, ...]) -> float:
        rows = self._rows
        there = [[arm for arm in group if (arm, block) in rows.cells] for block in range(rows.n_blocks)]
        several = [block for block in range(rows.n_blocks) if len(there[block]) > 1]
        single = all(len(rows.cells[arm, block]) == 1 for block in several for arm in there[block])
        if len(group) == 2 or not 0 < len(several) <= BLOCKS_OF_GROUP or not single:
            pairs = list(itertools.combinations(group, 2))
            return min(1.0, len(pairs) * min(self.p[pair] for pair in pairs))
        own = [[group.index(arm) for arm in there[block]] for block in several]
        results = [np.array([rows.values[rows.cells[arm, block][0], 0] for arm in there[block]]) for block in several]
        ends = np.cumsum([len(part) for part in results])[:-1]
        values = _digits(np.concatenate([part - part.mean() for part in results])[:, None])[:, 0]
        scores = [[part - part.mean() for part in np.split(table, ends)] for table in (values, stats.rankdata(values))]
        widths = [_widths(parts, own, len(group)) for parts in scores]

        def widest(orders: list[np.ndarray]) -> FloatArray:
            largest = np.zeros(len(orders[0]))
            for parts, width in zip(scores, widths, strict=True):
                sums = np.zeros((len(orders[0]), len(group)))
                for part, places, order in zip(parts, own, orders, strict=True):
                    sums[:, places] += part[order]
                for (i, j), size in width.items():
                    largest = np.maximum(largest, (sums[:, i] - sums[:, j]) ** 2 / size)
            return largest

        seen = float(widest([np.arange(len(part))[None] for part in results])[0])
        least = seen - TIE * (1.0 + seen)
        if math.prod(math.factorial(len(part)) for part in results) <= FEW:
            ways = itertools.product(*(list(itertools.permutations(range(len(part)))) for part in results))
            return float(np.mean(widest([np.array(orders) for orders in zip(*ways, strict=True)]) >= least))
        words = self._keys(len(several), len(group))
        orders = [np.argsort(words[:, block, : len(part)], axis=1) for block, part in enumerate(results)]
        first = int((widest([order[:FIRST_OF_GROUP] for order in orders]) >= least).sum()) + 1
        if first / (FIRST_OF_GROUP + 1) >= EARLY_OF_GROUP:
            return first / (FIRST_OF_GROUP + 1)
        return (first + int((widest([order[FIRST_OF_GROUP:] for order in orders]) >= least).sum())) / (GROUPED + 1)

    def _keys(self, n_blocks: int, size: int) -> np.ndarray:
        if (6, n_blocks, size) not in self._drawn:
            words = self._words(6, n_blocks, size, count=GROUPED * n_blocks * size)
            self._drawn[6, n_blocks, size] = words.reshape(GROUPED, n_blocks, size), False
        return self._drawn[6, n_blocks, size][0]


def _widths(parts: list[FloatArray], own: list[list[int]], size: int) -> dict[Pair, float]:
    """Of each two items: the variance of the difference of their sums over all orders within blocks, if it has one."""
    widths = dict.fromkeys(itertools.combinations(range(size), 2), 0.0)
    for part, places in zip(parts, own, strict=True):
        spread = float((part**2).sum()) / (len(part) - 1)
        for i, j in widths:
            both = (i in places) + (j in places)
            widths[i, j] += spread * (2.0 if both == 2 else both * (1.0 - 1.0 / len(part)))
    top = max(widths.values())
    return {pair: width for pair, width in widths.items() if width > 1e-12 * top}


def _digits(table: FloatArray) -> FloatArray:
    size = np.abs(table).max(axis=0)
    return np.asarray(np.round(table / np.where(size > 0.0, size, 1.0), DIGITS) + 0.0)


def _in_units(table: FloatArray, weighted: FloatArray, dim: int, n_blocks: int) -> FloatArray:
    """The table in units in which the weighted one has a sum of squares of 1, in all directions if rows are enough."""
    if dim == 1 or len(table) - n_blocks < 3 * dim:
        length = np.sqrt((weighted**2).sum(axis=0))
        return np.asarray(table / np.where(length > 0.0, length, 1.0))
    values, turn = np.linalg.eigh(weighted.T @ weighted)
    kept = values > 1e-18 * values.max()
    return np.asarray(table @ turn[:, kept] / np.sqrt(values[kept]))


@cache
def _coin_law(count: int) -> list[float]:
    """The probabilities of 0, 1, … of the sum of those of 1, …, count that a coin picks: by whole numbers."""
    ways = [1] + [0] * (count * (count + 1) // 2)
    for rank in range(1, count + 1):
        for total in range(rank * (rank + 1) // 2, rank - 1, -1):
            ways[total] += ways[total - rank]
    return [number / 2**count for number in ways]
