"""What a campaign is at a point of its log: a session, leases, ids. A pure function of the settings and the rows.

Commands (`coterie.campaign.commands`) change the session first and record the rows that this made, decisions of the
method included; everybody else reads the rows and applies them. Both end in the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.campaign.errors import Conflict
from coterie.campaign.facts import DECISIONS, RULES, RecordedRows, read_facts
from coterie.campaign.groups import apply_change, next_id_after
from coterie.campaign.settings import CampaignSettings
from coterie.problem.checks import FloatArray, IntArray
from coterie.session import Session
from coterie.session.conversation import TOLD
from coterie.session.records import ReplayError
from coterie.session.replaying import bring_back, close, follow
from coterie.store.rows import Ask, Ending, Note, Row, Told


class OtherRules(Exception):  # noqa: N818 (it is found out, not done wrong)
    """Rows that were added meanwhile were decided by other rules: the log has to be applied from its beginning."""


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
class Registry:
    """What grows with every lease and every result, and is only looked up."""

    leases: dict[str, Lease] = field(default_factory=dict)
    results: list[tuple[int, FloatArray, str | None]] = field(default_factory=list)  # arm, values, lease as told
    ids: dict[str, int] = field(default_factory=dict)  # of measurements, to their place in `results`
    sums: dict[int, tuple[int, FloatArray]] = field(default_factory=dict)  # by arm: how many results, and their sum


@dataclass
class State:
    """`seq` is that of the last row. `load_registry` makes the registry when it is first looked at."""

    settings: CampaignSettings
    session: Session
    load_registry: Callable[[], Registry] = Registry
    seq: int = 0
    open: dict[int, Lease] = field(default_factory=dict)  # by ticket, oldest first
    workers: dict[str, Worker] = field(default_factory=dict)
    groups: IntArray | None = None  # the id of each arm's group
    next_group: int = 1
    evidence_t: int = 0  # t at the last point of the evidence's history
    stopped_at: int | None = None  # seq of the note
    decisions: int = 0  # of the session's, how many are on record
    rules: int = 0  # the number of the rules that decided last
    applied: int = 0  # entries of the session's record that older rules decided, when that was last noted
    has_outcome: bool = False  # whether the stop is on record with what it claims
    misfits: tuple[int, list[int]] = (-1, [])  # of results told after the stop, with the seq that they were found at

    @cached_property
    def registry(self) -> Registry:
        """All leases and results."""
        return self.load_registry()

    @property
    def leases(self) -> dict[str, Lease]:
        """All leases, by key."""
        return self.registry.leases

    @property
    def results(self) -> list[tuple[int, FloatArray, str | None]]:
        """All results, in the order in which they were told: arm, values, and the lease as it was told."""
        return self.registry.results

    @property
    def ids(self) -> dict[str, int]:
        """The ids of measurements, and the place of each in `results`."""
        return self.registry.ids

    @property
    def sums(self) -> dict[int, tuple[int, FloatArray]]:
        """Of each arm that was measured: how many results, and their sum."""
        return self.registry.sums

    @property
    def n_results(self) -> int:
        """How many results were told."""
        return self.session.n_measurements

    @classmethod
    def new(cls, settings: CampaignSettings) -> State:
        """The state before the first row."""
        return cls(settings, Session.asleep(settings.run), rules=settings.rules)

    @property
    def done(self) -> bool:
        """Whether the session has stopped."""
        return self.session.done

    @cached_property
    def deviations(self) -> FloatArray:
        """The standard deviation of each number of a measurement."""
        return np.sqrt(np.diagonal(self.session.noise.covariance))

    # Rows that somebody else wrote.

    def begin(self, rows: Sequence[Row]) -> None:
        """Apply the whole log. Where it ends with a stop, no rule is asked for anything."""
        recorded = read_facts(rows, self.settings.dim, 0)
        rules = self.settings.rules if recorded.rules is None else recorded.rules
        if recorded.outcome is not None:
            close(self.session, recorded.facts, recorded.outcome)
        else:
            self.session = Session.of(self.settings.run)
            if rules > self.session.rules:
                raise Conflict(
                    f"rules number {rules} of method {self.settings.method!r} decided rows of this campaign, this "
                    f"release has number {self.session.rules}: open it with the later release",
                    code="newer_rules",
                )
            try:
                bring_back(self.session, recorded.facts, rules, recorded.applied)
            except ReplayError as error:
                raise _unreadable(f"row {recorded.seqs[error.entry]}: {error.why}") from error
            if recorded.stopped and not self.session.done:
                self.session = Session.asleep(self.settings.run)
                close(self.session, recorded.facts, _old_outcome(self.session, recorded))
        self._record_all(rows, recorded)

    def catch_up(self, rows: Sequence[Row]) -> None:
        """Apply rows that were added since; `OtherRules` if that needs the whole log."""
        recorded = read_facts(rows, self.settings.dim, self.session.next_ticket)
        if recorded.rules is not None and recorded.rules != self.session.rules:
            raise OtherRules(f"rules number {recorded.rules} decided rows of this campaign")
        try:
            follow(self.session, recorded.facts)
        except ReplayError as error:
            raise OtherRules(f"row {recorded.seqs[error.entry]}: {error.why}") from error
        if recorded.stopped and not self.session.done:
            raise OtherRules("the rows say that the groups are found, the session does not")
        self._record_all(rows, recorded)

    def _record_all(self, rows: Sequence[Row], recorded: RecordedRows) -> None:
        given = iter(recorded.facts.values)
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
        found = np.zeros(self.n_results, dtype=bool)
        found[self.session.counted] = True
        return found

    def _noted(self, row: Note) -> None:
        if row.kind == "groups":
            change = row.data
            self.groups = apply_change(self.groups, change)
            self.next_group = next_id_after(self.next_group, change)
        elif row.kind == "evidence":
            self.evidence_t = int(row.data["t"])
        elif row.kind in DECISIONS:
            self.decisions += 1
        elif row.kind == RULES:
            self.rules, self.applied = int(row.data["number"]), self.session.applied
        elif row.kind == "stopped":
            self.stopped_at = row.seq
            self.has_outcome = "outcome" in row.data
        elif row.kind == "outcome":
            self.has_outcome = True


def _unreadable(why: str) -> Conflict:
    return Conflict(
        f"the log cannot be applied ({why}): restore a backup of the store; `coterie campaign export` of an older "
        "backup gives all measurements",
        code="damaged_log",
    )


def _old_outcome(session: Session, recorded: RecordedRows) -> dict[str, Any]:
    """What is known of a stop that an older release recorded without its claims, by rules that are not known here.

    The groups are those of its notes, centers the means of its results; there is no certificate.
    """
    assert recorded.stop is not None
    groups: IntArray | None = None
    for change in recorded.group_changes:
        groups = apply_change(groups, change)
    assert groups is not None
    facts = recorded.facts
    arms = np.array([arm for kind, arm in zip(facts.kinds, facts.arms, strict=True) if kind == TOLD], dtype=np.int64)
    labels = np.unique(groups, return_inverse=True)[1]
    white = session.noise.whiten(facts.values)
    counts = np.bincount(labels[arms], minlength=session.n_clusters)
    centers = np.zeros((session.n_clusters, session.dim))
    np.add.at(centers, labels[arms], white)
    t = int(recorded.stop["t"])
    return {
        "t": t,
        "labels": labels.tolist(),
        "centers": (centers / np.maximum(counts, 1)[:, None]).tolist(),
        "pulls": np.bincount(arms[:t], minlength=session.n_arms).tolist(),
        "evidence": {"statistic": None, "threshold": None, "weakest": None} | recorded.evidence,
        "alarm": None,
        "certificate": None,
        "partial": None,
    }
