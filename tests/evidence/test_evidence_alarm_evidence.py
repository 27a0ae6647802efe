"""The evidence of the alarms against plain oracles, and what it needs to speak up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, gamma, logistic, norm, t

from coterie.evidence.faults import (
    DEVIATIONS,
    OUTLIERS,
    SLOPES,
    evidence_against_bound,
    failure_evidence,
    item_evidence_against_noise,
    pair_course,
    pair_evidence_against_noise,
)
from coterie.evidence.order import (
    BETS,
    SHARES,
    SHIFTS,
    STAKES,
    dependence_evidence,
    fixed_noise,
    lateness_weights,
    log_gamma_tail,
    order_evidence,
    places,
    ranks_among_earlier,
    thinned,
)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=60))
@settings(max_examples=60, deadline=None)
def test_ranks_among_earlier_matches_oracle(entries: list[tuple[int, int]]) -> None:
    arms = np.array([arm for arm, _ in entries], dtype=np.int64)
    values = np.array([value for _, value in entries], dtype=np.float64)
    place = places(arms)
    keys = list(zip(values.tolist(), fixed_noise(arms, place).tolist(), strict=True))
    wanted = [sum(arms[j] == arms[i] and keys[j] < keys[i] for j in range(i)) for i in range(len(entries))]
    assert ranks_among_earlier(arms, values).tolist() == wanted
    assert place.tolist() == [int((arms[:i] == arms[i]).sum()) for i in range(len(entries))]


def test_equal_values_get_uniform_ranks() -> None:
    """A chi-square of all ranks at place 4: beyond 30 with probability below 1e-5 for uniform ones."""
    arms = np.repeat(np.arange(2000), 5)
    ranks = ranks_among_earlier(arms, np.zeros(arms.size))[4::5]
    counts = np.bincount(ranks, minlength=5)
    assert ((counts - 400.0) ** 2 / 400.0).sum() < 30.0


def test_pair_evidence_matches_oracle() -> None:
    rng = np.random.default_rng(0)
    for dim in (1, 3):
        h = 1.3 * rng.standard_normal((40, dim))
        share, far = OUTLIERS
        ratios = [norm.pdf(h, scale=sd) / norm.pdf(h) for sd in DEVIATIONS]
        ratios.append(t.pdf(h, 3) / norm.pdf(h))
        ratios.append(((1 - share) * norm.pdf(h) + share * norm.pdf(h, scale=far)) / norm.pdf(h))
        products = np.cumprod(np.array(ratios), axis=1)  # (alternatives, n, d)
        all_numbers, single = products.prod(axis=2).mean(axis=0), products.mean(axis=(0, 2))
        wanted = all_numbers if dim == 1 else 0.5 * all_numbers + 0.5 * single
        assert np.allclose(pair_course(h)[0], np.log(wanted), rtol=1e-9)


def test_item_evidence_matches_oracle() -> None:
    """Predictive densities over the largest likelihood, one result after the other."""
    rng = np.random.default_rng(1)
    arms, white = rng.integers(0, 4, 60), 2.5 * rng.standard_normal((60, 2)) + 1e3
    highest = 0.0
    for n in range(1, 61):
        total = 0.0
        for sd in DEVIATIONS:
            log = 0.0
            for arm in range(4):
                x = white[:n][arms[:n] == arm]
                for s in range(1, len(x)):
                    log += norm.logpdf(x[s], x[:s].mean(axis=0), sd * math.sqrt(1.0 + 1.0 / s)).sum()
                if len(x) > 1:
                    log -= norm.logpdf(x[1:], x[1:].mean(axis=0)).sum()
            total += math.exp(log) / len(DEVIATIONS)
        highest = max(highest, math.log(total))
    assert highest > 1.0
    assert item_evidence_against_noise(arms, white).value == pytest.approx(highest, rel=1e-8)


def pairs_to_alarm(draw: Any, runs: int = 200, most: int = 1500) -> float:
    found = []
    for _ in range(runs):
        hits = np.flatnonzero(pair_course(draw(most))[0] >= math.log(100.0))
        found.append(hits[0] + 1 if hits.size else most)
    return float(np.median(found))


def test_pairs_needed_are_few() -> None:
    """The figures of the design are 173, 27, 8 and 12 pairs in the median; here is room for 200 runs."""
    rng = np.random.default_rng(2)
    for sd, most in ((1.2, 200.0), (1.5, 35.0), (2.0, 10.0)):
        assert pairs_to_alarm(lambda n, sd=sd: sd * rng.standard_normal((n, 1))) <= most

    def outliers(n: int) -> Any:
        x = rng.standard_normal((2, n, 1))
        x[rng.random((2, n, 1)) < 0.05] *= 10.0
        return (x[0] - x[1]) / math.sqrt(2.0)

    assert pairs_to_alarm(outliers) <= 18.0


def test_kind_of_contradiction_is_named() -> None:
    rng = np.random.default_rng(3)
    h = rng.standard_normal((300, 2))
    assert pair_evidence_against_noise(2.0 * h).kind == "larger"
    assert pair_evidence_against_noise(0.5 * h).kind == "smaller"
    spoiled = h.copy()
    spoiled[::25] *= 15.0
    assert pair_evidence_against_noise(spoiled).kind == "tails"


def test_bound_hears_nothing_of_smaller_noise() -> None:
    rng = np.random.default_rng(4)
    h = rng.standard_t(3, size=(400, 2)) / math.sqrt(3.0)  # covariance I, heavy tails
    assert evidence_against_bound(0.5 * h).value == 0.0
    assert evidence_against_bound(1.6 * h).value > math.log(100.0)


def rank_bet(x: Any, s: int, slope: float, width: float, shift: float) -> float:
    """s·f_s of the rank of the s-th result (docstring of `dependence_evidence`), by quantiles and masses of scipy."""
    rank = int((x[: s - 1] < x[s - 1]).sum())
    last = (int((x[: s - 2] < x[s - 2]).sum()) + 0.5) / (s - 1)
    expected = logistic(loc=slope * logistic.ppf(last) + shift, scale=width)
    return s * float(np.diff(expected.cdf(logistic.ppf([rank / s, (rank + 1) / s])))[0])


def rank_course(x: Any, slope: float, width: float, shift: float) -> Any:
    """Π s·f_s after each result."""
    return np.cumprod([1.0, *(rank_bet(x, s, slope, width, shift) for s in range(2, len(x) + 1))])


def order_oracle(arms: Any, values: Any, n_arms: int, weights: Any) -> tuple[float, float]:
    """(joint, single), item by item; `weights` None: for drift."""
    joint: list[float] = []
    singles = [1.0]
    for column in range(values.shape[1]):
        courses: dict[int, list[Any]] = {}
        for stake in STAKES:
            highest = []
            for arm in range(n_arms):
                x = values[arms == arm, column]
                c = np.ones(len(x)) if weights is None else weights[arms == arm]
                log, course = 0.0, [0.0]
                for s in range(1, len(x)):
                    score = (2 * int((x[:s] < x[s]).sum()) - s) / (s + 1)
                    log += math.log(1 + stake * c[s] * score)
                    course.append(log)
                highest.append(max(course))
                if len(x):
                    courses.setdefault(arm, []).append(np.exp(course))
            joint += [math.prod(k * math.exp((1 - k) * one) for one in highest) for k in SHARES]
        if weights is None:
            for arm, its in courses.items():
                its += [rank_course(values[arms == arm, column], 0.0, 1.0, shift) for shift in SHIFTS]
        singles += [float(np.mean(its, axis=0).max()) for its in courses.values()]
    return math.log(np.mean(joint)), math.log(max(singles))


def test_order_evidence_matches_oracle() -> None:
    rng = np.random.default_rng(5)
    arms = rng.integers(0, 4, 80)
    values = rng.standard_normal((80, 2)) + 0.02 * np.arange(80)[:, None]
    late = (rng.random(80) < 0.4).astype(float)
    weights = lateness_weights(arms, late)
    for s in range(80):
        before = late[:s][arms[:s] == arms[s]]
        assert weights[s] == (1.0 if late[s] else pytest.approx(-before.mean() if before.size else 0.0))
    for given_weights in (None, weights):
        found = order_evidence(arms, values, 5, given_weights)
        assert (found.joint, found.single) == pytest.approx(order_oracle(arms, values, 5, given_weights))


def test_items_measured_once_keep_the_order_evidence() -> None:
    """They are not looked at, and count as items all the same."""
    rng = np.random.default_rng(6)
    for repeated in (0, 3):
        arms = rng.permutation(np.concatenate([np.arange(12), np.repeat(np.arange(repeated), 9)]))
        values = rng.standard_normal((arms.size, 2)) + 0.1 * np.arange(arms.size)[:, None]
        found = order_evidence(arms, values, 14)
        assert (found.joint, found.single) == pytest.approx(order_oracle(arms, values, 14, None))
        assert (found.arm < repeated) or repeated == 0


def test_dependence_evidence_matches_oracle() -> None:
    rng = np.random.default_rng(61)
    for n_arms, rho in ((3, 0.95), (6, 0.6)):
        arms = rng.integers(0, n_arms - 1, 70)
        values = np.zeros((70, 2))
        for arm in range(n_arms):
            rows, x = np.flatnonzero(arms == arm), rng.standard_normal(2)
            for row in rows:
                x = rho * x + math.sqrt(1 - rho**2) * rng.standard_normal(2)
                values[row] = x
        wanted = []
        for column in range(2):
            its = [values[arms == arm, column] for arm in range(n_arms)]
            courses = [np.mean([rank_course(x, *bet, 0.0) for bet in BETS], axis=0) for x in its if len(x)]
            sups = [max(0.0, math.log(one.max())) for one in courses]
            wanted.append(max(sups) - math.log(2 * 2 * n_arms / 0.01))
            wanted.append(-gamma.logsf(sum(sups), n_arms) - math.log(2 * 2 / 0.01))
        found = dependence_evidence(arms, values, n_arms)
        assert found.value - found.threshold == pytest.approx(max(wanted))
    assert not dependence_evidence(np.arange(4), np.zeros((4, 1)), 4).reached  # nothing was measured twice


def test_gamma_tail_matches_scipy() -> None:
    for shape, x in ((1, 0.5), (8, 17.1), (300, 420.0), (5, 1e-9)):
        assert log_gamma_tail(shape, x) == pytest.approx(-gamma.logsf(x, shape), abs=1e-9)


@pytest.mark.guarantee
@pytest.mark.parametrize("law", ["gaussian", "t3", "skewed", "ratings"])
@pytest.mark.parametrize("rule", ["low", "near"])
def test_dependence_error_rate_within_level(law: str, rule: str) -> None:
    """As for drift; rule near: it measures again the item whose last two results were near each other."""
    rng = np.random.default_rng([71, len(law), len(rule)])
    draws = {
        "gaussian": rng.standard_normal,
        "t3": lambda: rng.standard_t(3),
        "skewed": lambda: rng.lognormal(0.0, 1.5),
        "ratings": lambda: rng.integers(1, 6),
    }
    false = 0
    for run in range(1000):
        n_arms = (3, 15)[run % 2]
        if rule == "low":
            arms, values = greedy_stacks(rng, draws[law], n_arms, 200, True)
        else:
            arms, values = stacks_that_stay(rng, draws[law], n_arms, 200)
        false += dependence_evidence(arms, values, n_arms).reached
    assert false <= most_alarms(1000)


@given(st.integers(1, 3000), st.integers(1, 4000))
@settings(max_examples=30, deadline=None)
def test_thinning_keeps_what_it_kept(results: int, n_arms: int) -> None:
    """What is looked at of a record is what was looked at of its beginning, and more."""
    whole = thinned(np.zeros(3000, dtype=np.int64), n_arms)
    part = thinned(np.zeros(results, dtype=np.int64), n_arms)
    assert part.tolist() == whole[whole < results].tolist()


def test_failure_evidence_matches_oracle() -> None:
    rng = np.random.default_rng(6)
    z = rng.uniform(-1, 1, size=(120, 2))
    failed = rng.random(120) < np.where(z[:, 0] < 0, 0.4, 0.05)
    kept = [i for i in range(120) if i == 0 or not failed[i - 1]]
    logs, highest, k = np.zeros((2, SLOPES.size)), 0.0, 0
    for n, i in enumerate(kept):
        rate = (k + 0.5) / (n + 1)
        for (q, j), _ in np.ndenumerate(logs):
            usual = (1.0 + sum(math.exp(SLOPES[j] * z[p, q]) for p in kept[:n])) / (n + 1)
            odds = rate / (1 - rate) * math.exp(SLOPES[j] * z[i, q]) / usual
            logs[q, j] += math.log(odds / (1 + odds) if failed[i] else 1 / (1 + odds))
        k += int(failed[i])
        p = k / (n + 1)
        best = sum(c * math.log(c / (n + 1)) for c in (k, n + 1 - k) if c > 0)
        assert 0 <= p <= 1
        highest = max(highest, math.log(np.exp(logs - best).mean()))
    found = failure_evidence(failed, z)
    assert highest > math.log(100.0)
    assert found.value == pytest.approx(highest)
    assert (found.column, found.upwards) == (0, False)


def test_outage_is_no_failure_that_goes_with_values() -> None:
    """An instrument that is broken for 50 asks of one low item."""
    z = np.tile([[-0.9], [0.9], [0.1], [-0.3]], (100, 1))
    failed = np.zeros(400, dtype=bool)
    z[200:250], failed[200:250] = -0.9, True
    assert failure_evidence(failed, z).value < math.log(5.0)


ALARM = 1e-6


def most_alarms(runs: int) -> int:
    """More than so many have probability at most ALARM if each run has an alarm with probability 1 %."""
    return int(binom.isf(ALARM, runs, 0.01))


def greedy_stacks(rng: np.random.Generator, draw: Any, n_arms: int, n: int, low: bool) -> tuple[Any, Any]:
    """A rule that measures again what has moved the wrong way: the item whose last result was lowest (or highest).

    Pooled without care, its results look like a drift of all items.
    """
    arms, values = [], []
    last = np.full(n_arms, -np.inf)
    for _ in range(n):
        arm = int(np.argmin(last if low else -last)) if rng.random() < 0.9 else int(rng.integers(n_arms))
        value = float(draw())
        last[arm] = value
        arms.append(arm)
        values.append(value)
    return np.array(arms), np.array(values)[:, None]


def stacks_that_stay(rng: np.random.Generator, draw: Any, n_arms: int, n: int) -> tuple[Any, Any]:
    """A rule that measures again the item whose last two results lie nearest each other, and leaves one that jumped."""
    arms, values = [], []
    last, jump = np.zeros(n_arms), np.zeros(n_arms)
    for _ in range(n):
        arm = int(np.argmin(jump)) if rng.random() < 0.9 else int(rng.integers(n_arms))
        value = float(draw())
        jump[arm], last[arm] = abs(value - last[arm]), value
        arms.append(arm)
        values.append(value)
    return np.array(arms), np.array(values)[:, None]


@pytest.mark.guarantee
@pytest.mark.parametrize("law", ["gaussian", "t3", "skewed", "ratings"])
def test_drift_error_rate_within_level(law: str) -> None:
    """2000 runs of 300 results under a rule of sampling that is out to deceive; looked at after every result.

    The evidence is a maximum over all times, so looking at the end is looking always.
    """
    rng = np.random.default_rng([7, len(law)])
    draws = {
        "gaussian": rng.standard_normal,
        "t3": lambda: rng.standard_t(3),
        "skewed": lambda: rng.lognormal(0.0, 1.5),
        "ratings": lambda: rng.integers(1, 6),
    }
    false = 0
    for run in range(2000):
        n_arms = (3, 15)[run % 4 // 2]
        arms, values = greedy_stacks(rng, draws[law], n_arms, 300, run % 2 == 0)
        false += order_evidence(arms, values, n_arms).reached
    assert false <= most_alarms(2000)


@pytest.mark.slow
def test_sampling_that_deceives_a_plain_test_raises_no_alarm() -> None:
    """The same rule makes a sign test of second against first results certain of a drift: the rule, not the items."""
    rng = np.random.default_rng(8)
    ups = pairs = false = 0
    for _ in range(60):
        arms, values = greedy_stacks(rng, rng.standard_normal, 15, 25, True)
        false += order_evidence(arms, values, 15).reached
        for arm in range(15):
            x = values[arms == arm, 0]
            ups, pairs = ups + int((x[1:2] > x[:1]).sum()), pairs + int(len(x) > 1)
    assert binom.sf(ups - 1, pairs, 0.5) < 1e-9
    assert false <= most_alarms(60)


@pytest.mark.guarantee
def test_failures_error_rate_within_level() -> None:
    """2000 runs of 300 asks that fail by chance; after many the rule asks for low items, else for high ones."""
    rng = np.random.default_rng(9)
    false = 0
    for run in range(2000):
        rate = (0.02, 0.1, 0.4, 0.8)[run % 4]
        failed = rng.random(300) < rate
        side = np.where(np.concatenate([[False], np.cumsum(failed)[:-1] > rate * np.arange(1, 300)]), -1.0, 1.0)
        standing = np.stack([side * rng.uniform(0.2, 1.0, 300), rng.uniform(-1.0, 1.0, 300)], axis=1)
        false += failure_evidence(failed, standing).value >= math.log(100.0)
    assert false <= most_alarms(2000)


@pytest.mark.guarantee
def test_noise_error_rate_within_level() -> None:
    """500 runs of 2000 pairs, and 2000 runs of 300 results under a rule that goes on where results differ most."""
    rng = np.random.default_rng(10)
    courses = (pair_evidence_against_noise(rng.standard_normal((2000, 2))) for _ in range(500))
    false = sum(one.value >= math.log(100.0) for one in courses)
    assert false <= most_alarms(500)
    false = 0
    for _ in range(2000):
        arms, values = greedy_stacks(rng, rng.standard_normal, 6, 300, True)
        false += item_evidence_against_noise(arms, values + arms[:, None]).value >= math.log(100.0)
    assert false <= most_alarms(2000)
