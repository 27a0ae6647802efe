"""Means of items with intervals for orientation, and the two principal axes on which items with many numbers are drawn.

The intervals are for people who look at a picture. They are not proofs: they hold for one item at one moment, about 19
times in 20, and take no account of the rule that chose what to measure. Proofs are in `coterie.evidence.intervals`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.evidence.intervals.stacks import Stacks
from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded, Counts, Model
from coterie.problem.noise import Noise

FEWEST_REPEATS = 6
"""With fewer results beyond the first of each item, nothing is said about how repeats vary."""

ERRORS = 2.0
"""How many standard errors an interval reaches to each side."""

_LARGEST_COVARIANCE = 1000  # numbers; of more, the spread is taken from the repeats, whatever was stated
_LARGEST_DENSE = 300  # items or numbers, the smaller of both, of which all axes are computed to have the first two
_ORIENTATION = "for orientation, not proven"


@dataclass(frozen=True, eq=False)
class ItemMeans:
    """Of M items with d numbers: `mean`, `low` and `high` (M, d), NaN where nothing is known.

    `deviations` (d): the standard deviation of a single result, None if nobody knows; `words`: what the intervals are.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    deviations: FloatArray | None
    words: str


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The two directions in which the means of the items differ most, numbers in units of `unit` (d).

    An item with mean x is at ((x - origin) / unit) @ loadings.T, `at` (M, 2), NaN where it was not measured. `error`
    (M, 2): `ERRORS` standard errors of that, NaN where not known. `share`: of the variance between items, by axis.
    `by_noise`: the unit is the standard deviation of the noise; else that of the items' means.
    """

    loadings: FloatArray
    unit: FloatArray
    origin: FloatArray
    share: FloatArray
    at: FloatArray
    error: FloatArray
    by_noise: bool


def item_means(stacks: Stacks, noise: Model) -> ItemMeans:
    """The means of the items, with intervals by the noise that was stated, or else by how repeats vary."""
    mean = _means(stacks, stacks.values)
    stated = None if isinstance(noise, Noise) else noise.statement
    if isinstance(stated, Counts):
        return ItemMeans(mean, *_proportions(stacks, mean, stated.trials), _repeats(stacks, mean), _COUNTS)
    if isinstance(noise, Noise) and stacks.dim <= _LARGEST_COVARIANCE:
        deviations: FloatArray | None = np.sqrt(np.diagonal(noise.covariance))
        words = f"mean ± 2 standard errors by the standard deviation that was stated; {_ORIENTATION}"
    else:
        deviations = _repeats(stacks, mean)
        words = f"mean ± 2 standard errors by how repeats of all items have varied; {_ORIENTATION}"
    if deviations is None:
        nothing = np.full(mean.shape, np.nan)
        return ItemMeans(mean, nothing, nothing, None, f"no intervals yet: they need {FEWEST_REPEATS} repeats of items")
    half = ERRORS * deviations * _inverse_root(stacks)[:, None]
    low, high = mean - half, mean + half
    if isinstance(stated, Bounded):
        low, high = np.maximum(low, stated.lo), np.minimum(high, stated.hi)
    return ItemMeans(mean, low, high, deviations, words)


_COUNTS = f"an interval of about 95 % for the rate (Agresti and Coull 1998), times the trials; {_ORIENTATION}"


def _means(stacks: Stacks, values: FloatArray) -> FloatArray:
    """(M, k) means of `values` (t, k), which stand item by item as the stacks do; NaN without any."""
    means = np.full((stacks.n_arms, values.shape[1]), np.nan)
    seen = stacks.counts > 0
    if seen.any():
        first = values[0]  # far from zero no digits are lost
        sums = np.add.reduceat(values - first, stacks.starts[seen], axis=0)
        means[seen] = first + sums / stacks.counts[seen, None]
    return means


def _repeats(stacks: Stacks, mean: FloatArray, values: FloatArray | None = None) -> FloatArray | None:
    """The standard deviation of repeats about the mean of their item, pooled over all items; None if they are few."""
    free = int(stacks.counts.sum() - np.count_nonzero(stacks.counts))
    if free < FEWEST_REPEATS:
        return None
    moved = (stacks.values if values is None else values) - np.repeat(mean, stacks.counts, axis=0)
    return np.asarray(np.sqrt((moved**2).sum(axis=0) / free))


def _inverse_root(stacks: Stacks) -> FloatArray:
    """1/√N of each item, NaN without results."""
    counts = stacks.counts.astype(np.float64)
    return np.asarray(1.0 / np.sqrt(np.where(counts > 0, counts, np.nan)))


def _proportions(stacks: Stacks, mean: FloatArray, trials: int) -> tuple[FloatArray, FloatArray]:
    """Agresti and Coull's interval: two successes and two failures more, then two standard errors."""
    total = stacks.counts[:, None] * float(trials)
    rate = (mean * stacks.counts[:, None] + 2.0) / (total + 4.0)
    half = ERRORS * np.sqrt(rate * (1.0 - rate) / (total + 4.0))
    return trials * np.clip(rate - half, 0.0, 1.0), trials * np.clip(rate + half, 0.0, 1.0)


