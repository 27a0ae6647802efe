"""One ask/tell conversation in memory: `Session`, and `cluster`, which runs one to its end.

A session is its settings and its log of measurements; everything else follows from them by replay, so a
session that was saved and loaded goes on exactly as if it had never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.engine.run import Run
from coterie.problem.checks import (
    FloatArray,
    IntArray,
    check_arm,
    check_count,
    check_delta,
    check_distance_ratio,
    check_measurement,
    check_real_array,
    check_shape,
    check_threshold_kind,
    short,
)
from coterie.problem.instance import Instance
from coterie.problem.noise import Noise
from coterie.problem.partition import canonical
from coterie.rules.methods import Method, method_named
from coterie.rules.stopping import levels_for
from coterie.theory.alternative import closest_alternative
from coterie.theory.hardness import allocation
from coterie.theory.thresholds import threshold_from_log

FORMAT = "coterie-session-1"

LARGEST = 1e100
"""Measurements beyond this many standard deviations are refused: squared distances would overflow."""


class SessionDone(RuntimeError):  # noqa: N818 (it is a state, not a mistake)
    """Raised by `ask` once the groups are proven: there is nothing left to measure."""


@dataclass(frozen=True)
class Weakest:
    """What holds the stop up: the alternative that fits best, in which `arm` moves to the group `group`."""

    arm: int
    group: int
    statistic: float


@dataclass(frozen=True)
class Evidence:
    """What the stopping rule reads: it stops when `statistic` (Z) reaches `threshold` (β or β̃)."""

    statistic: float
    threshold: float
    weakest: Weakest | None


class Session:
    """Ask which arm to measure, tell what came out, until `done`.

    `noise`: None for unit noise, a standard deviation, d of them, or a covariance; centers are reported in
    the units of the measurements. `names` (M strings) lets arms be told by name. `method`: see
    `coterie.rules.METHODS`; "boc-linear" needs `distance_ratio`, "oracle" needs `instance`. `threshold`:
    "proven" or "heuristic" (no proof).
    """

    def __init__(
        self,
        n_arms: int,
        n_clusters: int,
        dim: int,
        delta: float = 0.05,
        method: str = "boc",
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
        self._run = self._new_run()
        self._arms: list[int] = []
        self._tickets: list[int | None] = []
        self._values: list[FloatArray] = []
        self._pending: dict[int, int] = {}
        self._next_ticket = 0
        self._stopped: tuple[IntArray, FloatArray, int] | None = None

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

    def _new_run(self) -> Run:
        oracle = None
        if self.instance is not None:
            # The oracle knows the true allocation in the units that the engine works in.
            white = Instance(self.instance.labels, self.noise.whiten(self.instance.centers))
            shares = allocation(white)
            firsts = [int(np.argmax(white.labels == k)) for k in range(self.n_clusters)]
            oracle = (white.labels, shares[firsts])
        levels = levels_for((self.threshold,), (-math.log(self.delta),), self.n_arms, self.dim)
        return Run(
            self.n_arms,
            self.n_clusters,
            self.dim,
            self._method.sampling,
            levels,
            distance_ratio=self.distance_ratio,
            oracle=oracle,
        )

    # What to measure, and what came out.

    def ask(self, n: int | None = None) -> Any:
        """The next arm to measure, or a list of n of them; measurements still under way are counted as done.

        Never-measured arms come first, in index order. Each ask opens a ticket (see `pending`). Raises
        `SessionDone` once the groups are proven.
        """
        count = 1 if n is None else check_count(n, "n", 1)
        if self.done:
            raise SessionDone(
                f"the groups are proven after {self.t} measurements (delta = {self.delta:g}): "
                "read labels and centers, there is nothing left to measure"
            )
        arms = []
        for _ in range(count):
            arm = self._run.next
            self._pending[self._next_ticket] = arm
            self._next_ticket += 1
            self._run.commit(arm, +1)
            arms.append(arm)
        return arms[0] if n is None else arms

    def tell(self, arm: Any, x: Any, ticket: Any = None) -> None:
        """Report a measurement of an arm (index or name): asked for or not, in any order, after the end too.

        With a sequence of arms and an (n, d) array, n of them at once, all or nothing. `ticket` says which
        ask is answered (one, or one for each); left out, it is the oldest open one for that arm. Results told
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
        self._run.commit(self._pending.pop(number), -1)

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
        white = self._whitened(values)
        self._arms += arms
        self._values += values
        self._tickets += claimed
        for ticket in claimed:
            if ticket is not None:
                del self._pending[ticket]
        if self.done or not arms:
            return
        asked = np.array([ticket is not None for ticket in claimed], dtype=np.int64)
        self._run.absorb(np.array(arms, dtype=np.int64), white, asked)
        if self._run.done:
            labels, centers = self._named(self._run)
            self._stopped = (labels, centers, int(self._run.stops.max()))

    def _whitened(self, values: list[FloatArray]) -> FloatArray:
        """(n, d) in units of the noise."""
        # Row by row: solved together, rows may differ in the last bit from rows solved one at a time, and a
        # batch, or a loaded session, must do exactly what single results do.
        white = np.array([self.noise.whiten(value) for value in values]).reshape(-1, self.dim)
        far = ~(np.abs(white).max(axis=1) <= LARGEST)
        if far.any():
            raise ValueError(
                f"a measurement must lie within {LARGEST:g} standard deviations of 0, "
                f"got {short(values[int(np.argmax(far))])}"
            )
        return white

    # What is known.

    @property
    def method(self) -> str:
        """The method's name."""
        return self._method.name

    @property
    def done(self) -> bool:
        """Whether the groups are proven. Never taken back."""
        return self._stopped is not None

    @property
    def t(self) -> int:
        """Measurements that counted: all of them, or those up to the stop."""
        return self._run.t

    @property
    def pulls(self) -> IntArray:
        """Measurements of each arm that counted."""
        pulls: IntArray = self._run.state.pulls.copy()
        return pulls

    @property
    def pending(self) -> list[tuple[int, int]]:
        """Open asks as (ticket, arm), oldest first."""
        return list(self._pending.items())

    @property
    def labels(self) -> IntArray | None:
        """The groups, numbered by first appearance: proven or the current guess; None before there is one."""
        if self._stopped is not None:
            return self._stopped[0].copy()
        return self._named(self._run)[0] if self._run.ready else None

    @property
    def centers(self) -> FloatArray | None:
        """The groups' centers in the units of the measurements, in the order of `labels`."""
        if self._stopped is not None:
            return self._stopped[1].copy()
        return self._named(self._run)[1] if self._run.ready else None

    def _named(self, run: Run) -> tuple[IntArray, FloatArray]:
        labels = run.state.labels
        names = canonical(labels)
        order = np.arange(self.n_clusters)
        order[: names.max() + 1] = labels[np.unique(names, return_index=True)[1]]
        missing = np.setdiff1d(np.arange(self.n_clusters), order[: names.max() + 1])
        order[names.max() + 1 :] = missing  # emptied clusters come last
        return names, self.noise.color(run.centers[order])

    @property
    def evidence(self) -> Evidence:
        """What the stopping rule read at the last measurement."""
        run = self._run
        limit = math.inf
        if (run.state.pulls > 0).all():
            limit = threshold_from_log(-math.log(self.delta), run.state.pulls, self.dim, self.threshold)
        weakest = None
        if run.ready and not run.degenerate:
            closest = closest_alternative(Instance(run.state.labels, run.state.centers), run.state.pulls)
            group = self._named(run)[0][np.argmax(run.state.labels == closest.cluster)]
            weakest = Weakest(closest.arm, int(group), 0.5 * closest.value)
        return Evidence(run.statistic[2], limit, weakest)

    @property
    def log(self) -> list[tuple[int, FloatArray]]:
        """All measurements told, as (arm, values), in the order in which they were told."""
        return [(arm, value.copy()) for arm, value in zip(self._arms, self._values, strict=True)]

    # Saving and loading.

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: settings, log, open asks."""
        return {
            "format": FORMAT,
            "n_arms": self.n_arms,
            "n_clusters": self.n_clusters,
            "dim": self.dim,
            "delta": self.delta,
            "method": self.method,
            "threshold": self.threshold,
            "noise": self.noise.to_json(),
            "distance_ratio": self.distance_ratio,
            "instance": None
            if self.instance is None
            else {"labels": self.instance.labels.tolist(), "centers": self.instance.centers.tolist()},
            "names": None if self.names is None else list(self.names),
            "log": [
                {"arm": arm, "values": value.tolist(), "ticket": ticket}
                for arm, value, ticket in zip(self._arms, self._values, self._tickets, strict=True)
            ],
            "pending": [list(pair) for pair in self.pending],
            "next_ticket": self._next_ticket,
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Session:
        """The session that `to_dict` saved; it goes on as if it had never stopped."""
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            raise ValueError(f"not a saved session (format {FORMAT!r}): {short(saved)}")
        given, names, log, pending, next_ticket, *_ = _entries(saved, _SAVED, "the saved session")
        if given is not None:
            given = Instance(*_entries(given, ("labels", "centers"), "the saved instance"))
        session = cls(**{key: saved[key] for key in _SETTINGS}, instance=given, names=names)
        rows = [
            _entries(row, ("arm", "values", "ticket"), f"row {i} of the saved log")
            for i, row in enumerate(_listed(log, "the saved log"))
        ]
        arms = [check_arm(arm, session.n_arms) for arm, _, _ in rows]
        values = [check_measurement(value, session.dim) for _, value, _ in rows]
        session._absorb(arms, values, [None] * len(rows))
        session._tickets = [None if used is None else check_count(used, "ticket", 0) for _, _, used in rows]
        session._next_ticket = check_count(next_ticket, "next_ticket", 0)
        answered = set(session._tickets)
        for pair in _listed(pending, "the saved pending asks"):
            if len(_listed(pair, "a saved pending ask")) != 2:
                raise ValueError(f"a saved pending ask must be [ticket, arm], got {short(pair)}")
            ticket, arm = check_count(pair[0], "ticket", 0), check_arm(pair[1], session.n_arms)
            if ticket >= session._next_ticket or ticket in session._pending or ticket in answered:
                raise ValueError(f"ticket {ticket} of the saved pending asks is not an open one")
            session._pending[ticket] = arm
            session._run.commit(arm, +1)
        return session


_SETTINGS = ("n_arms", "n_clusters", "dim", "delta", "method", "threshold", "noise", "distance_ratio")
_SAVED = ("instance", "names", "log", "pending", "next_ticket", *_SETTINGS)


def _entries(saved: Any, keys: Sequence[str], what: str) -> list[Any]:
    """The values of these keys of a dictionary that was loaded."""
    if not isinstance(saved, dict):
        raise ValueError(f"{what} must be a dictionary with {', '.join(keys)}, got {short(saved)}")
    missing = [key for key in keys if key not in saved]
    if missing:
        raise ValueError(f"{what} lacks {', '.join(missing)}")
    return [saved[key] for key in keys]


def _listed(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{what} must be a list, got {short(value)}")
    return list(value)


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


@dataclass(frozen=True)
class Result:
    """What `cluster` found. If the budget ended first, `done` is False and labels and centers are a guess."""

    labels: IntArray | None
    centers: FloatArray | None
    pulls: IntArray
    t: int
    done: bool
    session: Session


def cluster(
    measure: Callable[[int], Any],
    n_arms: int,
    n_clusters: int,
    delta: float = 0.05,
    method: str = "boc",
    budget: int | None = None,
    progress: bool = True,
    threshold: str = "proven",
    noise: Any = None,
    distance_ratio: float | None = None,
    instance: Instance | None = None,
    names: Sequence[str] | None = None,
) -> Result:
    """Call `measure(arm)` until the groups are proven (error probability at most delta) or the budget ends.

    The dimension is that of the first measurement. `progress`: a line on the terminal says how far it is.
    """
    if not callable(measure):
        raise TypeError(f"measure must be a function of the arm, got {short(measure)}")
    limit = None if budget is None else check_count(budget, "budget", 1)
    # A measurement costs: all settings that do not hang on the dimension are checked before the first one.
    dim = instance.dim if isinstance(instance, Instance) else 1
    Session(n_arms, n_clusters, dim, delta, method, threshold, None, distance_ratio, instance, names)
    x = np.atleast_1d(check_real_array(measure(0), "a measurement"))
    session = Session(n_arms, n_clusters, x.size, delta, method, threshold, noise, distance_ratio, instance, names)
    session.tell(session.ask(), x)
    with _Progress(progress) as show:
        while not session.done and (limit is None or session.t < limit):
            arm = session.ask()
            session.tell(arm, measure(arm))
            show(session)
    return Result(session.labels, session.centers, session.pulls, session.t, session.done, session)


class _Progress:
    """A line on the terminal that follows a session; silent where there is no terminal."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._status: Any = None
        self._next = 0

    def __enter__(self) -> _Progress:
        if self._wanted:
            from rich.console import Console

            console = Console(stderr=True)
            if console.is_terminal:
                self._status = console.status("measuring …")
                self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, session: Session) -> None:
        if self._status is None or session.t < self._next:
            return
        self._next = session.t + max(1, session.t // 100)
        now = session.evidence
        self._status.update(f"{session.t} measurements, evidence {now.statistic:.1f} of {now.threshold:.1f}")
