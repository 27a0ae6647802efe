"""The estimate: the partition of largest posterior, uniform over sizes, against plain oracles and brute force."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from engines import inside

import coterie
from coterie._native import parts
from coterie.methods.croc.run import CrocRun


def worth_of(gain: float, a: int, b: int, weight: float, dim: int) -> float:
    return float(parts.cut_worth(CrocRun(20, 2, dim, 1.0), gain, a, b, weight))


def posterior_of(cost: float, sizes: np.ndarray, totals: np.ndarray, dim: int) -> float:
    return float(parts.log_posterior(CrocRun(20, len(sizes), dim, 1.0), cost, sizes.tolist(), totals.tolist()))


def log_posterior(means: np.ndarray, pulls: np.ndarray, labels: np.ndarray) -> float:
    """By the derivation: one partition among all of its sizes, centers integrated out with a flat prior."""
    total = 0.0
    for k in np.unique(labels):
        mine = labels == k
        weight = pulls[mine].sum()
        center = (pulls[mine, None] * means[mine]).sum(axis=0) / weight
        total -= 0.5 * float((pulls[mine, None] * (means[mine] - center) ** 2).sum())  # the best center's likelihood
        total += math.lgamma(mine.sum() + 1) - 0.5 * means.shape[1] * math.log(weight)
    return total


def cost_of(means: np.ndarray, pulls: np.ndarray, labels: np.ndarray) -> float:
    """The weighted k-means cost."""
    total = 0.0
    for k in range(labels.max() + 1):
        mine = labels == k
        center = np.average(means[mine], axis=0, weights=pulls[mine])
        total += float((pulls[mine, None] * (means[mine] - center) ** 2).sum())
    return total


@cache
def partitions(n_arms: int, n_groups: int) -> np.ndarray:
    """All partitions of the arms into so many groups, numbered by first appearance."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(n_arms):
        found = [(*c, k) for c in found for k in range(min(max(c, default=-1) + 2, n_groups))]
    return np.array([c for c in found if max(c) == n_groups - 1])


def measured(seed: int, n_arms: int, centers: np.ndarray, truth: np.ndarray, most: int) -> CrocRun:
    """A run with 1 to `most` results of every arm, told in turn."""
    rng = np.random.default_rng(seed)
    run = CrocRun(n_arms, len(centers), centers.shape[1], 1e9)
    for arm in range(n_arms):
        for _ in range(int(rng.integers(1, most + 1))):
            run.absorb(arm, centers[truth[arm]] + rng.standard_normal(centers.shape[1]), 0, False)
    return run


def test_worth_of_a_cut_matches_oracle() -> None:
    """It is the difference of the posteriors after and before, for random groups and cuts."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, d = int(rng.integers(2, 12)), int(rng.integers(1, 6))
        means, pulls = rng.normal(size=(n, d)), rng.integers(1, 9, n)
        inside = rng.permutation(np.arange(n) < rng.integers(1, n))
        a, b = pulls[inside].sum(), pulls[~inside].sum()
        gap = np.average(means[inside], axis=0, weights=pulls[inside])
        gap = gap - np.average(means[~inside], axis=0, weights=pulls[~inside])
        weight = a * b / (a + b)
        found = worth_of(weight * float(gap @ gap), int(inside.sum()), int((~inside).sum()), weight, d)
        before, after = log_posterior(means, pulls, np.zeros(n)), log_posterior(means, pulls, inside)
        assert found == pytest.approx(after - before, rel=1e-9, abs=1e-9)


def test_posterior_is_that_of_a_uniform_size() -> None:
    """Summed over all partitions of the same sizes, the share of the partitions is the same for all sizes."""
    for n_arms, n_groups in ((5, 2), (6, 3), (7, 3)):
        shares: dict[tuple[int, ...], float] = {}
        for labels in partitions(n_arms, n_groups):
            sizes = np.bincount(labels)
            share = math.exp(posterior_of(0.0, sizes, np.ones(n_groups), 1))
            # Partitions with unnumbered groups stand for several with numbered ones, fewer where sizes are equal.
            key = tuple(sorted(sizes.tolist()))
            orders = math.factorial(n_groups) / math.prod(math.factorial(key.count(size)) for size in set(key))
            shares[key] = shares.get(key, 0.0) + share * math.factorial(n_groups) / orders
        assert np.ptp(list(shares.values())) < 1e-9 * max(shares.values())


@pytest.mark.slow
@pytest.mark.parametrize(("n_arms", "n_groups", "dim"), [(7, 2, 1), (8, 3, 1), (8, 3, 2), (7, 4, 3)])
def test_estimate_is_near_the_largest_posterior(n_arms: int, n_groups: int, dim: int) -> None:
    """Against brute force over all partitions: less by a few nats at most, and hardly ever less than the cheapest has.

    It need not be the largest: the moves of single arms go by the cost.
    """
    as_good, short = 0, []
    for seed in range(60):
        rng = np.random.default_rng(1000 + seed)
        centers = 2.0 * rng.normal(size=(n_groups, dim))
        truth = np.concatenate([np.arange(n_groups), np.zeros(n_arms - n_groups, dtype=int)])
        run = measured(seed, n_arms, centers, truth, 4)
        parts.estimate_anew(run)
        means, pulls = inside(run).arms.means, run.pulls.copy()
        values = [log_posterior(means, pulls, labels) for labels in partitions(n_arms, n_groups)]
        cheapest = min(partitions(n_arms, n_groups), key=lambda labels: cost_of(means, pulls, labels))
        found = log_posterior(means, pulls, run.labels)
        assert found <= max(values) + 1e-9
        short.append(max(values) - found)
        as_good += found >= log_posterior(means, pulls, cheapest) - 1e-9
    assert as_good >= 57, f"{as_good} of 60"
    assert max(short) < 4.0
    assert np.mean(short) < 0.8


def test_a_large_group_is_not_cut_by_chance() -> None:
    """80 equal arms and two close small groups: k-means cuts the large group, the posterior does not."""
    centers = np.array([[0.0], [50.0], [53.0]])
    truth = np.concatenate([np.zeros(80, dtype=int), [1, 2]])
    right, cheaper = 0, 0
    for seed in range(40):
        run = measured(seed, 82, centers, truth, 1)
        parts.estimate_anew(run)
        right += coterie.same_partition(run.labels, truth)
        means = inside(run).arms.means[:, 0]
        x = np.sort(means[:80])
        cut = min(np.var(x[:i]) * i + np.var(x[i:]) * (80 - i) for i in range(1, 80))
        cheaper += np.var(x) * 80 - cut > 0.5 * (means[80] - means[81]) ** 2
    assert cheaper >= 38  # by its cost alone, the wrong partition would win
    assert right >= 34


@pytest.mark.slow
def test_misgrouping_risk_is_of_the_order_of_the_error() -> None:
    """Not a theorem: where P_w is small, the estimate is mostly right, for groups of any sizes."""
    sure, wrong = 0, 0
    for seed in range(400):
        rng = np.random.default_rng(5000 + seed)
        sizes = [(18, 1, 1), (8, 6, 6), (12, 6, 2)][seed % 3]
        centers = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 2.0]]) * rng.uniform(0.5, 2.0)
        truth = np.repeat(np.arange(3), sizes)
        run = measured(seed, 20, centers, truth, 6)
        parts.estimate_anew(run)
        if parts.misgrouping_risk(run) <= 0.15:
            sure += 1
            wrong += not coterie.same_partition(run.labels, truth)
    assert sure >= 60
    assert wrong <= 0.3 * sure, f"{wrong} of {sure}"
