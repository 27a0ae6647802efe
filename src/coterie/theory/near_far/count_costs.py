"""What an exponential of counts costs: a bound of its mean over all pairs of rates that a null allows.

X successes in t trials at the rate p, and X' in R·t at the rate p', have, for any tilts a and b,

    log E[exp(a·X + b·X')] = t·ℓ(a, p) + R·t·ℓ(b, p'),  with  ℓ(a, p) = log(1 + p·(e^a − 1)),

concave in (p, p'). A null is a convex set of pairs of rates, in one coordinate or in d. For any multipliers ν (d), by
weak duality, no pair of rates in the null has more than

    t·( support(ν) + Σ_c [φ(a_c, ν_c) + R·φ(b_c, −ν_c/R)] ),   φ(a, ν) = max over p in [0, 1] of ℓ(a, p) − ν·p,
    support(ν) = the largest Σ_c ν_c·(p_c − p'_c) in the null.

φ has a closed form, so whoever checks a test needs no optimisation; the best multipliers are found here, once, when a
test is made. exp(a·X + b·X' − cost) then has a mean of at most 1 whatever the rates, and its products over contrasts
are test martingales. The best tilts for guessed rates (p₁, p₁') are the log-odds ratios between them and the closest
pair of rates in the null, by relative entropy (Turner, Ly and Grünwald 2024 for one trial each).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coterie.problem.checks import FloatArray, IntArray

_HALVINGS = 60
_SMALLEST_MULTIPLIER, _LARGEST_MULTIPLIER = 1e-12, 1e6


def largest_log_mean(tilts: FloatArray, multipliers: FloatArray) -> FloatArray:
    """φ(a, ν): the largest log(1 + p·(e^a − 1)) − ν·p over rates p in [0, 1], elementwise."""
    rates = _best_rates(tilts, multipliers)
    return np.asarray(np.log1p(rates * np.expm1(tilts)) - multipliers * rates)


def _best_rates(tilts: FloatArray, multipliers: FloatArray) -> FloatArray:
    """The rate p at which φ is reached."""
    slope = np.expm1(tilts)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = 1.0 / multipliers - 1.0 / slope
    alike = np.sign(slope) * np.sign(multipliers) > 0.0
    at_ends = np.where(np.where(slope == 0.0, -multipliers, slope) > 0.0, 1.0, 0.0)
    return np.where(alike, np.clip(np.where(alike, between, 0.0), 0.0, 1.0), at_ends)


def closest_tilts(
    item: FloatArray, reference: FloatArray, ratio: int | IntArray, coefficients: FloatArray, limit: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Tilts of items and references (n, d) that tell these rates best from the null Σ_c k_c·(p_c − p'_c) ≤ limit (n).

    Rates lie strictly between 0 and 1; coefficients k (n, d); `ratio`: R, one for all or (n, 1).
    """

    def excess(multiplier: FloatArray) -> FloatArray:
        nu = multiplier[:, None] * coefficients
        return _sum(coefficients * (_null_rate(item, nu) - _null_rate(reference, -nu / ratio))) - limit

    nu = _root(excess, limit.size)[:, None] * coefficients
    return _log_odds_ratio(item, _null_rate(item, nu)), _log_odds_ratio(reference, _null_rate(reference, -nu / ratio))


def best_multipliers(
    item: FloatArray, reference: FloatArray, ratio: int | IntArray, coefficients: FloatArray, limit: FloatArray
) -> FloatArray:
    """(n) multipliers m ≥ 0 for which ν = m·k costs least, for tilts and coefficients k (n, d) and limits (n)."""

    def excess(multiplier: FloatArray) -> FloatArray:  # minus the derivative of the cost, which is convex in m
        nu = multiplier[:, None] * coefficients
        return _sum(coefficients * (_best_rates(item, nu) - _best_rates(reference, -nu / ratio))) - limit

    return _root(excess, limit.size)


def half_growth_variance(rate: FloatArray, null: FloatArray) -> FloatArray:
    """V with (p − q)²/(2V) = the relative entropy of a rate p to a rate q, but for terms of the fourth order."""
    middle = (rate + 2.0 * null) / 3.0
    return middle * (1.0 - middle)


def _null_rate(rate: FloatArray, nu: FloatArray) -> FloatArray:
    """The rate q with p − q = ν·q·(1 − q): where the relative entropy of p plus ν·q has its least value.

    The root of a quadratic, from the side on which no digits are lost.
    """
    upper = nu < 0.0
    p, size = np.where(upper, 1.0 - rate, rate), np.abs(nu)
    root = 2.0 * p / (1.0 + size + np.sqrt((1.0 - size) ** 2 + 4.0 * size * (1.0 - p)))
    return np.where(upper, 1.0 - root, root)


def _log_odds_ratio(rate: FloatArray, null: FloatArray) -> FloatArray:
    low = 1e-12
    q = np.clip(null, low, 1.0 - low)
    return np.log(rate / q) - np.log((1.0 - rate) / (1.0 - q))


def _sum(values: FloatArray) -> FloatArray:
    return np.asarray(values.sum(axis=1))


def _root(excess: Callable[[FloatArray], FloatArray], size: int) -> FloatArray:
    """(size) where decreasing functions change their sign, by bisection; the ends of the range if they do not."""
    low = np.full(size, np.log(_SMALLEST_MULTIPLIER))
    high = np.full(size, np.log(_LARGEST_MULTIPLIER))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = excess(np.exp(middle)) > 0.0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.exp(0.5 * (low + high)))
