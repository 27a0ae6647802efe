"""The tests of a CROC run as tables, what is weakest among them, and the certificate that they add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.methods.contract import HeldUp, Pull
from coterie.methods.croc.run import CrocRun
from coterie.methods.reports import TESTS, Evidence, Standing, Weakest
from coterie.problem.checks import FloatArray, IntArray

CORE, GROUP, CORES, PAIR = 0, 1, 2, 3  # kinds of tests: docs/CROC.md, section 5; met by a pair from the start
BLOCK = 1 << 15
"""Arms whose sums are looked at together: it bounds the work space."""


class Tests(NamedTuple):
    """Columns with one entry a test."""

    kind: IntArray
    arm: IntArray
    group: IntArray
    against: IntArray  # an arm, -1 for a whole group
    evidence: FloatArray
    level: FloatArray
    met: NDArray[np.bool_]
    last: IntArray  # the round at which it was met; of a pair: the arm's count
    other: IntArray  # of a pair: the count of `against`
    bound: IntArray  # of a pair: t of the upper bound on the variance, in units of which it is; 0 if there is none

    def weakest(self, which: NDArray[np.bool_] | None = None) -> tuple[float, float, int, int, int | None]:
        """(evidence, level, arm, group, against) of the test that lacks most, the first of them."""
        lack = self.level - self.evidence
        i = int(np.argmax(lack if which is None else np.where(which, lack, -np.inf)))
        against = int(self.against[i])
        place = int(self.arm[i]), int(self.group[i]), against if against >= 0 else None
        return float(self.evidence[i]), float(self.level[i]), *place


def pair_tests(run: CrocRun) -> Tests:
    """Every arm against the representatives of the other groups, from the start."""
    arm, group = np.nonzero(np.arange(run.n_groups) != run.labels[:, None])
    counts = run.pair_counts[arm, group]
    level = np.full(arm.size, run.pair_level)
    against, met = run.representative[group], run.settled[arm, group] == 1
    kind = np.full(arm.size, PAIR)
    bound = run.pair_bound[arm, group] if run.has_bound else np.zeros_like(arm)
    return Tests(kind, arm, group, against, run.evidence[arm, group], level, met, counts[:, 0], counts[:, 1], bound)


def frozen_tests(run: CrocRun, slot: int, only_unmet: bool = False) -> Tests:
    """Every test of an epoch: for each arm and group its core test, then its group test; then pairs of core arms."""
    parts = [_arm_tests(run, slot, start, only_unmet) for start in range(0, run.n_arms, BLOCK)]
    parts.append(_core_pair_tests(run, slot, only_unmet))
    return Tests(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _arm_tests(run: CrocRun, slot: int, start: int, only_unmet: bool) -> Tests:
    frozen, part = run.frozen(slot), slice(start, start + BLOCK)
    in_group, in_core = frozen.against_group, frozen.against_core
    labels, core = frozen.labels[part], frozen.in_core[part] == 1
    both = np.stack([in_core.met[part], in_group.met[part]], axis=2) == 1
    wanted = np.repeat((np.arange(run.n_groups) != labels[:, None])[:, :, None], 2, axis=2)
    wanted[:, :, 1] &= ~core[:, None]
    if only_unmet:
        wanted &= ~both
    arm, group, kind = np.nonzero(wanted)
    value, last = np.zeros(arm.size), np.zeros(arm.size, dtype=np.int64)
    for which, sums in ((CORE, in_core), (GROUP, in_group)):
        of = np.flatnonzero(kind == which)
        last[of] = sums.last[part][arm[of], group[of]]
        weights = sums.weight[part][arm[of], group[of]]
        of, weights = of[weights > 0.0], weights[weights > 0.0]  # the others have no contrast yet
        m, k = arm[of], group[of]
        value[of] = _directed(run, slot, weights, sums.kept[part][m, k], labels[m], k)
    b, leads = frozen.level, frozen.core[:: run.core_room]
    level = np.where((kind == CORE) & ~core[arm], 0.5 * b, b)
    against = np.where(kind == CORE, leads[group], -1)
    tests = Tests(kind, arm + start, group, against, value, level, both[arm, group, kind], last, last, 0 * last)
    settled = np.flatnonzero(tests.met & (tests.last < 0))
    arms, groups = tests.arm[settled], tests.group[settled]
    if run.has_bound:  # what a pair said at the time: the bound of that time is not kept
        tests.evidence[settled] = in_core.kept[arms, groups, -1]
        tests.bound[settled] = in_core.bound[arms, groups]
    return _by_pairs(run, tests, settled, leads[groups], -in_core.last[arms, groups], -in_group.last[arms, groups])


def _core_pair_tests(run: CrocRun, slot: int, only_unmet: bool) -> Tests:
    frozen = run.frozen(slot)
    core, pairs = frozen.core, frozen.core_pairs
    home = np.arange(core.size) // run.core_room
    real = (core >= 0) & (core[home * run.core_room + 1] >= 0)  # a core of one arm is never split
    wanted = (home[:, None] > home[None]) & real[:, None] & real[None]
    i, j = np.nonzero(wanted & (pairs.met == 0) if only_unmet else wanted)
    value = _directed(run, slot, pairs.weight[i, j], pairs.kept[i, j], home[i], home[j])
    last, level = pairs.last[i, j], np.full(i.size, 0.5 * frozen.level)
    met, kind = pairs.met[i, j] == 1, np.full(i.size, CORES)
    tests = Tests(kind, core[i], home[j], core[j], value, level, met, last, last, 0 * last)
    settled = np.flatnonzero(met & (last < 0))
    i, j = i[settled], j[settled]
    if run.has_bound:
        tests.evidence[settled] = pairs.kept[i, j, -1]
        tests.bound[settled] = pairs.bound[i, j]
    return _by_pairs(run, tests, settled, core[j], -pairs.last[i, j], -pairs.last[j, i])


def _by_pairs(
    run: CrocRun, tests: Tests, settled: IntArray, against: IntArray, counts: IntArray, its_counts: IntArray
) -> Tests:
    """Put in the pairs from the start by which some tests were met. INOUT: tests."""
    pairs = np.stack([tests.arm[settled], against, counts, its_counts], axis=1)
    if not run.has_bound:
        tests.evidence[settled] = run.pair_evidences(pairs)
    tests.kind[settled], tests.level[settled], tests.against[settled] = PAIR, run.pair_level, against
    tests.last[settled] = counts
    other = tests.other.copy()  # so far it was `last` itself
    other[settled] = its_counts
    return tests._replace(other=other)


def _directed(
    run: CrocRun, slot: int, weight: FloatArray, total: FloatArray, home: IntArray, k: IntArray
) -> FloatArray:
    """log E of frozen tests: docs/CROC.md, section 4. A weight of 0 says that the sums are not of this epoch."""
    frozen = run.frozen(slot)
    if run.has_factor:  # what the family's factor said last
        return np.where(weight > 0.0, total[..., -1], 0.0)
    inverse, centers, leads = 1.0 / frozen.totals, frozen.centers, frozen.core[:: run.core_room]
    spread = inverse[home] + inverse[k]
    offset, rest = run.offset[leads], run.offset_rest[leads]
    theta = offset[home] - offset[k] + (rest[home] - rest[k]) + (centers[home] - centers[k])
    growth = 1.0 + weight * spread
    gain = 2.0 * np.einsum("nd,nd->n", theta, total) + spread * np.einsum("nd,nd->n", total, total)
    gain -= weight * np.einsum("nd,nd->n", theta, theta)
    value = 0.5 * gain / growth - 0.5 * theta.shape[1] * np.log(growth)
    return np.where(weight > 0.0, value, 0.0)


def evidence_of(run: CrocRun) -> Evidence:
    """What the stopping rule reads: the weakest test of the proof, or of what is still open."""
    if not run.ready:
        return Evidence(0.0, run.first_level, None)
    if run.done:
        value, level, arm, group, against = (
            pair_tests(run) if run.by_pairs else frozen_tests(run, run.epoch)
        ).weakest()
        return Evidence(value, level, Weakest(arm, group, value, level, against, 0.0))
    weakest = _weakest_open(run)
    if weakest is None:
        return Evidence(0.0, run.first_level, None)
    value, level, arm, group, against = weakest
    value = max(value, 0.0)
    return Evidence(value, level, Weakest(arm, group, value, level, against, run.pulls_left()))


def _weakest_open(run: CrocRun) -> tuple[float, float, int, int, int | None] | None:
    """Of the open epoch's unmet tests or, if there are none, of the unmet pairs; groups as they are numbered now."""
    slot = run.matching_epoch
    if slot >= 0:
        tests = frozen_tests(run, slot, only_unmet=True)
        if tests.arm.size > 0:
            value, level, arm, group, against = tests.weakest()
            return value, level, arm, int(run.labels[run.frozen(slot).core[group * run.core_room]]), against
    if run.alarm is not None or not run.has_pairs:
        return None  # pairs prove nothing (any more)
    tests = pair_tests(run)  # with several workers all may be met before the plan is made anew: then any of them
    return tests.weakest(None if tests.met.all() else ~tests.met)


