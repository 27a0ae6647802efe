"""Does the log prove the groups, up to a resolution or by single linkage, that a certificate claims?

The argument that is checked is in docs/RESOLUTION.md. Nothing is taken from the log but results and freezes, and
nothing from the certificate but what it claims: every level, bound and evidence is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.certificate.fields import TOLERANCE
from coterie.certificate.resolution_claim import VARIANCE_SHARE, ResolutionClaim, StatedTests, resolution_claim_of
from coterie.certificate.resolution_counts import CountResults
from coterie.certificate.resolution_cover import gaps_in_cover
from coterie.certificate.resolution_evidence import (
    BoundedCovariance,
    BoundedResults,
    Family,
    KnownCovariance,
    Results,
)
from coterie.certificate.resolution_log import (
    FREEZE_FIELDS,
    FrozenGroups,
    FrozenTests,
    ResolutionRecord,
    read_resolution_log,
)
from coterie.certificate.resolution_variance import variance_bounds
from coterie.certificate.revised import NOTHING, Spent
from coterie.problem.checks import LARGEST, FloatArray, IntArray, short
from coterie.problem.families import Bounded, Counts, Gaussian, Unknown
from coterie.problem.sentences import choices_in_words

MOST_PROBLEMS = 20
"""How many problems are listed."""
SLACK = 1e-9
"""Rounding that is forgiven where evidence must reach a level, relative to it: δ grows by as much, no more."""
AT_ONCE = 2**18
"""Numbers that are read at once: it bounds the work space."""
UNDECIDED = 1e-6
"""So close to η, relative to it, rounding decides whether an item counts as near a border: both are accepted."""


def check_resolution(
    certificate: dict[str, Any], events: Sequence[Any], spent: Spent = NOTHING
) -> tuple[list[str], int]:
    """What is wrong with a certificate, nothing if it holds, and how many tests were recomputed.

    ValueError or TypeError if the certificate or the log is malformed.
    """
    claim = resolution_claim_of(certificate, spent)
    record = read_resolution_log(events, claim.asked, claim.t)
    checking = _Checking(claim, record)
    checking.everything()
    return checking.problems, checking.tests


class _Checking:
    def __init__(self, claim: ResolutionClaim, record: ResolutionRecord) -> None:
        self.claim, self.record = claim, record
        self.problems: list[str] = []
        self.tests = 0

    def everything(self) -> None:
        """Every check there is."""
        self._values()
        self._epochs()
        self._choices()
        if self.problems:
            return  # what follows would only repeat them
        freeze = self.record.freezes[self.claim.epoch]
        self._candidate(freeze)
        for gap in gaps_in_cover(freeze, self.claim.asked.kind, self.claim.asked.claims):
            self._say(f"epoch {freeze.number}: {gap}")
        if self.problems:
            return
        family = self._family(freeze)
        of_round = self.record.stacks(self.record.rounds == freeze.number + 1, self.claim.asked.n_arms)
        self._evidence("near", self.claim.near, freeze.near, freeze, family, of_round)
        self._evidence("far", self.claim.far, freeze.far, freeze, family, of_round)
        self._borders(freeze)

    def _say(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def _values(self) -> None:
        """No result contradicts what was stated about the noise, or is too far away for floats."""
        noise, values = self.claim.noise, self.record.values
        if not isinstance(noise, Unknown):
            far = ~(np.abs(noise.whiten(values)) <= LARGEST).all(axis=1)
            for row in np.flatnonzero(far)[:1].tolist():
                self._say(
                    f"result {row + 1} of the log, {short(values[row].tolist())}, lies more than {LARGEST:g} standard "
                    "deviations from zero: a float does not resolve the noise there"
                )
            return
        try:
            noise.check(values)
        except ValueError:
            self._name_value(noise)

    def _name_value(self, noise: Unknown) -> None:
        """Name the first result that contradicts what was stated."""
        for row, value in enumerate(self.record.values):
            try:
                noise.check(value[None])
            except ValueError as error:
                self._say(f"result {row + 1} of the log, of arm {self.record.arms[row]}: {error}")
                return

    def _epochs(self) -> None:
        """Every freeze of the log is an epoch of the certificate, and the reverse."""
        stated, found = self.claim.epochs, self.record.freezes
        if len(stated) != len(found):
            self._say(f"the certificate has {len(stated)} epochs, the log {len(found)} freezes")
        for mine, its in zip(stated, found, strict=False):
            if mine["frozen_at"] != its.at:
                self._say(f"epoch {its.number} is frozen at {mine['frozen_at']}, in the log at {its.at}")
            for name in FREEZE_FIELDS[self.claim.asked.kind]:
                if name not in mine or not _same(mine[name], its.given[name]):
                    self._say(f"epoch {its.number} is not the freeze in the log: they differ in {name}")

    def _choices(self) -> None:
        """Every resolution that was chosen on the way, and the reverse; and the sentence about them."""
        stated, found = self.claim.choices, self.record.choices
        if len(stated) != len(found):
            self._say(f"the certificate names {len(stated)} resolutions chosen on the way, the log has {len(found)}")
            return
        for i, (mine, its) in enumerate(zip(stated, found, strict=True)):
            wanted = {"epoch": its.epoch, "chosen_at": its.at, "epsilon": its.epsilon.tolist(), "eta": its.eta.tolist()}
            for name, value in wanted.items():
                if not _same(mine.get(name), value):
                    self._say(f"resolutions[{i}] is not the choice in the log: {name} must be {short(value)}")
        if not found:
            return
        frozen = [(one.epsilon.tolist(), one.eta.tolist()) for one in self.record.freezes
                  if one.epsilon is not None and one.eta is not None]  # fmt: skip
        chosen = [(one.epoch, one.at, (one.epsilon.tolist(), one.eta.tolist())) for one in found]
        sentence = choices_in_words(frozen, chosen)
        if self.claim.choices_in_words != sentence:
            self._say(f"resolutions_in_words must say what was chosen when, {sentence!r}")

    def _candidate(self, freeze: FrozenGroups) -> None:
        """What is claimed is the candidate of the epoch that proves, at the resolution frozen with it."""
        claim = self.claim
        pairs: list[tuple[str, Any, Any]] = [
            ("labels", claim.labels, freeze.labels),
            ("references", claim.references, freeze.references),
            ("epsilon", claim.epsilon, freeze.epsilon),
            ("eta", claim.eta, freeze.eta),
            ("height", claim.height, freeze.height),
        ]
        for name, stated, frozen in pairs:
            if not np.array_equal(stated, frozen):
                self._say(f"{name} is not that of epoch {freeze.number}, on which the certificate rests")

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
        level = self.claim.log_inverse_delta - math.log(VARIANCE_SHARE)
        has_unit = freeze.eta is not None
        upper = variance_bounds(self.record, self.claim.asked.n_arms, stated.shape, scale, level, has_unit)
        return BoundedCovariance(norm, scale, stated.shape, upper)

    def _evidence(
        self,
        kind: str,
        stated: StatedTests,
        frozen: FrozenTests,
        freeze: FrozenGroups,
        family: Family,
        stacks: list[FloatArray],
    ) -> None:
        """All tests of the freeze are listed, in its order, with their evidence, and reach the level."""
        if not (np.array_equal(stated.items, frozen.item) and np.array_equal(stated.references, frozen.reference)):
            n = frozen.item.size
            self._say(f"{kind}_tests must list the {n} {kind} tests of epoch {freeze.number}, in its order")
            return
        heights = np.array([len(stack) for stack in stacks])
        there = np.minimum(heights[frozen.item], heights[frozen.reference] // frozen.ratio)
        found, wrong = np.full(there.size, np.nan), {}  # wrong: what is wrong with the parameters of a test
        reading = _Reading(kind, frozen, family, np.concatenate(stacks), np.cumsum(heights) - heights)
        for n, ratio, tests in _alike(frozen, stated.counts, there):
            try:
                found[tests] = reading.evidence(tests, n, ratio)
            except (ValueError, TypeError):
                for i in tests.tolist():
                    try:
                        found[i] = reading.evidence(np.array([i]), n, ratio)[0]
                    except (ValueError, TypeError) as error:
                        wrong[i] = str(error)
        self.tests += there.size - len(wrong) - int(np.count_nonzero(stated.counts > there))
        close = np.isfinite(found) & (np.abs(stated.evidence - found) <= TOLERANCE * np.maximum(1.0, np.abs(found)))
        reached = found >= freeze.level - SLACK * max(1.0, freeze.level)
        for i in np.flatnonzero(~(close & reached))[:MOST_PROBLEMS].tolist():
            what = f"the {kind} test of arms {frozen.item[i]} and {frozen.reference[i]}"
            n, mine = int(stated.counts[i]), float(stated.evidence[i])
            if n > there[i]:
                self._say(f"{what} uses {n} contrasts, the results asked for after the freeze give {there[i]}")
            elif i in wrong:
                self._say(f"{what}: {wrong[i]}")
            elif not close[i]:
                self._say(f"evidence of {what}: the certificate says {mine:.9g}, the log gives {found[i]:.9g}")
            else:
                self._say(f"{what} is not met: its evidence is {found[i]:.6g} and must reach {freeze.level:.6g}")

    def _borders(self, freeze: FrozenGroups) -> None:
        """Items that could belong elsewhere too, by the means of all results, are named, and no others."""
        stated, labels = self.claim.borders, self.claim.labels
        if freeze.eta is None:
            if stated:
                self._say(f"single linkage has no borders, got those of the items {short(sorted(stated))}")
            return
        everything = self.record.stacks(np.ones(self.claim.t, dtype=bool), labels.size)
        if not all(len(stack) for stack in everything):
            if stated:
                self._say("borders are named, but not every arm has a result")
            return
        origin = self.record.values[0]
        means = np.array([(stack - origin).mean(axis=0) for stack in everything]) / freeze.eta
        for arm in range(labels.size):
            for group in range(len(self.claim.references)):
                if group == labels[arm]:
                    continue
                away = self._away(means, arm, group)
                named = group in stated.get(arm, ())
                if abs(away - 1.0) > UNDECIDED and named != (away < 1.0):
                    which = "is" if named else "is not"
                    self._say(
                        f"borders: item {arm} {which} named with group {group}, but all results put it "
                        f"{away:.6g}·η from there"
                    )

    def _away(self, means: FloatArray, arm: int, group: int) -> float:
        """How far an item is from belonging to a group too, in units of η; a reference belongs to its own only."""
        if arm in self.claim.references:
            return math.inf
        mates = np.array([self.claim.references[group]])
        if self.claim.asked.claims == "any-two":
            mates = np.flatnonzero(self.claim.labels == group)
        gaps = means[mates] - means[arm]
        lengths = np.sqrt((gaps**2).sum(axis=1)) if self.claim.asked.norm == "distance" else np.abs(gaps).max(axis=1)
        return float(lengths.max())


@dataclass(frozen=True)
class _Reading:
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


def _same(stated: Any, found: Any) -> bool:
    """Whether two plain JSON values say the same; true and 1 do not."""
    if stated is found:
        return True
    if isinstance(stated, list | tuple) and isinstance(found, list | tuple):
        return len(stated) == len(found) and all(map(_same, stated, found))
    if isinstance(stated, dict) and isinstance(found, dict):
        return stated.keys() == found.keys() and all(_same(stated[key], found[key]) for key in found)
    return isinstance(stated, bool) == isinstance(found, bool) and bool(stated == found)
