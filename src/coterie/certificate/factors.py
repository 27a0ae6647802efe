"""What a round multiplies the evidence of tests by: counts, bounded results, a bounded covariance, symmetric noise.

docs/EVIDENCE.md, sections 5 to 8, has the proofs: each factor has mean 1 at most if the arms of the test are equal. In
all of them C is the mean of the arm's results minus that of the pool's, of a and A results, and v = 1/a + 1/A.
"""

from __future__ import annotations

import numpy as np

from coterie.certificate.bets import BetRound
from coterie.certificate.hypergeometric import log_mean_power
from coterie.certificate.sides import Sides
from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded, Counts

MOST_AT_STAKE = 0.95  # of a bet on bounded results


LARGEST_SIGN = 1.5  # |x| of a bet on the sign of a contrast is clipped here


def counts(one: BetRound, sides: Sides, stated: Counts) -> FloatArray:
    """Conditional odds: Π_q ψ_q^s / E[ψ_q^s], s hypergeometric given all successes of both sides."""
    parts = one.bet.parts
    fraction = parts["f"][sides.own, sides.other]
    log_odds = fraction[:, None] * (parts["L"][sides.own] - parts["L"][sides.other])  # log ψ
    a, pulls = sides.counts
    mine, its = sides.totals(one.values)
    found = np.zeros(sides.tests.size)
    for q in range(mine.shape[1]):
        expected = log_mean_power(log_odds[:, q], a * stated.trials, pulls * stated.trials, mine[:, q] + its[:, q])
        found += mine[:, q] * log_odds[:, q] - expected
    return found


def bounded(one: BetRound, sides: Sides, stated: Bounded) -> FloatArray:
    """Betting: 1 + λ·C, with λ so small that it is at least 0.05 whatever the results."""
    parts = one.bet.parts
    fraction, square = parts["f"][sides.own, sides.other], parts["Δ²"][sides.own, sides.other]
    gap = parts["G"][sides.own] - parts["G"][sides.other]
    stake = gap * (fraction / (sides.spread + fraction**2 * square))[:, None]  # λ
    at_stake = np.abs(stake) @ np.broadcast_to(np.subtract(stated.hi, stated.lo), gap.shape[1])
    stake *= np.minimum(1.0, MOST_AT_STAKE / np.where(at_stake > 0.0, at_stake, 1.0))[:, None]
    return np.asarray(np.log1p(np.einsum("id,id->i", stake, sides.contrast(one.positions))))


def at_most(one: BetRound, sides: Sides) -> FloatArray:
    """(1 + x + x²/2)/(1 + w/2) with x = θ·C/v and w = ‖θ‖²/v, in units of the covariance stated."""
    parts, spread = one.bet.parts, sides.spread
    theta = parts["f"][sides.own, sides.other][:, None] * (parts["U"][sides.own] - parts["U"][sides.other])
    x = np.einsum("id,id->i", theta, sides.contrast(one.positions)) / spread
    most = np.einsum("id,id->i", theta, theta) / spread  # w, the largest mean of x²
    return np.asarray(np.log1p(x + 0.5 * x**2) - np.log1p(0.5 * most))


def symmetric(one: BetRound, sides: Sides) -> FloatArray:
    """2/(1 + e^{−2x}), x = f·(G_l−G_k)·C/(s_m²/a + Σ_q a_q·s_q²/A²) within ±1.5, the arms q of the pool."""
    parts = one.bet.parts
    variance = np.full(int(one.listed.max(initial=0)) + 1, np.nan)
    variance[one.listed] = parts["s²"]
    a, pulls = sides.counts
    mine, its = sides.totals(variance[one.arms][:, None])  # a·s_m², and Σ_q a_q·s_q²
    direction = parts["f"][sides.own, sides.other][:, None] * (parts["G"][sides.own] - parts["G"][sides.other])
    seen = np.einsum("id,id->i", direction, sides.contrast(one.positions))
    x = seen / (mine[:, 0] / a**2 + its[:, 0] / pulls**2)
    return np.asarray(np.log(2.0) - np.logaddexp(0.0, -2.0 * np.clip(x, -LARGEST_SIGN, LARGEST_SIGN)))
