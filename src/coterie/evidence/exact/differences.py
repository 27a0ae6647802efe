"""Intervals of a finished table: of the differences of all pairs of items at once, and of single means and quantiles.

Differences of all pairs hold together, and prove groups up to a resolution:

| noise | intervals |
| --- | --- |
| Gaussian, known | of Tukey and Kramer, each number of a result with δ/d |
| counts | Clopper and Pearson's of each item, with δ/(M·d) |
| bounded | all means against which bets stay below M·d/δ (`pair_tests.bounded_interval`) |

None under other noises: a rare large value could hide any difference. Whatever follows from the intervals is right
unless one of them is wrong, so a grouping may be looked for as long as it takes.

`FixedIntervals` has those of items or groups, for rows whose number was fixed before, each with a = δ_I/J:

| noise | means | differences |
| --- | --- | --- |
| known | normal quantile | normal quantile |
| Gaussian, size unknown | t, by the variance within items | t |
| counts | Clopper and Pearson | of each one with a/2 |
| bounded | all means against which bets stay below 1/a (`pair_tests.bounded_interval`) | of each one with a/2 |
| at most a covariance | Catoni's, with one bet for this number of rows | of each one with a/2 |
| any, symmetric, Poisson, exponential | order statistics, by the binomial law (the sign test) | of each one with a/2 |
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit
from scipy.stats import binom

from coterie.evidence.exact.pair_tests import bounded_interval, one_way, pooled
from coterie.evidence.exact.two_way import two_way_bounds
from coterie.evidence.intervals.by_noise import Distances
from coterie.evidence.intervals.hedged_means import box_bounds
from coterie.problem.checks import FloatArray
from coterie.problem.families import AtMost, Bounded, Counts, Gaussian, Model, stated_deviations
from coterie.problem.noise import Noise

Ends = tuple[float, float]
_HALVINGS = 60


class FixedIntervals:
    """Intervals under one noise, `count` of them, that hold together but for a probability of `error`.

    `items`: the rows (n, d) of each item, by which the variance of Gaussian noise is estimated. The methods are those
    of `coterie.evidence.intervals.streams.StreamIntervals`.
    """

    def __init__(
        self, noise: Model, count: int, error: float, items: Sequence[FloatArray], quantile: float | None
    ) -> None:
        self._noise, self._p, self._each = noise, 0.5 if quantile is None else quantile, error / count
        self._deviations, self._reach = stated_deviations(noise), -float(ndtri(self._each / 2.0))
        if not isinstance(noise, Noise) and isinstance(noise.statement, Gaussian):
            means, _, covariance, freedom = pooled(list(items))
            variances = np.diag(covariance)
            if noise.statement.shape == "scalar":
                variances, freedom = np.full(noise.dim, variances.mean()), freedom * noise.dim
            self._deviations = np.sqrt(variances)
            if freedom < 1 or not (self._deviations > 1e-12 * np.abs(means).max(axis=0)).all():
                self._deviations = np.full(noise.dim, np.inf)  # rows that do not vary are no Gaussian noise
            self._reach = -float(stdtrit(max(1, freedom), self._each / 2.0))

    @property
    def _normal(self) -> bool:
        return isinstance(self._noise, Noise) or isinstance(self._noise.statement, Gaussian)

    def means(self, groups: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """(groups, d) lower and upper ends, from the rows (n, d) of each."""
        if self._normal:
            half = np.array([self._reach * self._deviations / math.sqrt(len(rows)) for rows in groups])
            middle = np.array([rows.mean(axis=0) for rows in groups])
            return middle - half, middle + half
        return self._all([[self._mean(rows[:, q], q, self._each) for q in range(self._noise.dim)] for rows in groups])

    def differences(self, pairs: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
        """(pairs, d) ends for the mean of the first rows minus that of the second."""
        if self._normal:
            half = np.array(
                [self._reach * self._deviations * math.sqrt(1 / len(a) + 1 / len(b)) for a, b in pairs]
            ).reshape(-1, self._noise.dim)
            middle = np.array([a.mean(axis=0) - b.mean(axis=0) for a, b in pairs]).reshape(half.shape)
            return middle - half, middle + half
        ends = []
        for a, b in pairs:
            both = [[self._mean(rows[:, q], q, self._each / 2.0) for q in range(self._noise.dim)] for rows in (a, b)]
            ends.append([(low - other[1], high - other[0]) for (low, high), other in zip(*both, strict=True)])
        return self._all(ends)

    def _all(self, ends: list[list[Ends]]) -> tuple[FloatArray, FloatArray]:
        both = np.array(ends, dtype=np.float64).reshape(len(ends), self._noise.dim, 2)
        return both[:, :, 0], both[:, :, 1]

    def _mean(self, x: FloatArray, q: int, error: float) -> Ends:
        stated = None if isinstance(self._noise, Noise) else self._noise.statement
        if isinstance(stated, Counts):
            low, high = clopper_pearson(float(x.sum()), float(len(x) * stated.trials), error)
            return stated.trials * low, stated.trials * high
        if isinstance(stated, Bounded):
            lo, hi = (ends[q] if len(ends) > 1 else ends[0] for ends in (stated.lo, stated.hi))
            low, high = bounded_interval((x - lo) / (hi - lo), -math.log(error))
            return lo + (hi - lo) * low, lo + (hi - lo) * high
        if isinstance(stated, AtMost):
            low, high = catoni(x / self._deviations[q], error)
            return float(self._deviations[q]) * low, float(self._deviations[q]) * high
        return order_statistics(x, self._p, error)


def clopper_pearson(successes: float, trials: float, error: float) -> Ends:
    """Rates that neither tail of the binomial law refutes at error/2."""
    low = float(betaincinv(successes, trials - successes + 1.0, error / 2.0)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1.0, trials - successes, 1.0 - error / 2.0)) if successes < trials else 1.0
    return low, high


def catoni(x: FloatArray, error: float) -> Ends:
    """The mean of independent results with a variance of at most 1: |Σφ(λ(x − m))| < log(2/a) + n·log(1 + λ²/2)."""
    n = len(x)
    rate = math.sqrt(2.0 * math.log(2.0 / error) / n)
    bound = math.log(2.0 / error) + n * math.log1p(0.5 * rate**2)

    def total(m: float) -> float:
        y = rate * (x - m)
        return float(np.copysign(np.log1p(np.abs(y) + 0.5 * y * y), y).sum())

    ends = []
    for sign, place in ((-1.0, float(x.min())), (1.0, float(x.max()))):
        inside, step = place, sign
        while -sign * total(inside + step) < bound:
            inside, step = inside + step, 2.0 * step
        outside, inside = inside + step, float(np.median(x))
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            inside, outside = (middle, outside) if -sign * total(middle) < bound else (inside, middle)
        ends.append(outside)
    return ends[0], ends[1]


def order_statistics(x: FloatArray, p: float, error: float) -> Ends:
    """[X_(k), X_(u)] for the p-quantile, ties or not; infinite where there are too few results."""
    n, ranked = len(x), np.sort(x)
    counts = np.arange(n + 1)
    below = np.flatnonzero(binom.cdf(counts, n, p) <= error / 2.0)  # S ≤ k − 1 has a chance of at most error/2
    above = np.flatnonzero(binom.sf(counts - 1, n, p) <= error / 2.0)  # S' ≥ u
    low = float(ranked[below[-1]]) if below.size else -math.inf
    return low, (float(ranked[above[0] - 1]) if above.size else math.inf)


_MOST_STEPS = 20_000  # of the search for references


def bounds_of_differences(stacks: list[FloatArray], noise: Model, delta: float) -> tuple[FloatArray, FloatArray] | None:
    """(M, M, d) lower and upper bounds of |μ_i − μ_j| in each number; any of them is wrong with probability δ."""
    if isinstance(noise, Noise) or isinstance(noise.statement, Gaussian):
        return two_way_bounds(one_way(stacks), noise, delta)
    stated, n_arms, dim = noise.statement, len(stacks), stacks[0].shape[1]
    if isinstance(stated, Counts):
        box = _rates(stacks, stated.trials, delta / (n_arms * dim))
    elif isinstance(stated, Bounded):
        box = _means(stacks, stated, math.log(n_arms * dim / delta))
    else:
        return None
    return box_bounds(*box)


def _rates(stacks: list[FloatArray], trials: int, error: float) -> tuple[FloatArray, FloatArray]:
    """Clopper and Pearson's bounds of mean counts out of `trials`."""
    hits = np.stack([rows.sum(axis=0) for rows in stacks])
    totals = np.array([[len(rows) * trials] for rows in stacks], dtype=np.float64)
    with np.errstate(all="ignore"):
        low = np.where(hits > 0, betaincinv(hits, totals - hits + 1.0, error / 2.0), 0.0)
        high = np.where(hits < totals, betaincinv(hits + 1.0, totals - hits, 1.0 - error / 2.0), 1.0)
    return low * trials, high * trials


