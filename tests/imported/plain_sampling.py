"""What is measured next for groups up to a resolution, number by number: slow, plain, an oracle of the engine's rule.

It is written from docs/RESOLUTION.md, section 11, one arm and one pair at a time, everything anew at every step.
Forecasts and parameters of a single test are those of the noise's family, which has tests of its own; the evidence of
tests is that of `plain_near_far`. Results are in scaled units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from plain_freezing import Candidate, Frozen, Known, PlainRun, Test
from plain_groupings import Rule, agglomerated, net, numbers_of_groups, refined, ward_cost

from coterie.evidence.near_far.family import Guess

Vector = Any


@dataclass
class Believed:
    means: list[Vector]
    doubt: list[Vector]
    centers: list[Vector]
    weights: list[float]


class PlainSampling(PlainRun):
    """Groups up to a resolution."""

    def best(self, known: Known, level: float) -> Candidate:
        net_labels, net_references = net(known.means, lambda gap: self.distance(gap, 0.5 * (self.near + self.far)))
        best, worse, seen = self.sketch(net_labels, net_references, known, level), 0, set()
        white = [mean / np.sqrt(known.variance) for mean in known.means]
        wards, complete = self.trees(white, known.means)
        for k in numbers_of_groups(self.n_arms):
            found = []
            for labels in (wards[k], refined(white, known.counts, wards[k]), complete[k]):
                if tuple(labels) not in seen:
                    seen.add(tuple(labels))
                    found.append(self.sketch(labels, None, known, level))
            if not found:
                continue
            least = min(found, key=lambda one: one.cost)
            if least.cost < best.cost:
                best, worse = least, 0
            elif k > len(best.references) and least.cost > Rule.HOPELESS * best.cost:
                worse += 1
            if worse >= Rule.PATIENCE:
                break
        return best

    def trees(self, white: list[Vector], means: list[Vector]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Groups for every number of them: by Ward's linkage, and by complete linkage."""
        complete = agglomerated(means, lambda a, b: max(self.distance(x - y, 1.0) for x in a for y in b))
        return agglomerated(white, ward_cost), complete

    def again(self, candidate: Candidate, known: Known, level: float) -> Candidate:
        return self.sketch(candidate.labels, candidate.references, known, level)

    def sketch(self, labels: list[int], references: list[int] | None, known: Known, level: float) -> Candidate:
        view = believed(labels, known)
        groups = [[arm for arm, own in enumerate(labels) if own == k] for k in range(max(labels) + 1)]
        leads = [self.central(group, view) for group in groups] if references is None else references
        alone = self.alone(groups, leads, view, known, level)
        sure, far = self.between(groups, leads, view, known, level)
        pulls, ratios = alone.copy(), [1] * len(groups)
        for k, (group, lead) in enumerate(zip(groups, leads, strict=True)):
            pulls[lead] = max(pulls[lead], far[k].max())
            if not self.any_two and len(group) > 1:
                ratios[k] = self.ratio([alone[arm] for arm in group], group, lead, far[k].max())
                share = 0.5 * (1.0 + 1.0 / ratios[k])
                worst = max(alone[arm] for arm in group) * (1.0 + Rule.LAST_OF_MANY * math.log(len(group)))
                for arm in group:
                    pulls[arm] = alone[arm] * share
                pulls[lead] = max(ratios[k] * share * worst, far[k].max())
        tests = self.tests(groups, leads, ratios, pulls, sure, view, known)
        return Candidate(labels, leads, tests, pulls, view.centers, view.means)

    def needed(self, kind: str, gap: Vector, view: Believed, known: Known, level: float) -> float:
        guess = Guess(0.0 * gap, 0.0 * gap, 2.0 * np.mean(view.doubt, axis=0), known.variance)
        if kind == "near":
            return float(self.family.near_needed(self.near, 1, gap[None], guess, level)[0])
        return float(self.family.far_needed(self.far, 1, gap[None], guess, level)[0])

    def alone(self, groups: Any, leads: list[int], view: Believed, known: Known, level: float) -> list[float]:
        """Contrasts of each arm that its near tests need, at ratio 1."""
        alone = [0.0] * self.n_arms
        for group, lead in zip(groups, leads, strict=True):
            for arm in group:
                gaps = []
                if self.any_two:
                    gaps = [view.means[min(arm, o)] - view.means[max(arm, o)] for o in group if o != arm]
                elif arm != lead:
                    gaps = [self.cautious(view.means[arm] - view.means[lead], view.doubt[arm] + view.doubt[lead])]
                alone[arm] = max((self.needed("near", gap, view, known, level) for gap in gaps), default=0.0)
        return alone

    def between(self, groups: Any, leads: list[int], view: Believed, known: Known, level: float) -> tuple[Any, Any]:
        """Of every two references: the share of their gap that is believed, and contrasts at ratio 1."""
        sure, far = np.ones((len(groups), len(groups))), np.zeros((len(groups), len(groups)))
        for k in range(len(groups)):
            for other in range(k + 1, len(groups)):
                gap = view.means[leads[k]] - view.means[leads[other]]
                items = len(groups[k]) + len(groups[other])
                sure[k, other] = self.believed_share(gap, items, view.weights[k], view.weights[other], known)
                far[k, other] = far[other, k] = self.needed("far", gap * sure[k, other], view, known, level)
        return sure, far

    def tests(
        self, groups: Any, leads: list[int], ratios: list[int], pulls: Any, sure: Any, view: Believed, known: Known
    ) -> list[Test]:
        def guess(item: int, reference: int) -> Guess:
            doubt = view.doubt[item] + view.doubt[reference]
            return Guess(view.means[item], view.means[reference], doubt, known.variance)

        tests: list[Test] = []
        for k, group in enumerate(groups):
            if self.any_two:
                pairs = [(a, b) for place, a in enumerate(group) for b in group[place + 1 :]]
            else:
                pairs = [(arm, leads[k]) for arm in group if arm != leads[k]]
            tests += [Test("near", a, b, ratios[k], self.near, guess(a, b)) for a, b in pairs]
        if not self.any_two:
            tests.sort(key=lambda test: test.item)
        for k in range(len(groups)):
            for other in range(k + 1, len(groups)):
                few, many = sorted((leads[k], leads[other]), key=lambda arm: (pulls[arm], arm))
                times = pulls[many] / max(pulls[few], 1.0) if pulls[few] < math.inf else 1.0
                ratio = int(min(max(times, 1.0), Rule.MOST_FAR_RATIO))
                tests.append(Test("far", few, many, ratio, self.far, guess(few, many), float(sure[k, other])))
        return tests

    def cautious(self, gap: Vector, doubt: Vector) -> Vector:
        if self.family.norm == "each":
            return gap + Rule.CAUTION * np.sign(gap) * np.sqrt(doubt)
        length = math.sqrt(math.fsum(gap**2))
        return gap * (length + Rule.CAUTION * math.sqrt(math.fsum(doubt) / doubt.size)) / max(length, 1e-300)

    def central(self, group: list[int], view: Believed) -> int:
        if len(group) <= 2:
            return min(group, key=lambda arm: (math.fsum(view.doubt[arm]), arm))
        out = {}
        for arm in group:
            farthest = max(self.distance(view.means[arm] - view.means[other], self.near) for other in group)
            out[arm] = farthest + Rule.CERTAINTY * math.sqrt(max(view.doubt[arm] / self.near**2))
        if self.price is not None:
            inside = [arm for arm in group if out[arm] <= Rule.OFF_CENTRE * min(out.values())]
            group = [arm for arm in inside if self.price[arm] == min(self.price[other] for other in inside)]
        return min(group, key=lambda arm: (out[arm], arm))

    def believed_share(self, gap: Vector, items: int, weight: float, other: float, known: Known) -> float:
        d = gap.size
        selected = max(
            Rule.SELECTED * (math.sqrt(items) + math.sqrt(d)) ** 2,
            d + 2.0 * math.sqrt(d * math.log(items)) + 2.0 * math.log(items),
        )
        square = math.fsum(gap**2 / known.variance)
        return math.sqrt(max(1.0 - selected * (1.0 / weight + 1.0 / other) / max(square, 1e-300), 0.0))

    def ratio(self, alone: list[float], group: list[int], lead: int, by_far: float) -> int:
        worst = max(alone) * (1.0 + Rule.LAST_OF_MANY * math.log(len(group)))
        dear = 1.0
        if self.price is not None and 0.0 < sum(alone) < math.inf:
            spent = sum(self.price[arm] * one for arm, one in zip(group, alone, strict=True))
            dear = self.price[lead] * sum(alone) / spent
        costs = []
        for ratio in range(1, Rule.MOST_RATIO + 1):
            share = 0.5 * (1.0 + 1.0 / ratio)
            costs.append(sum(alone) * share + dear * max(ratio * share * worst, by_far))
        return 1 + costs.index(min(costs))

    def doubts(self, candidate: Candidate, known: Known) -> list[float]:
        view = believed(candidate.labels, known)
        doubts = [min(odds, 1.0) for odds in self.move_odds(candidate.labels, candidate.references, view, known)]
        for test in candidate.tests:
            gap, sd = test.sure * test.guess.gap, np.sqrt(test.guess.doubt)
            if self.family.norm == "each":
                z = min((self.near - abs(gap)) / sd) if test.kind == "near" else max((abs(gap) - self.far) / sd)
            else:
                length, spread = math.sqrt(math.fsum(gap**2)), math.fsum(sd) / sd.size
                z = (self.near[0] - length if test.kind == "near" else length - self.far[0]) / spread
            for arm in (test.item, test.reference):
                doubts[arm] = max(doubts[arm], Rule.CLAIM_WEIGHT * math.exp(-0.5 * max(z, 0.0) ** 2))
        return doubts

    def move_odds(self, labels: list[int], leads: list[int], view: Believed, known: Known) -> list[float]:
        odds = []
        for arm, own in enumerate(labels):
            total = 0.0
            for k, lead in enumerate(leads):
                apart = self.distance(view.means[leads[own]] - view.means[lead], self.near)
                if k != own and apart >= Rule.APART:
                    away = [math.fsum((known.means[arm] - view.centers[g]) ** 2 / known.variance) for g in (k, own)]
                    loss = 0.5 * known.counts[arm] * (away[0] - away[1])
                    total += math.exp(-min(max(loss, -50.0), 700.0))
            odds.append(total)
        return odds

    def misplaced(self, epoch: Frozen, known: Known) -> bool:
        labels, leads = epoch.candidate.labels, epoch.candidate.references
        odds = self.move_odds(labels, leads, believed(labels, known), known)
        for arm, own in enumerate(labels):
            if odds[arm] > Rule.MISPLACED and self.wants(epoch, arm):
                gap = known.means[arm] - known.means[leads[own]]
                noise = known.variance * (1.0 / known.counts[arm] + 1.0 / known.counts[leads[own]])
                if self.family.norm == "each":
                    if any(np.sqrt(np.maximum(gap**2 - noise, 0.0)) > Rule.CLEARLY_NEAR * self.near):
                        return True
                elif math.fsum(gap**2) - math.fsum(noise) > (Rule.CLEARLY_NEAR * self.near[0]) ** 2:
                    return True
        return False


