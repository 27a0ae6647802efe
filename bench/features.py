"""Features that are measured one by one: results needed on the experiments of Graf, Thuot and Verzelen, and on ours.

*published*: the mean number of queries of the authors' stored results (arXiv 2503.11209), at their δ. *all once*: every
feature of every item once; *bound*: a lower bound for every rule that does not look at a feature's number
(docs/FEATURES.md, section 6). No instance or seed here served to choose a constant. What whole measurements and
features picked evenly take is in `bench.evenly`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.part import Column, Headline, Part, Progress, Row
from coterie.problem.checks import FloatArray
from coterie.problem.families import Bounded
from coterie.problem.instance import Instance
from coterie.problem.settings import Settings
from coterie.simulate.features import FeatureTrial, play_features
from coterie.simulate.worlds import Clicks

RUNS, SEED, LIMIT = 50, 27_000, 2_000_000


class Case(NamedTuple):
    """An instance for each seed, δ, what may be assumed, and what others needed."""

    make: Callable[[np.random.Generator], Instance]
    delta: float
    noise: Any = 1.0
    world: Any = None
    published: float | None = None
    bound: float | None = None


def shifted(n_items: int, dim: int, differ: int, gap: float, share: float, rng: np.random.Generator) -> Instance:
    """Two groups, one with this share of the items, that differ by a gap on some of the features."""
    labels = rng.permutation((np.arange(n_items) < share * n_items).astype(np.int64))
    centers: FloatArray = np.zeros((2, dim))
    centers[0, rng.permutation(dim)[:differ]] = gap
    return Instance(labels, centers)


def own_features(n_groups: int, n_items: int, dim: int, own: int, gap: float, rng: np.random.Generator) -> Instance:
    """Groups of which each has features of its own that are shifted by a gap."""
    centers: FloatArray = np.zeros((n_groups, dim))
    order = rng.permutation(dim)
    for k in range(n_groups):
        centers[k, order[k * own : (k + 1) * own]] = gap
    return Instance(rng.permutation(np.arange(n_items) % n_groups), centers)


def dense(n_groups: int, n_items: int, dim: int, sd: float, rng: np.random.Generator) -> Instance:
    """Groups that differ a little on all features: their centers are drawn from N(0, sd²)."""
    return Instance(rng.permutation(np.arange(n_items) % n_groups), sd * rng.standard_normal((n_groups, dim)))


def coins(dim: int) -> Callable[[np.random.Generator], Instance]:
    """30 items whose results are 0 or 1, with chances of ¼ or ¾ in half of the features, else ½."""

    def make(rng: np.random.Generator) -> Instance:
        rates = np.full((2, dim), 0.5)
        rates[0, : dim // 2], rates[1, : dim // 2] = 0.75, 0.25
        return Instance(rng.permutation(np.arange(30) % 2), rates[:, rng.permutation(dim)])

    return make


def shifts(n: int, d: int, s: int, gap: float, share: float, delta: float, published: float | None) -> Case:
    """Two groups that differ by a gap on s of d features."""
    return Case(
        lambda rng: shifted(n, d, s, gap, share, rng), delta, published=published,
        bound=bound_of(n, d, s, gap, share, delta),
    )  # fmt: skip


def bound_of(n: int, d: int, s: int, gap: float, share: float, delta: float) -> float:
    """docs/FEATURES.md, section 6: the larger of two lower bounds on the expected number of results."""
    one = math.ceil(share * n) / n
    chance = s / d * one * (1.0 - one) * n / (n - 1)
    divergence = max(delta * math.log(delta / (1.0 - delta)) + (1.0 - delta) * math.log((1.0 - delta) / delta), 0.0)
    found = max(1.0 - delta, 0.0) ** 2 / (2.0 * chance)
    return max(found, n * max(1.0 - 2.0 * delta, 2.0 * divergence / gap**2 if delta < 0.5 else 0.0))


def cases() -> dict[str, Case]:
    """By name."""
    second = {10: 4205, 20: 10_908, 50: 48_304, 100: 121_177, 200: 296_008, 500: 772_328}
    first = {1: 735_933, 53: 58_825, 106: 117_314, 263: 344_180, 526: 712_731, 1000: 1_493_525}
    third = {1: 18.215e6, 16: 11.202e6, 256: 11.17e6}
    fourth = {2: 361_142, 8: 362_772, 32: 361_067}
    made = {
        f"1: n=20 d=1000, {s} differ by 15/√s": shifts(20, 1000, s, 15 / math.sqrt(s), 0.5, 0.8, mean)
        for s, mean in first.items()
    }
    made |= {
        f"2: n={n} d={10 * n}, 10 differ by 5": shifts(n, 10 * n, 10, 5.0, 0.5, 0.05, m) for n, m in second.items()
    }
    made |= {
        f"3: n=d=1000, 100 differ by 1.5, a group of {size}": shifts(1000, 1000, 100, 1.5, size / 1000, 0.8, mean)
        for size, mean in third.items()
    }
    made |= {
        f"4: n=30 d={dim}, coins of ¼ or ¾": Case(coins(dim), 0.8, Bounded(0, 1), Clicks(), mean)
        for dim, mean in fourth.items()
    }
    made |= {
        "K=3 n=60 d=600, 10 features of each group": Case(lambda rng: own_features(3, 60, 600, 10, 3.0, rng), 0.05),
        "K=5 n=100 d=1000, 20 features of each group": Case(lambda rng: own_features(5, 100, 1000, 20, 3.0, rng), 0.05),
        "K=2 n=200 d=2000, 20 differ by 3, a group of 5 %": shifts(200, 2000, 20, 3.0, 0.05, 0.05, None),
        "K=3 n=30 d=300, all differ: N(0, 0.3²)": Case(lambda rng: dense(3, 30, 300, 0.3, rng), 0.05),
        "K=5 n=100 d=1000, all differ: N(0, 0.5²)": Case(lambda rng: dense(5, 100, 1000, 0.5, rng), 0.05),
    }
    for told, noise in (("any noise", None), ("Gaussian, size unknown", "gaussian")):
        made[f"2: n=50 d=500, told {told}"] = shifts(50, 500, 10, 5.0, 0.5, 0.05, second[50])._replace(noise=noise)
    return made


def trial_of(name: str, case: Case, run: int) -> FeatureTrial:
    """One run of a row, by its number."""
    instance = case.make(np.random.default_rng([SEED, run, len(name)]))
    n_groups, dim = instance.centers.shape
    settings = Settings.of(instance.labels.size, n_groups, None, case.delta, noise=case.noise, features=dim)
    return play_features(settings, instance, SEED + run, case.world, LIMIT)


def row_of(name: str, case: Case, trials: list[FeatureTrial]) -> Row:
    """What its runs needed."""
    centers = case.make(np.random.default_rng(SEED))
    results = np.array([trial.results for trial in trials], dtype=np.float64)
    mean, runs = float(results.mean()), len(trials)
    return {
        "instance": name, "delta": case.delta, "runs": runs, "mean": mean,
        "error": float(results.std() / math.sqrt(runs)),
        "median": float(np.median(results)), "q95": float(np.quantile(results, 0.95)),
        "wrong": sum(trial.right is False for trial in trials),
        "unfinished": sum(trial.right is None for trial in trials),
        "proof": float(np.mean([trial.proof for trial in trials])),
        "whole": centers.labels.size * centers.centers.shape[1], "bound": case.bound,
        "published": case.published, "ratio": None if case.published is None else case.published / mean,
        "seconds": max(trial.seconds for trial in trials),
    }  # fmt: skip


def with_trials(trials: int, quick: bool, progress: Progress, folder: Path) -> list[Row]:
    """All of them with so many runs at most, or a few runs of the small ones."""
    chosen = cases()
    if quick:
        chosen = {
            name: case for name, case in chosen.items() if name.startswith(("2: n=10 ", "2: n=20 ", "4: n=30 d=2,"))
        }
    made = []
    for place, (name, case) in enumerate(chosen.items()):
        runs = min(trials, 3) if quick else trials
        made.append(row_of(name, case, [trial_of(name, case, run) for run in range(runs)]))
        progress.done(name, (place + 1) / len(chosen))
    return made


def rows(quick: bool, progress: Progress, folder: Path) -> list[Row]:
    return with_trials(RUNS, quick, progress, folder)


def headlines(found: list[Row]) -> list[Headline]:
    """The figures that are asked for."""
    published = [row for row in found if row["ratio"] is not None]
    lines = []
    if published:
        worst = min(published, key=lambda row: row["ratio"])
        text = f"{worst['ratio']:.0f}× ({worst['instance']})"
        what = "Features one by one: published mean queries over ours, least"
        lines.append(Headline(what, text, "≥ 10×", worst["ratio"] >= 10.0))
    large = [row for row in found if "d=5000" in row["instance"]]
    if large:
        slowest = max(row["seconds"] for row in large)
        lines.append(
            Headline(
                "n=500, d=5,000, feature by feature: CPU of the slowest run", f"{slowest:.1f} s", "< 60 s", slowest < 60
            )
        )
    wrong, runs = sum(row["wrong"] for row in found), sum(row["runs"] for row in found)
    unfinished = sum(row["unfinished"] for row in found)
    lines.append(Headline("Features one by one: wrong groups, unfinished runs", f"{wrong}, {unfinished} of {runs}"))
    return lines


def _count(heading: str, key: str) -> Column:
    return Column(heading, key, lambda number: f"{number:,.0f}")


PART = Part(
    "Features that are measured one by one: results needed (mean, its error, median, 95 % quantile), and others.",
    (Column("instance", "instance", left=True), Column("δ", "delta"), Column("runs", "runs"), _count("mean", "mean"),
     _count("±", "error"), _count("median", "median"), _count("95 %", "q95"), _count("proof", "proof"),
     Column("wrong", "wrong"), Column("unfinished", "unfinished"), _count("published", "published"),
     Column("times fewer", "ratio", lambda ratio: f"{ratio:.0f}×"), _count("all once", "whole"),
     _count("bound", "bound"), Column("s", "seconds", lambda seconds: f"{seconds:.1f}")),
    rows,
    headlines,
    seconds=400.0,
    with_trials=with_trials,
)  # fmt: skip
