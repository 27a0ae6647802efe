"""`verify`: does the log prove what the certificate says? The argument that it checks is in docs/CROC.md."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.certificate.claim import Claim, EpochClaim, PairsClaim, Tests, claim_of, close, read_certificate
from coterie.certificate.log import Frozen, Record, parse_log, read_log
from coterie.certificate.recompute import Stacks, directed, paired
from coterie.problem.checks import FloatArray, IntArray, short

Bools = NDArray[np.bool_]

MOST_PROBLEMS = 20
"""How many problems a verdict lists."""

SLACK = 1e-9
"""Rounding that is forgiven where evidence must reach a level, relative to it: δ grows by as much, no more."""


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate holds, what is wrong with it, and how many tests were recomputed. True if it holds."""

    valid: bool
    problems: list[str] = field(default_factory=list)
    tests: int = 0

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
            claim = claim_of(certificate if isinstance(certificate, dict) else read_certificate(certificate))
            events = log if isinstance(log, list | tuple) else read_log(log)
            record = parse_log(events, claim.n_arms, claim.n_clusters, claim.noise, claim.t)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            return Verdict(False, [" ".join(str(error).split()) or type(error).__name__])
        checking = _Checking(claim, record)
        checking.epochs()
        if claim.pairs is not None:
            checking.by_pairs(claim.pairs)
        if claim.epoch is not None:
            checking.by_epoch(claim.epoch, claim.freezes[claim.epoch.number])
    return Verdict(not checking.problems, checking.problems, checking.tests)


