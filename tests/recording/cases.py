"""The conversations that are recorded: every method, question and noise, and what happens on the way.

A case is data. What it draws depends on its seed alone; `playing` plays it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import coterie
from coterie import Instance

PAPER = ("boc", "boc-linear", "uniform", "oracle")
SHAPES: dict[str, Instance] = {
    "two apart": Instance([0, 0, 1, 1], [[0.0], [4.0]]),
    "three in a plane": Instance([0, 0, 1, 1, 1, 2, 2, 0], [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]),
    "one dominates": Instance([0] * 10 + [1, 2], [[0.0], [2.5], [5.0]]),
    "close": Instance([0, 0, 0, 1, 1, 1], [[0.0, 0.0, 0.0], [1.2, 0.6, 0.0]]),
}


@dataclass(frozen=True)
class Case:
    """A conversation. `what`: "talk", "simulated" or "handed in".

    `means` has a row for every item, those too that join later. `actions`: (after how many asks, what, with what).
    `lost`: the chance that an ask is given up; `extra`: that a result comes which nobody asked for. `workers`: how many
    asks are open at once. `kept`: it is part of the small recording in this folder.
    """

    name: str
    seed: int
    means: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    draw: tuple[Any, ...] = ("normal",)
    workers: int = 1
    most: int = 200
    lost: float = 0.0
    extra: float = 0.0
    actions: tuple[tuple[int, str, Any], ...] = ()
    what: str = "talk"
    kept: bool = False

    @property
    def dim(self) -> int:
        """d."""
        return int(np.shape(self.means)[1])


def drawn(case: Case, rng: np.random.Generator, arm: int) -> Any:
    """A result of an arm."""
    mean, (kind, *more) = case.means[arm], case.draw
    dim = len(mean)
    if kind == "counts":
        return rng.binomial(more[0], mean).astype(float)
    if kind == "bounded":
        return mean + rng.uniform(-0.5, 0.5, dim)
    if kind == "t3":
        return mean + rng.standard_t(3, dim)
    z = rng.standard_normal(dim)
    if kind == "scaled":
        return mean + np.asarray(more[0]) * z
    if kind == "correlated":
        return mean + (np.linalg.cholesky(np.asarray(more[0])) * z).sum(axis=1)
    if kind == "whole":
        return np.rint(mean + z)
    if kind == "still":  # the first number has no noise
        z[0] = 0.0
    return mean + z


def grouped(rng: np.random.Generator, m: int, k: int, d: int, gap: float, crowded: int | None = None) -> Any:
    """(M, d) means of items in K groups, whose centers are at least `gap` apart; `crowded`: groups of most items."""
    labels = np.concatenate([np.arange(k), rng.integers(0, crowded or k, m - k)])
    rng.shuffle(labels)
    centers = rng.normal(size=(k, d))
    smallest = min(float(np.sqrt(((centers[a] - centers[b]) ** 2).sum())) for a in range(k) for b in range(a))
    return (centers * (gap / smallest))[labels]


def covariance(d: int) -> Any:
    """A covariance of d numbers."""
    near = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return (0.6**near * np.sqrt(np.outer(1.0 + np.arange(d), 1.0 + np.arange(d)))).tolist()


def noisy(name: str, rng: np.random.Generator, m: int, k: int, d: int) -> tuple[Any, Any, tuple[Any, ...]]:
    """A noise by name as a session takes it, means that go with it, and how results are drawn."""
    means = grouped(rng, m, k, d, 3.0)
    sds = (0.5 + 0.25 * np.arange(d)).tolist()
    if name == "counts":
        rates = means - means.min()
        return coterie.Counts(40), 0.1 + 0.8 * rates / rates.max(), ("counts", 40)
    if name == "bounded":
        places = means - means.min()
        return coterie.Bounded(-1, 9), 8.0 * places / places.max(), ("bounded",)
    return {
        "one sd": (0.7, 0.7 * means, ("scaled", 0.7)),
        "sds": (sds, means * sds, ("scaled", sds)),
        "covariance": (covariance(d), means * np.sqrt(1.0 + d), ("correlated", covariance(d))),
        "exactly": (coterie.Exactly(1.0), means, ("normal",)),
        "any": (None, means, ("normal",)),
        "any, heavy": (None, 1.5 * means, ("t3",)),
        "gaussian": ("gaussian", means, ("correlated", covariance(d))),
        "scalar": (coterie.Gaussian("scalar"), means, ("normal",)),
        "diagonal": (coterie.Gaussian("diagonal"), means * sds, ("scaled", sds)),
        "at most": (coterie.AtMost(1.0), means, ("scaled", 0.8)),
        "at most covariance": (coterie.AtMost(covariance(d)), 2.0 * means, ("correlated", covariance(d))),
        "symmetric": (coterie.Symmetric(), means, ("t3",)),
    }[name]


NOISES = (
    "one sd", "sds", "covariance", "exactly", "any", "any, heavy", "gaussian", "scalar", "diagonal", "counts",
    "bounded", "at most", "at most covariance", "symmetric",
)  # fmt: skip


def settings_of(method: str, instance: Instance, delta: float, noise: Any = 1.0, **more: Any) -> dict[str, Any]:
    """Of a session for an instance, with what the method needs to know."""
    return {
        "n_clusters": instance.n_clusters,
        "delta": delta,
        "method": method,
        "noise": noise,
        "distance_ratio": 0.5 if method == "boc-linear" else None,
        "instance": instance if method == "oracle" else None,
    } | more


def first_recorded() -> Iterator[Case]:
    """What the first recording had: all methods on four shapes, simulated, with workers, with known noises."""
    noises = {
        "unit": (1.0, ("normal",)),
        "scaled": (0.5, ("scaled", 0.5)),
        "covariance": ([[1.0, 0.3], [0.3, 2.0]], ("correlated", [[1.0, 0.3], [0.3, 2.0]])),
    }
    plane = SHAPES["three in a plane"]
    for method in ("croc", *PAPER):
        for name, instance in SHAPES.items():
            for seed in range(4 if method == "croc" else 2):
                settings = settings_of(method, instance, (0.1, 0.01)[seed % 2])
                yield Case(f"{method}, {name}, seed {seed}", seed, instance.means, settings, most=2000, kept=True)
            simulated = settings_of(method, instance, 0.0) | {"deltas": (0.1, 0.001), "trials": 6, "seed": 5}
            yield Case(f"{method}, {name}, simulated", 5, instance.means, simulated, what="simulated", kept=True)
        for n in (3, 8):
            case = Case(f"{method}, {n} workers", n, plane.means, settings_of(method, plane, 0.05), workers=n, most=600)
            yield replace(case, lost=0.05, extra=0.05, kept=True)
        for name, (noise, draw) in noises.items():
            settings = settings_of(method, plane, 0.05, noise)
            yield Case(f"{method}, {name} noise", 11, plane.means, settings, draw, most=2000, kept=True)


def of_paper() -> Iterator[Case]:
    """The paper's methods on drawn instances, with both thresholds."""
    for method in PAPER:
        for i in range(14):
            rng = np.random.default_rng([21, i])
            k = int(rng.integers(2, 7))
            m = k + 1 if i == 0 else int(rng.integers(k + 1, 40))
            d = int(rng.integers(1, 13))
            means = grouped(rng, m, k, d, float(rng.uniform(1.2, 5.0)), crowded=1 if i % 4 == 1 else None)
            if i == 5:
                means = np.rint(means)
                means[np.unique(means, axis=0, return_index=True)[1][0]] += 0.25
            instance = Instance.of_means(means) if i == 5 else _instance(means)
            threshold = ("proven", "heuristic")[i % 2]
            settings = settings_of(method, instance, (0.2, 0.01)[i % 2], threshold=threshold)
            n = (1, 1, 4)[i % 3]
            case = Case(f"{method}, drawn {i}", i, instance.means, settings, workers=n, most=300, kept=i == 3)
            if n > 1:
                case = replace(case, lost=0.03, extra=0.05)
            yield replace(case, draw=("whole",)) if i in (4, 7) else case
        for i, (m, k, d, most) in enumerate([(150, 5, 3, 450), (200, 10, 2, 500), (12, 3, 40, 120), (8, 2, 400, 40)]):
            instance = _instance(grouped(np.random.default_rng([22, i]), m, k, d, 4.0))
            settings = settings_of(method, instance, 0.05)
            yield Case(f"{method}, M = {m}, d = {d}", i, instance.means, settings, workers=1 + 2 * (i % 2), most=most)
        for i, away in enumerate((1e6, 9e11)):
            instance = _instance(grouped(np.random.default_rng([23, i]), 9, 3, 2, 6.0) + away)
            yield Case(f"{method}, {away:g} away", i, instance.means, settings_of(method, instance, 0.05), most=250)
        instance = _instance(grouped(np.random.default_rng(24), 12, 3, 2, 4.0))
        for how in ("dict", "memory"):
            case = Case(
                f"{method}, {how} on the way", 5, instance.means, settings_of(method, instance, 0.05), workers=3
            )
            yield replace(case, lost=0.05, extra=0.05, actions=((20, how, None), (60, how, None)), most=160)
        yield Case(f"{method}, confirmed", 6, instance.means, settings_of(method, instance, 0.1, confirm=0.3), most=900)
        yield Case(
            f"{method}, corrected", 7, instance.means, settings_of(method, instance, 0.1), workers=2, most=150,
            actions=((40, "correct", None), (90, "correct", None), (100, "check", None)),
        )  # fmt: skip
        close = _instance([[0.0], [0.0], [0.35], [0.35]])
        yield Case(f"{method}, a long run", 8, close.means, settings_of(method, close, 0.05), most=1200)
        ties = _instance(np.repeat(np.arange(3.0), 4)[:, None] * 2.0)
        yield Case(f"{method}, ties", 9, ties.means, settings_of(method, ties, 0.05), ("whole",), most=300)


