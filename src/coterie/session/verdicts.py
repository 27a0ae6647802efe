"""What a session has to say beside its proof: the alarm, whether its groups look like one each, and both in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.checks import FloatArray, IntArray
from coterie.session.remarks import Alarm, Homogeneity, listed
from coterie.theory.homogeneity import LEVEL, group_evidence, mixed_threshold

if TYPE_CHECKING:
    from coterie.session.session import Session

_ROWS_AT_ONCE = 2**16


def alarm_of(session: Session) -> Alarm | None:
    """The alarm, if it was raised (CROC only)."""
    found = session._conversation.run.alarm
    if found is None:
        return None
    from coterie.engine.croc.state import ALPHA  # here: it loads the compiler, which takes a second

    arms = tuple(sorted(found))
    names = None if session.names is None else tuple(session.names[arm] for arm in arms)
    return Alarm(arms, session.n_clusters, ALPHA * session.delta, session.n_arms, names)


def homogeneity_of(session: Session) -> Homogeneity:
    """The verdict on each group of a session that is done, by the results that counted."""
    labels = session.labels
    assert labels is not None
    pulls, means = _counted_means(session, labels)
    evidence = group_evidence(pulls, means, labels, session.n_clusters)
    threshold = mixed_threshold(session.n_clusters)
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


def _counted_means(session: Session, labels: IntArray) -> tuple[IntArray, FloatArray]:
    """The number of results of each arm that counted, and their whitened means.

    The means of a group are relative to the first result of its first arm, and the difference is taken in the user's
    units: so no digit is lost where data are far from zero, or one group from another.
    """
    rows, log = session.counted, session._measurements
    arms = log.arms_of(rows)
    pulls = np.bincount(arms, minlength=session.n_arms)
    seen, firsts = np.unique(arms, return_index=True)
    first_row = np.zeros(session.n_arms, dtype=np.int64)
    first_row[seen] = rows[firsts]
    _, leads = np.unique(labels, return_index=True)  # labels are numbered by first appearance
    origins = np.array([log.values[first_row[lead]] for lead in leads])
    sums = np.zeros((session.n_arms, session.dim))
    step = max(_ROWS_AT_ONCE, session.n_arms)
    for start in range(0, rows.size, step):
        its = arms[start : start + step]
        values = np.array([log.values[row] for row in rows[start : start + step].tolist()])
        white = session.noise.whiten(values - origins[labels[its]])
        for q in range(session.dim):
            sums[:, q] += np.bincount(its, white[:, q], minlength=session.n_arms)
    return pulls, sums / np.maximum(pulls, 1)[:, None]


# In words.


def verdict_of(session: Session) -> str:
    """What it means that a session is done, in a clause."""
    if session.proves:
        only = f" for K = {session.n_clusters} only, and the data refute K = {session.n_clusters}"
        return f"the groups are proven{'' if session.alarm is None else only}"
    return "the evidence has reached the heuristic threshold (no proof)"


def proof_of(session: Session) -> str:
    """What a session that is done has found; a proof of what the data contradict does not look like one."""
    if session.homogeneity or session.alarm is not None:
        return session.verdict
    return f"{session.verdict}, but a group looks mixed"


def progress_of(session: Session) -> str:
    """How far a session is."""
    if session.done:
        return proof_of(session)
    if session.alarm is not None:
        return f"not proven, and K = {session.n_clusters} is refuted"
    unseen = int((session.pulls == 0).sum())
    return f"{unseen} arms not measured yet" if unseen else "not proven yet"


def described(head: str, alarm: Alarm | None, homogeneity: Homogeneity | None) -> str:
    """A repr: the head, then the alarm and the verdict on the groups, as far as there are any, each in a line."""
    lines = [head]
    if alarm is not None:
        lines.append(f"alarm: {alarm.seen}")
    if homogeneity is not None:
        lines.append(f"homogeneity: {homogeneity.seen()}")
    return "<" + "\n  ".join(lines) + ">"


def beside_certificate(session: Session, labels: list[int]) -> dict[str, Any]:
    """What a certificate says beside its proof, with the groups as `labels` number them there."""
    found, alarm, own = session.homogeneity, session.alarm, session.labels
    assert found is not None
    assert own is not None
    _, firsts = np.unique(labels, return_index=True)
    return {
        "delta": session.delta,
        "noise": session.noise.to_json(),
        "alarm": None if alarm is None else {"arms": list(alarm.arms)},
        "homogeneity": {
            "level": found.level,
            "threshold": found.threshold,
            "evidence": [found.evidence[own[arm]] for arm in firsts],
        },
    }


def events_of(session: Session) -> list[dict[str, Any]]:
    """The log that `coterie.verify` reads: results as they counted, and the freezes and rounds between them."""
    conversation, log = session._conversation, session._measurements
    shown = {"freeze": ("event", "epoch", "labels", "cores"), "round": ("event", "round", "epoch", "pulls")}
    between = [(t, {key: one[key] for key in shown[one["event"]]}) for t, one in conversation.decisions
               if one["event"] in shown]  # fmt: skip
    found: list[dict[str, Any]] = []
    at = 0
    for t, (row, of_round) in enumerate(zip(conversation.counted_rows, conversation.counted_rounds, strict=True)):
        while at < len(between) and between[at][0] <= t:
            found.append(between[at][1])
            at += 1
        values = log.values[row].tolist()
        found.append({"event": "result", "arm": log.arms[row], "round": of_round, "values": values})
    return found + [event for _, event in between[at:]]
