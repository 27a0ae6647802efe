"""Which partitions of the items fit the p-values of pairs: a confidence set, from which every answer is read.

A partition says which pairs are alike, and is tested at level δ by the smallest p-value of these pairs: by Bonferroni's
bound over them, or exactly by ranges (below) where the noise is Gaussian and a result one number, or by tests of its
groups (`PairTests.of_group`). Only one partition is true, so no further correction is needed: it is among those that
fit with probability at least 1 − δ. A pair that is alike in none of those that fit is *proven to differ*; this is
closed testing (Marcus, Peritz and Gabriel, 1976) with Shaffer's logic (pairs that cannot be alike together, 1986) in
its sharpest form (Bergmann and Hommel, 1988). If all with exactly K groups that fit are one, then the groups are
proven, given that there are K.

Of up to nine items all partitions are listed. Of more, pairs are struck off one round after the other: those in a
partition that fits keep apart what was struck off before, so that few of them can be alike together (an upper bound of
how many is enough), and a pair below δ over that number is in none of them.

*Ranges* of several groups of Gaussian means at once, in units of one common estimate s of the standard deviation. Under
a partition of the items into groups of equal means, let T be the largest |t| of all pairs within groups. For
equal numbers of rows √2·T is the largest of independent ranges over one common s, so P(T ≤ x) = E_s[∏ F_b(√2·x·s)] over
the sizes b of the groups, where F_b is the distribution of the range of b standard Gaussians and ν·s² is χ² with ν
degrees of freedom. For unequal numbers it is at least that (Hayter, Annals of Statistics 12, 1984, which holds for each
group given s). One group of all items is the test of Tukey and Kramer; any other partition has fewer pairs, so whatever
that test tells apart is told apart here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtri, ndtr, stdtr

from coterie.evidence.pair_graphs import far_items
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical

MOST_LISTED = 9
"""Items of which all partitions are listed: there are 21,147 of nine."""

_MOST_STEPS = 200_000  # of the search for groupings

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)

_Z = 8.5 * _NODES  # beyond, the Gaussian density is below 1e-16

_SHARES, _SHARE_WEIGHTS = np.polynomial.legendre.leggauss(64)


@lru_cache(maxsize=16)
def all_partitions(n_items: int) -> IntArray:
    """(Bell(M), M): the labels of all partitions, each group numbered by its first item; the coarsest comes first."""
    partitions = [[0]]
    for _ in range(n_items - 1):
        partitions = [[*labels, new] for labels in partitions for new in range(max(labels) + 2)]
    table = np.array(partitions, dtype=np.int64)
    table.setflags(write=False)
    return table


def most_equal_pairs(apart: np.ndarray, order: IntArray, n_groups: int | None = None) -> int:
    """An upper bound of the pairs that can be alike together, if no pair of `apart` (M, M) is.

    `order`: the items in a row in which those that are not apart stand close together; any order is valid. Let right(u)
    be the last place that is not apart from a place at or before u. Groups of a partition that keeps all pairs of
    `apart` are sets whose ends u < v have v ≤ right(u). Of partitions into such sets one with the most pairs has groups
    without gaps: where two groups cross, what lies between may go to either, and the sum of squares is largest if all
    of it goes to one. So the most pairs are found from left to right. `n_groups`: exactly so many groups, if that is
    known.
    """
    n = len(apart)
    near = ~apart[np.ix_(order, order)]
    last = n - 1 - np.argmax(near[:, ::-1], axis=1)
    right = np.maximum.accumulate(np.maximum(last, np.arange(n)))
    best = np.zeros(n + 1, dtype=np.int64)  # the most pairs of the first j places
    for j in range(1, n + 1):
        first = int(np.searchsorted(right, j - 1))  # the leftmost place whose group may reach the place j − 1
        sizes = j - np.arange(first, j)
        best[j] = (best[first:j] + sizes * (sizes - 1) // 2).max()
    most = int(best[n])
    if n_groups is not None:  # one group of M − K + 1 items, and the others alone, has the most
        most = min(most, (n - n_groups + 1) * (n - n_groups) // 2)
    return max(1, most)


def component_sizes(apart: np.ndarray) -> tuple[int, ...]:
    """The sizes of the sets of items that are joined by pairs not apart: every group lies in one of them."""
    sizes = np.bincount(connected_components(~apart, directed=False)[1])
    return tuple(sorted(sizes.tolist(), reverse=True))


def groupings(apart: np.ndarray, n_groups: int, most: int = 2) -> list[list[int]] | None:
    """Up to `most` partitions into exactly K groups without a pair of `apart` in one; None if the search is too long.

    Items with the fewest groups left come first; a new group is opened only once, so that no partition comes twice.
    """
    n = len(apart)
    labels = [-1] * n
    forbidden = np.zeros((n, n_groups), dtype=np.int64)
    partitions: list[list[int]] = []
    steps = 0

    def go(placed: int, used: int) -> bool:
        nonlocal steps
        steps += 1
        if steps > _MOST_STEPS:
            return False
        if placed == n:
            if used == n_groups:
                partitions.append(canonical(labels).tolist())
            return True
        if used + n - placed < n_groups:
            return True
        free = [i for i in range(n) if labels[i] < 0]
        item = max(free, key=lambda i: (int((forbidden[i, :used] > 0).sum()), int(apart[i].sum()), -i))
        for group in range(min(used + 1, n_groups)):
            if forbidden[item, group]:
                continue
            labels[item] = group
            forbidden[apart[item], group] += 1
            finished = go(placed + 1, max(used, group + 1))
            forbidden[apart[item], group] -= 1
            labels[item] = -1
            if not finished:
                return False
            if len(partitions) >= most:
                return True
        return True

    return partitions if go(0, 0) else None


def two_sided(t: FloatArray, freedom: float) -> FloatArray:
    """P(|t| ≥ x) for Student's t, or the standard Gaussian if `freedom` is infinite."""
    x = np.abs(t)
    return np.asarray(2.0 * (ndtr(-x) if math.isinf(freedom) else stdtr(freedom, -x)))


