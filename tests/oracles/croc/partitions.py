"""Partitions of the arms and what they are worth: the estimate of docs/CROC.md, section 7.

`points` are the means of the arms' results, `pulls` is N_m, `totals` and `centers` are W and Û.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from tests.oracles.croc import rule


def ordered_sum(values: Any, axis: int = -1) -> Any:
    """The sum by index, one term after the other: NumPy's own adds long ones up in blocks."""
    sums = np.add.accumulate(values, axis=axis)
    return sums[-1] if axis == 0 else sums[..., -1]


def squared(gaps: Any) -> Any:
    """Squared lengths of vectors."""
    return ordered_sum(gaps * gaps)


def log_ways(a: int, b: int) -> float:
    """log((a+b)!/(a!·b!)): the ways to cut a group of a + b arms into a and b."""
    return _log_factorial(a + b) - _log_factorial(a) - _log_factorial(b)


@cache
def _log_factorial(n: int) -> float:
    return float(ordered_sum(np.log(np.arange(1.0, n + 1.0)))) if n > 0 else 0.0


def cut_worth(gain: float, a: int, b: int, weight: float, dim: int) -> float:
    """By how much the log posterior grows when a group is cut into a and b arms; weight is W_aW_b/(W_a+W_b)."""
    return 0.5 * gain - rule.SIZE_PRICE * log_ways(a, b) - 0.5 * dim * math.log(weight)


