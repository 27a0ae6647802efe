"""Revisions of a conversation under way: items join or are retired, there are more groups, δ is smaller.

A revision ends a *stage*. The method starts anew with what is asked for now, and is given all results so far that are
of items still present, as results that nobody asked for: they serve its estimates and the pairs from the start, and no
frozen test. What of δ is spent stays spent (docs/CROC.md, section 17).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.methods.contract import RESULT, Decision, MethodRun, Record
from coterie.methods.present_arms import Past, PresentArms
from coterie.methods.start import confirming
from coterie.methods.table import METHODS
from coterie.problem.question import Resolution
from coterie.problem.revision import Items, Revision, among, revision_of
from coterie.problem.settings import SettingError
from coterie.session.conversation import Conversation

if TYPE_CHECKING:
    from coterie.session.session import Session


def checked_revision(
    session: Session, add: Any, retire: Any, n_clusters: Any, delta: Any, costs: Any = None
) -> Revision:
    """A revision of this session from what a caller gave; `SettingError` says why it cannot be."""
    if session._conversation.method.restart is None:
        able = ", ".join(repr(method.name) for method in METHODS.values() if method.restart is not None)
        raise SettingError(
            f"method {session.method!r} cannot be revised on the way: its threshold is for the items and the delta it "
            f"began with. Start anew and tell the results so far, or use method {able}",
            "method",
        )
    return revision_of(session.settings, session.items, add, retire, n_clusters, delta, costs)


def revise_by(session: Session, revision: Revision) -> None:
    """A checked revision: the next stage begins, with all results so far."""
    note_revision(session._conversation, revision)
    continue_revised(session._conversation)


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
