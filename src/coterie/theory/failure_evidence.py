"""Evidence that measurements fail where an item's results are low, or high; and that some items fail more than others.

Let π be the probability that an ask fails, whatever its item. Then every sequence of predictions p_n of the failures
F_n, each made from what was known before, gives the e-process

    Π_n p_n^F_n·(1 − p_n)^(1−F_n) / sup_π Π_n π^F_n·(1 − π)^(1−F_n),

whatever rule picks the items: at the true π the quotient is a martingale, and the supremum only lowers it. The
predictions here tilt the odds of the past rate of failures by e^(β·z), over its past mean, z the place of the item's
mean among all results so far, in each number of a result; the evidence is the mean of the quotients. An ask that
follows a failure is left out: where an instrument is out of order for a while, many asks in a row fail, and that says
nothing.

The value of a reading that was thrown away is not known, and what is left of an item whose low readings are thrown away
looks like any other. But the item fails more often. Other predictions, p_n = (k_m + s·p)/(n_m + s) with k_m failures
among n_m asks of the item so far and the past rate p of all, make the same quotient grow then (`item_evidence`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import FloatArray

SLOPES = np.array([-4.0, -1.5, 1.5, 4.0])
"""β."""


class FailureEvidence(NamedTuple):
    """The largest log-evidence so far, and the number of a result and the direction that say most."""

    value: float
    column: int
    upwards: bool  # failures where results are high


def failure_evidence(failed: NDArray[np.bool_], standing: FloatArray) -> FailureEvidence:
    """The evidence of asks in their order: `failed` (n), and `standing` (n, d) of their items before, in [−1, 1].

    0 stands for an item whose mean is not known, or like that of all results.
    """
    after_failure = np.zeros(failed.size, dtype=bool)
    after_failure[1:] = failed[:-1]
    fails, z = failed[~after_failure].astype(np.float64), standing[~after_failure]
    n = fails.size
    if n == 0 or not fails.any():
        return FailureEvidence(0.0, 0, False)
    seen, count = np.cumsum(fails), np.arange(1.0, n + 1.0)
    rate = (seen - fails + 0.5) / count  # before the ask: (k + 1/2)/(n + 1)
    best = _entropy(seen, count)  # log sup over π
    logs = np.empty((z.shape[1], SLOPES.size, n))
    for i in range(z.shape[1]):
        for j, slope in enumerate(SLOPES.tolist()):
            tilt = np.exp(slope * z[:, i])
            usual = (np.cumsum(tilt) - tilt + 1.0) / count  # of the asks before, so that the rate stays what it was
            odds = rate / (1.0 - rate) * tilt / usual
            logs[i, j] = np.cumsum(fails * np.log(odds) - np.log1p(odds))
    parts = logs.reshape(-1, n) - best
    course = np.logaddexp.reduce(parts, axis=0) - math.log(len(parts))
    at = int(np.argmax(course))
    column, slope_at = divmod(int(np.argmax(parts[:, at])), SLOPES.size)
    return FailureEvidence(max(float(course[at]), 0.0), column, bool(SLOPES[slope_at] > 0.0))


class ItemEvidence(NamedTuple):
    """The largest log-evidence so far, the item that fails most, its failures and asks, and those of all."""

    value: float
    arm: int
    failed: int
    asked: int
    failed_of_all: int
    asked_of_all: int


def item_evidence(failed: NDArray[np.bool_], arms: NDArray[np.int64]) -> ItemEvidence:
    """The evidence that not all items fail equally often, of asks in their order: `failed` (n), their `arms` (n)."""
    after_failure = np.zeros(failed.size, dtype=bool)
    after_failure[1:] = failed[:-1]
    fails, its = failed[~after_failure].astype(np.float64), arms[~after_failure]
    n = fails.size
    if n == 0 or not fails.any():
        return ItemEvidence(0.0, 0, 0, 0, 0, 0)
    seen, count = np.cumsum(fails), np.arange(1.0, n + 1.0)
    rate = (seen - fails + 0.5) / count
    own_fails, own_asks = _before(fails, its)
    parts = np.empty((STRENGTHS.size, n))
    for j, strength in enumerate(STRENGTHS.tolist()):
        p = (own_fails + strength * rate) / (own_asks + strength)
        parts[j] = np.cumsum(np.where(fails > 0.0, np.log(p), np.log1p(-p)))
    course = np.logaddexp.reduce(parts - _entropy(seen, count), axis=0) - math.log(STRENGTHS.size)
    at = int(np.argmax(course))
    asked = np.bincount(its[: at + 1])
    gone = np.bincount(its[: at + 1], weights=fails[: at + 1], minlength=asked.size)
    arm = int(np.argmax((gone + rate[at]) / (asked + 1.0)))
    return ItemEvidence(
        max(float(course[at]), 0.0), arm, int(gone[arm]), int(asked[arm]), int(gone.sum()), int(asked.sum())
    )


STRENGTHS = np.array([1.0, 5.0, 25.0])
"""s: how many asks of an item weigh as much as the rate of all."""


def _before(fails: FloatArray, arms: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Of each ask, the failures and the asks of its item before it."""
    order = np.argsort(arms, kind="stable")
    starts = np.flatnonzero(np.diff(arms[order], prepend=-1))
    lengths = np.diff(starts, append=arms.size)
    total = np.cumsum(fails[order]) - fails[order]
    found, asks = np.empty(arms.size), np.empty(arms.size)
    found[order] = total - np.repeat(total[starts], lengths)
    asks[order] = np.arange(arms.size) - np.repeat(starts, lengths)
    return found, asks


def _entropy(successes: FloatArray, count: FloatArray) -> FloatArray:
    """k·log(k/n) + (n−k)·log(1−k/n)."""
    rest = count - successes
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(successes > 0.0, successes * np.log(successes / count), 0.0)
        second = np.where(rest > 0.0, rest * np.log(rest / count), 0.0)
    total: FloatArray = first + second
    return total
