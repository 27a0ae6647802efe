"""`coterie.plot.stopping_times`: what is drawn is the mean, the spread and the bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import coterie
from coterie import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pytest.importorskip("matplotlib")

INST = coterie.Instance([0, 0, 1, 2, 2], [[0.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
TIMES = np.array([[10, 20, 40], [14, 26, 40], [12, 29, 43], [20, 21, 57]])


def trials(times: Any = TIMES, deltas: Any = (0.1, 1e-10, 1e-300), method: str = "boc", kind: str = "heuristic") -> Any:
    table = np.asarray(times)
    return coterie.Trials(method, kind, tuple(deltas), 0, table, table >= 0)


def legend_of(ax: Axes) -> list[str]:
    """What the legend says, line by line."""
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def drawn(ax: Any, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of the k-th curve: x, y, and both ends of the error bars."""
    line, _, (bars,) = ax.containers[k]
    ends = np.array(bars.get_segments()).reshape(-1, 2, 2)
    assert np.array_equal(ends[:, 0, 0], line.get_xdata())
    return line.get_xdata(), line.get_ydata(), ends[:, 0, 1], ends[:, 1, 1]


def test_means_and_standard_deviations_against_log_inverse_delta() -> None:
    ax = plot.stopping_times({"first": trials(), "second": trials(TIMES + 100)})
    assert len(ax.containers) == 2
    for k, shift in enumerate((0, 100)):
        x, mean, low, high = drawn(ax, k)
        assert x == pytest.approx([math.log(10), 10 * math.log(10), 300 * math.log(10)])
        assert mean == pytest.approx(TIMES.mean(axis=0) + shift)
        assert (high - low) / 2 == pytest.approx(TIMES.std(axis=0, ddof=1))
        assert (high + low) / 2 == pytest.approx(mean)
    assert legend_of(ax) == ["first", "second"]
    assert "standard deviation" in ax.get_ylabel()
    assert ax.get_xlabel() == r"$\log(1/\delta)$"


def test_standard_error_is_smaller_by_the_root_of_the_trials() -> None:
    ax = plot.stopping_times(trials(), error="sem")
    _, _, low, high = drawn(ax, 0)
    assert (high - low) / 2 == pytest.approx(TIMES.std(axis=0, ddof=1) / 2)
    assert "standard error" in ax.get_ylabel()


def test_columns_in_any_order_are_drawn_from_left_to_right() -> None:
    ax = plot.stopping_times(trials(TIMES[:, [2, 0, 1]], deltas=(1e-300, 0.1, 1e-10)))
    x, mean, low, high = drawn(ax, 0)
    assert (np.diff(x) > 0).all()
    assert mean == pytest.approx(TIMES.mean(axis=0))
    assert (high - low) / 2 == pytest.approx(TIMES.std(axis=0, ddof=1))


def test_lower_bound_is_that_of_the_theory_at_every_delta_of_any_run() -> None:
    runs = {"one": trials(), "two": trials(TIMES[:, :1], deltas=(0.5,))}
    ax = plot.stopping_times(runs, instance=INST)
    (bound,) = [line for line in ax.lines if line.get_label() == "lower bound"]
    deltas = (0.5, 0.1, 1e-10, 1e-300)
    assert bound.get_xdata() == pytest.approx([-math.log(delta) for delta in deltas])
    assert bound.get_ydata() == pytest.approx([coterie.lower_bound(INST, delta) for delta in deltas], abs=1e-9)
    assert legend_of(ax) == ["one", "two", "lower bound"]


def test_levels_beyond_the_smallest_double_can_be_given() -> None:
    levels = [2.0, 800.0, 5000.0]
    ax = plot.stopping_times(trials(), instance=INST, log_inverse_deltas=levels)
    assert drawn(ax, 0)[0].tolist() == levels
    (bound,) = [line for line in ax.lines if line.get_label() == "lower bound"]
    heights = np.asarray(bound.get_ydata())
    assert heights[0] == pytest.approx(coterie.lower_bound(INST, math.exp(-2.0)))
    assert heights[1:] == pytest.approx(coterie.hardness(INST) * np.array([800.0, 5000.0]))


def test_the_bound_does_not_jump_where_delta_leaves_the_doubles() -> None:
    ax = plot.stopping_times(trials(), instance=INST, log_inverse_deltas=[699.0, 700.0, 701.0])
    (bound,) = [line for line in ax.lines if line.get_label() == "lower bound"]
    assert np.diff(bound.get_ydata()) == pytest.approx([coterie.hardness(INST)] * 2, rel=1e-9)


def test_a_delta_with_trials_given_up_is_left_out_and_the_label_says_so() -> None:
    times = TIMES.copy()
    times[1, 2] = -1
    ax = plot.stopping_times({"short": trials(times), "long": trials()}, instance=INST)
    x, mean, low, high = drawn(ax, 0)
    assert x == pytest.approx([math.log(10), 10 * math.log(10)])
    assert mean == pytest.approx(TIMES.mean(axis=0)[:2])
    assert np.isfinite(np.concatenate([low, high])).all()
    first, second, _ = [text.replace("\n", " ") for text in legend_of(ax)]
    assert first == "short (1 of 3 δ left out: trials given up)"
    assert second == "long"
    assert drawn(ax, 1)[0].size == 3


def test_simulated_trials_are_labelled_by_method_and_threshold() -> None:
    found = coterie.simulate(
        INST, "boc", deltas=(0.1, 0.01), threshold=["proven", "heuristic"], trials=3, progress=False
    )
    croc = coterie.simulate(INST, "croc", deltas=(0.1, 0.01), trials=3, progress=False)
    ax = plot.stopping_times([*found.values(), croc, croc])
    labels = legend_of(ax)
    assert labels == ["boc, proven", "boc, heuristic", "croc", "croc (2)"]
    assert drawn(ax, 2)[1] == pytest.approx(croc.mean())
    by_kind = plot.stopping_times(found)
    assert legend_of(by_kind) == ["proven", "heuristic"]


BAD = [
    ({}, {}, ValueError, "at least one run"),
    ([], {}, ValueError, "at least one run"),
    ("boc", {}, TypeError, "'boc'"),
    ({"boc": 3}, {}, TypeError, "got 3"),
    ([TIMES], {}, TypeError, "coterie.simulate returns them"),
    (trials(np.empty((0, 3))), {}, ValueError, r"\(0, 3\)"),
    (trials(-np.ones((2, 3))), {}, ValueError, "max_pulls"),
    (trials(), {"error": "range"}, ValueError, "'range'"),
    (trials(), {"instance": 5}, TypeError, "got 5"),
    (trials(), {"log_inverse_deltas": [1.0]}, ValueError, "got 1, but 'boc, heuristic' has 3"),
    (trials(), {"log_inverse_deltas": [1.0, 2.0, -3.0]}, ValueError, "-3.0"),
    (trials(), {"ax": "here"}, TypeError, "'here'"),
]


@pytest.mark.parametrize(("runs", "more", "kind", "named"), BAD)
def test_bad_input_is_named(runs: Any, more: Any, kind: type[Exception], named: str) -> None:
    with pytest.raises(kind, match=named):
        plot.stopping_times(runs, **more)
