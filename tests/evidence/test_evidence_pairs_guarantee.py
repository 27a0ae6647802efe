"""The guarantee of pair evidence itself: equal arms ever reach log(1/a) with probability at most a.

Every binomial test here raises a false alarm with probability at most ALARM, even if the true rate is exactly a (it is
lower); the seeds are fixed. There are 35 of them: all together, less than 4 in 100 000.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from coterie.evidence.pairs import (
    BLOCK_RATIOS,
    RATIO_WEIGHTS,
    SCALE_WEIGHTS,
    SCALES,
    directed_log,
    mixture_log,
    pair_evidence,
)

pytestmark = pytest.mark.guarantee

ALARM = 1e-6
PULLS = 10_000  # of both arms together
LEVELS = (0.1, 0.01)
PAIRS = {1: 8000, 3: 3000, 50: 400}


def assert_rate_at_most(a: float, crossed: np.ndarray) -> None:
    """Fails if so many crossings have a probability below ALARM at rate a."""
    limit = binom.isf(ALARM, crossed.size, a)
    assert crossed.sum() <= limit, f"{int(crossed.sum())} of {crossed.size} crossed log(1/{a}), at most {limit:.0f} may"


@cache
def least_energy(count: int, dim: int, level: float) -> np.ndarray:
    """The energy at which the mixture of n = 1 … count contrasts reaches the level: evidence grows with energy."""
    n = np.arange(1, count + 1)
    low, high = np.zeros(count), np.full(count, 1e4)
    assert (mixture_log(n, high, dim) >= level).all()
    for _ in range(60):
        middle = (low + high) / 2
        reached = mixture_log(n, middle, dim) >= level
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def ever_crosses(x: np.ndarray, y: np.ndarray, ratio: int, level: float) -> bool:
    """Whether paired evidence of this ratio reaches the level at any n, given the cumulative sums of two stacks."""
    count = min(len(x), len(y) // ratio, PULLS // (1 + ratio))
    n = np.arange(1, count + 1)
    gap = x[:count] - y[ratio - 1 : count * ratio : ratio] / ratio
    # n‖Ȳ‖²/v, from sums instead of means
    energy = np.einsum("id,id->i", gap, gap) / n / (1 + 1 / ratio)
    return bool((energy >= least_energy(count, x.shape[1], level)).any())


@cache
def crossings(dim: int) -> dict[tuple[float, str], np.ndarray]:
    """Pairs of equal arms, and whether they ever cross: with equal counts, with 1 to 8, and over everything there is.

    "anything" is what an adversary reaches who knows both stacks beforehand and picks which one is read next: paired
    evidence only depends on how far the stacks were read, so that is the supremum over all n, ratios and sides.
    """
    rng = np.random.default_rng(100 + dim)
    found: dict[tuple[float, str], list[bool]] = {(a, k): [] for a in LEVELS for k in ("equal", "lopsided", "anything")}
    longest = PULLS * 8 // 9 + 1
    for _ in range(PAIRS[dim]):
        x, y = (np.cumsum(rng.normal(size=(longest, dim)), axis=0) for _ in range(2))
        for a in LEVELS:
            level = math.log(1 / a)
            found[a, "equal"].append(ever_crosses(x, y, 1, level))
            found[a, "lopsided"].append(ever_crosses(x, y, 8, level))
            found[a, "anything"].append(
                any(
                    ever_crosses(*sides, ratio, level - math.log(weight))
                    for ratio, weight in zip(BLOCK_RATIOS, RATIO_WEIGHTS, strict=True)
                    for sides in ((x, y), (y, x))
                )
            )
    return {key: np.array(value) for key, value in found.items()}


@pytest.mark.parametrize("a", LEVELS)
@pytest.mark.parametrize("dim", PAIRS)
@pytest.mark.parametrize("counts", ["equal", "lopsided", "anything"])
def test_paired_evidence_error_rate_within_level(counts: str, dim: int, a: float) -> None:
    assert_rate_at_most(a, crossings(dim)[a, counts])


def test_the_guarantee_tests_would_notice() -> None:
    """Without the factor (1+ρn)^(−d/2), that is with the likelihood ratio at its maximum, nearly all pairs cross."""
    rng = np.random.default_rng(7)
    n = np.arange(1, 2001)
    crossed = []
    for _ in range(300):
        total = np.cumsum(rng.normal(size=2000) * math.sqrt(2))
        crossed.append((total**2 / n / 2 / 2 >= math.log(10)).any())
    with pytest.raises(AssertionError, match="crossed"):
        assert_rate_at_most(0.1, np.array(crossed))


def product_log(n_x: np.ndarray, n_y: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Product evidence of many pairs at once."""
    i, j = n_x[:, None] * SCALES, n_y[:, None] * SCALES
    g_i, g_j = i * n_x[:, None] / (1 + i), j * n_y[:, None] / (1 + j)
    energy = np.einsum("id,id->i", gap, gap)[:, None]
    terms = 0.5 * g_i * g_j / (g_i + g_j) * energy - gap.shape[1] / 2 * (np.log1p(i) + np.log1p(j))
    logs: np.ndarray = np.logaddexp.reduce(np.log(SCALE_WEIGHTS) + terms, axis=1)
    return logs


