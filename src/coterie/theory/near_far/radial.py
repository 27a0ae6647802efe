"""The length of a sum of Gaussian contrasts: its likelihood for a mean of length κ, whatever its direction."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import gammaln, hyp0f1, ive

from coterie.problem.checks import FloatArray

RADII: FloatArray = np.array([0.0, 0.3, 0.55, 0.75, 0.9])
"""κ as shares of the bound: the lengths that a radial test mixes."""
RADII.setflags(write=False)

_GRID = np.geomspace(0.05, 1e7, 600)


def log_hyp0f1(order: float, x: FloatArray) -> FloatArray:
    """log ₀F₁(order; x²/4) for x ≥ 0, where the function itself would overflow."""
    small = np.minimum(x, 50.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        direct = np.log(hyp0f1(order, small * small / 4.0))
        nu = order - 1.0  # ₀F₁(ν+1; x²/4) = Γ(ν+1)·(x/2)^(−ν)·I_ν(x)
        scaled = gammaln(order) - nu * np.log(x / 2.0) + np.log(ive(nu, x)) + x
    return np.asarray(np.where(np.isfinite(direct) & (x < 50.0), direct, scaled))


def log_radial(kappas: FloatArray, length: float | FloatArray, n: float | FloatArray, dim: int) -> FloatArray:
    """log h_κ(s) = log ₀F₁(d/2; κ²s²/4) − n·κ²/2: likelihoods of ‖S‖ = s against a mean of 0."""
    return log_hyp0f1(dim / 2.0, np.asarray(kappas * length)) - np.asarray(n) * kappas**2 / 2.0


@lru_cache(64)
def _table(dim: int, level: float) -> tuple[FloatArray, FloatArray]:
    shares = np.linspace(0.0, 0.96, 25)
    found = []
    for share in shares:
        square = _GRID**2 * share**2 + _GRID * dim
        square = square + 0.1 * np.sqrt(2.0 * dim * _GRID**2 + 4.0 * share**2 * _GRID**3)
        length = np.sqrt(square)
        near = log_radial(np.full_like(_GRID, share), length, _GRID, dim) - 0.3
        reached = near - log_radial(np.ones_like(_GRID), length, _GRID, dim) >= level
        found.append(_GRID[int(np.argmax(reached))] if reached.any() else np.inf)
    return shares, np.array(found)


def radial_needed(shares: FloatArray, dim: int, level: float) -> FloatArray:
    """Forecasts of the information n that a radial test needs, for means of these shares of a bound of 1."""
    return np.asarray(np.interp(shares, *_table(dim, level), right=np.inf))
