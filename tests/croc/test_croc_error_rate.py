"""CROC's guarantee: P(the groups are called proven and are wrong) ≤ δ, whatever was measured and in which order.

Every binomial test fails with probability at most 1e-6 if the true rate is exactly δ (it is lower); seeds are fixed.
There are 10 of them: a false alarm in the whole file has probability at most 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most
from known import known

import coterie
from coterie.methods.croc.run import CrocRun

pytestmark = pytest.mark.guarantee

LIMIT = 50_000  # pulls; a run that is not done by then is no error, but must be rare


def hard_instance(
    rng: np.random.Generator, groups: tuple[int, int], arms: tuple[int, int], dims: int
) -> tuple[Any, Any]:
    """True labels and centers; the smallest gap between two groups is 0.4 to 1. Both ends of the ranges included."""
    n_groups = int(rng.integers(groups[0], groups[1] + 1))
    n_arms = int(rng.integers(max(arms[0], n_groups + 1), arms[1] + 1))
    dim = int(rng.integers(1, dims + 1))
    centers = rng.normal(size=(n_groups, dim))
    apart = [np.linalg.norm(centers[k] - centers[j]) for k in range(n_groups) for j in range(k)]
    centers *= rng.uniform(0.4, 1.0) / min(apart)
    truth = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, n_arms - n_groups)])
    return rng.permutation(truth), centers


def own_rule(seed: int, delta: float) -> tuple[int, int, int]:
    """Four runs of CROC's own rule on a hard instance: how many ended wrong, did not end, ended by the pairs alone."""
    rng = np.random.default_rng(seed)
    truth, centers = hard_instance(rng, (2, 4), (5, 12), 5)
    wrong, unfinished, by_pairs = 0, 0, 0
    for _ in range(4):
        run = CrocRun(truth.size, len(centers), centers.shape[1], -math.log(delta))
        run.play(LIMIT, centers, truth, rng)
        unfinished += not run.done
        by_pairs += run.by_pairs
        wrong += run.done and not coterie.same_partition(run.labels, truth)
    return wrong, unfinished, by_pairs


@pytest.mark.parametrize("delta", [0.3, 0.1])
def test_own_rule_error_rate_within_delta(delta: float) -> None:
    """2000 runs on 500 hard instances (gaps 0.4 to 1, K 2–4, M 5–12, d 1–5). False alarm: 1e-6 each."""
    seeds = [int(delta * 100) * 1000 + i for i in range(500)]
    with ThreadPoolExecutor(2) as pool:
        wrong, unfinished, by_pairs = np.sum(list(pool.map(lambda seed: own_rule(seed, delta), seeds)), axis=0)
    assert_rate_at_most(delta, wrong, 2000, Guarantee("known", case="hard instances"))
    assert unfinished < 0.02 * 2000
    assert 0 < by_pairs < 2000  # both ways of proving are at work


# Somebody else decides what is measured. A rule gets the sums and counts of all arms, the true means (it may cheat),
# how many results there are, and a generator; it names the arm of the next result, which nobody asked for.
Rule = Callable[[np.ndarray, np.ndarray, np.ndarray, int, np.random.Generator], int]


def uniform(sums: np.ndarray, pulls: np.ndarray, means: np.ndarray, t: int, rng: np.random.Generator) -> int:
    return int(rng.integers(pulls.size))


def in_turn(sums: np.ndarray, pulls: np.ndarray, means: np.ndarray, t: int, rng: np.random.Generator) -> int:
    return t % pulls.size


def most_extreme(sums: np.ndarray, pulls: np.ndarray, means: np.ndarray, t: int, rng: np.random.Generator) -> int:
    return int(np.argmax((sums**2).sum(axis=1) / np.maximum(pulls, 1) ** 2))


def least_misleading(sums: np.ndarray, pulls: np.ndarray, means: np.ndarray, t: int, rng: np.random.Generator) -> int:
    """Pulls the arm whose mean is nearest the truth: arms that look wrong are left alone."""
    return int(np.argmin(((sums / np.maximum(pulls, 1)[:, None] - means) ** 2).sum(axis=1)))


