"""Campaigns with features: leases, results, corrections, exports and imports by item and feature; read again from the
store by another process; with a method that takes all in turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from feature_stub import use_in_turn_by_feature
from killed import assert_reads_the_same, kill_points, lasting, said_until_killed

from coterie.campaign import BadValue, Campaigns, Conflict

BLOOD: dict[str, Any] = {
    "features": ["ph", "iron", "zinc"],
    "panels": {"blood": ["iron", "zinc"]},
    "feature_costs": {"ph": 1},
    "panel_costs": {"blood": 5},
    "cost_unit": "EUR",
    "holes": "at random",
}
NAMES = ["borlotti", "navy", "pinto", "canary"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Campaigns]:
    use_in_turn_by_feature(monkeypatch)
    with Campaigns(f"sqlite:///{tmp_path / 'beans.db'}") as campaigns:
        yield campaigns


def begun(store: Campaigns, **options: Any) -> str:
    made = store.create("beans", 4, 2, names=NAMES, **({"noise": 1.0} | BLOOD | options))
    return str(made["id"])


def again(store: Campaigns) -> Campaigns:
    """The same store, as another process opens it: everything is read from the log."""
    return Campaigns(store._campaigns.journal.name)


def numbers(name: str, feature: str) -> list[float]:
    item = NAMES.index(name)
    return [7.0 + item] if feature == "ph" else [3.0 * (item % 2), 0.25 * item]


def answered(store: Campaigns, id: str, asks: int) -> None:
    for n in range(asks):
        answer = store.ask(id, "ann")
        if answer["done"]:
            return
        ask = answer["asks"][0]
        told = {"id": f"m{n}", "arm": ask["name"], "values": numbers(ask["name"], ask["feature"])}
        store.tell(id, [told | {"lease": ask["lease"]}])


def test_an_ask_says_the_feature_its_numbers_and_its_cost(store: Campaigns) -> None:
    id = begun(store)
    asks = store.ask(id, "ann", 5)["asks"]
    assert [(ask["name"], ask["feature"]) for ask in asks] == [*((name, "ph") for name in NAMES), ("borlotti", "blood")]
    assert asks[-1]["values"] == ["iron", "zinc"]
    assert (asks[0]["cost"], asks[-1]["cost"]) == (1.0, 5.0)
    leases = store.status(id)["open_leases"]
    assert [lease["feature"] for lease in leases] == ["ph"] * 4 + ["blood"]


def test_results_are_told_by_lease_by_name_or_by_feature(store: Campaigns) -> None:
    id = begun(store)
    asks = store.ask(id, "ann", 6)["asks"]
    store.tell(id, [
        {"id": "1", "arm": "borlotti", "values": [7.0], "lease": asks[0]["lease"]},
        {"id": "2", "arm": "navy", "values": {"ph": 8.0}},
        {"id": "3", "arm": 0, "values": [1.0, 2.0], "feature": "blood"},
        {"id": "4", "arm": 1, "values": {"zinc": 2.5}, "lease": asks[5]["lease"]},
    ])  # fmt: skip
    rows = store.measurements(id)["measurements"]
    assert [(row["name"], row["feature"], row["values"]) for row in rows] == [
        ("borlotti", "ph", [7.0]), ("navy", "ph", [8.0]), ("borlotti", "blood", [1.0, 2.0]),
        ("navy", "blood", [None, 2.5]),
    ]  # fmt: skip
    assert all(row["asked_for"] for row in rows)
    assert store.status(id)["cost"] == 12.0
    with again(store) as other:
        assert other.status(id) == store.status(id)
        assert other.measurements(id) == store.measurements(id)


@pytest.mark.parametrize(
    ("told", "message", "field"),
    [
        ({"values": [1.0], "feature": "tin"}, "'tin'", "measurements[0].feature"),
        ({"values": {"tin": 1.0}}, "no feature 'tin'", "measurements[0].feature"),
        ({"values": [1.0]}, "say which feature or panel", "measurements[0].feature"),
        ({"values": [1.0], "feature": "blood"}, "must have ['iron', 'zinc']", "measurements[0].values"),
        ({"values": [None, None], "feature": "blood"}, "no number at all", "measurements[0].values"),
        ({"values": {"ph": "x"}}, "real numbers", "measurements[0].values"),
        ({"values": {"ph": 1e13}}, "standard deviations", "measurements[0].values"),
    ],
)
def test_what_cannot_be_told_is_named(store: Campaigns, told: dict[str, Any], message: str, field: str) -> None:
    id = begun(store)
    with pytest.raises(BadValue) as caught:
        store.tell(id, [{"id": "1", "arm": "navy"} | told])
    assert message in caught.value.message
    assert caught.value.field == field
    assert store.measurements(id)["measurements"] == []


def test_a_lease_is_for_its_feature_only(store: Campaigns) -> None:
    id = begun(store)
    lease = store.ask(id, "ann")["asks"][0]["lease"]
    with pytest.raises(BadValue, match="is for arm ph of borlotti, not for arm blood of borlotti"):
        store.tell(id, [{"id": "1", "arm": 0, "values": {"iron": 1.0, "zinc": 2.0}, "lease": lease}])


def test_the_same_result_twice_counts_once(store: Campaigns) -> None:
    id = begun(store)
    told = [{"id": "1", "arm": "navy", "values": {"iron": 1.0}, "feature": "blood"}]
    assert store.tell(id, told)["accepted"] == 1
    assert store.tell(id, told)["duplicates"] == 1
    with pytest.raises(Conflict, match="on record with another content"):
        store.tell(id, [told[0] | {"values": {"iron": 2.0}}])


def test_failing_and_undoing_free_the_feature(store: Campaigns) -> None:
    id = begun(store)
    first, second = (ask["lease"] for ask in store.ask(id, "ann", 2)["asks"])
    assert store.fail(id, first, "spilt")["feature"] == "ph"
    assert store.undo(id, second)["name"] == "navy"
    assert [(ask["name"], ask["feature"]) for ask in store.ask(id, "ann", 2)["asks"]] == [
        ("borlotti", "ph"), ("navy", "ph"),
    ]  # fmt: skip
    assert store.status(id)["failures"]["items"][0]["name"] == "borlotti"


def test_a_campaign_ends_is_read_again_and_exported(store: Campaigns) -> None:
    id = begun(store)
    answered(store, id, 20)
    status = store.status(id)
    assert status["done"]
    assert status["t"] == 16
    json.dumps(status, allow_nan=False)
    with again(store) as other:
        assert other.status(id) == status
        json.dumps(other.export(id, "json"))
    lines = store.export(id, "csv").splitlines()
    assert lines[0].startswith("id,arm,feature,value")
    assert len(lines) == 1 + 8 + 16  # of a panel a line for each number
    assert lines[1].startswith("m0,borlotti,ph,7.0")
    groups = store.export(id, "groups").splitlines()
    assert groups[0] == "item,group,proven,measurements"


def test_an_export_is_imported_into_another_campaign(store: Campaigns, tmp_path: Path) -> None:
    id = begun(store)
    answered(store, id, 7)
    (tmp_path / "beans.csv").write_text(store.export(id, "csv"))
    other = str(store.create("more", 4, 2, names=NAMES, noise=1.0, **BLOOD)["id"])
    answer = store.import_table(other, tmp_path / "beans.csv", in_order=True)
    assert answer["accepted"] == 7
    told = [(row["name"], row["feature"], row["values"]) for row in store.measurements(other)["measurements"]]
    assert told == [(row["name"], row["feature"], row["values"]) for row in store.measurements(id)["measurements"]]
    assert store.import_table(other, tmp_path / "beans.csv", in_order=True)["duplicates"] == 7


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("arm,feature,value\nnavy,tin,1", "line 2, column 'feature': there is no feature 'tin'"),
        ("arm,feature,value\nnavy,iron,1", "share an id"),
        ("arm,feature,value\nnavy,ph,", "value"),
        ("arm,value\nnavy,1", "a column feature"),
        ("arm,feature,ph\nnavy,ph,1", "a column value"),
        ("id,arm,feature,value\na,navy,iron,1\na,navy,iron,2", "'iron' is told twice"),
        ("id,arm,feature,value\na,navy,iron,1\na,pinto,zinc,2", "one item"),
        ("arm,feature,value\nnavi,ph,1", "navi"),
    ],
)
def test_a_table_that_cannot_be_imported_is_named(store: Campaigns, tmp_path: Path, rows: str, message: str) -> None:
    id = begun(store, holes=None)
    (tmp_path / "table.csv").write_text(rows + "\n")
    with pytest.raises(BadValue) as caught:
        store.import_table(id, tmp_path / "table.csv")
    assert message in caught.value.message


def test_a_long_table_without_ids_is_shuffled_within_item_and_feature(store: Campaigns, tmp_path: Path) -> None:
    id = begun(store)
    rows = "\n".join(f"navy,ph,{n}" for n in range(5))
    (tmp_path / "table.csv").write_text(f"item,feature,value\n{rows}\n")
    assert store.import_table(id, tmp_path / "table.csv")["accepted"] == 5
    assert sorted(row["values"][0] for row in store.measurements(id)["measurements"]) == [0, 1, 2, 3, 4]


def test_a_correction_is_by_feature(store: Campaigns) -> None:
    id = begun(store)
    store.tell(id, [{"id": "1", "arm": "navy", "values": [1.0, 2.0], "feature": "blood"}])
    answer = store.correct(id, "1", {"zinc": 2.5}, "smudged")
    assert (answer["name"], answer["feature"], answer["values"]) == ("navy", "blood", [None, 2.5])
    assert answer["old"] == [1.0, 2.0]
    assert store.measurements(id)["measurements"][0]["values"] == [None, 2.5]
    with again(store) as other:
        assert other.measurements(id)["measurements"][0]["values"] == [None, 2.5]
        assert other.status(id)["corrections"] == store.status(id)["corrections"]
    assert "told value" in store.export(id, "csv").splitlines()[0]


def test_a_far_value_is_asked_back_by_feature(store: Campaigns) -> None:
    id = begun(store)
    store.tell(id, [{"id": "1", "arm": "navy", "values": [1.0, 2.0], "feature": "blood"}])
    with pytest.raises(Conflict, match=r"90 \(zinc\) is 88 standard deviations from the 2 of navy"):
        store.tell(id, [{"id": "2", "arm": "navy", "values": [1.0, 90.0], "feature": "blood"}], ask_back=True)
    assert store.tell(id, [{"id": "3", "arm": "navy", "values": [7.0], "feature": "ph"}])["accepted"] == 1


def test_cells_list_found_features_first_and_the_means_of_groups(store: Campaigns) -> None:
    id = begun(store)
    answered(store, id, 20)
    seen = store.cells(id)
    assert [column["name"] for column in seen["features"]] == ["ph", "iron", "zinc"]
    assert seen["measured"] == 12
    assert (seen["touched"], seen["of"]) == (3, 3)
    cells = {(row[0], row[1]): row[2:] for row in seen["cells"]}
    assert cells[1, 1] == [2, 3.0]
    means = {group["id"]: group["means"] for group in seen["groups"]}
    of = {item["arm"]: item["group_id"] for item in seen["items"]}
    own = [NAMES.index(name) for name in NAMES if of[NAMES.index(name)] == of[0]]
    expected = sum(7.0 + item for item in own) / len(own)
    assert means[of[0]][0] == pytest.approx(expected)
    with pytest.raises(Conflict, match="measures whole items"):
        store.cells(str(store.create("whole", 3, 2, 1)["id"]))


def test_what_looks_at_whole_items_is_refused(store: Campaigns) -> None:
    id = begun(store)
    for wanted in (store.partial, store.picture, store.resolution_curve):
        with pytest.raises(Conflict):
            wanted(id)


def test_settings_are_kept_and_refused_by_name(store: Campaigns) -> None:
    id = begun(store)
    assert store.settings(id)["features"]["panels"] == [["ph", [0]], ["blood", [1, 2]]]
    for options, field in (
        ({"value_names": ["a"]}, "value_names"), ({"blocks": "offset"}, "blocks"),
        ({"panel_costs": [1, 2]}, "panel_costs"),
        ({"features": 10**7, "panels": None, "feature_costs": None, "panel_costs": None}, "features"),
    ):  # fmt: skip
        with pytest.raises(BadValue) as caught:
            begun(store, **options)
        assert caught.value.field == field


MEASURING = """
import json, sys
from coterie.campaign import Campaigns

