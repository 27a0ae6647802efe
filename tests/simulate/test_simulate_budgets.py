"""A plan before anything is measured: simulated runs, and the smallest gap that a budget is enough for."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.cli import app


def test_a_plan_has_the_quantiles_of_its_runs() -> None:
    plan = coterie.plan_budget(8, 2, 1, 3.0, noise=1.0, delta=0.1, runs=20, seed=5)
    instance = coterie.Instance(np.arange(8) % 2, [[0.0], [3.0]])
    times = np.sort(coterie.simulate(instance, deltas=(0.1,), trials=20, seed=5, world="normal:1").stopping_times[:, 0])
    assert (plan.median, plan.ninety) == (times[10], times[18])  # the next larger one
    assert (plan.budget, plan.smallest_gap) == (None, None)
    assert "half of 20 simulated runs" in plan.words
    assert "not a promise" in plan.words


def test_a_plan_does_not_depend_on_the_unit_of_measurement() -> None:
    one = coterie.plan_budget(6, 2, 1, 2.0, noise=1.0, runs=6)
    other = coterie.plan_budget(6, 2, 1, 8.0, noise=4.0, runs=6)
    assert (one.gap, one.median, one.ninety) == (other.gap, other.median, other.ninety)


def test_the_smallest_gap_falls_as_the_budget_grows() -> None:
    gaps = [coterie.plan_budget(6, 2, 1, 2.0, noise=1.0, runs=10, budget=n).smallest_gap for n in (5, 40, 160)]
    assert gaps[0] is None  # not every item can be measured
    assert gaps[1] is not None
    assert gaps[2] is not None
    assert 0.2 < gaps[2] < 0.8 * gaps[1]
    enough = coterie.plan_budget(6, 2, 1, gaps[1], noise=1.0, runs=10)
    assert enough.ninety <= 40


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"n_arms": 1}, "n_arms must be at least 2"),
        ({"n_clusters": 8}, "n_clusters must be smaller than the number of items"),
        ({"gap": 0.0}, "gap must"),
        ({"gap": math.nan}, "gap must"),
        ({"budget": 0}, "budget must be at least 1"),
        ({"budget": 10**400}, "budget must be at most"),
        ({"budget": 2.5}, "budget must be an integer"),
        ({"runs": 1}, "runs must be at least 2"),
        ({"noise": coterie.Counts(3)}, "noise must be"),
        ({"noise": [1.0, 2.0], "dim": 2}, "noise must be one standard deviation"),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(given: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        coterie.plan_budget(**{"n_arms": 8, "n_clusters": 2, "noise": 1.0, "runs": 4, **given})


def test_the_command_prints_the_plan_and_refuses_in_one_line() -> None:
    words = ["budget", "--items", "6", "--clusters", "2", "--gap", "3", "--noise", "1", "--runs", "4"]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 0, said.output
    assert said.stdout.startswith("6 items in 2 groups, neighbours 3 standard deviations apart: half of 4")
    found = json.loads(CliRunner().invoke(app, [*words, "--json", "-n", "30"]).stdout)
    assert (found["items"], found["budget"]) == (6, 30)
    refused = CliRunner().invoke(app, [*words, "-n", "0"])
    assert refused.exit_code == 2
    assert refused.stderr == "coterie: budget must be at least 1, got 0\n"


def test_ctrl_c_ends_a_plan_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("coterie.simulate.budgets.simulate", interrupted)
    said = CliRunner().invoke(app, ["budget", "--items", "6", "--clusters", "2", "--gap", "3"])
    assert said.exit_code == 130
    assert said.stderr == "coterie: stopped; nothing is kept. Fewer runs are done sooner: --runs\n"
