"""The commands of a campaign, ask, tell and fail: each checks first, then changes the state and makes rows.

A command that raises has changed nothing. `Turn` is one write on one campaign: its state, its time, its new rows. All
that the method decides meanwhile, and the stop with what it claims, become rows of the same turn.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.campaign.awaited import passed_on_at, waiting_for
from coterie.campaign.errors import BadValue, Conflict, Forbidden
from coterie.campaign.facts import RULES, SURPLUS
from coterie.campaign.far_off import FarOff, agrees_with_most
from coterie.campaign.given_results import GivenResult, check_measurements, find_lease
from coterie.campaign.groups import change_of, first_groups
from coterie.campaign.open_leases import TAKEN
from coterie.campaign.settings import LARGEST_BATCH, check_text, checked_field, new_key, printable
from coterie.campaign.state import Lease, State
from coterie.campaign.timestamps import timestamp
from coterie.campaign.tokens import Writer
from coterie.problem.checks import FloatArray, check_count, short
from coterie.store.rows import NO_ROUND, Ask, Ending, Note, Row, Told

LARGEST_TELL = 10_000
"""Results in one request: while they are taken in, nobody else's are. A table (`import_table`) may have more."""

ASK_PART, ASK_PART_SECONDS = 50, 0.03
"""Asks that are opened in one transaction, at first; then as many as take so long, or half of them to twice as many."""
MOST_OPEN = 20_000
"""Asks of a campaign that wait for their results: each of them is looked at whenever anybody asks or tells."""

FAR = 8.0
"""Standard deviations: a result further from what its item gave before is taken in, with a warning."""
FAR_UNSTATED = 20.0
"""The same where the noise is not known, in the usual spread of repeats: noise may have long tails. Times a margin, as
long as there are few repeats."""
MOST_WARNINGS = 10

_POINTS_PER_E_FOLD = 200
"""How densely the evidence's history is kept: a point whenever t has grown by 1/200."""


@dataclass
class Turn:
    """A write under way."""

    state: State
    now: float
    rows: list[Row] = field(default_factory=list)
    writer: Writer | None = None  # whose decision is being made; None: the command line, or Python

    def may_use(self, lease: Lease) -> bool:
        """Whether the writer may answer a lease, or give it up."""
        return self.writer is None or self.writer.may_use(lease.token)

    @property
    def may_use_all(self) -> bool:
        """Whether the writer may answer every lease."""
        return self.writer is None or not self.writer.only_own

    def add(self, row: Row, values: FloatArray | None = None) -> None:
        """Keep a row whose effect the session already has."""
        if self.writer is not None:
            row = row._replace(token=self.writer.token)
        self.state.record(row, values)
        self.rows.append(row)

    @property
    def seq(self) -> int:
        """The number of the next row."""
        return self.state.seq + 1

    def note(self, kind: str, content: Any) -> None:
        """Keep something found out."""
        self.add(Note(self.seq, kind, json.dumps(content), self.now))

    def note_rules(self) -> None:
        """Before anything new is decided: by which rules, if other ones have decided so far."""
        state = self.state
        if (not state.done and state.rules != state.session.rules) or state.session.applied > state.applied:
            state.applied = state.session.applied
            self.note(RULES, {"number": state.session.rules})

    def note_decisions(self) -> None:
        """Keep what the method has decided beside its asks."""
        for t, decision in self.state.session.dated_decisions[self.state.decisions :]:
            self.note(decision["event"], decision | {"t": t})


# Asking.


