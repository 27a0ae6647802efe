"""For each noise that can be stated: which pairs of items differ, and bounds of the distances of all pairs.

| noise | which pairs differ | distances |
| --- | --- | --- |
| known | `paired.differing` | `paired.coordinate_bounds`, `paired.distance_bounds` |
| Gaussian, size unknown | the same, in units of `deviation_bound` | the same |
| counts | `boxes.differing_rates` | `boxes.rate_boxes` |
| bounded | `boxes.bounded_boxes` that do not meet | `boxes.bounded_boxes` |
| any | `differing_bets` on signs, `differing_laws` | none: a rare large value could hide any difference |
| symmetric | `differing_bets` on signs | none |
| at most a covariance | `differing_bets` on second moments | none |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coterie.evidence.intervals.hedged_means import (
    bounded_boxes,
    box_bounds,
    differing_boxes,
    differing_rates,
    rate_boxes,
)
from coterie.evidence.intervals.paired import coordinate_bounds, differing, distance_bounds
from coterie.evidence.intervals.stacks import Stacks, coarse_counts, fine_counts
from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded, Counts, Gaussian, Model, Unknown
from coterie.problem.noise import Noise

VARIANCE_SHARE = 0.2
"""Of the error probability, for the bound of the variance of Gaussian results."""

LAWS_SHARE = 0.1
"""Of the error probability, for the bands around the laws of items under any noise; bets on signs have the rest."""


def deviation_bound(stacks: Stacks, shape: str, error: float) -> FloatArray | None:
    """(d) standard deviations that are at least the true ones but for a probability of `error`, at all times together.

    `shape`: "scalar" (one for all numbers, which vary independently), "diagonal" or "full" (one for each). At the n-th
    of the counts 2, 3, …, 8, 10, 12, … the first so many results of *every* item are read: a fixed design, whoever
    chose what to measure. Each count has a share 1/(k(k+1)) of the error. None before every item has two results.
    """
    from scipy.special import gammaincinv  # here: it takes a while to load

    counts = coarse_counts(int(stacks.counts.min()))
    counts = counts[counts >= 2]
    if counts.size == 0:
        return None
    squares = stacks.squares(counts).sum(axis=0)  # (G, d)
    k = np.arange(1, counts.size + 1)
    freedom = stacks.n_arms * (counts - 1)
    if shape == "scalar":
        squares, freedom, bounds = squares.sum(axis=1, keepdims=True), freedom * stacks.dim, 1
    else:
        bounds = stacks.dim
    below = 2.0 * gammaincinv(freedom / 2, error / (k * (k + 1.0) * bounds))  # quantiles of χ²
    with np.errstate(divide="ignore", over="ignore"):
        variance = np.where(below[:, None] > 0.0, squares / below[:, None], np.inf).min(axis=0)
    return np.array(np.sqrt(np.broadcast_to(variance, stacks.dim)))


@dataclass(frozen=True)
class Distances:
    """Bounds of how far apart the means of every two items are, all true at once, in units of `scale`.

    `norm` "each": `lower` and `upper` are (M, M, d), of the difference in each number; "distance": (M, M).
    """

    norm: str
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def from_coordinates(cls, norm: str, lower: FloatArray, upper: FloatArray) -> Distances:
        """From bounds (M, M, d) of the difference in each number; a distance is the length of all of them."""
        if norm == "each":
            return cls(norm, lower, upper)
        return cls(norm, np.sqrt((lower**2).sum(axis=-1)), np.sqrt((upper**2).sum(axis=-1)))

    @property
    def at_least(self) -> FloatArray:
        """(M, M) lower bounds of the distance; for the norm "each", of the largest difference."""
        return self.lower if self.norm == "distance" else self.lower.max(axis=-1)

    @property
    def at_most(self) -> FloatArray:
        """(M, M) upper bounds of the distance; for the norm "each", of the largest difference."""
        return self.upper if self.norm == "distance" else self.upper.max(axis=-1)

    def beyond(self, bound: FloatArray) -> np.ndarray:
        """(M, M) which pairs are more than `bound` (d) apart: in one number, or by the distance bound[0]."""
        far = np.asarray(self.lower > bound[0] if self.norm == "distance" else (self.lower > bound).any(axis=-1))
        np.fill_diagonal(far, False)
        return far

    def within(self, bound: FloatArray) -> np.ndarray:
        """(M, M) which pairs are less than `bound` (d) apart: in every number, or by the distance bound[0]."""
        near = self.upper < bound[0] if self.norm == "distance" else (self.upper < bound).all(axis=-1)
        return np.asarray(near)


def unequal(stacks: Stacks, noise: Model, equal_pairs: int, log_inverse_error: float) -> np.ndarray:
    """(M, M) which items are proven to differ; any false one, ever, has probability e^(−log_inverse_error).

    `equal_pairs`: the most pairs of items that can be equal. Items are equal as the noise has it: in their means, or,
    for any noise, in their distributions.
    """
    level = log_inverse_error + math.log(max(1, equal_pairs))
    if isinstance(noise, Noise):
        return differing(_whitened(stacks, noise), level)
    stated = noise.statement
    if isinstance(stated, Gaussian):
        return _unequal_gaussian(stacks, stated.shape, level, log_inverse_error)
    if isinstance(stated, Counts):
        return differing_rates(stacks, stated.trials, level)
    if isinstance(stated, Bounded):
        differs = differing_boxes(*_boxes(stacks, noise, log_inverse_error))
        np.fill_diagonal(differs, False)
        return differs
    if noise.kind == "at-most":
        return differing_bets(_whitened(stacks, noise), level, unit_noise=True)
    if noise.kind == "symmetric":
        return differing_bets(stacks, level, unit_noise=False)
    signs = differing_bets(stacks, level - math.log1p(-LAWS_SHARE), unit_noise=False)
    return np.asarray(signs | differing_laws(stacks, log_inverse_error - math.log(LAWS_SHARE)))


def has_distances(noise: Model) -> bool:
    """Whether distances can be proven under this noise."""
    return isinstance(noise, Noise) or isinstance(noise.statement, Gaussian | Bounded | Counts)


def distances(stacks: Stacks, noise: Model, norm: str, scale: FloatArray, log_inverse_error: float) -> Distances | None:
    """Bounds of the distances of all pairs in units of `scale` (d); any false one, ever: e^(−log_inverse_error).

    None if no distance can be proven under this noise (`has_distances`).
    """
    pairs = math.log(max(1, stacks.n_arms * (stacks.n_arms - 1) // 2))
    if isinstance(noise, Noise):
        if norm == "each":
            deviations = np.sqrt(np.diag(noise.covariance)) / scale
            level = log_inverse_error + pairs + math.log(stacks.dim)
            return Distances(norm, *coordinate_bounds(stacks.scaled(scale), deviations, level))
        shape = noise.color(np.eye(stacks.dim)).T / scale[:, None]
        return Distances(norm, *distance_bounds(_whitened(stacks, noise), shape, log_inverse_error + pairs))
    stated = noise.statement
    if isinstance(stated, Gaussian):
        return _gaussian_distances(stacks, stated.shape, norm, scale, log_inverse_error, pairs)
    if not isinstance(stated, Bounded | Counts):
        return None
    low, high = _boxes(stacks, noise, log_inverse_error)
    return Distances.from_coordinates(norm, *box_bounds(low / scale, high / scale))


def _whitened(stacks: Stacks, noise: Model) -> Stacks:
    """In units of the noise; positions count from the first result, so that no digits are lost."""
    if not stacks.values.size:
        return stacks
    return Stacks(noise.whiten(stacks.values - stacks.values[0]), stacks.counts)


def _boxes(stacks: Stacks, noise: Unknown, log_inverse_error: float) -> tuple[FloatArray, FloatArray]:
    """A box for the mean of each item; all of them hold but for e^(−log_inverse_error)."""
    stated, items = noise.statement, math.log(stacks.n_arms * stacks.dim)
    if isinstance(stated, Counts):
        return rate_boxes(stacks, stated.trials, log_inverse_error + items)
    assert isinstance(stated, Bounded)
    lo, hi = (np.array(np.broadcast_to(end, stacks.dim)) for end in (stated.lo, stated.hi))
    return bounded_boxes(stacks, lo, hi, log_inverse_error + items + math.log(2.0))


def _deviations(stacks: Stacks, shape: str, log_inverse_error: float) -> FloatArray | None:
    bounds = deviation_bound(stacks, shape, VARIANCE_SHARE * math.exp(-log_inverse_error))
    # Results that do not vary at all bound nothing in floats: such a number is left alone.
    return None if bounds is None else np.where(bounds > 0.0, bounds, np.inf)


def _unequal_gaussian(stacks: Stacks, shape: str, level: float, log_inverse_error: float) -> np.ndarray:
    nothing = np.zeros((stacks.n_arms, stacks.n_arms), dtype=bool)
    deviations = _deviations(stacks, shape, log_inverse_error)
    if deviations is None:
        return nothing
    moved = Stacks(stacks.values - stacks.values[0], stacks.counts).scaled(deviations)
    level -= math.log1p(-VARIANCE_SHARE)
    if shape != "full":
        return differing(moved, level)
    level += math.log(stacks.dim)  # numbers may depend on one another: one at a time
    for number in range(stacks.dim):
        nothing |= differing(Stacks(moved.values[:, number : number + 1], moved.counts), level)
    return nothing


def _gaussian_distances(
    stacks: Stacks, shape: str, norm: str, scale: FloatArray, log_inverse_error: float, pairs: float
) -> Distances:
    n_arms, dim = stacks.n_arms, stacks.dim
    deviations = _deviations(stacks, shape, log_inverse_error)
    level = log_inverse_error - math.log1p(-VARIANCE_SHARE) + pairs
    if deviations is None or not np.isfinite(deviations).all():
        upper = np.full((n_arms, n_arms, dim), np.inf)
        upper[np.arange(n_arms), np.arange(n_arms)] = 0.0
        return Distances.from_coordinates(norm, np.zeros((n_arms, n_arms, dim)), upper)
    if norm == "distance" and shape != "full":
        moved = Stacks(stacks.values - stacks.values[0], stacks.counts).scaled(deviations)
        return Distances(norm, *distance_bounds(moved, np.diag(deviations / scale), level))
    level += math.log(dim)
    return Distances.from_coordinates(norm, *coordinate_bounds(stacks.scaled(scale), deviations / scale, level))


# Pairs of items about whose noise little is stated: which differ, by bets on contrasts, or by bands around their laws.
#
# The s-th result of one item minus the s-th of the other (from 64 results on, the difference of the means of two
# blocks) is a contrast. A bet on it is made from the pair's earlier contrasts only. Then the product of the factors is,
# in the number of contrasts, a supermartingale that starts at 1 if the items are equal:
#
# - *signs*: 2/(1+e^(−2u)), u an odd function of the contrast. Its mean is 1 if the contrast is symmetric about 0. So it
#   is if both items have the same law, or if the noise of each is symmetric and their centers are equal.
# - *second moments*: (1+x+x²/2)/(1+w/2), x linear in the contrast, w at least the mean of x² (docs/EVIDENCE.md, section
#   7).


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
