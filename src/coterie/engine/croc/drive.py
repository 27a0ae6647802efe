"""The entries into CROC's compiled steps: one drives sessions, replays, simulations; the others are small."""

from __future__ import annotations

import math

import numpy as np

from coterie.engine.compiled import compiled, entry
from coterie.engine.croc.evidence import pair_evidence_at
from coterie.engine.croc.flight import ask_again, ask_in_round
from coterie.engine.croc.forecast import pulls_for_freeze, pulls_for_pairs
from coterie.engine.croc.least_pulled import commit, commit_arm, least_committed
from coterie.engine.croc.planning import plan
from coterie.engine.croc.script import (
    ASK,
    COUNTED,
    ENDED,
    ENTRY,
    GONE,
    LINE,
    NOT_OPEN,
    NOT_THAT_ARM,
    NOTED,
    OPEN,
    OTHER_ARM,
    PROVEN,
    PROVEN_ASKING,
    TELL,
    TOLD,
    Script,
)
from coterie.engine.croc.state import (
    ASKED_IN,
    DONE,
    ESTIMATED,
    FIRST_PASS,
    FREEZES,
    HEAPED,
    MODE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROUND,
    TO_ASK,
    UNSEEN,
    Croc,
    Work,
)
from coterie.engine.croc.steps import observe, plan_if_due
from coterie.engine.state import Floats, Ints


@entry
def pairs_at(s: Croc, pairs: Ints, evidence: Floats) -> None:
    """`pair_evidence_at` for rows (i, j, pulls of i, pulls of j). OUT: evidence."""
    for n in range(evidence.size):
        evidence[n] = pair_evidence_at(s, pairs[n, 0], pairs[n, 1], pairs[n, 2], pairs[n, 3])


@entry
def pulls_left(s: Croc, w: Work) -> float:
    """A forecast of the pulls still needed, the cheaper of the pairs from the start and a freeze; NaN if unknown."""
    if s.ints[ESTIMATED] == 0 or s.ints[UNSEEN] > 0:
        return math.nan
    frozen = pulls_for_freeze(s, w)
    return min(frozen, pulls_for_pairs(s, w, frozen + 1.0))


@compiled
def _pop(s: Croc) -> int:
    """The next arm, -1 if none is planned. INOUT: the queue, the rounds. OUT: s.ints[ASKED_IN], its round."""
    s.ints[ASKED_IN] = 0
    if s.ints[MODE] == FIRST_PASS and s.ints[UNSEEN] > 0:
        while s.ints[QUEUE_HEAD] < s.labels.size and s.committed[s.ints[QUEUE_HEAD]] > 0:
            s.ints[QUEUE_HEAD] += 1
        return int(s.ints[QUEUE_HEAD]) if s.ints[QUEUE_HEAD] < s.labels.size else least_committed(s)
    if s.ints[TO_ASK] > 0:
        arm, number = ask_in_round(s.ints, s.round_unasked, s.round_cursor, s.entry_arm, s.entry_pulls, s.entry_asked)
        s.ints[ASKED_IN] = number
        return arm
    if s.ints[QUEUE_HEAD] < s.ints[QUEUE_TAIL]:
        s.ints[QUEUE_HEAD] += 1
        return int(s.queue[s.ints[QUEUE_HEAD] - 1])
    return -1


@entry
def pop_planned(
    ints: Ints, queue: Ints, labels: Ints, committed: Ints, heap: Ints, slot: Ints, first_slot: Ints,
    unasked: Ints, cursor: Ints, entry_arm: Ints, entry_pulls: Ints, entry_asked: Ints,
) -> int:  # fmt: skip
    """The next arm if it is planned already, -1 if not: what an ask mostly needs, without handing over the whole state.

    It counts as under way. INOUT: the queue, the rounds, committed pulls. OUT: ints[ASKED_IN].
    """
    ints[ASKED_IN] = 0
    if ints[UNSEEN] > 0 or ints[DONE] > 0:
        return -1
    if ints[TO_ASK] > 0:
        arm, ints[ASKED_IN] = ask_in_round(ints, unasked, cursor, entry_arm, entry_pulls, entry_asked)
    elif ints[QUEUE_HEAD] < ints[QUEUE_TAIL] and ints[MODE] != FIRST_PASS:
        ints[QUEUE_HEAD] += 1
        arm = int(queue[ints[QUEUE_HEAD] - 1])
    else:
        return -1
    commit_arm(ints, labels, committed, heap, slot, first_slot, arm)
    return int(arm)


@compiled
def _give_up(s: Croc, arm: int, of_round: int) -> None:
    """A pull under way will not come: a round asks for it again. INOUT: the queue, the rounds."""
    s.committed[arm] -= 1
    s.ints[HEAPED] = 0
    if s.ints[MODE] == FIRST_PASS:
        s.ints[QUEUE_HEAD] = min(s.ints[QUEUE_HEAD], arm)
    elif of_round > 0:
        ask_again(s, of_round, arm)


