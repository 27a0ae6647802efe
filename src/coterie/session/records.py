"""Recorded conversations at once: with the effect of asking, telling and forgetting one by one.

A record is *followed* (the method decides anew, and must decide the same), or *applied* (what was recorded counts, and
the method's rule is not consulted), or *closed* (the groups were found: not even a method is needed).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from coterie.methods.contract import ASK, CHOOSE, GIVE_UP, RESULT, Decision, Departure, Record
from coterie.problem.checks import FloatArray
from coterie.problem.question import Resolution
from coterie.session.conversation import ASKED, CHOSEN, FORGOTTEN, LOOKED, TOLD, Applied, Conversation, Place

UNASKED = -2
"""The ticket of a result that answers no ask, though one for its arm may be open: its place is that of its arrival."""


class ReplayError(ValueError):
    """An entry of a record does not fit what came before it."""

    def __init__(self, entry: int, why: str) -> None:
        super().__init__(f"entry {entry}: {why}: the record does not lead here")
        self.entry, self.why = entry, why


class Entries(NamedTuple):
    """n recorded entries. An ask that found the groups proven has no arm and no ticket: -1."""

    kinds: list[int]  # ASKED, TOLD, FORGOTTEN, LOOKED, CHOSEN
    arms: list[int]  # of asks and results
    tickets: list[int]  # opened, answered or given up; -1: the next one, or the oldest open one of the arm; or UNASKED
    rounds: list[int]  # of asks: the recorded round, -1 if it was not recorded
    white: FloatArray  # (n, width) results in units of the noise; other rows are not looked at
    first_row: int  # the place in the log of the first result
    decisions: list[tuple[int, Decision]]  # with the number of results that had counted before each
    choices: list[Resolution]  # those of the entries CHOSEN


@dataclass
class Reading:
    """Entries on their way through tickets and lines; the conversation stays as it was until `keep`."""

    conversation: Conversation
    entries: Entries
    flat: Record
    origin: list[int]  # the entry that each of the record's came from
    rows: list[int]  # of the record's results: their place in the log
    pending: dict[int, Place]
    lines: dict[int, deque[Place]]
    opened: list[int]  # the record's asks
    claimed: list[int | None]  # the ticket of each result told

    def follow(self) -> None:
        """Let the method follow the record; `ReplayError` names the entry where it goes another way."""
        conversation = self.conversation
        if conversation.run.done:
            self._refuse_late_asks(0)
            self._keep(0, [])
            return
        try:
            found = conversation.run.follow(self.flat)
        except Departure as error:
            raise ReplayError(self.origin[error.entry], error.why) from None
        if found.by_ask:
            entry = self.origin[found.used]
            if self.entries.arms[entry] >= 0 or self.entries.tickets[entry] >= 0:
                raise ReplayError(entry, "this ask opens no ticket, as the groups are proven")
        self._refuse_late_asks(found.used + found.by_ask)
        self._keep(found.used, found.decisions)

    def apply(self) -> None:
        """Bring the method's run to where the record ends, without consulting its rule."""
        flat = self.flat
        flat.decisions[:] = self._placed(self.entries.decisions)
        self.conversation.run.apply(flat)
        self._keep(self._used(), flat.decisions)
        self.conversation.applied = Applied(len(self.conversation.order), len(self.conversation.decisions))

    def _used(self) -> int:
        """Entries that an applied record has used: all, unless the method found the groups on the way."""
        run, ends = self.conversation.run, np.flatnonzero(self.flat.kinds == RESULT)
        counted = run.t - len(self.conversation.counted_rows)
        return int(ends[counted - 1]) + 1 if run.done and 0 < counted < ends.size else self.flat.kinds.size

    def close(self, t: int) -> None:
        """The groups were found when t results had counted."""
        ends = np.flatnonzero(self.flat.kinds == RESULT)
        before = len(self.conversation.counted_rows)
        if t - before > ends.size:
            raise ValueError(f"the record says that it stopped after {t} results, only {before + ends.size} counted")
        used = int(ends[t - before - 1]) + 1 if t > before else 0
        self._keep(used, self._placed(self.entries.decisions))

    def _placed(self, decisions: list[tuple[int, Decision]]) -> list[tuple[int, Decision]]:
        """Decisions with their place in the record: behind the last result that had counted before them."""
        ends = np.flatnonzero(self.flat.kinds == RESULT)
        before = len(self.conversation.counted_rows)
        found = []
        for t, decision in decisions:
            count = min(t - before, ends.size)
            found.append((int(ends[count - 1]) + 1 if count > 0 else 0, decision))
        return found

    def _refuse_late_asks(self, used: int) -> None:
        """That no ask comes after the groups were found."""
        if self.conversation.run.done:
            for i in self.opened:
                if i >= used:
                    raise ReplayError(self.origin[i], "this ask comes after the groups were proven")

    def _waited(self, used: int) -> int:
        """Results told before the groups were found, and not counted by then."""
        kinds = self.entries.kinds
        last = self.origin[used - 1] if used > 0 else -1
        for i in self.opened:  # perhaps an ask, later, has found them
            if i >= used and self.entries.arms[self.origin[i]] < 0:
                last = self.origin[i]
        told = self.entries.first_row + sum(kind == TOLD for kind in kinds[: last + 1])
        return told - len(self.conversation.counted_rows) - self.conversation.never - self._ignored(last + 1)

    def _ignored(self, end: int) -> int:
        """Results of retired items among the first entries."""
        retired, entries = self.conversation.retired, self.entries
        if not retired:
            return 0
        return sum(kind == TOLD and arm in retired
                   for kind, arm in zip(entries.kinds[:end], entries.arms[:end], strict=True))  # fmt: skip

    def _keep(self, used: int, made: list[tuple[int, Decision]]) -> None:
        """The conversation is where the record ends."""
        conversation, flat = self.conversation, self.flat
        was_done = conversation.waited is not None
        before = len(conversation.counted_rows)
        results = np.flatnonzero(flat.kinds[:used] == RESULT)
        counts = np.cumsum(flat.kinds == RESULT)
        conversation.decisions += [(before + int(counts[i - 1]) if i > 0 else before, one) for i, one in made]
        conversation.counted_rows += [self.rows[i] for i in results.tolist()]
        of = np.where(flat.ask[results] >= 0, flat.ask[results], results)
        conversation.counted_rounds += np.maximum(flat.rounds[of] * flat.asked[results], 0).tolist()
        for i in self.opened:
            number = conversation.next_ticket
            if flat.arms[i] < 0:  # the ask that found the groups
                del self.pending[number]
                break
            conversation.arms_asked.append(int(flat.arms[i]))
            conversation.rounds_asked.append(max(int(flat.rounds[i]), 0))
            if number in self.pending:
                self.pending[number].round = conversation.rounds_asked[-1]
        for line in self.lines.values():
            for place in line:
                if place.ticket is not None and place.ticket < conversation.next_ticket:
                    place.round = conversation.rounds_asked[place.ticket]
        if conversation.run.done and not was_done:
            conversation.waited = self._waited(used)
        conversation.never += self._ignored(len(self.entries.kinds))
        conversation.pending, conversation.lines = self.pending, self.lines
        conversation.order += bytes(self.entries.kinds)
        pairs = zip(self.entries.kinds, self.entries.tickets, strict=True)
        conversation.given_up += [ticket for kind, ticket in pairs if kind == FORGOTTEN]
        conversation.choices += self.entries.choices


