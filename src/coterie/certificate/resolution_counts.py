"""Evidence that rates of success are near, or far apart, from counts: exponentials of counts, and what they cost.

Written a second time, in plain NumPy: docs/RESOLUTION.md, section 8, has the formulas and the proof. Names: X are
successes of the item in t trials, X' those of a block of the reference in R·t; `item` and `reference` are the tilts a
and b; `multipliers` are m of a near test and ν of a far one, for each multiple of the tilts.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from coterie.certificate.fields import field_of
from coterie.certificate.resolution_evidence import LOG_WEIGHTS, MULTIPLES, Family, Parameters, Results, only, vector
from coterie.problem.checks import FloatArray, check_real_array, short

MOST_TILT = math.log(1e300)
"""Of one success: beyond, its exponential is no float."""


class CountResults(Family):
    """Each number of a result counts the successes of `trials` independent trials."""

    def __init__(self, norm: str, scale: FloatArray, trials: int) -> None:
        super().__init__(norm, scale)
        self._trials = trials

    def near(self, results: Results, bound: FloatArray, parameters: Parameters) -> float:
        a, b, m = _tilts(parameters, 2 * self.dim, (2 * self.dim, MULTIPLES.size))
        if not (m >= 0.0).all():
            raise ValueError(f"the multipliers of a near test must not be negative, got {float(m.min())!r}")
        limits = self.coordinate_bounds(bound) * self.scale / self._trials
        found = np.inf
        for side in range(2 * self.dim):
            c, sign = side // 2, 1.0 - 2.0 * (side % 2)
            nu = -sign * m[side]
            costs = _largest(a[side] * MULTIPLES, nu) - m[side] * limits[c]
            costs += results.ratio * _largest(b[side] * MULTIPLES, -nu / results.ratio)
            total = np.cumsum(a[side] * results.item[:, c] + b[side] * results.blocks[:, :, c].sum(axis=1))
            found = min(found, _mixture(total, self._trials * costs))
        return found

    def far(self, results: Results, bound: FloatArray, parameters: Parameters) -> float:
        a, b, nu = _tilts(parameters, self.dim, (MULTIPLES.size, self.dim))
        factors, ratio = MULTIPLES[:, None], results.ratio
        costs = (_largest(a * factors, nu) + ratio * _largest(b * factors, -nu / ratio)).sum(axis=1)
        if self.norm == "distance":
            costs += float(bound[0]) * np.sqrt(((nu * self.scale) ** 2).sum(axis=1)) / self._trials
        else:
            costs += np.abs(nu) @ (bound * self.scale / self._trials)
        total = np.cumsum(results.item @ a + results.blocks.sum(axis=1) @ b)
        return _mixture(total, self._trials * costs)


def _mixture(total: FloatArray, costs: FloatArray) -> float:
    """The largest log Σ_k w_k·exp(k·total_n − n·cost_k) over n."""
    n = np.arange(1, total.size + 1)[:, None]
    return float(special.logsumexp(LOG_WEIGHTS + total[:, None] * MULTIPLES - n * costs, axis=1).max())


def _largest(tilts: FloatArray, nu: FloatArray) -> FloatArray:
    """φ: the largest log(1 + p·(e^a − 1)) − ν·p over p from 0 to 1, at an end or where its slope is 0."""
    tilts, nu = np.broadcast_arrays(tilts, nu)
    slope = np.expm1(tilts)
    between = 1.0 / np.where(nu == 0.0, np.nan, nu) - 1.0 / np.where(slope == 0.0, np.nan, slope)
    inside = (between > 0.0) & (between < 1.0)
    rate = np.where(inside, between, 0.0)
    values = np.log1p(rate * slope) - nu * rate  # concave in p: no other point can be larger
    return np.asarray(np.maximum(np.maximum(values, tilts - nu), 0.0))


def _tilts(parameters: Parameters, length: int, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray, FloatArray]:
    only(parameters, "item", "reference", "multipliers")
    a, b = vector(parameters, "item", length), vector(parameters, "reference", length)
    multipliers = check_real_array(field_of(parameters, "multipliers"), "multipliers")
    if multipliers.shape != shape:
        raise ValueError(f"multipliers must be {shape[0]} rows of {shape[1]}, got {short(parameters['multipliers'])}")
    if max(np.abs(a).max(), np.abs(b).max()) > MOST_TILT:
        raise ValueError(f"tilts must be at most {MOST_TILT:g}, got {short([a.tolist(), b.tolist()])}")
    return a, b, multipliers