def _means(stacks: list[FloatArray], stated: Bounded, level: float) -> tuple[FloatArray, FloatArray]:
    dim = stacks[0].shape[1]
    lo, hi = (np.array(np.broadcast_to(end, dim)) for end in (stated.lo, stated.hi))
    intervals = [
        [bounded_interval((rows[:, k] - lo[k]) / (hi[k] - lo[k]), level) for k in range(dim)] for rows in stacks
    ]
    ends = np.array(intervals)
    return lo + (hi - lo) * ends[:, :, 0], lo + (hi - lo) * ends[:, :, 1]


def as_distances(bounds: tuple[FloatArray, FloatArray], norm: str, scale: FloatArray) -> Distances:
    """In units of `scale` (d), each number by itself, or the length of all of them."""
    return Distances.from_coordinates(norm, bounds[0] / scale, bounds[1] / scale)


def references(near: np.ndarray, far: np.ndarray) -> list[int] | None:
    """Items pairwise far from each other, one of them near every item; None if none are found.

    The item that is near the fewest possible references, none of them chosen yet, decides next; all choices are tried.
    """
    n = len(near)
    near = near | np.eye(n, dtype=bool)
    steps = 0

    def go(chosen: list[int], covered: np.ndarray, allowed: np.ndarray) -> list[int] | None:
        nonlocal steps
        steps += 1
        if covered.all():
            return sorted(chosen)
        if steps > _MOST_STEPS:
            return None
        choices = (near & allowed)[~covered].sum(axis=1)
        item = int(np.flatnonzero(~covered)[np.argmin(choices)])
        options = np.flatnonzero(near[item] & allowed)
        for option in options[np.argsort(-near[:, options][~covered].sum(axis=0), kind="stable")].tolist():
            complete = go([*chosen, option], covered | near[:, option], allowed & far[option])
            if complete is not None:
                return complete
        return None

    return go([], np.zeros(n, dtype=bool), np.ones(n, dtype=bool))