def _instance(means: Any) -> Instance:
    """The instance of these means, whose groups are the items with equal ones."""
    centers, labels = np.unique(np.asarray(means, dtype=float), axis=0, return_inverse=True)
    return Instance(np.ravel(labels), centers)


def of_croc() -> Iterator[Case]:
    """CROC with a known noise: drawn instances and everything that may happen."""
    kinds = ("any", "dominates", "whole", "K = M - 1", "close", "workers", "wrong K", "still")
    for i in range(64):
        rng, kind = np.random.default_rng([31, i]), kinds[i % len(kinds)]
        k = int(rng.integers(2, 6 if i < 48 else 11))
        m = k + 1 if kind == "K = M - 1" else int(rng.integers(k + 2, 40))
        d = int(rng.integers(1, 13))
        gap = {"close": rng.uniform(0.8, 1.4), "wrong K": rng.uniform(4.0, 30.0)}.get(kind, rng.uniform(1.2, 6.0))
        means = grouped(rng, m, k, d, float(gap), crowded=1 if kind == "dominates" else None)
        groups = max(k - 1, 2) if kind == "wrong K" else k
        delta = float(rng.choice([0.3, 0.05, 1e-3, 1e-10]))
        case = Case(f"croc, {kind} {i}", i, means, {"n_clusters": groups, "delta": delta, "noise": 1.0}, most=220)
        if kind in ("workers", "wrong K"):
            case = replace(case, workers=int(rng.integers(2, 10)), lost=0.04, extra=0.04)
        yield replace(case, draw=(kind if kind in ("whole", "still") else "normal",), kept=i < 8)
    for i, (m, k, d, most) in enumerate(
        [(60, 6, 4, 300), (100, 4, 2, 300), (150, 3, 4, 450), (200, 10, 2, 500), (200, 5, 12, 400), (120, 8, 1, 400)]
    ):
        means = grouped(np.random.default_rng([32, i]), m, k, d, 5.0)
        case = Case(f"croc, M = {m}, d = {d}", i, means, {"n_clusters": k, "noise": 1.0}, workers=(1, 5)[i % 2])
        yield replace(case, most=most, lost=0.02 * (i % 2))
    for i, (m, k, d) in enumerate(
        [(10, 3, 13), (8, 2, 16), (8, 3, 20), (10, 2, 33), (9, 3, 64), (6, 2, 150), (7, 2, 400)]
    ):
        means = grouped(np.random.default_rng([33, i]), m, k, d, 4.5)
        case = Case(f"croc, d = {d}", i, means, {"n_clusters": k, "noise": 1.0}, workers=(1, 3)[i % 2])
        yield replace(case, most=150 if d < 100 else 60)
    for i, away in enumerate((1e6, 9e11, -1e9)):
        for n in (1, 4):
            means = grouped(np.random.default_rng([34, i]), 10, 3, 2, 5.0) + away
            yield Case(f"croc, {away:g} away, {n}", i, means, {"n_clusters": 3, "noise": 1.0}, workers=n, kept=i == n)
    for i, away in enumerate((2e3, 1e6, 9e11)):  # items that count from an origin of their own
        for d in (1, 3):
            means = grouped(np.random.default_rng([35, i, d]), 10, 3, d, 4.0)
            means = np.concatenate([means, np.repeat(means[:1] + away, 3, axis=0)])
            yield Case(f"croc, some {away:g} away, d = {d}", i, means, {"n_clusters": 4, "noise": 1.0}, workers=1 + i)
    for i, (gap, n, most) in enumerate(
        [(0.3, 1, 1500), (0.25, 3, 1500), (0.4, 1, 900), (0.2, 1, 3000), (0.35, 6, 1200)]
    ):
        means = [[0.0] * (1 + i % 3)] * 2 + [[gap] + [0.0] * (i % 3)] * 2
        case = Case(f"croc, a long stack, gap {gap}", i, np.array(means), {"n_clusters": 2, "noise": 1.0}, workers=n)
        yield replace(case, most=most, lost=0.02 * (n > 1), extra=0.02 * (n > 1))
    for i in range(4):  # results that nobody asked for, of a single item: its stack outgrows all others
        means = grouped(np.random.default_rng([36, i]), 5, 2, 1 + i, 1.5)
        stack = tuple((10 + 5 * j, "unasked", (0, 60 + 40 * i)) for j in range(3))
        yield Case(f"croc, a stack nobody asked for, {i}", i, means, {"n_clusters": 2, "noise": 1.0}, actions=stack)


