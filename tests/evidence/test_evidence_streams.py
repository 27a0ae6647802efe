"""Intervals of streams: every formula against brute force, widths against fixed samples, and the guarantee by runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plain_intervals as plain
import pytest
from error_rates import Guarantee, assert_rate_at_most
from scipy.stats import binom

import coterie
from bench.intervals import ASKED, widths
from coterie.evidence.exact import differences as fixed
from coterie.evidence.intervals.gaussian_means import (
    deviation_bounds,
    difference_reach,
    gaussian_intervals,
    known_reach,
)
from coterie.evidence.intervals.hedged_means import (
    GRID,
    betting_evidence,
    betting_interval,
    catoni_evidence,
    difference_interval,
    rate_evidence,
)
from coterie.evidence.intervals.streams import StreamIntervals, log_evidence, quantile_interval
from coterie.problem.families import noise_of

LEVEL = math.log(20.0)
FALSE_ALARM = 1e-6  # of each test by runs, if the guarantee holds
RUNS, LENGTH, ERROR = 2000, 60, 0.1


# Formulas against brute force.


def test_known_matches_oracle() -> None:
    x = np.random.default_rng(1).normal(2.0, 1.0, 7)
    reach = float(known_reach(np.array(7), LEVEL))
    for sign in (-1.0, 1.0):
        assert plain.known(x, x.mean() + sign * reach) == pytest.approx(LEVEL, abs=1e-6)
    y = np.random.default_rng(2).normal(0.0, 1.0, 4)
    apart = float(difference_reach(np.array(7), np.array(4), LEVEL))
    for sign in (-1.0, 1.0):
        assert plain.product(x, y, x.mean() - y.mean() + sign * apart) == pytest.approx(LEVEL, abs=1e-4)
    assert np.isinf(known_reach(np.array(0), LEVEL))
    assert np.isinf(difference_reach(np.array(0), np.array(9), LEVEL))


def test_deviation_matches_oracle() -> None:
    rng = np.random.default_rng(3)
    arms, x = [0, 1, 0, 0, 1, 1, 2, 0, 1, 2] * 3, rng.normal(5.0, 2.0, 30)
    bound = deviation_bounds(np.array(arms), x[:, None], "full", 0.05)[0]
    assert bound == pytest.approx(plain.deviation(arms, x, 0.05), rel=1e-3)
    two = np.column_stack([x, 3.0 * x])
    assert deviation_bounds(np.array(arms), two, "diagonal", 0.1) == pytest.approx([bound, 3.0 * bound])
    assert np.isinf(deviation_bounds(np.array([0, 1]), np.ones((2, 1)), "full", 0.05)).all()


def test_gaussian_matches_oracle() -> None:
    x = np.random.default_rng(4).normal(-3.0, 2.0, 9)
    for bound in (2.5, 30.0):
        low, high = gaussian_intervals([x], np.array([bound]), LEVEL)
        for end in (float(low[0]), float(high[0])):
            assert plain.gaussian(x, bound, end) == pytest.approx(LEVEL, abs=1e-4)
        assert plain.gaussian(x, bound, float(x.mean())) < LEVEL
    several = gaussian_intervals([x[:0], x[:1], np.ones(5), x], np.full(4, np.inf), LEVEL)
    assert np.isinf(several[0]).tolist() == [True, True, True, False]


@pytest.mark.slow
def test_betting_matches_oracle() -> None:
    x = np.random.default_rng(5).beta(2.0, 3.0, 25)
    two = LEVEL + math.log(2.0)
    low, high = betting_interval(x, two)
    grid = np.linspace(0.0005, 0.9995, 1000)
    capital = [plain.betting(x, two, m) for m in grid]
    below = np.array([max(up) < two and max(down) < two for up, down in capital])
    assert (low, high) == pytest.approx(plain.hull(grid, below), abs=0.001)
    y = np.random.default_rng(6).beta(3.0, 2.0, 15)

    def against(values: np.ndarray) -> Any:
        return lambda m: max(side[-1] for side in plain.betting(values, two, m)) - math.log(2.0)

    found = difference_interval(betting_evidence(x, two), betting_evidence(y, two), LEVEL)
    wanted = plain.differences(np.linspace(0.002, 0.998, 400), against(x), against(y), LEVEL)
    cells = 2.0 / GRID + 0.005
    assert found[0] <= wanted[0] + 0.005 <= found[0] + cells
    assert found[1] >= wanted[1] - 0.005 >= found[1] - cells


def test_rates_match_oracle() -> None:
    low, high = rate_evidence(7.0, 30.0).interval(LEVEL)
    for end in (low, high):
        assert plain.rates(7, 30, end) == pytest.approx(LEVEL, abs=1e-6)
    found = difference_interval(rate_evidence(7.0, 30.0), rate_evidence(15.0, 20.0), LEVEL)
    grid = np.linspace(0.002, 0.998, 400)
    sides = [lambda p, s=s, n=n: plain.rates(s, n, p) for s, n in ((7, 30), (15, 20))]
    wanted = plain.differences(grid, sides[0], sides[1], LEVEL)
    assert found == pytest.approx(wanted, abs=0.012)
    assert found[0] <= wanted[0]
    assert found[1] >= wanted[1]
    assert rate_evidence(0.0, 0.0).interval(LEVEL) == (0.0, 1.0)


def test_catoni_matches_oracle() -> None:
    x = np.random.default_rng(7).standard_t(3, 12) / math.sqrt(3.0)
    low, high = catoni_evidence(x).interval(LEVEL)
    assert plain.catoni(x, low)[0] == pytest.approx(LEVEL, abs=1e-6)
    assert plain.catoni(x, high)[1] == pytest.approx(LEVEL, abs=1e-6)
    y = x[:7] + 2.0
    found = difference_interval(catoni_evidence(x), catoni_evidence(y), LEVEL)
    grid = np.linspace(-6.0, 8.0, 281)
    wanted = plain.differences(grid, lambda m: max(plain.catoni(x, m)), lambda m: max(plain.catoni(y, m)), LEVEL)
    assert found == pytest.approx(wanted, abs=0.15)
    assert found[0] <= wanted[0] + 1e-9
    assert found[1] >= wanted[1] - 1e-9
    assert catoni_evidence(x[:0]).interval(LEVEL) == (-math.inf, math.inf)


def test_quantiles_match_oracle() -> None:
    """Of continuous values and of values with ties: at the ends and beyond."""
    rng = np.random.default_rng(8)
    for x in (rng.exponential(size=30), rng.integers(0, 6, 40).astype(float)):
        for p in (0.25, 0.5, 0.9):
            low, high = quantile_interval(x, p, LEVEL)
            places = np.unique(np.concatenate([x, x - 1e-9, x + 1e-9]))
            kept = [q for q in places if max(plain.quantile(x, p, q)) < 2.0 * 20.0]
            assert (not math.isfinite(low)) or low <= min(kept) + 1e-8
            assert (not math.isfinite(high)) or high >= max(kept) - 1e-8
            assert math.isfinite(low) == (plain.quantile(x, p, float(x.min()) - 1.0)[0] >= 40.0)
            assert math.isfinite(high) == (plain.quantile(x, p, float(x.max()) + 1.0)[1] >= 40.0)


def test_fixed_samples_match_plain_ones() -> None:
    x = np.random.default_rng(9).normal(size=21)
    low, high = fixed.order_statistics(x, 0.5, 0.05)
    ranked = np.sort(x)
    assert (low, high) == (ranked[5], ranked[15])  # the sign test's: P(S ≤ 5) = 0.013, P(S ≤ 6) = 0.039
    low, high = fixed.clopper_pearson(3.0, 20.0, 0.05)
    assert 1.0 - binom.cdf(2, 20, low) == pytest.approx(0.025)
    assert binom.cdf(3, 20, high) == pytest.approx(0.025)
    low, high = fixed.catoni(x, 0.05)
    rate = math.sqrt(2.0 * math.log(40.0) / 21)
    bent = [sum(math.copysign(math.log(1 + abs(y) + y * y / 2), y) for y in rate * (x - m)) for m in (low, high)]
    assert bent[0] == pytest.approx(-bent[1]) == pytest.approx(math.log(40.0) + 21 * math.log(1 + rate**2 / 2))


# Widths.


@pytest.mark.slow
def test_widths_are_those_asked_for() -> None:
    """At most 1.05 times the table of docs/INTERVALS.md, over the usual interval for one fixed number of results."""
    table = widths(runs=30)
    for name, row in ASKED.items():
        for n, wanted in row.items():
            assert table[name][n] <= 1.05 * wanted, (name, n, table[name][n])


# Ever wrong, over all lengths, whoever chooses the arm of a group.


def most_errors(rate: float) -> int:
    return int(binom.ppf(1.0 - FALSE_ALARM, RUNS, rate))


def check(noise: str, wrong: Any, case: str, runs: int = RUNS) -> None:
    """Not wrong too often, and a row of the table of guarantees."""
    assert_rate_at_most(ERROR, int(wrong), runs, Guarantee(noise, "intervals", case=case), FALSE_ALARM)


def chosen(rng: np.random.Generator, draw: Any) -> np.ndarray:
    """(runs, length) streams of a group of two arms with one mean, 0: the sampler takes the arm by the sum so far."""
    x = np.zeros((RUNS, LENGTH))
    total = np.zeros(RUNS)
    for i in range(LENGTH):
        x[:, i] = np.where(total > 0.3 * math.sqrt(i + 1), draw(rng, 0), draw(rng, 1))
        total += x[:, i]
    return x


@pytest.mark.guarantee
def test_known_and_quantiles_error_rate_within_delta() -> None:
    """Read after every result, 2,000 runs each, δ_I = 0.1; more errors than allowed have probability 1e-6."""
    rng = np.random.default_rng(10)
    n = np.arange(1, LENGTH + 1)
    x = chosen(rng, lambda rng, arm: (1.0 if arm else 0.6) * rng.standard_normal(RUNS))
    means = np.cumsum(x, axis=1) / n
    wrong = (np.abs(means) > known_reach(n, -math.log(ERROR))).any(axis=1).sum()
    assert wrong > 0
    check("known", wrong, "means of groups")
    y = chosen(rng, lambda rng, arm: rng.standard_normal(RUNS))
    apart = means - np.cumsum(y, axis=1) / n
    check("known", (np.abs(apart) > difference_reach(n, n, -math.log(ERROR))).any(axis=1).sum(), "differences")
    naive = (np.abs(means) > 1.645 / np.sqrt(n)).any(axis=1).sum()
    assert naive > most_errors(ERROR)  # the test sees an interval that holds at one moment only
    # Symmetric noise, another spread for each arm; the counts at the center are all that the ends depend on.
    z = chosen(rng, lambda rng, arm: (5.0 if arm else 0.1) * rng.standard_t(1, RUNS))
    ties = np.round(chosen(rng, lambda rng, arm: rng.standard_normal(RUNS)))
    for values in (z, ties):
        reached = np.zeros(RUNS, dtype=bool)
        at_most, below = np.cumsum(values <= 0.0, axis=1), np.cumsum(values < 0.0, axis=1)
        for k in n.tolist():
            table = [log_evidence(np.arange(k + 1), k, 0.5, side) >= math.log(2.0 / ERROR) for side in (True, False)]
            few, many = np.arange(k + 1) <= k / 2, np.arange(k + 1) >= k / 2
            reached |= (table[0] & few)[at_most[:, k - 1]] | (table[1] & many)[below[:, k - 1]]
        check("symmetric", reached.sum(), "medians of groups")


@pytest.mark.guarantee
def test_gaussian_error_rate_within_delta() -> None:
    """Two arms of a group and one of another; σ₊ and the group's interval read after every result.

    Whoever has just had a large result is measured again: the counts depend on the values.
    """
    rng = np.random.default_rng(11)
    noise, length = noise_of("gaussian", 1), 24
    wrong = np.zeros(RUNS, dtype=bool)
    x = 3.0 * rng.standard_normal((RUNS, length))
    arms = np.zeros((RUNS, length), dtype=np.int64)
    for i in range(1, length):
        arms[:, i] = np.where(np.abs(x[:, i - 1]) > 3.0, arms[:, i - 1], i % 3)
    level = StreamIntervals(noise, 1, ERROR, arms[0], x[0, :, None]).level
    for n in range(3, length + 1):
        bounds = np.array([deviation_bounds(arms[i, :n], x[i, :n, None], "full", 0.1 * ERROR)[0] for i in range(RUNS)])
        assert n > 12 or (bounds >= 3.0).mean() > 0.99
        low, high = gaussian_intervals([x[i, :n][arms[i, :n] != 2] for i in range(RUNS)], bounds, level)
        wrong |= ~((low <= 0.0) & (high >= 0.0))
    check("gaussian", wrong.sum(), "means of groups")


@pytest.mark.guarantee
def test_bounded_error_rate_within_delta() -> None:
    """The interval of the last result is the intersection of all before it; arms of one mean, 0.3, and two laws."""
    rng = np.random.default_rng(12)
    x = 0.3 + chosen(rng, lambda rng, arm: ((rng.random(RUNS) < 0.3) if arm else rng.beta(3, 7, RUNS)) - 0.3)
    rare = (rng.random((RUNS, LENGTH)) < 0.03).astype(float)
    two = math.log(2.0 / ERROR)
    for values, truth in ((x, 0.3), (rare, 0.03)):
        ends = np.array([betting_interval(run, two) for run in values])
        check("bounded", (~((ends[:, 0] <= truth) & (ends[:, 1] >= truth))).sum(), "means of groups")
    apart = [
        max(
            betting_evidence(a[:k], two).at(0.3) + betting_evidence(b[:k], two).at(0.03)
            for k in range(2, LENGTH + 1, 2)
        )
        for a, b in zip(x[:1000], rare[:1000], strict=True)
    ]
    assert (np.array(apart) >= -math.log(ERROR)).sum() <= most_errors(ERROR) / 2


@pytest.mark.guarantee
def test_counts_and_moments_error_rate_within_delta() -> None:
    """Whether the truth is outside is whether the evidence against it has reached the level, at any length."""
    rng = np.random.default_rng(13)
    level = -math.log(ERROR)
    successes = np.cumsum(rng.binomial(3, 0.1, (RUNS, LENGTH)), axis=1)
    wrong = sum(
        any(rate_evidence(float(s), 3.0 * (i + 1)).at(0.1) >= level for i, s in enumerate(run)) for run in successes
    )
    check("counts", wrong, "rates of groups")
    x = chosen(
        rng, lambda rng, arm: rng.standard_t(3, RUNS) / math.sqrt(3.0) if arm else rng.exponential(size=RUNS) - 1
    )
    wrong = sum(any(catoni_evidence(run[:k]).at(0.0) >= level for k in range(1, LENGTH + 1)) for run in x)
    check("at-most", wrong, "means of groups")
    low, high = catoni_evidence(x[0]).interval(level)
    for end, sign in ((low, 1.0), (high, -1.0)):
        assert catoni_evidence(x[0]).at(end + sign * 1e-6) < level <= catoni_evidence(x[0]).at(end - sign * 1e-6)


@pytest.mark.guarantee
def test_session_intervals_error_rate_within_delta() -> None:
    """500 whole runs, M = 4 in 2 groups, read after every result that the guess is right, and once it is proven."""
    means, wrong, partitions = [0.0, 2.0, 0.0, 2.0], 0, 0
    for run in range(500):
        rng = np.random.default_rng([14, run])
        session, missed = coterie.Session(4, 2, 1, noise=1.0, delta=ERROR), False
        while not session.done:
            arm = session.ask()
            session.tell(arm, [means[arm] + rng.standard_normal()])
            labels = session.labels
            if labels is not None and labels.tolist() == [0, 1, 0, 1]:
                shown = session.intervals()
                missed |= bool((shown.low[:, 0] > [0.0, 2.0]).any() or (shown.high[:, 0] < [0.0, 2.0]).any())
        wrong += missed
        partitions += np.array(session.labels).tolist() != [0, 1, 0, 1]
    check("known", wrong, "of a whole session", 500)
    assert_rate_at_most(ERROR, partitions, 500, Guarantee("known", case="with intervals"), FALSE_ALARM)
