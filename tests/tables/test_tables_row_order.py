"""The order of a table's rows: the level of the test, what it sees, and what it does not look at."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, rankdata

from coterie.tables.checks.row_order import ORDER_PROBABILITY, order_alarm

pytestmark = pytest.mark.guarantee


@pytest.mark.parametrize("noise", ["normal", "cauchy", "ratings"])
@pytest.mark.parametrize(("counts", "dim"), [([12] * 5, 2), ([2, 3, 4, 5, 1], 1), ([2] * 12, 1)])
def test_an_order_without_meaning_is_called_so(noise: str, counts: list[int], dim: int) -> None:
    """1500 tables of each kind, whatever the noise: an alarm with probability at most 0.01; false alarm below 1e-6."""
    rng = np.random.default_rng(len(counts) + dim)
    arms = np.repeat(np.arange(len(counts)), counts)
    called = 0
    for _ in range(1500):
        rows = rng.standard_cauchy((arms.size, dim)) if noise == "cauchy" else rng.normal(size=(arms.size, dim))
        rows = np.round(rows) if noise == "ratings" else rows
        called += order_alarm(arms, 100.0 * arms[:, None] + rows) is not None
    assert called <= binom.ppf(1 - 1e-6, 1500, ORDER_PROBABILITY)


def test_a_sorted_table_is_called_sorted() -> None:
    rng = np.random.default_rng(0)
    arms = np.repeat(np.arange(6), 10)
    rows = rng.normal(size=(60, 2))
    order = np.lexsort((-rows[:, 1], arms))
    found = order_alarm(arms, rows[order])
    assert found is not None
    assert (found.column, found.kind, found.is_sorted) == (1, "trend", True)
    assert found.correlation == pytest.approx(-1.0)
    assert found.p <= ORDER_PROBABILITY


def test_a_drift_is_seen_in_interleaved_rows() -> None:
    """Half a standard deviation over the file: a trend in 600 rows of 6.1 standard deviations of its statistic."""
    rng = np.random.default_rng(1)
    arms = np.tile(np.arange(20), 60)
    drift = np.linspace(0.0, 1.0, 1200)
    found = order_alarm(arms, (5.0 * (arms % 3) + drift + rng.normal(size=1200))[:, None])
    assert found is not None
    assert found.kind == "trend"
    assert 0.1 < found.correlation < 0.6
    assert not found.is_sorted


def test_a_wave_is_seen_in_the_steps() -> None:
    rng = np.random.default_rng(2)
    arms = np.tile(np.arange(5), 100)
    wave = np.sin(np.arange(500) / 500.0 * 6.0 * np.pi)
    found = order_alarm(arms, (wave + 0.5 * rng.normal(size=500))[:, None])
    assert found is not None
    assert found.kind == "steps"
    assert found.correlation > 0.3


def test_items_that_stand_in_blocks_or_by_size_are_nothing_to_remark() -> None:
    """Only the order within items counts: items may come one after the other, the smallest first."""
    rng = np.random.default_rng(3)
    arms = np.repeat(np.arange(30), 5)
    assert order_alarm(arms, (10.0 * arms + rng.normal(size=150))[:, None]) is None


def test_the_correlation_matches_oracle() -> None:
    rng = np.random.default_rng(4)
    arms = np.repeat([0, 1, 2], [9, 9, 9])
    rows = np.round(np.tile(np.arange(9.0), 3) + rng.normal(size=27))[:, None]
    found = order_alarm(arms, rows)
    assert found is not None
    places = np.tile(np.arange(9.0) - 4.0, 3)
    ranks = np.concatenate([rankdata(rows[arms == arm, 0]) - 5.0 for arm in range(3)])
    assert found.correlation == pytest.approx(float(places @ ranks / np.sqrt(places @ places * (ranks @ ranks))))


@pytest.mark.parametrize("counts", [[1, 1, 1], [2, 1], [3]])
def test_too_few_rows_say_nothing(counts: list[int]) -> None:
    arms = np.repeat(np.arange(len(counts)), counts)
    assert order_alarm(arms, np.arange(float(arms.size))[:, None]) is None
