"""The projection of the linear-exploration rule against its optimality conditions and bisection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.evidence import project_to_floor


def by_bisection(x: np.ndarray, floor: float) -> np.ndarray:
    """max(x - tau, floor) with the tau at which the sum is one."""
    low, high = x.min() - 2.0, x.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(x - middle, floor).sum() > 1:
            low = middle
        else:
            high = middle
    projected: np.ndarray = np.maximum(x - low, floor)
    return projected


VECTORS = st.lists(st.floats(-3, 3), min_size=1, max_size=30)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(VECTORS, st.floats(0, 1))
def test_projection_matches_oracle(x: list[float], part: float) -> None:
    floor = part / len(x)
    found = project_to_floor(x, floor)
    assert found == pytest.approx(by_bisection(np.array(x), floor), abs=1e-12)
    assert found.min() >= floor
    assert found.sum() == pytest.approx(1, abs=1e-12)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(VECTORS, st.floats(0, 1), st.integers(0, 10_000))
def test_projection_keeps_every_feasible_point_on_the_far_side(x: list[float], part: float, seed: int) -> None:
    """The variational inequality <x - p, z - p> <= 0 for all feasible z: it characterises the projection."""
    point, floor = np.array(x), part / len(x)
    found = project_to_floor(point, floor)
    feasible = floor + (1 - len(x) * floor) * np.random.default_rng(seed).dirichlet(np.ones(len(x)), size=20)
    assert ((feasible - found) @ (point - found)).max() <= 1e-10


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 20), st.floats(0, 1), st.integers(0, 10_000))
def test_projection_keeps_what_is_feasible(m: int, part: float, seed: int) -> None:
    floor = part / m
    inside = floor + (1 - m * floor) * np.random.default_rng(seed).dirichlet(np.ones(m))
    assert project_to_floor(inside, floor) == pytest.approx(inside, abs=1e-14)


def test_projection_of_an_allocation() -> None:
    found = project_to_floor([0.5, 0.48, 0.01, 0.01], 0.05)
    assert found == pytest.approx([0.46, 0.44, 0.05, 0.05], abs=1e-15)
    assert project_to_floor([0.9, 0.1], 0.5).tolist() == [0.5, 0.5]


def test_equal_entries_stay_equal() -> None:
    found = project_to_floor([0.3, 0.05, 0.3, 0.05, 0.3], 0.07)
    assert found[0] == found[2] == found[4]
    assert found[1] == found[3]


@pytest.mark.parametrize(
    ("x", "floor", "error", "message"),
    [
        ([0.5, 0.5], 0.6, ValueError, r"floor must lie in \[0, 1/M\] with M = 2, got 0\.6"),
        ([0.5, 0.5], -0.1, ValueError, r"got -0\.1"),
        ([0.5, 0.5], float("nan"), ValueError, "floor must be finite"),
        ([0.5, float("inf")], 0.1, ValueError, "weights must be finite, got inf at position 1"),
        ([], 0.1, ValueError, r"got shape \(0,\)"),
        ([[0.5, 0.5]], 0.1, ValueError, r"got shape \(1, 2\)"),
        ("ab", 0.1, TypeError, "real numbers"),
    ],
)
def test_bad_projections_are_refused(x: Any, floor: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        project_to_floor(x, floor)
