"""What Python calls of CROC's compiled steps: `drive` for sessions, records and simulations; the others are small."""

from __future__ import annotations

import math

import numpy as np

from coterie.engine.compiled import compiled, entry
from coterie.engine.croc.entries import (
    APPLYING,
    ASK,
    DECIDED,
    ENDED,
    ESTIMATE,
    GIVE_UP,
    LOOK,
    NO_ROOM,
    OPEN_ROUND,
    OTHER_ARM,
    POSITION,
    PROVEN,
    PROVEN_ASKING,
    RESULT,
    Entries,
)
from coterie.engine.croc.evidence import pair_evidence_at
from coterie.engine.croc.flight import ask_again, ask_in_round, entry_of, start_round
from coterie.engine.croc.forecast import pulls_for_freeze, pulls_for_pairs
from coterie.engine.croc.least_pulled import commit, commit_arm, least_committed
from coterie.engine.croc.planning import plan
from coterie.engine.croc.renewal import forget_touched, renew
from coterie.engine.croc.state import (
    ALONE,
    ASKED_IN,
    DONE,
    ESTIMATED,
    FIRST_PASS,
    FLIGHT,
    FREEZES,
    HEAPED,
    MODE,
    OPEN_PULLS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROUND,
    TO_ASK,
    UNSEEN,
    Croc,
    Work,
)
from coterie.engine.croc.steps import observe, plan_if_due
from coterie.engine.croc.variance_bound import renew_bound
from coterie.engine.held import held
from coterie.engine.state import Floats, Ints


@entry
def pairs_at(s: Croc, pairs: Ints, evidence: Floats) -> None:
    """`pair_evidence_at` for rows (i, j, pulls of i, pulls of j). OUT: evidence."""
    _pairs_at(held(s), pairs, evidence)


@compiled
def _pairs_at(s: Croc, pairs: Ints, evidence: Floats) -> None:
    """See `pairs_at`, which Python calls."""
    for n in range(evidence.size):
        evidence[n] = pair_evidence_at(s, pairs[n, 0], pairs[n, 1], pairs[n, 2], pairs[n, 3])


@entry
def pulls_left(s: Croc, w: Work) -> float:
    """A forecast of what is still to be spent, on the pairs from the start or a freeze; NaN if unknown."""
    return _pulls_left(held(s), held(w))


@compiled
def _pulls_left(s: Croc, w: Work) -> float:
    """See `pulls_left`, which Python calls."""
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
        arm, number = ask_in_round(
            s.ints, s.round_unasked, s.round_cursor, s.entry_arm, s.entry_pulls, s.entry_asked,
            s.round_first, s.round_size, s.round_pulls, s.round_drawn, s.entry_before,
        )  # fmt: skip
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
    round_first: Ints, round_size: Ints, round_pulls: Ints, round_drawn: Ints, entry_before: Ints,
) -> int:  # fmt: skip
    """The next arm if it is planned already, -1 if not: what an ask mostly needs, without handing over the whole state.

    It counts as under way. INOUT: the queue, the rounds, committed pulls. OUT: ints[ASKED_IN].
    """
    ints[ASKED_IN] = 0
    if ints[UNSEEN] > 0 or ints[DONE] > 0:
        return -1
    if ints[TO_ASK] > 0:
        arm, ints[ASKED_IN] = ask_in_round(
            ints, unasked, cursor, entry_arm, entry_pulls, entry_asked,
            round_first, round_size, round_pulls, round_drawn, entry_before,
        )  # fmt: skip
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
    s.ints[OPEN_PULLS] -= 1
    if s.ints[ALONE] == arm + 1:  # it may have been this one: then the arm's next result is of another ask
        s.ints[ALONE] = 0
    s.ints[HEAPED] = 0
    if of_round > 0:  # also where a record is applied: no plan was made, so the mode is still that of the first pass
        ask_again(s, of_round, arm)
    elif s.ints[MODE] == FIRST_PASS:
        s.ints[QUEUE_HEAD] = min(s.ints[QUEUE_HEAD], arm)


@compiled
def _round_of(c: Entries, i: int) -> int:
    """The round of the ask that entry i is about, 0 for none."""
    return int(max(c.rounds[c.ask[i] if c.ask[i] >= 0 else i], 0))


@compiled
def _open_recorded(s: Croc, arm: int, of_round: int) -> None:
    """A recorded ask counts as under way. INOUT: s."""
    commit(s, arm)
    place = entry_of(s, of_round, arm) if of_round > 0 else -1
    if place >= 0 and s.entry_asked[place] < s.entry_pulls[place]:
        s.entry_asked[place] += 1
        s.round_unasked[of_round % FLIGHT] -= 1
        s.ints[TO_ASK] -= 1


