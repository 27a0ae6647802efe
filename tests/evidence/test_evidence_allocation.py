"""The allocation solver: certified gap, an independent optimiser, symmetric and badly scaled instances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from coterie.evidence import solve_allocation
from coterie.problem.instance import squared_distances


def minimax(sizes: np.ndarray, gaps: np.ndarray, weights: np.ndarray, as_printed: bool = False) -> float:
    """theorem_opt3's objective: 2 max (n_k/w_k + 1/w_j) / Delta^2_kj."""
    return 2 * max(
        float((sizes[k] / weights[k] + 1 / weights[j]) / gaps[k, j])
        for k in range(sizes.size)
        for j in range(sizes.size)
        if k != j and (sizes[k] > 1 or not as_printed)
    )


def by_slsqp(sizes: np.ndarray, gaps: np.ndarray, as_printed: bool) -> float:
    """D* from the minimax form over w, in epigraph form, by a general-purpose solver."""
    k, j = np.nonzero(~np.eye(sizes.size, dtype=bool))
    if as_printed:
        k, j = k[sizes[k] > 1], j[sizes[k] > 1]
    start = sizes / sizes.sum()
    # Units in which the starting value is 1, for the solver's tolerances.
    unit = minimax(sizes, gaps, start, as_printed)
    b = gaps[k, j] * unit / 2
    found = minimize(
        lambda x: x[-1],
        np.r_[start, 1.0],
        jac=lambda x: np.r_[np.zeros(sizes.size), 1.0],
        method="SLSQP",
        bounds=[(1e-7, 1)] * sizes.size + [(0, None)],
        constraints=[
            {"type": "eq", "fun": lambda x: x[:-1].sum() - 1},
            {"type": "ineq", "fun": lambda x: x[-1] - (sizes[k] / x[k] + 1 / x[j]) / b},
        ],
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return unit * float(found.x[-1])


def random_problem(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n_clusters = int(rng.integers(2, 8))
    sizes = rng.integers(1, rng.choice([2, 4, 30]), size=n_clusters)
    return sizes, squared_distances(
        rng.normal(size=(n_clusters, int(rng.integers(1, 5)))) + 0.3 * np.arange(n_clusters)[:, None]
    )


@pytest.mark.parametrize("as_printed", [False, True])
def test_hardness_matches_oracle(as_printed: bool) -> None:
    rng = np.random.default_rng(3)
    compared = 0
    for _ in range(60):
        sizes, gaps = random_problem(rng)
        if as_printed and sizes.max() == 1:
            continue
        found = solve_allocation(sizes, gaps, as_printed=as_printed)
        # The weights attain the value that is claimed for them …
        assert minimax(sizes, gaps, found.cluster_weights, as_printed) == pytest.approx(found.hardness, rel=1e-12)
        # … and a general-purpose solver finds nothing better, and the same when it converges.
        other = by_slsqp(sizes, gaps, as_printed)
        assert other >= found.hardness * (1 - 1e-6)
        compared += other <= found.hardness * (1 + 1e-5)
    assert compared >= 30


def test_duals_certify_the_gap() -> None:
    """The returned multipliers alone prove the lower bound 2 (2 sum sqrt(a) - sum nu Delta^2)."""
    rng = np.random.default_rng(4)
    for _ in range(100):
        sizes, gaps = random_problem(rng)
        found = solve_allocation(sizes, gaps)
        nu = found.duals
        assert nu.shape == gaps.shape
        assert (nu >= 0).all()
        assert (np.diag(nu) == 0).all()
        a = sizes * nu.sum(axis=1) + nu.sum(axis=0)
        bound = 2 * (2 * np.sqrt(a).sum() - (nu * gaps).sum())
        assert found.hardness == pytest.approx(bound, rel=1e-9)
        assert 0 <= found.relative_gap <= 1e-9
        assert found.cluster_weights.sum() == pytest.approx(1, abs=1e-14)


def spread_problem(rng: np.random.Generator, kind: int) -> tuple[np.ndarray, np.ndarray]:
    n_clusters = int(rng.integers(2, 11))
    sizes = rng.integers(1, rng.choice([2, 4, 20, 2000]), size=n_clusters)
    centers = rng.normal(size=(n_clusters, int(rng.integers(2, 9))))
    if kind == 1:  # radii from 1e-6 to 1e6
        centers *= 10.0 ** rng.uniform(-6, 6, size=(n_clusters, 1))
    elif kind == 2:  # two centers nearly equal
        centers[1] = centers[0] + 1e-7 * rng.normal(size=centers.shape[1])
    elif kind == 3:  # integers: many equal distances
        centers = np.rint(2 * centers) + 7 * np.arange(n_clusters)[:, None]
    elif kind == 4:  # nearly dependent constraints
        centers = np.rint(2 * centers) + 7 * np.arange(n_clusters)[:, None] + 1e-9 * rng.normal(size=centers.shape)
    return sizes, squared_distances(centers)


@pytest.mark.parametrize("kind", range(5))
def test_weights_keep_twelve_digits_under_relabelling_and_units(kind: int) -> None:
    """Rounding differs between the two solves, so their agreement shows how exact each is."""
    rng = np.random.default_rng(kind)
    for _ in range(60):
        sizes, gaps = spread_problem(rng, kind)
        order = rng.permutation(sizes.size)
        unit = 3.7 ** int(rng.integers(-20, 20))
        one = solve_allocation(sizes, gaps)
        two = solve_allocation(sizes[order], unit * gaps[np.ix_(order, order)])
        assert np.abs(one.cluster_weights[order] - two.cluster_weights).max() < 1e-12
        assert two.hardness * unit == pytest.approx(one.hardness, rel=1e-12)


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 7])
@pytest.mark.parametrize("size", [1, 2, 50])
def test_regular_simplex_is_shared_equally(n_clusters: int, size: int) -> None:
    """Equal groups at equal distances: every constraint is active and the rows depend on each other."""
    gaps = 2.0 * (1 - np.eye(n_clusters))
    found = solve_allocation(np.full(n_clusters, size), gaps)
    assert np.allclose(found.cluster_weights, 1 / n_clusters, rtol=0, atol=1e-14)
    # y = Delta^2 / (n + 1) in every coordinate
    assert found.hardness == pytest.approx(2 * n_clusters * (size + 1) / 2, rel=1e-14)


