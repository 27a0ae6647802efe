"""Where people work: items by name, pandas in and out, what notebooks show, signatures that say something."""

from __future__ import annotations

import copy
import html
import inspect
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import coterie

QUESTION: dict[str, Any] = {"resolution": (0.5, 4.0), "noise": 1.0, "progress": False}
TREES = pd.DataFrame(
    {"height": [0.0, 0.2, 9.0], "width": [0.0, 0.1, 9.0]}, index=pd.Index(["ash", "elm", "oak"], name="tree")
)


def measured(seed: int = 0, turned: bool = False) -> Any:
    rng = np.random.default_rng(seed)

    def measure(tree: Any) -> Any:
        values = TREES.loc[tree] + rng.standard_normal(2)
        return values.iloc[::-1] if turned and rng.random() < 0.5 else values

    return measure


def test_items_in_place_of_their_number_are_what_measure_gets() -> None:
    asked: list[Any] = []

    def measure(item: Any) -> float:
        asked.append(item)
        return 20.0 if item == 13 else 0.0

    result = coterie.cluster(measure, [11, 12, 13], **QUESTION)
    assert set(asked) == {11, 12, 13}
    assert result.session.names == ("11", "12", "13")
    assert result.groups == [["11", "12"], ["13"]]


def test_with_names_measure_gets_names_and_without_numbers() -> None:
    named: list[Any] = []
    numbered: list[Any] = []

    def by_name(item: Any) -> float:
        named.append(item)
        return 20.0 if item == "c" else 0.0

    def by_number(item: Any) -> float:
        numbered.append(item)
        return 20.0 if item == 2 else 0.0

    first = coterie.cluster(by_name, 3, names=iter("abc"), **QUESTION)
    second = coterie.cluster(by_number, 3, **QUESTION)
    assert named == ["abc"[arm] for arm in numbered]
    assert first.groups == [["a", "b"], ["c"]]
    assert second.groups == [[0, 1], [2]]


def test_a_measure_that_cannot_take_a_name_is_told_why_it_got_one() -> None:
    rates = [0.0, 0.0, 20.0]
    with pytest.raises(TypeError, match="indices must be") as found:
        coterie.cluster(lambda item: rates[item], 3, names=list("abc"), **QUESTION)
    why = "measure was called with a name, 'a', because names were given; without names it gets the item's number"
    assert found.value.__notes__[-1] == f"coterie: {why}"