def believed(labels: list[int], known: Known) -> Believed:
    """Means drawn towards the centers of their groups."""
    groups = [[arm for arm, own in enumerate(labels) if own == k] for k in range(max(labels) + 1)]
    weights = [float(sum(known.counts[arm] for arm in group)) for group in groups]
    centers = [
        sum(known.counts[arm] * known.means[arm] for arm in group) / weight
        for group, weight in zip(groups, weights, strict=True)
    ]
    own = [known.variance / count for count in known.counts]
    excess, rooms = [], []
    for group, weight, center in zip(groups, weights, centers, strict=True):
        shared = {arm: 1.0 - known.counts[arm] / weight for arm in group} if len(group) > 1 else {}
        excess.append(sum(((known.means[a] - center) ** 2 - own[a] * s for a, s in shared.items()), 0.0 * center))
        rooms.append(sum(shared.values()))
    means, doubt = list(known.means), list(own)
    for k, group in enumerate(groups):
        if len(group) == 1:
            continue
        noise = sum(own[arm] for arm in group) / len(group)
        alone = excess[k] / rooms[k] - Rule.SURE * math.sqrt(2.0 / (len(group) - 1)) * noise
        spread = np.maximum(np.maximum(alone, sum(excess) / sum(rooms)), 0.0)
        for arm in group:
            kept = spread / (spread + own[arm])
            means[arm] = centers[k] + kept * (known.means[arm] - centers[k])
            doubt[arm] = kept * own[arm] + known.variance / weights[k]
    return Believed(means, doubt, centers, weights)
