"""The p-values of all pairs of items of a finished table, recomputed from its rows.

The tests are described in `coterie.evidence.exact`; this is another program for the same numbers, one pair at a time.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy import stats
from scipy.special import fdtr, fdtrc, gammaln

from coterie.problem.checks import FloatArray
from coterie.problem.families import AtMost, Bounded, Counts, Exponential, Gaussian, Model, Poisson
from coterie.problem.noise import Noise

FEW, FIRST, MOST, EARLY, TIE = 20_000, 9_999, 199_999, 0.01, 1e-9
RANKED = 100
DEALT, SCORES = 100_000_000, 20_000_000
INTERVALS, BETS = 128, [0.95 / 2**k for k in range(8)]
MOMENT_BETS = [2.0 ** (-1.5 + 0.5 * k) for k in range(7)]

Pair = tuple[int, int]


class TableTests:
    """The rows of a table, item by item and sorted, and the tests of pairs under a noise."""

    def __init__(self, stacks: list[FloatArray], noise: Model, delta: float) -> None:
        self.stacks = [np.array(sorted(map(tuple, (stack + 0.0).tolist()))) for stack in stacks]
        self.n_arms, self.dim = len(stacks), stacks[0].shape[1]
        self.pairs = list(itertools.combinations(range(self.n_arms), 2))
        self._noise, self._delta = noise, delta
        self.seed: int | None = None
        self.draws: int | None = None
        self.t: dict[tuple[int, int], float] | None = None
        self.freedom = 0.0
        self.p: dict[tuple[int, int], float] = dict.fromkeys(self.pairs, 1.0)
        self.name = self._run()

    def _run(self) -> str:
        noise = self._noise
        stated = getattr(noise, "statement", None)
        if isinstance(noise, Noise) or isinstance(stated, Gaussian):
            return self._gaussian()
        if isinstance(stated, Counts):
            return self._counts(stated.trials)
        if isinstance(stated, Poisson | Exponential):
            return self._rates(isinstance(stated, Poisson))
        if isinstance(stated, Bounded):
            return self._bounded(stated)
        self.seed = self._seed()
        if isinstance(stated, AtMost):
            return self._moments()
        if noise.kind == "symmetric":
            return self._signs()
        if self.dim == 1 and 4.0 * len(self.pairs) / self._delta > MOST + 1:
            return self._ranks()
        return self._permutations()

    def _seed(self) -> int:
        content = hashlib.sha256()
        for stack in self.stacks:
            content.update(len(stack).to_bytes(8, "little") + stack.astype("<f8").tobytes())
        return int.from_bytes(content.digest()[:8], "little") // 2**11

    def _words(self, *stream: int, count: int) -> FloatArray:
        drawn = np.random.PCG64(np.random.SeedSequence([self.seed or 0, *stream])).random_raw(count)
        return np.atleast_1d(np.asarray(drawn))

    # Gaussian and known noise.

    def _gaussian(self) -> str:
        known = isinstance(self._noise, Noise)  # from the first row on: far from zero no digit is lost
        stacks = [stack - self.stacks[0][0] for stack in self.stacks] if known else self.stacks
        means = [stack.mean(axis=0) for stack in stacks]
        scatter = sum((stack - mean).T @ (stack - mean) for stack, mean in zip(stacks, means, strict=True))
        freedom = sum(map(len, stacks)) - self.n_arms
        apart = {(i, j): means[i] - means[j] for i, j in self.pairs}
        ratio = {(i, j): 1.0 / len(stacks[i]) + 1.0 / len(stacks[j]) for i, j in self.pairs}
        name, p, self.t, self.freedom = gaussian_p(
            self._noise, apart, ratio, np.asarray(scatter), freedom, np.abs(means).max(axis=0)
        )
        self.p |= p
        return name

    # Counts.

    def _counts(self, trials: int) -> str:
        for i, j in self.pairs:
            each = [self._fisher(i, j, k, trials) for k in range(self.dim)]
            self.p[i, j] = of_smallest(each)
        return "fisher"

    def _fisher(self, i: int, j: int, number: int, trials: int) -> float:
        hits = [round(float(self.stacks[arm][:, number].sum())) for arm in (i, j)]
        totals = [len(self.stacks[arm]) * trials for arm in (i, j)]
        both = sum(hits)
        values = np.arange(max(0, both - totals[1]), min(both, totals[0]) + 1, dtype=np.float64)
        logs = -sum(
            gammaln(some + 1.0) + gammaln(total - some + 1.0)
            for some, total in ((values, totals[0]), (both - values, totals[1]))
        )
        logs = logs - logs.max()
        weights = np.exp(logs)
        return float(min(1.0, weights[logs <= logs[int(hits[0] - values[0])] + 1e-7].sum() / weights.sum()))

    # Rates.

    def _rates(self, events: bool) -> str:
        for i, j in self.pairs:
            n, m = len(self.stacks[i]), len(self.stacks[j])
            each = []
            for k in range(self.dim):
                first, second = (math.fsum(self.stacks[arm][:, k].tolist()) for arm in (i, j))
                if events:
                    law = stats.binom(round(first + second), n / (n + m))
                    tails = float(law.cdf(first)), float(law.sf(first - 1.0))
                else:  # the ratio of two mean times
                    ratio = (first / n) / (second / m)
                    tails = float(fdtr(2 * n, 2 * m, ratio)), float(fdtrc(2 * n, 2 * m, ratio))
                each.append(min(1.0, 2.0 * min(tails)))
            self.p[i, j] = of_smallest(each)
        return "binomial" if events else "beta"

    # Bets of fixed size.

    def _bounded(self, stated: Bounded) -> str:
        lo, hi = (np.broadcast_to(end, self.dim) for end in (stated.lo, stated.hi))
        for number in range(self.dim):
            sums = [bet_sums((stack[:, number] - lo[number]) / (hi[number] - lo[number])) for stack in self.stacks]
            for i, j in self.pairs:
                least = min(
                    log_mean(
                        [
                            min(
                                sums[i][sign][interval][end][bet] + sums[j][1 - sign][interval][end][bet]
                                for end in (0, 1)
                            )
                            for sign in (0, 1)
                            for bet in range(len(BETS))
                        ]
                    )
                    for interval in range(INTERVALS)
                )
                self.p[i, j] = min(self.p[i, j], self.dim * math.exp(-max(0.0, least)))
        return "bets"

    def _moments(self) -> str:
        noise = self._noise
        mixed = [noise.whiten(stack - self.stacks[0][0]) for stack in self._shuffled()]
        for i, j in self.pairs:
            differences, size = _paired(mixed[i], mixed[j])
            self.p[i, j] = moment_p(differences, np.full(len(differences), 1.0 + 1.0 / size), self._delta)
        return "moments"

    def _shuffled(self) -> list[FloatArray]:
        return [
            stack[np.argsort(self._words(2, arm, count=len(stack)), kind="stable")]
            for arm, stack in enumerate(self.stacks)
        ]

    # Rearranging.

    def _number_of_draws(self) -> int:
        wanted = 10_000 * math.ceil(20.0 * len(self.pairs) / self._delta / 10_000) - 1
        return min(MOST, max(FIRST, wanted))

    def _most_rows(self, draws: int) -> int:
        most: int = min(DEALT // draws, SCORES // max(1, 2 * self.dim * len(self.pairs)))
        return max(200, most)

    @staticmethod
    def _means_used(most: int, smaller: int, larger: int) -> tuple[int, int, int]:
        """Of so many rows of two items: how many are in a mean, and the numbers of means that are compared."""
        if smaller + larger <= most:
            return 1, smaller, larger
        b = max(1, min(math.ceil((smaller + larger) / most), smaller // (most // 4)))
        step = most // 64 if b > 1 else 1
        return b, smaller // b // step * step, min(larger // b, most - smaller // b) // step * step

    def _signs(self) -> str:
        mixed, draws, every = self._shuffled(), self._number_of_draws(), True
        most = self._most_rows(draws)
        drawn: dict[int, FloatArray] = {}
        for i, j in self.pairs:
            differences, _ = _paired(mixed[i], mixed[j])
            b, count, _ = self._means_used(most, len(differences), 0)
            differences = _means(differences, b)[:count]
            ranks = np.sign(differences) * stats.rankdata(np.abs(differences), axis=0)
            if count not in drawn:
                if 2**count <= FEW:
                    drawn[count] = np.array(list(itertools.product((1.0, -1.0), repeat=count)))
                else:
                    words = self._words(1, count, count=draws * count).reshape(draws, count)
                    drawn[count] = np.where(words >= np.uint64(2**63), -1.0, 1.0)
            every = every and 2**count <= FEW
            self.p[i, j] = self._p_of(drawn[count], np.ones(count), (differences, ranks), 2**count <= FEW, 1.0)
        self.draws = None if every else draws
        return "signs"

    def _permutations(self) -> str:
        draws, every = self._number_of_draws(), True
        most, mixed = self._most_rows(draws), self._shuffled()
        used = {(i, j): self._means_used(most, *sorted((len(mixed[i]), len(mixed[j])))) for i, j in self.pairs}
        dealt, shape = np.empty(0), (0, 0)
        for i, j in sorted(self.pairs, key=lambda pair: used[pair][1:]):  # the draws of one shape at a time
            b, first, second = used[i, j]
            n, stacks = first + second, mixed if len(mixed[i]) + len(mixed[j]) > most else self.stacks
            smaller, larger = sorted((stacks[i], stacks[j]), key=len)
            rows = np.concatenate([_means(smaller, b)[:first], _means(larger, b)[:second]])
            all_of_them = math.comb(n, first) <= FEW
            if shape != (first, second):
                dealt, shape = self._dealt(first, n, draws, all_of_them), (first, second)
            every = every and all_of_them
            own = (np.arange(n) < first).astype(float)
            ranks = stats.rankdata(rows, axis=0)
            middle = rows - rows.mean(axis=0), ranks - ranks.mean(axis=0)
            self.p[i, j] = self._p_of(dealt, own, middle, all_of_them, (n - 1) / (first * second / n))
        self.draws = None if every else draws
        return "permutations"

    def _dealt(self, first: int, n: int, draws: int, all_of_them: bool) -> np.ndarray:
        if all_of_them:
            return np.array([[float(k in some) for k in range(n)] for some in map(set, _subsets(n, first))])
        stream = np.random.PCG64(np.random.SeedSequence([self.seed or 0, 0, first, n - first]))
        dealt: np.ndarray = np.zeros((draws, n), dtype=np.int8)
        for row in dealt:
            words = np.asarray(stream.random_raw(n))
            row[words <= np.partition(words, first - 1)[first - 1]] = 1
        return dealt

    def _p_of(
        self, arranged: np.ndarray, own: FloatArray, tables: tuple[FloatArray, FloatArray], whole: bool, factor: float
    ) -> float:
        units = [math.sqrt(factor) * _units(table, self.dim) for table in tables]
        return share_at_least(arranged, own, units, whole)

    def _ranks(self) -> str:
        mixed = [stack[:RANKED, 0] for stack in self._shuffled()]
        every = np.concatenate(mixed)
        words = self._words(3, count=len(every))
        order = sorted(range(len(every)), key=lambda k: (every[k], int(words[k])))
        place = np.empty(len(every))
        place[order] = np.arange(len(every))
        ends = np.cumsum([len(stack) for stack in mixed])[:-1]
        ranks = np.split(place, ends)
        for i, j in self.pairs:
            above = int((ranks[i][:, None] > ranks[j]).sum())
            n, m = len(ranks[i]), len(ranks[j])
            law = rank_law(min(n, m), max(n, m))
            self.p[i, j] = float(min(1.0, 2.0 * law[: min(above, n * m - above) + 1].sum()))
        return "ranks"


def gaussian_p(
    noise: Model, apart: dict[Pair, FloatArray], ratio: dict[Pair, float], scatter: FloatArray, freedom: int,
    largest: FloatArray,
) -> tuple[str, dict[Pair, float], dict[Pair, float] | None, float]:  # fmt: skip
    """The name of the test and the p-values of pairs; t and its degrees of freedom, if results are one number.

    `apart`: estimated differences (d), whose variances are `ratio` times that of a result. `scatter` (d, d): of the
    residuals. `largest` (d): of the estimates; what varies by less than their rounding does not vary.
    """
    dim = len(scatter)
    if isinstance(noise, Noise):
        squares = {pair: float((noise.whiten(gap) ** 2).sum()) / ratio[pair] for pair, gap in apart.items()}
        if dim > 1:
            return "chi-square", {pair: float(stats.chi2.sf(x, dim)) for pair, x in squares.items()}, None, math.inf
        t = {pair: math.sqrt(square) for pair, square in squares.items()}
        return "ranges", {pair: float(2.0 * stats.norm.sf(value)) for pair, value in t.items()}, t, math.inf
    covariance = scatter / max(1, freedom)
    own = np.diag(covariance)
    if freedom < 1 or not (own > 1e-24 * largest**2).all():
        return "t", {}, None, 0.0
    if dim == 1:
        t = {pair: float(abs(gap[0]) / math.sqrt(own[0] * ratio[pair])) for pair, gap in apart.items()}
        return "ranges", {pair: float(2.0 * stats.t.sf(value, freedom)) for pair, value in t.items()}, t, float(freedom)
    shape = getattr(getattr(noise, "statement", None), "shape", "full")
    p: dict[Pair, float] = {}
    if shape == "scalar":
        for pair, gap in apart.items():
            f = float((gap**2).sum()) / ratio[pair] / float(own.sum())
            p[pair] = float(stats.f.sf(f, dim, dim * freedom))
        return "f", p, None, freedom
    if shape == "diagonal":
        for pair, gap in apart.items():
            p[pair] = of_smallest((2.0 * stats.t.sf(np.abs(gap) / np.sqrt(own * ratio[pair]), freedom)).tolist())
        return "t", p, None, freedom
    second = freedom - dim + 1
    if second < 1 or np.linalg.matrix_rank(covariance / np.sqrt(np.outer(own, own)), tol=1e-12) < dim:
        return "t", {}, None, freedom
    for pair, gap in apart.items():
        square = float(gap @ np.linalg.solve(covariance, gap)) / ratio[pair]
        p[pair] = float(stats.f.sf(square * second / (freedom * dim), dim, second))
    return "hotelling", p, None, freedom


def moment_p(contrasts: FloatArray, variances: FloatArray, delta: float) -> float:
    """The p-value of contrasts (m, d), in units of the noise, with variances of at most these (m): bets on moments."""
    best = math.sqrt(2.0 * math.log(1.0 / delta) / float(variances.sum()))
    logs: list[float] = []
    for bet in (sign * size * best for sign in (1.0, -1.0) for size in MOMENT_BETS):
        gains = np.log1p(bet * contrasts + 0.5 * (bet * contrasts) ** 2).sum(axis=0)
        logs += (gains - float(np.log1p(0.5 * bet**2 * variances).sum())).tolist()
    return min(1.0, math.exp(-max(0.0, log_mean(logs))))


def share_at_least(arranged: np.ndarray, own: FloatArray, units: list[FloatArray], whole: bool) -> float:
    """The share of arrangements whose larger statistic is at least that of the rows as they are.

    `whole`: these are all arrangements that there are; else the rows as they are count as another one.
    """

    def larger(some: np.ndarray) -> FloatArray:
        parts = np.array_split(some, max(1, some.size // 4_000_000))
        return np.concatenate(
            [np.max([((part.astype(np.float64) @ unit) ** 2).sum(axis=1) for unit in units], axis=0) for part in parts]
        )

    seen = float(larger(own[None])[0])
    least = seen - TIE * (1.0 + seen)
    if whole:
        return float(np.mean(larger(arranged) >= least))
    first = int((larger(arranged[:FIRST]) >= least).sum()) + 1
    if first / (FIRST + 1) >= EARLY or len(arranged) == FIRST:
        return first / (FIRST + 1)
    return (int((larger(arranged[FIRST:]) >= least).sum()) + first) / (len(arranged) + 1)


@cache
def rank_law(first: int, second: int) -> FloatArray:
    """The probabilities of 0, 1, … of all pairs in which the first item is above the second, if they are alike."""
    # A Gaussian binomial coefficient, one factor (1 − q^(m+k))/(1 − q^k) after the other, in whole numbers.
    whole = [1] + [0] * (first * second)
    for k in range(1, first + 1):
        for u in range(first * second, second + k - 1, -1):
            whole[u] -= whole[u - second - k]
        for u in range(k, first * second + 1):
            whole[u] += whole[u - k]
    total = math.comb(first + second, first)
    return np.array([number / total for number in whole])


def bet_sums(values: FloatArray) -> list[list[list[list[float]]]]:
    """By sign, interval of the mean, its end and bet: the logarithm of the money that the bets on results make."""
    sums: list[list[list[list[float]]]] = [[], []]
    for sign in (0, 1):
        for interval in range(INTERVALS):
            low, high = interval / INTERVALS, (interval + 1) / INTERVALS
            largest = 1.0 / high if sign == 0 else -1.0 / (1.0 - low)
            ends = [[float(np.log1p(bet * largest * (values - mean)).sum()) for bet in BETS] for mean in (low, high)]
            sums[sign].append(ends)
    return sums


def log_mean(logs: list[float]) -> float:
    """The logarithm of the mean of numbers, from their logarithms."""
    top = max(logs)
    return top + math.log(sum(math.exp(log - top) for log in logs) / len(logs))


def _paired(first: FloatArray, second: FloatArray) -> tuple[FloatArray, int]:
    if len(first) > len(second):
        turned, size = _paired(second, first)
        return -turned, size
    size = len(second) // len(first)
    means = [second[k * size : (k + 1) * size].mean(axis=0) for k in range(len(first))]
    return first - np.array(means), size


def _means(rows: FloatArray, b: int) -> FloatArray:
    """Means of b rows each; what is left at the end is not used."""
    return rows if b == 1 else np.array([sum(rows[k : k + b]) / b for k in range(0, len(rows) - b + 1, b)])


def _units(table: FloatArray, dim: int) -> FloatArray:
    """The table in units in which its sum of squares is 1, in all directions if there are rows enough."""
    size = np.abs(table).max(axis=0)
    scaled = table / np.where(size > 0.0, size, 1.0)
    if dim == 1 or len(table) < 3 * dim:
        length = np.sqrt((scaled**2).sum(axis=0))
        return np.asarray(scaled / np.where(length > 0.0, length, 1.0))
    left, values, _ = np.linalg.svd(scaled, full_matrices=False)
    return np.asarray(left[:, values > 1e-9 * values.max()]) if values.max() > 0.0 else np.zeros((len(table), 1))


def _subsets(n: int, size: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations(range(n), size)


def of_smallest(p: list[float]) -> float:
    """Of the smallest of independent p-values."""
    least = min(min(p), 1.0 - 1e-16)
    return -math.expm1(len(p) * math.log1p(-least))