@compiled
def _count(s: Croc, w: Work, c: Entries, i: int, x: Floats) -> bool:
    """The result of entry i counts. INOUT: s. Work space: x. Returns whether it belongs to no round."""
    arm, of_round = c.arms[i], _round_of(c, i)
    if c.asked[i] == 0:  # a result nobody asked for changes the plan, but for rounds
        of_round = 0
        alone = s.ints[ALONE]
        commit(s, arm)
        s.ints[ALONE] = 0 if alone == arm + 1 else alone
        if s.ints[MODE] != FIRST_PASS:
            s.ints[QUEUE_HEAD] = s.ints[QUEUE_TAIL]
    for q in range(x.size):
        x[q] = c.values[i, q]
    observe(s, w, arm, x, of_round)
    return of_round == 0


@compiled
def _apply(s: Croc, w: Work, c: Entries, i: int, x: Floats) -> bool:
    """Bring back entry i without consulting the rule. INOUT: s. Work space: x. False if a round found no room."""
    if c.kinds[i] == ASK:
        _open_recorded(s, c.arms[i], c.rounds[i])
    elif c.kinds[i] == RESULT:
        _count(s, w, c, i, x)
    elif c.kinds[i] == GIVE_UP:
        _give_up(s, c.arms[i], _round_of(c, i))
    elif c.kinds[i] == OPEN_ROUND:
        return start_round(s, c.composition, c.arms[i])
    elif c.kinds[i] == ESTIMATE and s.ints[UNSEEN] == 0:
        renew_bound(s)
        renew(s, w)
        forget_touched(s)
    return True


@entry
def drive(
    s: Croc, w: Work, c: Entries, steps: int, centers: Floats, truth: Ints, rng: np.random.Generator, x: Floats
) -> int:
    """Go on with a run: the one entry, for live sessions, records and simulations.

    steps = 0: follow the entries from where the run is in them to their end, or until something is decided (a freeze, a
    round), the groups are proven, or an ask is for another arm than the recorded one. Otherwise simulate up to so many
    results: arms are those that the rule asks for, results centers[truth[arm]] plus standard Gaussian noise. Returns
    why it came back. INOUT: s, c. Work space: x.
    """
    return _drive(held(s), held(w), held(c), steps, centers, truth, rng, x)


@compiled
def _drive(
    s: Croc, w: Work, c: Entries, steps: int, centers: Floats, truth: Ints, rng: np.random.Generator, x: Floats
) -> int:
    """See `drive`, which Python calls."""
    n_rounds, n_freezes = s.ints[ROUND], s.ints[FREEZES]
    done, taken = 0, -1
    ask = False
    while s.ints[DONE] == 0:
        ask = False
        outside = False
        i = c.at[POSITION]
        if steps > 0:
            if done == steps:
                return ENDED
            taken += 1
            if taken > 0:  # at first a plan, if it is due
                done += 1
                arm = _pop(s)
                commit(s, arm)
                for q in range(centers.shape[1]):
                    x[q], x[centers.shape[1] + q] = centers[truth[arm], q] + rng.standard_normal(), 0.0
                observe(s, w, arm, x, s.ints[ASKED_IN])
        else:
            if i == c.kinds.size:
                return ENDED
            if c.at[APPLYING] == 1:
                if not _apply(s, w, c, i, x):
                    return NO_ROOM
                c.at[POSITION] += 1
                continue
            if c.kinds[i] == GIVE_UP:
                _give_up(s, c.arms[i], _round_of(c, i))
                c.at[POSITION] += 1
                continue
            if c.kinds[i] == RESULT:
                outside = _count(s, w, c, i, x)
                c.at[POSITION] += 1
            else:
                ask = True
        plan_if_due(s, w, outside)
        if ask and s.ints[DONE] == 0:
            if c.kinds[i] == LOOK:
                if s.ints[UNSEEN] == 0 and s.ints[TO_ASK] == 0 and s.ints[QUEUE_HEAD] == s.ints[QUEUE_TAIL]:
                    plan(s, w)
                    if s.ints[DONE] > 0:
                        break
            else:
                arm = _pop(s)
                if arm < 0:  # all that was planned is asked for
                    plan(s, w)
                    if s.ints[DONE] > 0:
                        break
                    arm = _pop(s)
                commit(s, arm)
                if c.arms[i] >= 0 and c.arms[i] != arm:
                    c.arms[i] = arm
                    return OTHER_ARM
                c.arms[i], c.rounds[i] = arm, s.ints[ASKED_IN]
            c.at[POSITION] += 1
        if steps == 0 and (s.ints[ROUND] > n_rounds or s.ints[FREEZES] > n_freezes):
            return DECIDED
    return PROVEN_ASKING if ask else PROVEN
