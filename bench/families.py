"""Families of instances on which a rule may be lost: the benchmark and the tests take them from here.

What they have in common is that the bare k-means cost misleads: a large group seems to fall in two by chance, and two
small groups beside it seem to be one. There are families for which a median is asked for, others of the same making,
and instances drawn at random, for a scan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import coterie

DELTA = 0.05
"""The error probability at which all of this is measured."""

DIMS = (1, 3, 10, 30)


@dataclass(frozen=True, eq=False)
class Family:
    """A named instance. `median_at_most`: so many measurements are asked for; None where there is only the ratio."""

    name: str
    instance: coterie.Instance
    median_at_most: float | None = None


def yardstick(instance: coterie.Instance, delta: float = DELTA) -> float:
    """D*·(log 1/δ + d/2) + M: what a run may be expected to cost, up to a factor that should be small."""
    return float(coterie.hardness(instance)) * (-math.log(delta) + instance.dim / 2) + instance.n_arms


def grouped(sizes: Sequence[int], centers: np.ndarray) -> coterie.Instance:
    """Groups of these sizes, arms in the order of their groups."""
    return coterie.Instance(np.repeat(np.arange(len(sizes)), sizes), centers)


def on_a_line(places: Sequence[float] | np.ndarray, dim: int) -> np.ndarray:
    """Centers at these places of the first coordinate; the other coordinates are noise alone."""
    centers = np.zeros((len(places), dim))
    centers[:, 0] = places
    return centers


def spread(count: int, gap: float, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Centers from a normal distribution, scaled to the smallest gap."""
    centers = rng.normal(size=(count, dim))
    apart = np.linalg.norm(centers[:, None] - centers[None], axis=2)[np.triu_indices(count, 1)]
    return centers * float(gap / apart.min())


def widened(gap: float, dim: int) -> float:
    """A gap about as hard to see in `dim` coordinates as the given one is in one."""
    return gap * math.pow((10 + dim) / 11, 0.25)


def beside_a_large_one(sizes: Sequence[int], gap: float, away: float, dim: int = 1) -> coterie.Instance:
    """A large group, and two small ones so far away from it and this close together."""
    return grouped(sizes, on_a_line((0.0, away, away + gap), dim))


def _asked() -> Iterator[Family]:
    for n_arms, most in ((22, 60), (42, 70), (82, 115), (162, 200), (642, 720)):
        sizes = (n_arms - 2, 1, 1)
        yield Family(_name(sizes, "gap 2, 50 away", 1), beside_a_large_one(sizes, 2.0, 50.0), most)
    for sizes, gap, away, dim, most in (
        ((98, 1, 1), 3.0, 10.0, 1, 125),
        ((300, 1, 1), 3.0, 10.0, 1, 330),
        ((90, 5, 5), 1.5, 10.0, 1, 230),
        ((80, 10, 10), 1.0, 10.0, 1, 720),
        ((150, 1, 1), 2.0, 50.0, 5, 300),
    ):
        named = _name(sizes, f"gap {gap:g}, {away:g} away", dim)
        yield Family(named, beside_a_large_one(sizes, gap, away, dim), most)


def _name(sizes: Sequence[int], places: str, dim: int) -> str:
    return f"{','.join(map(str, sizes))}, {places}, d={dim}"


# Families of our own making; a gap is that of one dimension. Each is made in several dimensions.


def _two_pairs(gap: float, dim: int) -> coterie.Instance:
    places = (0.0, 60.0, 20.0, 20.0 + gap, 40.0, 40.0 + gap)
    return grouped((40, 40, 1, 1, 1, 1), on_a_line(places, dim))


def _three_close(gap: float, dim: int) -> coterie.Instance:
    centers = on_a_line((0.0, 30.0, 30.0 + gap, 30.0 + 2 * gap), dim)
    if dim > 1:  # a triangle of equal sides
        centers[3, :2] = 30.0 + gap / 2, gap * math.sqrt(0.75)
    return grouped((60, 1, 1, 1), centers)


def _geometric(gap: float, dim: int) -> coterie.Instance:
    return grouped((32, 16, 8, 4, 2, 1), _apart(6, gap, dim))


def _chain(gap: float, dim: int) -> coterie.Instance:
    return grouped((4,) * 8, on_a_line(gap * np.arange(8), dim))


def _all_but_one(gap: float, dim: int) -> coterie.Instance:
    return grouped((2, *(1,) * 10), _apart(11, gap, dim))


def _all_but_two(gap: float, dim: int) -> coterie.Instance:
    return grouped((2, 2, *(1,) * 8), _apart(10, gap, dim))


