"""`coterie bench classic`: Tukey and Scott–Knott as others compute them, designs found by bisection, resuming."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, chi2, studentized_range, tukey_hsd

from bench import classic
from bench.classic import FAMILIES, PART, WAYS
from bench.fixed_designs import (
    DESIGNS,
    SCOTT_KNOTT,
    TUKEY,
    FixedDesign,
    Outcome,
    Tables,
    range_quantile,
    scott_knott,
    scott_knott_differ,
    tukey_differ,
)
from bench.part import Progress

pytestmark = pytest.mark.slow  # what the benchmarks compare with

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(("free", "alpha"), [(5, 0.1), (17, 0.1), (400, 0.1)])
def test_the_interpolated_quantile_is_that_of_scipy(free: int, alpha: float) -> None:
    assert range_quantile(5, free, alpha) == pytest.approx(studentized_range.ppf(1 - alpha, 5, free), rel=1e-4)


def test_fewer_degrees_of_freedom_than_the_table_has_are_refused() -> None:
    with pytest.raises(ValueError, match="begins at 5 degrees of freedom, got 4"):
        range_quantile(5, 4, 0.1)


@pytest.mark.parametrize("seed", range(4))
def test_tukey_matches_oracle(seed: int) -> None:
    """The p-values of scipy.stats.tukey_hsd, from the measurements themselves."""
    rng = np.random.default_rng(seed)
    n, alpha = 6, 0.1
    table = rng.standard_normal((5, n)) + np.array([0.0, 0.0, 1.5, 1.8, 3.0])[:, None]
    mse = np.array([table.var(axis=1, ddof=1).mean()])
    found = tukey_differ(table.mean(axis=1)[None], mse, n, alpha)[0]
    assert np.array_equal(found, tukey_hsd(*table).pvalue < alpha)


def slow_scott_knott(means: dict[int, float], mse: float, n: int, free: int, alpha: float) -> list[set[int]]:
    """The formulas as they are printed: T1²/k1 + T2²/k2 − (T1 + T2)²/(k1 + k2), recursion, sets of items."""
    items = sorted(means, key=lambda item: means[item])
    if len(items) == 1:
        return [set(items)]
    y, k = [means[item] for item in items], len(items)
    between = [sum(y[:cut]) ** 2 / cut + sum(y[cut:]) ** 2 / (k - cut) - sum(y) ** 2 / k for cut in range(1, k)]
    largest = max(between)
    variance = (sum((value - sum(y) / k) ** 2 for value in y) + free * mse / n) / (k + free)
    if chi2.sf(math.pi / (2 * (math.pi - 2)) * largest / variance, k / (math.pi - 2)) >= alpha:
        return [set(items)]
    cut = between.index(largest) + 1
    parts = [{item: means[item] for item in part} for part in (items[:cut], items[cut:])]
    return [group for part in parts for group in slow_scott_knott(part, mse, n, free, alpha)]


@pytest.mark.parametrize("seed", range(12))
def test_scott_knott_matches_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, means = 4 + seed, rng.standard_normal(9) * 0.5 + np.repeat([0.0, 0.9, 2.5], 3)
    labels = scott_knott(means, 1.2, n, 0.05)
    groups = slow_scott_knott(dict(enumerate(means.tolist())), 1.2, n, 9 * (n - 1), 0.05)
    assert [set(np.flatnonzero(labels == k).tolist()) for k in range(labels.max() + 1)] == groups


def test_scott_knott_keeps_groups_under_shift_and_order() -> None:
    rng = np.random.default_rng(5)
    means, order = rng.standard_normal(8) * 2.0, rng.permutation(8)
    labels = scott_knott(means, 1.0, 10, 0.1)
    assert labels.max() > 0
    assert np.array_equal(scott_knott(means + 1e3, 1.0, 10, 0.1), labels)
    assert np.array_equal(scott_knott(means[order], 1.0, 10, 0.1), labels[order])


def test_the_design_found_is_enough_and_one_less_is_not() -> None:
    means = np.array([0.0, 0.0, 0.0, 1.5, 1.5, 1.5])
    tables = Tables(means, means[:, None] != means[None], 400, 1)
    n, outcome = tables.needed(TUKEY, 0.1, 500)
    assert outcome.not_right <= 40
    assert tables.outcome(TUKEY, n, 0.1) == outcome
    assert tables.outcome(TUKEY, n - 1, 0.1).not_right > 40
    blind = FixedDesign("blind", lambda means, mse, n, alpha: np.zeros((*means.shape, means.shape[1]), dtype=bool),
                        lambda delta, n_arms: delta)  # fmt: skip
    assert tables.needed(blind, 0.1, 500) == (500, Outcome(400, 400, 0))


def test_tukey_error_rate_within_alpha_and_scott_knott_beyond_it() -> None:
    """False alarm: 1e-6. Three groups of equal items, far apart: only equal items can be told apart wrongly.

    The level of Scott–Knott is that of one cut: three groups take three. It has to be seen here, as it is why the bench
    finds no design for it at α = δ.
    """
    means = np.repeat([0.0, 50.0, 100.0], 4)
    tables, runs = Tables(means, means[:, None] != means[None], 1000, 2), 1000
    found = {design.name: tables.outcome(design, 10, 0.1) for design in (TUKEY, SCOTT_KNOTT)}
    limit = int(binom.isf(FALSE_ALARM, runs, 0.1))
    assert found[TUKEY.name].false_difference == found[TUKEY.name].not_right <= limit
    assert found[SCOTT_KNOTT.name].false_difference > limit


def test_drawn_means_and_variances_have_the_law_of_whole_tables() -> None:
    """False alarm: 1e-6, by the normal approximation of a difference of two shares (5 standard errors)."""
    means, n, runs = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0]), 30, 2000
    apart = means[:, None] != means[None]
    drawn = Tables(means, apart, runs, 3).outcome(TUKEY, n, 0.1).not_right / runs
    whole = means[None, :, None] + np.random.default_rng(4).standard_normal((runs, 6, n))
    differ = tukey_differ(whole.mean(axis=2), whole.var(axis=2, ddof=1).mean(axis=1), n, 0.1)
    share = float((differ != apart).any(axis=(1, 2)).mean())
    assert 0.2 < share < 0.99
    assert abs(drawn - share) < 5.0 * math.sqrt(2.0 * share * (1.0 - share) / runs)


def test_families_say_what_is_right() -> None:
    for family in FAMILIES.values():
        assert family.right(family.groups)
        assert not family.right(np.zeros(len(family.means), dtype=np.int64))
    continuum = FAMILIES["continuum, M = 20, η = 1.5"]
    halves = (continuum.array > 1.5).astype(np.int64)
    assert continuum.right(halves)
    assert not continuum.right(np.roll(halves, 1))


def test_a_run_that_was_broken_off_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = classic.croc_row
    seen: list[tuple[str, str]] = []

    def until(most: int) -> None:
        def some(name: str, way: str, trials: int) -> dict[str, object]:
            if len(seen) == most:
                raise KeyboardInterrupt
            seen.append((name, way))
            return real(name, way, trials)

        monkeypatch.setattr(classic, "croc_row", some)

    monkeypatch.setattr(classic, "ROOT", tmp_path)
    monkeypatch.setattr(classic, "fingerprint", lambda: "the same")
    monkeypatch.setattr(classic, "ways_of", lambda family: list(WAYS)[:2])
    said: list[str] = []
    until(3)
    with pytest.raises(KeyboardInterrupt):
        classic.with_trials(3, True, Progress(said.append), tmp_path)
    until(99)
    rows = classic.with_trials(3, True, Progress(said.append), tmp_path)
    assert seen == [(name, way) for name in list(FAMILIES)[:2] for way in list(WAYS)[:2]]  # each once
    assert "5 of 8 cells were measured before" in "".join(said)
    assert not list((tmp_path / "build" / "bench").iterdir())
    assert [row["method"] for row in rows if row["table"] == "needed"][:2] == list(WAYS)[:2]
    json.dumps(rows)
    assert len(PART.tables(rows)) == 2
    for table, own in PART.tables(rows):
        assert [[column.cell(row) for column in table.columns] for row in own]
    assert PART.headlines(rows)
    for row in rows:
        if row["table"] == "budget":
            assert all(0 <= row[design.name][1] <= row[design.name][0] <= row["runs"] for design in DESIGNS)


def test_pairs_in_different_groups_differ() -> None:
    means = np.array([[0.0, 10.0, 0.1], [5.0, 5.0, 5.1]])
    found = scott_knott_differ(means, np.array([1.0, 1.0]), 20, 0.05)
    assert found[0].tolist() == [[False, True, False], [True, False, True], [False, True, False]]
    assert not found[1].any()