@pytest.mark.parametrize(
    ("dim", "order"), [(1, "outlier"), (3, "outlier"), (50, "outlier"), (1, "hold"), (3, "lopsided")]
)
def test_product_evidence_error_rate_within_level(dim: int, order: str) -> None:
    """Adaptive orders that look at all results so far, but not ahead; read after each of the first 200 pulls, then
    after every tenth.

    outlier: pull the arm whose mean is nearer the true one, so that the other stays where chance has put it. hold:
    leave the second arm alone while its mean is off by a standard error. lopsided: the first arm 9 times in 10.
    """
    rng = np.random.default_rng(200 + dim)
    pairs = {1: 1500, 3: 800, 50: 150}[dim]
    sums = rng.normal(size=(2, pairs, dim))
    counts = np.ones((2, pairs))
    highest = np.full(pairs, -np.inf)
    everyone = np.arange(pairs)
    for step in range(PULLS - 2):
        means = sums / counts[:, :, None]
        if order == "outlier":
            distances = (means**2).sum(axis=2)
            chosen = (distances[1] < distances[0]).astype(int)
        elif order == "hold":
            chosen = ((means[1] ** 2).sum(axis=1) * counts[1] < dim).astype(int)
        else:
            chosen = np.full(pairs, int(step % 10 == 0))
        sums[chosen, everyone] += rng.normal(size=(pairs, dim))
        counts[chosen, everyone] += 1
        if step < 200 or step % 10 == 0:
            value = product_log(counts[0], counts[1], sums[0] / counts[0][:, None] - sums[1] / counts[1][:, None])
            highest = np.maximum(highest, value)
    for a in LEVELS:
        assert_rate_at_most(a, highest >= math.log(1 / a))


def test_product_log_equals_pair_evidence() -> None:
    rng = np.random.default_rng(3)
    for n_x, n_y, dim in ((1, 1, 1), (5, 40, 3)):
        x, y = rng.normal(size=(n_x, dim)), rng.normal(1.0, 1.0, size=(n_y, dim))
        many = product_log(np.array([n_x]), np.array([n_y]), (x.mean(axis=0) - y.mean(axis=0))[None])
        assert many[0] == pytest.approx(pair_evidence(x, y, "product"))


@pytest.mark.parametrize("dim", [1, 3, 50])
def test_directed_evidence_error_rate_within_level(dim: int) -> None:
    """Frozen after the results that make equal arms look most different, then judged by the results after it."""
    rng = np.random.default_rng(300 + dim)
    pairs, length = {1: 3000, 3: 1500, 50: 150}[dim], PULLS // 2
    n = np.arange(1, length + 1) / 2  # Σ 1/v with v = 2
    highest = np.empty(pairs)
    for i in range(pairs):
        before = np.cumsum(rng.normal(size=(2, 100, dim)), axis=1) / np.arange(1, 101)[:, None]
        gaps = before[0] - before[1]
        at = int(np.argmax((gaps**2).sum(axis=1) * np.arange(1, 101)))
        theta, spread = gaps[at], 2.0 / (at + 1)
        total = np.cumsum(rng.normal(size=(length, dim)) * math.sqrt(2), axis=0) / 2
        growth = 1 + n * spread
        fit = 2 * total @ theta + spread * np.einsum("id,id->i", total, total) - n * (theta @ theta)
        value = fit / (2 * growth) - dim / 2 * np.log(growth)
        highest[i] = value.max()
        if i == 0:
            assert value[41] == pytest.approx(directed_log(n[41], total[41], theta, spread))
    for a in LEVELS:
        assert_rate_at_most(a, highest >= math.log(1 / a))


def test_delays_that_depend_on_values_do_no_harm_in_ask_order() -> None:
    """Batches are asked for; arm x's results come back largest first, arm y's smallest first.

    Counted in ask order, each arm's gap-free prefix: the rate stays at most a, read after every arrival. Counted in the
    order of arrival, the same results cross nearly always.
    """
    rng = np.random.default_rng(11)
    pairs, batches, size, a = 200, 2, 40, 0.1
    level = math.log(1 / a)
    asked_crossed, arrived_crossed = np.zeros(pairs, dtype=bool), np.zeros(pairs, dtype=bool)
    for i in range(pairs):
        stacks = rng.normal(size=(2, batches, size, 1))
        back = [np.argsort(sign * stack[:, :, 0], axis=1) for sign, stack in zip((-1, 1), stacks, strict=True)]
        for batch in range(batches):
            earlier = stacks[:, :batch].reshape(2, batch * size, 1)
            there = np.zeros((2, size), dtype=bool)
            arrived: list[list[np.ndarray]] = [[], []]
            for k in range(size):
                for arm in range(2):
                    there[arm, back[arm][batch, k]] = True
                    arrived[arm].append(stacks[arm, batch, back[arm][batch, k]])
                prefix = [int(np.argmin([*there[arm], False])) for arm in range(2)]
                by_ask = [np.concatenate([earlier[arm], stacks[arm, batch, : prefix[arm]]]) for arm in range(2)]
                asked_crossed[i] |= pair_evidence(by_ask[0], by_ask[1]) >= level
                by_arrival = [np.concatenate([earlier[arm], np.array(arrived[arm])]) for arm in range(2)]
                arrived_crossed[i] |= pair_evidence(by_arrival[0], by_arrival[1]) >= level
    assert_rate_at_most(a, asked_crossed)
    assert arrived_crossed.mean() > 0.9
