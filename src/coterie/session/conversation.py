"""One conversation with a method: settings, results, tickets, the order in which results count, what was decided.

A `Conversation` is all that a session knows. Live sessions change it step by step, records are folded into it at once
(`coterie.session.replaying`); the order in which results count is that of `coterie.session.lines` for both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from coterie.methods.contract import Decision, Method, MethodRun, Pull
from coterie.methods.start import start
from coterie.problem.checks import FloatArray, IntArray, check_arm, short
from coterie.problem.question import Resolution
from coterie.problem.revision import Items, Revision, settings_after
from coterie.problem.settings import Settings
from coterie.session.feature_run import FeatureRun, PanelMeasurements
from coterie.session.lines import Lines, Measurements, Place

if TYPE_CHECKING:
    from coterie.session.corrections import Correction
    from coterie.session.groups import KeptGroups

T = TypeVar("T")

ASKED, TOLD, FORGOTTEN, LOOKED, CHOSEN, REVISED, STEPPED = 0, 1, 2, 3, 4, 5, 6
"""What was done, in the order of `Conversation.order`; the last: something with a block."""

AHEAD, BATCHES_AHEAD = 8, 2
"""Results that open asks may hold up: so many for each ask at work and two more, or so many times all that are open and
wanted now, if that is more. Then nothing new is planned. Of W workers who are equally fast and all at work, an ask is
overtaken by 8·W others once in about e^8 = 3000 times."""


class AppliedPart(NamedTuple):
    """How much of a record was applied rather than decided: its rules were other ones than this release has."""

    entries: int = 0
    decisions: int = 0


class StageEnd(NamedTuple):
    """A revision that was made: when so many results had counted, and before the ask of this number."""

    revision: Revision
    t: int
    ticket: int


class Ticket(NamedTuple):
    """An open ask: its number, its arm, and the method's round that it belongs to (0: none)."""

    number: int
    arm: int
    round: int


class SessionDone(RuntimeError):  # noqa: N818 (it is a state, not a mistake)
    """Raised by `ask` once the groups are proven: there is nothing left to measure."""


class Waiting(RuntimeError):  # noqa: N818 (as above)
    """Raised by `ask` while further results could not be used: open asks have to be answered, or given up, first.

    Attributes
    ----------
    tickets : tuple of Ticket
        These asks: tell their results, or give them up with `Session.forget`.
    """

    def __init__(self, message: str, tickets: Sequence[Ticket]) -> None:
        super().__init__(message)
        self.tickets = tuple(tickets)