def test_two_clusters_have_a_closed_form() -> None:
    """K = 2 and n > 1 in both: y_1 (n_1 n_2 - 1) = b (n_2 - 1), if both constraints are active."""
    n1, n2, b = 3, 5, 4.0
    y1 = b * (n2 - 1) / (n1 * n2 - 1)
    y2 = b * (n1 - 1) / (n1 * n2 - 1)
    found = solve_allocation([n1, n2], [[0, b], [b, 0]])
    # Both active is the optimum here because both multipliers come out positive.
    nu = np.linalg.solve([[n1, 1.0], [1.0, n2]], [1 / y1**2, 1 / y2**2])
    assert (nu > 0).all()
    assert found.hardness == pytest.approx(2 * (1 / y1 + 1 / y2), rel=1e-13)
    assert found.cluster_weights[0] == pytest.approx(y2 / (y1 + y2), rel=1e-13)
    assert [found.duals[0, 1], found.duals[1, 0]] == pytest.approx(nu.tolist(), rel=1e-10)


@pytest.mark.parametrize("excess", [10.0**-e for e in range(3, 16)] + [-(10.0**-e) for e in range(3, 16)] + [0.0])
def test_a_constraint_that_is_almost_active_is_decided(excess: float) -> None:
    """K = 2 with the second bound at, or a hair beside, the point where its constraint starts to matter."""
    n1, n2 = 3, 2
    # The first constraint alone: y_2 = sqrt(n_1) y_1.
    y = np.array([1.0, math.sqrt(n1)])
    first = n1 * y[0] + y[1]
    second = (n2 * y[1] + y[0]) * (1 + excess)
    if excess < 0:  # both constraints are active
        y = np.linalg.solve([[n1, 1.0], [1.0, n2]], [first, second])
    found = solve_allocation([n1, n2], [[0.0, first], [second, 0.0]])
    assert found.cluster_weights == pytest.approx((1 / y) / (1 / y).sum(), abs=2e-12)
    assert found.hardness == pytest.approx(2 * (1 / y).sum(), rel=2e-12)


def test_printed_form_differs_only_with_two_singletons() -> None:
    rng = np.random.default_rng(5)
    differing = 0
    for _ in range(200):
        sizes, gaps = random_problem(rng)
        if sizes.max() == 1:
            continue
        corrected, printed = solve_allocation(sizes, gaps), solve_allocation(sizes, gaps, as_printed=True)
        assert printed.hardness <= corrected.hardness * (1 + 1e-12)
        if printed.hardness < corrected.hardness * (1 - 1e-9):
            assert (sizes == 1).sum() >= 2
            differing += 1
    assert differing >= 5


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 100_000))
def test_a_far_cluster_keeps_the_hardness(seed: int) -> None:
    """A far-away cluster costs almost nothing: D* grows by no more than the share it needs."""
    rng = np.random.default_rng(seed)
    sizes, gaps = random_problem(rng)
    far = np.full((sizes.size + 1, sizes.size + 1), 1e10)
    far[:-1, :-1] = gaps
    near = solve_allocation(sizes, gaps)
    with_far = solve_allocation(np.r_[sizes, 3], far)
    assert with_far.hardness == pytest.approx(near.hardness, rel=1e-6, abs=1e-8)
    assert with_far.hardness > near.hardness * (1 - 1e-12)


NAN = float("nan")
GAPS = [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("sizes", "gaps", "error", "message"),
    [
        ([2], [[0.0]], ValueError, "at least two cluster sizes"),
        ([2, 0], GAPS, ValueError, "got size 0"),
        ([2.0, 1.0], GAPS, TypeError, "sizes must be integers"),
        ([2, 1], [[0.0, 1.0]], ValueError, r"shape \(2, 2\), got shape \(1, 2\)"),
        ([2, 1], [[0.0, 0.0], [0.0, 0.0]], ValueError, r"positive, got 0\.0 for clusters 0 and 1"),
        ([2, 1], [[0.0, -1.0], [1.0, 0.0]], ValueError, r"positive, got -1\.0"),
        ([2, 1], [[0.0, NAN], [1.0, 0.0]], ValueError, "finite, got nan"),
    ],
)
def test_bad_problems_are_refused(sizes: Any, gaps: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        solve_allocation(sizes, gaps)


def test_the_callers_arrays_are_left_alone() -> None:
    sizes, gaps = np.array([2, 1]), np.array(GAPS)
    solve_allocation(sizes, gaps)
    assert sizes.tolist() == [2, 1]
    assert gaps.tolist() == GAPS
