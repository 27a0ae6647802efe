"""Small runs for a resolution or single linkage: the engine's, and those of the plain oracle on the same noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plain_near_far as plain
from plain_freezing import PlainRun
from plain_linkage import PlainLinkage
from plain_sampling import PlainSampling

import coterie
from coterie.evidence.near_far import family_for, scale_of
from coterie.methods.start import start
from coterie.methods.table import prepared
from coterie.problem.families import Bounded, Unknown
from coterie.problem.noise import Noise
from coterie.problem.settings import Settings

Facts = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Means (M, d) and what is asked. `under_way`: asks before the first of them is answered."""

    means: Any
    noise: Any
    seed: int
    resolution: Any = None
    n_clusters: int | None = None
    delta: float = 0.1
    costs: Any = None
    under_way: int = 1
    uniform: float = 0.0  # half the width of uniform noise, if it is not standard Gaussian
    most: int = 4000
    forecasts: bool = False

    @property
    def settings(self) -> Settings:
        n_arms, dim = np.shape(self.means)
        groups: dict[str, Any] = {} if self.n_clusters is None else {"groups": "linkage"}
        found, _ = prepared(
            Settings.of(
                n_arms, self.n_clusters, dim, self.delta, noise=self.noise, resolution=self.resolution, **groups
            )
        )
        return found if self.costs is None else replace(found, costs=tuple(self.costs))

    def results(self) -> list[Any]:
        """One stream of results for each arm."""
        rng = np.random.default_rng(self.seed)
        shape = (self.most, *np.shape(self.means))
        noise = rng.uniform(-self.uniform, self.uniform, shape) if self.uniform else rng.standard_normal(shape)
        return list(np.swapaxes(np.asarray(self.means) + noise, 0, 1))


def engine_facts(case: Case) -> Facts:
    """What was asked for in which order, and what was frozen."""
    settings = case.settings
    run = start(settings, prepared(settings)[1])
    freezes: list[Any] = []

    def ask() -> tuple[int, int] | None:
        pull = run.ask()
        return None if pull is None else (pull.arm, pull.round)

    def tell(arm: int, x: Any, of_round: int) -> None:
        run.count(arm, settings.noise.whiten_fully(x[None])[0], of_round, True)

    asks, forecasts = played(case, ask, tell, run.forecast)
    for one in run.new_decisions():
        rows = [[kind, *test[:3]] for kind in ("near", "far") for test in one[kind]]
        stated = None
        if case.n_clusters is not None:
            balls = [[lead, round(radius, 9), items] for lead, radius, items in one["balls"]]
            stated = [round(one["height"], 9), balls]
        freezes.append(
            {
                "at": one["frozen_at"], "level": round(one["level"], 9), "labels": one["labels"],
                "references": one["references"], "tests": rows, "stated": stated,
            }
        )  # fmt: skip
    guess = None if run.guess is None else run.guess[0].tolist()
    return {"asks": asks, "done": run.done, "freezes": freezes, "guess": guess, "forecasts": forecasts}


def oracle_facts(case: Case) -> Facts:
    """The same by the plain oracle."""
    run, scale = oracle_run(case), scale_of(case.settings.question, np.shape(case.means)[1])

    def ask() -> tuple[int, int] | None:
        arm = run.ask()
        return None if arm is None else (arm, len(run.freezes))

    def tell(arm: int, x: Any, of_round: int) -> None:
        run.tell(arm, x / scale, of_round)

    asks, forecasts = played(case, ask, tell, run.forecast_of_all)
    guess = run.epoch.candidate if run.epoch is not None else run.candidate
    groups = guess and guess.labels
    return {"asks": asks, "done": run.done, "freezes": run.freezes, "guess": groups, "forecasts": forecasts}


