"""Evidence that a group is a mixture: against plain loops, against a search for the common mean, and its guarantee."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

from coterie.evidence import homogeneity
from coterie.evidence.homogeneity import group_evidence, mixed_threshold

ALARM = 1e-6

RHOS = [4.0 ** (3 - i) for i in range(11)]
REST_RHOS = [4.0 ** (-2 * j) for j in range(6)]


def log_sum(logs: list[float]) -> float:
    top = max(logs)
    return top + math.log(sum(math.exp(one - top) for one in logs))


def plain_group(pulls: list[int], means: list[list[float]]) -> float:
    """The formula of the module, by loops."""
    n, dim = len(pulls), len(means[0])
    if n < 2:
        return 0.0
    spread = []
    for rho in RHOS:
        gs = [rho * count**2 / (1 + rho * count) for count in pulls]
        center = [sum(gs[m] * means[m][q] for m in range(n)) / sum(gs) for q in range(dim)]
        total = 0.0
        for m in range(n):
            apart = sum((means[m][q] - center[q]) ** 2 for q in range(dim))
            total += 0.5 * gs[m] * apart - 0.5 * dim * math.log(1 + rho * pulls[m])
        spread.append(total)
    odd = []
    for m in range(n):
        count = sum(pulls) - pulls[m]
        rest = [sum(pulls[r] * means[r][q] for r in range(n) if r != m) / count for q in range(dim)]
        apart = sum((means[m][q] - rest[q]) ** 2 for q in range(dim))
        for rho in RHOS:
            g = rho * pulls[m] ** 2 / (1 + rho * pulls[m])
            for other in REST_RHOS:
                h = other * count**2 / (1 + other * count)
                room = math.log((1 + rho * pulls[m]) * (1 + other * count))
                odd.append(0.5 * g * h / (g + h) * apart - 0.5 * dim * room)
    halves = [log_sum(spread) - math.log(11), log_sum(odd) - math.log(66 * n)]
    return log_sum(halves) - math.log(2)


def plain(pulls: Any, means: Any, labels: Any, n_groups: int) -> list[float]:
    found = []
    for k in range(n_groups):
        arms = [m for m, label in enumerate(labels) if label == k]
        found.append(plain_group([int(pulls[m]) for m in arms], [means[m].tolist() for m in arms]))
    return found


def drawn(seed: int, apart: float = 1.0) -> tuple[Any, Any, Any, int]:
    rng = np.random.default_rng(seed)
    n_arms, n_groups, dim = int(rng.integers(2, 14)), int(rng.integers(1, 5)), int(rng.integers(1, 7))
    pulls = rng.integers(1, 40, n_arms) ** int(rng.integers(1, 3))
    means = apart * rng.standard_normal((n_arms, dim))
    return pulls, means, rng.integers(0, n_groups, n_arms), n_groups


@pytest.mark.parametrize("apart", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(12))
def test_evidence_matches_oracle(seed: int, apart: float) -> None:
    pulls, means, labels, n_groups = drawn(seed, apart)
    np.testing.assert_allclose(
        group_evidence(pulls, means, labels, n_groups), plain(pulls, means, labels, n_groups), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("seed", range(4))
def test_parts_make_the_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arms and dimensions are taken some at a time; how many changes nothing."""
    case = drawn(seed)
    whole = group_evidence(*case)
    monkeypatch.setattr(homogeneity, "_ARMS_AT_ONCE", 3)
    monkeypatch.setattr(homogeneity, "_NUMBERS_AT_ONCE", 5)
    np.testing.assert_allclose(group_evidence(*case), whole, rtol=1e-12, atol=1e-12)


