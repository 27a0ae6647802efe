"""Intervals of the differences of all pairs of items that hold together, and the groups up to a resolution they prove.

| noise | intervals |
| --- | --- |
| Gaussian, known | of Tukey and Kramer, each number of a result with δ/d |
| counts | Clopper and Pearson's of each item, with δ/(M·d) |
| bounded | all means against which bets stay below M·d/δ (`pair_tests.bounded_interval`) |

None under other noises: a rare large value could hide any difference. Whatever follows from the intervals is right
unless one of them is wrong, so a grouping may be looked for as long as it takes.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv

from coterie.evidence.exact.pair_tests import bounded_interval, one_way
from coterie.evidence.exact.two_way import two_way_bounds
from coterie.evidence.intervals.boxes import box_bounds
from coterie.evidence.intervals.by_noise import Distances
from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded, Counts, Gaussian, Model
from coterie.problem.noise import Noise

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
