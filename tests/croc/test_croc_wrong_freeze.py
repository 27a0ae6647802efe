"""Deliberately wrong candidates: how often does the engine certify what is frozen, when that is wrong?

CROC's own runs are wrong far less often than δ, as they freeze what is nearly always right. Here every frozen candidate
is wrong, so that the tests of the epoch bear the whole guarantee. Epoch 0 certifies a wrong candidate with probability
at most (1 − α)·δ·π_0, and the pairs from the start add at most α·δ (docs/CROC.md), whatever was known at the freeze.

Every binomial test fails with probability at most ALARM if the rate is exactly that bound; seeds are fixed. There are 6
of them.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from scipy.stats import binom

import coterie
from coterie.engine.croc import claims, misgrouping, renewal, rounds, steps
from coterie.engine.croc.run import CrocRun
from coterie.engine.croc.state import ALPHA, ESTIMATED, ROUND, T, share_of_epoch

pytestmark = pytest.mark.guarantee

ALARM = 1e-6
RUNS = 1500


@numba.njit
def measure(state, work, means, arm, of_round, x, rng):  # type: ignore[no-untyped-def]
    for q in range(means.shape[1]):
        x[q], x[means.shape[1] + q] = means[arm, q] + rng.standard_normal(), 0.0
    state.committed[arm] += 1
    steps.observe(state, work, arm, x, of_round)


@numba.njit
def measure_all(state, work, means, times, x, rng):  # type: ignore[no-untyped-def]
    """Some results of every arm, before anything is estimated."""
    for arm in range(means.shape[0]):
        for _ in range(times):
            measure(state, work, means, arm, 0, x, rng)


@numba.njit
def set_estimate(state, labels):  # type: ignore[no-untyped-def]
    """As if these labels had been estimated just now."""
    dim = state.centers.shape[1]
    state.labels[:] = labels
    state.totals[:] = 0.0
    state.centers[:, :] = 0.0
    for m in range(labels.size):
        state.totals[labels[m]] += state.pulls[m]
        for q in range(dim):
            state.centers[labels[m], q] += state.sums[m, q]
    for k in range(state.totals.size):
        for q in range(dim):
            state.centers[k, q] /= state.totals[k]
    state.ints[ESTIMATED] = state.ints[T]


@numba.njit
def certifies(state, work, means, labels, limit, disturbed, x, rng):  # type: ignore[no-untyped-def]
    """Freeze these labels and pull in rounds for them: True if they are certified before there are `limit` results.

    With `disturbed`, the arm that looks most extreme is pulled once before every round, outside it.
    """
    n_arms, dim = means.shape
    set_estimate(state, labels)
    renewal.choose_representatives(state)
    misgrouping.misgrouping_risk(state, work)
    epoch = rounds.freeze(state, work)
    while state.ints[T] < limit:
        if claims.unmet(state, epoch, work) == 0:
            return True
        if disturbed:
            extreme, best = 0, -1.0
            for m in range(n_arms):
                size = 0.0
                for q in range(dim):
                    size += (state.sums[m, q] / state.pulls[m] + state.origin[q]) ** 2
                if size > best:
                    extreme, best = m, size
            measure(state, work, means, extreme, 0, x, rng)
        rounds.compose_round(state, epoch, work, 0.0)
        for m in range(n_arms):
            for _ in range(work.composition[m]):
                measure(state, work, means, m, state.ints[ROUND], x, rng)
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
    s, total = run.state, 0.0
    for k in range(labels.max() + 1):
        ours = labels == k
        center = s.sums[ours].sum(axis=0) / s.pulls[ours].sum()
        total += (s.pulls[ours] * ((s.sums[ours] / s.pulls[ours, None] - center) ** 2).sum(axis=1)).sum()
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
    run, x = CrocRun(n_arms, n_groups, dim, -math.log(delta)), np.zeros(2 * dim)
    measure_all(run.state, run._work, centers[truth], int(rng.integers(2, 30)), x, rng)
    labels = min((wrong_labels(truth, rng) for _ in range(candidates)), key=lambda some: cost(run, some))
    return bool(certifies(run.state, run._work, centers[truth], labels, 1200, disturbed, x, rng))


@pytest.mark.parametrize("delta", [0.3, 0.1])
@pytest.mark.parametrize(("candidates", "disturbed"), [(1, False), (12, False), (12, True)])
def test_wrong_candidates_error_rate_within_share_of_delta(delta: float, candidates: int, disturbed: bool) -> None:
    """1500 wrong candidates: any one, the one that the data favour, and with pulls in between. False alarm: ALARM."""
    bound = (1 - ALPHA) * delta * share_of_epoch(0) + ALPHA * delta
    count = sum(certified_wrong(seed, delta, candidates, disturbed) for seed in range(RUNS))
    assert count <= binom.isf(ALARM, RUNS, bound), f"{count} of {RUNS} certified, the bound is {bound:.3f}"
    assert count > 0  # the candidates are good enough to tempt
