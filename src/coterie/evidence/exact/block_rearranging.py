"""P-values by rearranging results within blocks: of pairs of items, and of groups of them.

If two items are alike, every way of dealing their results of a block to the two is equally likely, in each block by
itself; with one result of each, every choice of the signs of their differences. If the noise of each is symmetric about
one mean in a block, then so are the differences of results there about 0, each of which uses other results.

The statistics are those of `rearranging`: the larger of values and of ranks, here of results freed of their block's
mean (aligned ranks; of differences their signed ranks).

If there are few blocks, pairs alone cannot reach δ over their number. So under any noise groups of up to nine items,
with at most one result of each in a block, are tested together: the largest difference of two items' sums, each in
units of its spread, over the permutations of all items of the group that are in a block.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from functools import lru_cache
from itertools import combinations, permutations, product

import numpy as np
from scipy.stats import rankdata

from coterie.evidence.exact.fits import MOST_LISTED, PairTests
from coterie.evidence.exact.pair_tests import matrix_of, paired, pairs_of
from coterie.evidence.exact.rearranging import MOST_TRIED, TIE, draws_for, rearranged_p, sign_scores
from coterie.problem.checks import FloatArray, IntArray

DIGITS = 10
"""Of differences, in units of the largest: what differs by less is equal."""
GROUP_DRAWS, FIRST_GROUP_DRAWS, EARLY_GROUP = 4_999, 999, 0.2
"""Random rearrangements of a group; if p is not below `EARLY_GROUP` after the first of them, these are enough."""
MOST_BLOCKS, LEAST_DELTA = 64, 0.01
"""Groups are tested together in at most so many blocks, and for no smaller δ: with more blocks pairs are enough."""
MOST_SIGNED = 300
"""Blocks of a pair, drawn at random, where the laws of signed ranks are computed."""
_PART = 2_000_000  # random words drawn at a time


class BlockTable:
    """The rows of a finished table by item and block, sorted: nothing depends on how the file was sorted.

    `measured` (blocks, d): which numbers the rows of a block have, if they lack some; those are 0.
    """

    def __init__(self, arms: IntArray, blocks: IntArray, rows: FloatArray, measured: np.ndarray | None = None) -> None:
        self.measured = measured
        rows = rows + 0.0  # −0 becomes 0
        order = np.lexsort((*rows.T[::-1], blocks, arms))
        self.arms, self.blocks, self.rows = arms[order], blocks[order], rows[order]
        self.n_arms, self.n_blocks, self.dim = int(arms.max()) + 1, int(blocks.max()) + 1, rows.shape[1]
        self.counts = np.zeros((self.n_arms, self.n_blocks), dtype=np.int64)
        np.add.at(self.counts, (self.arms, self.blocks), 1)
        self.sums = np.zeros((self.n_arms, self.n_blocks, self.dim))
        np.add.at(self.sums, (self.arms, self.blocks), self.rows)
        self._starts = np.concatenate([[0], np.cumsum(self.counts.reshape(-1))])

    @property
    def seed(self) -> int:
        """From the rows themselves: the first 53 bits of SHA-256 of all numbers, item by item, with their blocks."""
        content = hashlib.sha256()
        for arm in range(self.n_arms):
            own = self.arms == arm
            content.update(int(own.sum()).to_bytes(8, "little"))
            content.update(self.blocks[own].astype("<i8").tobytes())
            content.update(np.ascontiguousarray(self.rows[own], dtype="<f8").tobytes())
        return int.from_bytes(content.digest()[:8], "little") >> 11

    def cell(self, arm: int, block: int, rows: FloatArray | None = None) -> FloatArray:
        """The rows of an item in a block; of `rows`, if these stand in another order within cells."""
        place = arm * self.n_blocks + block
        return (self.rows if rows is None else rows)[self._starts[place] : self._starts[place + 1]]

    def shared(self, i: int, j: int) -> IntArray:
        """The blocks that have both items."""
        return np.flatnonzero((self.counts[i] > 0) & (self.counts[j] > 0))

    def contrasts(self, i: int, j: int) -> tuple[FloatArray, FloatArray]:
        """(m, d) differences D of the two items' means in the blocks that have both; and (m) the weights w."""
        both = self.shared(i, j)
        a, b = (self.counts[arm, both].astype(np.float64) for arm in (i, j))
        return self.sums[i, both] / a[:, None] - self.sums[j, both] / b[:, None], a * b / (a + b)

    def shuffled(self, seed: int) -> FloatArray:
        """The rows, those of an item in a block in an order drawn by the seed."""
        words = np.atleast_1d(np.asarray(np.random.PCG64(np.random.SeedSequence([seed, 9])).random_raw(len(self.rows))))
        return self.rows[np.lexsort((words, self.blocks, self.arms))]

    def differences(self, i: int, j: int, rows: FloatArray) -> FloatArray:
        """(m, d): in the blocks that have both items, each result of the one with fewer minus the mean of b results of
        the other, weighted by b/(b + 1).
        """
        parts = []
        for block in self.shared(i, j).tolist():
            differences, size = paired(self.cell(i, block, rows), self.cell(j, block, rows))
            parts.append(differences * (size / (size + 1.0)))
        return np.concatenate(parts)

    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of items."""
        return pairs_of(self.n_arms)

    def matrix(self, p_values: dict[tuple[int, int], float]) -> FloatArray:
        """(M, M), symmetric, 1 on the diagonal."""
        return matrix_of(p_values, self.n_arms)


def rounded(table: FloatArray) -> FloatArray:
    """In units of the largest number of each column, to `DIGITS` digits: equal differences are equal."""
    size = np.abs(table).max(axis=0)
    return np.round(table / np.where(size > 0.0, size, 1.0), DIGITS) + 0.0


def rearranged_tests(table: BlockTable, kind: str, order: IntArray, delta: float) -> PairTests:
    seed, draws = table.seed, draws_for(len(table.pairs()), delta)
    by_shape: dict[tuple[tuple[int, int], ...], list[tuple[int, int]]] = defaultdict(list)
    scores: dict[tuple[int, int], FloatArray] = {}
    p_values: dict[tuple[int, int], float] = {}
    mixed = table.shuffled(seed) if kind == "symmetric" else table.rows
    for i, j in table.pairs():
        both = table.shared(i, j)
        if not both.size:
            continue
        shape = [(int(table.counts[i, block]), int(table.counts[j, block])) for block in both]
        if kind == "symmetric" or set(shape) == {(1, 1)}:
            differences = table.differences(i, j, mixed) if kind == "symmetric" else table.contrasts(i, j)[0]
            scores[i, j] = sign_scores(rounded(differences))
            by_shape[((1, 1),) * len(differences)].append((i, j))
            continue
        places = sorted(range(len(both)), key=lambda place: (shape[place], place))
        shape = [shape[place] for place in places]
        cells = [np.concatenate([table.cell(i, both[place]), table.cell(j, both[place])]) for place in places]
        measured = None if table.measured is None else table.measured[both[places]]
        scores[i, j] = _scores_within(cells, shape, measured)
        by_shape[tuple(shape)].append((i, j))
    every, least = True, 1.0
    for key, of_shape in by_shape.items():
        if set(key) == {(1, 1)}:
            observed, (arrangements, whole), least_here = np.ones(len(key)), _flipped(len(key), draws, seed), 2.0
        else:
            observed = np.concatenate([np.repeat([1.0, 0.0], sizes) for sizes in key])
            arrangements, whole = _dealt_within(key, draws, seed)
            least_here = 1.0
        number = math.prod(math.comb(a + b, a) for a, b in key)
        least = min(least, least_here / number if whole else 1.0 / (draws + 1.0))
        p = rearranged_p([scores[pair] for pair in of_shape], observed, arrangements, whole)
        every = every and whole
        p_values |= dict(zip(of_shape, p.tolist(), strict=True))
    p = table.matrix(p_values)
    test = "block-signs" if kind == "symmetric" else "block-permutations"
    groups = None
    if kind == "any" and table.dim == 1 and 2 < table.n_arms <= MOST_LISTED and delta >= LEAST_DELTA:
        groups = _Groups(table, p, seed).p
    draws_used = None if every else draws
    return PairTests(p, test, order, seed=seed, draws=draws_used, of_group=groups, least=least)


def _flipped(count: int, draws: int, seed: int) -> tuple[np.ndarray, bool]:
    """(B, m) of −1 and 1: signs of the differences in m blocks, a bit each; and whether these are all there are."""
    if 2**count <= MOST_TRIED:
        bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
        return (1 - 2 * bits).astype(np.int8), True
    words = np.random.PCG64(np.random.SeedSequence([seed, 4, count]))
    width = -(-count // 64)
    drawn = np.asarray(words.random_raw(draws * width)).astype("<u8").view(np.uint8).reshape(draws, 8 * width)
    signs = np.unpackbits(drawn, axis=1, bitorder="little")[:, :count].astype(np.int8)
    return 1 - 2 * signs, False


def _dealt_within(shape: tuple[tuple[int, int], ...], draws: int, seed: int) -> tuple[np.ndarray, bool]:
    """(B, n) of 0 and 1: which results of each block go to the first item; and whether these are all there are."""
    if math.prod(math.comb(a + b, a) for a, b in shape) <= MOST_TRIED:
        ways = [[[int(k in some) for k in range(a + b)] for some in combinations(range(a + b), a)] for a, b in shape]
        return np.array([np.concatenate(chosen) for chosen in product(*ways)], dtype=np.int8), True
    n = sum(a + b for a, b in shape)
    words = np.random.PCG64(np.random.SeedSequence([seed, 5, *(number for sizes in shape for number in sizes)]))
    arrangements = np.zeros((draws, n), dtype=np.int8)
    step = max(1, _PART // n)
    for top in range(0, draws, step):
        part = arrangements[top : top + step]
        keys = np.asarray(words.random_raw(len(part) * n)).reshape(len(part), n)
        start = 0
        for a, b in shape:
            chosen = np.argpartition(keys[:, start : start + a + b], a - 1, axis=1)[:, :a]
            np.put_along_axis(part[:, start : start + a + b], chosen, 1, axis=1)
            start += a + b
    return arrangements, False


def _scores_within(
    cells: list[FloatArray], shape: list[tuple[int, int]], measured: np.ndarray | None = None
) -> FloatArray:
    """(n, 2d): values and ranks freed of their blocks, so that squared lengths of their sums over the results dealt to
    the first item, d columns at a time, are the two statistics. `cells`: the results of both items in each block.
    """
    dim = cells[0].shape[1]
    which = np.repeat(np.arange(len(cells)), [len(cell) for cell in cells])
    values = rounded(np.concatenate([cell - cell.mean(axis=0) for cell in cells]))
    # Σ over a of a + A results, without replacement, has covariance a·A/(N(N − 1))·Σ s sᵀ in a block of N.
    share = np.sqrt([a * b / ((a + b) * (a + b - 1.0)) for a, b in shape])[which][:, None]
    columns = []
    for scores in (values, _ranks(values, None if measured is None else measured[which])):
        means = np.zeros((len(cells), dim))
        np.add.at(means, which, scores)
        centred = scores - (means / np.bincount(which)[:, None])[which]
        weighted = share * centred
        if dim == 1 or len(which) - len(cells) < 3 * dim:
            length = np.sqrt((weighted**2).sum(axis=0))
            columns.append(centred / np.where(length > 0.0, length, 1.0))
        else:
            _, sizes, turn = np.linalg.svd(weighted, full_matrices=False)
            kept = sizes > 1e-9 * sizes[0]
            columns.append((centred @ turn.T) * np.where(kept, 1.0 / np.where(kept, sizes, 1.0), 0.0))
    return np.concatenate(columns, axis=1)


def _ranks(values: FloatArray, measured: np.ndarray | None) -> FloatArray:
    """Of each number, among those that were measured."""
    if measured is None:
        return np.asarray(rankdata(values, axis=0))
    ranks = np.zeros(values.shape)
    for number, there in enumerate(measured.T):
        ranks[there, number] = rankdata(values[there, number])
    return ranks


class _Groups:
    """P-values of "these items are alike", by permutations of all of them within blocks."""

    def __init__(self, table: BlockTable, p: FloatArray, seed: int) -> None:
        self._table, self._p, self._seed = table, p, seed
        self._keys: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}

    def p(self, group: tuple[int, ...]) -> float:
        """Of a group of items; by its pairs, if it is one, has repeats in a block, or is in very many blocks."""
        counts = self._table.counts[list(group)]
        several = (counts > 0).sum(axis=0) > 1
        blocks = int(several.sum())
        if len(group) == 2 or not 0 < blocks <= MOST_BLOCKS or (counts[:, several] > 1).any():
            smallest = min(self._p[i, j] for i, j in combinations(group, 2))
            return float(min(1.0, smallest * len(group) * (len(group) - 1) / 2.0))
        present = counts[:, several].T > 0
        values = _free_of_blocks(self._table.sums[list(group)][:, several, 0].T, present)
        values[present] = rounded(values[present][:, None])[:, 0]
        ranks = np.zeros(values.shape)
        ranks[present] = rankdata(values[present])
        tables = [_free_of_blocks(scores, present) for scores in (values, ranks)]
        widths = [_variances(scores, present) for scores in tables]
        orders, whole = self._orders(present)
        seen = _widest(tables, widths, np.arange(present.size).reshape(1, *present.shape))[0]
        least = seen - TIE * (1.0 + seen)
        if whole:
            return float(np.mean(_widest(tables, widths, orders) >= least))
        first = int((_widest(tables, widths, orders[:FIRST_GROUP_DRAWS]) >= least).sum())
        p = (first + 1.0) / (FIRST_GROUP_DRAWS + 1.0)
        if p >= EARLY_GROUP:
            return p
        more = int((_widest(tables, widths, orders[FIRST_GROUP_DRAWS:]) >= least).sum())
        return (first + more + 1.0) / (GROUP_DRAWS + 1.0)

    def _orders(self, present: np.ndarray) -> tuple[np.ndarray, bool]:
        """(B, blocks, items): places of results, in each block an order of those that are there; and whether these are
        all there are.
        """
        n_blocks, size = present.shape
        places = np.arange(present.size).reshape(present.shape)
        own = [places[block, there] for block, there in enumerate(present)]
        if math.prod(math.factorial(len(there)) for there in own) <= MOST_TRIED:
            ways = list(product(*(permutations(there.tolist()) for there in own)))
            orders = np.broadcast_to(places, (len(ways), *present.shape)).copy()
            orders[:, present] = np.array([[place for block in way for place in block] for way in ways])
            return orders, True
        if (n_blocks, size) not in self._keys:
            words = np.random.PCG64(np.random.SeedSequence([self._seed, 6, n_blocks, size]))
            keys = np.asarray(words.random_raw(GROUP_DRAWS * n_blocks * size)).reshape(-1, n_blocks, size)
            self._keys[n_blocks, size] = keys, np.argsort(keys, axis=2) + places[:, :1]
        keys, orders = self._keys[n_blocks, size]
        if not present.all():
            orders = np.broadcast_to(places, orders.shape).copy()
            for block, there in enumerate(own):
                orders[:, block, present[block]] = there[np.argsort(keys[:, block, : len(there)], axis=1)]
        return orders, False


def _free_of_blocks(scores: FloatArray, present: np.ndarray) -> FloatArray:
    """(blocks, items): scores less the mean of those that are there; 0 where none is."""
    means = np.where(present, scores, 0.0).sum(axis=1) / present.sum(axis=1)
    return np.where(present, scores - means[:, None], 0.0)


def _variances(scores: FloatArray, present: np.ndarray) -> FloatArray:
    """(M, M) of differences of two items' sums, over all orders within blocks."""
    there = present.astype(np.float64)
    spread = (scores**2).sum(axis=1) / (there.sum(axis=1) - 1.0)
    covariance = np.diag(spread @ there) - (there.T * (spread / there.sum(axis=1))) @ there
    own = np.diag(covariance)
    return np.asarray(own[:, None] + own - 2.0 * covariance)


