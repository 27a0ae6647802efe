"""`verify`: does the log prove what the certificate says? The argument that it checks is in docs/CROC.md.

Certificates of groups up to a resolution and of single linkage go to `coterie.certificate.resolution_checking`.

A problem is a test that fails, a number that is not the recomputed one, or something in the log that contradicts the
claim. A warning is none of these: the proof stands, and the log still looks as if K were too small, or as if its data
were not made as the proof assumes (`coterie.certificate.beside`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.beside import Split, check_beside, split_log
from coterie.certificate.bets import BetRecord, BetRound, parse_bets
from coterie.certificate.by_family import betted
from coterie.certificate.claim import (
    HOMOGENEITY_LEVEL,
    Claim,
    EpochClaim,
    PairsClaim,
    Tests,
    claim_of,
    close,
    read_certificate,
)
from coterie.certificate.contradictions import Differences, differing_mates, pairwise_known, refuting_arms
from coterie.certificate.homogeneity import homogeneity
from coterie.certificate.list_checking import ListChecking
from coterie.certificate.list_claim import ListClaim
from coterie.certificate.log import Frozen, Record, Round, parse_log, read_log
from coterie.certificate.recompute import Stacks, directed, paired
from coterie.certificate.resolution_checking import check_resolution
from coterie.certificate.resolution_claim import is_of_resolution
from coterie.certificate.revised import last_stage
from coterie.certificate.variance_bound import BoundedStacks
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.families import Model, bounds_variance, noise_from_json
from coterie.problem.noise import Noise

Bools = NDArray[np.bool_]

MOST_PROBLEMS = 20
"""How many problems a verdict lists."""

SLACK = 1e-9
"""Rounding that is forgiven where evidence must reach a level, relative to it: δ grows by as much, no more."""


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate holds, what is wrong with it, and how many tests were recomputed. True if it holds.

    `warnings` say what else the log shows, and do not change whether it holds.
    """

    valid: bool
    problems: list[str] = field(default_factory=list)
    tests: int = 0
    warnings: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.valid


def verify(certificate: Any, log: Any) -> Verdict:
    """Whether the log proves what the certificate says, recomputed from the log alone.

    `certificate`: a dict, or the path of a JSON file; `log`: a list of events, or the path of a CSV file. A bad
    certificate or log is a verdict, never an exception: those are for arguments of another type (TypeError) and for
    files that cannot be opened (OSError).
    """
    if not isinstance(certificate, dict | str | os.PathLike):
        raise TypeError(f"a certificate must be a dict or the path of a JSON file, got {short(certificate)}")
    if not isinstance(log, list | tuple | str | os.PathLike):
        raise TypeError(f"a log must be a list of events or the path of a CSV file, got {short(log)}")
    with np.errstate(all="ignore"):  # what overflows is not finite, and reported as that
        try:
            given = certificate if isinstance(certificate, dict) else read_certificate(certificate)
            log = split_log(log if isinstance(log, list | tuple) else read_log(log))
            return _verdict(given, log)
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
            said = " ".join(str(error).split())
            named = isinstance(error, ValueError | TypeError) and said
            return Verdict(False, [said if named else f"not a certificate with its log: {type(error).__name__} {said}"])


def _verdict(given: dict[str, Any], log: Split) -> Verdict:
    """The verdict on a certificate and a log that may be anything; ValueError or TypeError says what is wrong."""
    events, spent = last_stage(given, log.proof)
    warnings: list[str] = []
    noise: Model
    if is_of_resolution(given):
        problems, tests = check_resolution(given, events, spent)
        noise = noise_from_json(given["noise"], given["dim"])
    else:
        claim = claim_of(given, spent)
        noise = claim.noise
        record: Record | BetRecord
        if isinstance(noise, Noise):
            record = parse_log(events, claim.n_arms, claim.n_clusters, noise, claim.t, claim.format > 1)
        else:
            record = parse_bets(events, claim.n_arms, claim.n_clusters, noise, claim.t)
        checking = _checking(claim, record)
        checking.everything()
        problems, tests, warnings = checking.problems, checking.tests, checking.warnings
    more, said = check_beside(given, log, noise)
    problems = [*problems, *more][:MOST_PROBLEMS]
    return Verdict(not problems, problems, tests, [*warnings, *said])


