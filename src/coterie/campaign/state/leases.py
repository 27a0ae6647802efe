"""Leases, and those of them that are open: found by ticket, by worker and by arm, however many there are; and what
became of asks whose results did not come, or came late.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, ValuesView
from dataclasses import dataclass
from typing import NamedTuple

PASSED_ON, TAKEN = "passed on", "taken"
"""How a lease stands whose ask somebody else has got too: it is not answered yet; somebody else has answered it."""


@dataclass(slots=True)
class Lease:
    """An ask that a worker holds. `answer`: the measurement that took its place; `ended`: how else it ended.

    Of one that was taken, `answer` is the measurement that came too late, if it came. `stream`: the item with the
    panel that was asked for, where there are features; else the item.
    """

    key: str
    ticket: int
    arm: int
    worker: str
    asked_at: float
    expires_at: float
    answer: str | None = None
    named: bool = False  # the answer named this lease, rather than only its arm
    ended: str | None = None
    token: str | None = None  # that it was asked for with
    stream: int = -1

    def __post_init__(self) -> None:
        if self.stream < 0:
            self.stream = self.arm


class OpenLeases:
    """The open leases, oldest first. Writing to a campaign must not look at all of them: there may be thousands."""

    def __init__(self, leases: Iterable[Lease] = ()) -> None:
        self._by_ticket: dict[int, Lease] = {}
        self._by_worker: dict[str, dict[int, Lease]] = {}
        self._by_stream: dict[int, dict[int, Lease]] = {}
        self._earlier: dict[int, list[Lease]] = {}  # by ticket: leases that were passed on
        self._taken: dict[tuple[str, int], list[Lease]] = {}  # by worker and stream: those taken whose result may come
        self._of_tokens: Counter[str | None] = Counter()
        self._first_end = math.inf  # none of them is over before
        for lease in leases:
            self.add(lease)

    @classmethod
    def of(cls, leases: Iterable[Lease]) -> OpenLeases:
        """Those that are open of all leases of a campaign, and those that somebody else got too."""
        left = sorted((lease for lease in leases if lease.answer is None), key=lambda lease: lease.ticket)
        opened = cls(lease for lease in left if lease.ended is None)
        for lease in left:
            if lease.ended == PASSED_ON:
                opened._earlier.setdefault(lease.ticket, []).append(lease)
            elif lease.ended == TAKEN:
                opened._taken.setdefault((lease.worker, lease.stream), []).append(lease)
        return opened

    def __len__(self) -> int:
        return len(self._by_ticket)

    def __contains__(self, ticket: object) -> bool:
        return ticket in self._by_ticket

    def __getitem__(self, ticket: int) -> Lease:
        return self._by_ticket[ticket]

    def values(self) -> ValuesView[Lease]:
        """All of them, oldest first."""
        return self._by_ticket.values()

    def of_worker(self, worker: str) -> Iterable[Lease]:
        """Those that a worker holds, oldest first."""
        return self._by_worker.get(worker, {}).values()

    def of_arm(self, stream: int) -> Iterable[Lease]:
        """Those of an arm, or a stream, oldest first; behind each, those that it was passed on from."""
        for lease in self._by_stream.get(stream, {}).values():
            yield lease
            yield from self._earlier.get(lease.ticket, ())

    def taken(self, worker: str, stream: int) -> Lease | None:
        """The oldest lease of a worker for an arm, or a stream, that somebody else has answered, and whose result may
        come yet.
        """
        return next(iter(self._taken.get((worker, stream), ())), None)

    def count_of_token(self, token: str) -> int:
        """How many were asked for with a token."""
        return self._of_tokens[token]

    @property
    def first_end(self) -> float:
        """None of them is over before."""
        return self._first_end

    def over(self, now: float) -> list[Lease]:
        """Those whose time is over, oldest first."""
        if now < self._first_end:
            return []
        ended = [lease for lease in self.values() if lease.expires_at <= now]
        later = (lease.expires_at for lease in self.values() if lease.expires_at > now)
        self._first_end = min(later, default=math.inf) if not ended else now  # those found are there still
        return ended

    def add(self, lease: Lease) -> None:
        """A lease is given: the newest one, or one that takes over an open ask from somebody else."""
        earlier = self._by_ticket.get(lease.ticket)
        if earlier is not None:
            earlier.ended = PASSED_ON
            self._of_tokens[earlier.token] -= 1
            self._drop(self._by_worker, earlier.worker, lease.ticket)
            self._earlier.setdefault(lease.ticket, []).append(earlier)
        self._by_ticket[lease.ticket] = lease
        self._hold(lease)
        self._by_stream.setdefault(lease.stream, {})[lease.ticket] = lease
        self._of_tokens[lease.token] += 1
        self._first_end = min(self._first_end, lease.expires_at)

    def _hold(self, lease: Lease) -> None:
        held = self._by_worker.setdefault(lease.worker, {})
        in_order = not held or next(reversed(held)) < lease.ticket
        held[lease.ticket] = lease
        if not in_order:
            self._by_worker[lease.worker] = dict(sorted(held.items()))

    def renew(self, lease: Lease, worker: str, asked_at: float, expires_at: float, token: str | None) -> None:
        """A lease goes on, perhaps with somebody else."""
        is_open = lease.ticket in self._by_ticket
        moved = is_open and worker != lease.worker
        if is_open:
            self._of_tokens[lease.token] -= 1
            self._of_tokens[token] += 1
        if moved:
            self._drop(self._by_worker, lease.worker, lease.ticket)
        lease.worker, lease.asked_at, lease.expires_at, lease.token = worker, asked_at, expires_at, token
        if moved:
            self._hold(lease)
        self._first_end = min(self._first_end, expires_at)

    def pop(self, ticket: int) -> list[Lease]:
        """An ask ends: the lease that held it, and those that it was passed on from."""
        lease = self._by_ticket.pop(ticket)
        self._drop(self._by_worker, lease.worker, ticket)
        self._drop(self._by_stream, lease.stream, ticket)
        self._of_tokens[lease.token] -= 1
        return [lease, *self._earlier.pop(ticket, ())]

    def answer(self, ticket: int, key: str | None, worker: str | None) -> Lease:
        """An ask is answered: by the lease that was named, or that the worker holds; the others are taken."""
        holders = self.pop(ticket)
        named = [holder for holder in holders if holder.key == key] or [
            holder for holder in holders if holder.worker == worker
        ]
        answered = next(iter(named), holders[0])
        for holder in holders:
            if holder is not answered:
                holder.ended = TAKEN
                self._taken.setdefault((holder.worker, holder.stream), []).append(holder)
        return answered

    def came_too_late(self, lease: Lease, answer: str) -> None:
        """The result of a lease has come that somebody else had answered."""
        lease.answer, lease.named = answer, True
        late = self._taken.get((lease.worker, lease.stream), [])
        self._taken[lease.worker, lease.stream] = [other for other in late if other is not lease]

    @staticmethod
    def _drop(index: dict[str, dict[int, Lease]] | dict[int, dict[int, Lease]], key: str | int, ticket: int) -> None:
        kept = index[key]  # type: ignore[index]
        del kept[ticket]
        if not kept:
            del index[key]  # type: ignore[arg-type]


FAILED, EXPIRED, UNDONE, LATE = "failed", "expired", "undone", "late"
KINDS = (FAILED, EXPIRED, LATE, UNDONE)
"""Failed: somebody said so. Expired: it was given up when its time was over, or asked of somebody else too. Late: its
result came after that time, whether it had been given up or waited for. Undone: nobody measured. An ask that expired
and was answered later counts as both.
"""


class MissedAsk(NamedTuple):
    """Something that became of an ask; `seq` is the row that says so."""

    kind: str
    arm: int
    worker: str
    seq: int