def of_noises() -> Iterator[Case]:
    """CROC with every noise: alone, with workers, revised, corrected, saved, with costs."""
    for number, name in enumerate(NOISES):
        for i, (m, k, d) in enumerate([(6, 2, 1), (10, 3, 2), (14, 4, 3), (12, 3, 5), (16, 3, 10)]):
            rng = np.random.default_rng([41, number, i])
            noise, means, draw = noisy(name, rng, m, k, d)
            case = Case(f"{name}, {m} items", i, means, {"n_clusters": k, "noise": noise}, draw, most=260)
            if i % 2:
                case = replace(case, name=f"{case.name}, workers", workers=2 + 3 * (i % 4), lost=0.04, extra=0.04)
            yield replace(case, kept=i == 1)
        for i, d in enumerate((1, 2, 4)):
            rng = np.random.default_rng([42, number, i])
            noise, means, draw = noisy(name, rng, 12, 3, d)
            first = {"n_arms": 9, "n_clusters": 2, "noise": noise, "delta": 0.1}
            ways: tuple[tuple[int, str, Any], ...] = (
                (25, "revise", {"add": 3, "n_clusters": 3}),
                (50, "revise", {"retire": [1, 4]}),
                (80, ("dict", "memory", "check")[i], None),
                (100, "revise", {"delta": 0.01}),
            )
            case = Case(f"{name}, revised, {i}", i, means, first, draw, workers=1 + 2 * i, actions=ways, most=240)
            yield replace(case, kept=i == 1 and number % 3 == 0)
        for i, (what, n) in enumerate([("correct", 1), ("correct", 4), ("dict", 3), ("memory", 3)]):
            rng = np.random.default_rng([43, number, i])
            noise, means, draw = noisy(name, rng, 9, 3, 1 + i % 3)
            case = Case(f"{name}, {what}, {i}", i, means, {"n_clusters": 3, "noise": noise}, draw, workers=n, most=220)
            times = tuple((at, what, None) for at in (15, 45, 90, 150))
            yield replace(case, actions=times, lost=0.03 * (n > 1), extra=0.03 * (n > 1), kept=number % 4 == i)
        rng = np.random.default_rng([44, number])
        noise, means, draw = noisy(name, rng, 10, 3, 2)
        costs = np.exp(rng.uniform(0.0, 4.0, 10)).tolist()
        settings = {"n_clusters": 3, "noise": noise, "costs": costs}
        yield Case(f"{name}, costs", 7, means, settings, draw, workers=2, most=250, kept=number % 4 == 0)
        if name in ("one sd", "scalar", "diagonal", "at most"):  # one group less than there are
            settings = {"n_clusters": 2, "noise": noise}
            yield Case(f"{name}, wrong K", 6, 3.0 * means, settings, draw, workers=3, extra=0.05, kept=number == 0)
        settings = {"n_clusters": 3, "noise": noise, "confirm": 0.4}
        yield Case(f"{name}, confirmed", 8, means, settings, draw, most=400, kept=number % 4 == 1)
        if name not in ("counts", "bounded", "covariance"):
            yield Case(f"{name}, 1e6 away", 9, means + 1e6, {"n_clusters": 3, "noise": noise}, draw, most=200)
    for name in ("any", "gaussian", "scalar", "diagonal", "counts", "bounded"):
        rng = np.random.default_rng([45, NOISES.index(name)])
        noise, means, draw = noisy(name, rng, 4, 2, 1)
        means = means[0] + 0.15 * (means - means[0])
        yield Case(f"{name}, a long stack", 2, means, {"n_clusters": 2, "noise": noise}, draw, most=1000)
        noise, means, draw = noisy(name, rng, 8, 2, 16)
        yield Case(f"{name}, d = 16", 3, means, {"n_clusters": 2, "noise": noise}, draw, most=120)
    for name in ("any", "gaussian", "diagonal"):
        means = grouped(np.random.default_rng([46, len(name)]), 8, 2, 3, 4.0)
        noise = noisy(name, np.random.default_rng(0), 8, 2, 3)[0]
        for how in ("still", "whole"):
            yield Case(f"{name}, {how}", 4, means, {"n_clusters": 2, "noise": noise}, (how,), most=200)


