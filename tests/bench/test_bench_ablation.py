"""Sampling × stopping: universal inference against its definition, CROC's halves, workers on families."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import binom, norm

import coterie
from bench import ablation, crews
from bench.cells import Ending, Endings, cell
from bench.part import Row
from bench.peers.universal import UniversalStop, partitions, stirling
from bench.sampling_stopping import (
    Challenger,
    InTurn,
    PairsFromTheStart,
    PairsOnly,
    RoundsInTurn,
    Tracking,
    TrackingRounds,
    universal,
)
from coterie.methods.trials import RunningTrials
from coterie.problem.partition import same_partition

THREE = coterie.Instance([0, 0, 1, 1, 2], [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
CLOSE = coterie.Instance([0, 0, 1, 1], [[0.0], [0.9]])


def groups(codes: np.ndarray, n_arms: int) -> frozenset[frozenset[int]]:
    return frozenset(frozenset(m for m in range(n_arms) if code >> m & 1) for code in codes.tolist())


@pytest.mark.parametrize(("n_arms", "n_groups"), [(4, 2), (5, 3), (6, 2), (7, 6)])
def test_all_partitions_are_listed_once(n_arms: int, n_groups: int) -> None:
    listed = [groups(codes, n_arms) for codes in partitions(n_arms, n_groups)]
    every = {
        frozenset(frozenset(m for m in range(n_arms) if labels[m] == k) for k in range(n_groups))
        for labels in itertools.product(range(n_groups), repeat=n_arms)
        if len(set(labels)) == n_groups
    }
    assert len(listed) == len(set(listed)) == stirling(n_arms, n_groups) == len(every)
    assert set(listed) == every


def test_too_many_partitions_are_refused_with_their_number() -> None:
    with pytest.raises(ValueError, match="580,606,446 partitions of 20 arms into 3 groups"):
        partitions(20, 3)


def told(stop: UniversalStop, instance: coterie.Instance, results: int, seed: int) -> list[tuple[int, np.ndarray]]:
    """So many results in turn, or fewer if it is done."""
    rng, record = np.random.default_rng(seed), []
    for t in range(results):
        arm = t % instance.n_arms
        record.append((arm, instance.means[arm] + rng.standard_normal(instance.dim)))
        stop.tell(*record[-1])
        if stop.done:
            break
    return record


def test_universal_statistic_matches_oracle() -> None:
    """log L_t(c) from centers and densities, one result after the other; what is refuted follows from it."""
    level = 3.0
    stop = UniversalStop(5, 3, 2, level)
    later = told(stop, THREE, 40, 1)[5:]  # the first pass only predicts
    left = {groups(stop._all[i], 5) for i in stop._left}
    refuted = 0
    for codes in partitions(5, 3):
        home = {m: k for k, code in enumerate(codes.tolist()) for m in range(5) if code >> m & 1}
        centers = [np.mean([x for arm, x in later if home[arm] == k], axis=0) for k in range(3)]
        largest = sum(norm.logpdf(x - centers[home[arm]]).sum() for arm, x in later)
        over = stop._predicted - largest >= level
        refuted += over
        assert not (over and groups(codes, 5) in left)  # refuted now, so not left (it may have been before)
    assert 0 < refuted < 25


def test_what_is_predicted_is_a_density() -> None:
    stop = UniversalStop(4, 2, 1, 100.0)
    told(stop, CLOSE, 17, 2)
    grid = np.linspace(-12.0, 12.0, 6001)
    for arm in range(4):
        values = [math.exp(stop._log_prediction(arm, np.array([x]))) for x in grid]
        assert trapezoid(values, grid) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
def test_universal_inference_error_rate_within_delta() -> None:
    """A false alarm has probability 1e-4. Arms in turn and by the challenger, at δ = 0.3."""
    delta, runs = 0.3, 150
    for challenged in (False, True):
        wrong = 0
        for seed in range(runs):
            stop = universal((4, 2, 1), delta)
            sampler = Challenger((4, 2, 1), delta, stop) if challenged else InTurn((4, 2, 1), delta)
            rng = np.random.default_rng([seed, challenged])
            while not stop.done:
                arm = sampler.ask()
                x = CLOSE.means[arm] + rng.standard_normal(1)
                sampler.tell(arm, x)
                stop.tell(arm, x)
            wrong += not same_partition(stop.labels, CLOSE.labels)
        assert wrong <= binom.isf(1e-4, runs, delta)


def test_pairs_alone_have_all_of_delta() -> None:
    m, k, delta = 6, 2, 0.05
    level = math.log((m - k + 1) * (m - k) / 2 / delta)
    assert PairsFromTheStart((m, k, 1), delta)._run.pair_level == pytest.approx(level)
    assert PairsOnly(m, k, 1, delta)._pairs.level == pytest.approx(level)


@pytest.mark.parametrize("way", [way for way in ablation.WAYS if way not in ablation.ENGINE])
def test_every_way_finds_the_groups(way: tuple[str, str]) -> None:
    end = ablation.ended(THREE, way, [3, 0], 3000, RunningTrials())
    assert end.done
    assert end.correct
    assert end.t >= 5
    assert ablation.ended(THREE, way, [3, 0], 4, RunningTrials()) == Ending(4, False, done=False)


def test_rounds_of_others_are_fixed_by_their_rule_and_can_be_proven() -> None:
    for kind in (RoundsInTurn, TrackingRounds):
        run, rng = kind(4, 2, 1, 0.05), np.random.default_rng(4)
        while not run.done:
            arm = run.ask()
            assert arm is not None
            run.tell(arm, CLOSE.means[arm] + rng.standard_normal(1))
        assert run.by == "epoch"
        assert all(sum(one.pulls.values()) == 4 for one in run.rounds)
        if kind is RoundsInTurn:
            assert all(set(one.pulls.values()) == {1} for one in run.rounds)


def test_tracking_is_that_of_boc() -> None:
    """Asked one by one, it measures what a session of BOC measures."""
    session = coterie.Session(5, 3, 2, 0.05, method="boc", noise=1.0)
    sampler, rng = Tracking((5, 3, 2), 0.05), np.random.default_rng(5)
    for _ in range(120):
        arm = sampler.ask()
        assert arm == session.ask()
        x = THREE.means[arm] + rng.standard_normal(2)
        sampler.tell(arm, x)
        session.tell(arm, x)


def test_ways_are_compared_by_medians() -> None:
    def row(sampling: str, stopping: str, median: float | None, over: float | None) -> Row:
        made = {"case": "c", "sampling": sampling, "stopping": stopping, "over_croc": over, "cap": 99}
        return made | {"median": median, "at_least": median is None}

    lines = ablation.headlines([
        row(ablation.CROC, ablation.CERTIFICATE, 10.0, 1.0), row(ablation.IN_TURN, ablation.CERTIFICATE, 20.0, 2.0),
        row(ablation.IN_TURN, ablation.UNIVERSAL, None, 9.9), row(ablation.TRACKING, ablation.UNIVERSAL, 30.0, 3.0),
    ])  # fmt: skip
    found = {line.what.partition(", over")[0]: line.measured for line in lines}
    assert found == {
        "CROC's certificate with arms in turn": "2× to 2×",
        "universal inference, best sampling": "3× to 3×",
    }
    assert not ablation.can("four of 10, d=3", (ablation.IN_TURN, ablation.UNIVERSAL))
    unfinished = cell("m", Endings({0.05: [Ending(99, False, done=False)] * 2}), 0.05) | {"cap": 99}
    assert ablation.mean_text(unfinished) == "> 99 in 2"


def test_workers_on_families_are_compared_with_one() -> None:
    one = crews.row_of("c", 1, [(Ending(10, True), 10), (Ending(30, True), 30)], None)
    eight = crews.row_of("c", 8, [(Ending(30, True), 38), (Ending(30, False), 38)], one)
    in_turn = crews.row_of("c", crews.TOLD, [(Ending(50, True), 0), (Ending(99, False, done=False), 0)], one)
    assert (eight["over_one"], eight["asked_over_one"], eight["wrong"]) == (1.5, 1.9, 1)
    assert (in_turn["median"], in_turn["over_one"], in_turn["unfinished"], in_turn["asked"]) == (None, None, 1, None)
    lines = crews.headlines([one, eight, in_turn])
    assert [line.measured for line in lines] == ["1.5×", "1 of 6"]
    end, asked = crews.played("M=12, K=11, d=3", 8, 0, 2000)
    assert end.done
    assert end.t <= asked
