"""Compact letter displays and what is read from bounds of distances, against plain definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from coterie.evidence.pair_graphs import (
    covering_items,
    far_items,
    group_numbers,
    letter_columns,
    letter_name,
    letters,
    linkage_pairs,
)


def random_graph(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 24))
    apart = rng.random((n, n)) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    if seed % 2:  # as means on a line give it
        where = np.sort(rng.random(n))
        apart = np.abs(where[:, None] - where) > rng.random() / 2
    apart = np.triu(apart, 1)
    return np.asarray(apart | apart.T)


@pytest.mark.parametrize("seed", range(120))
def test_letters_match_definition(seed: int) -> None:
    apart = random_graph(seed)
    n = len(apart)
    columns = [set(items.tolist()) for items in letter_columns(apart)]
    assert all(any(item in column for column in columns) for item in range(n))
    for i, j in combinations(range(n), 2):
        assert any({i, j} <= column for column in columns) == (not apart[i, j])
    for k, column in enumerate(columns):  # none can be left out
        others = [other for place, other in enumerate(columns) if place != k]
        pairs = list(combinations(sorted(column), 2))
        lost = [pair for pair in pairs if not any(set(pair) <= other for other in others)]
        assert lost or (len(column) == 1 and not any(column <= other for other in others))
    text = letters(apart)
    parts = [set(one.split(" ")) if len(columns) > 26 else set(one) for one in text]
    for i, j in combinations(range(n), 2):
        assert bool(parts[i] & parts[j]) == (not apart[i, j])


def test_letter_names_go_on_after_z() -> None:
    assert [letter_name(k) for k in (0, 25, 26, 27, 51, 52, 701, 702)] == [
        "a",
        "z",
        "aa",
        "ab",
        "az",
        "ba",
        "zz",
        "aaa",
    ]


def test_groups_that_are_apart_have_a_letter_each() -> None:
    labels = np.array([0, 1, 0, 2, 1])
    assert letters(labels[:, None] != labels) == ("a", "b", "a", "c", "b")


def largest_clique(graph: np.ndarray) -> int:
    n = len(graph)
    return max(
        size
        for size in range(1, n + 1)
        if any(all(graph[i, j] for i, j in combinations(its, 2)) for its in combinations(range(n), size))
    )


def smallest_cover(near: np.ndarray) -> int:
    n = len(near)
    sizes = range(1, n + 1)
    return min(k for k in sizes if any(near[list(its)].any(axis=0).all() for its in combinations(range(n), k)))


@pytest.mark.parametrize("seed", range(20))
def test_numbers_of_groups_match_definition(seed: int) -> None:
    """What is found exists; a packing proves no more than the truth, a covering no less."""
    rng = np.random.default_rng(seed)
    where = rng.normal(size=(8, 2))
    truth = squareform(pdist(where))
    lower, upper = truth * rng.uniform(0.5, 1.0), truth * rng.uniform(1.0, 1.5)
    radii = np.linspace(0.0, 4.0, 15)
    least, enough = group_numbers(lower, upper, radii)
    assert (np.diff(least) <= 0).all()
    assert (np.diff(enough) <= 0).all()
    for k, radius in enumerate(radii):
        far = far_items(lower > radius)
        assert all(lower[i, j] > radius for i, j in combinations(far, 2))
        assert ((upper <= radius) | np.eye(8, dtype=bool))[covering_items(upper <= radius)].any(axis=0).all()
        assert len(far) <= least[k] <= largest_clique(truth > radius)
        assert smallest_cover(truth <= radius) <= enough[k] <= 8


@pytest.mark.parametrize("seed", range(40))
def test_linkage_pairs_are_true_of_every_truth_within_the_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = 9, int(rng.integers(2, 5))
    where = rng.normal(size=(n, 2)) + 4.0 * rng.integers(0, 3, size=(n, 1))
    truth = squareform(pdist(where))
    width = np.triu(rng.uniform(0.0, rng.choice([0.05, 0.4, 1.5]), size=(n, n)), 1)
    width += width.T
    lower, upper = np.maximum(truth - width, 0.0), truth + width
    np.fill_diagonal(upper, 0.0)
    apart, alike = linkage_pairs(lower, upper, k)
    labels = fcluster(linkage(squareform(truth), "single"), k, "maxclust")
    same = labels[:, None] == labels
    assert not (apart & same).any()
    assert not (alike & ~same).any()
    exact = linkage_pairs(truth, truth, k)
    np.testing.assert_array_equal(exact[1], same)
    np.testing.assert_array_equal(exact[0], ~same)
