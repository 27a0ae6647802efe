"""Groups that differ in spread, skew or correlation under any noise: CROC with shape, without, and a peer.

Twelve items in two or three groups, δ = 0.1. The peer measures all items in turn and tests pairs by the energy
distance, with permutations, whenever it has 1.3 times as many results: p-values below 1/200 are read off a gamma
distribution that is fitted to the permuted statistics. Its level is shared out over all pairs that could be wrong, and
over its looks. It is *told* the groups, and only has to prove them: every item differs from one of each other group.

In the worlds of the second table groups differ in location alone: what looking for shape costs there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import gamma

from bench.part import Column, Headline, Part, Progress, Row, Table, number, sign
from coterie.methods.croc.run import CrocRun
from coterie.methods.family import family_for
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AnyNoise, noise_of
from coterie.problem.partition import same_partition

RUNS, PEER_RUNS = 48, 8
MOST, PEER_MOST = 6_000, 4_000
"""Measurements of a run; one that is not done by then is open."""
SEED = 9_000
PERMUTATIONS = 199
GROWTH = 1.3

WITH, WITHOUT, PEER = "any noise, shape", "any noise", "energy distance, in turn"

Draw = Callable[[int, np.random.Generator], Any]


@dataclass(frozen=True)
class World:
    """What a result of an item of group k is like. `asked`: at most so many measurements, by the mean, with shape."""

    n_groups: int
    draw: Draw
    asked: float | None = None
    n_arms: int = 12
    dim: int = 1
    delta: float = 0.1
    location: bool = False


def _normal(*laws: tuple[float, float]) -> Draw:
    return lambda k, rng: laws[k][0] + laws[k][1] * rng.standard_normal(1)


def _skewed(k: int, rng: np.random.Generator) -> FloatArray:
    return rng.standard_normal(1) if k == 0 else rng.exponential(size=1) - 1.0


def _tails(k: int, rng: np.random.Generator) -> FloatArray:
    return rng.laplace(size=1) if k == 2 else (1.0, 2.0)[k] * rng.standard_normal(1)


def _correlated(k: int, rng: np.random.Generator) -> FloatArray:
    rho, (x, y) = (0.0, 0.7, -0.7)[k], rng.standard_normal(2)
    return np.array([x, rho * x + math.sqrt(1.0 - rho * rho) * y])


def _lognormal(k: int, rng: np.random.Generator) -> FloatArray:
    return np.exp(2.0 * rng.standard_normal(1)) + 0.5 * k


def _two_points(k: int, rng: np.random.Generator) -> FloatArray:
    return np.where(rng.random(1) < 0.5, 1.0, -1.0) + 0.5 * k


def _corners(gap: float, n_groups: int, dim: int) -> Draw:
    centers = gap * np.random.default_rng(5).permutation(np.argwhere(np.ones((n_groups,) * dim)))[:n_groups]
    return lambda k, rng: centers[k] + rng.standard_normal(dim)


WORLDS: dict[str, World] = {
    "N(0, 1), N(0, 1.7²), N(0, 3²)": World(3, _normal((0, 1), (0, 1.7), (0, 3)), 1_300),
    "N(0, 1), exponential − 1": World(2, _skewed, 700),
    "N(0, 1), N(0, 2²), Laplace": World(3, _tails, 3_300),
    "correlations 0, 0.7, −0.7": World(3, _correlated, 1_000, dim=2),
    "lognormal, σ = 2, shifted by 0.5": World(3, _lognormal, 1_500),
    "±1, shifted by 0.5": World(3, _two_points, 270),
    "N(0, 1), N(1, 1), N(0, 2²)": World(3, _normal((0, 1), (1, 1), (0, 2))),
    "N(0, 1), N(1.5, 1), N(3, 1)": World(3, _normal((0, 1), (1.5, 1), (3, 1)), location=True),
    "N(0, 1), N(1, 1), N(2, 1)": World(3, _normal((0, 1), (1, 1), (2, 1)), location=True),
    "M=4 K=3, gap 50, δ = 1e-6": World(3, _normal((0, 1), (50, 1), (100, 1)), 64, 4, 1, 1e-6, True),
    "M=20 K=18 d=2, gap 3": World(18, _corners(3.0, 18, 2), 180, 20, 2, 0.1, True),
}


def truth_of(world: World, rng: np.random.Generator) -> IntArray:
    """Groups of equal sizes, as far as that goes."""
    return rng.permutation(np.arange(world.n_arms) % world.n_groups)


def played(world: World, shape: bool, run: int) -> tuple[int, bool, bool]:
    """Measurements, whether it ended, and whether that was wrong."""
    rng = np.random.default_rng([SEED, run])
    truth, noise = truth_of(world, rng), noise_of(AnyNoise(shape=shape), world.dim)
    size = world.n_arms, world.n_groups, world.dim
    croc = CrocRun(*size, -math.log(world.delta), family_for(noise, *size))
    while not croc.done and croc.t < MOST:
        asked = croc.pop()
        if asked is not None:
            croc.absorb(asked[0], world.draw(int(truth[asked[0]]), rng), asked[1], True)
    return croc.t, croc.done, croc.done and not same_partition(croc.labels, truth)


def p_value(first: FloatArray, second: FloatArray, rng: np.random.Generator) -> float:
    """Of the energy distance of two samples of one size, by permutations, and a gamma distribution beyond them."""
    both, n = np.concatenate([first, second]), len(first)
    distances = cdist(both, both)
    signs = np.repeat([1.0, -1.0], n)
    drawn = np.stack([signs, *(rng.permutation(signs) for _ in range(PERMUTATIONS))])
    energies = -((drawn @ distances) * drawn).sum(axis=1) / n**2
    own, others = energies[0], energies[1:]
    above = (1.0 + (others >= own).sum()) / (1.0 + PERMUTATIONS)
    if above > 1.0 / (1.0 + PERMUTATIONS):
        return float(above)
    mean, variance = others.mean(), others.var()
    return float(gamma.sf(own, mean**2 / variance, scale=variance / mean)) if variance > 0.0 else float(above)


def peer(world: World, run: int) -> tuple[int, bool, bool]:
    """As `played`; the peer is told the groups, so it is never wrong."""
    rng = np.random.default_rng([SEED, run])
    truth = truth_of(world, rng)
    _, leads = np.unique(truth, return_index=True)
    pairs = [(m, int(lead)) for m in range(world.n_arms) for lead in leads if truth[m] != truth[lead] and m != lead]
    could_be_wrong = (world.n_arms - world.n_groups + 1) * (world.n_arms - world.n_groups) / 2
    results = np.zeros((world.n_arms, 0, world.dim))
    n, look = 8, 0
    while world.n_arms * n <= PEER_MOST:
        more = [[world.draw(int(k), rng) for _ in range(n - results.shape[1])] for k in truth]
        results, look = np.concatenate([results, np.array(more)], axis=1), look + 1
        level = world.delta / (could_be_wrong * look * (look + 1))
        if all(p_value(results[m], results[lead], rng) <= level for m, lead in pairs):
            return world.n_arms * n, True, False
        n = math.ceil(n * GROWTH)
    return PEER_MOST, False, False


def row_of(name: str, told: str, runs: int) -> Row:
    """One world, one method."""
    world = WORLDS[name]
    ends = [peer(world, run) if told == PEER else played(world, told == WITH, run) for run in range(runs)]
    t = np.array([end[0] for end in ends], dtype=float)
    row: Row = {"world": name, "told": told, "runs": runs, "location": world.location, "mean": float(t.mean())}
    row |= {"error": float(t.std() / math.sqrt(runs)), "median": float(np.median(t))}
    row |= {"tenth": float(np.quantile(t, 0.1)), "ninetieth": float(np.quantile(t, 0.9))}
    row |= {"open": sum(not end[1] for end in ends), "wrong": sum(end[2] for end in ends)}
    if told == WITH and world.asked is not None:
        row |= {"limit": world.asked, "met": row["mean"] <= world.asked}
    return row


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """One row for each world and method; the peer only where groups differ in shape."""
    cells = [(name, told) for name in WORLDS for told in (WITH, WITHOUT, PEER)]
    cells = [(name, told) for name, told in cells if told != PEER or not WORLDS[name].location]
    found = []
    for place, (name, told) in enumerate(cells):
        runs = (1 if told == PEER else 4) if quick else (PEER_RUNS if told == PEER else RUNS)
        found.append(row_of(name, told, runs))
        progress.done(f"{name}, {told}: {found[-1]['mean']:,.0f}", (place + 1) / len(cells))
    return found


def headlines(found: list[Row]) -> list[Headline]:
    """What was asked for, what looking for shape costs where there is none, and how often it was wrong."""
    lines = [
        Headline(f"{row['world']}: measurements", _mean(row), f"≤ {number(row['limit'])}", row["met"])
        for row in found
        if "limit" in row
    ]
    for name, world in WORLDS.items():
        both = {row["told"]: row["mean"] for row in found if row["world"] == name}
        if world.location and world.asked is None:
            ratio = both[WITH] / both[WITHOUT]
            lines.append(Headline(f"{name}: with shape, over without", f"{ratio:.2f}", "≤ 1.05", ratio <= 1.05))
    some = [row for row in found if row["told"] == WITH]
    wrong, runs = sum(row["wrong"] for row in some), sum(row["runs"] for row in some)
    return [*lines, Headline("With shape: wrong", f"{wrong} of {runs}", "≤ δ", wrong <= 0.1 * runs)]


def _mean(row: Row) -> str:
    least = "≥ " if row["open"] else ""
    return f"{least}{row['mean']:,.0f} ± {row['error']:.0f}"


_COLUMNS = (
    Column("groups", "world", left=True),
    Column("told", "told", left=True),
    Column("runs", "runs"),
    Column("measurements", _mean),
    Column("median", "median", number),
    Column("10 %", "tenth", number),
    Column("90 %", "ninetieth", number),
    Column("wrong", "wrong"),
    Column("open", "open"),
    Column("goal", lambda row: f"≤ {number(row['limit'])} {sign(row['met'])}" if "limit" in row else ""),
)

PART = Part(
    f"Groups that differ in spread, skew or correlation, 12 items, δ = 0.1: mean ± standard error of {RUNS} runs (the "
    f"peer: {PEER_RUNS}).\nOpen: no proof within {MOST:,} measurements (the peer: {PEER_MOST:,}), and counted as that.",
    _COLUMNS,
    rows,
    headlines,
    section="world",
    seconds=400,
    has=lambda row: not row["location"],
    more=(
        Table("Groups that differ in location alone.", _COLUMNS, lambda row: bool(row["location"]), section="world"),
    ),
)
