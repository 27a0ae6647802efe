"""Any noise with shape: groups that differ in spread, skew or correlation are proven, and every figure is checked."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from error_rates import Guarantee, assert_rate_at_most

import coterie
from coterie._native import CrocFamily
from coterie.certificate.arithmetic.bets import Bet, BetRound, Sides
from coterie.certificate.arithmetic.factors import shaped
from coterie.certificate.arithmetic.features import features_of
from coterie.methods.croc.run import CrocRun
from coterie.problem.families import AnyNoise, noise_of
from tests.oracles import shape as oracle

SHAPE = coterie.AnyNoise(shape=True)
SPREADS = (1.0, 4.0)

Draw = Callable[[int, np.random.Generator], Any]


def spread(k: int, rng: np.random.Generator) -> Any:
    return [SPREADS[k] * rng.standard_normal()]


def correlated(k: int, rng: np.random.Generator) -> Any:
    x, y = rng.standard_normal(2)
    return [x, (0.9 if k else -0.9) * x + math.sqrt(0.19) * y]


def many(k: int, rng: np.random.Generator) -> Any:
    return SPREADS[k] * rng.standard_normal(12)


def played(draw: Draw, dim: int, seed: int = 1, n_arms: int = 6, workers: int = 1, noise: Any = SHAPE) -> Any:
    """A session that is done, measured by so many workers; now and then one gives up."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_arms) % 2
    session = coterie.Session(n_arms, 2, dim, delta=0.1, noise=noise)
    while not session.done and session.t < 4000:
        session.ask(workers)
        for number, arm in list(session.pending):
            if workers > 1 and rng.random() < 0.05:
                session.forget(number)
            else:
                session.tell(arm, draw(truth[arm], rng), ticket=number)
    assert session.t < 4000
    return session


@pytest.fixture(scope="module")
def done() -> Any:
    return played(spread, 1)


@pytest.mark.parametrize(("draw", "dim"), [(spread, 1), (correlated, 2), (many, 12)])
def test_groups_that_differ_in_shape_are_proven_and_verified(draw: Draw, dim: int) -> None:
    session = played(draw, dim)
    assert coterie.same_partition(session.labels, np.arange(6) % 2)
    log = json.loads(json.dumps([session.certificate, session.events]))
    assert coterie.verify(*log)
    assert "spread or shape" in session.verdict


def test_location_alone_is_not_said_to_be_shape() -> None:
    session = played(lambda k, rng: [5.0 * k + rng.standard_normal()], 1)
    assert coterie.verify(session.certificate, session.events)
    assert "shape" not in session.verdict


def test_where_every_arm_is_of_a_core_one_large_round_proves() -> None:
    """Very wide gaps: no test can have more than log binom(2n, n) from n results of each side, and 13 results do."""
    rng = np.random.default_rng(4)
    session = coterie.Session(4, 3, 1, 1e-6, noise=SHAPE)
    while not session.done:
        item = session.ask()
        session.tell(item, 50.0 * min(item, 2) + rng.standard_normal())
    assert session.t <= 64
    assert session.labels is not None
    assert coterie.same_partition(session.labels, [0, 1, 2, 2])
    assert coterie.verify(session.certificate, session.events)


def test_evidence_equals_the_oracle(done: Any) -> None:
    certificate, results = done.certificate, dict[int, Any]()
    freeze = next(e for e in done.events if e.get("event") == "freeze" and e["epoch"] == certificate["epoch"]["number"])
    labels, rounds = freeze["labels"], {}
    for event in done.events:
        if event.get("event") == "round":
            rounds[event["round"]] = event
        elif event.get("event") == "result":
            results.setdefault(event["round"], []).append((event["arm"], np.array(event["values"])))
    checked = 0
    for kind in ("core_tests", "group_tests", "pair_tests"):
        for arm, against, evidence, last in certificate["epoch"][kind]:
            other = labels[against] if kind == "pair_tests" else against
            members = np.flatnonzero(np.equal(labels, other)).tolist()
            pool_arms = {"pair_tests": [against], "core_tests": freeze["cores"][other]}.get(kind, members)
            totals = [0.0, 0.0, 0.0]
            for number in certificate["epoch"]["rounds"]:
                if number > last:
                    continue
                bet = rounds[number]["bet"]
                numbers = oracle.numbers_of(bet["numbers"], 2, 1, len(freeze["bet"]["features"]))
                positions = [(m, x - np.array(bet["from"])) for m, x in results[number]]
                mine = [x for m, x in positions if m == arm]
                others = [x for m, x in positions if m in pool_arms]
                if mine and others:
                    log_e = oracle.log_factors(numbers, labels[arm], other, mine, others)
                    totals = [total + each for total, each in zip(totals, log_e, strict=True)]
            assert oracle.mixed(freeze["bet"]["numbers"], totals) == pytest.approx(evidence, abs=1e-8)
            checked += 1
    assert checked >= 6


