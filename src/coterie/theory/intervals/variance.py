"""An upper bound on the variance of Gaussian results that all items share, from the first results of every item."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from coterie.problem.checks import FloatArray
from coterie.theory.intervals.stacks import Stacks, coarse_counts


def deviation_bound(stacks: Stacks, shape: str, error: float) -> FloatArray | None:
    """(d) standard deviations that are at least the true ones but for a probability of `error`, at all times together.

    `shape`: "scalar" (one for all numbers, which vary independently), "diagonal" or "full" (one for each). At the n-th
    of the counts 2, 3, …, 8, 10, 12, … the first so many results of *every* item are read: a fixed design, whoever
    chose what to measure. Each count has a share 1/(k(k+1)) of the error. None before every item has two results.
    """
    counts = coarse_counts(int(stacks.counts.min()))
    counts = counts[counts >= 2]
    if counts.size == 0:
        return None
    squares = stacks.squares(counts).sum(axis=0)  # (G, d)
    k = np.arange(1, counts.size + 1)
    freedom = stacks.n_arms * (counts - 1)
    if shape == "scalar":
        squares, freedom, bounds = squares.sum(axis=1, keepdims=True), freedom * stacks.dim, 1
    else:
        bounds = stacks.dim
    below = chi2.ppf(error / (k * (k + 1.0) * bounds), freedom)
    with np.errstate(divide="ignore", over="ignore"):
        variance = np.where(below[:, None] > 0.0, squares / below[:, None], np.inf).min(axis=0)
    return np.array(np.sqrt(np.broadcast_to(variance, stacks.dim)))