def of_other_questions() -> Iterator[Case]:
    """Resolutions, single linkage, and the list of partitions."""
    for number, name in enumerate(("one sd", "exactly", "gaussian", "bounded", "counts")):
        for i, more in enumerate(({}, {"norm": "distance"}, {"claim": "any-two"})):
            rng = np.random.default_rng([51, number, i])
            noise, means, draw = noisy(name, rng, 8, 3, 1 + i)
            scale = 40.0 if name == "counts" else 1.0
            spread = float(np.ptp(means)) * scale
            asked = coterie.Resolution(0.15 * spread, 0.6 * spread, **more)
            case = Case(f"resolution, {name}, {i}", i, means, {"resolution": asked, "noise": noise}, draw, most=300)
            chosen = ((40, "choose", (0.1 * spread, 0.7 * spread)), (70, "dict", None))
            yield replace(
                case, workers=1 + 2 * i, actions=chosen if i == 2 else (), lost=0.03 * i, kept=number == i == 0
            )
        for i in range(2):
            rng = np.random.default_rng([52, number, i])
            noise, means, draw = noisy(name, rng, 7, 3, 1)
            settings = {"n_clusters": 3, "groups": "linkage", "noise": noise}
            case = Case(f"linkage, {name}, {i}", i, means, settings, draw, workers=1 + 3 * i, most=250)
            yield replace(case, kept=number == i == 0)
    for i in range(16):
        rng = np.random.default_rng([53, i])
        k = 2 + i % 3
        means = grouped(rng, k + 1 + i % 5, k, 1 + i % 4, float(rng.uniform(1.0, 4.0)))
        settings = {"n_clusters": k, "noise": 1.0, "method": "shortlist", "delta": (0.05, 1e-3)[i % 2]}
        case = Case(f"shortlist, {i}", i, means, settings, workers=1 + (i % 4), most=150, kept=i < 3)
        if i % 4 == 3:
            case = replace(case, lost=0.04, extra=0.04)
        yield replace(case, actions=((30, "correct", None), (60, "dict", None))) if i % 5 == 4 else case