@pytest.mark.parametrize(
    ("items", "settings", "message"),
    [
        (["a", "a", "b"], {}, "names must differ"),
        (["a", "b"], {"names": ["a", "b"]}, "leave names out"),
        ("abc", {}, "n_arms must be an integer"),
        (TREES, {}, "n_arms must be an integer"),
        ([], {}, "n_arms must be at least 1"),
    ],
)
def test_items_that_cannot_be_used_are_named(items: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        coterie.cluster(lambda item: 0.0, items, **QUESTION, **settings)


def test_going_on_with_items_by_name_equals_never_having_stopped() -> None:
    whole = coterie.cluster(measured(), TREES.index, **QUESTION)
    measure, calls = measured(), []

    def failing(tree: Any) -> Any:
        calls.append(tree)
        if len(calls) == 3:
            raise ConnectionError("stuck")
        return measure(tree)

    with pytest.raises(ConnectionError) as found:
        coterie.cluster(failing, TREES.index, **QUESTION)
    again = coterie.cluster(measure, TREES.index, session=found.value.session, **QUESTION)  # type: ignore[attr-defined]
    assert again.session.to_dict() == whole.session.to_dict()


def test_a_series_is_read_by_its_labels_in_whatever_order() -> None:
    measure = measured()
    plain = coterie.cluster(lambda tree: measure(tree).to_numpy(), TREES.index, **QUESTION)
    series = coterie.cluster(measured(), TREES.index, **QUESTION)
    assert series.session.to_dict() == plain.session.to_dict()
    assert plain.columns is None
    turned = coterie.cluster(measured(1, turned=True), TREES.index, **QUESTION)
    assert turned.columns in (("height", "width"), ("width", "height"))
    assert turned.groups == [["ash", "elm"], ["oak"]]


def test_turned_labels_do_not_mix_the_numbers_up() -> None:
    told = iter([pd.Series({"x": 1.0, "y": 50.0}), pd.Series({"y": 51.0, "x": 2.0}), pd.Series({"x": 3.0, "z": 0.0})])
    with pytest.raises(
        ValueError, match=r"item 1 \(b\): .*labels of the first, \['x', 'y'\], got \['x', 'z'\]"
    ) as found:
        coterie.cluster(lambda item: next(told), list("abc"), **QUESTION)
    values = [x.tolist() for _, x in found.value.session.log]  # type: ignore[attr-defined]
    assert values == [[1.0, 50.0], [2.0, 51.0]]


def test_a_result_as_a_frame_joins_what_is_known_about_the_items() -> None:
    result = coterie.cluster(measured(), TREES.index, **QUESTION)
    frame = TREES.join(result.to_frame())
    assert frame["group"].tolist() == [0, 0, 1]
    assert frame["measurements"].sum() == result.t
    assert np.abs(frame["mean_height"] - frame["height"]).max() < 4.0
    told = [x[1] for arm, x in result.session.log if arm == 2]
    assert frame.loc["oak", "mean_width"] == pytest.approx(np.mean(told))
    assert result.names == ("ash", "elm", "oak")
    with pytest.warns(UserWarning, match="budget"):
        early = coterie.cluster(lambda item: 1.0, 3, budget=1, **QUESTION)
    assert early.groups == []
    assert early.names == (0, 1, 2)
    shown = early.to_frame()
    assert shown["group"].isna().all()
    assert shown["mean_v0"].tolist()[0] == 1.0
    assert np.isnan(shown["mean_v0"].tolist()[1])


def test_a_result_is_drawn() -> None:
    axes = coterie.cluster(measured(), TREES.index, **QUESTION).plot(legend=False)
    assert {"ash", "elm", "oak"} <= {text.get_text() for text in axes.texts}


def test_notebooks_show_tables_and_names_are_escaped() -> None:
    result = coterie.cluster(lambda item: 20.0 * (item == "<b>"), ["<a>", "<b>", "&c"], **QUESTION)
    for shown in (result._repr_html_(), result.session._repr_html_()):
        assert "<td>&lt;a&gt;, &amp;c</td>" in shown
        assert "the groups are proven" in shown
        assert not re.search(r"<[ab]>", shown)
        assert shown.count("<tr>") == 3
    fresh = coterie.Session(3, dim=1, resolution=(0.5, 4.0), noise=1.0)
    assert "<table>" not in fresh._repr_html_()
    many = coterie.cluster(lambda item: 20.0 * (item == 0), 40, **QUESTION)._repr_html_()
    assert "… (19 more)" in many


def test_trials_are_a_table_in_notebooks() -> None:
    trials = coterie.Trials(
        "boc", "proven", (0.1, 0.01), 7, np.array([[5, 9], [7, -1]]), np.array([[1, 1], [0, 0]]) > 0
    )
    shown = trials._repr_html_()
    assert "2 trials of boc" in shown
    assert "<td>0.1</td><td>6.0</td><td>1.4</td><td>6.0</td><td>1</td><td>0</td>" in shown
    assert "<td>0.01</td><td>nan</td><td>nan</td><td>nan</td><td>0</td><td>1</td>" in shown


def test_signatures_name_their_parameters() -> None:
    shown = "print(inspect.signature(coterie.simulate), inspect.signature(room))"
    script = f"import inspect, coterie, coterie.simulate as room; {shown}"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.count("instance: 'Instance'") == 2
    assert "*args" not in found.stdout
    for name in ("cluster", "Session", "simulate", "BanditClustering"):
        kinds = {one.kind for one in inspect.signature(getattr(coterie, name)).parameters.values()}
        assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}, name


@pytest.mark.parametrize(
    "settings", [QUESTION, {"n_clusters": 2, "noise": 1.0, "progress": False}, {"n_clusters": 2, "progress": False}]
)
def test_a_certificate_is_a_dictionary_that_shows_and_checks_itself(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    session = coterie.cluster(lambda item: rng.normal(9.0 * (item > 1)), 4, **settings).session
    found = session.certificate
    assert isinstance(found, coterie.Certificate)
    plain = json.loads(json.dumps(found))
    assert plain == found == copy.deepcopy(found) == pickle.loads(pickle.dumps(found))
    assert type(plain) is dict
    assert found.verify(session.events) == coterie.verify(plain, session.events)
    assert found.verify(session.events).valid
    assert not found.verify(session.events[:-1]).valid
    shown = found._repr_html_()
    assert "wrong with probability at most 0.05" in shown
    assert html.escape(plain["assumes"]) in shown
    for label in (0, 1):
        its = [arm for arm in range(4) if plain["labels"][arm] == label]
        assert f"<tr><td>{label}</td><td>2</td><td>{its[0]}, {its[1]}</td></tr>" in shown


def test_a_certificate_from_elsewhere_is_shown_whatever_is_in_it(tmp_path: Path) -> None:
    assert "<table>" in coterie.Certificate()._repr_html_()
    shown = coterie.Certificate(claim="<script>", labels=[0] * 30, alarm={"arms": [1, 2]})._repr_html_()
    assert "<script>" not in shown
    assert "… (10 more)" in shown
    assert "items 1, 2 differ" in shown
    file = tmp_path / "certificate.json"
    file.write_text('{"format": "coterie-certificate-2"}')
    assert isinstance(coterie.Certificate.read(file), coterie.Certificate)
    assert not coterie.Certificate.read(file).verify([]).valid
