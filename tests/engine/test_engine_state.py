"""What the engine keeps up to date pull by pull is what a computation from scratch gives."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.evidence.allocation import project_to_floor, solve_allocation
from coterie.methods.paper import BOC, LINEAR
from coterie.methods.paper.method import levels_for
from coterie.methods.paper.run import Run
from coterie.problem.instance import Instance, squared_distances

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
        if run.degenerate:
            continue
        s, gaps = run.memory(), squared_distances(run.relative_centers)
        sizes = s["guess.sizes"]
        np.testing.assert_allclose(s["guess.gaps"], gaps, rtol=1e-11, atol=0)
        exact = solve_allocation(sizes, gaps)
        np.testing.assert_allclose(s["allocation.shares"] * sizes, exact.cluster_weights, rtol=1e-8)
        # A feasible primal and a dual value bracket D*: the certified gap of the warm solution itself.
        y = s["allocation.slack"] * (1 - 1e-12)
        assert (sizes[:, None] * y[:, None] + y[None, :] <= gaps + 1e9 * gaps.max() * np.eye(k)).all()
        primal = 2 * (1 / y).sum()
        if s["allocation.active"] == 0:  # dependent constraints: the oracle's value stands in for the dual
            assert primal <= exact.hardness * (1 + 1e-9)
            continue
        nu = np.maximum(s["allocation.multiplier"], 0)
        left, right = s["allocation.active.tail"], s["allocation.active.head"]
        a = np.bincount(left, nu * sizes[left], minlength=k) + np.bincount(right, nu, minlength=k)
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
        if run.degenerate:
            continue
        s = run.memory()
        sizes, shares = s["guess.sizes"], s["allocation.shares"]
        weights = solve_allocation(sizes, squared_distances(run.relative_centers)).cluster_weights
        plain = (weights / sizes)[run.labels]
        floor = 0.9**2 / (2 * inst.n_arms)
        np.testing.assert_allclose(shares[run.labels], project_to_floor(plain, floor), rtol=1e-7)
        raised += bool((plain < floor).any())
    assert raised > 50  # otherwise the projection was not exercised


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("gap", "certified"), [(1.0, False), (60.0, True)])
def test_long_run_keeps_running_sums_exact(offset: float, gap: float, certified: bool) -> None:
    rng = np.random.default_rng(3)
    inst = Instance(np.arange(20) % 4, spread(rng, 4, 3, gap) + offset)
    run = endless(inst)
    play(run, inst, rng, 100_003)
    s, labels, pulls = run.memory(), run.labels, run.pulls
    assert s["certified"] or not certified
    totals = np.bincount(labels, pulls, minlength=4)
    sums = np.zeros((4, 3))
    np.add.at(sums, labels, s["arms.sums"])
    centers = sums / totals[:, None]
    means = s["arms.sums"] / pulls[:, None]
    scatter = np.zeros(4)
    np.add.at(scatter, labels, pulls * ((means - centers[labels]) ** 2).sum(axis=1))
    np.testing.assert_array_equal(s["guess.totals"], totals)
    np.testing.assert_allclose(s["guess.sums"], sums, rtol=1e-9, atol=1e-9 * np.abs(sums).max())
    np.testing.assert_allclose(run.relative_centers, centers, rtol=1e-9, atol=1e-9 * gap)
    np.testing.assert_allclose(s["guess.scatter"], scatter, rtol=1e-9)
    np.testing.assert_allclose(run.log_sum, np.log(4 + np.log(pulls)).sum(), rtol=1e-12)


def test_separated_run_needs_one_whole_clustering_and_one_cold_solve() -> None:
    """The point of the separation certificate: after the first guess everything is an update."""
    rng = np.random.default_rng(8)
    inst = Instance(np.arange(300) % 10, spread(rng, 10, 8, 60.0))
    run = endless(inst)
    play(run, inst, rng, 10_000)
    assert run.memory()["maximin.full_runs"] == 1
    assert run.memory()["allocation.cold_solves"] <= 3
