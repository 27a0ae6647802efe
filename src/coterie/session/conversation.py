"""One conversation with a method: tickets, the order in which results count, and everything that was decided.

Live sessions, saved ones, records and campaigns all feed a `Conversation`; it is the only place that knows tickets and
the order of results. "The s-th measurement of an arm" must not depend on values (docs/CROC.md, "The order of
results"): for a method with `in_ask_order` each arm has a *line* of places, one for every ask and one for every result
that nobody asked for, and a result counts once everything before it in its line is answered or given up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coterie.methods.contract import Decision, MethodRun, Pull
from coterie.problem.checks import FloatArray, IntArray

ASKED, TOLD, FORGOTTEN, LOOKED = 0, 1, 2, 3
"""What was done, in the order of `Conversation.order`."""


class Applied(NamedTuple):
    """How much of a record was applied rather than decided: its rules were other ones than this release has."""

    entries: int = 0
    decisions: int = 0


class Ticket(NamedTuple):
    """An open ask: its number, its arm, and the method's round that it belongs to (0: none)."""

    number: int
    arm: int
    round: int


@dataclass(slots=True)
class Place:
    """A place in the line of an arm: an ask, or a result that nobody asked for (`ticket` is None)."""

    ticket: int | None
    round: int
    row: int = -1  # of the result in the log, -1 while it is missing
    white: FloatArray | None = None  # the result, in units of the noise, while it waits
    gone: bool = False  # given up


class Conversation:
    """Tickets, lines and decisions around one `MethodRun`, which is told results in the order in which they count."""

    def __init__(self, run: MethodRun, in_ask_order: bool) -> None:
        self.run, self.in_ask_order = run, in_ask_order
        self.pending: dict[int, Place] = {}  # by ticket, oldest first
        self.arms_asked: list[int] = []  # by ticket
        self.rounds_asked: list[int] = []
        self.order = bytearray()
        self.given_up: list[int] = []  # tickets, in the order in which they were given up
        self.decisions: list[tuple[int, Decision]] = []  # with the number of results that had counted before
        self.counted_rows: list[int] = []
        self.counted_rounds: list[int] = []
        self.lines: dict[int, deque[Place]] = {}
        self.applied = Applied()
        self.waited: int | None = None  # results that waited when the groups were found

    @property
    def next_ticket(self) -> int:
        """The number of the next ask."""
        return len(self.arms_asked)

    @property
    def waiting(self) -> int:
        """Results that wait for an earlier ask of their arm; once the groups are found, those that waited then."""
        return self._waiting_now() if self.waited is None else self.waited

    def _waiting_now(self) -> int:
        return sum(place.row >= 0 and not place.gone for line in self.lines.values() for place in line)

    def tickets(self) -> list[Ticket]:
        """Open asks, oldest first."""
        return [Ticket(number, self.arms_asked[number], place.round) for number, place in self.pending.items()]

    # One by one.

    def ask(self) -> Ticket | None:
        """The next arm, with a ticket; None if looking for it has found the groups."""
        pull = self.run.ask()
        self.order.append(ASKED)
        self.note_decisions()
        return None if pull is None else self.open_ticket(pull)

    def open_ticket(self, pull: Pull) -> Ticket:
        """A ticket for an arm that the method has asked for."""
        number = self.next_ticket
        place = Place(number, pull.round)
        self.arms_asked.append(pull.arm)
        self.rounds_asked.append(pull.round)
        self.pending[number] = place
        if self.in_ask_order:
            self.lines.setdefault(pull.arm, deque()).append(place)
        return Ticket(number, pull.arm, pull.round)

    def look(self) -> None:
        """See whether the results so far are enough."""
        if not self.run.done:
            self.order.append(LOOKED)
            self.run.look()
            self.note_decisions()

    def tell(self, arm: int, white: FloatArray, row: int, ticket: int | None) -> None:
        """A result; it counts now or, if an earlier ask of its arm is open, later. After the end it never does."""
        self.order.append(TOLD)
        place = Place(None, 0) if ticket is None else self.pending.pop(ticket)
        if self.run.done:
            return
        place.row = row
        if not self.in_ask_order:
            self._count(arm, place, white)
            return
        place.white = white
        if ticket is None:
            self.lines.setdefault(arm, deque()).append(place)
        self._release(arm)

    def forget(self, ticket: int) -> None:
        """The result of an open ask will not come."""
        self.order.append(FORGOTTEN)
        self.given_up.append(ticket)
        place = self.pending.pop(ticket)
        if self.run.done:
            return
        arm = self.arms_asked[ticket]
        self.run.give_up(arm, place.round)
        self.note_decisions()
        if self.in_ask_order:
            place.gone = True
            self._release(arm)

    def _release(self, arm: int) -> None:
        """Count the results at the head of the arm's line."""
        line = self.lines[arm]
        while line and (line[0].gone or line[0].white is not None) and not self.run.done:
            place = line.popleft()
            if place.white is not None:
                self._count(arm, place, place.white)
        if not line:
            del self.lines[arm]

    def _count(self, arm: int, place: Place, white: FloatArray) -> None:
        self.counted_rows.append(place.row)
        self.counted_rounds.append(place.round)
        self.run.count(arm, white, place.round, place.ticket is not None)
        self.note_decisions()

    def note_decisions(self) -> None:
        """Keep what the method has decided beside its asks, and how many results waited when it found the groups."""
        for decision in self.run.new_decisions():
            self.decisions.append((len(self.counted_rows), decision))
        if self.waited is None and self.run.done:
            self.waited = self._waiting_now()

    # What was done.

    @property
    def history(self) -> list[list[object]]:
        """What was done, in order, as runs of the same: [ask | tell | look, how often], [forget, ticket]."""
        done = np.frombuffer(bytes(self.order), dtype=np.uint8)
        starts = np.flatnonzero((done == FORGOTTEN) | (np.diff(done, prepend=FORGOTTEN) != 0))
        given_up = iter(self.given_up)
        words = {ASKED: "ask", TOLD: "tell", LOOKED: "look"}
        return [
            ["forget", next(given_up)] if kind == FORGOTTEN else [words[kind], length]
            for kind, length in zip(done[starts].tolist(), np.diff(starts, append=done.size).tolist(), strict=True)
        ]

    @property
    def counted(self) -> IntArray:
        """Places in the log of the results that counted, in the order in which they did."""
        return np.array(self.counted_rows, dtype=np.int64)
