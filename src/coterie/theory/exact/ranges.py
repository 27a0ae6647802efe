"""Ranges of several groups of Gaussian means at once, in units of one common estimate of the standard deviation.

Under a partition of the items into groups of equal means, let T be the largest |t| of all pairs within groups. For
equal numbers of rows √2·T is the largest of independent ranges over one common s, so P(T ≤ x) = E_s[∏ F_b(√2·x·s)] over
the sizes b of the groups, where F_b is the distribution of the range of b standard Gaussians and ν·s² is χ² with ν
degrees of freedom. For unequal numbers it is at least that (Hayter, Annals of Statistics 12, 1984, which holds for each
group given s). One group of all items is the test of Tukey and Kramer; any other partition has fewer pairs, so whatever
that test tells apart is told apart here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, ndtr, stdtr

from coterie.problem.checks import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_Z = 8.5 * _NODES  # beyond, the Gaussian density is below 1e-16
_SHARES, _SHARE_WEIGHTS = np.polynomial.legendre.leggauss(64)


def two_sided(t: FloatArray, freedom: float) -> FloatArray:
    """P(|t| ≥ x) for Student's t, or the standard Gaussian if `freedom` is infinite."""
    x = np.abs(t)
    return np.asarray(2.0 * (ndtr(-x) if math.isinf(freedom) else stdtr(freedom, -x)))


def range_below(width: FloatArray, size: int) -> FloatArray:
    """P(the range of `size` standard Gaussians ≤ width)."""
    if size == 1:
        return np.ones_like(width)
    inner = ndtr(_Z + width[..., None]) - ndtr(_Z)
    density = np.exp(-0.5 * _Z**2) / math.sqrt(2.0 * math.pi)
    return np.asarray(np.clip(size * 8.5 * (inner ** (size - 1) * density) @ _WEIGHTS, 0.0, 1.0))


def deviations(freedom: float) -> tuple[FloatArray, FloatArray]:
    """Values of s with their weights, by which means over s are computed."""
    if math.isinf(freedom):
        return np.ones(1), np.ones(1)
    # s at quantiles of χ²: between them, Legendre's nodes for a change of variables that spreads both tails.
    angle = 0.5 * math.pi * (_SHARES + 1.0) / 2.0
    share = np.sin(angle) ** 2
    weights = _SHARE_WEIGHTS * 0.25 * math.pi * 2.0 * np.sin(angle) * np.cos(angle)
    return np.sqrt(chdtri(freedom, 1.0 - share) / freedom), weights


def critical(sizes: Sequence[int], freedom: float, error: float) -> float:
    """How large T becomes with this probability, or a little more, for groups of these sizes; infinite without any."""
    if not sizes:
        return math.inf

    def excess(log_t: float) -> float:
        return float(Ranges(np.array([math.exp(log_t)]), freedom).p_values(sizes)[0]) - error

    return math.exp(brentq(excess, math.log(1e-3), math.log(1e12), xtol=1e-12)) * (1.0 + 1e-9)


class Ranges:
    """P(T ≥ x) for partitions by the sizes of their groups, at given x: the t statistics of all pairs."""

    def __init__(self, t: FloatArray, freedom: float) -> None:
        self._t, self._freedom = np.asarray(t, dtype=np.float64), freedom
        self._s, self._weights = deviations(freedom)
        self._known: dict[int, FloatArray] = {}
        self._pair = two_sided(self._t, freedom)

    def p_values(self, sizes: Sequence[int]) -> FloatArray:
        """P(T ≥ x) at every x, for groups of these sizes."""
        inside = np.ones((self._t.size, self._s.size))
        for size in sizes:
            inside *= self._below(size)
        pairs = sum(size * (size - 1) // 2 for size in sizes)
        # One minus a sum loses digits far out; there one pair is a lower bound, and all of them an upper one.
        return np.clip(1.0 - inside @ self._weights, self._pair, np.minimum(1.0, pairs * self._pair))

    def _below(self, size: int) -> FloatArray:
        if size not in self._known:
            self._known[size] = range_below(math.sqrt(2.0) * self._t[:, None] * self._s, size)
        return self._known[size]