def certificate_of(
    run: CrocRun, log_inverse_delta: float, epochs: list[dict[str, Any]], rounds: list[tuple[int, int]]
) -> dict[str, Any]:
    """The proof as plain data (docs/CROC.md, section 9). `rounds`: (number, epoch) of all rounds of the run."""
    n_arms, n_clusters = run.n_arms, run.n_groups
    document: dict[str, Any] = {
        "format": "coterie-certificate-2",
        "n_arms": n_arms,
        "n_clusters": n_clusters,
        "dim": run.dim,
        "delta": math.exp(-log_inverse_delta),
        "log_inverse_delta": log_inverse_delta,
        "alpha": run.pair_share,
        "equal_pairs": (n_arms - n_clusters + 1) * (n_arms - n_clusters) // 2,
        "pair_level": run.pair_level if run.has_pairs else None,
        "prefix_room": run.room if run.has_pairs else None,
        "t": run.t,
        "epochs": epochs,
    }
    if run.has_bound:
        document["variance_share"] = run.variance_share
    if run.by_pairs:
        own = run.labels.tolist()

        def listed(values: Any) -> list[list[Any]]:
            rows: list[list[Any]] = values.tolist()
            for row, mine in zip(rows, own, strict=True):
                row[mine] = None
            return rows

        pairs = {
            "evidence": listed(run.evidence),
            "pulls_arm": listed(run.pair_counts[:, :, 0]),
            "pulls_representative": listed(run.pair_counts[:, :, 1]),
        }
        return document | {
            "labels": own,
            "by": "pairs",
            "representatives": run.representative.tolist(),
            "pairs": pairs | {"variance_at": listed(run.pair_bound)} if run.has_bound else pairs,
        }
    number = run.frozen(run.epoch).number
    tests = frozen_tests(run, run.epoch)

    def rows(kind: int, *columns: Any) -> list[list[Any]]:
        chosen = tests.kind == kind
        return [list(row) for row in zip(*(column[chosen].tolist() for column in columns), strict=True)]

    bounds = [tests.bound] if run.has_bound else []
    by_pairs = rows(PAIR, tests.arm, tests.against, tests.evidence, tests.last, tests.other, *bounds)
    return document | {
        "labels": run.frozen(run.epoch).labels.tolist(),
        "by": "epoch",
        "representatives": [core[0] for core in epochs[number]["cores"]],
        "epoch": {
            "number": number,
            "rounds": [of_round for of_round, epoch in rounds if epoch == number],
            "group_tests": rows(GROUP, tests.arm, tests.group, tests.evidence, tests.last),
            "core_tests": rows(CORE, tests.arm, tests.group, tests.evidence, tests.last),
            "pair_tests": rows(CORES, tests.arm, tests.against, tests.evidence, tests.last),
            "by_pairs": list({(row[0], row[1]): row for row in by_pairs}.values()),
        },
    }


