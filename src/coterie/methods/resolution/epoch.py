"""What enters a proof: the tests for a noise, a frozen candidate with its tests, and whether these say all it claims.

The tests see only results that were asked for after the freeze, in the order of each arm. If a claim is false, the
null of one of the tests that cover it is true: docs/RESOLUTION.md, section 3, has the rule. The verifier has it once
more, in `coterie.certificate.resolution_cover`, and shares no line with this: a candidate whose tests leave a gap is
never called proven here, and refused there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coterie.evidence.near_far import family_for, norm_of, scale_of
from coterie.evidence.near_far.family import Family, PairTests
from coterie.evidence.near_far.gaussian import SHARE_OF_BOUNDS, GaussianFamily, first_results, upper_variances
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import Bounded, Counts, Gaussian, Model, Unknown
from coterie.problem.noise import Noise
from coterie.problem.question import Question, Resolution

NEAR, FAR = "near", "far"

FIRST_RESULTS = 2
"""Of every arm, before the first candidate."""
LEAST_DEVIATION = 1e-3
"""Of the range of a result: its standard deviation is taken for no less, however alike the results."""
LEAST_OF_COUNTS = 0.1
"""Of the square root of the trials: the standard deviation of a count is taken for no less."""
LEAST_VARIANCE = 1e-12
"""Of the square of a unit of a resolution, or of the bound of Gaussian noise: one result is taken to vary no less."""


class Epoch:
    """The tests of one frozen candidate, made from what the freeze says alone.

    `frozen`: the decision, as plain JSON (docs/RESOLUTION.md). Tests are rows: the near ones in the order of the
    freeze, then the far ones. Of each `item`, `reference`, `ratio`, `bound` (n, d), and `met_at`: contrasts when it was
    met; 0 as long as it is not. `unmet` (M): of each arm, tests that are not met. `covered`: whether the tests say all
    that is claimed; who asks the question knows that, and says so.
    """

    def __init__(self, frozen: dict[str, Any], family: Family, n_arms: int) -> None:
        self.frozen = frozen
        self.number, self.level = int(frozen["epoch"]), float(frozen["level"])
        self.labels: IntArray = np.array(frozen["labels"], dtype=np.int64)
        self.references: IntArray = np.array(frozen["references"], dtype=np.int64)
        rows, self._n_near = [*frozen[NEAR], *frozen[FAR]], len(frozen[NEAR])
        items, references, ratios, bounds, parameters = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        self.item, self.reference, self.ratio = (
            np.array(column, dtype=np.int64) for column in (items, references, ratios)
        )
        self.bound: FloatArray = np.array(bounds, dtype=np.float64).reshape(len(rows), family.dim)
        near, far = slice(self._n_near), slice(self._n_near, None)
        self._near = family.near_tests(self.bound[near], self.ratio[near], parameters[near])
        self._far = family.far_tests(self.bound[far], self.ratio[far], parameters[far])
        self.met_at: IntArray = np.zeros(len(rows), dtype=np.int64)
        arms = np.concatenate([self.item, self.reference])
        self.unmet: IntArray = np.bincount(arms, minlength=n_arms)
        order = np.argsort(arms, kind="stable") % max(len(rows), 1)
        self._of_arm = np.split(order, np.cumsum(self.unmet)[:-1])
        self._results = np.zeros((n_arms, 8, family.dim))
        self._counts: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.pending: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.covered = False

    def __len__(self) -> int:
        return self.item.size

    @property
    def is_near(self) -> Any:
        """(n) whether a test is one of nearness."""
        return np.arange(len(self)) < self._n_near

    @property
    def met(self) -> Any:
        """(n) whether a test has reached its level."""
        return self.met_at > 0

    @property
    def count(self) -> IntArray:
        """(n) contrasts of each test so far."""
        return np.concatenate([self._near.count, self._far.count])

    @property
    def evidence(self) -> FloatArray:
        """(n) log E of each test."""
        return np.concatenate([self._near.evidence, self._far.evidence])

    @property
    def done(self) -> bool:
        """Whether the candidate is proven: every test is met, and together they say all that is claimed."""
        return self.covered and not self.unmet.any()

    def add(self, arm: int, z: FloatArray) -> None:
        """One result that was asked for after the freeze."""
        if self._counts[arm] == self._results.shape[1]:
            self._results = np.concatenate([self._results, np.zeros_like(self._results)], axis=1)
        self._results[arm, self._counts[arm]] = z
        self._counts[arm] += 1
        if self.unmet[arm]:
            tests = self._of_arm[arm]
            tests = tests[self.met_at[tests] == 0]
            near = tests < self._n_near
            self._advance(self._near, tests[near], 0)
            self._advance(self._far, tests[~near], self._n_near)

    def _advance(self, kind: PairTests, tests: IntArray, first: int) -> None:
        """Every contrast of these tests that can be formed now goes in. `first`: the row of the first of their kind."""
        while tests.size:
            count, ratio = kind.count[tests - first], self.ratio[tests]
            items, references = self.item[tests], self.reference[tests]
            ready = (count < self._counts[items]) & ((count + 1) * ratio <= self._counts[references])
            tests, count, ratio = tests[ready], count[ready], ratio[ready]
            if not tests.size:
                return
            blocks = self._results[references[ready], count]  # of one result
            for several in np.unique(ratio[ratio > 1]).tolist():
                which = np.flatnonzero(ratio == several)
                places = count[which, None] * several + np.arange(several)
                blocks[which] = self._results[references[ready][which, None], places].mean(axis=1)
            kind.add(tests - first, self._results[items[ready], count], blocks)
            reached = kind.evidence[tests - first] >= self.level
            met = tests[reached]
            self.met_at[met] = count[reached] + 1
            np.subtract.at(self.unmet, np.concatenate([self.item[met], self.reference[met]]), 1)
            tests = tests[~reached]

    @property
    def unused(self) -> int:
        """Results of arms with an unmet test that none of these has used."""
        tests = np.flatnonzero(self.met_at == 0)
        count, used = self.count[tests], np.zeros(self._counts.size, dtype=np.int64)
        np.maximum.at(used, self.item[tests], count)
        np.maximum.at(used, self.reference[tests], count * self.ratio[tests])
        return int(np.maximum(self._counts - used, 0)[self.unmet > 0].sum())

    def wants(self, arm: int) -> bool:
        """Whether a test of the arm is not met yet."""
        return bool(self.unmet[arm] > 0)

    def sweep(self) -> list[int]:
        """Arms for one further contrast of every unmet test that has the fewest contrasts under way."""
        unmet = np.flatnonzero(self.met_at == 0)
        item, reference, ratio = self.item[unmet], self.reference[unmet], self.ratio[unmet]
        taken = self._counts + self.pending
        ahead = np.minimum(taken[item], taken[reference] // ratio)
        under_way = ahead - self.count[unmet]
        fewest = under_way == under_way.min()
        item, reference, ratio, ahead = item[fewest], reference[fewest], ratio[fewest], ahead[fewest] + 1
        wanted = np.zeros(taken.size, dtype=np.int64)
        np.maximum.at(wanted, item, ahead - taken[item])
        np.maximum.at(wanted, reference, ahead * ratio - taken[reference])
        return [arm for turn in range(int(wanted.max())) for arm in np.flatnonzero(wanted > turn).tolist()]


class RunEvidence:
    """The tests of a run, and what is known about the variance of one result, in scaled units.

    `known_variance` (d): of one result, if it is known; `least_variance` (d): it is taken for no less. `log_share`: log
    of the share of δ that the tests may use. `first_results`: of those that were asked for, every arm must have so many
    before the first freeze; where the variance is not known, it is bounded from them.
    """

    def __init__(self, noise: Model, question: Question, n_arms: int, dim: int, delta: float) -> None:
        scale = scale_of(question, dim)
        self._family = family_for(noise, question, dim)
        self.known_variance = np.diag(noise.covariance) / scale**2 if isinstance(noise, Noise) else None
        self.least_variance = np.full(dim, LEAST_VARIANCE)
        self.log_share, self.first_results = 0.0, FIRST_RESULTS
        self._bounding = 0  # first results of every arm from which the variance is bounded
        stated = noise.statement if isinstance(noise, Unknown) else None
        if isinstance(stated, Bounded):
            self.least_variance = (LEAST_DEVIATION * np.subtract(stated.hi, stated.lo) / scale) ** 2
        elif isinstance(stated, Counts):
            self.least_variance = (LEAST_OF_COUNTS * math.sqrt(stated.trials) / scale) ** 2
        elif isinstance(stated, Gaussian):
            self._norm, self._shape, self._delta, self._scale = norm_of(question), stated.shape, delta, scale
            self._least_reach = 1.0 if isinstance(question, Resolution) else 0.0  # η is a unit, that of a user is none
            self.log_share = math.log(1.0 - SHARE_OF_BOUNDS)
            self._bounding = first_results(n_arms, dim, stated.shape)
            self.first_results = max(FIRST_RESULTS, self._bounding)
            self._first = np.zeros((n_arms, self._bounding, dim))
            self._seen = np.zeros(n_arms, dtype=np.int64)

    @property
    def family(self) -> Family:
        """The tests; they exist once the first results of every arm are there."""
        if self._family is None:
            raise RuntimeError("the noise is not bounded yet: results of some arms are missing")
        return self._family

    def take_over(self, earlier: RunEvidence, factor: FloatArray) -> None:
        """The first results that were observed in other units, which are `factor` (d) in these."""
        if self._bounding:
            for arm, seen in enumerate(earlier._seen.tolist()):
                for z in earlier._first[arm, :seen]:
                    self.observe(arm, z * factor)

    def observe(self, arm: int, z: FloatArray) -> None:
        """A result that was asked for."""
        if self._family is not None or self._seen[arm] >= self._bounding:
            return
        self._first[arm, self._seen[arm]] = z
        self._seen[arm] += 1
        if (self._seen == self._bounding).all():
            upper = upper_variances(self._first, self._shape, self._delta, self._scale, self._least_reach)
            self._family = GaussianFamily(self._norm, self._shape, upper)
            if self._least_reach == 0.0:
                self.least_variance[:] = LEAST_VARIANCE * upper  # in place: whoever was given it before sees it too


def covers_references(epoch: Epoch, near: FloatArray, far: FloatArray) -> bool:
    """Every arm is near its reference, within `near` (d), and every two references are more than `far` (d) apart."""
    labels, references = epoch.labels, epoch.references
    if not (_has_references(epoch) and _has_bounds(epoch, near, far)):
        return False
    shown = np.zeros(labels.size, dtype=bool)
    shown[references] = True
    leads = references[labels]
    for arm, other in _both_ways(epoch, epoch.is_near):
        shown[arm[leads[arm] == other]] = True
    group = np.full(labels.size, -1)
    group[references] = np.arange(references.size)
    between = np.eye(references.size, dtype=bool)
    for first, other in _both_ways(epoch, ~epoch.is_near):
        lead = (group[first] >= 0) & (group[other] >= 0)
        between[group[first[lead]], group[other[lead]]] = True
    return bool(shown.all() and between.all())


def covers_any_two(epoch: Epoch, near: FloatArray, far: FloatArray) -> bool:
    """Every two arms of a group are within `near` (d), and every two groups have arms more than `far` (d) apart."""
    labels = epoch.labels
    if not (_has_references(epoch) and _has_bounds(epoch, near, far)):
        return False
    joined = (labels[:, None] != labels) | np.eye(labels.size, dtype=bool)
    for arm, other in _both_ways(epoch, epoch.is_near):
        joined[arm, other] = True
    between = np.eye(epoch.references.size, dtype=bool)
    for arm, other in _both_ways(epoch, ~epoch.is_near):
        between[labels[arm], labels[other]] = True
    return bool(joined.all() and between.all())


def covers_linkage(epoch: Epoch, n_clusters: int) -> bool:
    """Steps below the height join every group; all arms lie in balls, and those of different groups are far apart."""
    labels, height = epoch.labels, float(epoch.frozen["height"])
    if not (_has_references(epoch) and epoch.references.size == n_clusters and height > 0.0):
        return False
    length = epoch.bound[:, 0]
    steps = epoch.is_near & (length <= height) & (labels[epoch.item] == labels[epoch.reference])
    piece = np.arange(labels.size)
    for first, other in zip(epoch.item[steps].tolist(), epoch.reference[steps].tolist(), strict=True):
        if piece[first] != piece[other]:
            piece[piece == piece[other]] = piece[first]
    if np.unique(piece).size != n_clusters:
        return False
    balls = epoch.frozen["balls"]
    centers = np.array([center for center, _, _ in balls], dtype=np.int64)
    radii = np.array([radius for _, radius, _ in balls])
    inside = np.zeros(labels.size, dtype=bool)
    for center, radius, items in balls:
        inside[center] = True
        others = np.array([arm for arm in items if arm != center], dtype=np.int64)
        if others.size:
            for first, arm in _both_ways(epoch, epoch.is_near & (length <= radius)):
                inside[arm[first == center]] = True
            if not (inside[others] & (labels[others] == labels[center])).all():
                return False
    place = np.full(labels.size, -1)
    place[centers] = np.arange(centers.size)
    apart = np.full((centers.size, centers.size), -np.inf)
    for first, other in _both_ways(epoch, ~epoch.is_near):
        lead = (place[first] >= 0) & (place[other] >= 0)
        np.maximum.at(apart, (place[first[lead]], place[other[lead]]), length[~epoch.is_near][lead])
    wanted = height + radii[:, None] + radii  # of two balls, by the triangle inequality; in the order of the balls
    different = np.triu(labels[centers][:, None] != labels[centers])
    return bool(inside.all() and np.unique(centers).size == centers.size and (apart >= wanted)[different].all())


def _has_references(epoch: Epoch) -> bool:
    """Whether every group has one of its arms as its reference."""
    n_groups = int(epoch.labels.max()) + 1
    return np.array_equal(epoch.labels[epoch.references], np.arange(n_groups))


def _has_bounds(epoch: Epoch, near: FloatArray, far: FloatArray) -> bool:
    return bool((epoch.bound == np.where(epoch.is_near[:, None], near, far)).all())


def _both_ways(epoch: Epoch, which: IntArray) -> list[tuple[IntArray, IntArray]]:
    """The arms of some tests, each pair in both orders."""
    item, reference = epoch.item[which], epoch.reference[which]
    return [(item, reference), (reference, item)]