@dataclass
class Partition:
    """Labels with the centers and weights of the groups, and Hartigan's moves on them (section 7)."""

    labels: IntArray
    centers: FloatArray
    totals: FloatArray

    @classmethod
    def improved(cls, labels: Iterable[int], points: FloatArray, pulls: IntArray, n_groups: int) -> Partition:
        """Of these labels, after Hartigan's moves: arms in index order, at most 20 times, while one moves."""
        found = cls(np.array(labels), np.zeros((n_groups, points.shape[1])), np.zeros(n_groups))
        for m, k in enumerate(found.labels):
            found.totals[k] += pulls[m]
            found.centers[k] += pulls[m] * points[m]
        filled = found.totals > 0
        found.centers[filled] /= found.totals[filled, None]
        found._fill_empty(points, pulls)
        for _ in range(rule.HARTIGAN_PASSES):
            moved = [found.move(m, points, pulls) for m in range(len(points))]
            if not any(moved):
                break
        return found

    def _shift(self, k: int, x: FloatArray, weight: float) -> None:
        after = self.totals[k] + weight
        self.centers[k] = (self.centers[k] * self.totals[k] + weight * x) / after
        self.totals[k] = after

    def _fill_empty(self, points: FloatArray, pulls: IntArray) -> None:
        """An empty group gets the arm that is costliest where it is, the first of equals."""
        for k in np.flatnonzero(self.totals == 0):
            worst, most = -1, -1.0
            for m, home in enumerate(self.labels):
                if self.totals[home] > pulls[m] * rule.ALONE:
                    rest = self.totals[home] - pulls[m]
                    cost = float(squared(points[m] - self.centers[home])) * pulls[m] * self.totals[home] / rest
                    if cost > most:
                        worst, most = m, cost
            self._shift(self.labels[worst], points[worst], -float(pulls[worst]))
            self.labels[worst], self.totals[k], self.centers[k] = k, pulls[worst], points[worst]

    def move(self, m: int, points: FloatArray, pulls: IntArray) -> bool:
        """Hartigan's move of one arm: to the group where it costs least, if that is less than where it is."""
        home, n = self.labels[m], float(pulls[m])
        if self.totals[home] <= n * rule.ALONE:
            return False
        gaps = squared(points[m] - self.centers)
        best, target = gaps[home] * self.totals[home] / (self.totals[home] - n), -1
        joined = gaps * self.totals / (self.totals + n)
        for k in range(len(self.totals)):
            if k != home and joined[k] < best - rule.MOVE_TIE:
                best, target = joined[k], k
        if target >= 0:
            self._shift(home, points[m], -n)
            self._shift(target, points[m], n)
            self.labels[m] = target
        return target >= 0

    def log_posterior(self, points: FloatArray, pulls: IntArray) -> float:
        """−½·cost + Σ log n_k! − (d/2)·Σ log W_k."""
        value = -0.5 * float(ordered_sum(pulls * squared(points - self.centers[self.labels])))
        for k, total in enumerate(self.totals):
            size = int((self.labels == k).sum())
            value += rule.SIZE_PRICE * _log_factorial(size) - 0.5 * points.shape[1] * math.log(total)
        return value

    def cost_alone(self, m: int, points: FloatArray, pulls: IntArray) -> float:
        """By how much the cost falls if arm m leaves its group of two arms or more for one of its own."""
        k = self.labels[m]
        gap = float(squared(points[m] - self.centers[k]))
        return float(gap * pulls[m] * self.totals[k] / (self.totals[k] - pulls[m]))

    def two_means(self, k: int, first: int, points: FloatArray, pulls: IntArray) -> tuple[float, float, list[int]]:
        """Cut group k in two, beginning with arm `first` alone: the gain, W_aW_b/(W_a+W_b), the arms of the part."""
        members, part = np.flatnonzero(self.labels == k).tolist(), {first}
        weight, total, here = float(pulls[first]), self.totals[k], points[first] * float(pulls[first])
        for _ in range(rule.CUT_PASSES):
            moved = False
            for m in members:
                n, rest = float(pulls[m]), total - weight
                if (m in part and len(part) == 1) or (m not in part and len(part) == len(members) - 1):
                    continue
                to_part = float(squared(points[m] - here / weight))
                to_rest = float(squared(points[m] - (self.centers[k] * total - here) / (total - weight)))
                if m in part and to_rest * rest / (rest + n) < to_part * weight / (weight - n):
                    sign = -1.0
                elif m not in part and to_part * weight / (weight + n) < to_rest * rest / (rest - n):
                    sign = 1.0
                else:
                    continue
                part ^= {m}
                weight, here, moved = weight + sign * n, here + sign * n * points[m], True
            if not moved:
                break
        share = weight * (total - weight) / total
        apart = here / weight - (self.centers[k] * total - here) / (total - weight)
        return float(squared(apart) * share), float(share), sorted(part)

    def best_cut(self, k: int, points: FloatArray, pulls: IntArray) -> tuple[float, list[int]]:
        """The worth of the better of two cuts of group k, its costliest arm alone or 2-means; and the arms cut off."""
        members, dim = np.flatnonzero(self.labels == k).tolist(), points.shape[1]
        if len(members) < 2:
            return -math.inf, []
        costs = [self.cost_alone(m, points, pulls) for m in members]
        far = members[int(np.argmax(costs))]
        share = pulls[far] * (self.totals[k] - pulls[far]) / self.totals[k]
        single = cut_worth(max(costs), 1, len(members) - 1, share, dim)
        if len(members) == 2:
            return single, [far]
        gain, weight, part = self.two_means(k, far, points, pulls)
        worth = cut_worth(gain, len(part), len(members) - len(part), weight, dim)
        return (single, [far]) if single > worth else (worth, part)

    def merge_worth(self, k: int, j: int) -> float:
        """By how much the log posterior grows when groups k and j are merged."""
        together = self.totals[k] * self.totals[j] / (self.totals[k] + self.totals[j])
        cost = float(squared(self.centers[k] - self.centers[j])) * together
        a, b = int((self.labels == k).sum()), int((self.labels == j).sum())
        return -cut_worth(cost, a, b, together, self.centers.shape[1])


def farthest_first(points: FloatArray, pulls: IntArray, n_groups: int, by_pulls: bool) -> IntArray:
    """Maximin from arm 0; with `by_pulls`, squared distances times N_iN_j/(N_i+N_j), from the most pulled arm."""
    near = np.full(len(points), math.inf)
    labels = np.zeros(len(points), dtype=np.int64)
    start = int(np.argmax(pulls)) if by_pulls else 0
    for k in range(n_groups):
        gaps = squared(points - points[start])
        if by_pulls:
            gaps = gaps * (pulls * float(pulls[start]) / (pulls + pulls[start]))
        labels[gaps < near] = k
        near = np.minimum(near, gaps)
        start = int(np.argmax(near))
    return labels


