"""Simulated runs with what their forecasts are made of, at moments along the way: to fit forecasts and to try them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import coterie
from bench.families import FAMILIES, random_instance, spread
from coterie.methods.reports import Standing
from coterie.problem.checks import FloatArray

MOST = 4000
"""Measurements of a run; one that is not done by then is left out."""
STEP = 1.2
"""A forecast is looked at whenever there are so many times the measurements."""
DELTAS = (0.1, 0.05, 0.01, 1e-4)

Draw = Callable[[np.random.Generator, int], FloatArray]


class Moment(NamedTuple):
    """A moment of a run: what its forecast is made of."""

    t: int
    standing: Standing
    left: float


@dataclass(frozen=True)
class Course:
    """A run that took `total` measurements, and moments of it."""

    items: int
    total: int
    moments: tuple[Moment, ...]

    @property
    def parts(self) -> list[tuple[Moment, float]]:
        """The moments, each with the part of the run that lies between it and the next."""
        ends = [*(one.t for one in self.moments), self.total][1:]
        return [(one, (end - one.t) / self.total) for one, end in zip(self.moments, ends, strict=True)]


def run_of(session: coterie.Session, draw: Draw, rng: np.random.Generator, most: int = MOST) -> Course | None:
    """A run from beginning to end; None if it takes too long."""
    moments, next_look = [], session.n_arms
    run = session._conversation.run
    while not session.done:
        if session.t >= most:
            return None
        for ticket in session.open(1):
            session.tell(ticket.arm, draw(rng, ticket.arm), ticket.number)
        if session.t >= next_look and not session.done and (session.pulls > 0).all():
            next_look = math.ceil(session.t * STEP)
            standing, total = run.standing(), session.forecast
            assert standing is not None
            left = standing.left if total is None else max(total - session.t, 1.0)
            if left is not None and math.isfinite(left):
                moments.append(Moment(session.t, standing, left))
    return Course(session.n_arms, session.t, tuple(moments))


def _about(means: FloatArray) -> Draw:
    return lambda rng, arm: means[arm] + rng.standard_normal(means.shape[1])


def _dealt(rng: np.random.Generator, items: tuple[int, int], most_groups: int) -> tuple[int, np.ndarray]:
    """K and labels of so many items at least and at most."""
    n_arms = int(rng.integers(*items))
    n_groups = int(rng.integers(2, min(most_groups, n_arms - 1) + 1))
    return n_groups, np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, n_arms - n_groups)])


def _places(rng: np.random.Generator, count: int, low: float, high: float, gap: float) -> FloatArray:
    while True:
        found = np.sort(rng.uniform(low, high, count))
        if np.diff(found).min() > gap:
            return found


def _drawn(noise: Any, **options: Any) -> Callable[[np.random.Generator], tuple[coterie.Session, Draw]]:
    """Instances as `random_instance` draws them, with Gaussian results."""

    def make(rng: np.random.Generator) -> tuple[coterie.Session, Draw]:
        drawn = random_instance(rng, arms=(4, 60), dims=(1, 8), gaps=(0.7, 5.0), most_clusters=8).instance
        delta = float(rng.choice(DELTAS))
        shape = drawn.n_arms, drawn.n_clusters, drawn.dim, delta
        return coterie.Session(*shape, noise=noise, **options), _about(drawn.means)

    return make


def _counts(rng: np.random.Generator) -> tuple[coterie.Session, Draw]:
    n_groups, labels = _dealt(rng, (4, 40), 5)
    trials, rates = int(rng.choice([1, 20, 100])), _places(rng, n_groups, 0.02, 0.9, 0.08)[labels]
    session = coterie.Session(labels.size, n_groups, 1, float(rng.choice(DELTAS)), noise=coterie.Counts(trials))
    return session, lambda rng, arm: np.array([float(rng.binomial(trials, rates[arm]))])


def _ratings(rng: np.random.Generator) -> tuple[coterie.Session, Draw]:
    n_groups, labels = _dealt(rng, (4, 40), 5)
    rates = (_places(rng, n_groups, 1.3, 4.7, 0.6)[labels] - 1.0) / 4.0
    session = coterie.Session(labels.size, n_groups, 1, float(rng.choice(DELTAS)), noise=coterie.Bounded(1, 5))
    return session, lambda rng, arm: np.array([1.0 + rng.binomial(4, rates[arm])])


def _bounds(linkage: bool) -> Callable[[np.random.Generator], tuple[coterie.Session, Draw]]:
    """Items near the centers of groups: up to a resolution, or by single linkage."""

    def make(rng: np.random.Generator) -> tuple[coterie.Session, Draw]:
        n_groups, labels = _dealt(rng, (4, 30), 5)
        dim, gap = int(rng.integers(1, 4)), float(rng.uniform(2.0, 4.0))
        means = spread(n_groups, gap, dim, rng)[labels] + rng.uniform(-0.05, 0.05, (labels.size, dim)) * gap
        noise, delta = (1.0, "gaussian")[int(rng.integers(2))], float(rng.choice(DELTAS))
        apart = float(rng.uniform(0.7, 1.0)) * gap
        asked: dict[str, Any] = {"groups": "linkage"} if linkage else {"resolution": (0.3 * gap, apart)}
        clusters = n_groups if linkage else None
        return coterie.Session(labels.size, clusters, dim, delta, noise=noise, **asked), _about(means)

    return make


FITTED: dict[str, dict[str, Callable[[np.random.Generator], tuple[coterie.Session, Draw]]]] = {
    "tests": {
        "known noise": _drawn(1.0),
        "any noise": _drawn(None),
        "Gaussian noise": _drawn("gaussian"),
        "counts": _counts,
        "ratings": _ratings,
    },
    "bounds": {"resolution": _bounds(False)},
    "links": {"linkage": _bounds(True)},
    "statistic": {"BOC": _drawn(1.0, method="boc", threshold="heuristic")},
}
"""What the table is fitted to, by the way in which runs go."""


def _family(name: str, noise: Any, draw: str = "normal", **options: Any) -> Callable[[Any], tuple[Any, Draw]]:
    """An instance of the benchmark, which no fit has seen."""
    instance = FAMILIES[name].instance
    means = instance.means
    asked: dict[str, Any] = {"n_clusters": instance.n_clusters} if "resolution" not in options else {}

    def make(rng: np.random.Generator) -> tuple[coterie.Session, Draw]:
        session = coterie.Session(instance.n_arms, dim=instance.dim, delta=0.05, noise=noise, **asked, **options)
        if draw == "t3":
            return session, lambda rng, arm: means[arm] + rng.standard_t(3, means.shape[1]) / math.sqrt(3.0)
        return session, _about(means)

    return make


HELD_OUT: dict[str, Callable[[np.random.Generator], tuple[coterie.Session, Draw]]] = {
    "four of 10, d=3, known": _family("four of 10, d=3", 1.0),
    "a chain of 8, d=3, known": _family("a chain of 8, d=3", 1.0),
    "sizes 32 … 1, d=1, known": _family("sizes 32 … 1, d=1", 1.0),
    "a chain of 8, d=1, any, t3": _family("a chain of 8, d=1", None, "t3"),
    "four of 10, d=10, any": _family("four of 10, d=10", None),
    "20,20 and 20 far away, d=3, Gaussian": _family("20,20 and 20 far away, d=3", "gaussian"),
    "four of 10, d=3, symmetric": _family("four of 10, d=3", coterie.Symmetric()),
    "a chain of 8, d=1, resolution": _family("a chain of 8, d=1", 1.0, resolution=(0.5, 1.8)),
    "a chain of 8, d=3, BOC": _family("a chain of 8, d=3", 1.0, method="boc", threshold="heuristic"),
}
"""Families that the table was not fitted to, by name: other shapes of groups, and other noises too."""
