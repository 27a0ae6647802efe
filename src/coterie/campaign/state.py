"""What a campaign is at a point of its log: a session, leases, ids. A pure function of the settings and the rows.

Decisions (`coterie.campaign.decisions`) change the session first and record the row that they made; everybody else
reads the row and repeats it. Both end in the same state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.campaign.errors import Conflict
from coterie.campaign.groups import apply_change, next_id_after
from coterie.campaign.rows import Ask, Ending, Note, Row, Told
from coterie.campaign.settings import CampaignSettings as Settings
from coterie.campaign.settings import check_rules
from coterie.problem.checks import FloatArray, IntArray
from coterie.session import Session
from coterie.session.replayed import ASK, FORGET, TELL, UNASKED, ReplayError


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


@dataclass(slots=True)
class Worker:
    """What a worker has done so far."""

    told: int = 0
    last: float = 0.0


@dataclass
class State:
    """`seq` is that of the last row."""

    settings: Settings
    session: Session
    seq: int = 0
    leases: dict[str, Lease] = field(default_factory=dict)
    open: dict[int, Lease] = field(default_factory=dict)  # by ticket, oldest first
    results: list[tuple[int, FloatArray, str | None]] = field(default_factory=list)  # arm, values, lease as told
    ids: dict[str, int] = field(default_factory=dict)  # of measurements, to their place in `results`
    sums: dict[int, tuple[int, FloatArray]] = field(default_factory=dict)  # by arm: how many results, and their sum
    workers: dict[str, Worker] = field(default_factory=dict)
    groups: IntArray | None = None  # the id of each arm's group
    next_group: int = 1
    evidence_t: int = 0  # t at the last point of the evidence's history
    stopped_at: int | None = None  # seq of the note
    misfits: tuple[int, list[int]] = (-1, [])  # of results told after the stop, with the seq that they were found at

    @classmethod
    def new(cls, settings: Settings) -> State:
        """The state before the first row."""
        check_rules(settings)
        return cls(settings, settings.session())

    @property
    def done(self) -> bool:
        """Whether the session has stopped."""
        return self.session.done

    @cached_property
    def deviations(self) -> FloatArray:
        """The standard deviation of each number of a measurement."""
        return np.sqrt(np.diagonal(self.session.noise.covariance))

    def replay(self, rows: Sequence[Row]) -> None:
        """Repeat rows that somebody else wrote."""
        told = _numbers([row.values for row in rows if type(row) is Told], self.settings.dim)
        try:
            repeat(self.session, rows, told)
        except ValueError as error:
            raise Conflict(
                f"the log does not lead to its own asks ({error}): it was written with decision rules number "
                f"{self.settings.rules}, this release has number {check_rules(self.settings).rules}",
                code="other_engine",
            ) from error
        given = iter(told)
        for row in rows:
            self.record(row, next(given) if type(row) is Told else None)

    def record(self, row: Row, values: FloatArray | None = None) -> None:
        """Keep a row whose effect the session already has."""
        self.seq = row.seq
        if isinstance(row, Ask):
            self._asked(row)
        elif isinstance(row, Told):
            assert values is not None
            self._told(row, values)
        elif isinstance(row, Ending):
            lease = self.open.pop(row.ticket)
            lease.ended = row.kind
        else:
            self._noted(row)

    def _worker(self, name: str, at: float) -> Worker:
        worker = self.workers.get(name)
        if worker is None:
            worker = self.workers[name] = Worker()
        worker.last = at
        return worker

    def _asked(self, row: Ask) -> None:
        self._worker(row.worker, row.asked_at)
        lease = self.leases.get(row.lease)
        if lease is not None:
            lease.worker, lease.asked_at, lease.expires_at = row.worker, row.asked_at, row.expires_at
            return
        lease = Lease(row.lease, row.ticket, row.arm, row.worker, row.asked_at, row.expires_at)
        self.leases[row.lease] = self.open[row.ticket] = lease

    def _told(self, row: Told, values: FloatArray) -> None:
        place = len(self.results)
        self.results.append((row.arm, values, row.lease))
        self.ids[row.id] = place
        count, total = self.sums.get(row.arm, (0, 0.0))
        self.sums[row.arm] = (count + 1, total + values)
        if row.worker is not None:
            self._worker(row.worker, row.told_at).told += 1
        if row.ticket is not None:
            lease = self.open.pop(row.ticket)
            lease.answer, lease.named = row.id, row.lease is not None

    def counted_places(self) -> NDArray[np.bool_]:
        """Which results count: not those that wait for an earlier ask, nor those told after the stop."""
        found = np.zeros(len(self.results), dtype=bool)
        events = getattr(self.session._driver, "events", None)
        if events is None:  # results count as they arrive
            found[: self.session.t] = True
        else:
            found[[event["row"] for event in events if event["event"] == "result"]] = True
        return found

    def _noted(self, row: Note) -> None:
        if row.kind == "groups":
            change = row.data
            self.groups = apply_change(self.groups, change)
            self.next_group = next_id_after(self.next_group, change)
        elif row.kind == "evidence":
            self.evidence_t = int(row.data["t"])
        elif row.kind == "stopped":
            self.stopped_at = row.seq


def _numbers(texts: list[str], dim: int) -> FloatArray:
    """The values of many results: what json.loads makes of each, only faster."""
    text = ",".join(texts).replace("[", "").replace("]", "")
    return np.fromstring(text, sep=",").reshape(len(texts), dim)


def repeat(session: Session, rows: Sequence[Row], told: FloatArray) -> None:
    """Ask, tell and forget again as the rows say; `told` has the values of their results. ValueError if asks differ."""
    entries: list[tuple[int, int, int, int, int]] = []  # kind, arm, ticket, place in `told`, seq
    place, following = 0, session._next_ticket
    claims = session.done
    for row in rows:
        if isinstance(row, Told):
            entries.append((TELL, row.arm, UNASKED if row.ticket is None else row.ticket, place, row.seq))
            place += 1
        elif isinstance(row, Ask):
            if row.ticket == following:  # else a lease handed on: its place in the order of asks is an old one
                entries.append((ASK, row.arm, row.ticket, 0, row.seq))
                following += 1
        elif isinstance(row, Ending):
            entries.append((FORGET, -1, row.ticket, 0, row.seq))
        elif row.kind == "stopped":
            claims = True
            if row.data["by"] == "ask":  # it looked for an arm and found that there was nothing left to measure
                entries.append((ASK, -1, -1, 0, row.seq))
    if entries:
        kinds, arms, tickets, places, _ = np.array(entries, dtype=np.int64).T
        values = told[places] if place else np.zeros((len(entries), session.dim))
        try:
            session.replay(kinds, arms, tickets, values)
        except ReplayError as error:
            raise ValueError(f"row {entries[error.entry][-1]}: {error.why}") from None
    if claims and not session.done:
        raise ValueError("the rows say that the groups are found, the session does not")


_ready: set[str] = set()


def get_ready(settings: Settings) -> None:
    """Have the method's code compiled and loaded, once a process."""
    if settings.method not in _ready:
        session = Session(3, 2, 1, method=settings.method, distance_ratio=settings.run.distance_ratio)
        for value in (0.0, 4.0, 0.0):
            session.tell(session.ask(), value)
        _ = session.evidence
        _ready.add(settings.method)