def _checking(claim: Claim, record: Record | BetRecord) -> _Checking:
    """The checks that suit the noise of a claim."""
    if isinstance(record, Record):
        return _KnownNoise(claim, record)
    bounded = bounds_variance(claim.noise) and claim.variance_level > 0.0
    return _BoundedVariance(claim, record) if bounded else _Bets(claim, record)


class _Checking:
    """The checks of one certificate that are the same for every noise; `problems` says what failed."""

    def __init__(self, claim: Claim, record: Record | BetRecord) -> None:
        self.claim, self.freezes = claim, record.freezes
        self.rounds: Sequence[Round | BetRound] = record.rounds
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.tests = 0

    def everything(self) -> None:
        """Every check there is."""
        self.epochs()
        tests = self.claim.epoch
        if tests is not None and tests.number < len(self.freezes):  # else the log lacks a freeze, and that was said
            self.by_epoch(tests, self.claim.freezes[tests.number])

    def frozen(self, tests: Tests, freeze: Frozen, used: list[int], pools: str, half: Bools) -> FloatArray:
        """The evidence of tests from the rounds at these places of the record; `half`: at half of the level."""
        raise NotImplementedError

    def settled(
        self, a: IntArray, b: IntArray, stated: FloatArray, n_a: IntArray, n_b: IntArray, bound_at: IntArray
    ) -> Bools:
        """Which of these pairs are shown to differ by their results from the start, at these counts.

        `bound_at`: how many results the upper bound on the variance is from, where one is needed.
        """
        raise NotImplementedError

    def _say(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def epochs(self) -> None:
        """Every freeze of the log is an epoch of the certificate, and the reverse."""
        stated, found = self.claim.freezes, self.freezes
        if len(stated) != len(found):
            self._say(f"the certificate has {len(stated)} epochs, the log {len(found)} freezes")
        for mine, its in zip(stated, found, strict=False):
            if not mine.agrees(its):
                where = "position" if mine.at != its.at else "labels or cores"
                self._say(f"epoch {mine.number} is not the freeze in the log: they differ in {where}")

    def by_epoch(self, tests: EpochClaim, freeze: Frozen) -> None:
        """Every test of the frozen candidate is met, in the epoch's rounds or by the pairs from the start."""
        labels, n_clusters = freeze.labels, self.claim.n_clusters
        level = self.claim.levels[freeze.number]
        used = self._rounds(tests)
        if used is None:
            return
        in_core = np.zeros(self.claim.n_arms, dtype=bool)
        in_core[[arm for core in freeze.cores for arm in core]] = True

        first, second, *_ = tests.by_pairs
        met = self.settled(*tests.by_pairs)
        settled = np.zeros((self.claim.n_arms, n_clusters), dtype=bool)  # arm against the core, and so the group, k
        settled[np.arange(self.claim.n_arms), labels] = True
        for a, b in ((first[met], second[met]), (second[met], first[met])):
            settled[a[in_core[b]], labels[b[in_core[b]]]] = True
        both = met & in_core[first] & in_core[second]
        differ = set(zip(first[both].tolist(), second[both].tolist(), strict=True))

        core_met = self._grid(tests.core_tests, freeze, used, "core", ~in_core)
        group_met = self._grid(tests.group_tests, freeze, used, "group", np.zeros_like(in_core))
        group_met |= in_core[:, None]  # an arm of a core is tested at the full level against cores
        for name, grid in (("core", core_met), ("group", group_met)):
            for i in _first(~(grid | settled).ravel()):
                m, k = divmod(int(i), n_clusters)
                wanted = level / 2.0 if name == "core" and not in_core[m] else level
                which = f"the core of group {k}" if name == "core" else f"group {k}"
                self._say(f"arm {m} is not shown to differ from {which}: its evidence must reach {wanted:.6g}")
        self._core_pairs(tests.pair_tests, freeze, used, differ, level / 2.0)

    def _rounds(self, tests: EpochClaim) -> list[int] | None:
        """Where the listed rounds are in the record: the epoch's first ones, all complete. None if they are not that.

        None may be left out, and none after an incomplete one may be used: its results would have been waited for.
        """
        places = [i for i, one in enumerate(self.rounds) if one.epoch == tests.number]
        of_epoch = [self.rounds[i] for i in places]
        listed = of_epoch[: len(tests.rounds)]
        if list(tests.rounds) != [one.number for one in listed]:
            self._say(
                f"the certificate uses the rounds {short(list(tests.rounds))}, "
                f"the log has {short([one.number for one in of_epoch])} for epoch {tests.number}"
            )
            return None
        for one in listed:
            if not one.complete:
                self._say(f"round {one.number} is used, but not all of its results are in the log")
                return None
        for name in ("group_tests", "core_tests", "pair_tests"):
            some: Tests = getattr(tests, name)
            for i in _first(~np.isin(some.rounds, tests.rounds)):
                self._say(f"{name}: a test uses round {some.rounds[i]}, which the certificate does not list")
                return None
        return places[: len(tests.rounds)]

    def _recomputed(self, tests: Tests, freeze: Frozen, used: list[int], pools: str, half: Bools) -> FloatArray:
        found = self.frozen(tests, freeze, used, pools, half)
        self.tests += found.size
        kind = {"group": "group", "core": "the core of group", "arm": "arm"}[pools]
        for i in _first(~close(tests.evidence, found)):
            self._say(
                f"evidence that arm {tests.arms[i]} and {kind} {tests.others[i]} differ at round {tests.rounds[i]}: "
                f"{_against(tests.evidence[i], found[i])}"
            )
        return found

    def _grid(self, tests: Tests, freeze: Frozen, used: list[int], pools: str, half: Bools) -> Bools:
        """(M, K): which arms reach their level against the groups or cores."""
        found = self._recomputed(tests, freeze, used, pools, half[tests.arms])
        level = self.claim.levels[freeze.number]
        met = _reaches(found, np.where(half, level / 2.0, level)[tests.arms])
        grid = np.zeros((self.claim.n_arms, self.claim.n_clusters), dtype=bool)
        grid[tests.arms[met], tests.others[met]] = True
        return grid

    def _core_pairs(
        self, tests: Tests, freeze: Frozen, used: list[int], differ: set[tuple[int, int]], level: float
    ) -> None:
        met = _reaches(self._recomputed(tests, freeze, used, "arm", np.ones(tests.arms.size, dtype=bool)), level)
        settled = differ | set(zip(tests.arms[met].tolist(), tests.others[met].tolist(), strict=True))
        for k, core in enumerate(freeze.cores):
            for other in freeze.cores[k + 1 :]:
                if len(core) == 1 or len(other) == 1:
                    continue  # a core of one arm cannot be split
                for p in core:
                    for q in other:
                        if (p, q) not in settled and (q, p) not in settled:
                            self._say(f"core arms {p} and {q} are not shown to differ: {level:.6g} must be reached")


class _WithPairs(_Checking):
    """Pairs from the start count too, and what they show must not contradict the claim.

    `stacks`: the results of every arm in their order, in units of the noise as all results show it.
    """

    def __init__(self, claim: Claim, record: Record | BetRecord, stacks: Stacks) -> None:
        super().__init__(claim, record)
        self._stacks = stacks
        self._stated: list[tuple[IntArray, IntArray, FloatArray]] = []  # pairs at stated counts, recomputed

    def everything(self) -> None:
        """Every check there is."""
        if self.claim.pairs is not None:
            self.epochs()
            self.by_pairs(self.claim.pairs)
        elif self.claim.listed is not None:
            self.by_list(self.claim.listed)
        else:
            super().everything()
        self.contradictions()

    def pair_evidence(self, a: IntArray, b: IntArray, n_a: IntArray, n_b: IntArray, bound_at: IntArray) -> FloatArray:
        """The evidence of pairs at these counts, which the log has."""
        return paired(self._stacks, a, b, n_a, n_b)

    def by_pairs(self, pairs: PairsClaim) -> None:
        """Every arm differs from the representatives of all other groups, by their results from the start."""
        others = self.claim.representatives[pairs.groups]
        counts = pairs.pulls_arm, pairs.pulls_representative
        met = self.settled(pairs.arms, others, pairs.evidence, *counts, pairs.variance_at)
        for i in _first(~met):
            self._say(
                f"arm {pairs.arms[i]} is not shown to differ from arm {others[i]}, which represents group "
                f"{pairs.groups[i]}: its evidence must reach {self.claim.pair_level:.6g}"
            )

    def by_list(self, claim: ListClaim) -> None:
        """Every partition on the list but the claimed one is struck off."""
        raise NotImplementedError

    def settled(
        self, a: IntArray, b: IntArray, stated: FloatArray, n_a: IntArray, n_b: IntArray, bound_at: IntArray
    ) -> Bools:
        """Which of these pairs reach the level from the start at these counts."""
        stacks = self._stacks
        missing = (n_a > stacks.heights[a]) | (n_b > stacks.heights[b])
        for i in _first(missing):
            self._say(
                f"arms {a[i]} and {b[i]}: the certificate uses {n_a[i]} and {n_b[i]} results, "
                f"the log counts {stacks.heights[a[i]]} and {stacks.heights[b[i]]}"
            )
        there = np.flatnonzero(~missing)
        found = np.full(a.size, np.nan)
        found[there] = self.pair_evidence(a[there], b[there], n_a[there], n_b[there], bound_at[there])
        self._stated.append((a[there], b[there], found[there]))
        self.tests += there.size
        for i in there[~close(stated[there], found[there])][:MOST_PROBLEMS]:
            self._say(f"evidence that arms {a[i]} and {b[i]} differ: {_against(stated[i], found[i])}")
        return _reaches(found, self.claim.pair_level)

    def contradictions(self) -> None:
        """The log must not show more than K groups, nor that two arms of a group differ (`contradictions`)."""
        claim, level = self.claim, self.claim.pair_level
        differences, wanted = Differences(self._stacks, self._stated), self.claim.n_clusters + 1
        mates = differing_mates(differences, claim.labels, claim.representatives, level)
        refuting = None
        if claim.alarm is not None:
            named = np.unique(np.array(claim.alarm[:wanted], dtype=np.int64))
            if named.size == wanted and pairwise_known(differences, named, level):
                refuting = named
            else:
                self._say(f"the certificate itself says that K = {claim.n_clusters} is refuted")
        if refuting is None:
            refuting = refuting_arms(differences, claim.representatives, mates, level)
        if refuting is not None:
            self._say(
                f"the log refutes K = {claim.n_clusters}: arms {_listed(refuting.tolist())} are pairwise known to "
                f"differ, that is at least {wanted} groups"
            )
        for one, other in mates[:MOST_PROBLEMS].tolist():
            self._say(f"arms {one} and {other} are in one group, but the log shows that they differ")


class _KnownNoise(_WithPairs):
    """A noise that is known."""

    def __init__(self, claim: Claim, record: Record) -> None:
        room = min(claim.prefix_room, claim.t)
        super().__init__(claim, record, Stacks(record, claim.n_arms, room, claim.format > 1))
        self._record = record

    def everything(self) -> None:
        """Every check there is."""
        super().everything()
        self.groups()

    def by_list(self, claim: ListClaim) -> None:
        """Every partition on the list but the claimed one is struck off, by rounds or by a settled pair."""
        pairs = claim.pairs
        met = self.settled(*pairs, np.zeros(pairs[0].size, dtype=np.int64))
        checking = ListChecking(self.claim, claim, self._record, self._stacks)
        for problem in checking.problems(np.stack([pairs[0][met], pairs[1][met]], axis=1)):
            self._say(problem)
        self.tests += len(claim.partitions)

    def frozen(self, tests: Tests, freeze: Frozen, used: list[int], pools: str, half: Bools) -> FloatArray:
        """The evidence of docs/CROC.md, section 4."""
        rounds = [self._record.rounds[i] for i in used]
        return directed(self._record, freeze, rounds, pools, tests.arms, tests.others, tests.rounds)

    def groups(self) -> None:
        """Warn of groups whose arms hardly have one mean; what the certificate says about them must be right."""
        claim = self.claim
        found = homogeneity(self._record, claim.labels, claim.n_clusters)
        if claim.homogeneity is not None:
            for k in _first(~close(claim.homogeneity, found)):
                self._say(f"homogeneity of group {k}: {_against(claim.homogeneity[k], found[k])}")
        threshold = math.log(claim.n_clusters / HOMOGENEITY_LEVEL)
        for k in _first(found >= threshold):
            self.warnings.append(
                f"the arms of group {k} hardly have one mean: evidence {found[k]:.3g}, and {threshold:.3g} is reached "
                f"by chance in at most {HOMOGENEITY_LEVEL:.0%} of all runs; K = {claim.n_clusters} may be too small, "
                "or the noise larger than stated"
            )


class _Bets(_Checking):
    """A noise that is not known: only rounds count, each judged by the bet that came with it."""

    def __init__(self, claim: Claim, record: BetRecord) -> None:
        super().__init__(claim, record)
        self._record = record

    def frozen(self, tests: Tests, freeze: Frozen, used: list[int], pools: str, half: Bools) -> FloatArray:
        """The evidence of docs/EVIDENCE.md."""
        rounds = [self._record.rounds[i] for i in used]
        return betted(self._record, freeze, rounds, pools, tests.arms, tests.others, tests.rounds, half)

    def settled(
        self, a: IntArray, b: IntArray, stated: FloatArray, n_a: IntArray, n_b: IntArray, bound_at: IntArray
    ) -> Bools:
        """No pair is: a claim with pairs has been refused before."""
        return np.zeros(a.size, dtype=bool)


class _BoundedVariance(_WithPairs):
    """Gaussian noise whose variance results bound: rounds are judged by bets, pairs in units of the bound."""

    def __init__(self, claim: Claim, record: BetRecord) -> None:
        self._record = record
        self._bounded = BoundedStacks(record, claim.n_arms, min(claim.prefix_room, claim.t), claim.variance_level)
        super().__init__(claim, record, self._bounded.at(claim.t))

    def frozen(self, tests: Tests, freeze: Frozen, used: list[int], pools: str, half: Bools) -> FloatArray:
        """The evidence of docs/EVIDENCE.md."""
        rounds = [self._record.rounds[i] for i in used]
        return betted(self._record, freeze, rounds, pools, tests.arms, tests.others, tests.rounds, half)

    def pair_evidence(self, a: IntArray, b: IntArray, n_a: IntArray, n_b: IntArray, bound_at: IntArray) -> FloatArray:
        """The evidence of pairs in units of the bounds from so many results."""
        return self._bounded.paired(a, b, n_a, n_b, bound_at)


def _listed(arms: list[int]) -> str:
    """Arms in words, not more than a line of them."""
    if len(arms) > 12:
        return f"{', '.join(map(str, arms[:10]))} and {len(arms) - 10} more"
    return f"{', '.join(map(str, arms[:-1]))} and {arms[-1]}"


def _reaches(found: FloatArray, level: float | FloatArray) -> Bools:
    return np.asarray((found >= level - SLACK * np.maximum(1.0, level)) & np.isfinite(found))


def _first(wrong: Bools) -> Iterator[int]:
    return iter(np.flatnonzero(wrong)[:MOST_PROBLEMS].tolist())


def _against(stated: float, found: float) -> str:
    return f"the certificate says {float(stated):.9g}, the log gives {float(found):.9g}"
