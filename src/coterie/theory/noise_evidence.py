"""Evidence that the noise is not the one that was stated.

*From differences.* Two results of one item (or of two items that are alike) that were both decided on before either was
known: h = (x − x')/√2 in units of the stated noise is N(0, I), whatever the mean. Over such pairs, in the order in
which they were decided on, Σ_j w_j·Π f_j(h)/φ(h) is a martingale that starts at 1; the alternatives f_j are other
standard deviations, heavy tails and outliers, in all numbers of a result at once or in a single one.

*From single items.* Where the next item is chosen after every result, the second of two results was asked for because
of the first, and their difference is not N(0, I) any more. But at the true means the likelihood ratio of any
predictions is a martingale, for any rule of sampling, so dividing by the largest likelihood over all means gives an
e-process. The first result of an item is only looked at to predict the others: with n results, S = Σ(x − x̄)² over all
n and S' the same without the first, the alternative N(·, σ²) gives, for each number of a result,

    log E = −(n−1)·log σ − ½·log n + S'/2 − S/(2σ²),

summed over the items. It costs ½·log n + ½ for each item and number, and so sees only what is much larger or smaller.

*At most.* If only a bound on the covariance was stated, Q = ‖h‖²/d has a mean of at most 1, whatever the distribution,
and Π (1 + λ·(Q − 1)) with 0 < λ < 1 is a supermartingale. That sees noise that is larger than stated, and nothing else.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.theory.prefix_ranks import places

DEVIATIONS = (0.5, 0.8, 1.15, 1.4, 2.0, 4.0)
"""Of the alternatives, in units of the stated noise."""

OUTLIERS = (0.1, 7.0)
"""An alternative: this share of the differences has this standard deviation, the others are as stated."""

STAKES = (0.02, 0.1, 0.3, 0.7)
"""λ where only a bound was stated."""

SMALLER, LARGER, TAILS = "smaller", "larger", "tails"
_KINDS = (*(SMALLER if sd < 1.0 else LARGER for sd in DEVIATIONS), TAILS, TAILS)


class NoiseEvidence(NamedTuple):
    """The largest log-evidence so far, what speaks most for it, and after how many pairs or results it was reached."""

    value: float
    kind: str  # SMALLER, LARGER or TAILS
    after: int


def _ratios(h: FloatArray) -> FloatArray:
    """log f_j(h)/φ(h) of numbers (n), as (n, alternatives)."""
    squares = h * h
    found = [-math.log(sd) + 0.5 * squares * (1.0 - 1.0 / sd**2) for sd in DEVIATIONS]
    log_normal = -0.5 * squares - 0.5 * math.log(2.0 * math.pi)
    student = math.log(2.0 / (math.pi * math.sqrt(3.0))) - 2.0 * np.log1p(squares / 3.0)  # t with 3 degrees of freedom
    found.append(student - log_normal)
    share, sd = OUTLIERS
    far = math.log(share / sd) + 0.5 * squares * (1.0 - 1.0 / sd**2)
    found.append(np.logaddexp(math.log(1.0 - share), far))
    return np.stack(found, axis=1)


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
        for one in alone:
            course = np.logaddexp(course, np.logaddexp.reduce(one, axis=1) + weight - math.log(2.0 * dim))
            better = one.max(axis=1) > strongest
            leading[better] = np.argmax(one[better], axis=1)
            strongest = np.maximum(strongest, one.max(axis=1))
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
    course = np.logaddexp.reduce(logs, axis=0) - math.log(len(STAKES))
    at = int(np.argmax(course))
    return NoiseEvidence(max(float(course[at]), 0.0), LARGER, at + 1)


def item_evidence_against_noise(arms: IntArray, white: FloatArray) -> NoiseEvidence:
    """The evidence of results (n, d), in units of the stated noise, of these arms (n), in the order of counting."""
    n, dim = white.shape
    if n == 0:
        return NoiseEvidence(0.0, LARGER, 0)
    order = np.argsort(arms, kind="stable")
    its = arms[order]
    starts = np.flatnonzero(np.diff(its, prepend=-1))
    lengths = np.diff(starts, append=n)
    count = places(its) + 1.0
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
    course = np.logaddexp.reduce(logs, axis=0) - math.log(len(DEVIATIONS))
    at = int(np.argmax(course))
    return NoiseEvidence(max(float(course[at]), 0.0), _KINDS[int(np.argmax([one[at] for one in logs]))], at + 1)


def _within(steps: FloatArray, starts: IntArray, lengths: IntArray) -> FloatArray:
    """Sums so far within each stretch, each stretch summed for itself."""
    found = np.empty(steps.size)
    for length in np.unique(lengths).tolist():  # those of one length at once: there may be a million
        at = starts[lengths == length][:, None] + np.arange(length)
        found[at] = np.cumsum(steps[at], axis=1)
    return found