def read(conversation: Conversation, entries: Entries) -> Reading:
    """The entries in the order in which they count; `ReplayError` if a ticket is not open or of another arm."""
    return _Reader(conversation, entries).reading()


class _Reader:
    """Goes through the entries with copies of the conversation's tickets and lines."""

    def __init__(self, conversation: Conversation, entries: Entries) -> None:
        self._conversation, self._entries = conversation, entries
        copies = {id(place): replace(place) for place in conversation.pending.values()}
        for line in conversation.lines.values():
            for place in line:
                copies.setdefault(id(place), replace(place))
        self._pending = {ticket: copies[id(place)] for ticket, place in conversation.pending.items()}
        self._lines = {arm: deque(copies[id(place)] for place in line) for arm, line in conversation.lines.items()}
        self._older = len(conversation.arms_asked)
        self._arms = list(conversation.arms_asked)
        # The record under way: kind, arm, round, ask, asked, place of the result in `_white`.
        self._flat: list[tuple[int, int, int, int, int, int]] = []
        self._origin: list[int] = []
        self._rows: list[int] = []
        self._white: list[FloatArray] = []  # results that waited before
        self._told: list[int] = []  # entries of the results
        self._opened: list[int] = []
        self._entry_of: dict[int, int] = {}  # of a ticket: the place of its ask in the record
        self._by_arm: dict[int, deque[int]] | None = None  # open tickets of each arm: where no ticket is given

    def reading(self) -> Reading:
        entries, claimed = self._entries, []
        row = entries.first_row
        steps = zip(entries.kinds, entries.arms, entries.tickets, entries.rounds, strict=True)
        for i, (kind, arm, ticket, of_round) in enumerate(steps):
            if kind == TOLD:
                answered = None if ticket == UNASKED else self._claim(i, arm, ticket)
                claimed.append(answered)
                self._told.append(i)
                self._tell(i, arm, answered, row)
                row += 1
            elif kind == ASKED:
                self._ask(i, arm, ticket, of_round)
            elif kind == FORGOTTEN:
                self._forget(i, arm, ticket)
            else:
                self._add(CHOOSE if kind == CHOSEN else LOOKED, -1, 0, -1, 0, 0, i)
        return self._found(claimed)

    def _found(self, claimed: list[int | None]) -> Reading:
        columns = np.array(self._flat, dtype=np.int64).reshape(-1, 6).T.copy()
        kinds, arms, rounds, ask, asked, places = columns
        white = self._entries.white
        if self._white:
            white = np.concatenate([white, np.array(self._white).reshape(-1, white.shape[1])])
        found = white[places] if white.size else np.zeros((0, 1))
        record = Record(kinds, arms, rounds, ask, asked, found, [], self._entries.choices)
        return Reading(
            self._conversation, self._entries, record, self._origin, self._rows, self._pending, self._lines,
            self._opened, claimed,
        )  # fmt: skip

    def _add(self, kind: int, arm: int, of_round: int, ask: int, asked: int, place: int, entry: int) -> None:
        self._flat.append((kind, arm, of_round, ask, asked, place))
        self._origin.append(entry)
        self._rows.append(-1)

    def _ask(self, entry: int, arm: int, ticket: int, of_round: int) -> None:
        number = len(self._arms)
        if ticket >= 0 and ticket != number:
            raise ReplayError(entry, f"this ask opens ticket {number}, not {ticket}")
        self._arms.append(arm)
        self._pending[number] = place = Place(number, of_round)
        self._entry_of[number] = len(self._flat)
        self._opened.append(len(self._flat))
        self._add(ASK, arm, of_round, -1, 0, 0, entry)
        if self._conversation.in_ask_order:
            self._lines.setdefault(arm, deque()).append(place)
        if self._by_arm is not None:
            self._by_arm.setdefault(arm, deque()).append(number)

    def _claim(self, entry: int, arm: int, ticket: int) -> int | None:
        """The open ticket that a result answers."""
        if ticket >= 0:
            if ticket not in self._pending:
                raise ReplayError(entry, f"ticket {ticket} is not open")
            if self._arms[ticket] != arm:
                raise ReplayError(entry, f"ticket {ticket} is for arm {self._arms[ticket]}, not for arm {arm}")
            return ticket
        if self._by_arm is None:
            self._by_arm = {}
            for number in self._pending:
                self._by_arm.setdefault(self._arms[number], deque()).append(number)
        line = self._by_arm.get(arm, deque())
        while line and line[0] not in self._pending:
            line.popleft()
        return line.popleft() if line else None

    def _tell(self, entry: int, arm: int, ticket: int | None, row: int) -> None:
        if arm in self._conversation.retired:
            if ticket is not None:
                del self._pending[ticket]
            return
        if ticket is None and (arm not in self._lines or not self._conversation.in_ask_order):  # nothing before it
            self._flat.append((RESULT, arm, 0, -1, 0, entry))
            self._origin.append(entry)
            self._rows.append(row)
            return
        place = Place(None, 0) if ticket is None else self._pending.pop(ticket)
        place.row = row
        if not self._conversation.in_ask_order:
            self._result(entry, arm, place, entry)
            return
        line = self._lines.get(arm)
        if line is not None and len(line) == 1 and line[0] is place:  # the only one of its line
            del self._lines[arm]
            self._result(entry, arm, place, entry)
            return
        place.white = self._entries.white[entry]
        if ticket is None:
            self._lines.setdefault(arm, deque()).append(place)
        self._release(entry, arm)

    def _forget(self, entry: int, arm: int, ticket: int) -> None:
        if ticket not in self._pending:
            raise ReplayError(entry, f"ticket {ticket} is not open")
        its = self._arms[ticket]
        if 0 <= arm != its:
            raise ReplayError(entry, f"ticket {ticket} is for arm {its}, not for arm {arm}")
        place = self._pending.pop(ticket)
        if its in self._conversation.retired:
            return
        place.gone = True
        if not self._conversation.is_stale(ticket):
            self._add(GIVE_UP, its, place.round, self._entry_of.get(ticket, -1), 1, 0, entry)
        if self._conversation.in_ask_order:
            self._release(entry, its)

    def _release(self, entry: int, arm: int) -> None:
        """Results at the head of the arm's line count."""
        line, first = self._lines[arm], self._entries.first_row
        while line and (line[0].gone or line[0].row >= 0):
            place = line.popleft()
            if place.row < 0:
                continue
            if place.row >= first:  # told in this record: its entry has the values
                self._result(entry, arm, place, self._told[place.row - first])
            else:
                assert place.white is not None
                self._white.append(place.white)
                self._result(entry, arm, place, len(self._entries.kinds) + len(self._white) - 1)
        if not line:
            del self._lines[arm]

    def _result(self, entry: int, arm: int, place: Place, where: int) -> None:
        ticket = place.ticket
        if ticket is None or self._conversation.is_stale(ticket):
            self._flat.append((RESULT, arm, 0, -1, 0, where))
            self._origin.append(entry)
            self._rows.append(place.row)
            return
        ask = self._entry_of.get(ticket, -1)
        self._flat.append((RESULT, arm, place.round, ask, 1, where))
        self._origin.append(entry)
        self._rows.append(place.row)
