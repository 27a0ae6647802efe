"""What a session needs of a method: the driver's contract, and the driver of the paper's methods.

A driver is told of every ask and every result and says which arm is next, whether the groups are proven, and what the
stopping rule reads. Positions are whitened; groups are numbered as the engine numbers them.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from coterie.engine.run import Run
from coterie.engine.state import ASK as ASKED_FOR
from coterie.engine.state import ASKED, UNASKED
from coterie.engine.state import FORGET as GIVEN_UP
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.instance import Instance
from coterie.rules.stopping import levels_for
from coterie.session.evidence import Evidence, Weakest
from coterie.session.replayed import FORGET, TELL, Entries, Outcome, ReplayError
from coterie.theory.alternative import closest_alternative
from coterie.theory.hardness import allocation
from coterie.theory.thresholds import threshold_from_log


class Driver(Protocol):
    """One method at work. `rows` are positions in the session's log.

    `exact`: results come with what floats do not hold of them, see `Noise.whiten_fully`.
    """

    exact: bool

    def ask(self, ticket: int) -> int | None:
        """The next arm; it counts as under way. None if looking for it has proven the groups."""

    def tell(self, tickets: list[int | None], arms: list[int], white: FloatArray, rows: range) -> None:
        """Results, in the order in which they were told."""

    def replay(self, entries: Entries) -> Outcome:
        """A record of asks, results and given-up asks, with the effect of these one by one."""

    def accept(self, entries: Entries, outcome: Outcome) -> None:
        """The record fits: keep it in the history, if there is one."""

    def forget(self, ticket: int, arm: int) -> None:
        """The result of an ask will not come. Changes nothing once the groups are proven."""

    @property
    def done(self) -> bool:
        """Whether the groups are proven."""

    @property
    def t(self) -> int:
        """Results that counted."""

    @property
    def pulls(self) -> IntArray:
        """The same for each arm."""

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        """Labels and centers, if there are any yet."""

    def evidence(self) -> Evidence:
        """What the stopping rule reads."""


class PaperDriver:
    """BOC, BOC with linear exploration, Uniform and Oracle: results count as they arrive."""

    exact = False

    def __init__(
        self,
        shape: tuple[int, int, int],
        sampling: int,
        log_inverse_delta: float,
        threshold: str,
        distance_ratio: float | None,
        white_instance: Instance | None,
    ) -> None:
        oracle = None
        if white_instance is not None:
            shares = allocation(white_instance)
            firsts = [int(np.argmax(white_instance.labels == k)) for k in range(shape[1])]
            oracle = (white_instance.labels, shares[firsts])
        self._level, self._kind = log_inverse_delta, threshold
        levels = levels_for((threshold,), (log_inverse_delta,), shape[0], shape[2])
        self._run = Run(*shape, sampling, levels, distance_ratio=distance_ratio, oracle=oracle)

    def ask(self, ticket: int) -> int:
        arm = self._run.next
        self._run.commit(arm, +1)
        return arm

    def tell(self, tickets: list[int | None], arms: list[int], white: FloatArray, rows: range) -> None:
        asked = np.array([ticket is not None for ticket in tickets], dtype=np.int64)
        self._run.absorb(np.array(arms, dtype=np.int64), white, asked)

    def replay(self, entries: Entries) -> Outcome:
        if self.done:
            return Outcome(-1)
        kinds, arms = entries.kinds, entries.arms
        answers = np.where(entries.tickets >= 0, ASKED, UNASKED)
        what = np.where(kinds == TELL, answers, np.where(kinds == FORGET, GIVEN_UP, ASKED_FOR))
        unknown = (kinds == FORGET) & (arms < 0)
        if unknown.any():
            raise ReplayError(int(np.argmax(unknown)), "an ask is given up whose arm is not recorded")
        before = self.t
        following = self._run.follow(arms, entries.white, what)
        if following < 0:
            entry = -1 - following
            raise ReplayError(entry, f"the next arm is {int(arms[entry])}")
        self._run.next = following
        told = np.flatnonzero(kinds == TELL)
        return Outcome(int(told[self.t - before - 1]) if self.done else kinds.size)

    def accept(self, entries: Entries, outcome: Outcome) -> None:
        pass

    def forget(self, ticket: int, arm: int) -> None:
        if not self.done:
            self._run.commit(arm, -1)

    def reserve(self, arm: int) -> None:
        """Count a pull of this arm as under way: an open ask of a session that was loaded."""
        self._run.commit(arm, +1)

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def t(self) -> int:
        return self._run.t

    @property
    def pulls(self) -> IntArray:
        pulls: IntArray = self._run.state.pulls.copy()
        return pulls

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        return (self._run.state.labels, self._run.centers) if self._run.ready else None

    def evidence(self) -> Evidence:
        state = self._run.state
        limit = math.inf
        if (state.pulls > 0).all():
            limit = threshold_from_log(self._level, state.pulls, state.centers.shape[1], self._kind)
        weakest = None
        if self._run.ready and not self._run.degenerate:
            closest = closest_alternative(Instance(state.labels, state.centers), state.pulls)
            weakest = Weakest(closest.arm, closest.cluster, 0.5 * closest.value)
        return Evidence(self._run.statistic[2], limit, weakest)
