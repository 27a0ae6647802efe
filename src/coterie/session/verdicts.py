"""What a session has to say beside its proof: the alarm, whether its groups look like one each, and both in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.engine.croc.state import ALPHA
from coterie.problem.checks import FloatArray, IntArray
from coterie.session.croc import CrocDriver
from coterie.session.evidence import Alarm, Homogeneity, listed
from coterie.theory.homogeneity import LEVEL, group_evidence, mixed_threshold

if TYPE_CHECKING:
    from coterie.session.conversation import Session

_ROWS_AT_ONCE = 2**16


def alarm_of(session: Session) -> Alarm | None:
    """The alarm, if it was raised (CROC only)."""
    if not isinstance(session._driver, CrocDriver) or session._driver.alarm is None:
        return None
    arms = tuple(sorted(session._driver.alarm))
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
    rows = _counted_rows(session)
    arms = np.array(session._arms, dtype=np.int64)[rows]
    pulls = np.bincount(arms, minlength=session.n_arms)
    seen, firsts = np.unique(arms, return_index=True)
    first_row = np.zeros(session.n_arms, dtype=np.int64)
    first_row[seen] = rows[firsts]
    _, leads = np.unique(labels, return_index=True)  # labels are numbered by first appearance
    origins = np.array([session._values[first_row[lead]] for lead in leads])
    sums = np.zeros((session.n_arms, session.dim))
    step = max(_ROWS_AT_ONCE, session.n_arms)
    for start in range(0, rows.size, step):
        its = arms[start : start + step]
        values = np.array([session._values[row] for row in rows[start : start + step].tolist()])
        white = session.noise.whiten(values - origins[labels[its]])
        for q in range(session.dim):
            sums[:, q] += np.bincount(its, white[:, q], minlength=session.n_arms)
    return pulls, sums / np.maximum(pulls, 1)[:, None]


def _counted_rows(session: Session) -> IntArray:
    """Positions in the log of the results that counted, in the order in which they did."""
    if isinstance(session._driver, CrocDriver):
        found = [event["row"] for event in session._driver.events if event["event"] == "result"]
        return np.array(found, dtype=np.int64)
    return np.arange(session.t)


# In words.


def proof_of(session: Session) -> str:
    """What a session that is done has found; a proof of what the data contradict does not look like one."""
    if session.homogeneity or session.alarm is not None:
        return session._verdict
    return f"{session._verdict}, but a group looks mixed"


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
