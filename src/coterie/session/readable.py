"""What can be read of a session at any moment: its groups, its evidence, its log, and what they prove."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from coterie.certificate import Certificate
from coterie.methods.contract import Method
from coterie.methods.reports import Evidence, Partial
from coterie.methods.table import certifying_methods
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical
from coterie.problem.question import ExactGroups
from coterie.session import verdicts
from coterie.session.data_alarms import AlarmCache, DataAlarm
from coterie.session.failed_asks import failed_in_words
from coterie.session.finished import outcome_of
from coterie.session.foreseen import Foreseen
from coterie.session.html import session_html
from coterie.session.measurements import Measurements
from coterie.session.partial import partial_of
from coterie.session.remarks import Alarm, Homogeneity

if TYPE_CHECKING:
    from coterie.session.session import Session


class Readable(Foreseen):
    """What a session knows, in the words and the units of who reads it."""

    _method: Method
    _measurements: Measurements
    _last_named: tuple[IntArray, IntArray, IntArray] | None  # as the method has them, and as they are shown
    _stopped: tuple[IntArray, FloatArray] | None
    _homogeneity: tuple[int | None, Homogeneity] | None  # with the moment that it is of
    _alarms: AlarmCache

    @property
    def certifies(self) -> bool:
        """Whether the method has certificates."""
        return self._method.certifies

    @property
    def proves(self) -> bool:
        """Whether the method's stop is a proof."""
        return self._method.proves(self.threshold)

    @property
    def applied(self) -> int:
        """How many of its asks, results and given-up asks were decided by other rules than this release has."""
        return self._conversation.applied.entries

    @property
    def rules(self) -> int:
        """The number of the method's decision rules in this release."""
        return self._method.rules

    @property
    def verdict(self) -> str:
        """What it means that the session is done, in a clause."""
        return verdicts.verdict_of(cast("Session", self))

    @property
    def done(self) -> bool:
        """Whether the groups are proven, or the evidence has reached the heuristic threshold.

        Never taken back, but by the correction of a result (`correct`).
        """
        return self._stopped is not None

    @property
    def proven(self) -> bool:
        """Whether the groups are proven. Only with `confirm` it differs from `done`, which then comes later."""
        return self.done or self._conversation.run.proven

    @property
    def confirmed(self) -> tuple[int, int] | None:
        """How many measurements counted after the proof, and how many are to; None without `confirm`, and before."""
        return self._conversation.run.confirmed

    @property
    def t(self) -> int:
        """Measurements that counted: all of them, or those up to the stop."""
        return self._conversation.run.t

    @property
    def pulls(self) -> IntArray:
        """Measurements of each arm that counted."""
        return self._conversation.run.pulls

    @property
    def pending(self) -> list[tuple[int, int]]:
        """Open asks as (ticket, arm), oldest first."""
        return [(ticket.number, ticket.arm) for ticket in self._conversation.tickets()]

    @property
    def next_ticket(self) -> int:
        """The number that the next ask will have."""
        return self._conversation.next_ticket

    @property
    def labels(self) -> IntArray | None:
        """The groups, numbered by first appearance: proven or the current guess; None before there is one."""
        found = self._stopped or self._named()
        return None if found is None else found[0].copy()

    @property
    def centers(self) -> FloatArray | None:
        """The groups' centers in the units of the measurements, in the order of `labels`."""
        found = self._stopped or self._named()
        return None if found is None else found[1].copy()

    @property
    def groups_now(self) -> IntArray | None:
        """As `labels`, not to be changed; the same array as long as the groups are the same."""
        found = self._stopped or self._named()
        return None if found is None else found[0]

    @property
    def memory_bytes(self) -> int:
        """About how many bytes the method would have to be brought back with; 0 if they are few, or once `done`."""
        return 0 if self.done else self._conversation.run.memory_bytes

    def _named(self) -> tuple[IntArray, FloatArray] | None:
        guess = self._conversation.run.guess
        if guess is None:
            return None
        labels, centers = guess
        if self._last_named is None or not np.array_equal(self._last_named[0], labels):
            named = np.full_like(labels, -1)
            named[labels >= 0] = canonical(labels[labels >= 0])  # retired items have no group
            named.flags.writeable = False  # `groups_now` hands it out
            self._last_named = labels.copy(), named, self._order(labels)
        _, named, order = self._last_named
        return named, self.noise.color(centers[order])

    @property
    def evidence(self) -> Evidence:
        """What the stopping rule read at the last measurement."""
        now = self._conversation.run.evidence()
        if now.weakest is None or self._named() is None:
            return now
        assert self._last_named is not None
        group = int(np.argmax(self._last_named[2] == now.weakest.group))
        return replace(now, weakest=replace(now.weakest, group=group))

    @property
    def homogeneity(self) -> Homogeneity | None:
        """Once `proven`, whether each group looks like one, by the results that counted; None before.

        The proof is for exactly n_clusters groups and the noise as stated; this is a test of them, at 1 %, for every
        noise. It assumes that delays of results do not depend on their values. None where items of a group need not be
        equal: for a resolution, and for single linkage. With `confirm` it also says, once `done`, which difference
        inside a group would have been seen.
        """
        if not self.proven or not isinstance(self.settings.question, ExactGroups):
            return None
        now = None if self.done else self.t  # with `confirm`, results go on to count after the proof
        if self._homogeneity is None or self._homogeneity[0] != now:
            self._homogeneity = now, verdicts.homogeneity_of(cast("Session", self))
        return self._homogeneity[1]

    @property
    def log(self) -> list[tuple[int, FloatArray]]:
        """All measurements told, as (arm, values), in the order in which they were told."""
        return [(arm, x.copy()) for arm, x in zip(self._measurements.arms, self._measurements.values, strict=True)]

    @property
    def log_arrays(self) -> Measurements:
        """All measurements told; not to be changed."""
        return self._measurements

    @property
    def n_measurements(self) -> int:
        """How many measurements were told."""
        return len(self._measurements)

    @property
    def counted(self) -> IntArray:
        """Places in `log` of the measurements that counted, in the order in which they did."""
        return self._conversation.counted

    @property
    def waiting(self) -> int:
        """Results told that wait for an earlier ask of their arm to be answered (CROC counts in ask order)."""
        return self._conversation.waiting

    # What a method with certificates adds.

    def _need_certificates(self, what: str) -> None:
        if not self._method.certifies:
            raise ValueError(f"only method {certifying_methods()} has {what}, this session uses {self.method!r}")

    @property
    def certificate(self) -> Certificate | None:
        """The proof as plain JSON once `proven`, else None; `certificate.verify(events)` re-checks it."""
        self._need_certificates("a certificate")
        if not self.proven:
            return None
        found = self._conversation.run.certificate(self.decisions)
        return None if found is None else Certificate(found | verdicts.beside_certificate(cast("Session", self), found))

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """What the method has decided beside its asks: CROC's freezes, rounds and alarm."""
        return [decision for _, decision in self._conversation.decisions]

    @property
    def dated_decisions(self) -> list[tuple[int, dict[str, Any]]]:
        """What the method has decided beside its asks, each with the number of results that had counted before it."""
        return self._conversation.decisions

    @property
    def outcome(self) -> dict[str, Any] | None:
        """Once `done`, what a later release needs to show and export the result; plain JSON."""
        if not self.done:
            return None
        return outcome_of(self._conversation.run, self._method, self.decisions)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The measurement log as CROC counts it: results in ask order of each arm, freezes, rounds."""
        self._need_certificates("events")
        return verdicts.events_of(cast("Session", self))

    @property
    def alarm(self) -> Alarm | None:
        """There are more groups than n_clusters: so many items and one are pairwise known to differ (CROC only).

        None for a resolution, and for single linkage: they hold whatever the means are.

        It ends nothing: `ask` goes on for the K that was given. It is raised with probability at most 0.2·delta if K
        and the noise are right, and never taken back.
        """
        return verdicts.alarm_of(cast("Session", self))

    @property
    def alarms(self) -> tuple[DataAlarm, ...]:
        """What speaks against the way in which the data were made: the stated noise, drift, failures, late results.

        Each is raised for nothing with probability at most 1 %, however often somebody looks. They stop nothing.
        """
        return self._alarms.of(cast("Session", self))

    def partial(self) -> Partial:
        """What is proven at this moment: which items are apart, which alike, which groups each may belong to.

        Computed from the log when it is asked for, all pairs at once: for every question and noise, before the first
        guess, after the proof and after an alarm (methods with certificates only).
        """
        self._need_certificates("partial results")
        return partial_of(cast("Session", self))

    def __repr__(self) -> str:
        what = f"{self.n_arms} arms in {self.settings.question.words}, dim={self.dim}, delta={self.delta:g}"
        progress = verdicts.progress_of(cast("Session", self))
        head = f"Session {what}, {self.method}: {self.t} measurements, {progress}"
        head += failed_in_words(cast("Session", self))
        return verdicts.described(head, self.alarm, self.homogeneity, self.alarms)

    def _repr_html_(self) -> str:
        return session_html(cast("Session", self))
