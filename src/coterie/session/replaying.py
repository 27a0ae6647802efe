"""Bringing a session to where a record ends: `Session.replay`, saved sessions and campaigns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.methods.contract import Decision
from coterie.problem.checks import FloatArray, IntArray, check_real_array, short
from coterie.session.conversation import ASKED, FORGOTTEN, TOLD, Applied, Conversation
from coterie.session.finished import FinishedRun
from coterie.session.records import UNASKED, Entries, ReplayError, read

if TYPE_CHECKING:
    from coterie.session.session import Session


class Facts(NamedTuple):
    """A recorded conversation: what was done, in order, and what was decided meanwhile.

    An ask that found the groups proven has no arm and no ticket: -1.
    """

    kinds: list[int]  # ASKED, TOLD, FORGOTTEN, LOOKED
    arms: list[int]
    tickets: list[int]
    rounds: list[int]  # of asks, -1 if it was not recorded
    values: FloatArray  # (results, d)
    decisions: list[tuple[int, Decision]] = []  # noqa: RUF012 (never changed)

    def older(self, applied: Applied) -> Facts:
        """What was recorded before the rules that made the rest."""
        return self._part(0, applied.entries)._replace(decisions=self.decisions[: applied.decisions])

    def newer(self, applied: Applied) -> Facts:
        """The rest."""
        return self._part(applied.entries, len(self.kinds))._replace(decisions=self.decisions[applied.decisions :])

    def _part(self, start: int, stop: int) -> Facts:
        told = np.cumsum([0, *(kind == TOLD for kind in self.kinds)])
        part = slice(start, stop)
        values = self.values[told[start] : told[stop]]
        return Facts(self.kinds[part], self.arms[part], self.tickets[part], self.rounds[part], values)


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
    return Facts(list(conversation.order), arms, tickets, rounds, values, list(conversation.decisions))


def _again(session: Session, facts: Facts) -> None:
    """The session as these facts left it: a method may have gone on before a record turned out not to fit."""
    if isinstance(session._conversation.run, FinishedRun):
        return
    applied = session._conversation.applied
    session._begin(session.settings, session._method)
    apply(session, facts.older(applied))
    follow(session, facts.newer(applied))


def apply(session: Session, facts: Facts) -> None:
    """Take what was recorded as it is; the rule is not consulted before the next new ask."""
    if facts.kinds:
        white = _white(session, facts)
        reading = read(session._conversation, _entries(session, facts, white))
        reading.apply()
        _keep_results(session, facts, white, reading.claimed)
        session._note_stop()


def close(session: Session, facts: Facts, outcome: dict[str, Any]) -> None:
    """A session that has found the groups, from its record: nothing is asked of a rule or an engine."""
    white = _white(session, facts)
    session._conversation = Conversation(FinishedRun(outcome), session._conversation.in_ask_order)
    reading = read(session._conversation, _entries(session, facts, white))
    reading.close(int(outcome["t"]))
    _keep_results(session, facts, white, reading.claimed)
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
            session._begin(session.settings, session._method)
    apply(session, facts)


def _white(session: Session, facts: Facts) -> FloatArray:
    arms = [arm for kind, arm in zip(facts.kinds, facts.arms, strict=True) if kind == TOLD]
    return session._measurements.in_noise_units(arms, facts.values)


def _entries(session: Session, facts: Facts, white: FloatArray) -> Entries:
    told = np.flatnonzero(np.asarray(facts.kinds) == TOLD)
    spread = np.zeros((len(facts.kinds), white.shape[1]))
    spread[told] = white
    return Entries(
        facts.kinds, facts.arms, facts.tickets, facts.rounds, spread, len(session._measurements), facts.decisions
    )


def _keep_results(session: Session, facts: Facts, white: FloatArray, claimed: list[int | None]) -> None:
    arms = [arm for kind, arm in zip(facts.kinds, facts.arms, strict=True) if kind == TOLD]
    if arms:
        session._measurements.add_all(arms, facts.values, white, claimed)


def _one_by_one(session: Session, facts: Facts, white: FloatArray) -> None:
    """A record that does not know all arms that were asked for."""
    row, conversation = 0, session._conversation
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
