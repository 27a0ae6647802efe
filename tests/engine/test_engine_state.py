"""What the engine keeps up to date pull by pull is what a computation from scratch gives."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from coterie.engine.run import Run
from coterie.engine.state import BOC, CERTIFIED, COLD_SOLVES, EDGES, FULL_RUNS, LINEAR
from coterie.methods.levels import levels_for
from coterie.problem.instance import Instance, squared_distances
from coterie.theory.allocation import solve_allocation
from coterie.theory.projection import project_to_floor

NEVER = 1e15


def endless(inst: Instance, method: int = BOC, ratio: float | None = None) -> Run:
    levels = levels_for(("heuristic",), (NEVER,), inst.n_arms, inst.dim)
    return Run(inst.n_arms, inst.n_clusters, inst.dim, method, levels, distance_ratio=ratio)


def play(run: Run, inst: Instance, rng: np.random.Generator, steps: int) -> None:
    run.play(steps, inst.centers, inst.labels, rng, np.zeros(0, dtype=np.int64))


def spread(rng: np.random.Generator, k: int, d: int, gap: float) -> np.ndarray:
    centers = rng.normal(size=(k, d))
    distances = squared_distances(centers) + 1e9 * np.eye(k)
    return np.asarray(centers * (gap / np.sqrt(distances.min())))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("gap", [2.0, 40.0])
def test_warm_allocation_matches_oracle_with_certified_gap(seed: int, gap: float) -> None:
    rng = np.random.default_rng([11, seed])
    k, d = int(rng.integers(2, 11)), int(rng.integers(1, 6))
    labels = np.concatenate([np.arange(k), rng.integers(0, max(1, k - seed % 3), 5 * k)])
    inst = Instance(labels, spread(rng, k, d, gap))
    run = endless(inst)
    play(run, inst, rng, inst.n_arms)
    for _ in range(60):
        play(run, inst, rng, 1)
        s = run.state
        if run.degenerate:
            continue
        gaps = squared_distances(s.centers)
        np.testing.assert_allclose(s.gaps, gaps, rtol=1e-11, atol=0)
        exact = solve_allocation(s.sizes, gaps)
        np.testing.assert_allclose(s.shares * s.sizes, exact.cluster_weights, rtol=1e-8)
        # A feasible primal and a dual value bracket D*: the certified gap of the warm solution itself.
        y = s.slack * (1 - 1e-12)
        assert (s.sizes[:, None] * y[:, None] + y[None, :] <= gaps + 1e9 * gaps.max() * np.eye(k)).all()
        primal = 2 * (1 / y).sum()
        n_edges = s.counters[EDGES]
        if n_edges == 0:  # dependent constraints: the oracle's value stands in for the dual
            assert primal <= exact.hardness * (1 + 1e-9)
            continue
        nu = np.maximum(s.multiplier[:n_edges], 0)
        left, right = s.edge_from[:n_edges], s.edge_to[:n_edges]
        a = np.bincount(left, nu * s.sizes[left], minlength=k) + np.bincount(right, nu, minlength=k)
        dual = 2 * (2 * np.sqrt(a).sum() - (nu * gaps[left, right]).sum())
        assert primal - dual <= 1e-9 * primal


def test_linear_exploration_matches_projection_oracle() -> None:
    rng = np.random.default_rng(5)
    inst = Instance(np.arange(30) % 3, np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 0.5]]))
    run = endless(inst, LINEAR, ratio=0.9)
    play(run, inst, rng, 40)
    raised = 0
    for _ in range(100):
        play(run, inst, rng, 1)
        s = run.state
        if run.degenerate:
            continue
        weights = solve_allocation(s.sizes, squared_distances(s.centers)).cluster_weights
        plain = (weights / s.sizes)[s.labels]
        floor = 0.9**2 / (2 * inst.n_arms)
        np.testing.assert_allclose(s.shares[s.labels], project_to_floor(plain, floor), rtol=1e-7)
        raised += bool((plain < floor).any())
    assert raised > 50  # otherwise the projection was not exercised


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("gap", "certified"), [(1.0, False), (60.0, True)])
def test_long_run_keeps_running_sums_exact(offset: float, gap: float, certified: bool) -> None:
    rng = np.random.default_rng(3)
    inst = Instance(np.arange(20) % 4, spread(rng, 4, 3, gap) + offset)
    run = endless(inst)
    play(run, inst, rng, 100_003)
    s = run.state
    assert bool(s.counters[CERTIFIED]) or not certified
    totals = np.bincount(s.labels, s.pulls, minlength=4)
    sums = np.zeros((4, 3))
    np.add.at(sums, s.labels, s.sums)
    centers = sums / totals[:, None]
    means = s.sums / s.pulls[:, None]
    scatter = np.zeros(4)
    np.add.at(scatter, s.labels, s.pulls * ((means - centers[s.labels]) ** 2).sum(axis=1))
    np.testing.assert_array_equal(s.totals, totals)
    np.testing.assert_allclose(s.group_sums, sums, rtol=1e-9, atol=1e-9 * np.abs(sums).max())
    np.testing.assert_allclose(s.centers, centers, rtol=1e-9, atol=1e-9 * gap)
    np.testing.assert_allclose(s.scatter, scatter, rtol=1e-9)
    np.testing.assert_allclose(run.log_sum, np.log(4 + np.log(s.pulls)).sum(), rtol=1e-12)


def test_separated_run_needs_one_whole_clustering_and_one_cold_solve() -> None:
    """The point of the separation certificate: after the first guess everything is an update."""
    rng = np.random.default_rng(8)
    inst = Instance(np.arange(300) % 10, spread(rng, 10, 8, 60.0))
    run = endless(inst)
    play(run, inst, rng, 10_000)
    assert run.state.counters[FULL_RUNS] == 1
    assert run.state.counters[COLD_SOLVES] <= 3


def test_without_the_compiler_the_steps_are_the_same() -> None:
    """The suite's own check that nothing depends on how numba treats integers, overflow or types."""
    code = """
import numpy as np
from coterie.engine.run import Run
from coterie.problem.instance import Instance
from coterie.engine.state import BOC, LINEAR, UNIFORM
from coterie.methods.levels import levels_for
inst = Instance(np.arange(14) % 3, np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 6.0]]))
out = []
for sampling in (BOC, LINEAR, UNIFORM):
    levels = levels_for(("proven", "heuristic"), (2.0, 9.0), 14, 2)
    run = Run(14, 3, 2, sampling, levels, distance_ratio=0.2)
    arms = np.zeros(150, dtype=np.int64)
    run.play(150, inst.centers, inst.labels, np.random.default_rng(1), arms)
    out.append((arms.tolist(), run.stops.tolist(), [round(v, 6) for v in run.statistic]))
print(out)
"""
    texts = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for off in ("0", "1")
    ]
    assert texts[0] == texts[1]
    assert "[[" in texts[0]


def test_simulations_and_sessions_share_one_compilation() -> None:
    """Compiling takes seconds: what a simulation and a session hand over must be of the same types."""
    code = """
import numpy as np
import coterie
from coterie.engine import run
from coterie.engine.croc import run as croc
inst = coterie.datasets.synthetic("easy")
for method in ("boc", "croc"):
    coterie.simulate(inst, method, trials=1, progress=False)
    noise = 1.0 if method == "boc" else None
    session = coterie.Session(inst.n_arms, inst.n_clusters, inst.dim, 0.1, method, noise=noise)
    for i in range(15):
        arm = session.ask()
        session.tell(arm, inst.means[arm] + np.sin(i))
    coterie.Session.from_dict(session.to_dict())
print(len(run.load().advance.signatures), len(croc.load().drive.signatures))
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["1", "1"]