def one_arm_for_long(sums: np.ndarray, pulls: np.ndarray, means: np.ndarray, t: int, rng: np.random.Generator) -> int:
    return (t // 40) % pulls.size


RULES = {rule.__name__: rule for rule in (uniform, in_turn, most_extreme, least_misleading, one_arm_for_long)}


def outcome(run: CrocRun, truth: np.ndarray) -> tuple[int, int]:
    """(certified, certified and wrong)"""
    return int(run.done), int(run.done and not coterie.same_partition(run.labels, truth))


def foreign_rule(seed: int, rule: Rule, share: float, limit: int) -> tuple[int, int]:
    """One run at δ = 0.3 in which a share of the results is of arms that the rule chose, the rest CROC's asks."""
    rng = np.random.default_rng(seed)
    truth, centers = hard_instance(rng, (2, 2), (5, 6), 2)
    means = centers[truth]
    run = CrocRun(truth.size, 2, centers.shape[1], -math.log(0.3))
    while not run.done and run.t < limit:
        own = rng.random() >= share
        sums = run.sums + run.pulls[:, None] * run.origin
        arm, of_round = known(run.pop()) if own else (rule(sums, run.pulls, means, run.t, rng), 0)
        run.absorb(arm, means[arm] + rng.standard_normal(centers.shape[1]), of_round, own)
    return outcome(run, truth)


@pytest.mark.parametrize("name", RULES)
def test_any_sampling_rule_error_rate_within_delta(name: str) -> None:
    """240 runs at δ = 0.3 with half of the results from the foreign rule. False alarm: 1e-6 each."""
    certified, wrong = np.sum([foreign_rule(seed, RULES[name], 0.5, 1200) for seed in range(240)], axis=0)
    assert_rate_at_most(0.3, wrong, 240, Guarantee("known", case=f"half of the results chosen: {name}"))
    assert certified > 120  # or the test would say nothing


@pytest.mark.parametrize("name", ["uniform", "in_turn"])
def test_nothing_but_foreign_results_error_rate_within_delta(name: str) -> None:
    """200 runs at δ = 0.3 in which CROC is never asked: only pairs from the start can prove. False alarm: 1e-6."""
    certified, wrong = np.sum([foreign_rule(1000 + seed, RULES[name], 1.0, 400) for seed in range(200)], axis=0)
    assert_rate_at_most(0.3, wrong, 200, Guarantee("known", case=f"all results chosen: {name}"))
    assert certified > 20


def late_results(seed: int) -> tuple[int, int]:
    """One run at δ = 0.3: asked in bursts, told late, in any order, some given up; and now and then nobody looks."""
    rng = np.random.default_rng(seed)
    truth, centers = hard_instance(rng, (2, 2), (5, 6), 2)
    session = coterie.Session(truth.size, 2, centers.shape[1], 0.3, noise=1.0)
    while not session.done and session.t < 1200:
        burst = int(rng.choice([1, 2, 5, 30]))
        session.ask(burst)
        open_asks = session.pending
        for i in rng.permutation(len(open_asks))[: burst + 5]:  # the others stay under way
            ticket, arm = open_asks[i]
            if rng.random() < 0.02:
                session.forget(ticket)
            else:
                session.tell(arm, centers[truth[arm]] + rng.standard_normal(centers.shape[1]), ticket)
    done = session.done
    return int(done), int(done and not coterie.same_partition(session.labels, truth))


def test_bursts_and_late_results_error_rate_within_delta() -> None:
    """200 runs at δ = 0.3. False alarm: 1e-6."""
    certified, wrong = np.sum([late_results(seed) for seed in range(200)], axis=0)
    assert_rate_at_most(0.3, wrong, 200, Guarantee("known", case="bursts, late results"))
    assert certified > 100
