"""Bad input: an error of its kind that names the value, and a session that is as it was before."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest

import coterie

NAN, INF = float("nan"), float("inf")
GOOD: dict[str, Any] = {"n_arms": 5, "n_clusters": 2, "dim": 2, "noise": 1.0}
INST = coterie.Instance([0, 0, 1, 1, 1], [[0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"delta": 0.0}, ValueError, r"delta must lie in \(0, 1\), got 0\.0"),
        ({"delta": 1.0}, ValueError, r"delta must lie in \(0, 1\), got 1\.0"),
        ({"delta": -0.1}, ValueError, r"got -0\.1"),
        ({"delta": NAN}, ValueError, r"delta must lie in \(0, 1\), got nan"),
        ({"delta": INF}, ValueError, r"got inf"),
        ({"delta": "0.1"}, TypeError, r"delta must be a number in \(0, 1\), got '0\.1'"),
        ({"delta": None}, TypeError, "got None"),
        ({"delta": [0.1]}, TypeError, r"got \[0\.1\]"),
        ({"n_clusters": 1}, ValueError, "n_clusters must be at least 2, got 1"),
        ({"n_clusters": 5}, ValueError, "got 5 clusters for 5 arms"),
        ({"n_clusters": 6}, ValueError, "got 6 clusters for 5 arms"),
        ({"n_clusters": 2.0}, TypeError, r"n_clusters must be an integer, got 2\.0"),
        ({"n_arms": 0}, ValueError, "n_arms must be at least 1, got 0"),
        ({"n_arms": "5"}, TypeError, "n_arms must be an integer, got '5'"),
        ({"dim": 0}, ValueError, "dim must be at least 1, got 0"),
        ({"dim": -1}, ValueError, "dim must be at least 1, got -1"),
        ({"dim": 1.5}, TypeError, r"dim must be an integer, got 1\.5"),
        (
            {"method": "bocc"},
            ValueError,
            "unknown method 'bocc': choose one of croc, shortlist, boc, boc-linear, uniform, oracle",
        ),
        ({"method": None}, TypeError, "the method must be one of croc, shortlist, boc, .* got None"),
        ({"threshold": "loose"}, ValueError, "unknown threshold 'loose': choose one of proven, heuristic"),
        ({"threshold": 3.0}, TypeError, r"the threshold must be one of proven, heuristic, got 3\.0"),
        ({"noise": 0.0}, ValueError, r"positive, got 0\.0"),
        ({"noise": -1.0}, ValueError, r"positive, got -1\.0"),
        ({"noise": [1.0, 2.0, 3.0]}, ValueError, r"got shape \(3,\)"),
        ({"noise": [[1.0, 0.5], [0.4, 1.0]]}, ValueError, r"symmetric, but entry \(0, 1\) is 0\.5"),
        (
            {"noise": [[1.0, 2.0], [2.0, 1.0]]},
            ValueError,
            "positive definite, but its smallest eigenvalue is -1",
        ),
        ({"noise": "loud"}, ValueError, "noise must be None .any noise.*got 'loud'"),
        ({"method": "boc-linear"}, ValueError, "distance_ratio is needed"),
        ({"method": "boc-linear", "distance_ratio": 0.0}, ValueError, r"lie in \(0, 1\], got 0\.0"),
        ({"method": "boc-linear", "distance_ratio": 1.01}, ValueError, r"lie in \(0, 1\], got 1\.01"),
        (
            {"method": "boc-linear", "distance_ratio": NAN},
            ValueError,
            "distance_ratio must be finite, got nan",
        ),
        ({"method": "boc-linear", "distance_ratio": "1"}, TypeError, "distance_ratio must hold real numbers"),
        ({"method": "oracle"}, ValueError, "method 'oracle' needs the true instance, got None"),
        ({"method": "oracle", "instance": [0, 1]}, ValueError, r"needs the true instance, got \[0, 1\]"),
        (
            {"method": "oracle", "instance": INST, "n_clusters": 3},
            ValueError,
            "the instance has 5 arms, 2 clusters and dimension 2, the session 5, 3 and 2",
        ),
        ({"names": "abcde"}, TypeError, "names must be 5 strings, got 'abcde'"),
        ({"names": 5}, TypeError, "names must be 5 strings, got 5"),
        ({"names": ["a", "b", "c", "d", 5]}, TypeError, "names must be 5 strings, got"),
        ({"names": ["a", "b", "c", "d"]}, ValueError, "names must be 5 strings, one for each arm, got 4"),
        ({"names": ["a", "b", "c", "d", "b"]}, ValueError, "names must differ, got 'b' more than once"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        coterie.Session(**{**GOOD, **change})


def test_the_same_settings_without_the_fault_are_taken() -> None:
    for change in (
        {},
        {"delta": 1e-300},
        {"method": "boc-linear", "distance_ratio": 1.0},
        {"method": "oracle", "instance": INST},
        {"noise": [[1.0, 0.5], [0.5, 1.0]], "names": list("abcde")},
        {"names": np.array(["a", "b", "c", "d", "e"])},
        {"names": (name for name in "abcde")},
    ):
        assert coterie.Session(**{**GOOD, **change}).ask() == 0


BAD_TELLS: list[tuple[Any, Any, type[Exception], str]] = [
    (0, [1.0, NAN], ValueError, "a measurement must be finite, got nan at position 1"),
    (0, [INF, 1.0], ValueError, "a measurement must be finite, got inf at position 0"),
    (0, [-INF, 1.0], ValueError, "got -inf"),
    (0, [1.0], ValueError, r"must have shape \(2,\), got shape \(1,\): \[1\.0\]"),
    (0, [1.0, 2.0, 3.0], ValueError, r"must have shape \(2,\), got shape \(3,\)"),
    (0, 1.0, ValueError, r"must have shape \(2,\), got shape \(\): 1\.0"),
    (0, [[1.0, 2.0]], ValueError, r"must have shape \(2,\), got shape \(1, 2\)"),
    (0, [], ValueError, r"must have shape \(2,\), got shape \(0,\)"),
    (0, [1.0, [2.0]], ValueError, "rows differ in length"),
    (0, None, TypeError, "a measurement must hold real numbers, got None"),
    (0, "ab", TypeError, "must hold real numbers, got 'ab'"),
    (0, ["a", "b"], TypeError, "must hold real numbers"),
    (0, [1j, 1.0], TypeError, "must hold real numbers"),
    (0, [1e51, 0.0], ValueError, r"within 1e\+12 standard deviations of 0, got \[1e\+51, 0\.0\]"),
    (0, [1e300, -1e300], ValueError, "standard deviations of 0"),
    (5, [1.0, 2.0], ValueError, r"unknown arm 5: arms are 0\.\.4"),
    (-1, [1.0, 2.0], ValueError, "unknown arm -1"),
    (1.0, [1.0, 2.0], TypeError, r"an arm must be an integer in 0\.\.4, got 1\.0"),
    (True, [1.0, 2.0], TypeError, "an arm must be an integer"),
    (None, [1.0, 2.0], TypeError, "an arm must be an integer in 0..4, got None"),
    ("zebra", [1.0, 2.0], ValueError, r"unknown arm 'zebra': known names: \['ant', 'bee'"),
    ([0, 1], [[1.0, 2.0], [3.0, NAN]], ValueError, r"finite, got nan at position \(1, 1\)"),
    ([0, 1], [[1.0, 2.0], [3.0, 1e200]], ValueError, "standard deviations of 0, got .*200"),
    ([0, 1], [[1.0, 2.0]], ValueError, r"2 arms need measurements of shape \(2, 2\), got shape \(1, 2\)"),
    ([0, 1], [1.0, 2.0], ValueError, r"2 arms need measurements of shape \(2, 2\), got shape \(2,\)"),
    ([0, 1], [[1.0], [2.0]], ValueError, r"of shape \(2, 2\), got shape \(2, 1\)"),
    (
        [0, 1],
        [[1.0, 2.0], [3.0]],
        ValueError,
        "measurements must be a regular array: its rows differ in length",
    ),
    ([0, 1], None, TypeError, "measurements must hold real numbers, got None"),
    ([0, 7], [[1.0, 2.0], [3.0, 4.0]], ValueError, "unknown arm 7"),
    ([0, "zebra"], [[1.0, 2.0], [3.0, 4.0]], ValueError, "unknown arm 'zebra'"),
    ([0, 1.5], [[1.0, 2.0], [3.0, 4.0]], TypeError, r"an arm must be an integer in 0\.\.4, got 1\.5"),
    ([[0], [1, 2]], [[1.0, 2.0], [3.0, 4.0]], TypeError, r"an arm must be an integer in 0\.\.4, got \[0\]"),
    (np.zeros((2, 2), dtype=int), [[1.0, 2.0], [3.0, 4.0]], TypeError, "an arm must be an integer"),
    ({0}, [1.0, 2.0], TypeError, r"an arm must be an integer in 0\.\.4, got \{0\}"),
    ([], [1.0], ValueError, r"0 arms need measurements of shape \(0, 2\), got shape \(1,\)"),
]


@pytest.mark.parametrize("started", [False, True])
def test_bad_results_are_refused_and_change_nothing(started: bool) -> None:
    session = coterie.Session(5, 2, 2, names=["ant", "bee", "cow", "dog", "eel"], noise=1.0)
    if started:
        rng = np.random.default_rng(1)
        session.tell([0, 1, 2, 3, 4, 0], rng.normal(size=(6, 2)))
        session.ask(3)
    before, labels, centers = session.to_dict(), session.labels, session.centers
    for arm, x, error, message in BAD_TELLS:
        with pytest.raises(error, match=message):
            session.tell(arm, x)
        assert session.to_dict() == before
    np.testing.assert_equal(session.labels, labels)  # None too
    np.testing.assert_equal(session.centers, centers)
    same = coterie.Session.from_dict(before)
    assert session.ask(6) == same.ask(6)


def test_a_name_without_names_is_refused() -> None:
    session = coterie.Session(**GOOD)
    with pytest.raises(ValueError, match="unknown arm 'ant': known names: there are none"):
        session.tell("ant", [0.0, 0.0])


@pytest.mark.parametrize("noise", [1e-12, [1.0, 1e-12], [[1e-24, 0.0], [0.0, 1.0]]])
def test_results_that_overflow_in_units_of_the_noise_are_refused(noise: Any) -> None:
    session = coterie.Session(**{**GOOD, "noise": noise})
    with pytest.raises(ValueError, match=r"within 1e\+12 standard deviations"):
        session.tell(0, [1e45, 1e45])
    assert session.log == []


@pytest.mark.parametrize("dim", [1, 3])
def test_the_bounds_of_results_are_exact_for_one_and_for_many(dim: int) -> None:
    """Single results are first looked at roughly; that must not move a bound."""
    steps = [0.7, 0.999, 1.0, math.nextafter(1.0, 2.0), 1.1]
    for value in [1e12 * step for step in steps]:
        for at_once in (False, True):
            session = coterie.Session(4, 2, dim, noise=1.0)
            x = [value if q == dim - 1 else 0.0 for q in range(dim)]
            with pytest.raises(ValueError, match="within") if value > 1e12 else contextlib.nullcontext():
                session.tell([1], [x]) if at_once else session.tell(1, x)
    for value in [1e6 * step for step in steps]:
        for first in (0.0, 1e9):
            session = coterie.Session(4, 2, dim, noise=1.0)
            session.tell(1, [first] * dim)
            away = first - value
            with pytest.raises(ValueError, match="item 1") if first - away > 1e6 else contextlib.nullcontext():
                session.tell(1, [away if q == 0 else first for q in range(dim)])
            session.tell(2, [away] * dim)  # of another item


def test_the_largest_results_that_are_taken_do_no_harm() -> None:
    """The squares of larger ones would overflow; these must still give finite evidence and known arms."""
    session = coterie.Session(6, 3, 1, noise=1.0)
    for _ in range(40):
        if session.done:
            break
        arm = session.ask()
        assert 0 <= arm < 6
        session.tell(arm, [(-1e12, 0.0, 1e12)[arm % 3]])
    assert session.done
    assert session.labels is not None
    assert session.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert np.isfinite(session.evidence.statistic)


@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (0, ValueError, "n must be at least 1, got 0"),
        (-3, ValueError, "n must be at least 1, got -3"),
        (1.5, TypeError, r"n must be an integer, got 1\.5"),
        ("8", TypeError, "n must be an integer, got '8'"),
        (True, TypeError, "n must be an integer, got True"),
    ],
)
def test_a_bad_number_of_asks_is_refused(n: Any, error: type[Exception], message: str) -> None:
    session = coterie.Session(**GOOD)
    with pytest.raises(error, match=message):
        session.ask(n)
    assert session.pending == []
    assert session.ask() == 0
