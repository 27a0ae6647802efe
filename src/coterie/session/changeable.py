"""What may change while a session goes on: a value that was told wrong, the items, K and δ; and what it has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from coterie.session.corrections import Correction, correct
from coterie.session.readable import Readable
from coterie.session.revising import checked_revision, revise_by, revisions_of

if TYPE_CHECKING:
    from coterie.session.session import Session


class Changeable(Readable):
    """Corrections and revisions of a session, and its costs."""

    corrections: list[Correction]

    def correct(self, row: Any, values: Any, reason: str, by: str = "", at: str = "") -> Correction | None:
        """Replace a value that was told wrong: of the result at this place of `log`. `by`, `at`: who says so, and when.

        The result keeps its place in the order. What was decided stays (asks, freezes, rounds); estimates, evidence and
        the stop are worked out anew with the right value: `done` may be taken back, and `reopened` of the answer says
        so. `corrections` keeps the old value, and the certificate lists it. The same value once more changes nothing:
        None. Valid if the new value is what was measured, and was not chosen for its effect (docs/CROC.md).
        """
        return correct(cast("Session", self), row, values, reason, by, at)

    def see_proven(self) -> None:
        """Stop if the results so far are enough; the look itself leaves no entry in the history."""
        self._conversation.run.look()
        self._conversation.note_decisions()
        cast("Session", self)._note_stop()

    def revise(
        self, *, add: Any = None, retire: Any = None, n_clusters: Any = None, delta: Any = None, costs: Any = None
    ) -> None:
        """Change what is asked for, after looking at the results: nothing is lost of the guarantee.

        `add`: names of items that join (how many, if items have no names), with the `costs` of each where items have
        costs. `retire`: items that broke; their results are kept, nothing is claimed about them, and `labels` has -1.
        `n_clusters`: more groups than before. `delta`: a smaller one. Also once `done`: the session then goes on, and a
        certificate given before stays valid for what it says. The candidate that is being tested is given up, the next
        one needs log 5 = 1.6 more evidence for each that was frozen; no result is measured again. `ValueError` says
        what cannot be. CROC only.
        """
        session = cast("Session", self)
        revise_by(session, checked_revision(session, add, retire, n_clusters, delta, costs))

    @property
    def revisions(self) -> list[dict[str, Any]]:
        """What was revised on the way, each with the results and epochs before it."""
        return revisions_of(cast("Session", self))

    @property
    def cost(self) -> float | None:
        """What all measurements told so far have cost, in the unit of `costs`; None if there are none."""
        if self.costs is None:
            return None
        arms = np.array(self._measurements.arms, dtype=np.int64)
        return self.settings.cost_of(np.bincount(arms, minlength=self.n_arms))

    @property
    def cost_left(self) -> float | None:
        """What is expected to be spent still, in the unit of `costs`; None if nobody knows. It is no promise."""
        return None if self.costs is None else self._conversation.run.cost_left()
