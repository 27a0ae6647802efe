"""Costs per item: what is refused, what is spent and saved, and that equal costs change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coterie
from coterie.problem.costs import cost_text
from coterie.problem.settings import SettingError, Settings

COSTS = [1.0, 1.0, 10.0, 1.0, 1.0, 10.0]


def run(session: coterie.Session, seed: int = 0, most: int = 10_000) -> list[int]:
    """The arms asked for, until it is done or has asked often enough."""
    rng = np.random.default_rng([seed, session.n_measurements])
    asked: list[int] = []
    while not session.done and len(asked) < most:
        arm = session.ask()
        asked.append(arm)
        session.tell(arm, [3.0 * (arm % 2) + rng.standard_normal()])
    return asked


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([1, 2], "costs must be 6 positive numbers, one for each item, got 2"),
        ([[1] * 6], "got an array of shape"),
        ([1] * 5 + [0], "costs must be positive, got 0.0 for item 5"),
        ([1, -2, 1, 1, 1, 1], "costs must be positive, got -2.0 for item 1"),
        ([1] * 5 + [float("nan")], "costs must be finite, got nan at position 5"),
        ([1] * 5 + [float("inf")], "costs must be finite, got inf at position 5"),
        ("cheap", "costs must be 6 positive numbers, one for each item, got 'cheap'"),
        ([1] * 5 + ["dear"], "costs must hold real numbers"),
        ([True] * 6, "costs must hold real numbers"),
        ({0: 1}, "costs must be 6 positive numbers"),
        (3, "costs must be 6 positive numbers, one for each item, got 3"),
        ([1] * 5 + [1e7], "costs must be within a factor of 1e.06 of one another, got 1.0 for item 0"),
    ],
)
def test_bad_costs_are_named(costs: Any, said: str) -> None:
    with pytest.raises(SettingError, match=said) as refused:
        coterie.Session(6, 2, 1, noise=1.0, costs=costs)
    assert refused.value.field == "costs"


def test_a_unit_needs_costs_and_is_short() -> None:
    for unit, costs, said in (("EUR", None, "give costs too"), ("", COSTS, "1 to 40"), (3, COSTS, "a word")):
        with pytest.raises(SettingError, match=said) as refused:
            coterie.Session(6, 2, 1, noise=1.0, costs=costs, cost_unit=unit)  # type: ignore[arg-type]
        assert refused.value.field == "cost_unit"


@pytest.mark.parametrize("method", ["boc", "uniform"])
def test_a_method_that_does_not_weigh_costs_says_so(method: str) -> None:
    with pytest.raises(SettingError, match=f"method '{method}' does not weigh costs: .* got costs=.1.0, 1.0, 10.0"):
        coterie.Session(6, 2, 1, noise=1.0, method=method, costs=COSTS)
    with pytest.raises(SettingError, match="does not weigh costs"):
        coterie.simulate(coterie.Instance([0, 1, 0], [[0.0], [4.0]]), method, trials=1, costs=[1, 2, 3])


def test_what_was_spent_is_the_cost_of_the_log() -> None:
    session = coterie.Session(6, 2, 1, noise=1.0, costs=COSTS, cost_unit="EUR")
    assert (session.cost, session.cost_left, session.cost_unit) == (0.0, None, "EUR")
    asked = run(session)
    assert session.cost == sum(COSTS[arm] for arm in asked)
    assert session.cost_left == 0.0
    session.tell(2, [0.0])  # after the end: measured, and paid for
    assert session.cost == sum(COSTS[arm] for arm in asked) + 10.0
    assert coterie.verify(session.certificate, session.events).valid
    assert coterie.Session(6, 2, 1, noise=1.0).cost is None


def test_a_forecast_is_in_the_unit_of_the_costs() -> None:
    left = []
    for factor in (1.0, 7.0):
        session = coterie.Session(6, 2, 1, noise=1.0, costs=[factor * cost for cost in COSTS])
        run(session, most=7)
        left.append(session.cost_left)
    assert left[0] is not None
    assert left[1] == pytest.approx(7.0 * left[0])


def test_equal_costs_measure_what_no_costs_measure() -> None:
    plain, equal = (coterie.Session(6, 2, 1, noise=1.0, costs=costs) for costs in (None, [7.3] * 6))
    assert run(plain) == run(equal)
    assert equal.cost == pytest.approx(7.3 * equal.t)


def test_resuming_with_costs_equals_never_having_stopped() -> None:
    whole, first = (coterie.Session(6, 2, 1, delta=1e-4, noise=1.0, costs=COSTS, cost_unit="h") for _ in range(2))
    asked = [arm for _ in range(3) for arm in run(whole, most=9)]
    found: list[int] = []
    for _ in range(3):
        found += run(first, most=9)
        first = coterie.Session.from_dict(json.loads(json.dumps(first.to_dict())))
    assert found == asked
    assert (first.costs, first.cost_unit, first.cost) == (tuple(COSTS), "h", whole.cost)


def test_settings_without_costs_are_saved_as_before() -> None:
    saved = Settings.of(6, 2, 1).to_json()
    assert "costs" not in saved
    assert "cost_unit" not in saved
    assert Settings.from_json(saved).costs is None


def test_cluster_and_simulate_say_what_they_cost() -> None:
    rng = np.random.default_rng(1)
    measure: Callable[[int], float] = lambda arm: 4.0 * (arm % 2) + float(rng.standard_normal())  # noqa: E731
    result = coterie.cluster(measure, 6, 2, noise=1.0, costs=COSTS, cost_unit="EUR", progress=False)
    assert result.cost == float(np.array(COSTS) @ result.pulls)
    assert f"({result.cost:,.0f} EUR)" in repr(result)
    instance = coterie.Instance([0, 1, 0, 1, 0, 1], [[0.0], [4.0]])
    trials = coterie.simulate(instance, trials=3, costs=[2.0] * 6, progress=False, workers=1)
    np.testing.assert_array_equal(trials.cost, 2.0 * trials.stopping_times)
    assert coterie.simulate(instance, trials=1, progress=False, workers=1).cost is None


def test_dear_members_of_a_group_are_measured_less_often() -> None:
    """With a third of each group ten times as dear as the rest, these are measured less than the others."""
    instance = coterie.Instance([0, 1] * 6, [[0.0, 0.0], [2.0, 0.0]])
    costs = np.where(np.arange(12) < 4, 10.0, 1.0)
    spent = {}
    for weighed in (True, False):
        spent[weighed] = 0.0
        for seed in range(6):
            rng = np.random.default_rng(seed)
            session = coterie.Session(12, 2, 2, noise=1.0, costs=costs if weighed else None)
            while not session.done:
                arm = session.ask()
                session.tell(arm, instance.means[arm] + rng.standard_normal(2))
            spent[weighed] += float(costs @ session.pulls)
    assert spent[True] < spent[False]


def test_a_resolution_with_costs_prefers_cheap_references() -> None:
    """Items of a group differ by next to nothing: the reference, which is measured most, is a cheap one."""
    costs = [20.0, 1.0, 20.0] * 2
    session = coterie.Session(6, dim=1, noise=0.3, resolution=(0.3, 1.5), costs=costs)
    rng = np.random.default_rng(0)
    while not session.done:
        arm = session.ask()
        session.tell(arm, [4.0 * (arm // 3) + 0.3 * rng.standard_normal()])
    assert session.cost == float(np.array(costs) @ session.pulls)
    assert session.cost_left == 0.0
    assert session.pulls[[1, 4]].mean() >= session.pulls[[0, 2, 3, 5]].mean()


@pytest.mark.parametrize(
    ("cost", "unit", "text"),
    [(3520.0, "EUR", "3,520 EUR"), (3.25, None, "a cost of 3.25"), (12345.6, "h", "12,346 h"), (0.0, "h", "0 h")],
)
def test_costs_in_words(cost: float, unit: str | None, text: str) -> None:
    assert cost_text(cost, unit) == text
