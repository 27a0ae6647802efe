"""Intervals for quantiles of a stream under any noise, at all lengths at once (docs/INTERVALS.md).

For the p-quantile q, S counts results ≤ q and S' those < q. Averaged over rates t < p by Jeffreys' law, the likelihood
of S against that of the rate p is a supermartingale, as P(X ≤ q) ≥ p; and so it is of S' over rates t > p, as
P(X < q) ≤ p. Each ever reaches 2/a with probability at most a/2, ties or not.
"""

from __future__ import annotations

import math

import numpy as np

from coterie.evidence.intervals.gaussian_means import Ends
from coterie.problem.checks import FloatArray, IntArray


def quantile_interval(x: FloatArray, p: float, level: float) -> Ends:
    """[X_(k), X_(u)] for the p-quantile, infinite where there is no such result; `level` is log(1/a)."""
    n = len(x)
    ranked = np.sort(x)
    few, many = np.arange(0, math.floor(p * n) + 1), np.arange(math.ceil(p * n), n + 1)
    too_few = few[log_evidence(few, n, p, below=True) >= level + math.log(2.0)]
    too_many = many[log_evidence(many, n, p, below=False) >= level + math.log(2.0)]
    low = float(ranked[too_few[-1]]) if too_few.size else -math.inf  # k = 1 + S, and ranked counts from 0
    high = float(ranked[too_many[0] - 1]) if too_many.size else math.inf
    return low, high


def log_evidence(successes: FloatArray | IntArray, n: int, p: float, below: bool) -> FloatArray:
    """log E of so many results on the near side of the quantile: mixed over the rates below p, or above it."""
    from scipy.special import betainc, betaln, xlog1py, xlogy  # here: it takes a while to load

    s = np.asarray(successes, dtype=np.float64)
    mass, prior = (betainc(a, b, p) for a, b in ((s + 0.5, n - s + 0.5), (0.5, 0.5)))
    share = mass / prior if below else (1.0 - mass) / (1.0 - prior)
    averaged = betaln(s + 0.5, n - s + 0.5) - betaln(0.5, 0.5) + np.log(np.maximum(share, 1e-300))
    return np.asarray(averaged - xlogy(s, p) - xlog1py(n - s, -p))