def of_handed_in() -> Iterator[Case]:
    """Families of evidence from outside the engine."""
    for family in ("known_handed_in", "at_most", "exchangeable"):
        for i, (shape, instance) in enumerate(SHAPES.items()):
            settings = {"family": family, "n_clusters": instance.n_clusters, "delta": (0.1, 1e-6)[i % 2]}
            case = Case(f"{family}, {shape}", i, instance.means, settings, what="handed in", workers=1 + 2 * (i % 2))
            yield replace(case, most=400, lost=0.03 * (i % 2))


def of_simulated() -> Iterator[Case]:
    """Bulk trials: with both thresholds, with all noises, and wide ones."""
    for method in ("croc", *PAPER):
        for i, (m, k, d) in enumerate([(12, 3, 2), (30, 5, 4), (8, 2, 24)]):
            instance = _instance(grouped(np.random.default_rng([61, i]), m, k, d, 2.5))
            given = settings_of(method, instance, 0.0) | {"deltas": (0.2, 0.01, 1e-6), "trials": 4, "seed": i}
            if method != "croc":
                given["threshold"] = ["proven", "heuristic"]
            yield Case(f"{method}, simulated {i}", i, instance.means, given, what="simulated")
    for number, (noise, world) in enumerate(
        [
            (None, None),
            (None, "t3"),
            (None, "contaminated:0.05,10"),
            (0.5, None),
            ("gaussian", None),
            (coterie.Gaussian("scalar"), None),
            (coterie.Gaussian("diagonal"), None),
            (coterie.AtMost(1.0), None),
            (coterie.Symmetric(), "t3"),
        ]
    ):
        instance = SHAPES["three in a plane"]
        given = settings_of("croc", instance, 0.0, noise) | {
            "deltas": (0.1, 0.01),
            "trials": 3,
            "seed": 2,
            "world": world,
        }
        yield Case(f"croc, simulated noise {number}", 2, instance.means, given, what="simulated")
        if number < 2:
            costs = np.geomspace(1.0, 50.0, instance.n_arms)
            yield Case(f"croc, simulated costs {number}", 3, instance.means, given | {"costs": costs}, what="simulated")


def cases() -> Iterator[Case]:
    """All of them."""
    for part in (first_recorded, of_croc, of_paper, of_noises, of_other_questions, of_handed_in, of_simulated):
        yield from part()
