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

from coterie.campaign.groups import apply_change, next_id_after
from coterie.campaign.rows import Ask, Ending, Note, Row, Told
from coterie.campaign.settings import Settings
from coterie.problem.checks import FloatArray, IntArray
from coterie.session import Session
from coterie.session.replayed import ReplayError


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
        """Take in rows that somebody else wrote. `OtherRules` if that needs the whole log from its beginning."""
        recorded = read_facts(rows, self.settings.dim, self.session.next_ticket)
        try:
            if self.seq == 0:
                self._open(recorded)
            elif recorded.facts.kinds:
                follow(self.session, recorded.facts)
        except ReplayError as error:
            raise OtherRules(f"row {recorded.seqs[error.entry]}: {error.why}") from error
        if recorded.stopped and not self.session.done:
            raise OtherRules("the rows say that the groups are found, the session does not")
        given = iter(recorded.facts.values)
        for row in rows:
            self.record(row, next(given) if type(row) is Told else None)
        if recorded.outcome is not None:
            self.has_outcome = True

    def _open(self, recorded: RecordedRows) -> None:
        """The session as the whole log left it; only where the log ends before the stop is the method's rule needed."""
        rules = self.settings.engine if recorded.rules is None else recorded.rules
        bring_back(self.session, recorded.facts, rules, recorded.applied, recorded.outcome)
        if recorded.stopped and not self.session.done:
            # An older release has stopped here by rules that are not known any more, and did not record its claims.
            self.session = self.settings.session()
            close(self.session, recorded.facts, self._old_outcome(recorded))

    def _old_outcome(self, recorded: RecordedRows) -> dict[str, Any]:
        """What is known of a stop that was recorded without its claims: the groups, by the notes, and the results."""
        raise NotImplementedError

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
        found[self.session.counted] = True
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


_ready: set[str] = set()


def get_ready(settings: Settings) -> None:
    """Have the method's code compiled and loaded, once a process."""
    if settings.method not in _ready:
        session = Session(3, 2, 1, method=settings.method, distance_ratio=settings.distance_ratio)
        for value in (0.0, 4.0, 0.0):
            session.tell(session.ask(), value)
        _ = session.evidence
        _ready.add(settings.method)