def test_evidence_is_the_least_over_the_common_mean() -> None:
    """Oracle of the closed forms: products of mixtures, each by its definition, minimised over μ by a search."""
    rng = np.random.default_rng(5)
    pulls, means = np.array([3, 1, 20, 7]), rng.standard_normal((4, 2)) * 1.5

    def log_mixture(count: float, x: Any, rho: float, mu: Any) -> float:
        """∫ N(θ − μ; 0, ρ) exp(likelihood ratio of θ against μ) dθ, coordinate by coordinate, on a grid."""
        total = 0.0
        for q in range(2):
            shift = x[q] - mu[q]
            peak = rho * count * shift / (1 + rho * count)
            width = math.sqrt(rho / (1 + rho * count))
            theta = peak + width * np.linspace(-12, 12, 4001)
            logs = count * (theta * shift - 0.5 * theta**2) - 0.5 * theta**2 / rho
            dense = np.exp(logs - logs.max())
            total += logs.max() + math.log(dense.sum() * (theta[1] - theta[0]) / math.sqrt(2 * math.pi * rho))
        return total

    def least(parts: list[tuple[float, Any, float]]) -> float:
        found = minimize(lambda mu: sum(log_mixture(*part, mu) for part in parts), means.mean(axis=0), tol=1e-10)
        return float(found.fun)

    rhos, rest_rhos = RHOS[2::4], REST_RHOS[::3]
    spread = [least([(count, x, rho) for count, x in zip(pulls, means, strict=True)]) for rho in rhos]
    odd = []
    for m in range(4):
        others = np.arange(4) != m
        rest = (pulls[others].sum(), np.average(means[others], axis=0, weights=pulls[others]))
        odd += [least([(pulls[m], means[m], rho), (*rest, other)]) for rho in rhos for other in rest_rhos]
    expected = log_sum([log_sum(spread) - math.log(len(spread)), log_sum(odd) - math.log(len(odd))]) - math.log(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(homogeneity, "SCALES", np.array(rhos))
        patch.setattr(homogeneity, "REST_SCALES", np.array(rest_rhos))
        (found,) = group_evidence(pulls, means, np.zeros(4, dtype=int), 1)
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_grids_are_those_of_the_formula() -> None:
    assert homogeneity.SCALES.tolist() == RHOS
    assert homogeneity.REST_SCALES.tolist() == REST_RHOS
    assert mixed_threshold(5) == math.log(500)


@pytest.mark.parametrize("seed", range(6))
def test_evidence_keeps_under_what_does_not_matter(seed: int) -> None:
    """Another order of the arms, other numbers of the groups, a rotation, and another origin of each group."""
    rng = np.random.default_rng(seed)
    pulls, means, labels, n_groups = drawn(seed)
    found = group_evidence(pulls, means, labels, n_groups)
    order, names = rng.permutation(pulls.size), rng.permutation(n_groups)
    turn = np.linalg.qr(rng.standard_normal((means.shape[1],) * 2))[0]
    origins = 1e6 * rng.standard_normal((n_groups, means.shape[1]))
    moved = (means @ turn + origins[labels])[order]
    again = group_evidence(pulls[order], moved, names[labels[order]], n_groups)
    np.testing.assert_allclose(again[names], found, rtol=1e-6, atol=1e-6)


def test_far_data_lose_no_digits() -> None:
    """Means that a computer holds exactly, 2^40 away: the same to the last bit."""
    pulls, labels = np.array([4, 8, 2, 16]), np.array([0, 0, 1, 1])
    means = np.array([[0.25, 1.5], [0.75, -2.0], [3.0, 0.5], [2.5, 0.125]])
    assert (group_evidence(pulls, means + 2.0**40, labels, 2) == group_evidence(pulls, means, labels, 2)).all()


def test_nothing_speaks_for_a_group_of_one_or_none() -> None:
    found = group_evidence([5, 3, 9], [[1.0], [2.0], [50.0]], [0, 0, 3], 5)
    assert found[0] != 0.0
    assert found[1:].tolist() == [0.0] * 4
    assert group_evidence([5, 3], [[1.0], [2.0]], [1, 0], 2).tolist() == [0.0, 0.0]


def test_arms_without_results_count_for_nothing() -> None:
    """Wherever they are said to lie."""
    found = [group_evidence([5, 3, 0], [[1.0], [2.0], [place]], [0, 0, 0], 1)[0] for place in (900.0, -1.0)]
    assert found[0] == found[1]
    assert group_evidence([0, 0], [[0.0], [0.0]], [0, 0], 1).tolist() == [0.0]


@pytest.mark.parametrize(("apart", "few"), [(5.0, False), (0.0, True)])
def test_a_mixture_is_told_from_a_group(apart: float, few: bool) -> None:
    rng = np.random.default_rng(0)
    means = rng.standard_normal((20, 2)) / 2 + apart * (np.arange(20) % 2)[:, None]
    found = group_evidence(np.full(20, 4), means, np.zeros(20, dtype=int), 1)[0]
    assert (found < mixed_threshold(1)) == few


def test_many_arms_take_little_room() -> None:
    """200 000 arms in 8 dimensions: some copies of the input, and a few numbers for each arm."""
    rng = np.random.default_rng(1)
    n_arms, dim = 200_000, 8
    pulls, means, labels = rng.integers(1, 9, n_arms), rng.standard_normal((n_arms, dim)), rng.integers(0, 2000, n_arms)
    tracemalloc.start()
    found = group_evidence(pulls, means, labels, 2000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n_arms * (dim + 60)
    assert found[7] == pytest.approx(plain(pulls, means, np.where(labels == 7, 0, 1), 1)[0], rel=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([1, 2], [[1.0]], [0, 0], 1), r"got \(2,\), \(1, 1\) and \(2,\)"),
        (([1, 2], [1.0, 2.0], [0, 0], 1), r"shapes \(M,\), \(M, d\) and \(M,\)"),
        (([1, 2], [[1.0], [2.0]], [0, 2], 2), r"labels must be integers in 0\.\.1"),
        (([1, 2], [[1.0], [2.0]], [0.0, 1.0], 2), r"labels must be integers in 0\.\.1"),
        (([1, -2], [[1.0], [2.0]], [0, 0], 1), r"pulls must not be negative, got -2\.0"),
        (([1, 2], [[1.0], [np.nan]], [0, 0], 1), "means must be finite"),
        (([1, 2], [[1.0], [2.0]], [0, 0], 0), "n_groups must be at least 1, got 0"),
    ],
)
def test_bad_input_is_refused(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        group_evidence(*given)


# The guarantee. A wrong formula, with half the price for the unknown means, stands beside it: the tests would see it.


def at_most_one_limit(runs: int, cap: float) -> float:
    """What the mean of `runs` values in [0, cap] of expectation at most 1 exceeds with probability below ALARM.

    Their variance is at most cap, for E[X²] ≤ cap·E[X]; Bernstein's inequality.
    """
    log = math.log(1 / ALARM)
    return 1.0 + math.sqrt(2 * cap * log / runs) + cap * log / (3 * runs)


@pytest.mark.guarantee
@pytest.mark.parametrize(
    ("pulls", "dim"), [([1, 1], 1), ([3, 40], 2), ([1, 5, 2, 30], 1), ([8] * 6, 3), ([1] * 20, 1), ([200, 1, 1], 1)]
)
def test_the_mean_of_the_evidence_is_at_most_one(pulls: list[int], dim: int) -> None:
    """20 000 draws of equal arms at fixed counts; E is cut at 20. False alarm: at most ALARM each."""
    rng, runs, cap, count = np.random.default_rng(len(pulls)), 20_000, 20.0, len(pulls)
    scale = 1 / np.sqrt(np.tile(pulls, runs))[:, None]
    means = scale * rng.standard_normal((runs * count, dim))
    logs = group_evidence(np.tile(pulls, runs), means, np.repeat(np.arange(runs), count), runs)
    mean = np.minimum(np.exp(logs), cap).mean()
    wrong = np.minimum(np.exp(logs + 0.25 * dim * np.log1p(pulls).sum()), cap).mean()
    print(f"counts {pulls}, d = {dim}: mean {mean:.3f}; with half the price {wrong:.3f}")
    assert mean <= at_most_one_limit(runs, cap)
    assert wrong > at_most_one_limit(runs, cap) or sum(pulls) < 3


@pytest.mark.guarantee
def test_evidence_under_an_adaptive_rule_error_rate_within_level() -> None:
    """2000 runs of 60 results of 5 equal arms, the next always of the arm that lies farthest from the others' mean.

    The evidence is looked at after each result. It ever reaches log 20 with probability at most 0.05, and its mean when
    it first reaches log 5, or after 60 results, is at most 1. False alarm: at most ALARM each. The wrong formula fails.
    """
    rng, runs, dim = np.random.default_rng(11), 2000, 2
    sums, pulls = rng.standard_normal((runs, 5, dim)), np.ones((runs, 5), dtype=int)
    top, top_wrong, last = (np.full(runs, -math.inf) for _ in range(3))
    for _ in range(60):
        means = sums / pulls[:, :, None]
        logs = group_evidence(pulls.ravel(), means.reshape(-1, dim), np.repeat(np.arange(runs), 5), runs)
        top_wrong = np.maximum(top_wrong, logs + 0.25 * dim * np.log1p(pulls).sum(axis=1))
        last = np.where(top < math.log(5), logs, last)
        top = np.maximum(top, logs)
        rest = (sums.sum(axis=1, keepdims=True) - sums) / (pulls.sum(axis=1, keepdims=True) - pulls)[:, :, None]
        chosen = ((means - rest) ** 2).sum(axis=2).argmax(axis=1)
        sums[np.arange(runs), chosen] += rng.standard_normal((runs, dim))
        pulls[np.arange(runs), chosen] += 1
    ever, wrong, mean = (top >= math.log(20)).sum(), (top_wrong >= math.log(20)).sum(), np.exp(last).clip(0, 20).mean()
    print(f"ever at log 20: {ever} of {runs}, with half the price {wrong}; mean when stopped {mean:.3f}")
    assert ever <= binom.isf(ALARM, runs, 0.05) < wrong
    assert mean <= at_most_one_limit(runs, 20.0)
