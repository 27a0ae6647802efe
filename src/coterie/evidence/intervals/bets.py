"""Pairs of items about whose noise little is stated: which differ, by bets on contrasts, or by bands around their laws.

The s-th result of one item minus the s-th of the other (from 64 results on, the difference of the means of two blocks)
is a contrast. A bet on it is made from the pair's earlier contrasts only. Then the product of the factors is, in the
number of contrasts, a supermartingale that starts at 1 if the items are equal:

- *signs*: 2/(1+e^(−2u)), u an odd function of the contrast. Its mean is 1 if the contrast is symmetric about 0. So
  it is if both items have the same law, or if the noise of each is symmetric and their centers are equal.
- *second moments*: (1+x+x²/2)/(1+w/2), x linear in the contrast, w at least the mean of x² (docs/EVIDENCE.md,
  section 7).
"""

from __future__ import annotations

import math

import numpy as np

from coterie.evidence.intervals.stacks import Stacks, fine_counts
from coterie.problem.checks import FloatArray

_MOST = 2.0  # a bet on a sign grows by log(2/(1+e^-4)) = 0.675 at most, of log 2 = 0.693; a wrong one costs 4
_SURE, _SHRUNK = 0.3, 0.7  # of a guess that may be chance, so much is bet on at least

BANDS_FROM = 8
"""Results of an item before which the band around its law is not read; then two counts in each doubling."""

_PLACES = 256  # at which laws are compared, for each number: any places are valid


def sign_factors(bet: FloatArray, contrast: FloatArray, spread: FloatArray) -> FloatArray:
    """log of the factors (n) of contrasts (n, d): the bet is a difference of means, the spread its noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(spread > 0.0, bet / spread, 0.0)
    u = np.clip((slope * contrast).sum(axis=-1), -_MOST, _MOST)
    return np.asarray(math.log(2.0) - np.logaddexp(0.0, -2.0 * u))


def moment_factors(bet: FloatArray, contrast: FloatArray, variance: float) -> FloatArray:
    """log of the factors (n) of contrasts (n, d) with a covariance of at most `variance`·I."""
    x = (bet * contrast).sum(axis=-1) / variance
    w = (bet * bet).sum(axis=-1) / variance
    return np.asarray(np.log1p(x + 0.5 * x * x) - np.log1p(0.5 * w))


def differing_bets(stacks: Stacks, level: float, *, unit_noise: bool) -> np.ndarray:
    """(M, M) whether the bets on two items have ever reached the level.

    `unit_noise`: results have a covariance of at most I, whatever their law, and means are compared; otherwise signs
    are bet on. For two equal items the probability is at most e^(−level). Items are compared as far as both have
    results.
    """
    n_arms, dim = stacks.n_arms, stacks.dim
    differs = np.zeros((n_arms, n_arms), dtype=bool)
    counts = fine_counts(int(np.sort(stacks.counts)[-2]) if n_arms > 1 else 0)
    first, second = np.triu_indices(n_arms, 1)
    log_e = np.zeros(first.size)
    total, square = np.zeros((first.size, dim)), np.zeros((first.size, dim))
    sums = stacks.sums(counts)
    before = 0
    for k, count in enumerate(counts.tolist()):
        open_ones = (np.minimum(stacks.counts[first], stacks.counts[second]) >= count) & ~differs[first, second]
        if not open_ones.any():
            break
        first, second, log_e, total, square = (part[open_ones] for part in (first, second, log_e, total, square))
        size = float(count - before)
        moved = sums[:, k] - (sums[:, k - 1] if k else 0.0)
        contrast = stacks.firsts[first] - stacks.firsts[second] + (moved[first] - moved[second]) / size
        if k:
            log_e = log_e + _factors(total, square, k, before, contrast, size, unit_noise)
        met = log_e >= level
        differs[first[met], second[met]] = differs[second[met], first[met]] = True
        total, square = total + size * contrast, square + size * contrast**2
        before = count
    return differs


def _factors(
    total: FloatArray, square: FloatArray, steps: int, n: int, contrast: FloatArray, size: float, unit_noise: bool
) -> FloatArray:
    """log of the factors of the next contrasts, of blocks of `size`, after so many `steps` with `n` results."""
    guess = total / n
    second = square / steps
    spread = np.full_like(guess, 2.0) if unit_noise else np.maximum(square - n * guess**2, 0.0) / steps + second / steps
    with np.errstate(divide="ignore", invalid="ignore"):
        signal = np.where(spread > 0.0, n * guess**2 / spread, 0.0).sum(axis=-1)
        share = np.maximum(_SURE, 1.0 - _SHRUNK * guess.shape[1] / signal)
    bet = np.where(signal > 0.0, share, 0.0)[:, None] * guess
    return moment_factors(bet, contrast, 2.0 / size) if unit_noise else sign_factors(bet, contrast, spread / size)


def differing_laws(stacks: Stacks, level: float) -> np.ndarray:
    """(M, M) whether the bands around the laws of two items, in any number of a result, do not meet at any count.

    The band around the distribution function of n results has half the width √(log(2/a)/(2n)) (Dvoretzky, Kiefer,
    Wolfowitz; Massart 1990); the k-th count that is read has a share 1/(k(k+1)) of a. All bands together are wrong with
    probability at most e^(−level).
    """
    n_arms, dim = stacks.n_arms, stacks.dim
    differs = np.zeros((n_arms, n_arms), dtype=bool)
    level += math.log(n_arms * dim)
    for k, count in enumerate(_band_counts(int(stacks.counts.max(initial=0))), start=1):
        arms = np.flatnonzero(stacks.counts >= count)
        reach = math.sqrt((level + math.log(2.0 * k * (k + 1))) / (2.0 * count))
        if arms.size < 2 or 2.0 * reach >= 1.0:
            continue
        for number in range(dim):
            rows = np.sort(np.array([stacks.of_arm(arm)[:count, number] for arm in arms.tolist()]), axis=1)
            places = np.unique(np.quantile(rows, np.linspace(0.0, 1.0, _PLACES), method="inverted_cdf"))
            laws = np.array([np.searchsorted(row, places, side="right") for row in rows]) / count
            for i, law in enumerate(laws):
                apart = np.abs(laws - law).max(axis=1) > 2.0 * reach
                differs[arms[i], arms[apart]] = differs[arms[apart], arms[i]] = True
    return differs


def _band_counts(most: int) -> list[int]:
    counts, base = [], BANDS_FROM
    while base <= most:
        counts += [count for count in (base, base + base // 2) if count <= most]
        base *= 2
    return counts
