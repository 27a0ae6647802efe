"""What a method is: an entry of the table, and the run that it starts. Everybody else knows methods by this alone.

A `Method` is data: its name, what it needs, whether it certifies, and how to start a run. A `MethodRun` is one method
at work. It is asked for arms and told results, one by one, and says when the groups are found. Results come in units of
the noise, where it is known: standard Gaussian noise in every direction. A method that takes other noises too
(`Method.noises`) finds in `settings.noise` which one it is; results stay in the user's units then, but where a bound on
the covariance is stated (`settings.noise.in_units`).

What a run decides beside its asks (CROC's freezes and rounds) are *decisions*: plain JSON that the conversation keeps.
A saved run is brought back either by following its record with the same rule, or, where the rule has changed since, by
applying the recorded asks, results and decisions: the rule is then asked for nothing before the next new ask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from coterie.engine.croc.entries import ASK as ASK  # kinds of entries of a record
from coterie.engine.croc.entries import GIVE_UP as GIVE_UP
from coterie.engine.croc.entries import LOOK as LOOK
from coterie.engine.croc.entries import RESULT as RESULT
from coterie.methods.reports import Evidence, Standing
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.instance import Instance
from coterie.problem.partition import same_partition
from coterie.problem.question import ExactGroups, Resolution
from coterie.problem.settings import Settings

if TYPE_CHECKING:
    from coterie.methods.present_arms import Past
    from coterie.methods.trials import Plan, Running, Stops

CHOOSE = 6
"""The kind of an entry at which somebody chooses another resolution; those of the compiled loops are smaller."""

Decision: TypeAlias = dict[str, Any]
"""Something decided beside an ask, as plain JSON; `event` says what."""


NOBODY = -1
"""The ask of a result that nobody asked for."""


class Pull(NamedTuple):
    """An arm to measure. `round`: the round of the method that it belongs to, 0 for none."""

    arm: int
    round: int = 0


class HeldUp(NamedTuple):
    """Results that counted and are of no use before open asks are answered, and the places of these among the asks."""

    results: int = 0
    by: Sequence[int] = ()


class Record(NamedTuple):
    """Part of a conversation in the order in which it counts: n entries, to be followed or applied at once.

    An ask opens, a result counts, an ask is given up, somebody looks whether the groups are found, or chooses another
    resolution: `choices` has these, in order. `rounds` of an ask
    is the round that was recorded, -1 if none was; `follow` puts in what the method says. `ask` of a result or a
    given-up ask is the entry of the ask that it is about; NOBODY if there is none, or if the ask is older than the
    record: then `rounds` holds its round. `asked` tells these two apart. Decisions come with the entry before which
    they were made. `origin`: from where positions count in bets that are applied after this record, if there are any.
    """

    kinds: IntArray  # (n)
    arms: IntArray  # (n)
    rounds: IntArray  # (n) INOUT
    ask: IntArray  # (n)
    asked: IntArray  # (n) 1 if a result answers an ask
    white: FloatArray  # (n, width) results in units of the noise; other rows are not looked at
    decisions: list[tuple[int, Decision]]
    choices: Sequence[Resolution] = ()
    origin: Sequence[float] | None = None


class Followed(NamedTuple):
    """How far a record was followed: `used` entries, all unless the groups were found before its end.

    `decisions` come with the entry before which they were made. `by_ask`: looking for an arm has found the groups, and
    entry `used` is that ask.
    """

    used: int
    decisions: list[tuple[int, Decision]]
    by_ask: bool = False


class Departure(ValueError):  # noqa: N818 (it is found out, not done wrong)
    """A record does not lead where the method goes: `entry` of it is the first that differs, `why` says how."""

    def __init__(self, entry: int, why: str) -> None:
        super().__init__(f"entry {entry}: {why}: the record does not lead here")
        self.entry, self.why = entry, why


class MethodError(RuntimeError):
    """A method broke its contract, or failed: `method` is its name, `what` says what it did."""

    def __init__(self, method: str, what: str) -> None:
        super().__init__(f"method {method!r} {what}")
        self.method, self.what = method, what

    def __reduce__(self) -> tuple[type[MethodError], tuple[str, str]]:
        return MethodError, (self.method, self.what)


class MethodRun(ABC):
    """One method at work on one problem.

    `ask`, `count` and `done` are what a method must have. `guess` and `evidence` say how far it is.
    """

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the groups are found. Never taken back; nothing is asked or counted afterwards."""

    @property
    @abstractmethod
    def t(self) -> int:
        """Results that counted."""

    @property
    @abstractmethod
    def pulls(self) -> IntArray:
        """(M) results of each arm that counted."""

    @property
    @abstractmethod
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        """Labels (M) in 0..K−1 and centers (K, d) in units of the noise: found, or guessed so far; None before.

        Where the question is for a resolution, K is as many groups as there are in this guess.
        """

    @abstractmethod
    def ask(self) -> Pull | None:
        """The next arm; it counts as under way. None if looking for it has found the groups."""

    @abstractmethod
    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        """One result. `of_round` is that of its ask; `asked` is False for a result that nobody asked for.

        x has d numbers, or 2·d for a method with `exact`: see `coterie.problem.noise.Noise.whiten_fully`.
        """

    @abstractmethod
    def evidence(self) -> Evidence:
        """What the stopping rule reads."""

    def standing(self) -> Standing | None:
        """How much is proven, and how much work is left; None if there is nothing but `evidence` to tell it from."""
        return None

    def give_up(self, arm: int, of_round: int) -> None:  # noqa: B027 (a method may do without)
        """The result of an ask will not come."""

    def look(self) -> None:  # noqa: B027 (a method may do without)
        """See whether the results so far are enough, without asking for an arm. By default they were looked at."""

    def held_up(self, asks: Sequence[Pull]) -> HeldUp | None:
        """What open asks hold up, if nothing new was planned; by default nothing, as results are used as they count.

        None if the next ask goes on with what was planned before: it is needed whatever becomes of the open ones.
        Results that wait for their turn behind an earlier ask of their arm have not counted: others look after these.
        """
        return HeldUp()

    # Decisions beside the asks, and how a record is brought back.

    def new_decisions(self) -> list[Decision]:
        """What was decided since this was last called, in order."""
        return []

    def open_recorded(self, arm: int, of_round: int) -> None:  # noqa: B027 (a method may do without)
        """A recorded ask counts as under way; the rule is not consulted."""

    def apply_decision(self, decision: Decision) -> None:  # noqa: B027 (a method may do without)
        """A recorded decision."""

    def follow(self, record: Record) -> Followed:
        """Go on as the record says, deciding anew, and compare: `Departure` names the first entry that differs.

        Methods with a compiled loop override this.
        """
        made: list[tuple[int, Decision]] = []
        choices = iter(record.choices)
        for i in range(record.kinds.size):
            if self.done:
                return Followed(i, made)
            if record.kinds[i] == CHOOSE:
                self.choose_resolution(next(choices))
                made += [(i, one) for one in self.new_decisions()]
            elif record.kinds[i] == ASK:
                found = self.ask()
                made += [(i, one) for one in self.new_decisions()]
                if found is None:
                    return Followed(i, made, by_ask=True)
                if found.arm != record.arms[i] and record.arms[i] >= 0:
                    raise Departure(i, f"the next arm is {found.arm}")
                record.arms[i], record.rounds[i] = found
            else:
                self._take(record, i)
                made += [(i + 1, one) for one in self.new_decisions()]
        return Followed(record.kinds.size, made)

    def apply(self, record: Record) -> None:
        """Bring back what was recorded without consulting the rule. Methods with a compiled loop override this."""
        left = list(record.decisions)
        for i in range(record.kinds.size):
            while left and left[0][0] <= i:
                self.apply_decision(left.pop(0)[1])
            if record.kinds[i] == ASK:
                self.open_recorded(int(record.arms[i]), max(int(record.rounds[i]), 0))
            elif record.kinds[i] not in (LOOK, CHOOSE):  # a choice is a decision too, and applied as that
                self._take(record, i)
        for _, decision in left:
            self.apply_decision(decision)

    def _take(self, record: Record, i: int) -> None:
        ask = int(record.ask[i])
        of_round = int(record.rounds[ask if ask >= 0 else i])
        if record.kinds[i] == LOOK:
            self.look()
        elif record.kinds[i] == RESULT:
            self.count(int(record.arms[i]), record.white[i], max(of_round, 0), bool(record.asked[i]))
        else:
            self.give_up(int(record.arms[i]), max(of_round, 0))

    # Working memory, for snapshots: a cache that spares following the record.

    def memory(self) -> dict[str, Any] | None:
        """Everything the run knows, as arrays and plain JSON; None if it cannot be had.

        The arrays may be the run's own: read them before it goes on.
        """
        return None

    @property
    def memory_bytes(self) -> int:
        """About how many bytes `memory` has, without making it; 0 if they are few."""
        return 0

    def restore(self, memory: Mapping[str, Any]) -> None:
        """What `memory` gave, put into a run at its beginning."""
        raise NotImplementedError

    def is_right(self, instance: Instance) -> bool:
        """Whether the groups found are right on an instance whose truth is known: by default its partition."""
        return self.guess is not None and same_partition(self.guess[0], instance.labels)

    # What a method that finds groups up to a resolution adds.

    @property
    def references(self) -> tuple[int, ...] | None:
        """The reference item of each group, in the order of the labels of `guess`; None where groups have none."""
        return None

    @property
    def borders(self) -> Mapping[int, Sequence[int]]:
        """Items near a border: the other groups, by their labels in `guess`, that each could also belong to."""
        return {}

    def forecast(self) -> float | None:
        """Measurements that the whole run is expected to take, those so far included; None if nobody knows yet."""
        return None

    def cost_left(self) -> float | None:
        """What is expected to be spent still, in the unit of `settings.costs`; None if nobody knows."""
        return None

    def resolution_for(self, budget: int) -> float | None:
        """The smallest factor f ≥ 1 such that groups up to (ε, f·η) are expected to need no more than a budget.

        None if there is no forecast yet, or no resolution.
        """
        return None

    def choose_resolution(self, resolution: Resolution) -> None:
        """Ask for another ε and η from here on, of the same norm and claim; that is one of `new_decisions`.

        What is frozen is given up; results so far may serve whatever enters no proof.
        """
        raise NotImplementedError("another resolution cannot be chosen on the way")

    # What a method that certifies adds.

    @property
    def alarm(self) -> tuple[int, ...] | None:
        """K + 1 arms that are pairwise known to differ, if the method has seen such: K is too small."""
        return None

    def certificate(self, decisions: list[Decision]) -> dict[str, Any] | None:
        """The proof as plain data, once `done`; `decisions` are those of the whole run. None if it was not recorded."""
        raise NotImplementedError


