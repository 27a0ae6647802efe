"""Where groups overlap, the remembered Lloyd passes give what K-means–Maximin gives from scratch, at less work."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from coterie.methods.paper import UNIFORM
from coterie.methods.paper.method import levels_for
from coterie.methods.paper.run import Run
from coterie.problem.instance import Instance

NEVER = 1e15


def overlapping(n_arms: int, n_clusters: int, dim: int, gap: float) -> tuple[Instance, Run]:
    rng = np.random.default_rng([4, n_arms])
    centers = rng.normal(size=(n_clusters, dim))
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=2) + 1e9 * np.eye(n_clusters)
    inst = Instance(np.arange(n_arms) % n_clusters, centers * (gap / distances.min()))
    # In turn, because then every measurement is followed by a new guess (no forced exploration keeps the old one).
    return inst, Run(n_arms, n_clusters, dim, UNIFORM, levels_for(("heuristic",), (NEVER,), n_arms, dim))


@pytest.mark.parametrize(
    ("n_arms", "n_clusters", "dim", "gap"),
    [(8, 3, 1, 0.05), (40, 4, 5, 0.2), (120, 6, 3, 1.0), (300, 5, 4, 2.0), (300, 8, 6, 0.5), (700, 10, 8, 2.0)],
)
def test_guess_is_that_of_a_run_from_scratch(n_arms: int, n_clusters: int, dim: int, gap: float) -> None:
    inst, run = overlapping(n_arms, n_clusters, dim, gap)
    rng = np.random.default_rng(n_arms)
    none = np.zeros(0, dtype=np.int64)
    run.play(n_arms, inst.centers, inst.labels, rng, none)
    seen = set()
    for _ in range(200):
        run.play(int(rng.integers(1, 12)), inst.centers, inst.labels, rng, none)
        s = run.memory()
        if run.degenerate:
            continue  # an emptied cluster keeps its center: which one depends on the order of the steps
        labels, _ = coterie.kmeans_maximin(s["arms.sums"] / run.pulls[:, None], run.pulls, n_clusters)
        assert coterie.same_partition(labels, run.labels)
        seen.add(labels.tobytes())
    assert len(seen) > 5  # otherwise no label ever changed and nothing was put to the test


@pytest.mark.parametrize(
    ("n_arms", "n_clusters", "dim"), [(6, 2, 1), (14, 3, 1), pytest.param(30, 3, 2, marks=pytest.mark.slow)]
)
def test_many_short_runs_with_labels_that_keep_changing(n_arms: int, n_clusters: int, dim: int) -> None:
    none = np.zeros(0, dtype=np.int64)
    for seed in range(60):
        inst, run = overlapping(n_arms, n_clusters, dim, 0.01)
        rng = np.random.default_rng(seed)
        run.play(n_arms, inst.centers, inst.labels, rng, none)
        for _ in range(100):
            run.play(1, inst.centers, inst.labels, rng, none)
            if not run.degenerate:
                sums = run.memory()["arms.sums"]
                labels, _ = coterie.kmeans_maximin(sums / run.pulls[:, None], run.pulls, n_clusters)
                assert coterie.same_partition(labels, run.labels)


def test_few_measurements_look_at_every_arm() -> None:
    """The point of the lists of close arms: a label near a boundary is looked at, not all of them."""
    inst, run = overlapping(700, 10, 8, 2.0)
    rng = np.random.default_rng(0)
    none = np.zeros(0, dtype=np.int64)
    run.play(700 * 6, inst.centers, inst.labels, rng, none)
    before, passes = run.memory(), 0
    for _ in range(1000):
        run.play(1, inst.centers, inst.labels, rng, none)
        passes += run.memory()["maximin.passes.used"]
    after = run.memory()
    assert after["maximin.full_runs"] - before["maximin.full_runs"] <= 10
    assert after["maximin.passes.whole_looks"] - before["maximin.passes.whole_looks"] < passes / 10
