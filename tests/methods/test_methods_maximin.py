"""K-means–Maximin (algo2): against the reference, Prop. 5 (theorem_maximum), weights as copies, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie
from coterie.methods.maximin import likeliest_groups
from coterie.problem.instance import squared_distances
from tests.oracles.paper import kmeans_maximin_reference


def random_shape(rng: np.random.Generator) -> tuple[int, int, int]:
    n_clusters = int(rng.integers(2, 7))
    return n_clusters + int(rng.integers(1, 25)), n_clusters, int(rng.integers(1, 5))


@pytest.mark.parametrize("batch", range(4))
def test_continuous_data_matches_oracle(batch: int) -> None:
    for i in range(75):
        rng = np.random.default_rng([11, batch, i])
        n_arms, n_clusters, dim = random_shape(rng)
        means = rng.normal(scale=rng.choice([0.1, 1.0, 1e6]), size=(n_arms, dim)) + rng.choice([0.0, 100.0])
        weights = rng.integers(1, 50, size=n_arms) if i % 2 else rng.uniform(0.01, 9.0, size=n_arms)
        first = int(rng.integers(n_arms))
        labels, centers = coterie.kmeans_maximin(means, weights, n_clusters, first)
        expected, expected_centers = kmeans_maximin_reference(means, weights, n_clusters, first)
        assert labels.tolist() == expected.tolist()
        np.testing.assert_allclose(centers, expected_centers, rtol=1e-12)


@pytest.mark.parametrize("batch", range(4))
def test_integer_data_with_ties_and_copies_matches_oracle(batch: int) -> None:
    """Few distinct points: exact ties at every step, and often more clusters than distinct points."""
    emptied = 0
    for i in range(100):
        rng = np.random.default_rng([12, batch, i])
        n_arms, n_clusters, dim = random_shape(rng)
        means = rng.integers(-2, 3, size=(n_arms, dim)) * 2
        if i % 4 == 0:
            means = means[rng.integers(0, 3, size=n_arms)]  # at most three distinct points
        weights = rng.choice([1, 2, 4], size=n_arms)
        first = int(rng.integers(n_arms))
        labels, centers = coterie.kmeans_maximin(means, weights, n_clusters, first)
        expected, expected_centers = kmeans_maximin_reference(means, weights, n_clusters, first)
        assert labels.tolist() == expected.tolist()
        np.testing.assert_allclose(centers, expected_centers, rtol=1e-12, atol=1e-12)
        emptied += np.unique(labels).size < n_clusters
    assert emptied >= 10  # the departure is really exercised


def test_ties_and_emptied_clusters_by_hand() -> None:
    # Farthest from 0: arms 1 and 2 tie at distance 4, the lower index wins. Arm 3 in the middle joins center 0.
    labels, centers = coterie.kmeans_maximin([[0.0], [4.0], [-4.0], [2.0]], [1, 1, 1, 1], 2)
    assert labels.tolist() == [0, 1, 0, 1]
    assert centers.tolist() == [[-2.0], [3.0]]
    # Two distinct points for three clusters: the third starts on arm 0, loses the tie, and keeps its center.
    labels, centers = coterie.kmeans_maximin([[1.0], [5.0], [1.0], [5.0]], [1, 1, 1, 1], 3)
    assert labels.tolist() == [0, 1, 0, 1]
    assert centers.tolist() == [[1.0], [5.0], [1.0]]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_clusters=st.integers(1, 6),
    extra=st.integers(0, 12),
    dim=st.integers(1, 4),
    share=st.floats(0.0, 0.2499),
)
def test_means_close_to_their_centers_keep_the_partition(
    seed: int, n_clusters: int, extra: int, dim: int, share: float
) -> None:
    """theorem_maximum: errors below a quarter of the smallest distance give the right groups, whatever first."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.concatenate([np.arange(n_clusters), rng.integers(0, n_clusters, size=extra)]))
    centers = rng.normal(size=(n_clusters, dim)) * rng.choice([0.01, 1.0, 1000.0])
    distances = np.sqrt(squared_distances(centers)) + np.where(np.eye(n_clusters) == 1, np.inf, 0.0)
    gap = float(distances.min()) if n_clusters > 1 else 1.0
    direction = rng.normal(size=(truth.size, dim))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    # Errors on the sphere of the largest radius that is allowed, or inside it.
    errors = share * gap * np.where(rng.random(truth.size) < 0.5, 1.0, rng.random(truth.size))
    means = centers[truth] + errors[:, None] * direction
    labels, found = coterie.kmeans_maximin(
        means, rng.uniform(0.1, 100.0, truth.size), n_clusters, int(rng.integers(truth.size))
    )
    assert coterie.same_partition(labels, truth)
    for k in range(n_clusters):
        its = labels[np.argmax(truth == k)]
        assert np.linalg.norm(found[its] - centers[k]) <= errors.max() * (1 + 1e-9) + 1e-9 * gap


@pytest.mark.parametrize(("error", "right"), [(0.95, True), (1.05, False)])
def test_a_quarter_is_the_bound(error: float, right: bool) -> None:
    """Centers 0 and 4: the first arm is nearer to the other group than to its own as soon as errors exceed 1."""
    means = [[error], [-error], [4 - error], [4 - error]]
    labels, _ = coterie.kmeans_maximin(means, [1, 1, 1, 1], 2)
    assert coterie.same_partition(labels, [0, 0, 1, 1]) == right


