"""Small runs of CROC, the same for the engine and for `tests.oracles.croc`, and what is to be equal of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

import coterie
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import canonical
from tests.oracles.croc import ReferenceCroc

DRAWN = 120
"""So many drawn cases are compared."""

PRICED = 24
"""… and so many with costs."""

FAMILIES = ("any", "one dominates", "whole numbers", "K = M - 1", "single arms", "close", "workers", "wrong K")


@dataclass(frozen=True)
class Case:
    """An instance and how it is measured. The s-th value of an arm depends on the seed only."""

    labels: tuple[int, ...]
    centers: tuple[tuple[float, ...], ...]
    n_clusters: int
    delta: float
    seed: int
    most: int = 150  # asks
    workers: int = 1  # open asks; results come in any order if there are several
    unreliable: float = 0.0  # the chance that an ask is given up, or that a result comes that nobody asked for
    whole: bool = False  # values rounded to whole numbers: exact ties
    costs: tuple[float, ...] | None = None  # of a measurement of each arm

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.labels), self.n_clusters, len(self.centers[0])


def drawn_case(number: int, sizes: tuple[int, int] = (3, 12), dims: tuple[int, int] = (1, 6), most: int = 150) -> Case:
    """The case with this number: `number` mod 8 is its family."""
    rng = np.random.default_rng([12, number, *sizes, *dims])
    family = FAMILIES[number % len(FAMILIES)]
    k = int(rng.integers(2, 5))
    m = k + 1 if family == "K = M - 1" else int(rng.integers(max(k + 1, sizes[0]), sizes[1] + 1))
    crowded = 1 if family in ("one dominates", "single arms") else k
    labels = np.concatenate([np.arange(k), rng.integers(0, crowded, m - k)])
    if family == "one dominates" and k > 2:
        labels[-1] = 1
    rng.shuffle(labels)
    centers = rng.normal(size=(k, int(rng.integers(dims[0], dims[1] + 1))))
    smallest = min(float(np.linalg.norm(centers[a] - centers[b])) for a in range(k) for b in range(a))
    low, high = {"close": (0.6, 1.2), "wrong K": (3.0, 30.0)}.get(family, (0.8, 8.0))
    centers *= np.exp(rng.uniform(np.log(low), np.log(high))) / smallest
    case = Case(
        tuple(labels.tolist()),
        tuple(map(tuple, centers.tolist())),
        k,
        float(rng.choice([0.3, 0.05, 1e-3, 1e-10])),
        number,
        most,
    )
    if family == "whole numbers":
        return replace(case, whole=True)
    if family == "workers":
        return replace(case, workers=int(rng.integers(2, 9)), unreliable=float(rng.choice([0.0, 0.05])))
    if family == "wrong K" and k > 2:
        return replace(case, n_clusters=k - 1)
    return case


def priced_case(number: int) -> Case:
    """A case with costs: that with this number, with ratios of 2 to 5,000 between its arms, some of them equal."""
    case = drawn_case(number)
    rng = np.random.default_rng([13, number])
    spread = float(rng.choice([0.3, 1.2, 4.0]))
    costs = np.exp(rng.uniform(-spread, spread, len(case.labels)))
    if number % 3 == 0:
        costs = np.where(rng.random(costs.size) < 0.4, math.exp(spread), 1.0)
    return replace(case, costs=tuple(costs.tolist()))


class Run(Protocol):
    """What the engine and the reference have in common."""

    @property
    def done(self) -> bool: ...

    def ask(self) -> int | None: ...

    def tell(self, arm: int, x: FloatArray) -> None: ...

    def forget(self, arm: int) -> None: ...


class EngineRun:
    """A session, with the verbs of the reference."""

    def __init__(self, n_arms: int, n_clusters: int, dim: int, delta: float, costs: Any) -> None:
        self.session = coterie.Session(n_arms, n_clusters, dim, delta=delta, method="croc", noise=1.0, costs=costs)

    @property
    def done(self) -> bool:
        return self.session.done

    def ask(self) -> int | None:
        try:
            arm: int = self.session.ask()
        except coterie.SessionDone:
            return None
        return arm

    def tell(self, arm: int, x: FloatArray) -> None:
        self.session.tell(arm, x)

    def forget(self, arm: int) -> None:
        self.session.forget(next(ticket for ticket, its in self.session.pending if its == arm))


def follow(run: Run, case: Case) -> list[int]:
    """Ask and tell until it is done or has asked often enough. The arms asked for; −1 − arm where one was given up."""
    centers = np.array(case.centers)
    draws = [np.random.default_rng([case.seed, arm]) for arm in range(len(case.labels))]
    chance = np.random.default_rng([case.seed, len(case.labels)])

    def measure(arm: int) -> FloatArray:
        value = centers[case.labels[arm]] + draws[arm].standard_normal(centers.shape[1])
        return np.asarray(np.round(value) if case.whole else value)

    history: list[int] = []
    pending: list[int] = []
    asks = 0
    while asks < case.most:
        while len(pending) < case.workers and not run.done:
            asked = run.ask()
            if asked is not None:
                history.append(asked)
                pending.append(asked)
                asks += 1
        if run.done or not pending:
            break
        arm = pending.pop(int(chance.integers(len(pending))) if case.workers > 1 else 0)
        luck = chance.random() if case.unreliable else 1.0
        if luck < case.unreliable:
            run.forget(arm)
            history.append(-1 - arm)
            continue
        if luck < 2.0 * case.unreliable:
            other = int(chance.integers(len(case.labels)))
            if other != arm and other not in pending:
                run.tell(other, measure(other))
        run.tell(arm, measure(arm))
    return history


def engine_facts(case: Case) -> dict[str, Any]:
    """What the engine does: arms, time, groups, freezes and rounds."""
    run = EngineRun(*case.shape, case.delta, case.costs)
    arms = follow(run, case)
    events, session = run.session.events, run.session
    freezes, rounds, t = [], [], 0
    for event in events:
        if event["event"] == "result":
            t += 1
        elif event["event"] == "freeze":
            freezes.append((t, event["labels"], event["cores"]))
        elif event["event"] == "round":
            rounds.append((event["epoch"], event["pulls"]))
    return {
        "arms": arms,
        "t": session.t,
        "proven by": session.certificate["by"] if session.certificate is not None else "",
        "labels": _plain(session.labels),
        "alarm": session.alarm is not None,
        "freezes": freezes,
        "rounds": rounds,
    }


def reference_facts(case: Case) -> dict[str, Any]:
    """The same of the reference."""
    run = ReferenceCroc(*case.shape, case.delta, case.costs)
    arms = follow(run, case)
    return {
        "arms": arms,
        "t": run.t,
        "proven by": run.by,
        "labels": _plain(run.labels),
        "alarm": run.alarm is not None,
        "freezes": [(epoch.t, epoch.labels, epoch.cores) for epoch in run.freezes],
        "rounds": [(one.epoch, [[m, one.pulls[m]] for m in sorted(one.pulls)]) for one in run.rounds],
    }


def _plain(labels: IntArray | None) -> list[int] | None:
    return None if labels is None else canonical(labels).tolist()


def case_named(name: int | str) -> Case:
    """A drawn case by its number, a pinned one by its name."""
    return drawn_case(name) if isinstance(name, int) else PINNED[name]


def _line(*places: float) -> tuple[tuple[float, ...], ...]:
    """Centers in one dimension."""
    return tuple((place,) for place in places)


def _between(n_arms: int, dim: int, place: float, in_between: int, seed: int) -> Case:
    """Two groups, 6 apart, but for a few arms in between: plans are short, for these arms only."""
    rest = n_arms - in_between
    rows = [(x, *[0.0] * (dim - 1)) for x in (0.0, 6.0, place)]
    labels = [0] * (rest // 2) + [1] * (rest - rest // 2) + [2] * in_between
    return Case(tuple(labels), tuple(rows), 2, 1e-10, seed, 400)


PINNED: dict[str, Case] = {
    "costs, cores": priced_case(7),
    "costs, pools": priced_case(5),
    "an alarm": Case((0, 0, 1, 2), _line(0.0, 20.0, 50.0), 2, 0.05, 0),
    "one of four, three groups": Case((0, 1, 2, 0), _line(5.2, 3.2, -8.9), 3, 1e-10, 4),
    "two groups far apart": Case((0, 1, 1, 0, 1, 1), ((-0.2, -2.3, 1.6), (3.3, -6.4, -1.0)), 2, 1e-10, 2),
    "sixty workers": Case((0, 0, 0, 1, 1), _line(0.0, 2.0), 2, 1e-100, 0, 500, workers=60),
    "results nobody asked for": Case((0, 1, 1), _line(0.0, 0.7), 2, 1e-6, 1, 700, workers=2, unreliable=0.45),
    "three groups, K = 2": Case((0, 0, 1, 1, 2, 2), _line(0.0, 1.0, 2.0), 2, 1e-30, 0, 500),
    "one of 40 in the middle": _between(40, 20, 3.0, 1, 0),
    "one of 40 near the middle": _between(40, 20, 2.6, 1, 2),
    "two of 40 in the middle": _between(40, 12, 3.0, 2, 4),
    "three of 30 in the middle": _between(30, 12, 3.0, 3, 4),
    "two and two groups, K = 3": Case(
        tuple(np.repeat([0, 1, 2, 3], [32, 32, 33, 33]).tolist()), _line(0.0, 1.2, 20.0, 21.2), 3, 1e-10, 5, 330
    ),
}