class Conversation:
    """All that was said and decided: `run` is the method at work, told results in the order in which they count."""

    def __init__(self, settings: Settings, method: Method, run: MethodRun | None = None) -> None:
        self.first_settings, self.method = settings, method
        self.undone: set[int] = set()  # of the asks given up, those that nobody began to measure
        self.corrections: list[Correction] = []  # of told values, in the order in which they were made
        self._numbers: dict[str, int] = {}  # of items by name
        self.restart(run)

    def restart(self, run: MethodRun | None = None) -> None:
        """Begin anew, with the first settings. `run`: one to go on with; by default the method starts another."""
        self.settings, self.items = self.first_settings, Items(self.first_settings.n_arms)
        self.run = self.new_run() if run is None else run
        self.log = self.new_log()
        self.lines = Lines(self.in_ask_order)
        self.arms_asked: list[int] = []  # by ticket
        self.rounds_asked: list[int] = []
        self.order = bytearray()
        self.given_up: list[int] = []  # tickets, in the order in which they were given up
        self.choices: list[Resolution] = []  # in the order in which they were made
        self.steps: list[dict[str, Any]] = []  # what was done with blocks, in order
        self.revisions: list[StageEnd] = []  # in the order in which they were made
        self.never = 0  # results that never count: of retired items, or too late for a proof that was followed up
        self.decisions: list[tuple[int, Decision]] = []  # with the number of results that had counted before
        self.counted_rows: list[int] = []
        self.counted_rounds: list[int] = []
        self.applied = AppliedPart()
        self.waited: int | None = None  # results that waited when the groups were found
        self.kept_groups: KeptGroups | None = None  # see `coterie.session.groups`
        self.kept_alarms: tuple[Any, Any] | None = None  # see `coterie.session.data_alarms`
        self._kept: tuple[Any, dict[str, Any]] = (None, {})

    def new_run(self) -> MethodRun:
        """The method at its beginning; with features, by streams."""
        run, features = start(self.first_settings, self.method), self.first_settings.features
        return run if features is None else FeatureRun(run, features)

    def new_log(self) -> Measurements:
        """An empty log."""
        first = self.first_settings
        return Measurements(first.noise, self.method.exact) if first.features is None else PanelMeasurements(first)

    @property
    def in_ask_order(self) -> bool:
        """Whether the results of an item count in the order in which they were asked for; in blocks cells see to it."""
        return self.method.in_ask_order and self.first_settings.blocks is None

    @property
    def next_ticket(self) -> int:
        """The number of the next ask."""
        return len(self.arms_asked)

    @property
    def proves(self) -> bool:
        """Whether the method's stop is a proof."""
        return self.method.proves(self.settings.threshold)

    @property
    def proven(self) -> bool:
        """Whether the groups are found; measurements that confirm them may follow."""
        return self.run.done or self.run.proven

    @property
    def n_present(self) -> int:
        """How many items there are now: those that are not retired."""
        return self.items.n_ever - len(self.items.retired)

    @property
    def unmeasured(self) -> int:
        """How many items of now have no result that counted."""
        return int((np.delete(self.run.pulls, list(self.items.retired)) == 0).sum())

    @property
    def spent(self) -> float:
        """What was measured and is being measured takes of a deadline: results, or what they cost."""
        costs, pending = self.settings.costs, self.lines.pending.values()
        if costs is None:
            return float(len(self.log) + len(pending))
        return float(np.array(costs)[[*self.log.arms, *(place.arm for place in pending)]].sum())

    @property
    def out_of_budget(self) -> bool:
        """Whether the deadline leaves nothing to ask for: with costs, not even for the dearest item."""
        deadline = self.settings.deadline
        return deadline is not None and deadline - self.spent < max(self.settings.costs or (1.0,))

    @property
    def counted(self) -> IntArray:
        """Places in the log of the results that counted, in the order in which they did."""
        return np.array(self.counted_rows, dtype=np.int64)

    def once(self, name: str, compute: Callable[[Conversation], T]) -> T:
        """What is computed from this conversation, under a name: kept until something happens in it."""
        run = self.run
        moment = run.t, run.done, len(self.order), len(self.choices), len(self.decisions)
        if self._kept[0] != moment:
            self._kept = moment, {}
        kept = self._kept[1]
        if name not in kept:
            kept[name] = compute(self)
        return cast(T, kept[name])

    def update_settings(self) -> None:
        """Let `settings` and `items` be those after all choices and revisions."""
        settings, items = self.first_settings, Items(self.first_settings.n_arms)
        for made in self.revisions:
            settings, items = settings_after(settings, made.revision), items.after(made.revision)
        if self.choices:
            settings = replace(settings, question=self.choices[-1])
        for step in self.steps:
            if step["step"] == "deadline":
                settings = replace(settings, deadline=step["deadline"])
        self.settings, self.items = settings, items

    def is_stale(self, ticket: int | None) -> bool:
        """Whether an ask was made before the last revision: its result then counts as one that nobody asked for."""
        return ticket is not None and bool(self.revisions) and ticket < self.revisions[-1].ticket

    @property
    def waiting(self) -> int:
        """Results that wait for an earlier ask of their item; once the groups are found, those that waited then."""
        return self.lines.waiting() if self.waited is None else self.waited

    def tickets(self) -> list[Ticket]:
        """Open asks, oldest first."""
        return [Ticket(number, place.arm, place.round) for number, place in self.lines.pending.items()]

    def awaited(self, wanted: int = 1) -> list[Ticket]:
        """The open asks that have to be answered before anything new is asked for; none if that can go on.

        `wanted`: how many further asks somebody wants. An ask is waited for if all that was planned is asked for, at
        least so many results as `AHEAD` allows cannot be used before open asks are answered, it is one of these, and
        as many later ones are closed (docs/CROC.md, section 8).
        """
        pending, n_open = self.lines.pending, len(self.lines.pending)
        least = BATCHES_AHEAD * (n_open + wanted)
        if not n_open or not self.in_ask_order or self.run.done or self._overtaken(next(iter(pending)), 0) < least:
            return []
        limit = max(AHEAD * (self._at_work() + 2), least)
        late: list[Ticket] = []
        for older, (number, place) in enumerate(pending.items()):
            if self._overtaken(number, older) < limit:
                break
            if place.arm not in self.items.retired:
                late.append(Ticket(number, place.arm, 0 if self.is_stale(number) else place.round))
        held = self.run.held_up([Pull(ticket.arm, ticket.round) for ticket in late]) if late else None
        if held is None:
            return []
        behind = [self.lines.behind(ticket.arm, ticket.number) for ticket in late]
        # Of each item, what waits behind its first late ask.
        lines = sum({ticket.arm: count for ticket, count in zip(late[::-1], behind[::-1], strict=True)}.values())
        if held.results + lines < limit:
            return []
        return [ticket for i, ticket in enumerate(late) if i in held.by or behind[i]]

    def _overtaken(self, ticket: int, older: int) -> int:
        """Asks after an open one that are closed; `older`: open asks before it."""
        return self.next_ticket - ticket - len(self.lines.pending) + older

    def _at_work(self) -> int:
        """Open asks, from the youngest on, up to one that many have overtaken for the number of those after it."""
        count = 0
        for number in reversed(self.lines.pending):
            if self._overtaken(number, len(self.lines.pending) - 1 - count) >= AHEAD * (count + 2):
                break
            count += 1
        return count

    def ask(self) -> Ticket | None:
        """The next arm, with a ticket; None if looking for it has found the groups."""
        pull = self.run.ask()
        self.order.append(ASKED)
        self.note_decisions()
        if pull is None:
            return None
        number = len(self.arms_asked)
        self.arms_asked.append(pull.arm)
        self.rounds_asked.append(pull.round)
        self.lines.open(number, pull.arm, pull.round)
        return Ticket(number, pull.arm, pull.round)

    def open(self, count: int = 1, wanted: int | None = None) -> list[Ticket]:
        """The next items to measure, with the ticket of each.

        Fewer than `count`, or none, if the groups are proven (`done`) or open asks have to be answered first
        (`awaited`). `wanted`: how many somebody wants in all, if these are the first of more.
        """
        opened: list[Ticket] = []
        while len(opened) < count and not self.run.done and not self.out_of_budget:
            if self.awaited((count if wanted is None else wanted) - len(opened)):
                break
            ticket = self.ask()
            if ticket is not None:
                opened.append(ticket)
        return opened

    def look(self, noted: bool = True) -> None:
        """See whether the results so far are enough; `noted`: that it was looked at is on record."""
        if not self.run.done:
            if noted:
                self.order.append(LOOKED)
            self.run.look()
            self.note_decisions()

    def step(self, step: dict[str, Any]) -> None:
        """Something is done with a block (`coterie.methods.capabilities.Blocks`)."""
        if not self.run.done:
            self.run.take_step(step)
        self.order.append(STEPPED)
        self.steps.append(step)
        self.update_settings()
        self.note_decisions()

    def choose(self, resolution: Resolution) -> None:
        """Another resolution is asked for."""
        self.order.append(CHOSEN)
        self.choices.append(resolution)
        self.update_settings()
        self.run.choose_resolution(resolution)
        self.note_decisions()

    def revise(self, revision: Revision, decision: Decision, run: MethodRun) -> None:
        """Another run goes on from here, with the items that are left; it has the results so far.

        Results that wait behind an open ask go on waiting, but for those of retired items, which never count, and
        those that were not in when the groups were found.
        """
        self.order.append(REVISED)
        self.decisions.append((len(self.counted_rows), decision))
        self.revisions.append(StageEnd(revision, len(self.counted_rows), self.next_ticket))
        self.update_settings()
        if self.order.count(ASKED) > self.next_ticket:  # an ask that found the groups, and opened no ticket
            self.order[self.order.rindex(ASKED)] = LOOKED
        done, lines = self.run.done, self.lines
        kept = {
            arm: deque(place for place in line if not done or place.ticket in lines.pending)
            for arm, line in lines.by_arm.items()
            if arm not in self.items.retired
        }
        lines.by_arm = {arm: line for arm, line in kept.items() if line}
        self.never = self.order.count(TOLD) - len(self.counted_rows) - lines.waiting()
        self.run, self.waited = run, None

    def check_results(self, arms: Sequence[int], values: FloatArray) -> FloatArray:
        """That results (n, d) of these arms can be told; ValueError says why not. What `absorb` takes, one a row."""
        return self.log.in_noise_units(arms, values)

    def absorb(
        self, arm: int, values: FloatArray, ticket: int | None, white: FloatArray, block: str | None = None
    ) -> None:
        """A result that passed `check_results` (`white`), for an open ticket; None: it answers no ask, and `block` is
        where it was measured, if known. If an earlier ask of its item is open, it counts later; after the end, never.
        """
        if block is not None and ticket is None:
            self.step({"step": "place", "block": block})
        row = self.log.add(arm, values, white, ticket)
        self.order.append(TOLD)
        if self.run.done or arm in self.items.retired:
            if ticket is not None:
                del self.lines.pending[ticket]
            self.never += arm in self.items.retired
            return
        place = self.lines.answer(arm, ticket, row, white)
        if place is not None:
            self._count(place)
        else:
            self._release(arm)

    def item_of(self, arm: int) -> int:
        """The item of an arm: of a stream, where there are features."""
        features = self.settings.features
        return arm if features is None else features.split(arm)[0]

    def arm_named(self, arm: Any) -> int:
        """The number of an item, given by its number or its name."""
        settings = self.settings
        if not isinstance(arm, str):
            return check_arm(arm, settings.n_arms)
        if len(self._numbers) < settings.n_arms:  # the first time, and when items have joined
            self._numbers = {name: number for number, name in enumerate(settings.names or ())}
        if arm not in self._numbers:
            known = "there are none" if settings.names is None else short(list(settings.names))
            raise ValueError(f"unknown arm {arm!r}: known names: {known}")
        return self._numbers[arm]

    def forget(self, ticket: int) -> None:
        """The result of an open ask will not come."""
        self.order.append(FORGOTTEN)
        self.given_up.append(ticket)
        arm = self.arms_asked[ticket]
        if self.run.done or arm in self.items.retired:
            del self.lines.pending[ticket]
            return
        place = self.lines.give_up(ticket)
        if not self.is_stale(ticket):
            self.run.give_up(arm, place.round)
            self.note_decisions()
        self._release(arm)

    def _release(self, arm: int) -> None:
        """Count the results at the head of the item's line."""
        while not self.run.done and (place := self.lines.ready(arm)) is not None:
            self._count(place)

    def _count(self, place: Place) -> None:
        self.counted_rows.append(place.row)
        asked = place.ticket is not None and not self.is_stale(place.ticket)
        of_round = place.round if asked else 0
        self.counted_rounds.append(of_round)
        assert place.white is not None
        self.run.count(place.arm, place.white, of_round, asked)
        self.note_decisions()

    def note_decisions(self) -> None:
        """Keep what the method has decided beside its asks, and how many results waited when it found the groups."""
        for decision in self.run.new_decisions():
            self.decisions.append((len(self.counted_rows), decision))
        if self.waited is None and self.run.done:
            self.waited = self.lines.waiting()
