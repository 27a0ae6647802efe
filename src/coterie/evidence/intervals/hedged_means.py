"""Intervals for means of bounded results, counts, and results of a bounded variance, and for their differences.

Each is made from evidence against a mean m that falls on the one side of m and grows on the other (docs/INTERVALS.md):

- *betting*, results in [0, 1]: Π(1 + λ_i(x_i − m)) speaks against small m, Π(1 − λ_i(x_i − m)) against large ones;
  the λ_i are made from the stream before x_i (Waudby-Smith and Ramdas 2024).
- *catoni*, a variance of at most 1: Σ_j w_j·exp(±Σφ(λ_j(x_i − m)))/(1 + λ_j²/2)^n, φ Catoni's.
- *beta-binomial*, counts: the likelihood averaged over rates, against that of a rate.

The first two have each side at 2/a. A difference: all m_k − m_l at which the product of the evidence of both streams,
read in their common order, is below 1/a.

*Boxes*: intervals for the mean of every item at all counts at once, by betting, and for counts by the beta-binomial
mixture. Which rates of counts differ: universal inference. At n results of one item and n·R of the other, in the order
of both stacks, the likelihood of each averaged over rates is set against the largest likelihood that rates common to
both can have. That is at most the ratio to the true common rates, which is a martingale in n that starts at 1: if the
rates are equal, it ever reaches 1/a with probability at most a (Wasserman, Ramdas and Balakrishnan, 2020). Ratios R and
sides are joined as in docs/CROC.md, section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coterie.evidence.intervals.gaussian_means import VOID, Curve, Ends
from coterie.evidence.intervals.paired import folded, present_counts, sides_of, steps_of, still_open
from coterie.evidence.intervals.stacks import Stacks, coarse_counts, fine_counts
from coterie.problem.checks import FloatArray

BETS_FOR = 0.05
"""The error probability that bets on bounded results are made for."""

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


LAMBDAS: FloatArray = np.array([2.0**power for power in range(1, -12, -1)])
LAMBDA_WEIGHTS: FloatArray = np.array([0.04, 0.1, 0.2, 0.24, 0.2] + [0.11 * 0.5**i for i in range(8)])
"""Of Catoni's bets, in units of 1/σ; the weights add up to a little less than 1."""

CAP = 0.5
"""A bet loses at most this share."""

GRID = 256
"""Cells in which the ends of a difference are looked for; it is rounded outwards by one of each stream."""

_HALVINGS = 60
_FARTHEST = 1e100  # from the results: no mean is looked for beyond
_ENTRIES = 2**20  # of a matrix of places and results


@dataclass(frozen=True)
class Evidence:
    """Evidence against means m: max(falling(m), rising(m)) on the log scale, m in [lo, hi].

    Both sides are equal somewhere in `inner`; a side that is unbounded is looked at in steps from there.
    """

    falling: Curve
    rising: Curve
    lo: float
    hi: float
    inner: tuple[float, float]

    def at(self, m: float) -> float:
        """The evidence against one mean."""
        return max(_value(self.falling, m), _value(self.rising, m))

    def center(self) -> float:
        """Where both sides are equal: the evidence is least there."""
        low, high = self.inner
        if low == high:
            return low
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if _value(self.falling, middle) > _value(self.rising, middle):
                low = middle
            else:
                high = middle
        return 0.5 * (low + high)

    def low_end(self, level: float, center: float) -> float:
        """The largest mean below the center against which the evidence reaches the level, from below; `lo` if none."""
        return self._end(self.falling, self.lo, center, -1.0, level)

    def high_end(self, level: float, center: float) -> float:
        """The same above the center, from above."""
        return self._end(self.rising, self.hi, center, 1.0, level)

    def interval(self, level: float) -> Ends:
        """All means against which the evidence is below the level."""
        center = self.center()
        if self.at(center) >= level:
            return VOID
        return self.low_end(level, center), self.high_end(level, center)

    def _end(self, curve: Curve, end: float, inside: float, sign: float, level: float) -> float:
        if math.isfinite(end):
            refuted = end
            if _value(curve, refuted) < level:
                return end
        else:
            step = sign * (self.inner[1] - self.inner[0] or 1.0)
            refuted = inside + step
            while _value(curve, refuted) < level:
                if abs(step) > _FARTHEST:
                    return end
                inside, step = refuted, 2.0 * step
                refuted = inside + step
        for _ in range(_HALVINGS):
            middle = 0.5 * (refuted + inside)
            refuted, inside = (middle, inside) if _value(curve, middle) >= level else (refuted, middle)
        return refuted


def _value(curve: Curve, m: float) -> float:
    return float(curve(np.array([m]))[0])


def difference_interval(first: Evidence, second: Evidence, level: float) -> Ends:
    """All m − m' at which the evidence against m in the first stream and m' in the second adds up below the level."""
    centers = first.center(), second.center()
    floors = first.at(centers[0]), second.at(centers[1])
    if sum(floors) >= level:
        return VOID
    high = _largest_difference(first, second, centers, floors, level)
    low = -_largest_difference(second, first, centers[::-1], floors[::-1], level)
    return low, high


def _largest_difference(
    first: Evidence, second: Evidence, centers: tuple[float, ...], floors: tuple[float, ...], level: float
) -> float:
    """The largest m − m', at most a cell of each grid too large: m is above its center, m' below its own."""
    end, other_end = first.high_end(level - floors[1], centers[0]), second.low_end(level - floors[0], centers[1])
    if not (math.isfinite(end) and math.isfinite(other_end)):
        return math.inf
    places, others = np.linspace(centers[0], end, GRID + 1), np.linspace(other_end, centers[1], GRID + 1)
    left = level - np.maximum(first.rising(places), floors[0])[:-1]
    # For each place the last of the others that the evidence left over refutes: `against` falls along the others.
    against = np.minimum.accumulate(np.concatenate([[math.inf], second.falling(others)[1:]]))
    last = np.searchsorted(-against, -left, side="right") - 1
    return float((places[1:] - others[last]).max())


