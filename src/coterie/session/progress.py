"""How far a session is, in numbers that move from the first measurement to the last."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from coterie.methods.reports import STATISTIC, Standing
from coterie.problem.question import ExactGroups
from coterie.session.remarks import confirming_words

if TYPE_CHECKING:
    from coterie.session.session import Session

FIRST_PASS = 0.05
"""The share that counts as done when every item was measured once, while nobody knows how many more are needed."""


@dataclass(frozen=True)
class Progress:
    """How far a session is.

    `proven` of the `needed` claims of a proof: for K groups the differences of an item with another group, M·(K − 1) of
    them; for a resolution, and for single linkage, the tests of the groups that are being tested. `settled` of `items`
    items have all of theirs proven. Methods that prove everything at once have nothing proven before they stop, and
    so has every method before it begins to test a guess; if the guess turns out wrong, `proven` falls.

    `share`, in [0, 1], moves all the time: the measurements so far over those that the run is expected to take in all
    (`Session.remaining`); it falls where the forecast rises. `words` says it in a line.
    """

    proven: int
    needed: int
    settled: int
    items: int
    share: float
    words: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def progress_of(session: Session, standing: Standing) -> Progress:
    """The progress of a session at this moment."""
    remaining, items = session.remaining, session.n_present
    if session.done:
        share = 1.0
    elif remaining is not None:
        share = session.t / (session.t + max(remaining.remaining, 1.0))
    else:
        share = max(FIRST_PASS * min(1.0, session.t / items), min(standing.worked, 0.99))
    counted = (standing.proven, standing.needed, standing.settled)
    return Progress(*counted, items, share, _words(session, standing))


def standing_of(session: Session) -> Standing:
    """How much is proven by now, for every method."""
    items, asked = session.n_present, session.settings.question
    exact = isinstance(asked, ExactGroups)
    needed = items * (asked.n_clusters - 1) if isinstance(asked, ExactGroups) else 0
    if session.proven:
        frozen = [one for one in session.decisions if one["event"] == "freeze" and "near" in one]
        if not exact and frozen:
            needed = len(frozen[-1]["near"]) + len(frozen[-1]["far"])
        return Standing(needed, needed, items, 0.0, 1.0)
    found = session._conversation.run.standing() if session.t > 0 else Standing(0, needed, 0)
    if found is not None:
        return found
    now = session.evidence  # all at once, at the end
    known = math.isfinite(now.threshold) and math.isfinite(now.statistic) and now.threshold > 0.0
    worked = min(max(now.statistic / now.threshold, 0.0), 1.0) if known else 0.0
    return Standing(0, needed, 0, None, worked)


def _words(session: Session, standing: Standing) -> str:
    items, asked = session.n_present, session.settings.question
    what = "differences" if isinstance(asked, ExactGroups) else "claims"
    unseen = session.unmeasured
    if session.done and not session.proves:
        return session.verdict
    if session.done:
        return f"all {standing.needed} {what} proven, all {items} items settled"
    if session.confirmed is not None:
        return f"all {standing.needed} {what} proven; {confirming_words(*session.confirmed)}"
    if unseen:
        return f"{items - unseen} of {items} items measured at least once"
    if standing.proven == 0 and standing.spent == 0:
        if standing.course == STATISTIC:
            now = session.evidence
            return f"evidence {now.statistic:.1f} of {now.threshold:.1f}; everything is decided at once, at the end"
        if session._conversation.run.standing() is None:
            return "nothing proven yet"
        guess = "nothing proven yet: measurements so far are for a guess of the groups"
        return f"{guess}, with {standing.needed} {what} to prove" if standing.needed else guess
    return f"{standing.proven} of {standing.needed} {what} proven, {standing.settled} of {items} items settled"
