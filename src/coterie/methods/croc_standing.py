"""How far a CROC run is: of the differences of items and other groups, how many are proven; and what holds it up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from coterie.engine.croc.run import CrocRun
from coterie.engine.croc.state import (
    CORE_ROOM,
    EPOCHS,
    FLIGHT,
    OLDEST,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROUND,
    TO_ASK,
    UNSEEN,
)
from coterie.methods.contract import HeldUp, Pull
from coterie.methods.croc_proof import CORES, frozen_tests
from coterie.methods.reports import TESTS, Standing
from coterie.problem.checks import FloatArray


def standing_of(run: CrocRun) -> Standing:
    """Differences are those of an item with another group, M·(K − 1) of them.

    One is proven by a pair from the start, or by all of its frozen tests. A new guess of the groups asks for other
    differences: then fewer may be proven than before.
    """
    s = run.state
    n_arms, n_groups = s.labels.size, s.totals.size
    needed = n_arms * (n_groups - 1)
    if run.done:
        return Standing(needed, needed, n_arms, 0.0, 1.0, course=TESTS)
    if not run.ready:
        return Standing(0, needed, 0, course=TESTS)
    shares, spent = _shares(run)
    shares[np.arange(n_arms), s.labels] = 1.0
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
    s, slot = run.state, run.matching_epoch
    if run.has_pairs and run.alarm is None:
        shares = np.clip(s.evidence / run.pair_level, 0.0, 1.0)
        shares = np.where(s.settled == 1, 1.0, np.minimum(shares, 1.0 - 1e-9))
    else:  # pairs prove nothing (any more)
        shares = np.zeros(s.evidence.shape)
    if slot < 0:
        return shares, 0
    frozen = np.ones(shares.shape)
    now = s.labels[s.core[slot, ::CORE_ROOM]]  # by the group's number in the epoch, its number now
    tests = frozen_tests(run, slot, only_unmet=True)
    reached = np.clip(tests.evidence / tests.level, 0.0, 1.0 - 1e-9)
    np.minimum.at(frozen, (tests.arm, now[tests.group]), reached)
    cores = tests.kind == CORES  # these are of two items: the other one lacks it too
    other, group = tests.against[cores], s.labels[tests.arm[cores]]
    np.minimum.at(frozen, (other, group), reached[cores])
    return np.maximum(shares, frozen), run.t - int(s.frozen_at[slot])


def held_up_of(run: CrocRun, asks: Sequence[Pull]) -> HeldUp | None:
    """Before every arm was measured: results beyond the first of an arm, by asks of arms that were not.

    Later: results of rounds behind the first open one of their epoch, by asks of open rounds (docs/CROC.md, section 8).
    """
    s = run.state
    if s.ints[UNSEEN] > 0:
        if (s.committed == 0).any():
            return None
        seen = s.labels.size - int(s.ints[UNSEEN])
        return HeldUp(run.t - seen, [i for i, one in enumerate(asks) if s.pulls[one.arm] == 0])
    if s.ints[TO_ASK] > 0 or s.ints[QUEUE_HEAD] < s.ints[QUEUE_TAIL]:
        return None
    results, epochs = 0, set()
    open_rounds = set()
    for number in range(int(s.ints[OLDEST]), int(s.ints[ROUND]) + 1):
        f = number % FLIGHT
        epoch = int(s.round_epoch[f])
        if s.round_left[f] < 0 or s.frozen_number[epoch % EPOCHS] != epoch:  # used, or of nobody's use
            continue
        if epoch in epochs:
            results += int(s.round_pulls[f] - s.round_left[f])
        epochs.add(epoch)
        open_rounds.add(number)
    return HeldUp(results, [i for i, one in enumerate(asks) if one.round in open_rounds])