def _summed(terms: Curve, n: int) -> Curve:
    """Σ over the results of terms(m) (places, n), some places at a time."""
    some = max(1, _ENTRIES // max(1, n))

    def curve(m: FloatArray) -> FloatArray:
        return np.concatenate([terms(m[i : i + some, None]).sum(axis=1) for i in range(0, len(m), some)])

    return curve


# Bounded results.


def bets(x: FloatArray, log_two_over_a: float) -> FloatArray:
    """λ_i for results in [0, 1]: √(2·log(2/a)/(v̂_{i−1}·i·log(1+i))), v̂ the variance so far, which starts at ¼."""
    i = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (1.0 + i)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (1.0 + i)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2.0 * log_two_over_a / (before * i * np.log1p(i))))


def betting_interval(x: FloatArray, log_two_over_a: float, made_for: float | None = None) -> Ends:
    """For the mean of results in [0, 1]: against means outside, a side of the bets reached 2/a at some length so far.

    `made_for`: the log(2/a) that the bets are made for, if it is not the one that they have to reach.
    """
    if not len(x):
        return 0.0, 1.0
    amounts = bets(x, log_two_over_a if made_for is None else made_for)
    low, high = (_refuted_by_bets(values, amounts, log_two_over_a) for values in (x, 1.0 - x))
    return (low, 1.0 - high) if low < 1.0 - high else VOID


def _refuted_by_bets(x: FloatArray, amounts: FloatArray, level: float) -> float:
    """The largest m that bets on larger results have refuted. What they win falls in m, so m is found by halving."""
    refuted, inside = 0.0, 1.0
    for _ in range(_HALVINGS):
        m = 0.5 * (refuted + inside)
        won = np.cumsum(np.log1p(np.minimum(amounts, CAP / m) * (x - m)))
        refuted, inside = (m, inside) if won.max() >= level else (refuted, m)
    return refuted


def betting_evidence(x: FloatArray, log_two_over_a: float) -> Evidence:
    """Evidence against the mean of results in [0, 1], all of them read: half of the capital on each side."""
    amounts = bets(x, log_two_over_a)
    tiny = np.finfo(np.float64).tiny

    def won(m: FloatArray) -> FloatArray:
        return np.log1p(np.minimum(amounts, CAP / np.maximum(m, tiny)) * (x - m))

    def lost(m: FloatArray) -> FloatArray:
        return np.log1p(-np.minimum(amounts, CAP / np.maximum(1.0 - m, tiny)) * (x - m))

    up, down = _summed(won, len(x)), _summed(lost, len(x))
    half = math.log(2.0)
    return Evidence(lambda m: up(m) - half, lambda m: down(m) - half, 0.0, 1.0, (0.0, 1.0))


# A variance of at most 1.


def catoni_evidence(x: FloatArray, precision: FloatArray | float = 1.0) -> Evidence:
    """Evidence against the mean of results with a variance of at most 1, whatever their law.

    `precision`: 1/σ of each result, if their largest standard deviations are others.
    """
    n = len(x)
    spent = np.log(LAMBDA_WEIGHTS) - n * np.log1p(0.5 * LAMBDAS**2) - math.log(2.0)
    moved = x - x[0] if n else x
    origin = float(x[0]) if n else 0.0

    some = max(1, _ENTRIES // max(1, n * LAMBDAS.size))

    def side(sign: float) -> Curve:
        def curve(m: FloatArray) -> FloatArray:
            parts = []
            for i in range(0, len(m), some):
                away = precision * (moved - (m[i : i + some, None, None] - origin))
                bets = LAMBDAS[:, None] * away  # (places, λ, n)
                parts.append(np.logaddexp.reduce(sign * _influence(bets).sum(axis=2) + spent, axis=1))
            return np.concatenate(parts)

        return curve

    # Below all results every bet wins, and above all of them every one loses.
    inner = (origin + float(moved.min(initial=0.0)), origin + float(moved.max(initial=0.0)))
    return Evidence(side(1.0), side(-1.0), -math.inf, math.inf, inner)


def _influence(y: FloatArray) -> FloatArray:
    """Catoni's φ: ±log(1 + |y| + y²/2)."""
    return np.asarray(np.copysign(np.log1p(np.abs(y) + 0.5 * y * y), y))


# Counts.


def rate_evidence(successes: float, trials: float) -> Evidence:
    """Evidence against rates, of so many successes out of independent trials."""
    from scipy.special import betaln, xlog1py, xlogy  # here: it takes a while to load

    averaged = float(betaln(successes + 0.5, trials - successes + 0.5) - betaln(0.5, 0.5))
    rate = successes / trials if trials else 0.5

    def against(p: FloatArray) -> FloatArray:
        return np.asarray(averaged - xlogy(successes, p) - xlog1py(trials - successes, -p))

    def falling(p: FloatArray) -> FloatArray:
        return np.where(p < rate, against(p), -math.inf if trials else 0.0)

    def rising(p: FloatArray) -> FloatArray:
        return np.where(p < rate, -math.inf if trials else 0.0, against(p))

    return Evidence(falling, rising, 0.0, 1.0, (rate, rate))
