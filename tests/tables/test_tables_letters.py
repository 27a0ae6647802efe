"""`coterie.letters`: two items share a letter if and only if they do not differ, whatever form the pairs have."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie

PAIRS = {("A", "B"): 0.2, ("A", "C"): 0.001, ("B", "C"): 0.3}
LETTERS = {"A": "a", "B": "ab", "C": "b"}


@given(n=st.integers(2, 8), data=st.data())
def test_items_share_a_letter_if_and_only_if_they_do_not_differ(n: int, data: st.DataObject) -> None:
    pairs = {pair: data.draw(st.booleans()) for pair in itertools.combinations(range(n), 2)}
    letters = coterie.letters(pairs)
    for (first, second), differ in pairs.items():
        assert bool(set(letters[first]) & set(letters[second])) != differ
    assert all(letters.values())


def frame(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


def square(lower_only: bool = False) -> Any:
    names = ["A", "B", "C"]
    matrix = np.eye(3)
    for (first, second), p in PAIRS.items():
        i, j = names.index(first), names.index(second)
        matrix[j, i], matrix[i, j] = p, np.nan if lower_only else p
    return pytest.importorskip("pandas").DataFrame(matrix, index=names, columns=names)


def test_every_form_gives_the_same_letters() -> None:
    statsmodels = [{"group1": i, "group2": j, "p-adj": p, "reject": p <= 0.05} for (i, j), p in PAIRS.items()]
    pingouin = [{"A": i, "B": j, "pval": p} for (i, j), p in PAIRS.items()]
    for given_pairs in (PAIRS, statsmodels, frame(statsmodels), frame(pingouin), square(), square(lower_only=True)):
        assert coterie.letters(given_pairs) == LETTERS
    assert coterie.letters(square().to_numpy()) == dict(enumerate(LETTERS.values()))


def test_order_says_who_has_the_first_letter_and_alpha_what_differs() -> None:
    assert coterie.letters(PAIRS, order=["C", "B", "A"]) == {"C": "a", "B": "ab", "A": "b"}
    assert set(coterie.letters(PAIRS, alpha=1e-4).values()) == {"a"}


def test_the_pairs_of_a_grouping_have_its_letters() -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.normal(mean, 1.0, 12) for name, mean in {"x": 0.0, "y": 1.5, "z": 3.0}.items()}
    grouping = coterie.group(table, noise="gaussian")
    assert tuple(coterie.letters(grouping.pairs).values()) == grouping.letters


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ({("A", "B"): 0.2, ("A", "C"): 0.1}, "'B', 'C' is missing"),
        ({("A", "B"): 1.5}, "'A', 'B' has 1.5"),
        ({("A", "B"): float("nan")}, "'A', 'B' has nan"),
        ({("A", "B"): "no"}, "'A', 'B' has 'no'"),
        ({("A", "B"): 0.2, ("B", "A"): 0.01}, "'B', 'A' is there twice"),
        ({"A-B": 0.2}, "'A-B'"),
        ({}, "at least one pair"),
        ([{"group1": "A", "p": 0.2}], "group1"),
        ([{"group1": ["A"], "group2": "B", "p": 0.2}], "got ['A'] and 'B'"),
        (np.zeros((2, 3)), "square matrix"),
    ],
)
def test_bad_pairs_are_named(pairs: Any, words: str) -> None:
    with pytest.raises(ValueError) as error:
        coterie.letters(pairs)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 2.0}, "alpha"),
        ({"order": ["A", "B"]}, "order must have"),
        ({"order": 5}, "order must have"),
        ({"order": [["A"], "B", "C"]}, "order must have"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        coterie.letters(PAIRS, **options)
