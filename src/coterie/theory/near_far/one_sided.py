"""One-sided tests of a mean: a mixture of a few rates about the one that suits the guess (docs/RESOLUTION.md)."""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

MULTIPLES: FloatArray = np.array([0.25, 0.6, 1.0])
MULTIPLE_WEIGHTS: FloatArray = np.array([0.1, 0.45, 0.45])
"""Rates of a test as multiples of the one from the guess, and their weights, which add up to 1. Of the mixtures tried,
0.6 and 1 need the fewest results when the guess is right; 0.25 is for a guess that is far too hopeful."""
for _constant in (MULTIPLES, MULTIPLE_WEIGHTS):
    _constant.setflags(write=False)
_LOG_WEIGHTS = np.log(MULTIPLE_WEIGHTS)

_FLUCTUATION, _FLUCTUATION_BY_SIDES = 0.54, 0.48
"""Standard deviations by which the slowest of several sides lags, measured: 0.54 for one, 0.87 for 2, 1.97 for 20."""


def mixture(sums: FloatArray, count: IntArray, rates: FloatArray, proxies: FloatArray) -> FloatArray:
    """log Σ_k w_k·exp(λ_k·T − n·λ_k²·q/2) for each side: sums T, rates, variance proxies q (n, sides), counts (n)."""
    rate = rates[..., None] * MULTIPLES
    terms = _LOG_WEIGHTS + rate * sums[..., None] - (0.5 * count[:, None, None]) * rate**2 * proxies[..., None]
    largest = terms.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(terms - largest[..., None]).sum(axis=-1)))


def needed(drifts: FloatArray, proxies: FloatArray, level: float) -> FloatArray:
    """(n) forecasts of results until all sides reach the level: drifts (n, sides), proxies (sides) or as drifts.

    Infinite where a drift is not positive.
    """
    speeds = np.maximum(drifts, 0.0) ** 2 / proxies
    slowest = speeds.min(axis=-1)
    peers = np.maximum((speeds <= 2.25 * slowest[..., None]).sum(axis=-1), 1)
    lag = side_lag(peers)
    with np.errstate(divide="ignore"):
        return np.asarray((math.sqrt(2.0 * level) + lag) ** 2 / slowest)


def side_lag(peers: FloatArray) -> FloatArray:
    """Standard deviations by which the slowest of so many equally fast sides lags behind its mean."""
    return np.asarray(_FLUCTUATION + _FLUCTUATION_BY_SIDES * np.log(peers))
