"""What the benchmark computes from what it measures: exponents, ratios."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bench.cells import Ending, Endings, cell, many, trials_of
from bench.growth import exponent
from bench.needed import PART, beside, headlines
from bench.part import PARTS, part_named
from bench.rounds import in_turn, ratio
from coterie.methods.trials import RunningTrials
from coterie.simulate.bulk import TrialCancelledError


def test_exponent_of_a_power_is_found_without_error() -> None:
    x = [1, 10, 100, 1000]
    fit = exponent(x, [3 * value**1.5 for value in x], 1)
    assert fit is not None
    assert fit["slope"] == pytest.approx(1.5)
    assert fit["factor"] == pytest.approx(3)
    assert fit["error"] == pytest.approx(0, abs=1e-9)
    assert (fit["from"], fit["to"]) == (1, 1000)


def test_exponent_error_is_that_of_least_squares() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    noise = np.array([0.1, -0.1, -0.1, 0.1])  # has no slope of its own
    fit = exponent(x, x**2 * np.exp(noise), 1)
    assert fit is not None
    assert fit["slope"] == pytest.approx(2)
    spread = ((np.log(x) - np.log(x).mean()) ** 2).sum()
    assert fit["error"] == pytest.approx(np.sqrt((noise**2).sum() / 2 / spread))


def test_exponent_uses_only_the_range_and_needs_three_points() -> None:
    x = [1, 2, 10, 100, 1000]
    y = [5, 5, 10, 100, 1000]  # flat below 10
    fit = exponent(x, y, 10)
    assert fit is not None
    assert fit["slope"] == pytest.approx(1)
    assert fit["from"] == 10
    assert exponent(x, y, 100) is None


def test_ratio_is_the_median_of_the_rounds_own() -> None:
    # The machine is ten times as slow in the last round: the ratio does not see it.
    assert ratio([2.0, 2.2, 20.0], [1.0, 1.0, 10.0]) == pytest.approx({"median": 2.0, "low": 2.0, "high": 2.2})


def test_rounds_take_turns_after_a_warm_up() -> None:
    calls: list[tuple[str, int]] = []

    def contestant(name: str, value: float) -> Callable[[int], float]:
        def run(i: int) -> float:
            calls.append((name, i))
            return value * i

        return run

    found = in_turn({"a": contestant("a", 1.0), "b": contestant("b", 2.0)}, 2)
    assert calls == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert found == {"a": [1.0, 2.0], "b": [2.0, 4.0]}


def test_cell_has_mean_error_and_wrong_ones() -> None:
    row = cell("m", Endings({0.1: [Ending(10, True), Ending(14, False)]}), 0.1)
    assert (row["mean"], row["trials"], row["wrong"]) == (12, 2, 1)
    assert row["standard_error"] == pytest.approx(2.0)
    assert cell("m", None, 0.1)["mean"] is None


def test_drawn_instances_are_compared_on_the_same_ones() -> None:
    """CROC ran on eight, the other on the first three of them: the ratio is over these three."""
    croc = cell("CROC", Endings({0.1: [Ending(t, True) for t in (10, 20, 30, 99, 99, 99, 99, 99)]}), 0.1)
    other = cell("m", Endings({0.1: [Ending(t, True) for t in (20, 40, 60)]}), 0.1)
    rows = beside("M=40 K=4 d=5 gap 1", 0.1, [croc, other])
    assert rows[1]["over_croc"] == pytest.approx(2.0)
    assert rows[0]["lower_bound"] != rows[1]["lower_bound"]


def test_the_best_peer_says_who_took_too_long() -> None:
    cells = [("CROC", 10), ("a †", 20), ("b †", None)]
    found = [cell(label, None if t is None else Endings({0.1: [Ending(t, True)] * 2}), 0.1) for label, t in cells]
    lines = headlines(beside("easy", 0.1, found))
    assert any("the best peer (a, 2 trials; 1 took too long) over CROC" in line.what for line in lines)


def test_a_peer_with_fewer_trials_is_too_slow_and_has_a_bound() -> None:
    times = {"CROC": [10] * 4, "a †": [20, 22, 24]}
    found = [cell(label, Endings({0.1: [Ending(t, True) for t in own]}), 0.1) for label, own in times.items()]
    rows = beside("easy", 0.1, found)
    (column,) = (column for column in PART.columns if column.heading == "/ CROC")
    assert [column.cell(row) for row in rows] == ["1×", "too slow: ≥ 1.97×"]  # 2.2 - 2 · 0.115
    assert not any("best peer" in line.what for line in headlines(rows))


def test_a_batch_that_takes_too_long_is_left_out_and_not_replaced_by_its_short_trials() -> None:
    """Pilots are quick, the trials are not: nothing is reported."""
    running = RunningTrials()

    def one(trial: int) -> Endings:
        if trial < 8:
            for _ in range(20_000):
                sum(range(10_000))  # processor time, which is what is limited
                if running.cancelled:
                    raise TrialCancelledError
        return Endings({0.1: [Ending(trial, True)]})

    assert many(one, 8, 0.1, running) is None


def test_peer_that_takes_too_long_is_left_out() -> None:
    running = RunningTrials()
    endless = trials_of("80,10,10, gap 1, 10 away, d=1", "lucb", "proven", (1e-300,), running)
    assert many(endless, 3, 0.05, running) is None
    assert running.cancelled


@pytest.mark.parametrize("name", PARTS)
def test_every_part_can_be_loaded(name: str) -> None:
    part = part_named(name)
    assert part.title
    assert part.columns
    assert len(part.title.splitlines()) <= 3
