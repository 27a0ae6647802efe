"""Single linkage with K: the candidate is its groups on the estimated means, cut at a height in their widest gap.

Tests: every edge of a spanning tree of each group is shorter than the height; items of different groups are farther
apart, one by one or, where that needs no more results, through balls about a reference and the triangle inequality
(docs/RESOLUTION.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.evidence.near_far.family import Guess
from coterie.methods.resolution.candidate import Candidate, PlannedTests, planned
from coterie.methods.resolution.epoch import Epoch, RunEvidence, covers_linkage
from coterie.methods.resolution.estimates import BelievedMeans, Tally, distances
from coterie.methods.resolution.questions import AskedQuestion
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical, same_partition

HEIGHTS = (0.35, 0.5, 0.65, 0.8)
"""Places of the height in the gap, between the longest edge within a group and the shortest distance between two."""
RADII = (1.2, 1.6, 2.5)
"""Of a ball about a reference, as multiples of the largest distance to it."""
LEAST_SHARE = 0.1
"""Of a distance of estimated means: what the noise added to it leaves no less of it."""
LEAST_RADIUS = 0.05
"""Of the height: no ball is smaller."""
HOPELESS_GAP = 1e-9
"""Of a distance: the gap where estimated distances tie, which no test could be made for."""
FREE = 1.02
"""A ball is taken for a group if the forecast grows by no more than this: it makes fewer tests."""


def single_linkage(apart: FloatArray, k: int) -> tuple[IntArray, IntArray]:
    """The k groups of single linkage, by distances (M, M), and the edges (M − k, 2) of their shortest spanning trees.

    The shortest tree of all items without its k − 1 longest edges: what is left spans the groups. Edges have the lower
    item first, and stand in the order of groups, then of items.
    """
    edges = spanning_tree(apart)
    kept = edges[np.argsort(apart[edges[:, 0], edges[:, 1]], kind="stable")[: len(apart) - k]]
    piece = np.arange(len(apart))
    for item, other in kept.tolist():
        piece[piece == piece[other]] = piece[item]
    labels = canonical(piece)
    return labels, kept[np.lexsort((kept[:, 1], kept[:, 0], labels[kept[:, 0]]))]


def spanning_tree(apart: FloatArray) -> IntArray:
    """The edges (M − 1, 2) of a shortest spanning tree, the lower item first, by the way of Prim.

    No length is special: 0 is an edge like any other. Of ways of the same length the one to the lowest item is taken.
    """
    n = len(apart)
    edges = np.zeros((n - 1, 2), dtype=np.int64)
    outside = np.ones(n, dtype=bool)
    outside[0] = False
    reach, via = apart[0].copy(), np.zeros(n, dtype=np.int64)
    reach[0] = np.inf
    for row in range(n - 1):
        item = int(np.argmin(reach))
        edges[row] = sorted((item, int(via[item])))
        outside[item], reach[item] = False, np.inf
        shorter = outside & (apart[item] < reach)
        reach[shorter], via[shorter] = apart[item, shorter], item
    return edges


@dataclass(frozen=True)
class Ball:
    """Items within `radius` of a reference; a single item has the radius 0."""

    reference: int
    radius: float
    items: tuple[int, ...]


@dataclass(frozen=True)
class _Draft:
    """Groups, a height, spanning edges and balls, with the results that the tests need of each arm."""

    labels: IntArray
    height: float
    edges: IntArray
    balls: list[Ball]
    pulls: FloatArray

    @property
    def cost(self) -> float:
        return float(self.pulls.sum())


class AskedLinkage(AskedQuestion):
    """The K groups of single linkage of the true means."""

    def __init__(self, evidence: RunEvidence, n_clusters: int, dim: int) -> None:
        super().__init__(evidence, dim)
        self._n_clusters = n_clusters

    def best(self, tally: Tally, level: float) -> Candidate:
        apart = self._apart(tally)
        labels, edges = single_linkage(apart, self._n_clusters)
        longest = float(apart[edges[:, 0], edges[:, 1]].max(initial=0.0))
        between = float(apart[labels[:, None] != labels].min())
        # Where estimates tie there is no gap: one that is hopeless to show, in units of the distances or of the noise.
        room = max(between - longest, HOPELESS_GAP * (between or math.sqrt(float(tally.variance.sum()))))
        singles = [[Ball(int(arm), 0.0, (int(arm),))] for k in range(self._n_clusters) for arm in _members(labels, k)]
        start = [ball for balls in singles for ball in balls]
        drafts = [self._draft(tally, labels, longest + share * room, edges, start, apart, level) for share in HEIGHTS]
        best = min(drafts, key=lambda draft: draft.cost)
        if math.isfinite(best.cost):
            for k in range(self._n_clusters):
                best = self._with_ball(best, k, tally, apart, level)
        return self._planned(best, tally, apart)

    def again(self, candidate: Candidate, tally: Tally, level: float) -> Candidate:
        return self.best(tally, level)

    def _apart(self, tally: Tally) -> FloatArray:
        """(M, M) distances of the estimated means, less what the noise adds to them."""
        raw = distances(tally.means, "distance", np.ones(self.dim))
        if self.dim == 1:
            return raw
        noise = float(tally.variance.sum()) / np.maximum(tally.counts, 1)
        lengths = np.sqrt(np.maximum(raw**2 - noise[:, None] - noise, (LEAST_SHARE * raw) ** 2))
        np.fill_diagonal(lengths, 0.0)
        return np.asarray(lengths)

    def _gaps(self, tally: Tally, i: IntArray, j: IntArray, lengths: FloatArray) -> FloatArray:
        """Estimated differences of arms, made as long as they are believed to be."""
        gaps = tally.means[i] - tally.means[j]
        raw = np.linalg.norm(gaps, axis=1)
        return np.asarray(gaps * (lengths / np.where(raw > 0.0, raw, 1.0))[:, None])

    def _draft(
        self,
        tally: Tally,
        labels: IntArray,
        height: float,
        edges: IntArray,
        balls: list[Ball],
        apart: FloatArray,
        level: float,
    ) -> _Draft:
        pulls = np.zeros(labels.size)
        zero = np.zeros(self.dim)
        common = Guess(zero, tally.means[0], zero, tally.variance)

        def need(i: IntArray, j: IntArray, wanted: FloatArray) -> None:
            np.maximum.at(pulls, i, wanted)
            np.maximum.at(pulls, j, wanted)

        if len(edges):
            i, j = edges.T
            gaps = self._gaps(tally, i, j, apart[i, j])
            need(i, j, self.family.near_needed(np.full(self.dim, height), 1, gaps, common, level))
        for ball in balls:
            if ball.radius > 0.0:
                i = np.array([arm for arm in ball.items if arm != ball.reference])
                j = np.full(i.size, ball.reference)
                gaps = self._gaps(tally, i, j, apart[i, j])
                need(i, j, self.family.near_needed(np.full(self.dim, ball.radius), 1, gaps, common, level))
        leads, radii = _centers(balls)
        a, b = np.nonzero(np.triu(labels[leads][:, None] != labels[leads]))
        over = np.maximum(apart[leads[a], leads[b]] - height - radii[a] - radii[b], 0.0)
        gaps = self._gaps(tally, leads[a], leads[b], over)
        need(leads[a], leads[b], self.family.far_needed(np.zeros(self.dim), 1, gaps, common, level))
        return _Draft(labels, height, edges, balls, pulls)

    def _with_ball(self, draft: _Draft, k: int, tally: Tally, apart: FloatArray, level: float) -> _Draft:
        """The draft with one ball for a group, if that is about as cheap."""
        group = _members(draft.labels, k)
        if group.size < 2:
            return draft
        inner = apart[np.ix_(group, group)].max(axis=1)
        lead, reach = int(group[int(np.argmin(inner))]), float(inner.min())
        others = [ball for ball in draft.balls if draft.labels[ball.reference] != k]
        best = draft
        for multiple in RADII:
            ball = Ball(lead, max(multiple * reach, LEAST_RADIUS * draft.height), tuple(group.tolist()))
            other_draft = self._draft(tally, draft.labels, draft.height, draft.edges, [*others, ball], apart, level)
            if other_draft.cost <= FREE * draft.cost and (best is draft or other_draft.cost < best.cost):
                best = other_draft
        return best

    def _planned(self, draft: _Draft, tally: Tally, apart: FloatArray) -> Candidate:
        labels, means, variance = draft.labels, tally.means, tally.variance
        counts = np.maximum(tally.counts, 1)
        doubt = variance / counts[:, None]
        pairs, bounds = [draft.edges], [np.full(len(draft.edges), draft.height)]
        for ball in draft.balls:
            others = np.array([arm for arm in ball.items if arm != ball.reference], dtype=np.int64)
            if others.size:
                pairs.append(np.stack([others, np.full(others.size, ball.reference)], axis=1))
                bounds.append(np.full(others.size, ball.radius))
        near = self._tests(means, doubt, variance, np.concatenate(pairs).T, np.concatenate(bounds))
        leads, radii = _centers(draft.balls)
        a, b = np.nonzero(np.triu(labels[leads][:, None] != labels[leads]))
        bound = draft.height + radii[a] + radii[b]
        far = self._tests(means, doubt, variance, np.stack([leads[a], leads[b]]), bound)
        references = []
        for k in range(self._n_clusters):
            group = _members(labels, k)
            references.append(int(group[int(np.argmin(apart[np.ix_(group, group)].max(axis=1)))]))
        view = BelievedMeans(means, doubt, means[references], counts[references])
        balls = [(ball.reference, ball.radius, list(ball.items)) for ball in draft.balls]
        return Candidate(
            labels, np.array(references), near, far, draft.pulls, draft.cost, view, draft.height, balls
        )  # fmt: skip

    def _tests(
        self, means: FloatArray, doubt: FloatArray, variance: FloatArray, pairs: IntArray, bound: FloatArray
    ) -> PlannedTests:
        item, reference = pairs
        return planned(means, doubt, variance, item, reference, np.ones(item.size, dtype=np.int64), bound[:, None])

    def covers(self, epoch: Epoch) -> bool:
        return covers_linkage(epoch, self._n_clusters)

    def stated(self, candidate: Candidate) -> dict[str, Any]:
        balls = [[reference, radius, items] for reference, radius, items in candidate.balls]
        return {"height": candidate.height, "balls": balls}

    def doubts(self, candidate: Candidate, tally: Tally) -> FloatArray:
        """Of each arm: how likely one of its tests is about something false, roughly."""
        doubts = np.zeros(candidate.labels.size)
        for tests, sign in ((candidate.near, 1.0), (candidate.far, -1.0)):
            noise = tests.guess.doubt.mean(axis=1)
            square = (tests.guess.gap**2).sum(axis=1)
            length = np.sqrt(np.maximum(square - (self.dim - 1) * noise, 0.0))
            margin = np.maximum(sign * (tests.bound[:, 0] - length), 0.0)
            odds = np.exp(-0.5 * margin**2 / np.maximum(noise, np.finfo(float).tiny))
            np.maximum.at(doubts, tests.item, odds)
            np.maximum.at(doubts, tests.reference, odds)
        return doubts

    def holds(self, epoch: Epoch, means: FloatArray) -> bool:
        truth, _ = single_linkage(distances(means, "distance", np.ones(self.dim)), self._n_clusters)
        return same_partition(truth, epoch.labels)


def _centers(balls: list[Ball]) -> tuple[IntArray, FloatArray]:
    """The references of balls, and their radii."""
    return np.array([ball.reference for ball in balls]), np.array([ball.radius for ball in balls])


def _members(labels: IntArray, k: int) -> IntArray:
    return np.flatnonzero(labels == k)
