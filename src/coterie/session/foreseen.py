"""What a session says about the way that is left: its progress and its forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from coterie.methods.reports import Standing
from coterie.session.forecast import Forecast, forecast_of
from coterie.session.outlook import Outlook, outlook_of
from coterie.session.progress import Progress, progress_of, standing_of
from coterie.session.resolved import Resolved

if TYPE_CHECKING:
    from coterie.session.session import Session


class Foreseen(Resolved):
    """The way that is left; what was computed is kept until something happens."""

    _foreseen: tuple[Any, dict[str, Any]]

    def _kept(self) -> dict[str, Any]:
        """What was computed at this moment already."""
        conversation = self._conversation
        run = conversation.run
        moment = (
            id(conversation),
            run.t,
            run.done,
            len(conversation.order),
            len(conversation.choices),
            len(conversation.decisions),
        )
        if getattr(self, "_foreseen", None) is None or self._foreseen[0] != moment:
            self._foreseen = (moment, {})
        return self._foreseen[1]

    @property
    def _standing(self) -> Standing:
        kept = self._kept()
        if "standing" not in kept:
            kept["standing"] = standing_of(cast("Session", self))
        found: Standing = kept["standing"]
        return found

    @property
    def remaining(self) -> Forecast | None:
        """Measurements still needed, with an interval: a forecast, no promise; None if nobody knows yet."""
        kept = self._kept()
        if "remaining" not in kept:
            session = cast("Session", self)
            kept["remaining"] = forecast_of(session, self._standing)
        found: Forecast | None = kept["remaining"]
        return found

    @property
    def progress(self) -> Progress:
        """How far the session is: claims proven, items settled, and a share that moves all the time."""
        kept = self._kept()
        if "progress" not in kept:
            kept["progress"] = progress_of(cast("Session", self), self._standing)
        found: Progress = kept["progress"]
        return found

    def within(self, more: int) -> Outlook:
        """What `more` further measurements are expected to bring: the chance to be done by then, and what if not."""
        return outlook_of(cast("Session", self), self._standing, more)
