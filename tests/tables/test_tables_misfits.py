"""Items that do not fit their group: by ranks under any distribution, and by a test that holds at every time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm, rankdata

from coterie.tables.checks import misfits
from coterie.tables.checks.misfits import anytime_misfits, rank_misfits
from coterie.tables.checks.spread import means_of

LABELS = np.array([0, 1, 0, 2, 1, 0, 3, 3, 0])  # group 2 has one item: nothing to compare it with


@pytest.mark.guarantee
@pytest.mark.parametrize("noise", ["normal", "lognormal", "cauchy", "clicks"])
def test_items_that_fit_are_named_as_rarely_as_stated(noise: str) -> None:
    """1000 pools of uneven counts, at level 0.05 over all items: false alarm below 1e-6."""
    rng = np.random.default_rng(3)
    counts = np.array([1, 2, 9, 4, 30, 5, 3, 3, 1])
    arms = np.repeat(np.arange(9), counts)
    wrong = 0
    for _ in range(1000):
        draw: dict[str, Callable[[], Any]] = {
            "normal": lambda: rng.normal(size=(arms.size, 2)),
            "lognormal": lambda: rng.lognormal(0.0, 2.0, size=(arms.size, 2)),
            "cauchy": lambda: rng.standard_cauchy((arms.size, 2)),
            "clicks": lambda: (rng.random((arms.size, 2)) < 0.1).astype(float),
        }
        results = 1e3 * LABELS[arms][:, None] + draw[noise]()
        wrong += bool(rank_misfits(LABELS, arms, results, 0.05))
    assert wrong <= binom.ppf(1 - 1e-6, 1000, 0.05)


@pytest.mark.guarantee
@pytest.mark.parametrize("seed", range(6))
def test_the_bound_lies_above_the_exact_probability(seed: int) -> None:
    """One group of two items, 3 and 6 results: all 84 choices of the item's ranks, ties included."""
    rng = np.random.default_rng(seed)
    values = np.sort(np.round(rng.normal(size=9), 1 if seed % 2 else 6))
    ranks = rankdata(values, "ordinal")
    plain = norm.ppf((ranks - 0.5) / 9)
    scores = np.array([plain[values == value].mean() for value in values])
    sums = np.array([scores[list(choice)].sum() for choice in combinations(range(9), 3)])
    for choice in list(combinations(range(9), 3))[:: 1 + seed]:
        arms = np.ones(9, dtype=np.int64)
        arms[list(choice)] = 0
        own = scores[list(choice)].sum()
        found = dict(rank_misfits([0, 0], arms, values[:, None], probability=1e9))
        # The bound is over 2 items, 1 column, 2 tails and 2 tests: 8 times that of one tail.
        tail = min((sums >= own - 1e-12).mean(), (sums <= own + 1e-12).mean())
        assert found[0] / 8.0 >= tail * (1.0 - 1e-9)


@pytest.mark.guarantee
def test_a_mixture_is_seen_that_no_item_shows() -> None:
    """Six items of five results in one group, at 0 and 8: no item is unlikely by itself, all of them together are."""
    rng = np.random.default_rng(0)
    arms = np.tile(np.arange(6), 5)
    rows = 8.0 * (arms % 2)[:, None] + rng.normal(size=(30, 10))
    ((arm, p),) = rank_misfits(np.zeros(6), arms, rows)
    assert arm in range(6)
    assert p == 0.001
    assert rank_misfits(np.arange(6) % 2, arms, rows) == []


@pytest.mark.guarantee
def test_an_item_of_another_group_is_named() -> None:
    """1.5 standard deviations away, 30 results in a group of 150: 8 standard deviations of the sum of scores."""
    rng = np.random.default_rng(1)
    arms = np.tile(np.arange(5), 30)
    for factor in (1.0, 1e9):
        rows = rng.normal(size=(150, 2)) * factor
        rows[arms == 3, 1] += 1.5 * factor
        rows[7, 0] = 1e30  # a slip changes nothing
        assert [arm for arm, _ in rank_misfits(np.zeros(5), arms, rows)] == [3]


@pytest.mark.guarantee
def test_the_order_of_items_and_increasing_changes_of_values_keep_the_bound() -> None:
    rng = np.random.default_rng(2)
    arms = np.tile(np.arange(4), 20)
    rows = rng.normal(size=(80, 1)) + 2.0 * (arms == 1)[:, None]
    (one,) = rank_misfits(np.zeros(4), arms, rows)
    (same,) = rank_misfits(np.zeros(4), arms, np.exp(rows))
    (other,) = rank_misfits(np.zeros(4), 3 - arms, rows)
    assert one[0] == 1
    assert same == one
    assert other[0] == 2
    assert other[1] == pytest.approx(one[1])


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["in turn", "the worst"])
def test_looking_after_every_result_error_rate_within_level(chosen: str) -> None:
    """Groups and noise are right; items are measured in turn, or that next which fits worst; every result is looked at.

    At level 0.05 at most 5 % of the runs may ever name an item: more than `most` of 200 with probability below 1e-6.
    Beside it is a χ² test at that level: looked at so often, it names items far too often.
    """
    labels, level, runs = np.array([0, 0, 0, 1, 1]), 0.05, 200
    most = binom.isf(1e-6, runs, level)
    rng = np.random.default_rng(3)
    ours = naive = 0
    for _ in range(runs):
        arms = np.arange(5)
        white = rng.normal(size=(5, 2))
        named = [False, False]
        for k in range(100 if chosen == "in turn" else 50):
            worst = k % 5
            if chosen == "the worst":
                means, counts = means_of(arms, white, 5)
                centers, totals = means_of(labels[arms], white, 2)
                rest = totals[labels] - counts
                worst = int(np.argmax(((means - centers[labels]) ** 2).sum(axis=1) * counts * totals[labels] / rest))
            arms = np.append(arms, worst)
            white = np.vstack([white, rng.normal(size=2)])
            named[0] |= bool(anytime_misfits(labels, arms, white, level))
            named[1] |= bool(misfits.misfits(labels, arms, white, level))
        ours += named[0]
        naive += named[1]
    print(f"{runs} runs, {chosen}: {ours} named an item, {naive} by the χ² test")
    assert ours <= most
    assert chosen == "the worst" or naive > most


def test_evidence_matches_oracle() -> None:
    """The closed form against the product of two mixtures, minimised numerically; the level is the evidence's own."""
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 0, 1])
    arms = rng.integers(0, 3, size=40)
    white = rng.normal(size=(40, 1)) + 1.5 * (arms == 0)[:, None]

    def log_mixture(values: Any, rho: float, means: Any) -> Any:
        n = len(values)
        return 0.5 * rho * n**2 / (1.0 + rho * n) * (values.mean() - means) ** 2 - 0.5 * np.log(1.0 + rho * n)

    def evidence(arm: int) -> float:
        own, rest = white[arms == arm], white[arms != arm]
        grid = np.linspace(white.min(), white.max(), 200_001)
        rhos = (4.0, 1.0, 1 / 4, 1 / 16, 1 / 64)
        logs = [float(np.min(log_mixture(own, rho, grid) + log_mixture(rest, rho, grid))) for rho in rhos]
        return float(np.log(np.mean(np.exp(logs))))

    reached = {arm: evidence(arm) for arm in range(3)}
    assert reached[0] == max(reached.values())
    for arm, log_e in reached.items():
        just = 4.0 * np.exp(-log_e)  # the level at which this item is just named: M/p = E
        assert arm in anytime_misfits(labels, arms, white, just * 1.001)
        assert arm not in anytime_misfits(labels, arms, white, just * 0.999)
