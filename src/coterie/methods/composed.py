"""A method composed of a sampling rule and a stopping rule: `coterie.methods.compose`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.methods.contract import Method, MethodRun, Pull
from coterie.methods.maximin import weighted_centers
from coterie.methods.reports import Evidence
from coterie.methods.rules import SAMPLING, STOPPING, Reading, SamplingRule, StoppingRule, Tally, least_measured
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.settings import Settings


def compose(
    name: str,
    *,
    sampling: str | SamplingRule | type = "uniform",
    stopping: str | StoppingRule | type = "paper",
    sentence: str = "",
    needs: Iterable[str] = (),
    noises: Iterable[str] = ("known",),
    has_thresholds: bool | None = None,
    in_ask_order: bool | None = None,
) -> Method:
    """A method from two rules, for `coterie.methods.register`.

    Until every arm has a result the least measured arm is next, and neither rule is consulted. A rule may be a class:
    every run then makes an instance of it, without arguments, and calls that.

    Parameters
    ----------
    name
        Of the method.
    sampling
        "uniform", or a function of a `Tally` that gives the next arm.
    stopping
        "paper" (Z(t) against the threshold), "pairs" (a union bound over pairs of arms), or a function of a `Tally`
        that gives a `Reading`.
    sentence
        What the method does, for lists of methods; by default it is made from the rules.
    needs
        Settings without a default that it cannot do without: "distance_ratio", "instance".
    noises
        The kinds of noise under which the rules hold; under others than "known" results are in the user's units.
    has_thresholds
        Whether the stopping rule looks at `tally.settings.threshold`; by default what an attribute of the rule says.
    in_ask_order
        Whether its proof needs the results of an arm in the order in which they were asked for; by default what an
        attribute of the rule says.

    Returns
    -------
    Method
        The entry.

    Examples
    --------
    >>> import coterie
    >>> from coterie import methods
    >>> most_uncertain = methods.compose("most-uncertain", sampling=lambda tally: int(tally.committed.argmin()),
    ...                                  stopping="pairs", sentence="the least measured arm")
    >>> entry = methods.register(most_uncertain)
    >>> instance = coterie.Instance([0, 0, 1], [[0.0], [5.0]])
    >>> coterie.simulate(instance, "most-uncertain", deltas=(0.1,), trials=4, progress=False).errors().tolist()
    [0]
    >>> methods.unregister("most-uncertain")
    """
    choose = _rule(sampling, SAMPLING, "sampling")
    read = _rule(stopping, STOPPING, "stopping")
    return Method(
        name,
        sentence or f"sampling: {_described(sampling)}; stopping: {_described(stopping)}",
        Composition(choose, read),
        sampling=_described(sampling),
        stopping=_described(stopping),
        needs=frozenset(needs),
        noises=frozenset(noises),
        has_thresholds=_stated(read, "has_thresholds") if has_thresholds is None else has_thresholds,
        in_ask_order=_stated(read, "in_ask_order") if in_ask_order is None else in_ask_order,
    )


def _rule(given: Any, known: Mapping[str, Any], kind: str) -> Any:
    if isinstance(given, str):
        if given not in known:
            raise ValueError(f"unknown {kind} rule {given!r}: choose one of {', '.join(known)}, or give a function")
        return known[given]
    if not callable(given):
        raise TypeError(f"the {kind} rule must be a name, a function or a class, got {short(given)}")
    return given


def _described(given: Any) -> str:
    """A rule in a few words: its name, or the first line of what its author says about it."""
    if isinstance(given, str):
        return given
    own = getattr(given, "__doc__", None) if hasattr(given, "__name__") else None
    lines = (own or "").strip().splitlines()
    return lines[0] if lines else str(getattr(given, "__name__", type(given).__name__))


def _stated(rule: Any, attribute: str) -> bool:
    return bool(getattr(rule, attribute, False))


@dataclass(frozen=True)
class Composition:
    """How a run of two rules starts. It can be sent to another process if the rules can."""

    sampling: Any
    stopping: Any

    def __call__(self, settings: Settings) -> ComposedRun:
        return ComposedRun(settings, _own(self.sampling), _own(self.stopping))


def _own(rule: Any) -> Callable[[Tally], Any]:
    """The rule of one run: an instance of its own if the rule is a class."""
    made: Callable[[Tally], Any] = rule() if isinstance(rule, type) else rule
    return made


class ComposedRun(MethodRun):
    """A sampling rule and a stopping rule at work. What is asked for and when it stops is theirs alone."""

    def __init__(self, settings: Settings, sampling: SamplingRule, stopping: StoppingRule) -> None:
        self._sampling, self._stopping = sampling, stopping
        self._tally = Tally(settings)
        self._reading = Reading(float("-inf"), float("inf"))
        self._found: IntArray | None = None

    @property
    def done(self) -> bool:
        return self._found is not None

    @property
    def t(self) -> int:
        return self._tally.t

    @property
    def pulls(self) -> IntArray:
        return self._tally.pulls.copy()

    @property
    def guess(self) -> tuple[IntArray, FloatArray] | None:
        tally = self._tally
        if self._found is not None:
            nowhere = np.zeros((tally.n_clusters, tally.dim))
            return self._found, weighted_centers(tally.means, tally.pulls.astype(np.float64), self._found, nowhere)
        return (tally.labels, tally.centers) if tally.ready else None

    def ask(self) -> Pull:
        tally = self._tally
        arm = self._sampling(tally) if tally.ready else least_measured(tally)
        if isinstance(arm, int | np.integer) and 0 <= arm < tally.n_arms:  # else whoever guards the run says so
            tally.commit(int(arm), +1)
        return Pull(arm)

    def count(self, arm: int, x: FloatArray, of_round: int, asked: bool) -> None:
        tally = self._tally
        tally.add(arm, x, asked)
        if not tally.ready:
            return
        reading = self._stopping(tally)
        if not isinstance(reading, Reading):
            raise TypeError(f"the stopping rule must give a coterie.methods.Reading, got {short(reading)}")
        self._reading = reading
        if reading.statistic >= reading.threshold:
            self._found = tally.labels if reading.labels is None else self._checked(reading.labels)

    def _checked(self, labels: Any) -> IntArray:
        """A copy of the groups with which the rule stops."""
        n_arms, n_clusters = self._tally.n_arms, self._tally.n_clusters
        groups = np.array(labels)
        if (
            groups.shape != (n_arms,)
            or groups.dtype.kind not in "iu"
            or not np.isin(groups, np.arange(n_clusters)).all()
        ):
            raise ValueError(
                f"the stopping rule must stop with {n_arms} numbers from 0 to {n_clusters - 1}, got {short(labels)}"
            )
        return groups.astype(np.int64)

    def give_up(self, arm: int, of_round: int) -> None:
        self._tally.commit(arm, -1)

    def open_recorded(self, arm: int, of_round: int) -> None:
        self._tally.commit(arm, +1)

    def evidence(self) -> Evidence:
        reading = self._reading
        return Evidence(float(reading.statistic), float(reading.threshold), reading.weakest)
