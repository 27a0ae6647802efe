"""How likely the estimate is wrong, P_w, and where (docs/CROC.md, section 7). Nothing here enters the proof."""

from __future__ import annotations

import math

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from tests.oracles.croc import rule
from tests.oracles.croc.pairs import Stacks
from tests.oracles.croc.partitions import Partition, cut_worth, log_ways, ordered_sum, squared


def _unlikely(margin: float) -> float:
    return math.exp(-max(margin, 0.0))


class Risk:
    """P_w with its parts, as of the last full look, but for single arms that were looked at again."""

    def __init__(self, stacks: Stacks, n_arms: int) -> None:
        self._stacks = stacks
        self.margin = [math.inf] * n_arms  # smallest D_mk of the arm
        self.rival = [0] * n_arms  # the group k of it
        self._unsure = [0.0] * n_arms  # Σ_k e^−D_mk
        self.total = self._of_arms = 0.0
        self.merge: tuple[float, int, int, int] = (math.inf, 0, 0, 0)  # margin; group to cut, groups to merge
        self.chance: tuple[float, int, int] = (0.0, 0, 0)  # of two groups to be one, the largest; and the groups

    def _look_at_arm(self, m: int, guess: Partition) -> float:
        """D_mk of one arm. Returns what it costs where it is, times two; 0 for an arm that is alone."""
        home, n = int(guess.labels[m]), float(self._stacks.count(m))
        self.margin[m], self.rival[m], self._unsure[m] = math.inf, home, 0.0
        if (guess.labels == home).sum() == 1:
            return 0.0
        gaps = squared(self._stacks.mean(m) - guess.centers)
        own = float(gaps[home] * n * guess.totals[home] / (guess.totals[home] - n))
        for k in range(len(guess.totals)):
            if k != home:
                margin = 0.5 * (float(gaps[k] * n * guess.totals[k] / (n + guess.totals[k])) - own)
                if margin < self.margin[m]:
                    self.margin[m], self.rival[m] = margin, k
                self._unsure[m] += _unlikely(margin)
        return own

    def look_again(self, arms: list[int], guess: Partition) -> float:
        """P_w with D_mk of these arms anew; all else stays as it was."""
        before = self._of_arms
        for m in arms:
            self._of_arms -= self._unsure[m]
            self._look_at_arm(m, guess)
            self._of_arms += self._unsure[m]
        self.total += self._of_arms - before
        return self.total

    def look(self, guess: Partition) -> float:
        """P_w from every arm and every group."""
        own = [self._look_at_arm(m, guess) for m in range(len(guess.labels))]
        self.total = self._of_arms = float(ordered_sum(self._unsure))
        self.merge, self.chance = (math.inf, 0, 0, 0), (0.0, 0, 0)
        points, pulls, dim, groups = (
            self._stacks.means,
            self._stacks.pulls,
            guess.centers.shape[1],
            range(len(guess.totals)),
        )
        cuts = [_best_gain(k, guess, own, points, pulls) for k in groups]
        for k in groups:
            for j in range(k):
                together = guess.totals[k] * guess.totals[j] / (guess.totals[k] + guess.totals[j])
                cost = float(squared(guess.centers[k] - guess.centers[j])) * together  # C_kl
                a, b = int((guess.labels == k).sum()), int((guess.labels == j).sum())
                chance = _by_chance(a, b, cost, dim)
                self.total += chance
                if chance > self.chance[0]:
                    self.chance = chance, k, j
                apart = cut_worth(cost, a, b, together, dim)
                for h in groups:
                    gain, weight, worth = cuts[h]
                    if h not in (k, j) and gain >= 0.0:
                        fitted = 0.5 * dim * max(0.0, math.log(together / weight))
                        margin = max(0.5 * (cost - gain) - fitted, apart - worth)
                        self.total += _unlikely(margin)
                        if margin < self.merge[0]:
                            self.merge = margin, h, k, j
        return self.total


def _best_gain(
    k: int, guess: Partition, own: list[float], points: FloatArray, pulls: IntArray
) -> tuple[float, float, float]:
    """Of cutting group k: the larger gain of its costliest arm alone and 2-means, its weight; and the larger worth.

    A gain of −inf if the group is one arm; a worth of −inf, and a weight of 1, if all its arms are in one place.
    """
    members, dim = np.flatnonzero(guess.labels == k).tolist(), points.shape[1]
    if len(members) < 2:
        return -math.inf, 1.0, -math.inf
    far = max(members, key=lambda m: own[m])
    gain = own[far]
    if gain == 0.0:
        return 0.0, 1.0, -math.inf
    weight = float(pulls[far] * (guess.totals[k] - pulls[far]) / guess.totals[k])
    worth = cut_worth(gain, 1, len(members) - 1, weight, dim)
    if len(members) > 2:
        better, its_weight, part = guess.two_means(k, far, points, pulls)
        worth = max(worth, cut_worth(better, len(part), len(members) - len(part), its_weight, dim))
        if better > gain:
            gain, weight = better, its_weight
    return gain, weight, worth


def _by_chance(a: int, b: int, cost: float, dim: int) -> float:
    """Groups of a and b arms are one by chance: the number of splits times the tail of a χ² with d degrees at C_kl."""
    n = a + b
    splits = max(min((n - 1.0) * math.log(2.0), dim * math.log(n)), rule.SIZE_PRICE * log_ways(a, b))
    tail = max(0.0, (0.5 * dim - 1.0) * math.log(max(0.5 * cost, 1e-9))) - math.lgamma(0.5 * dim)
    return math.exp(min(splits - 0.5 * cost + tail, 0.0))
