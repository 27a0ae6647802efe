"""What a session has to say beside its proof: the alarm, whether its groups look like one each, and both in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.certificate.beside import LOG_FORMAT, stated_beside
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import bounds_variance
from coterie.problem.question import ExactGroups
from coterie.problem.sentences import assumption_in_words, groups_in_words, revisions_in_words
from coterie.problem.settings import METHOD
from coterie.session.conversation import Conversation, rows_asked_alone
from coterie.session.corrections import corrections_json, in_words
from coterie.session.data_alarms import DataAlarm
from coterie.session.failed_asks import missed_asks, overtaken_rows
from coterie.session.far_values import FarValue, far_value
from coterie.session.remarks import Alarm, Homogeneity, confirming_words, listed
from coterie.theory.hidden_groups import hidden_evidence
from coterie.theory.homogeneity import LEVEL, mixed_threshold
from coterie.theory.visible_difference import visible_difference

if TYPE_CHECKING:
    from coterie.session.session import Session


HOMOGENEITY_RULE = 2
"""Of a certificate: release 0.2 followed another one, for a known noise only."""


def alarm_of(session: Session) -> Alarm | None:
    """The alarm, if it was raised (CROC only)."""
    found = session._conversation.run.alarm
    if found is None or session.n_clusters is None:
        return None
    from coterie.engine.croc.state import ALPHA, VARIANCE_SHARE  # here: it loads the compiler, which takes a second

    arms = tuple(sorted(found))
    names = None if session.names is None else tuple(session.names[arm] for arm in arms)
    known = session.noise.kind == "known"
    share = ALPHA if known else ALPHA + VARIANCE_SHARE
    return Alarm(arms, session.n_clusters, share * session.delta, session.n_arms, names, known)


def homogeneity_of(session: Session) -> Homogeneity:
    """The verdict on each group of a session that is done, by the results that counted."""
    labels = session.labels
    assert labels is not None
    n_clusters = session.settings.shape[1]
    evidence = _hidden_evidence(session, labels, session.counted)
    threshold = mixed_threshold(n_clusters)
    mixed = np.flatnonzero(evidence >= threshold)
    confirmed = session.confirmed if session.done else None
    visible = None
    if confirmed is not None:
        log, rows = session._measurements, session.counted
        told = log.arms_of(rows), log.array[rows]
        visible = visible_difference(session.noise, *told, labels, n_clusters, threshold)
    return Homogeneity(
        tuple(evidence.tolist()),
        threshold,
        LEVEL,
        tuple(mixed.tolist()),
        tuple(_members(session, np.flatnonzero(labels == k)) for k in mixed),
        None if confirmed is None else confirmed[0],
        visible,
    )


def _members(session: Session, arms: IntArray) -> str:
    return listed([str(arm) if session.names is None else session.names[arm] for arm in arms.tolist()])


def explaining_value(session: Session) -> FarValue | None:
    """One far value that explains an alarm, or why a group looks mixed: without it nothing speaks against the group.

    None if there is neither, or if no single value explains it.
    """
    alarm, mixed = session.alarm, session.done and looks_mixed(session)
    if alarm is None and not mixed:
        return None
    far = far_value(session, session.counted)
    if far is None or alarm is not None:
        return far if far is not None and alarm is not None and far.arm in alarm.arms else None
    labels = session.labels
    assert labels is not None
    rest = session.counted[session.counted != far.row]
    return far if (_hidden_evidence(session, labels, rest) < mixed_threshold(session.settings.shape[1])).all() else None


def _hidden_evidence(session: Session, labels: IntArray, rows: IntArray) -> FloatArray:
    """The evidence of each group that it hides two, by the results at these places of the log."""
    log = session._measurements
    return hidden_evidence(session.noise, log.arms_of(rows), log.array[rows], labels, session.settings.shape[1])


def looks_mixed(session: Session) -> bool:
    """Whether a session that is done has a group that looks mixed."""
    return session.homogeneity is not None and not session.homogeneity


# In words.


def verdict_of(session: Session) -> str:
    """What it means that a session is done, in a clause: what holds whatever K is, and what if it is right."""
    if not session.proves:
        return "the evidence has reached the heuristic threshold (no proof)"
    corrected = f" ({in_words(session)})" if session.corrections else ""
    return f"{_proven(session)}{corrected}"


def _proven(session: Session) -> str:
    k = session.n_clusters
    if k is None or session.settings.question.kind != ExactGroups.kind:
        return "the groups are proven"
    against = None
    if session.alarm is not None:
        against = f"the data refute K = {k}"
    elif looks_mixed(session):
        against = "a group looks mixed"
    return groups_in_words(k, proves_at_least(session), against)


def proves_at_least(session: Session) -> bool:
    """Whether it is proven, whatever the number of groups, that there are at least K: by CROC, if nothing was revised
    on the way.
    """
    return session.method == METHOD and not session.revisions


def proof_of(session: Session) -> str:
    """What a session that is done has found; a proof of what the data contradict does not look like one."""
    far = explaining_value(session)
    if far is not None:
        name = str(far.arm) if session.names is None else session.names[far.arm]
        return f"{session.verdict}. Do not rely on it: {far.seen(name)}"
    return session.verdict


def progress_of(session: Session) -> str:
    """How far a session is."""
    if session.done:
        return proof_of(session)
    if session.confirmed is not None:
        return f"{proof_of(session)}; {confirming_words(*session.confirmed)}"
    if session.alarm is not None:
        return f"not proven, and K = {session.n_clusters} is refuted"
    unseen = int((session.pulls == 0).sum())
    return f"{unseen} arms not measured yet" if unseen else "not proven yet"


def described(
    head: str, alarm: Alarm | None, homogeneity: Homogeneity | None, others: tuple[DataAlarm, ...] = ()
) -> str:
    """A repr: the head, then the alarms and the verdict on the groups, as far as there are any, each in a line."""
    lines = [head]
    if alarm is not None:
        lines.append(f"alarm: {alarm.seen}")
    lines += [f"{'remark' if one.harmless else 'alarm'}: {one.seen}" for one in others]
    if homogeneity is not None:
        lines.append(f"homogeneity: {homogeneity.seen()}")
    return "<" + "\n  ".join(lines) + ">"


def beside_certificate(session: Session, certificate: dict[str, Any]) -> dict[str, Any]:
    """What a certificate says beside its proof, with items and groups as they are numbered there."""
    found, alarm, own = session.homogeneity, session.alarm, session.labels
    assert own is not None
    present = certificate.get("present", range(session.n_arms))
    _, firsts = np.unique(certificate["labels"], return_index=True)
    revised = {"revisions": session.revisions, "revisions_in_words": revisions_in_words(session.retired)}
    beside = (revised if "present" in certificate else {}) | {
        "delta": session.delta,
        "noise": session.noise.to_json(),
        "assumes": assumption_in_words(session.noise, session.settings.question.kind),
        "alarm": None if alarm is None else {"arms": [list(present).index(arm) for arm in alarm.arms]},
        "confirm": None
        if session.confirmed is None
        else {"share": session.settings.confirm, "measurements": session.confirmed[0]},
        "homogeneity": None
        if found is None
        else {
            "rule": HOMOGENEITY_RULE,
            "level": found.level,
            "threshold": found.threshold,
            "evidence": [found.evidence[own[present[arm]]] for arm in firsts],
        },
    }
    return beside | stated_beside(certificate | beside, session.events)


def t_stale(conversation: Conversation, t: int, ticket: int | None) -> bool:
    """Whether the result that counted as number t was asked for before a revision that came before it."""
    return ticket is not None and any(ticket < one.ticket for one in conversation.revisions if one.t <= t)


def events_of(session: Session) -> list[dict[str, Any]]:
    """The log that `coterie.verify` reads: results as they counted, and the freezes and rounds between them."""
    conversation, log = session._conversation, session._measurements
    shown = {
        "freeze": ("event", "epoch", "labels", "cores", "bet"),
        "round": ("event", "round", "epoch", "pulls", "seed", "bet", "settled"),
        "list": ("event", "epoch", "pairs"),
    }
    exact = session.settings.question.kind == ExactGroups.kind
    if not exact:
        names = ("references", "level", "epsilon", "eta", "height", "balls", "near", "far")
        shown["freeze"] = ("event", "epoch", "labels", *names)
        shown["resolution"] = ("event", "epoch", "epsilon", "eta")
    shown["revision"] = ("event", "added", "retired", "n_clusters", "delta")
    between = [(t, {key: one[key] for key in shown[one["event"]] if key in one}) for t, one in conversation.decisions
               if one["event"] in shown]  # fmt: skip
    found: list[dict[str, Any]] = []
    alone = rows_asked_alone(conversation, log.tickets) if exact and bounds_variance(session.noise) else set()
    late = overtaken_rows(session)
    at = 0
    for t, (row, of_round) in enumerate(zip(conversation.counted_rows, conversation.counted_rounds, strict=True)):
        while at < len(between) and between[at][0] <= t:
            found.append(between[at][1])
            at += 1
        values = log.values[row].tolist()
        event = {"event": "result", "arm": log.arms[row], "round": of_round, "values": values}
        if row in alone:
            event["alone"] = True
        if log.tickets[row] is None or (not exact and t_stale(conversation, t, log.tickets[row])):
            event["asked"] = False
        if row in late:
            event["late"] = True
        found.append(event)
    missed: list[dict[str, Any]] = [{"event": "missed", **one} for one in missed_asks(session)]
    corrected: list[dict[str, Any]] = [{"event": "correction", **one} for one in corrections_json(session)]
    head: dict[str, Any] = {"event": "log", "format": LOG_FORMAT}
    return [head, *found, *(event for _, event in between[at:]), *missed, *corrected]
