"""Whether a log contradicts the noise that was stated, written a second time: noise that is larger, or has outliers.

The proofs are in `coterie.theory.noise_evidence`. Noise that is smaller than stated does no harm to a proof, and is not
looked for here.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AtMost, Model, Unknown
from coterie.problem.noise import Noise

_LARGER = (1.15, 1.4, 2.0, 4.0, 8.0)  # standard deviations, in units of the stated one
_OUTLIERS = (0.1, 7.0)  # a share of differences, and their standard deviation
_STAKES = (0.02, 0.1, 0.3, 0.7)


def noise_evidence(
    arms: IntArray, values: FloatArray, pairs: IntArray, noise: Model, level: float
) -> tuple[float, float]:
    """The log-evidence, and what it has to reach; 0 for a noise about whose size nothing was stated.

    `pairs`: (p, 2) results whose difference is noise, in the order in which they were decided on.
    """
    if isinstance(noise, Unknown):
        if not isinstance(noise.statement, AtMost):
            return 0.0, math.inf
        h = noise.whiten(values[pairs[:, 0]] - values[pairs[:, 1]]) / math.sqrt(2.0)
        return _bound(h), math.log(1.0 / level)
    h = noise.whiten(values[pairs[:, 0]] - values[pairs[:, 1]]) / math.sqrt(2.0)
    found = max(_differences(h), _single_items(arms, values, noise))
    return found, math.log(2.0 / level)  # half of the level for each of the two


def _differences(h: FloatArray) -> float:
    """The largest mean over alternatives of Π f(h)/φ(h), as a log; h (p, d) are standard normal."""
    if not len(h):
        return 0.0
    parts = [-math.log(sd) + 0.5 * h**2 * (1.0 - sd**-2) for sd in _LARGER]
    share, sd = _OUTLIERS
    parts.append(np.log((1.0 - share) + share / sd * np.exp(np.minimum(0.5 * h**2 * (1.0 - sd**-2), 700.0))))
    courses = [np.cumsum(part.sum(axis=1)) for part in parts]
    if h.shape[1] > 1:
        courses += [np.cumsum(part[:, q]) for part in parts for q in range(h.shape[1])]
    return max(0.0, float((np.logaddexp.reduce(courses, axis=0) - math.log(len(courses))).max()))


def _bound(h: FloatArray) -> float:
    """Where the covariance is at most the stated one: Π (1 + λ·(‖h‖²/d − 1))."""
    if not len(h):
        return 0.0
    excess = (h**2).mean(axis=1) - 1.0
    courses = [np.cumsum(np.log1p(stake * excess)) for stake in _STAKES]
    return max(0.0, float((np.logaddexp.reduce(courses, axis=0) - math.log(len(courses))).max()))


def _single_items(arms: IntArray, values: FloatArray, noise: Noise) -> float:
    """Predictions of all results but the first of each item, over the largest likelihood under the stated noise.

    With n results, S = Σ‖x − x̄‖² and S' the same without the first: −(n−1)·log σ − ½·log n + ½S' − ½S/σ², summed.
    """
    repeated = np.flatnonzero(np.bincount(arms)[arms] > 1)  # of a million items most may have one result
    order = repeated[np.argsort(arms[repeated], kind="stable")]
    d, total = values.shape[1], np.zeros(len(_LARGER))
    sd = np.array(_LARGER)
    for rows in np.split(order, np.flatnonzero(np.diff(arms[order])) + 1):
        n = rows.size
        if n == 0:
            break
        x = noise.whiten(values[rows] - values[rows[0]])
        spread, rest = (float(((part - part.mean(axis=0)) ** 2).sum()) for part in (x, x[1:]))
        total += d * (-(n - 1) * np.log(sd) - 0.5 * math.log(n)) + 0.5 * rest - 0.5 * spread / sd**2
    return max(0.0, float(np.logaddexp.reduce(total)) - math.log(sd.size))