with Campaigns(sys.argv[1]) as store:
    id = sys.argv[2]
    store.status(id)
    print("ready", flush=True)
    for k in range(10**6):
        (ask,) = store.ask(id, "w")["asks"]
        values = [float(ask["arm"] % 2 + k % 3)] * (2 if ask["feature"] == "blood" else 1)
        store.tell(id, [{"id": f"m{k}", "arm": ask["name"], "values": values, "lease": ask["lease"]}])
        print(json.dumps(["tell", f"m{k}", values]), flush=True)
        if k % 3 == 2:
            values = [value + 0.5 for value in values]
            store.correct(id, f"m{k}", values, "read again", correction=f"c{k}")
            print(json.dumps(["correct", f"c{k}", values]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", kill_points(8, 15))
def test_killed_feature_by_feature_nothing_acknowledged_is_lost(url: str, lines: int) -> None:
    with Campaigns(url) as store:
        id = begun(store, delta=1e-60)
        said = [json.loads(line) for line in said_until_killed(MEASURING, url, id, lines=lines)]
        before = store.status(id)  # of a process that had the campaign open all the time
    assert_reads_the_same(url, id, before)
    with Campaigns(url) as store, Campaigns(url) as other:
        told = {one["id"] for one in store.measurements(id)["measurements"]}
        assert {name for kind, name, _ in said if kind == "tell"} <= told
        assert len(told) - sum(kind == "tell" for kind, *_ in said) in (0, 1)
        made = {one["id"]: one["new"] for one in store.status(id)["corrections"]}
        assert {name: values for kind, name, values in said if kind == "correct"}.items() <= made.items()
        ask = store.ask(id, "ann")["asks"][0]
        values = numbers(ask["name"], ask["feature"])
        store.tell(id, [{"id": "after", "arm": ask["name"], "values": values, "lease": ask["lease"]}])
        assert lasting(other.status(id)) == lasting(store.status(id))
