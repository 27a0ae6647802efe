"""`Session.replay`: a recorded conversation at once, with exactly the effect of its asks and tells one by one."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.problem.checks import FloatArray, IntArray, check_real_array, short

if TYPE_CHECKING:
    from coterie.session.conversation import Session

ASK, TELL, FORGET = 0, 1, 2

UNASKED = -2
"""The ticket of a result that answers no ask, though one for its arm may be open: its place is that of its arrival."""


class Entries(NamedTuple):
    """What a driver is given: n entries, checked."""

    kinds: IntArray
    arms: IntArray  # of an ask: -1 if it is not known; OUT: the arm
    tickets: IntArray  # opened by the ask, answered by the result (-1: none), given up
    white: FloatArray  # (n, d) results in units of the noise; (n, 2·d) where the driver is exact
    rows: IntArray  # positions of the results in the session's log


class Outcome(NamedTuple):
    """What it says of them: the entry with which the groups were proven, n if they are not, -1 if they were before."""

    stop: int
    opened: bool = True  # False if that entry is an ask: it found nothing left to measure


class ReplayError(ValueError):
    """An entry does not fit what came before it."""

    def __init__(self, entry: int, why: str) -> None:
        super().__init__(f"entry {entry}: {why}: the record does not lead here")
        self.entry, self.why = entry, why


def replay(session: Session, kinds: Any, arms: Any, tickets: Any, values: Any) -> None:
    """See `Session.replay`."""
    kind, arm, ticket = _integers(kinds, "kinds"), _integers(arms, "arms"), _integers(tickets, "tickets")
    n = kind.size
    if arm.size != n or ticket.size != n:
        raise ValueError(f"replay needs as many arms and tickets as kinds, got {n}, {arm.size} and {ticket.size}")
    unknown = (kind < ASK) | (kind > FORGET)
    if unknown.any():
        i = int(np.argmax(unknown))
        raise ValueError(f"entry {i}: a kind is 0 (ask), 1 (tell) or 2 (forget), got {int(kind[i])}")
    outside = (arm >= session.n_arms) | (arm < np.where(kind == TELL, 0, -1))
    if outside.any():
        i = int(np.argmax(outside))
        raise ValueError(f"entry {i}: unknown arm {int(arm[i])}: arms are 0..{session.n_arms - 1}")
    told = kind == TELL
    given = np.asarray(values)
    if session.dim == 1 and given.ndim == 1:
        given = given[:, None]
    if given.shape != (n, session.dim):
        raise ValueError(f"{n} entries need values of shape ({n}, {session.dim}), got shape {given.shape}")
    results = check_real_array(given[told], "measurements")
    found = session._whitened(arm[told].tolist(), results)
    white = np.zeros((n, found.shape[1]))
    white[told] = found
    book = _Book(session)
    claimed, known = book.read(kind.tolist(), arm.tolist(), ticket.tolist())
    rows = len(session._arms) + np.cumsum(told) - 1
    entries = Entries(kind, np.array(known, dtype=np.int64), np.array(claimed, dtype=np.int64), white, rows)
    if n > 0:
        try:
            outcome = session._driver.replay(entries)
            book.close(entries, outcome, ticket, arm)
        except ReplayError:
            _restore(session)
            raise
        session._driver.accept(entries, outcome)
    session._note_firsts(arm[told].tolist(), found)
    session._arms += arm[told].tolist()
    session._values += list(results)
    session._tickets += [number if number >= 0 else None for number in entries.tickets[told].tolist()]
    session._pending, session._next_ticket = book.pending, book.next_ticket
    session._check_done()


def _restore(session: Session) -> None:
    """The driver as it was: rebuilt from what the session knows, which the failed replay has not changed."""
    session._driver = type(session).from_dict(session.to_dict())._driver


class _Book:
    """The session's tickets while a record is read."""

    def __init__(self, session: Session) -> None:
        self.pending = dict(session._pending)
        self.next_ticket = session._next_ticket

    def read(self, kinds: list[int], arms: list[int], tickets: list[int]) -> tuple[list[int], list[int]]:
        """The ticket that each entry is about, -1 for a result that nobody asked for; and its arm, as far as known."""
        pending, following = self.pending, self.next_ticket
        claimed, known = tickets.copy(), arms.copy()
        lines: dict[int, deque[int]] | None = None  # open tickets of each arm, oldest first: where no ticket was given
        for i, (kind, arm, ticket) in enumerate(zip(kinds, arms, tickets, strict=True)):
            if kind == ASK:
                if ticket >= 0 and ticket != following:
                    raise ReplayError(i, f"this ask opens ticket {following}, not {ticket}")
                pending[following] = arm
                claimed[i] = following
                if lines is not None:
                    lines.setdefault(arm, deque()).append(following)
                following += 1
                continue
            if ticket == UNASKED and kind == TELL:
                claimed[i] = -1
                continue
            if ticket < 0 and kind == TELL:
                if lines is None:
                    lines = {}
                    for number, its in pending.items():
                        lines.setdefault(its, deque()).append(number)
                line = lines.get(arm, ())
                while line and line[0] not in pending:
                    line.popleft()
                claimed[i] = ticket = line.popleft() if line else -1
                if ticket >= 0:
                    del pending[ticket]
                continue
            found = pending.pop(ticket, None)
            if found is None:
                raise ReplayError(i, f"ticket {ticket} is not open")
            if found >= 0 and arm >= 0 and found != arm:
                raise ReplayError(i, f"ticket {ticket} is for arm {found}, not for arm {arm}")
            known[i] = found if arm < 0 else arm
        self.next_ticket = following
        return claimed, known

    def close(self, entries: Entries, outcome: Outcome, tickets: IntArray, arms: IntArray) -> None:
        """Put in what the driver found: where the record stopped, and the arms of asks that were not known."""
        stop = outcome.stop
        late = np.flatnonzero(entries.kinds[stop + 1 :] == ASK)
        if late.size:
            raise ReplayError(stop + 1 + int(late[0]), "this ask comes after the groups were proven")
        if not outcome.opened:
            last = int(entries.tickets[stop])
            if tickets[stop] >= 0 or arms[stop] >= 0 or last not in self.pending:
                raise ReplayError(stop, "this ask opens no ticket, as the groups are proven")
            del self.pending[last]
            self.next_ticket = last
        for i in np.flatnonzero((entries.kinds == ASK) & (arms < 0)):
            if int(entries.tickets[i]) in self.pending:
                self.pending[int(entries.tickets[i])] = int(entries.arms[i])


def _integers(given: Any, name: str) -> IntArray:
    array = np.asarray(given)
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be a vector of integers, got {short(given)}")
    return array.astype(np.int64)
