"""Does the log prove the groups up to a resolution, or by single linkage? docs/RESOLUTION.md has the argument.

Nothing is taken from the certificate but what it claims: every level, bound and evidence is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.certificate.arithmetic.near_far import (
    BoundedCovariance,
    BoundedResults,
    CountResults,
    Family,
    KnownCovariance,
    Results,
)
from coterie.certificate.arithmetic.variance import variance_bounds
from coterie.certificate.claim import VARIANCE_SHARE, Tests
from coterie.certificate.fields import Checks, against, close, first_places, reaches
from coterie.certificate.freezes import FREEZE_FIELDS, FrozenGroups, FrozenTests
from coterie.certificate.near_claim import NearClaim, gaps_in_cover, near_claim_of
from coterie.certificate.reading import Log, read_events
from coterie.certificate.revised import SpentError
from coterie.problem.checks import LARGEST, FloatArray, IntArray, short
from coterie.problem.families import Bounded, Counts, Gaussian, Unknown
from coterie.problem.sentences import choices_in_words

AT_ONCE = 2**18
"""Numbers that are read at once: it bounds the work space."""
UNDECIDED = 1e-6
"""So close to η, relative to it, rounding decides whether an item counts as near a border: both are accepted."""


def check_nearness(certificate: dict[str, Any], events: Sequence[Any], spent: SpentError) -> Checks:
    """What is wrong with a certificate. ValueError or TypeError if it, or its log, is malformed."""
    claim = near_claim_of(certificate, spent)
    checks = NearChecks(claim, read_events(events, claim.asked, claim.t))
    checks.check()
    return checks


class NearChecks(Checks):
    """The checks of one claim of nearness."""

    def __init__(self, claim: NearClaim, log: Log) -> None:
        super().__init__()
        self.claim, self.log = claim, log

    def check(self) -> None:
        """Every check there is."""
        self._check_values()
        self._check_epochs()
        self._check_choices()
        if self.problems:
            return  # what follows would only repeat them
        freeze = self.log.candidates[self.claim.epoch]
        self._check_candidate(freeze)
        for gap in gaps_in_cover(freeze, self.claim.asked.kind, self.claim.asked.claims):
            self.say(f"epoch {freeze.number}: {gap}")
        if self.problems:
            return
        family = self._family(freeze)
        of_round = self.log.stacks(self.log.round_of == freeze.number + 1, self.claim.n_arms)
        self._check_tests("near", self.claim.near, freeze.near, freeze, family, of_round)
        self._check_tests("far", self.claim.far, freeze.far, freeze, family, of_round)
        self._check_borders(freeze)

    def _check_values(self) -> None:
        """No result contradicts what was stated about the noise, or is too far away for floats."""
        noise, values = self.claim.noise, self.log.values
        if isinstance(noise, Unknown):
            contradiction = self.log.contradiction(noise)
            if contradiction is not None:
                row, reason = contradiction
                self.say(f"result {row + 1} of the log, of arm {self.log.arms[row]}: {reason}")
            return
        far = ~(np.abs(noise.whiten(values)) <= LARGEST).all(axis=1)
        for row in np.flatnonzero(far)[:1].tolist():
            self.say(
                f"result {row + 1} of the log, {short(values[row].tolist())}, lies more than {LARGEST:g} standard "
                "deviations from zero: a float does not resolve the noise there"
            )

    def _check_epochs(self) -> None:
        """Every freeze of the log is an epoch of the certificate, and the reverse."""
        stated, frozen = self.claim.epochs, self.log.candidates
        if len(stated) != len(frozen):
            self.say(f"the certificate has {len(stated)} epochs, the log {len(frozen)} freezes")
        for epoch, freeze in zip(stated, frozen, strict=False):
            if epoch["frozen_at"] != freeze.at:
                self.say(f"epoch {freeze.number} is frozen at {epoch['frozen_at']}, in the log at {freeze.at}")
            for name in FREEZE_FIELDS[self.claim.asked.kind]:
                if name not in epoch or not _same(epoch[name], freeze.given[name]):
                    self.say(f"epoch {freeze.number} is not the freeze in the log: they differ in {name}")

    def _check_choices(self) -> None:
        """Every resolution that was chosen on the way, and the reverse; and the sentence about them."""
        stated, chosen = self.claim.choices, self.log.choices
        if len(stated) != len(chosen):
            self.say(f"the certificate names {len(stated)} resolutions chosen on the way, the log has {len(chosen)}")
            return
        for i, (entry, choice) in enumerate(zip(stated, chosen, strict=True)):
            wanted = {"epoch": choice.epoch, "chosen_at": choice.at}
            wanted |= {"epsilon": choice.epsilon.tolist(), "eta": choice.eta.tolist()}
            for name, value in wanted.items():
                if not _same(entry.get(name), value):
                    self.say(f"resolutions[{i}] is not the choice in the log: {name} must be {short(value)}")
        if not chosen:
            return
        frozen = [
            (freeze.epsilon.tolist(), freeze.eta.tolist())
            for freeze in self.log.candidates
            if freeze.epsilon is not None and freeze.eta is not None
        ]
        bounds = [(choice.epoch, choice.at, (choice.epsilon.tolist(), choice.eta.tolist())) for choice in chosen]
        sentence = choices_in_words(frozen, bounds)
        if self.claim.choices_in_words != sentence:
            self.say(f"resolutions_in_words must say what was chosen when, {sentence!r}")

    def _check_candidate(self, freeze: FrozenGroups) -> None:
        """What is claimed is the candidate of the epoch that proves, at the resolution frozen with it."""
        claim = self.claim
        pairs: list[tuple[str, Any, Any]] = [
            ("labels", claim.labels, freeze.labels),
            ("references", claim.leads, freeze.references),
            ("epsilon", claim.epsilon, freeze.epsilon),
            ("eta", claim.eta, freeze.eta),
            ("height", claim.height, freeze.height),
        ]
        for name, stated, frozen in pairs:
            if not np.array_equal(stated, frozen):
                self.say(f"{name} is not that of epoch {freeze.number}, on which the certificate rests")

    def _family(self, freeze: FrozenGroups) -> Family:
        """The tests that suit the noise, in the units of the freeze."""
        noise, norm, scale = self.claim.noise, self.claim.asked.norm, freeze.scale
        if not isinstance(noise, Unknown):
            return KnownCovariance(norm, scale, noise.covariance / np.outer(scale, scale), noise.exact)
        stated = noise.statement
        if isinstance(stated, Bounded):
            widths = np.broadcast_to(np.array(stated.hi) - np.array(stated.lo), scale.shape)
            return BoundedResults(norm, scale, widths / scale)
        if isinstance(stated, Counts):
            return CountResults(norm, scale, stated.trials)
        assert isinstance(stated, Gaussian)
        level = self.claim.log_inverse_left - math.log(VARIANCE_SHARE)
        has_unit = freeze.eta is not None
        upper = variance_bounds(self.log, self.claim.n_arms, stated.shape, scale, level, has_unit)
        return BoundedCovariance(norm, scale, stated.shape, upper)

    def _check_tests(
        self,
        kind: str,
        stated: Tests,
        frozen: FrozenTests,
        freeze: FrozenGroups,
        family: Family,
        stacks: list[FloatArray],
    ) -> None:
        """All tests of the freeze are listed, in its order, with their evidence, and reach the level."""
        if not (np.array_equal(stated.arms, frozen.item) and np.array_equal(stated.others, frozen.reference)):
            n = frozen.item.size
            self.say(f"{kind}_tests must list the {n} {kind} tests of epoch {freeze.number}, in its order")
            return
        heights = np.array([len(stack) for stack in stacks])
        there = np.minimum(heights[frozen.item], heights[frozen.reference] // frozen.ratio)
        evidence = np.full(there.size, np.nan)
        wrong: dict[int, str] = {}  # what is wrong with the parameters of a test
        reading = _TestReading(kind, frozen, family, np.concatenate(stacks), np.cumsum(heights) - heights)
        for n, ratio, tests in _alike(frozen, stated.counts, there):
            try:
                evidence[tests] = reading.evidence(tests, n, ratio)
            except (ValueError, TypeError):
                for i in tests.tolist():
                    try:
                        evidence[i] = reading.evidence(np.array([i]), n, ratio)[0]
                    except (ValueError, TypeError) as error:
                        wrong[i] = str(error)
        self.tests += there.size - len(wrong) - int(np.count_nonzero(stated.counts > there))
        right = close(stated.evidence, evidence)
        for i in first_places(~(right & reaches(evidence, freeze.level))):
            test, n = f"the {kind} test of arms {frozen.item[i]} and {frozen.reference[i]}", int(stated.counts[i])
            if n > there[i]:
                self.say(f"{test} uses {n} contrasts, the results asked for after the freeze give {there[i]}")
            elif i in wrong:
                self.say(f"{test}: {wrong[i]}")
            elif not right[i]:
                self.say(f"evidence of {test}: {against(stated.evidence[i], evidence[i])}")
            else:
                self.say(f"{test} is not met: its evidence is {evidence[i]:.6g} and must reach {freeze.level:.6g}")

    def _check_borders(self, freeze: FrozenGroups) -> None:
        """Items that could belong elsewhere too, by the means of all results, are named, and no others."""
        stated, labels = self.claim.borders, self.claim.labels
        if freeze.eta is None:
            if stated:
                self.say(f"single linkage has no borders, got those of the items {short(sorted(stated))}")
            return
        everything = self.log.stacks(np.ones(self.claim.t, dtype=bool), labels.size)
        if not all(len(stack) for stack in everything):
            if stated:
                self.say("borders are named, but not every arm has a result")
            return
        origin = self.log.values[0]
        means = np.array([(stack - origin).mean(axis=0) for stack in everything]) / freeze.eta
        for arm in range(labels.size):
            for group in range(len(self.claim.leads)):
                if group == labels[arm]:
                    continue
                away = self._away(means, arm, group)
                named = group in stated.get(arm, ())
                if abs(away - 1.0) > UNDECIDED and named != (away < 1.0):
                    which = "is" if named else "is not"
                    self.say(
                        f"borders: item {arm} {which} named with group {group}, but all results put it "
                        f"{away:.6g}·η from there"
                    )

    def _away(self, means: FloatArray, arm: int, group: int) -> float:
        """How far an item is from belonging to a group too, in units of η; a reference belongs to its own only."""
        if arm in self.claim.leads:
            return math.inf
        mates = np.array([self.claim.leads[group]])
        if self.claim.asked.claims == "any-two":
            mates = np.flatnonzero(self.claim.labels == group)
        gaps = means[mates] - means[arm]
        lengths = np.sqrt((gaps**2).sum(axis=1)) if self.claim.asked.norm == "distance" else np.abs(gaps).max(axis=1)
        return float(lengths.max())


@dataclass(frozen=True)
class _TestReading:
    """Tests of a kind, and the results that they read: of all arms one after the other, from these places on."""

    kind: str
    tests: FrozenTests
    family: Family
    values: FloatArray
    starts: IntArray

    def evidence(self, tests: IntArray, n: int, ratio: int) -> FloatArray:
        """Of some tests after n contrasts, of which all have this ratio and parameters of the same names."""
        item = self.starts[self.tests.item[tests]][:, None] + np.arange(n)
        blocks = self.starts[self.tests.reference[tests]][:, None] + np.arange(n * ratio)
        results = Results(self.values[item], self.values[blocks].reshape(tests.size, n, ratio, -1))
        parameters = [self.tests.parameters[i] for i in tests.tolist()]
        read = self.family.near if self.kind == "near" else self.family.far
        return read(results, self.tests.bound[tests], parameters)


def _alike(frozen: FrozenTests, counts: IntArray, there: IntArray) -> Iterator[tuple[int, int, IntArray]]:
    """n, R, and tests that have these and parameters of the same names, as many as are read at once."""
    alike: dict[Any, list[int]] = {}
    rows = zip(counts.tolist(), frozen.ratio.tolist(), frozen.parameters, (counts <= there).tolist(), strict=True)
    for i, (n, ratio, parameters, is_there) in enumerate(rows):
        if is_there:
            alike.setdefault((n, ratio, tuple(parameters)), []).append(i)
    for (n, ratio, _), tests in alike.items():
        step = max(1, AT_ONCE // (n * (ratio + 1) * frozen.bound.shape[1]))
        for first in range(0, len(tests), step):
            yield n, ratio, np.array(tests[first : first + step])


def _same(stated: Any, wanted: Any) -> bool:
    """Whether two plain JSON values say the same; true and 1 do not."""
    if stated is wanted:
        return True
    if isinstance(stated, list | tuple) and isinstance(wanted, list | tuple):
        return len(stated) == len(wanted) and all(map(_same, stated, wanted))
    if isinstance(stated, dict) and isinstance(wanted, dict):
        return stated.keys() == wanted.keys() and all(_same(stated[key], wanted[key]) for key in wanted)
    return isinstance(stated, bool) == isinstance(wanted, bool) and bool(stated == wanted)