def range_below(width: FloatArray, size: int) -> FloatArray:
    """P(the range of `size` standard Gaussians ≤ width)."""
    if size == 1:
        return np.ones_like(width)
    inner = ndtr(_Z + width[..., None]) - ndtr(_Z)
    density = np.exp(-0.5 * _Z**2) / math.sqrt(2.0 * math.pi)
    return np.asarray(np.clip(size * 8.5 * (inner ** (size - 1) * density) @ _WEIGHTS, 0.0, 1.0))


def deviations(freedom: float) -> tuple[FloatArray, FloatArray]:
    """Values of s with their weights, by which means over s are computed."""
    if math.isinf(freedom):
        return np.ones(1), np.ones(1)
    # s at quantiles of χ²: between them, Legendre's nodes for a change of variables that spreads both tails.
    angle = 0.5 * math.pi * (_SHARES + 1.0) / 2.0
    share = np.sin(angle) ** 2
    weights = _SHARE_WEIGHTS * 0.25 * math.pi * 2.0 * np.sin(angle) * np.cos(angle)
    return np.sqrt(chdtri(freedom, 1.0 - share) / freedom), weights


def critical(sizes: Sequence[int], freedom: float, error: float) -> float:
    """How large T becomes with this probability, or a little more, for groups of these sizes; infinite without any."""
    if not sizes:
        return math.inf

    def excess(log_t: float) -> float:
        return float(Ranges(np.array([math.exp(log_t)]), freedom).p_values(sizes)[0]) - error

    return math.exp(brentq(excess, math.log(1e-3), math.log(1e12), xtol=1e-12)) * (1.0 + 1e-9)


