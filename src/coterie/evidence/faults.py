"""Evidence that something is wrong with the measurements: their noise, their failures, numbers that say the same twice.

**The noise is not the one that was stated.** *From differences.* Two results of one item (or of two items that are
alike) that were both decided on before either was known: h = (x − x')/√2 in units of the stated noise is N(0, I),
whatever the mean. Over such pairs, in the order in which they were decided on, Σ_j w_j·Π f_j(h)/φ(h) is a martingale
that starts at 1; the alternatives f_j are other standard deviations, heavy tails and outliers, in all numbers of a
result at once or in a single one.

*From single items.* Where the next item is chosen after every result, the second of two results was asked for because
of the first, and their difference is not N(0, I) any more. But at the true means the likelihood ratio of any
predictions is a martingale, for any rule of sampling, so dividing by the largest likelihood over all means gives an
e-process. The first result of an item is only looked at to predict the others: with n results, S = Σ(x − x̄)² over all
n and S' the same without the first, the alternative N(·, σ²) gives, for each number of a result,

    log E = −(n−1)·log σ − ½·log n + S'/2 − S/(2σ²),

summed over the items. It costs ½·log n + ½ for each item and number, and so sees only what is much larger or smaller.

*At most.* If only a bound on the covariance was stated, Q = ‖h‖²/d has a mean of at most 1, whatever the distribution,
and Π (1 + λ·(Q − 1)) with 0 < λ < 1 is a supermartingale. That sees noise that is larger than stated, and nothing else.

**Measurements fail where an item's results are low, or high; or some items fail more than others.** Let π be the
probability that an ask fails, whatever its item. Then every sequence of predictions p_n of the failures F_n, each made
from what was known before, gives the e-process

    Π_n p_n^F_n·(1 − p_n)^(1−F_n) / sup_π Π_n π^F_n·(1 − π)^(1−F_n),

whatever rule picks the items: at the true π the quotient is a martingale, and the supremum only lowers it. The
predictions here tilt the odds of the past rate of failures by e^(β·z), over its past mean, z the place of the item's
mean among all results so far, in each number of a result; the evidence is the mean of the quotients. An ask that
follows a failure is left out: where an instrument is out of order for a while, many asks in a row fail, and that says
nothing.

The value of a reading that was thrown away is not known, and what is left of an item whose low readings are thrown away
looks like any other. But the item fails more often. Other predictions, p_n = (k_m + s·p)/(n_m + s) with k_m failures
among n_m asks of the item so far and the past rate p of all, make the same quotient grow then (`item_evidence`).

**Numbers of a result say the same twice** (`copied_columns`): one follows from another, because they are equal or in
other units.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.evidence.order import places, stretches
from coterie.problem.checks import FloatArray, IntArray

DEVIATIONS = (0.5, 0.8, 1.15, 1.4, 2.0, 4.0)
"""Of the alternatives, in units of the stated noise."""

OUTLIERS = (0.1, 7.0)
"""An alternative: this share of the differences has this standard deviation, the others are as stated."""

STAKES = (0.02, 0.1, 0.3, 0.7)
"""λ where only a bound was stated."""

SMALLER, LARGER, TAILS = "smaller", "larger", "tails"
_KINDS = (*(SMALLER if sd < 1.0 else LARGER for sd in DEVIATIONS), TAILS, TAILS)

SLOPES = np.array([-4.0, -1.5, 1.5, 4.0])
"""β."""

STRENGTHS = np.array([1.0, 5.0, 25.0])
"""s: how many asks of an item weigh as much as the rate of all."""

_ALMOST = 1.0 - 1e-9  # a correlation that rounding alone keeps from 1


class NoiseEvidence(NamedTuple):
    """The largest log-evidence so far, what speaks most for it, and after how many pairs or results it was reached."""

    value: float
    kind: str  # SMALLER, LARGER or TAILS
    after: int


def _ratios(h: FloatArray) -> FloatArray:
    """log f_j(h)/φ(h) of numbers (n), as (n, alternatives)."""
    squares = h * h
    ratios = [-math.log(sd) + 0.5 * squares * (1.0 - 1.0 / sd**2) for sd in DEVIATIONS]
    log_normal = -0.5 * squares - 0.5 * math.log(2.0 * math.pi)
    student = math.log(2.0 / (math.pi * math.sqrt(3.0))) - 2.0 * np.log1p(squares / 3.0)  # t with 3 degrees of freedom
    ratios.append(student - log_normal)
    share, sd = OUTLIERS
    far = math.log(share / sd) + 0.5 * squares * (1.0 - 1.0 / sd**2)
    ratios.append(np.logaddexp(math.log(1.0 - share), far))
    return np.stack(ratios, axis=1)


def pair_course(h: FloatArray) -> tuple[FloatArray, IntArray]:
    """The log-evidence after each of the differences h (n, d), and which alternative says most."""
    n, dim = h.shape
    together = np.zeros((n, len(_KINDS)))
    alone: list[FloatArray] = []
    for q in range(dim):
        ratios = _ratios(h[:, q])
        together += ratios
        alone.append(np.cumsum(ratios, axis=0))
    weight = -math.log(len(_KINDS))
    together = np.cumsum(together, axis=0)
    course = np.logaddexp.reduce(together, axis=1) + weight
    leading, strongest = np.argmax(together, axis=1), together.max(axis=1, initial=-np.inf)
    if dim > 1:
        course -= math.log(2.0)
        for logs in alone:
            course = np.logaddexp(course, np.logaddexp.reduce(logs, axis=1) + weight - math.log(2.0 * dim))
            better = logs.max(axis=1) > strongest
            leading[better] = np.argmax(logs[better], axis=1)
            strongest = np.maximum(strongest, logs.max(axis=1))
    return course, leading


def pair_evidence_against_noise(h: FloatArray) -> NoiseEvidence:
    """The evidence of differences h (n, d), in the order in which they were decided on."""
    if len(h) == 0:
        return NoiseEvidence(0.0, LARGER, 0)
    course, leading = pair_course(h)
    at = int(np.argmax(course))
    return NoiseEvidence(max(float(course[at]), 0.0), _KINDS[int(leading[at])], at + 1)


def evidence_against_bound(h: FloatArray) -> NoiseEvidence:
    """The same where the covariance is only known to be at most the stated one."""
    if len(h) == 0:
        return NoiseEvidence(0.0, LARGER, 0)
    excess = np.mean(h * h, axis=1) - 1.0
    logs = [np.cumsum(np.log1p(stake * excess)) for stake in STAKES]
    value, at = _peak(np.array(logs))
    return NoiseEvidence(value, LARGER, at + 1)


def item_evidence_against_noise(arms: IntArray, white: FloatArray) -> NoiseEvidence:
    """The evidence of results (n, d), in units of the stated noise, of these arms (n), in the order of counting."""
    n, dim = white.shape
    if n == 0:
        return NoiseEvidence(0.0, LARGER, 0)
    order = np.argsort(arms, kind="stable")
    starts, lengths = stretches(arms[order])
    count = places(arms[order]) + 1.0
    spread, rest = np.zeros(n), np.zeros(n)  # S and S' after each result
    for q in range(dim):
        # Relative to the first result, so that the sums of x and of those without the first are the same.
        x = white[order, q] - np.repeat(white[order[starts], q], lengths)
        total, squares = _within(x, starts, lengths), _within(x * x, starts, lengths)
        spread += squares - total**2 / count
        rest += squares - total**2 / np.maximum(count - 1.0, 1.0)
    logs = []
    for sd in DEVIATIONS:
        value = dim * (-(count - 1.0) * math.log(sd) - 0.5 * np.log(count)) + 0.5 * rest - 0.5 * spread / sd**2
        step = np.empty(n)
        step[order] = np.diff(value, prepend=0.0)
        first = order[starts]
        step[first] = 0.0  # of one result: nothing
        logs.append(np.cumsum(step))
    value, at = _peak(np.array(logs))
    return NoiseEvidence(value, _KINDS[int(np.argmax([log[at] for log in logs]))], at + 1)


def _peak(logs: FloatArray) -> tuple[float, int]:
    """The largest log, at least 0, that the mean of e-processes ever had, and where; their logs (processes, n)."""
    course = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
    at = int(np.argmax(course))
    return max(float(course[at]), 0.0), at


def _within(steps: FloatArray, starts: IntArray, lengths: IntArray) -> FloatArray:
    """Sums so far within each stretch, each stretch summed for itself."""
    sums = np.empty(steps.size)
    for length in np.unique(lengths).tolist():  # those of one length at once: there may be a million
        at = starts[lengths == length][:, None] + np.arange(length)
        sums[at] = np.cumsum(steps[at], axis=1)
    return sums


class FailureEvidence(NamedTuple):
    """The largest log-evidence so far, and the number of a result and the direction that say most."""

    value: float
    column: int
    upwards: bool  # failures where results are high


def failure_evidence(failed: NDArray[np.bool_], standing: FloatArray) -> FailureEvidence:
    """The evidence of asks in their order: `failed` (n), and `standing` (n, d) of their items before, in [−1, 1].

    0 stands for an item whose mean is not known, or like that of all results.
    """
    kept, fails, rate, best = _usable_asks(failed)
    if not fails.any():
        return FailureEvidence(0.0, 0, False)
    z, count = standing[kept], np.arange(1.0, fails.size + 1.0)
    logs = np.empty((z.shape[1], SLOPES.size, fails.size))
    for i in range(z.shape[1]):
        for j, slope in enumerate(SLOPES.tolist()):
            tilt = np.exp(slope * z[:, i])
            usual = (np.cumsum(tilt) - tilt + 1.0) / count  # of the asks before, so that the rate stays what it was
            odds = rate / (1.0 - rate) * tilt / usual
            logs[i, j] = np.cumsum(fails * np.log(odds) - np.log1p(odds))
    parts = logs.reshape(-1, fails.size) - best
    value, at = _peak(parts)
    column, slope_at = divmod(int(np.argmax(parts[:, at])), SLOPES.size)
    return FailureEvidence(value, column, bool(SLOPES[slope_at] > 0.0))


class _Asks(NamedTuple):
    """`kept`: which asks do not follow a failure. Of these: `fails` (0 or 1), the `rate` of failures before each, with
    half a failure and half a success added, and `best`, the log of the supremum over π so far."""

    kept: NDArray[np.bool_]
    fails: FloatArray
    rate: FloatArray
    best: FloatArray


def _usable_asks(failed: NDArray[np.bool_]) -> _Asks:
    kept = np.concatenate([[True], ~failed[:-1]])[: failed.size]
    fails = failed[kept].astype(np.float64)
    seen, count = np.cumsum(fails), np.arange(1.0, fails.size + 1.0)
    return _Asks(kept, fails, (seen - fails + 0.5) / count, _entropy(seen, count))


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
    kept, fails, rate, best = _usable_asks(failed)
    if not fails.any():
        return ItemEvidence(0.0, 0, 0, 0, 0, 0)
    owners = arms[kept]
    own_fails, own_asks = _before(fails, owners)
    parts = np.empty((STRENGTHS.size, fails.size))
    for j, strength in enumerate(STRENGTHS.tolist()):
        p = (own_fails + strength * rate) / (own_asks + strength)
        parts[j] = np.cumsum(np.where(fails > 0.0, np.log(p), np.log1p(-p)))
    value, at = _peak(parts - best)
    asked = np.bincount(owners[: at + 1])
    gone = np.bincount(owners[: at + 1], weights=fails[: at + 1], minlength=asked.size)
    arm = int(np.argmax((gone + rate[at]) / (asked + 1.0)))
    return ItemEvidence(value, arm, int(gone[arm]), int(asked[arm]), int(gone.sum()), int(asked.sum()))


def _before(fails: FloatArray, arms: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Of each ask, the failures and the asks of its item before it."""
    order = np.argsort(arms, kind="stable")
    starts, lengths = stretches(arms[order])
    total = np.cumsum(fails[order]) - fails[order]
    failures = np.empty(arms.size)
    failures[order] = total - np.repeat(total[starts], lengths)
    return failures, places(arms).astype(np.float64)


def _entropy(successes: FloatArray, count: FloatArray) -> FloatArray:
    """k·log(k/n) + (n−k)·log(1−k/n)."""
    rest = count - successes
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(successes > 0.0, successes * np.log(successes / count), 0.0)
        second = np.where(rest > 0.0, rest * np.log(rest / count), 0.0)
    total: FloatArray = first + second
    return total


def copied_columns(rows: FloatArray) -> list[tuple[int, int]]:
    """Pairs (first, copy) of columns of (n, d) of which one follows from the other; each is a copy at most once.

    A constant column is a copy of none. With fewer than three rows nothing is said.
    """
    if len(rows) < 3:
        return []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        away = rows - rows[0]
        away /= np.abs(away).max(axis=0)
        away -= away.mean(axis=0)
        away /= np.sqrt((away**2).sum(axis=0))
        together = np.abs(away.T @ away)
    pairs: list[tuple[int, int]] = []
    copied: set[int] = set()
    for first, second in np.argwhere(np.triu(together, 1) > _ALMOST).tolist():
        if first not in copied and second not in copied:
            pairs.append((first, second))
            copied.add(second)
    return pairs
