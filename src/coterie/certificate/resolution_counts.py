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
from coterie.certificate.resolution_evidence import LOG_WEIGHTS, MULTIPLES, Family, Parameters, Results, only, vectors
from coterie.problem.checks import FloatArray, check_real_array, short

MOST_TILT = math.log(1e300)
"""Of one success: beyond, its exponential is no float."""


class CountResults(Family):
    """Each number of a result counts the successes of `trials` independent trials."""

    def __init__(self, norm: str, scale: FloatArray, trials: int) -> None:
        super().__init__(norm, scale)
        self._trials = trials

    def near(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        a, b, m = _tilts(parameters, 2 * self.dim, (2 * self.dim, MULTIPLES.size))
        if not (m >= 0.0).all():
            raise ValueError(f"the multipliers of a near test must not be negative, got {float(m.min())!r}")
        limits = self.coordinate_bounds(bound) * self.scale / self._trials
        found, ratio = np.full(len(bound), np.inf), results.ratio
        for side in range(2 * self.dim):
            c, sign = side // 2, 1.0 - 2.0 * (side % 2)
            nu, one, other = -sign * m[:, side], a[:, side, None], b[:, side, None]
            costs = _largest(one * MULTIPLES, nu) - m[:, side] * limits[:, c, None]
            costs += ratio * _largest(other * MULTIPLES, -nu / ratio)
            total = np.cumsum(one * results.item[:, :, c] + other * results.blocks[:, :, :, c].sum(axis=2), axis=1)
            found = np.minimum(found, _mixture(total, self._trials * costs))
        return found

    def far(self, results: Results, bound: FloatArray, parameters: Parameters) -> FloatArray:
        a, b, nu = _tilts(parameters, self.dim, (MULTIPLES.size, self.dim))
        factors, ratio = MULTIPLES[:, None], results.ratio
        costs = _largest(a[:, None] * factors, nu) + ratio * _largest(b[:, None] * factors, -nu / ratio)
        costs = costs.sum(axis=2)
        if self.norm == "distance":
            costs += bound[:, :1] * np.sqrt(((nu * self.scale) ** 2).sum(axis=2)) / self._trials
        else:
            costs += (np.abs(nu) * (bound * self.scale / self._trials)[:, None]).sum(axis=2)
        item, reference = np.einsum("knd,kd->kn", results.item, a), np.einsum("knrd,kd->kn", results.blocks, b)
        return _mixture(np.cumsum(item + reference, axis=1), self._trials * costs)


def _mixture(total: FloatArray, costs: FloatArray) -> FloatArray:
    """(k): the largest log Σ_j w_j·exp(j·total_n − n·cost_j) over n, for totals (k, n) and costs (k, multiples)."""
    n = np.arange(1, total.shape[1] + 1)[:, None]
    terms = LOG_WEIGHTS + total[:, :, None] * MULTIPLES - n * costs[:, None]
    return np.asarray(special.logsumexp(terms, axis=2).max(axis=1))


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
    a, b = vectors(parameters, "item", length), vectors(parameters, "reference", length)
    multipliers = check_real_array([field_of(one, "multipliers") for one in parameters], "multipliers")
    if multipliers.shape != (len(parameters), *shape):
        wrong = short(parameters[0]["multipliers"])
        raise ValueError(f"multipliers must be {shape[0]} rows of {shape[1]}, got {wrong}")
    if max(np.abs(a).max(), np.abs(b).max()) > MOST_TILT:
        raise ValueError(f"tilts must be at most {MOST_TILT:g}, got {short([a[0].tolist(), b[0].tolist()])}")
    return a, b, multipliers