def oracle_run(case: Case) -> PlainRun:
    settings = case.settings
    noise, question, (n_arms, dim) = settings.noise, settings.question, np.shape(case.means)
    scale = scale_of(question, dim)
    family = family_for(noise, question, dim)
    assert family is not None
    world = plain.World("known", family.norm, [1.0] * dim)
    variance, least = None, 0.0
    if isinstance(noise, Noise):
        covariance = noise.covariance / np.outer(scale, scale)
        world.kind, world.covariance = "exactly" if noise.exact else "known", covariance.tolist()
        variance = np.diag(covariance)
    else:
        assert isinstance(noise, Unknown)
        assert isinstance(noise.statement, Bounded)
        world.kind = "bounded"
        world.widths = (np.broadcast_to(np.subtract(noise.statement.hi, noise.statement.lo), dim) / scale).tolist()
    price = None if case.costs is None else np.array(case.costs) / min(case.costs)
    kind = PlainSampling if case.n_clusters is None else PlainLinkage
    near, far = np.ones(dim), np.zeros(dim)
    any_two = False
    if case.n_clusters is None:
        asked = coterie.Resolution.of(case.resolution)
        far, any_two = asked.epsilon(dim) / scale, asked.claims == "any-two"
    run = kind(family, world, n_arms, case.delta, near, far, any_two, variance, least, price)
    if isinstance(run, PlainLinkage):
        assert case.n_clusters is not None
        run.n_clusters = case.n_clusters
    return run


def played(case: Case, ask: Any, tell: Any, forecast: Any) -> tuple[list[int], list[str]]:
    """Ask, and answer the oldest ask as soon as enough are under way. The asks, and forecasts on the way."""
    streams, given = case.results(), [0] * len(case.means)
    asks: list[int] = []
    forecasts: list[str] = []
    under_way: list[tuple[int, int]] = []
    while len(asks) < case.most:
        pull = ask()
        if pull is None:
            break
        asks.append(pull[0])
        under_way.append(pull)
        if len(under_way) >= case.under_way:
            arm, of_round = under_way.pop(0)
            tell(arm, streams[arm][given[arm]], of_round)
            given[arm] += 1
        if len(asks) % 8 == 0 and case.forecasts and len(asks) > 3 * len(case.means):
            said = forecast()
            forecasts.append("none" if said is None else f"{said:.9g}")
    return asks, forecasts


def drawn(seed: int, **more: Any) -> Case:
    """Two or three groups of 6 to 10 items; at δ = 0.5 freezes come early, and some are wrong."""
    rng = np.random.default_rng([5, seed])
    n_arms, dim, n_groups = int(rng.integers(6, 11)), int(rng.integers(1, 3)), int(rng.integers(2, 4))
    centers = 2.0 * rng.standard_normal((n_groups, dim))
    means = np.round(centers[np.arange(n_arms) % n_groups] + 0.2 * rng.standard_normal((n_arms, dim)), 2)
    if seed % 4 == 3:
        line = np.round(np.sort(rng.uniform(0, 4, n_arms)), 2)[:, None]
        return Case(line, 1.0, seed, (0.5, 1.5), delta=0.5, **more)
    norm = "each" if seed % 4 == 0 else "distance"
    noise = coterie.Exactly(1.0) if seed % 4 == 2 else 1.0
    return Case(means, noise, seed, coterie.Resolution(0.5, 2.0, norm), delta=0.5, **more)


GROUPS = np.array([[0.0, 0.1], [3.1, 0.0], [0.2, -0.1], [2.9, 0.2], [0.1, 0.3], [3.0, -0.2], [-0.1, 0.0], [3.2, 0.1]])

CASES: dict[str, Case] = {
    "each number": drawn(0, forecasts=True),
    "distance, three freezes": drawn(1, forecasts=True),
    "noise exactly known": drawn(2, forecasts=True),
    "distance, references in blocks": drawn(5, forecasts=True),
    "a line": drawn(3),
    "many results of a reference": Case(np.array([[0.0], [0.9], [1.8], [4.6], [5.5], [6.4]]), 1.0, 1, (4.2, 4.5)),
    "any two": Case(GROUPS[:6, :1], 1.0, 4, coterie.Resolution(0.5, 2.5, "each", "any-two")),
    "bounded": Case(GROUPS[:7, :1], coterie.Bounded(-9, 9), 5, (0.3, 2.5), uniform=0.5),
    "seven workers": Case(GROUPS, 1.0, 6, (0.5, 2.5), under_way=7),
    "costs": Case(GROUPS, 1.0, 8, (0.5, 2.5), costs=(1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0)),
    "linkage": Case(np.array([[0.0, 0.0], [3.9, 0.1], [0.3, 0.2], [4.2, 0.0], [-0.2, 0.3]]), 1.0, 9, n_clusters=2),
    "linkage on a line": Case(np.array([[0.0], [0.5], [3.0], [3.6], [7.0]]), 1.0, 10, n_clusters=3),
}
