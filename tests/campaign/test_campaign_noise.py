"""Campaigns whose noise is not known: what they refuse, what they keep, and what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import coterie
from coterie.campaign import Campaigns, Conflict
from coterie.campaign.errors import BadValue
from coterie.campaign.settings import CampaignSettings

BAD: list[tuple[Any, list[Any], str]] = [
    (coterie.Counts(10), [11], "whole number from 0 to 10, got 11"),
    (coterie.Counts(10), [0.5], "whole number from 0 to 10, got 0.5"),
    (coterie.Bounded(1, 5), [5.01], "between 1 and 5, as was stated, got 5.01"),
    (None, [float("nan")], "must be finite"),
    (None, [1e200], "must be smaller than 1e+100"),
    (coterie.AtMost(1e-12), [10.0], "within 1e+12 standard deviations"),
]


@pytest.mark.parametrize(("noise", "values", "why"), BAD)
def test_a_result_that_contradicts_the_noise_is_refused_by_its_place(
    tmp_path: Path, noise: Any, values: list[Any], why: str
) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 4, 2, 1, noise=noise)["id"]
        good = {"id": "good", "arm": 0, "values": [1]}
        before = store.events(id)
        with pytest.raises(BadValue) as caught:
            store.tell(id, [good, {"id": "bad", "arm": 1, "values": values}])
        assert caught.value.field == "measurements[1].values"
        assert why in str(caught.value)
        assert store.events(id) == before
        table = [{"arm": 0, "v0": 1.0}, {"arm": 1, "v0": values[0]}]
        with pytest.raises(ValueError):
            store.import_table(id, table)
        assert store.events(id) == before
        assert store.tell(id, [good])["accepted"] == 1


@pytest.mark.parametrize(
    ("noise", "why"),
    [
        ({"family": "magic"}, "got 'magic'"),
        ({"family": "bounded", "lo": 0}, "hi is missing"),
        (coterie.Bounded([0, 0], 1), "2 bounds, but the measurements have 1 numbers"),
        ([1.0, 2.0], "got shape (2,)"),
    ],
)
def test_a_noise_that_does_not_fit_makes_no_campaign(tmp_path: Path, noise: Any, why: str) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        with pytest.raises(BadValue) as caught:
            store.create("one", 4, 2, 1, noise=noise)
        assert caught.value.field == "noise"
        assert why in str(caught.value)
        with pytest.raises(BadValue, match="needs to know the noise") as caught:
            store.create("one", 4, 2, 1, method="uniform")
        assert caught.value.field == "noise"
        assert store.list() == []


@pytest.mark.parametrize(
    "noise", [None, "gaussian", coterie.Counts(7), coterie.Bounded(-9, 9), coterie.AtMost(2.0), coterie.Symmetric()]
)
def test_a_campaign_keeps_its_noise_through_a_new_process(tmp_path: Path, noise: Any) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        made = store.create("one", 4, 2, 1, noise=noise)
        for k in range(16):  # where nothing is known about its size, a guess needs to know how repeats vary
            arm = k % 4
            store.tell(made["id"], [{"id": f"{k}", "arm": arm, "values": [5 * (arm > 1) + (k // 4) % 2]}])
        seen = store.status(made["id"])
    with Campaigns(tmp_path / "store.db") as store:
        again = store.status(made["id"])
        assert again["noise"] == made["noise"] == json.loads(json.dumps(made["noise"]))
        assert again["noise"]["family"]
        assert again["assumed"] == seen["assumed"]
        assert again["noise_in_words"] in again["assumed"]
        assert again["labels"] == seen["labels"] == [0, 0, 1, 1]
        assert again["misfits"] == []


def test_an_imported_row_that_contradicts_the_noise_is_named_by_its_line(tmp_path: Path) -> None:
    content = [f"{'ab'[k % 2]},{k % 7}" for k in range(30)]
    content[17] = "b,21"
    (tmp_path / "clicks.csv").write_text("\n".join(["item,clicks", *content]) + "\n")
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 3, 2, 1, noise=coterie.Counts(20), names=["a", "b", "c"])["id"]
        before = store.events(id)
        with pytest.raises(BadValue, match=r"line 19, item b: a count of successes .* from 0 to 20, got 21") as caught:
            store.import_table(id, tmp_path / "clicks.csv")
        assert caught.value.field == "line 19"
        assert store.events(id) == before


def test_noise_null_in_a_store_is_the_standard_gaussian() -> None:
    made = CampaignSettings.of(4, 2, 2, noise=1.0)
    old = json.loads(made.to_json()) | {"noise": None, "method": "uniform"}
    read = CampaignSettings.from_json(json.dumps(old))
    assert (read.noise, read.run.noise) == (1.0, coterie.Noise.of(1.0, 2))
    assert read.session().method == "uniform"
    assert json.loads(CampaignSettings.of(4, 2, 2).to_json())["noise"] == {"family": "any"}


def test_a_mistyped_result_is_noticed_without_a_stated_noise(tmp_path: Path) -> None:
    """By the spread of the repeats so far: no warning before there are some, none for ordinary results."""
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 4, 2, 1)["id"]
        wiggle = [0.3, -0.2, 0.1, -0.4, 0.2, 0.5, -0.1, 0.4]
        first = {"id": "early", "arm": 3, "values": [99.0]}
        assert "warnings" not in store.tell(id, [first])
        for k, more in enumerate(wiggle):
            rows = [{"id": f"{arm}-{k}", "arm": arm, "values": [arm + more]} for arm in range(3)]
            assert "warnings" not in store.tell(id, rows)
        answer = store.tell(id, [{"id": "slip", "arm": 0, "values": [1000.0]}])
        (warning,) = answer["warnings"]
        assert answer["accepted"] == 1
        assert "times the usual spread of repeats from the mean of its 8 earlier results" in warning["message"]
        assert "warnings" not in store.tell(id, [{"id": "usual", "arm": 1, "values": [1.2]}])


def test_a_slip_by_a_factor_is_noticed_after_a_few_repeats(tmp_path: Path) -> None:
    """With a margin while there are few: what is somewhat far could be the noise."""
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 4, 2, 1)["id"]
        for k, more in enumerate((0.1, -0.1)):
            store.tell(id, [{"id": f"{arm}-{k}", "arm": arm, "values": [5.0 + more]} for arm in range(4)])
        # Four repeats that differ by 0.2: a usual spread of 0.21, and 60 times that is far.
        assert "warnings" not in store.tell(id, [{"id": "somewhat", "arm": 0, "values": [11.0]}])
        (warning,) = store.tell(id, [{"id": "slip", "arm": 1, "values": [512.0]}])["warnings"]
        assert "512 lies" in warning["message"]
        with pytest.raises(Conflict, match="Save it anyway"):
            store.tell(id, [{"id": "asked", "arm": 2, "values": [512.0]}], ask_back=True)


def test_two_results_are_too_few_to_doubt_a_third(tmp_path: Path) -> None:
    with Campaigns(tmp_path / "store.db") as store:
        id = store.create("one", 4, 2, 1)["id"]
        for k, value in enumerate((5.0, 5.1, 900.0)):
            assert "warnings" not in store.tell(id, [{"id": str(k), "arm": 0, "values": [value]}])
