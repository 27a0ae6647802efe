"""What a method is: an entry of the table, and the run that it starts. Everybody else knows methods by this alone.

A `Method` is data: its name, what it needs, whether it certifies, and how to start a run. A `MethodRun` is one method
at work. It is asked for arms and told results, one by one, and says when the groups are found. Results come in units of
the noise, where it is known: standard Gaussian noise in every direction. A method that takes other noises too
(`Method.noises`) finds in `settings.noise` which one it is; results stay in the user's units then, but where a bound on
the covariance is stated (`settings.noise.in_units`).

Five members are what a run must have: `ask`, `count`, `done`, `guess` and `evidence`. What it may have beyond them are
the capabilities of `coterie.methods.capabilities`, and ways of its own to follow or apply a record
(`coterie.methods.records`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from coterie.methods.capabilities import (
    Blocks,
    Counts,
    Decisions,
    HeldUp,
    MeasuresPanels,
    Memory,
    OpenAsks,
    Outlook,
    PanelPull,
    Proof,
    Pull,
    ResolutionGroups,
)
from coterie.methods.records import (
    ASK,
    CHOOSE,
    GIVE_UP,
    LOOK,
    NOBODY,
    RESULT,
    STEP,
    Decision,
    Departure,
    Followed,
    Record,
    apply_steps,
    follow_steps,
)
from coterie.methods.reports import Evidence
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.instance import Instance
from coterie.problem.partition import same_partition
from coterie.problem.question import ExactGroups
from coterie.problem.settings import Settings

if TYPE_CHECKING:
    from coterie.methods.present_arms import Past
    from coterie.methods.trials import Plan, RunningTrials, Stops

__all__ = [
    "ASK",
    "CHOOSE",
    "GIVE_UP",
    "LOOK",
    "NOBODY",
    "RESULT",
    "STEP",
    "Decision",
    "Departure",
    "Followed",
    "HeldUp",
    "Method",
    "MethodError",
    "MethodRun",
    "PanelPull",
    "Pull",
    "Record",
    "Trial",
]


class MethodError(RuntimeError):
    """A method broke its contract, or failed.

    Parameters
    ----------
    method
        Its name.
    complaint
        What it did, as the end of a sentence.
    """

    def __init__(self, method: str, complaint: str) -> None:
        super().__init__(f"method {method!r} {complaint}")
        self.method, self.complaint = method, complaint

    def __reduce__(self) -> tuple[type[MethodError], tuple[str, str]]:
        return MethodError, (self.method, self.complaint)


class MethodRun(Counts, OpenAsks, Decisions, Memory, Outlook, Proof, Blocks, ResolutionGroups, MeasuresPanels, ABC):
    """One method at work on one problem: `ask`, `count`, `done`, `guess` and `evidence` are what it must have."""

    @abstractmethod
    def ask(self) -> Pull | PanelPull | None:
        """The next arm; it counts as under way. None if looking for it has found the groups."""

    @abstractmethod
    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        """Take in one result.

        Parameters
        ----------
        arm
            The arm that was measured.
        x
            (d) the result, or (2·d) for a method with `exact`: see `coterie.problem.noise.Noise.whiten_fully`.
        of_round
            The round of its ask.
        asked
            False for a result that nobody asked for.
        """

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the groups are found. Never taken back; nothing is asked or counted afterwards."""

    @property
    @abstractmethod
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        """Labels (M) in 0..K−1 and centers (K, d) in units of the noise: found, or guessed so far; None before.

        Where the question is for a resolution, K is as many groups as there are in this guess.
        """

    @abstractmethod
    def evidence(self) -> Evidence:
        """What the stopping rule reads."""

    # What follows from these five, unless a run knows better.

    @property
    def proven(self) -> bool:
        """Whether the groups are found: it may go on after that, to confirm them."""
        return self.done

    def is_right(self, instance: Instance) -> bool:
        """Whether the groups found are right on an instance whose truth is known: by default its partition."""
        if self.inner is not None:
            return self.inner.is_right(instance)
        return self.guess is not None and same_partition(self.guess[0], instance.labels)

    def follow(self, record: Record) -> Followed:
        """Go on as the record says, deciding anew, and compare: `Departure` names the first entry that differs."""
        return follow_steps(self, record)

    def apply(self, record: Record) -> None:
        """Bring back what was recorded without consulting the rule."""
        apply_steps(self, record)


Trial: TypeAlias = "Callable[[Plan, np.random.SeedSequence, RunningTrials], dict[str, Stops]]"
"""(plan, seed, running) → how the trial ended at each of `plan.trial_thresholds`: a loop for bulk trials, mostly
compiled (`coterie.methods.trials`)."""


@dataclass(frozen=True)
class Method:
    """An entry of the table of methods.

    Parameters
    ----------
    name
        1 to 64 printable characters, no blanks.
    sentence
        What it does, for lists of methods.
    start
        `start(settings)` gives a run at its beginning.
    sampling, stopping
        Its rules in a few words.
    needs
        Settings without a default that it cannot do without: "distance_ratio", "instance".
    certifies
        Whether it has certificates, events, alarms and partial answers.
    has_thresholds
        Whether it stops at the threshold that the settings name; otherwise its stop is always a proof.
    in_ask_order
        Whether its proof needs the results of an arm in the order in which they were asked for.
    exact
        Whether it takes results with what floats do not hold of them.
    simulates_only
        Whether it knows the truth, so that no campaign can use it.
    rules
        The number of its decision rules: a release whose rule asks for other arms on the same results raises it.
    trial
        The loop for bulk trials; without one `simulate` asks and tells the run.
    noises
        The kinds of noise that it takes (`coterie.problem.families.KINDS`); by default it has to know the noise.
    questions
        The kinds of questions that it answers (`coterie.problem.question.QUESTIONS`).
    weighs_costs
        Whether its sampling rule heeds `settings.costs`; others refuse them.
    blocks
        What results of a block may share, of `coterie.problem.settings.BLOCKS`; by default it takes no blocks.
    by_feature
        Whether it measures features one by one, where `settings.features` says which there are.
    restart
        `restart(settings, past)` gives a run for what was revised on the way, of the present items; without it nothing
        can be revised.
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
    blocks: frozenset[str] = frozenset()
    by_feature: bool = False
    restart: Callable[[Settings, Past], MethodRun] | None = None

    def proves(self, threshold: str) -> bool:
        """Whether its stop is a proof."""
        return not self.has_thresholds or threshold == "proven"

    def called(self, threshold: str) -> str:
        """Its name, with the threshold where it has several."""
        return f"{self.name}, {threshold} threshold" if self.has_thresholds else self.name
