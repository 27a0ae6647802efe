"""Leases, and those of them that are open: found by ticket, by worker and by arm, however many there are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, ValuesView
from dataclasses import dataclass


@dataclass(slots=True)
class Lease:
    """An ask that a worker holds. `answer`: the measurement that took its place; `ended`: how else it ended."""

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


class OpenLeases:
    """The open leases, oldest first. Writing to a campaign must not look at all of them: there may be thousands."""

    def __init__(self, leases: Iterable[Lease] = ()) -> None:
        self._by_ticket: dict[int, Lease] = {}
        self._by_worker: dict[str, dict[int, Lease]] = {}
        self._by_arm: dict[int, dict[int, Lease]] = {}
        self._of_tokens: Counter[str | None] = Counter()
        self._first_end = math.inf  # none of them is over before
        for lease in leases:
            self.add(lease)

    def __len__(self) -> int:
        return len(self._by_ticket)

    def __contains__(self, ticket: object) -> bool:
        return ticket in self._by_ticket

    def values(self) -> ValuesView[Lease]:
        """All of them, oldest first."""
        return self._by_ticket.values()

    def of_worker(self, worker: str) -> Iterable[Lease]:
        """Those that a worker holds, oldest first."""
        return self._by_worker.get(worker, {}).values()

    def of_arm(self, arm: int) -> Iterable[Lease]:
        """Those of an arm, oldest first."""
        return self._by_arm.get(arm, {}).values()

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
        found = [lease for lease in self.values() if lease.expires_at <= now]
        later = (lease.expires_at for lease in self.values() if lease.expires_at > now)
        self._first_end = min(later, default=math.inf) if not found else now  # those found are there still
        return found

    def add(self, lease: Lease) -> None:
        """A lease is given: the newest one."""
        self._by_ticket[lease.ticket] = lease
        self._by_worker.setdefault(lease.worker, {})[lease.ticket] = lease
        self._by_arm.setdefault(lease.arm, {})[lease.ticket] = lease
        self._of_tokens[lease.token] += 1
        self._first_end = min(self._first_end, lease.expires_at)

    def renew(self, lease: Lease, worker: str, asked_at: float, expires_at: float, token: str | None) -> None:
        """A lease goes on, perhaps with somebody else."""
        if lease.ticket in self._by_ticket:
            self._of_tokens[lease.token] -= 1
            self._of_tokens[token] += 1
        if lease.ticket in self._by_ticket and worker != lease.worker:
            self._drop(self._by_worker, lease.worker, lease.ticket)
            its = self._by_worker.setdefault(worker, {})
            its[lease.ticket] = lease
            self._by_worker[worker] = dict(sorted(its.items()))
        lease.worker, lease.asked_at, lease.expires_at, lease.token = worker, asked_at, expires_at, token
        self._first_end = min(self._first_end, expires_at)

    def pop(self, ticket: int) -> Lease:
        """A lease ends."""
        lease = self._by_ticket.pop(ticket)
        self._drop(self._by_worker, lease.worker, ticket)
        self._drop(self._by_arm, lease.arm, ticket)
        self._of_tokens[lease.token] -= 1
        return lease

    @staticmethod
    def _drop(index: dict[str, dict[int, Lease]] | dict[int, dict[int, Lease]], key: str | int, ticket: int) -> None:
        its = index[key]  # type: ignore[index]
        del its[ticket]
        if not its:
            del index[key]  # type: ignore[arg-type]
