"""Deliberately wrong candidates: how often does the engine certify what is frozen, when that is wrong?

CROC's own runs are wrong far less often than δ, as they freeze what is nearly always right. Here every frozen candidate
is wrong, so that the tests of the epoch bear the whole guarantee. Epoch 0 certifies a wrong candidate with probability
at most (1 − α)·δ·π_0, and the pairs from the start add at most α·δ (docs/CROC.md), whatever was known at the freeze.

Every binomial test fails with probability at most 1e-6 if the rate is exactly that bound; seeds are fixed. There are 6
of them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most

import coterie
from coterie._native.parts import freeze, next_round, take_result, unmet
from coterie.methods.croc.run import ALPHA, CrocRun, share_of_epoch

pytestmark = pytest.mark.guarantee

RUNS = 1500


def measure(run: CrocRun, means: np.ndarray, arm: int, of_round: int, rng: np.random.Generator) -> None:
    take_result(run, arm, means[arm] + rng.standard_normal(means.shape[1]), of_round)


def certifies(
    run: CrocRun, means: np.ndarray, labels: np.ndarray, limit: int, disturbed: bool, rng: np.random.Generator
) -> bool:
    """Freeze these labels and pull in rounds for them: True if they are certified before there are `limit` results.

    With `disturbed`, the arm that looks most extreme is pulled once before every round, outside it.
    """
    epoch = freeze(run, labels.tolist())
    while run.t < limit:
        if unmet(run, epoch)[0] == 0:
            return True
        if disturbed:
            sizes = ((run.sums / run.pulls[:, None] + run.origin) ** 2).sum(axis=1)
            measure(run, means, int(np.argmax(sizes)), 0, rng)
        for arm, count in enumerate(next_round(run, epoch)):
            for _ in range(count):
                measure(run, means, arm, run.round, rng)
    return False


def wrong_labels(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The truth with one arm moved, or two swapped; no group is empty."""
    while True:
        labels = truth.copy()
        if rng.random() < 0.5:
            labels[rng.integers(truth.size)] = rng.integers(truth.max() + 1)
        else:
            labels[rng.permutation(truth.size)[:2]] = rng.permutation(truth.max() + 1)[:2]
        if set(labels) == set(truth) and not coterie.same_partition(labels, truth):
            return labels


def cost(run: CrocRun, labels: np.ndarray) -> float:
    """How badly the labels fit the results so far."""
    sums, pulls, total = run.sums, run.pulls, 0.0
    for k in range(labels.max() + 1):
        ours = labels == k
        center = sums[ours].sum(axis=0) / pulls[ours].sum()
        total += (pulls[ours] * ((sums[ours] / pulls[ours, None] - center) ** 2).sum(axis=1)).sum()
    return float(total)


def certified_wrong(seed: int, delta: float, candidates: int, disturbed: bool) -> bool:
    """One run: whether the wrong candidate is certified. Of several candidates, the one that fits the data best."""
    rng = np.random.default_rng(seed)
    n_groups = int(rng.integers(2, 4))
    n_arms, dim = int(rng.integers(n_groups + 1, 11)), int(rng.integers(1, 4))
    centers = rng.normal(size=(n_groups, dim))
    apart = min(np.linalg.norm(centers[k] - centers[j]) for k in range(n_groups) for j in range(k))
    centers *= rng.uniform(0.4, 1.5) / apart
    truth = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, n_arms - n_groups)])
    run = CrocRun(n_arms, n_groups, dim, -math.log(delta))
    times = int(rng.integers(2, 30))
    for arm in range(n_arms):  # some results of every arm, before anything is estimated
        for _ in range(times):
            measure(run, centers[truth], arm, 0, rng)
    labels = min((wrong_labels(truth, rng) for _ in range(candidates)), key=lambda some: cost(run, some))
    return certifies(run, centers[truth], labels, 1200, disturbed, rng)


@pytest.mark.parametrize("delta", [0.3, 0.1])
@pytest.mark.parametrize(("candidates", "disturbed"), [(1, False), (12, False), (12, True)])
def test_wrong_candidates_error_rate_within_share_of_delta(delta: float, candidates: int, disturbed: bool) -> None:
    """1500 wrong candidates: any one, the one that the data favour, and with pulls in between. False alarm: 1e-6."""
    bound = (1 - ALPHA) * delta * share_of_epoch(0) + ALPHA * delta
    count = sum(certified_wrong(seed, delta, candidates, disturbed) for seed in range(RUNS))
    of = Guarantee("known", case="wrong candidates frozen; their share of δ")
    assert_rate_at_most(bound, count, RUNS, of)
    assert count > 0  # the candidates are good enough to tempt
