"""`Session`: ask which arm to measure, tell what came out.

A session is its settings and its log of measurements; everything else follows from them by replay, so a session that
was saved and loaded goes on exactly as if it had never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_arm,
    check_count,
    check_delta,
    check_distance_ratio,
    check_far,
    check_measurement,
    check_real_array,
    check_shape,
    check_spread,
    check_threshold_kind,
    short,
)
from coterie.problem.instance import Instance
from coterie.problem.noise import Noise
from coterie.problem.partition import canonical
from coterie.rules.methods import Method, method_named
from coterie.session import replayed as replaying
from coterie.session import saved as saving
from coterie.session import verdicts
from coterie.session.croc import CrocDriver
from coterie.session.drivers import Driver, PaperDriver
from coterie.session.evidence import Alarm, Evidence, Homogeneity, Partial


class SessionDone(RuntimeError):  # noqa: N818 (it is a state, not a mistake)
    """Raised by `ask` once the groups are proven: there is nothing left to measure."""


class Session:
    """Ask which arm to measure, tell what came out, until `done`.

    `n_arms` items (arms) in `n_clusters` groups, `dim` numbers a measurement; the groups found are wrong with
    probability at most `delta`. `noise`: None for unit noise, a standard deviation, d of them, or a covariance;
    centers are reported in the units of the measurements. `names` (M strings) lets arms be told by name. `method`:
    see `coterie.rules.METHODS`; "boc-linear" needs `distance_ratio`, "oracle" needs `instance`. `threshold`, for all
    but CROC: "proven" or "heuristic" (no proof).
    """

    def __init__(
        self,
        n_arms: int,
        n_clusters: int,
        dim: int,
        delta: float = 0.05,
        method: str = "croc",
        threshold: str = "proven",
        noise: Any = None,
        distance_ratio: float | None = None,
        instance: Instance | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.n_arms, self.n_clusters, self.dim = check_shape(n_arms, n_clusters, dim)
        self.delta = check_delta(delta)
        self._method: Method = method_named(method)
        self.threshold = check_threshold_kind(threshold)
        self.noise = Noise.of(noise, self.dim)
        self.distance_ratio = check_distance_ratio(distance_ratio) if self._method.needs_ratio else None
        self.instance = self._check_instance(instance)
        self.names = None if names is None else _check_names(names, self.n_arms)
        self._index = {} if self.names is None else {name: arm for arm, name in enumerate(self.names)}
        self._driver = self._new_driver()
        self._arms: list[int] = []
        self._firsts: dict[int, FloatArray] = {}  # the first result told of each arm, in units of the noise
        self._tickets: list[int | None] = []
        self._values: list[FloatArray] = []
        self._pending: dict[int, int] = {}
        self._next_ticket = 0
        self._stopped: tuple[IntArray, FloatArray] | None = None
        self._homogeneity: Homogeneity | None = None

    def _check_instance(self, instance: Instance | None) -> Instance | None:
        if not self._method.needs_instance:
            return None
        if not isinstance(instance, Instance):
            raise ValueError(f"method {self.method!r} needs the true instance, got {short(instance)}")
        if (instance.n_arms, instance.n_clusters, instance.dim) != (self.n_arms, self.n_clusters, self.dim):
            raise ValueError(
                f"the instance has {instance.n_arms} arms, {instance.n_clusters} clusters and dimension "
                f"{instance.dim}, the session {self.n_arms}, {self.n_clusters} and {self.dim}"
            )
        return instance

    def _new_driver(self) -> Driver:
        shape = (self.n_arms, self.n_clusters, self.dim)
        if self._method.certifies:
            return CrocDriver(shape, -math.log(self.delta))
        white = None
        if self.instance is not None:  # the oracle knows the true allocation in the units that the engine works in
            white = Instance(self.instance.labels, self.noise.whiten(self.instance.centers))
        level = -math.log(self.delta)
        return PaperDriver(shape, self._method.sampling, level, self.threshold, self.distance_ratio, white)

    # What to measure, and what came out.

    def ask(self, n: int | None = None) -> Any:
        """The next arm to measure, or a list of n of them; measurements still under way are counted as done.

        Never-measured arms come first, in index order. Each ask opens a ticket (see `pending`). Raises
        `SessionDone` once the groups are proven; if that is found on the way, the list is shorter.
        """
        arms = self._open(1 if n is None else check_count(n, "n", 1))
        if not arms:
            raise SessionDone(
                f"{self._verdict} after {self.t} measurements (delta = {self.delta:g}): "
                "read labels and centers, there is nothing left to measure"
            )
        return arms[0] if n is None else arms

    def _open(self, count: int) -> list[int]:
        """The next arms, a ticket opened for each; fewer than `count` if the groups are proven."""
        arms: list[int] = []
        while len(arms) < count and not self.done:
            arm = self._driver.ask(self._next_ticket)
            self._check_done()
            if arm is not None:
                self._pending[self._next_ticket] = arm
                self._next_ticket += 1
                arms.append(arm)
        return arms

    def tell(self, arm: Any, x: Any, ticket: Any = None) -> None:
        """Report a measurement of an arm (index or name): asked for or not, in any order, after the end too.

        With a sequence of arms and an (n, d) array, n of them at once, all or nothing. `ticket` says which
        ask is answered (one, or one for each); left out, it is the oldest open one for that arm (give it
        where results can overtake each other: CROC's proof counts them in ask order). Results told
        after `done` are kept in the log and change nothing.
        """
        if isinstance(arm, list | tuple) or (isinstance(arm, np.ndarray) and arm.ndim == 1):
            arms = [self._arm(one) for one in arm]
            rows = check_real_array(x, "measurements")
            if self.dim == 1 and rows.ndim == 1:
                rows = rows[:, None]
            if rows.shape != (len(arms), self.dim):
                raise ValueError(
                    f"{len(arms)} arms need measurements of shape ({len(arms)}, {self.dim}), "
                    f"got shape {rows.shape}: {short(x)}"
                )
            values = list(rows)
            if ticket is None:
                tickets: list[Any] = [None] * len(arms)
            elif isinstance(ticket, list | tuple | np.ndarray) and np.size(ticket) == len(arms):
                tickets = list(ticket)
            else:
                raise ValueError(f"{len(arms)} arms need as many tickets, got {short(ticket)}")
        else:
            arms, values, tickets = [self._arm(arm)], [check_measurement(x, self.dim)], [ticket]
        self._absorb(arms, values, self._claim(arms, tickets))

    def forget(self, ticket: Any) -> None:
        """Give up an ask whose measurement will not come; its arm is free to be asked for again."""
        number = check_count(ticket, "ticket", 0)
        if number not in self._pending:
            raise ValueError(f"ticket {number} is not open: open tickets are {sorted(self._pending)}")
        self._driver.forget(number, self._pending.pop(number))
        self._check_done()

    def replay(self, kinds: Any, arms: Any, tickets: Any, values: Any) -> None:
        """A recorded conversation at once, with exactly the effect of its asks, tells and forgets one by one.

        `kinds`: 0 ask, 1 tell, 2 forget. `arms`: of each entry; an ask is checked against it (-1: not recorded; then
        results must say which ask they answer). `tickets`: opened by the ask, answered by the result, given up; -1 for
        none: an ask is then not checked, and a result answers the oldest open ask for its arm, if there is one; -2 for
        a result that answers no ask. `values` (n, d): of results; other rows are ignored. An ask that found the groups
        proven is recorded as arm -1, ticket -1. ValueError names the first entry that does not fit, and nothing is
        changed then.
        """
        replaying.replay(self, kinds, arms, tickets, values)

    def _arm(self, arm: Any) -> int:
        if isinstance(arm, str):
            if arm not in self._index:
                known = "there are none" if self.names is None else short(list(self.names))
                raise ValueError(f"unknown arm {arm!r}: known names: {known}")
            return self._index[arm]
        return check_arm(arm, self.n_arms)

    def _claim(self, arms: list[int], tickets: list[Any]) -> list[int | None]:
        """Which open ticket each result answers; nothing is changed yet."""
        free = dict(self._pending)
        claimed: list[int | None] = []
        for arm, ticket in zip(arms, tickets, strict=True):
            if ticket is not None:
                number = check_count(ticket, "ticket", 0)
                if number not in free:
                    raise ValueError(f"ticket {number} is not open: open tickets are {sorted(free)}")
                if free[number] != arm:
                    raise ValueError(f"ticket {number} is for arm {free[number]}, not for arm {arm}")
                found: int | None = number
            else:
                found = next((number for number, its in free.items() if its == arm), None)
            if found is not None:
                del free[found]
            claimed.append(found)
        return claimed

    def _absorb(self, arms: list[int], values: list[FloatArray], claimed: list[int | None]) -> None:
        white = self._whitened(arms, np.array(values).reshape(-1, self.dim))
        self._note_firsts(arms, white)
        rows = range(len(self._arms), len(self._arms) + len(arms))
        self._arms += arms
        self._values += values
        self._tickets += claimed
        for ticket in claimed:
            if ticket is not None:
                del self._pending[ticket]
        if self.done or not arms:
            return
        self._driver.tell(claimed, arms, white, rows)
        self._check_done()

    def _check_done(self) -> None:
        if self._driver.done and self._stopped is None:
            found = self._named()
            assert found is not None
            self._stopped = found

    def _whitened(self, arms: Sequence[int], values: FloatArray) -> FloatArray:
        """Results of these arms in units of the noise, as the driver takes them; ValueError if one is too far away."""
        white = self.noise.whiten_fully(values) if self._driver.exact else self.noise.whiten(values)
        check_far(white[:, : self.dim], values)
        where = np.asarray(arms, dtype=np.int64)
        told, first = np.unique(where, return_index=True)
        firsts = np.array([white[at, : self.dim] for at in first]).reshape(-1, self.dim)
        for i, arm in enumerate(told.tolist()):
            firsts[i] = self._firsts.get(arm, firsts[i])
        check_spread(white[:, : self.dim] - firsts[np.searchsorted(told, where)], values, where)
        return white

    def _note_firsts(self, arms: Sequence[int], white: FloatArray) -> None:
        for arm, x in zip(arms, white, strict=True):
            if arm not in self._firsts:
                self._firsts[arm] = x[: self.dim]

    # What is known.

    @property
    def method(self) -> str:
        """The method's name."""
        return self._method.name

    @property
    def _verdict(self) -> str:
        if self._method.certifies or self.threshold == "proven":
            only = f" for K = {self.n_clusters} only, and the data refute K = {self.n_clusters}"
            return f"the groups are proven{'' if self.alarm is None else only}"
        return "the evidence has reached the heuristic threshold (no proof)"

    @property
    def done(self) -> bool:
        """Whether the groups are proven, or the evidence has reached the heuristic threshold. Never taken back."""
        return self._stopped is not None

    @property
    def t(self) -> int:
        """Measurements that counted: all of them, or those up to the stop."""
        return self._driver.t

    @property
    def pulls(self) -> IntArray:
        """Measurements of each arm that counted."""
        return self._driver.pulls

    @property
    def pending(self) -> list[tuple[int, int]]:
        """Open asks as (ticket, arm), oldest first."""
        return list(self._pending.items())

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

    def _order(self, labels: IntArray) -> IntArray:
        """The engine's numbers of the groups in the order of their first appearance, emptied ones last."""
        _, firsts = np.unique(labels, return_index=True)
        seen = labels[np.sort(firsts)]
        return np.concatenate([seen, np.setdiff1d(np.arange(self.n_clusters), seen)])

    def _named(self) -> tuple[IntArray, FloatArray] | None:
        guess = self._driver.guess
        if guess is None:
            return None
        labels, centers = guess
        return canonical(labels), self.noise.color(centers[self._order(labels)])

    @property
    def evidence(self) -> Evidence:
        """What the stopping rule read at the last measurement."""
        now = self._driver.evidence()
        guess = self._driver.guess
        if now.weakest is None or guess is None:
            return now
        group = int(np.argmax(self._order(guess[0]) == now.weakest.group))
        return replace(now, weakest=replace(now.weakest, group=group))

    @property
    def homogeneity(self) -> Homogeneity | None:
        """Once `done`, whether each group looks like one, by the results that counted; None before.

        The proof is for exactly n_clusters groups and the noise as stated; this is a test of them, at 1 %. It assumes
        that delays of results do not depend on their values.
        """
        if self._homogeneity is None and self.done:
            self._homogeneity = verdicts.homogeneity_of(self)
        return self._homogeneity

    # What CROC adds.

    def _croc(self, what: str) -> CrocDriver:
        if not isinstance(self._driver, CrocDriver):
            raise ValueError(f"only method 'croc' has {what}, this session uses {self.method!r}")
        return self._driver

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The proof as plain JSON once `done`, else None; `coterie.verify(certificate, events)` re-checks it."""
        driver = self._croc("a certificate")
        if not driver.done:
            return None
        found = driver.certificate()
        return found | verdicts.beside_certificate(self, found["labels"])

    @property
    def events(self) -> list[dict[str, Any]]:
        """The measurement log as CROC counts it: results in ask order of each arm, freezes, rounds."""
        found = []
        for event in self._croc("events").events:
            if event["event"] == "result":
                event = {key: event[key] for key in ("event", "arm", "round")} | {
                    "values": self._values[event["row"]].tolist()
                }
            found.append(event)
        return found

    @property
    def waiting(self) -> int:
        """Results told that wait for an earlier ask of their arm to be answered (CROC counts in ask order)."""
        return self._driver.waiting if isinstance(self._driver, CrocDriver) else 0

    @property
    def alarm(self) -> Alarm | None:
        """There are more groups than n_clusters: so many items and one are pairwise known to differ (CROC only).

        It ends nothing: `ask` goes on for the K that was given. It is raised with probability at most 0.2·delta if K
        and the noise are right, and never taken back.
        """
        return verdicts.alarm_of(self)

    def partial(self) -> Partial:
        """What is certified so far, when the budget ends before the proof (CROC only)."""
        return self._croc("partial results").partial(self.labels)

    @property
    def log(self) -> list[tuple[int, FloatArray]]:
        """All measurements told, as (arm, values), in the order in which they were told."""
        return [(arm, value.copy()) for arm, value in zip(self._arms, self._values, strict=True)]

    def __repr__(self) -> str:
        what = f"{self.n_arms} arms in {self.n_clusters} groups, dim={self.dim}, delta={self.delta:g}"
        head = f"Session {what}, {self.method}: {self.t} measurements, {verdicts.progress_of(self)}"
        return verdicts.described(head, self.alarm, self.homogeneity)

    # Saving and loading.

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: settings, log, open asks."""
        return saving.to_dict(self)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Session:
        """The session that `to_dict` saved; it goes on as if it had never stopped."""
        return saving.from_dict(cls, saved)


def _check_names(names: Any, n_arms: int) -> tuple[str, ...]:
    given = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if not all(isinstance(name, str) for name in given) or isinstance(names, str):
        raise TypeError(f"names must be {n_arms} strings, got {short(names)}")
    if len(given) != n_arms:
        raise ValueError(f"names must be {n_arms} strings, one for each arm, got {len(given)}")
    if len(set(given)) != n_arms:
        twice = next(name for name in given if given.count(name) > 1)
        raise ValueError(f"names must differ, got {twice!r} more than once")
    return tuple(given)
