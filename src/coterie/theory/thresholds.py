"""The stopping thresholds: beta, proven, and its approximation beta-tilde, which is not.

"Optimal Clustering with Bandit Feedback" (Yang, Zhong, Tan; JMLR 25, 2024): beta is equation_beta with the
function Psi below it, beta-tilde is in section_exp. Names and symbols: `pulls` is N_m(t), `dim` is d, the
number of arms M is the length of `pulls`, `log_inverse_delta` is log(1/delta).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from coterie.problem.checks import (
    check_count,
    check_delta,
    check_log_inverse_delta,
    check_pulls,
    check_real,
    check_threshold_kind,
)

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def psi(x: float) -> float:
    """Psi(x), the minimum over h in (1/2, 1) of the function below equation_beta, for x >= 0.

    Psi(x) >= x. The remark below equation_beta says Psi(x) = x + log x + o(log x); the printed formula gives
    x + (1/2) log x + O(1), because 1 - h is of the order of 1/(2x) and enters as -log(1-h)/(2h). The smaller
    term only helps: Psi(x) <= x + log x + O(1) is all that the paper uses.
    """
    number = check_real(x, "x")
    if number < 0.0:
        raise ValueError(f"Psi is defined for x >= 0, got {number!r}")
    return _psi(number)


@lru_cache(maxsize=4096)  # a run asks for the same few values at every pull
def _psi(x: float) -> float:
    from scipy.special import zeta  # here because importing scipy takes longer than importing coterie may

    def objective(u: float) -> float:
        # h = (1 + s)/2 with s = 1/(1 + e^-u): both ends of (1/2, 1), where zeta(2h) and log(1-h) diverge, are
        # at infinity, and 2h - 1 and 1 - h keep their digits close to them.
        s = 1.0 / (1.0 + math.exp(-u))
        log_one_minus_h = -math.log(2.0) - (u + math.log1p(math.exp(-u)) if u > 0.0 else math.log1p(math.exp(u)))
        h = (1.0 + s) / 2.0
        # Psi below equation_beta
        return 2.0 - 2.0 * math.log(4.0 * h) + (math.log(zeta(1.0 + s)) - log_one_minus_h / 2.0 + x) / h

    # Unimodal in h (the remark below equation_beta), so in u as well: golden section. The minimiser has
    # 1 - h of the order of 1/(2x), hence u close to log(1 + x).
    low, high = -20.0, 20.0 + math.log1p(x)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = objective(left), objective(right)
    while high - low > 1e-7:  # at a minimum the value is then exact to about 1e-14
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = objective(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = objective(right)
    return min(at_left, at_right)


def threshold(delta: float, pulls: Any, dim: int, kind: str = "proven") -> float:
    """The threshold that Z(t) must reach to stop with error probability delta.

    `kind="proven"` is β (equation_beta), `kind="heuristic"` is β̃ (section_exp), for which there is no proof. `pulls`
    holds the pull counts of all arms, each at least 1.
    """
    return threshold_from_log(-math.log(check_delta(delta)), pulls, dim, kind)


def threshold_from_log(log_inverse_delta: float, pulls: Any, dim: int, kind: str = "proven") -> float:
    """`threshold` with log(1/delta) given: it works for a delta far below the smallest double."""
    log_term = check_log_inverse_delta(log_inverse_delta)
    counts = check_pulls(pulls)
    d = check_count(dim, "dim", 1)
    if check_threshold_kind(kind) == "heuristic":
        # section_exp: beta-tilde = log((1 + log t)^d / delta)
        return d * math.log1p(math.log(float(counts.sum()))) + log_term
    md = counts.size * d
    # equation_beta
    exploration = 2.0 * d * float(np.log(4.0 + np.log(counts)).sum())
    return exploration + md * _psi(log_term / md)
