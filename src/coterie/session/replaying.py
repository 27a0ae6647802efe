"""The fold of recorded facts into a conversation: with the effect of asking, telling and forgetting one by one.

Facts are *followed* (the method decides anew, and must decide the same), *applied* (what was recorded counts, and the
method's rule is not consulted), or *closed* (the groups were found: not even a method is needed). Saved sessions,
`Session.replay`, corrections and campaigns all come here.

A revision (items join or are retired, there are more groups, δ is smaller) ends a *stage*. The method starts anew with
what is asked for now, and is given all results so far that are of items still present, as results that nobody asked
for: they serve its estimates and the pairs from the start, and no frozen test. What of δ is spent stays spent
(docs/CROC.md, section 17).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods.contract import RESULT, Decision, MethodRun, Record
from coterie.methods.present_arms import Past, PresentArms
from coterie.methods.start import confirming
from coterie.methods.table import METHODS
from coterie.problem.checks import FloatArray
from coterie.problem.costs import check_deadline
from coterie.problem.question import Resolution
from coterie.problem.revision import Items, Revision, among, revision_of
from coterie.problem.settings import SettingError, checked
from coterie.session.atomic import for_session
from coterie.session.conversation import ASKED, CHOSEN, FORGOTTEN, STEPPED, TOLD, AppliedPart, Conversation, Ticket
from coterie.session.facts import UNASKED, Facts, ReplayError, facts_given, facts_of, read
from coterie.session.finished import FinishedRun, PastRun

if TYPE_CHECKING:
    from coterie.session.session import Session

FEW = 64
"""Entries of a record that are followed one by one: more are cheaper to put in order first, and followed at once."""


def revise(
    conversation: Conversation, *, add: Any = None, retire: Any = None, n_clusters: Any = None, delta: Any = None,
    costs: Any = None, deadline: Any = None,
) -> None:  # fmt: skip
    """Change what is asked for, after looking at the results: nothing is lost of the guarantee. CROC only.

    Also once `done`: the session then goes on, and a certificate given before stays valid for what it says. The
    candidate that is being tested is given up, the next one needs log 5 = 1.6 more evidence for each that was
    frozen; no result is measured again. `ValueError` says what cannot be.

    Parameters
    ----------
    add : int, str or sequence of str, optional
        Names of items that join; how many, if items have no names.
    retire : sequence, optional
        Items that broke: their results are kept, nothing is claimed about them, and `labels` has -1.
    n_clusters, delta : int and float, optional
        More groups than before; a smaller error probability.
    costs : sequence of float, optional
        What a measurement of each item that joins costs, where items have costs.
    deadline : int or float, optional
        Another deadline, in a call of its own, where there is one: it costs nothing.
    """
    if deadline is not None:
        _change_deadline(conversation, deadline, (add, retire, n_clusters, delta, costs))
        return
    _revise_by(conversation, _checked_revision(conversation, add, retire, n_clusters, delta, costs))


def _change_deadline(conversation: Conversation, deadline: Any, others: tuple[Any, ...]) -> None:
    settings = conversation.settings
    if settings.deadline is None:
        raise SettingError("there is no deadline to change: one is set at the beginning", "deadline")
    if any(other is not None for other in others):
        raise SettingError("change the deadline in a call of its own, and what else there is in another", "deadline")
    wanted = checked("deadline", check_deadline, deadline, conversation.n_present, settings.costs, conversation.spent)
    if wanted != settings.deadline:
        conversation.step({"step": "deadline", "deadline": wanted})


def _checked_revision(
    conversation: Conversation, add: Any, retire: Any, n_clusters: Any, delta: Any, costs: Any = None
) -> Revision:
    """A revision from what a caller gave; `SettingError` says why it cannot be."""
    settings, method = conversation.settings, conversation.method
    for field, given in (("blocks", settings.blocks), ("features", settings.features)):
        if given is not None:
            raise SettingError(
                f"a session with {field} cannot be revised on the way: start anew with what is asked for now", field
            )
    if conversation.run.statements is not None:
        raise SettingError(
            "single statements were frozen for the deadline: from then on only the deadline can be revised", "deadline"
        )
    if method.restart is None:
        able = ", ".join(repr(method.name) for method in METHODS.values() if method.restart is not None)
        raise SettingError(
            f"method {method.name!r} cannot be revised on the way: its threshold is for the items and the delta it "
            f"began with. Start anew and tell the results so far, or use method {able}",
            "method",
        )
    return revision_of(settings, conversation.items, add, retire, n_clusters, delta, costs)


def _revise_by(conversation: Conversation, revision: Revision) -> None:
    """A checked revision: the next stage begins, with all results so far."""
    note_revision(conversation, revision)
    continue_revised(conversation)


checked_revision, revise_by = for_session(_checked_revision), for_session(_revise_by)


def note_revision(conversation: Conversation, revision: Revision, run: MethodRun | None = None) -> None:
    """Write a revision down. `run`: that of the next stage, if it is known; otherwise somebody puts it in later."""
    decision: Decision = {
        "event": "revision",
        "epoch": sum(made["event"] == "freeze" for _, made in conversation.decisions),
        **revision.to_json(),
    }
    conversation.revise(revision, decision, conversation.run if run is None else run)


def continue_revised(conversation: Conversation, recorded: Sequence[tuple[int, Decision]] = ()) -> None:
    """Begin the stage after a revision that was noted, with all results so far.

    `recorded`: decisions of that stage that will be applied. Positions count from the origin that their bets name, even
    if the first result was corrected since.
    """
    run = fresh_run(conversation)
    _feed(conversation, run, next((made["bet"]["from"] for _, made in recorded if "bet" in made), None))
    conversation.run = confirming(run, conversation.settings)
    conversation.note_decisions()


def fresh_run(conversation: Conversation) -> PresentArms:
    """The run of the present stage, before it was given anything."""
    past = _past_of(conversation)
    assert conversation.method.restart is not None
    return PresentArms(conversation.method.restart(among(conversation.settings, past.present), past), past)


def _past_of(conversation: Conversation) -> Past:
    """What the run of the present stage has to know of the earlier ones."""
    last, settings, items = conversation.revisions[-1], conversation.settings, conversation.items
    place = max(i for i, (_, made) in enumerate(conversation.decisions) if made["event"] == "revision")
    earlier = [made["event"] for _, made in conversation.decisions[:place]]
    counted = conversation.log.arms_of(conversation.counted[: last.t])
    gone = np.bincount(counted, minlength=settings.n_arms)
    gone[items.present] = 0
    epochs = earlier.count("freeze")
    by_epochs = isinstance(settings.question, Resolution) or settings.groups == "linkage"
    return Past(
        tuple(items.present),
        tuple(gone.tolist()),
        conversation.first_settings.n_arms,
        epochs,
        epochs if by_epochs else earlier.count("round"),
        len(conversation.revisions),
    )


def _feed(conversation: Conversation, run: PresentArms, origin: Sequence[float] | None) -> None:
    """Results that counted so far, of the present items, in the order in which they did."""
    log = conversation.log
    rows = conversation.counted[: conversation.revisions[-1].t]
    arms = log.arms_of(rows)
    here = ~np.isin(arms, list(conversation.items.retired))
    rows, arms = rows[here], arms[here]
    if not rows.size:
        return
    white, n = log.units(log.array[rows]), rows.size
    nothing = np.zeros(n, dtype=np.int64)
    run.apply(Record(np.full(n, RESULT), arms, nothing.copy(), np.full(n, -1), nothing, white, [], origin=origin))


def revisions_of(conversation: Conversation) -> list[dict[str, Any]]:
    """The revisions so far, as a certificate lists them: what, after how many results and epochs."""
    return [
        {"t": t, "epochs": made["epoch"]} | {key: made[key] for key in ("added", "retired", "n_clusters", "delta")}
        for t, made in conversation.decisions
        if made["event"] == "revision"
    ]


def items_after(n_first: int, revisions: list[Revision]) -> Items:
    """The items after some revisions."""
    items = Items(n_first)
    for revision in revisions:
        items = items.after(revision)
    return items


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
            _one_by_one(conversation, facts, conversation.log.in_noise_units(facts.told_arms, facts.values))
        elif facts.kinds:
            read(conversation, facts).follow()
    except ReplayError:
        # The method may have gone on; a reading that was not kept has left the conversation as it was.
        _go_back(conversation, facts_of(conversation) if before is None else before)
        raise


def replay(conversation: Conversation, kinds: Any, arms: Any, tickets: Any, values: Any) -> None:
    """A recorded conversation at once, with exactly the effect of its asks, tells and forgets one by one.

    `kinds`: 0 ask, 1 tell, 2 forget. `arms`: of each entry; an ask is checked against it (-1: not recorded; then
    results must say which ask they answer). `tickets`: opened by the ask, answered by the result, given up; -1 for
    none: an ask is then not checked, and a result answers the oldest open ask for its arm, if there is one; -2 for
    a result that answers no ask. `values` (n, d): of results; other rows are ignored. An ask that found the groups
    proven is recorded as arm -1, ticket -1. ValueError names the first entry that does not fit, and nothing is
    changed then.
    """
    follow_facts(conversation, facts_given(conversation.settings, kinds, arms, tickets, values))


def apply_facts(conversation: Conversation, facts: Facts) -> None:
    """Take what was recorded as it is; the rule is not consulted before the next new ask."""
    if facts.revisions:
        _by_stages(conversation, facts, apply_facts)
        conversation.applied = AppliedPart(len(conversation.order), len(conversation.decisions))
    elif facts.kinds:
        read(conversation, facts).apply()


def _go_back(conversation: Conversation, facts: Facts) -> None:
    """The conversation as these facts left it."""
    if isinstance(conversation.run, FinishedRun):
        return
    applied = conversation.applied
    conversation.restart()
    _apply_and_follow(conversation, facts, applied)


def _apply_and_follow(conversation: Conversation, facts: Facts, applied: AppliedPart) -> None:
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


def _one_by_one(conversation: Conversation, facts: Facts, white: FloatArray) -> None:
    """A record that is short, or does not know all arms that were asked for. `white`: results in units of the noise."""
    row, choices, steps = 0, iter(facts.choices), iter(facts.steps)
    for i, (kind, arm, ticket) in enumerate(zip(facts.kinds, facts.arms, facts.tickets, strict=True)):
        if kind == ASKED:
            if conversation.run.done:
                raise ReplayError(i, "this ask comes after the groups were proven")
            _check_ask(i, conversation.ask(), arm, ticket)
        elif kind == TOLD:
            conversation.absorb(arm, facts.values[row], _claimed(conversation, i, arm, ticket), white[row])
            row += 1
        elif kind == FORGOTTEN:
            if ticket not in conversation.lines.pending:
                raise ReplayError(i, f"ticket {ticket} is not open")
            conversation.forget(ticket)
        elif kind == CHOSEN:
            conversation.choose(next(choices))
        elif kind == STEPPED:
            conversation.step(next(steps))
        else:
            conversation.look()


def _claimed(conversation: Conversation, entry: int, arm: int, ticket: int) -> int | None:
    """The open ticket that a result answers: the one recorded, or the oldest of its arm."""
    pending = conversation.lines.pending
    if ticket == UNASKED:
        return None
    if ticket < 0:
        return next((number for number, place in pending.items() if place.arm == arm), None)
    if ticket not in pending:
        raise ReplayError(entry, f"ticket {ticket} is not open")
    if pending[ticket].arm != arm:
        raise ReplayError(entry, f"ticket {ticket} is for arm {pending[ticket].arm}, not for arm {arm}")
    return ticket


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

    The session is then of no use any more. What others have done in a moment is taken in as it would be live.
    """
    conversation = session._conversation
    if facts.revisions or len(facts.kinds) > FEW:
        follow_facts(conversation, facts)
    else:  # they were checked before they were recorded
        _one_by_one(conversation, facts, conversation.log.units(facts.values) if len(facts.values) else facts.values)


def close(session: Session, facts: Facts, outcome: dict[str, Any]) -> None:
    """A session that has found the groups, from its record: nothing is asked of a rule or an engine."""
    conversation = session._conversation
    conversation.restart(PastRun(conversation.first_settings.n_arms))
    last = _pass_stages(conversation, facts)
    if facts.revisions:
        note_revision(conversation, facts.revisions[-1], PastRun(conversation.settings.n_arms))
    conversation.run = FinishedRun(outcome)
    read(conversation, last).close(int(outcome["t"]))


def bring_back(session: Session, facts: Facts, rules: int, applied: AppliedPart) -> None:
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
