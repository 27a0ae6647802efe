"""Do recorded measurements fit the groups, if nothing is known about the noise? Tests by ranks, for any distribution.

They go with noises under which equal items have the same distribution. Then the results of the items of a group are
exchangeable: given all of them, every way to deal them out to the items is equally likely. Two tests share the level:
each item against the rest of its group, by a bound that needs no simulation; and each group as a whole, against random
dealings of its results, which sees differences that no single item shows clearly enough.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from coterie.problem.checks import FloatArray, IntArray
from coterie.tables.fit import MISFIT_PROBABILITY

_TILTS = np.concatenate([-np.geomspace(8.0, 0.05, 24), np.geomspace(0.05, 8.0, 24)])
_LARGE = 20_000  # results of a group from which on the first test sees enough


def rank_misfits(
    labels: Any, arms: IntArray, rows: FloatArray, probability: float = MISFIT_PROBABILITY
) -> list[tuple[int, float]]:
    """Items whose results do not look like the rest of their group, as (arm, p), p over all items and both tests.

    The statistic is the sum S of the normal scores of the item's ranks in its group, column by column. If a group as a
    whole differs from chance and no item of it is clear by itself, the item with the largest S in units of its own
    standard deviation is named. If the groups are right, any item is named with probability at most `probability`.
    """
    groups = np.asarray(labels)
    counts = np.bincount(arms, minlength=groups.size)
    found: list[tuple[int, float]] = []
    present = np.unique(groups)
    for label in present:
        inside = np.flatnonzero(groups[arms] == label)
        members = np.flatnonzero((groups == label) & (counts > 0))
        if members.size < 2:
            continue
        order = np.argsort(arms[inside], kind="stable")  # item by item
        scores = np.column_stack([_normal_scores(column) for column in rows[inside[order]].T])
        n = counts[members]
        sums = np.add.reduceat(scores, np.cumsum(n) - n, axis=0)
        bounds = 2.0 * np.exp(_log_bounds(scores, sums, n)) * 2.0 * rows.shape[1] * groups.size
        named = [(int(arm), float(p)) for arm, p in zip(members, bounds, strict=True) if p <= probability]
        if not named and inside.size <= _LARGE:
            level = probability / (2.0 * present.size)
            if _differs(scores, n, level):
                spread = np.sqrt(n[:, None] * (1.0 - n[:, None] / inside.size) * (scores**2).mean(axis=0))
                far = np.divide(np.abs(sums), spread, out=np.zeros_like(sums), where=spread > 0.0).max(axis=1)
                named = [(int(members[np.argmax(far)]), probability)]
        found += named
    return sorted(found)


def _log_bounds(scores: FloatArray, sums: FloatArray, n: IntArray) -> FloatArray:
    """Of each item: the logarithm of a bound on the probability of its sum, the smallest over columns, of one tail.

    Sums without replacement are less spread, for every convex function, than sums with replacement (Hoeffding 1963),
    so that P(S ≥ s) ≤ exp(−λs)·(mean of e^{λ·score})ⁿ for every λ > 0: it holds for every distribution, ties included.
    λ runs over a fixed grid; each one bounds the same event.
    """
    total = len(scores)
    # The rest's sum is minus the item's: the side with fewer results is the better one to bound.
    turned = 2 * n > total
    own, sums = np.where(turned, total - n, n), np.where(turned[:, None], -sums, sums)
    best = np.zeros(n.size)
    for column in range(scores.shape[1]):
        generating = np.log(np.exp(_TILTS[:, None] * scores[:, column]).mean(axis=1))
        tilted = _TILTS * sums[:, column, None]
        best = np.minimum(best, np.where(tilted > 0.0, own[:, None] * generating - tilted, 0.0).min(axis=1))
    return best


def _differs(scores: FloatArray, n: IntArray, level: float) -> bool:
    """Whether items differ by more than in 1/level − 1 random dealings of their results; the level is exact.

    The statistic is Σ n·(mean of an item's scores)², the largest of the columns, each in units of its scores' variance.
    """
    starts = np.cumsum(n) - n
    variance = (scores**2).mean(axis=0)
    units = np.divide(1.0, variance, out=np.zeros_like(variance), where=variance > 0.0)

    def between(dealt: FloatArray) -> float:
        return float(((np.add.reduceat(dealt, starts, axis=0) ** 2 / n[:, None]).sum(axis=0) * units).max())

    seen = between(scores) * (1.0 - 1e-12)
    rng = np.random.default_rng(0)
    return seen > 0.0 and all(between(rng.permutation(scores)) < seen for _ in range(math.ceil(1.0 / level) - 1))


def _normal_scores(values: FloatArray) -> FloatArray:
    """Normal scores of the ranks, shared by equal values, with mean 0."""
    order = np.argsort(values, kind="stable")
    v = values[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(v) != 0]))
    lengths = np.diff(np.append(first, v.size))
    plain = ndtri((np.arange(v.size) + 0.5) / v.size)
    shared = np.add.reduceat(plain, first) / lengths
    scores = np.empty(v.size)
    scores[order] = np.repeat(shared, lengths)
    return np.asarray(scores - scores.mean())
