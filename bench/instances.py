"""The instances that the parts measure on, by name."""

from __future__ import annotations

from functools import cache

import numpy as np

import coterie
from bench.families import FAMILIES, spread


def drawn(n_arms: int, n_clusters: int, dim: int, gap: float, seed: int = 0) -> coterie.Instance:
    """Centers from a normal distribution, scaled to the smallest gap; arms dealt out evenly."""
    centers = spread(n_clusters, gap, dim, np.random.default_rng([99, seed]))
    return coterie.Instance(np.arange(n_arms) % n_clusters, centers)


def separated(n_arms: int, n_clusters: int, dim: int) -> coterie.Instance:
    """Groups so far apart that the noise of single measurements, about √d long, never mixes them up."""
    return drawn(n_arms, n_clusters, dim, 40.0 + 10.0 * dim**0.5)


DRAWN = {"M=40 K=4 d=5 gap 1": (40, 4, 5, 1.0), "M=100 K=5 d=10 gap 3": (100, 5, 10, 3.0)}
"""Another instance in every trial."""


RATED: dict[str, list[float]] = {"ratings": [2.5, 3.3, 4.1], "clicks": [0.02, 0.05, 0.1, 0.2]}
"""Mean ratings, or rates, of groups of 40 arms in all, dealt out evenly."""


@cache
def named(name: str, trial: int = 0) -> coterie.Instance:
    """Iris, Yeast and MNIST (500 images) at D* = 2, the paper's synthetic ones as they are, drawn ones, ratings and
    clicks, families."""
    if name in RATED:
        return coterie.Instance(np.arange(40) % len(RATED[name]), [[center] for center in RATED[name]])
    if name in FAMILIES:
        return FAMILIES[name].instance
    if name in DRAWN:
        return drawn(*DRAWN[name], seed=trial)
    data = coterie.datasets
    if name.startswith("MNIST"):
        return data.mnist(int(name.split("=")[1])).with_hardness(2.0)
    if name in ("Iris", "Yeast"):
        found: coterie.Instance = getattr(data, name.lower())().with_hardness(2.0)
        return found
    return data.synthetic(name)