# How far a CROC run is: of the differences of items and other groups, how many are proven; and what holds it up.
#
# After a record was applied, what pairs from the start have shown is looked up anew, for the leads of a freeze:
# evidence from the start holds at every count at once, so that any counts that the record has may be looked at.


_LOOKED_BACK = 64
"""Counts of an arm, below the present one, at which its pair is looked at."""


def standing_of(run: CrocRun) -> Standing:
    """Differences are those of an item with another group, M·(K − 1) of them.

    One is proven by a pair from the start, or by all of its frozen tests. A new guess of the groups asks for other
    differences: then fewer may be proven than before.
    """
    n_arms = run.n_arms
    needed = n_arms * (run.n_groups - 1)
    if run.done:
        return Standing(needed, needed, n_arms, 0.0, 1.0, course=TESTS)
    if not run.ready:
        return Standing(0, needed, 0, course=TESTS)
    shares, spent = _shares(run)
    shares[np.arange(n_arms), run.labels] = 1.0
    met = shares >= 1.0
    left, worked = run.pulls_left(), float(shares.min(axis=1).mean())
    return Standing(
        int(met.sum()) - n_arms,
        needed,
        int(met.all(axis=1).sum()),
        left if math.isfinite(left) else None,
        worked,
        spent,
        TESTS,
    )