@pytest.mark.parametrize(("a", "others"), [(1, 3), (2, 3), (3, 2)])
def test_bets_on_shape_average_to_one_over_all_assignments(a: int, others: int) -> None:
    rng = np.random.default_rng(5)
    names = ("clip 0", "log 0", "product 0 1", "sin 1")
    parts = {"J": np.array(2.0), "h": np.zeros(2), "P": rng.normal(size=(2, 4)), "p": rng.normal(size=2)}
    parts["f of shape"] = np.full((2, 2), 0.8)
    values = rng.standard_cauchy((a + others, 2))
    sides = Sides(
        np.array([0]), np.array([0]), np.array([1]), np.array([0]), np.array([0]), np.repeat([0, 1], [a, others]),
        np.repeat([-1, 0], [a, others]), np.array([a, others]), np.array([others]),
    )  # fmt: skip
    found = []
    for order in permutations(range(a + others)):
        x = values[list(order)]
        phi = features_of(names, None, x, np.zeros(2), np.ones(2))
        one = BetRound(1, np.arange(2), Bet(np.zeros(2), parts), sides.arm_of, x, x, False, phi)
        found.append(np.exp(shaped(one, sides)[:, 0]))
    assert np.mean(found, axis=0) == pytest.approx([1.0, 1.0])
    assert np.std(found, axis=0).min() > 0.01


def test_resuming_equals_never_having_stopped(done: Any) -> None:
    rng, truth = np.random.default_rng(1), np.arange(6) % 2
    session = coterie.Session(6, 2, 1, delta=0.1, noise=SHAPE)
    while not session.done:
        arm = session.ask()
        session.tell(arm, spread(truth[arm], rng))
        if session.t % 37 == 0:
            session = coterie.Session.from_dict(json.loads(json.dumps(session.to_dict())))
    assert session.events == done.events
    assert session.certificate == done.certificate


def test_memory_brings_a_run_back() -> None:
    def new() -> CrocRun:
        return CrocRun(6, 2, 1, math.log(10.0), CrocFamily.any_noise(6, 2, 1, True))

    rng, run = np.random.default_rng(3), new()
    for step in range(2000):
        asked = run.pop()
        if asked is None:
            break
        run.absorb(asked[0], np.array(spread(asked[0] % 2, rng)), asked[1], True)
        if step % 50 == 7 and not run.done:
            memory, run = run.memory(), new()
            run.restore(memory)
            assert all(np.array_equal(memory[key], value) for key, value in run.memory().items())
    assert run.done
    memory = run.memory()
    memory["shape.space.estimate.labels"] = np.full(6, 7)
    with pytest.raises(ValueError, match="memory of such a run"):
        new().restore(memory)


def test_several_workers_who_give_up_end_with_a_proof() -> None:
    session = played(spread, 1, seed=4, workers=4)
    assert coterie.verify(session.certificate, session.events)
    assert coterie.same_partition(session.labels, np.arange(6) % 2)


def test_a_corrected_run_goes_on_and_is_verified() -> None:
    rng, truth = np.random.default_rng(5), np.arange(6) % 2
    session, corrected = coterie.Session(6, 2, 1, delta=0.1, noise=SHAPE), False
    while not session.done:
        arm = session.ask()
        session.tell(arm, spread(truth[arm], rng))
        if not corrected and any(event.get("event") == "round" for event in session.events):
            session.correct(0, [0.1], "typing error")  # the first result: positions count from it
            corrected = True
    assert corrected
    assert coterie.verify(session.certificate, session.events)
    assert coterie.same_partition(session.labels, truth)


def test_more_results_than_are_kept_may_come_before_the_first_plan() -> None:
    rng = np.random.default_rng(6)
    session = coterie.Session(4, 2, 1, delta=0.1, noise=SHAPE)
    for i in range(1500):  # the last item is not measured yet, so that nothing is planned
        session.tell(i % 3, spread(i % 2, rng))
    while not session.done and session.t < 4000:
        arm = session.ask()
        session.tell(arm, spread(arm % 2, rng))
    assert session.t > 1500