class Ranges:
    """P(T ≥ x) for partitions by the sizes of their groups, at given x: the t statistics of all pairs."""

    def __init__(self, t: FloatArray, freedom: float) -> None:
        self._t, self._freedom = np.asarray(t, dtype=np.float64), freedom
        self._s, self._weights = deviations(freedom)
        self._known: dict[int, FloatArray] = {}
        self._pair = two_sided(self._t, freedom)

    def p_values(self, sizes: Sequence[int]) -> FloatArray:
        """P(T ≥ x) at every x, for groups of these sizes."""
        inside = np.ones((self._t.size, self._s.size))
        for size in sizes:
            inside *= self._below(size)
        pairs = sum(size * (size - 1) // 2 for size in sizes)
        # One minus a sum loses digits far out; there one pair is a lower bound, and all of them an upper one.
        return np.clip(1.0 - inside @ self._weights, self._pair, np.minimum(1.0, pairs * self._pair))

    def _below(self, size: int) -> FloatArray:
        if size not in self._known:
            self._known[size] = range_below(math.sqrt(2.0) * self._t[:, None] * self._s, size)
        return self._known[size]


@dataclass(frozen=True)
class PairTests:
    """A p-value for each pair of items, and whether pairs are tested together by ranges.

    `p`: (M, M), symmetric, 1 on the diagonal. `t` (M, M) and `freedom`: of pooled t tests, whose joint law is known;
    None for other tests. `order`: the items sorted so that close ones stand together. `test`: its name; `seed` and
    `draws`: of a test by random rearrangements; `draws` is None if all of them were tried. `of_group`: p of "these
    items are alike", if several are tested together otherwise than by their pairs. `least`: the smallest p-value that
    rows like these could have had.
    """

    p: FloatArray
    test: str
    order: IntArray
    t: FloatArray | None = None
    freedom: float = 0.0
    seed: int | None = None
    draws: int | None = None
    of_group: Callable[[tuple[int, ...]], float] | None = None
    least: float = 0.0


@dataclass(frozen=True)
class Fits:
    """What all partitions that fit have in common.

    `apart`: (M, M) which pairs are proven to differ; `adjusted`: (M, M) the least δ at which each would be, or an upper
    bound of it. `listed`: the labels of all partitions that fit, if the items are few enough to list them.
    """

    apart: np.ndarray
    adjusted: FloatArray
    listed: IntArray | None
    tests: PairTests
    delta: float

    @property
    def at_least(self) -> list[int]:
        """Items that pairwise differ: there are at least as many groups."""
        return sorted(far_items(self.apart))

    @property
    def fewest(self) -> int:
        """The least number of groups of a partition that fits, as far as it is known; 0 if none fits."""
        if self.listed is None:
            return len(self.at_least)
        return int(self.listed.max(axis=1).min()) + 1 if len(self.listed) else 0

    def with_groups(self, n_groups: int) -> list[list[int]] | None:
        """Up to two partitions into exactly K groups that fit; none: K is refuted. None if there are too many to look
        through.
        """
        if self.listed is not None:
            matching = self.listed[self.listed.max(axis=1) + 1 == n_groups]
            return [labels.tolist() for labels in matching[:2]]
        return groupings(_struck_off(self.tests, self.delta, n_groups)[0], n_groups)


def fitting(tests: PairTests, delta: float) -> Fits:
    """The partitions that fit the tests of pairs at level δ."""
    n = len(tests.p)
    if n > MOST_LISTED:
        apart, adjusted = _struck_off(tests, delta)
        return Fits(apart, adjusted, None, tests, delta)
    table = all_partitions(n)
    low, high = np.triu_indices(n, 1)
    together = table[:, low] == table[:, high]
    of_partitions = _partition_p(tests, table, together)
    fits = of_partitions > delta
    adjusted = np.ones((n, n))
    for k, (i, j) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        adjusted[i, j] = adjusted[j, i] = of_partitions[together[:, k]].max()
    apart = adjusted <= delta
    np.fill_diagonal(apart, False)
    return Fits(apart, adjusted, table[fits], tests, delta)


def _partition_p(tests: PairTests, table: IntArray, together: np.ndarray) -> FloatArray:
    """The p-value of every partition; 1 of the one in which no pair is alike."""
    n = table.shape[1]
    low, high = np.triu_indices(n, 1)
    p = tests.p[low, high]
    smallest = np.where(together, p, 2.0).argmin(axis=1)
    p_values = np.minimum(1.0, together.sum(axis=1) * p[smallest])
    if tests.t is not None:
        ranges = Ranges(tests.t[low, high], tests.freedom)
        sizes = np.sort((table[:, :, None] == np.arange(n)).sum(axis=1), axis=1)[:, ::-1]
        kinds, which = np.unique(sizes, axis=0, return_inverse=True)
        at = np.stack([ranges.p_values([int(size) for size in kind if size > 1]) for kind in kinds])
        p_values = at[which.reshape(-1), smallest]
    elif tests.of_group is not None:
        p_values = _by_groups(tests.of_group, table)
    return np.asarray(np.where(together.any(axis=1), p_values, 1.0))


def _by_groups(of_group: Callable[[tuple[int, ...]], float], table: IntArray) -> FloatArray:
    """The p-value of every partition by tests of its groups, each with a share of the level by its number of pairs."""
    known: dict[tuple[int, ...], float] = {}
    p_values = np.ones(len(table))
    for row, labels in enumerate(table.tolist()):
        members: list[list[int]] = [[] for _ in range(max(labels) + 1)]
        for item, label in enumerate(labels):
            members[label].append(item)
        groups = [tuple(group) for group in members if len(group) > 1]
        pairs = [len(group) * (len(group) - 1) // 2 for group in groups]
        for group, count in zip(groups, pairs, strict=True):
            if group not in known:
                known[group] = of_group(group)
            p_values[row] = min(p_values[row], known[group] * sum(pairs) / count)
    return p_values


def _struck_off(tests: PairTests, delta: float, n_groups: int | None = None) -> tuple[np.ndarray, FloatArray]:
    """Pairs that are alike in no partition that fits (with exactly K groups), round after round; and their p-values
    times the number of pairs that can be alike together then.
    """
    n = len(tests.p)
    apart = np.zeros((n, n), dtype=bool)
    adjusted = np.ones((n, n))
    while True:
        level = np.minimum(1.0, tests.p * most_equal_pairs(apart, tests.order, n_groups))
        if tests.t is not None:  # every group lies in a component, and ranges of larger groups are larger
            sizes = [size for size in component_sizes(apart) if size > 1]
            level = np.where(tests.t >= critical(sizes, tests.freedom, delta), np.minimum(level, delta), level)
        adjusted = np.where(apart, adjusted, level)
        new = ~apart & (level <= delta)
        np.fill_diagonal(new, False)
        if not new.any():
            np.fill_diagonal(adjusted, 1.0)
            return apart, adjusted
        apart |= new
