"""A grouping as a candidate: its references, the tests that would prove it, and a forecast of what they need.

The question is for groups up to a resolution (docs/RESOLUTION.md). `bounds`: η and ε in scaled units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from coterie.evidence.near_far.family import Family, Guess
from coterie.methods.resolution.estimates import (
    BelievedMeans,
    Groupings,
    Tally,
    believed,
    distances,
    net,
    numbers_of_groups,
)
from coterie.problem.checks import FloatArray, IntArray

MOST_RATIO = 24
"""Results of a reference that are averaged against one result of an item, at most."""
MOST_FAR_RATIO = 4
HOPELESS, PATIENCE = 1.3, 4
"""More groups are not tried when the forecast was so many times that of the best for so many numbers of groups."""
CAUTION = 0.6
"""Standard deviations by which an item is forecast to be farther from its reference than it is estimated."""
LAST_OF_MANY = 0.25
"""By how much of its forecast the slowest of many tests is late, for each unit of the logarithm of their number."""
SELECTED = 0.8
"""Of (√n + √d)²: what the choice of two groups of n items adds to their squared distance, in units of its noise."""
CERTAINTY = 1e-3
"""Standard deviations of an item that weigh as much as its distance from its group, where a reference is chosen."""
OFF_CENTRE = 1.1
"""Where items differ in cost, a reference is the cheapest of those that are so many times as far out as the best."""


@dataclass(frozen=True)
class PlannedTests:
    """Tests that are made at the freeze, one a row: of an item against a reference, of which `ratio` make a block.

    `sure` (n): the share of an estimated gap that is left without what the choice of groups made of noise.
    """

    item: IntArray
    reference: IntArray
    ratio: IntArray
    bound: FloatArray  # (n, d)
    guess: Guess
    sure: FloatArray

    @property
    def believed_gap(self) -> FloatArray:
        """(n, d): the estimated differences of the means, as far as they are believed."""
        return self.sure[:, None] * self.guess.gap


def planned(
    means: FloatArray, doubt: FloatArray, variance: FloatArray, item: IntArray, reference: IntArray,
    ratio: IntArray, bound: FloatArray, sure: FloatArray | None = None,
) -> PlannedTests:  # fmt: skip
    """Tests of these arms, whose means (M, d) are believed with variances `doubt` (M, d)."""
    guess = Guess(means[item], means[reference], doubt[item] + doubt[reference], variance)
    bounds = np.broadcast_to(bound, guess.item.shape)
    return PlannedTests(item, reference, ratio, bounds, guess, np.ones(item.size) if sure is None else sure)


@dataclass(frozen=True)
class Candidate:
    """A grouping, its tests and what they need: `pulls` (M) of each arm, `cost` in all."""

    labels: IntArray
    references: IntArray
    near: PlannedTests
    far: PlannedTests
    pulls: FloatArray
    cost: float
    view: BelievedMeans
    height: float | None = None
    balls: list[tuple[int, float, list[int]]] = field(default_factory=list)


@dataclass(frozen=True)
class Sketch:
    """A grouping with a forecast, before its tests are written down."""

    labels: IntArray
    references: IntArray
    view: BelievedMeans
    near_needed: FloatArray  # (M) contrasts of each item against its reference at ratio 1; any-two: of its worst pair
    far_needed: FloatArray  # (K, K) contrasts at ratio 1
    sure: FloatArray  # (K, K) shares of the gaps between references that are believed
    ratios: IntArray  # (K)
    pulls: FloatArray
    cost: float


class Forecaster:
    """Looks for the grouping whose proof is forecast to need the fewest results."""

    def __init__(
        self, family: Family, near: FloatArray, far: FloatArray, any_two: bool, price: FloatArray | None = None
    ) -> None:
        self.family, self.near, self.far, self.any_two, self.price = family, near, far, any_two, price

    def best(self, tally: Tally, level: float) -> Candidate:
        """The candidate with the least forecast."""
        groupings = Groupings(tally.means, tally.variance, tally.counts, self.family.norm)
        apart = distances(tally.means, self.family.norm, 0.5 * (self.near + self.far))
        labels, references = net(apart, 1.0)
        best = self._sketched(tally, labels, references, level)
        worse = 0
        for k in numbers_of_groups(labels.size):
            sketches = [self._sketched(tally, groups, None, level) for groups in groupings.into(k)]
            least = min(sketches, key=lambda sketch: sketch.cost, default=None)
            if least is None:
                continue
            if least.cost < best.cost:
                best, worse = least, 0
            elif k > best.references.size and least.cost > HOPELESS * best.cost:
                worse += 1
            if worse >= PATIENCE:
                break
        return self.planned(best, tally, level)

    def again(self, candidate: Candidate, tally: Tally, level: float) -> Candidate:
        """The same groups with what is known by now."""
        return self.planned(self._sketched(tally, candidate.labels, candidate.references, level), tally, level)

    def _sketched(self, tally: Tally, labels: IntArray, references: IntArray | None, level: float) -> Sketch:
        view = believed(tally, labels)
        n_groups = int(labels.max()) + 1
        variance = tally.variance
        members = [np.flatnonzero(labels == k) for k in range(n_groups)]
        chosen = self._references(view, members) if references is None else references
        dim = variance.size
        common = Guess(np.zeros(dim), np.zeros(dim), view.doubt.mean(axis=0) * 2.0, variance)
        near = np.zeros(labels.size)
        if self.any_two:
            for group in members:
                near[group] = self._worst_pairs(view.means[group], common, level)
        else:
            gaps = self._cautious(view.means - view.means[chosen[labels]], view.doubt + view.doubt[chosen[labels]])
            near = self.family.near_needed(self.near, 1, gaps, common, level)
            near[chosen] = 0.0
        far, sure = np.zeros((n_groups, n_groups)), np.ones((n_groups, n_groups))
        if n_groups > 1:
            i, j = np.triu_indices(n_groups, 1)
            gaps = view.means[chosen[i]] - view.means[chosen[j]]
            sure[i, j] = sure[j, i] = self._sure(gaps, variance, view.weights, np.bincount(labels), i, j)
            gaps = gaps * sure[i, j][:, None]
            far[i, j] = far[j, i] = self.family.far_needed(self.far, 1, gaps, common, level)
        pulls, ratios = self._pulls(labels, members, chosen, near, far)
        return Sketch(labels, chosen, view, near, far, sure, ratios, pulls, float(pulls.sum()))

    def _cautious(self, gaps: FloatArray, doubt: FloatArray) -> FloatArray:
        """Gaps made longer by a part of their standard deviations: a near test suffers more from an item farther out
        than it gains from one farther in."""
        if self.family.norm == "each":
            return np.asarray(gaps + CAUTION * np.sign(gaps) * np.sqrt(doubt))
        lengths = np.linalg.norm(gaps, axis=1)
        longer = lengths + CAUTION * np.sqrt(doubt.mean(axis=1))
        return np.asarray(gaps * (longer / np.maximum(lengths, 1e-300))[:, None])

    def _references(self, view: BelievedMeans, members: list[IntArray]) -> IntArray:
        """Of each group the item whose largest distance to another one is least; ties go to the most certain."""
        chosen = np.zeros(len(members), dtype=np.int64)
        for k, group in enumerate(members):
            if group.size > 2:
                apart = distances(view.means[group], self.family.norm, self.near).max(axis=1)
                doubt = (view.doubt[group] / self.near**2).max(axis=1)
                central = apart + CERTAINTY * np.sqrt(doubt)
                if self.price is not None:  # nearly as central, and cheap: a reference is measured most
                    cheap = self.price[group] * (central <= OFF_CENTRE * central.min())
                    central = np.where(cheap == cheap[cheap > 0.0].min(), central, np.inf)
                chosen[k] = group[int(np.argmin(central))]
            else:
                chosen[k] = group[int(np.argmin(view.doubt[group].sum(axis=1)))]
        return chosen

    def _worst_pairs(self, means: FloatArray, common: Guess, level: float) -> FloatArray:
        """(n) of each item of a group: contrasts against the item of it that is hardest to be near to."""
        n = len(means)
        if n == 1:
            return np.zeros(1)
        i, j = np.triu_indices(n, 1)
        needed = self.family.near_needed(self.near, 1, means[i] - means[j], common, level)
        worst = np.zeros(n)
        np.maximum.at(worst, i, needed)
        np.maximum.at(worst, j, needed)
        return worst

    def _sure(
        self, gaps: FloatArray, variance: FloatArray, weights: FloatArray, sizes: IntArray, i: IntArray, j: IntArray
    ) -> FloatArray:
        """Shares of gaps between groups that are left when what the choice of the groups made of noise is taken away.

        docs/RESOLUTION.md: the squared distance in units of the noise, less sel·(1/W_k + 1/W_l).
        """
        dim = variance.size
        n = (sizes[i] + sizes[j]).astype(np.float64)
        log_n = np.log(n)
        selected = np.maximum(
            SELECTED * (np.sqrt(n) + math.sqrt(dim)) ** 2, dim + 2.0 * np.sqrt(dim * log_n) + 2.0 * log_n
        )
        square = (gaps**2 / variance).sum(axis=1)
        excess = selected * (1.0 / weights[i] + 1.0 / weights[j])
        return np.asarray(np.sqrt(np.maximum(1.0 - excess / np.maximum(square, 1e-300), 0.0)))

    def _pulls(
        self, labels: IntArray, members: list[IntArray], chosen: IntArray, near: FloatArray, far: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        """Results of each arm that the tests need, and the ratio of each group."""
        pulls = near.copy()
        ratios = np.ones(len(members), dtype=np.int64)
        by_far = far.max(axis=1) if len(members) > 1 else np.zeros(len(members))
        for k, group in enumerate(members):
            lead = chosen[k]
            if self.any_two or group.size == 1:
                pulls[lead] = max(pulls[lead], by_far[k])
                continue
            total, worst = near[group].sum(), near[group].max() * (1.0 + LAST_OF_MANY * math.log(group.size))
            ratio = np.arange(1, MOST_RATIO + 1)
            share = 0.5 * (1.0 + 1.0 / ratio)
            costs = total * share + self._dear(int(lead), group, near[group]) * np.maximum(
                ratio * share * worst, by_far[k]
            )
            best = int(np.argmin(costs))
            ratios[k] = ratio[best]
            pulls[group] = near[group] * share[best]
            pulls[lead] = max(ratio[best] * share[best] * worst, by_far[k])
        return pulls, ratios

    def _dear(self, lead: int, group: IntArray, near: FloatArray) -> float:
        """What a result of the reference costs, in units of what one of the other items costs on average."""
        if self.price is None or not 0.0 < float(near.sum()) < math.inf:
            return 1.0
        return float(self.price[lead] * near.sum() / (self.price[group] @ near))

    def planned(self, sketch: Sketch, tally: Tally, level: float) -> Candidate:
        """A sketch with its tests written down."""
        view, labels, chosen, pulls = sketch.view, sketch.labels, sketch.references, sketch.pulls
        believed_so = view.means, view.doubt, tally.variance
        if self.any_two:
            item, mate = np.nonzero(np.triu(labels[:, None] == labels, 1))
            order = np.argsort(labels[item], kind="stable")
            item, mate, ratio = item[order], mate[order], np.ones(item.size, dtype=np.int64)
        else:
            item = np.setdiff1d(np.arange(labels.size), chosen)
            mate, ratio = chosen[labels[item]], sketch.ratios[labels[item]]
        near = planned(*believed_so, item, mate, ratio, self.near)
        k, other = np.triu_indices(chosen.size, 1)
        first, second = chosen[k], chosen[other]
        turned = (pulls[second] < pulls[first]) | ((pulls[second] == pulls[first]) & (second < first))
        few, many = np.where(turned, second, first), np.where(turned, first, second)
        with np.errstate(invalid="ignore"):
            times = np.where(np.isfinite(pulls[few]), pulls[many] / np.maximum(pulls[few], 1.0), 1.0)
        ratio = np.clip(times, 1.0, MOST_FAR_RATIO).astype(np.int64)
        far = planned(*believed_so, few, many, ratio, self.far, sketch.sure[k, other])
        return Candidate(labels, chosen, near, far, pulls, sketch.cost, view)
