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

import numpy as np

from coterie.problem.checks import (
    LARGEST,
    LARGEST_SPREAD,
    FloatArray,
    IntArray,
    check_count,
    check_far,
    check_measurement,
    check_real_array,
    check_spread,
    short,
)  # fmt: skip
from coterie.problem.families import Model


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


# The results of a session as they were told, and the check that every new one passes.


class Measurements:
    """All results told, in the order in which they were told: arm, values, and the ticket that each answers.

    Results in units of the noise are as the noise has them (`Model.whiten`): in standard deviations where they are
    stated, otherwise in the user's units. `exact`: they come with what floats do not hold of them (`whiten_fully`).
    """

    by_panel = False  # whether results are of panels of features, not of whole items

    def __init__(self, noise: Model, exact: bool) -> None:
        self._noise, self._exact = noise, exact
        self._firsts: dict[int, FloatArray] = {}  # the first result of each arm, in units of the noise
        self.arms: list[int] = []
        self.values: list[FloatArray] = []
        self.tickets: list[int | None] = []
        self.width = noise.dim  # numbers of a row
        self._array: FloatArray = np.zeros((0, noise.dim))

    def checked(self, arm: int, given: Any) -> FloatArray:
        """(d) one result of an arm as it was told; ValueError says what is wrong with it."""
        return check_measurement(given, self._noise.dim)

    def __len__(self) -> int:
        return len(self.arms)

    def in_noise_units(self, arms: Sequence[int], values: FloatArray) -> FloatArray:
        """New results of these arms, (n, d) or (n, 2·d), in units of the noise; ValueError if one contradicts it."""
        dim = self._noise.dim
        self._check_stated(arms, values)
        white = self.units(values)
        if not self._noise.in_units:
            return white
        if len(arms) == 1 and self._is_near(arms[0], white[0, :dim]):
            return white
        check_far(white[:, :dim], values)
        where = np.asarray(arms, dtype=np.int64)
        told, first = np.unique(where, return_index=True)
        firsts = white[first, :dim]
        for i, arm in enumerate(told.tolist()):
            if arm in self._firsts:
                firsts[i] = self._firsts[arm]
        check_spread(white[:, :dim] - firsts[np.searchsorted(told, where)], values, where)
        return white

    def _is_near(self, arm: int, white: FloatArray) -> bool:
        """Whether a result surely passes both checks, as nearly every one does: to be precise takes far longer."""
        away = white - self._firsts.get(arm, white)
        return bool(np.vdot(white, white) < 0.5 * LARGEST**2 and np.vdot(away, away) < 0.5 * LARGEST_SPREAD**2)

    def _check_stated(self, arms: Sequence[int], values: FloatArray) -> None:
        """That results are such as the noise allows; ValueError names the first that is not, and its item."""
        try:
            self._noise.check(values)
        except ValueError:
            for arm, row in zip(arms, values, strict=True):
                try:
                    self._noise.check(row[None])
                except ValueError as error:
                    raise ValueError(f"{error} for item {int(arm)}") from None
            raise

    def units(self, values: FloatArray) -> FloatArray:
        """Results that passed the check, in units of the noise."""
        return self._noise.whiten_fully(values) if self._exact else self._noise.whiten(values)

    def add(self, arm: int, values: FloatArray, white: FloatArray, ticket: int | None) -> int:
        """Keep a result that passed the check; its place."""
        if arm not in self._firsts:
            self._firsts[arm] = white[: self._noise.dim].copy()
        self.arms.append(arm)
        self.values.append(values)
        self.tickets.append(ticket)
        return len(self.arms) - 1

    def add_all(self, arms: list[int], values: FloatArray, white: FloatArray, tickets: list[int | None]) -> None:
        """Keep many results that passed the check."""
        told, first = np.unique(np.asarray(arms, dtype=np.int64), return_index=True)
        for arm, place in zip(told.tolist(), first.tolist(), strict=True):
            if arm not in self._firsts:
                self._firsts[arm] = white[place, : self._noise.dim].copy()
        self.arms += arms
        self.values += list(values)
        self.tickets += tickets

    def restore(self, arms: IntArray, values: FloatArray, tickets: list[int | None]) -> None:
        """All results, of which every one was checked before."""
        told, first = np.unique(arms, return_index=True)
        white = self._noise.whiten(values[first]) if first.size else values
        self._firsts = {arm: white[i] for i, arm in enumerate(told.tolist())}
        self.arms, self.values, self.tickets = arms.tolist(), list(values), tickets
        self._array = values.reshape(-1, self._noise.dim)

    @property
    def array(self) -> FloatArray:
        """All values (n, d) as they were told; not to be changed. What is new since it was last looked at is added."""
        known = len(self._array)
        if known < len(self.values):
            self._array = np.concatenate([self._array, np.array(self.values[known:], dtype=np.float64)])
        return self._array

    def arms_of(self, rows: IntArray) -> IntArray:
        """The arms of these places."""
        return np.asarray(self.arms, dtype=np.int64)[rows]

    def copies(self) -> list[tuple[int, FloatArray]]:
        """All results as (arm, values), to be changed by whoever likes."""
        return [(arm, values.copy()) for arm, values in zip(self.arms, self.values, strict=True)]


def check_many(count: int, x: Any, ticket: Any, dim: int) -> tuple[FloatArray, list[Any]]:
    """Results of `count` arms, (n, d), and the ticket given for each, if any was."""
    rows = check_real_array(x, "measurements", booleans=True)
    if dim == 1 and rows.ndim == 1:
        rows = rows[:, None]
    if rows.shape != (count, dim):
        raise ValueError(
            f"{count} arms need measurements of shape ({count}, {dim}), got shape {rows.shape}: {short(x)}"
        )
    if ticket is None:
        return rows, [None] * count
    if isinstance(ticket, list | tuple | np.ndarray) and np.size(ticket) == count:
        return rows, list(ticket)
    raise ValueError(f"{count} arms need as many tickets, got {short(ticket)}")
