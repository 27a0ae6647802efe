"""Known noise: whitening and its inverse, and the covariances that are refused."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.problem import Noise

COVARIANCE = [[4.0, 1.0, 0.0], [1.0, 3.0, -0.5], [0.0, -0.5, 0.2]]
DESCRIPTIONS: list[Any] = [None, 2.5, 3, [0.5, 2.0, 7.0], COVARIANCE]


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_whitened_noise_has_identity_covariance(description: Any) -> None:
    noise = Noise.of(description, 3)
    # Colouring the identity gives rows L' e_i, so that F'F = L L'.
    factor = noise.color(np.eye(3))
    assert np.allclose(factor.T @ factor, noise.covariance, rtol=1e-12)
    white = noise.whiten(np.linalg.cholesky(noise.covariance).T)
    assert np.allclose(white.T @ white, np.eye(3), atol=1e-12)


def test_covariances_of_the_descriptions() -> None:
    assert Noise.of(None, 2).covariance.tolist() == [[1, 0], [0, 1]]
    assert Noise.of(3.0, 2).covariance.tolist() == [[9, 0], [0, 9]]
    assert Noise.of([1.0, 2.0], 2).covariance.tolist() == [[1, 0], [0, 4]]
    assert Noise.of(COVARIANCE, 3).covariance.tolist() == COVARIANCE
    # In one dimension a vector is a standard deviation and a matrix a variance.
    assert Noise.of([3.0], 1).covariance.tolist() == [[9.0]]
    assert Noise.of([[9.0]], 1).covariance.tolist() == [[9.0]]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 4))
def test_color_keeps_what_whiten_did_undone(seed: int, dim: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dim, dim)) + 2 * np.eye(dim)
    points = rng.normal(size=(n, dim))
    for description in (None, 0.3, rng.uniform(0.1, 5, size=dim), root @ root.T + 0.1 * np.eye(dim)):
        noise = Noise.of(description, dim)
        assert np.allclose(noise.color(noise.whiten(points)), points, atol=1e-9)
        assert np.allclose(noise.whiten(points)[0], noise.whiten(points[0]), atol=1e-12)
        assert noise.color(points[0]).shape == (dim,)


def test_identity_changes_nothing() -> None:
    noise = Noise.of(None, 2)
    x = np.array([1.5, -2.0])
    assert noise.is_identity
    assert noise.whiten(x).tolist() == noise.color(x).tolist() == x.tolist()
    assert noise.whiten(x) is not x
    assert Noise.of(1.0, 2).is_identity
    assert Noise.of([1.0, 1.0], 2).is_identity
    assert not Noise.of([1.0, 2.0], 2).is_identity


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_json_round_trip_is_exact(description: Any) -> None:
    noise = Noise.of(description, 3)
    again = Noise.from_json(json.loads(json.dumps(noise.to_json())), 3)
    assert again == noise
    assert hash(again) == hash(noise)
    assert again.covariance.tobytes() == noise.covariance.tobytes()
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert Noise.of(noise, 3) is noise
    others = [Noise.of(other, 3) for other in DESCRIPTIONS if other is not description]
    assert noise not in others
    assert noise != "noise"
    assert "dim=3" in repr(noise)


def test_noise_cannot_be_changed() -> None:
    given_value = np.array([1.0, 2.0])
    noise = Noise.of(given_value, 2)
    given_value[0] = 50.0
    assert noise.covariance.tolist() == [[1, 0], [0, 4]]
    noise.covariance[0, 0] = 9.0
    assert noise.covariance.tolist() == [[1, 0], [0, 4]]
    with pytest.raises(AttributeError, match="cannot be changed"):
        noise.dim = 7


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("description", "error", "message"),
    [
        (0.0, ValueError, r"positive, got 0\.0"),
        (-2.0, ValueError, r"positive, got -2\.0"),
        ([1.0, 0.0], ValueError, r"positive, got 0\.0"),
        ([1.0, -3.0], ValueError, r"positive, got -3\.0"),
        (NAN, ValueError, "finite, got nan"),
        ([1.0, INF], ValueError, "finite, got inf at position 1"),
        ([[1.0, NAN], [0.0, 1.0]], ValueError, r"finite, got nan at position \(0, 1\)"),
        ([1.0, 2.0, 3.0], ValueError, r"2x2 covariance, got shape \(3,\)"),
        ([[1.0, 0.0]], ValueError, r"got shape \(1, 2\)"),
        ([[1.0]], ValueError, r"got shape \(1, 1\)"),
        (
            [[2.0, 1.0], [0.5, 2.0]],
            ValueError,
            r"symmetric, but entry \(0, 1\) is 1\.0 and entry \(1, 0\) is 0\.5",
        ),
        ([[1.0, 2.0], [2.0, 1.0]], ValueError, "positive definite, but its smallest eigenvalue is -1"),
        ([[0.0, 0.0], [0.0, 0.0]], ValueError, "positive definite"),
        (True, TypeError, "noise must hold real numbers, got True"),
        ([True, 2.0], TypeError, "noise must hold real numbers"),
        ("1.0", TypeError, "noise must hold real numbers, got '1.0'"),
        (["a", "b"], TypeError, "noise must hold real numbers"),
        (1j, TypeError, "noise must hold real numbers"),
        ([[1.0, 0.0], [1.0]], ValueError, "rows differ in length"),
        (Noise.of(None, 3), ValueError, "for dimension 3, but the measurements have dimension 2"),
    ],
)
def test_bad_noise_is_refused(description: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Noise.of(description, 2)


def test_bad_points_and_dimensions_are_refused() -> None:
    noise = Noise.of(2.0, 2)
    for operation in (noise.whiten, noise.color):
        with pytest.raises(ValueError, match=r"shape \(2,\) or \(n, 2\), got shape \(3,\)"):
            operation([1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match="finite, got nan"):
            operation([1.0, NAN])
        with pytest.raises(ValueError, match=r"got shape \(1, 1, 2\)"):
            operation([[[1.0, 2.0]]])
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        Noise.of(None, 0)
    with pytest.raises(TypeError, match="dim must be an integer"):
        Noise.of(None, 1.0)  # type: ignore[arg-type]
