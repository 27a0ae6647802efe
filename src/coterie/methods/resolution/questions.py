"""What a question adds to a run of freezes: which candidates, what is doubtful about one, what a freeze says."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from coterie.evidence.near_far.family import Family, Guess
from coterie.methods.resolution.candidate import Candidate, Forecaster
from coterie.methods.resolution.epoch import Epoch, RunEvidence, covers_any_two, covers_references
from coterie.methods.resolution.estimates import BelievedMeans, Tally, believed, distances
from coterie.problem.checks import FloatArray, IntArray

MISPLACED = 20.0
"""Odds for another group at which an arm is in the wrong one: its test would hardly ever be met."""
CLEARLY_NEAR = 0.7
"""Of η: an item that is estimated to be nearer than that to its reference is left where it is."""
CLAIM_WEIGHT = 0.5
"""Of the odds that a claim about an arm is false, beside those that the arm is in the wrong group."""
MATTERS = 0.8
"""Of η: groups whose references are estimated to be nearer than that may as well have an item of the other."""
LEAST_LEFT, LEAST_PACE = 0.05, 0.1
"""Of its forecast: a test that is about to be met needs no less; of its level: one that is late has got no less."""


class AskedQuestion(ABC):
    """A question with its evidence. `price` (M): of a result of each arm, where they differ."""

    price: FloatArray | None = None

    def __init__(self, evidence: RunEvidence, dim: int) -> None:
        self.evidence, self.dim = evidence, dim

    @property
    def family(self) -> Family:
        """The near and far tests."""
        return self.evidence.family

    @abstractmethod
    def best(self, tally: Tally, level: float) -> Candidate:
        """The candidate that is forecast to need the fewest results."""

    @abstractmethod
    def again(self, candidate: Candidate, tally: Tally, level: float) -> Candidate:
        """The same groups, with forecasts from what is known by now."""

    @abstractmethod
    def stated(self, candidate: Candidate) -> dict[str, Any]:
        """What a freeze says beside its labels, references and tests."""

    @abstractmethod
    def covers(self, epoch: Epoch) -> bool:
        """Whether the tests of an epoch say all that is claimed: what they leave open is never called proven."""

    @abstractmethod
    def doubts(self, candidate: Candidate, tally: Tally) -> FloatArray:
        """(M) how likely each arm is in the wrong group, roughly."""

    def misplaced(self, epoch: Epoch, tally: Tally) -> bool:
        """Whether all results together put an arm with an unmet test clearly into another group."""
        return False

    @abstractmethod
    def holds(self, epoch: Epoch, means: FloatArray) -> bool:
        """Whether what an epoch claims holds for these true means (M, d)."""

    def borders(self, labels: IntArray | None, references: IntArray | None, tally: Tally) -> dict[int, list[int]]:
        """Arms whose estimated mean suits other groups too, and these groups."""
        return {}

    def widened(self, factor: float, tally: Tally, level: float) -> float:
        """The forecast for a nearness of so many times the one that is asked for."""
        return math.inf

    def left(
        self, epoch: Epoch, which: IntArray, gap: FloatArray, doubt: FloatArray, variance: FloatArray
    ) -> FloatArray:  # fmt: skip
        """Forecasts of contrasts that unmet tests still need; infinite if all results speak against one.

        `which`: the tests; `gap`, `doubt` (n, d) of them. What the noise adds to a distance is taken off, and one
        standard deviation is given in a test's favour.
        """
        sd, near = np.sqrt(doubt), epoch.is_near[which]
        smaller = np.sign(gap) * np.maximum(np.abs(gap) - sd, 0.0)
        if self.family.norm == "distance":
            length = np.linalg.norm(gap, axis=1)
            believed_length = np.sqrt(np.maximum(length**2 - doubt.sum(axis=1), 0.0)) - sd.mean(axis=1)
            smaller = gap * (np.maximum(believed_length, 0.0) / np.where(length > 0.0, length, 1.0))[:, None]
        needed = np.zeros(which.size)
        for rows, make, hopeful in (
            (near, self.family.near_needed, smaller),
            (~near, self.family.far_needed, gap + np.sign(gap) * sd),
        ):
            tests, guess = which[rows], Guess(gap[rows], np.zeros_like(gap[rows]), doubt[rows], variance)
            if tests.size:
                needed[rows] = make(epoch.bound[tests], epoch.ratio[tests], hopeful[rows], guess, epoch.level)
        count, evidence = epoch.count[which], epoch.evidence[which]
        early = (count < needed) | ~np.isfinite(needed)
        # One that should be met by now: its parameters may not suit the means, so it is judged by how it went.
        with np.errstate(invalid="ignore"):  # without a contrast there is no evidence, and nothing is late
            late = count * (epoch.level - evidence) / np.maximum(evidence, LEAST_PACE * epoch.level)
        return np.where(early, np.maximum(needed - count, LEAST_LEFT * needed), late)


def move_odds(
    labels: IntArray, centers: FloatArray, means: FloatArray, counts: IntArray, variance: FloatArray, matters: Any
) -> FloatArray:
    """(M) the odds that an arm belongs to another group, where that matters: Σ of exp(−loss of log-likelihood)."""
    n_arms = labels.size
    white, points = means / np.sqrt(variance), centers / np.sqrt(variance)
    away = ((white[:, None] - points) ** 2).sum(axis=2)
    loss = 0.5 * counts[:, None] * (away - away[np.arange(n_arms), labels][:, None])
    odds = np.exp(-np.clip(loss, -50.0, 700.0)) * matters[labels]
    odds[np.arange(n_arms), labels] = 0.0
    return np.asarray(odds.sum(axis=1))


class AskedResolution(AskedQuestion):
    """Groups up to a resolution, in scaled units: near is η = `near`, far is ε = `far` (both (d))."""

    def __init__(
        self,
        evidence: RunEvidence,
        near: FloatArray,
        far: FloatArray,
        any_two: bool,
        stated: dict[str, Any],
    ) -> None:
        super().__init__(evidence, near.size)
        self.near, self.far, self._any_two, self._stated = near, far, any_two, stated

    def best(self, tally: Tally, level: float) -> Candidate:
        return Forecaster(self.family, self.near, self.far, self._any_two, self.price).best(tally, level)

    def again(self, candidate: Candidate, tally: Tally, level: float) -> Candidate:
        return Forecaster(self.family, self.near, self.far, self._any_two, self.price).again(candidate, tally, level)

    def stated(self, candidate: Candidate) -> dict[str, Any]:
        return dict(self._stated)

    def covers(self, epoch: Epoch) -> bool:
        return (covers_any_two if self._any_two else covers_references)(epoch, self.near, self.far)

    def doubts(self, candidate: Candidate, tally: Tally) -> FloatArray:
        """An arm of another group matters where that group lies far from its own reference."""
        odds = np.minimum(self._odds(candidate.labels, candidate.references, candidate.view, tally), 1.0)
        return np.maximum(odds, CLAIM_WEIGHT * self._claim_odds(candidate, tally))

    def _claim_odds(self, candidate: Candidate, tally: Tally) -> FloatArray:
        """(M) how likely a claim about an arm is false, roughly: exp(−z²/2), z the distance from its bound."""
        odds = np.zeros(candidate.labels.size)
        for tests, near in ((candidate.near, True), (candidate.far, False)):
            gaps, sd = tests.believed_gap, np.sqrt(tests.guess.doubt)
            if self.family.norm == "each":
                z = (self.near - np.abs(gaps)) / sd if near else (np.abs(gaps) - self.far) / sd
                margin = z.min(axis=1) if near else z.max(axis=1)
            else:
                lengths, spread = np.linalg.norm(gaps, axis=1), sd.mean(axis=1)
                margin = ((self.near[0] - lengths) if near else (lengths - self.far[0])) / spread
            risk = np.exp(-0.5 * np.maximum(margin, 0.0) ** 2)
            np.maximum.at(odds, tests.item, risk)
            np.maximum.at(odds, tests.reference, risk)
        return odds

    def _odds(self, labels: IntArray, references: IntArray, view: BelievedMeans, tally: Tally) -> FloatArray:
        if len(references) == 1:
            return np.zeros(labels.size)
        apart = distances(view.means[references], self.family.norm, self.near)
        matters = (apart >= MATTERS).astype(np.float64)
        return move_odds(labels, view.centers, tally.means, tally.counts, tally.variance, matters)

    def misplaced(self, epoch: Epoch, tally: Tally) -> bool:
        odds = self._odds(epoch.labels, epoch.references, believed(tally, epoch.labels), tally)
        suspects = [int(arm) for arm in np.flatnonzero(odds > MISPLACED) if epoch.wants(int(arm))]
        return any(self._looks_far(arm, int(epoch.references[epoch.labels[arm]]), tally) for arm in suspects)

    def _looks_far(self, arm: int, reference: int, tally: Tally) -> bool:
        """Whether the estimated difference, less what the noise adds to it, is not clearly near."""
        gap = tally.means[arm] - tally.means[reference]
        doubt = tally.variance * (1.0 / tally.counts[arm] + 1.0 / tally.counts[reference])
        if self.family.norm == "each":
            return bool((np.sqrt(np.maximum(gap**2 - doubt, 0.0)) > CLEARLY_NEAR * self.near).any())
        return float(gap @ gap - doubt.sum()) > (CLEARLY_NEAR * float(self.near[0])) ** 2

    def holds(self, epoch: Epoch, means: FloatArray) -> bool:
        labels, references = epoch.labels, epoch.references
        apart = distances(means, self.family.norm, np.ones(self.dim))
        near = apart < 1.0 if self.family.norm == "distance" else within(means, self.near)
        far = apart > self.far[0] if self.family.norm == "distance" else ~within(means, self.far, touching=True)
        if self._any_two:
            same = labels[:, None] == labels
            by_group = np.zeros((references.size, references.size), dtype=bool)
            np.logical_or.at(by_group, (labels[:, None] + 0 * labels, labels + 0 * labels[:, None]), far)
            apart_enough = by_group[~np.eye(references.size, dtype=bool)].all()
            return bool((near | ~same | np.eye(labels.size, dtype=bool)).all() and apart_enough)
        own = near[np.arange(labels.size), references[labels]]
        own[references] = True
        pairs = far[np.ix_(references, references)]
        return bool(own.all() and pairs[~np.eye(references.size, dtype=bool)].all())

    def borders(self, labels: IntArray | None, references: IntArray | None, tally: Tally) -> dict[int, list[int]]:
        if labels is None or references is None:
            return {}
        near_others: dict[int, list[int]] = {}
        gaps = tally.means[:, None] - tally.means[references]
        if self.family.norm == "each":
            suits = np.asarray((np.abs(gaps) < self.near).all(axis=2))
        else:
            suits = np.asarray(np.linalg.norm(gaps, axis=2) < self.near[0])
        suits[np.arange(labels.size), labels] = False
        suits[references] = False
        for arm in np.flatnonzero(suits.any(axis=1)):
            near_others[int(arm)] = np.flatnonzero(suits[arm]).tolist()
        return near_others

    def widened(self, factor: float, tally: Tally, level: float) -> float:
        wider = Forecaster(self.family, self.near * factor, self.far, self._any_two, self.price)
        return wider.best(tally, level).cost


def within(means: FloatArray, bound: FloatArray, touching: bool = False) -> Any:
    """(M, M) whether two means differ by less than the bound in every coordinate; `touching`: or by as much."""
    inside = np.ones((len(means), len(means)), dtype=bool)
    for column, limit in zip(means.T, bound, strict=True):
        gap = np.abs(column[:, None] - column)
        inside &= gap <= limit if touching else gap < limit
    return inside
