"""Exact tests of finished tables against plain re-implementations: SciPy's tests, enumerations, brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from coterie.certificate.arithmetic import table_tests
from coterie.evidence.exact import rearranging
from coterie.evidence.exact.differences import linked, near_pairs, references
from coterie.evidence.exact.fits import (
    PairTests,
    Ranges,
    all_partitions,
    critical,
    fitting,
    groupings,
    most_equal_pairs,
)
from coterie.evidence.exact.pair_tests import test_pairs as pair_tests
from coterie.evidence.exact.rearranging import rank_sum_p
from coterie.problem.families import Counts, Exponential, Poisson, noise_of


def table(
    rng: np.random.Generator, sizes: list[int], means: list[float], dim: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    arms = np.repeat(np.arange(len(sizes)), sizes)
    return arms, np.array(means)[arms][:, None] + rng.normal(size=(arms.size, dim))


def holm(p: np.ndarray, delta: float) -> int:
    ordered = np.sort(p)
    passed = ordered <= delta / np.arange(len(p), 0, -1)
    return len(p) if passed.all() else int(np.argmin(passed))


@pytest.mark.parametrize("freedom", [2.0, 7.0, 60.0, math.inf])
def test_one_group_is_the_studentised_range(freedom: float) -> None:
    t = np.array([1.0, 2.5, 4.0])
    for size in (2, 3, 8):
        law = stats.studentized_range.sf(math.sqrt(2.0) * t, size, 1e6 if math.isinf(freedom) else freedom)
        np.testing.assert_allclose(Ranges(t, freedom).p_values([size]), law, atol=3e-6)
    assert Ranges(np.array([critical([4, 2], freedom, 0.03)]), freedom).p_values([4, 2])[0] == pytest.approx(0.03)


def test_several_groups_share_one_standard_deviation() -> None:
    rng, count, freedom = np.random.default_rng(1), 200_000, 5
    s = np.sqrt(rng.chisquare(freedom, count) / freedom)
    largest = np.zeros(count)
    for size in (3, 2, 2):
        means = rng.normal(size=(count, size))
        largest = np.maximum(largest, (means.max(axis=1) - means.min(axis=1)) / s / math.sqrt(2.0))
    t = np.array([2.0, 3.5])
    seen = (largest[:, None] >= t).mean(axis=0)
    np.testing.assert_allclose(Ranges(t, freedom).p_values([3, 2, 2]), seen, atol=5 * 0.5 / math.sqrt(count))


def test_permutations_are_those_of_a_plain_enumeration() -> None:
    rng = np.random.default_rng(2)
    arms, rows = table(rng, [3, 5], [0.0, 1.0])
    rows = np.round(rows)  # ties
    values, ranks = rows[:, 0], stats.rankdata(rows[:, 0])

    def larger(chosen: tuple[int, ...]) -> float:
        found = []
        for x in (values, ranks):
            rest = [k for k in range(8) if k not in chosen]
            found.append(abs(x[list(chosen)].mean() - x[rest].mean()) / x.std())
        return float(max(found))

    seen = larger((0, 1, 2))
    every = [larger(some) for some in itertools.combinations(range(8), 3)]
    p = np.mean(np.array(every) >= seen - 1e-9)
    assert pair_tests(arms, rows, 2, noise_of(None, 1), 0.05).p[0, 1] == pytest.approx(p)


def test_classical_tests_of_two_items() -> None:
    rng = np.random.default_rng(3)
    arms, rows = table(rng, [6, 9], [0.0, 1.0])
    first, second = rows[arms == 0, 0], rows[arms == 1, 0]
    assert pair_tests(arms, rows, 2, noise_of("gaussian", 1), 0.05).p[0, 1] == pytest.approx(
        stats.ttest_ind(first, second).pvalue
    )
    assert rank_sum_p(first, second) == pytest.approx(stats.mannwhitneyu(first, second, method="exact").pvalue)
    hits = rng.binomial(7, [[0.2], [0.5]], size=(2, 6)).reshape(-1, 1).astype(float)
    own = pair_tests(np.repeat([0, 1], 6), hits, 2, noise_of(Counts(7), 1), 0.05).p[0, 1]
    some, others = hits[:6].sum(), hits[6:].sum()
    assert own == pytest.approx(stats.fisher_exact([[some, 42 - some], [others, 42 - others]]).pvalue)
    arms, rows = table(rng, [8, 8], [0.0, 1.0], dim=2)
    apart = rows[:8].mean(axis=0) - rows[8:].mean(axis=0)
    pooled = (np.cov(rows[:8].T) + np.cov(rows[8:].T)) / 2
    square = apart @ np.linalg.solve(pooled, apart) * 4
    assert pair_tests(arms, rows, 2, noise_of("gaussian", 2), 0.05).p[0, 1] == pytest.approx(
        stats.f.sf(square * 13 / 28, 2, 13)
    )


def test_the_order_of_the_rows_plays_no_role() -> None:
    arms, rows = table(np.random.default_rng(4), [12, 13, 12, 14], [0.0, 0.5, 1.0, 1.5])
    mixed = np.random.default_rng(5).permutation(arms.size)
    for noise in (None, {"family": "symmetric"}):
        one, other = (
            pair_tests(a, x, 4, noise_of(noise, 1), 0.05) for a, x in ((arms, rows), (arms[mixed], rows[mixed]))
        )
        assert one.seed == other.seed
        np.testing.assert_array_equal(one.p, other.p)


def test_pairs_that_differ_are_those_of_plain_closed_testing() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        n = int(rng.integers(3, 7))
        p = np.ones((n, n))
        for i, j in itertools.combinations(range(n), 2):
            p[i, j] = p[j, i] = rng.choice([1e-4, 0.004, 0.01, 0.03, 0.4])
        found = fitting(PairTests(p, "t", np.arange(n)), 0.05)
        alike, kept = set(), []
        for labels in all_partitions(n).tolist():
            pairs = [(i, j) for i, j in itertools.combinations(range(n), 2) if labels[i] == labels[j]]
            if not pairs or len(pairs) * min(p[pair] for pair in pairs) > 0.05:
                alike |= set(pairs)
                kept.append(labels)
        expected = {pair for pair in itertools.combinations(range(n), 2) if pair not in alike}
        assert {pair for pair in itertools.combinations(range(n), 2) if found.apart[pair]} == expected
        assert found.fewest == min(max(labels) + 1 for labels in kept)
        for k in range(1, n):
            assert found.with_groups(k) == [labels for labels in kept if max(labels) + 1 == k][:2]
        assert len(expected) >= holm(p[np.triu_indices(n, 1)], 0.05)


@pytest.mark.parametrize("n_items", [6, pytest.param(14, marks=pytest.mark.slow)])
def test_more_pairs_than_by_tukey_and_by_holm(n_items: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(8 if n_items < 10 else 2):
        arms, rows = table(rng, [5 + k % 3 for k in range(n_items)], (rng.integers(0, 4, n_items) * 1.3).tolist())
        tests = pair_tests(arms, rows, n_items, noise_of("gaussian", 1), 0.05)
        tukey = stats.tukey_hsd(*(rows[arms == k, 0] for k in range(n_items))).pvalue < 0.05 - 1e-6
        np.fill_diagonal(tukey, False)
        assert not (tukey & ~fitting(tests, 0.05).apart).any()
        plain = PairTests(tests.p, "t", tests.order)
        assert np.triu(fitting(plain, 0.05).apart).sum() >= holm(tests.p[np.triu_indices(n_items, 1)], 0.05)


def test_pairs_that_can_be_alike_together_are_never_too_few() -> None:
    rng = np.random.default_rng(8)
    for trial in range(60):
        n = 6
        apart = np.triu(rng.random((n, n)) < 0.4, 1)
        if trial % 2:  # means on a line, in a row: then the bound is exact
            means = np.sort(rng.normal(size=n))
            apart = np.triu(np.abs(means[:, None] - means) > 0.8, 1)
        apart = apart | apart.T
        order = np.arange(n) if trial % 2 else rng.permutation(n)
        most = max(
            sum(labels[i] == labels[j] for i, j in itertools.combinations(range(n), 2))
            for labels in all_partitions(n).tolist()
            if not any(apart[i, j] for i, j in itertools.combinations(range(n), 2) if labels[i] == labels[j])
        )
        found = most_equal_pairs(apart, order)
        assert found >= max(1, most)
        assert not trial % 2 or found == max(1, most)


def test_groupings_are_those_of_brute_force() -> None:
    rng = np.random.default_rng(9)
    for _ in range(40):
        apart = np.triu(rng.random((7, 7)) < 0.6, 1)
        apart = apart | apart.T
        for k in (2, 3, 4):
            own = [
                labels
                for labels in all_partitions(7).tolist()
                if max(labels) == k - 1
                and not any(apart[i, j] for i, j in itertools.combinations(range(7), 2) if labels[i] == labels[j])
            ]
            found = groupings(apart, k, most=10_000)
            assert sorted(found or []) == sorted(own)


def test_groups_that_intervals_prove() -> None:
    means = np.array([0.0, 0.2, 5.0, 5.1, 9.0])
    apart = np.abs(means[:, None] - means)
    chosen = references(apart < 1.0, apart > 2.0)
    assert chosen is not None
    assert len(chosen) == 3
    assert references(apart < 0.05, apart > 2.0) is None
    assert near_pairs(apart < 1.0, apart > 2.0, apart) == [0, 0, 1, 1, 2]
    assert near_pairs(apart < 1.0, apart > 8.5, apart) is None
    assert linked(apart - 0.1, apart + 0.1, apart, 3) == [0, 0, 1, 1, 2]
    assert linked(apart - 3.0, apart + 3.0, apart, 3) is None


@pytest.mark.parametrize(("first", "second"), [([3.0, 1.0], [9.0, 4.0, 7.0]), ([0.0], [0.0, 5.0]), ([0.0], [0.0])])
def test_rates_of_events_are_compared_by_the_binomial_law(first: list[float], second: list[float]) -> None:
    """Twice the smaller tail, summed plainly."""
    arms, rows = np.repeat([0, 1], [len(first), len(second)]), np.array([*first, *second])[:, None]
    own = pair_tests(arms, rows, 2, noise_of(Poisson(), 1), 0.05).p[0, 1]
    total, hits, share = int(rows.sum()), int(sum(first)), len(first) / len(arms)
    law = [math.comb(total, s) * share**s * (1 - share) ** (total - s) for s in range(total + 1)]
    assert own == pytest.approx(min(1.0, 2.0 * min(sum(law[: hits + 1]), sum(law[hits:]))))


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_waiting_times_are_compared_by_the_f_ratio_of_their_means(scale: float) -> None:
    rng = np.random.default_rng(8)
    first, second = rng.exponential(scale, 4), rng.exponential(3.0 * scale, 7)
    arms, rows = np.repeat([0, 1], [4, 7]), np.concatenate([first, second])[:, None]
    own = pair_tests(arms, rows, 2, noise_of(Exponential(), 1), 0.05).p[0, 1]
    ratio = stats.f(8, 14).cdf(first.mean() / second.mean())
    assert own == pytest.approx(2.0 * min(ratio, 1.0 - ratio))


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("kind", ["any", "symmetric"])
def test_of_very_many_rows_means_are_compared_and_the_verifier_has_the_same_p(
    monkeypatch: pytest.MonkeyPatch, kind: str, dim: int
) -> None:
    monkeypatch.setattr(rearranging, "_MOST_DEALT", 9_999 * 250)
    monkeypatch.setattr(table_tests, "DEALT", 9_999 * 250)
    noise = noise_of(kind, dim)
    arms, rows = table(np.random.default_rng(4), [400, 390, 400, 30], [0.0, 0.0, 0.5, 1.5], dim)
    rows = rows.round(1)  # with ties, which sums in another order would break
    p = pair_tests(arms, rows, 4, noise, 0.05).p
    again = table_tests.TableTests([rows[arms == arm] for arm in range(4)], noise, 0.05)
    assert [p[pair] for pair in again.pairs] == list(again.p.values())
    assert p[0, 1] > 0.01
    assert max(p[0, 2], p[1, 2], p[0, 3], p[2, 3]) < 0.01


def test_means_of_very_many_rows_error_rate_within_delta() -> None:
    """Sizes as different as can be: 30 and 2,000 rows of 250; 5 of 400 by chance in fewer than 1 of 10,000 runs."""
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(400):
        first, second = rearranging.fewer_rows(rng.exponential(size=(30, 1)), rng.exponential(size=(2_000, 1)), 250)
        assert (len(first), len(second)) == (30, 220)
        wrong += stats.mannwhitneyu(first[:, 0], second[:, 0]).pvalue < 0.001
    assert wrong < 5
    first, second = rearranging.fewer_rows(np.ones((1_000, 2)), np.ones((4_000, 2)), 250)
    assert len(first) + len(second) <= 250
    assert min(len(first), len(second)) >= 40


def test_pairs_with_about_as_many_rows_share_the_draws() -> None:
    some = [rearranging.fewer_rows(np.ones((n, 1)), np.ones((n + 90, 1)), 1_250) for n in range(9_000, 10_000, 7)]
    assert len({(len(first), len(second)) for first, second in some}) <= 9
    assert min(len(first) for first, _ in some) >= 560
