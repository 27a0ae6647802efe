"""The ways in which a group may hide two, and bets that its items have means above and below a common one.

*Splits.* A split of n items is a set S and the rest. Its weight is s(n − s)/(n(n² − 1)/6) / binom(n, s) for s items in
S: all weights sum to 1, and halves weigh more than one item that stands apart. S and its complement are two splits. Up
to `MOST_ITEMS` items every split is looked at. Of more items only those that cut the line of the items' means, at most
`MOST_CUTS` of them: a sum of fewer terms, none negative, is never too large.

*Bets.* For a candidate μ of the mean of all items of a group, a result x gives an *up* factor u(x, μ) and a *down*
factor d(x, μ), each of mean at most 1 if μ is the mean, given all that was known before. A split S wins

    A(μ)·B(μ),   A = mean over the bets of Π_{x of S} u,   B = mean over the bets of Π_{x of the rest} d,

a supermartingale that starts at 1 at the true μ; which item was chosen when is a matter of the past. The true μ is
unknown, so the least over all μ is taken, and the mean over the splits, by their weights, is an e-process again.

u falls and d grows with μ. So between two points of a grid A·B is at least A at the right times B at the left point:
the least over the cells is a bound for all μ, and the grid is made finer around the cells that may hold the minimum.

Factors (docs/EVIDENCE.md, section 12):
- bounded results, from 0 to 1 after scaling: u = 1 − c + c·x/μ, d = 1 − c + c·(1 − x)/(1 − μ);
- a variance of at most 1: u = f(λ(x − μ))/(1 + λ²/2), d = f(λ(μ − x))/(1 + λ²/2), f(y) = 1 + z + z²/2, z = max(y, −1);
- symmetric noise: u = 1 + 0.98·tanh(κ(x − μ)/s), d = 1 − 0.98·tanh(κ(x − μ)/s), with s from results before x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

from coterie.problem.checks import FloatArray, IntArray

MOST_ITEMS = 10
MOST_CUTS = 64

SHARES = np.array([0.1, 0.4, 0.9])
"""c, of bounded results."""

SLOPES = np.array([0.0, 0.35, 0.8, 1.8])
"""λ, of results of bounded variance."""

STEEPNESSES = np.array([0.0, 0.4, 0.8, 1.6])
"""κ, of symmetric noise."""

NEARLY = 0.98

MOST_RESULTS = 5_000
"""Of a group, that are looked at: the first ones; of n items 4·n, if that is more, and ten times as many at most."""

_CELLS = 200

_KEPT = (64, 16, 4, 4)  # splits that are looked at again, after each stage

_NUMBERS_AT_ONCE = 2**21

Factors = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Splits:
    """P splits of n items. `rows` (n): items of one row are never split; `log_weights` (P).

    `inside` (P, rows), 0 and 1, where these are all splits there are; None: the first rows, or the last ones.
    """

    rows: IntArray
    log_weights: FloatArray
    inside: FloatArray | None

    @property
    def every(self) -> bool:
        """Whether no split is left out."""
        return self.inside is not None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows.max()) + 1

    def sums(self, table: FloatArray) -> FloatArray:
        """(P, …): the sum over the rows of S, of a table (rows, …)."""
        if self.inside is not None:
            inner: FloatArray = np.tensordot(self.inside, table, axes=1)
            return inner
        before = np.cumsum(table, axis=0)[:-1]
        return np.concatenate([before, table.sum(axis=0) - before])


def splits_of(means: FloatArray) -> Splits:
    """The splits of items with these means (n).

    Of means that tie to nine digits, the one of the item with the lower number is the lower one.
    """
    n = means.size
    if n <= MOST_ITEMS:
        return _all_splits(n)
    cuts = np.unique(np.linspace(1, n - 1, min(n - 1, MOST_CUTS)).round().astype(np.int64))
    rows = np.empty(n, dtype=np.int64)
    span = np.ptp(means)
    along = np.round((means - means.min()) / span, 9) if span > 0.0 else np.zeros(n)
    rows[np.argsort(along, kind="stable")] = np.searchsorted(cuts, np.arange(n), side="right")
    return Splits(rows, np.concatenate([_log_weight(cuts, n), _log_weight(n - cuts, n)]), None)


@lru_cache(maxsize=MOST_ITEMS)
def _all_splits(n: int) -> Splits:
    inside = ((np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1).astype(np.float64)
    return Splits(np.arange(n), _log_weight(inside.sum(axis=1), n), inside)


def _log_weight(size: FloatArray | IntArray, n: int) -> FloatArray:
    choices = gammaln(n + 1.0) - gammaln(size + 1.0) - gammaln(n - size + 1.0)
    log_weight: FloatArray = np.log(size * (n - size) * 6.0) - math.log(n * (n**2 - 1.0)) - choices
    return log_weight


def bounded_factors(where: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log u and log d, (n, bets, means), of results (n, 1) between 0 and 1."""
    x, c = where[:, 0, None, None], SHARES[:, None]
    low, high = np.clip(mean, 1e-9, None), np.clip(1.0 - mean, 1e-9, None)
    return np.log(1.0 - c + c * x / low), np.log(1.0 - c + c * (1.0 - x) / high)


