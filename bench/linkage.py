"""Single linkage with K: measurements that CROC needs beside peers in the manner of ATBOC, LUCBBOC, BOC-Elim and EBC.

The true groups are those of single linkage of the true means, which differ within a group. Two instances are examples
that the peers' papers give, three are drawn (another one in every run), one is of MovieLens: twelve films, of which one
random rating is a measurement. What the peers are, and what of them is ours: `bench.peers.linkage`.

Cells that are measured are kept in build/bench until the part is done, so that a run that was broken off goes on.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import coterie
from bench.cells import Ending, Endings, cell
from bench.noise import Kept
from bench.part import ROOT, Column, Headline, Part, Progress, Row, mean_with_error, number, times
from bench.peers.linkage import LINKAGE_PEERS
from bench.peers.linkage_proof import Comparisons, single_linkage
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.partition import same_partition
from coterie.problem.settings import Settings

DELTA = 0.1
TRIALS, QUICK_TRIALS, MOVIELENS_TRIALS = 50, 2, 12
MOST = 100_000
"""Measurements of a run; one that is not done by then is unfinished."""

Draw = Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True)
class World:
    """Items whose means are known, how one is measured, K, and the standard deviation that is taken as known."""

    means: FloatArray
    n_clusters: int
    draw: Draw
    noise: float = 1.0

    @property
    def truth(self) -> IntArray:
        return single_linkage(self.means, self.n_clusters).labels


def gaussian(means: Any, n_clusters: int) -> World:
    """Standard normal noise about the means."""
    mu = np.array(means, dtype=np.float64)
    return World(mu, n_clusters, lambda rng, arm: np.asarray(mu[arm] + rng.standard_normal(mu.shape[1])))


def drawn(n_arms: int, n_clusters: int, dim: int, margin: float, seed: int) -> World:
    """Means about centers, unequal within a group; pairs of different groups at least `margin` longer than any edge."""
    rng = np.random.default_rng([seed, n_arms, n_clusters, dim])
    while True:
        centers = rng.uniform(-4.0, 4.0, (n_clusters, dim))
        means = centers[np.arange(n_arms) % n_clusters] + rng.uniform(-0.5, 0.5, (n_arms, dim))
        found = single_linkage(means, n_clusters)
        dealt = same_partition(found.labels, np.arange(n_arms) % n_clusters)
        if dealt and Comparisons(found).gaps.min() >= margin:
            return gaussian(means, n_clusters)


@cache
def movielens() -> World:
    """Of the films with at least 300 ratings the four lowest, the four about the median and the four highest means."""
    pool = coterie.datasets.movielens(300)
    ratings = [pool.rows[pool.arms == film] for film in range(len(pool.names))]
    order = np.argsort([film.mean() for film in ratings], kind="stable")
    middle = len(order) // 2 - 2
    chosen = [ratings[film] for film in (*order[:4], *order[middle : middle + 4], *order[-4:])]
    pooled = float(np.sqrt(np.mean([film.var(ddof=1) for film in chosen])))
    means = np.stack([film.mean(axis=0) for film in chosen])
    return World(means, 3, lambda rng, arm: np.asarray(chosen[arm][rng.integers(len(chosen[arm]))]), pooled)


MOVIELENS = "MovieLens, 12 films, K = 3"
WORLDS: dict[str, Callable[[int], World]] = {
    "example of ATBOC, M = 5 K = 3 d = 1": lambda trial: gaussian([[0.0], [0.5], [1.5], [2.0], [3.5]], 3),
    "example of EBC, M = 6 K = 3 d = 2": lambda trial: gaussian(
        [[-1.0, -1.0], [-1.0, -2.0], [1.0, 1.0], [2.0, 2.0], [3.0, -3.0], [3.5, -3.0]], 3
    ),
    "drawn, M = 10 K = 2 d = 2": lambda trial: drawn(10, 2, 2, 1.0, trial),
    "drawn, M = 20 K = 4 d = 3": lambda trial: drawn(20, 4, 3, 1.0, trial),
    "drawn, M = 30 K = 5 d = 5": lambda trial: drawn(30, 5, 5, 1.5, trial),
    MOVIELENS: lambda trial: movielens(),
}

CROC, CROC_BOUNDED = "CROC", "CROC, Bounded(1, 5)"


def ways_of(name: str) -> list[str]:
    """What can be tried here: CROC where it answers this question, and the peers."""
    croc = [CROC, CROC_BOUNDED] if name == MOVIELENS else [CROC]
    return [*(croc if croc_answers() else []), *LINKAGE_PEERS]


@cache
def croc_answers() -> bool:
    """Whether CROC's run for this question is there: the table of methods names it, but it may not be written yet."""
    try:
        session = coterie.Session(3, 2, 1, DELTA, noise=1.0, groups="linkage")
        for arm in range(3):
            session.tell(arm, float(arm))
        session.ask()
    except (AssertionError, NotImplementedError):
        return False
    return True


def worlds_here() -> list[str]:
    """MovieLens needs the package that has it."""
    return [name for name in WORLDS if name != MOVIELENS or find_spec("recbole")]


