"""How often a frozen list proves anything false, and what of it step-down pairs do: by thousands of runs."""

from __future__ import annotations

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most

from coterie.methods.deadline.statements import Bet, Statements, memberships, step_down

RUNS, DELTA = 2000, 0.3


def run_of(representatives: list[int], listed: np.ndarray, labels: np.ndarray, seed: int) -> bool:
    """Whether a list has ever proven an item different from its equal, in rounds that follow its own estimates."""
    rng, n_groups = np.random.default_rng([27, seed]), len(representatives)
    means = np.array([0.0, 1.5, 3.0])[labels][:, None]
    statements = Statements(representatives, listed, -np.log(DELTA))
    sums, counts = means + rng.standard_normal(means.shape), np.ones(labels.size, dtype=np.int64)
    guess = np.abs(sums - sums[representatives].T).argmin(axis=1)
    guess[representatives] = np.arange(n_groups)
    for number in range(1, 13):
        likely, centers, weights = memberships(sums, counts, guess, n_groups)
        wanted = np.flatnonzero(statements.unproven.any(axis=1))
        pulls = {int(item): 1 for item in wanted} | dict.fromkeys(representatives, 3)
        items = sorted(pulls)
        rows = 0.9 * likely[items] + 0.1 / n_groups
        for place, item in enumerate(items):
            if item in representatives:
                rows[place] = np.arange(n_groups) == representatives.index(item)
        statements.add_round(number, [[item, pulls[item]] for item in items], Bet(centers, 1.0 / weights, rows))
        for item in items:
            for _ in range(pulls[item]):
                x = means[item] + rng.standard_normal(1)
                sums[item] += x
                counts[item] += 1
                statements.take(number, item, x)
        guess = memberships(sums, counts, guess, n_groups)[0].argmax(axis=1)
        guess[representatives] = np.arange(n_groups)
        proven = statements.pairs()
        if (proven & (labels[:, None] == labels)).any():
            return True
    return False


def errors(representatives: list[int], listed: np.ndarray, labels: np.ndarray) -> int:
    return sum(run_of(representatives, listed, labels, seed) for seed in range(RUNS))


@pytest.mark.guarantee
def test_lists_error_rate_within_delta() -> None:
    """Every statement is listed, those of an item's own group too: one of each item is void."""
    labels = np.arange(15) % 3
    listed = np.ones((15, 3), dtype=bool)
    listed[:3] = False
    wrong = errors([0, 1, 2], listed, labels)
    assert_rate_at_most(DELTA, wrong, RUNS, Guarantee("known", "deadline", case="lists of statements"))
    assert wrong > 0.02 * RUNS, "else nothing was tested"


@pytest.mark.guarantee
def test_lists_with_equal_representatives_error_rate_within_delta() -> None:
    """Two representatives are of one group."""
    labels = np.arange(9) % 3
    listed = np.ones((9, 3), dtype=bool)
    listed[[0, 1, 3]] = False
    of = Guarantee("known", "deadline", case="equal representatives")
    assert_rate_at_most(DELTA, errors([0, 1, 3], listed, labels), RUNS, of)


def test_step_down_is_the_largest_set() -> None:
    """By trying all thresholds: every statement of a set reaches the level for the items that it leaves open."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        unproven = rng.random((6, 3)) < 0.7
        evidence = rng.exponential(2.0, (6, 3))
        found, level = step_down(evidence, unproven, 1.0), 1.0
        best = np.zeros_like(unproven)
        for threshold in [*np.unique(evidence), np.inf]:
            tried = unproven & (evidence >= threshold)
            left = int((unproven & ~tried).any(axis=1).sum())
            if (evidence[tried] >= level + np.log1p(left)).all() and tried.sum() > best.sum():
                best = tried
        assert np.array_equal(found, best)
