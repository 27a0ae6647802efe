"""Evidence of Gaussian results that share an unknown covariance: docs/EVIDENCE.md, section 4.

In the direction η of a test the variance ω = η'Ση is unknown. A bet against every ω at once: large evidence must hold
for the true one, so the smallest over y = 1/(2ω) is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.certificate.bets import Bet, BetRound
from coterie.certificate.log import Frozen
from coterie.certificate.sides import sides_of
from coterie.problem.checks import FloatArray, IntArray

_RATES = np.concatenate([[0.0], 2.0 ** np.arange(3, -10, -1)])  # λ = 0, 8, 4, …, 2^−9
_LOG_WEIGHTS = np.log(np.concatenate([[0.5], np.full(13, 0.5 / 13.0)]))
_CHUNK = 2**20


def evidence(
    rounds: Sequence[BetRound],
    freeze: Frozen,
    frozen: Bet,
    shape: str,
    pools: str,
    arms: IntArray,
    others: IntArray,
    last: IntArray,
    half: FloatArray,
) -> FloatArray:
    """log e of tests after their rounds `last`; `half` is κ: 1 for a test at level b, ½ for one at b/2."""
    n_groups = len(freeze.cores)
    centers, distance = frozen.parts["G"], frozen.parts["Δ"]
    eta = (centers[:, None] - centers[None]) / np.where(np.eye(n_groups) > 0, 1.0, distance)[:, :, None]
    own = freeze.labels[arms]
    other = freeze.labels[others] if pools == "arm" else others
    scatter, count = np.zeros((n_groups, n_groups)), 0
    gain, its_scatter, its_count = np.zeros(arms.size), np.zeros(arms.size), np.zeros(arms.size)
    for one in rounds:
        where, fraction = one.bet.parts["U"], one.bet.parts["f"]
        residuals = one.positions - where[freeze.labels[one.arms]]
        scatter, count = scatter + _scatter(residuals, eta, shape), count + _numbers(residuals, shape)
        wanted = np.flatnonzero(last >= one.number)
        its_scatter[wanted], its_count[wanted] = scatter[own[wanted], other[wanted]], count
        sides = sides_of(one, freeze, pools, arms, others, wanted)
        direction = eta[sides.own, sides.other]
        shift = fraction[sides.own, sides.other] * _dot(direction, where[sides.own] - where[sides.other])  # t
        seen = _dot(direction, sides.contrast(one.positions))
        gain[sides.tests] += (2.0 * shift * seen - shift**2) / sides.spread
    return smallest(gain, its_scatter, its_count, half)


def _scatter(residuals: FloatArray, eta: FloatArray, shape: str) -> FloatArray:
    """(K, K): what the results of a round add to R."""
    if shape == "scalar":
        return np.asarray(np.einsum("lkd,lkd->lk", eta, eta) * float((residuals**2).sum()))
    return np.stack([((residuals @ row.T) ** 2).sum(axis=0) for row in eta])


def _numbers(residuals: FloatArray, shape: str) -> int:
    """What they add to ν."""
    return int(residuals.size if shape == "scalar" else residuals.shape[0])


def _dot(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("id,id->i", first, second))


def smallest(gain: FloatArray, scatter: FloatArray, count: FloatArray, half: FloatArray) -> FloatArray:
    """min over y > 0 of κ·log Σ_λ w_λ·(1+λ)^{ν/2}·e^{−λRy} + G·y, to about 1e-12, by bisection on the slope.

    The bracket is convex in s = R·y. If G ≤ 0 it falls for ever, and so it does if R is 0 and G is not positive: then
    the results have no noise at all in this direction, and do not differ.
    """
    found = np.where(gain < 0.0, -np.inf, half * _LOG_WEIGHTS[0])
    rising = np.flatnonzero(gain > 0.0)
    for low in range(0, rising.size, _CHUNK // _RATES.size):
        some = rising[low : low + _CHUNK // _RATES.size]
        found[some] = _interior(gain[some] / scatter[some], count[some], half[some])
    found[~np.isfinite(gain) | ~np.isfinite(scatter)] = np.nan
    return found


def _interior(slope: FloatArray, count: FloatArray, half: FloatArray) -> FloatArray:
    """The minimum over s ≥ 0 of κ·log Σ_λ w_λ(1+λ)^{ν/2}e^{−λs} + slope·s, slope > 0; at s = 0 if it is infinite."""
    price = _LOG_WEIGHTS + 0.5 * count[:, None] * np.log1p(_RATES)

    def terms(s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log Σ and the mean of λ, at s."""
        exponents = price - _RATES * s[:, None]
        largest = exponents.max(axis=1)
        shares = np.exp(exponents - largest[:, None])
        total = shares.sum(axis=1)
        return largest + np.log(total), (shares @ _RATES) / total

    def falls(s: FloatArray) -> FloatArray:
        return np.asarray(half * terms(s)[1] > slope)

    low, high = np.zeros(slope.size), np.ones(slope.size)
    for _ in range(1100):
        more = falls(high)
        if not more.any():
            break
        low, high = np.where(more, high, low), np.where(more, 2.0 * high, high)
    for _ in range(90):  # the value is flat where the slope is 0: half of these digits would do
        middle = 0.5 * (low + high)
        below = falls(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    at = np.where(falls(np.zeros(slope.size)), 0.5 * (low + high), 0.0)
    return np.asarray(half * terms(at)[0] + np.where(at > 0.0, slope * at, 0.0))
