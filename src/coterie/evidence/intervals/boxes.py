"""Bounded results and counts: intervals for the mean of every item at all counts at once, and which rates differ.

Intervals of bounded results: betting (`coterie.evidence.intervals.hedged_means`). Counts: the beta-binomial
mixture of Robbins: the likelihood of all results, averaged over rates, against that of a rate p.

Which rates of counts differ: universal inference. At n results of one item and n·R of the other, in the order of both
stacks, the likelihood of each averaged over rates is set against the largest likelihood that rates common to both can
have. That is at most the ratio to the true common rates, which is a martingale in n that starts at 1: if the rates are
equal, it ever reaches 1/a with probability at most a (Wasserman, Ramdas and Balakrishnan, 2020). Ratios R and sides are
joined as in docs/CROC.md, section 2.
"""

from __future__ import annotations

import numpy as np

from coterie.evidence.intervals.hedged_means import betting_interval
from coterie.evidence.intervals.paired import folded, present_counts, sides_of, steps_of, still_open
from coterie.evidence.intervals.stacks import Stacks, coarse_counts, fine_counts
from coterie.problem.checks import FloatArray

BETS_FOR = 0.05
"""The error probability that bets on bounded results are made for."""

_HALVINGS = 60
PRIOR = 0.5
"""Of both kinds of the beta prior: Jeffreys'."""


def bounded_boxes(stacks: Stacks, lo: FloatArray, hi: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """(M, d) lower and upper bounds of the means of results in [lo, hi]; each is ever wrong with chance e^(−level).

    The bets are made for an error of 0.05 whatever the level is: so bounds of a higher level contain those of a lower
    one, and an error probability that is lowered on the way costs nothing.
    """
    width = hi - lo
    low, high = (np.tile(end, (stacks.n_arms, 1)).astype(np.float64) for end in (lo, hi))
    made_for = np.log(2.0 * stacks.n_arms * stacks.dim / BETS_FOR)
    for arm in range(stacks.n_arms):
        x = (stacks.of_arm(arm) - lo) / width
        for number in range(stacks.dim):
            ends = betting_interval(x[:, number], level, float(made_for))
            if ends[0] < ends[1]:  # else no mean fits, which has the probability of an error: nothing is known
                low[arm, number], high[arm, number] = lo[number] + width[number] * np.array(ends)
    return low, high


def rate_likelihood(successes: FloatArray, trials: FloatArray) -> FloatArray:
    """log of the likelihood of so many successes, averaged over rates with the prior (orders of trials left out)."""
    from scipy.special import betaln  # here: it takes a while to load

    return np.asarray(betaln(successes + PRIOR, trials - successes + PRIOR) - betaln(PRIOR, PRIOR))


def rate_boxes(stacks: Stacks, trials: int, level: float) -> tuple[FloatArray, FloatArray]:
    """(M, d) lower and upper bounds of mean counts out of `trials`; both of one are wrong with chance e^(−level)."""
    from scipy.special import xlogy  # here, too

    low, high = np.zeros((stacks.n_arms, stacks.dim)), np.ones((stacks.n_arms, stacks.dim))
    for arm in range(stacks.n_arms):
        x = stacks.of_arm(arm)
        counts = coarse_counts(len(x))
        if not counts.size:
            continue
        successes = np.cumsum(x, axis=0)[counts - 1]
        of = np.broadcast_to(counts[:, None] * float(trials), successes.shape)
        mixture = rate_likelihood(successes, of)
        rate = successes / of
        for side, ends, best in ((0.0, low, np.maximum), (1.0, high, np.minimum)):
            inside, outside = rate.copy(), np.full_like(rate, side)
            for _ in range(_HALVINGS):
                middle = 0.5 * (inside + outside)
                refuted = mixture - xlogy(successes, middle) - xlogy(of - successes, 1.0 - middle) >= level
                outside, inside = np.where(refuted, middle, outside), np.where(refuted, inside, middle)
            # `outside` is refuted, or the end of the interval
            ends[arm] = best(ends[arm], best.reduce(outside, axis=0))
    return low * trials, high * trials


def differing_boxes(low: FloatArray, high: FloatArray) -> np.ndarray:
    """(M, M) whether the boxes [low, high] (M, d) of two items do not meet."""
    return np.asarray((low[:, None] > high[None]).any(axis=-1) | (low[None] > high[:, None]).any(axis=-1))


def box_bounds(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(M, M, d) lower and upper bounds of |θ_c| for every pair, from a box for the mean of each item."""
    return folded(low[:, None] - high[None], high[:, None] - low[None])


def _common(successes: FloatArray, trials: FloatArray | float) -> FloatArray:
    """log of the largest likelihood (n) of successes (n, d) out of so many trials."""
    rate = successes / trials
    from scipy.special import xlogy  # here: it takes a while to load

    return np.asarray((xlogy(successes, rate) + xlogy(trials - successes, 1.0 - rate)).sum(axis=-1))


def differing_rates(stacks: Stacks, trials: int, level: float) -> np.ndarray:
    """(M, M) whether the evidence of two items has reached the level, at a count of CROC's grid or at the present one.

    For two items with equal rates the probability is at most e^(−level).
    """
    n_arms = stacks.n_arms
    differs = np.zeros((n_arms, n_arms), dtype=bool)
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
            for arms, size in zip((now.first, now.second), sizes, strict=True)
        ]
        trial_counts = [np.broadcast_to(size[:, None] * float(trials), parts[0].shape) for size in sizes]
        apart = sum(rate_likelihood(part, of).sum(axis=-1) for part, of in zip(parts, trial_counts, strict=True))
        met = apart - _common(parts[0] + parts[1], trial_counts[0] + trial_counts[1]) + now.log_weight >= level
        differs[now.first[met], now.second[met]] = differs[now.second[met], now.first[met]] = True
    left, right = still_open(differs, left, right)
    for step in steps_of(counts):
        for first, second in sides_of(stacks, step, left, right):
            both = successes[first, step.first] + successes[second, step.second]
            apart = averaged[first, step.first] + averaged[second, step.second]
            met = apart - _common(both, float(step.n * (1 + step.ratio) * trials)) + step.log_weight >= level
            differs[first[met], second[met]] = differs[second[met], first[met]] = True
        left, right = still_open(differs, left, right)
    return differs
