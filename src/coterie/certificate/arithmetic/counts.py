"""Chances of counts, and their means under a bet: what factors of counts, rates and panels are made of."""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray

_CHUNK = 2**20  # numbers at once
_TABLE = 16  # below, log n! is read off; from there on Stirling's series has 1e-16
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_REMAINDERS = np.array(
    [0.0] + [math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - _HALF_LOG_TWO_PI for n in range(1, _TABLE)]
)


def log_mean_power(log_odds: FloatArray, trials: FloatArray, others: FloatArray, successes: FloatArray) -> FloatArray:
    """log E[ψ^s]: s counts the successes among `trials` of trials + others, of which `successes` succeed, at random.

    All arguments have one entry a test. Terms are added from 12 standard deviations and 60 steps below the largest to
    as far above it: the others are less than 1e-20 of the sum.
    """
    least, most = np.maximum(0.0, successes - others), np.minimum(trials, successes)
    top = _top(log_odds, trials, others, successes, least, most)
    bend = 1.0 / (top + 1.0) + 1.0 / (trials - top + 1.0)
    bend += 1.0 / (successes - top + 1.0) + 1.0 / (others - successes + top + 1.0)
    reach = np.ceil(12.0 / np.sqrt(bend)) + 60.0
    low, high = np.maximum(least, top - reach), np.minimum(most, top + reach)
    logs = np.empty(log_odds.size)
    width = (high - low).astype(np.int64) + 1
    left = np.argsort(width, kind="stable")  # rows of like length together, the longest first
    while left.size > 0:
        rows = max(1, _CHUNK // int(width[left[-1]]))
        left, some = left[:-rows], left[-rows:]
        s: FloatArray = low[some][:, None] + np.arange(int(width[some[-1]]), dtype=np.float64)
        there = s <= high[some][:, None]
        s = np.where(there, s, low[some][:, None])
        terms = log_chance(s, trials[some][:, None], others[some][:, None], successes[some][:, None])
        terms = np.where(there, terms + s * log_odds[some][:, None], -np.inf)
        largest = terms.max(axis=1)
        logs[some] = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
    return logs


def _top(
    log_odds: FloatArray,
    trials: FloatArray,
    others: FloatArray,
    successes: FloatArray,
    least: FloatArray,
    most: FloatArray,
) -> FloatArray:
    """The s with the largest term: where the ratio of a term to the one before, which falls in s, goes below 1."""
    low, high = least.copy(), most.copy()
    while (low < high).any():
        s = np.ceil(0.5 * (low + high))  # above low wherever low < high
        with np.errstate(all="ignore"):  # the others are done, and may be at an end
            ratio = log_odds + np.log(trials - s + 1.0) + np.log(successes - s + 1.0)
            ratio -= np.log(s) + np.log(others - successes + s)
        rises = (ratio >= 0.0) & (low < high)
        falls = ~rises & (low < high)
        low, high = np.where(rises, s, low), np.where(falls, s - 1.0, high)
    return low


def log_chance(s: FloatArray, trials: FloatArray, others: FloatArray, successes: FloatArray) -> FloatArray:
    """log of the hypergeometric probability of s, as two binomials over a third, all at the rate of all trials."""
    rate = successes / (trials + others)
    return (
        log_binomial(s, trials, rate)
        + log_binomial(successes - s, others, rate)
        - log_binomial(successes, trials + others, rate)
    )


def log_binomial(x: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """log of the binomial probability, by its distance from the mean: no large numbers cancel (Loader 2000)."""
    x, n, rate = np.broadcast_arrays(x, n, rate)
    rest = n - x
    inner = (x > 0.0) & (rest > 0.0)
    distance = _deviance(x, n * rate) + _deviance(rest, n * (1.0 - rate))
    root = 0.5 * np.log(n / np.where(inner, x * rest, 1.0)) - _HALF_LOG_TWO_PI
    value = _remainder(n) - _remainder(x) - _remainder(rest) - distance + root
    none = n * np.log1p(-np.where(rate < 1.0, rate, 0.0))  # at a rate of 1 there are none only of no trials
    every = n * np.log(np.where(rate > 0.0, rate, 1.0))
    return np.where(inner, value, np.where(x > 0.0, every, none))


def _remainder(n: FloatArray) -> FloatArray:
    """log n! − [(n+½)·log n − n + ½·log 2π], and 0 for n = 0."""
    large = np.maximum(n, float(_TABLE))
    square = large * large
    series = (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square)
              / square) / large  # fmt: skip
    return np.where(n < _TABLE, _REMAINDERS[np.minimum(n, _TABLE - 1).astype(np.int64)], series)


def _deviance(x: FloatArray, mean: FloatArray) -> FloatArray:
    """x·log(x/mean) − x + mean: 0 where both are 0."""
    safe = np.where(mean > 0.0, mean, 1.0)
    away = (x - safe) / safe
    inner = (1.0 + away) * np.log1p(np.where(x > 0.0, away, 0.0)) - away
    return np.where(mean > 0.0, safe * inner, np.where(x > 0.0, np.inf, 0.0))
