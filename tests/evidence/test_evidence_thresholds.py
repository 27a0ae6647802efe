"""The thresholds: Psi against a dense grid, its properties, and both betas against their formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import zeta

from coterie.evidence import psi, threshold, threshold_from_log


def psi_on_a_grid(x: float) -> float:
    """Psi by brute force: h close to both ends of (1/2, 1) on a logarithmic grid, dense in between."""
    edge = np.logspace(-15, math.log10(0.2), 40_000)
    h = np.r_[0.5 + edge, np.linspace(0.5, 1.0, 40_002)[1:-1], 1.0 - edge]
    one_minus_h = np.r_[0.5 - edge, 1.0 - np.linspace(0.5, 1.0, 40_002)[1:-1], edge]
    values = 2 - 2 * np.log(4 * h) + np.log(zeta(2 * h)) / h - np.log(one_minus_h) / (2 * h) + x / h
    return float(values.min())


@pytest.mark.parametrize("x", [0.0, 1e-6, 0.01, 0.1, 0.7, 1.0, 3.0, 10.0, 57.3, 1e3, 1e4, 1e6, 1e9])
def test_psi_matches_oracle(x: float) -> None:
    grid = psi_on_a_grid(x)
    assert psi(x) <= grid + 1e-12 * (1 + x)
    assert psi(x) == pytest.approx(grid, abs=1e-7, rel=1e-12)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_psi_keeps_above_x_and_grows(x: float, y: float) -> None:
    low, high = min(x, y), max(x, y)
    assert psi(low) >= low
    assert psi(high) >= high
    # Psi is a minimum of lines of slope 1/h between 1 and 2, so it is increasing and concave.
    slack = 1e-12 * (1 + high)
    assert high - low - slack <= psi(high) - psi(low) <= 2 * (high - low) + slack
    assert psi((low + high) / 2) >= (psi(low) + psi(high)) / 2 - slack


def test_psi_grows_like_x_plus_half_log_x() -> None:
    """The remark below equation_beta says x + log x + o(log x). The formula it belongs to gives
    x + (1/2) log x + constant, and so in particular at most x + log x + constant."""
    constant = 2 - 2 * math.log(4) + math.log(zeta(2.0)) + 0.5 + 0.5 * math.log(2)
    errors = [abs(psi(x) - x - 0.5 * math.log(x) - constant) for x in (1e2, 1e3, 1e4, 1e5, 1e6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-5
    for x in np.logspace(0, 8, 60):
        assert x < psi(float(x)) <= x + math.log(x) + 2.6


def test_psi_of_huge_arguments() -> None:
    assert psi(1e300) == 1e300
    assert psi(1e4) - 1e4 == pytest.approx(5.17731, abs=1e-4)
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="x"):
            psi(wrong)


PULLS = [1, 2, 7, 40, 1000]


@pytest.mark.parametrize("delta", [0.9, 0.1, 1e-6, 1e-300])
@pytest.mark.parametrize("dim", [1, 3])
def test_proven_threshold_matches_oracle(delta: float, dim: int) -> None:
    md = len(PULLS) * dim
    # equation_beta
    expected = sum(2 * dim * math.log(4 + math.log(n)) for n in PULLS) + md * psi_on_a_grid(math.log(1 / delta) / md)
    assert threshold(delta, PULLS, dim) == pytest.approx(expected, rel=1e-7)
    assert threshold(delta, np.array(PULLS), dim, "proven") == threshold(delta, PULLS, dim)


@pytest.mark.parametrize("delta", [0.9, 0.1, 1e-6, 1e-300])
@pytest.mark.parametrize("dim", [1, 3])
def test_heuristic_threshold_matches_oracle(delta: float, dim: int) -> None:
    # section_exp: log((1 + log t)^d / delta)
    expected = dim * math.log(1 + math.log(sum(PULLS))) - math.log(delta)
    assert threshold(delta, PULLS, dim, kind="heuristic") == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("kind", ["proven", "heuristic"])
def test_log_form_goes_beyond_the_smallest_double(kind: str) -> None:
    assert threshold_from_log(-math.log(1e-300), PULLS, 2, kind) == threshold(1e-300, PULLS, 2, kind)
    far = threshold_from_log(1e4, PULLS, 2, kind)
    assert 1e4 < far < 1e4 + 100
    assert threshold_from_log(1e8, PULLS, 2, kind) > 1e8


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=8),
    st.floats(1e-3, 1e5),
    st.integers(1, 20),
    st.sampled_from(["proven", "heuristic"]),
)
def test_threshold_keeps_growing(pulls: list[int], log_inverse: float, dim: int, kind: str) -> None:
    value = threshold_from_log(log_inverse, pulls, dim, kind)
    more = [pulls[0] * 2, *pulls[1:]]
    assert value > log_inverse * (1 - 1e-12)
    assert threshold_from_log(log_inverse, more, dim, kind) > value
    assert threshold_from_log(log_inverse * 1.01, pulls, dim, kind) > value
    assert threshold_from_log(log_inverse, pulls, dim + 1, kind) > value or (kind == "heuristic" and pulls == [1])
    assert threshold_from_log(log_inverse, pulls[::-1], dim, kind) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0.0, PULLS, 2), ValueError, r"delta must lie in \(0, 1\), got 0\.0"),
        ((1.0, PULLS, 2), ValueError, r"got 1\.0"),
        ((float("nan"), PULLS, 2), ValueError, "got nan"),
        (("0.1", PULLS, 2), TypeError, "got '0.1'"),
        ((0.1, [1, 0], 2), ValueError, "got 0 pulls for arm 1"),
        ((0.1, [1, -3], 2), ValueError, "got -3 pulls for arm 1"),
        ((0.1, [1, 2.5], 2), ValueError, r"got 2\.5 for arm 1"),
        ((0.1, [], 2), ValueError, "one entry per arm"),
        ((0.1, PULLS, 0), ValueError, "dim must be at least 1, got 0"),
        ((0.1, PULLS, 2.0), TypeError, "dim must be an integer"),
        ((0.1, PULLS, 2, "exact"), ValueError, "unknown threshold 'exact'"),
        ((0.1, PULLS, 2, None), TypeError, "got None"),
    ],
)
def test_bad_thresholds_are_refused(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        threshold(*arguments)


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_bad_log_levels_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="log_inverse_delta"):
        threshold_from_log(value, PULLS, 2)
