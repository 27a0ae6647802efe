"""The settings of a campaign: one way in, errors that carry their field, JSON that old and new releases read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coterie.campaign import BadValue, Campaigns, Conflict
from coterie.campaign.settings import CampaignSettings, check_rules
from coterie.methods import METHODS, Method, register, unregister
from coterie.problem.settings import FIELDS
from coterie.web.request_models import NewCampaign

FIRST = {
    "n_arms": 3, "n_clusters": 2, "dim": 1, "delta": 0.001, "method": "uniform", "threshold": "heuristic", "noise": 2.0,
    "names": ["ash", "beech", "oak"], "distance_ratio": None, "lease_seconds": 60.0, "on_expiry": "skip", "engine": 1,
}  # fmt: skip
"""As the first release stored it: no value_names."""


@pytest.fixture
def own() -> Iterator[Method]:
    yield register(Method("own-rule", "somebody's", METHODS["uniform"].start, rules=2))
    unregister("own-rule")


@pytest.mark.parametrize("word", ["method", "delta", "noise", "threshold", "dim", "n_arms"])
def test_a_name_that_is_a_setting_does_not_mislead(word: str) -> None:
    """The field comes from the exception: not from whatever word stands in the message."""
    with pytest.raises(BadValue) as caught:
        CampaignSettings.of(3, 2, 1, names=[word, word, "other"], noise=1.0)
    assert caught.value.field == "names"
    with pytest.raises(BadValue) as caught:
        CampaignSettings.of(3, 2, 1, method=f"{word} of mine", noise=1.0)
    assert caught.value.field == "method"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"n_arms": "3"}, "n_arms"),
        ({"n_arms": 2}, "n_clusters"),
        ({"n_clusters": 1}, "n_clusters"),
        ({"dim": 10**8}, "dim"),
        ({"delta": 0}, "delta"),
        ({"method": 7}, "method"),
        ({"method": "oracle"}, "method"),
        ({"method": "boc-linear"}, "distance_ratio"),
        ({"method": "boc-linear", "distance_ratio": 2.0}, "distance_ratio"),
        ({"threshold": None}, "threshold"),
        ({"noise": "loud"}, "noise"),
        ({"names": ["a", "b"]}, "names"),
        ({"names": ["a", "b", 3]}, "names[2]"),
        ({"lease_seconds": "long"}, "lease_seconds"),
        ({"on_expiry": ["skip"]}, "on_expiry"),
        ({"value_names": ["a", "b"]}, "value_names"),
    ],
)
def test_every_error_names_its_field(given: dict[str, Any], field: str) -> None:
    options: dict[str, Any] = {"n_arms": 3, "n_clusters": 2, "dim": 1, **given}
    with pytest.raises(BadValue) as caught:
        CampaignSettings.of(options.pop("n_arms"), options.pop("n_clusters"), options.pop("dim"), **options)
    assert caught.value.field == field


def test_the_message_about_a_simulation_method_lists_the_others() -> None:
    with pytest.raises(BadValue, match="choose one of croc, shortlist, boc, boc-linear, uniform"):
        CampaignSettings.of(3, 2, 1, method="oracle", noise=1.0)


def test_json_goes_there_and_back() -> None:
    made = CampaignSettings.of(
        4, 2, 2, delta=0.1, method="boc-linear", threshold="heuristic", noise=[[2.0, 0.5], [0.5, 1.0]],
        names=list("abcd"), distance_ratio=0.5, lease_seconds=7.0, on_expiry="wait", value_names=["x", "y"],
    )  # fmt: skip
    again = CampaignSettings.from_json(made.to_json())
    assert again.as_dict() == made.as_dict() == json.loads(made.to_json())
    assert (again.rules, again.run.shape, again.columns) == (METHODS["boc-linear"].rules, (4, 2, 2), ["x", "y"])
    keys = [*FIRST, "value_names", "pass_on"]
    assert list(made.as_dict()) == keys  # as the HTTP interface has always shown them


def test_settings_of_the_first_release_are_read() -> None:
    read = CampaignSettings.from_json(json.dumps(FIRST))
    assert read.as_dict() == FIRST | {"value_names": None, "pass_on": 2.0}
    assert (read.rules, read.names, read.name_of(1)) == (1, ("ash", "beech", "oak"), "beech")
    assert check_rules(read) is METHODS["uniform"]
    later = CampaignSettings.from_json(json.dumps(FIRST | {"engine": 3, "colour": "green"}))
    assert check_rules(later) is METHODS["uniform"]  # 3 was the number of every method


@pytest.mark.parametrize("method", ["croc", "boc", "uniform"])
def test_newer_rules_are_refused_with_both_numbers(method: str) -> None:
    known = METHODS[method].rules
    newer = CampaignSettings.from_json(json.dumps(FIRST | {"method": method, "engine": known + 1}))
    with pytest.raises(
        Conflict, match=rf"number {known + 1} of method '{method}', this release has number {known}"
    ) as caught:
        check_rules(newer)
    assert caught.value.code == "newer_rules"
    assert "open it with a release of Coterie that has number" in caught.value.message


def mark(path: Path, **changes: Any) -> None:
    """Change the stored settings of the only campaign of a store."""
    import sqlite3

    with sqlite3.connect(path) as connection:
        (text,) = connection.execute("SELECT settings FROM campaigns").fetchone()
        connection.execute("UPDATE campaigns SET about = '', settings = ?", [json.dumps(json.loads(text) | changes)])
    connection.close()


def test_a_store_of_a_later_release_is_listed_and_not_continued(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("later", 3, 2, 1, method="uniform", noise=1.0)["id"]
    mark(tmp_path / "store.db", engine=99)
    with Campaigns(tmp_path / "store.db") as store:
        assert [one["name"] for one in store.list()] == ["later"]
        calls: list[Callable[[], object]] = [
            lambda: store.status(id),
            lambda: store.ask(id, "w"),
            lambda: store.tell(id, []),
        ]
        for call in calls:
            with pytest.raises(
                Conflict, match="rules number 99 of method 'uniform', this release has number 3"
            ) as caught:
                call()
            assert caught.value.code == "newer_rules"


def test_a_method_that_this_process_does_not_know_is_refused(tmp_path: Path, own: Method) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("own", 3, 2, 1, method="uniform", noise=1.0)["id"]
    mark(tmp_path / "store.db", method="elsewhere")
    with Campaigns(tmp_path / "store.db") as store:
        assert store.list()[0]["method"] == "elsewhere"
        with pytest.raises(
            Conflict, match=r"'elsewhere', which is not known in this process \(known: croc, .*own-rule\)"
        ) as caught:
            store.ask(id, "w")
        assert (caught.value.code, caught.value.field) == ("unknown_method", "method")
        assert "--register MODULE" in caught.value.message
        assert "coterie.methods.register" in caught.value.message


def test_the_http_model_has_the_fields_of_the_settings() -> None:
    shown = set(CampaignSettings.of(3, 2, 1, noise=1.0).as_dict()) - {"engine"}
    sometimes = {"resolution", "groups", "costs", "cost_unit", "confirm", "blocks", "strict_blocks"}  # where asked for
    sometimes |= {"features", "feature_costs", "panels", "panel_costs", "holes", "deadline"}
    assert set(NewCampaign.model_fields) == shown | {"name", *sometimes}
    assert set(FIELDS) - {"instance"} <= set(NewCampaign.model_fields)
    made = CampaignSettings.of(3, 2, 1).as_dict()
    assert NewCampaign.model_fields["n_clusters"].default is None  # given, or a resolution is
    assert made.pop("n_clusters") == 2
    assert NewCampaign.model_fields["dim"].default is None  # it follows from the features, where there are such
    assert made.pop("dim") == 1
    assert NewCampaign.model_fields["noise"].default is None
    assert made.pop("noise") == {"family": "any"}  # in a store null is the standard Gaussian of the first release
    assert NewCampaign.model_fields["pass_on"].default is None  # then it depends on on_expiry
    assert made.pop("pass_on") == 2.0
    for name in made.keys() & NewCampaign.model_fields.keys():
        field = NewCampaign.model_fields[name]
        if not field.is_required():
            assert field.default == made[name], name


def test_the_http_model_describes_methods_registered_later(own: Method) -> None:
    text = NewCampaign.model_json_schema()["properties"]["method"]["description"]
    assert f"{own.name}: {own.sentence}" in text
    assert all(f"{one.name}: {one.sentence}" in text for one in METHODS.values() if not one.simulates_only)
    assert "oracle" not in text
