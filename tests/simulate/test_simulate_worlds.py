"""Worlds: what they draw has the moments that they promise, and the same seed gives the same trials anywhere.

Moments are compared with formulas at fixed seeds. A mean of N draws may be five standard errors off: a false alarm has
probability below 1e-6 for each, and there are fewer than 100.
"""

from __future__ import annotations

import copy
import math
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from scipy import stats

import coterie
from coterie import worlds
from coterie.methods.trials import RunningTrials
from coterie.methods.trials import play_by_contract as play_one_by_one
from coterie.simulate.bulk import child_seed, plan_for, run_trial
from coterie.simulate.worlds import World, world_from_text, world_of

N = 200_000
INST = coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
RATED = coterie.Instance([0, 0, 1, 1], [[2.0, 2.5], [4.0, 3.5]])
RATES = coterie.Instance([0, 0, 1, 1], [[0.1, 0.5], [0.6, 0.5]])
COVARIANCE = [[1.0, 0.6], [0.6, 2.0]]


def shifted_exponential(rng: np.random.Generator, arms: np.ndarray, means: np.ndarray) -> np.ndarray:
    """A world of one's own, which another process can import."""
    return means + rng.exponential(size=means.shape) - 1.0


CASES: list[tuple[Any, coterie.Instance]] = [
    (worlds.Normal(), INST),
    (worlds.Normal(2.0), INST),
    (worlds.Student(3), INST),
    (worlds.Student(1), INST),
    (worlds.Skewed(), INST),
    (worlds.Skewed("lognormal", 0.5), INST),
    (worlds.Skewed("exponential"), INST),
    (worlds.Contaminated(0.05, 10.0), INST),
    (worlds.Scaled([1.0, 2.0, 0.5, 1.0, 1.0, 3.0]), INST),
    (worlds.Scaled([1.0, 2.0, 0.5, 1.0, 1.0, 3.0], "t5"), INST),
    (worlds.Correlated(COVARIANCE), INST),
    (worlds.Correlated(0.5), INST),
    (worlds.Ratings(), RATED),
    (worlds.Clicks(20), RATES),
    (worlds.Own(shifted_exponential), INST),
]


def drawn(world: World, instance: coterie.Instance, arm: int, n: int = N, seed: int = 1) -> np.ndarray:
    arms = np.full(n, arm)
    return world.draw(np.random.default_rng(seed), arms, instance.means[arms])


def assert_mean(values: np.ndarray, expected: float, deviation: float) -> None:
    """Within five standard errors."""
    assert abs(values.mean() - expected) <= 5 * deviation / math.sqrt(values.size)


ADDED: list[tuple[Any, float, float]] = [
    # a world whose noise is the same for all arms, its variance, and its excess kurtosis (for the standard error)
    (worlds.Normal(), 1.0, 0.0),
    (worlds.Normal(2.0), 4.0, 0.0),
    (worlds.Student(9), 1.0, 6 / 5),
    (worlds.Skewed("exponential"), 1.0, 6.0),
    (worlds.Skewed("lognormal", 0.5), 1.0, float(stats.lognorm.stats(0.5, moments="k"))),
    (worlds.Contaminated(0.05, 10.0), 0.95 + 5.0, 3 * (0.95 + 500.0) / 5.95**2 - 3),
    (worlds.Own(shifted_exponential), 1.0, 6.0),
]


@pytest.mark.parametrize(("world", "variance", "kurtosis"), ADDED)
def test_noise_has_mean_zero_and_the_variance_that_is_promised(world: Any, variance: float, kurtosis: float) -> None:
    x = drawn(world, INST, 3) - INST.means[3]
    for q in range(2):
        assert_mean(x[:, q], 0.0, math.sqrt(variance))
        assert_mean(x[:, q] ** 2, variance, variance * math.sqrt(kurtosis + 2))
    if not isinstance(world, worlds.Contaminated):  # the numbers of a result vary independently
        assert_mean(x[:, 0] ** 2 * x[:, 1] ** 2, variance**2, variance**2 * (kurtosis + 3))


