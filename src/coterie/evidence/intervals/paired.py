"""Pairs of items under a noise of known size: which means differ, and intervals for how much, by paired contrasts.

Of two items, one result of the first is set against the mean of R results of the second, in the order of both stacks
(docs/CROC.md, section 2). For every θ the mixture of `coterie.evidence.pairs.mixture_log`, taken at the contrasts
minus θ, reaches log(1/a) with probability at most a if θ is the difference of the means. So all θ that it has not
refuted at any count form a confidence set that holds at all counts at once: a ball around the mean contrast.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from coterie.evidence.intervals.stacks import Stacks, coarse_counts, fine_counts
from coterie.evidence.pairs import BLOCK_RATIOS, RATIO_WEIGHTS, SCALE_WEIGHTS, SCALES, mixture_log
from coterie.problem.checks import FloatArray, IntArray

_HALVINGS = 60


def critical_energy(n: IntArray, dim: int, level: float) -> FloatArray:
    """The energy n‖Ȳ_n‖²/v at which `mixture_log` reaches the level, for each n >= 1; never too small."""
    counts = np.asarray(n, dtype=np.float64)
    growth = SCALES * counts[..., None]
    single = (level - np.log(SCALE_WEIGHTS) + 0.5 * dim * np.log1p(growth)) * 2.0 * (1.0 + growth) / growth
    high = single.min(axis=-1)  # there one scale alone reaches it
    low = np.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        reached = mixture_log(counts, middle, dim) >= level
        high, low = np.where(reached, middle, high), np.where(reached, low, middle)
    return np.asarray(high)


class Step(NamedTuple):
    """n contrasts of one result against the mean of R, at the places `first` and `second` of the counts read."""

    n: int
    ratio: int
    first: int
    second: int
    log_weight: float


def steps_of(counts: IntArray) -> list[Step]:
    """All numbers of contrasts and block ratios that these counts allow, most results first."""
    place = {count: i for i, count in enumerate(counts.tolist())}
    return [
        Step(count // ratio, ratio, place[count // ratio], place[count], math.log(weight))
        for count in reversed(counts.tolist())
        for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True)
        if count % ratio == 0 and count // ratio in place
    ]


def _thresholds(steps: list[Step], dim: int, level: float) -> FloatArray:
    """The energy that each step needs."""
    energies = np.empty(len(steps))
    for weight in {step.log_weight for step in steps}:
        places = [i for i, step in enumerate(steps) if step.log_weight == weight]
        energies[places] = critical_energy(np.array([steps[i].n for i in places]), dim, level - weight)
    return energies


def differing(stacks: Stacks, level: float) -> np.ndarray:
    """(M, M) whether paired evidence has reached the level: results in units in which the noise is I.

    It is read at all counts of CROC's grid so far and at the present counts. For two items with equal means the
    probability that it is ever true is at most e^(−level).
    """
    n_arms, dim = stacks.n_arms, stacks.dim
    differs = np.zeros((n_arms, n_arms), dtype=bool)
    counts = fine_counts(int(stacks.counts.max(initial=0)))
    steps = steps_of(counts)
    if not steps:
        return differs
    left, right = np.triu_indices(n_arms, 1)
    for now in present_counts(stacks, left, right):
        size, place = np.unique(now.n, return_inverse=True)
        needed = critical_energy(size, dim, level - now.log_weight)[place]
        moved = stacks.sums_of(now.first, now.n) / now.n[:, None]
        moved -= stacks.sums_of(now.second, now.n * now.ratio) / (now.n * now.ratio)[:, None]
        gap = stacks.firsts[now.first] - stacks.firsts[now.second] + moved
        met = np.einsum("ij,ij->i", gap, gap) * now.n / (1.0 + 1.0 / now.ratio) >= needed
        differs[now.first[met], now.second[met]] = differs[now.second[met], now.first[met]] = True
    left, right = still_open(differs, left, right)
    sums = stacks.sums(counts)
    for step, enough in zip(steps, _thresholds(steps, dim, level), strict=True):
        for first, second in sides_of(stacks, step, left, right):
            gap = _gap(stacks, sums, step, first, second)
            met = np.einsum("ij,ij->i", gap, gap) * (step.n / (1.0 + 1.0 / step.ratio)) >= enough
            differs[first[met], second[met]] = differs[second[met], first[met]] = True
        left, right = still_open(differs, left, right)
    return differs


class PresentCounts(NamedTuple):
    """Pairs, and the contrasts n (of each) that their present results allow for a block ratio R."""

    first: IntArray
    second: IntArray
    n: IntArray
    ratio: int
    log_weight: float


def present_counts(stacks: Stacks, left: IntArray, right: IntArray) -> Iterator[PresentCounts]:
    """The present counts of these pairs, for every block ratio and side, where there is at least one contrast."""
    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True):
        for first, second in ((left, right), (right, left))[: 1 if ratio == 1 else 2]:
            n = np.minimum(stacks.counts[first], stacks.counts[second] // ratio)
            some = n > 0
            if some.any():
                yield PresentCounts(first[some], second[some], n[some], ratio, math.log(weight))


def sides_of(stacks: Stacks, step: Step, left: IntArray, right: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Those of these pairs (first, second) that have the results of a step; for R > 1 both ways round."""
    for first, second in ((left, right), (right, left))[: 1 if step.ratio == 1 else 2]:
        ready = (stacks.counts[first] >= step.n) & (stacks.counts[second] >= step.n * step.ratio)
        if ready.any():
            yield first[ready], second[ready]


