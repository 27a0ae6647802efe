"""Evidence that a group is a mixture: that the arms in it do not all have the same mean.

CROC proves that groups differ, for the K that it was told. Whether the arms *of* a group are alike is another question,
and the results at hand answer it. For a prior variance ρ, N results of an arm with mean x̄ give the mixture

    (1 + ρN)^(−d/2)·exp(½·g·‖x̄ − μ‖²),    g = ρN²/(1 + ρN),

of likelihood ratios against the mean μ, a non-negative martingale that starts at 1. The product over the arms of a
group is one too, whatever rule chose the next arm from what was known before. All arms have the same μ if the group is
right; it is unknown, and the least value over μ is never above the product. Two such products are used:

- *spread*: every arm has a mean of its own, of prior variance ρ. The least value is at center = Σ g_m·x_m/Σ g_m:
  log E = ½·Σ g_m·‖x_m − center‖² − (d/2)·Σ log(1 + ρN_m).
- *odd one out*: one arm, of prior variance ρ, and all others of the group pooled (N_r results, mean x_r), of ρ':
  log E = ½·g_m·g_r/(g_m + g_r)·‖x_m − x_r‖² − (d/2)·log((1 + ρN_m)(1 + ρ'N_r)).

The evidence of a group is log(½·mean over ρ of E_spread + ½·mean over m, ρ and ρ' of E_odd). Means of such processes
are again below a martingale that starts at 1. So, by Ville's inequality, at any stopping time it reaches log(1/a) with
probability at most a, if the group is one of the true groups, the noise is as stated, and which results are in does
not depend on their values (delays may be long, but not because of what was measured).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_count, check_real_array

LEVEL = 0.01
"""How often, at most, any group is called mixed if the groups, their number and the noise are right."""

SCALES = 4.0 ** np.arange(3, -8, -1)
"""ρ of an arm, from 64 noise variances down to 4^-7; each has the weight 1/11."""

REST_SCALES = 4.0 ** -np.arange(0, 12, 2)
"""ρ' of the others of its group, pooled, from 1 down to 4^-10; each has the weight 1/6."""

_ARMS_AT_ONCE = 2**11
_NUMBERS_AT_ONCE = 2**20


def mixed_threshold(n_groups: int, level: float = LEVEL) -> float:
    """What the evidence of one of K groups has to reach for the group to be called mixed: log(K/level).

    Parameters
    ----------
    n_groups : int
        K.
    level : float
        How often, at most, any group is called mixed for nothing.

    Returns
    -------
    float
        A logarithm.
    """
    return math.log(n_groups / level)


def group_evidence(pulls: Any, means: Any, labels: Any, n_groups: int) -> FloatArray:
    """The log-evidence of each group that its arms differ; 0 for groups of fewer than two.

    Time is O(M·(d + 66)); beside copies of the input it takes a few numbers for each arm.

    Parameters
    ----------
    pulls : array-like of shape (M,)
        The number of results of each arm.
    means : array-like of shape (M, d)
        Their means in units in which the noise is N(0, I); those of a group may be relative to any point, each group to
        its own: only differences count.
    labels : array-like of int, shape (M,)
        The group of each arm, in 0 … n_groups − 1.
    n_groups : int
        K.

    Returns
    -------
    ndarray of shape (K,)
        Logarithms; `mixed_threshold` says what is much.

    Examples
    --------
    >>> from coterie.evidence.homogeneity import group_evidence, mixed_threshold
    >>> evidence = group_evidence([50, 50, 50, 50], [[0.0], [1.5], [9.0], [9.0]], [0, 0, 1, 1], 2)
    >>> (evidence > mixed_threshold(2)).tolist()
    [True, False]
    """
    counts, places, group = check_real_array(pulls, "pulls"), check_real_array(means, "means"), np.asarray(labels)
    k = check_count(n_groups, "n_groups", 1)
    if places.ndim != 2 or counts.shape != places.shape[:1] or group.shape != counts.shape:
        raise ValueError(
            "pulls, means and labels must have shapes (M,), (M, d) and (M,), "
            f"got {counts.shape}, {places.shape} and {group.shape}"
        )
    if group.dtype.kind not in "iu" or (group.size and not 0 <= group.min() <= group.max() < k):
        raise ValueError(f"labels must be integers in 0..{k - 1}, got {group.min()!r} to {group.max()!r}")
    if (counts < 0.0).any():
        raise ValueError(f"pulls must not be negative, got {float(counts.min())!r}")
    evidence = np.zeros(k)
    sizes = np.bincount(group, minlength=k)
    several = np.flatnonzero(sizes > 1)
    if several.size == 0:
        return evidence
    order = np.argsort(group, kind="stable")
    order = order[sizes[group[order]] > 1]
    inside = sizes[several]
    home = np.repeat(np.arange(several.size), inside)
    starts = np.concatenate([[0], np.cumsum(inside)[:-1]])
    counts = counts[order]
    spread, gaps = _distances(counts, places, order, starts, home)
    for i, scale in enumerate(SCALES):
        spread[i] -= 0.5 * places.shape[1] * np.add.reduceat(np.log1p(scale * counts), starts)
    rest = np.add.reduceat(counts, starts)[home] - counts
    odd = _odd_ones(counts, rest, gaps, places.shape[1])
    highest = np.maximum.reduceat(odd, starts)
    summed = np.add.reduceat(np.exp(odd - highest[home]), starts)
    odd_mean = highest + np.log(summed / inside)
    evidence[several] = np.logaddexp(_log_mean(spread, axis=0), odd_mean) - math.log(2.0)
    return evidence


