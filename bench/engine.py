"""Speed of the engine: Yeast against the rivals, d = 400 against its random numbers, growth with M, first use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from typing import Any

import numpy as np

import coterie
from bench import rivals
from coterie.engine.run import Run
from coterie.paper.usual import usual_libraries
from coterie.rules import METHODS, levels_for

REPEATS = 5


def separated(n_arms: int, n_clusters: int, dim: int, gap: float, seed: int = 1) -> coterie.Instance:
    """Groups of equal size, smallest distance between centers `gap`."""
    centers = np.random.default_rng(seed).normal(size=(n_clusters, dim))
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=2) + 1e9 * np.eye(n_clusters)
    return coterie.Instance(np.arange(n_arms) % n_clusters, centers * (gap / distances.min()))


def seconds_a_pull(instance: coterie.Instance, pulls: int, method: str = "boc", warm: int = 1000) -> float:
    """Best of a few runs: whole loop with its random numbers, after the first pass over the arms and `warm` more."""
    levels = levels_for(("heuristic",), (1e15,), instance.n_arms, instance.dim)
    none = np.zeros(0, dtype=np.int64)
    best = np.inf
    for _ in range(REPEATS):
        run = Run(instance.n_arms, instance.n_clusters, instance.dim, METHODS[method].sampling, levels)
        rng = np.random.default_rng(0)
        run.play(instance.n_arms + warm, instance.centers, instance.labels, rng, none)
        start = time.perf_counter()
        run.play(pulls, instance.centers, instance.labels, rng, none)
        best = min(best, (time.perf_counter() - start) / pulls)
    return best


def best_of(measure: Any, *args: Any) -> float:
    return min(measure(*args) for _ in range(REPEATS))


def rows() -> list[dict[str, Any]]:
    """One row a figure: what, measured ratio, the bound asked for, and the two times behind it."""
    found: list[dict[str, Any]] = []

    def add(what: str, ratio: float, asked: str, met: bool, detail: str) -> None:
        found.append({"what": what, "ratio": ratio, "asked": asked, "met": bool(met), "detail": detail})
        print(f"  {what}: {ratio:.4g} ({detail})", flush=True)

    yeast = coterie.datasets.yeast().with_hardness(2.0)
    ours = seconds_a_pull(yeast, 12_000, warm=500)
    scratch = rivals.compiled_from_scratch(yeast, 400, 0)
    usual = usual_libraries(yeast, 20, 0)
    for how, taken in usual.items():
        add(f"Yeast, against scikit-learn + SciPy, {how}", taken / ours, "≥ 80 000×", taken / ours >= 80_000,
            f"{taken * 1e3:.0f} ms and {ours * 1e6:.2f} µs a pull")  # fmt: skip
    add("Yeast, against everything from scratch in numba", scratch / ours, "≥ 150×", scratch / ours >= 150,
        f"{scratch * 1e6:.0f} µs and {ours * 1e6:.2f} µs a pull")  # fmt: skip
    wide = seconds_a_pull(separated(500, 10, 400, 200.0), 20_000)
    floor = best_of(rivals.random_numbers_alone, 400, 20_000, 0)
    add("M=500, K=10, d=400: a pull over its 400 Gaussians", wide / floor, "≤ 2×", wide / floor <= 2,
        f"{wide * 1e6:.2f} µs and {floor * 1e6:.2f} µs")  # fmt: skip
    small = seconds_a_pull(separated(1_000, 10, 8, 60.0), 50_000)
    large = seconds_a_pull(separated(100_000, 10, 8, 60.0), 200_000)
    add("a pull at M=100 000 over one at M=1 000", large / small, "≤ 2×", large / small <= 2,
        f"{large * 1e6:.2f} µs and {small * 1e6:.2f} µs")  # fmt: skip
    tracemalloc.start()
    Run(100_000, 10, 8, METHODS["boc"].sampling, levels_for(("heuristic",), (1.0,), 100_000, 8))
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    add("memory at M=100 000, over 8·M·d bytes", size / (8 * 100_000 * 8), "O(M·d)", True,
        f"{size / 2**20:.0f} MiB, most of it untouched until groups overlap")  # fmt: skip
    compile_time = _first_use()
    add("first use with a cold cache, s", compile_time, "< 20 s", compile_time < 20, "compiles the engine")
    importing = best_of(_import_time)
    add("import coterie, s", importing, "< 0.3 s", importing < 0.3, "without the interpreter's own start")
    return found


def _first_use() -> float:
    code = (
        "import coterie, time; i = coterie.datasets.synthetic('easy'); s = time.perf_counter();"
        "coterie.simulate(i, 'boc', trials=1, progress=False); print(time.perf_counter() - s)"
    )
    with tempfile.TemporaryDirectory() as cold:
        env = {**os.environ, "NUMBA_CACHE_DIR": cold}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return float(done.stdout)


def _import_time() -> float:
    code = "import time; s = time.perf_counter(); import coterie; coterie.Instance; print(time.perf_counter() - s)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