def principal_axes(stacks: Stacks, noise: Model, means: ItemMeans) -> PrincipalAxes:
    """The two principal axes of the items' means, numbers in units of their noise.

    The largest loading of an axis is positive: the sign of an axis is arbitrary.
    """
    seen = stacks.counts > 0
    mean = means.mean[seen]
    by_noise = means.deviations is not None
    unit = means.deviations if means.deviations is not None else mean.std(axis=0) if len(mean) else np.ones(stacks.dim)
    unit = np.where(unit > 0.0, unit, 1.0)
    origin = mean.mean(axis=0) if len(mean) else np.zeros(stacks.dim)
    white = (mean - origin) / unit
    loadings, lengths = _directions(white)
    total = float((white**2).sum())
    share = lengths**2 / total if total > 0.0 else np.zeros(2)
    at = np.full((stacks.n_arms, 2), np.nan)
    at[seen] = white @ loadings.T
    spread = _spread_on_axes(stacks, noise, at, (loadings / unit), origin)
    error = np.full(at.shape, np.nan) if spread is None else ERRORS * spread * _inverse_root(stacks)[:, None]
    return PrincipalAxes(loadings, unit, origin, share, at, error, by_noise)


def _spread_on_axes(
    stacks: Stacks, noise: Model, at: FloatArray, across: FloatArray, origin: FloatArray
) -> FloatArray | None:
    """(2) the standard deviation of a single result on each axis."""
    if isinstance(noise, Noise) and stacks.dim <= _LARGEST_COVARIANCE:
        return np.asarray(np.sqrt(((across @ noise.covariance) * across).sum(axis=1)))
    return _repeats(stacks, at, (stacks.values - origin) @ across.T)


def _directions(white: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(2, d) orthogonal unit vectors, and how far rows reach along them: the first two of the SVD."""
    rows, dim = white.shape
    small = min(rows, dim)
    if small == 0:
        values, vectors = np.zeros(0), np.zeros((0, dim))
    elif small <= _LARGEST_DENSE:
        _, values, vectors = np.linalg.svd(white, full_matrices=False)
    else:
        from scipy.sparse.linalg import svds

        _, values, vectors = svds(white, k=2, v0=np.random.default_rng(0).standard_normal(small))
        values, vectors = values[::-1], vectors[::-1]  # the smallest comes first
    lengths, loadings = np.zeros(2), np.zeros((2, dim))
    for axis in range(2):
        if axis < len(values) and values[axis] > 1e-12 * max(values[0], 1e-300):
            lengths[axis], loadings[axis] = values[axis], vectors[axis]
        else:  # nothing differs that way: the number that the first axis has least of
            place = int(np.argmin(np.abs(loadings[0]))) if axis else 0
            loadings[axis, place] = 1.0
            loadings[axis] -= loadings[0] * loadings[0, place] * axis
            loadings[axis] /= max(float(np.linalg.norm(loadings[axis])), 1e-300)
        loadings[axis] *= 1.0 if loadings[axis, np.argmax(np.abs(loadings[axis]))] >= 0.0 else -1.0
    return loadings, lengths