def variance_factors(where: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log u and log d, (n, bets, means), of results (n, 1) with a variance of at most 1."""
    slope = SLOPES[:, None]
    y = slope * (where[:, 0, None, None] - mean)
    norm = np.log1p(0.5 * slope**2)
    up, down = np.maximum(y, -1.0), np.maximum(-y, -1.0)
    return np.log1p(up + 0.5 * up**2) - norm, np.log1p(down + 0.5 * down**2) - norm


def symmetric_factors(where: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log u and log d, (n, bets, means), of rows (result, s) of (n, 2); s is infinite where nothing is known of it."""
    y = NEARLY * np.tanh(STEEPNESSES[:, None] * ((where[:, 0, None, None] - mean) / where[:, 1, None, None]))
    return np.log1p(y), np.log1p(-y)


def bet_evidence(
    factors: Factors, where: FloatArray, arms: IntArray, splits: Splits, log_weights: FloatArray, ends: bool
) -> float:
    """The log-evidence that the items of a group do not have one mean.

    Parameters
    ----------
    factors
        log u and log d.
    where
        (N, …), the results of the group, the value in the first column.
    arms
        (N), the item of each result, from 0.
    splits, log_weights
        The splits, and their weights, which may depend on what was known before the first of these results.
    ends
        Whether 0 and 1 are the least and the largest mean that there may be. If not, one of the bets must be to stay
        out, for means beyond all results.
    """
    lo, hi = (0.0, 1.0) if ends else (float(where[:, 0].min()), float(where[:, 0].max()))
    looked = np.arange(log_weights.size)  # at fewer splits with every stage
    bounds = np.full(looked.size, -np.inf)
    beyond = np.full(looked.size, np.inf)
    for stage, kept in enumerate(_KEPT):
        mean = np.linspace(lo, hi, _CELLS + 1)
        up, down = _by_row(factors, where, splits.rows[arms], splits.n_rows, mean)
        bets = up.shape[1]
        a = logsumexp(splits.sums(up)[looked], axis=1) - math.log(bets)
        b = logsumexp(down.sum(axis=0) - splits.sums(down)[looked], axis=1) - math.log(bets)
        if stage == 0 and not ends:  # below all results only A can be relied on, above them only B
            beyond = np.minimum(a[:, 0], b[:, -1]) - math.log(bets)
        cells, least = a[:, 1:] + b[:, :-1], np.minimum((a + b).min(axis=1), beyond[looked])
        bounds[looked] = np.maximum(bounds[looked], np.minimum(cells.min(axis=1), beyond[looked]))
        best = np.argsort(-(least + log_weights[looked]), kind="stable")[:kept]
        if stage == 0:
            first = looked[best]
        may_hold = np.flatnonzero((cells[best] <= least[best, None]).any(axis=0))
        if may_hold.size == 0 or hi <= lo:
            break
        looked = looked[best]
        lo, hi = float(mean[may_hold[0]]), float(mean[may_hold[-1] + 1])
    return float(logsumexp(bounds[first] + log_weights[first]))


def _by_row(
    factors: Factors, where: FloatArray, rows: IntArray, n: int, mean: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The sums of log u and log d over the results of each row of items: (n, bets, means)."""
    step = max(1, _NUMBERS_AT_ONCE // (4 * mean.size))
    totals: tuple[FloatArray, FloatArray] | None = None
    for first in range(0, len(rows), step):
        up, down = factors(where[first : first + step], mean)
        if totals is None:
            totals = np.zeros((n, *up.shape[1:])), np.zeros((n, *up.shape[1:]))
        for total, part in zip(totals, (up, down), strict=True):
            np.add.at(total, rows[first : first + step], part)
    assert totals is not None
    return totals


def scales_before(arms: IntArray, x: FloatArray) -> FloatArray:
    """(N): how far results of one item are from one another, as the results before each one show it.

    1.2533 times the mean distance of a result from the mean of its item's earlier ones, which is the standard deviation
    of Gaussian noise; infinite while fewer than three such distances are known, or all are 0.
    """
    scales = np.full(x.size, np.inf)
    counts: dict[int, int] = {}
    means: dict[int, float] = {}
    total, known = 0.0, 0
    for i, (arm, value) in enumerate(zip(arms.tolist(), x.tolist(), strict=True)):
        if known >= 3 and total > 0.0:
            scales[i] = 1.2533 * total / known
        m = counts.get(arm, 0)
        mean = means.get(arm, 0.0)
        if m > 0:
            total += abs(value - mean) * math.sqrt(m / (m + 1.0))
            known += 1
        counts[arm], means[arm] = m + 1, mean + (value - mean) / (m + 1)
    return scales
