"""The search for the partition with the largest posterior, and how sure it is (docs/CROC.md, section 7, by cells).

Nothing here enters a proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from coterie.methods.blocks.within import Alone, Groups, Within, cut_worth
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical

MOST_MOVES = 12
REGROUPINGS = 3
LEAST_MARGIN = 2.0
"""Of another reading of whole groups: below it these groups are measured."""
FREEZE_RISK = 0.15
"""Of a candidate that is frozen; groups whose chance to be one is above a quarter of it are measured."""
TIE = 1e-9


class Partitions:
    """Partitions of the arms, by the results at hand: each is fitted once."""

    def __init__(self, within: Within) -> None:
        self._within, self._size = within, within.n_groups
        self._groups: dict[bytes, Groups] = {}
        self._alone: dict[bytes, Alone] = {}

    def groups(self, labels: IntArray) -> Groups:
        """The fit of a partition."""
        key = labels.tobytes()
        if key not in self._groups:
            self._groups[key] = self._within.groups(labels)
        return self._groups[key]

    def _out(self, labels: IntArray) -> Alone:
        key = labels.tobytes()
        if key not in self._alone:
            self._alone[key] = self._within.alone(labels)
        return self._alone[key]

    def _sizes(self, labels: IntArray) -> IntArray:
        return np.bincount(labels, minlength=self._size)

    def searched(self, labels: IntArray | None, starts: Sequence[IntArray]) -> IntArray:
        """The best of these, improved: the first of equals."""
        best = labels
        for start in starts:
            other = self.improved(canonical(start))
            if best is None or self.groups(other).score > self.groups(best).score + TIE:
                best = other
        assert best is not None
        return self._regrouped(best) if self._size > 2 else best

    def improved(self, start: IntArray) -> IntArray:
        """Moves of all arms at once, or of the best one alone, as long as the posterior grows."""
        labels = self._filled(start)
        places = np.arange(labels.size)
        for _ in range(MOST_MOVES):
            score, costs = self.groups(labels).score, self._out(labels).costs.copy()
            own = costs[places, labels].copy()
            costs[places, labels] -= np.where(self._sizes(labels)[labels] == 1, np.inf, TIE)
            wanted = costs.argmin(axis=1)
            moving = wanted != labels
            if not moving.any():
                break
            single = labels.copy()
            best = int(np.argmax(np.where(moving, own - costs.min(axis=1), -np.inf)))
            single[best] = wanted[best]
            for moved in (self._filled(wanted), single):
                if self.groups(moved).score > score + TIE:
                    labels = moved
                    break
            else:
                break
        return labels

    def _filled(self, labels: IntArray) -> IntArray:
        """No group is empty: one gets an arm of the largest."""
        labels = labels.copy()
        for k in np.flatnonzero(self._sizes(labels) == 0).tolist():
            labels[np.flatnonzero(labels == self._sizes(labels).argmax())[0]] = k
        return labels

    def _regrouped(self, labels: IntArray) -> IntArray:
        """A group cut in two and two others merged, where that gains: no single move does it."""
        for _ in range(REGROUPINGS):
            sizes, merges = self._sizes(labels), self._merges(labels)
            best, moved = 0.0, None
            for h, (part, gain, weight) in self._cuts(labels).items():
                (k, j), worth = max(((pair, w) for pair, w in merges.items() if h not in pair), key=lambda m: m[1])
                inside = int(part.sum())
                worth += cut_worth(gain, inside, int(sizes[h]) - inside, weight, self._within.dim)
                if worth > best:
                    best, moved = worth, np.where(labels == j, k, np.where(part, j, labels))
            if moved is None:
                break
            moved = self.improved(moved)
            if self.groups(moved).score <= self.groups(labels).score + TIE:
                break
            labels = moved
        return labels

    def _cuts(self, labels: IntArray) -> dict[int, tuple[FloatArray, float, float]]:
        """The best cut of each group of several arms."""
        alone = self._out(labels)
        return {h: self._within.cut(labels, h, alone) for h in np.flatnonzero(self._sizes(labels) > 1).tolist()}

    def _merges(self, labels: IntArray) -> dict[tuple[int, int], float]:
        """By how much log posterior grows if two groups are merged."""
        squares, weights = self.groups(labels).squares()
        sizes, dim = self._sizes(labels).tolist(), self._within.dim
        return {
            (k, j): -cut_worth(float(squares[k, j]), sizes[k], sizes[j], float(weights[k, j]), dim)
            for j, k in combinations(range(self._size), 2)
        }

    def margins(self, labels: IntArray) -> FloatArray:
        """(M, K) D_mk; ∞ for the own group, and for an arm that is alone."""
        places, costs = np.arange(labels.size), self._out(labels).costs
        margins = 0.5 * (costs - costs[places, labels][:, None])
        margins[places, labels] = np.inf
        margins[self._sizes(labels)[labels] == 1] = np.inf
        return np.asarray(margins)

    def risk(self, labels: IntArray, cuts: bool) -> tuple[float, tuple[int, ...]]:
        """That two groups are one, by chance or (with `cuts`) with a third that is two; and groups to look at."""
        squares, weights = self.groups(labels).squares()
        sizes, dim, merges = self._sizes(labels).tolist(), self._within.dim, self._merges(labels)
        made = self._cuts(labels) if cuts else {}
        worths = {
            h: cut_worth(gain, int(part.sum()), sizes[h] - int(part.sum()), weight, dim)
            for h, (part, gain, weight) in made.items()
        }
        risk, least, likeliest = 0.0, LEAST_MARGIN, 0.25 * FREEZE_RISK
        doubted: tuple[int, ...] = ()
        worst: tuple[int, ...] = ()
        for k, j in merges:
            chance = chance_of_split(float(squares[k, j]), sizes[k], sizes[j], dim)
            risk += chance
            if chance > likeliest:
                likeliest, doubted = chance, (k, j)
            for h, (_, gain, weight) in made.items():
                if h in (k, j):
                    continue
                more = max(0.0, math.log(max(float(weights[k, j]), 1e-300) / weight))
                margin = max(0.5 * (squares[k, j] - gain) - 0.5 * dim * more, -merges[k, j] - worths[h])
                risk += math.exp(-max(margin, 0.0))
                if margin < least:
                    least, worst = margin, (h, k, j)
        return risk, tuple(sorted({*doubted, *worst}))


def chance_of_split(cost: float, first: int, second: int, dim: int) -> float:
    """That one group falls into two of so many arms by chance: ways to cut it, times the tail of χ²."""
    n = first + second
    ways = math.lgamma(n + 1.0) - math.lgamma(first + 1.0) - math.lgamma(second + 1.0)
    ways = max(min((n - 1) * math.log(2.0), dim * math.log(n)), ways)
    tail = max(0.0, (0.5 * dim - 1.0) * math.log(max(0.5 * cost, 1e-9))) - math.lgamma(0.5 * dim)
    return math.exp(min(0.0, ways - 0.5 * cost + tail))
