"""Measurements as prefix sums, and the proof that two arms differ, which all peers share.

**The threshold.** Under μ_i = μ_j, the contrasts of two arms' results, paired by position (one result of i against the
mean of R results of j), are independent N(0, v·I) with v = 1 + 1/R. Their Gaussian mixture (`mixture_log` of
coterie.theory.evidence) reaches log(1/a) for any count with probability at most a, by Ville's inequality. This is an
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

from coterie import Instance
from coterie.theory.evidence import BLOCK_RATIOS, RATIO_WEIGHTS, mixture_log

FINE = 64
"""Up to so many, every count is kept; then 32 in each octave. So twice a kept count is kept, as R = 2, 4, 8 need."""


def kept_counts(octaves: int = 24) -> np.ndarray:
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


def floor_level(counts: np.ndarray) -> np.ndarray:
    """How many kept counts are at most `counts`: 0 if there is none."""
    return np.searchsorted(KEPT, counts, side="right")


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

    A block of c results is drawn as one sum, c·μ + √c·N(0, I), because nobody reads inside a block.
    """

    def __init__(self, instance: Instance, rng: np.random.Generator) -> None:
        self.means_of = instance.means
        self.rng = rng
        self.level = np.zeros(instance.n_arms, dtype=np.int64)
        self.sums = np.zeros((instance.n_arms, 4, instance.dim))

    @property
    def pulls(self) -> np.ndarray:
        return np.where(self.level > 0, KEPT[self.level - 1], 0)

    @property
    def t(self) -> int:
        return int(self.pulls.sum())

    def means(self) -> np.ndarray:
        """The running means; 0 for an arm that was never measured."""
        newest = self.sums[np.arange(len(self.level)), self.level]
        means: np.ndarray = newest / np.maximum(self.pulls, 1)[:, None]
        return means

    def cost(self, arms: np.ndarray, level: int) -> int:
        """Measurements that it takes to bring these arms to this level."""
        return int(np.maximum(KEPT[level - 1] - self.pulls[arms], 0).sum())

    def raise_to(self, arms: np.ndarray, level: int) -> None:
        """Measure these arms, level by level, until each has at least KEPT[level−1] results."""
        while level >= self.sums.shape[1]:
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)], axis=1)
        start = int(self.level[arms].min(initial=level))
        for to in range(start + 1, level + 1):
            those = arms[self.level[arms] == to - 1]
            if those.size:
                block = KEPT[to - 1] - (KEPT[to - 2] if to > 1 else 0)
                noise = self.rng.standard_normal((those.size, self.sums.shape[2]))
                self.sums[those, to] = (
                    self.sums[those, to - 1] + block * self.means_of[those] + math.sqrt(block) * noise
                )
                self.level[those] = to

    def equal_evidence(self, arms: np.ndarray, rival: int) -> np.ndarray:
        """Log-evidence that arms differ from the rival, one result against one (R = 1), over the shorter stack."""
        return self._contrast(arms, np.full(arms.size, rival), np.ones(arms.size, dtype=np.int64))

    def evidence(self, arms: np.ndarray, rivals: np.ndarray) -> np.ndarray:
        """The same with the weighted maximum over R and sides of coterie.theory.evidence, for stacks of any heights."""
        singles = np.concatenate([rivals if swapped else arms for swapped, _, _ in SIDES])
        blocked = np.concatenate([arms if swapped else rivals for swapped, _, _ in SIDES])
        found = self._contrast(singles, blocked, np.repeat([ratio for _, ratio, _ in SIDES], arms.size))
        weights = np.log([weight for _, _, weight in SIDES])
        best: np.ndarray = (found.reshape(len(SIDES), arms.size) + weights[:, None]).max(axis=0)
        return best

    def _contrast(self, singles: np.ndarray, blocked: np.ndarray, ratio: np.ndarray) -> np.ndarray:
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
