"""The search for a feature on which the items of a block differ: a race of scales. And that for better features.

Nothing here enters a proof, and none depends on the numbers of `Constants` (docs/FEATURES.md, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Container, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from coterie.methods.features.measured import FeatureResults
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.features import Features


@dataclass(frozen=True)
class Constants:
    """What the rule searches, groups, freezes and gives up by. Scales and gaps are in standard deviations."""

    scales: tuple[float, ...] = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
    batch: int = 4
    """Items of a block that are looked at together on a feature."""
    drop: float = 0.8
    """A batch is dropped at a scale when its likelihood ratio is below this."""
    least_ratio: float = 3.0
    wait: float = 0.8
    """A scale s waits until the search has cost this times (items that are not told apart)/s²."""
    better: float = 1.2
    """A better feature than one with a gap g is sought at scales above this times g."""
    settled: float = 0.15
    """The sum of doubts, and the risk of the estimate, at which a block is cut and a candidate is frozen."""
    near: float = 0.5
    """Components closer than this times the largest step of two neighbours stay together."""
    collapse: float = 0.2
    """Two groups are joined if no feature shows this share of the squared gap with which it was found."""
    forecast: float = 2.6
    """Results for a nat of evidence, in units of 1/gap²."""
    late: float = 6.0
    """An epoch that costs this times its forecast is frozen anew."""
    patience: int = 3
    """After so many failed epochs of one estimate, two groups are joined."""
    undoings: int = 24
    """After so many joins of two groups the run sweeps: it measures everything, again and again."""
    in_vain: float = 100.0
    """It also sweeps when the search has cost this times what measuring everything once does."""
    core: int = 3
    large_group: int = 4
    """All of a group of at most so many items are its core."""


CONSTANTS = Constants()


Ask: TypeAlias = tuple[int, int, int]
"""An item, a panel, and how often."""
Asking: TypeAlias = Generator[list[Ask], None, None]


class Lead(NamedTuple):
    """Two items that seem to differ on a feature."""

    feature: int
    first: int
    second: int
    gap: float  # seen between them
    scale: float  # at which the race was won


class Prices:
    """What an ask costs, and how a feature is measured: by the cheapest panel that gives it."""

    def __init__(self, features: Features, item_costs: Sequence[float] | None) -> None:
        self._features, self._item_costs = features, item_costs
        self.even = item_costs is None and features.panel_costs is None
        self._typical = 0.0 if item_costs is None else float(np.mean(item_costs))
        self._odds: FloatArray | None = None
        self._unit = 1.0  # what a feature costs on average that is drawn as below
        if not self.even:
            odds = 1.0 / np.array([self.of_feature(feature) for feature in range(features.dim)])
            self._odds, self._unit = np.cumsum(odds / odds.sum()), float(1.0 / odds.mean())

    def draw(self, rng: np.random.Generator) -> int:
        """A random feature, the cheap ones more often."""
        if self._odds is None:
            return int(rng.integers(self._features.dim))
        return min(int(np.searchsorted(self._odds, rng.random())), self._features.dim - 1)

    def relative(self, feature: int) -> float:
        """What a feature costs, in units of one that is drawn."""
        return 1.0 if self.even else self.of_feature(feature) / self._unit

    def of(self, item: int, panel: int) -> float:
        """One ask."""
        return 1.0 if self.even else self._features.ask_cost(self._item_costs, item, panel)

    def of_panel(self, panel: int) -> float:
        """An ask for a panel, of an item like any other."""
        costs = self._features.panel_costs
        return 1.0 if self.even else self._typical + (0.0 if costs is None else costs[panel])

    def panel_for(self, feature: int) -> int:
        """The panel by which a feature is measured."""
        if not self._features.panels:
            return feature
        return min(self._features.panels_with[feature], key=lambda panel: (self.of_panel(panel), panel))

    def of_feature(self, feature: int) -> float:
        """An ask for a feature, of an item like any other."""
        return self.of_panel(self.panel_for(feature))

    def total(self, asks: Sequence[Ask]) -> float:
        """All of them."""
        return float(sum(count * self.of(item, panel) for item, panel, count in asks))


@dataclass
class _Batch:
    panel: int
    items: list[int]


class Search:
    """The race: what was looked at, where each scale is, and what it has spent."""

    def __init__(
        self,
        measured: FeatureResults,
        features: Features,
        prices: Prices,
        rng: np.random.Generator,
        constants: Constants,
    ) -> None:
        self._measured, self._features, self._prices, self._rng = measured, features, prices, rng
        self._constants = constants
        self._batches: list[_Batch] = []
        self._order: list[int] = []
        n_scales = len(constants.scales)
        self._next = [0] * n_scales
        self._spent = [0.0] * n_scales
        self._dropped = [0] * n_scales
        self.ready: list[tuple[int, list[int]]] = []  # looked at while others were waited for
        self.barred: set[tuple[int, int]] = set()  # block and feature that turned out alike
        every = sum(prices.of_panel(panel) for panel in range(features.n_panels)) * measured.n_items
        self._most = constants.in_vain * every

    @property
    def cost(self) -> float:
        """What the race of scales has cost."""
        return sum(self._spent)

    def fresh_panel(self) -> int:
        """Panels in a random order, the cheap ones sooner, pass after pass."""
        if not self._order:
            n_panels = self._features.n_panels
            if self._prices.even or self._features.panel_costs is None:
                self._order = self._rng.permutation(n_panels).tolist()
            else:
                keys = self._rng.exponential(size=n_panels)
                keys *= [self._prices.of_panel(panel) for panel in range(n_panels)]
                self._order = np.argsort(-keys, kind="stable").tolist()
        return self._order.pop()

    def fresh(self, block: IntArray) -> tuple[int, list[int]]:
        """A panel and some items of one block that has two or more."""
        sizes = np.bincount(block)
        large = np.flatnonzero(sizes[block] > 1)
        label = block[large[self._rng.integers(large.size)]]
        members = np.flatnonzero(block == label)
        few = self._rng.choice(members, min(self._constants.batch, members.size), replace=False)
        return self.fresh_panel(), [int(item) for item in few]

    def _scale(self, open_items: int) -> int:
        """The scale that has spent least for its weight, 1/(1+i)."""
        scales, spent = self._constants.scales, self._spent
        total, best, least = self.cost, 0, math.inf
        for g, s in enumerate(scales):
            if g > 1 and total < self._constants.wait * open_items / s**2:
                break
            due = (spent[g] + 4.0 / s**2) * (1.0 + g)
            if due < least:
                best, least = g, due
        return best

    def run(self, block: IntArray) -> Generator[list[Ask], None, Lead | None]:
        """Look on until two items of a block seem to differ; None once that has cost too much."""
        n_blocks = int(block.max()) + 1
        sizes = np.bincount(block, minlength=n_blocks)
        open_items = int(sizes[sizes > 1].sum())
        labels = block.tolist()
        while True:
            if self.cost > self._most:
                return None
            g = self._scale(open_items)
            place = self._next[g]
            if place >= len(self._batches):
                panel, items = self.ready.pop() if self.ready else self.fresh(block)
                asks = [(item, panel, 2 if self._measured.scale.learns else 1) for item in items]
                yield asks
                self._spent[g] += self._prices.total(asks)
                self._batches.append(_Batch(panel, items))
            batch = self._batches[place]
            lead = yield from self._look(g, batch, labels, sizes)
            self._spent[g] += 1e-3
            if lead is not None:
                return lead

    def _look(
        self, g: int, batch: _Batch, labels: list[int], sizes: IntArray
    ) -> Generator[list[Ask], None, Lead | None]:
        """One step of a scale at a batch: drop it, be content with it, or look at its leading pair again."""
        scale, constants = self._constants.scales[g], self._constants
        label = labels[batch.items[0]]
        same = all(labels[item] == label for item in batch.items)
        ratio, lead = -math.inf, None
        if same and len(batch.items) > 1:
            ratio, lead = self.ratio(batch.panel, batch.items, label, scale)
        if lead is not None:
            size = int(sizes[label])
            need = math.log(max(constants.least_ratio, size / 4.0 * max(1.0, scale * scale)))
            if ratio >= need + math.log1p(self._dropped[g]):
                self._next[g] += 1
                return lead
            if ratio >= math.log(constants.drop):
                count = max(1, int(2.0 / scale**2))
                asks = [(lead.first, batch.panel, count), (lead.second, batch.panel, count)]
                yield asks
                self._spent[g] += self._prices.total(asks)
                return None
        self._next[g] += 1
        self._dropped[g] += 1
        return None

    def ratio(self, panel: int, items: Sequence[int], label: int, scale: float) -> tuple[float, Lead | None]:
        """log of the mean likelihood ratio over the features of a panel and ordered pairs, and the pair that leads."""
        terms: list[float] = []
        top, lead = -math.inf, None
        for feature in self._features.features_of(panel):
            if (label, feature) in self.barred:
                continue
            cells = [(item, *self._measured.cell(item, feature)) for item in items]
            cells = [cell for cell in cells if cell[1] > 0.0]
            for p, (first, a, x) in enumerate(cells):
                for second, b, y in cells[p + 1 :]:
                    weight = a * b / (a + b)
                    gap = x - y
                    half = 0.5 * scale * scale
                    high, low = (abs(gap) * scale - half) * weight, (-abs(gap) * scale - half) * weight
                    terms += (high, low)
                    if high > top:
                        top, lead = high, Lead(feature, first, second, abs(gap), scale)
        if lead is None:
            return -math.inf, None
        return top + math.log(sum(math.exp(term - top) for term in terms) / len(terms)), lead


class BetterFeatures:
    """Looking for features on which two groups differ more: what was tried, and what may still pay."""

    def __init__(
        self, measured: FeatureResults, prices: Prices, rng: np.random.Generator, constants: Constants = CONSTANTS
    ) -> None:
        self._measured, self._prices, self._rng = measured, prices, rng
        self._scales = np.array(constants.scales)
        self._constants = constants
        self._tested = np.zeros(len(constants.scales))

    def worth(self, square: float, users: float) -> tuple[float, float]:
        """The scale at which looking is worth most, and its worth per result; `square`: the squared gap so far, for a
        cost like that of a feature that is drawn."""
        scales = self._scales
        saved = users * (max(1.0, 8.0 / square) - np.maximum(1.0, 8.0 / scales**2))
        pay = np.where(scales**2 > self._constants.better**2 * square, np.maximum(saved, 0.0), 0.0)
        pay = pay * 0.5 / (1.0 + self._tested) / (2.0 + 8.0 / scales**2)
        best = int((pay >= (1.0 - 1e-9) * pay.max()).argmax())  # rounding decides no tie
        return float(scales[best]), float(pay[best])

    def compare(
        self, first: IntArray, second: IntArray, feature: int, scale: float
    ) -> Generator[list[Ask], None, float | None]:
        """Whether random items of both sides differ on a feature, by a two-sided sequential test: the gap, or None."""
        panel = self._prices.panel_for(feature)
        step = max(2 if self._measured.scale.learns else 1, int(2.0 / scale**2))
        sides = (first, second)
        sums, counts = [0.0, 0.0], [0.0, 0.0]
        while True:
            asks, before = [], []
            for members in sides:
                item = int(self._rng.choice(members))
                before.append((item, *self._measured.raw(item, feature)))
                asks.append((item, panel, step))
            yield asks
            for side, (item, count, total) in enumerate(before):
                now, sum_now = self._measured.raw(item, feature)
                counts[side] += now - count
                sums[side] += sum_now - total
            if min(counts) <= 0.0:
                return None
            gap = abs(sums[0] / counts[0] - sums[1] / counts[1]) / self._measured.sd(feature)
            weight = counts[0] * counts[1] / sum(counts)
            ratio = (gap * scale - 0.5 * scale**2) * weight - math.log(2.0)
            if ratio < math.log(self._constants.drop):
                self.in_vain(scale)
                return None
            if ratio > math.log(5.0 * (1.0 + float(self._tested[self._scales == scale][0]))):
                return gap

    def in_vain(self, scale: float) -> None:
        """A feature was of no use at a scale, and so at larger ones."""
        self._tested[self._scales >= scale] += 1.0

    def than(self, lead: Lead, users: int, barred: Container[int]) -> Generator[list[Ask], None, Lead]:
        """The lead, or one of the same two items with a larger gap, while looking for it pays."""
        while True:
            square = max(lead.gap, 0.05) ** 2 / self._prices.relative(lead.feature)
            scale, pay = self.worth(square, users)
            if pay < 1.0:
                return lead
            feature = self._prices.draw(self._rng)
            if feature in barred:
                self.in_vain(scale)
                continue
            first, second = np.array([lead.first]), np.array([lead.second])
            gap = yield from self.compare(first, second, feature, scale)
            if gap is not None and gap**2 > square * self._prices.relative(feature):
                lead = lead._replace(feature=feature, gap=min(gap, 1.5 * scale))
