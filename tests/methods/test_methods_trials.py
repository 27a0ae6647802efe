"""Trials of a method by its contract alone give what its compiled loop gives; a loop of one's own is checked."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie
from coterie import methods
from coterie.methods import Method, MethodError
from coterie.methods.trials import Plan, RunningTrials, Stops, play_by_contract, play_trial
from coterie.simulate.bulk import child_seed, plan_for, run_trial

SHAPES = {
    "plane": coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]]),
    "line": coterie.Instance([0, 0, 0, 1, 1], [[0.0], [2.5]]),
}


def assert_alike(one: dict[str, Stops], other: dict[str, Stops]) -> None:
    assert list(one) == list(other)
    for threshold in one:
        assert one[threshold].times.tolist() == other[threshold].times.tolist()
        assert one[threshold].correct.tolist() == other[threshold].correct.tolist()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", ["boc", "boc-linear", "uniform", "oracle", "croc"])
def test_generic_trial_equals_the_compiled_loop(method: str, shape: str) -> None:
    plan = plan_for(SHAPES[shape], method, (0.2, 1e-3), ("heuristic", "proven"), distance_ratio=0.5)
    for trial in range(3):
        compiled = play_trial(plan, child_seed(4, trial), RunningTrials())
        assert all((stops.times > 0).all() for stops in compiled.values())
        assert_alike(play_by_contract(plan, child_seed(4, trial), RunningTrials()), compiled)


def test_generic_trial_keeps_to_its_limit_and_ends_when_cancelled() -> None:
    free = play_by_contract(plan_for(SHAPES["line"], "uniform", 0.1, "heuristic"), child_seed(0, 0), RunningTrials())
    (stop,) = free["heuristic"].times.tolist()
    for most, expected in ((stop, stop), (stop - 1, 0)):
        held = plan_for(SHAPES["line"], "uniform", 0.1, "heuristic", max_pulls=most)
        assert play_by_contract(held, child_seed(0, 0), RunningTrials())["heuristic"].times.tolist() == [expected]
    running = RunningTrials()
    running.cancel()
    ended = play_by_contract(plan_for(SHAPES["line"], "uniform", 0.1, "heuristic"), child_seed(0, 0), running)
    assert ended["heuristic"].times.tolist() == [0]


def looping(trial: Any, **changes: Any) -> Plan:
    """The plan of a method that is none of the package and brings this loop."""
    own = replace(methods.compose("own"), trial=trial, **changes)
    return plan_for(SHAPES["line"], own, (0.2, 0.1), "heuristic")


def test_a_loop_that_a_method_brings_is_used() -> None:
    def trial(plan: Plan, seed: np.random.SeedSequence, running: RunningTrials) -> dict[str, Stops]:
        return {threshold: Stops(np.array([7, 9]), np.array([True, False])) for threshold in plan.trial_thresholds}

    outcome = run_trial(looping(trial), 0, 0, RunningTrials())
    assert outcome.stops["heuristic"].times.tolist() == [7, 9]
    assert list(run_trial(looping(trial, has_thresholds=False), 0, 0, RunningTrials()).stops) == ["proven"]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "method 'own' gave no stops of a trial for heuristic: None"),
        ({"proven": 1}, "method 'own' gave no stops of a trial for heuristic"),
        ({"heuristic": Stops(np.array([7]), np.array([True]))}, "that are not 2 times and whether each was right"),
        ({"heuristic": Stops(np.array([7.5, 8.0]), np.array([True, True]))}, "that are not 2 times"),
        ({"heuristic": (7, 8)}, "that are not 2 times"),
    ],
)
def test_a_loop_that_breaks_the_contract_is_named(found: Any, message: str) -> None:
    with pytest.raises(MethodError, match=message) as raised:
        run_trial(looping(lambda plan, seed, running: found), 0, 0, RunningTrials())
    assert raised.value.method == "own"


def test_a_loop_that_fails_is_named() -> None:
    def trial(plan: Plan, seed: np.random.SeedSequence, running: RunningTrials) -> dict[str, Stops]:
        raise ZeroDivisionError("no luck")

    with pytest.raises(MethodError, match="method 'own' failed in its loop of trials: ZeroDivisionError: no luck"):
        run_trial(looping(trial), 0, 0, RunningTrials())


def test_a_plan_brings_a_method_that_is_none_of_the_package() -> None:
    assert plan_for(SHAPES["line"], "boc", 0.1, "proven").brought is None
    own = methods.compose("own", stopping="pairs")
    plan = plan_for(SHAPES["line"], own, 0.1, "proven")
    assert plan.brought is own
    copied = pickle.loads(pickle.dumps(plan))  # as it travels to a process that has no such entry
    assert copied.entry == own
    assert_alike(
        play_trial(copied, child_seed(1, 0), RunningTrials()),
        play_trial(plan, child_seed(1, 0), RunningTrials()),
    )


def test_a_name_of_the_package_does_not_make_a_method_its_own() -> None:
    """Somebody's entry called "boc", which no table holds, is guarded like any other."""

    def start(settings: Any) -> Any:
        return None

    impostor = Method("boc", "not the paper's", start)
    with pytest.raises(MethodError, match="method 'boc' started something that is no"):
        coterie.simulate(SHAPES["line"], impostor, trials=1, progress=False, threshold="heuristic", deltas=(0.1,))
