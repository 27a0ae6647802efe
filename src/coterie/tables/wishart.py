"""How far the eigenvalues of a Wishart matrix stray: bounds that hold for every size, without simulation.

W is the sum of n squares x xᵀ of standard Gaussian vectors in dimension d: the scatter of repeats in units of the
noise, if the noise is as stated. Two bounds on the same probability hold, and the smaller is taken:

- Davidson and Szarek: √λ_max > √n + √d + t, and √λ_min < √n − √d − t, have probability at most exp(−t²/2) each;
- from the joint density of the eigenvalues (Muirhead, Aspects of Multivariate Statistical Theory, Theorem 3.2.18),
  K(d, n)·∏ l_i^((n−d−1)/2) e^(−l_i/2)·∏_{i<j} (l_i − l_j): with l_1 − l_j ≤ l_1 the density of the largest is at most
  K(d, n)/K(d−1, n−1)·l^((n+d−3)/2) e^(−l/2), and with l_i − l_d ≤ l_i that of the smallest at most
  K(d, n)/K(d−1, n+1)·l^((n−d−1)/2) e^(−l/2). For d = 1 both are the χ² density itself.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc, gammaln, multigammaln


def largest_exceeds(value: float, freedom: int, dim: int) -> float:
    """An upper bound on the probability that the largest eigenvalue is above `value`."""
    n, d = max(freedom, dim), min(freedom, dim)  # the eigenvalues of x xᵀ and xᵀ x are the same
    if d == 0 or value <= 0.0:
        return 1.0
    beyond = math.sqrt(value) - math.sqrt(n) - math.sqrt(d)
    rough = math.exp(-(beyond**2) / 2.0) if beyond > 0.0 else 1.0
    shape = (n + d - 1) / 2.0
    tail = float(gammaincc(shape, value / 2.0))
    if tail == 0.0:
        return rough
    return min(1.0, rough, _exp(_constant(d, n) - _constant(d - 1, n - 1) + _mass(shape) + math.log(tail)))


def smallest_falls_below(value: float, freedom: int, dim: int) -> float:
    """An upper bound on the probability that the smallest eigenvalue is below `value`."""
    n, d = freedom, dim
    if value <= 0.0 and n >= d:
        return 0.0
    if n < d:
        return 1.0
    short = math.sqrt(n) - math.sqrt(d) - math.sqrt(value)
    rough = math.exp(-(short**2) / 2.0) if short > 0.0 else 1.0
    shape = (n - d + 1) / 2.0
    head = float(gammainc(shape, value / 2.0))
    if head == 0.0:
        return 0.0 if value == 0.0 else rough
    return min(1.0, rough, _exp(_constant(d, n) - _constant(d - 1, n + 1) + _mass(shape) + math.log(head)))


@lru_cache(maxsize=256)
def smallest_above(probability: float, freedom: int, dim: int) -> float:
    """A value below which the smallest eigenvalue falls with at most this probability; 0 if there is none."""
    if freedom < dim:
        return 0.0
    top = float(freedom)
    low = top
    while smallest_falls_below(low, freedom, dim) > probability:
        low /= 2.0
        if low < top * 1e-12:
            return 0.0
    if low == top:
        return top
    found = brentq(lambda x: smallest_falls_below(x, freedom, dim) - probability, low, 2.0 * low, xtol=1e-9 * low)
    return float(found) * (1.0 - 1e-6)  # on the safe side of the rounding


def _constant(d: int, n: int) -> float:
    """The logarithm of K(d, n)."""
    if d == 0:
        return 0.0
    return float(
        d * d / 2.0 * math.log(math.pi)
        - n * d / 2.0 * math.log(2.0)
        - multigammaln(n / 2.0, d)
        - multigammaln(d / 2.0, d)
    )


def _mass(shape: float) -> float:
    """The logarithm of ∫ l^(shape−1) e^(−l/2) dl."""
    return float(shape * math.log(2.0) + gammaln(shape))


def _exp(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 0.0 else 1.0
