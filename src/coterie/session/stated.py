"""What a session was told before its first measurement, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from coterie.problem.families import Model
from coterie.problem.instance import Instance
from coterie.problem.question import Resolution
from coterie.problem.revision import Items, settings_after
from coterie.problem.settings import Settings
from coterie.session.atomic import Atomic

if TYPE_CHECKING:
    from coterie.session.conversation import Conversation


class Stated(Atomic):
    """The settings of a session as attributes of it."""

    first_settings: Settings
    """Those that it began with."""
    _conversation: Conversation
    _present: tuple[tuple[int, int], Settings, Items]  # by now, and how many choices and revisions these have seen

    @property
    def settings(self) -> Settings:
        """What the run was told, with the resolution that was chosen last, and as it was revised."""
        return self._settings

    @property
    def _settings(self) -> Settings:
        """The same, where the lock is held."""
        return self._by_now()[1]

    @property
    def n_present(self) -> int:
        """How many items there are now: those that are not retired."""
        return self.n_arms - len(self.retired)

    @property
    def unmeasured(self) -> int:
        """How many items of now have no result that counted."""
        return int((np.delete(self._conversation.run.pulls, list(self.retired)) == 0).sum())

    @property
    def items(self) -> Items:
        """All items there ever were, and which of them are retired."""
        return self._by_now()[2]

    def _by_now(self) -> tuple[tuple[int, int], Settings, Items]:
        choices, revisions = self._conversation.choices, self._conversation.revisions
        if (len(choices), len(revisions)) != self._present[0]:
            settings, items = self.first_settings, Items(self.first_settings.n_arms)
            for one in revisions:
                settings, items = settings_after(settings, one.revision), items.after(one.revision)
            if choices:
                settings = replace(settings, question=choices[-1])
            self._present = ((len(choices), len(revisions)), settings, items)
        return self._present

    @property
    def retired(self) -> tuple[int, ...]:
        """Items that were retired on the way: their results are kept, and nothing is claimed about them."""
        return self.items.retired

    @property
    def n_arms(self) -> int:
        """M."""
        return self._settings.n_arms

    @property
    def n_clusters(self) -> int | None:
        """K; None where the question is for a resolution, and K is found."""
        return self._settings.n_clusters

    @property
    def resolution(self) -> Resolution | None:
        """The resolution that is asked for, if one is: the first, or the one that was chosen last."""
        return self._settings.resolution

    @property
    def groups(self) -> str:
        """What makes a group of K: "equal" items, or "linkage"."""
        return self._settings.groups

    @property
    def dim(self) -> int:
        """d."""
        return self._settings.dim

    @property
    def delta(self) -> float:
        """The error probability allowed."""
        return self._settings.delta

    @property
    def method(self) -> str:
        """The method's name."""
        return self._settings.method

    @property
    def threshold(self) -> str:
        """The threshold's name; it means nothing to a method whose stop is always a proof."""
        return self._settings.threshold

    @property
    def noise(self) -> Model:
        """What was stated about the noise: its `kind`, its `assumption` in a sentence, and its units."""
        return self._settings.noise

    @property
    def distance_ratio(self) -> float | None:
        """The ratio of distances that the method needs, if it does."""
        return self._settings.distance_ratio

    @property
    def instance(self) -> Instance | None:
        """The truth, for a method that knows it."""
        return self._settings.instance

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the arms are called."""
        return self._settings.names

    @property
    def costs(self) -> tuple[float, ...] | None:
        """What one measurement of each arm costs; None if all cost the same."""
        return self._settings.costs

    @property
    def cost_unit(self) -> str | None:
        """What the unit of the costs is called, if it was said."""
        return self._settings.cost_unit
