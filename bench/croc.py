"""How many measurements each rule needs: CROC beside the paper's rules, on the same instances, in one run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import coterie

TRIALS = 128

ASKED: dict[tuple[str, float], tuple[float, float]] = {
    ("Iris", 0.1): (156, 155),
    ("Iris", 1e-10): (235, 228),
    ("Yeast", 0.1): (1490, 1484),
    ("Yeast", 1e-10): (1490, 1484),
    ("MNIST d=10", 0.01): (502, 500),
    ("MNIST d=50", 0.01): (510, 503),
    ("MNIST d=400", 0.01): (600, 560),
    ("easy", 0.1): (19, 18),
    ("easy", 1e-10): (40, 34),
    ("moderate", 0.1): (210, 180),
    ("moderate", 1e-10): (620, 460),
    ("challenging", 0.1): (790, 690),
    ("challenging", 1e-10): (2300, 1850),
    ("M=40 K=4 d=5 gap 1", 0.1): (1120, 960),
    ("M=100 K=5 d=10 gap 3", 0.1): (420, 365),
}
"""At most so many after step (b), and the aim with step (c)."""


TOO_LONG: dict[str, tuple[str, ...]] = {
    "heuristic": ("MNIST d=400",),
    "proven": ("M=", "MNIST d=50", "MNIST d=400"),
}
"""Where the paper's rules would take the benchmark many minutes."""


def drawn(n_arms: int, n_clusters: int, dim: int, gap: float, seed: int) -> coterie.Instance:
    """Centers from a normal distribution, scaled to the smallest gap; arms dealt out evenly."""
    centers = np.random.default_rng([99, seed]).normal(size=(n_clusters, dim))
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=2) + 1e9 * np.eye(n_clusters)
    return coterie.Instance(np.arange(n_arms) % n_clusters, centers * (gap / distances.min()))


def instances(name: str) -> list[tuple[coterie.Instance, int]]:
    """The instances behind a name, each with its number of trials."""
    if name.startswith("M="):
        n_arms, n_clusters, dim, gap = (40, 4, 5, 1.0) if name.startswith("M=40") else (100, 5, 10, 3.0)
        return [(drawn(n_arms, n_clusters, dim, gap, i), 1) for i in range(TRIALS)]
    data = coterie.datasets
    if name.startswith("MNIST"):
        return [(data.mnist(int(name.split("=")[1])).with_hardness(2.0), TRIALS)]
    if name in ("Iris", "Yeast"):
        return [(getattr(data, name.lower())().with_hardness(2.0), TRIALS)]
    return [(data.synthetic(name), TRIALS)]


def pulls(name: str, method: str, delta: float, **settings: Any) -> tuple[float, float, int]:
    """Mean, its standard error, and wrong partitions."""
    times: list[int] = []
    wrong = 0
    for i, (instance, trials) in enumerate(instances(name)):
        found = coterie.simulate(
            instance, method, deltas=(delta,), trials=trials, seed=1000 + i, progress=False, **settings
        )
        times += found.stopping_times[:, 0].tolist()
        wrong += int(found.errors()[0])
    return float(np.mean(times)), float(np.std(times) / np.sqrt(len(times))), wrong


def rows() -> list[dict[str, Any]]:
    """One row for each instance and δ."""
    found: list[dict[str, Any]] = []
    for (name, delta), (limit, aim) in ASKED.items():
        start = time.perf_counter()
        mean, error, wrong = pulls(name, "croc", delta)
        row: dict[str, Any] = {
            "instance": name, "delta": delta, "croc": mean, "standard_error": error, "wrong": wrong,
            "limit": limit, "aim": aim, "seconds": time.perf_counter() - start,
        }  # fmt: skip
        for kind, left_out in TOO_LONG.items():
            if not name.startswith(left_out):
                row[f"boc_{kind}"] = pulls(name, "boc", delta, threshold=kind)[0]
        instance = instances(name)[0][0]
        row["lower_bound"] = max(coterie.lower_bound(instance, delta), instance.n_arms)
        found.append(row)
        print(f"  {name}, δ = {delta:g}: CROC {mean:.1f} ± {error:.1f} ({wrong} wrong), asked {limit}", flush=True)
    return found
