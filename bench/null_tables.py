"""Tables in which some items are alike, of every family of noise, and how often something wrong is said about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.evidence.exact.differences import bounds_of_differences
from coterie.evidence.exact.fits import fitting
from coterie.evidence.exact.pair_tests import sorted_stacks, test_pairs
from coterie.problem.checks import FloatArray, IntArray
from coterie.problem.families import AtMost, Bounded, Counts, Symmetric, noise_of

Rng = np.random.Generator
Drawn = tuple[FloatArray, FloatArray, Any]  # the rows, the true means of the items, the noise to state

_SPREADS = np.array([1.0, 0.1, 0.7, 0.3, 1.0, 0.05])


def _any(rng: Rng, arms: IntArray, mu: FloatArray, number: int) -> Drawn:
    noises = (rng.normal, lambda size: rng.standard_t(2, size), rng.exponential, lambda size: rng.integers(0, 3, size))
    return (mu[arms] + noises[number // 4 % 4](size=arms.size))[:, None], mu[:, None], None


def _any_plane(rng: Rng, arms: IntArray, mu: FloatArray, number: int) -> Drawn:
    means = np.stack([mu, -mu], axis=1)
    return means[arms] + rng.standard_t(3, (arms.size, 2)) @ rng.normal(size=(2, 2)), means, None


def _gaussian(rng: Rng, arms: IntArray, mu: FloatArray, number: int) -> Drawn:
    return (mu[arms] + 3.0 * rng.normal(size=arms.size))[:, None], mu[:, None], "gaussian"


def _gaussian_space(rng: Rng, arms: IntArray, mu: FloatArray, number: int) -> Drawn:
    means = np.stack([mu, -mu, mu], axis=1)
    return means[arms] + rng.normal(size=(arms.size, 3)) @ rng.normal(size=(3, 3)), means, "gaussian"


def _known(rng: Rng, arms: IntArray, mu: FloatArray, number: int) -> Drawn:
    return (mu[arms] + rng.normal(size=arms.size))[:, None], mu[:, None], 1.0


def _counts(rng: Rng, arms: IntArray, mu: FloatArray, number: int) -> Drawn:
    rates = np.clip(0.1 + 0.06 * mu, 0.0, 1.0)
    return rng.binomial(20, rates[arms])[:, None].astype(float), 20.0 * rates[:, None], Counts(20)


def _bounded(rng: Rng, arms: IntArray, mu: FloatArray, number: int) -> Drawn:
    means = np.clip(0.3 + 0.1 * mu, 0.0, 0.95)  # beta distributions of one mean and different widths
    widths = np.array([0.5, 2.0, 50.0, 1e3, 1e-2, 5.0])[arms]
    return rng.beta(means[arms] * widths, (1.0 - means[arms]) * widths)[:, None], means[:, None], Bounded(0, 1)


def _at_most(rng: Rng, arms: IntArray, mu: FloatArray, number: int) -> Drawn:
    rare = rng.choice([-1.0, 1.0], arms.size) * np.where(number % 2, 1.0, (rng.random(arms.size) < 0.1) * np.sqrt(10.0))
    return (mu[arms] + _SPREADS[arms] * rare)[:, None], mu[:, None], AtMost(1.0)


def _symmetric(rng: Rng, arms: IntArray, mu: FloatArray, number: int) -> Drawn:
    noise = (rng.normal(size=arms.size), rng.standard_cauchy(arms.size), np.round(rng.normal(size=arms.size)))[
        number % 3
    ]
    return (mu[arms] + 10.0 * _SPREADS[arms] * noise)[:, None], mu[:, None], Symmetric()


FAMILIES: dict[str, Callable[[Rng, IntArray, FloatArray, int], Drawn]] = {
    "any noise": _any, "any noise, two numbers": _any_plane, "Gaussian": _gaussian,
    "Gaussian, three numbers": _gaussian_space, "known": _known, "counts": _counts, "bounded": _bounded,
    "at most a covariance": _at_most, "symmetric": _symmetric,
}  # fmt: skip


def wrong_tables(family: str, count: int, delta: float, seed: int) -> int:
    """Of so many tables: in how many two items that are alike are said to differ, K groups are wrong, or an interval of
    a difference does not hold. (Tests and intervals have δ each, and a table is counted for the worse of the two.)
    """
    rng = np.random.default_rng(seed)
    by_tests = by_intervals = 0
    for number in range(count):
        n_arms = 4 + number % 3
        sizes = rng.integers(6, 13, n_arms) if family in ("symmetric", "bounded") else rng.integers(3, 9, n_arms)
        arms, items = np.repeat(np.arange(n_arms), sizes), np.arange(n_arms)
        truth = (np.zeros(n_arms, dtype=int), items // 2, items // (n_arms - 1), (items >= n_arms // 2).astype(int))[
            number % 4
        ]
        rows, means, noise = FAMILIES[family](
            rng, arms, np.asarray(truth * (0.8 if number % 8 < 4 else 5.0), dtype=np.float64), number
        )
        model = noise_of(noise, rows.shape[1])
        found = fitting(test_pairs(arms, rows, n_arms, model, delta), delta)
        alike = truth[:, None] == truth
        its = found.with_groups(int(truth.max()) + 1)
        grouped = its is not None and len(its) < 2 and its != [truth.tolist()]
        by_tests += bool((found.apart & alike).any() or grouped)
        bounds = bounds_of_differences(sorted_stacks(arms, rows, n_arms), model, delta)
        if bounds is not None:
            apart = np.abs(means[:, None] - means)
            by_intervals += bool(((bounds[0] > apart + 1e-9) | (bounds[1] < apart - 1e-9)).any())
    return max(by_tests, by_intervals)
