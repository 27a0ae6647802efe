"""Pairs of items whose results are counts of successes: which rates differ, by universal inference.

At n results of one item and n·R of the other, in the order of both stacks, the likelihood of each averaged over
rates is set against the largest likelihood that rates common to both can have. That is at most the ratio to the true
common rates, which is a martingale in n that starts at 1: if the rates are equal, it ever reaches 1/a with
probability at most a (Wasserman, Ramdas and Balakrishnan, 2020). Ratios R and sides are joined as in docs/CROC.md,
section 2.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from coterie.problem.checks import FloatArray
from coterie.theory.intervals.boxes import rate_likelihood
from coterie.theory.intervals.paired import present_counts, sides_of, steps_of, still_open
from coterie.theory.intervals.stacks import Stacks, fine_counts


def _common(successes: FloatArray, trials: FloatArray | float) -> FloatArray:
    """log of the largest likelihood (n) of successes (n, d) out of so many trials."""
    rate = successes / trials
    return np.asarray((xlogy(successes, rate) + xlogy(trials - successes, 1.0 - rate)).sum(axis=-1))


def differing_rates(stacks: Stacks, trials: int, level: float) -> np.ndarray:
    """(M, M) whether the evidence of two items has reached the level, at a count of CROC's grid or at the present one.

    For two items with equal rates the probability is at most e^(−level).
    """
    n_arms = stacks.n_arms
    found = np.zeros((n_arms, n_arms), dtype=bool)
    counts = fine_counts(int(stacks.counts.max(initial=0)))
    # Positions count from an item's first result: added again, all of these are whole numbers.
    successes = stacks.sums(counts) + stacks.firsts[:, None] * counts[:, None]
    of = np.broadcast_to(counts[:, None] * float(trials), successes.shape)
    averaged = rate_likelihood(successes, of).sum(axis=-1)
    left, right = np.triu_indices(n_arms, 1)
    for now in present_counts(stacks, left, right):
        sizes = (now.n, now.n * now.ratio)
        parts = [
            stacks.sums_of(arms, size) + stacks.firsts[arms] * size[:, None]
            for arms, size in zip((now.one, now.other), sizes, strict=True)
        ]
        trial_counts = [np.broadcast_to(size[:, None] * float(trials), parts[0].shape) for size in sizes]
        apart = sum(rate_likelihood(part, of).sum(axis=-1) for part, of in zip(parts, trial_counts, strict=True))
        met = apart - _common(parts[0] + parts[1], trial_counts[0] + trial_counts[1]) + now.log_weight >= level
        found[now.one[met], now.other[met]] = found[now.other[met], now.one[met]] = True
    left, right = still_open(found, left, right)
    for step in steps_of(counts):
        for one, other in sides_of(stacks, step, left, right):
            both = successes[one, step.one] + successes[other, step.other]
            apart = averaged[one, step.one] + averaged[other, step.other]
            met = apart - _common(both, float(step.n * (1 + step.ratio) * trials)) + step.log_weight >= level
            found[one[met], other[met]] = found[other[met], one[met]] = True
        left, right = still_open(found, left, right)
    return found
