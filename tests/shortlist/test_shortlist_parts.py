"""A list of partitions: the list, chances, factors and rounds, each against plain ones, engine and verifier alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from coterie._native import Partitions
from coterie.certificate import list_checking as list_evidence
from coterie.evidence.pairs import pair_evidence
from coterie.methods.shortlist.elimination import (
    KEPT,
    RIVAL,
    SCALES,
    Elimination,
    PairStacks,
    blocks_of,
    clique_of,
    partitions_without,
)
from coterie.problem.checks import FloatArray, IntArray


def round_logs(listed: IntArray, alive: IntArray, *given: Any) -> FloatArray:
    """As the engine has it, of a list of its own."""
    chance, pulls, sums, taken, total, scales = given
    return Partitions(listed, sums.shape[1], scales).round_logs(alive, chance, pulls, sums, taken, total)


def contrasts_log(x: FloatArray, covariance: FloatArray) -> float:
    """The log density of x_1 − x_0, x_2 − x_0, …, coordinates independent."""
    minus_first = np.hstack([-np.ones((len(x) - 1, 1)), np.eye(len(x) - 1)])
    law = multivariate_normal(np.zeros(len(x) - 1), minus_first @ covariance @ minus_first.T)
    return float(sum(law.logpdf(minus_first @ x[:, q]) for q in range(x.shape[1])))


@pytest.mark.parametrize("seed", range(12))
def test_list_has_all_partitions_without_a_settled_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms, n_clusters = int(rng.integers(3, 7)), 2 + seed % 2
    n_clusters = min(n_clusters, n_arms - 1)
    settled = np.triu(rng.random((n_arms, n_arms)) < 0.3, 1)
    settled |= settled.T
    wanted = {
        tuple(dict.fromkeys(labels).keys()) and tuple(list(dict.fromkeys(labels)).index(label) for label in labels)
        for labels in product(range(n_clusters), repeat=n_arms)
        if len(set(labels)) == n_clusters
        and not any(settled[i, j] and labels[i] == labels[j] for i in range(n_arms) for j in range(i))
    }
    found = partitions_without(settled, n_clusters, most=10_000)
    assert found is not None
    assert len(found) == len(wanted)
    assert {tuple(list(dict.fromkeys(row)).index(label) for label in row) for row in found.tolist()} == wanted
    assert found.tolist() == sorted(found.tolist())
    pairs = np.argwhere(np.triu(settled))
    again = list_evidence.fitting(pairs, n_arms, n_clusters, 10_000)
    assert again is not None
    assert again.tolist() == found.tolist()
    if wanted:
        assert partitions_without(settled, n_clusters, most=len(wanted) - 1) is None
        assert list_evidence.fitting(pairs, n_arms, n_clusters, len(wanted) - 1) is None


def some_results(seed: int) -> tuple[IntArray, FloatArray, FloatArray]:
    listed = np.array([[0, 0, 1, 1, 2, 2, 2], [0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 2, 2, 2, 2], [0, 0, 1, 2, 2, 1, 1]])
    rng = np.random.default_rng(seed)
    pulls = rng.integers(1, 40, size=7).astype(float)
    return listed, pulls, rng.normal(size=(7, 2)) * pulls[:, None]


@pytest.mark.parametrize("seed", range(4))
def test_posterior_is_that_of_the_model(seed: int) -> None:
    listed, pulls, sums = some_results(seed)
    blocks, means, wanted = blocks_of(listed), sums / pulls[:, None], []
    assert blocks.tolist() == [0, 0, 1, 1, 1, 1, 1]
    for labels in listed:
        value = sum(math.lgamma((labels == k).sum() + 1) for k in range(3))
        for block in range(2):
            arms = np.flatnonzero(blocks == block)
            same = labels[arms][:, None] == labels[arms][None]
            logs = [contrasts_log(means[arms], np.diag(1 / pulls[arms]) + scale * same) for scale in SCALES]
            value += float(np.logaddexp.reduce(logs))
        wanted.append(value)
    found = Partitions(listed, 2, SCALES).log_posterior(blocks, pulls, sums)
    np.testing.assert_allclose(found - found[0], np.array(wanted) - wanted[0], atol=1e-8)
    everything = np.ones(len(listed), dtype=bool)
    chances = list_evidence.chances(listed, everything, pulls, sums)
    np.testing.assert_allclose(chances, np.exp(found - np.logaddexp.reduce(found)), rtol=1e-8)
    assert sorted(block.tolist() for block in list_evidence.blocks_of(listed)) == [[0, 1], [2, 3, 4, 5, 6]]
    some = np.array([True, False, True, True])
    fewer = list_evidence.chances(listed, some, pulls, sums)
    assert fewer[1] == 0.0
    assert fewer.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(6))
def test_factors_of_the_verifier_equal_those_of_the_engine(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms, n_clusters = 6, 2 + seed % 3
    listed = partitions_without(np.zeros((n_arms, n_arms), dtype=bool), n_clusters, most=1000)
    assert listed is not None
    pulls = rng.integers(1, 30, size=n_arms).astype(float)
    sums = rng.normal(size=(n_arms, 3)) * pulls[:, None]
    taken = rng.integers(0, 3, size=n_arms).astype(float)
    total = rng.normal(size=(n_arms, 3)) * taken[:, None]
    chance = rng.dirichlet(np.ones(len(listed)))
    bets = np.maximum(chance - RIVAL * chance.max(), 0.0)
    alive = (rng.random(len(listed)) < 0.6).astype(np.int64)
    found = round_logs(listed, alive, bets, pulls, sums, taken, total, SCALES)
    nulls = np.flatnonzero(alive)
    again = list_evidence.round_factors(nulls, listed, chance, (pulls, sums), (taken, total), n_clusters)
    np.testing.assert_allclose(again, found[nulls], rtol=1e-9, atol=1e-10)
    assert np.ptp(again) > 0.01


@pytest.mark.parametrize(("n", "other"), [(1, 1), (3, 17), (64, 64), (70, 300), (150, 20)])
def test_pairs_are_those_of_croc(n: int, other: int) -> None:
    rng = np.random.default_rng(n)
    stacks, x, y = PairStacks(2, 2), rng.normal(size=(n, 2)), rng.normal(size=(other, 2)) + 0.5
    for row in x:
        stacks.add(0, row)
    for row in y:
        stacks.add(1, row)
    one, two = np.array([0]), np.array([1])
    found = stacks.evidence(one, two, np.array([n]), np.array([other]))[0]
    wanted = pair_evidence(x, y, kind="paired", grid_from=64)
    assert found == pytest.approx(wanted, abs=1e-9)
    assert KEPT[:64].tolist() == list(range(1, 65))


def test_clique_is_found() -> None:
    settled = np.zeros((6, 6), dtype=bool)
    for i, j in ((0, 2), (0, 4), (2, 4), (1, 3), (3, 4)):
        settled[i, j] = settled[j, i] = True
    assert clique_of(settled, 3) == (0, 2, 4)
    assert clique_of(settled, 4) is None


@pytest.mark.parametrize("seed", range(4))
def test_factor_is_a_ratio_of_densities(seed: int) -> None:
    """With one rival, one scale and one group that it cuts in two, against the formula for one contrast."""
    listed = np.array([[0, 0, 0, 1, 2], [0, 0, 1, 1, 2]])
    rng = np.random.default_rng(seed)
    pulls = rng.integers(1, 9, size=5).astype(float)
    sums = rng.normal(size=(5, 2)) * pulls[:, None]
    taken = np.array([1.0, 2.0, 1.0, 0.0, 3.0])
    total = rng.normal(size=(5, 2)) * taken[:, None]
    scale = 0.5
    found = round_logs(listed, np.array([1, 1]), np.array([0.3, 0.7]), pulls, sums, taken, total, np.array([scale]))
    weight = np.array([pulls[:2].sum(), pulls[2:4].sum()])  # the rival's parts of the first group of the null
    center = np.array([sums[:2].sum(axis=0) / weight[0], sums[2:4].sum(axis=0) / weight[1]])
    precision = 1 / (scale + 1 / weight)
    place = precision @ center / precision.sum()
    guess = (center - place) * (weight / (weight + 1 / scale))[:, None]
    spread = (1 / (weight + 1 / scale)).sum()
    contrast = total[:2].sum(axis=0) / 3.0 - total[2]
    v = 1 / 3.0 + 1.0
    under = [
        multivariate_normal(guess[0] - guess[1], (v + spread) * np.eye(2)),
        multivariate_normal(None, v * np.eye(2)),
    ]
    assert found[0] == pytest.approx(under[0].logpdf(contrast) - under[1].logpdf(contrast), abs=1e-9)
    assert found[1] == pytest.approx(0.0, abs=1e-12)  # the round has no second arm of the group 1 of that null


@pytest.mark.parametrize("noise", ["gaussian", "signs", "uniform"])
def test_evidence_has_mean_at_most_one_under_the_truth(noise: str) -> None:
    """Over rounds drawn from the null, with bets fixed before: exactly 1 for Gaussian noise, less if it varies less.

    Signs and uniform noise are sub-Gaussian with the variance stated.
    """
    listed, pulls, sums = some_results(1)
    alive, chance, rng = np.array([1, 0, 0, 0]), np.array([0.0, 0.5, 0.2, 0.3]), np.random.default_rng(5)
    taken, centers = np.array([1, 1, 2, 1, 1, 0, 1]), np.array([[0.0, 5.0], [3.0, 0.0], [-1.0, 1.0]])
    arms = np.repeat(np.arange(7), taken)
    size, factors = (arms.size, 2), np.empty(20_000)
    draw: Callable[[], FloatArray] = {
        "gaussian": lambda: rng.standard_normal(size),
        "signs": lambda: rng.choice([-1.0, 1.0], size),
        "uniform": lambda: rng.uniform(-1.0, 1.0, size),
    }[noise]
    for i in range(factors.size):
        off = draw()
        total = np.zeros((7, 2))
        np.add.at(total, arms, centers[listed[0]][arms] + off)
        factors[i] = math.exp(round_logs(listed, alive, chance, pulls, sums, taken.astype(float), total, SCALES)[0])
    spread = 6 * factors.std() / math.sqrt(factors.size)
    assert factors.mean() <= 1.0 + spread
    assert noise != "gaussian" or factors.mean() >= 1.0 - spread
    assert factors.std() > 0.1


def test_rounds_count_in_order_and_complete() -> None:
    listed = np.array([[0, 0, 1], [0, 1, 1], [0, 1, 0]])
    pulls, sums = np.ones(3), np.array([[0.0], [0.1], [3.0]])
    one = Elimination(listed, 50.0, pulls, sums)
    arms, more = one.plan(pulls), one.plan(pulls + 1)
    first, second = one.compose(arms.tolist(), []), one.compose(more.tolist(), [])
    assert (first, second) == (1, 2)
    for arm in more.tolist():
        one.take(second, arm, np.array([float(arm)]))
    assert (one.log_e == 0.0).all()  # the first is not complete
    assert one.used == 0
    for arm in arms.tolist():
        one.take(first, arm, np.array([float(arm)]))
    assert (one.log_e != 0.0).any()
    assert one.used == 2


def test_pairs_strike_off_what_has_them_in_a_group() -> None:
    listed = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 1]])
    one = Elimination(listed, 50.0, np.ones(3), np.array([[0.0], [0.1], [3.0]]))
    assert one.settle(0, 1)
    assert one.left.tolist() == [1, 2]
    assert one.chances(one.possible)[0] == 0.0
    assert one.settle(0, 2)
    assert one.left.tolist() == [2]
    assert not one.settle(1, 2)  # that would leave none
    assert one.left.tolist() == [2]


def test_the_partition_that_is_left_is_one_that_no_settled_pair_speaks_against() -> None:
    """Two pairs that are settled at once strike off the last two; a third one that a round has struck off stays."""
    listed = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 1]])
    found = Elimination(listed, 3.0, np.ones(3), np.zeros((3, 1)))
    seen: list[tuple[bool, list[int]]] = []
    found.alive[2], found.struck_by[2], found.log_e[2] = 0, 1, 3.5
    for pair in ((0, 1), (0, 2)):
        seen.append((found.settle(*pair) and found.proven, found.left.tolist()))
    found.struck_by[:], found.possible[:] = 0, True  # what nothing has struck off is not proven wrong
    seen.append((found.proven, found.left.tolist()))
    assert seen == [(True, [1]), (True, [2]), (False, [2])]
