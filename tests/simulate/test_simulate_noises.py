"""`simulate` with what a method may assume: every kind of noise, by every loop, and what is refused."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest
from known import known
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.methods.croc.run import CrocRun
from coterie.methods.family import family_for
from coterie.methods.trials import RunningTrials, play_to_next_plan
from coterie.methods.trials import play_by_contract as play_one_by_one
from coterie.problem.partition import canonical
from coterie.simulate.bulk import child_seed, plan_for, run_trial
from coterie.simulate.worlds import world_of

INST = coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
RATED = coterie.Instance([0, 0, 1, 1, 1], [[2.0], [4.0]])
UNEVEN = coterie.Instance([0, 0, 1, 1, 2, 2], [[0.0], [1.5], [6.0]])
RATES = coterie.Instance([0, 0, 1, 1, 1], [[0.1], [0.6]])

CASES: dict[str, tuple[coterie.Instance, Any, Any]] = {
    # an instance, what is assumed, and a world whose draws do not depend on how many are drawn together
    "known": (INST, 1.0, "t3"),
    "known covariance": (INST, [[1.0, 0.5], [0.5, 1.0]], "correlated:0.5"),
    "any": (INST, None, "t3"),
    "gaussian": (INST, "gaussian", "correlated:0.5"),
    "gaussian, scalar": (INST, coterie.Gaussian("scalar"), "normal:2"),
    "gaussian, diagonal": (INST, coterie.Gaussian("diagonal"), None),
    "gaussian, scalar, uneven gaps": (UNEVEN, coterie.Gaussian("scalar"), None),
    "counts": (RATES, coterie.Counts(10), "clicks:10"),
    "poisson": (RATED, coterie.Poisson(), "events"),
    "exponential": (RATED, coterie.Exponential(), "waits"),
    "bounded": (RATED, coterie.Bounded(1, 5), "ratings"),
    "at-most": (INST, coterie.AtMost(1.0), "exponential"),
    "symmetric": (INST, coterie.Symmetric(), "scaled:1,2,0.5,1,1,1"),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_trial_fed_in_batches_equals_one_fed_by_asking(name: str) -> None:
    instance, noise, world = CASES[name]
    plan = plan_for(instance, "croc", (0.2, 1e-3), "proven", 3000, noise=noise, world=world)
    for trial in range(3):
        batched = run_trial(plan, 7, trial, RunningTrials()).stops["proven"]
        single = play_one_by_one(plan, child_seed(7, trial), RunningTrials())["proven"]
        assert np.array_equal(batched.times, single.times)
        assert np.array_equal(batched.correct, single.correct)
        assert (batched.times > 0).all()


@pytest.mark.parametrize("name", list(CASES))
def test_a_live_session_on_the_same_stream_is_the_simulated_run(name: str) -> None:
    """The same arms in the same order, the same stop and the same groups, trial by trial."""
    instance, noise, world = CASES[name]
    drawn = world_of(world) or coterie.worlds.Normal()
    for trial in range(20):
        seed = child_seed(3, trial)
        arms: list[int] = []

        def recorded(rng: np.random.Generator, some: Any, means: Any, arms: list[int] = arms) -> Any:
            arms += some.tolist()
            return drawn.draw(rng, some, means)

        plan = plan_for(instance, "croc", (0.1,), "proven", 3000, noise=noise, world=recorded)
        stops = run_trial(plan, 3, trial, RunningTrials()).stops["proven"]
        simulated, rng = arms.copy(), np.random.default_rng(seed)
        session = coterie.Session(instance.n_arms, instance.n_clusters, instance.dim, 0.1, noise=noise)
        asked = []
        while not session.done:
            asked.append(session.ask())
            session.tell(asked[-1], plan.results(rng, np.array(asked[-1:]))[0])
        assert asked == simulated
        assert session.t == stops.times[0]
        assert coterie.same_partition(session.labels, instance.labels) == stops.correct[0]
        assert known(session.labels).tolist() == labels_of_simulated_run(plan, seed)


def labels_of_simulated_run(plan: Any, seed: Any) -> list[int]:
    inst = plan.instance
    shape = (inst.n_arms, inst.n_clusters, inst.dim)
    run, rng = CrocRun(*shape, -math.log(0.1), family_for(plan.noise, *shape)), np.random.default_rng(seed)
    while not run.done:
        play_to_next_plan(run, plan, rng, 3000)
    labels: list[int] = canonical(run.labels).tolist()
    return labels


@pytest.mark.parametrize("rates", [[[0.02], [0.2]], [[0.05, 0.05], [0.2, 0.2]]])
def test_results_of_0_or_1_end_without_a_stated_noise(rates: list[list[float]]) -> None:
    """The rarer value is no outlier: pulled in, it made the noise look too small, and some runs never ended."""
    instance = coterie.Instance([0, 0, 0, 1, 1, 1], rates)
    runs = coterie.simulate(instance, deltas=0.1, trials=60, seed=5, noise=None, world="clicks", max_pulls=5000)
    assert isinstance(runs, coterie.Trials)
    assert (runs.stopping_times > 0).all()


def test_the_paper_s_methods_say_that_they_need_a_known_noise() -> None:
    for method in ("boc", "uniform"):
        with pytest.raises(ValueError, match=f'method "{method}" needs to know the noise'):
            coterie.simulate(INST, method, trials=1, noise=None)
    found = coterie.simulate(INST, "boc", trials=2, noise=1.5, world="t3", progress=False)
    assert (found.stopping_times > 0).all()


def test_results_that_contradict_what_is_assumed_are_named() -> None:
    with pytest.raises(ValueError, match=r"contradict the noise that is assumed \(counts\): .* whole number"):
        coterie.simulate(RATED, "croc", trials=1, noise=coterie.Counts(10), progress=False)
    with pytest.raises(ValueError, match=r"contradict the noise that is assumed \(bounded\): .* between 1 and 5"):
        coterie.simulate(RATED, "croc", trials=1, noise=coterie.Bounded(1, 5), progress=False)


def test_any_number_of_workers_keeps_the_numbers() -> None:
    for name in ("any", "counts"):
        instance, noise, world = CASES[name]
        one, three = (
            coterie.simulate(
                instance, "croc", trials=6, seed=2, workers=workers, noise=noise, world=world, progress=False
            )
            for workers in (1, 3)
        )
        assert np.array_equal(one.stopping_times, three.stopping_times)


def test_the_command_takes_noise_and_world() -> None:
    run = CliRunner()
    words = ["simulate", "easy", "--method", "croc", "--trials", "2", "--workers", "1", "--json"]
    answer = run.invoke(app, [*words, "--noise", "any", "--world", "t3"])
    assert answer.exit_code == 0, answer.output
    assert '"noise": "any"' in answer.stdout
    assert '"world": "t3"' in answer.stdout
    plain = run.invoke(app, words)
    assert '"world": "normal:1"' in plain.stdout
    assert plain.stdout == run.invoke(app, [*words, "--noise", "1", "--world", "normal:1"]).stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals and process groups of POSIX")
def test_worlds_travel_to_a_cluster(two_workers: Any) -> None:
    def own(rng: np.random.Generator, arms: np.ndarray, means: np.ndarray) -> np.ndarray:
        return means + rng.laplace(size=means.shape)

    for noise, world in ((None, coterie.worlds.Student(3)), (2.0, own)):
        settings: dict[str, Any] = {"deltas": (0.1,), "trials": 6, "seed": 4, "noise": noise, "world": world}
        here = coterie.simulate(INST, "croc", progress=False, **settings)
        there = coterie.simulate(INST, "croc", progress=False, scheduler=two_workers.address, **settings)
        assert np.array_equal(here.stopping_times, there.stopping_times)
        assert np.array_equal(here.correct, there.correct)
