"""Measurements as prefix sums, and the proof that two arms differ, which all peers share.

**The threshold.** Under μ_i = μ_j, the contrasts of two arms' results, paired by position (one result of i against the
mean of R results of j), are independent N(0, v·I) with v = 1 + 1/R. Their Gaussian mixture (`mixture_log` of
coterie.evidence.pairs) reaches log(1/a) for any count with probability at most a, by Ville's inequality. This is an
event of the two arms' prepared stacks of results: it holds for all times and for every sampling rule. Put as a radius,
the pair is proven different once ‖mean_i − mean_j‖ exceeds `radius(n, R, d, log(1/a))`. There are at most
H = (M−K+1)(M−K)/2 pairs of equal arms, so with a = δ/H none of them is ever "proven" different, with probability at
least 1−δ (`pair_level`).

**From pairs to groups.** No test proves two arms equal, but K does. If r_1 … r_K are proven different from each other,
there is one in each group, and an arm proven different from all of them but r_k is in the group of r_k.

A more common proof has a confidence ball around each arm's mean. Two balls of squared radius c/n that must not touch
need a squared distance of 4c/n, the pair's own radius needs 2c/n: the peers are given the pair's, the stronger one.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from coterie.evidence.pairs import BLOCK_RATIOS, RATIO_WEIGHTS, mixture_log
from coterie.problem.checks import FloatArray, IntArray

FINE = 64
"""Up to so many, every count is kept; then 32 in each octave. So twice a kept count is kept, as R = 2, 4, 8 need."""


def kept_counts(octaves: int = 24) -> IntArray:
    """1, 2, …, 64, 66, …, 128, 132, …: the counts at which prefix sums are kept."""
    steps = [np.arange(1, FINE + 1)]
    steps += [2**i * np.arange(FINE // 2 + 1, FINE + 1) for i in range(1, octaves)]
    return np.concatenate(steps)


KEPT = kept_counts()

SIDES = [
    (swapped, ratio, weight)
    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True)
    for swapped in ((False, True) if ratio > 1 else (False,))
]
"""Which of the two arms is averaged in blocks, over how many, and the weight of that; together they weigh 1."""


def floor_level(counts: IntArray) -> IntArray:
    """How many kept counts are at most `counts`: 0 if there is none."""
    return np.asarray(np.searchsorted(KEPT, counts, side="right"))


def pair_level(n_arms: int, n_clusters: int, delta: float) -> float:
    """log(H/δ): what the evidence of a pair has to reach."""
    equal_pairs = (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2
    return math.log(max(1, equal_pairs) / delta)


def radius(n: int, ratio: int, dim: int, level: float) -> float:
    """The distance of two means beyond which the evidence of n contrasts exceeds `level`."""
    variance = 1.0 + 1.0 / ratio
    high = 2.0 * level + dim + 1.0
    while float(mixture_log(n, high, dim)) <= level:
        high *= 2.0
    energy = brentq(lambda e: float(mixture_log(n, e, dim)) - level, 0.0, high, xtol=1e-10)
    return math.sqrt(energy * variance / n)


class Stacks:
    """The arms' results so far: `sums[m, l]` is the sum of the first KEPT[l−1] results of arm m, `level[m]` the last l.

    `counts[m]` are all results of arm m; those beyond the last kept count wait in `totals[m]`.
    """

    def __init__(self, n_arms: int, dim: int) -> None:
        self.level = np.zeros(n_arms, dtype=np.int64)
        self.sums = np.zeros((n_arms, 4, dim))
        self.counts = np.zeros(n_arms, dtype=np.int64)
        self.totals = np.zeros((n_arms, dim))

    @property
    def pulls(self) -> IntArray:
        """The results of each arm that can be read: a kept count."""
        return np.where(self.level > 0, KEPT[self.level - 1], 0)

    @property
    def t(self) -> int:
        """The results of all arms that can be read."""
        return int(self.pulls.sum())

    def means(self) -> FloatArray:
        """The running means; 0 for an arm that was never measured."""
        newest = self.sums[np.arange(len(self.level)), self.level]
        means: FloatArray = newest / np.maximum(self.pulls, 1)[:, None]
        return means

    def add(self, arm: int, x: FloatArray) -> None:
        """One result."""
        self.totals[arm] += x
        self.counts[arm] += 1
        if self.counts[arm] == KEPT[self.level[arm]]:
            self._keep(np.array([arm]))

    def add_blocks(self, arms: IntArray, expected: FloatArray, noise: FloatArray) -> None:
        """So many results of each of these arms as it takes to their next kept counts, as a sum of two parts."""
        self.totals[arms] += expected
        self.totals[arms] += noise
        self.counts[arms] = KEPT[self.level[arms]]
        self._keep(arms)

    def _keep(self, arms: IntArray) -> None:
        self.level[arms] += 1
        while self.level[arms].max(initial=0) >= self.sums.shape[1]:
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)], axis=1)
        self.sums[arms, self.level[arms]] = self.totals[arms]

    def equal_evidence(self, arms: IntArray, rival: int) -> FloatArray:
        """Log-evidence that arms differ from the rival, one result against one (R = 1), over the shorter stack."""
        return self._contrast(arms, np.full(arms.size, rival), np.ones(arms.size, dtype=np.int64))

    def evidence(self, arms: IntArray, rivals: IntArray) -> FloatArray:
        """Log-evidence that arms differ from their rivals, for stacks of any heights.

        It is the weighted maximum over R and over which of the two is averaged of coterie.evidence.pairs.
        """
        singles = np.concatenate([rivals if swapped else arms for swapped, _, _ in SIDES])
        blocked = np.concatenate([arms if swapped else rivals for swapped, _, _ in SIDES])
        found = self._contrast(singles, blocked, np.repeat([ratio for _, ratio, _ in SIDES], arms.size))
        weights = np.log([weight for _, _, weight in SIDES])
        best: FloatArray = (found.reshape(len(SIDES), arms.size) + weights[:, None]).max(axis=0)
        return best

    def _contrast(self, singles: IntArray, blocked: IntArray, ratio: IntArray) -> FloatArray:
        """One result of a single against the mean of `ratio` results of a blocked arm, as often as there are."""
        pulls = self.pulls
        level = floor_level(np.minimum(pulls[singles], pulls[blocked] // ratio))
        found = np.full(singles.size, -np.inf)
        some = level > 0
        if some.any():
            n, r, low = KEPT[level[some] - 1], ratio[some], level[some]
            gap = self.sums[singles[some], low] - self.sums[blocked[some], floor_level(n * r)] / r[:, None]
            energy = (gap * gap).sum(axis=1) / (n * (1.0 + 1.0 / r))
            found[some] = mixture_log(n, energy, gap.shape[1])
        return found
