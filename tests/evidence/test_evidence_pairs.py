"""Pair evidence: each formula against brute force, what makes it a martingale, and what is refused."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.integrate import quad, trapezoid
from scipy.optimize import minimize
from scipy.stats import chi2, norm

import coterie
from coterie.evidence.pairs import (
    BLOCK_RATIOS,
    RATIO_WEIGHTS,
    SCALE_WEIGHTS,
    SCALES,
    directed_log,
    mixture_log,
    pair_evidence,
    paired_evidence,
)

THETAS = np.linspace(-60.0, 60.0, 4001)


def integrated(y: np.ndarray, variance: float, center: np.ndarray, spread: float) -> float:
    """The mixture of likelihood ratios over θ ~ N(center, spread·I), integrated on a grid; it factorises over d."""
    value = 1.0
    for column, middle in zip(y.T, center, strict=True):
        thetas = middle + math.sqrt(spread) * THETAS / 6
        exponent = (thetas[:, None] * column - 0.5 * thetas[:, None] ** 2).sum(axis=1) / variance
        density = norm.pdf(thetas, middle, math.sqrt(spread))
        value *= trapezoid(density * np.exp(exponent), thetas)
    return value


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_paired_evidence_matches_oracle(dim: int, ratio: int) -> None:
    rng = np.random.default_rng(dim * 10 + ratio)
    for n, extra in ((1, 0), (3, 1), (7, ratio - 1)):
        x, y = rng.normal(0.8, 1.0, (n, dim)), rng.normal(0.0, 1.0, (n * ratio + extra, dim))
        blocks = y[: n * ratio].reshape(n, ratio, dim).mean(axis=1)
        variance = 1 + 1 / ratio
        brute = sum(
            weight * integrated(x - blocks, variance, np.zeros(dim), scale * variance)
            for weight, scale in zip(SCALE_WEIGHTS, SCALES, strict=True)
        )
        assert paired_evidence(x, y, ratio) == pytest.approx(math.log(brute), rel=1e-9, abs=1e-9)


def test_pair_evidence_is_the_weighted_maximum_over_ratio_and_side() -> None:
    rng = np.random.default_rng(5)
    for n_x, n_y in ((1, 1), (5, 5), (3, 40), (40, 3), (17, 9), (100, 12)):
        x, y = rng.normal(0.3, 1.0, (n_x, 3)), rng.normal(0.0, 1.0, (n_y, 3))
        sides = [
            math.log(weight) + value
            for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True)
            for value in {paired_evidence(x, y, ratio), paired_evidence(y, x, ratio)}
        ]
        assert pair_evidence(x, y) == max(sides)
        assert pair_evidence(x, y, prefix_room=8) == pair_evidence(x[:8], y[:8])
        assert pair_evidence(x, y, prefix_room=1000) == pair_evidence(x, y)
    assert coterie.pair_evidence is pair_evidence


def test_the_weights_leave_a_probability() -> None:
    assert SCALE_WEIGHTS.sum() <= 1.0
    assert sum(w * (1 if r == 1 else 2) for r, w in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True)) <= 1.0 + 1e-12
    assert SCALES.tolist() == [64, 16, 4, 1, 1 / 4, 4**-2, 4**-3, 4**-4, 4**-5, 4**-6, 4**-7]


@pytest.mark.parametrize("dim", [1, 3, 50])
@pytest.mark.parametrize("n", [0, 1, 5, 300])
def test_mixture_keeps_its_mean(dim: int, n: int) -> None:
    """Under equality the energy is chi-squared with d degrees of freedom; E[M_n] is Σ p for every n, by quadrature."""

    def integrand(energy: float) -> float:
        return math.exp(float(mixture_log(n, energy, dim)) + chi2.logpdf(energy, dim))

    # M decays like exp(-energy/2/(1+ρn)), slowly for the largest ρn: the range is cut into pieces that grow.
    edges = [0.0, *np.geomspace(1e-8, 4e6, 60)]
    mean = sum(quad(integrand, low, high, epsabs=1e-13, epsrel=1e-10)[0] for low, high in pairwise(edges))
    assert mean == pytest.approx(SCALE_WEIGHTS.sum(), rel=1e-6)


def test_mixture_keeps_its_conditional_mean() -> None:
    """E[M_{n+1} | Y_1 … Y_n] = M_n: the next contrast integrated out, d = 1, v = 1.5."""
    variance = 1.5
    for n, total in ((0, 0.0), (1, 1.3), (4, -3.0), (30, 20.0)):
        now = math.exp(float(mixture_log(n, total**2 / max(n, 1) / variance, 1)))

        def next_one(y: float, n: int = n, total: float = total) -> float:
            energy = (total + y) ** 2 / (n + 1) / variance
            return math.exp(float(mixture_log(n + 1, energy, 1)) + norm.logpdf(y, 0.0, math.sqrt(variance)))

        edges = [-300.0, -60.0, -20.0, -5.0, 0.0, 5.0, 20.0, 60.0, 300.0]
        mean = sum(quad(next_one, low, high, epsrel=1e-11)[0] for low, high in pairwise(edges))
        assert mean == pytest.approx(now, rel=1e-6)


@pytest.mark.parametrize("dim", [1, 3, 20])
def test_mixture_is_a_density_ratio(dim: int) -> None:
    """M is dQ/dP for the mixture Q, so E_Q[1/M] = 1 (for weights made to add up to 1).

    E_P[M] itself cannot be averaged: M has no variance under P. 1/M has a small one under Q. 200 000 draws; the mean is
    within 5 of its standard errors of 1 unless something is wrong or 1 in about 1.7 million seeds was drawn.
    """
    rng = np.random.default_rng(20 + dim)
    draws, n, total = 200_000, 6, SCALE_WEIGHTS.sum()
    scale = rng.choice(SCALES, draws, p=SCALE_WEIGHTS / total)
    # n‖Ȳ‖²/v under Q: Ȳ ~ N(0, (ρ + 1/n)·v·I)
    energy = (1 + scale * n) * rng.chisquare(dim, draws)
    inverse = total * np.exp(-mixture_log(np.full(draws, n), energy, dim))
    assert abs(inverse.mean() - 1) <= 5 * inverse.std() / math.sqrt(draws)
    assert inverse.std() / math.sqrt(draws) < 0.02


def test_directed_log_matches_monte_carlo() -> None:
    """E is the mean over θ ~ N(θ0, τ²·I) of the likelihood ratio: 400 000 draws, 5 standard errors."""
    rng = np.random.default_rng(8)
    for dim, spread in ((1, 0.3), (3, 0.05), (5, 0.4)):
        variances = rng.uniform(0.3, 2.0, 6)
        theta0 = rng.normal(0, 0.6, dim)
        contrasts = rng.normal(0.3, 1.0, (6, dim)) * np.sqrt(variances)[:, None]
        n, s = (1 / variances).sum(), (contrasts / variances[:, None]).sum(axis=0)
        thetas = theta0 + math.sqrt(spread) * rng.normal(size=(400_000, dim))
        ratios = np.exp(thetas @ s - 0.5 * n * (thetas**2).sum(axis=1))
        error = ratios.std() / math.sqrt(ratios.size)
        assert abs(math.exp(directed_log(n, s, theta0, spread)) - ratios.mean()) <= 5 * error


@pytest.mark.parametrize("dim", [1, 2])
def test_directed_evidence_matches_oracle(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for spread in (1e-3, 0.1, 2.0):
        x, y = rng.normal(0.5, 1.0, (6, dim)), rng.normal(0.0, 1.0, (9, dim))
        theta0 = rng.normal(0, 1, dim)
        brute = integrated(x - y[:6], 2.0, theta0, spread)
        found = pair_evidence(x, y, "directed", center_gap=theta0, spread=spread)
        assert found == pytest.approx(math.log(brute), rel=1e-9, abs=1e-9)
        # the printed form
        n, s = 3.0, (x - y[:6]).sum(axis=0) / 2
        moved, growth = theta0 + spread * s, 1 + n * spread
        printed = -dim / 2 * math.log(growth) + (moved @ moved / growth - theta0 @ theta0) / (2 * spread)
        assert found == pytest.approx(printed, rel=1e-9, abs=1e-9)


def test_directed_log_keeps_its_digits_when_the_spread_is_small() -> None:
    theta0, s = np.array([3.0, -4.0]), np.array([20.0, -30.0])
    simple = theta0 @ s - 0.5 * 7.0 * theta0 @ theta0  # a point guess
    for spread in (1e-9, 1e-12, 1e-15):
        assert directed_log(7.0, s, theta0, spread) == pytest.approx(simple, rel=1e-5 * spread / 1e-9 + 1e-13)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_product_matches_minimum_over_the_common_mean(dim: int) -> None:
    rng = np.random.default_rng(30 + dim)
    for n_x, n_y in ((1, 1), (4, 9), (30, 2)):
        x, y = rng.normal(0.7, 1.0, (n_x, dim)), rng.normal(0.0, 1.0, (n_y, dim))
        logs = []
        for scale in SCALES:

            def value(mu: np.ndarray, scale: float = scale, x: np.ndarray = x, y: np.ndarray = y) -> float:
                total = 0.0
                for stack in (x, y):
                    growth = 1 + scale * len(stack)
                    s = (stack - mu).sum(axis=0)
                    total += 0.5 * scale / growth * (s @ s) - dim / 2 * math.log(growth)
                return total

            logs.append(minimize(value, np.zeros(dim), method="BFGS", options={"gtol": 1e-9}).fun)
        brute = math.log(sum(w * math.exp(v) for w, v in zip(SCALE_WEIGHTS, logs, strict=True)))
        assert pair_evidence(x, y, "product") == pytest.approx(brute, rel=1e-7, abs=1e-7)


def stacks(dim: int) -> st.SearchStrategy[np.ndarray]:
    return st.integers(1, 20).flatmap(lambda n: hnp.arrays(np.float64, (n, dim), elements=st.floats(-50, 50)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.integers(1, 4).flatmap(
        lambda d: st.tuples(stacks(d), stacks(d), hnp.arrays(float, d, elements=st.floats(-5, 5)))
    )
)
def test_evidence_keeps_its_value_when_the_arms_change_places(given: tuple[np.ndarray, ...]) -> None:
    x, y, gap = given
    assert pair_evidence(x, y) == pytest.approx(pair_evidence(y, x), rel=1e-12, abs=1e-12)
    assert pair_evidence(x, y, "product") == pytest.approx(pair_evidence(y, x, "product"), rel=1e-12, abs=1e-12)
    here = pair_evidence(x, y, "directed", center_gap=gap, spread=0.2)
    there = pair_evidence(y, x, "directed", center_gap=-gap, spread=0.2)
    assert here == pytest.approx(there, rel=1e-12, abs=1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(2, 4).flatmap(lambda d: st.tuples(stacks(d), stacks(d))), st.integers(0, 2**32 - 1))
def test_evidence_keeps_its_value_under_shifts_and_rotations(given: tuple[np.ndarray, ...], seed: int) -> None:
    x, y = given
    dim = x.shape[1]
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    shift = rng.normal(size=dim)
    for kind in ("paired", "product"):
        moved = pair_evidence(x @ turn + shift, y @ turn + shift, kind)
        assert moved == pytest.approx(pair_evidence(x, y, kind), rel=1e-9, abs=1e-9)


def test_nothing_to_compare_is_no_evidence() -> None:
    some, none = np.ones((3, 2)), np.empty((0, 2))
    for kind in ("paired", "product"):
        assert pair_evidence(some, none, kind) == pair_evidence(none, some, kind) == -math.inf
    assert pair_evidence(none, some, "directed", center_gap=[1.0, 0.0], spread=1.0) == -math.inf
    assert paired_evidence(some, some, 4) == -math.inf
    assert pair_evidence(some, some, "product") < 0
    assert directed_log(0.0, [0.0], [2.0], 0.5) == 0.0


def test_the_callers_arrays_stay_as_they_are() -> None:
    x, y = np.ones((3, 2)), np.zeros((5, 2))
    x.setflags(write=False)
    y.setflags(write=False)
    pair_evidence(x, y), pair_evidence(x, y, "product")


GOOD: dict[str, Any] = {"x": [[0.0, 1.0]], "y": [[1.0, 0.0]]}
BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"x": [1.0, 2.0]}, ValueError, r"x must hold one result a row, .* got shape \(2,\)"),
    ({"y": [[]]}, ValueError, "y must hold one result a row"),
    ({"y": [[1.0]]}, ValueError, r"same dimension, got shapes \(1, 2\) and \(1, 1\)"),
    ({"x": [[math.nan, 1.0]]}, ValueError, "x must be finite, got nan"),
    ({"x": [["a", "b"]]}, TypeError, "x must hold real numbers"),
    ({"kind": "pairwise"}, ValueError, "unknown kind of evidence 'pairwise': choose one of paired"),
    ({"kind": 3}, TypeError, "kind must be one of"),
    ({"prefix_room": 0}, ValueError, "prefix_room must be at least 1, got 0"),
    ({"prefix_room": 2.5}, TypeError, "prefix_room must be an integer"),
    ({"kind": "product", "prefix_room": 4}, ValueError, "prefix_room is for paired evidence"),
    ({"grid_from": 10}, ValueError, "grid_from must be one of 8, 16, 32, 64, got 10"),
    ({"grid_from": 8.0}, TypeError, "grid_from must be an integer"),
    ({"kind": "product", "grid_from": 8}, ValueError, "grid_from is for paired evidence"),
    ({"spread": 1.0}, ValueError, "for directed evidence: leave them out for 'paired'"),
    ({"kind": "directed"}, ValueError, "directed evidence needs center_gap"),
    ({"kind": "directed", "center_gap": [1.0, 0.0]}, ValueError, "needs center_gap"),
    ({"kind": "directed", "center_gap": [1.0], "spread": 1.0}, ValueError, r"got shapes \(2,\), \(1,\)"),
    ({"kind": "directed", "center_gap": [1.0, 0.0], "spread": 0.0}, ValueError, "spread must be positive, got 0.0"),
    ({"kind": "directed", "center_gap": [1.0, math.inf], "spread": 1.0}, ValueError, "center_gap must be finite"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_bad_input_is_named(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pair_evidence(**(GOOD | change))


def test_bad_input_of_the_parts_is_named() -> None:
    with pytest.raises(ValueError, match="ratio must be at least 1, got 0"):
        paired_evidence([[0.0]], [[1.0]], 0)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        mixture_log(-1, 2.0, 1)
    with pytest.raises(ValueError, match="dim must be at least 1"):
        mixture_log(1, 2.0, 0)
    with pytest.raises(ValueError, match="weight is a sum of 1/v"):
        directed_log(-0.5, [1.0], [1.0], 1.0)
