"""The race of scales, better features, and cutting a block (docs/FEATURES.md, section 4, 1 to 3)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.oracles.features import constants as c

Ask = tuple[int, int, int]
"""Item, feature, how often."""


class Results:
    """All results so far, cell by cell, and all asks in their order."""

    def __init__(self, n: int, d: int, draw: Callable[[int, int, int], list[float]]) -> None:
        self.n, self.d, self._draw = n, d, draw
        self.of: dict[tuple[int, int], list[float]] = defaultdict(list)
        self.asked: list[tuple[int, int, int, int]] = []  # item, feature, how often, round

    def ask(self, asks: list[Ask], of_round: int = 0) -> list[list[float]]:
        answers = []
        for item, feature, count in asks:
            self.asked.append((item, feature, count, of_round))
            answers.append(self._draw(item, feature, count))
            self.of[item, feature] += answers[-1]
        return answers

    def count(self, item: int, feature: int) -> int:
        return len(self.of.get((item, feature), ()))

    def mean(self, item: int, feature: int) -> float:
        x = self.of.get((item, feature), [])
        return sum(x) / len(x) if x else 0.0


class Race:
    """The search for a feature on which the items of a block differ."""

    def __init__(self, results: Results, rng: np.random.Generator) -> None:
        self.results, self.rng = results, rng
        self.batches: list[tuple[int, list[int]]] = []
        self.panels: list[int] = []
        self.next, self.dropped = [0] * len(c.SCALES), [0] * len(c.SCALES)
        self.spent = [0.0] * len(c.SCALES)
        self.barred: set[tuple[int, int]] = set()

    def run(self, block: np.ndarray) -> tuple[int, int, int, float] | None:
        """Feature, two items, and their gap; None once it has cost too much."""
        sizes = np.bincount(block)
        told = sum(int(size) for size in sizes if size > 1)
        while sum(self.spent) <= c.SEARCH_LIMIT * self.results.n * self.results.d:
            g = self.scale(told)
            if self.next[g] == len(self.batches):
                self.look(g, block, sizes)
            lead = self.step(g, block, sizes)
            self.spent[g] += 1e-3
            if lead is not None:
                return lead
        return None

    def scale(self, told: int) -> int:
        due = {}
        for g, s in enumerate(c.SCALES):
            if s < 4.0 and sum(self.spent) < c.WAIT * told / s**2:
                break
            due[g] = (self.spent[g] + 4.0 / s**2) * (1 + g)
        return min(due, key=lambda g: (due[g], g))

    def look(self, g: int, block: np.ndarray, sizes: np.ndarray) -> None:
        """A batch: a feature with some items of one block."""
        together = [item for item, label in enumerate(block) if sizes[label] > 1]
        members = np.flatnonzero(block == block[together[self.rng.integers(len(together))]])
        items = [int(i) for i in self.rng.choice(members, min(c.BATCH, members.size), replace=False)]
        if not self.panels:
            self.panels = self.rng.permutation(self.results.d).tolist()
        feature = self.panels.pop()
        self.results.ask([(item, feature, 1) for item in items])
        self.spent[g] += len(items)
        self.batches.append((feature, items))

    def step(self, g: int, block: np.ndarray, sizes: np.ndarray) -> tuple[int, int, int, float] | None:
        (feature, items), s = self.batches[self.next[g]], c.SCALES[g]
        label = int(block[items[0]])
        alike = len({int(block[item]) for item in items}) == 1 and len(items) > 1
        if alike and (label, feature) not in self.barred:
            ratio, first, second, gap = self.ratio(feature, items, s)
            if ratio >= max(c.STOP, sizes[label] / 4 * max(1.0, s**2)) * (1 + self.dropped[g]):
                self.next[g] += 1
                return feature, first, second, gap
            if ratio >= c.DROP:
                more = max(1, int(2 / s**2))
                self.results.ask([(first, feature, more), (second, feature, more)])
                self.spent[g] += 2 * more
                return None
        self.next[g] += 1
        self.dropped[g] += 1
        return None

    def ratio(self, feature: int, items: list[int], s: float) -> tuple[float, int, int, float]:
        """The mean likelihood ratio over ordered pairs, the pair that leads, and its gap."""
        terms: list[float] = []
        best: tuple[float, int, int, float] = (-math.inf, -1, -1, 0.0)
        for place, first in enumerate(items):
            for second in items[place + 1 :]:
                v = 1 / self.results.count(first, feature) + 1 / self.results.count(second, feature)
                gap = abs(self.results.mean(first, feature) - self.results.mean(second, feature))
                terms += [(gap * s - s**2 / 2) / v, (-gap * s - s**2 / 2) / v]
                if terms[-2] > best[0]:
                    best = (terms[-2], first, second, gap)
        return sum(math.exp(min(term, 600.0)) for term in terms) / len(terms), *best[1:]


class Better:
    """Features on which two sides differ more: what was tried in vain at each scale."""

    def __init__(self, results: Results, rng: np.random.Generator) -> None:
        self.results, self.rng = results, rng
        self.vain = dict.fromkeys(c.SCALES, 0)

    def worth(self, square: float, users: float) -> tuple[float, float]:
        best, most = c.SCALES[0], 0.0
        for s in c.SCALES:
            saved = users * (max(1.0, 8 / square) - max(1.0, 8 / s**2))
            if s**2 > c.BETTER**2 * square and saved > 0.0:
                pay = saved * 0.5 / (1 + self.vain[s]) / (2 + 8 / s**2)
                if pay > most * (1 + 1e-9):
                    best, most = s, pay
        return best, most

    def fails(self, scale: float) -> None:
        for s in c.SCALES:
            self.vain[s] += s >= scale

    def compare(self, first: list[int], second: list[int], feature: int, s: float) -> float | None:
        """A two-sided sequential test: the gap of the two sides, or None."""
        pulls = max(1, int(2 / s**2))
        own: list[list[float]] = [[], []]
        while True:
            items = [int(self.rng.choice(side)) for side in (first, second)]
            for side, answer in zip(own, self.results.ask([(item, feature, pulls) for item in items]), strict=True):
                side += answer
            gap = abs(np.mean(own[0]) - np.mean(own[1]))
            v = 1 / len(own[0]) + 1 / len(own[1])
            half_ratio = math.exp(min(float(gap * s - s**2 / 2) / v, 600.0)) / 2
            if half_ratio < c.DROP:
                self.fails(s)
                return None
            if half_ratio > 5 * (1 + self.vain[s]):
                return float(gap)

    def lead(self, feature: int, items: tuple[int, int], gap: float, users: int, barred: set[int]) -> tuple[int, float]:
        """The feature, or one of the same two items with a larger gap."""
        while True:
            square = max(gap, 0.05) ** 2
            s, pay = self.worth(square, users)
            if pay < 1:
                return feature, gap
            other = int(self.rng.integers(self.results.d))
            if other in barred:
                self.fails(s)
                continue
            seen = self.compare([items[0]], [items[1]], other, s)
            if seen is not None and seen**2 > square:
                feature, gap = other, min(seen, 1.5 * s)


def mixture(x: np.ndarray, v: np.ndarray, starts: list[Any]) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """log-likelihood, centers, shares and memberships of normals of known variances; the best of some starts."""
    best = None
    for start in starts:
        centers, last = np.array(start, dtype=float), -math.inf
        shares = np.full(len(centers), 1 / len(centers))
        for _ in range(60):
            density = np.log(shares + 1e-300)[None] - (x[:, None] - centers[None]) ** 2 / (2 * v[:, None])
            total = np.logaddexp.reduce(density, axis=1)
            member, value = np.exp(density - total[:, None]), float(total.sum())
            if value - last < 1e-3:
                break
            last = value
            for q in range(len(centers)):
                centers[q] = (member[:, q] / v * x).sum() / ((member[:, q] / v).sum() + 1e-12)
                shares[q] = (member[:, q].sum() + 0.5) / (len(x) + 0.5 * len(centers))
        if best is None or value > best[0]:
            best = (value, centers, shares, member)
    assert best is not None
    return best


def cut(
    results: Results, members: np.ndarray, feature: int, lead_gap: float, ends: tuple[float, float], most: int
) -> tuple[np.ndarray, float] | None:
    """Parts of a block on a feature and the least step between them; None if its items look alike."""
    gap, misses = max(abs(ends[1] - ends[0]), 0.5 * lead_gap, 0.05), 0
    for _ in range(200):
        want = max(1, int(1 / gap**2))
        have = {m: results.count(m, feature) for m in members.tolist()}
        results.ask([(m, feature, max(1, want - n)) for m, n in have.items() if n < min(want, 2 / gap**2 + 1)])
        there = [m for m in members.tolist() if results.count(m, feature)]
        if len(there) < 2:
            return None
        x = np.array([results.mean(m, feature) for m in there])
        v = np.array([1 / results.count(m, feature) for m in there])
        fits = [mixture(x, v, [[x.mean()]])]
        for r in range(2, min(most, len(there)) + 1):
            wide = np.sort(np.argsort(-np.diff(np.sort(x)), kind="stable")[: r - 1])
            starts = [np.quantile(x, (np.arange(r) + 0.5) / r), np.linspace(x.min(), x.max(), r),
                      [part.mean() for part in np.split(np.sort(x), wide + 1)]]  # fmt: skip
            fits.append(mixture(x, v, [*starts, ends] if r == 2 else starts))
        q = max(range(len(fits)), key=lambda q: (fits[q][0] - q * math.log(len(members)), -q))
        if q == 0:
            misses += 1
            if len(fits) < 2 or fits[1][0] - fits[0][0] < 0.5 or misses > 6:
                return None
            rare = int(np.argmin(fits[1][2]))
            results.ask([(m, feature, want) for m, p in zip(there, fits[1][3][:, rare], strict=True) if p > 0.2])
            gap = max(gap / 1.1, 0.05)
            continue
        _, centers, _, member = fits[q]
        order = np.argsort(centers, kind="stable")
        steps = np.diff(centers[order])
        part_of = [0]
        for step in steps:
            part_of.append(part_of[-1] + int(step >= c.CLOSE * max(steps)))
        parts = np.zeros((len(there), part_of[-1] + 1))
        for component, part in zip(order, part_of, strict=True):
            parts[:, part] += member[:, component]
        clear, doubt = min(step for step in steps if step >= c.CLOSE * max(steps)), 1 - parts.max(axis=1)
        if doubt.sum() <= c.DOUBTS:
            labels = dict(zip(there, parts.argmax(axis=1).tolist(), strict=True))
            cut_in = np.array([labels.get(m, 0) for m in members.tolist()])
            return (cut_in, float(clear)) if len(set(labels.values())) > 1 else None
        gap = max(clear, 0.03)
        results.ask([(m, feature, max(1, int(min(1, 0.3 + 2 * p) / gap**2)))
                     for m, p in zip(there, doubt, strict=True) if p > 0.03 / len(members)])  # fmt: skip
    return None
