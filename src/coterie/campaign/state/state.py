"""What a campaign is at a point of its log: a session, leases, ids. A pure function of the settings and the rows.

Commands (`coterie.campaign.commands`) change the session first and record the rows that this made, decisions of the
method included; everybody else reads the rows and applies them. Both end in the same state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.campaign.errors import Conflict
from coterie.campaign.settings import CampaignSettings
from coterie.campaign.state.facts import (
    ARCHIVED,
    BLOCK,
    CORRECTION,
    DEADLINE,
    DECISIONS,
    LEASE_TIME,
    REVISION,
    RULES,
    SURPLUS,
    UNARCHIVED,
    NewestRows,
    RecordedRows,
    apply_change,
    next_id_after,
    padded,
    read_facts,
)
from coterie.campaign.state.leases import EXPIRED, LATE, PASSED_ON, UNDONE, Lease, MissedAsk, OpenLeases
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.noise import Noise
from coterie.session import Session
from coterie.session.corrections import ALARM
from coterie.session.facts import ReplayError
from coterie.session.remarks import FarValue
from coterie.session.replaying import bring_back, close, follow
from coterie.store.rows import Ask, Ending, Note, Row, Told

_NEWEST = 500  # results by which the usual spread of repeats is judged
DAY = 86400.0
ANSWERS_KEPT = 201  # newest answers by whose times the usual one is judged
_FEWEST_REPEATS, _ENOUGH_REPEATS = 3, 12  # below the first it is not; below the second only with a margin


class OtherRules(Exception):  # noqa: N818 (it is found out, not done wrong)
    """Rows added meanwhile were decided by other rules, or correct a value: apply the log from its beginning."""


@dataclass(slots=True)
class Worker:
    """What a worker has done so far."""

    told: int = 0
    last: float = 0.0
    asked: int = 0


@dataclass
class Registry:
    """What grows with every lease and every result, and is only looked up."""

    leases: dict[str, Lease] = field(default_factory=dict)
    results: list[tuple[int, FloatArray, str | None]] = field(default_factory=list)  # arm, values, lease as told
    ids: dict[str, int] = field(default_factory=dict)  # of measurements, to their place in `results`
    sums: dict[int, tuple[int, FloatArray]] = field(default_factory=dict)  # by arm: how many results, and their sum
    tokens: dict[int, str] = field(default_factory=dict)  # of results that were told with one, by their place


@dataclass
class State:
    """`seq` is that of the last row. `load_registry` makes the registry when it is first looked at."""

    settings: CampaignSettings
    session: Session
    load_registry: Callable[[], Registry] = Registry
    seq: int = 0
    open: OpenLeases = field(default_factory=OpenLeases)
    workers: dict[str, Worker] = field(default_factory=dict)
    groups: IntArray | None = None  # the id of each arm's group
    next_group: int = 1
    evidence_t: int = 0  # t at the last point of the evidence's history
    stopped_at: int | None = None  # seq of the note
    steps: int = 0  # of those with blocks, how many are on record
    decisions: int = 0  # of the session's, how many are on record
    rules: int = 0  # the number of the rules that decided last
    applied: int = 0  # entries of the session's record that older rules decided, when that was last noted
    usual_spread: tuple[int, FloatArray | None] = (0, None)  # of repeats, with the number of results it was found at
    spread_margin: float = 1.0  # how much more than usual is far off: few repeats may agree by chance
    computed: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # by views, each with its key
    missed: list[MissedAsk] = field(default_factory=list)  # asks without a result, or with one that was late
    passed_on: int = 0  # how often an ask was asked of somebody else too
    days: list[tuple[int, int]] = field(default_factory=list)  # of results: the first of each day, and the day (UTC)
    answer_times: deque[float] = field(default_factory=lambda: deque(maxlen=ANSWERS_KEPT))  # seconds, newest last
    surplus: dict[str, list[Any]] = field(default_factory=dict)  # results that do not count: id to arm, values, lease
    archived: float | None = None  # since when
    lease_seconds: float = 0.0  # how long a worker may take, from the next ask on
    misfits: tuple[int, list[int]] = (-1, [])  # of results told after the stop, with the seq that they were found at
    late_value: tuple[int, FarValue | None] = (-1, None)  # the farthest of those results, if it is far, with that seq
    corrections: list[dict[str, Any]] = field(default_factory=list)  # their notes, each with its seq and time
    alarms_noted: int = 0  # among the decisions on record, since the last correction
    newest: NewestRows = field(default_factory=NewestRows)
    recent: tuple[Any, list[dict[str, Any]]] | None = None  # the last events, as a page shows them
    outcome_length: int = 0  # characters of the note of the stop
    compared: tuple[Any, Any] = (None, None)  # labels of the session and `groups` that were found to agree

    def __post_init__(self) -> None:
        self.lease_seconds = self.lease_seconds or self.settings.lease_seconds

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

    def told_of(self, item: int) -> int:
        """How many results an item has."""
        panels = range(self.settings.n_panels)
        first = item * len(panels)
        if len(panels) > len(self.sums):
            return sum(count for arm, (count, _) in self.sums.items() if self.settings.item_of(arm) == item)
        return sum(self.sums[first + panel][0] for panel in panels if first + panel in self.sums)

    @property
    def n_results(self) -> int:
        """How many results were told."""
        return self.session.n_measurements

    @classmethod
    def of(cls, settings: CampaignSettings, rows: Sequence[Row]) -> State:
        """The state after these rows, the whole log. Where it ends with a stop, no rule is asked for anything."""
        recorded = read_facts(rows, settings.width, 0)
        state = cls(settings, _session_of(settings, recorded), rules=settings.rules)
        state.session.corrections = recorded.corrections
        state._record_all(rows, recorded)
        return state

    @property
    def done(self) -> bool:
        """Whether the session has stopped."""
        return self.session.done

    @cached_property
    def stated_deviations(self) -> FloatArray | None:
        """The standard deviation of each number of a measurement; None where it is not known."""
        noise = self.session.noise
        return noise.deviations if isinstance(noise, Noise) else None

    @property
    def deviations(self) -> FloatArray | None:
        """The standard deviation of each number of a measurement: as stated, or as repeats have varied so far.

        None as long as there are few repeats. It is for remarks to people, not for proofs.
        """
        if self.stated_deviations is not None or self.settings.run.features is not None:
            return self.stated_deviations
        if self.n_results >= 1.25 * self.usual_spread[0]:
            self.usual_spread = (self.n_results, self._usual_spread())
        return self.usual_spread[1]

    def _usual_spread(self) -> FloatArray | None:
        """The standard deviation of Gaussian repeats that differ as these do in the median, by the newest results."""
        log = self.session.log_arrays
        last: dict[int, FloatArray] = {}
        steps = []
        for arm, values in zip(log.arms[-_NEWEST:], log.values[-_NEWEST:], strict=True):
            if arm in last:
                steps.append(np.abs(values - last[arm]))
            last[arm] = values
        if len(steps) < _FEWEST_REPEATS:
            return None
        self.spread_margin = max(1.0, _ENOUGH_REPEATS / len(steps))
        spread = np.median(np.array(steps), axis=0) / (0.6745 * np.sqrt(2.0))
        return np.where(spread > 0.0, spread, np.inf)  # repeats that agree in most cases say nothing about the others

    # Rows that somebody else wrote.

    def catch_up(self, rows: Sequence[Row]) -> None:
        """Apply rows that were added since; `OtherRules` if that needs the whole log."""
        recorded = read_facts(rows, self.settings.width, self.session.next_ticket)
        if recorded.corrections:
            raise OtherRules("a value was corrected")
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
        self.newest.add(row)
        if isinstance(row, Ask):
            self._asked(row)
        elif isinstance(row, Told):
            assert values is not None
            self._told(row, values)
        elif isinstance(row, Ending):
            lease, *earlier = self.open.pop(row.ticket)
            for held in (lease, *earlier):
                held.ended = row.kind
            self.missed.append(MissedAsk(row.kind, lease.arm, lease.worker, row.seq))
            if row.kind == UNDONE:
                self.session.mark_undone(row.ticket)
        else:
            self._noted(row)

    def _worker(self, name: str, at: float) -> Worker:
        worker = self.workers.get(name)
        if worker is None:
            worker = self.workers[name] = Worker()
        worker.last = at
        return worker

    def _asked(self, row: Ask) -> None:
        worker = self._worker(row.worker, row.asked_at)
        lease = self.leases.get(row.lease)
        if lease is not None:
            self.open.renew(lease, row.worker, row.asked_at, row.expires_at, row.token)
            return
        worker.asked += 1
        if row.ticket in self.open:  # asked of somebody else too
            earlier = self.open[row.ticket]
            self.passed_on += 1
            self.missed.append(MissedAsk(EXPIRED, earlier.arm, earlier.worker, row.seq))
        item = self.settings.item_of(row.arm)
        times = row.asked_at, row.expires_at
        lease = Lease(row.lease, row.ticket, item, row.worker, *times, token=row.token, stream=row.arm)
        self.leases[row.lease] = lease
        self.open.add(lease)

    def _told(self, row: Told, values: FloatArray) -> None:
        place = len(self.results)
        self.results.append((row.arm, values, row.lease))
        self.ids[row.id] = place
        day = int(row.told_at // DAY)
        if not self.days or self.days[-1][1] != day:
            self.days.append((place, day))
        if row.token is not None:
            self.registry.tokens[place] = row.token
        count, total = self.sums.get(row.arm, (0, 0.0))
        self.sums[row.arm] = (count + 1, total + values)
        if row.worker is not None:
            self._worker(row.worker, row.told_at).told += 1
        if row.ticket is not None:
            lease = self.open.answer(row.ticket, row.lease, row.worker)
            late = lease.ended == PASSED_ON or row.told_at >= lease.expires_at
            lease.answer, lease.named, lease.ended = row.id, row.lease is not None, None
            self.answer_times.append(row.told_at - lease.asked_at)
            if late:
                self.missed.append(MissedAsk(LATE, lease.arm, lease.worker, row.seq))
        elif row.lease is not None and (lease := self.leases[row.lease]).ended == EXPIRED:
            self.missed.append(MissedAsk(LATE, lease.arm, lease.worker, row.seq))

    def counted_places(self) -> NDArray[np.bool_]:
        """Which results count: not those that wait for an earlier ask, nor those told after the stop."""
        counts = np.zeros(self.n_results, dtype=bool)
        counts[self.session.counted] = True
        return counts

    def _noted(self, row: Note) -> None:
        if row.kind == "groups":
            change = row.data
            self.groups = apply_change(self.groups, change)
            self.next_group = next_id_after(self.next_group, change)
        elif row.kind == "evidence":
            self.evidence_t = int(self.newest.points[-1]["t"])
        elif row.kind in DECISIONS:
            self.decisions += 1
            self.alarms_noted += row.kind == ALARM
            if row.kind == REVISION:
                self._revised(row.data)
        elif row.kind == BLOCK:
            self.steps += 1
        elif row.kind == DEADLINE:
            self.steps += 1
            self.settings = self.settings.as_revised(self.session.settings)
        elif row.kind == CORRECTION:
            self._corrected(row)
        elif row.kind == RULES:
            self.rules, self.applied = int(row.data["number"]), self.session.applied
        elif row.kind == "stopped":
            self.stopped_at = row.seq
            self.outcome_length = len(row.content)
        else:
            self._noted_of_the_whole(row)

    def _noted_of_the_whole(self, row: Note) -> None:
        """What was decided about the campaign as a whole."""
        if row.kind in (ARCHIVED, UNARCHIVED):
            self.archived = row.at if row.kind == ARCHIVED else None
        elif row.kind == LEASE_TIME:
            self.lease_seconds = float(row.data["seconds"])
        elif row.kind == SURPLUS:
            self._came_too_late(row)

    def _came_too_late(self, row: Note) -> None:
        """A result is kept that does not count."""
        told = row.data
        lease = self.leases[told["lease"]]
        self.open.came_too_late(lease, told["id"])
        self.surplus[told["id"]] = [lease.stream, told["values"], lease.key]
        self.missed.append(MissedAsk(LATE, lease.arm, lease.worker, row.seq))

    def _corrected(self, row: Note) -> None:
        """The values of a result are other ones; what is known of the stop is noted again, if it stands."""
        note = row.data | {"seq": row.seq, "at": row.at}
        self.corrections.append(note)
        place = int(note["row"])
        arm = self.results[place][0]
        self.results[place] = (arm, padded(note["new"], self.settings.width), self.results[place][2])
        own = np.array([values for measured, values, _ in self.results if measured == arm])
        self.sums[arm] = (len(own), np.cumsum(own, axis=0)[-1])  # one after the other, as they were told
        self.decisions, self.alarms_noted = self.decisions - self.alarms_noted, 0
        self.applied = self.session.applied
        self.stopped_at, self.outcome_length = None, 0
        self.usual_spread, self.computed = (0, None), {}

    def _revised(self, revision: dict[str, Any]) -> None:
        """Items have joined or left, or the groups are looked for anew: the stop, if there was one, is followed up."""
        self.settings = self.settings.as_revised(self.session.settings)
        self.stopped_at, self.outcome_length = None, 0
        if self.groups is not None:
            self.groups = np.concatenate([self.groups, np.zeros(int(revision["added"]), dtype=np.int64)])
            self.groups[list(revision["retired"])] = 0  # no group


def _session_of(settings: CampaignSettings, recorded: RecordedRows) -> Session:
    """The session that a log leads to: shown from its record if it has stopped, else brought back to go on."""
    if recorded.outcome is not None:
        session = Session.unstarted(settings.run)
        close(session, recorded.facts, recorded.outcome)
        return session
    session = Session.of(settings.run)
    rules = settings.rules if recorded.rules is None else recorded.rules
    if rules > session.rules:
        raise Conflict(
            f"rules number {rules} of method {settings.method!r} decided rows of this campaign, this release has "
            f"number {session.rules}: open it with the later release",
            code="newer_rules",
        )
    if recorded.stopped:  # a record without its claims: followed, as today's rules ask for the same
        rules = session.rules
    try:
        bring_back(session, recorded.facts, rules, recorded.applied)
    except ReplayError as error:
        raise _unreadable(f"row {recorded.seqs[error.entry]}: {error.why}") from error
    if recorded.stopped and not session.done:
        raise _unreadable("it says that the groups are found, and its rows do not")
    return session


def _unreadable(why: str) -> Conflict:
    return Conflict(
        f"the log cannot be applied ({why}): restore a backup of the store; `coterie campaign export` of an older "
        "backup gives all measurements",
        code="damaged_log",
    )
