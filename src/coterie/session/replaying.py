"""Bringing a session to where a record ends: `Session.replay`, saved sessions and campaigns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.methods.contract import Decision, MethodRun
from coterie.problem.checks import FloatArray, IntArray, check_real_array, short
from coterie.problem.question import Resolution
from coterie.problem.revision import Revision
from coterie.session.conversation import ASKED, CHOSEN, FORGOTTEN, REVISED, TOLD, Applied, Conversation
from coterie.session.finished import FinishedRun
from coterie.session.records import UNASKED, Entries, ReplayError, read
from coterie.session.revising import note_revision, revise_by
from coterie.session.sleeping import SleepingRun, nothing_yet

if TYPE_CHECKING:
    from coterie.session.session import Session


class Facts(NamedTuple):
    """A recorded conversation: what was done, in order, and what was decided meanwhile.

    An ask that found the groups proven has no arm and no ticket: -1.
    """

    kinds: list[int]  # ASKED, TOLD, FORGOTTEN, LOOKED, CHOSEN, REVISED
    arms: list[int]
    tickets: list[int]
    rounds: list[int]  # of asks, -1 if it was not recorded
    values: FloatArray  # (results, d)
    decisions: list[tuple[int, Decision]] = []  # noqa: RUF012 (never changed)
    choices: list[Resolution] = []  # noqa: RUF012 (never changed): those of the entries CHOSEN
    revisions: list[Revision] = []  # noqa: RUF012 (never changed): those of the entries REVISED

    def older(self, applied: Applied) -> Facts:
        """What was recorded before the rules that made the rest."""
        return self._part(0, applied.entries)._replace(decisions=self.decisions[: applied.decisions])

    def newer(self, applied: Applied) -> Facts:
        """The rest."""
        return self._part(applied.entries, len(self.kinds))._replace(decisions=self.decisions[applied.decisions :])

    def split(self, at: int) -> tuple[Facts, Facts]:
        """The entries before this one, with all decisions, and the rest."""
        return self._part(0, at)._replace(decisions=self.decisions), self._part(at, len(self.kinds))

    def _part(self, start: int, stop: int) -> Facts:
        told, chosen, revised = (
            np.cumsum([0, *(kind == one for kind in self.kinds)]) for one in (TOLD, CHOSEN, REVISED)
        )
        part = slice(start, stop)
        values, choices = self.values[told[start] : told[stop]], self.choices[chosen[start] : chosen[stop]]
        found = Facts(self.kinds[part], self.arms[part], self.tickets[part], self.rounds[part], values)
        return found._replace(choices=choices, revisions=self.revisions[revised[start] : revised[stop]])

    def stages(self) -> list[Facts]:
        """What lies between revisions, each part with its decisions; one more than there are revisions."""
        if REVISED not in self.kinds:
            return [self]
        ends = [i for i, kind in enumerate(self.kinds) if kind == REVISED]
        cuts = [i for i, (_, one) in enumerate(self.decisions) if one["event"] == "revision"]
        found = []
        for n, (start, stop) in enumerate(zip([0, *(i + 1 for i in ends)], [*ends, len(self.kinds)], strict=True)):
            first = cuts[n - 1] + 1 if 0 < n <= len(cuts) else 0
            last = cuts[n] if n < len(cuts) else len(self.decisions)
            found.append(self._part(start, stop)._replace(decisions=self.decisions[first:last]))
        return found


def replay(session: Session, kinds: Any, arms: Any, tickets: Any, values: Any) -> None:
    """See `Session.replay`."""
    kind, arm, ticket = _integers(kinds, "kinds"), _integers(arms, "arms"), _integers(tickets, "tickets")
    n = kind.size
    if arm.size != n or ticket.size != n:
        raise ValueError(f"replay needs as many arms and tickets as kinds, got {n}, {arm.size} and {ticket.size}")
    unknown = (kind < ASKED) | (kind > FORGOTTEN)
    if unknown.any():
        i = int(np.argmax(unknown))
        raise ValueError(f"entry {i}: a kind is 0 (ask), 1 (tell) or 2 (forget), got {int(kind[i])}")
    outside = (arm >= session.n_arms) | (arm < np.where(kind == TOLD, 0, -1))
    if outside.any():
        i = int(np.argmax(outside))
        raise ValueError(f"entry {i}: unknown arm {int(arm[i])}: arms are 0..{session.n_arms - 1}")
    given = np.asarray(values)
    if session.dim == 1 and given.ndim == 1:
        given = given[:, None]
    if given.shape != (n, session.dim):
        raise ValueError(f"{n} entries need values of shape ({n}, {session.dim}), got shape {given.shape}")
    results = check_real_array(given[kind == TOLD], "measurements")
    follow(session, Facts(kind.tolist(), arm.tolist(), ticket.tolist(), [-1] * n, results))


def follow(session: Session, facts: Facts) -> None:
    """Let the method follow what was done; `ReplayError` names the entry where it goes another way.

    Nothing is changed then.
    """
    if facts.revisions:
        before = facts_of(session)
        try:
            _by_stages(session, facts, follow)
        except ReplayError:
            _again(session, before)
            raise
        return
    if not facts.kinds:
        return
    white = _white(session, facts)
    unknown = -1 in facts.arms and any(
        kind == ASKED and arm < 0 for kind, arm in zip(facts.kinds[:-1], facts.arms[:-1], strict=True)
    )
    if unknown:
        before = facts_of(session)
        try:
            _one_by_one(session, facts, white)
        except ReplayError:
            _again(session, before)
            raise
    else:
        reading = read(session._conversation, _entries(session, facts, white))
        try:
            reading.follow()
        except ReplayError:
            _again(session, facts_of(session))
            raise
        _keep_results(session, facts, white, reading.claimed)
    session._note_stop()


def facts_of(session: Session) -> Facts:
    """What was done in a session so far, and decided."""
    conversation, log = session._conversation, session._measurements
    asks, given_up, rows = 0, iter(conversation.given_up), iter(zip(log.arms, log.tickets, strict=True))
    arms, tickets, rounds = [], [], []
    for kind in conversation.order:
        arm, ticket, of_round = -1, -1, -1
        if kind == TOLD:
            arm, answered = next(rows)
            ticket = UNASKED if answered is None else answered
        elif kind == FORGOTTEN:
            ticket = next(given_up)
        elif kind == ASKED and asks < conversation.next_ticket:
            arm, ticket, of_round = conversation.arms_asked[asks], asks, conversation.rounds_asked[asks]
            asks += 1
        arms.append(arm)
        tickets.append(ticket)
        rounds.append(of_round)
    values = np.array(log.values).reshape(-1, session.dim)
    decisions, choices = list(conversation.decisions), list(conversation.choices)
    revisions = [one.revision for one in conversation.revisions]
    return Facts(list(conversation.order), arms, tickets, rounds, values, decisions, choices, revisions)


def _by_stages(session: Session, facts: Facts, take: Callable[[Session, Facts], None]) -> None:
    """Stage by stage, with the revisions between them.

    Of a stage that was revised everything is on record, and the run of the next one begins with its results: no rule is
    asked for anything. An entry that does not fit is numbered in the whole.
    """
    last = _pass_stages(session, facts)
    revise_by(session, facts.revisions[-1], last.decisions)
    try:
        take(session, last)
    except ReplayError as error:
        raise ReplayError(len(facts.kinds) - len(last.kinds) + error.entry, error.why) from None


def _pass_stages(session: Session, facts: Facts) -> Facts:
    """Keep all stages that were revised, and their revisions but for the last; the stage after it."""
    *earlier, last = facts.stages()
    counted = [t for t, one in facts.decisions if one["event"] == "revision"]
    for n, (stage, t) in enumerate(zip(earlier, counted, strict=True)):
        if n > 0:
            note_revision(session, facts.revisions[n - 1], _passing(session))
        white = _white(session, stage)
        reading = read(session._conversation, _entries(session, stage, white))
        reading.close(t)
        _keep_results(session, stage, white, reading.claimed)
    return last


def _passing(session: Session) -> SleepingRun:
    """A run that is never asked for anything: its stage is over."""

    def wake() -> MethodRun:
        raise AssertionError("this stage is over: nothing is asked or counted")

    return SleepingRun(wake, nothing_yet(session.n_arms))


def _again(session: Session, facts: Facts) -> None:
    """The session as these facts left it: a method may have gone on before a record turned out not to fit."""
    if isinstance(session._conversation.run, FinishedRun):
        return
    applied, corrections, undone = session._conversation.applied, session.corrections, session._conversation.undone
    session._begin(session.first_settings, session._method)
    session.corrections, session._conversation.undone = corrections, undone
    apply(session, facts.older(applied))
    follow(session, facts.newer(applied))


def apply(session: Session, facts: Facts) -> None:
    """Take what was recorded as it is; the rule is not consulted before the next new ask."""
    if facts.revisions:
        _by_stages(session, facts, apply)
        session._conversation.applied = Applied(len(session._conversation.order), len(session._conversation.decisions))
    elif facts.kinds:
        white = _white(session, facts)
        reading = read(session._conversation, _entries(session, facts, white))
        reading.apply()
        _keep_results(session, facts, white, reading.claimed)
        session._note_stop()


def close(session: Session, facts: Facts, outcome: dict[str, Any]) -> None:
    """A session that has found the groups, from its record: nothing is asked of a rule or an engine."""
    session._conversation = Conversation(_passing(session), session._conversation.in_ask_order)
    last = _pass_stages(session, facts)
    if facts.revisions:
        note_revision(session, facts.revisions[-1], _passing(session))
    session._conversation.run = FinishedRun(outcome)
    white = _white(session, last)
    reading = read(session._conversation, _entries(session, last, white))
    reading.close(int(outcome["t"]))
    _keep_results(session, last, white, reading.claimed)
    session._note_stop()


def bring_back(session: Session, facts: Facts, rules: int, applied: Applied) -> None:
    """A fresh session to where the record ends: followed by the same rules, or applied.

    `rules` is the number of the rules that made the record, `applied` how much of it is older than these.
    """
    if rules == session.rules:
        try:
            apply(session, facts.older(applied))
            follow(session, facts.newer(applied))
            return
        except ReplayError:  # the rule would have gone another way: what was recorded counts
            session._begin(session.first_settings, session._method)
    apply(session, facts)


def _white(session: Session, facts: Facts) -> FloatArray:
    arms = [arm for kind, arm in zip(facts.kinds, facts.arms, strict=True) if kind == TOLD]
    return session._measurements.in_noise_units(arms, facts.values)


def _entries(session: Session, facts: Facts, white: FloatArray) -> Entries:
    told = np.flatnonzero(np.asarray(facts.kinds) == TOLD)
    spread = np.zeros((len(facts.kinds), white.shape[1]))
    spread[told] = white
    first_row = len(session._measurements)
    return Entries(
        facts.kinds, facts.arms, facts.tickets, facts.rounds, spread, first_row, facts.decisions, facts.choices
    )


def _keep_results(session: Session, facts: Facts, white: FloatArray, claimed: list[int | None]) -> None:
    arms = [arm for kind, arm in zip(facts.kinds, facts.arms, strict=True) if kind == TOLD]
    if arms:
        session._measurements.add_all(arms, facts.values, white, claimed)


def _one_by_one(session: Session, facts: Facts, white: FloatArray) -> None:
    """A record that does not know all arms that were asked for."""
    row, conversation, choices = 0, session._conversation, iter(facts.choices)
    for i, (kind, arm, ticket) in enumerate(zip(facts.kinds, facts.arms, facts.tickets, strict=True)):
        if kind == ASKED:
            if session.done:
                raise ReplayError(i, "this ask comes after the groups were proven")
            _ask_recorded(session, i, arm, ticket)
        elif kind == TOLD:
            part = Facts([TOLD], [arm], [ticket], [-1], facts.values[row : row + 1])
            reading = _read_at(conversation, _entries(session, part, white[row : row + 1]), i)
            claimed = reading.claimed[0]
            place = session._measurements.add(arm, facts.values[row], white[row], claimed)
            conversation.tell(arm, white[row], place, claimed)
            row += 1
        elif kind == FORGOTTEN:
            if ticket not in conversation.pending:
                raise ReplayError(i, f"ticket {ticket} is not open")
            conversation.forget(ticket)
        elif kind == CHOSEN:
            conversation.choose(next(choices))
        else:
            conversation.look()
        session._note_stop()


def _read_at(conversation: Conversation, entries: Entries, at: int) -> Any:
    try:
        return read(conversation, entries)
    except ReplayError as error:
        raise ReplayError(at, error.why) from None


def _ask_recorded(session: Session, entry: int, arm: int, ticket: int) -> None:
    found = session._conversation.ask()
    session._note_stop()
    if found is None:
        if arm >= 0 or ticket >= 0:
            raise ReplayError(entry, "this ask opens no ticket, as the groups are proven")
    elif arm >= 0 and found.arm != arm:
        raise ReplayError(entry, f"the next arm is {found.arm}")
    elif ticket >= 0 and found.number != ticket:
        raise ReplayError(entry, f"this ask opens ticket {found.number}, not {ticket}")


def _integers(given: Any, name: str) -> IntArray:
    array = np.asarray(given)
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be a vector of integers, got {short(given)}")
    return array.astype(np.int64)