def test_shapes_match_oracle() -> None:
    """The whole distributions, by Kolmogorov and Smirnov; false alarm 1e-6 each."""
    sigma = 1.0
    lognormal = stats.lognorm(sigma)
    for world, law in (
        (worlds.Student(3), stats.t(3, scale=math.sqrt(1 / 3))),
        (worlds.Student(1.5), stats.t(1.5)),
        (worlds.Skewed("exponential"), stats.expon(-1.0)),
        (worlds.Skewed(), stats.lognorm(sigma, -lognormal.mean() / lognormal.std(), 1 / lognormal.std())),
    ):
        x = drawn(world, INST, 0, 20_000)
        for q in range(2):
            assert stats.kstest(x[:, q], law.cdf).pvalue > 1e-6


def test_outliers_are_whole_results() -> None:
    x = np.abs(drawn(worlds.Contaminated(0.05, 1e6), INST, 0)) > 100.0
    assert_mean(x[:, 0], 0.05, math.sqrt(0.05 * 0.95))
    assert (x[:, 0] == x[:, 1]).mean() > 0.9999


def test_scales_are_those_of_the_arms() -> None:
    scales = [1.0, 2.0, 0.5, 1.0, 1.0, 3.0]
    for arm, scale in enumerate(scales):
        x = drawn(worlds.Scaled(scales), INST, arm) - INST.means[arm]
        assert_mean(x**2, scale**2, scale**2 * math.sqrt(2))


@pytest.mark.parametrize(("given", "covariance"), [(COVARIANCE, COVARIANCE), (0.5, [[1.0, 0.5], [0.5, 1.0]])])
def test_covariance_is_that_stated(given: Any, covariance: list[list[float]]) -> None:
    x = drawn(worlds.Correlated(given), INST, 1) - INST.means[1]
    for i in range(2):
        for j in range(2):
            spread = math.sqrt(covariance[i][i] * covariance[j][j] + covariance[i][j] ** 2)
            assert_mean(x[:, i] * x[:, j], covariance[i][j], spread)


