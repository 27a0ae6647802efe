"""What a session has to say beside its proof: the alarm, whether its groups look like one each, and both in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.certificate.beside import stated_beside
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
from coterie.session.remarks import Alarm, Homogeneity, listed
from coterie.theory.homogeneity import LEVEL, group_evidence, mixed_threshold

if TYPE_CHECKING:
    from coterie.session.session import Session

_ROWS_AT_ONCE = 2**16


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
    pulls, means = _counted_means(session, labels)
    n_clusters = session.settings.shape[1]
    here = labels >= 0
    evidence = group_evidence(pulls[here], means[here], labels[here], n_clusters)
    threshold = mixed_threshold(n_clusters)
    mixed = np.flatnonzero(evidence >= threshold)
    return Homogeneity(
        tuple(evidence.tolist()),
        threshold,
        LEVEL,
        tuple(mixed.tolist()),
        tuple(_members(session, np.flatnonzero(labels == k)) for k in mixed),
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
    n_clusters = session.settings.shape[1]
    evidence = group_evidence(*_counted_means(session, labels, rest), labels, n_clusters)
    return far if (evidence < mixed_threshold(n_clusters)).all() else None


def _counted_means(
    session: Session, labels: IntArray, counted: IntArray | None = None
) -> tuple[IntArray, FloatArray]:  # fmt: skip
    """The number of results of each arm that counted (or of these), and their whitened means.

    The means of a group are relative to the first result of its first arm, and the difference is taken in the user's
    units: so no digit is lost where data are far from zero, or one group from another.
    """
    rows, log = session.counted if counted is None else counted, session._measurements
    arms = log.arms_of(rows)
    if session.retired:
        rows, arms = rows[labels[arms] >= 0], arms[labels[arms] >= 0]
    pulls = np.bincount(arms, minlength=session.n_arms)
    seen, firsts = np.unique(arms, return_index=True)
    first_row = np.zeros(session.n_arms, dtype=np.int64)
    first_row[seen] = rows[firsts]
    groups, leads = np.unique(labels, return_index=True)  # labels are numbered by first appearance
    leads = leads[groups >= 0]
    origins = np.array([log.values[first_row[lead]] for lead in leads])
    sums = np.zeros((session.n_arms, session.dim))
    step = max(_ROWS_AT_ONCE, session.n_arms)
    for start in range(0, rows.size, step):
        its = arms[start : start + step]
        white = session.noise.whiten(log.array[rows[start : start + step]] - origins[labels[its]])
        for q in range(session.dim):
            sums[:, q] += np.bincount(its, white[:, q], minlength=session.n_arms)
    return pulls, sums / np.maximum(pulls, 1)[:, None]


def looks_mixed(session: Session) -> bool:
    """Whether a session that is done has a group that looks mixed; where the noise is not known nothing can be said."""
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
        "homogeneity": None
        if found is None
        else {
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
    return found + [event for _, event in between[at:]] + missed + corrected
