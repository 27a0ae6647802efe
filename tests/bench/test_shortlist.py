"""The shortlist: its list, posterior and factors against plain ones, right groups, workers, error rates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, multivariate_normal

import coterie
from bench.peers import shortlist
from bench.peers.shortlist import SCALES, Elimination, blocks_of, partitions_without
from bench.peers.shortlist_kernels import log_posterior, round_logs
from coterie.methods import METHODS, unregister
from coterie.problem.checks import FloatArray, IntArray

FALSE_ALARM = 1e-6
CLOSE = coterie.Instance([0, 0, 1, 1, 2], [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])


@pytest.fixture(autouse=True)
def registered_shortlist() -> Iterator[None]:
    """The method in the table."""
    shortlist.register_all()
    yield
    if "shortlist" in METHODS:
        unregister("shortlist")


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
    if wanted:
        assert partitions_without(settled, n_clusters, most=len(wanted) - 1) is None


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
    found = log_posterior(listed, 3, blocks, pulls, sums, SCALES)
    np.testing.assert_allclose(found - found[0], np.array(wanted) - wanted[0], atol=1e-8)


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


def test_evidence_has_mean_one_under_the_truth() -> None:
    """Over rounds drawn from the null, with bets fixed before, the mean of the factor is 1."""
    listed, pulls, sums = some_results(1)
    alive, chance, rng = np.array([1, 0, 0, 0]), np.array([0.0, 0.5, 0.2, 0.3]), np.random.default_rng(5)
    taken, centers = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 0.0, 1.0]), np.array([[0.0, 5.0], [3.0, 0.0], [-1.0, 1.0]])
    factors = np.empty(20_000)
    for i in range(factors.size):
        total = taken[:, None] * centers[listed[0]] + np.sqrt(taken)[:, None] * rng.standard_normal((7, 2))
        factors[i] = math.exp(round_logs(listed, alive, chance, pulls, sums, taken, total, SCALES)[0])
    assert factors.mean() == pytest.approx(1.0, abs=6 * factors.std() / math.sqrt(factors.size))
    assert factors.std() > 0.1


def test_rounds_count_in_order_and_complete() -> None:
    listed = np.array([[0, 0, 1], [0, 1, 1], [0, 1, 0]])
    pulls, sums = np.ones(3), np.array([[0.0], [0.1], [3.0]])
    one = Elimination(listed, 50.0, pulls, sums)
    (first, arms), (second, more) = one.compose(pulls), one.compose(pulls + 1)
    assert (first, second) == (0, 1)
    for arm in more.tolist():
        one.take(second, arm, np.array([float(arm)]))
    assert (one.log_e == 0.0).all()  # the first is not complete
    for arm in arms.tolist():
        one.take(first, arm, np.array([float(arm)]))
    assert (one.log_e != 0.0).any()
    assert not one.rounds


@pytest.mark.parametrize("workers", [1, 3])
def test_finds_the_groups_in_a_session(workers: int) -> None:
    rng = np.random.default_rng(3)
    session = coterie.Session(5, 3, 2, delta=0.01, method="shortlist", noise=1.0)
    gave_up = False
    while not session.done and session.t < 2000:
        session.ask(workers - len(session.pending))
        ticket, arm = session.pending[rng.integers(workers)]
        if session.t == 12 and not gave_up:
            gave_up = True
            session.forget(ticket)
            continue
        session.tell(arm, CLOSE.means[arm] + rng.standard_normal(2), ticket)
    assert session.done
    assert coterie.same_partition(session.labels, CLOSE.labels)


def test_needs_fewer_than_croc_where_two_small_groups_are_close() -> None:
    known = coterie.datasets.synthetic("moderate")
    needed = {}
    for method in ("croc", "shortlist"):
        trials = coterie.simulate(known, method, deltas=(0.1,), threshold="proven", trials=48, seed=2, progress=False)
        needed[method] = trials.mean()[0]
    assert needed["shortlist"] < 0.95 * needed["croc"]


def test_large_groups_are_left_to_croc() -> None:
    many = coterie.Instance(np.arange(20) % 2, [[0.0], [4.0]])
    both = [
        coterie.simulate(many, method, deltas=(0.1,), threshold="proven", trials=4, seed=2, progress=False)
        for method in ("croc", "shortlist")
    ]
    assert both[0].mean() == both[1].mean()


@pytest.mark.parametrize(
    ("labels", "gap", "dim", "delta"), [([0, 0, 1, 1], 0.8, 1, 0.5), ([0, 0, 1, 1, 2], 1.0, 2, 0.3)]
)
def test_is_wrong_no_more_often_than_stated(labels: list[int], gap: float, dim: int, delta: float) -> None:
    centers = np.zeros((max(labels) + 1, dim))
    centers[:, 0] = gap * np.arange(len(centers))
    trials = coterie.simulate(
        coterie.Instance(labels, centers), "shortlist", deltas=(delta,), threshold="proven", trials=100, seed=4,
        max_pulls=20_000, progress=False,
    )  # fmt: skip
    assert trials.errors()[0] <= binom.isf(FALSE_ALARM, 100, delta)
