"""A p-value for "these two items are alike", for every pair of items, by what was stated about the noise.

| noise | test | joint |
| --- | --- | --- |
| any | permutations (`rearranging`) | – |
| symmetric | signs of paired differences (`rearranging`) | – |
| Gaussian, one number (`two_way`) | pooled t | ranges |
| Gaussian, d numbers | Hotelling's T² with the pooled covariance; its forms for fewer unknowns | – |
| known | z, or χ² of d numbers | ranges of one number |
| counts | Fisher's conditional test of all trials | – |
| Poisson, exponential | binomial test of the events, beta test of the sums of times, given both items' sum | – |
| bounded, at most a covariance | bets of fixed size (below): p = 1/E | – |

`seed`: of random rearrangements and pairings. It follows from the rows (`seed_of`), so nobody can try several.

Bets of fixed size are for noises of which only means are stated to be equal: p = 1/E for an e-value E.

*Bounded results.* For x in [0, 1] of mean μ and |λ| small enough, 1 + λ(x − μ) is not negative and has mean 1, so a
product over independent results has mean 1, and so has a mixture over fixed λ. For two items of equal mean μ, one
factor for each result of both, with λ of opposite signs, gives E(μ); E is the least of them over μ. Within an interval
of μ the same λ are used, and the logarithm of each product is concave in μ: its least value is at an end, so finitely
many μ give a lower bound for all. (Sizes relative to the largest that is allowed, as in Waudby-Smith and Ramdas, 2024.)

*A covariance of at most Σ.* In units of Σ a difference D of a result and a mean of b others has variance at most
v = 1 + 1/b in every number, and (1 + λD + λ²D²/2)/(1 + λ²v/2) is positive and has mean at most 1 (Catoni, 2012).
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from itertools import combinations, pairwise

import numpy as np
from scipy.special import betainc, gammaln, logsumexp

from coterie.evidence.exact.fits import PairTests
from coterie.evidence.exact.rearranging import (
    dealt,
    draws_for,
    fewer_rows,
    most_rows,
    rank_sum_p,
    rearranged_p,
    sign_scores,
    signed,
    too_many,
    two_sample_scores,
)
from coterie.evidence.exact.two_way import TwoWay, two_way_tests
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Bounded, Counts, Exponential, Gaussian, Model, Poisson
from coterie.problem.noise import Noise

EDGES = np.linspace(0.0, 1.0, 129)
"""Ends of the intervals of μ."""
BETS = 0.95 * 2.0 ** -np.arange(8.0)
"""Sizes of bets, relative to the largest that is allowed."""
MOMENT_BETS = 2.0 ** np.arange(-1.5, 2.0, 0.5)
"""Sizes of bets on differences, relative to the best one for a difference that is just seen."""

MOST_RANKED = 100
"""Rows of an item, drawn at random, where the laws of rank sums are computed."""


def log_products(values: FloatArray) -> FloatArray:
    """(2, intervals, 2, bets): Σ log(1 ± λ(x − μ)) over results x in [0, 1], for each sign of the bet, each interval of
    μ, both of its ends, and each bet.
    """
    low, high = EDGES[:-1], EDGES[1:]
    ends = np.stack([low, high], axis=1)
    sizes = np.stack([1.0 / high, 1.0 / (1.0 - low)])[:, :, None] * BETS  # of a bet on more, and on less
    signs = np.array([1.0, -1.0])
    moved = values[:, None, None] - ends
    products = np.zeros((2, low.size, 2, BETS.size))
    for sign in range(2):
        for bet in range(BETS.size):
            products[sign, :, :, bet] = np.log1p(signs[sign] * sizes[sign, :, None, bet] * moved).sum(axis=0)
    return products


def bounded_p(stacks: list[FloatArray]) -> FloatArray:
    """(M, M) p-values for equal means of results in [0, 1]."""
    n_arms, dim = len(stacks), stacks[0].shape[1]
    p = np.ones((n_arms, n_arms))
    for number in range(dim):
        sums = [log_products(rows[:, number]) for rows in stacks]
        for i in range(n_arms):
            for j in range(i + 1, n_arms):
                both = np.stack([sums[i][0] + sums[j][1], sums[i][1] + sums[j][0]], axis=-1).min(axis=1)
                least = float(logsumexp(both.reshape(len(both), -1), axis=1).min()) - math.log(2 * BETS.size)
                p[i, j] = p[j, i] = min(p[i, j], dim * math.exp(-max(0.0, least)))
    np.fill_diagonal(p, 1.0)
    return np.minimum(p, 1.0)


def bounded_interval(values: FloatArray, log_level: float) -> tuple[float, float]:
    """Bounds of the mean of results in [0, 1]: all μ against which the evidence stays below e^log_level."""
    mixed = log_products(values).min(axis=2)  # the ends
    evidence = logsumexp(np.concatenate([mixed[0], mixed[1]], axis=1), axis=1) - math.log(2 * BETS.size)
    kept = np.flatnonzero(evidence < log_level)
    if not kept.size:  # no interval fits: floats, or results outside; nothing is claimed
        return 0.0, 1.0
    return float(EDGES[kept[0]]), float(EDGES[kept[-1] + 1])


def moment_p(contrasts: FloatArray, variances: FloatArray, delta: float) -> float:
    """The p-value that contrasts (m, d), in units of the noise, with variances of at most `variances` (m) have mean 0:
    (1 + λC + λ²C²/2)/(1 + λ²v/2) has mean at most 1."""
    if not len(variances):
        return 1.0
    best = math.sqrt(2.0 * math.log(1.0 / delta) / float(variances.sum()))
    bets = best * np.concatenate([MOMENT_BETS, -MOMENT_BETS])
    moved = contrasts[:, :, None] * bets
    logs = np.log1p(moved + 0.5 * moved**2).sum(axis=0) - np.log1p(0.5 * bets**2 * variances[:, None]).sum(axis=0)
    return math.exp(-max(0.0, float(logsumexp(logs)) - math.log(bets.size * contrasts.shape[1])))


def sorted_stacks(arms: IntArray, rows: FloatArray, n_arms: int) -> list[FloatArray]:
    """The rows of each item, sorted by their numbers: nothing depends on how the file was sorted."""
    stacks = [rows[arms == arm] + 0.0 for arm in range(n_arms)]  # −0 becomes 0
    return [stack[np.lexsort(stack.T[::-1])] for stack in stacks]


def seed_of(stacks: list[FloatArray]) -> int:
    """A seed from the rows themselves: the first 53 bits of SHA-256 of all numbers, item by item."""
    content = hashlib.sha256()
    for stack in stacks:
        content.update(len(stack).to_bytes(8, "little"))
        content.update(np.ascontiguousarray(stack, dtype="<f8").tobytes())
    return int.from_bytes(content.digest()[:8], "little") >> 11


def test_pairs(arms: IntArray, rows: FloatArray, n_arms: int, noise: Model, delta: float) -> PairTests:
    """The tests of all pairs of items, each with at least one row (n, d)."""
    stacks = sorted_stacks(arms, rows, n_arms)
    seed = seed_of(stacks)
    means = np.stack([stack.mean(axis=0) for stack in stacks])
    order = in_a_row(means, rows)
    if isinstance(noise, Noise):  # from the first row on, so that no digit is lost far from zero
        return two_way_tests(one_way([stack - stacks[0][0] for stack in stacks]), noise, order)
    stated = noise.statement
    if isinstance(stated, Gaussian):
        return two_way_tests(one_way(stacks), noise, order)
    if isinstance(stated, Counts):
        return PairTests(_fisher(stacks, stated.trials), "fisher", order)
    if isinstance(stated, Poisson | Exponential):
        events = isinstance(stated, Poisson)
        return PairTests(_rates(stacks, events), "binomial" if events else "beta", order)
    if isinstance(stated, Bounded):
        low, high = (np.array(np.broadcast_to(end, rows.shape[1])) for end in (stated.lo, stated.hi))
        return PairTests(bounded_p([(stack - low) / (high - low) for stack in stacks]), "bets", order)
    if noise.kind == "at-most":
        white = [noise.whiten(stack - rows[0]) for stack in shuffled(stacks, seed)]
        p_values = {}
        for i, j in pairs_of(n_arms):
            differences, size = paired(white[i], white[j])
            p_values[i, j] = moment_p(differences, np.full(len(differences), 1.0 + 1.0 / size), delta)
        return PairTests(matrix_of(p_values, n_arms), "moments", order, seed=seed)
    return _rearranging(stacks, noise.kind, order, seed, delta)


def in_a_row(means: FloatArray, rows: FloatArray) -> IntArray:
    """The items along the direction in which their means differ most."""
    scale = rows.std(axis=0)
    z = (means - means.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    along = z[:, 0] if z.shape[1] == 1 else z @ np.linalg.svd(z, full_matrices=False)[2][0]
    return np.argsort(along, kind="stable")


def pairs_of(n_arms: int) -> list[tuple[int, int]]:
    """All pairs of items."""
    return list(combinations(range(n_arms), 2))


def matrix_of(p_values: dict[tuple[int, int], float], n_arms: int) -> FloatArray:
    """(M, M), symmetric, 1 on the diagonal and where there is no p-value."""
    p = np.ones((n_arms, n_arms))
    for (i, j), value in p_values.items():
        p[i, j] = p[j, i] = min(1.0, value)
    return p


# Rearranging.


def shuffled(stacks: list[FloatArray], seed: int) -> list[FloatArray]:
    """The rows of each item in an order drawn by the seed."""
    mixed = []
    for arm, stack in enumerate(stacks):
        words = np.random.PCG64(np.random.SeedSequence([seed, 2, arm])).random_raw(len(stack))
        mixed.append(stack[np.argsort(np.atleast_1d(words), kind="stable")])
    return mixed


def paired(first: FloatArray, second: FloatArray) -> tuple[FloatArray, int]:
    """(m, d): differences of m results of the item with fewer, each minus the mean of b results of the other; and b."""
    flip = 1.0
    if len(first) > len(second):
        first, second, flip = second, first, -1.0
    count, size = len(first), len(second) // len(first)
    others = second[: count * size].reshape(count, size, -1).mean(axis=1)
    return flip * (first - others), size


def _rearranging(stacks: list[FloatArray], kind: str, order: IntArray, seed: int, delta: float) -> PairTests:
    n_arms = len(stacks)
    if kind == "any" and stacks[0].shape[1] == 1 and too_many(n_arms * (n_arms - 1) // 2, delta):
        return _rank_sums(stacks, order, seed)
    draws = draws_for(n_arms * (n_arms - 1) // 2, delta)
    by_shape: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    scores: dict[tuple[int, int], FloatArray] = {}
    most = most_rows(n_arms * (n_arms - 1) // 2, stacks[0].shape[1], draws)
    many = sum(sorted(map(len, stacks))[-2:]) > most
    mixed = shuffled(stacks, seed) if kind == "symmetric" or many else stacks
    for i, j in pairs_of(n_arms):
        if kind == "symmetric":
            differences, _ = paired(mixed[i], mixed[j])
            if len(differences) > most:
                differences, _ = fewer_rows(differences, differences[:0], most)
            shape: tuple[int, ...] = (len(differences),)
            scores[i, j] = sign_scores(differences)
        else:
            first, second = sorted((i, j), key=lambda arm: (len(stacks[arm]), arm))
            both = stacks[first], stacks[second]
            if sum(map(len, both)) > most:
                both = fewer_rows(mixed[first], mixed[second], most)
            shape = (len(both[0]), len(both[1]))
            scores[i, j] = two_sample_scores(np.concatenate(both), shape[0])
        by_shape[shape].append((i, j))
    p_values: dict[tuple[int, int], float] = {}
    every = True
    for shape, keys in by_shape.items():
        if kind == "symmetric":
            observed, (arrangements, whole) = np.ones(shape[0]), signed(shape[0], draws, seed)
        else:
            observed, (arrangements, whole) = np.repeat([1.0, 0.0], shape), dealt(shape[0], shape[1], draws, seed)
        p = rearranged_p([scores[key] for key in keys], observed, arrangements, whole)
        every = every and whole
        p_values |= dict(zip(keys, p.tolist(), strict=True))
        del arrangements  # 100 MB, before there are others
    test = "signs" if kind == "symmetric" else "permutations"
    return PairTests(matrix_of(p_values, n_arms), test, order, seed=seed, draws=None if every else draws)


def _rank_sums(stacks: list[FloatArray], order: IntArray, seed: int) -> PairTests:
    """Of very many items: exact by ranks, equal results in an order drawn by the seed."""
    mixed = [stack[:MOST_RANKED, 0] for stack in shuffled(stacks, seed)]
    sizes = np.cumsum([0, *map(len, mixed)])
    every = np.concatenate(mixed)
    words = np.random.PCG64(np.random.SeedSequence([seed, 3])).random_raw(len(every))
    places = np.empty(len(every))
    places[np.lexsort((np.atleast_1d(words), every))] = np.arange(len(every))
    ranks = [places[low:high] for low, high in pairwise(sizes)]
    p_values = {(i, j): rank_sum_p(*sorted((ranks[i], ranks[j]), key=len)) for i, j in pairs_of(len(stacks))}
    return PairTests(matrix_of(p_values, len(stacks)), "ranks", order, seed=seed)


# Gaussian, known: `two_way`.


def pooled(stacks: list[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """The means (M, d), the numbers of rows (M), the pooled covariance (d, d), and its degrees of freedom."""
    means = np.stack([stack.mean(axis=0) for stack in stacks])
    counts = np.array([len(stack) for stack in stacks], dtype=np.float64)
    rest = np.concatenate([stack - mean for stack, mean in zip(stacks, means, strict=True)])
    freedom = len(rest) - len(stacks)
    return means, counts, rest.T @ rest / max(1, freedom), freedom


def one_way(stacks: list[FloatArray]) -> TwoWay:
    """Items that are in no blocks: the mean of each by itself, as a fit of items and blocks has it."""
    means, counts, covariance, freedom = pooled(stacks)
    variances = 1.0 / counts[:, None] + 1.0 / counts
    np.fill_diagonal(variances, 0.0)
    return TwoWay(means, means, variances, covariance * max(1, freedom), freedom)


def _smallest(p: FloatArray) -> FloatArray:
    """Of independent p-values (…, d): that of the smallest, 1 − (1 − p)^d."""
    return np.asarray(-np.expm1(p.shape[-1] * np.log1p(-np.minimum(p.min(axis=-1), 1.0 - 1e-16))))


# Counts.


def _fisher(stacks: list[FloatArray], trials: int) -> FloatArray:
    """Fisher's exact test: given the successes of both items, those of one are hypergeometric; numbers apart."""
    hits = np.stack([stack.sum(axis=0) for stack in stacks]).astype(np.int64)
    totals = np.array([len(stack) * trials for stack in stacks], dtype=np.int64)
    dim, n_arms = hits.shape[1], len(stacks)
    p_values = {}
    for i, j in pairs_of(n_arms):
        p = np.array([_hypergeometric_p(hits[i, k], totals[i], hits[j, k], totals[j]) for k in range(dim)])
        p_values[i, j] = float(_smallest(p))
    return matrix_of(p_values, n_arms)


