"""How far a CROC run is: of the differences of items and other groups, how many are proven; and what holds it up.

After a record was applied, what pairs from the start have shown is looked up anew, for the leads of a freeze: evidence
from the start holds at every count at once, so that any counts that the record has may be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from coterie.methods.contract import HeldUp, Pull
from coterie.methods.croc.proof import CORES, frozen_tests
from coterie.methods.croc.run import CrocRun
from coterie.methods.reports import TESTS, Standing
from coterie.problem.checks import FloatArray

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