def _equal(gap: float, dim: int) -> coterie.Instance:
    return grouped((10,) * 4, _apart(4, gap, dim))


def _one_far(gap: float, dim: int) -> coterie.Instance:
    return grouped((20, 20, 20), on_a_line((0.0, gap, 1000.0), dim))


def _apart(count: int, gap: float, dim: int) -> np.ndarray:
    """Equal gaps on a line; beyond one dimension centers as they fall."""
    if dim == 1:
        return on_a_line(gap * np.arange(count), 1)
    return spread(count, gap, dim, np.random.default_rng([count, dim]))


_OWN: tuple[tuple[str, float, Callable[[float, int], coterie.Instance]], ...] = (
    ("40,40 and two close pairs", 2.0, _two_pairs),
    ("60 and three close ones", 2.0, _three_close),
    ("sizes 32 … 1", 2.0, _geometric),
    ("a chain of 8", 2.0, _chain),
    ("M=12, K=11", 2.0, _all_but_one),
    ("M=12, K=10", 2.0, _all_but_two),
    ("four of 10", 1.0, _equal),
    ("20,20 and 20 far away", 1.5, _one_far),
)


def _own() -> Iterator[Family]:
    yield Family("80,1,1, gap 2, 50 away, d=10", beside_a_large_one((80, 1, 1), 2.0, 50.0, 10))
    for label, gap, make in _OWN:
        for dim in DIMS:
            yield Family(f"{label}, d={dim}", make(widened(gap, dim), dim))
    sizes = (35, 10, 6, 4, 3, 2)
    yield Family("sizes 35 … 2, gap 4, d=30", grouped(sizes, spread(6, 4.0, 30, np.random.default_rng(60))))


FAMILIES: dict[str, Family] = {family.name: family for family in (*_asked(), *_own())}


# Instances drawn at random.


@dataclass(frozen=True, eq=False)
class Drawn:
    """A random instance, the kind of its sizes, and its smallest gap."""

    instance: coterie.Instance
    sizes: str
    gap: float

    def __str__(self) -> str:
        shape = self.instance
        return f"M={shape.n_arms} K={shape.n_clusters} d={shape.dim} gap {self.gap:.2g}, {self.sizes}"


def _even(n_arms: int, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    return np.bincount(np.arange(n_arms) % n_clusters)


def _random(n_arms: int, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    return 1 + rng.multinomial(n_arms - n_clusters, np.full(n_clusters, 1 / n_clusters))


def _halving(n_arms: int, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Every group about half as large as the one before, and at least one arm."""
    left, sizes = n_arms, []
    for after in range(n_clusters - 1, 0, -1):
        sizes.append(max(1, min(math.ceil(left / 2), left - after)))
        left -= sizes[-1]
    return np.array([*sizes, left])


def _one_large(n_arms: int, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    return np.array([n_arms - n_clusters + 1, *(1,) * (n_clusters - 1)])


SIZES: dict[str, Callable[[int, int, np.random.Generator], np.ndarray]] = {
    "even": _even,
    "random": _random,
    "geometric": _halving,
    "one large": _one_large,
}
"""Kinds of group sizes; "one large": all other groups have one arm."""


def random_instance(
    rng: np.random.Generator,
    arms: tuple[int, int] = (3, 60),
    dims: tuple[int, int] = (1, 20),
    gaps: tuple[float, float] = (0.5, 10.0),
    most_clusters: int | None = None,
) -> Drawn:
    """M, K in 2 … M−1 (every other time at most 6), d, smallest gap (log-uniform), sizes, and the order of the arms.

    Both ends of the ranges are included. `most_clusters`: the largest K, if that is less than M−1.
    """
    n_arms = int(rng.integers(arms[0], arms[1], endpoint=True))
    most = n_arms - 1 if most_clusters is None else min(most_clusters, n_arms - 1)
    if rng.random() < 0.5:  # or there were hardly any with few groups
        most = min(6, most)
    n_clusters = int(rng.integers(2, most, endpoint=True))
    dim = int(rng.integers(dims[0], dims[1], endpoint=True))
    gap = float(np.exp(rng.uniform(math.log(gaps[0]), math.log(gaps[1]))))
    kind = str(rng.choice(list(SIZES)))
    sizes = SIZES[kind](n_arms, n_clusters, rng)
    centers = spread(n_clusters, gap, dim, rng)
    return Drawn(coterie.Instance(rng.permutation(np.repeat(np.arange(n_clusters), sizes)), centers), kind, gap)
