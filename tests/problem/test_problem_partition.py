"""The two equivalences of section_setup, with example_instance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.problem import Instance, canonical, same_means, same_partition
from coterie.problem.partition import same_groups


def test_example_instance_of_the_paper() -> None:
    # example_instance: K = 2, M = 3, d = 1, all centers equal to 1; labels 0-based here.
    c, c1, c2 = [0, 0, 1], [1, 1, 0], [0, 1, 1]
    centers = [[1.0], [1.0]]
    assert same_means(c, centers, c1, centers)
    assert same_means(c1, centers, c2, centers)
    assert same_partition(c, c1)
    assert not same_partition(c1, c2)


def test_equivalent_instances_need_not_share_labels() -> None:
    one = Instance([0, 0, 1, 2], [[0.0], [1.0], [2.0]])
    relabelled = Instance([2, 2, 0, 1], [[1.0], [2.0], [0.0]])
    moved = Instance([0, 1, 1, 2], [[0.0], [1.0], [2.0]])
    assert one != relabelled
    assert one.equivalent(relabelled)
    assert relabelled.equivalent(one)
    assert not one.equivalent(moved)
    assert not one.equivalent(Instance([0, 0, 1], [[0.0], [1.0]]))
    assert not one.equivalent(Instance([0, 0, 1, 2], [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]))


def permutation_exists(a: list[int], b: list[int], k: int) -> bool:
    return any([sigma[x] for x in a] == b for sigma in itertools.permutations(range(k)))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(2, 6).flatmap(lambda m: st.tuples(*[st.lists(st.integers(0, 2), min_size=m, max_size=m)] * 2)))
def test_same_partition_matches_oracle(pair: tuple[list[int], list[int]]) -> None:
    a, b = pair
    assert same_partition(a, b) == permutation_exists(a, b, 3)
    assert same_groups(np.array(a), np.array(b), 3) == permutation_exists(a, b, 3)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.permutations(range(-5, 6)))
def test_canonical_keeps_the_partition_and_forgets_the_names(labels: list[int], names: list[int]) -> None:
    result = canonical(labels)
    assert result.dtype == np.int64
    assert result[0] == 0
    assert all(result[i] <= result[:i].max() + 1 for i in range(1, len(labels)))
    for i, j in itertools.combinations(range(len(labels)), 2):
        assert (result[i] == result[j]) == (labels[i] == labels[j])
    assert np.array_equal(result, canonical([names[x + 5] for x in labels]))


def test_labels_may_be_strings() -> None:
    assert canonical(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert same_partition(["b", "a", "b"], [7, 3, 7])


def test_partitions_of_different_sets_are_refused() -> None:
    with pytest.raises(ValueError, match="3 labels against 2"):
        same_partition([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        canonical([[0, 1]])
    with pytest.raises(ValueError, match="NaN, got one for arm 1"):
        canonical([0.0, float("nan")])
    with pytest.raises(TypeError, match="sorted"):
        canonical(np.array([1, "a", None], dtype=object))


def test_same_means_refuses_labels_without_a_center() -> None:
    with pytest.raises(ValueError, match=r"second labels must lie in 0\.\.1, got 2 for arm 1"):
        same_means([0, 1], [[0.0], [1.0]], [0, 2], [[0.0], [1.0]])
    with pytest.raises(ValueError, match="got -1 for arm 0"):
        same_means([-1, 1], [[0.0], [1.0]], [0, 1], [[0.0], [1.0]])
    with pytest.raises(TypeError, match="integers"):
        same_means([0.5, 1], [[0.0], [1.0]], [0, 1], [[0.0], [1.0]])
    with pytest.raises(ValueError, match=r"shape \(K, d\)"):
        same_means([0, 1], [0.0, 1.0], [0, 1], [[0.0], [1.0]])
    with pytest.raises(TypeError, match="only be compared with an Instance"):
        Instance([0, 0, 1], [[0.0], [1.0]]).equivalent("other")  # type: ignore[arg-type]
