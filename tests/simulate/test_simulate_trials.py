"""`simulate`: the same numbers however they are asked for, and those of a session on the same stream."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import coterie

METHODS = ("boc", "boc-linear", "uniform", "oracle")
KINDS = ("proven", "heuristic")
INST = coterie.Instance([0, 1, 1, 2, 0, 2], [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
SETTINGS: dict[str, Any] = {"distance_ratio": 0.5, "seed": 5, "trials": 12}


def test_any_number_of_workers_keeps_the_numbers() -> None:
    one, two, five, as_many_as_cores = (
        coterie.simulate(INST, "boc", threshold="heuristic", deltas=(0.1, 1e-3), workers=workers, **SETTINGS)
        for workers in (1, 2, 5, None)
    )
    for other in (two, five, as_many_as_cores):
        assert np.array_equal(other.stopping_times, one.stopping_times)
        assert np.array_equal(other.correct, one.correct)
    assert one.stopping_times.shape == one.correct.shape == (12, 2)
    assert len(np.unique(one.stopping_times[:, 0])) > 4  # every trial has its own noise


def test_a_trial_depends_on_the_seed_and_its_number_alone() -> None:
    few = coterie.simulate(INST, "boc", threshold="heuristic", deltas=(0.1,), **{**SETTINGS, "trials": 3})
    many = coterie.simulate(INST, "boc", threshold="heuristic", deltas=(0.1,), **SETTINGS)
    other = coterie.simulate(INST, "boc", threshold="heuristic", deltas=(0.1,), **{**SETTINGS, "seed": 6})
    assert np.array_equal(few.stopping_times, many.stopping_times[:3])
    assert not np.array_equal(other.stopping_times, many.stopping_times)
    assert (few.seed, other.seed) == (5, 6)


@pytest.mark.parametrize("method", METHODS)
def test_one_trajectory_keeps_the_numbers_of_each_delta_and_threshold_alone(method: str) -> None:
    deltas = (0.3, 1e-6, 0.01, 0.3)  # neither sorted nor distinct
    both = coterie.simulate(INST, method, deltas=deltas, threshold=KINDS, **SETTINGS)
    assert list(both) == list(KINDS)
    for kind in KINDS:
        assert both[kind].deltas == deltas
        assert both[kind].threshold == kind
        assert both[kind].method == method
        alone = coterie.simulate(INST, method, deltas=deltas, threshold=kind, **SETTINGS)
        assert np.array_equal(alone.stopping_times, both[kind].stopping_times)
        assert np.array_equal(alone.correct, both[kind].correct)
        for i, delta in enumerate(deltas):
            single = coterie.simulate(INST, method, deltas=[delta], threshold=kind, **SETTINGS)
            assert np.array_equal(single.stopping_times[:, 0], both[kind].stopping_times[:, i])
            assert np.array_equal(single.correct[:, 0], both[kind].correct[:, i])
        times = both[kind].stopping_times
        assert (times[:, 0] <= times[:, 2]).all()
        assert (times[:, 2] <= times[:, 1]).all()
        assert (times[:, 1] > times[:, 0]).any()
    assert (both["heuristic"].stopping_times < both["proven"].stopping_times).any()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_on_the_same_stream_keeps_the_numbers(method: str, kind: str) -> None:
    trials = coterie.simulate(INST, method, deltas=(0.2,), threshold=kind, **SETTINGS)
    seeds = np.random.SeedSequence(5).spawn(12)
    for i in (0, 7, 11):
        rng = np.random.default_rng(seeds[i])
        session = coterie.Session(
            *(6, 3, 2, 0.2, method, kind),
            distance_ratio=0.5 if method == "boc-linear" else None,
            instance=INST if method == "oracle" else None,
            noise=1.0,
        )
        while not session.done:
            arm = session.ask()
            session.tell(arm, INST.means[arm] + rng.standard_normal(2))
        assert session.t == trials.stopping_times[i, 0]
        assert coterie.same_partition(session.labels, INST.labels) == trials.correct[i, 0]


def test_trials_that_do_not_stop_are_marked() -> None:
    free = coterie.simulate(INST, "boc", threshold="heuristic", deltas=(0.1, 1e-9), **SETTINGS)
    limit = int(np.median(free.stopping_times[:, 0]))
    held = coterie.simulate(INST, "boc", threshold="heuristic", deltas=(0.1, 1e-9), max_pulls=limit, **SETTINGS)
    stopped = free.stopping_times <= limit
    assert 0 < stopped.sum() < stopped.size
    assert np.array_equal(held.stopping_times, np.where(stopped, free.stopping_times, -1))
    assert np.array_equal(held.correct, free.correct & stopped)
    assert np.array_equal(held.errors(), (stopped & ~free.correct).sum(axis=0))
    for figure in (held.mean(), held.std(), held.median()):
        assert np.isnan(figure).all()
    assert np.isfinite(free.mean()).all()
    short = coterie.simulate(
        INST, "boc", threshold="heuristic", deltas=(0.1,), max_pulls=3, **SETTINGS
    )  # fewer than there are arms
    assert (short.stopping_times == -1).all()
    assert short.errors().tolist() == [0]


def test_figures_and_errors_by_hand() -> None:
    trials = coterie.Trials(
        method="boc",
        threshold="proven",
        deltas=(0.1, 0.01),
        seed=0,
        stopping_times=np.array([[10, 20], [12, -1], [17, 40]]),
        correct=np.array([[True, False], [False, False], [True, True]]),
    )
    assert trials.mean()[0] == 13.0
    assert trials.median()[0] == 12.0
    assert trials.std()[0] == pytest.approx(math.sqrt(13.0))
    assert np.isnan([trials.mean()[1], trials.median()[1], trials.std()[1]]).all()
    assert trials.errors().tolist() == [1, 1]  # a trial that did not stop is no error
    single = coterie.Trials("boc", "proven", (0.1,), 0, np.array([[9]]), np.array([[True]]))
    assert single.std().tolist() == [0.0]


def test_to_frame_has_a_row_for_each_trial_and_delta() -> None:
    pandas = pytest.importorskip("pandas")
    trials = coterie.simulate(INST, "uniform", deltas=(0.1, 0.4), threshold="proven", seed=3, trials=4)
    frame = trials.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.columns.tolist() == ["trial", "method", "threshold", "delta", "stopping_time", "correct"]
    assert len(frame) == 8
    assert set(frame["method"]) == {"uniform"}
    assert set(frame["threshold"]) == {"proven"}
    for i, delta in enumerate(trials.deltas):
        mine = frame[frame["delta"] == delta].sort_values("trial")
        assert mine["trial"].tolist() == [0, 1, 2, 3]
        assert mine["stopping_time"].tolist() == trials.stopping_times[:, i].tolist()
        assert mine["correct"].tolist() == trials.correct[:, i].tolist()


def test_a_single_delta_needs_no_sequence() -> None:
    several = coterie.simulate(INST, "boc", threshold="heuristic", deltas=np.array([0.2]), **SETTINGS)
    assert np.array_equal(
        coterie.simulate(INST, "boc", threshold="heuristic", deltas=0.2, **SETTINGS).stopping_times,
        several.stopping_times,
    )


def test_it_is_silent_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    coterie.simulate(INST, trials=2, workers=1, method="boc", threshold="heuristic", deltas=(0.1,))
    coterie.simulate(INST, trials=2, workers=1, progress=False, method="boc", threshold="heuristic", deltas=(0.1,))
    assert capfd.readouterr() == ("", "")
    coterie.simulate(INST, trials=2, workers=1, progress=True, method="boc", threshold="heuristic", deltas=(0.1,))
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "boc on 6 arms" in captured.err
    assert "2/2" in captured.err


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"instance": [[0, 1]]}, TypeError, r"simulate needs a coterie\.Instance, got \[\[0, 1\]\]"),
        ({"method": "bocc"}, ValueError, "unknown method 'bocc'"),
        ({"method": None}, TypeError, "the method must be one of .* got None"),
        ({"deltas": ()}, ValueError, "at least one delta and one threshold"),
        ({"deltas": (0.1, 0.0)}, ValueError, r"delta must lie in \(0, 1\), got 0\.0"),
        ({"deltas": (0.1, 1.0)}, ValueError, r"delta must lie in \(0, 1\), got 1\.0"),
        ({"deltas": float("nan")}, ValueError, r"delta must lie in \(0, 1\), got nan"),
        ({"deltas": "0.1"}, TypeError, r"delta must be a number in \(0, 1\), got '0\.1'"),
        ({"deltas": None}, TypeError, "got None"),
        ({"deltas": [[0.1, 0.2]]}, TypeError, "delta must be a number in"),
        ({"threshold": "loose"}, ValueError, "unknown threshold 'loose'"),
        ({"threshold": ["proven", "loose"]}, ValueError, "unknown threshold 'loose'"),
        ({"threshold": []}, ValueError, "at least one delta and one threshold"),
        ({"threshold": 5}, TypeError, "the threshold must be one of proven, heuristic, got 5"),
        ({"threshold": None}, TypeError, "got None"),
        ({"trials": 0}, ValueError, "trials must be at least 1, got 0"),
        ({"trials": 2.0}, TypeError, r"trials must be an integer, got 2\.0"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"seed": None}, TypeError, "seed must be an integer, got None"),
        ({"workers": 0}, ValueError, "workers must be at least 1, got 0"),
        ({"max_pulls": 0}, ValueError, "max_pulls must be at least 1, got 0"),
        ({"method": "boc-linear"}, ValueError, "distance_ratio is needed"),
        ({"method": "boc-linear", "distance_ratio": 1.5}, ValueError, r"lie in \(0, 1\], got 1\.5"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        coterie.simulate(**{"instance": INST, "method": "boc", "trials": 1, **change})
