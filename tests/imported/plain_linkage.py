"""What is measured next for single linkage with K, number by number: an oracle, on `plain_freezing`'s run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from plain_freezing import Candidate, Known, PlainRun, Test
from plain_groupings import agglomerated

from coterie.evidence.near_far.family import Guess

Vector = Any
Ball = tuple[int, float, list[int]]


class LinkageRule:
    """The numbers of the rule that single linkage has of its own."""

    HEIGHTS = (0.35, 0.5, 0.65, 0.8)
    RADII = (1.2, 1.6, 2.5)
    LEAST_SHARE, LEAST_RADIUS = 0.1, 0.05
    FREE = 1.02


class PlainLinkage(PlainRun):
    """A run for K groups; `near` and `far` are of no use here."""

    n_clusters: int

    def again(self, candidate: Candidate, known: Known, level: float) -> Candidate:
        return self.best(known, level)

    def best(self, known: Known, level: float) -> Candidate:
        arms, d = range(self.n_arms), known.means[0].size
        apart = np.zeros((self.n_arms, self.n_arms))
        for a in arms:
            for b in arms:
                if a != b:
                    square = math.fsum((known.means[a] - known.means[b]) ** 2)
                    noise = math.fsum(known.variance) * (1.0 / known.counts[a] + 1.0 / known.counts[b])
                    least = LinkageRule.LEAST_SHARE**2 * square
                    apart[a, b] = math.sqrt(square if d == 1 else max(square - noise, least))
        numbered = [np.array([arm]) for arm in arms]
        merged = agglomerated(numbered, lambda one, other: min(apart[a[0], b[0]] for a in one for b in other))
        labels = merged[self.n_clusters]
        groups = [[arm for arm in arms if labels[arm] == k] for k in range(self.n_clusters)]
        edges = [edge for group in groups for edge in spanning(group, apart)]
        longest = max((apart[edge] for edge in edges), default=0.0)
        between = min(apart[a, b] for a in arms for b in arms if labels[a] != labels[b])
        room = max(between - longest, 1e-9 * between)
        balls: list[Ball] = [(arm, 0.0, [arm]) for group in groups for arm in group]
        heights = [longest + share * room for share in LinkageRule.HEIGHTS]
        drafts = [(self.pulls(known, labels, one, edges, balls, apart, level), one) for one in heights]
        pulls, height = min(drafts, key=lambda draft: sum(draft[0]))
        for k, group in enumerate(groups):
            if len(group) < 2 or not math.isfinite(sum(pulls)):
                continue
            lead = min(group, key=lambda arm: (max(apart[arm, other] for other in group), arm))
            reach = max(apart[lead, other] for other in group)
            others = [ball for ball in balls if labels[ball[0]] != k]
            found: list[tuple[list[float], list[Ball]]] = []
            for multiple in LinkageRule.RADII:
                radius = max(multiple * reach, LinkageRule.LEAST_RADIUS * height)
                tried: list[Ball] = [*others, (lead, radius, group)]
                needed = self.pulls(known, labels, height, edges, tried, apart, level)
                if sum(needed) <= LinkageRule.FREE * sum(pulls):
                    found.append((needed, tried))
            if found:
                pulls, balls = min(found, key=lambda one: sum(one[0]))
        return self.written(known, labels, groups, height, edges, balls, apart, pulls)

    def pulls(
        self, known: Known, labels: list[int], height: float, edges: Any, balls: list[Ball], apart: Any, level: float
    ) -> list[float]:
        d = known.means[0].size
        pulls = [0.0] * self.n_arms

        def need(a: int, b: int, length: float, near: float | None) -> None:
            gap = known.means[a] - known.means[b]
            gap = gap * length / math.sqrt(math.fsum(gap**2))
            guess = self.guess(known, 0, 0)
            if near is None:
                wanted = float(self.family.far_needed(np.zeros(d), 1, gap[None], guess, level)[0])
            else:
                wanted = float(self.family.near_needed(np.full(d, near), 1, gap[None], guess, level)[0])
            pulls[a], pulls[b] = max(pulls[a], wanted), max(pulls[b], wanted)

        for a, b in edges:
            need(a, b, apart[a, b], height)
        for lead, radius, items in balls:
            for arm in items:
                if arm != lead:
                    need(arm, lead, apart[arm, lead], radius)
        for place, (lead, radius, _) in enumerate(balls):
            for other, its, _ in balls[place + 1 :]:
                if labels[lead] != labels[other]:
                    need(lead, other, max(apart[lead, other] - height - radius - its, 0.0), None)
        return pulls

    def guess(self, known: Known, item: int, reference: int) -> Guess:
        doubt = known.variance / known.counts[item] + known.variance / known.counts[reference]
        return Guess(known.means[item], known.means[reference], doubt, known.variance)

    def written(
        self,
        known: Known,
        labels: list[int],
        groups: Any,
        height: float,
        edges: Any,
        balls: Any,
        apart: Any,
        pulls: Any,
    ) -> Candidate:
        d = known.means[0].size
        tests = [Test("near", a, b, 1, np.full(d, height), self.guess(known, a, b)) for a, b in edges]
        for lead, radius, items in balls:
            for arm in items:
                if arm != lead:
                    tests.append(Test("near", arm, lead, 1, np.full(d, radius), self.guess(known, arm, lead)))
        for place, (lead, radius, _) in enumerate(balls):
            for other, its, _ in balls[place + 1 :]:
                if labels[lead] != labels[other]:
                    bound = np.full(d, height + radius + its)
                    tests.append(Test("far", lead, other, 1, bound, self.guess(known, lead, other)))
        leads = [min(group, key=lambda arm: (max(apart[arm, other] for other in group), arm)) for group in groups]
        stated = [round(height, 9), [[lead, round(radius, 9), items] for lead, radius, items in balls]]
        return Candidate(labels, leads, tests, pulls, [], known.means, stated)

    def doubts(self, candidate: Candidate, known: Known) -> list[float]:
        doubts = [0.0] * self.n_arms
        for test in candidate.tests:
            gap, noise = test.guess.gap, math.fsum(test.guess.doubt) / test.guess.doubt.size
            length = math.sqrt(max(math.fsum(gap**2) - (gap.size - 1) * noise, 0.0))
            margin = test.bound[0] - length if test.kind == "near" else length - test.bound[0]
            for arm in (test.item, test.reference):
                doubts[arm] = max(doubts[arm], math.exp(-0.5 * max(margin, 0.0) ** 2 / noise))
        return doubts


def spanning(group: list[int], apart: Any) -> list[tuple[int, int]]:
    """The edges of the shortest spanning tree, by always taking the shortest way out; lower arm first."""
    inside, edges = {group[0]}, []
    while len(inside) < len(group):
        ways = [(a, b) for a in inside for b in group if b not in inside]
        a, b = min(ways, key=lambda way: apart[way])
        inside.add(b)
        edges.append((min(a, b), max(a, b)))
    return sorted(edges)
