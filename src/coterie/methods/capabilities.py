"""What a run may be able to do beyond the five members that every run has (`coterie.methods.contract.MethodRun`).

Each capability is a class of a few members, with what a run without it says and does. A run has a capability if it
overrides members of it. A run around another one, `inner`, has what that one has: whatever it does not override is
answered by the run inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from coterie.methods.records import Decision
from coterie.methods.reports import Standing
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.question import Resolution

if TYPE_CHECKING:
    from coterie.methods.contract import MethodRun


class Pull(NamedTuple):
    """An arm to measure.

    Parameters
    ----------
    arm
        Its number, from 0.
    round
        The round of the method that it belongs to; 0 for none.
    """

    arm: int
    round: int = 0


class PanelPull(NamedTuple):
    """A panel of features of an arm to measure, where features are measured apart.

    Parameters
    ----------
    arm
        Its number, from 0.
    round
        The round of the method that it belongs to; 0 for none.
    panel
        The number of the panel (`coterie.problem.features.Features`).
    """

    arm: int
    round: int = 0
    panel: int = 0


class HeldUp(NamedTuple):
    """Results that counted and are of no use before open asks are answered, and the places of these among the asks."""

    results: int = 0
    by: Sequence[int] = ()


class Capability:
    """What all capabilities share."""

    inner: MethodRun | None = None
    """The run that this one is around, if it is around one."""


class Counts(Capability):
    """How many results counted. Whoever runs a method counts them, unless the run does so itself: one that follows
    records in its own way, or keeps a memory, has to."""

    @property
    def t(self) -> int:
        """Results that counted."""
        return int(self.pulls.sum()) if self.inner is None else self.inner.t

    @property
    def pulls(self) -> IntArray:
        """(M) results of each arm that counted."""
        if self.inner is None:
            raise NotImplementedError("this run does not count results: start it with coterie.methods.start")
        return self.inner.pulls


class OpenAsks(Capability):
    """Several asks are under way, and what becomes of them matters to the method."""

    def give_up(self, arm: int, of_round: int) -> None:
        """The result of an ask will not come."""
        if self.inner is not None:
            self.inner.give_up(arm, of_round)

    def open_recorded(self, arm: int, of_round: int) -> None:
        """A recorded ask counts as under way; the rule is not consulted."""
        if self.inner is not None:
            self.inner.open_recorded(arm, of_round)

    def look(self) -> None:
        """See whether the results so far are enough, without asking for an arm. By default they were looked at."""
        if self.inner is not None:
            self.inner.look()

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        """What open asks hold up, if nothing new was planned; by default nothing, as results are used as they count.

        None if the next ask goes on with what was planned before: it is needed whatever becomes of the open ones.
        Results that wait for their turn behind an earlier ask of their arm have not counted: others look after these.
        """
        return HeldUp() if self.inner is None else self.inner.held_up(asks)


class Decisions(Capability):
    """Things are decided beside the asks, and are kept with the record."""

    def new_decisions(self) -> list[Decision]:
        """What was decided since this was last called, in order."""
        return [] if self.inner is None else self.inner.new_decisions()

    def apply_decision(self, decision: Decision) -> None:
        """A recorded decision."""
        if self.inner is not None:
            self.inner.apply_decision(decision)


class Memory(Capability):
    """All that a run knows can be put away and brought back: a cache, for snapshots, that spares following a record."""

    def memory(self) -> dict[str, Any] | None:
        """Everything the run knows, as arrays and plain JSON; None if it cannot be had.

        The arrays may be the run's own: read them before it goes on.
        """
        return None if self.inner is None else self.inner.memory()

    @property
    def memory_bytes(self) -> int:
        """About how many bytes `memory` has, without making it; 0 if they are few."""
        return 0 if self.inner is None else self.inner.memory_bytes

    def restore(self, memory: Mapping[str, Any]) -> None:
        """What `memory` gave, put into a run at its beginning."""
        if self.inner is None:
            raise NotImplementedError("this run keeps no memory")
        self.inner.restore(memory)


class Outlook(Capability):
    """How much is proven, and how much work is left."""

    def standing(self) -> Standing | None:
        """How much is proven, and how much work is left; None if there is nothing but `evidence` to tell it from."""
        return None if self.inner is None else self.inner.standing()

    def forecast(self) -> float | None:
        """Measurements that the whole run is expected to take, those so far included; None if nobody knows yet."""
        return None if self.inner is None else self.inner.forecast()

    def cost_left(self) -> float | None:
        """What is expected to be spent still, in the unit of `settings.costs`; None if nobody knows."""
        return None if self.inner is None else self.inner.cost_left()


class Proof(Capability):
    """The stop is certified, and what contradicts K is seen."""

    @property
    def alarm(self) -> tuple[int, ...] | None:
        """K + 1 arms that are pairwise known to differ, if the method has seen such: K is too small."""
        return None if self.inner is None else self.inner.alarm

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        """The proof as plain data, once `done`; `decisions` are those of the whole run. None if it was not recorded."""
        if self.inner is None:
            raise NotImplementedError("this run has no certificates")
        return self.inner.certificate(decisions)

    @property
    def statements(self) -> Any:
        """The single statements that were frozen for a deadline (`coterie.methods.deadline`); None if none were."""
        return None if self.inner is None else self.inner.statements

    @property
    def confirmed(self) -> tuple[int, int] | None:
        """How many results counted after the groups were found, and how many were to; None before, and if none were."""
        return None if self.inner is None else self.inner.confirmed


class Blocks(Capability):
    """Results of one block (a plate, a day, a rater) are compared with one another only: asks are decided in *cells*,
    lists of asks of one block, and `ask` hands them out. The round of an ask is the number of its cell, from 1.

    A *step* is what was done with a block, as plain JSON on record: {"step": "compose", "block", "room", "among",
    "fill"}, {"step": "close", "block"}, and {"step": "place", "block"}: the next result, which nobody asked for, is of
    this block.
    """

    def compose(
        self, block: str, room: int | None, among: Sequence[int] | None = None, fill: bool = True
    ) -> list[Pull]:
        """The asks of whole cells of a block with room for so many, in order: `ask` hands them out.

        `among`: only these arms can be measured in it. `fill`: as many cells as fit, else one. Empty if the groups are
        found, or nothing of use fits.
        """
        return self._inner_with_blocks.compose(block, room, among, fill)

    def close_block(self, block: str) -> None:
        """Nothing more will be measured in a block: its open asks are given up, and its unfinished cells end."""
        self._inner_with_blocks.close_block(block)

    @property
    def planned(self) -> Sequence[Pull]:
        """Asks that are decided, and not handed out."""
        return () if self.inner is None else self.inner.planned

    def take_step(self, step: Mapping[str, Any]) -> None:
        """Do what a step says."""
        self._inner_with_blocks.take_step(step)

    def apply_step(self, step: Mapping[str, Any]) -> None:
        """A recorded step; the rule is not consulted: what it decided is among the decisions."""
        self._inner_with_blocks.apply_step(step)

    @property
    def _inner_with_blocks(self) -> MethodRun:
        if self.inner is None:
            raise NotImplementedError("this run has no blocks")
        return self.inner


class ResolutionGroups(Capability):
    """Groups are up to a resolution: they have references and borders, and another resolution can be chosen."""

    @property
    def references(self) -> tuple[int, ...] | None:
        """The reference item of each group, in the order of the labels of `guess`; None where groups have none."""
        return None if self.inner is None else self.inner.references

    @property
    def borders(self) -> Mapping[int, Sequence[int]]:
        """Items near a border: the other groups, by their labels in `guess`, that each could also belong to."""
        return {} if self.inner is None else self.inner.borders

    def resolution_for(self, budget: int) -> float | None:
        """The smallest factor f ≥ 1 such that groups up to (ε, f·η) are expected to need no more than a budget.

        None if there is no forecast yet, or no resolution.
        """
        return None if self.inner is None else self.inner.resolution_for(budget)

    def choose_resolution(self, resolution: Resolution) -> None:
        """Ask for another ε and η from here on, of the same norm and claim; that is one of `new_decisions`.

        What is frozen is given up; results so far may serve whatever enters no proof.
        """
        if self.inner is None:
            raise NotImplementedError("another resolution cannot be chosen on the way")
        self.inner.choose_resolution(resolution)


class Cells(NamedTuple):
    """What was measured, a row for each item and feature with results: their number and mean, in the user's units."""

    items: IntArray
    features: IntArray
    counts: IntArray
    means: FloatArray


