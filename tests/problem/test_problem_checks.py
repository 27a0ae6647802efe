"""Checks of input: good values pass unchanged, bad ones are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coterie.problem import checks

NAN, INF = float("nan"), float("inf")


def test_good_values_come_back_clean() -> None:
    assert checks.check_delta(np.float32(0.5)) == 0.5
    assert checks.check_delta(5e-324) == 5e-324
    assert checks.check_shape(np.int64(5), 2, 1) == (5, 2, 1)
    assert checks.check_arm(np.int8(3), 4) == 3
    assert type(checks.check_arm(np.int8(3), 4)) is int
    assert checks.check_measurement([1, 2], 2).tolist() == [1.0, 2.0]
    assert checks.check_measurement(1.5, 1).tolist() == [1.5]
    assert checks.check_weights((0, 1, 2.5), 3).tolist() == [0.0, 1.0, 2.5]
    assert checks.check_pulls(np.array([1, 3], dtype=np.int32)).tolist() == [1.0, 3.0]
    assert checks.check_threshold_kind("heuristic") == "heuristic"
    assert checks.check_distance_ratio(1) == 1.0
    assert checks.check_log_inverse_delta(1e4) == 1e4


def test_measurements_are_copied() -> None:
    x = np.array([1.0, 2.0])
    cleaned = checks.check_measurement(x, 2)
    cleaned[0] = 9.0
    assert x.tolist() == [1.0, 2.0]


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = [
    (checks.check_delta, (NAN,), ValueError, r"delta must lie in \(0, 1\), got nan"),
    (checks.check_delta, (0.0,), ValueError, r"got 0\.0"),
    (checks.check_delta, (1,), ValueError, r"got 1\.0"),
    (checks.check_delta, (-0.1,), ValueError, r"got -0\.1"),
    (checks.check_delta, (INF,), ValueError, "got inf"),
    (checks.check_delta, ("0.1",), TypeError, "got '0.1'"),
    (checks.check_delta, (True,), TypeError, "got True"),
    (checks.check_delta, (None,), TypeError, "got None"),
    (checks.check_delta, ([0.1],), TypeError, r"got \[0\.1\]"),
    (checks.check_log_inverse_delta, (0.0,), ValueError, r"positive, got 0\.0"),
    (checks.check_log_inverse_delta, (INF,), ValueError, "finite, got inf"),
    (checks.check_shape, (5, 1, 1), ValueError, "n_clusters must be at least 2, got 1"),
    (checks.check_shape, (5, 5, 1), ValueError, "5 clusters for 5 arms"),
    (checks.check_shape, (0, 2, 1), ValueError, "n_arms must be at least 1, got 0"),
    (checks.check_shape, (5, 2, 0), ValueError, "dim must be at least 1, got 0"),
    (checks.check_shape, (5.0, 2, 1), TypeError, r"n_arms must be an integer, got 5\.0"),
    (checks.check_shape, (5, True, 1), TypeError, "n_clusters must be an integer, got True"),
    (checks.check_arm, (4, 4), ValueError, r"unknown arm 4: arms are 0\.\.3"),
    (checks.check_arm, (-1, 4), ValueError, "unknown arm -1"),
    (checks.check_arm, (1.0, 4), TypeError, r"got 1\.0"),
    (checks.check_arm, (True, 4), TypeError, "got True"),
    (checks.check_arm, ("a", 4), TypeError, "got 'a'"),
    (
        checks.check_measurement,
        ([1.0, NAN], 2),
        ValueError,
        "a measurement must be finite, got nan at position 1",
    ),
    (checks.check_measurement, ([1.0], 2), ValueError, r"shape \(2,\), got shape \(1,\)"),
    (checks.check_measurement, (1.0, 2), ValueError, r"got shape \(\)"),
    (checks.check_measurement, ([[1.0, 2.0]], 2), ValueError, r"got shape \(1, 2\)"),
    (checks.check_measurement, ([1.0, "b"], 2), TypeError, "real numbers"),
    (checks.check_real_array, ([1.0, True], "x"), TypeError, "real numbers"),
    (checks.check_measurement, ([1.0, None], 2), TypeError, "real numbers"),
    (checks.check_weights, ([1.0, -2.0], 2), ValueError, r"negative, got -2\.0 for arm 1"),
    (checks.check_weights, ([1.0], 2), ValueError, r"shape \(2,\), got shape \(1,\)"),
    (checks.check_weights, ([1.0, INF], 2), ValueError, "finite, got inf at position 1"),
    (checks.check_pulls, ([1, 0],), ValueError, "got 0 pulls for arm 1"),
    (checks.check_pulls, ([1, 1.5],), ValueError, r"whole numbers, got 1\.5 for arm 1"),
    (checks.check_pulls, ([],), ValueError, r"got shape \(0,\)"),
    (checks.check_pulls, (3,), ValueError, r"got shape \(\)"),
    (
        checks.check_threshold_kind,
        ("exact",),
        ValueError,
        "unknown threshold 'exact': choose one of proven, heuristic",
    ),
    (checks.check_threshold_kind, (1,), TypeError, "got 1"),
    (checks.check_distance_ratio, (None,), ValueError, "distance_ratio is needed"),
    (checks.check_distance_ratio, (0,), ValueError, r"\(0, 1\], got 0\.0"),
    (checks.check_distance_ratio, (1.1,), ValueError, r"got 1\.1"),
    (checks.check_distance_ratio, ("1",), TypeError, "got '1'"),
    (checks.check_real, ([1.0], "x"), TypeError, "x must be a single number"),
]


@pytest.mark.parametrize(("check", "arguments", "error", "message"), CASES)
def test_bad_values_are_named(
    check: Callable[..., Any], arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check(*arguments)


def test_messages_stay_short() -> None:
    with pytest.raises(ValueError, match="shape") as caught:
        checks.check_measurement(np.zeros(5000), 2)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("given", [True, [True], np.True_, np.array([True]), np.array(True)])
def test_booleans_are_results(given: Any) -> None:
    assert checks.check_measurement(given, 1).tolist() == [1.0]
    assert checks.check_measurement([given, False, 2.5] if np.ndim(given) == 0 else [True, False, 2.5], 3).tolist() == [
        1.0,
        0.0,
        2.5,
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [INF, -INF, float("nan")])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (0,)])
def test_arrays_of_very_large_numbers_are_finite_and_others_are_not(bad: float, shape: tuple[int, ...]) -> None:
    large = np.full(shape, 1.7e308)
    for given in (large, np.asfortranarray(large), large.tolist()):
        found = checks.check_real_array(given, "x")
        assert found is not given
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, large)
    if large.size:
        large.flat[-1] = bad
        with pytest.raises(ValueError, match="x must be finite, got"):
            checks.check_real_array(large, "x")
