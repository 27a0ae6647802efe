"""A p-value for "these two items are alike", for every pair of items, by what was stated about the noise.

| noise | test | joint |
| --- | --- | --- |
| any | permutations (`rearranging`) | – |
| symmetric | signs of paired differences (`rearranging`) | – |
| Gaussian, one number | pooled t | ranges |
| Gaussian, d numbers | Hotelling's T² with the pooled covariance; its forms for fewer unknowns | – |
| known | z, or χ² of d numbers | ranges of one number |
| counts | Fisher's conditional test of all trials | – |
| bounded, at most a covariance | bets of fixed size (`betting`): p = 1/E | – |

`seed`: of random rearrangements and pairings. It follows from the rows (`seed_of`), so nobody can try several.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from itertools import pairwise

import numpy as np
from scipy.special import chdtrc, fdtrc, gammaln

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Bounded, Counts, Gaussian, Model
from coterie.problem.noise import Noise
from coterie.theory.exact.betting import bounded_p, moment_p
from coterie.theory.exact.fits import PairTests
from coterie.theory.exact.ranges import two_sided
from coterie.theory.exact.rearranging import (
    dealt,
    draws_for,
    rank_sum_p,
    rearranged_p,
    sign_scores,
    signed,
    too_many,
    two_sample_scores,
)

MOST_RANKED = 100
"""Rows of an item, drawn at random, where the laws of rank sums are computed."""


def sorted_stacks(arms: IntArray, rows: FloatArray, n_arms: int) -> list[FloatArray]:
    """The rows of each item, sorted by their numbers: nothing depends on how the file was sorted."""
    its = [rows[arms == arm] + 0.0 for arm in range(n_arms)]  # −0 becomes 0
    return [one[np.lexsort(one.T[::-1])] for one in its]


def seed_of(stacks: list[FloatArray]) -> int:
    """A seed from the rows themselves: the first 53 bits of SHA-256 of all numbers, item by item."""
    content = hashlib.sha256()
    for one in stacks:
        content.update(len(one).to_bytes(8, "little"))
        content.update(np.ascontiguousarray(one, dtype="<f8").tobytes())
    return int.from_bytes(content.digest()[:8], "little") >> 11


def test_pairs(arms: IntArray, rows: FloatArray, n_arms: int, noise: Model, delta: float) -> PairTests:
    """The tests of all pairs of items, each with at least one row (n, d)."""
    stacks = sorted_stacks(arms, rows, n_arms)
    seed = seed_of(stacks)
    means = np.stack([one.mean(axis=0) for one in stacks])
    order = _in_a_row(means, rows)
    if isinstance(noise, Noise):
        return _known(stacks, noise, order)
    stated = noise.statement
    if isinstance(stated, Gaussian):
        return _gaussian(stacks, stated.shape, order)
    if isinstance(stated, Counts):
        return PairTests(_fisher(stacks, stated.trials), "fisher", order)
    if isinstance(stated, Bounded):
        low, high = (np.array(np.broadcast_to(end, rows.shape[1])) for end in (stated.lo, stated.hi))
        return PairTests(bounded_p([(one - low) / (high - low) for one in stacks]), "bets", order)
    if noise.kind == "at-most":
        white = [noise.whiten(one - rows[0]) for one in shuffled(stacks, seed)]
        pairs = {key: paired(white[key[0]], white[key[1]]) for key in _pairs(n_arms)}
        found = {key: moment_p(differences, size, delta) for key, (differences, size) in pairs.items()}
        return PairTests(_matrix(found, n_arms), "moments", order, seed=seed)
    return _rearranging(stacks, noise.kind, order, seed, delta)


def _in_a_row(means: FloatArray, rows: FloatArray) -> IntArray:
    """The items along the direction in which their means differ most."""
    scale = rows.std(axis=0)
    z = (means - means.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    along = z[:, 0] if z.shape[1] == 1 else z @ np.linalg.svd(z, full_matrices=False)[2][0]
    return np.argsort(along, kind="stable")


def _pairs(n_arms: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n_arms) for j in range(i + 1, n_arms)]


def _matrix(found: dict[tuple[int, int], float], n_arms: int) -> FloatArray:
    p = np.ones((n_arms, n_arms))
    for (i, j), value in found.items():
        p[i, j] = p[j, i] = min(1.0, value)
    return p


# Rearranging.


def shuffled(stacks: list[FloatArray], seed: int) -> list[FloatArray]:
    """The rows of each item in an order drawn by the seed."""
    found = []
    for arm, one in enumerate(stacks):
        words = np.random.PCG64(np.random.SeedSequence([seed, 2, arm])).random_raw(len(one))
        found.append(one[np.argsort(np.atleast_1d(words), kind="stable")])
    return found


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
    mixed = shuffled(stacks, seed) if kind == "symmetric" else stacks
    for i, j in _pairs(n_arms):
        if kind == "symmetric":
            differences, _ = paired(mixed[i], mixed[j])
            shape: tuple[int, ...] = (len(differences),)
            scores[i, j] = sign_scores(differences)
        else:
            first, second = sorted((i, j), key=lambda arm: (len(stacks[arm]), arm))
            shape = (len(stacks[first]), len(stacks[second]))
            scores[i, j] = two_sample_scores(np.concatenate([stacks[first], stacks[second]]), shape[0])
        by_shape[shape].append((i, j))
    found: dict[tuple[int, int], float] = {}
    every = True
    for shape, keys in by_shape.items():
        if kind == "symmetric":
            observed, (arrangements, whole) = np.ones(shape[0]), signed(shape[0], draws, seed)
        else:
            observed, (arrangements, whole) = np.repeat([1.0, 0.0], shape), dealt(shape[0], shape[1], draws, seed)
        p = rearranged_p([scores[key] for key in keys], observed, arrangements, whole)
        every = every and whole
        found |= dict(zip(keys, p.tolist(), strict=True))
    test = "signs" if kind == "symmetric" else "permutations"
    return PairTests(_matrix(found, n_arms), test, order, seed=seed, draws=None if every else draws)


def _rank_sums(stacks: list[FloatArray], order: IntArray, seed: int) -> PairTests:
    """Of very many items: exact by ranks, equal results in an order drawn by the seed."""
    mixed = [one[:MOST_RANKED, 0] for one in shuffled(stacks, seed)]
    sizes = np.cumsum([0, *map(len, mixed)])
    every = np.concatenate(mixed)
    words = np.random.PCG64(np.random.SeedSequence([seed, 3])).random_raw(len(every))
    places = np.empty(len(every))
    places[np.lexsort((np.atleast_1d(words), every))] = np.arange(len(every))
    ranks = [places[low:high] for low, high in pairwise(sizes)]
    found = {(i, j): rank_sum_p(*sorted((ranks[i], ranks[j]), key=len)) for i, j in _pairs(len(stacks))}
    return PairTests(_matrix(found, len(stacks)), "ranks", order, seed=seed)


# Gaussian, known.


def pooled(stacks: list[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """The means (M, d), the numbers of rows (M), the pooled covariance (d, d), and its degrees of freedom."""
    means = np.stack([one.mean(axis=0) for one in stacks])
    counts = np.array([len(one) for one in stacks], dtype=np.float64)
    rest = np.concatenate([one - mean for one, mean in zip(stacks, means, strict=True)])
    freedom = len(rest) - len(stacks)
    return means, counts, rest.T @ rest / max(1, freedom), freedom


def _gaussian(stacks: list[FloatArray], shape: str, order: IntArray) -> PairTests:
    means, counts, covariance, freedom = pooled(stacks)
    dim, n_arms = means.shape[1], len(stacks)
    nothing = PairTests(np.ones((n_arms, n_arms)), "t", order)
    variances = np.diag(covariance)
    if freedom < 1 or not (variances > 1e-24 * np.abs(means).max(axis=0) ** 2).all():
        return nothing  # results that do not vary are no Gaussian noise
    apart = means[:, None] - means
    share = 1.0 / counts[:, None] + 1.0 / counts
    if dim == 1:
        t = np.abs(apart[:, :, 0]) / np.sqrt(variances[0] * share)
        return PairTests(_no_diagonal(two_sided(t, freedom)), "ranges", order, t, float(freedom))
    if shape == "scalar":
        f = (apart**2).sum(axis=2) / share / (dim * variances.mean())
        return PairTests(_no_diagonal(fdtrc(dim, dim * freedom, f)), "f", order)
    if shape == "diagonal":
        t = np.abs(apart) / np.sqrt(variances * share[:, :, None])
        return PairTests(_no_diagonal(_smallest(two_sided(t, freedom))), "t", order)
    second = freedom - dim + 1
    if second < 1 or np.linalg.matrix_rank(covariance / np.sqrt(np.outer(variances, variances)), tol=1e-12) < dim:
        return nothing
    squares = np.einsum("ijk,kl,ijl->ij", apart, np.linalg.inv(covariance), apart) / share
    return PairTests(_no_diagonal(fdtrc(dim, second, squares * second / (freedom * dim))), "hotelling", order)


def _known(stacks: list[FloatArray], noise: Noise, order: IntArray) -> PairTests:
    means, counts, _, _ = pooled([noise.whiten(one - stacks[0][0]) for one in stacks])
    squares = ((means[:, None] - means) ** 2).sum(axis=2) / (1.0 / counts[:, None] + 1.0 / counts)
    if means.shape[1] > 1:
        return PairTests(_no_diagonal(chdtrc(means.shape[1], squares)), "chi-square", order)
    z = np.sqrt(squares)
    return PairTests(_no_diagonal(two_sided(z, math.inf)), "ranges", order, z, math.inf)


def _no_diagonal(p: FloatArray) -> FloatArray:
    found = np.minimum(1.0, np.array(p, dtype=np.float64))
    np.fill_diagonal(found, 1.0)
    return found


def _smallest(p: FloatArray) -> FloatArray:
    """Of independent p-values (…, d): that of the smallest, 1 − (1 − p)^d."""
    return np.asarray(-np.expm1(p.shape[-1] * np.log1p(-np.minimum(p.min(axis=-1), 1.0 - 1e-16))))


# Counts.


def _fisher(stacks: list[FloatArray], trials: int) -> FloatArray:
    """Fisher's exact test: given the successes of both items, those of one are hypergeometric; numbers apart."""
    hits = np.stack([one.sum(axis=0) for one in stacks]).astype(np.int64)
    totals = np.array([len(one) * trials for one in stacks], dtype=np.int64)
    dim, n_arms = hits.shape[1], len(stacks)
    found = {}
    for i, j in _pairs(n_arms):
        p = np.array([_hypergeometric_p(hits[i, k], totals[i], hits[j, k], totals[j]) for k in range(dim)])
        found[i, j] = float(_smallest(p))
    return _matrix(found, n_arms)


def _hypergeometric_p(first: int, of_first: int, second: int, of_second: int) -> float:
    """The probability of all outcomes that are no more likely than this one."""
    hits = int(first + second)
    values = np.arange(max(0, hits - int(of_second)), min(hits, int(of_first)) + 1)
    logs = _log_choose(float(of_first), values) + _log_choose(float(of_second), hits - values)
    logs -= _log_choose(float(of_first + of_second), np.array(hits))
    seen = logs[int(first) - int(values[0])]
    return float(min(1.0, np.exp(logs[logs <= seen + 1e-7]).sum()))


def _log_choose(n: float, k: np.ndarray) -> FloatArray:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