class _Checking:
    """The checks of one certificate; `problems` says what failed."""

    def __init__(self, claim: Claim, record: Record) -> None:
        self.claim, self.record = claim, record
        self.problems: list[str] = []
        self.tests = 0

    def _say(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def epochs(self) -> None:
        """Every freeze of the log is an epoch of the certificate, and the reverse."""
        stated, found = self.claim.freezes, self.record.freezes
        if len(stated) != len(found):
            self._say(f"the certificate has {len(stated)} epochs, the log {len(found)} freezes")
        for mine, its in zip(stated, found, strict=False):
            if not mine.agrees(its):
                where = "position" if mine.at != its.at else "labels or cores"
                self._say(f"epoch {mine.number} is not the freeze in the log: they differ in {where}")

    def by_pairs(self, pairs: PairsClaim) -> None:
        """Every arm differs from the representatives of all other groups, by their results from the start."""
        others = self.claim.representatives[pairs.groups]
        met = self._pairs(pairs.arms, others, pairs.evidence, pairs.pulls_arm, pairs.pulls_representative)
        for i in _first(~met):
            self._say(
                f"arm {pairs.arms[i]} is not shown to differ from arm {others[i]}, which represents group "
                f"{pairs.groups[i]}: its evidence must reach {self.claim.pair_level:.6g}"
            )

    def _pairs(self, a: IntArray, b: IntArray, stated: FloatArray, n_a: IntArray, n_b: IntArray) -> Bools:
        """Which of these pairs reach the level from the start at these counts."""
        stacks = Stacks(self.record, self.claim.n_arms, min(self.claim.prefix_room, self.claim.t))
        missing = (n_a > stacks.heights[a]) | (n_b > stacks.heights[b])
        for i in _first(missing):
            self._say(
                f"arms {a[i]} and {b[i]}: the certificate uses {n_a[i]} and {n_b[i]} results, "
                f"the log counts {stacks.heights[a[i]]} and {stacks.heights[b[i]]}"
            )
        there = np.flatnonzero(~missing)
        found = np.full(a.size, np.nan)
        found[there] = paired(stacks, a[there], b[there], n_a[there], n_b[there])
        self.tests += there.size
        for i in there[~close(stated[there], found[there])][:MOST_PROBLEMS]:
            self._say(f"evidence that arms {a[i]} and {b[i]} differ: {_against(stated[i], found[i])}")
        return _reaches(found, self.claim.pair_level)

    def by_epoch(self, tests: EpochClaim, freeze: Frozen) -> None:
        """Every test of the frozen candidate is met, in the epoch's rounds or by the pairs from the start."""
        labels, n_clusters = freeze.labels, self.claim.n_clusters
        level = self.claim.levels[freeze.number]
        if not self._rounds(tests):
            return
        in_core = np.zeros(self.claim.n_arms, dtype=bool)
        in_core[[arm for core in freeze.cores for arm in core]] = True

        first, second, stated, n_first, n_second = tests.by_pairs
        met = self._pairs(first, second, stated, n_first, n_second)
        settled = np.zeros((self.claim.n_arms, n_clusters), dtype=bool)  # arm against the core, and so the group, k
        settled[np.arange(self.claim.n_arms), labels] = True
        for a, b in ((first[met], second[met]), (second[met], first[met])):
            settled[a[in_core[b]], labels[b[in_core[b]]]] = True
        both = met & in_core[first] & in_core[second]
        differ = set(zip(first[both].tolist(), second[both].tolist(), strict=True))

        core_level = np.where(in_core, level, level / 2.0)
        core_met = self._grid(tests.core_tests, freeze, "core", core_level)
        group_met = self._grid(tests.group_tests, freeze, "group", np.full(self.claim.n_arms, level))
        group_met |= in_core[:, None]  # an arm of a core is tested at the full level against cores
        for name, grid in (("core", core_met), ("group", group_met)):
            for i in _first(~(grid | settled).ravel()):
                m, k = divmod(int(i), n_clusters)
                wanted = float(core_level[m]) if name == "core" else level
                which = f"the core of group {k}" if name == "core" else f"group {k}"
                self._say(f"arm {m} is not shown to differ from {which}: its evidence must reach {wanted:.6g}")
        self._core_pairs(tests.pair_tests, freeze, differ, level / 2.0)

    def _rounds(self, tests: EpochClaim) -> bool:
        """Whether the certificate lists the epoch's first rounds, all complete: none may be left out."""
        of_epoch = [one for one in self.record.rounds if one.epoch == tests.number]
        listed = of_epoch[: len(tests.rounds)]
        if list(tests.rounds) != [one.number for one in listed]:
            self._say(
                f"the certificate uses the rounds {short(list(tests.rounds))}, "
                f"the log has {short([one.number for one in of_epoch])} for epoch {tests.number}"
            )
            return False
        if listed and not listed[-1].complete:
            self._say(f"round {listed[-1].number} is used, but not all of its results are in the log")
            return False
        for name in ("group_tests", "core_tests", "pair_tests"):
            some: Tests = getattr(tests, name)
            for i in _first(~np.isin(some.rounds, tests.rounds)):
                self._say(f"{name}: a test uses round {some.rounds[i]}, which the certificate does not list")
                return False
        return True

    def _recomputed(self, tests: Tests, freeze: Frozen, pools: str) -> FloatArray:
        rounds = [one for one in self.record.rounds if one.epoch == freeze.number and one.complete]
        found = directed(self.record, freeze, rounds, pools, tests.arms, tests.others, tests.rounds)
        self.tests += found.size
        kind = {"group": "group", "core": "the core of group", "arm": "arm"}[pools]
        for i in _first(~close(tests.evidence, found)):
            self._say(
                f"evidence that arm {tests.arms[i]} and {kind} {tests.others[i]} differ at round {tests.rounds[i]}: "
                f"{_against(tests.evidence[i], found[i])}"
            )
        return found

    def _grid(self, tests: Tests, freeze: Frozen, pools: str, level: FloatArray) -> Bools:
        """(M, K): which arms reach their level against the groups or cores."""
        found = self._recomputed(tests, freeze, pools)
        met = _reaches(found, level[tests.arms])
        grid = np.zeros((self.claim.n_arms, self.claim.n_clusters), dtype=bool)
        grid[tests.arms[met], tests.others[met]] = True
        return grid

    def _core_pairs(self, tests: Tests, freeze: Frozen, differ: set[tuple[int, int]], level: float) -> None:
        met = _reaches(self._recomputed(tests, freeze, "arm"), level)
        settled = differ | set(zip(tests.arms[met].tolist(), tests.others[met].tolist(), strict=True))
        for k, core in enumerate(freeze.cores):
            for other in freeze.cores[k + 1 :]:
                if len(core) == 1 or len(other) == 1:
                    continue  # a core of one arm cannot be split
                for p in core:
                    for q in other:
                        if (p, q) not in settled and (q, p) not in settled:
                            self._say(f"core arms {p} and {q} are not shown to differ: {level:.6g} must be reached")


def _reaches(found: FloatArray, level: float | FloatArray) -> Bools:
    return np.asarray((found >= level - SLACK * np.maximum(1.0, level)) & np.isfinite(found))


def _first(wrong: Bools) -> Iterator[int]:
    return iter(np.flatnonzero(wrong)[:MOST_PROBLEMS].tolist())


def _against(stated: float, found: float) -> str:
    return f"the certificate says {float(stated):.9g}, the log gives {float(found):.9g}"