def test_ratings_are_whole_numbers_with_the_means_of_the_instance() -> None:
    x = drawn(worlds.Ratings(), RATED, 2)
    assert set(np.unique(x)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    for q, mean in enumerate(RATED.means[2]):
        share = (mean - 1) / 4
        assert_mean(x[:, q], mean, math.sqrt(4 * share * (1 - share)))
        counts = np.bincount(x[:, q].astype(int), minlength=6)[1:]
        assert stats.chisquare(counts, N * stats.binom(4, share).pmf(np.arange(5))).pvalue > 1e-6
    ends = coterie.Instance([0, 0, 1], [[1.0], [5.0]])
    assert (drawn(worlds.Ratings(), ends, 0, 50) == 1.0).all()
    assert (drawn(worlds.Ratings(), ends, 2, 50) == 5.0).all()


def test_clicks_are_counts_at_the_rates_of_the_instance() -> None:
    x = drawn(worlds.Clicks(20), RATES, 0)
    assert ((x == np.floor(x)) & (x >= 0) & (x <= 20)).all()
    for q, rate in enumerate(RATES.means[0]):
        assert_mean(x[:, q], 20 * rate, math.sqrt(20 * rate * (1 - rate)))


@pytest.mark.parametrize(("world", "instance"), CASES)
def test_a_world_keeps_what_it_draws_through_pickles_and_copies(world: World, instance: coterie.Instance) -> None:
    arms = np.array([0, 3, 3, 1])
    first = world.draw(np.random.default_rng(5), arms, instance.means[arms])
    assert first.shape == (4, 2)
    for other in (pickle.loads(pickle.dumps(world)), copy.deepcopy(world)):
        assert other == world
        assert hash(other) == hash(world)
        assert np.array_equal(other.draw(np.random.default_rng(5), arms, instance.means[arms]), first)


@pytest.mark.parametrize("method", ["croc", "boc", "boc-linear", "uniform", "oracle"])
def test_the_normal_world_keeps_the_trials_of_none(method: str) -> None:
    """The loops that feed results from a world ask and stop exactly as the compiled ones, which draw their own."""
    settings: dict[str, Any] = {"deltas": (0.1, 1e-4), "trials": 6, "seed": 3, "distance_ratio": 0.5, "progress": False}
    wide = 1.0 if method == "croc" else 3.0  # the others need more, and are asked and told one by one
    instance = coterie.Instance([0, 0, 1, 1, 1, 2, 2, 0], wide * np.array([[0.0, 0.0], [1.1, 0.0], [0.0, 1.3]]))
    plain = coterie.simulate(instance, method, **settings)
    fed = coterie.simulate(instance, method, world=worlds.Normal(), **settings)
    named = coterie.simulate(instance, method, world="normal", noise=1.0, **settings)
    for other in (fed, named):
        assert np.array_equal(other.stopping_times, plain.stopping_times)
        assert np.array_equal(other.correct, plain.correct)


def test_limits_of_measurements_keep_the_trials_that_end_before() -> None:
    settings: dict[str, Any] = {"deltas": (0.1,), "trials": 20, "seed": 3, "world": "normal", "progress": False}
    free = coterie.simulate(INST, "croc", **settings).stopping_times
    limit = int(np.median(free))
    cut = coterie.simulate(INST, "croc", max_pulls=limit, **settings).stopping_times
    assert np.array_equal(cut, np.where(free <= limit, free, -1))
    assert (cut == -1).any()


def test_results_in_units_of_the_noise_keep_the_trials() -> None:
    """Twice the means, twice the noise, and a method that knows: the same trials, but for rounding."""
    twice = coterie.Instance(INST.labels, 2.0 * INST.centers)
    for method in ("croc", "boc"):
        settings: dict[str, Any] = {"deltas": (0.01,), "trials": 8, "seed": 3, "progress": False}
        one = coterie.simulate(INST, method, **settings)
        two = coterie.simulate(twice, method, noise=2.0, world=worlds.Normal(2.0), **settings)
        assert np.array_equal(one.stopping_times, two.stopping_times)


def test_a_croc_trial_fed_in_batches_equals_one_fed_by_asking() -> None:
    """Draws of these worlds do not depend on how many are drawn together, so that the two loops can be compared."""
    for world in (worlds.Student(3), worlds.Skewed("exponential"), worlds.Correlated(0.5)):
        plan = plan_for(INST, "croc", (0.1, 1e-3), "proven", noise=1.0, world=world)
        for trial in range(4):
            batched = run_trial(plan, 7, trial, RunningTrials()).stops["proven"]
            single = play_one_by_one(plan, child_seed(7, trial), RunningTrials())["proven"]
            assert np.array_equal(batched.times, single.times)


def simulated(arguments: tuple[Any, coterie.Instance, int | None]) -> np.ndarray:
    world, instance, workers = arguments
    found = coterie.simulate(
        instance, "croc", deltas=(0.2,), trials=3, seed=4, workers=workers, noise=1.0, world=world, max_pulls=200,
        progress=False,
    )  # fmt: skip
    return found.stopping_times


def test_the_same_seed_keeps_the_trials_with_any_workers_and_in_other_processes() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = list(pool.map(simulated, [(world, instance, 1) for world, instance in CASES]))
    for (world, instance), other in zip(CASES, there, strict=True):
        here = [simulated((world, instance, workers)) for workers in (1, 3)]
        assert np.array_equal(here[0], here[1])
        assert np.array_equal(here[0], other)


def test_a_stated_noise_that_is_wrong_proves_wrong_groups() -> None:
    """5 % outliers of sd 10 and a stated sd of 1: what the guarantee does not cover. The true rate is above 0.8."""
    instance = coterie.datasets.synthetic("challenging")
    found = coterie.simulate(instance, "croc", trials=24, seed=1, world="contaminated:0.05,10", progress=False)
    assert found.errors()[0] >= 14


def test_a_world_of_ones_own_is_a_function_or_an_object_that_draws() -> None:
    class Flat:
        def draw(self, rng: np.random.Generator, arms: np.ndarray, means: np.ndarray) -> np.ndarray:
            return means + rng.uniform(-1.0, 1.0, means.shape)

    settings: dict[str, Any] = {"deltas": (0.1,), "trials": 4, "seed": 1, "progress": False}
    flat = coterie.simulate(INST, "croc", world=Flat(), **settings)
    same = coterie.simulate(INST, "croc", world=lambda rng, arms, m: m + rng.uniform(-1.0, 1.0, m.shape), **settings)
    assert np.array_equal(flat.stopping_times, same.stopping_times)
    with pytest.raises(ValueError, match=r"shape \(6, 2\), but gave shape \(6, 1\)"):
        coterie.simulate(INST, "croc", world=lambda rng, arms, means: means[:, :1], **settings)
    with pytest.raises(ValueError, match="must be finite"):
        coterie.simulate(INST, "croc", world=lambda rng, arms, means: means + math.inf, **settings)
    with pytest.raises(TypeError, match="world must be one of"):
        coterie.simulate(INST, "croc", world=3, **settings)
    with pytest.raises(TypeError, match=r"write Student\("):
        coterie.simulate(INST, "croc", world=worlds.Student, **settings)


@pytest.mark.parametrize(
    ("text", "world"),
    [
        ("t3", worlds.Student(3)),
        ("t:2.5", worlds.Student(2.5)),
        ("T2.5", worlds.Student(2.5)),
        ("normal:2", worlds.Normal(2.0)),
        ("lognormal", worlds.Skewed()),
        ("lognormal:0.5", worlds.Skewed("lognormal", 0.5)),
        ("exponential", worlds.Skewed("exponential")),
        ("contaminated:0.05,10", worlds.Contaminated(0.05, 10.0)),
        ("ratings", worlds.Ratings()),
        ("ratings:0,10", worlds.Ratings(0, 10)),
        ("clicks:100", worlds.Clicks(100)),
        ("scaled:1,2,0.5", worlds.Scaled([1.0, 2.0, 0.5])),
        ("correlated:-0.25", worlds.Correlated(-0.25)),
    ],
)
def test_short_names_keep_the_worlds(text: str, world: Any) -> None:
    assert world_of(text) == world


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("gauss", "unknown world 'gauss': write one of normal:SD, t:DF"),
        ("t", "write t:DF"),
        ("t:three", "not made of numbers"),
        ("t0.5", "df must be at least 1"),
        ("contaminated:0.05", "write contaminated:SHARE,SD"),
        ("contaminated:2,10", "between 0 and 1, got 2"),
        ("normal:-1", "sd must be positive"),
        ("normal:nan", "sd must be finite"),
        ("clicks:2.5", "trials must be an integer"),
        ("ratings:5,1", "lowest must be below highest"),
        ("scaled:1,-2", "positive numbers"),
        ("correlated:1.5", "between -1 and 1"),
        ("lognormal:9", "at most 5"),
    ],
)
def test_bad_names_say_what_to_write(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        world_from_text(text)


@pytest.mark.parametrize(
    ("world", "instance", "what"),
    [
        (worlds.Scaled([1.0, 2.0]), INST, "has 2 scales, but the instance has 6 arms"),
        (worlds.Correlated([[1.0]]), INST, "is for 1 numbers, but results of the instance have 2"),
        (worlds.Correlated(-0.9), coterie.Instance([0, 0, 1], [[0.0] * 3, [1.0] * 3]), "positive definite"),
        (worlds.Ratings(), INST, "has a center at 0"),
        (worlds.Clicks(5), INST, "centers are rates, between 0 and 1, but it has a center at 2"),
    ],
)
def test_a_world_that_does_not_fit_the_instance_says_why(world: World, instance: coterie.Instance, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        coterie.simulate(instance, "croc", trials=1, world=world)


def test_a_covariance_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="positive definite"):
        worlds.Correlated([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="symmetric"):
        worlds.Correlated([[1.0, 0.2], [0.3, 1.0]])
    with pytest.raises(ValueError, match="only noise that is added"):
        worlds.Scaled([1.0], worlds.Ratings())  # type: ignore[arg-type]