def without(noise: Any) -> list[Any]:
    rng = np.random.default_rng(8)
    session = coterie.Session(5, 2, 1, delta=0.1, noise=noise)
    for _ in range(120):
        if session.done:
            break
        arm = session.ask()
        session.tell(arm, [3.0 * (arm % 2) + rng.standard_normal()])
    return [session.events, session.to_dict()]


def test_without_shape_it_is_any_noise() -> None:
    assert without(None) == without(coterie.AnyNoise()) == without(coterie.AnyNoise(shape=False))
    assert noise_of(None, 2).to_json() == {"family": "any"}
    assert noise_of({"family": "any", "shape": True}, 2) == noise_of(SHAPE, 2)
    assert noise_of(SHAPE, 2).to_json() == {"family": "any", "shape": True}
    with pytest.raises(ValueError, match="must be True or False, got 'yes'"):
        AnyNoise(shape="yes")  # type: ignore[arg-type]


def test_a_run_without_progress_says_what_it_may_wait_for() -> None:
    rng = np.random.default_rng(2)
    session = coterie.Session(4, 2, 1, delta=0.1)
    while session.t < 200:
        arm = session.ask()
        session.tell(arm, spread(arm % 2, rng))
    assert "coterie.AnyNoise(shape=True)" in session.progress.words
    assert session.progress.proven == 0


def change_weights(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    freeze["bet"]["numbers"] = [0.5, 0.9, 0.1]


def swap_weights(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    freeze["bet"]["numbers"].reverse()


def rename_feature(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    freeze["bet"]["features"][1] = "cube 0"


def other_order(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    freeze["bet"]["features"].reverse()


def twice_a_feature(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    freeze["bet"]["features"][1] = freeze["bet"]["features"][0]


def no_features(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    del freeze["bet"]["features"]


def no_bet(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    del freeze["bet"]


def no_scale(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    numbers[2 + 2 * 2 + 8 + 1] = 0.0  # s


def another_direction(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    numbers[2 + 2 * 2 + 8 + 2 + 1] *= -1.0  # P


def too_few_numbers(log: list[Any], freeze: dict[str, Any], numbers: list[float]) -> None:
    numbers.pop()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (change_weights, "add up to 1 at most"),
        (swap_weights, "evidence"),
        (rename_feature, "there is no feature 'cube 0'"),
        (other_order, "evidence"),
        (twice_a_feature, "named twice"),
        (no_features, "features must be a list"),
        (no_bet, "has no bet"),
        (no_scale, "s\\[0\\] must be above 0"),
        (another_direction, "evidence"),
        (too_few_numbers, "numbers must be"),
    ],
)
def test_a_forged_log_is_refused(done: Any, change: Callable[..., None], said: str) -> None:
    log = copy.deepcopy(done.events)
    number = done.certificate["epoch"]["number"]
    freeze = next(event for event in log if event.get("event") == "freeze" and event["epoch"] == number)
    first = next(event for event in log if event.get("event") == "round" and event["epoch"] == number)
    change(log, freeze, first["bet"]["numbers"])
    verdict = coterie.verify(done.certificate, log)
    assert not verdict
    assert any(re.search(said, problem) for problem in verdict.problems), verdict.problems


WORLDS: dict[str, Draw] = {
    "point masses": lambda k, rng: [float(rng.random() < (0.1, 0.6)[k])],
    "ties": lambda k, rng: [float(np.rint((1.0, 3.0)[k] * rng.standard_normal()))],
    "heavy tails": lambda k, rng: [(1.0, 4.0)[k] * rng.standard_cauchy()],
    "a tie and a tail": lambda k, rng: [0.0 if rng.random() < 0.5 else (1.0, 50.0)[k] * (1.0 + rng.pareto(0.7))],
}


@pytest.mark.guarantee
@pytest.mark.parametrize("name", WORLDS)
def test_shape_error_rate_within_delta(name: str) -> None:
    runs, wrong, ended, draw = 1000, 0, 0, WORLDS[name]
    for i in range(runs):
        rng = np.random.default_rng([17, i])
        truth = rng.permutation(np.arange(4) % 2)
        run = CrocRun(4, 2, 1, math.log(10.0), CrocFamily.any_noise(4, 2, 1, True))
        for _ in range(400):
            asked = run.pop()
            if asked is None:
                break
            run.absorb(asked[0], np.array(draw(truth[asked[0]], rng)), asked[1], True)
        ended += run.done
        wrong += run.done and not coterie.same_partition(run.labels, truth)
    assert ended > runs / 2
    assert_rate_at_most(0.1, wrong, runs, Guarantee("any, with shape", case=name))
