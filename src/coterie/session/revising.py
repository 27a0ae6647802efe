"""Revisions of a session under way: items join or are retired, there are more groups, δ is smaller.

A revision ends a *stage* of the session. The method starts anew with what is asked for now, and is given all results so
far that are of items still present, as results that nobody asked for: they serve its estimates and the pairs from the
start, and no frozen test. What of δ is spent stays spent (docs/CROC.md, section 17).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods.contract import RESULT, Decision, MethodRun, Record
from coterie.methods.present_arms import Past, PresentArms
from coterie.methods.table import METHODS
from coterie.problem.question import Resolution
from coterie.problem.revision import Items, Revision, among, revision_of
from coterie.problem.settings import SettingError

if TYPE_CHECKING:
    from coterie.session.session import Session


def checked_revision(
    session: Session, add: Any, retire: Any, n_clusters: Any, delta: Any, costs: Any = None
) -> Revision:
    """A revision of this session from what a caller gave; `SettingError` says why it cannot be."""
    if session._method.restart is None:
        able = ", ".join(repr(method.name) for method in METHODS.values() if method.restart is not None)
        raise SettingError(
            f"method {session.method!r} cannot be revised on the way: its threshold is for the items and the delta it "
            f"began with. Start anew and tell the results so far, or use method {able}",
            "method",
        )
    return revision_of(session.settings, session.items, add, retire, n_clusters, delta, costs)


def revise_by(session: Session, revision: Revision, recorded: Sequence[tuple[int, Decision]] = ()) -> None:
    """A checked revision: the next stage begins, with all results so far.

    `recorded`: decisions of that stage that will be applied. Positions count from the origin that their bets name, even
    if the first result was corrected since.
    """
    note_revision(session, revision)
    run = fresh_run(session)
    _feed(session, run, next((one["bet"]["from"] for _, one in recorded if "bet" in one), None))
    session._conversation.run = run
    session._conversation.note_decisions()
    session._note_stop()


def note_revision(session: Session, revision: Revision, run: MethodRun | None = None) -> None:
    """Write a revision down. `run`: that of the next stage, if it is known; otherwise somebody puts it in later."""
    conversation = session._conversation
    items = session.items.after(revision)
    decision: Decision = {
        "event": "revision",
        "epoch": sum(one["event"] == "freeze" for one in session.decisions),
        **revision.to_json(),
    }
    conversation.revise(revision, items, decision, conversation.run if run is None else run)
    session._forget_stop()


def past_of(session: Session) -> Past:
    """What the run of the present stage has to know of the earlier ones."""
    conversation = session._conversation
    last = conversation.revisions[-1]
    place = max(i for i, (_, one) in enumerate(conversation.decisions) if one["event"] == "revision")
    earlier = [one["event"] for _, one in conversation.decisions[:place]]
    counted = session._measurements.arms_of(conversation.counted[: last.t])
    gone = np.bincount(counted, minlength=session.n_arms)
    gone[session.items.present] = 0
    epochs = earlier.count("freeze")
    rounds = epochs if isinstance(session.settings.question, Resolution) or session.groups == "linkage" else None
    return Past(
        tuple(session.items.present),
        tuple(gone.tolist()),
        session.first_settings.n_arms,
        epochs,
        earlier.count("round") if rounds is None else rounds,
        len(conversation.revisions),
    )


def fresh_run(session: Session) -> PresentArms:
    """The run of the present stage, before it was given anything."""
    past = past_of(session)
    assert session._method.restart is not None
    return PresentArms(session._method.restart(among(session.settings, past.present), past), past)


def _feed(session: Session, run: PresentArms, origin: Sequence[float] | None) -> None:
    """Results that counted so far, of the present items, in the order in which they did."""
    conversation, log = session._conversation, session._measurements
    rows = conversation.counted[: conversation.revisions[-1].t]
    arms = log.arms_of(rows)
    here = ~np.isin(arms, list(session.items.retired))
    rows, arms = rows[here], arms[here]
    if not rows.size:
        return
    values = np.array([log.values[row] for row in rows.tolist()]).reshape(-1, session.dim)
    white, n = log.units(values), rows.size
    nothing = np.zeros(n, dtype=np.int64)
    run.apply(Record(np.full(n, RESULT), arms, nothing.copy(), np.full(n, -1), nothing, white, [], origin=origin))


def revisions_of(session: Session) -> list[dict[str, Any]]:
    """The revisions so far, as a certificate lists them: what, after how many results and epochs."""
    return [
        {"t": t, "epochs": one["epoch"]} | {key: one[key] for key in ("added", "retired", "n_clusters", "delta")}
        for t, one in session._conversation.decisions
        if one["event"] == "revision"
    ]


def items_after(n_first: int, revisions: list[Revision]) -> Items:
    """The items after some revisions."""
    items = Items(n_first)
    for one in revisions:
        items = items.after(one)
    return items
