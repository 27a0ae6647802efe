"""How often a frozen list proves anything false, and what of it step-down pairs do: by thousands of runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most
from scipy.stats import multivariate_normal

from coterie.methods.deadline.statements import Bet, Statements, log_factors, memberships, step_down
from coterie.problem.families import noise_of
from coterie.session import partial

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


def test_factors_equal_their_formula() -> None:
    """docs/DEADLINE.md, section 3: densities of the difference of two means, one by one."""
    rng = np.random.default_rng(2)
    contrasts, variances = rng.normal(size=(5, 3)), rng.uniform(0.2, 2.0, 5)
    bet = Bet(rng.normal(size=(4, 3)), rng.uniform(0.1, 1.0, 4), rng.dirichlet(np.ones(4), 5))
    for group in range(4):
        others = [k for k in range(4) if k != group]
        expected = []
        for x, v, weights in zip(contrasts, variances, bet.weights, strict=True):
            density = sum(
                weights[k] / weights[others].sum()
                * multivariate_normal.pdf(x, bet.centers[k] - bet.centers[group],
                                          v + bet.variances[k] + bet.variances[group])
                for k in others
            )  # fmt: skip
            expected.append(np.log(density / multivariate_normal.pdf(x, np.zeros(3), v)))
        np.testing.assert_allclose(log_factors(contrasts, variances, bet, group), expected)


def plain_pairs(evidence: np.ndarray, most_equal: int, level: float) -> set[tuple[int, int]]:
    """docs/DEADLINE.md, section 2, pair after pair: the strongest that is left, if it reaches the level of all left."""
    left = {(i, j): evidence[i, j] for i in range(len(evidence)) for j in range(i)}
    settled: set[tuple[int, int]] = set()
    while left:
        pair = max(left, key=lambda pair: left[pair])
        if left[pair] < level + np.log(min(most_equal, len(left))):
            break
        settled.add(pair)
        del left[pair]
    return settled


def step_down_of(evidence: np.ndarray, most_equal: int, level: float, monkeypatch: pytest.MonkeyPatch) -> Any:
    def unequal(stacks: Any, noise: Any, equal: int, log_inverse_error: float) -> np.ndarray:
        return np.asarray(evidence >= log_inverse_error + np.log(equal))

    monkeypatch.setattr(partial, "unequal", unequal)
    stacks: Any = None
    return partial.step_down(stacks, noise_of(1.0, 1), most_equal, level)


def symmetric(half: np.ndarray) -> np.ndarray:
    low = np.tril(half, -1)
    return np.asarray(low + low.T + np.diag(np.full(len(half), -np.inf)))


def test_pairs_step_down_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, more = np.random.default_rng(4), 0
    for _ in range(300):
        evidence = symmetric(rng.exponential(3.0, (6, 6)) + 1.0)
        most_equal = int(rng.integers(3, 16))
        found = step_down_of(evidence, most_equal, 1.0, monkeypatch)
        expected = plain_pairs(evidence, most_equal, 1.0)
        assert {(int(i), int(j)) for i, j in zip(*np.nonzero(np.tril(found)), strict=True)} == expected
        more += len(expected) > int((np.tril(evidence, -1) >= 1.0 + np.log(most_equal)).sum())
    assert more > 20, "else the levels never fell"


@pytest.mark.guarantee
def test_pairs_step_down_error_rate_within_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of equal items have E = 1/U, which reaches x with probability 1/x; all others are settled at once."""
    rng, labels = np.random.default_rng(5), np.array([0, 0, 0, 1, 1, 2])
    equal = labels[:, None] == labels
    wrong = 0
    for _ in range(RUNS):
        drawn = symmetric(-np.log(rng.random((6, 6))))
        evidence = np.where(equal, drawn, 1e3)
        wrong += bool((step_down_of(evidence, 10, -np.log(DELTA), monkeypatch) & equal).any())
    assert_rate_at_most(DELTA, wrong, RUNS, Guarantee("known", "deadline", case="pairs step down"))
    assert wrong > 0.1 * RUNS, "else nothing was tested"
