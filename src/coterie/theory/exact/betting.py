"""P-values from bets of fixed size, for noises of which only means are stated to be equal: p = 1/E for an e-value E.

*Bounded results.* For x in [0, 1] of mean μ and |λ| small enough, 1 + λ(x − μ) is not negative and has mean 1, so a
product over independent results has mean 1, and so has a mixture over fixed λ. For two items of equal mean μ, one
factor for each result of both, with λ of opposite signs, gives E(μ); E is the least of them over μ. Within an interval
of μ the same λ are used, and the logarithm of each product is concave in μ: its least value is at an end, so finitely
many μ give a lower bound for all. (Sizes relative to the largest that is allowed, as in Waudby-Smith and Ramdas, 2024.)

*A covariance of at most Σ.* In units of Σ a difference D of a result and a mean of b others has variance at most
v = 1 + 1/b in every number, and (1 + λD + λ²D²/2)/(1 + λ²v/2) is positive and has mean at most 1 (Catoni, 2012).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from coterie.problem.checks import FloatArray

EDGES = np.linspace(0.0, 1.0, 129)
"""Ends of the intervals of μ."""
BETS = 0.95 * 2.0 ** -np.arange(8.0)
"""Sizes of bets, relative to the largest that is allowed."""
MOMENT_BETS = 2.0 ** np.arange(-1.5, 2.0, 0.5)
"""Sizes of bets on differences, relative to the best one for a difference that is just seen."""


def log_products(values: FloatArray) -> FloatArray:
    """(2, intervals, 2, bets): Σ log(1 ± λ(x − μ)) over results x in [0, 1], for each sign of the bet, each interval of
    μ, both of its ends, and each bet.
    """
    low, high = EDGES[:-1], EDGES[1:]
    ends = np.stack([low, high], axis=1)
    sizes = np.stack([1.0 / high, 1.0 / (1.0 - low)])[:, :, None] * BETS  # of a bet on more, and on less
    signs = np.array([1.0, -1.0])
    moved = values[:, None, None] - ends
    found = np.zeros((2, low.size, 2, BETS.size))
    for sign in range(2):
        for bet in range(BETS.size):
            found[sign, :, :, bet] = np.log1p(signs[sign] * sizes[sign, :, None, bet] * moved).sum(axis=0)
    return found


def bounded_p(stacks: list[FloatArray]) -> FloatArray:
    """(M, M) p-values for equal means of results in [0, 1]."""
    n_arms, dim = len(stacks), stacks[0].shape[1]
    p = np.ones((n_arms, n_arms))
    for number in range(dim):
        sums = [log_products(one[:, number]) for one in stacks]
        for i in range(n_arms):
            for j in range(i + 1, n_arms):
                both = np.stack([sums[i][0] + sums[j][1], sums[i][1] + sums[j][0]], axis=-1).min(axis=1)
                least = float(logsumexp(both.reshape(len(both), -1), axis=1).min()) - math.log(2 * BETS.size)
                p[i, j] = p[j, i] = min(p[i, j], dim * math.exp(-max(0.0, least)))
    np.fill_diagonal(p, 1.0)
    return np.minimum(p, 1.0)


def bounded_interval(values: FloatArray, log_level: float) -> tuple[float, float]:
    """Bounds of the mean of results in [0, 1]: all μ against which the evidence stays below e^log_level."""
    mixed = log_products(values).min(axis=2)  # the ends
    evidence = logsumexp(np.concatenate([mixed[0], mixed[1]], axis=1), axis=1) - math.log(2 * BETS.size)
    kept = np.flatnonzero(evidence < log_level)
    if not kept.size:  # no interval fits: floats, or results outside; nothing is claimed
        return 0.0, 1.0
    return float(EDGES[kept[0]]), float(EDGES[kept[-1] + 1])


def moment_p(differences: FloatArray, size: int, delta: float) -> float:
    """The p-value that differences (m, d), in units of the noise, of a result and a mean of `size` others have mean
    0."""
    count, dim = differences.shape
    variance = 1.0 + 1.0 / size
    best = math.sqrt(2.0 * math.log(1.0 / delta) / (count * variance))
    bets = best * np.concatenate([MOMENT_BETS, -MOMENT_BETS])
    moved = differences[:, :, None] * bets
    logs = np.log1p(moved + 0.5 * moved**2).sum(axis=0) - count * np.log1p(0.5 * bets**2 * variance)
    return math.exp(-max(0.0, float(logsumexp(logs)) - math.log(bets.size * dim)))
