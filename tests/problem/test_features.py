"""Features, panels and what they cost: what is taken, what is refused and how, and that JSON gives them back."""

from __future__ import annotations

import re
from typing import Any

import pytest

from coterie.problem.features import Features

ASSAYS = ["iron", "zinc", "ph"]
BLOOD = {"blood": ["iron", "zinc"], "ph": ["ph"]}


def test_every_feature_alone_is_a_panel() -> None:
    features = Features.of(10_000)
    assert (features.dim, features.n_panels, features.width) == (10_000, 10_000, 1)
    assert features.features_of(17) == (17,)
    assert features.panel_name(17) == "17"
    assert features.ask_cost(None, 3, 17) == 1.0


def test_panels_have_names_numbers_and_costs() -> None:
    features = Features.of(ASSAYS, panels=BLOOD, panel_costs={"ph": 1, "blood": 5})
    assert features.features_of(features.panel_of("blood")) == (0, 1)
    assert features.panels_with == {0: (0,), 1: (0,), 2: (1,)}
    assert features.panel_costs == (5.0, 1.0)
    assert features.ask_cost([2.0, 3.0], 1, 0) == 8.0
    assert Features.of(2).ask_cost([2.0, 3.0], 1, 0) == 3.0
    assert features.width == 2


def test_features_in_no_panel_are_measured_alone() -> None:
    features = Features.of(ASSAYS, panels={"blood": ["iron", "zinc"]})
    assert [features.panel_name(panel) for panel in range(features.n_panels)] == ["ph", "blood"]
    assert features.features_of(0) == (2,)
    assert features.panel_costs is None


def test_a_feature_with_a_cost_is_measured_alone_beside_its_panel() -> None:
    costs = {"feature_costs": [4, None, 1], "panels": {"blood": ["iron", "zinc"]}, "panel_costs": {"blood": 5}}
    features = Features.of(ASSAYS, **costs)
    assert [features.panel_name(panel) for panel in range(features.n_panels)] == ["iron", "ph", "blood"]
    assert features.panel_costs == (4.0, 1.0, 5.0)
    assert features.panels_with == {0: (0, 2), 1: (2,), 2: (1,)}


@pytest.mark.parametrize(
    "features",
    [
        Features.of(4),
        Features.of(ASSAYS, {"zinc": 4, "ph": 1}, {"blood": ["iron", "zinc"]}, [5]),
        Features.of(ASSAYS, [1, 2, 3]),
        Features.of(ASSAYS, panels=BLOOD, holes="at random"),
        Features.of(ASSAYS, panels=BLOOD, panel_costs=[5, 1]),
    ],
)
def test_json_gives_the_same_back(features: Features) -> None:
    assert Features.from_json(features.to_json()) == features


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"features": 0}, "features must be"),
        ({"features": "iron"}, "how many there are, or their names"),
        ({"features": []}, "at least one feature"),
        ({"features": ["iron", "iron"]}, "'iron' is there twice"),
        ({"features": ["iron", " zinc"]}, "no blanks around it"),
        ({"features": ["iron", 3]}, "must be text, got 3"),
        ({"panels": {"blood": ["iron", "tin"]}}, "unknown feature 'tin'"),
        (
            {"panels": {"blood": ["iron", "zinc"]}, "panel_costs": [3]},
            "no cost of the feature 'ph', which is in no panel",
        ),
        ({"panels": {"ph": ["iron", "ph"]}}, "has the name of a feature"),
        ({"panels": BLOOD, "feature_costs": {"ph": 1}, "panel_costs": [3, 1]}, "'ph' is there twice"),
        ({"panels": {"blood": ["iron", "zinc"]}, "feature_costs": [1, 1]}, "3 costs, one for each feature"),
        ({"panels": {"all": ASSAYS, "none": []}}, "'none' has no features"),
        ({"panels": {"all": [*ASSAYS, "ph"]}}, "'ph' is there twice"),
        ({"panels": {"all": "iron"}}, "must be a list of features"),
        ({"panels": {}}, "at least one panel"),
        ({"panels": BLOOD, "feature_costs": [1, None, None]}, "panel_costs must be given"),
        ({"panel_costs": [1, 2]}, "give panels too"),
        ({"feature_costs": [1, 2]}, "3 positive numbers, one for each feature"),
        ({"feature_costs": [1, 0, 2]}, "got 0.0 for the feature 'zinc'"),
        ({"feature_costs": {"iron": 1, "zinc": 2}}, "no cost of the feature 'ph'"),
        ({"feature_costs": {"iron": 1, "zinc": 2, "ph": 1, "tin": 4}}, "unknown feature 'tin'"),
        ({"feature_costs": [1, 1e9, 1]}, "in one unit"),
        ({"holes": "sometimes"}, "'at random'"),
    ],
)
def test_what_cannot_be_used_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        Features.of(**({"features": ASSAYS} | given))