def still_open(differs: np.ndarray, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """Those of these pairs that were not found yet."""
    still = ~differs[left, right]
    return left[still], right[still]


def _gap(stacks: Stacks, sums: FloatArray, step: Step, first: IntArray, second: IntArray) -> FloatArray:
    moved = sums[first, step.first] / step.n - sums[second, step.second] / (step.n * step.ratio)
    return np.asarray(stacks.firsts[first] - stacks.firsts[second] + moved)


class _Balls:
    """Mean contrasts of all pairs and the radius of the ball around them, for all counts and ratios that are read.

    Items are in the order of their counts, most results first: those with enough results for a step come first.
    """

    def __init__(self, stacks: Stacks, dim: int, level: float) -> None:
        self.order = np.argsort(-stacks.counts, kind="stable")
        self._held = stacks.counts[self.order]
        counts = coarse_counts(int(stacks.counts.max(initial=0)))
        self._sums = stacks.sums(counts)[self.order]
        self._firsts = stacks.firsts[self.order]
        self._steps = steps_of(counts)
        self._thresholds = _thresholds(self._steps, dim, level)

    def __iter__(self) -> Iterator[tuple[int, int, FloatArray, float]]:
        """(a, b, gaps, radius): of the first a items (one result) and the first b (blocks), gaps (a, b, d)."""
        for step, needed in zip(self._steps, self._thresholds, strict=True):
            a, b = (int((self._held >= count).sum()) for count in (step.n, step.n * step.ratio))
            if b == 0:
                continue
            first = self._sums[:a, step.first] / step.n
            second = self._sums[:b, step.second] / (step.n * step.ratio)
            gaps = (self._firsts[:a, None] - self._firsts[None, :b]) + (first[:, None] - second[None])
            yield a, b, gaps, math.sqrt(needed * (1.0 + 1.0 / step.ratio) / step.n)

    def given(self, matrix: FloatArray) -> FloatArray:
        """A matrix of pairs (M, M, …) in the order of the items as they were given."""
        back = np.empty_like(matrix)
        back[np.ix_(self.order, self.order)] = matrix
        return back


def coordinate_bounds(stacks: Stacks, deviations: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """(M, M, d) lower and upper bounds of |θ_c| for every pair, θ the difference of the means.

    `deviations` (d): standard deviations (or more) of a result. Each bound of a pair and number is ever wrong with
    probability at most e^(−level); coordinates may depend on one another.
    """
    n_arms, dim = stacks.n_arms, stacks.dim
    low, high = np.full((n_arms, n_arms, dim), -np.inf), np.full((n_arms, n_arms, dim), np.inf)
    balls = _Balls(stacks, 1, level)
    for a, b, gaps, radius in balls:
        reach = radius * deviations
        np.maximum(low[:a, :b], gaps - reach, out=low[:a, :b])
        np.minimum(high[:a, :b], gaps + reach, out=high[:a, :b])
    low, high = balls.given(low), balls.given(high)
    return folded(np.maximum(low, -high.swapaxes(0, 1)), np.minimum(high, -low.swapaxes(0, 1)))


def folded(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds (M, M, d) of |θ| for all pairs from bounds of θ; 0 on the diagonal.

    Where bounds contradict one another (which has the probability of an error) nothing is known.
    """
    void = low > high
    lower = np.where(void, 0.0, np.maximum(np.maximum(low, -high), 0.0))
    upper = np.where(void, np.inf, np.maximum(-low, high))
    itself = np.arange(len(low))
    lower[itself, itself], upper[itself, itself] = 0.0, 0.0
    return lower, upper


def distance_bounds(stacks: Stacks, shape: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """(M, M) lower and upper bounds of ‖A·θ‖ for every pair, θ the difference of the means, A = `shape` (d, d).

    Results are in units in which the noise is I (or less). The bounds of a pair are ever wrong with probability at most
    e^(−level).
    """
    n_arms = stacks.n_arms
    lower, upper = np.zeros((n_arms, n_arms)), np.full((n_arms, n_arms), np.inf)
    stretch = float(np.linalg.norm(shape, 2))
    balls = _Balls(stacks, stacks.dim, level)
    for a, b, gaps, radius in balls:
        length = np.linalg.norm(gaps @ shape.T, axis=-1)
        np.maximum(lower[:a, :b], length - radius * stretch, out=lower[:a, :b])
        np.minimum(upper[:a, :b], length + radius * stretch, out=upper[:a, :b])
    lower, upper = balls.given(lower), balls.given(upper)
    lower, upper = np.maximum(lower, lower.T), np.minimum(upper, upper.T)
    void = lower > upper
    lower, upper = np.where(void, 0.0, lower), np.where(void, np.inf, upper)
    np.fill_diagonal(lower, 0.0)
    np.fill_diagonal(upper, 0.0)
    return lower, upper