@compiled
def _append(c: Script, place: int, arm: int, of_round: int, status: int) -> None:
    """A new place at the end of the arm's line. INOUT: c."""
    c.following[place] = -1
    c.status[place], c.its_arm[place], c.its_round[place] = status, arm, of_round
    if c.head[arm] < 0:
        c.head[arm] = place
    else:
        c.following[c.tail[arm]] = place
    c.tail[arm] = place


@compiled
def _next_result(c: Script) -> int:
    """The place at the head of the line under count, if its result is there: it leaves the line. -1 if not."""
    arm = c.at[LINE]
    while arm >= 0 and c.head[arm] >= 0:
        place = c.head[arm]
        if c.status[place] == OPEN:
            break
        c.head[arm] = c.following[place]
        if c.status[place] == TOLD:
            return int(place)
    c.at[LINE] = -1
    return -1


@compiled
def _read_entry(s: Croc, c: Script, i: int) -> int:
    """A result or a given-up ask: note it in the line of its arm, which is then to be counted. OUT: c. Why it fails."""
    place, arm = c.place[i], c.arms[i]
    if c.kinds[i] == TELL:
        if place == c.status.size - c.kinds.size + i:  # nobody asked: the end of the line
            _append(c, place, arm, 0, OPEN)
            c.its_round[place] = -1
        if c.status[place] != OPEN:
            return NOT_OPEN
        if c.its_arm[place] != arm:
            return NOT_THAT_ARM
        c.status[place] = TOLD
    else:
        if c.status[place] != OPEN:
            return NOT_OPEN
        arm = c.its_arm[place]
        c.arms[i] = arm
        c.status[place] = GONE
        _give_up(s, arm, c.its_round[place])
    c.at[LINE] = arm
    return ENDED


@entry
def drive(
    s: Croc, w: Work, c: Script, steps: int, centers: Floats, truth: Ints, rng: np.random.Generator, x: Floats
) -> int:
    """The one entry, for live sessions, replays and simulations.

    steps = 0: follow the script from where it is, to its end, or until there is something to note (a freeze, a round),
    the groups are proven, or an entry does not fit. Otherwise simulate up to so many results: arms are those that the
    rule asks for, results centers[truth[arm]] plus standard Gaussian noise. Returns why it came back. INOUT: s, c. Work
    space: x.
    """
    arm, of_round, outside = 0, 0, False
    places = c.status.size - c.kinds.size
    n_rounds, n_freezes = s.ints[ROUND], s.ints[FREEZES]
    done, taken = 0, -1
    ask = False
    while s.ints[DONE] == 0:
        ask = False
        outside = False
        if steps > 0:
            if done == steps:
                return ENDED
            taken += 1
            if taken > 0:  # at first a plan, if it is due
                done += 1
                arm = _pop(s)
                commit(s, arm)
                of_round = s.ints[ASKED_IN]
                for q in range(centers.shape[1]):
                    x[q], x[centers.shape[1] + q] = centers[truth[arm], q] + rng.standard_normal(), 0.0
                observe(s, w, arm, x, of_round)
        else:
            place = _next_result(c)
            if place < 0:
                if c.at[ENTRY] == c.kinds.size:
                    return ENDED
                ask = c.kinds[c.at[ENTRY]] == ASK
                if not ask:
                    failed = _read_entry(s, c, c.at[ENTRY])
                    if failed != ENDED:
                        return failed
                    c.at[ENTRY] += 1
                    continue
            else:
                c.counted[c.at[COUNTED]] = place
                c.at[COUNTED] += 1
                arm, of_round = c.its_arm[place], c.its_round[place]
                if of_round < 0:  # a result nobody asked for changes the plan, but for rounds
                    of_round = 0
                    commit(s, arm)
                    if s.ints[MODE] != FIRST_PASS:
                        s.ints[QUEUE_HEAD] = s.ints[QUEUE_TAIL]
                outside = of_round == 0
                for q in range(x.size):
                    x[q] = c.values[c.row[place], q]
                observe(s, w, arm, x, of_round)
        plan_if_due(s, w, outside)
        if ask and s.ints[DONE] == 0:
            i = c.at[ENTRY]
            arm = _pop(s)
            if arm < 0:  # all that was planned is asked for
                plan(s, w)
                if s.ints[DONE] > 0:
                    break
                arm = _pop(s)
            commit(s, arm)
            of_round = s.ints[ASKED_IN]
            if c.arms[i] >= 0 and c.arms[i] != arm:
                c.arms[i] = arm
                return OTHER_ARM
            c.arms[i] = arm
            _append(c, places + i, arm, of_round, OPEN)
            c.at[ENTRY] += 1
        if steps == 0 and (s.ints[ROUND] > n_rounds or s.ints[FREEZES] > n_freezes):
            return NOTED
    return PROVEN_ASKING if ask else PROVEN
