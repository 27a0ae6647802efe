"""Does a log prove that there are these K groups? The argument that is checked is in docs/CROC.md.

A claim rests on pairs from the start, on the tests of an epoch, or on a list of partitions. Under a known noise rounds
are judged by docs/CROC.md, section 4, under any other by the bets that came with them (docs/EVIDENCE.md). Where there
are pairs from the start, what they show must not contradict the claim. In a run in blocks cells take the place of
rounds, and of the stacks of the pairs (docs/BLOCKS.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from coterie.certificate.arithmetic.bets import Bet, BetRecord, bets_of, known_freeze_bet
from coterie.certificate.arithmetic.cells import CellPairs
from coterie.certificate.arithmetic.factors import betted, jointly_bounded
from coterie.certificate.arithmetic.hidden_groups import NEAR, SEARCHED, hidden_groups, homogeneity
from coterie.certificate.arithmetic.known import (
    Differences,
    Record,
    Stacks,
    differing_mates,
    directed,
    paired,
    pairwise_known,
    record_of,
    refuting_arms,
)
from coterie.certificate.arithmetic.panels import PanelTests
from coterie.certificate.arithmetic.variance import BoundedStacks
from coterie.certificate.claim import Tests
from coterie.certificate.fields import MOST_PROBLEMS, Bools, Checks, against, close, first_places, reaches
from coterie.certificate.freezes import Freeze, LogSubject
from coterie.certificate.group_claim import (
    HOMOGENEITY_LEVEL,
    EpochClaim,
    GroupClaim,
    JointTests,
    PairTests,
    group_claim_of,
)
from coterie.certificate.list_checking import list_problems
from coterie.certificate.reading import Log, read_events
from coterie.certificate.revised import SpentError
from coterie.certificate.traces import confirmed_results
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.noise import Noise
from coterie.problem.question import ExactGroups


def check_groups(certificate: dict[str, Any], events: Sequence[Any], spent: SpentError) -> Checks:
    """What is wrong with a certificate. ValueError or TypeError if it, or its log, is malformed."""
    claim = group_claim_of(certificate, spent)
    about = LogSubject(
        ExactGroups.kind, claim.n_arms, claim.dim, claim.n_groups, blocks=claim.blocks, strict=claim.strict
    )
    if claim.features is not None:
        about = replace(about, features=claim.features, holes=claim.features.holes)
    log = read_events(events, about, claim.t)
    checks = GroupChecks(claim, log)
    checks.check()
    if not claim.blocks and claim.features is None:
        checks.check_homogeneity(events, certificate.get("confirm"))
    return checks


class GroupChecks(Checks):
    """The checks of one claim of K groups."""

    def __init__(self, claim: GroupClaim, log: Log) -> None:
        super().__init__()
        self.claim, self.log = claim, log
        room = min(claim.prefix_room, claim.t)
        self._record: Record | None = None  # under a known noise
        self._bets: BetRecord | None = None  # under another
        self._bounded: BoundedStacks | None = None  # … whose variance results bound
        self._stacks: Stacks | None = None  # results in units of the noise, where there are pairs from the start
        self._cells: CellPairs | None = None  # … in blocks
        self._centers: list[Bet] = []  # what freezes state under a known noise in blocks
        self._ended = self._check_lapses()
        self._panels: PanelTests | None = None  # where features are measured apart
        if claim.features is not None:
            self._panels = PanelTests(log, claim.features, claim.noise)
        elif isinstance(claim.noise, Noise):
            self._record = record_of(log, claim.noise)
            if claim.blocks:
                self._cells = CellPairs(self._record, log.rounds, self._ended, claim.n_arms, claim.generation)
                self._centers = [known_freeze_bet(freeze, claim.n_groups, claim.dim) for freeze in log.freezes]
            else:
                self._stacks = Stacks(self._record, claim.n_arms, room)
        else:
            self._bets = bets_of(log, claim.noise, claim.n_groups)
            if claim.variance_level > 0.0:
                self._bounded = BoundedStacks(self._bets, claim.n_arms, room, claim.variance_level)
                self._stacks = self._bounded.at(claim.t)
        self._stated: list[tuple[IntArray, IntArray, FloatArray]] = []  # pairs at stated counts, recomputed

    def check(self) -> None:
        """Every check of the proof."""
        claim = self.claim
        if claim.listed is not None and self._record is not None and self._stacks is not None:
            settled = claim.listed.pairs
            met = self._settled(settled)
            pairs = np.stack([settled.first[met], settled.second[met]], axis=1)
            for problem in list_problems(claim, claim.listed, self.log, self._record, self._stacks, pairs):
                self.say(problem)
            self.tests += len(claim.listed.partitions)
        else:
            self._check_epochs()
        if claim.pairs is not None:
            self._check_pairs(claim.pairs)
        elif claim.epoch is not None and claim.epoch.number < len(self.log.freezes):
            # else the log lacks a freeze, and that was said
            self._check_epoch(claim.epoch, claim.freezes[claim.epoch.number])
        differences = self._stacks or self._cells
        if differences is not None:
            self._check_contradictions(differences)

    def _check_lapses(self) -> list[bool]:
        """Which rounds or cells are complete, or have lapsed as the certificate says: cells that do so later do not."""
        lapsed = [cell.number for cell in self.log.rounds if cell.lapsed]
        stated = set(self.claim.lapsed)
        if len(stated) < len(self.claim.lapsed) or not stated <= set(lapsed):
            self.say(f"the certificate says that the cells {short(list(self.claim.lapsed))} lapsed, the log {lapsed}")
        return [cell.complete and (not cell.lapsed or cell.number in stated) for cell in self.log.rounds]

    def check_homogeneity(self, events: Sequence[Any], confirm: Any) -> None:
        """Warn of groups whose arms are hardly alike; what the certificate says about them must be right."""
        claim = self.claim
        if claim.homogeneity_rule == 1 and self._record is not None:
            evidence = homogeneity(self._record, claim.labels, claim.n_groups)
        else:
            results = [event for event in events if event.get("event") == "result"]
            try:
                results = confirmed_results(results, claim.t, claim.n_arms, claim.dim, confirm)
            except (TypeError, ValueError) as problem:
                self.say(str(problem))
                results = results[: claim.t]
            arms, values = [event["arm"] for event in results], [event["values"] for event in results]
            evidence = hidden_groups(claim.noise, arms, values, claim.labels, claim.n_groups)
        if claim.homogeneity is not None:
            right = close(claim.homogeneity, evidence)
            if claim.noise.kind in SEARCHED:
                right |= np.abs(claim.homogeneity - evidence) <= NEAR * np.maximum(1.0, np.abs(evidence))
            for k in first_places(~right):
                self.say(f"homogeneity of group {k}: {against(claim.homogeneity[k], evidence[k])}")
        threshold = math.log(claim.n_groups / HOMOGENEITY_LEVEL)
        for k in first_places(evidence >= threshold):
            self.warnings.append(
                f"the arms of group {k} are hardly alike: evidence {evidence[k]:.3g}, and {threshold:.3g} is reached "
                f"by chance in at most {HOMOGENEITY_LEVEL:.0%} of all runs; K = {claim.n_groups} may be too small, "
                "or the noise not as stated"
            )

    def _check_epochs(self) -> None:
        """Every freeze of the log is an epoch of the certificate, and the reverse."""
        stated, frozen = self.claim.freezes, self.log.freezes
        if len(stated) != len(frozen):
            self.say(f"the certificate has {len(stated)} epochs, the log {len(frozen)} freezes")
        for epoch, freeze in zip(stated, frozen, strict=False):
            if not epoch.agrees(freeze):
                where = "position" if epoch.at != freeze.at else "labels or cores"
                self.say(f"epoch {epoch.number} is not the freeze in the log: they differ in {where}")

    # Pairs from the start.

    def _check_pairs(self, pairs: PairTests) -> None:
        """Every arm differs from the representatives of all other groups, by their results from the start."""
        for i in first_places(~self._settled(pairs)):
            self.say(
                f"arm {pairs.first[i]} is not shown to differ from arm {pairs.second[i]}, which represents group "
                f"{self.claim.labels[pairs.second[i]]}: its evidence must reach {self.claim.pair_level:.6g}"
            )

    def _settled(self, pairs: PairTests) -> Bools:
        """Which of these pairs are shown to differ by their results from the start, at these counts."""
        if self._cells is not None:
            return self._settled_by_cells(pairs, self._cells)
        a, b, n_a, n_b = pairs.first, pairs.second, pairs.n_first, pairs.n_second
        stacks = self._stacks
        if stacks is None:  # a claim with pairs has been refused before
            return np.zeros(a.size, dtype=bool)
        missing = (n_a > stacks.heights[a]) | (n_b > stacks.heights[b])
        for i in first_places(missing):
            self.say(
                f"arms {a[i]} and {b[i]}: the certificate uses {n_a[i]} and {n_b[i]} results, "
                f"the log counts {stacks.heights[a[i]]} and {stacks.heights[b[i]]}"
            )
        there = np.flatnonzero(~missing)
        counted = a[there], b[there], n_a[there], n_b[there]
        evidence = np.full(a.size, np.nan)
        if self._bounded is None:
            evidence[there] = paired(stacks, *counted)
        else:
            evidence[there] = self._bounded.paired(*counted, pairs.bound_at[there])
        self._stated.append((a[there], b[there], evidence[there]))
        self.tests += there.size
        for i in there[~close(pairs.evidence[there], evidence[there])][:MOST_PROBLEMS]:
            self.say(f"evidence that arms {a[i]} and {b[i]} differ: {against(pairs.evidence[i], evidence[i])}")
        return reaches(evidence, self.claim.pair_level)

    def _settled_by_cells(self, pairs: PairTests, cells: CellPairs) -> Bools:
        """The same in blocks, by the cells up to the one stated."""
        of_generation = np.append(cells.generations == self.claim.generation, False)
        right = of_generation[np.minimum(pairs.n_first - 1, len(self.log.rounds))]
        there = np.flatnonzero(right)
        for i in first_places(~right):
            self.say(
                f"arms {pairs.first[i]} and {pairs.second[i]}: the certificate uses cell {pairs.n_first[i]}, but the "
                f"log has {len(self.log.rounds)} cells, {of_generation.sum()} of them of generation "
                f"{self.claim.generation}"
            )
        a, b, last = pairs.first[there], pairs.second[there], pairs.n_first[there]
        evidence = cells.evidence(a, b, last)
        self.tests += there.size
        for i in first_places(~close(pairs.evidence[there], evidence)):
            seen = (
                f"a cell up to {last[i]} that has both has not ended"
                if np.isnan(evidence[i])
                else against(pairs.evidence[there[i]], evidence[i])
            )
            self.say(f"evidence that arms {a[i]} and {b[i]} differ: {seen}")
        self._stated.append((a, b, evidence))
        met = np.zeros(pairs.first.size, dtype=bool)
        met[there] = reaches(evidence, self.claim.pair_level)
        return met

    def _check_contradictions(self, stacks: Stacks | CellPairs) -> None:
        """The log must not show more than K groups, nor that two arms of a group differ (`contradictions`)."""
        claim, level = self.claim, self.claim.pair_level
        differences, wanted = Differences(stacks, self._stated), claim.n_groups + 1
        mates = differing_mates(differences, claim.labels, claim.leads, level)
        refuting = None
        if claim.alarm is not None:
            named = np.unique(np.array(claim.alarm[:wanted], dtype=np.int64))
            if named.size == wanted and pairwise_known(differences, named, level):
                refuting = named
            else:
                self.say(f"the certificate itself says that K = {claim.n_groups} is refuted")
        if refuting is None:
            refuting = refuting_arms(differences, claim.leads, mates, level)
        if refuting is not None:
            self.say(
                f"the log refutes K = {claim.n_groups}: arms {_listed(refuting.tolist())} are pairwise known to "
                f"differ, that is at least {wanted} groups"
            )
        for arm, mate in mates[:MOST_PROBLEMS].tolist():
            self.say(f"arms {arm} and {mate} are in one group, but the log shows that they differ")

    # The tests of an epoch.

    def _check_epoch(self, tests: EpochClaim, freeze: Freeze) -> None:
        """Every test of the frozen candidate is met, in the epoch's rounds or by the pairs from the start."""
        labels, n_groups = freeze.labels, self.claim.n_groups
        level = self.claim.levels[freeze.number]
        used = self._rounds(tests)
        if used is None:
            return
        in_core = freeze.in_core

        first, second = tests.by_pairs.first, tests.by_pairs.second
        met = self._settled(tests.by_pairs)
        settled = np.zeros((self.claim.n_arms, n_groups), dtype=bool)  # arm against the core, and so the group, k
        settled[np.arange(self.claim.n_arms), labels] = True
        for a, b in ((first[met], second[met]), (second[met], first[met])):
            settled[a[in_core[b]], labels[b[in_core[b]]]] = True
        both = met & in_core[first] & in_core[second]
        differ = set(zip(first[both].tolist(), second[both].tolist(), strict=True))

        half = ~in_core if self.claim.has_halves else np.zeros_like(in_core)
        core_met = self._grid(tests.core_tests, freeze, used, "core", half)
        group_met = self._grid(tests.group_tests, freeze, used, "group", np.zeros_like(in_core))
        group_met |= in_core[:, None]  # an arm of a core is tested at the full level against cores
        for name, grid in (("core", core_met), ("group", group_met)):
            for i in first_places(~(grid | settled).ravel()):
                m, k = divmod(int(i), n_groups)
                wanted = level / 2.0 if name == "core" and half[m] else level
                which = f"the core of group {k}" if name == "core" else f"group {k}"
                self.say(f"arm {m} is not shown to differ from {which}: its evidence must reach {wanted:.6g}")
        if tests.joint_tests is None:
            self._check_core_pairs(tests.pair_tests, freeze, used, differ)
        else:
            self._check_joint_pairs(tests.joint_tests, freeze, used)

    def _rounds(self, tests: EpochClaim) -> list[int] | None:
        """Where the listed rounds are in the log: the epoch's first ones, all complete. None if they are not that.

        None may be left out, and none after an incomplete one may be used: its results would have been waited for.
        """
        places = [i for i, composed in enumerate(self.log.rounds) if composed.epoch == tests.number]
        of_epoch, part = [self.log.rounds[i] for i in places], "cell" if self.claim.blocks else "round"
        listed = of_epoch[: len(tests.rounds)]
        if list(tests.rounds) != [composed.number for composed in listed]:
            self.say(
                f"the certificate uses the {part}s {short(list(tests.rounds))}, "
                f"the log has {short([composed.number for composed in of_epoch])} for epoch {tests.number}"
            )
            return None
        for composed in listed:
            if not self._ended[composed.number - 1]:
                lapse = ", and the certificate does not say that it lapsed" if composed.lapsed else ""
                self.say(f"{part} {composed.number} is used, but not all of its results are in the log{lapse}")
                return None
        for name in ("group_tests", "core_tests", "pair_tests", "joint_tests"):
            some: Tests | JointTests | None = getattr(tests, name)
            if some is None:
                continue
            for i in first_places(~np.isin(some.counts, tests.rounds)):
                self.say(f"{name}: a test uses {part} {some.counts[i]}, which the certificate does not list")
                return None
        return places[: len(tests.rounds)]

    def _recomputed(self, tests: Tests, freeze: Freeze, used: list[int], pools: str, half: Bools) -> FloatArray:
        """The evidence of tests from the rounds at these places of the log; `half`: at half of the level."""
        about = pools, tests.arms, tests.others, tests.counts
        if self._panels is not None:
            frozen = self.log.freezes[freeze.number]  # with what was bet
            evidence = self._panels.evidence(frozen, [self.log.rounds[i] for i in used], pools, tests, half)
        elif self._record is not None:
            stated = self._centers[freeze.number] if self.claim.blocks else None
            evidence = directed(self._record, freeze, [self._record.rounds[i] for i in used], *about, stated)
        else:
            assert self._bets is not None
            evidence = betted(self._bets, freeze, [self._bets.rounds[i] for i in used], *about, half)
        self.tests += evidence.size
        kind = {"group": "group", "core": "the core of group", "arm": "arm"}[pools]
        for i in first_places(~close(tests.evidence, evidence)):
            part = "cell" if self.claim.blocks else "round"
            self.say(
                f"evidence that arm {tests.arms[i]} and {kind} {tests.others[i]} differ at {part} {tests.counts[i]}: "
                f"{against(tests.evidence[i], evidence[i])}"
            )
        return evidence

    def _grid(self, tests: Tests, freeze: Freeze, used: list[int], pools: str, half: Bools) -> Bools:
        """(M, K): which arms reach their level against the groups or cores."""
        evidence = self._recomputed(tests, freeze, used, pools, half[tests.arms])
        level = self.claim.levels[freeze.number]
        met = reaches(evidence, np.where(half, level / 2.0, level)[tests.arms])
        grid = np.zeros((self.claim.n_arms, self.claim.n_groups), dtype=bool)
        grid[tests.arms[met], tests.others[met]] = True
        return grid

    def _check_core_pairs(self, tests: Tests, freeze: Freeze, used: list[int], differ: set[tuple[int, int]]) -> None:
        level = self.claim.levels[freeze.number] / (2.0 if self.claim.has_halves else 1.0)
        half = np.full(tests.arms.size, self.claim.has_halves)
        met = reaches(self._recomputed(tests, freeze, used, "arm", half), level)
        settled = differ | set(zip(tests.arms[met].tolist(), tests.others[met].tolist(), strict=True))
        for k, core in enumerate(freeze.cores):
            for other in freeze.cores[k + 1 :]:
                if len(core) == 1 or len(other) == 1:
                    continue  # a core of one arm cannot be split
                for p in core:
                    for q in other:
                        if (p, q) not in settled and (q, p) not in settled:
                            self.say(f"core arms {p} and {q} are not shown to differ: {level:.6g} must be reached")

    def _check_joint_pairs(self, tests: JointTests, freeze: Freeze, used: list[int]) -> None:
        """Every two pairs of core arms without a common arm reach the whole level together."""
        if self.claim.has_halves or self._bets is None:
            self.say("joint_tests are for bounded results in drawn blocks, where no test is at half of the level")
            return
        rounds = [self._bets.rounds[i] for i in used]
        evidence = jointly_bounded(self._bets, freeze, rounds, tests.arms, tests.counts)
        self.tests += evidence.size
        for i in first_places(~close(tests.evidence, evidence)):
            a, b, c, d = tests.arms[i].tolist()
            seen = against(tests.evidence[i], evidence[i])
            self.say(f"evidence that arms {a} and {b}, or {c} and {d}, differ at cell {tests.counts[i]}: {seen}")
        level = self.claim.levels[freeze.number]
        met = reaches(evidence, level)
        shown = {frozenset(((a, b), (c, d))) for a, b, c, d in tests.arms[met].tolist()}
        wide = [core for core in freeze.cores if len(core) > 1]  # a core of one arm cannot be split
        pairs = [(p, q) for core, other in combinations(wide, 2) for q in core for p in other]
        for core, other in combinations(pairs, 2):
            if not {*core} & {*other} and frozenset((core, other)) not in shown:
                self.say(f"core arms {core} and {other} are not shown to differ together: {level:.6g} must be reached")


def _listed(arms: list[int]) -> str:
    """Arms in words, not more than a line of them."""
    if len(arms) > 12:
        return f"{', '.join(map(str, arms[:10]))} and {len(arms) - 10} more"
    return f"{', '.join(map(str, arms[:-1]))} and {arms[-1]}"
