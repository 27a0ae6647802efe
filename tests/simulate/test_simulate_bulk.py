"""`run_trials`: any of the trials, alone and in any order, and an end that leaves nothing behind."""

from __future__ import annotations

import pickle
import signal
import threading
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.methods.trials import Plan
from coterie.simulate.bulk import Outcome, child_seed, plan_for, run_trials
from coterie.simulate.trials import trials_from

INST = coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
METHODS = ("croc", "boc", "boc-linear", "uniform", "oracle")


def plan_of(method: str, **settings: Any) -> Plan:
    return plan_for(INST, method, (1e-3, 0.1, 0.1), ("heuristic", "proven"), distance_ratio=0.5, **settings)


def outcomes_of(plan: Plan, seed: int, trials: Any, **settings: Any) -> list[Outcome]:
    found: list[Outcome] = []
    run_trials(plan, seed, trials, finished=found.append, **settings)
    return found


def test_child_seed_equals_the_spawned_one() -> None:
    for seed in (0, 5, 2**70):
        for trial, spawned in enumerate(np.random.SeedSequence(seed).spawn(4)):
            mine = child_seed(seed, trial)
            assert np.array_equal(mine.generate_state(8), spawned.generate_state(8))


def test_a_plan_has_distinct_deltas_in_order_and_the_thresholds_that_mean_something() -> None:
    plan = plan_of("boc")
    assert plan.deltas == (0.1, 1e-3)
    assert plan.log_inverse_deltas == (-np.log(0.1), -np.log(1e-3))
    assert plan.columns((1e-3, 0.1)) == [1, 0]
    assert plan.thresholds == plan.trial_thresholds == ("heuristic", "proven")
    assert plan_for(INST, "boc", 0.1, ["proven", "proven"]).trial_thresholds == ("proven",)
    certified = plan_of("croc")
    assert certified.thresholds == ("heuristic", "proven")
    assert certified.trial_thresholds == ("proven",)
    assert certified.reported_at("heuristic") == "proven"


@pytest.mark.parametrize("method", METHODS)
def test_some_trials_keep_the_numbers_of_all(method: str) -> None:
    plan = plan_of(method)
    whole = {outcome.trial: outcome for outcome in outcomes_of(plan, 3, range(12), workers=2)}
    some = outcomes_of(plan, 3, [11, 2, 7], workers=2)
    assert sorted(outcome.trial for outcome in some) == [2, 7, 11]
    copied = outcomes_of(pickle.loads(pickle.dumps(plan)), 3, [7])  # as it travels to another process
    for outcome in [*some, *copied]:
        assert tuple(outcome.stops) == plan.trial_thresholds
        for threshold, stops in outcome.stops.items():
            assert stops.times.dtype == np.int64
            assert stops.times.shape == stops.correct.shape == (2,)
            assert np.array_equal(stops.times, whole[outcome.trial].stops[threshold].times)
            assert np.array_equal(stops.correct, whole[outcome.trial].stops[threshold].correct)
        assert 0 < outcome.seconds < 60
    trials = coterie.simulate(
        INST, method, deltas=(1e-3,), trials=12, seed=3, distance_ratio=0.5, threshold="heuristic"
    )
    kind = plan.reported_at("heuristic")
    assert [whole[trial].stops[kind].times[1] for trial in range(12)] == trials.stopping_times[:, 0].tolist()
    same = trials_from(plan, "heuristic", (1e-3,), 3, list(whole.values())[::-1])
    assert np.array_equal(same.stopping_times, trials.stopping_times)
    assert np.array_equal(same.correct, trials.correct)


def test_trials_that_do_not_stop_have_no_stop() -> None:
    for method in METHODS:
        (outcome,) = outcomes_of(plan_of(method, max_pulls=3), 0, [5])
        assert outcome.stops
        for stops in outcome.stops.values():
            assert not stops.times.any()
            assert not stops.correct.any()


def test_finished_is_called_in_this_thread() -> None:
    threads = set()
    run_trials(plan_of("boc"), 0, range(20), workers=3, finished=lambda _: threads.add(threading.current_thread()))
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("method", ["boc", "croc"])
def test_an_exception_in_finished_ends_the_others(workers: int, method: str) -> None:
    outcomes_of(plan_of(method), 0, [0])  # loaded
    before, seen = threading.active_count(), []

    def finished(outcome: Outcome) -> None:
        seen.append(outcome.trial)
        if len(seen) == 3:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run_trials(plan_of(method), 0, range(10_000), workers=workers, finished=finished)
    assert len(seen) == len(set(seen)) == 3
    assert threading.active_count() == before


def test_interrupt_reports_nothing_more() -> None:
    seen: list[int] = []

    def finished(outcome: Outcome) -> None:
        seen.append(outcome.trial)
        if len(seen) == 5:
            signal.raise_signal(signal.SIGINT)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_trials(plan_of("uniform"), 0, range(10_000), workers=2, finished=finished)
    assert len(seen) == len(set(seen)) == 5
    assert threading.active_count() == before


def test_no_trials_are_no_work() -> None:
    assert outcomes_of(plan_of("boc"), 0, []) == []
    assert outcomes_of(plan_of("boc"), 0, [], scheduler="tcp://127.0.0.1:1") == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"trials": [3, 1, 3]}, ValueError, "each trial can be run once, got 3 several times"),
        ({"trials": [-1]}, ValueError, "a trial's number must be at least 0, got -1"),
        ({"trials": [0.5]}, TypeError, r"a trial's number must be an integer, got 0\.5"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"workers": 0}, ValueError, "workers must be at least 1, got 0"),
        ({"workers": 1, "scheduler": "tcp://h:1"}, ValueError, "give one of the two"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        outcomes_of(**{"plan": plan_of("boc"), "seed": 0, "trials": [0], **change})
