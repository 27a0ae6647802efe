"""The same candidates, freezes and tests as CROC for a resolution, with every item measured in turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.methods.resolution.candidate import Candidate
from coterie.methods.resolution.epoch import Epoch
from coterie.methods.resolution.method import ResolutionRun
from coterie.methods.resolution.run import FreezingRun
from coterie.problem.checks import IntArray
from coterie.problem.settings import Settings


class InTurn(FreezingRun):
    """Every item as often as any other: exploring, and while tests are at work."""

    def ask(self) -> int | None:
        if not self.done and not self._queue:
            self._plan()
        if self.done:
            return None
        arm = self._queue.popleft()
        self.open(arm)
        return arm

    def _plan(self) -> None:
        """A further result of every item; before it, a freeze where CROC would make one."""
        if self.epoch is not None and not self._still_best(self.epoch):
            self.epoch = None
        if self.epoch is None and self.t and not (self._missing(self.tally.counts) > 0).any():
            candidate = self._candidate = self._best()
            if self._lacking(candidate, self.tally.counts).size == 0:
                self.freeze(candidate)
        self._queue.extend(range(self.n_arms))

    def _lacking(self, candidate: Candidate, taken: IntArray) -> IntArray:
        lacking = super()._lacking(candidate, taken)
        # The slowest test decides how long all items are measured: what is explored counts as much as what is tested.
        enough = taken.min() >= 0.5 * float(np.max(candidate.pulls, initial=0.0))
        return lacking[:0] if enough else lacking

    def _cost(self, candidate: Candidate) -> float:
        return self.n_arms * float(np.max(candidate.pulls, initial=0.0))

    def freeze(self, candidate: Candidate) -> None:
        """Blocks of several results of a reference would only wait: it is measured no more often than an item."""
        near, far = (replace(tests, ratio=np.ones_like(tests.ratio)) for tests in (candidate.near, candidate.far))
        super().freeze(replace(candidate, near=near, far=far))

    def _remaining(self, epoch: Epoch) -> float:
        left = self._left(epoch, np.flatnonzero(epoch.met_at == 0))
        return self.n_arms * float(left[np.isfinite(left)].max(initial=0.0))


def measured_in_turn(settings: Settings) -> ResolutionRun:
    """A run of this kind."""
    return ResolutionRun(settings, sampling=InTurn)
