"""`best_groups`: right where plain Maximin is lost, and in agreement with what CROC's engine estimates."""

from __future__ import annotations

import numpy as np
import pytest

import coterie
from bench.peers.guess import best_groups
from coterie.methods.croc.run import CrocRun


def high_dimension(seed: int, dim: int = 400, gap: float = 22.0) -> tuple[np.ndarray, np.ndarray]:
    """One measurement of each of 120 arms in 6 groups: 2d = 800 is above the squared gap of 484."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(6, dim))
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=2) + 1e9 * np.eye(6)
    labels = rng.permutation(np.arange(120) % 6)
    return (centers * gap / distances.min())[labels] + rng.standard_normal((120, dim)), labels


@pytest.mark.parametrize("seed", range(5))
def test_groups_in_high_dimension_are_found_after_one_measurement(seed: int) -> None:
    points, truth = high_dimension(seed)
    labels, centers, cost = best_groups(points, np.ones(120), 6)
    assert coterie.same_partition(labels, truth)
    assert cost == pytest.approx(((points - centers[labels]) ** 2).sum())


def test_previous_labels_are_a_start_and_the_cheapest_wins() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        points, weights = rng.normal(size=(15, 2)), rng.integers(1, 9, size=15)
        first = best_groups(points, weights, 4)
        previous = np.concatenate([np.arange(4), rng.integers(0, 4, 11)])
        again = best_groups(points, weights, 4, previous)
        assert again[2] <= first[2]
        assert best_groups(points, weights, 4, again[0])[2] <= again[2] * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_engine_estimate_matches_oracle_after_one_measurement_of_each(seed: int) -> None:
    """Both find the truth of the high-dimensional instance; the engine by its own starts and moves."""
    points, truth = high_dimension(seed)
    run = CrocRun(120, 6, 400, 3.0)
    for arm in range(120):
        run.absorb(arm, points[arm], 0, asked=False)
    assert run.ready
    assert coterie.same_partition(run.labels, truth)
    assert coterie.same_partition(run.labels, best_groups(points, np.ones(120), 6)[0])


@pytest.mark.parametrize(
    ("means", "weights", "k", "message"),
    [
        (np.zeros(3), np.ones(3), 2, "shape"),
        (np.zeros((3, 0)), np.ones(3), 2, "d at least 1"),
        (np.zeros((3, 1)), np.array([1.0, 0.0, 1.0]), 2, "positive weight"),
        (np.zeros((3, 1)), np.ones(3), 4, "at most the number of arms"),
    ],
)
def test_bad_input_is_refused(means: np.ndarray, weights: np.ndarray, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        best_groups(means, weights, k)
