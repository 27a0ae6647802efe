"""A method composed of two rules, `coterie.methods.compose`: one names the next arm, the other reads the evidence.

Both are functions of a `Tally`. One that has to remember something is a class: each run has an instance of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from coterie.evidence.pairs import pair_evidence
from coterie.evidence.stopping import alternative_value, threshold_from_log
from coterie.methods.contract import Method, MethodRun, Pull
from coterie.methods.maximin import kmeans_maximin, weighted_centers
from coterie.methods.reports import Evidence, Weakest
from coterie.problem.checks import FloatArray, IntArray, short
from coterie.problem.settings import Settings


class Tally:
    """Results so far, in units of the noise: standard Gaussian noise in every direction. Its arrays are read-only.

    Parameters
    ----------
    settings : coterie.problem.settings.Settings
        What is asked.

    Attributes
    ----------
    n_arms, n_clusters, dim, delta, t
        M, K, d, δ, and how many results have counted.
    pulls, committed, sums : array
        N_m(t), the results of each arm (M); these and the asks under way (M); the sums of the results (M, d).
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.n_arms, self.n_clusters, self.dim = settings.shape
        self.delta = settings.delta
        self.t = 0
        self._pulls = np.zeros(self.n_arms, dtype=np.int64)
        self._committed = np.zeros(self.n_arms, dtype=np.int64)
        self._sums = np.zeros((self.n_arms, self.dim))
        self.pulls, self.committed, self.sums = map(_read_only, (self._pulls, self._committed, self._sums))
        self._stacks = [np.zeros((4, self.dim)) for _ in range(self.n_arms)]
        self._guess: tuple[IntArray, FloatArray] | None = None
        self._guessed_at = 0

    @property
    def means(self) -> FloatArray:
        """(M, d) running means; 0 for an arm without a result."""
        means: FloatArray = self._sums / np.maximum(self._pulls, 1)[:, None]
        return means

    def results(self, arm: int) -> FloatArray:
        """(N, d) the results of one arm in the order in which they counted."""
        return _read_only(self._stacks[arm][: self._pulls[arm]])

    @property
    def ready(self) -> bool:
        """Whether there is a guess: every arm has a result."""
        return bool(self._pulls.min() > 0)

    @property
    def labels(self) -> IntArray:
        """(M) the present guess of the groups, by K-means–Maximin (Alg. 2) of the running means."""
        return self._guess_now()[0]

    @property
    def centers(self) -> FloatArray:
        """(K, d) the centers of the present guess."""
        return self._guess_now()[1]

    def _guess_now(self) -> tuple[IntArray, FloatArray]:
        if not self.ready:
            raise ValueError("there is no guess of the groups before every arm has a result")
        if self._guess is None or self._guessed_at != self.t:
            labels, centers = kmeans_maximin(self.means, self._pulls, self.n_clusters)
            self._guess, self._guessed_at = (_read_only(labels), _read_only(centers)), self.t
        return self._guess

    # What the run does to it.

    def commit(self, arm: int, change: int) -> None:
        """Count an ask as under way (+1) or as given up (−1)."""
        self._committed[arm] += change

    def add(self, arm: int, x: FloatArray, asked: bool) -> None:
        """Take in a result; `asked` if its ask was counted as under way."""
        self._committed[arm] += not asked
        stack, n = self._stacks[arm], int(self._pulls[arm])
        if n == len(stack):
            stack = self._stacks[arm] = np.concatenate([stack, np.zeros_like(stack)])
        stack[n] = x
        self._sums[arm] += x
        self._pulls[arm] += 1
        self.t += 1


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.setflags(write=False)
    return view


class Reading(NamedTuple):
    """What a stopping rule says: it stops when `statistic` reaches `threshold`.

    Parameters
    ----------
    statistic, threshold
        What is compared.
    labels
        (M) the groups with which it stops; those of the tally's guess if none are given.
    weakest
        What holds it up.
    """

    statistic: float
    threshold: float
    labels: IntArray | None = None
    weakest: Weakest | None = None


SamplingRule: TypeAlias = Callable[[Tally], int]
"""The next arm. Consulted once every arm has a result."""

