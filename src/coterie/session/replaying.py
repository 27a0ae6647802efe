"""The fold of recorded facts into a conversation: with the effect of asking, telling and forgetting one by one.

Facts are *followed* (the method decides anew, and must decide the same), *applied* (what was recorded counts, and the
method's rule is not consulted), or *closed* (the groups were found: not even a method is needed). Saved sessions,
`Session.replay`, corrections and campaigns all come here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coterie.session.conversation import ASKED, CHOSEN, FORGOTTEN, TOLD, Applied, Conversation, Ticket
from coterie.session.facts import Facts, Reading, ReplayError, facts_of, read
from coterie.session.finished import FinishedRun, PastRun
from coterie.session.revising import continue_revised, note_revision

if TYPE_CHECKING:
    from coterie.session.session import Session


# Conversations.


def follow_facts(conversation: Conversation, facts: Facts) -> None:
    """Let the method follow what was done; `ReplayError` names the entry where it goes another way.

    Nothing is changed then.
    """
    asks = zip(facts.kinds[:-1], facts.arms[:-1], strict=True)
    unknown = -1 in facts.arms[:-1] and any(kind == ASKED and arm < 0 for kind, arm in asks)
    before = facts_of(conversation) if facts.revisions or unknown else None
    try:
        if facts.revisions:
            _by_stages(conversation, facts, follow_facts)
        elif unknown:
            _one_by_one(conversation, facts)
        elif facts.kinds:
            read(conversation, facts).follow()
    except ReplayError:
        # The method may have gone on; a reading that was not kept has left the conversation as it was.
        _go_back(conversation, facts_of(conversation) if before is None else before)
        raise


def apply_facts(conversation: Conversation, facts: Facts) -> None:
    """Take what was recorded as it is; the rule is not consulted before the next new ask."""
    if facts.revisions:
        _by_stages(conversation, facts, apply_facts)
        conversation.applied = Applied(len(conversation.order), len(conversation.decisions))
    elif facts.kinds:
        read(conversation, facts).apply()


def _go_back(conversation: Conversation, facts: Facts) -> None:
    """The conversation as these facts left it."""
    if isinstance(conversation.run, FinishedRun):
        return
    applied = conversation.applied
    conversation.restart()
    _apply_and_follow(conversation, facts, applied)


def _apply_and_follow(conversation: Conversation, facts: Facts, applied: Applied) -> None:
    """So much of a record is older than the rules that made the rest."""
    older, newer = facts.split(applied)
    apply_facts(conversation, older)
    follow_facts(conversation, newer)


def _by_stages(conversation: Conversation, facts: Facts, take: Callable[[Conversation, Facts], None]) -> None:
    """Stage by stage, with the revisions between them.

    Of a stage that was revised everything is on record, and the run of the next one begins with its results: no rule is
    asked for anything. An entry that does not fit is numbered in the whole.
    """
    last = _pass_stages(conversation, facts)
    note_revision(conversation, facts.revisions[-1])
    continue_revised(conversation, last.decisions)
    try:
        take(conversation, last)
    except ReplayError as error:
        raise ReplayError(len(facts.kinds) - len(last.kinds) + error.entry, error.why) from None


def _pass_stages(conversation: Conversation, facts: Facts) -> Facts:
    """Keep all stages that were revised, and their revisions but for the last; the stage after it."""
    *earlier, last = facts.stages()
    counted = [t for t, decision in facts.decisions if decision["event"] == "revision"]
    for n, (stage, t) in enumerate(zip(earlier, counted, strict=True)):
        if n > 0:
            note_revision(conversation, facts.revisions[n - 1], PastRun(conversation.settings.n_arms))
        read(conversation, stage).close(t)
    return last


def _one_by_one(conversation: Conversation, facts: Facts) -> None:
    """A record that does not know all arms that were asked for."""
    row, choices = 0, iter(facts.choices)
    white = conversation.log.in_noise_units(facts.told_arms, facts.values)
    for i, (kind, arm, ticket) in enumerate(zip(facts.kinds, facts.arms, facts.tickets, strict=True)):
        if kind == ASKED:
            if conversation.run.done:
                raise ReplayError(i, "this ask comes after the groups were proven")
            _check_ask(i, conversation.ask(), arm, ticket)
        elif kind == TOLD:
            result = Facts([TOLD], [arm], [ticket], [-1], facts.values[row : row + 1])
            try:
                reading = Reading(conversation, result, white[row : row + 1])
            except ReplayError as error:
                raise ReplayError(i, error.why) from None
            conversation.tell(arm, facts.values[row], white[row], reading.claimed[0])
            row += 1
        elif kind == FORGOTTEN:
            if ticket not in conversation.lines.pending:
                raise ReplayError(i, f"ticket {ticket} is not open")
            conversation.forget(ticket)
        elif kind == CHOSEN:
            conversation.choose(next(choices))
        else:
            conversation.look()


def _check_ask(entry: int, opened: Ticket | None, arm: int, ticket: int) -> None:
    """That an ask is the one that was recorded, as far as that is known."""
    if opened is None:
        if arm >= 0 or ticket >= 0:
            raise ReplayError(entry, "this ask opens no ticket, as the groups are proven")
    elif arm >= 0 and opened.arm != arm:
        raise ReplayError(entry, f"the next arm is {opened.arm}")
    elif ticket >= 0 and opened.number != ticket:
        raise ReplayError(entry, f"this ask opens ticket {opened.number}, not {ticket}")


# Sessions.


def follow(session: Session, facts: Facts) -> None:
    """Let the method of a session follow what was done; `ReplayError` names the entry where it goes another way.

    Nothing is changed then.
    """
    follow_facts(session._conversation, facts)


def close(session: Session, facts: Facts, outcome: dict[str, Any]) -> None:
    """A session that has found the groups, from its record: nothing is asked of a rule or an engine."""
    conversation = session._conversation
    conversation.restart(PastRun(conversation.first_settings.n_arms))
    last = _pass_stages(conversation, facts)
    if facts.revisions:
        note_revision(conversation, facts.revisions[-1], PastRun(conversation.settings.n_arms))
    conversation.run = FinishedRun(outcome)
    read(conversation, last).close(int(outcome["t"]))


def bring_back(session: Session, facts: Facts, rules: int, applied: Applied) -> None:
    """A fresh session to where the record ends: followed by the same rules, or applied.

    `rules` is the number of the rules that made the record, `applied` how much of it is older than these.
    """
    conversation = session._conversation
    if rules == conversation.method.rules:
        try:
            _apply_and_follow(conversation, facts, applied)
            return
        except ReplayError:  # the rule would have gone another way: what was recorded counts
            conversation.restart()
    apply_facts(conversation, facts)