def _rates(stacks: list[FloatArray], events: bool) -> FloatArray:
    """Given the events of both items, those of one are binomial; of two sums of times, the share of one is beta."""
    p_values = {}
    for i, j in pairs_of(len(stacks)):
        n, m = len(stacks[i]), len(stacks[j])
        first, second = stacks[i].sum(axis=0), stacks[j].sum(axis=0)
        if events:  # P(at most so many) and P(at least so many), by the incomplete beta function
            share = n / (n + m)
            below = np.where(second > 0, betainc(np.maximum(second, 1.0), first + 1.0, 1.0 - share), 1.0)
            above = np.where(first > 0, betainc(np.maximum(first, 1.0), second + 1.0, share), 1.0)
        else:
            below = betainc(float(n), float(m), first / (first + second))
            above = betainc(float(m), float(n), second / (first + second))
        p_values[i, j] = float(_smallest(np.minimum(1.0, 2.0 * np.minimum(below, above))))
    return matrix_of(p_values, len(stacks))


def _hypergeometric_p(first: int, of_first: int, second: int, of_second: int) -> float:
    """The probability of all outcomes that are no more likely than this one."""
    hits = int(first + second)
    values = np.arange(max(0, hits - int(of_second)), min(hits, int(of_first)) + 1)
    logs = log_choose(float(of_first), values) + log_choose(float(of_second), hits - values)
    logs -= log_choose(float(of_first + of_second), np.array(hits))
    seen = logs[int(first) - int(values[0])]
    return float(min(1.0, np.exp(logs[logs <= seen + 1e-7]).sum()))


def log_choose(n: float, k: np.ndarray) -> FloatArray:
    """The log of the number of ways to choose k of n."""
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