def run_of(name: str, way: str, trial: int) -> Ending:
    """One run; its noise is the same for every way."""
    world = WORLDS[name](trial)
    rng = np.random.default_rng([trial, zlib.crc32(name.encode())])
    peer = LINKAGE_PEERS.get(way)
    t, labels = _croc(world, way, rng) if peer is None else _peer(world, way, rng)
    right = labels is not None and same_partition(labels, world.truth)
    return Ending(t, bool(right), labels is not None)


def _peer(world: World, way: str, rng: np.random.Generator) -> tuple[int, IntArray | None]:
    n_arms, dim = world.means.shape
    settings = Settings.of(n_arms, world.n_clusters, dim, DELTA, method=way, noise=world.noise, groups="linkage")
    run = LINKAGE_PEERS[way].start(settings)
    t = 0
    while not run.done and t < MOST:
        pull = run.ask()
        assert pull is not None
        run.count(pull.arm, world.draw(rng, pull.arm) / world.noise, 0, True)
        t += 1
    return t, run.guess[0] if run.done and run.guess is not None else None


def _croc(world: World, way: str, rng: np.random.Generator) -> tuple[int, IntArray | None]:
    n_arms, dim = world.means.shape
    noise = coterie.Bounded(1, 5) if way == CROC_BOUNDED else world.noise
    session = coterie.Session(n_arms, world.n_clusters, dim, DELTA, noise=noise, groups="linkage")
    while not session.done and session.t < MOST:
        for arm in session.open(1):
            session.tell(arm.arm, world.draw(rng, arm.arm))
    return session.t, np.asarray(session.labels) if session.done else None


def measured(name: str, way: str, trials: int) -> Row:
    """The row of a cell."""
    some = min(trials, MOVIELENS_TRIALS) if name == MOVIELENS else trials
    ended = Endings({DELTA: [run_of(name, way, trial) for trial in range(some)]})
    row = {"case": name, **cell(way, ended, DELTA)}
    del row["each"], row["pilots"]
    return row


def fingerprint() -> str:
    """Of everything that decides the numbers: cells of another engine are measured again."""
    folders = [ROOT / "src" / "coterie" / room for room in ("engine", "methods", "session", "problem", "evidence")]
    folders.append(ROOT / "bench" / "peers")
    content = hashlib.sha256()
    for path in [*sorted(path for folder in folders for path in folder.rglob("*.py")), Path(__file__)]:
        content.update(path.read_bytes())
    return content.hexdigest()


def with_trials(trials: int, quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """A row for each way on each instance, and what it takes over CROC."""
    names = worlds_here()[:2] if quick else worlds_here()
    path = ROOT / "build" / "bench" / f"linkage-{'quick-' if quick else ''}{trials}-cells.part"
    kept = Kept(path, fingerprint())
    cells = [(name, way) for name in names for way in ways_of(name)]
    keys = [f"{name} | {way}" for name, way in cells]
    old = sum(key in kept.rows for key in keys)
    if old:
        progress.done(f"{old} of {len(keys)} cells were measured before")
    for place, ((name, way), key) in enumerate(zip(cells, keys, strict=True)):
        if key not in kept.rows:
            kept.add(key, measured(name, way, trials))
            progress.done(f"{name}: {way}, {mean_with_error(kept.rows[key]) or '–'}", (place + 1) / len(cells))
    kept.done()
    found = [kept.rows[key] for key in keys]
    croc = {row["case"]: row["mean"] for row in found if row["method"] == CROC}
    return [{**row, "over_croc": _over(row["mean"], croc.get(row["case"]))} for row in found]


def _over(mean: float | None, croc: float | None) -> float | None:
    return mean / croc if mean and croc else None


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """With the usual number of runs."""
    return with_trials(QUICK_TRIALS if quick else TRIALS, quick, progress, folder)


def headlines(found: list[Row]) -> list[Headline]:
    """The best peer over CROC on each instance; how often CROC was wrong."""
    lines = []
    for case in dict.fromkeys(row["case"] for row in found):
        peers = [row for row in found if row["case"] == case and row["method"] in LINKAGE_PEERS and row["over_croc"]]
        if peers:
            best = min(peers, key=lambda row: float(row["over_croc"]))
            what = f"single linkage, {case}: the best peer ({best['method']}) over CROC"
            lines.append(Headline(what, times(best["over_croc"])))
    croc = [row for row in found if row["method"] not in LINKAGE_PEERS]
    if croc:
        wrong, runs = (sum(row[key] for row in croc) for key in ("wrong", "trials"))
        met = wrong <= DELTA * runs
        lines.append(Headline(f"single linkage, CROC, δ = {DELTA:g}: wrong", f"{wrong} of {runs}", "≤ δ", met))
    return lines


PART = Part(
    f"Single linkage with K, δ = {DELTA:g}: measurements, mean ± standard error of as many runs as stand under wrong. "
    f"On MovieLens the\npooled variance is taken as known. Peers are in the manner of their papers, not their "
    f"authors' programs: bench/peers/linkage.py.\nOpen: no proof within {MOST:,}.",
    (
        Column("items", "case", left=True),
        Column("way", "method", left=True),
        Column("measurements", mean_with_error),
        Column("median", "median", number),
        Column("95 %", "quantile95", number),
        Column("wrong", lambda row: f"{row['wrong']} of {row['trials']}"),
        Column("open", "unfinished"),
        Column("/ CROC", "over_croc", times),
    ),
    rows,
    headlines,
    section="case",
    seconds=900,
    with_trials=with_trials,
)
