"""The order in which results count: open asks, and the line of each item.

"The s-th measurement of an item" must not depend on values (docs/CROC.md, "The order of results"): for a method with
`in_ask_order` each item has a *line* of places, one for every ask and one for every result that nobody asked for, and a
result counts once everything before it in its line is answered or given up. Live conversations and the fold of recorded
facts both go through `Lines`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from coterie.problem.checks import FloatArray, check_count


@dataclass(slots=True)
class Place:
    """A place in the line of an item: an ask, or a result that nobody asked for (`ticket` is None)."""

    arm: int
    ticket: int | None
    round: int
    row: int = -1  # of the result in the log, -1 while it is missing
    white: FloatArray | None = None  # the result, in units of the noise
    gone: bool = False  # given up


class Lines:
    """Open asks, and the places of each item in the order in which they count."""

    def __init__(self, in_ask_order: bool) -> None:
        self.in_ask_order = in_ask_order
        self.pending: dict[int, Place] = {}  # by ticket, oldest first
        self.by_arm: dict[int, deque[Place]] = {}  # only for methods that count in ask order

    def copy(self) -> Lines:
        """Other lines with places of their own."""
        lines = Lines(self.in_ask_order)
        copies = {id(place): replace(place) for place in self.pending.values()}
        for arm, line in self.by_arm.items():
            lines.by_arm[arm] = deque(copies.setdefault(id(place), replace(place)) for place in line)
        lines.pending = {ticket: copies[id(place)] for ticket, place in self.pending.items()}
        return lines

    def open(self, ticket: int, arm: int, of_round: int) -> None:
        """Another ask."""
        self.pending[ticket] = place = Place(arm, ticket, of_round)
        if self.in_ask_order:
            line = self.by_arm.get(arm)
            if line is None:
                self.by_arm[arm] = deque((place,))
            else:
                line.append(place)

    def checked_open(self, ticket: Any) -> int:
        """The number of an open ask; ValueError if it is none."""
        number = check_count(ticket, "ticket", 0)
        if number not in self.pending:
            raise ValueError(f"ticket {number} is not open: open tickets are {sorted(self.pending)}")
        return number

    def claim(self, arms: Sequence[int], tickets: Sequence[Any]) -> list[int | None]:
        """Which open ask each result answers: the ticket given, or the oldest one for its arm. Nothing is changed."""
        free, claimed = dict(self.pending), []
        for arm, given in zip(arms, tickets, strict=True):
            if given is None:
                number = next((ticket for ticket, place in free.items() if place.arm == arm), None)
            else:
                number = check_count(given, "ticket", 0)
                if number not in free:
                    raise ValueError(f"ticket {number} is not open: open tickets are {sorted(free)}")
                if free[number].arm != arm:
                    raise ValueError(f"ticket {number} is for arm {free[number].arm}, not for arm {arm}")
            if number is not None:
                del free[number]
            claimed.append(number)
        return claimed

    def answer(self, arm: int, ticket: int | None, row: int, white: FloatArray) -> Place | None:
        """Put a result in its place. If it counts at once, that place; otherwise `ready` has what does."""
        place = Place(arm, None, 0) if ticket is None else self.pending.pop(ticket)
        place.row, place.white = row, white
        line = self.by_arm.get(arm)
        if line is None:
            return place
        if ticket is None:
            line.append(place)
        elif len(line) == 1:  # nothing before it, nothing behind it
            del self.by_arm[arm]
            return place
        return None

    def give_up(self, ticket: int) -> Place:
        """The result of an open ask will not come: its place."""
        place = self.pending.pop(ticket)
        place.gone = True
        return place

    def ready(self, arm: int) -> Place | None:
        """The next result of an item that counts, taken out of its line; None if there is none, or it has to wait."""
        line = self.by_arm.get(arm)
        while line:
            place = line[0]
            if place.row < 0 and not place.gone:
                return None
            line.popleft()
            if not line:
                del self.by_arm[arm]
            if not place.gone:
                return place
        return None

    def waiting(self) -> int:
        """Results that wait for an earlier ask of their item."""
        return sum(place.row >= 0 and not place.gone for line in self.by_arm.values() for place in line)

    def behind(self, arm: int, ticket: int) -> int:
        """Results that wait in the line of an item behind an open ask of it."""
        count = 0
        for place in reversed(self.by_arm.get(arm, ())):
            if place.ticket == ticket:
                return count
            count += place.row >= 0
        return 0
