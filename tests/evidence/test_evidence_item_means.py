"""Means, intervals for orientation and principal axes: against NumPy, item by item."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.evidence.intervals.stacks import Stacks
from coterie.evidence.item_means import item_means, principal_axes
from coterie.problem.families import Bounded, Counts, noise_of


def results(seed: int, n_arms: int, dim: int, t: int, scale: Any = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, n_arms, size=t)
    return arms, 3.0 * (arms % 4)[:, None] * np.arange(1, dim + 1) + scale * rng.normal(size=(t, dim))


@given(st.integers(0, 2**32), st.integers(2, 9), st.integers(1, 4), st.integers(0, 60))
def test_means_and_intervals_match_oracle(seed: int, n_arms: int, dim: int, t: int) -> None:
    arms, values = results(seed, n_arms, dim, t)
    stacks = Stacks.of(arms, values, n_arms)
    deviations = np.arange(1, dim + 1) / 2.0
    stated, unstated = item_means(stacks, noise_of(deviations, dim)), item_means(stacks, noise_of(None, dim))
    centred = [values[arms == arm] - values[arms == arm].mean(axis=0) for arm in set(arms.tolist())]
    free = t - len(centred)
    for arm in range(n_arms):
        its = values[arms == arm]
        if not len(its):
            assert np.isnan(stated.mean[arm]).all()
            assert np.isnan(stated.low[arm]).all()
            continue
        assert stated.mean[arm] == pytest.approx(np.mean(its, axis=0))
        assert stated.high[arm] == pytest.approx(np.mean(its, axis=0) + 2.0 * deviations / np.sqrt(len(its)))
        assert stated.low[arm] == pytest.approx(np.mean(its, axis=0) - 2.0 * deviations / np.sqrt(len(its)))
        if free >= 6:
            pooled = np.sqrt((np.concatenate(centred) ** 2).sum(axis=0) / free)
            assert unstated.high[arm] - unstated.mean[arm] == pytest.approx(2.0 * pooled / np.sqrt(len(its)))
        else:
            assert unstated.deviations is None
            assert np.isnan(unstated.low[arm]).all()
    assert "by the standard deviation that was stated; for orientation, not proven" in stated.words
    assert ("by how repeats of all items have varied" if free >= 6 else "they need 6 repeats") in unstated.words


def test_intervals_stay_where_results_can_be() -> None:
    arms = np.array([0] * 5 + [1] * 5)
    stacks = Stacks.of(arms, np.array([[0.0]] * 4 + [[1.0]] + [[9.0]] * 4 + [[10.0]]), 2)
    bounded = item_means(stacks, noise_of(Bounded(0, 10), 1))
    spread = np.sqrt((4 * 0.2**2 + 0.8**2) * 2 / 8)
    assert bounded.low[:, 0] == pytest.approx([0.0, 9.2 - 2 * spread / np.sqrt(5)])
    assert bounded.high[:, 0] == pytest.approx(
        [0.2 + 2 * spread / np.sqrt(5), min(10.0, 9.2 + 2 * spread / np.sqrt(5))]
    )
    counts = item_means(stacks, noise_of(Counts(10), 1))
    for arm, successes in ((0, 1), (1, 46)):
        rate = (successes + 2) / 54
        half = 2 * np.sqrt(rate * (1 - rate) / 54)
        assert counts.low[arm, 0] == pytest.approx(10 * max(0.0, rate - half))
        assert counts.high[arm, 0] == pytest.approx(10 * min(1.0, rate + half))
    assert "Agresti and Coull" in counts.words


@pytest.mark.parametrize(("n_arms", "dim"), [(12, 2), (12, 3), (5, 40), (400, 330)])
def test_principal_axes_match_oracle(n_arms: int, dim: int) -> None:
    """The eigenvectors of NumPy's covariance; (400, 330) takes the way for large tables."""
    rng = np.random.default_rng(dim)
    arms = np.repeat(np.arange(n_arms), 3)
    shape = np.linspace(0.5, 2.0, dim)
    directions = np.linalg.qr(rng.normal(size=(dim, 2)))[0]
    centers = (rng.normal(size=(n_arms, 2)) * [9.0, 4.0]) @ directions.T * shape + 100.0
    values = centers[arms] + shape * rng.normal(size=(arms.size, dim))
    stacks = Stacks.of(arms, values, n_arms)
    noise = noise_of(shape, dim)
    axes = principal_axes(stacks, noise, item_means(stacks, noise))
    means = np.array([values[arms == arm].mean(axis=0) for arm in range(n_arms)]) / shape
    lengths, vectors = np.linalg.eigh(np.cov(means.T, ddof=0))
    for axis in range(2):
        expected = vectors[:, -1 - axis]
        expected = expected * np.sign(expected[np.argmax(np.abs(expected))])
        assert axes.loadings[axis] == pytest.approx(expected, abs=1e-6)
        assert axes.share[axis] == pytest.approx(lengths[-1 - axis] / lengths.sum())
        assert axes.at[:, axis] == pytest.approx((means - means.mean(axis=0)) @ expected, abs=1e-5)
        assert axes.error[:, axis] == pytest.approx(
            np.full(n_arms, 2.0 / np.sqrt(3.0))
        )  # numbers in units of the noise


def test_axes_with_a_covariance_and_with_repeats() -> None:
    arms, values = results(1, 6, 3, 90)
    stacks = Stacks.of(arms, values, 6)
    covariance = np.array([[2.0, 0.9, 0.0], [0.9, 1.0, 0.2], [0.0, 0.2, 0.5]])
    noise = noise_of(covariance, 3)
    axes = principal_axes(stacks, noise, item_means(stacks, noise))
    across = axes.loadings / np.sqrt(np.diag(covariance))
    counts = np.bincount(arms, minlength=6)
    for axis in range(2):
        spread = np.sqrt(across[axis] @ covariance @ across[axis])
        assert axes.error[:, axis] == pytest.approx(2.0 * spread / np.sqrt(counts))
    free = noise_of(None, 3)
    axes = principal_axes(stacks, free, item_means(stacks, free))
    placed = ((values - axes.origin) / axes.unit) @ axes.loadings.T
    rest = np.concatenate([placed[arms == arm] - placed[arms == arm].mean(axis=0) for arm in range(6)])
    pooled = np.sqrt((rest**2).sum(axis=0) / (90 - 6))
    assert axes.by_noise
    assert axes.error == pytest.approx(2.0 * pooled / np.sqrt(counts)[:, None])


@pytest.mark.parametrize("t", [0, 1, 2])
def test_few_results_have_axes_too(t: int) -> None:
    """Nothing differs, or in one direction only: axes are orthogonal unit vectors all the same, and nothing warns."""
    stacks = Stacks.of(np.arange(t), np.array([[1.0, 2.0, 3.0], [1.0, 5.0, 3.0]])[:t], 4)
    for noise in (noise_of(None, 3), noise_of(1.0, 3)):
        axes = principal_axes(stacks, noise, item_means(stacks, noise))
        assert axes.loadings @ axes.loadings.T == pytest.approx(np.eye(2))
        assert axes.share == pytest.approx([1.0, 0.0] if t == 2 else [0.0, 0.0])
        assert np.isnan(axes.at[t:]).all()
        assert np.isfinite(axes.at[:t]).all()
