"""What a session for groups up to a resolution knows beside its groups: references, borders, what it will take."""

from __future__ import annotations

import numpy as np

from coterie.problem.checks import IntArray, check_count
from coterie.problem.question import Resolution
from coterie.session.stated import Stated


class Resolved(Stated):
    """Groups as people see them, numbered by first appearance, with their reference items."""

    def _order(self, labels: IntArray) -> IntArray:
        """The method's numbers of the groups in the order of their first appearance, emptied ones last."""
        _, firsts = np.unique(labels, return_index=True)
        seen = labels[np.sort(firsts)]
        seen = seen[seen >= 0]  # retired items have no group
        return np.concatenate([seen, np.setdiff1d(np.arange(self.settings.n_clusters or 0), seen)])

    @property
    def references(self) -> tuple[int, ...] | None:
        """For a resolution, the reference item of each group, in the order of `labels`; None for other questions."""
        run = self._conversation.run
        if self.settings.resolution is None or run.references is None or run.guess is None:
            return None
        return tuple(run.references[label] for label in self._order(run.guess[0]).tolist())

    @property
    def borders(self) -> dict[int, list[int]]:
        """For a resolution, the items near a border: the other groups (as in `labels`) that each could belong to."""
        run = self._conversation.run
        if run.guess is None or not run.borders:
            return {}
        called = {label: place for place, label in enumerate(self._order(run.guess[0]).tolist())}
        return {arm: sorted(called[one] for one in groups) for arm, groups in sorted(run.borders.items())}

    @property
    def forecast(self) -> float | None:
        """For a resolution, the measurements that the run is expected to take in all; None before every item had one.

        It is no promise. For other questions the forecast is in `evidence.weakest`.
        """
        return self._conversation.run.forecast()

    def resolution_for(self, budget: int) -> Resolution | None:
        """The finest resolution, by a larger `apart`, that is expected to need at most so many measurements in all.

        None if there is no forecast yet, or the question is not for a resolution.
        """
        resolution = self.settings.resolution
        factor = self._conversation.run.resolution_for(check_count(budget, "budget", 1))
        return None if factor is None or resolution is None else resolution.widened(factor)