def ask_steps(n: Any) -> Iterator[Any]:
    """The counts to ask for one after the other, in transactions of their own, if somebody wants many items at once:
    each begins with what the one before has opened, and others can write between them.

    It looks how long the caller takes for each: the next part is shorter where others wait too.
    """
    if type(n) is not int or not ASK_PART < n <= LARGEST_BATCH:
        yield n
        return
    count, size = 0, ASK_PART
    while count < n:
        count = min(n, count + size)
        begun = time.monotonic()
        yield count
        took = max(time.monotonic() - begun, 1e-6)
        size = int(min(2 * ASK_PART, max(ASK_PART // 2, size * ASK_PART_SECONDS / took)))


def ask(turn: Turn, worker: Any, n: Any, of: int | None = None) -> dict[str, Any]:
    """Lease arms to a worker: its own open ones first, then new ones. `of`: how many it wants in the end (`ask_steps`).

    Where expired leases wait, the worker that holds one gets it back, with a new time limit; nobody else does. A repeat
    by somebody else must not take its place: which of the two results counted would depend on how late the first is,
    and so perhaps on its value. Elsewhere nothing is assumed to depend on that, and an ask that everybody waits for is
    passed on (`coterie.campaign.awaited`). If there is nothing to measure before it is answered, `waiting_for` says so.
    """
    who = check_text(worker, "worker")
    count = checked_field("n", check_count, n, "n", 1)
    if count > LARGEST_BATCH:
        raise BadValue(f"n must be at most {LARGEST_BATCH}, got {count}", field="n")
    expire(turn)
    state, settings = turn.state, turn.state.settings
    if state.done:
        return {"done": True, "asks": [], "waiting_for": []}
    waits, none_over = settings.on_expiry == "wait", turn.now < state.open.first_end
    own = list(state.open.of_worker(who))
    if not (turn.may_use_all and (waits or none_over)):
        own = [lease for lease in own if (waits or lease.expires_at > turn.now) and turn.may_use(lease)]
    held = own[:count]
    until = turn.now + state.lease_seconds
    for lease in () if none_over else held:
        if lease.expires_at <= turn.now:
            turn.add(Ask(turn.seq, lease.key, lease.ticket, lease.arm, who, turn.now, until, NO_ROUND))
    new = max(0, (count if of is None else of) - len(own))
    if new and len(state.open) + new > MOST_OPEN:
        raise Conflict(
            f"{len(state.open)} asks are open, and at most {MOST_OPEN} may be: tell or fail some of them first",
            code="too_many_leases",
            field="n",
        )
    turn.note_rules()
    while len(held) < count:
        opened = state.session.open(1, wanted=count - len(held))
        turn.note_decisions()
        if not opened:
            passed = None if state.session.done else _passed_on(turn, who, until)
            if passed is None:
                break
            held.append(passed)
            continue
        ticket = opened[0]
        row = Ask(turn.seq, new_key(), ticket.number, ticket.arm, who, turn.now, until, ticket.round)
        turn.add(row)
        held.append(state.leases[row.lease])
    note_findings(turn, by="ask")
    done = state.session.done  # perhaps found on the way: then nothing is left to measure
    waiting = waiting_for(state, turn.now) if len(held) < count else []
    more_to_come = of is not None and count < of and not waiting
    asks = [] if done or more_to_come else [_as_ask(state, lease) for lease in held]
    return {"done": done, "asks": asks, "waiting_for": waiting}


def _passed_on(turn: Turn, who: str, until: float) -> Lease | None:
    """The oldest ask that everybody waits for and that is to be asked of somebody else by now: of this worker."""
    state = turn.state
    for ticket in state.session.awaited:
        lease = state.open[ticket.number]
        own = lease.worker == who and turn.may_use(lease)
        if not own and passed_on_at(state, lease) <= turn.now:
            row = Ask(turn.seq, new_key(), lease.ticket, lease.arm, who, turn.now, until, NO_ROUND)
            turn.add(row)
            return state.leases[row.lease]
    return None


def _as_ask(state: State, lease: Lease) -> dict[str, Any]:
    return {
        "arm": lease.arm,
        "name": state.settings.name_of(lease.arm),
        "lease": lease.key,
        "expires": timestamp(lease.expires_at),
    }


def expire(turn: Turn) -> None:
    """End the leases whose time is over, where the campaign skips them."""
    state = turn.state
    if state.settings.on_expiry != "skip":
        return
    over = state.open.over(turn.now)
    for lease in over:
        give_up(turn, lease, "expired", "")
    if over:
        note_findings(turn, by="expiry")


def give_up(turn: Turn, lease: Lease, kind: str, reason: str) -> None:
    """The result of a lease will not come."""
    turn.note_rules()
    turn.state.session.forget(lease.ticket)
    turn.add(Ending(turn.seq, lease.key, lease.ticket, kind, reason, turn.now))
    turn.note_decisions()


# Telling.


def tell(
    turn: Turn,
    measurements: Any,
    imported: dict[str, Any] | None = None,
    unasked: bool = False,
    ask_back: bool = False,
) -> dict[str, Any]:
    """Take results in, all or nothing. `ask_back`: refuse them if one lies far from what its item gave before.

    `unasked`: they are a table's, and answer no ask, even where one is open. `imported`: what is noted of the table
    first, if any of them is new.
    """
    state = turn.state
    given = check_measurements(state, measurements, None if unasked else LARGEST_TELL)
    fresh = [one for one in given if not one.old]
    for i, one in enumerate(given):
        if not one.old and one.lease is not None:
            _check_own(turn, one.lease, f"measurements[{i}].lease")
        if ask_back and not one.old and (far := _far_off(state, one)) is not None:
            raise Conflict(f"{far.question} Save it anyway?", code="far_off", field=f"measurements[{i}].values")
    expire(turn)
    if imported is not None and fresh:
        turn.note("imported", imported)
    if fresh:
        turn.note_rules()
    named = {one.lease.key for one in fresh if one.lease is not None}
    warnings: list[dict[str, Any]] = []
    surplus: list[dict[str, Any]] = []
    for one in fresh:
        if not unasked and (taken := _taken(turn, one, named)) is not None:
            surplus.append(_keep_surplus(turn, one, taken))
            continue
        if len(warnings) < MOST_WARNINGS and (warning := _far_away(state, one)) is not None:
            warnings.append({"id": one.id, "arm": one.arm, "name": state.settings.name_of(one.arm), "message": warning})
        lease = one.lease
        if lease is None and not unasked:
            lease = _oldest_open(turn, one.arm, one.worker, named)
        ticket = None if lease is None or lease.ticket not in state.open else lease.ticket
        worker = one.worker or (None if lease is None else lease.worker)
        assert one.white is not None
        state.session.absorb(one.arm, one.values, ticket, one.white)
        values = json.dumps(one.values.tolist())
        turn.add(Told(turn.seq, one.id, one.arm, values, one.lease_key, ticket, worker, turn.now), one.values)
        turn.note_decisions()
    if fresh:
        note_findings(turn, by="tell")
    answer: dict[str, Any] = {"accepted": len(fresh), "duplicates": len(given) - len(fresh), "done": state.done}
    answer |= {"warnings": warnings} if warnings else {}
    return answer | {"not_counted": surplus} if surplus else answer


def _taken(turn: Turn, one: GivenResult, named: set[str]) -> Lease | None:
    """The lease that a result answers, if somebody else was asked too and has answered: then it does not count."""
    if one.lease is not None:
        return one.lease if one.lease.ended == TAKEN else None
    if one.worker is None or _oldest_open(turn, one.arm, one.worker, named) is not None:
        return None
    return turn.state.open.taken(one.worker, one.arm)


def _keep_surplus(turn: Turn, one: GivenResult, lease: Lease) -> dict[str, Any]:
    """Put a result on record that does not count. The answer names it."""
    name = turn.state.settings.name_of(one.arm)
    told = {"id": one.id, "arm": one.arm, "name": name, "values": one.values.tolist(), "lease": lease.key}
    turn.note(SURPLUS, told | {"worker": one.worker or lease.worker})
    message = f"{name} was asked of somebody else too, whose result came first: this one is kept, and does not count."
    return {"id": one.id, "arm": one.arm, "name": name, "message": message}


def _far_away(state: State, one: GivenResult) -> str | None:
    """A warning if a result lies far from the mean of what its item gave before: a slip of the finger, perhaps."""
    far = _far_off(state, one)
    return None if far is None else far.warning


def _far_off(state: State, one: GivenResult) -> FarOff | None:
    """How far a result lies from the mean of what its item gave before, if that is far."""
    if one.arm not in state.sums:
        return None
    deviations, stated = state.deviations, state.stated_deviations is not None
    if deviations is None:
        return None
    count, total = state.sums[one.arm]
    mean = total / count
    away = np.abs(one.values - mean) / deviations
    worst = int(np.argmax(away))
    limit = FAR if stated else FAR_UNSTATED * state.spread_margin
    if away[worst] <= limit:
        return None
    if agrees_with_most(one.values, (row[1] for row in state.results if row[0] == one.arm), limit * deviations):
        return None
    settings = state.settings
    which = "" if settings.dim == 1 else f" ({settings.columns[worst]})"
    name = settings.name_of(one.arm)
    return FarOff(name, which, float(one.values[worst]), float(mean[worst]), float(away[worst]), count, stated)


def _check_own(turn: Turn, lease: Lease, field: str) -> None:
    if not turn.may_use(lease):
        raise Forbidden(
            f"{field}: lease {lease.key} was given to another token, and a worker's token is for its own leases only",
            code="not_your_lease",
            field=field,
        )


def _oldest_open(turn: Turn, arm: int, worker: str | None, named: set[str]) -> Lease | None:
    """The oldest open ask for an arm, the worker's own if it says who it is; none that another result names."""
    for lease in turn.state.open.of_arm(arm):
        if turn.may_use(lease) and lease.key not in named and worker in (None, lease.worker):
            return lease
    return None


# Giving up.


def fail(turn: Turn, lease: Any, reason: Any) -> dict[str, Any]:
    """A measurement that will not come: the lease is freed. Saying so twice changes nothing."""
    return free(turn, lease, reason, "failed")


def free(turn: Turn, lease: Any, reason: Any, kind: str) -> dict[str, Any]:
    """Give a lease up that was not answered; `kind` says why. `ended` of the answer says how it has ended."""
    found = find_lease(turn.state, lease, "lease")
    _check_own(turn, found, "lease")
    if not isinstance(reason, str) or len(reason) > 2000:
        raise BadValue(f"reason must be a string of at most 2000 characters, got {short(reason)}", field="reason")
    text = printable(reason)
    if found.answer is not None:
        raise Conflict(
            f"lease {found.key} was answered by measurement {found.answer!r}: it cannot {_CANNOT[kind]} any more",
            code="lease_answered",
            field="lease",
        )
    expire(turn)
    if found.ended is None:
        give_up(turn, found, kind, text)
        note_findings(turn, by=_CANNOT[kind].rpartition(" ")[2])
    name = turn.state.settings.name_of(found.arm)
    return {"freed": True, "lease": found.key, "arm": found.arm, "name": name, "ended": found.ended}


_CANNOT = {"failed": "fail", "undone": "be undone"}


# What follows from it.


def note_findings(turn: Turn, by: str) -> None:
    """Note what has come out: new groups, a point of the evidence, the stop with what it claims."""
    state, session = turn.state, turn.state.session
    stopped = session.done and state.stopped_at is None
    if state.stopped_at is not None:
        return
    labels = session.groups_now
    if labels is not None and (labels is not state.compared[0] or state.groups is not state.compared[1]):
        if state.groups is None:
            turn.note("groups", first_groups(labels))
        else:
            change = change_of(state.groups, state.next_group, labels)
            if change is not None:
                turn.note("groups", change)
        state.compared = labels, state.groups
    t = session.t
    if stopped or t >= state.evidence_t + max(1, state.evidence_t // _POINTS_PER_E_FOLD):
        now = session.evidence
        point = {"t": t, "statistic": plain(now.statistic), "threshold": plain(now.threshold)}
        turn.note("evidence", point)
    if stopped:
        turn.note("stopped", {"t": t, "by": by, "verdict": session.verdict, "outcome": session.outcome})


def plain(number: float | None) -> float | None:
    """A number as JSON has them: no infinity, no NaN."""
    return None if number is None or not math.isfinite(number) else float(number)
