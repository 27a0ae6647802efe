"""The entries into CROC's compiled steps: one that drives sessions and simulations, two that answer questions."""

from __future__ import annotations

import math

import numpy as np

from coterie.engine.compiled import compiled, entry
from coterie.engine.croc.evidence import pair_evidence_at
from coterie.engine.croc.forecast import pulls_for_freeze, pulls_for_pairs
from coterie.engine.croc.state import (
    DONE,
    ESTIMATED,
    FIRST_PASS,
    MODE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROUND,
    ROUND_EPOCH,
    UNSEEN,
    Croc,
    Work,
)
from coterie.engine.croc.steps import least_committed, observe, plan_if_due
from coterie.engine.state import Floats, Ints


@entry
def pair_at(s: Croc, i: int, j: int, pulls_i: int, pulls_j: int) -> float:
    """`pair_evidence_at` for Python."""
    return pair_evidence_at(s, i, j, pulls_i, pulls_j)


@entry
def pulls_left(s: Croc, w: Work) -> float:
    """A forecast of the pulls still needed, the cheaper of the pairs from the start and a freeze; NaN if unknown."""
    if s.ints[ESTIMATED] == 0 or s.ints[UNSEEN] > 0:
        return math.nan
    frozen = pulls_for_freeze(s, w)
    return min(frozen, pulls_for_pairs(s, w, frozen + 1.0))


@compiled
def _pop(s: Croc) -> int:
    """The next arm. INOUT: the queue. Call `plan_if_due` first."""
    if s.ints[MODE] == FIRST_PASS and s.ints[UNSEEN] > 0:
        while s.ints[QUEUE_HEAD] < s.labels.size and s.committed[s.ints[QUEUE_HEAD]] > 0:
            s.ints[QUEUE_HEAD] += 1
        return int(s.ints[QUEUE_HEAD]) if s.ints[QUEUE_HEAD] < s.labels.size else least_committed(s)
    if s.ints[QUEUE_HEAD] < s.ints[QUEUE_TAIL]:
        s.ints[QUEUE_HEAD] += 1
        return int(s.queue[s.ints[QUEUE_HEAD] - 1])
    return -1


@entry
def drive(
    s: Croc,
    w: Work,
    steps: int,
    scripted: bool,
    arm: int,
    values: Floats,
    of_round: int,
    asked: bool,
    centers: Floats,
    truth: Ints,
    rng: np.random.Generator,
    ask: bool,
    x: Floats,
) -> tuple[int, int]:
    """The one entry, for live sessions and simulations: take up to `steps` results, plan, and ask for the next arm.

    Scripted: the result is `values` of `arm`, of that round, asked for or not. Otherwise arms are those that the rule
    asks for, and results are drawn: centers[truth[arm]] plus standard Gaussian noise. With `ask`, returns the next arm
    and its round, and counts the pull as under way. INOUT: s. Work space: x.
    """
    for i in range(steps + 1):
        if i > 0 or steps == 0 or not scripted:  # a result first, then what follows from it
            plan_if_due(s, w, scripted and steps > 0 and of_round == 0)
        if i == steps or s.ints[DONE] > 0:
            break
        if scripted:
            for q in range(x.size):
                x[q] = values[q]
            if not asked:  # a result nobody asked for changes the plan, unless a round is open
                s.committed[arm] += 1
                if s.ints[ROUND_EPOCH] == 0 and s.ints[MODE] != FIRST_PASS:
                    s.ints[QUEUE_HEAD] = s.ints[QUEUE_TAIL]
        else:
            arm = _pop(s)
            s.committed[arm] += 1
            of_round = s.ints[ROUND] if s.ints[ROUND_EPOCH] > 0 else 0
            for q in range(x.size):
                x[q] = centers[truth[arm], q] + rng.standard_normal()
        observe(s, w, arm, x, of_round)
    if not ask:
        return -1, 0
    in_queue = s.ints[QUEUE_HEAD] < s.ints[QUEUE_TAIL]
    arm = _pop(s)
    if arm < 0:  # the round is asked for and not yet in: something useful outside it
        arm = least_committed(s)
    s.committed[arm] += 1
    return arm, int(s.ints[ROUND]) if in_queue and s.ints[ROUND_EPOCH] > 0 else 0