def _widest(tables: list[FloatArray], variances: list[FloatArray], orders: np.ndarray) -> FloatArray:
    """(B): the largest squared difference of two items' sums over its variance, the larger by values and by ranks."""
    low, high = np.triu_indices(tables[0].shape[1], 1)
    largest = np.zeros(len(orders))
    for scores, variance in zip(tables, variances, strict=True):
        sums = scores.reshape(-1).take(orders).sum(axis=1)
        of_pairs = variance[low, high]
        if np.ptp(of_pairs) <= 1e-12 * of_pairs.max():  # the largest is that of the ends
            squares = (sums.max(axis=1) - sums.min(axis=1)) ** 2 / (of_pairs[0] if of_pairs[0] > 0.0 else 1.0)
        else:
            varies = of_pairs > 1e-12 * of_pairs.max()
            squares = ((sums[:, low[varies]] - sums[:, high[varies]]) ** 2 / of_pairs[varies]).max(axis=1)
        largest = np.maximum(largest, squares)
    return largest


def signed_ranks(table: BlockTable, order: IntArray) -> PairTests:
    """Of very many items: signed ranks with their exact law, differences of 0 left out, equal ones in random order.

    One result of each item in every block is drawn, so that the two of a pair may change places.
    """
    seed, shape = table.seed, (table.n_arms, table.n_blocks)
    words = np.asarray(np.random.PCG64(np.random.SeedSequence([seed, 7])).random_raw(table.n_arms * table.n_blocks))
    chosen = words.reshape(shape) % np.maximum(table.counts, 1).astype(np.uint64)
    starts = np.concatenate([[0], np.cumsum(table.counts.reshape(-1))])[:-1].reshape(shape)
    values = table.rows[np.minimum(starts + chosen.astype(np.int64), len(table.rows) - 1), 0]
    keys = np.atleast_1d(np.asarray(np.random.PCG64(np.random.SeedSequence([seed, 8])).random_raw(table.n_blocks)))
    by_key = np.argsort(keys, kind="stable")
    p_values, most = {}, 0
    for i, j in table.pairs():
        both = by_key[(table.counts[i, by_key] > 0) & (table.counts[j, by_key] > 0)]
        if not both.size:
            continue
        apart = rounded((values[i, both] - values[j, both])[:, None])[:, 0]
        apart = apart[apart != 0.0][:MOST_SIGNED]
        ranks = np.empty(len(apart))
        ranks[np.argsort(np.abs(apart), kind="stable")] = np.arange(1, len(apart) + 1)
        p_values[i, j] = signed_rank_p(int(ranks[apart > 0.0].sum()), len(apart))
        most = max(most, min(len(both), MOST_SIGNED))
    return PairTests(table.matrix(p_values), "block-ranks", order, seed=seed, least=2.0**-most * 2.0)


def signed_rank_p(positive: int, count: int) -> float:
    """P that the ranks 1, …, count with random signs have a sum of positive ones as far from its mean as this."""
    law = _signed_rank_law(count)
    return float(min(1.0, 2.0 * law[: min(positive, len(law) - 1 - positive) + 1].sum()))


@lru_cache(maxsize=MOST_SIGNED + 1)
def _signed_rank_law(count: int) -> FloatArray:
    """The law of the sum of those of the ranks 1, …, count that a coin picks."""
    if count == 0:
        return np.ones(1)
    before = _signed_rank_law(count - 1)
    law = np.zeros(len(before) + count)
    law[: len(before)] += 0.5 * before
    law[count:] += 0.5 * before
    return law
