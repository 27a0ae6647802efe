"""What the rows of a finished table prove, recomputed: partitions that fit its p-values, bounds of its differences.

The argument about partitions is in `coterie.evidence.exact.fits`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr

from coterie.certificate.arithmetic.table_tests import BETS, INTERVALS, Pair, TableTests, bet_sums, log_mean
from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded, Counts, Gaussian, Model
from coterie.problem.noise import Noise
from coterie.problem.question import Resolution

if TYPE_CHECKING:
    from coterie.certificate.arithmetic.table_blocks import BlockTests, HoleTests

LISTED = 9
SLACK = 1e-6
"""Rounding that is forgiven where a p-value must not be above δ, relative to it."""
WIDER = 1e-7
"""Rounding that is forgiven where a bound must lie on the right side, relative to it."""
_STEPS = 2_000_000


class RangeLaw:
    """P(the largest |t| within groups of given sizes ≥ x), by Simpson's rule over s and over the lowest mean."""

    def __init__(self, freedom: float) -> None:
        self._z = np.linspace(-8.5, 8.5, 301)
        self._weights = _simpson(self._z) * stats.norm.pdf(self._z)
        if math.isinf(freedom):
            self._s, self._density = np.ones(1), np.ones(1)
        else:
            law = stats.chi(freedom, scale=1.0 / math.sqrt(freedom))
            ends = max(1e-9, float(law.ppf(1e-13))), float(law.isf(1e-13))
            self._s = np.linspace(*ends, 401)
            self._density = _simpson(self._s) * law.pdf(self._s)
        self._known: dict[tuple[int, float], FloatArray] = {}
        self._freedom = freedom

    def p(self, sizes: Sequence[int], t: float) -> float:
        """At x = t."""
        inside = np.ones(self._s.size)
        for size in sizes:
            inside = inside * self._below(size, t)
        pair = float(2.0 * (stats.norm.sf(t) if math.isinf(self._freedom) else stats.t.sf(t, self._freedom)))
        count = sum(size * (size - 1) // 2 for size in sizes)
        return min(max(1.0 - float(inside @ self._density), pair), min(1.0, count * pair))

    def critical(self, sizes: Sequence[int], error: float) -> float:
        """The x that is reached with this probability."""
        return math.exp(
            brentq(lambda x: self.p(sizes, math.exp(x)) - error, math.log(1e-3), math.log(1e12), xtol=1e-13)
        )

    def _below(self, size: int, t: float) -> FloatArray:
        if (size, t) not in self._known:
            width = math.sqrt(2.0) * t * self._s
            inner = ndtr(self._z + width[:, None]) - ndtr(self._z)
            self._known[size, t] = np.minimum(1.0, size * (inner ** (size - 1)) @ self._weights)
        return self._known[size, t]


def _simpson(grid: FloatArray) -> FloatArray:
    weights = np.where(np.arange(grid.size) % 2 == 1, 4.0, 2.0)
    weights[[0, -1]] = 1.0
    return np.asarray(weights * (grid[1] - grid[0]) / 3.0)


class Closure:
    """The pairs that are alike in no partition that fits, and the partitions themselves where they can be listed."""

    def __init__(self, tests: TableTests | BlockTests | HoleTests, delta: float) -> None:
        self._tests, self._level = tests, delta * (1.0 + SLACK)
        self.n_arms = tests.n_arms
        self._groups = getattr(tests, "groups", None)
        self._law = None if tests.t is None else RangeLaw(tests.freedom)
        self.fitting: list[list[list[int]]] | None = None
        if self.n_arms <= LISTED:
            self.fitting = [blocks for blocks in partitions(self.n_arms) if self._fits(blocks)]
            alike = {pair for blocks in self.fitting for pair in _within(blocks)}
            self.apart = set(tests.pairs) - alike
        else:
            self.apart = self.struck_off(None)

    def _fits(self, blocks: list[list[int]]) -> bool:
        pairs = _within(blocks)
        if not pairs:
            return True
        if self._groups is not None:  # each with a share of the level by its number of pairs
            groups = [tuple(sorted(block)) for block in blocks if len(block) > 1]
            shares = [len(group) * (len(group) - 1) // 2 / len(pairs) for group in groups]
            p = [self._groups.group_p(group) / share for group, share in zip(groups, shares, strict=True)]
            return bool(min(p) > self._level)
        worst = min(pairs, key=lambda pair: self._tests.p[pair])
        if self._law is None or self._tests.t is None:
            return len(pairs) * self._tests.p[worst] > self._level
        sizes = [len(block) for block in blocks if len(block) > 1]
        return self._law.p(sorted(sizes), max(self._tests.t[pair] for pair in pairs)) > self._level

    def struck_off(self, n_groups: int | None) -> set[Pair]:
        """Pairs struck off round after round, where partitions (into K groups) cannot be listed."""
        tests, apart = self._tests, set[Pair]()
        order = _in_a_row(tests)
        while True:
            most = _most_alike(self.n_arms, apart, order)
            if n_groups is not None:
                rest = self.n_arms - n_groups
                most = min(most, rest * (rest + 1) // 2)
            new = {pair for pair in tests.pairs if pair not in apart and max(1, most) * tests.p[pair] <= self._level}
            if self._law is not None and tests.t is not None:
                sizes = [size for size in _components(self.n_arms, apart) if size > 1]
                needed = self._critical(sizes) if sizes else math.inf
                new |= {pair for pair in tests.pairs if pair not in apart and tests.t[pair] >= needed}
            if not new:
                return apart
            apart |= new

    def _critical(self, sizes: list[int]) -> float:
        return RangeLaw(self._tests.freedom).critical(sizes, self._level)

    def only_grouping(self, n_groups: int, labels: Sequence[int]) -> bool:
        """Whether these labels are the only partition into exactly K groups that fits."""
        blocks = [[i for i, label in enumerate(labels) if label == k] for k in range(n_groups)]
        if self.fitting is not None:
            groupings = [sorted(map(tuple, partition)) for partition in self.fitting if len(partition) == n_groups]
            return groupings == [sorted(map(tuple, blocks))]
        apart = self.struck_off(n_groups)
        return not any(pair in apart for pair in _within(blocks)) and not self._another(apart, n_groups, labels)

    def _another(self, apart: set[Pair], n_groups: int, labels: Sequence[int]) -> bool:
        """Whether there is another partition into K groups without a pair of `apart` in one; True also if unknown."""
        n = self.n_arms
        differ = np.zeros((n, n), dtype=bool)
        for i, j in apart:
            differ[i, j] = differ[j, i] = True
        groups = -np.ones(n, dtype=np.int64)
        steps = 0

        def another_fits(placed: int, used: int) -> bool:
            nonlocal steps
            steps += 1
            if steps > _STEPS:
                return True
            if placed == n:
                return used == n_groups and bool(((groups[:, None] == groups) != _same(labels)).any())
            if used + n - placed < n_groups:
                return False
            best, choices = -1, np.zeros(0, dtype=np.int64)
            for item in np.flatnonzero(groups < 0).tolist():
                taken = set(groups[differ[item] & (groups >= 0)].tolist())
                free = np.array([k for k in range(min(used + 1, n_groups)) if k not in taken], dtype=np.int64)
                if best < 0 or free.size < choices.size:
                    best, choices = item, free
                if free.size == 0:
                    return False
            for k in choices.tolist():
                groups[best] = k
                if another_fits(placed + 1, max(used, k + 1)):
                    return True
                groups[best] = -1
            return False

        return another_fits(0, 0)


def _same(labels: Sequence[int]) -> np.ndarray:
    groups = np.array(labels)
    return np.asarray(groups[:, None] == groups)


def partitions(n: int) -> Iterator[list[list[int]]]:
    """All partitions of 0, …, n − 1."""
    if n == 0:
        yield []
        return
    for rest in partitions(n - 1):
        yield [*[list(block) for block in rest], [n - 1]]
        for k in range(len(rest)):
            yield [[*block, n - 1] if i == k else list(block) for i, block in enumerate(rest)]


def _within(blocks: list[list[int]]) -> list[Pair]:
    return [(min(i, j), max(i, j)) for block in blocks for a, i in enumerate(block) for j in block[:a]]


def _in_a_row(tests: TableTests | BlockTests | HoleTests) -> list[int]:
    """The items along the direction in which their means differ most; any order would be valid."""
    rows = np.concatenate(tests.stacks)
    scale = rows.std(axis=0)
    means = np.stack([stack.mean(axis=0) for stack in tests.stacks])
    z = (means - means.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    along = z[:, 0] if tests.dim == 1 else z @ np.linalg.svd(z, full_matrices=False)[2][0]
    return [int(item) for item in np.argsort(along, kind="stable")]


def _most_alike(n: int, apart: set[Pair], order: list[int]) -> int:
    """An upper bound of the pairs that can be alike together if none of `apart` is; see
    `partitions.most_equal_pairs`."""
    place = {item: k for k, item in enumerate(order)}
    reach = list(range(n))
    struck = {(min(place[i], place[j]), max(place[i], place[j])) for i, j in apart}
    for u in range(n):
        last = next((v for v in range(n - 1, u, -1) if (u, v) not in struck), u)
        reach[u] = max(last, reach[u - 1] if u else last)
    best = [0] * (n + 1)
    for end in range(1, n + 1):
        for start in range(end - 1, -1, -1):
            if reach[start] < end - 1:
                break
            size = end - start
            best[end] = max(best[end], best[start] + size * (size - 1) // 2)
    return best[n]


def _components(n: int, apart: set[Pair]) -> list[int]:
    """Sizes of the sets of items joined by pairs that are not apart."""
    root = list(range(n))

    def find(item: int) -> int:
        while root[item] != item:
            item = root[item]
        return item

    for i in range(n):
        for j in range(i + 1, n):
            if (i, j) not in apart:
                root[find(i)] = find(j)
    sizes: dict[int, int] = {}
    for item in range(n):
        sizes[find(item)] = sizes.get(find(item), 0) + 1
    return sorted(sizes.values())


# Bounds of differences.


def difference_bounds(stacks: list[FloatArray], noise: Model, delta: float) -> tuple[FloatArray, FloatArray]:
    """(M, M, d) lower and upper bounds of |μ_i − μ_j|; ValueError if the noise allows none."""
    stated, dim = getattr(noise, "statement", None), stacks[0].shape[1]
    if isinstance(noise, Noise) or isinstance(stated, Gaussian):
        means, share = (
            np.stack([stack.mean(axis=0) for stack in stacks]),
            np.array([1.0 / len(rows) for rows in stacks]),
        )
        scatter = sum(((stack - mean) ** 2).sum(axis=0) for stack, mean in zip(stacks, means, strict=True))
        freedom = sum(map(len, stacks)) - len(stacks)
        return gaussian_bounds(noise, means, share[:, None] + share, np.asarray(scatter), freedom, delta, True)
    error = delta / (len(stacks) * dim)
    if isinstance(stated, Counts):
        box = np.array([[_rate(stack[:, k], stated.trials, error) for k in range(dim)] for stack in stacks])
    elif isinstance(stated, Bounded):
        lo, hi = (np.broadcast_to(end, dim) for end in (stated.lo, stated.hi))
        box = np.array(
            [[mean_bounds(stack[:, k], lo[k], hi[k], -math.log(error)) for k in range(dim)] for stack in stacks]
        )
    else:
        raise ValueError(f"under {noise.words} no difference is bounded")
    low, high = box[:, :, 0], box[:, :, 1]
    lower = np.maximum(0.0, np.maximum(low[:, None] - high, low - high[:, None]))
    return lower, np.maximum(high[:, None] - low, high - low[:, None])


def gaussian_bounds(
    noise: Model, effects: FloatArray, ratio: FloatArray, squares: FloatArray, freedom: float, delta: float,
    one_way: bool,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Tukey's and Kramer's, with δ/d for each number, if differences vary as in one way; else those of each pair.

    `effects` (M, d): estimates, whose differences have variances `ratio` (M, M) times that of a result; `squares` (d):
    of the residuals.
    """
    n_arms, dim = effects.shape
    if isinstance(noise, Noise):
        variances, freedom = np.diag(noise.covariance), math.inf
    else:
        variances = squares / max(1, freedom)
        if getattr(noise.statement, "shape", "full") == "scalar":
            variances, freedom = np.full(dim, variances.mean()), freedom * dim
        if freedom < 1 or not (variances > 0.0).all():
            raise ValueError("the rows do not vary within items: they bound no difference")
    if one_way:
        largest = RangeLaw(freedom).critical([n_arms], delta / dim)
    else:
        law = stats.norm if math.isinf(freedom) else stats.t(freedom)
        largest = float(law.isf(delta / (dim * n_arms * (n_arms - 1))))
    reach = largest * np.sqrt(ratio)[:, :, None] * np.sqrt(variances)
    apart = np.abs(effects[:, None] - effects)
    return np.maximum(0.0, apart - reach), apart + reach


def _rate(counts: FloatArray, trials: int, error: float) -> tuple[float, float]:
    hits, total = float(counts.sum()), float(counts.size * trials)
    low = 0.0 if hits == 0.0 else float(stats.beta.ppf(error / 2.0, hits, total - hits + 1.0))
    high = 1.0 if hits == total else float(stats.beta.isf(error / 2.0, hits + 1.0, total - hits))
    return low * trials, high * trials


def mean_bounds(values: FloatArray, lo: float, hi: float, level: float) -> tuple[float, float]:
    """All means of results in [lo, hi] against which bets stay below e^level."""
    sums = bet_sums((values - lo) / (hi - lo))
    kept = []
    for interval in range(INTERVALS):
        logs = [min(sums[sign][interval][end][bet] for end in (0, 1)) for sign in (0, 1) for bet in range(len(BETS))]
        if log_mean(logs) < level:
            kept.append(interval)
    if not kept:
        return float(lo), float(hi)
    return float(lo + (hi - lo) * kept[0] / INTERVALS), float(lo + (hi - lo) * (kept[-1] + 1) / INTERVALS)


class Nearness:
    """Which pairs are proven near (within η) and far (beyond ε) for a resolution."""

    def __init__(self, bounds: tuple[FloatArray, FloatArray], asked: Resolution) -> None:
        dim = bounds[0].shape[2]
        eta = asked.eta(dim)
        lower, upper = (bound / eta for bound in bounds)
        epsilon = asked.epsilon(dim) / eta
        if asked.norm == "distance":
            lower, upper = (np.sqrt((bound**2).sum(axis=2)) for bound in (lower, upper))
            self.near, self.far = upper < 1.0 + WIDER, lower > epsilon[0] - WIDER
        else:
            self.near, self.far = (upper < 1.0 + WIDER).all(axis=2), (lower > epsilon - WIDER).any(axis=2)

    def gaps(self, labels: Sequence[int], references: Sequence[int] | None) -> list[str]:
        """What is missing for the claim."""
        groups = [[i for i, label in enumerate(labels) if label == k] for k in range(max(labels) + 1)]
        missing = []
        if references is None:
            for group in groups:
                missing += [
                    f"items {j} and {i} of one group are not shown to be near"
                    for a, i in enumerate(group) for j in group[:a] if not self.near[i, j]
                ]  # fmt: skip
            for k, group in enumerate(groups):
                for other in range(k):
                    if not self.far[np.ix_(group, groups[other])].any():
                        missing.append(f"no items of the groups {other} and {k} are shown to be far apart")
            return missing
        for k, group in enumerate(groups):
            chief = references[k]
            if labels[chief] != k:
                missing.append(f"item {chief} is the reference of group {k}, but is not in it")
            missing += [
                f"item {i} is not shown to be near its reference {chief}"
                for i in group if i != chief and not self.near[i, chief]
            ]  # fmt: skip
            missing += [
                f"the references {other} and {chief} are not shown to be far apart"
                for other in references[:k] if not self.far[chief, other]
            ]  # fmt: skip
        return missing


def linkage_gap(bounds: tuple[FloatArray, FloatArray], labels: Sequence[int]) -> str | None:
    """What is missing for the groups of single linkage."""
    lower, upper = (np.sqrt((bound**2).sum(axis=2)) for bound in bounds)
    groups = np.array(labels)
    across = lower[groups[:, None] != groups].min()
    joined = [{i} for i in range(len(labels))]
    for k in range(max(labels) + 1):
        group = np.flatnonzero(groups == k).tolist()
        sets = [{item} for item in group]
        for i in group:
            for j in group:
                if i < j and upper[i, j] < across * (1.0 + WIDER):
                    bound, other = (next(some for some in sets if item in some) for item in (i, j))
                    if bound is not other:
                        sets.remove(other)
                        bound |= other
        joined = sets
        if len(joined) > 1:
            return f"the items of group {k} are not joined by steps below {across:.6g}, the least between groups"
    return None