StoppingRule: TypeAlias = Callable[[Tally], Reading]
"""Consulted after every result, once every arm has one."""


def least_measured(tally: Tally) -> int:
    """The arm with the fewest results and asks under way, the lowest index among ties."""
    return int(np.argmin(tally.committed))


class PaperStop:
    """Z(t) ≥ β(δ, t), or β̃(δ, t) with the heuristic threshold: line 13 of Alg. 1, with the corrected Z2.

    Z(t) compares the guess of t−1 with the means of t.
    """

    has_thresholds = True

    def __init__(self) -> None:
        self._guess_before: tuple[IntArray, FloatArray] | None = None

    def __call__(self, tally: Tally) -> Reading:
        before, self._guess_before = self._guess_before, (tally.labels, tally.centers)
        kind = tally.settings.threshold
        limit = threshold_from_log(-math.log(tally.delta), tally.pulls, tally.dim, kind)
        if before is None:
            return Reading(0.0, limit)
        labels, centers = before
        off = ((tally.means - centers[labels]) ** 2).sum(axis=1)
        z1 = float((tally.pulls * off).sum())
        z2 = alternative_value(labels, centers, tally.pulls.astype(np.float64))
        statistic = 0.5 * max(math.sqrt(z2) - math.sqrt(z1), 0.0) ** 2
        return Reading(statistic, limit, labels)


class PairsStop:
    """Every arm is proven different from the representative of each group but its own, by pairs of arms.

    At most H = (M−K+1)(M−K)/2 pairs of arms are equal. For each of them `coterie.pair_evidence` ever reaches log(H/δ)
    with probability at most δ/H, whatever is measured; so with probability at least 1−δ no equal pair is ever taken for
    different. If then K arms are proven different from each other, there is one in each group, and an arm that differs
    from all of them but one is in the group of that one. The evidence pairs results by position: they have to count in
    the order in which they were asked for.
    """

    in_ask_order = True

    def __init__(self) -> None:
        self._best: FloatArray | None = None  # (M, M) the largest evidence so far
        self._read: IntArray | None = None  # (M, M) results of both arms when it was last read

    def __call__(self, tally: Tally) -> Reading:
        m, labels = tally.n_arms, tally.labels
        if self._best is None or self._read is None:
            self._best, self._read = np.full((m, m), -np.inf), np.zeros((m, m), dtype=np.int64)
        equal_pairs = (m - tally.n_clusters + 1) * (m - tally.n_clusters) // 2
        level = math.log(max(1, equal_pairs) / tally.delta)
        # The most measured arm of a group stands for it; of several the first.
        members = [np.flatnonzero(labels == k) for k in range(tally.n_clusters)]
        if any(group.size == 0 for group in members):
            return Reading(-math.inf, level)
        leads = [int(group[np.argmax(tally.pulls[group])]) for group in members]
        weakest: Weakest | None = None
        for k, lead in enumerate(leads):
            for arm in np.flatnonzero(labels != k).tolist():
                value = self._evidence(tally, min(arm, lead), max(arm, lead), level)
                if weakest is None or value < weakest.statistic:
                    weakest = Weakest(arm, k, value, level, lead)
        assert weakest is not None  # there are at least two groups
        return Reading(weakest.statistic, level, labels, weakest)

    def _evidence(self, tally: Tally, i: int, j: int, level: float) -> float:
        """The largest evidence so far that arms i and j differ; not read again once it has reached its level."""
        assert self._best is not None
        assert self._read is not None
        counts = int(tally.pulls[i] + tally.pulls[j])
        if self._best[i, j] < level and counts > self._read[i, j]:
            self._best[i, j] = max(self._best[i, j], pair_evidence(tally.results(i), tally.results(j)))
            self._read[i, j] = counts
        return float(self._best[i, j])


SAMPLING: dict[str, SamplingRule | type] = {"uniform": least_measured}
"""The sampling rules that can be named."""

STOPPING: dict[str, StoppingRule | type] = {"paper": PaperStop, "pairs": PairsStop}
"""The stopping rules that can be named."""


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