@settings(max_examples=150, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_weight_n_keeps_the_result_of_n_copies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms, n_clusters, dim = random_shape(rng)
    means = rng.integers(-3, 4, size=(n_arms, dim)) * 2  # integers: sums are exact in any order
    weights = rng.integers(1, 5, size=n_arms)
    first = int(rng.integers(n_arms))
    labels, centers = coterie.kmeans_maximin(means, weights, n_clusters, first)
    copies = np.repeat(np.arange(n_arms), weights)
    copied, copied_centers = coterie.kmeans_maximin(
        means[copies], np.ones(copies.size), n_clusters, int(np.argmax(copies == first))
    )
    assert copied.tolist() == labels[copies].tolist()
    assert copied_centers.tolist() == centers.tolist()


def test_scaled_weights_and_the_callers_arrays_are_kept() -> None:
    rng = np.random.default_rng(5)
    means, weights = rng.normal(size=(20, 3)), rng.integers(1, 9, size=20)
    before = means.copy(), weights.copy()
    labels, centers = coterie.kmeans_maximin(means, weights, 4)
    scaled, scaled_centers = coterie.kmeans_maximin(means.tolist(), weights * 1e-3, 4)
    assert scaled.tolist() == labels.tolist()
    np.testing.assert_allclose(scaled_centers, centers, rtol=1e-12)
    centers[:] = 0.0
    assert np.array_equal(means, before[0])
    assert np.array_equal(weights, before[1])


def test_as_many_clusters_as_arms_and_a_single_one() -> None:
    means = [[3.0, 0.0], [1.0, 1.0], [2.0, 5.0]]
    labels, _ = coterie.kmeans_maximin(means, [1, 2, 3], 3)
    assert sorted(labels.tolist()) == [0, 1, 2]
    labels, centers = coterie.kmeans_maximin(means, [1, 1, 2], 1)
    assert labels.tolist() == [0, 0, 0]
    assert centers.tolist() == [[2.0, 2.75]]


GOOD: dict[str, Any] = {"means": [[0.0], [1.0], [9.0]], "weights": [1, 1, 1], "n_clusters": 2, "first": 0}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"means": [[0.0], [float("nan")], [9.0]]}, ValueError, r"means must be finite, got nan"),
        ({"means": [[0.0], [float("inf")], [9.0]]}, ValueError, r"means must be finite, got inf"),
        ({"means": [0.0, 1.0, 9.0]}, ValueError, r"shape \(M, d\).*got shape \(3,\)"),
        ({"means": np.zeros((3, 0))}, ValueError, r"d at least 1, got shape \(3, 0\)"),
        ({"means": [[0.0], [1.0, 2.0], [9.0]]}, ValueError, "rows differ in length"),
        ({"means": [["a"], ["b"], ["c"]]}, TypeError, "means must hold real numbers"),
        ({"weights": [1, 1]}, ValueError, r"shape \(3,\), got shape \(2,\)"),
        ({"weights": [1, -2, 1]}, ValueError, r"negative, got -2\.0 for arm 1"),
        ({"weights": [1, 1, 0]}, ValueError, r"positive weight, got 0\.0 for arm 2"),
        ({"weights": [1, float("nan"), 1]}, ValueError, "weights must be finite, got nan"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1, got 0"),
        ({"n_clusters": 4}, ValueError, "at most the number of arms, got 4 for 3 arms"),
        ({"n_clusters": 2.0}, TypeError, r"n_clusters must be an integer, got 2\.0"),
        ({"n_clusters": True}, TypeError, "n_clusters must be an integer, got True"),
        ({"first": 3}, ValueError, r"unknown arm 3: arms are 0\.\.2"),
        ({"first": -1}, ValueError, "unknown arm -1"),
        ({"first": "0"}, TypeError, "an arm must be an integer"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    assert coterie.kmeans_maximin(**GOOD)[0].tolist() == [0, 0, 1]
    with pytest.raises(error, match=message):
        coterie.kmeans_maximin(**{**GOOD, **change})


@pytest.mark.parametrize("seed", range(20))
def test_the_likeliest_groups_fit_no_worse_than_any_start(seed: int) -> None:
    rng = np.random.default_rng([14, seed])
    means, weights = rng.normal(size=(12, 2)), rng.uniform(0.5, 9.0, size=12)
    labels = np.resize(np.arange(3), 12)
    found = likeliest_groups(means, weights, labels, 3)
    assert sorted(set(found.tolist())) == [0, 1, 2]
    costs = [cost(means, weights, coterie.kmeans_maximin(means, weights, 3, first)[0]) for first in range(12)]
    assert cost(means, weights, found) == pytest.approx(min(*costs, cost(means, weights, found)))
    assert cost(means, weights, found) <= cost(means, weights, labels)


def cost(means: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    centers = [np.average(means[labels == k], axis=0, weights=weights[labels == k]) for k in labels]
    return float((weights[:, None] * (means - centers) ** 2).sum())