class MeasuresPanels(Capability):
    """Features are measured apart: `ask` gives a `PanelPull`, and these take the places of `count`, `give_up` and
    `open_recorded`."""

    def count_panel(self, arm: int, panel: int, x: FloatArray, of_round: int, asked: bool) -> None:
        """Take in one result: the panel's numbers in their order, in the user's units, NaN for a hole. What stands
        behind them (a record has rows as long as the largest panel) is not looked at."""
        self._inner_with_panels.count_panel(arm, panel, x, of_round, asked)

    def give_up_panel(self, arm: int, panel: int, of_round: int) -> None:
        """The result of an ask will not come. One of a round is asked for again."""
        self._inner_with_panels.give_up_panel(arm, panel, of_round)

    def open_panel(self, arm: int, panel: int, of_round: int) -> None:
        """A recorded ask counts as under way; the rule is not consulted."""
        self._inner_with_panels.open_panel(arm, panel, of_round)

    def cells(self) -> Cells:
        """What was measured so far."""
        return self._inner_with_panels.cells()

    @property
    def found_features(self) -> tuple[int, ...]:
        """Features on which groups seem to differ, in the order in which they were found."""
        return () if self.inner is None else self.inner.found_features

    @property
    def _inner_with_panels(self) -> MethodRun:
        if self.inner is None:
            raise NotImplementedError("this run does not measure features apart")
        return self.inner


def has(run: MethodRun, capability: type[Capability]) -> bool:
    """Whether a run has a capability of its own: it overrides a member of it."""
    members = [name for name in vars(capability) if not name.startswith("__")]
    return any(getattr(type(run), name) is not getattr(capability, name) for name in members)
