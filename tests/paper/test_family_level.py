"""The level for a whole table: how often it cries for nothing, and that what is off is found.

Trials are made up to look like those of the tables: a row has ten columns, one trajectory for all of them. The paper's
trials are made by the same law, once with a trajectory for all columns and once with one for each.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from coterie.paper.agreement import FALSE_ALARM, TRIALS, by_formula, by_trials, combined_error, family_level

COLUMNS = 10
MEANS = np.linspace(886.0, 1120.0, COLUMNS)


def smooth(trials: int, shared: bool, rng: np.random.Generator) -> np.ndarray:
    """Like Iris: a deviation of about 6 %, columns correlated by 0.8 and more if they share a trajectory."""
    if not shared:
        return np.asarray(MEANS + 60.0 * rng.standard_normal((trials, COLUMNS)))
    steps = 60.0 * np.sqrt(0.1) * rng.standard_normal((trials, COLUMNS))
    start = 60.0 * np.sqrt(0.9) * rng.standard_normal((trials, 1))
    return np.asarray(MEANS + start + steps)


def lumpy(trials: int, shared: bool, rng: np.random.Generator) -> np.ndarray:
    """Like Yeast: one of two moments a thousand apart, the later one with a probability of 2 to 29 %."""
    uniform = np.repeat(rng.random((trials, 1)), COLUMNS, axis=1) if shared else rng.random((trials, COLUMNS))
    late = uniform < np.linspace(0.02, 0.29, COLUMNS)
    return np.asarray(14_000.0 + 1000.0 * late + 20.0 * rng.standard_normal((trials, COLUMNS)))


def farthest(ours: list[np.ndarray], theirs: list[np.ndarray], off: float = 1.0) -> float:
    """Of a table, in combined standard errors; `off`: our first row is off by this factor."""
    found = []
    for place, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        error = combined_error(own.std(axis=0, ddof=1), len(own), other.std(axis=0, ddof=1))
        means = own.mean(axis=0) * (off if place == 0 else 1.0)
        found.append(np.abs((means - other.mean(axis=0)) / error).max())
    return float(max(found))


def table(trials: int, shared: bool, rng: np.random.Generator) -> list[np.ndarray]:
    return [smooth(trials, shared, rng), smooth(trials, shared, rng), lumpy(trials, shared, rng)]


TABLES = 240


@pytest.mark.parametrize("shared", [True, False])
def test_false_alarms_are_rare(shared: bool) -> None:
    """So many tables that agree, 64 trials each. A correct level fails this with probability below 1e-4; on the same
    tables "within 3 standard errors" fails several times as often."""
    alarms, by_three = 0, 0
    for seed in range(TABLES):
        rng = np.random.default_rng([1, seed])
        ours, theirs = table(64, True, rng), table(TRIALS, shared, rng)
        far = farthest(ours, theirs)
        by_three += far > 3.0
        alarms += far > by_formula(3 * COLUMNS, 64) and far > family_level(ours, seed=seed)
    assert alarms <= binom.isf(1e-4, TABLES, FALSE_ALARM)
    assert by_three > 2 * FALSE_ALARM * TABLES
    assert alarms < by_three


@pytest.mark.parametrize("trials", [64, 256])
def test_five_per_cent_off_is_found(trials: int) -> None:
    """In one row of three, in every one of 8 tables: 5 % are about 6 standard errors with 64 trials."""
    for seed in range(8):
        rng = np.random.default_rng([2, seed])
        ours, theirs = table(trials, True, rng), table(TRIALS, True, rng)
        assert farthest(ours, theirs, off=1.05) > family_level(ours, seed=seed)


def test_level_by_formula_is_that_of_independent_means() -> None:
    """The farthest of 40 independent Student variables, by simulation: 1 % are beyond, within 5 standard errors."""
    level = by_formula(40, 64)
    assert 3.6 < level < 3.8
    draws = np.random.default_rng(3).standard_t(64 + TRIALS - 2, size=(40_000, 40))
    beyond = (np.abs(draws) > level).any(axis=1).mean()
    assert abs(beyond - FALSE_ALARM) < 5 * np.sqrt(FALSE_ALARM / 40_000)
    assert by_formula(80, 64) > level


def test_level_by_trials_grows_with_lumps_and_forgets_where_ours_are() -> None:
    rng = np.random.default_rng(4)
    rare = 14_000.0 + 1000.0 * (rng.random((64, 1)) < 0.02) + 0.1 * rng.standard_normal((64, COLUMNS))
    assert by_trials([rare]) > by_formula(COLUMNS, 64) > 0.9 * by_trials([smooth(64, True, rng)])
    own = table(64, True, rng)
    assert by_trials([2.0 * row + 7.0 for row in own]) == pytest.approx(by_trials(own))
    assert by_trials([np.full((8, COLUMNS), 5.0)]) == 0.0  # nothing varies
    assert by_trials([np.full((1, COLUMNS), 5.0)]) == 0.0
