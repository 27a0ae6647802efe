"""Items whose recorded measurements do not fit the group that they were put in: three tests.

- `misfits`: χ² tests on all that was recorded, for a known noise, with counts that were fixed in advance.
- `rank_misfits`: for noises of which only is known that equal items have the same distribution. Then the results of the
  items of a group are exchangeable: given all of them, every way to deal them out to the items is equally likely. Two
  tests share the level: each item against the rest of its group, by a bound that needs no simulation; and each group as
  a whole, against random dealings of its results, which sees differences that no single item shows clearly enough.
- `anytime_misfits`: for results told after the stop. They play no part in the proof, so that a test on them is a fresh
  one. People look whenever they like, and may measure more because of what they have seen: the level holds at every
  time and for any choice of what is measured next, as that of the χ² tests does not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gammainccinv, logsumexp, ndtri

from coterie.problem.checks import FloatArray, IntArray
from coterie.tables.checks.spread import means_of

MISFIT_PROBABILITY = 0.001
"""Of any misfit among all items, if the groups and the noise are right."""

_TILTS = np.concatenate([-np.geomspace(8.0, 0.05, 24), np.geomspace(0.05, 8.0, 24)])
_LARGE = 20_000  # results of a group from which on the first test sees enough
_RHOS = np.array([4.0, 1.0, 1 / 4, 1 / 16, 1 / 64])  # prior variances of a difference, in units of the noise's


def misfits(
    labels: Any, arms: IntArray, white: FloatArray, probability: float = MISFIT_PROBABILITY
) -> list[tuple[int, float]]:
    """Items whose mean is too far from that of their group, as (arm, χ²); `white`: measurements in units of the noise.

    With n measurements of an item and W of its group, the mean of the one minus the mean of the other is
    N(0, (1/n − 1/W)·I) if the group's items are alike. Over all items the level is `probability`. How many were
    recorded must not depend on their values. Then, if there are exactly K groups and the noise is as stated, a misfit
    is named with probability at most `probability` plus that of wrong groups: for the true groups, which are fixed,
    the χ² tests hold, whether or not they are found.
    """
    groups = np.asarray(labels)
    tested, own, others, apart = _beside_groups(groups, arms, white)
    chi2 = apart * own * (own + others) / others
    level = 2.0 * gammainccinv(white.shape[1] / 2.0, probability / groups.size)
    return [(int(arm), float(value)) for arm, value in zip(tested, chi2, strict=True) if value > level]


def _beside_groups(
    groups: IntArray, arms: IntArray, white: FloatArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """The items that can be compared with the rest of their group, how many results they and the rest have, and the
    squared distance of the item's mean from the group's.
    """
    means, counts = means_of(arms, white, groups.size)
    centers, totals = means_of(groups[arms], white, int(groups.max()) + 1)
    others = totals[groups] - counts
    tested = np.flatnonzero((counts > 0) & (others > 0))
    apart = ((means[tested] - centers[groups[tested]]) ** 2).sum(axis=1)
    return tested, counts[tested], others[tested], apart


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
    misfitting: list[tuple[int, float]] = []
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
        misfitting += named
    return sorted(misfitting)


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


def anytime_misfits(
    labels: IntArray, arms: IntArray, white: FloatArray, probability: float = MISFIT_PROBABILITY
) -> list[int]:
    """Items that do not fit their group, by results (in units of the noise) that the groups do not depend on.

    Take an item and the rest of its group, and let μ be the mean that they share if the group is right. For a prior
    variance ρ, the item's n results with mean x̄ give (1 + ρn)^(−d/2)·exp(½·g·‖x̄ − μ‖²), g = ρn²/(1 + ρn): a
    Gaussian mixture of likelihood ratios. So do the results of the rest. Their product is a non-negative martingale
    that starts at 1, whatever rule picks the next item from what was seen before. Its least value over μ,

        log E(ρ) = ½·g₁g₂/(g₁ + g₂)·‖x̄₁ − x̄₂‖² − (d/2)·log((1 + ρn₁)(1 + ρn₂)),

    needs no μ and is never above it; the same holds for the mean of E(ρ) over fixed ρ. By Ville's inequality it
    ever reaches M/p with probability at most p/M, over all times at once; over M items that is p.

    This is for the true groups, which are fixed. If there are exactly K groups, the noise is as stated, and no result
    is told or held back because of its own value, then an item is ever named with probability at most p plus that of
    wrong groups.
    """
    if arms.size == 0:
        return []
    tested, own, others, from_group = _beside_groups(labels, arms, white)
    apart = from_group * ((own + others) / others) ** 2  # the rest's mean is so much farther off than the group's
    rho = _RHOS[:, None]
    first, second = rho * own**2 / (1.0 + rho * own), rho * others**2 / (1.0 + rho * others)
    logs = 0.5 * first * second / (first + second) * apart
    logs -= 0.5 * white.shape[1] * (np.log1p(rho * own) + np.log1p(rho * others))
    evidence = logsumexp(logs, axis=0) - np.log(_RHOS.size)
    return [int(arm) for arm in tested[evidence >= np.log(labels.size / probability)]]
