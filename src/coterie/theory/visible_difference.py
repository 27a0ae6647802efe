"""Which difference inside a group would have been seen, with stated power, by as many results as there are.

A group is taken for two halves of its items, every second one shifted by g in one number of the results, and is tested
as `coterie.theory.hidden_groups` tests it. The results are drawn anew from those at hand: every item keeps its number
of results and the order in which they counted, and gets residuals of its group at random (of a known noise, noise as
stated; of counts, new counts), so nothing more is assumed about the noise. It is the group with the fewest results for
an item, which shows least. The least g is looked for, to about an eighth, at which the group is called mixed in all of
ten such draws: that is in about nine of ten runs. Seeds are fixed: the same results give the same answer. It is an
estimate, not a proof.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Model, Unknown
from coterie.problem.noise import Noise
from coterie.problem.statements import Bounded, Counts
from coterie.theory.hidden_groups import hidden_evidence

_DRAWS, _STEPS, _WIDEST = 10, 5, 16.0
_MOST_RESULTS = 2000


def visible_difference(
    noise: Model, arms: IntArray, values: FloatArray, labels: IntArray, n_groups: int, level: float
) -> tuple[float, ...] | None:
    """For each number of a result, the difference inside a group that would have been seen.

    Parameters
    ----------
    noise, arms, values, labels, n_groups
        As for `hidden_evidence`.
    level
        The evidence at which a group is called mixed.

    Returns
    -------
    tuple of float or None
        In the user's units (infinite: none would); None if no group has two items and four results.
    """
    sizes = np.bincount(labels[labels >= 0], minlength=n_groups)
    results = np.bincount(labels[arms][labels[arms] >= 0], minlength=n_groups)
    able = np.flatnonzero((sizes > 1) & (results > 3))
    if able.size == 0:
        return None
    k = int(able[np.argmin(results[able] / sizes[able])])
    mine = np.flatnonzero(labels[arms] == k)[:_MOST_RESULTS]
    place = np.searchsorted(np.flatnonzero(labels == k), arms[mine])
    wanted = level - math.log(n_groups * sizes[k] / sizes[sizes > 1].sum())  # the share of other groups stays theirs
    return tuple(_in_group(noise, place, values[mine], int(sizes[k]), q, wanted) for q in range(values.shape[1]))


def _in_group(noise: Model, arms: IntArray, x: FloatArray, n: int, q: int, wanted: float) -> float:
    """The difference for one group and one number."""
    sums = np.stack([np.bincount(arms, column, minlength=n) for column in x.T], axis=1)
    means = sums / np.maximum(np.bincount(arms, minlength=n), 1)[:, None]
    own = x - means[arms]
    repeated = np.bincount(arms, minlength=n)[arms] > 1
    own = own[repeated] if repeated.any() else x - x.mean(axis=0)
    # Residuals are too small by the degree of freedom that each item's mean takes.
    own *= math.sqrt(len(own) / max(len(own) - np.unique(arms[repeated]).size, 1))
    spread = math.sqrt(float((own[:, q] ** 2).mean()))
    if isinstance(noise, Noise):
        spread = math.sqrt(float(noise.covariance[q, q]))
    if spread <= 0.0:
        return 0.0
    low, high = _WIDEST / 40.0 * spread, _WIDEST * spread
    if not _seen(noise, arms, x, own, n, q, high, wanted):
        return math.inf
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        if _seen(noise, arms, x, own, n, q, middle, wanted):
            high = middle
        else:
            low = middle
    return high


def _seen(
    noise: Model, arms: IntArray, x: FloatArray, own: FloatArray, n: int, q: int, gap: float, wanted: float
) -> bool:
    """Whether the difference is seen in all draws."""
    labels = np.zeros(n, dtype=np.int64)
    for draw in range(_DRAWS):
        rng = np.random.default_rng((draw, n, len(arms)))
        high = (rng.permutation(n) % 2 == 0)[arms]
        shift = np.where(high, 0.5 * gap, -0.5 * gap)
        y = x.mean(axis=0) + own[rng.integers(len(own), size=len(arms))]
        if isinstance(noise, Noise):
            y = x.mean(axis=0) + noise.color(rng.standard_normal(x.shape))
        y[:, q] += shift
        stated = noise.statement if isinstance(noise, Unknown) else None
        if isinstance(stated, Counts):
            rates = np.clip((x.mean(axis=0) + np.eye(x.shape[1])[q] * shift[:, None]) / stated.trials, 0.0, 1.0)
            y = rng.binomial(stated.trials, rates).astype(np.float64)
        elif isinstance(stated, Bounded):
            y = np.clip(y, stated.lo, stated.hi)
        if float(hidden_evidence(noise, arms, y, labels, 1)[0]) < wanted:
            return False
    return True
