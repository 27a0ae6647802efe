"""The soft freeze of docs/CROC.md, section 12: its lemma on all small cases; that it is CROC where no arm is open."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import coterie
from bench.families import grouped, on_a_line
from bench.soft_freeze import CLOSED_ARMS, UNMOVED_SHARE, SoftEpoch, SoftFreeze, croc, soft, stacks_of, weight_of_wrong
from coterie.reference_croc.epochs import Epoch
from coterie.theory.evidence import directed_log

LOW = 1e-9


@pytest.mark.parametrize(("n_open", "n_groups"), [(1, 4), (2, 4), (3, 3), (4, 3), (5, 2), (6, 2)])
def test_a_wrong_answer_needs_the_whole_level(n_open: int, n_groups: int) -> None:
    places = list(product(range(n_groups), repeat=n_open))
    truth = (0,) * n_open  # which group is the true one makes no difference: only who is where does
    least = math.inf
    for guess, answer in product(places, places):
        if answer != truth:
            least = min(least, weight_of_wrong(guess, truth, answer))
    assert least >= 1.0 - LOW
    # One wrong arm that nobody moved is enough for the whole level, and no more than it where it is alone in doubt.
    alone = weight_of_wrong((1, *truth[1:]), truth, (1, *truth[1:]))
    assert alone == pytest.approx(1.0 + (1.0 - UNMOVED_SHARE) / UNMOVED_SHARE / n_open)


def test_a_lower_level_for_moved_labels_would_not_do() -> None:
    """Without log(r+1): one of three wrong guesses stays, two were mended. Its evidence alone is a third of a level."""
    guess, truth, answer = (1, 1, 1), (0, 0, 0), (1, 0, 0)
    assert weight_of_wrong(guess, truth, answer) / 3.0 < 1.0


def _epoch(labels: list[int], guess: dict[int, int]) -> SoftEpoch:
    rng = np.random.default_rng(0)
    prior = {m: np.array([0.7, 0.2, 0.1]) for m in guess}
    cores = [[m for m, label in enumerate(labels) if label == k][:3] for k in range(3)]
    centers, totals = rng.normal(size=(3, 2)), np.array([9.0, 7.0, 5.0])
    return SoftEpoch(0, 30, 3.0, labels, cores, centers, totals, guess=guess, prior=prior)


def test_open_arms_are_in_no_pool_and_are_tested_against_every_group() -> None:
    labels = [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, -1, -1]
    epoch = _epoch(labels, {10: 0, 11: 2})
    assert all(not {10, 11} & {test.arm, *test.pool} for test in epoch.tests)
    assert [(test.arm, test.rival) for test in epoch.open_tests] == [(m, k) for m in (10, 11) for k in range(3)]
    assert all(not {10, 11} & set(test.pool) for test in epoch.open_tests)
    closed = Epoch(0, 30, 3.0, labels[:10], epoch.cores, epoch.centers, epoch.totals)
    assert epoch.tests == closed.tests


def test_evidence_of_an_open_arm_is_the_mean_over_where_it_may_be() -> None:
    epoch = _epoch([0, 0, 0, 1, 1, 1, 2, 2, 2, -1], {9: 0})
    test, rng = epoch.open_tests[1], np.random.default_rng(1)
    epoch.contrasts[test] = [(rng.normal(size=2), v) for v in (1.5, 1.25, 2.0)]
    n = sum(1.0 / v for _, v in epoch.contrasts[test])
    total = np.sum([contrast / v for contrast, v in epoch.contrasts[test]], axis=0)
    wanted = 0.0
    for home, weight in ((0, 0.7), (2, 0.1)):
        theta = epoch.centers[home] - epoch.centers[1]
        spread = 1.0 / epoch.totals[home] + 1.0 / epoch.totals[1]
        wanted += weight / 0.8 * math.exp(directed_log(n, total, theta, spread))
    assert epoch.mixture(test) == pytest.approx(math.log(wanted))
    assert epoch.asked(9) == pytest.approx(3.0 + math.log(1.0 / UNMOVED_SHARE))
    epoch.moved = {9}
    assert epoch.asked(9) == pytest.approx(3.0 + math.log(1.0 / (1.0 - UNMOVED_SHARE)))


def test_where_no_arm_may_be_open_it_is_croc() -> None:
    """No estimate has a group of more than M − K + 1 = 4 arms; and M·K·d < 200, so that CROC has no short plans."""
    assert CLOSED_ARMS == 4
    instance = grouped((2, 2, 2), on_a_line((0.0, 1.5, 3.0), 2))
    for trial in range(3):
        assert soft(instance, 0.1, trial) == croc(instance, 0.1, trial)


def test_wrong_open_arms_mended_at_will_error_rate_within_delta() -> None:
    """The worst that choosing can do: of the wrong open arms, all are mended but those with the most evidence.

    4 000 runs of three arms that share a pool, at e^−b = 0.3; more than 0.3 + 3.3·√(0.21/4000) of them wrong would come
    by chance once in 2 000 times.
    """
    rng, runs, wrong_arms, rounds, level = np.random.default_rng(5), 4000, 3, 80, -math.log(0.3)
    pool, own = rng.normal(size=(rounds, runs, 1)) / math.sqrt(3.0), rng.normal(size=(rounds, runs, wrong_arms))
    v, theta, spread = 1.0 + 1.0 / 3.0, 0.7, 0.1
    total, n = np.cumsum((own - pool) / v, axis=0), (np.arange(rounds) + 1.0)[:, None, None] / v
    growth = 1.0 + n * spread
    evidence = (2.0 * theta * total + spread * total**2 - n * theta**2) / (2.0 * growth) - 0.5 * np.log(growth)
    evidence = -np.sort(-evidence, axis=2)  # the largest first
    wrong = np.zeros(runs, dtype=bool)
    for left in range(1, wrong_arms + 1):  # so many are not mended: r = n − left
        asked = level + math.log((wrong_arms - left + 1.0) / UNMOVED_SHARE)
        wrong |= (evidence[:, :, left - 1] >= asked).any(axis=0)
    assert 0.02 < wrong.mean() <= 0.3 + 3.3 * math.sqrt(0.21 / runs)


def test_arms_are_opened_and_the_answer_is_right() -> None:
    instance: coterie.Instance = grouped((10, 10, 10), on_a_line((0.0, 2.0, 4.0), 2))
    opened = 0
    for trial in range(4):
        run, draw = SoftFreeze(instance.n_arms, instance.n_clusters, instance.dim, 1e-3), stacks_of(instance, trial)
        while (arm := run.ask()) is not None:
            run.tell(arm, draw(arm))
        assert coterie.same_partition(run.labels, instance.labels)
        opened += sum(len(epoch.guess) for epoch in run.freezes if isinstance(epoch, SoftEpoch))
    assert opened > 0
