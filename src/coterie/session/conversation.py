"""One conversation with a method: tickets, the order in which results count, and everything that was decided.

Live sessions, saved ones, records and campaigns all feed a `Conversation`; it is the only place that knows tickets and
the order of results. "The s-th measurement of an arm" must not depend on values (docs/CROC.md, "The order of
results"): for a method with `in_ask_order` each arm has a *line* of places, one for every ask and one for every result
that nobody asked for, and a result counts once everything before it in its line is answered or given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coterie.methods.contract import Decision, MethodRun, Pull
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.question import Resolution
from coterie.problem.revision import Items, Revision

ASKED, TOLD, FORGOTTEN, LOOKED, CHOSEN, REVISED = 0, 1, 2, 3, 4, 5
"""What was done, in the order of `Conversation.order`."""

AHEAD, BATCHES_AHEAD = 8, 2
"""Results that open asks may hold up: so many for each open ask and one more, or so many times all that are open and
wanted now, if that is more. Then nothing new is planned. Of W workers who are equally fast and all at work, an ask
is overtaken by 8·W others once in about e^8 = 3000 times."""


class Applied(NamedTuple):
    """How much of a record was applied rather than decided: its rules were other ones than this release has."""

    entries: int = 0
    decisions: int = 0


class Revised(NamedTuple):
    """A revision that was made: when so many results had counted, and before the ask of this number."""

    revision: Revision
    t: int
    ticket: int


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
        self.choices: list[Resolution] = []  # in the order in which they were made
        self.revisions: list[Revised] = []  # in the order in which they were made
        self.retired: frozenset[int] = frozenset()
        self.never = 0  # results that never count: of retired items, or too late for a proof that was followed up
        self.decisions: list[tuple[int, Decision]] = []  # with the number of results that had counted before
        self.counted_rows: list[int] = []
        self.counted_rounds: list[int] = []
        self.lines: dict[int, deque[Place]] = {}
        self.applied = Applied()
        self.undone: set[int] = set()  # of the asks given up, those that nobody began to measure
        self.waited: int | None = None  # results that waited when the groups were found

    @property
    def next_ticket(self) -> int:
        """The number of the next ask."""
        return len(self.arms_asked)

    def is_stale(self, ticket: int | None) -> bool:
        """Whether an ask was made before the last revision: its result then counts as one that nobody asked for."""
        return ticket is not None and bool(self.revisions) and ticket < self.revisions[-1].ticket

    @property
    def waiting(self) -> int:
        """Results that wait for an earlier ask of their arm; once the groups are found, those that waited then."""
        return self._waiting_now() if self.waited is None else self.waited

    def _waiting_now(self) -> int:
        return sum(place.row >= 0 and not place.gone for line in self.lines.values() for place in line)

    def tickets(self) -> list[Ticket]:
        """Open asks, oldest first."""
        return [Ticket(number, self.arms_asked[number], place.round) for number, place in self.pending.items()]

    def awaited(self, wanted: int = 1) -> list[Ticket]:
        """The open asks that have to be answered before anything new is asked for; none if that can go on.

        `wanted`: how many further asks somebody wants. An ask is waited for if all that was planned is asked for, at
        least so many results as `AHEAD` allows cannot be used before open asks are answered, it is one of these, and
        as many later ones are closed (docs/CROC.md, section 8).
        """
        n_open = len(self.pending)
        limit = max(AHEAD * (n_open + 1), BATCHES_AHEAD * (n_open + wanted))
        if not self.in_ask_order or self.run.done:
            return []
        late: list[Ticket] = []
        for older, (number, place) in enumerate(self.pending.items()):
            if self.next_ticket - number - n_open + older < limit:  # later ones that are closed
                break
            if self.arms_asked[number] not in self.retired:
                late.append(Ticket(number, self.arms_asked[number], 0 if self.is_stale(number) else place.round))
        if not late:
            return []
        held = self.run.held_up([Pull(one.arm, one.round) for one in late])
        if held is None:
            return []
        behind = [self.waiting_behind(one.number) for one in late]
        lines = sum({one.arm: count for one, count in zip(reversed(late), reversed(behind), strict=True)}.values())
        if held.results + lines < limit:
            return []
        return [one for i, one in enumerate(late) if i in held.by or behind[i]]

    def waiting_behind(self, ticket: int) -> int:
        """Results that wait in the line of its arm behind an open ask."""
        count = 0
        for place in reversed(self.lines.get(self.arms_asked[ticket], ())):
            if place.ticket == ticket:
                return count
            count += place.white is not None
        return 0

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

    def choose(self, resolution: Resolution) -> None:
        """Another resolution is asked for."""
        self.order.append(CHOSEN)
        self.choices.append(resolution)
        self.run.choose_resolution(resolution)
        self.note_decisions()

    def revise(self, revision: Revision, items: Items, decision: Decision, run: MethodRun) -> None:
        """Another run goes on from here, with the items that are left; it has the results so far.

        Results that wait behind an open ask go on waiting, but for those of retired items, which never count, and
        those that were not in when the groups were found.
        """
        self.order.append(REVISED)
        self.decisions.append((len(self.counted_rows), decision))
        self.revisions.append(Revised(revision, len(self.counted_rows), self.next_ticket))
        self.retired = frozenset(items.retired)
        if self.order.count(ASKED) > self.next_ticket:  # an ask that found the groups, and opened no ticket
            self.order[self.order.rindex(ASKED)] = LOOKED
        found = self.run.done
        for arm in list(self.lines):
            line = self.lines[arm]
            kept = [place for place in line if not found or place.ticket in self.pending]
            self.lines[arm] = deque(kept if arm not in self.retired else [])
            if not self.lines[arm]:
                del self.lines[arm]
        self.never = self.order.count(TOLD) - len(self.counted_rows) - self._waiting_now()
        self.run, self.waited = run, None

    def tell(self, arm: int, white: FloatArray, row: int, ticket: int | None) -> None:
        """A result; it counts now or, if an earlier ask of its arm is open, later. After the end it never does."""
        self.order.append(TOLD)
        place = Place(None, 0) if ticket is None else self.pending.pop(ticket)
        if self.run.done or arm in self.retired:
            self.never += arm in self.retired
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
        arm = self.arms_asked[ticket]
        if self.run.done or arm in self.retired:
            return
        if not self.is_stale(ticket):
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
        asked = place.ticket is not None and not self.is_stale(place.ticket)
        of_round = place.round if asked else 0
        self.counted_rounds.append(of_round)
        self.run.count(arm, white, of_round, asked)
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
        """What was done, in order: [ask | tell | look, how often], [forget, ticket], [choose, resolution],
        [revise, revision]."""
        done = np.frombuffer(bytes(self.order), dtype=np.uint8)
        alone = (done == FORGOTTEN) | (done == CHOSEN) | (done == REVISED)
        starts = np.flatnonzero(alone | (np.diff(done, prepend=FORGOTTEN) != 0))
        given_up, choices, revisions = iter(self.given_up), iter(self.choices), iter(self.revisions)
        words = {ASKED: "ask", TOLD: "tell", LOOKED: "look"}
        return [
            ["forget", next(given_up)]
            if kind == FORGOTTEN
            else ["choose", next(choices).to_json()["resolution"]]
            if kind == CHOSEN
            else ["revise", next(revisions).revision.to_json()]
            if kind == REVISED
            else [words[kind], length]
            for kind, length in zip(done[starts].tolist(), np.diff(starts, append=done.size).tolist(), strict=True)
        ]

    @property
    def counted(self) -> IntArray:
        """Places in the log of the results that counted, in the order in which they did."""
        return np.array(self.counted_rows, dtype=np.int64)


def rows_asked_alone(conversation: Conversation, tickets: Sequence[int | None]) -> set[int]:
    """Places in the log of the results that were asked for while no other ask was open.

    `tickets`: the ask that each result of the log answers, None if nobody asked for it. If an ask of the same arm was
    given up before the result came, it is left out: so is a result that came too late to count.
    """
    given_up = iter(conversation.given_up)
    found: set[int] = set()
    open_asks, ticket, row = 0, 0, 0
    alone: int | None = None  # the ask made while no other was open, until it is answered
    for kind in conversation.order:
        if kind == ASKED:
            if ticket == conversation.next_ticket:
                break  # it found the groups, and opened no ticket: nothing counts any more
            if open_asks == 0:
                alone = ticket
            open_asks, ticket = open_asks + 1, ticket + 1
        elif kind == TOLD:
            if tickets[row] is not None:
                open_asks -= 1
                if tickets[row] == alone:
                    found.add(row)
                    alone = None
            row += 1
        elif kind == FORGOTTEN:
            gone = next(given_up)
            open_asks -= 1
            if alone is not None and conversation.arms_asked[gone] == conversation.arms_asked[alone]:
                alone = None
    return found
