"""The closest alternative against the enumeration of all partitions, and the erratum to theorem_opt2."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.evidence import alternative_value, closest_alternative
from coterie.problem import Instance, canonical, same_partition


def partitions(n_arms: int, n_clusters: int) -> Iterator[tuple[int, ...]]:
    """All partitions into exactly K nonempty groups, each once (labels in order of first appearance)."""

    def extend(prefix: tuple[int, ...], used: int) -> Iterator[tuple[int, ...]]:
        if len(prefix) == n_arms:
            if used == n_clusters:
                yield prefix
            return
        for label in range(min(used + 1, n_clusters)):
            yield from extend((*prefix, label), max(used, label + 1))

    yield from extend((), 0)


def scatter(labels: tuple[int, ...], points: np.ndarray, weights: np.ndarray) -> float:
    """min over the centers of sum_m weight_m ||point_m - center(label_m)||^2."""
    total = 0.0
    for k in set(labels):
        group = np.array([label == k for label in labels])
        w, x = weights[group], points[group]
        if w.sum() > 0:
            total += float((w[:, None] * (x - np.average(x, axis=0, weights=w)) ** 2).sum())
    return total


def enumerated(instance: Instance, weights: np.ndarray) -> float:
    """Problem (triangle) by brute force: the infimum over Alt(c)."""
    own = tuple(canonical(instance.labels))
    return min(
        scatter(other, instance.means, weights)
        for other in partitions(instance.n_arms, instance.n_clusters)
        if other != own
    )


def random_instance(rng: np.random.Generator) -> Instance:
    n_arms = int(rng.integers(3, 8))
    n_clusters = int(rng.integers(2, min(n_arms, 5)))
    labels = rng.permutation(np.r_[np.arange(n_clusters), rng.integers(n_clusters, size=n_arms - n_clusters)])
    return Instance(labels, rng.normal(size=(n_clusters, int(rng.integers(1, 4)))))


def test_partitions_are_counted_by_stirling_numbers() -> None:
    assert [len(list(partitions(6, k))) for k in range(1, 7)] == [1, 31, 90, 65, 15, 1]


def test_closest_alternative_matches_oracle() -> None:
    """400 random instances with singletons; the printed form is wrong on some with two of them, only."""
    rng = np.random.default_rng(7)
    printed_wrong, with_two_singletons = 0, 0
    for _ in range(400):
        inst = random_instance(rng)
        weights = rng.uniform(0.05, 1.0, size=inst.n_arms)
        truth = enumerated(inst, weights)
        found = closest_alternative(inst, weights)
        assert found.value == pytest.approx(truth, rel=1e-9)
        assert alternative_value(inst.labels, inst.centers, weights) == found.value
        printed = alternative_value(inst.labels, inst.centers, weights, as_printed=True)
        two_singletons = int((inst.sizes == 1).sum()) >= 2
        with_two_singletons += two_singletons
        if printed != pytest.approx(truth, rel=1e-9):
            assert two_singletons
            assert printed > truth
            printed_wrong += 1
    assert with_two_singletons > 50
    assert printed_wrong >= 20


def test_printed_form_misses_the_merge_of_two_singletons() -> None:
    # The counterexample: singletons at 0 and 1/2, two arms at 10. Merging the singletons and splitting the
    # pair by nothing costs 1/2 * 1/4; the printed form sees only an arm of the pair moving away.
    inst = Instance([0, 1, 2, 2], [[0.0], [0.5], [10.0]])
    ones = np.ones(4)
    assert enumerated(inst, ones) == pytest.approx(0.125)
    assert closest_alternative(inst, ones).value == pytest.approx(0.125)
    assert alternative_value(inst.labels, inst.centers, ones, as_printed=True) == pytest.approx(0.5 * 9.5**2)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 100_000))
def test_the_move_it_names_attains_the_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inst = random_instance(rng)
    weights = rng.uniform(0.05, 1.0, size=inst.n_arms)
    found = closest_alternative(inst, weights)
    source = inst.labels[found.arm]
    assert found.cluster != source
    assert weights[found.arm] == weights[inst.labels == source].min()
    moved = inst.labels.copy()
    moved[found.arm] = found.cluster
    assert not same_partition(moved, inst.labels)
    cost = (weights * ((inst.means - found.centers[moved]) ** 2).sum(axis=1)).sum()
    assert cost == pytest.approx(found.value, rel=1e-9)
    # The moved center is the only one that differs, and it is the best one.
    others = np.arange(inst.n_clusters) != found.cluster
    assert np.array_equal(found.centers[others], inst.centers[others])
    assert scatter(tuple(moved), inst.means, weights) == pytest.approx(found.value, rel=1e-9)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 100_000), st.floats(1e-3, 1e3))
def test_value_keeps_scale_and_relabelling(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    inst = random_instance(rng)
    weights = rng.uniform(0.05, 1.0, size=inst.n_arms)
    value = closest_alternative(inst, weights).value
    assert closest_alternative(inst, factor * weights).value == pytest.approx(factor * value, rel=1e-12)
    stretched = Instance(inst.labels, factor * inst.centers)
    assert closest_alternative(stretched, weights).value == pytest.approx(factor**2 * value, rel=1e-12)
    sigma = rng.permutation(inst.n_clusters)
    renamed = Instance(sigma[inst.labels], inst.centers[np.argsort(sigma)])
    assert closest_alternative(renamed, weights).value == pytest.approx(value, rel=1e-12)
    order = rng.permutation(inst.n_arms)
    shuffled = Instance(inst.labels[order], inst.centers)
    assert closest_alternative(shuffled, weights[order]).value == pytest.approx(value, rel=1e-12)


def test_a_zero_weight_makes_the_value_zero() -> None:
    inst = Instance([0, 0, 1, 2, 2], [[0.0], [1.0], [5.0]])
    for arm in range(5):
        weights = np.ones(5)
        weights[arm] = 0.0
        assert enumerated(inst, weights) == 0.0
        found = closest_alternative(inst, weights)
        assert found.value == 0.0
        assert np.isfinite(found.centers).all()
        assert alternative_value(inst.labels, inst.centers, weights) == 0.0
        assert alternative_value(inst.labels, inst.centers, weights, as_printed=True) == 0.0
    # The arm without weight moves, and the center it joins stays where it was.
    found = closest_alternative(inst, [1.0, 0.0, 1.0, 1.0, 1.0])
    assert (found.value, found.arm, found.cluster) == (0.0, 1, 1)
    assert np.array_equal(found.centers, inst.centers)
    assert closest_alternative(inst, np.zeros(5)).value == 0.0


def test_an_empty_cluster_makes_the_value_zero() -> None:
    labels = np.array([0, 0, 2, 2])
    centers = np.array([[0.0], [1.0], [5.0]])
    assert alternative_value(labels, centers, np.ones(4)) == 0.0
    assert alternative_value(labels, centers[[0, 2, 1]], np.ones(4), as_printed=True) == 0.0


def test_ties_go_to_the_lowest_arm_and_clusters() -> None:
    inst = Instance([1, 0, 0, 1, 2, 2], [[0.0], [1.0], [2.0]])
    found = closest_alternative(inst, np.full(6, 0.1))
    assert (found.arm, found.cluster) == (1, 1)
    assert found.centers[1] == pytest.approx(2 / 3)


def test_weights_of_any_size_do_not_overflow() -> None:
    inst = Instance([0, 0, 1], [[0.0], [1.0]])
    assert closest_alternative(inst, [1e300, 1e300, 1e300]).value == pytest.approx(5e299)
    assert closest_alternative(inst, [1e-300, 1e-300, 1e-300]).value == pytest.approx(5e-301)


def test_bad_input_is_refused() -> None:
    inst = Instance([0, 0, 1], [[0.0], [1.0]])
    with pytest.raises(TypeError, match=r"needs a coterie\.Instance"):
        closest_alternative([0, 0, 1], [1, 1, 1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"negative, got -1\.0 for arm 2"):
        closest_alternative(inst, [1, 1, -1])
    with pytest.raises(ValueError, match=r"shape \(3,\), got shape \(2,\)"):
        closest_alternative(inst, [1, 1])
    with pytest.raises(ValueError, match="finite, got nan"):
        closest_alternative(inst, [1, 1, float("nan")])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.floats(0.1, 10.0), st.floats(0.0, 1.0, exclude_min=True, exclude_max=True), st.integers(1, 50))
def test_example_counter_of_the_paper(b: float, where: float, pulls: int) -> None:
    """example_counter: for the GLR (empirical means) the closest alternative is at Hamming distance 2."""
    a = b * (0.7072 + where * (0.999 - 0.7072))  # b / sqrt(2) < a < b
    means = np.array([[0.0, 0.0], [a, 0.0], [0.0, b], [a, b]])
    weights = np.full(4, float(pulls))
    ranked = sorted(partitions(4, 2), key=lambda labels: scatter(labels, means, weights))
    best, alternative = ranked[0], ranked[1]
    assert best == (0, 0, 1, 1)
    assert alternative == (0, 1, 0, 1)
    distance = min(
        sum(sigma[x] != y for x, y in zip(best, alternative, strict=True)) for sigma in itertools.permutations(range(2))
    )
    assert distance == 2
