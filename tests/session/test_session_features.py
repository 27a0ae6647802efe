"""Sessions with features: what is asked, told, refused, saved and shown by item and feature; with a method that takes
all in turn, so that every ask can be told beforehand."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from feature_stub import InTurnByFeature, use_in_turn_by_feature

import coterie
from coterie.problem.checks import FloatArray
from coterie.problem.settings import SettingError

ASSAYS = ["ph", "iron", "zinc"]
BLOOD: dict[str, Any] = {"features": ASSAYS, "panels": {"blood": ["iron", "zinc"]}}


@pytest.fixture(autouse=True)
def _in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    use_in_turn_by_feature(monkeypatch)


def session(**options: Any) -> coterie.Session:
    return coterie.Session(["a", "b", "c", "d"], 2, **({"noise": 1.0} | BLOOD | options))


def inner(of: coterie.Session) -> InTurnByFeature:
    run = of._conversation.run.inner
    assert isinstance(run, InTurnByFeature)
    return run


def value(item: int, feature: str) -> Any:
    return {"ph": 7.0 + item} if feature == "ph" else {"iron": 3.0 * (item % 2), "zinc": 0.25 * item}


def test_an_ask_is_an_item_and_a_feature_or_panel() -> None:
    s = session()
    assert s.ask() == (0, "ph")
    assert s.ask(4) == [(1, "ph"), (2, "ph"), (3, "ph"), (0, "blood")]
    assert s.pending[0] == (0, 0, "ph")
    assert s.pending[-1] == (4, 0, "blood")
    ticket = s.open(1)[0]
    assert (ticket.number, ticket.arm, ticket.feature) == (5, 1, "blood")
    assert s.arms_asked == [0, 1, 2, 3, 0, 1]


def test_results_reach_the_method_as_they_were_told() -> None:
    s = session()
    s.ask(6)
    s.tell("a", {"ph": 7.5})
    s.tell(1, 6.5, feature="ph")
    s.tell(0, {"zinc": 2.0, "iron": 1.0})
    s.tell(1, [3.0, 4.0], ticket=5)
    s.tell([2, 3], [{"ph": 1.0}, {"ph": 2.0}])
    assert [row[:3] for row in inner(s).told] == [
        (0, 0, [7.5]), (1, 0, [6.5]), (0, 1, [1.0, 2.0]), (1, 1, [3.0, 4.0]), (2, 0, [1.0]), (3, 0, [2.0]),
    ]  # fmt: skip
    assert all(row[4] for row in inner(s).told)
    assert s.log[2] == (0, {"iron": 1.0, "zinc": 2.0})
    assert s.pulls.tolist() == [2, 2, 1, 1]


def test_each_item_and_feature_has_a_line_of_its_own() -> None:
    s = session()
    s.ask(12)  # round 2 has begun: (0, ph) is asked for twice
    first, second = (pending[0] for pending in s.pending if pending[1:] == (0, "ph"))
    s.tell(0, 2.0, ticket=second)
    assert s.t == 0  # its turn comes behind the first
    s.tell(0, {"iron": 5.0, "zinc": 6.0}, feature="blood")
    assert inner(s).told[0][:3] == (0, 1, [5.0, 6.0])  # another feature of the item waits for nothing
    s.tell(0, 1.0, ticket=first)
    assert [row[2] for row in inner(s).told] == [[5.0, 6.0], [1.0], [2.0]]


def test_a_given_up_ask_frees_its_line() -> None:
    s = session()
    s.ask(9)
    first, second = (pending[0] for pending in s.pending if pending[1:] == (0, "ph"))
    s.tell(0, 2.0, ticket=second)
    s.forget(first)
    assert [row[:3] for row in inner(s).told] == [(0, 0, [2.0])]


def test_a_result_that_nobody_asked_for_counts() -> None:
    s = session()
    s.tell(2, {"iron": 1.0, "zinc": 1.0})
    assert inner(s).told == [(2, 1, [1.0, 1.0], 0, False)]


def test_holes_count_where_they_are_stated() -> None:
    s = session(holes="at random")
    s.ask(5)
    s.tell(0, {"iron": 1.5})  # the open panel that has it
    s.tell(1, [math.nan, 2.0], feature="blood")
    (_, _, first, _, _), (_, _, second, _, _) = inner(s).told
    assert first[0] == 1.5
    assert math.isnan(first[1])
    assert math.isnan(second[0])
    assert s.log == [(0, {"iron": 1.5}), (1, {"zinc": 2.0})]
    assert s.cells.features.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ((0, {"tin": 1.0}), "there is no feature 'tin'"),
        ((0, 1.0, None, None, "tin"), "there is no panel 'tin'"),
        ((0, 1.0), "say which feature or panel was measured"),
        ((0, {"iron": 1.0}), "a result of 'blood' lacks 'zinc': start with holes='at random'"),
        ((0, [1.0, math.nan], None, None, "blood"), "lacks 'zinc'"),
        ((0, {"ph": None}), "lacks 'ph'"),
        ((0, [1.0], None, None, "blood"), "must have ['iron', 'zinc'], got [1.0]"),
        ((0, {"ph": 1.0, "iron": 2.0}), "no panel has ['ph', 'iron'] together"),
        ((0, {"ph": 1.0}, None, None, "blood"), "feature 'ph' is not in 'blood'"),
        ((1, {"ph": 1.0}, 0), "ticket 0 is for 'ph' of item a, not for item b"),
        ((0, {"ph": "x"}), "must hold real numbers"),
        ((0, {"ph": math.inf}), "must be finite"),
        ((0, {"ph": 1e13}), "within 1e+12 standard deviations"),
        (("e", {"ph": 1.0}), "unknown arm 'e'"),
        (([0, 1], [{"ph": 1.0}]), "2 items need as many measurements"),
    ],
)
def test_what_cannot_be_told_is_named_and_changes_nothing(told: tuple[Any, ...], message: str) -> None:
    s = session()
    s.ask(2)
    before = s.to_dict()
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        s.tell(*told)
    assert s.to_dict() == before


def test_a_feature_told_twice_is_refused() -> None:
    s = coterie.Session(3, 2, features=12, noise=1.0)
    with pytest.raises(ValueError, match="feature '7' is told twice"):
        s.tell(0, {7: 1.0, "7": 2.0})


def test_a_result_without_any_number_is_refused_with_holes_too() -> None:
    s = session(holes="at random")
    with pytest.raises(ValueError, match="has no number at all: give the ask up"):
        s.tell(0, [None, None], feature="blood")


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ({"features": None}, "panels", "is for features: give features"),
        ({"features": None, "panels": None, "holes": "at random"}, "holes", "one panel of all of them is a whole"),
        ({"dim": 2}, "dim", "dim is the number of features, 3"),
        ({"panel_costs": {"serum": 3}}, "panel_costs", "unknown panel 'serum'"),
        ({"feature_costs": [1, 2]}, "feature_costs", "one for each feature"),
        ({"features": ["ph", "iron", "iron"]}, "features", "'iron' is there twice"),
        ({"panels": {"blood": ["iron", "tin"]}}, "features", "unknown feature 'tin'"),
        ({"holes": "mine"}, "holes", "holes must be 'at random'"),
        ({"noise": [1.0, 2.0]}, "noise", "noise must be"),
        ({"features": 400_000_000, "panels": None}, "features", "at most 1,000,000"),
        ({"blocks": "offset", "noise": None}, "blocks", "leave blocks out, or features"),
        ({"confirm": 0.5}, "confirm", "leave confirm out, or features"),
        ({"method": "boc"}, "features", 'use method="croc"'),
    ],
)
def test_settings_that_do_not_go_together_are_named(options: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(SettingError, match=re.escape(message)) as caught:
        session(**options)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("items", "groups", "features", "message"),
    [
        (20_000, 2, 100_000, "50,000 features of 20,000 items do, or 10,000 items with 100,000 features"),
        (30, 20, 1_000_000, "up to 10 groups with as many features do, or 500,000 features with as many groups"),
    ],
)
def test_what_does_not_fit_in_memory_is_refused_with_what_would(
    items: int, groups: int, features: int, message: str
) -> None:
    with pytest.raises(SettingError, match=re.escape(message)):
        coterie.Session(items, groups, features=features, noise=1.0)


def test_a_resolution_is_refused() -> None:
    with pytest.raises(SettingError, match="for groups of equal items"):
        coterie.Session(4, resolution=(0.5, 2.0), noise=1.0, features=ASSAYS)


def test_what_looks_at_whole_items_is_refused() -> None:
    s = session()
    for wanted in (s.partial, s.intervals, lambda: s.handover, lambda: s.revise(n_clusters=3)):
        with pytest.raises(ValueError, match="features"):
            wanted()
    with pytest.raises(ValueError, match="replay does not know features"):
        s.replay([0], [0], [0], [[0.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="for a session with features"):
        coterie.Session(4, 2, 1, noise=1.0).tell(0, 1.0, feature="iron")


def run_for(s: coterie.Session, steps: int, at_a_time: int = 3) -> None:
    """Ask and tell, some at a time and the last one first."""
    for _ in range(steps):
        if s.done:
            return
        for ticket in reversed(s.open(at_a_time)):
            s.tell(ticket.arm, value(ticket.arm, ticket.feature), ticket.number)


def _centers(of: coterie.Session) -> FloatArray:
    assert of.centers is not None
    return of.centers


@pytest.mark.parametrize("copied", ["json", "pickle", "copy"])
@pytest.mark.parametrize("steps", [0, 2, 4, 20])
def test_a_saved_session_goes_on_as_if_it_had_never_stopped(copied: str, steps: int) -> None:
    s = session(holes="at random")
    run_for(s, steps)
    if not s.done:
        s.ask(3)
        s.tell(3, {"zinc": 0.5}, feature="blood")
        s.forget(s.pending[-1][0])
    ways: dict[str, Callable[[], coterie.Session]] = {
        "json": lambda: coterie.Session.from_dict(json.loads(json.dumps(s.to_dict(), allow_nan=False))),
        "pickle": lambda: pickle.loads(pickle.dumps(s)),
        "copy": lambda: copy.deepcopy(s),
    }
    other = ways[copied]()
    assert other.to_dict() == s.to_dict()
    assert other.pending == s.pending
    assert other.settings == s.settings
    run_for(s, 30)
    run_for(other, 30)
    assert s.done
    assert other.to_dict() == s.to_dict()
    assert np.array_equal(_centers(other), _centers(s), equal_nan=True)
    assert np.array_equal(other.labels, s.labels)  # type: ignore[arg-type]


def test_a_finished_session_opens_from_its_outcome() -> None:
    s = session()
    run_for(s, 40)
    other = coterie.Session.from_dict(s.to_dict())
    assert other.done
    assert _centers(other).shape == (2, 3)
    assert np.array_equal(_centers(other), _centers(s), equal_nan=True)
    assert other.outcome == s.outcome


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda saved: saved["asks"][0].pop(), "must be [arm, round, panel]"),
        (lambda saved: saved["asks"][0].__setitem__(2, 9), "unknown panel 9"),
        (lambda saved: saved["log"][0].pop("panel"), "must have arm, panel, values and ticket"),
        (lambda saved: saved["log"][0].__setitem__("values", [1.0, 2.0]), "got [1.0, 2.0]"),
        (lambda saved: saved["pending"].append([7, 0]), "must be [ticket, arm, feature]"),
        (lambda saved: saved["features"].__setitem__("panels", [["blood", [1, 2]]]), "must have all of them"),
    ],
)
def test_a_saved_session_that_was_changed_is_refused(change: Any, message: str) -> None:
    s = session()
    run_for(s, 2)
    saved = json.loads(json.dumps(s.to_dict()))
    change(saved)
    with pytest.raises(ValueError, match=re.escape(message)):
        coterie.Session.from_dict(saved)


def test_a_correction_keeps_its_place() -> None:
    s = session(holes="at random")
    run_for(s, 3)
    row = next(i for i, (_, values) in enumerate(s.log) if "zinc" in values)
    made = s.correct(row, {"iron": 91.0}, "misread")
    assert made is not None
    assert made.arm == s.log[row][0]
    assert s.log[row][1] == {"iron": 91.0}
    assert json.loads(json.dumps(made.to_json(), allow_nan=False))["new"] == [91.0, None]
    assert any(t[2][0] == 91.0 and math.isnan(t[2][1]) for t in inner(s).told if len(t[2]) == 2)
    again = coterie.Session.from_dict(s.to_dict())
    assert again.to_dict() == s.to_dict()
    assert s.correct(row, {"iron": 91.0}, "misread again") is None


def test_cells_have_counts_and_means_of_what_was_measured() -> None:
    s = session()
    s.tell(1, {"ph": 1.0})
    s.tell(1, {"ph": 3.0})
    s.tell(3, {"iron": 5.0, "zinc": 6.0})
    cells = s.cells
    assert cells.items.tolist() == [1, 3, 3]
    assert cells.features.tolist() == [0, 1, 2]
    assert cells.counts.tolist() == [2, 1, 1]
    assert cells.means.tolist() == [2.0, 5.0, 6.0]


def test_costs_of_items_and_panels_add_up() -> None:
    s = session(costs=[1, 2, 3, 4], feature_costs={"ph": 0.5}, panel_costs={"blood": 10}, cost_unit="EUR")
    s.tell(3, {"ph": 1.0})
    s.tell(0, {"iron": 5.0, "zinc": 6.0})
    assert s.cost == 4.5 + 11.0
    assert session().cost is None


def test_events_name_item_and_panel() -> None:
    s = session(holes="at random")
    s.ask(5)
    s.tell(0, {"iron": 1.5})
    s.tell(1, {"ph": 1.0})
    head, first, second = s.events[:3]
    assert head["event"] == "log"
    assert {"event": "result", "arm": 0, "panel": 1, "values": [1.5, None]}.items() <= first.items()
    assert {"event": "result", "arm": 1, "panel": 0, "values": [1.0]}.items() <= second.items()
    json.dumps(s.events, allow_nan=False)


def test_the_log_takes_no_room_for_what_was_not_measured() -> None:
    s = coterie.Session(1000, 2, features=10_000, noise=1.0)
    rng = np.random.default_rng(0)
    items, features = rng.integers(1000, size=20_000), rng.integers(10_000, size=20_000)
    s.tell(items.tolist(), rng.standard_normal(20_000).tolist(), feature=list(map(str, features.tolist())))
    assert s.log_arrays.array.nbytes <= 8 * 20_000
    assert sum(values.nbytes for values in s.log_arrays.values) == 8 * 20_000
    assert s.cells.items.size <= 20_000
    assert len(json.dumps(s.to_dict()["features"])) < 40


def test_a_finished_session_is_shown() -> None:
    s = session()
    run_for(s, 40)
    assert "4 arms" in repr(s)
    assert "<table" in s._repr_html_()


# cluster.


@pytest.mark.parametrize("workers", [1, 3])
def test_cluster_calls_measure_with_item_and_feature(workers: int) -> None:
    asked: list[tuple[str, str]] = []

    def measure(item: str, feature: str) -> Any:
        asked.append((item, feature))
        return value("abcd".index(item), feature)

    result = coterie.cluster(
        measure, ["a", "b", "c", "d"], 2, noise=1.0, progress=False, workers=workers, holes="at random", **BLOOD
    )
    assert result.done
    assert result.t == 16
    assert {("a", "ph"), ("d", "blood")} <= set(asked)
    assert result.groups == [["a", "c"], ["b", "d"]]


def test_cluster_keeps_what_was_measured_when_measuring_fails() -> None:
    def measure(item: str, feature: str) -> Any:
        if (item, feature) == ("c", "blood"):
            raise OSError("no more reagent")
        return value("abcd".index(item), feature)

    with pytest.raises(OSError, match="no more reagent") as caught:
        coterie.cluster(measure, ["a", "b", "c", "d"], 2, noise=1.0, progress=False, **BLOOD)
    kept = caught.value.session  # type: ignore[attr-defined]
    assert kept.pending == [(6, 2, "blood")]

    def better(item: str, feature: str) -> Any:
        return value("abcd".index(item), feature)

    result = coterie.cluster(better, ["a", "b", "c", "d"], 2, noise=1.0, progress=False, session=kept, **BLOOD)
    assert result.done
    assert result.t == 16


def test_cluster_names_the_item_of_a_result_that_lacks_a_number() -> None:
    with pytest.raises(ValueError, match=r"item 0 \(a\): a result of 'blood' lacks 'iron'"):
        coterie.cluster(
            lambda item, feature: {"ph": 1.0} if feature == "ph" else {"zinc": 2.0},
            ["a", "b", "c", "d"], 2, noise=1.0, progress=False, **BLOOD,
        )  # fmt: skip


def test_the_frame_of_a_result_has_the_features_that_were_found() -> None:
    pytest.importorskip("pandas")
    result = coterie.cluster(value, 4, 2, noise=1.0, progress=False, **BLOOD)
    assert list(result.to_frame().columns) == ["group", "measurements"]
