"""Instance: what it holds, that it cannot change, and what it refuses."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.evidence.allocation import allocation, hardness
from coterie.problem import Instance

LABELS = [0, 1, 1, 2, 0]
CENTERS = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]


def test_fields_of_an_instance() -> None:
    inst = Instance(LABELS, CENTERS)
    assert (inst.n_arms, inst.n_clusters, inst.dim) == (5, 3, 2)
    assert inst.labels.tolist() == LABELS
    assert inst.labels.dtype == np.int64
    assert inst.sizes.tolist() == [2, 2, 1]
    assert inst.means.tolist() == [[0, 0], [1, 0], [1, 0], [0, 2], [0, 0]]
    assert repr(inst) == "Instance(n_arms=5, n_clusters=3, dim=2, sizes=[2, 2, 1])"
    many = Instance([*range(40), 0], np.arange(40.0)[:, None])
    assert len(repr(many)) < 120


def test_instance_cannot_be_changed() -> None:
    labels, centers = np.array(LABELS), np.array(CENTERS)
    inst = Instance(labels, centers)
    labels[0], centers[0, 0] = 2, 99.0
    assert inst.labels.tolist() == LABELS
    assert inst.centers.tolist() == CENTERS
    for name in ("labels", "centers", "means", "sizes"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(inst, name)[0] = 1
        with pytest.raises(FrozenInstanceError):
            setattr(inst, name, None)
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(pickle.dumps(inst)).centers[0] = 1


def test_equality_hash_and_copies() -> None:
    inst = Instance(LABELS, CENTERS)
    same = Instance(np.array(LABELS, dtype=np.int32), [[0, -0.0], [1, 0], [0, 2]])
    assert inst == same
    assert hash(inst) == hash(same)
    assert inst == pickle.loads(pickle.dumps(inst)) == copy.deepcopy(inst)
    assert inst != Instance([0, 1, 1, 2, 1], CENTERS)
    assert inst != Instance(LABELS, [[0, 0], [1, 0], [0, 3]])
    assert inst != "instance"


def test_from_data_takes_class_means_in_sorted_class_order() -> None:
    data = [[0.0, 1.0], [4.0, 4.0], [2.0, 3.0], [6.0, 0.0]]
    inst = Instance.from_data(data, ["setosa", "iris", "setosa", "iris"])
    assert inst.labels.tolist() == [1, 0, 1, 0]
    assert inst.centers.tolist() == [[5.0, 2.0], [1.0, 2.0]]
    numbered = Instance.from_data(np.array(data), np.array([7.5, -1.0, 7.5, -1.0]))
    assert numbered == inst


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(1e-6, 1e6), st.integers(0, 10_000))
def test_with_hardness_keeps_the_shape_and_sets_the_hardness(wanted: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inst = Instance([0, 1, 2, 0, 1], rng.normal(size=(3, 2)))
    scaled = inst.with_hardness(wanted)
    assert hardness(scaled) == pytest.approx(wanted, rel=1e-10)
    assert np.array_equal(scaled.labels, inst.labels)
    ratio = scaled.centers / inst.centers
    assert np.allclose(ratio, ratio[0, 0], rtol=1e-12)
    assert ratio[0, 0] > 0
    assert np.allclose(allocation(scaled), allocation(inst), rtol=0, atol=1e-12)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("means", "labels"),
    [
        ([[1.0], [2.0], [0.0]], [0, 1, 2]),
        ([[1.0], [1.0]], [0, 0]),
        ([[0.0, 3.0], [1.0, 0.0], [-0.0, 3.0]], [0, 1, 0]),
    ],
)
def test_any_means_make_an_instance(means: list[list[float]], labels: list[int]) -> None:
    inst = Instance.of_means(means)
    assert inst.labels.tolist() == labels
    assert np.array_equal(inst.means, means)
    assert inst.sizes.sum() == len(means)
    again = pickle.loads(pickle.dumps(inst))
    assert again == inst
    for one in (inst, again):
        with pytest.raises(ValueError, match="read-only"):
            one.means[0] = 1


@pytest.mark.parametrize(
    ("means", "message"),
    [
        ([1.0, 2.0], r"means must have shape \(M, d\)"),
        ([[1.0]], "at least 2 arms"),
        ([[NAN], [1.0]], "means must be finite"),
        (np.empty((3, 0)), "got d = 0"),
        ([[1e300], [-1e300]], "overflows"),
    ],
)
def test_bad_means_are_refused(means: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Instance.of_means(means)


@pytest.mark.parametrize(
    ("labels", "centers", "error", "message"),
    [
        ([0, 0, 0], [[1.0]], ValueError, "n_clusters must be at least 2, got 1"),
        ([0, 1], [[0.0], [1.0]], ValueError, "2 clusters for 2 arms"),
        ([0, 1, 2], [[0.0], [1.0], [2.0], [3.0]], ValueError, "4 clusters for 3 arms"),
        ([0, 0, 1], [[1.0], [1.0]], ValueError, "distinct, but those of clusters 0 and 1 are equal"),
        ([0, 1, 2, 2], [[0.0], [1e-200], [2.0]], ValueError, "clusters 0 and 1 are equal"),
        ([0, 0, 2], [[1.0], [2.0], [3.0]], ValueError, "3 clusters for 3 arms"),
        ([0, 0, 2, 2], [[1.0], [2.0], [3.0]], ValueError, "cluster 1 has no arm"),
        ([1, 1, 2], [[1.0], [2.0]], ValueError, r"labels must lie in 0\.\.1, got 2 for arm 2"),
        ([0, -1, 1], [[1.0], [2.0]], ValueError, "got -1 for arm 1"),
        ([0.0, 1.0, 1.0], [[1.0], [2.0]], TypeError, "labels must be integers"),
        ([0, 0.5, 1], [[1.0], [2.0]], TypeError, "labels must be integers"),
        ([False, True, True], [[1.0], [2.0]], TypeError, "labels must be integers"),
        (["a", "b", "b"], [[1.0], [2.0]], TypeError, "labels must be integers"),
        ([[0, 1, 1]], [[1.0], [2.0]], ValueError, "labels must be a vector"),
        ([], [[1.0], [2.0]], ValueError, "labels must be a vector"),
        (3, [[1.0], [2.0]], ValueError, "labels must be a vector"),
        ([0, 1, 1], [[1.0], [NAN]], ValueError, r"centers must be finite, got nan at position \(1, 0\)"),
        ([0, 1, 1], [[-INF], [1.0]], ValueError, r"got -inf at position \(0, 0\)"),
        ([0, 1, 1], [[1e300], [-1e300]], ValueError, "overflows"),
        ([0, 1, 1], [1.0, 2.0], ValueError, r"centers must have shape \(K, d\), got shape \(2,\)"),
        ([0, 1, 1], [[], []], ValueError, "got d = 0"),
        ([0, 1, 1], [[1.0], [2.0, 3.0]], ValueError, "rows differ in length"),
        ([0, 1, 1], [["x"], ["y"]], TypeError, "centers must hold real numbers"),
        ([0, 1, 1], [[True], [False]], TypeError, "centers must hold real numbers"),
        ([0, 1, 1], [[1j], [2.0]], TypeError, "centers must hold real numbers"),
        ([0, 1, 1], None, TypeError, "centers must hold real numbers"),
    ],
)
def test_bad_instances_are_refused(labels: Any, centers: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Instance(labels, centers)


@pytest.mark.parametrize(
    ("data", "classes", "error", "message"),
    [
        ([[1.0], [2.0], [3.0]], [0, 1], ValueError, r"shape \(3,\), got \(2,\)"),
        ([1.0, 2.0], [0, 1], ValueError, r"X must have shape \(M, d\)"),
        (np.empty((3, 0)), [0, 1, 1], ValueError, "got d = 0"),
        ([[1.0], [NAN], [3.0]], [0, 1, 1], ValueError, r"X must be finite, got nan at position \(1, 0\)"),
        ([[1.0], [2.0], [3.0]], [0.0, NAN, 1.0], ValueError, "NaN, got one in row 1"),
        ([[1.0], [2.0], [3.0]], [5, 5, 5], ValueError, "at least 2 classes"),
        ([[1.0], [2.0], [3.0]], [1, 2, 3], ValueError, "fewer than the 3 rows, got 3"),
        ([[1.0], [2.0], [3.0], [0.0]], [1, 2, 1, 2.5], ValueError, "clusters 0 and 1 are equal"),
        ([[1.0], [1.0], [1.0]], [1, 2, 2], ValueError, "clusters 0 and 1 are equal"),
        ([["u"], ["v"], ["w"]], [1, 2, 2], TypeError, "X must hold real numbers"),
        ([[1.0], [2.0], [3.0]], np.array([1, None, "a"], dtype=object), TypeError, "sorted"),
    ],
)
def test_bad_data_is_refused(data: Any, classes: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Instance.from_data(data, classes)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0.0, ValueError),
        (-1.0, ValueError),
        (NAN, ValueError),
        (INF, ValueError),
        ("2", TypeError),
        (True, TypeError),
    ],
)
def test_with_hardness_refuses_what_is_not_positive(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="hardness must"):
        Instance(LABELS, CENTERS).with_hardness(value)
