"""Hardness, allocation and lower bound of instances: the paper's numbers and propositions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.evidence import closest_alternative
from coterie.evidence.allocation import allocation, binary_relative_entropy, hardness, lower_bound
from coterie.problem import Instance


def synthetic(fourth: float) -> Instance:
    """eqn:instances: K = 4, M = 11, d = 3; only the fourth center differs."""
    return Instance([0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3], [[0, 0, 0], [0, 10, 0], [0, 0, 10], [fourth, 0, 0]])


@pytest.mark.parametrize(("fourth", "expected"), [(5.0, 0.63273), (1.0, 12.14047), (0.5, 48.14012)])
def test_hardness_of_the_synthetic_instances(fourth: float, expected: float) -> None:
    assert hardness(synthetic(fourth)) == pytest.approx(expected, abs=5e-6)


def test_allocation_of_the_challenging_instance() -> None:
    inst = synthetic(0.5)
    weights = np.bincount(inst.labels, weights=allocation(inst))
    assert weights == pytest.approx([0.49854, 0.00166, 0.00125, 0.49854], abs=5e-6)


def random_instance(seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    n_clusters = int(rng.integers(2, 7))
    extra = rng.integers(n_clusters, size=int(rng.integers(1, 20)))
    return Instance(
        rng.permutation(np.r_[np.arange(n_clusters), extra]),
        rng.normal(size=(n_clusters, int(rng.integers(1, 5)))),
    )


SEEDS = st.integers(0, 1_000_000)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(SEEDS)
def test_allocation_keeps_one_share_per_cluster_above_the_floor(seed: int) -> None:
    """theorem_opt4: the same share for all arms of a cluster; proposition_distance: at least r^2/(2M)."""
    inst = random_instance(seed)
    shares = allocation(inst)
    assert shares.shape == (inst.n_arms,)
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    for k in range(inst.n_clusters):
        assert np.ptp(shares[inst.labels == k]) == 0
    distances = [math.dist(inst.centers[i], inst.centers[j]) for i in range(inst.n_clusters) for j in range(i)]
    ratio = min(distances) / max(distances)
    assert shares.min() >= ratio**2 / (2 * inst.n_arms) * (1 - 1e-12)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(SEEDS)
def test_closest_alternative_at_the_allocation_is_two_over_hardness(seed: int) -> None:
    """equation_D: D* = (1/2 sup inf)^-1, attained at lambda* and at no other weights."""
    inst = random_instance(seed)
    best = closest_alternative(inst, allocation(inst)).value
    assert best == pytest.approx(2 / hardness(inst), rel=1e-11)
    rng = np.random.default_rng(seed)
    for concentration in (1.0, 30.0):
        weights = rng.dirichlet(np.full(inst.n_arms, concentration))
        assert closest_alternative(inst, weights).value <= best * (1 + 1e-12)
    near = allocation(inst) * np.exp(0.01 * rng.normal(size=inst.n_arms))
    assert closest_alternative(inst, near / near.sum()).value < best


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SEEDS, st.floats(1e-6, 1e6))
def test_hardness_keeps_its_law_of_scaling_and_relabelling(seed: int, factor: float) -> None:
    inst = random_instance(seed)
    rng = np.random.default_rng(seed)
    value, shares = hardness(inst), allocation(inst)
    scaled = Instance(inst.labels, factor * inst.centers)
    assert hardness(scaled) == pytest.approx(value / factor**2, rel=1e-11)
    assert np.allclose(allocation(scaled), shares, rtol=0, atol=1e-12)
    sigma, order = rng.permutation(inst.n_clusters), rng.permutation(inst.n_arms)
    renamed = Instance(sigma[inst.labels][order], inst.centers[np.argsort(sigma)])
    assert hardness(renamed) == pytest.approx(value, rel=1e-12)
    assert np.allclose(allocation(renamed), shares[order], rtol=0, atol=1e-12)
    rotation = np.linalg.qr(rng.normal(size=(inst.dim, inst.dim)))[0]
    turned = Instance(inst.labels, inst.centers @ rotation + rng.normal(size=inst.dim))
    assert hardness(turned) == pytest.approx(value, rel=1e-8)


def test_lower_bound_matches_oracle() -> None:
    inst = synthetic(1.0)
    for delta in (0.4, 0.1, 1e-3, 1e-9):
        expected = binary_relative_entropy(delta, 1 - delta) * hardness(inst)
        assert lower_bound(inst, delta) == pytest.approx(expected, rel=1e-6)
    # d_KL(delta, 1-delta) tends to log(1/delta); at 1e-300, 1 - delta is 1 in floating point.
    assert lower_bound(inst, 1e-300) == pytest.approx(300 * math.log(10) * hardness(inst), rel=1e-12)
    assert math.isfinite(lower_bound(inst, 5e-324))
    assert lower_bound(inst, 0.5) == 0.0
    assert lower_bound(inst, 0.9) == pytest.approx(0.8 * math.log(9) * hardness(inst), rel=1e-12)


def test_binary_relative_entropy() -> None:
    assert binary_relative_entropy(0.3, 0.3) == pytest.approx(0, abs=1e-15)
    expected = 0.2 * math.log(0.2 / 0.6) + 0.8 * math.log(0.8 / 0.4)
    assert binary_relative_entropy(0.2, 0.6) == pytest.approx(expected, rel=1e-14)
    assert binary_relative_entropy(0.2, 0.6) != pytest.approx(binary_relative_entropy(0.6, 0.2), rel=1e-3)


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [(0.0, 0.5, ValueError), (0.5, 1.0, ValueError), (float("nan"), 0.5, ValueError), ("a", 0.5, TypeError)],
)
def test_binary_relative_entropy_refuses_the_edges(a: Any, b: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"\(0, 1\)"):
        binary_relative_entropy(a, b)


@pytest.mark.parametrize("function", [hardness, allocation, lambda x: lower_bound(x, 0.1)])
def test_only_instances_are_accepted(function: Any) -> None:
    for wrong in (None, 3, ([0, 0, 1], [[0.0], [1.0]]), "instance"):
        with pytest.raises(TypeError, match=r"needs a coterie\.Instance"):
            function(wrong)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_lower_bound_refuses_deltas_outside_the_interval(delta: float) -> None:
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\)"):
        lower_bound(synthetic(1.0), delta)
