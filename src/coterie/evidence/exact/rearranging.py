"""P-values by rearranging results: permutations of two items' results, or signs of paired differences.

If two items have the same distribution, every way of dealing their results to the two is equally likely. If the noise
of both is symmetric about one mean, then so is that of paired differences about 0, and every choice of their signs is.
The statistic is the larger of two: one of the values, and one of their ranks, each standardised by what does not change
when results are rearranged; for d numbers a result each is a squared length in units of the covariance. All
rearrangements are tried where they are few. Else they are drawn by a recorded seed, and b of B at least as extreme give
(b + 1)/(B + 1), which is valid for any B (Phipson and Smyth, 2010). Pairs with the same numbers of rows share the
draws: each p-value holds by itself, and more is not needed.

Of very many rows, means of b rows each are rearranged, in an order drawn by the seed: if two items have the same
distribution, so have these (`fewer_rows`).

Of very many items drawing would not reach δ over the number of pairs. There, for one number a result, ranks alone
decide, ties broken at random: their law is known exactly (`rank_sum_p`).

Drawing ends early for pairs that are alike anyway: those with p ≥ 1 % after the first B₁ draws keep that p-value. This
is valid too: below 1 % the p-value is that of all draws, above it is at least that of the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from coterie.problem.checks import FloatArray

MOST_TRIED = 20_000
"""Rearrangements up to which all are tried."""
FIRST_DRAWS = 9_999
MOST_DRAWS = 199_999
EARLY = 0.01
"""P-values from which on the first draws are enough."""
TIE = 1e-9
"""Statistics that differ by less, relative to them, are equal."""
_PART = 2_000_000  # numbers of a block of the computation
_MOST_DEALT = 100_000_000  # results in all arrangements
_MOST_SCORES = 20_000_000  # numbers, of all pairs


def draws_for(n_pairs: int, delta: float) -> int:
    """So many draws that a p-value can be 20 times smaller than δ over all pairs, as far as time allows."""
    return int(min(MOST_DRAWS, max(FIRST_DRAWS, 10_000 * math.ceil(20.0 * n_pairs / delta / 10_000) - 1)))


def most_rows(n_pairs: int, dim: int, draws: int) -> int:
    """Rows of two items up to which all of them are rearranged; of more, means (`fewer_rows`)."""
    return max(200, min(_MOST_DEALT // draws, _MOST_SCORES // max(1, 2 * dim * n_pairs)))


def fewer_rows(smaller: FloatArray, larger: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """At most about so many rows of two items with more, whose rows are in an order drawn by a seed: means of b rows
    each. Of equal distributions the means are equally distributed too. Of an item with few rows these are not averaged;
    then the other's are cut. The numbers of means are rounded down, so that many pairs share them, and the draws.
    """
    b = max(1, min(-(-(len(smaller) + len(larger)) // most), len(smaller) // (most // 4)))
    first, second = means_of(smaller, b), means_of(larger, b)
    second = second[: most - len(first)]
    step = most // 64 if b > 1 else 1
    return first[: len(first) // step * step], second[: len(second) // step * step]


def means_of(rows: FloatArray, b: int) -> FloatArray:
    """(n // b, d): means of b rows each, the last rows left out if they are fewer."""
    end = len(rows) // b * b
    return np.asarray(sum(rows[k:end:b] for k in range(b)) / b)  # one after the other: the verifier has the same bits


def random_words(seed: int, kind: int, shape: tuple[int, ...], size: tuple[int, int]) -> Iterator[np.ndarray]:
    """Rows of random 64-bit words of a stream of its own, a part of them at a time; NumPy keeps the streams of PCG64
    and SeedSequence from release to release.
    """
    stream = np.random.PCG64(np.random.SeedSequence([seed, kind, *shape]))
    count, length = size
    at_once = max(1, _PART // length)
    for start in range(0, count, at_once):
        some = min(at_once, count - start)
        yield np.asarray(stream.random_raw(some * length)).reshape(some, length)


def dealt(first: int, second: int, draws: int, seed: int) -> tuple[np.ndarray, bool]:
    """(B, n) of 0 and 1: which of n results go to the first item; and whether these are all there are. In bytes."""
    n = first + second
    if math.comb(n, first) <= MOST_TRIED:
        chosen = np.array(list(combinations(range(n), first)))
        arrangements = np.zeros((len(chosen), n), dtype=np.int8)
        np.put_along_axis(arrangements, chosen, 1, axis=1)
        return arrangements, True
    arrangements, start = np.empty((draws, n), dtype=np.int8), 0
    for keys in random_words(seed, 0, (first, second), (draws, n)):
        last = np.partition(keys, first - 1, axis=1)[:, first - 1 : first]
        arrangements[start : start + len(keys)] = keys <= last
        start += len(keys)
    return arrangements, False


def signed(count: int, draws: int, seed: int) -> tuple[np.ndarray, bool]:
    """(B, m) of −1 and 1: signs of m differences; and whether these are all there are. In bytes."""
    if 2**count <= MOST_TRIED:
        bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
        return (1 - 2 * bits).astype(np.int8), True
    arrangements, start = np.empty((draws, count), dtype=np.int8), 0
    for words in random_words(seed, 1, (count,), (draws, count)):
        arrangements[start : start + len(words)] = np.where(words >> np.uint64(63), -1, 1)
        start += len(words)
    return arrangements, False


def two_sample_scores(rows: FloatArray, first: int) -> FloatArray:
    """(n, 2d): values and ranks of two items' results, so that squared lengths of their sums over the results dealt to
    the first item, d columns at a time, are the two statistics.
    """
    n, dim = rows.shape
    both = [rows, rankdata(rows, axis=0)]
    factor = math.sqrt((n - 1) / (first * (n - first) / n))  # of sums of `first` out of n, without replacement
    return np.concatenate([_standardised(table - table.mean(axis=0), dim) for table in both], axis=1) * factor


def sign_scores(differences: FloatArray) -> FloatArray:
    """(m, 2d): paired differences and their signed ranks, standardised by what their signs do not change."""
    dim = differences.shape[1]
    ranks = np.sign(differences) * rankdata(np.abs(differences), axis=0)
    return np.concatenate([_standardised(table, dim) for table in (differences, ranks)], axis=1)


def _standardised(table: FloatArray, dim: int) -> FloatArray:
    """In units in which the sum of squares is 1: in all directions, or where rows are few in each column by itself."""
    size = np.abs(table).max(axis=0)
    scaled = table / np.where(size > 0.0, size, 1.0)
    if dim == 1 or len(table) < 3 * dim:
        length = np.sqrt((scaled**2).sum(axis=0))
        return np.asarray(scaled / np.where(length > 0.0, length, 1.0))
    left, values, _ = np.linalg.svd(scaled, full_matrices=False)
    return np.asarray(left * (values > 1e-9 * values[0])) if values[0] > 0.0 else np.zeros_like(scaled)


def rearranged_p(scores: list[FloatArray], observed: FloatArray, arrangements: np.ndarray, whole: bool) -> FloatArray:
    """The p-values of pairs with scores (n, 2d) each, all of one shape, whose own arrangement is `observed` (n).

    `whole`: these arrangements are all there are.
    """
    width = scores[0].shape[1]
    seen = np.array([_statistic((observed @ score)[None], width)[0, 0] for score in scores])
    at_least = seen - TIE * (1.0 + np.abs(seen))
    if whole:
        return _exceeding(arrangements, scores, at_least) / len(arrangements)
    first = _exceeding(arrangements[:FIRST_DRAWS], scores, at_least)
    p = (first + 1.0) / (FIRST_DRAWS + 1.0)
    some = np.flatnonzero(p < EARLY)
    if some.size and len(arrangements) > FIRST_DRAWS:
        more = _exceeding(arrangements[FIRST_DRAWS:], [scores[i] for i in some], at_least[some])
        p[some] = (first[some] + more + 1.0) / (len(arrangements) + 1.0)
    return p


def _exceeding(arrangements: np.ndarray, scores: list[FloatArray], at_least: FloatArray) -> FloatArray:
    """How many arrangements have a statistic of at least so much, for each of the scores."""
    width = scores[0].shape[1]
    counts = np.zeros(len(scores))
    together = max(1, min(len(scores), 256 // width + 1))
    block = max(1, _PART // max(together * width, arrangements.shape[1]))
    for start in range(0, len(scores), together):
        table = np.concatenate(scores[start : start + together], axis=1)
        wanted = at_least[start : start + together]
        for top in range(0, len(arrangements), block):
            statistics = _statistic(arrangements[top : top + block].astype(np.float64) @ table, width)
            counts[start : start + together] += (statistics >= wanted).sum(axis=0)
    return counts


def _statistic(sums: FloatArray, width: int) -> FloatArray:
    """(B, pairs): the larger of the squared lengths by values and by ranks."""
    parts = (sums**2).reshape(len(sums), -1, 2, width // 2).sum(axis=3)
    return np.asarray(parts.max(axis=2))


def too_many(n_pairs: int, delta: float) -> bool:
    """Whether so many pairs are compared that p-values of draws could not reach δ over them."""
    return 4.0 * n_pairs / delta > MOST_DRAWS + 1


def rank_sum_p(first: FloatArray, second: FloatArray) -> float:
    """P that all of two items' results (n), no two of them equal, lie as unevenly as these, by the sum of ranks."""
    below = int((first[:, None] > second).sum())
    law = _rank_sum_law(len(first), len(second))
    seen = min(below, len(law) - 1 - below)
    return float(min(1.0, 2.0 * law[: seen + 1].sum()))


@lru_cache(maxsize=64)
def _rank_sum_law(first: int, second: int) -> FloatArray:
    """The law of the number of pairs in which the first item is larger: by who has the largest result of all."""
    laws = [np.ones(1) for _ in range(second + 1)]  # of no result of the first item
    for i in range(1, first + 1):
        before, laws = laws, [np.ones(1)]
        for j in range(1, second + 1):
            law = np.zeros(i * j + 1)
            law[j:] += i / (i + j) * before[j]
            law[: i * (j - 1) + 1] += j / (i + j) * laws[j - 1]
            laws.append(law)
    return laws[second]