Trial: TypeAlias = "Callable[[Plan, np.random.SeedSequence, Running], dict[str, Stops]]"
"""(plan, seed, running) → how the trial ended at each of `plan.trial_thresholds`: a loop for bulk trials, mostly
compiled (`coterie.methods.trials`)."""


@dataclass(frozen=True)
class Method:
    """An entry of the table of methods.

    `start(settings)` gives a run at its beginning. `needs`: settings without a default that it cannot do without,
    "distance_ratio" and "instance". `noises`: the kinds of noise that it takes (`coterie.problem.families.KINDS`); by
    default it has to know the noise. `certifies`: it has certificates, events, alarms and partial answers.
    `has_thresholds`: it stops at the threshold that the settings name; otherwise its stop is always a proof.
    `in_ask_order`: its proof needs the results of an arm in the order in which they were asked for. `exact`: it takes
    results with what floats do not hold of them. `simulates_only`: it knows the truth, so no campaign can use it.
    `rules` is the number of its decision rules: a release whose rule asks for other arms on the same results raises it.
    `trial` is the loop for bulk trials; without one `simulate` asks and tells the run. `questions`: the kinds of
    questions that it answers (`coterie.problem.question.QUESTIONS`). `weighs_costs`: its sampling rule heeds
    `settings.costs`; others refuse them. `restart(settings, past)` gives a run for what was revised on the way, of the
    present items; without it nothing can be revised.
    """

    name: str
    sentence: str
    start: Callable[[Settings], MethodRun]
    sampling: str = ""
    stopping: str = ""
    needs: frozenset[str] = frozenset()
    certifies: bool = False
    has_thresholds: bool = True
    in_ask_order: bool = False
    exact: bool = False
    simulates_only: bool = False
    rules: int = 1
    trial: Trial | None = None
    noises: frozenset[str] = frozenset({"known"})
    questions: frozenset[str] = frozenset({ExactGroups.kind})
    weighs_costs: bool = False
    restart: Callable[[Settings, Past], MethodRun] | None = None

    def proves(self, threshold: str) -> bool:
        """Whether its stop is a proof."""
        return not self.has_thresholds or threshold == "proven"

    def called(self, threshold: str) -> str:
        """Its name, with the threshold where it has several."""
        return f"{self.name}, {threshold} threshold" if self.has_thresholds else self.name
