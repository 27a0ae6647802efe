"""The engine pulls the same arms, stops at the same times and finds the same partitions as `tests.oracles.paper`."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from engines import SAMPLING

from coterie.evidence.allocation import allocation
from coterie.methods.paper.method import levels_for
from coterie.methods.paper.run import Run
from coterie.problem.instance import Instance
from coterie.problem.partition import same_partition
from tests.oracles import paper as reference

LOGS = (1.0, 5.0, 20.0)
KINDS = ("proven", "heuristic")
BATCH = 10


def random_instance(rng: np.random.Generator) -> Instance:
    """K 2–8, M up to 60, d 1–12; smallest gap from 0.3 (overlapping) to 30 (separated); often clusters of one arm."""
    k = int(rng.integers(2, 9))
    m = int(rng.integers(k + 1, 61))
    d = int(rng.integers(1, 13))
    crowded = k if rng.random() < 0.5 else max(1, k // 2)  # the other clusters keep a single arm
    labels = np.concatenate([np.arange(k), rng.integers(0, crowded, m - k)])
    rng.shuffle(labels)
    centers = rng.normal(size=(k, d))
    smallest = min(np.linalg.norm(centers[a] - centers[b]) for a, b in combinations(range(k), 2))
    return Instance(labels, centers * (np.exp(rng.uniform(np.log(0.3), np.log(30.0))) / smallest))


def ratio_of(inst: Instance) -> float:
    distances = [np.linalg.norm(a - b) for a, b in combinations(inst.centers, 2)]
    return float(min(distances) / max(distances))


def engine_run(inst: Instance, method: str, ratio: float) -> Run:
    shares = allocation(inst)
    firsts = [int(np.argmax(inst.labels == k)) for k in range(inst.n_clusters)]
    return Run(
        inst.n_arms,
        inst.n_clusters,
        inst.dim,
        SAMPLING[method],
        levels_for(KINDS, LOGS, inst.n_arms, inst.dim),
        distance_ratio=ratio,
        oracle=(inst.labels, shares[firsts]),
    )


def compare(inst: Instance, method: str, seed: int, max_pulls: int) -> int:
    """Run both on the same stream; returns the stops seen."""
    ratio = ratio_of(inst)
    stream = np.random.default_rng(seed)
    expected = reference.run(
        lambda arm: inst.means[arm] + stream.standard_normal(inst.dim),
        inst.n_arms,
        inst.n_clusters,
        inst.dim,
        method,
        log_inverse_deltas=LOGS,
        max_pulls=max_pulls,
        instance=inst,
        distance_ratio=ratio,
    )
    run = engine_run(inst, method, ratio)
    arms = np.zeros(max_pulls, dtype=np.int64)
    run.play(max_pulls, inst.centers, inst.labels, np.random.default_rng(seed), arms)

    assert arms[: run.t].tolist() == expected.arms
    found = {
        (kind, log): (int(run.stops[i, j]), bool(run.correct[i, j]))
        for i, kind in enumerate(KINDS)
        for j, log in enumerate(LOGS)
        if run.stops[i, j] > 0
    }
    assert found == {key: (t, same_partition(labels, inst.labels)) for key, (t, labels) in expected.stops.items()}
    t, z1, z2, z = expected.statistics[-1]
    assert run.t == t
    np.testing.assert_allclose(run.statistic, (z1, z2, z), rtol=1e-9, atol=1e-9)
    return len(found)


@pytest.mark.parametrize("batch", [0, *(pytest.param(batch, marks=pytest.mark.slow) for batch in range(1, 30))])
def test_three_hundred_random_instances_equal_reference(batch: int) -> None:
    for i in range(batch * BATCH, (batch + 1) * BATCH):
        rng = np.random.default_rng([2024, i])
        inst = random_instance(rng)
        max_pulls = inst.n_arms + int(rng.integers(40, 130))
        for method in reference.METHODS:
            compare(inst, method, i, max_pulls)


@pytest.mark.parametrize("method", reference.METHODS)
def test_runs_to_both_thresholds_equal_reference(method: str) -> None:
    """Instances easy enough that every δ stops under both thresholds, so that stops are really compared."""
    stops = 0
    for i in range(3):
        rng = np.random.default_rng([7, i])
        labels = rng.permutation(np.arange(12) % 3)
        inst = Instance(labels, 20.0 * np.eye(3)[:, : 2 + i % 2] + 4.0 * rng.normal(size=(3, 2 + i % 2)))
        stops += compare(inst, method, i, 400)
    assert stops == 3 * len(KINDS) * len(LOGS)


@pytest.mark.parametrize("method", reference.METHODS)
def test_symmetric_instance_equals_reference(method: str) -> None:
    """Equal groups at equal distances: dependent constraints and exact ties everywhere."""
    inst = Instance(np.arange(12) % 4, 6.0 * np.eye(4))
    compare(inst, method, 3, 160)


@pytest.mark.parametrize("method", reference.METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_integer_data_with_exact_ties_equals_reference(method: str, seed: int) -> None:
    """Measurements from a small grid: tied distances, duplicate means, emptied clusters."""
    rng = np.random.default_rng(seed)
    inst = Instance(np.arange(9) % 3, np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]]))
    values = inst.means[None] + rng.integers(-1, 2, size=(200, 9, 2))
    ratio = ratio_of(inst)
    drawn = np.zeros(9, dtype=int)

    def measure(arm: int) -> np.ndarray:
        drawn[arm] += 1
        x: np.ndarray = values[drawn[arm] - 1, arm]
        return x

    expected = reference.run(
        measure, 9, 3, 2, method,
        log_inverse_deltas=LOGS, max_pulls=150, instance=inst, distance_ratio=ratio,
    )  # fmt: skip
    run = engine_run(inst, method, ratio)
    drawn[:] = 0
    none = np.zeros(1, dtype=np.int64)
    run.absorb(none[:0], np.zeros((0, 2)), none[:0])
    arms = []
    while not run.done and run.t < 150:
        arm = run.next
        arms.append(arm)
        run.absorb(np.array([arm]), measure(arm)[None], none)
    assert arms == expected.arms
