"""`Session`: ask which arm to measure, tell what came out.

A session is its settings, its results and its conversation with a method. What was decided is kept, so that a session
that was saved and loaded goes on exactly as if it had never stopped, and a finished one opens in every later release.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from coterie.methods.contract import Method, MethodRun
from coterie.methods.start import start
from coterie.methods.table import prepared
from coterie.problem.checks import (
    FloatArray,
    check_arm,
    check_count,
    check_measurement,
    check_real_array,
    short,
)
from coterie.problem.instance import Instance
from coterie.problem.question import GROUPS
from coterie.problem.revision import Items
from coterie.problem.settings import DELTA, METHOD, THRESHOLD, Settings
from coterie.session import replaying, saved
from coterie.session.changeable import Changeable
from coterie.session.conversation import Conversation, Ticket
from coterie.session.corrections import Correction
from coterie.session.data_alarms import AlarmCache
from coterie.session.measurements import Measurements
from coterie.session.sleeping import SleepingRun, nothing_yet


class SessionDone(RuntimeError):  # noqa: N818 (it is a state, not a mistake)
    """Raised by `ask` once the groups are proven: there is nothing left to measure."""


class Waiting(RuntimeError):  # noqa: N818 (as above)
    """Raised by `ask` while further results could not be used: open asks have to be answered, or given up, first.

    `tickets` has these asks: tell their results, or give them up with `Session.forget`.
    """

    def __init__(self, message: str, tickets: Sequence[Ticket]) -> None:
        super().__init__(message)
        self.tickets = tuple(tickets)


class Session(Changeable):
    """Ask which arm to measure, tell what came out, until `done`.

    `n_arms` items (arms) in `n_clusters` groups, `dim` numbers a measurement; the groups found are wrong with
    probability at most `delta`. In place of their number give the items, such as a list of names: their text is their
    name. `noise`: what is known about it. None, the default: nothing, and equal items are items
    whose results have the same distribution. "gaussian" or `coterie.Gaussian(shape)`: Gaussian with a covariance that
    is common and unknown; `coterie.Counts(trials)`; `coterie.Bounded(lo, hi)`; `coterie.AtMost(covariance)`;
    `coterie.Symmetric()`. A standard deviation, d of them, or a covariance: known; all methods but CROC need that.
    Centers are reported in the units of the measurements. `names` (M strings) lets arms be told by name. `method`:
    see `coterie.methods.METHODS`; "boc-linear" needs `distance_ratio`, "oracle" needs `instance`. `threshold`, for all
    but CROC: "proven" or "heuristic" (no proof).

    Where the number of groups is not known, or items are never exactly equal, give `resolution` instead of n_clusters:
    (alike, apart), or a `coterie.Resolution`. Differences below `alike` do not matter, differences above `apart` do,
    both in the units of the measurements; see `references` and `borders`. `groups="linkage"` asks for the n_clusters
    groups of single linkage. Both need a noise under which nearness can be proven: known, "gaussian", `Counts`,
    `Bounded`.

    `costs` (M positive numbers): what one measurement of each arm costs, if that differs; `cost_unit` names their unit.
    CROC then measures so that the proof costs little, and `cost` says what was spent. The proof is the same.

    Threads may share a session: every method and property is atomic, and arrays that it hands out are copies. Several
    who measure take their tickets from `open` and give them to `tell`. Between two calls others may come first: `ask`
    can raise `SessionDone` although `done` was False a moment ago.

    `confirm`: so many measurements more after the proof, as a share of those that it took (0.5: half as many), spread
    so that a group that hides two is found: `homogeneity` says what they showed, and which difference would have been
    seen. Groups and certificate stay those of the proof; `proven` says that it is there, `done` that all is measured.
    """

    def __init__(
        self,
        n_arms: int | Iterable[Any],
        n_clusters: int | None = None,
        dim: int | None = None,
        delta: float = DELTA,
        method: str = METHOD,
        threshold: str = THRESHOLD,
        noise: Any = None,
        distance_ratio: float | None = None,
        instance: Instance | None = None,
        names: Sequence[str] | None = None,
        *,
        resolution: Any = None,
        groups: str = GROUPS[0],
        costs: Any = None,
        cost_unit: str | None = None,
        confirm: float = 0.0,
    ) -> None:
        given = Settings.of(
            n_arms, n_clusters, dim, delta, method, threshold, noise, distance_ratio, instance, names,
            resolution=resolution, groups=groups, costs=costs, cost_unit=cost_unit, confirm=confirm,
        )  # fmt: skip
        self._begin(*prepared(given))

    @classmethod
    def of(cls, settings: Settings) -> Session:
        """A session at its beginning with these settings."""
        session = cls.__new__(cls)
        session._begin(*prepared(settings))
        return session

    @classmethod
    def asleep(cls, settings: Settings) -> Session:
        """A session at its beginning whose method is started when the session is first used."""
        session = cls.__new__(cls)
        ready, method = prepared(settings)
        session._begin(ready, method, SleepingRun(lambda: start(ready, method), nothing_yet(ready.n_arms)))
        return session

    def _begin(self, settings: Settings, method: Method, run: MethodRun | None = None) -> None:
        self.first_settings, self._method = settings, method
        self._present = ((0, 0), settings, Items(settings.n_arms))
        self._index = {} if settings.names is None else {name: arm for arm, name in enumerate(settings.names)}
        self._conversation = Conversation(run or start(settings, method), method.in_ask_order)
        self._measurements = Measurements(settings.noise, method.exact)
        self.corrections: list[Correction] = []
        self._forget_stop()

    def _forget_stop(self) -> None:
        self._last_named = self._stopped = self._homogeneity = None
        self._alarms = AlarmCache()

    # What to measure, and what came out.

    def ask(self, n: int | None = None) -> Any:
        """The next arm to measure, or a list of n of them; measurements still under way are counted as done.

        Never-measured arms come first, in index order. Each ask opens a ticket (see `pending`). Raises
        `SessionDone` once the groups are proven; if that is found on the way, the list is shorter. Raises `Waiting`,
        with the tickets that it waits for, if one that was opened long ago is not answered and further results could
        not be used before it is (see `awaited`); if that happens on the way, the list is shorter. Whoever answers each
        ask before asking again never meets it.
        """
        arms = [ticket.arm for ticket in self.open(1 if n is None else check_count(n, "n", 1))]
        if not arms and not self.done:
            raise self._waiting()
        if not arms:
            raise SessionDone(
                f"there is nothing left to measure after {self.t} measurements: read labels and centers; "
                f"{self.verdict} (delta = {self.delta:g})"
            )
        return arms[0] if n is None else arms

    def _waiting(self) -> Waiting:
        late = self.awaited
        said = ", ".join(f"arm {one.arm} (ticket {one.number})" for one in late[:5])
        more = f" and {len(late) - 5} more" if len(late) > 5 else ""
        return Waiting(
            f"waiting for the result of {said}{more}: what else is measured cannot be used before. Tell it, or give "
            "the ticket up with forget",
            late,
        )

    @property
    def awaited(self) -> list[Ticket]:
        """The open asks that `ask` waits for: nothing is asked for before one of them is answered or given up.

        Empty as long as something can be asked for. An ask is waited for if all that was planned is asked for, many
        results cannot be used before it is answered (16, and 8 more for each other ask at work; twice as many as are
        open and wanted, if that is more), and as many later asks are closed.
        """
        return self._conversation.awaited()

    def waiting_behind(self, ticket: int) -> int:
        """Results of the same arm that wait for this open ask."""
        return self._conversation.waiting_behind(ticket)

    def open(self, count: int = 1, wanted: int | None = None) -> list[Ticket]:
        """The next arms to measure, with the ticket of each.

        Fewer than `count`, or none, if the groups are proven (`done`) or open asks have to be answered first
        (`awaited`). `wanted`: how many somebody wants in all, if these are the first of more.
        """
        found: list[Ticket] = []
        while len(found) < count and not self.done:
            if self._conversation.awaited((count if wanted is None else wanted) - len(found)):
                break
            ticket = self._conversation.ask()
            self._note_stop()
            if ticket is not None:
                found.append(ticket)
        return found

    def check(self) -> bool:
        """Whether the groups are proven by the results so far; nothing is asked for."""
        self._conversation.look()
        self._note_stop()
        return self.done

    def tell(self, arm: Any, x: Any, ticket: Any = None) -> None:
        """Report a measurement of an arm (index or name): asked for or not, in any order, after the end too.

        With a sequence of arms and an (n, d) array, n of them at once, all or nothing. `ticket` says which
        ask is answered (one, or one for each); left out, it is the oldest open one for that arm (give it
        where results can overtake each other: CROC's proof counts them in ask order). Results told
        after `done` are kept in the log and change nothing.
        """
        if isinstance(arm, list | tuple) or (isinstance(arm, np.ndarray) and arm.ndim == 1):
            arms = [self.arm_named(one) for one in arm]
            values, tickets = self._check_many(len(arms), x, ticket)
        else:
            arms, values, tickets = [self.arm_named(arm)], [check_measurement(x, self.dim)], [ticket]
        claimed = self._claim(arms, tickets)
        self._take(arms, values, claimed)

    def absorb(self, arm: int, values: FloatArray, ticket: int | None, white: FloatArray) -> None:
        """A checked result for an open ticket; None: it answers no ask, even where one for its arm is open.

        `white`: as `check_results` gave it.
        """
        row = self._measurements.add(arm, values, white, ticket)
        self._conversation.tell(arm, white, row, ticket)
        self._note_stop()

    def check_results(self, arms: Sequence[int], values: FloatArray) -> FloatArray:
        """That results (n, d) of these arms can be told; ValueError says why not. What `absorb` takes, one a row."""
        return self._measurements.in_noise_units(arms, values)

    def forget(self, ticket: Any) -> None:
        """Give up an ask whose measurement will not come; its arm is free to be asked for again."""
        number = check_count(ticket, "ticket", 0)
        pending = self._conversation.pending
        if number not in pending:
            raise ValueError(f"ticket {number} is not open: open tickets are {sorted(pending)}")
        self._conversation.forget(number)
        self._note_stop()

    def mark_undone(self, ticket: int) -> None:
        """An ask that was given up is none that failed: nobody began to measure."""
        self._conversation.undone.add(ticket)

    @property
    def arms_asked(self) -> Sequence[int]:
        """The arm of every ask, in order."""
        return self._conversation.arms_asked

    def choose_resolution(self, resolution: Any) -> None:
        """Ask for other `alike` and `apart` from here on, chosen after looking at the results: (alike, apart).

        Also a `coterie.Resolution` with the norm and the claim of this session. Nothing is lost of the guarantee: it is
        a fact of the log, and the certificate has the bounds of the freeze that proves. The candidate that is being
        tested is given up, and the next one needs log 5 = 1.6 more evidence; before the first freeze it costs nothing.
        Results so far serve estimates. The present resolution once more changes nothing. `SessionDone` once it is.
        """
        present, chosen = self.resolution, self.first_settings.with_resolution(resolution).resolution
        assert present is not None
        assert chosen is not None
        if self.done:
            raise SessionDone(
                f"{self.verdict} with alike and apart of {present.bounds}, and that stands: for another resolution "
                f"start a new session with resolution={chosen!r} and tell it these results"
            )
        if chosen != present:
            self._conversation.choose(chosen)

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

    def arm_named(self, arm: Any) -> int:
        """The index of an arm, given by its index or its name."""
        if isinstance(arm, str):
            if len(self._index) < self.n_arms and self.names is not None:
                self._index = {name: number for number, name in enumerate(self.names)}
            if arm not in self._index:
                known = "there are none" if self.names is None else short(list(self.names))
                raise ValueError(f"unknown arm {arm!r}: known names: {known}")
            return self._index[arm]
        return check_arm(arm, self.n_arms)

    def _check_many(self, count: int, x: Any, ticket: Any) -> tuple[list[FloatArray], list[Any]]:
        rows = check_real_array(x, "measurements", booleans=True)
        if self.dim == 1 and rows.ndim == 1:
            rows = rows[:, None]
        if rows.shape != (count, self.dim):
            raise ValueError(
                f"{count} arms need measurements of shape ({count}, {self.dim}), got shape {rows.shape}: {short(x)}"
            )
        if ticket is None:
            return list(rows), [None] * count
        if isinstance(ticket, list | tuple | np.ndarray) and np.size(ticket) == count:
            return list(rows), list(ticket)
        raise ValueError(f"{count} arms need as many tickets, got {short(ticket)}")

    def _claim(self, arms: list[int], tickets: list[Any]) -> list[int | None]:
        """Which open ticket each result answers; nothing is changed yet."""
        if not self._conversation.pending and all(ticket is None for ticket in tickets):
            return [None] * len(arms)
        free = {ticket.number: ticket.arm for ticket in self._conversation.tickets()}
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

    def _take(self, arms: list[int], values: list[FloatArray], claimed: list[int | None]) -> None:
        """Results that were checked, with the tickets that they answer."""
        white = self._measurements.in_noise_units(arms, np.array(values).reshape(-1, self._settings.dim))
        for arm, x, its, ticket in zip(arms, values, white, claimed, strict=True):
            row = self._measurements.add(arm, x, its, ticket)
            self._conversation.tell(arm, its, row, ticket)
            self._note_stop()

    def _note_stop(self) -> None:
        if self._conversation.run.done and self._stopped is None:
            found = self._named()
            assert found is not None
            self._stopped = found

    # Saving and loading.

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: settings, log, asks, decisions."""
        return saved.to_dict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Session:
        """The session that `to_dict` saved; it goes on as if it had never stopped."""
        return saved.from_dict(cls, content)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies are saved sessions, with the release that made them; a copy goes on by itself."""
        return saved.unpickled, (type(self), saved.release(), self.to_dict())

    def __copy__(self) -> Session:
        return copy.deepcopy(self)

    def __setstate__(self, state: Any) -> None:
        raise ValueError(
            f"this session was pickled by an earlier release than coterie {saved.release()}, which cannot open it: "
            "save it there with to_dict, and load it here with from_dict"
        )