def near_pairs(near: np.ndarray, far: np.ndarray, middle: FloatArray) -> list[int] | None:
    """Labels of groups in which any two items are near, any two groups with a pair that is far; None if none are found.

    Complete linkage by the estimated distances `middle` (M, M), as long as all pairs of two groups are near.
    """
    groups = [[item] for item in range(len(near))]
    while True:
        mergeable = [
            (float(middle[np.ix_(members, other)].max()), i, j)
            for i, members in enumerate(groups)
            for j, other in enumerate(groups[:i])
            if near[np.ix_(members, other)].all()
        ]
        if not mergeable:
            break
        _, i, j = min(mergeable)
        groups[j] += groups.pop(i)
    if any(not far[np.ix_(members, other)].any() for i, members in enumerate(groups) for other in groups[:i]):
        return None
    labels = np.empty(len(near), dtype=np.int64)
    for number, group in enumerate(sorted(groups, key=min)):
        labels[group] = number
    return [int(label) for label in labels]


def linked(lower: FloatArray, upper: FloatArray, middle: FloatArray, n_groups: int) -> list[int] | None:
    """Labels of the K groups of single linkage if the bounds of all distances prove them; None if not.

    Of the estimated distances the longest K − 1 edges of the spanning tree are cut. It is proven if within groups one
    gets everywhere by steps whose upper bounds are below every lower bound between groups.
    """
    labels, _ = _joined(middle, n_groups)
    across = labels[:, None] != labels
    if not across.any():
        return [int(label) for label in labels]
    inside = np.where(across, np.inf, upper)
    _, longest = _joined(inside, n_groups)
    return [int(label) for label in labels] if longest < lower[across].min() else None


def _joined(lengths: FloatArray, n_groups: int) -> tuple[np.ndarray, float]:
    """The groups after the shortest edges have left K of them, and the longest edge that was used."""
    n = len(lengths)
    labels, longest, left = np.arange(n), 0.0, n
    low, high = np.triu_indices(n, 1)
    for edge in np.argsort(lengths[low, high], kind="stable").tolist():
        if left == n_groups:
            break
        first, second = int(labels[low[edge]]), int(labels[high[edge]])
        if first != second:
            labels[labels == max(first, second)] = min(first, second)
            longest, left = float(lengths[low[edge], high[edge]]), left - 1
    return np.unique(labels, return_inverse=True)[1].reshape(-1), longest
