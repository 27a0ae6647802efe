"""For each noise that can be stated: which pairs of items differ, and bounds of the distances of all pairs.

| noise | which pairs differ | distances |
| --- | --- | --- |
| known | `paired.differing` | `paired.coordinate_bounds`, `paired.distance_bounds` |
| Gaussian, size unknown | the same, in units of `deviation_bound` | the same |
| counts | `boxes.differing_rates` | `boxes.rate_boxes` |
| bounded | `boxes.bounded_boxes` that do not meet | `boxes.bounded_boxes` |
| any | `bets.differing_bets` on signs, `bets.differing_laws` | none: a rare large value could hide any difference |
| symmetric | `bets.differing_bets` on signs | none |
| at most a covariance | `bets.differing_bets` on second moments | none |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coterie.evidence.intervals.bets import differing_bets, differing_laws
from coterie.evidence.intervals.boxes import bounded_boxes, box_bounds, differing_boxes, differing_rates, rate_boxes
from coterie.evidence.intervals.paired import coordinate_bounds, differing, distance_bounds
from coterie.evidence.intervals.stacks import Stacks, coarse_counts
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