def _distances(
    counts: FloatArray, places: FloatArray, order: IntArray, starts: IntArray, home: IntArray
) -> tuple[FloatArray, FloatArray]:
    """½·Σ g·‖x − center‖² of each ρ and group, and ‖x_m − x_r‖² of each arm; a few dimensions at a time.

    Positions are relative to the first arm of the group, so that data far from zero lose no digits.
    """
    total = np.add.reduceat(counts, starts)
    pull = [scale * counts * (counts / (1.0 + scale * counts)) for scale in SCALES]  # g
    whole = [np.add.reduceat(weights, starts) for weights in pull]
    spread, gaps = np.zeros((SCALES.size, starts.size)), np.zeros(counts.size)
    step = max(1, _NUMBERS_AT_ONCE // counts.size)
    for first in range(0, places.shape[1], step):
        x = np.ascontiguousarray(places[order, first : first + step].T)  # (some dimensions, M)
        x -= x[:, starts][:, home]
        for i, g in enumerate(pull):
            away = x - _ratio(np.add.reduceat(g * x, starts, axis=1), whole[i])[:, home]
            spread[i] += 0.5 * np.add.reduceat(g * np.einsum("dm,dm->m", away, away), starts)
        away = x - _ratio(np.add.reduceat(counts * x, starts, axis=1), total)[:, home]
        gaps += np.einsum("dm,dm->m", away, away)
    # The rest's mean is apart from the arm's by total/rest times what the group's is.
    gaps *= _ratio(total[home], total[home] - counts) ** 2
    return spread, gaps


def _odd_ones(counts: FloatArray, rest: FloatArray, gaps: FloatArray, dim: int) -> FloatArray:
    """log of the mean of E_odd over ρ and ρ', for each arm."""
    evidence = np.zeros(counts.size)
    for first in range(0, counts.size, _ARMS_AT_ONCE):
        part = slice(first, first + _ARMS_AT_ONCE)
        own, others = counts[part, None] * SCALES, rest[part, None] * REST_SCALES
        with np.errstate(divide="ignore"):  # of an arm without results: 1/g is infinite, and nothing speaks for it
            g, h = (1.0 + own) / (own * counts[part, None]), (1.0 + others) / (others * rest[part, None])  # 1/g, 1/g_r
        logs = g[:, :, None] + h[:, None, :]
        np.divide(0.5 * gaps[part, None, None], logs, out=logs)
        logs -= 0.5 * dim * np.log1p(own)[:, :, None]
        logs -= 0.5 * dim * np.log1p(others)[:, None, :]
        evidence[part] = _log_mean(logs.reshape(len(own), -1), axis=1)
    return evidence


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """above/below, and 0 where nothing was measured."""
    return np.divide(above, below, out=np.zeros(np.broadcast_shapes(above.shape, below.shape)), where=below > 0.0)


def _log_mean(logs: FloatArray, axis: int) -> FloatArray:
    """log of the mean of exp over an axis. Changes `logs`."""
    highest = logs.max(axis=axis, keepdims=True)
    logs -= highest
    np.exp(logs, out=logs)
    mean: FloatArray = highest.squeeze(axis) + np.log(logs.mean(axis=axis))
    return mean
