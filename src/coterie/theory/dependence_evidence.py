"""Evidence that successive results of an item depend on one another.

*By ranks, whatever the noise.* Let R_s be the rank, from 0, of the s-th result of an item among its first s. If its
results are independent with one distribution, R_1, R_2, … are independent and R_s is uniform on 0 … s − 1, whatever
that distribution is. So for any probabilities f_s(k) that follow from R_1, …, R_{s−1} alone,

    E(s) = Π_{i ≤ s} i·f_i(R_i)

is a martingale that starts at 1. Here f puts the next result near the last: with u = (R_{s−1} + ½)/(s − 1), the place
of the last one, and L the logistic distribution, f_s(k) is the mass of ρ·L⁻¹(u) + τ·L between the quantiles k/s and
(k+1)/s of L. The mean over some (ρ, τ) is a martingale too.

*How many results an item gets may depend on values in any way*: given the values that a sampling rule sees, a rank is
not uniform any more, and products over items mean nothing. But E of one item is a martingale over all results that the
item would ever give, and what is seen is at most its supremum E*: P(E* ≥ y) ≤ 1/y (Ville), so log E* is at most an
exponential variable in distribution. Items are independent, hence Σ_m log E*_m is at most a Gamma(M, 1) variable: the
*joint* evidence is minus the log of the tail of that (Fisher). Beside it stands the largest log E* of a *single* item,
M times. Each number of a result is looked at for itself, and pays for their number. All of this holds at all times at
once, for any rule of sampling and stopping.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.theory.order_evidence import LEVEL, columns_looked_at
from coterie.theory.prefix_ranks import places, rank_factors, ranks_among_earlier, repeats

BETS = ((0.4, 0.9), (0.7, 0.9), (0.7, 1.2), (0.85, 0.6))
"""(ρ, τ)."""

_LEAST_ROOM, _ALL_ROOM = 64, 2**15


class DependenceEvidence(NamedTuple):
    """Logs: of the strongest kind of evidence, and what it has to reach. `arm`: the item with most of it; -1: all."""

    value: float
    threshold: float
    arm: int

    @property
    def reached(self) -> bool:
        """Whether it is enough for an alarm."""
        return self.value >= self.threshold


def dependence_evidence(arms: IntArray, values: FloatArray, n_arms: int, level: float = LEVEL) -> DependenceEvidence:
    """The evidence of results (n, d) of these arms (n), in their order; of an item at most so many of the first.

    Parameters
    ----------
    arms, values
        The items of the results, and the results.
    n_arms
        How many items there are, measured or not.
    level
        How often, at most, it is reached for nothing.
    """
    kept = repeats(arms)
    kept = kept[places(arms[kept]) < max(_LEAST_ROOM, _ALL_ROOM // n_arms)]
    order = kept[np.argsort(arms[kept], kind="stable")]
    if not order.size:
        return DependenceEvidence(0.0, math.inf, -1)
    its, columns, share = arms[order], columns_looked_at(values.shape[1]), 0.5 * level
    starts = np.flatnonzero(np.diff(its, prepend=-1))
    found = []
    for column in columns.tolist():
        highest = _suprema(its, values[order, column], starts)
        top = int(np.argmax(highest))
        found.append((float(highest[top]), math.log(n_arms * columns.size / share), int(its[starts[top]])))
        found.append((log_gamma_tail(n_arms, float(highest.sum())), math.log(columns.size / share), -1))
    return DependenceEvidence(*max(found, key=lambda one: one[0] - one[1]))


def _suprema(its: IntArray, values: FloatArray, starts: IntArray) -> FloatArray:
    """log E* of each item; `its` ascending."""
    ranks, place = ranks_among_earlier(its, values), places(its)
    logs = [_course(rank_factors(ranks, place, *bet), starts) for bet in BETS]
    return np.asarray(np.maximum(np.maximum.reduceat(np.logaddexp.reduce(logs, axis=0), starts) - _LOG_BETS, 0.0))


_LOG_BETS = math.log(len(BETS))


def _course(steps: FloatArray, starts: IntArray) -> FloatArray:
    """Sums so far of each item."""
    total = np.cumsum(steps)
    lengths = np.diff(starts, append=steps.size)
    return np.asarray(total - np.repeat(total[starts] - steps[starts], lengths))


def log_gamma_tail(shape: int, x: float) -> float:
    """−log P(G ≥ x) of a Gamma(shape, 1) variable, shape a whole number: Σ_{k < shape} x^k/k!·e^{−x}."""
    if x <= 0.0:
        return 0.0
    steps = np.concatenate([[0.0], np.log(x / np.arange(1.0, shape))])
    return max(0.0, x - float(np.logaddexp.reduce(np.cumsum(steps))))
