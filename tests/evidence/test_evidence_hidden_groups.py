"""Evidence that a group hides two: two implementations that share no code, and what it may depend on."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import coterie
from coterie.certificate.arithmetic.hidden_groups import NEAR, hidden_groups
from coterie.evidence.hidden_bets import bet_evidence, bounded_factors, splits_of, symmetric_factors, variance_factors
from coterie.evidence.hidden_groups import hidden_evidence
from coterie.evidence.homogeneity import group_evidence
from coterie.problem.families import noise_of

NOISES: dict[str, Any] = {
    "known": 1.0,
    "any": None,
    "gaussian": "gaussian",
    "scalar": coterie.Gaussian("scalar"),
    "counts": coterie.Counts(20),
    "single": coterie.Counts(1),
    "bounded": coterie.Bounded(-1, 9),
    "at-most": coterie.AtMost(1.5),
    "symmetric": coterie.Symmetric(),
}


def results(name: str, n: int, dim: int, apart: float, rounded: bool, seed: int) -> tuple[Any, Any, Any]:
    """Items, results and labels: a group of n items, every second one `apart` from the others, and one of two items."""
    rng = np.random.default_rng((seed, n, dim))
    labels = rng.permutation(np.repeat([0, 1], [n, 2]))
    arms = rng.permutation(np.repeat(np.arange(n + 2), rng.integers(2, 7, n + 2)))
    level = np.where(labels == 0, apart * (np.arange(n + 2) % 2), 5.0)[arms]
    if name in ("counts", "single"):
        trials = NOISES[name].trials
        return arms, rng.binomial(trials, (0.2 + 0.1 * level)[:, None], (arms.size, dim)).astype(float), labels
    x = level[:, None] + rng.standard_normal((arms.size, dim))
    x = np.clip(x, -1.0, 9.0) if name == "bounded" else x
    return arms, np.round(x) if rounded else x, labels


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(("n", "dim"), [(2, 1), (7, 2), (15, 1), (90, 1)])
@pytest.mark.parametrize("name", NOISES)
def test_two_implementations_agree(name: str, n: int, dim: int, rounded: bool) -> None:
    noise = noise_of(NOISES[name], dim)
    for apart in (0.0, 3.0):
        arms, values, labels = results(name, n, dim, apart, rounded, 1)
        mine = hidden_evidence(noise, arms, values, labels, 2)
        its = hidden_groups(noise, arms.tolist(), values.tolist(), labels, 2)
        exact = noise.kind in ("known", "gaussian", "counts")
        assert np.isfinite(mine).all()
        assert (np.abs(mine - its) <= (1e-9 if exact else NEAR) * np.maximum(1.0, np.abs(its))).all()


def test_weights_of_all_splits_sum_to_one() -> None:
    for n in range(2, 11):
        splits = splits_of(np.arange(float(n)))
        assert splits.every
        assert np.exp(splits.log_weights).sum() == pytest.approx(1.0)
    some = splits_of(np.random.default_rng(0).standard_normal(500))
    assert not some.every
    assert np.exp(some.log_weights).sum() < 1.0
    assert some.sums(np.ones((some.n_rows, 1))).shape == (some.log_weights.size, 1)


def test_a_known_noise_by_numerical_integration() -> None:
    """Two items with two results each after a start of three: the definition, with an integral for each class."""
    arms, x = np.array([0, 1, 0, 1, 1]), np.array([0.1, 1.2, -0.4, 2.0, 1.5])

    line = np.linspace(-16.0, 16.0, 1601)
    step = line[1] - line[0]

    def density(upto: int, inside: int) -> float:
        mine, rest = (x[:upto][(arms[:upto] == inside) == own] for own in (True, False))
        of_mine, of_rest = (norm.pdf(one[:, None], line).prod(axis=0) for one in (mine, rest))
        return float(np.dot(of_mine @ norm.pdf(line[:, None], line, 2.0), of_rest)) * float(step) ** 2

    both = [sum(0.5 * density(upto, inside) for inside in (0, 1)) for upto in (5, 3)]
    best = np.prod(norm.pdf(x[3:], x[3:].mean(), 1.0))
    after_three = both[0] / both[1] / best
    two = sum(0.5 * density(2, inside) for inside in (0, 1))
    after_two = both[0] / two / np.prod(norm.pdf(x[2:], x[2:].mean(), 1.0))
    old = math.exp(group_evidence([2, 3], [[-0.15], [4.7 / 3]], [0, 0], 1)[0])
    wanted = 0.25 * old + 0.75 * (2.0 * after_three + after_two) / 3.0
    found = hidden_evidence(noise_of(1.0, 1), arms, x[:, None], np.array([0, 0]), 1)
    assert found[0] == pytest.approx(math.log(wanted), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factors", "ends"), [(bounded_factors, True), (variance_factors, False), (symmetric_factors, False)]
)
def test_bets_are_below_the_least_over_a_fine_grid_and_near_it(factors: Any, ends: bool) -> None:
    rng = np.random.default_rng(4)
    arms = np.repeat(np.arange(4), 8)
    x = rng.beta(4, 4, 32) + 0.3 * (arms > 1) if not ends else np.clip(rng.beta(4, 4, 32) + 0.3 * (arms > 1), 0, 1)
    where = np.stack([x, np.full(32, 0.15)], axis=1)
    splits = splits_of(np.arange(4.0))
    found = bet_evidence(factors, where, arms, splits, splits.log_weights, ends)
    mean = np.linspace(0.0, 1.0, 20_001) if ends else np.linspace(x.min() - 1.0, x.max() + 1.0, 20_001)
    total = 0.0
    for inside in itertools.product((False, True), repeat=4):
        if 0 < sum(inside) < 4:
            own = np.array(inside)[arms]
            up, down = factors(where[own], mean)[0].sum(axis=0), factors(where[~own], mean)[1].sum(axis=0)
            gain = np.log(np.exp(up).mean(axis=0)) + np.log(np.exp(down).mean(axis=0))
            s = sum(inside)
            total += s * (4 - s) / 10.0 / math.comb(4, s) * math.exp(gain.min())
    assert math.log(total) - 0.05 <= found <= math.log(total) + 1e-6


@pytest.mark.parametrize("factors", [bounded_factors, variance_factors, symmetric_factors])
def test_factors_have_mean_one_at_most_and_are_monotone(factors: Any) -> None:
    """By quadrature, for laws of two and three points; `u` falls and `d` grows with the mean."""
    grid = np.linspace(0.01, 0.99, 99)
    for low, high in ((0.0, 1.0), (0.2, 0.6), (0.45, 0.5)):
        x = np.array([low, 0.5 * (low + high), high])
        where = np.stack([x, np.full(3, 0.2)], axis=1)
        for share in ([0.5, 0.0, 0.5], [0.25, 0.5, 0.25]):  # symmetric, with a variance of at most 1
            mean = float(np.dot(share, x))
            for logs in factors(where, np.array([mean])):
                assert (np.einsum("i,ijk->jk", share, np.exp(logs)) <= 1.0 + 1e-12).all()
        up, down = factors(where, grid)
        assert (np.diff(up, axis=2) <= 1e-12).all()
        assert (np.diff(down, axis=2) >= -1e-12).all()


def test_only_the_group_that_hides_two_stands_out() -> None:
    for name in ("known", "any", "gaussian", "at-most", "symmetric"):
        rng = np.random.default_rng(2)
        labels, truth = np.repeat([0, 1], [6, 4]), np.repeat([0.0, 4.0, 20.0], [3, 3, 4])
        arms = np.concatenate([rng.permutation(10) for _ in range(12)])
        x = truth[arms] + rng.standard_normal(arms.size)
        found = hidden_evidence(noise_of(NOISES[name], 1), arms, x[:, None], labels, 2)
        assert found[0] > math.log(200) > 2.0 > found[1], name
        far = hidden_evidence(noise_of(NOISES[name], 1), arms, (x * 8.0 + 2.0**40)[:, None], labels, 2)
        if name not in ("known", "at-most"):  # whose units are stated
            np.testing.assert_allclose(far, found, atol=0.01)
        retired = np.where(np.arange(10) == 9, -1, labels)
        assert hidden_evidence(noise_of(NOISES[name], 1), arms, x[:, None], retired, 2)[0] > math.log(200)


def test_results_that_do_not_vary_are_no_evidence() -> None:
    for name in ("any", "gaussian", "symmetric", "bounded", "counts", "single", "known", "at-most"):
        arms = np.tile(np.arange(4), 10)
        found = hidden_evidence(noise_of(NOISES[name], 1), arms, np.ones((40, 1)), np.array([0, 0, 1, 1]), 2)
        assert (found < 1.0).all(), name