def _shares(run: CrocRun) -> tuple[FloatArray, int]:
    """(M, K) of the evidence needed, the share that is there; and the results since the open epoch began."""
    slot = run.matching_epoch
    if run.has_pairs and run.alarm is None:
        shares = np.clip(run.evidence / run.pair_level, 0.0, 1.0)
        shares = np.where(run.settled == 1, 1.0, np.minimum(shares, 1.0 - 1e-9))
    else:  # pairs prove nothing (any more)
        shares = np.zeros(run.evidence.shape)
    if slot < 0:
        return shares, 0
    frozen = np.ones(shares.shape)
    now = run.labels[run.frozen(slot).core[:: run.core_room]]  # by the group's number in the epoch, its number now
    tests = frozen_tests(run, slot, only_unmet=True)
    reached = np.clip(tests.evidence / tests.level, 0.0, 1.0 - 1e-9)
    np.minimum.at(frozen, (tests.arm, now[tests.group]), reached)
    cores = tests.kind == CORES  # these are of two items: the other one lacks it too
    other, group = tests.against[cores], run.labels[tests.arm[cores]]
    np.minimum.at(frozen, (other, group), reached[cores])
    return np.maximum(shares, frozen), run.t - run.frozen(slot).frozen_at


def held_up_of(run: CrocRun, asks: Sequence[Pull]) -> HeldUp | None:
    """Before every arm was measured: results beyond the first of an arm, by asks of arms that were not.

    Later: results of rounds behind the first open one of their epoch, by asks of open rounds (docs/CROC.md, section 8).
    """
    if run.unseen > 0:
        if (run.committed == 0).any():
            return None
        seen, pulls = run.n_arms - run.unseen, run.pulls
        return HeldUp(run.t - seen, [i for i, ask in enumerate(asks) if pulls[ask.arm] == 0])
    if run.to_ask > 0:
        return None
    results, epochs = 0, set()
    open_rounds = set()
    for number, epoch, pulled, left in run.open_rounds():
        if run.frozen(epoch % run.n_epochs).number != epoch:  # of nobody's use
            continue
        if epoch in epochs:
            results += pulled - left
        epochs.add(epoch)
        open_rounds.add(number)
    return HeldUp(results, [i for i, ask in enumerate(asks) if ask.round in open_rounds])


def settle_with(run: CrocRun, leads: Sequence[int]) -> None:
    """Let these arms, the first core arms of a freeze, represent their groups, as they did when it was made.

    Nothing is done if the present estimate has two of them in one group: its candidate is then another one.
    """
    homes = run.labels[list(leads)].tolist()
    if not run.ready or not run.has_pairs or len(set(homes)) < len(homes):
        return
    for lead, home in zip(leads, homes, strict=True):
        if run.representative[home] == lead:
            continue
        run.represent(home, lead)
        for arm in np.flatnonzero(run.labels != home).tolist():
            evidence, counts = _best(run, arm, lead)
            if np.isfinite(evidence):
                run.settle(arm, home, evidence, counts)


def _best(run: CrocRun, a: int, b: int) -> tuple[float, tuple[int, int]]:
    """The largest evidence from the start that two arms differ, over counts of the record, and these counts."""
    own, others = int(run.pulls[a]), int(run.pulls[b])
    counts = [(own, others)]
    if not run.has_bound:  # else the bound on the variance is that of now
        counts += [(n, others) for n in range(max(1, own - _LOOKED_BACK), own)]
        counts += [(own, n) for n in range(max(1, others - _LOOKED_BACK), others)]
        counts += [(n, n) for n in range(max(1, min(own, others) - _LOOKED_BACK), min(own, others))]
    evidences = run.pair_evidences(np.array([(a, b, *pair) for pair in counts]))
    best = int(np.argmax(np.nan_to_num(evidences, nan=-np.inf)))
    return float(evidences[best]), counts[best]


def settle_core_pairs(run: CrocRun) -> None:
    """Meet the tests of two core arms that a pair from the start meets at some counts of the record."""
    if not run.ready or not run.has_pairs or run.has_bound or run.alarm is not None:
        return
    for slot in range(min(run.freezes, run.n_epochs)):
        frozen = run.frozen(slot)
        room = run.core_room
        cores = frozen.core.reshape(-1, room)
        places = [k * room + i for k, core in enumerate(cores) for i in range(room)
                  if core[i] >= 0 and core[1] >= 0]  # fmt: skip
        for i in places:
            for j in places:
                if i // room > j // room and frozen.core_pairs.met[i, j] == 0:
                    evidence, counts = _best(run, int(frozen.core[i]), int(frozen.core[j]))
                    if evidence >= run.pair_level:
                        run.meet_core_pair(slot, i, j, counts)
