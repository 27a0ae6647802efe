"""What a session has to say beside its proof: the alarm, whether each group looks like one; both in words and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.evidence.homogeneity import LEVEL, mixed_threshold
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AnyNoise, Unknown
from coterie.problem.question import ExactGroups
from coterie.problem.sentences import groups_in_words
from coterie.problem.settings import METHOD
from coterie.session.atomic import for_session
from coterie.session.conversation import Conversation, SessionDone, Ticket, Waiting
from coterie.session.corrections import corrections_in_words
from coterie.session.data_alarms import DataAlarm, alarms_of
from coterie.session.groups import labels_of
from coterie.session.record_arrays import failed_in_words
from coterie.session.remarks import Alarm, FarValue, Homogeneity, confirming_words, farthest_value, listed

if TYPE_CHECKING:
    from coterie.session.session import Session


def alarm_of(conversation: Conversation) -> Alarm | None:
    """There are more groups than n_clusters: so many items and one are pairwise known to differ (CROC only).

    None for a resolution, and for single linkage: they hold whatever the means are.

    It ends nothing: `ask` goes on for the K that was given. It is raised with probability at most 0.2·delta if K
    and the noise are right, and never taken back.
    """
    refuting, settings = conversation.run.alarm, conversation.settings
    if refuting is None or settings.n_clusters is None:
        return None
    from coterie.methods.croc.run import ALPHA, VARIANCE_SHARE

    arms = tuple(sorted(refuting))
    names = None if settings.names is None else tuple(settings.names[arm] for arm in arms)
    known = settings.noise.kind == "known"
    share = ALPHA if known else ALPHA + VARIANCE_SHARE
    return Alarm(arms, settings.n_clusters, share * settings.delta, settings.n_arms, names, known)


def homogeneity_of(conversation: Conversation) -> Homogeneity | None:
    """Once `proven`, whether each group looks like one, by the results that counted; None before.

    The proof is for exactly n_clusters groups and the noise as stated; this is a test of them, at 1 %, for every
    noise. It assumes that delays of results do not depend on their values. None where items of a group need not be
    equal: for a resolution, and for single linkage. With `confirm` it also says, once `done`, which difference
    inside a group would have been seen.
    """
    if not conversation.proven or not isinstance(conversation.settings.question, ExactGroups):
        return None
    if conversation.settings.features is not None:
        return None  # it looks at whole vectors
    if conversation.settings.blocks is not None:  # it would take an offset of a block for a difference of items
        return None
    return conversation.once("homogeneity", _homogeneity)


def _homogeneity(conversation: Conversation) -> Homogeneity:
    settings, labels = conversation.settings, labels_of(conversation)
    assert labels is not None
    n_clusters = settings.shape[1]
    evidence = _hidden_evidence(conversation, labels, conversation.counted)
    threshold = mixed_threshold(n_clusters)
    mixed = np.flatnonzero(evidence >= threshold)
    confirmed = conversation.run.confirmed if conversation.run.done else None
    visible = None
    if confirmed is not None:
        from coterie.evidence.hidden_groups import visible_difference

        log, rows = conversation.log, conversation.counted
        told = log.arms_of(rows), log.array[rows]
        visible = visible_difference(settings.noise, *told, labels, n_clusters, threshold)
    return Homogeneity(
        tuple(evidence.tolist()),
        threshold,
        LEVEL,
        tuple(mixed.tolist()),
        tuple(listed([settings.name_of(arm) for arm in np.flatnonzero(labels == k).tolist()]) for k in mixed),
        None if confirmed is None else confirmed[0],
        visible,
    )


def _hidden_evidence(conversation: Conversation, labels: IntArray, rows: IntArray) -> FloatArray:
    """The evidence of each group that it hides two, by the results at these places of the log."""
    from coterie.evidence.hidden_groups import hidden_evidence

    log, settings = conversation.log, conversation.settings
    return hidden_evidence(settings.noise, log.arms_of(rows), log.array[rows], labels, settings.shape[1])


def _explaining_value(conversation: Conversation) -> FarValue | None:
    """One far value that explains an alarm, or why a group looks mixed: without it nothing speaks against the group.

    None if there is neither, or if no single value explains it.
    """
    alarm, mixed = alarm_of(conversation), conversation.run.done and _looks_mixed(conversation)
    if alarm is None and not mixed:
        return None
    rows = conversation.counted
    far = farthest_value(conversation.log, conversation.settings.noise, rows)
    if far is None or alarm is not None:
        return far if far is not None and alarm is not None and far.arm in alarm.arms else None
    labels = labels_of(conversation)
    assert labels is not None
    evidence = _hidden_evidence(conversation, labels, rows[rows != far.row])
    return far if (evidence < mixed_threshold(conversation.settings.shape[1])).all() else None


def _looks_mixed(conversation: Conversation) -> bool:
    """Whether a session that is done has a group that looks mixed."""
    homogeneity = homogeneity_of(conversation)
    return homogeneity is not None and not homogeneity


# In words.


def verdict_of(conversation: Conversation) -> str:
    """What it means that the session is done, in a clause: what holds whatever K is, and what if it is right."""
    if not conversation.proves:
        return "the evidence has reached the heuristic threshold (no proof)"
    corrected = corrections_in_words(conversation.corrections)
    return _proven_in_words(conversation) + (f" ({corrected})" if corrected else "")


def _proven_in_words(conversation: Conversation) -> str:
    k = conversation.settings.n_clusters
    if k is None or conversation.settings.question.kind != ExactGroups.kind:
        return "the groups are proven"
    against = None
    if alarm_of(conversation) is not None:
        against = f"the data refute K = {k}"
    elif _looks_mixed(conversation):
        against = "a group looks mixed"
    told = groups_in_words(k, _proves_at_least(conversation), against)
    return (
        f"{told} (the groups differ in spread or shape)" if against is None and stands_on_shape(conversation) else told
    )


def stands_on_shape(conversation: Conversation) -> bool:
    """Whether the groups were told apart by the spread or shape of their results, more than by their location.

    It is read off the weights that the last freeze fixed: those of the estimate that had predicted more.
    """
    stated = conversation.settings.noise
    if not (isinstance(stated, Unknown) and isinstance(stated.statement, AnyNoise) and stated.statement.shape):
        return False
    weights = [made["bet"]["numbers"] for _, made in conversation.decisions if made["event"] == "freeze"]
    return bool(weights) and weights[-1][1] > weights[-1][0]


def _proves_at_least(conversation: Conversation) -> bool:
    """Whether it is proven, whatever the number of groups, that there are at least K: by CROC, if nothing was revised
    on the way.
    """
    return conversation.settings.method == METHOD and not conversation.revisions


explaining_value = for_session(_explaining_value)
looks_mixed, proves_at_least = for_session(_looks_mixed), for_session(_proves_at_least)


def proof_in_words(conversation: Conversation) -> str:
    """What was found once it is done; if the data contradict it, what they contradict it with."""
    far, verdict = _explaining_value(conversation), verdict_of(conversation)
    if far is None:
        return verdict
    return f"{verdict}. Do not rely on it: {far.seen(conversation.settings.name_of(far.arm))}"


def progress_in_words(conversation: Conversation) -> str:
    """How far it is."""
    run = conversation.run
    if run.done:
        return proof_in_words(conversation)
    if run.confirmed is not None:
        return f"{proof_in_words(conversation)}; {confirming_words(*run.confirmed)}"
    if alarm_of(conversation) is not None:
        return f"not proven, and K = {conversation.settings.n_clusters} is refuted"
    unseen = int((run.pulls == 0).sum())
    return f"{unseen} arms not measured yet" if unseen else "not proven yet"


def verdict_now(conversation: Conversation) -> str:
    """What is proven, in a clause; before the end, how far it is."""
    return verdict_of(conversation) if conversation.run.done else progress_in_words(conversation)


def nothing_to_ask(conversation: Conversation, awaited: Sequence[Ticket]) -> SessionDone | Waiting:
    """What `Session.ask` raises: the groups are proven, the deadline is reached, or open asks come first."""
    if conversation.run.done:
        return nothing_left(conversation)
    if conversation.out_of_budget:
        return SessionDone(
            f"the deadline of {conversation.settings.deadline:g} leaves nothing to measure after "
            f"{conversation.run.t} measurements: read handover, or raise the deadline with revise(deadline=…)"
        )
    return waiting_for(awaited)


def waiting_for(tickets: Sequence[Ticket]) -> Waiting:
    """What `ask` raises while it waits for these."""
    late = ", ".join(f"arm {ticket.arm} (ticket {ticket.number})" for ticket in tickets[:5])
    more = f" and {len(tickets) - 5} more" if len(tickets) > 5 else ""
    return Waiting(
        f"waiting for the result of {late}{more}: what else is measured cannot be used before. Tell it, or give "
        "the ticket up with forget",
        tickets,
    )


def nothing_left(conversation: Conversation) -> SessionDone:
    """What `Session.ask` raises once the groups are proven."""
    return SessionDone(
        f"there is nothing left to measure after {conversation.run.t} measurements: read labels and centers; "
        f"{verdict_of(conversation)} (delta = {conversation.settings.delta:g})"
    )


def described(
    head: str, alarm: Alarm | None, homogeneity: Homogeneity | None, others: tuple[DataAlarm, ...] = ()
) -> str:
    """A repr: the head, then the alarms and the verdict on the groups, as far as there are any, each in a line."""
    lines = [head]
    if alarm is not None:
        lines.append(f"alarm: {alarm.seen}")
    lines += [f"{'remark' if other.harmless else 'alarm'}: {other.seen}" for other in others]
    if homogeneity is not None:
        lines.append(f"homogeneity: {homogeneity.seen()}")
    return "<" + "\n  ".join(lines) + ">"


def session_in_words(conversation: Conversation) -> str:
    """The repr of a session."""
    settings = conversation.settings
    of = f"{settings.n_arms} arms in {settings.question.words}, dim={settings.dim}, delta={settings.delta:g}"
    counted = f"{conversation.run.t} measurements, {progress_in_words(conversation)}"
    head = f"Session {of}, {settings.method}: {counted}{failed_in_words(conversation)}"
    return described(head, alarm_of(conversation), homogeneity_of(conversation), alarms_of(conversation))


# As plain JSON.


def alarm_json(session: Session, name_of: Callable[[int], str]) -> dict[str, Any] | None:
    """The items that refute the number of groups: one more than groups, pairwise known to differ. None without alarm.

    `arm` and `name` are those of the last of them.
    """
    alarm = session.alarm
    if alarm is None:
        return None
    names = [name_of(arm) for arm in alarm.arms]
    return {
        "arm": alarm.arms[-1],
        "name": names[-1],
        "arms": list(alarm.arms),
        "names": names,
        "probability": alarm.probability,
        "text": str(alarm),
    }


def alarms_json(session: Session) -> list[dict[str, Any]]:
    """The alarms of `Session.alarms`; `text` says what was seen and what to do."""
    return [alarm.to_json() | {"text": str(alarm)} for alarm in session.alarms]


def homogeneity_json(session: Session, numbers: Sequence[int]) -> dict[str, Any] | None:
    """Whether the items of each group look alike; None as long as the groups are not found.

    `evidence` is in the order of the groups in `labels`, and `mixed` are places in it. The text calls the group of
    label k `numbers[k]`. `confirmed` and `visible` are those of `Homogeneity`.
    """
    homogeneity = session.homogeneity
    if homogeneity is None:
        return None
    visible = homogeneity.visible
    text = f"{homogeneity.seen(numbers)} {homogeneity.advice}".rstrip()
    return {
        "level": homogeneity.level,
        "threshold": homogeneity.threshold,
        "evidence": list(homogeneity.evidence),
        "mixed": list(homogeneity.mixed),
        "confirmed": homogeneity.confirmed,
        "visible": None if visible is None else [size if math.isfinite(size) else None for size in visible],
        "text": text[:1].upper() + text[1:],
    }