def components(points: FloatArray, pulls: IntArray, rank: int) -> FloatArray:
    """Coordinates along about `rank` leading principal components, weighted by pulls, by subspace iteration."""
    n, d = points.shape
    wide = min(n, 2 * rank + rule.SUBSPACE_EXTRA, d)
    centered = points - ordered_sum(points / n, axis=0)
    basis = centered[[i * n // wide for i in range(wide)]]
    for _ in range(rule.SUBSPACE_PASSES):
        basis = _orthonormal(basis)
        along = ordered_sum(centered[:, None] * basis) * pulls[:, None]
        basis = ordered_sum(along[:, :, None] * centered[:, None], axis=0)
    basis = _orthonormal(basis)
    return np.asarray(ordered_sum(points[:, None] * basis[:rank]))


def _orthonormal(rows: FloatArray) -> FloatArray:
    """Gram–Schmidt, twice."""
    rows = rows.copy()
    for _ in range(2):
        for i in range(len(rows)):
            for j in range(i):
                rows[i] -= ordered_sum(rows[i] * rows[j]) * rows[j]
            length = float(squared(rows[i]))
            if length > 0.0:
                rows[i] *= 1.0 / math.sqrt(length)
    return rows


def estimated(
    points: FloatArray, pulls: IntArray, n_groups: int, before: Partition | None, all_starts: bool
) -> Partition:
    """The partition with the largest posterior that the starts lead to; groups keep the numbers that they had.

    The starts, in this order: the labels before; Maximin on the means, on their leading components, and the one that
    counts pulls. Without `all_starts`, only the first, and no regroupings.
    """
    starts = [] if before is None else [before.labels]
    if all_starts:
        rank = min(n_groups - 1, points.shape[1])
        starts.append(farthest_first(points, pulls, n_groups, False))
        reduced = points
        if rank < points.shape[1]:
            reduced = components(points, pulls, rank)
            starts.append(farthest_first(reduced, pulls, n_groups, False))
        starts.append(farthest_first(reduced, pulls, n_groups, True))
    best, winner = -math.inf, None
    for labels in starts:
        found = Partition.improved(labels, points, pulls, n_groups)
        value = found.log_posterior(points, pulls)
        if value > best + rule.POSTERIOR_TIE:
            best, winner = value, found
    assert winner is not None
    if all_starts and n_groups > 2:
        winner = _regrouped(winner, best, points, pulls)
    return winner if before is None else _with_names_of(before, winner)


def _regrouped(winner: Partition, best: float, points: FloatArray, pulls: IntArray) -> Partition:
    """Up to four times: cut one group and merge two others, where the posterior grows most."""
    groups = range(len(winner.totals))
    for _ in range(rule.REGROUPINGS):
        merges = [(winner.merge_worth(k, j), k, j) for k in groups for j in range(k)]
        most, change = 0.0, None
        for h in groups:
            worth, part = winner.best_cut(h, points, pulls)
            merge, k, j = max((one for one in merges if h not in one[1:]), key=lambda one: one[0])
            if worth + merge > most:
                most, change = worth + merge, (part, k, j)
        if change is None:
            return winner
        part, k, j = change
        labels = np.where(winner.labels == j, k, winner.labels)
        labels[part] = j
        found = Partition.improved(labels, points, pulls, len(winner.totals))
        value = found.log_posterior(points, pulls)
        if value <= best + rule.POSTERIOR_TIE:
            return winner
        best, winner = value, found
    return winner


def _with_names_of(before: Partition, found: Partition) -> Partition:
    """Number the groups as those before that they overlap with: largest overlap first, ties to the lowest numbers."""
    n = len(found.totals)
    names: dict[int, int] = {}
    while len(names) < n:
        free = [(i, j) for i in range(n) for j in range(n) if i not in names and j not in names.values()]
        i, j = max(free, key=lambda one: int(((found.labels == one[0]) & (before.labels == one[1])).sum()))
        names[i] = j
    order = [next(i for i in names if names[i] == j) for j in range(n)]
    labels = np.array([names[int(k)] for k in found.labels])
    return Partition(labels, found.centers[order], found.totals[order])
